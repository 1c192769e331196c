"""A column of instants means the same in every source and on every engine: what clocks of the session's zone show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import InvalidArgument
from dpsql.executors.pandas.columns import blocks
from dpsql.schema.zones import offsets_of
from tests.executors.contract import difference
from tests.lies import assert_caught

ZONES = [None, "Europe/Rome", "America/New_York", "Australia/Lord_Howe", "+05:45"]
QUERIES = (
    "SELECT COUNT(*) FROM t WHERE ts >= '2022-07-01'",
    "SELECT HOUR(ts) AS h, COUNT(*) FROM t GROUP BY h",
    "SELECT CAST(ts AS DATE) AS day, COUNT(*) FROM t WHERE ts >= '2022-03-26' AND ts < '2022-04-05' GROUP BY day",
    "SELECT DATE_TRUNC('month', ts) AS m, COUNT(*) FROM t WHERE ts >= '2021-06-01' AND ts < '2023-06-01' GROUP BY m",
    "SELECT COUNT(*) FROM t WHERE EXTRACT(minute FROM ts) = 45",
    "SELECT SUM(CLAMP(DATE_DIFF('hour', TIMESTAMP '2022-01-01', ts), -9000, 9000)) FROM t",
    "SELECT COUNT(DISTINCT ts), COUNT(ts) FROM t",
)


def instants() -> pd.DataFrame:
    """Half hours around both changes of clocks, the ends of the calendar of nanoseconds, and years before zones."""
    parts = [
        pd.date_range(start, periods=60, freq="30min", tz="UTC")
        for start in ("2022-03-26 12:00", "2022-10-29 12:00", "2022-06-30 12:00", "1969-12-31 12:00", "2022-04-02")
    ]
    ends = pd.to_datetime(["1677-09-22", "2262-04-11", "1900-01-01", "2099-07-01"], utc=True)
    cells = parts[0].append([*parts[1:], ends]).as_unit("us")
    column = pd.Series(cells).where(np.arange(len(cells)) % 50 != 7)
    return pd.DataFrame({"ts": column.dt.tz_convert("Asia/Tokyo"), "n": np.arange(len(cells))})


def sources(folder: Path) -> dict[str, tuple[Any, str]]:
    frame = instants()
    path, database = folder / "zoned.parquet", folder / "zoned.duckdb"
    frame.to_parquet(path)
    types = {"ts": "timestamp"}
    with dpsql_connection(database) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{path}'")
    arrow = pa.Table.from_pandas(frame)
    return {
        "frame": (frame, "pandas"),
        "frame on duckdb": (frame, "duckdb"),
        "frame in UTC": (frame.assign(ts=frame["ts"].dt.tz_convert("UTC")), "pandas"),
        "nanoseconds": (frame.assign(ts=frame["ts"].astype("datetime64[ns, America/Lima]")), "pandas"),
        "arrow": (arrow, "auto"),
        "arrow dtype": (arrow.to_pandas(types_mapper=pd.ArrowDtype), "pandas"),
        "objects": (dpsql.Table(frame.assign(ts=frame["ts"].astype(object)), types=types), "pandas"),
        "categories": (dpsql.Table(frame.assign(ts=frame["ts"].astype("category")), types=types), "pandas"),
        "parquet": (path, "duckdb"),
        "database": (dpsql.Table(database, table="t"), "duckdb"),
    }


def dpsql_connection(path: Path) -> Any:
    import duckdb

    return duckdb.connect(str(path))


def session(source: Any, engine: str, zone: str | None, **words: Any) -> dpsql.Session:
    return dpsql.Session({"t": source}, budget=dpsql.Budget(1e9, 1e-3), engine=engine, timezone=zone, **words)


@pytest.mark.parametrize("zone", ZONES)
def test_every_source_adds_the_same_integers(zone: str | None, tmp_path: Path):
    held = sources(tmp_path)
    one = session(*held.pop("frame"), zone)
    for name, (source, engine) in held.items():
        other = session(source, engine, zone)
        assert [found for sql in QUERIES if (found := difference(one, other, sql))] == [], name


def test_the_default_is_utc():
    frame = pd.DataFrame({"ts": pd.date_range("2022-06-30 22:00", periods=8, freq="30min", tz="UTC")})
    sql = "SELECT COUNT(*) AS n FROM t WHERE ts >= '2022-07-01'"
    for shown in ("UTC", "Europe/Rome", "Asia/Tokyo"):
        stored = frame.assign(ts=frame["ts"].dt.tz_convert(shown))
        assert round(dpsql.query({"t": stored}, sql, epsilon=1e6).df["n"][0]) == 4
        assert round(dpsql.query({"t": stored}, sql, epsilon=1e6, timezone="Europe/Rome").df["n"][0]) == 8


def test_an_hour_that_clocks_repeat_is_shown_twice():
    cells = pd.to_datetime(["2022-10-30 00:30", "2022-10-30 01:30"], utc=True)
    frame = pd.DataFrame({"ts": cells})
    sql = "SELECT COUNT(*) AS n FROM t WHERE ts = '2022-10-30 02:30'"
    assert round(dpsql.query({"t": frame}, sql, epsilon=1e6, timezone="Europe/Berlin").df["n"][0]) == 2


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_days_as_units_are_those_of_the_zone(engine: str, tmp_path: Path):
    """21:30 and 22:30 UTC are one day in London's winter and two in Rome's summer."""
    frame = pd.DataFrame({"ts": pd.to_datetime(["2022-06-30 21:30", "2022-06-30 22:30"], utc=True)})
    frame.to_parquet(tmp_path / "days.parquet")
    source: Any = frame if engine == "pandas" else tmp_path / "days.parquet"
    for zone, days in (("UTC", 1), ("Europe/Rome", 2)):
        table = dpsql.Table(source, types={"ts": "date"}, unit="ts", max_rows=5)
        asked = session(table, engine, zone).query("SELECT COUNT(DISTINCT ts) AS n FROM t", epsilon=1e5)
        assert round(asked.df["n"][0]) == days


def test_keys_of_questions_tell_zones_apart(tmp_path: Path):
    """An answer is given again only in the zone that it was asked in."""
    frame = pd.DataFrame({"ts": pd.date_range("2022-06-30", periods=9, freq="h", tz="UTC"), "n": range(9)})
    words = {"ledger": tmp_path / "zones.ledger"}
    of_times, of_others = "SELECT COUNT(*) FROM t WHERE ts > '2022-06-30'", "SELECT COUNT(*) FROM t"
    spent = []
    for zone in (None, "UTC", "Europe/Rome", "Europe/Rome"):
        with session(dpsql.Table(frame, version="1"), "pandas", zone, **words) as held:
            held.query(of_times, epsilon=1)
            spent.append(float(held.spent.epsilon))
    assert spent == [1, 1, 2, 2]
    assert of_others


def test_the_owners_file_names_the_zone(tmp_path: Path):
    frame = pd.DataFrame({"ts": pd.date_range("2022-06-30 22:00", periods=8, freq="30min", tz="UTC")})
    frame.to_parquet(tmp_path / "t.parquet")
    file = tmp_path / "t.toml"
    text = '{zone}[budget]\nepsilon = 1e9\n[tables.t]\npath = "t.parquet"\nunit = "row"\n'
    sql = "SELECT COUNT(*) AS n FROM t WHERE ts >= '2022-07-01'"
    for zone, wanted in (("", 4), ('timezone = "Europe/Rome"\n', 8)):
        file.write_text(text.replace("{zone}", zone).replace('unit = "row"\n', ""))
        with dpsql.Session(schema=dpsql.Schema.from_toml(file), ledger=False) as held:
            assert round(held.query(sql, epsilon=1e6).df["n"][0]) == wanted
    file.write_text(text.replace("{zone}", 'timezone = "Europe/Rom"\n').replace('unit = "row"\n', ""))
    with pytest.raises(InvalidArgument, match="Europe/Rome"):
        dpsql.Schema.from_toml(file)


def test_a_clock_of_another_zone_on_one_engine_is_caught(tmp_path: Path):
    def lie(patch: pytest.MonkeyPatch) -> None:
        tokyo = offsets_of("Asia/Tokyo").offsets[-1]
        patch.setattr(blocks, "wall_clock", lambda moments, _zone: moments + tokyo)

    folders = iter((tmp_path / "honest", tmp_path / "lying"))

    def check() -> None:
        folder = next(folders)
        folder.mkdir()
        test_every_source_adds_the_same_integers("Europe/Rome", folder)

    assert_caught(lie, check)
