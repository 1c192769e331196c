"""Tables of time zones: the offsets of a zone's clocks at every instant, as the time zone database has them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import duckdb
import pytest

from dpsql.errors import InvalidArgument
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.zones import FIRST_YEAR, LAST_YEAR, checked_zone, in_zone, offsets_of, zone_by_storage

ZONES = ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "America/Caracas"]
SECOND = 1_000_000


def offset_at(zone: str, instant: int) -> int:
    found = offsets_of(zone)
    return found.offsets[sum(each <= instant for each in found.instants)]


@pytest.mark.parametrize("zone", ZONES)
def test_offsets_are_those_of_the_database(zone: str):
    draw, start = random.Random(zone), datetime(1970, 1, 1, tzinfo=UTC)
    low, high = (
        (datetime(year, 1, 1, tzinfo=UTC) - start) // timedelta(seconds=1) for year in (FIRST_YEAR, LAST_YEAR + 1)
    )
    seconds = [draw.randrange(low, high) for _ in range(500)]
    seconds += [each // SECOND + step for each in offsets_of(zone).instants for step in (-1, 0, 1)]
    for second in seconds:
        moment = (start + timedelta(seconds=second)).astimezone(ZoneInfo(zone))
        assert offset_at(zone, second * SECOND) == moment.utcoffset() / timedelta(microseconds=1), moment


@pytest.mark.parametrize("zone", ZONES)
def test_offsets_are_those_of_duckdb(zone: str):
    """Since 1970, beyond which databases of zones disagree."""
    draw = random.Random(zone)
    seconds = [draw.randrange(0, 2_100_000_000) for _ in range(400)]
    seconds += [at // SECOND + step for at in offsets_of(zone).instants if 0 < at < 2**31 * SECOND for step in (-1, 0)]
    listed = ", ".join(f"({each})" for each in seconds)
    shown = f"epoch_us(timezone('{zone}', to_timestamp(s)))"
    text = f"SELECT {shown} - s * CAST(1000000 AS BIGINT) FROM (VALUES {listed}) AS v(s)"
    with duckdb.connect() as connection:
        theirs = [each for (each,) in connection.execute(text).fetchall()]
    assert [offset_at(zone, each * SECOND) for each in seconds] == theirs


def test_fixed_offsets():
    assert offsets_of("UTC").offsets == (0,)
    assert offsets_of("+02:00").offsets == (7_200 * SECOND,)
    assert offsets_of("-03:30").offsets == (-12_600 * SECOND,)
    assert {checked_zone(each) for each in ("UTC", "utc", "Z", "Etc/UTC", "+00:00")} == {"UTC"}


@pytest.mark.parametrize("word", ["Europe/Berln", "", 3, "+25:00", "/etc/passwd", "CEST", "europe/berlin"])
def test_other_words_are_refused(word: object):
    with pytest.raises(InvalidArgument, match="time zone"):
        checked_zone(word)


def test_a_near_name_is_proposed():
    with pytest.raises(InvalidArgument, match="Europe/Berlin"):
        checked_zone("Europe/Berln")


@pytest.mark.parametrize(
    ("storage", "in_utc", "in_rome"),
    [
        ("datetime64[us]", None, None),
        ("TIMESTAMP", None, None),
        ("timestamp_ntz", None, None),
        ("int64", None, None),
        ("TIMESTAMP WITH TIME ZONE", None, "Europe/Rome"),
        ("timestamp", None, "Europe/Rome"),
        ("datetime64[ns, UTC]", None, "Europe/Rome"),
        ("datetime64[ns, Europe/Paris]", "UTC", "Europe/Rome"),
        ("timestamp[us, tz=Europe/Paris][pyarrow]", "UTC", "Europe/Rome"),
        ("object", None, "Europe/Rome"),
    ],
)
def test_which_columns_have_a_zone(storage: str, in_utc: str | None, in_rome: str | None):
    """A column that was read in UTC before keeps the key of its questions."""
    tables = {"t": TableSchema("t", (ColumnSchema("ts", Type.TIMESTAMP, storage=storage),))}
    assert zone_by_storage(storage) == in_utc
    assert in_zone(tables, "Europe/Rome")["t"].columns[0].zone == in_rome


def test_text_of_a_column_without_zone_is_as_before_there_were_zones():
    assert "zone" not in repr(ColumnSchema("ts", Type.TIMESTAMP))
    assert "zone='Europe/Rome'" in repr(ColumnSchema("ts", Type.TIMESTAMP, zone="Europe/Rome"))
