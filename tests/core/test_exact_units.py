"""A unit is the stored value, exactly: different values are different people, equal ones the same, in every storage and
at every place. Nothing is random: answers are exact, before noise."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, FloatOperation, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import InvalidSchema, TypeMismatch
from dpsql.executors.pandas.columns.exact_values import Instant, array_of, cells_of, joined, numbered, ranks
from dpsql.executors.pandas.hashing import hash_key, hash_units, numbers_of
from dpsql.executors.pandas.units.identity import identified
from dpsql.schema.columns import Type
from tests.core import exact_units
from tests.core.exact_units import (
    DOMAINS,
    INTEGERS,
    WHOLE,
    Domain,
    Storage,
    arrow,
    arrow_clock,
    asked,
    clock,
    objects,
)
from tests.core.unit_checks import KEYS

EACH_STORAGE = [
    pytest.param(domain, storage, id=f"{domain}, {storage}") for domain in DOMAINS for storage in domain.storages
]


def beside(domain: Domain, *, near: bool) -> list[Any]:
    """Each storage beside the two that follow it in the list, or beside all others."""
    places = range(len(domain.storages))
    return [
        pytest.param(domain, domain.storages[one], domain.storages[other], id=f"{domain}, {one} beside {other}")
        for one, other in itertools.permutations(places, 2)
        if (0 < (other - one) % len(places) < 3) is near
    ]


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("domain", "storage"), EACH_STORAGE)
def test_different_values_are_different_people(domain: Domain, storage: Storage):
    exact_units.check_one_table(domain, storage)


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("domain", "one", "other"), [each for d in DOMAINS for each in beside(d, near=True)])
def test_equal_values_are_one_person_in_two_storages(domain: Domain, one: Storage, other: Storage):
    exact_units.check_two_tables(domain, one, other)


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "one", "other"), [each for d in DOMAINS for each in beside(d, near=False)])
def test_equal_values_are_one_person_in_any_two_storages(domain: Domain, one: Storage, other: Storage):
    exact_units.check_two_tables(domain, one, other)


APART = [
    *(
        ("integers", name, other)
        for name, other in (("int64", "uint64"), ("objects", "Int64"), ("text", "Arrow decimals"))
    ),
    *(("reals", name, other) for name, other in (("float64", "decimal128"), ("objects", "Float64"))),
    ("times", "datetime64[s, None]", "objects"),
    ("instants", "datetime64[us, UTC]", "objects"),
]


@pytest.mark.parametrize(("domain", "one", "other"), APART)
def test_what_is_kept_of_a_person_follows_from_that_persons_rows(domain: str, one: str, other: str):
    whole = next(each for each in DOMAINS if each.name == domain)
    named = {each.name: each for each in whole.storages}
    exact_units.check_apart(whole, named[one], named[other])


NAMES = ("int64", "UInt64", "objects", "text", "float64", "decimal128", "decimal256", "Decimals", "whole numbers")
OF_TWO_TYPES = [
    (each, other)
    for pair in (DOMAINS[:2], DOMAINS[1::-1])
    for each, other in itertools.product(*(domain.storages for domain in pair))
    if {each.name, other.name} <= {*NAMES}
    and "text" not in (each.name if each in DOMAINS[1].storages else "", other.name)
]


@pytest.mark.parametrize("place", range(3))
def test_a_number_of_two_types_is_one_person(place: int):
    for one, other in OF_TWO_TYPES[place::3]:
        exact_units.check_numbers_of_two_types(one, other)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("pair", exact_units.MERGED, ids=str)
def test_neither_of_two_people_moves_a_sum_by_more_than_a_row(pair: exact_units.Pair):
    exact_units.check_merged(pair)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("pair", exact_units.EQUAL, ids=str)
def test_equal_values_are_one_person(pair: exact_units.Pair):
    exact_units.check_equal(pair)


def test_times_are_compared_as_the_text_reads_them():
    exact_units.check_times_in_the_text()


def test_a_thousand_random_ids_are_a_thousand_people():
    rng = random.Random(5)
    ids = [rng.randrange(-(2**63), 2**63) for _ in range(500)] + [rng.randrange(2**64) for _ in range(500)]
    for storage in INTEGERS:
        held = storage.of(ids)
        assert len(held) >= 500 or storage.name in ("int8", "float64")
        if held:
            table = storage.table(held, unit="u", max_rows=1)
            assert asked({"t": table}, "SELECT COUNT(DISTINCT u) FROM t") == (len(set(held)),)


def test_a_thousand_ids_of_a_text_file_are_a_thousand_people(tmp_path: Any):
    rng = random.Random(6)
    ids = list({rng.randrange(-(2**63), 2**63) for _ in range(500)} | {rng.randrange(2**63, 2**64) for _ in range(500)})
    path = tmp_path / "t.csv"
    path.write_text("u,v\n" + "".join(f"{each},1\n" for each in ids), encoding="utf-8")
    declared = ['columns.u = { type = "integer" }', 'columns.u = { type = "integer", bounds = [0, 10] }',
                "columns.u = { bounds = [0, 1000] }"]  # fmt: skip
    for place, said in enumerate(declared):
        text = f'[budget]\nepsilon = 1e9\n[tables.t]\npath = "t.csv"\nunit = "u"\nmax_rows = 1\n{said}\n'
        schema = tmp_path / f"{place}.toml"  # each with a ledger of its own: another type is another unit
        schema.write_text(text, encoding="utf-8")
        session = dpsql.Session(schema=dpsql.Schema.from_toml(schema))
        assert session.query("SELECT COUNT(DISTINCT u) FROM t", epsilon=1e6).item() == len(ids)


# What is said of a column changes no unit


def test_neither_bounds_nor_nullability_nor_keys_touch_units():
    exact_units.check_what_is_declared()


def test_a_cell_that_does_not_fit_the_type_is_nobodys():
    cells = [
        1,
        "1",
        " 01",
        1.0,
        Decimal("1.000"),
        np.int8(1),
        1.5,
        "1.5",
        "x",
        True,
        None,
        float("nan"),
        Decimal("sNaN"),
        b"1",
    ]
    table = dpsql.Table(pd.DataFrame({"u": objects(cells)}), types={"u": "integer"}, unit="u", max_rows=100)
    assert asked({"t": table}, "SELECT COUNT(*) FROM t") == (9,)
    assert asked({"t": table}, "SELECT COUNT(DISTINCT u) FROM t") == (2,)  # "1.5" is 2, as CAST reads it


def test_a_timestamp_declared_a_date_is_the_day():
    frame = pd.DataFrame({"u": pd.to_datetime(["2020-01-01 10:00", "2020-01-01 11:00", "2020-01-02 00:00"])})
    table = dpsql.Table(frame, types={"u": "date"}, unit="u", max_rows=9)
    assert asked({"t": table}, "SELECT COUNT(DISTINCT u) FROM t") == (2,)


@pytest.mark.parametrize("dtype", [">i8", ">u8", ">f8", ">i2"])
def test_the_order_of_bytes_and_the_layout_of_a_column_are_no_matter(dtype: str):
    cells = np.zeros((4, 2), dtype=dtype)
    cells[:, 0] = [3, 1, 3, 200]
    for column in (cells[:, 0], cells[::-1, 0], cells[:, 0].copy()):
        table = dpsql.Table(pd.DataFrame({"u": column}, copy=False), unit="u", max_rows=1)
        assert asked({"t": table}, "SELECT COUNT(DISTINCT u) FROM t") == (3,)


def test_wide_floats_stay_apart():
    cells = np.array([1, np.longdouble(1) + np.finfo(np.longdouble).eps, 1, np.inf, np.nan], dtype=np.longdouble)
    table = dpsql.Table(pd.DataFrame({"u": cells}), unit="u", max_rows=1)
    assert asked({"t": table}, "SELECT COUNT(DISTINCT u) FROM t") == (3,)


def test_days_of_no_calendar_stay_apart_where_dates_are_stored():
    cells = np.array([3_000_000, 3_000_001, -10_000_000], dtype=np.int32)
    days = pa.chunked_array([pa.array(cells).cast(pa.date32())])
    frame = pd.DataFrame({"u": pd.arrays.ArrowExtensionArray(days)})
    assert asked({"t": dpsql.Table(frame, unit="u", max_rows=1)}, "SELECT COUNT(DISTINCT u) FROM t") == (3,)


def test_milliseconds_within_a_day_stay_apart_where_dates_are_stored_so():
    stored = pa.array([86_400_000, 86_400_001, 1], pa.int64()).cast(pa.date64())
    frame = pd.DataFrame({"u": pd.arrays.ArrowExtensionArray(pa.chunked_array([stored]))})
    assert asked({"t": dpsql.Table(frame, unit="u", max_rows=1)}, "SELECT COUNT(DISTINCT u) FROM t") == (3,)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_moments_of_years_that_nanoseconds_do_not_reach_stay_apart(unit: str):
    held = np.array([10**11, 10**11 + 1, -(10**11), 5], dtype=f"M8[{unit}]")
    frames = {"t": pd.DataFrame({"u": held}), "z": pd.DataFrame({"u": pd.Series(held).dt.tz_localize("UTC")})}
    for frame in frames.values():
        table = dpsql.Table(frame, unit="u", max_rows=1)
        assert asked({"t": table}, "SELECT COUNT(DISTINCT u) FROM t") == (4,)


# Paths


def test_a_doubled_key_leads_to_the_smallest_unit_in_the_order_of_exact_values():
    exact_units.check_doubled_keys()


def test_ranks_are_those_of_the_values():
    values = array_of(["b", 2**70, Decimal("0.1"), 0.1, float("inf"), Fraction(1, 3), Instant(5), "a", -1, Instant(-5)])
    with localcontext(Context(traps=[FloatOperation])):
        assert np.argsort(ranks(values)).tolist() == [8, 2, 3, 5, 1, 4, 9, 6, 7, 0]


# Zones


def test_times_with_a_zone_and_without_one_are_not_led_to_each_other():
    zoned, plain = clock("ns", "Europe/Berlin"), clock("us")
    for one, other in ((zoned, plain), (plain, zoned), (arrow_clock("us", "UTC"), plain)):
        keys = other.table([0], unit="v", unique=["u"], max_rows=1)
        rows = one.table([0], unit="u -> keys.u", max_rows=1)
        with pytest.raises(InvalidSchema, match="time zone"):
            asked({"keys": keys, "t": rows}, "SELECT COUNT(*) FROM t")
        tables = {"t": one.table([0], unit="u", max_rows=1), "q": other.table([0], unit="u", max_rows=1)}
        with pytest.raises(TypeMismatch, match="time zone"):
            asked(tables, "SELECT COUNT(*) FROM (SELECT v FROM t UNION ALL SELECT v FROM q)")


def test_a_time_of_a_zone_and_one_without_are_two_people_among_objects():
    cells = objects([pd.Timestamp(0), pd.Timestamp(0, tz="UTC"), pd.Timestamp(0, tz="Europe/Berlin")])
    table = dpsql.Table(pd.DataFrame({"u": cells}), unit="u", types={"u": "timestamp"}, max_rows=1)
    assert asked({"t": table}, "SELECT COUNT(*) FROM t") == (2,)


@pytest.mark.parametrize("dtype", ["category", object])
def test_zones_that_only_cells_tell_make_different_people(dtype: Any):
    """Of the same ticks, on a path and in a union; nothing is refused, as the type of the column does not say it."""
    frame = pd.DataFrame({"u": clock("ns", "Europe/Berlin").make([0, 1]).astype(dtype), "v": 1})
    keys = clock("ns").table([0, 1], unit="v", unique=["u"], max_rows=2)
    led = dpsql.Table(frame, types={"u": "timestamp"}, unit="u -> keys.u", max_rows=2)
    assert asked({"keys": keys, "t": led}, "SELECT COUNT(*) FROM t") == (0,)
    own = dpsql.Table(frame, types={"u": "timestamp"}, unit="u", max_rows=1)
    tables = {"t": own, "q": clock("ns").table([0, 1], unit="u", max_rows=1)}
    both = "SELECT COUNT(*), COUNT(DISTINCT u) FROM (SELECT u, v FROM t UNION ALL SELECT u, v FROM q)"
    assert asked(tables, both) == (4, 4)


# Values apart


def arrays_of(values: Sequence[Any]) -> list[Any]:
    """The same values in every array that holds them."""
    made = [array_of(list(values))]
    held = np.empty(len(values), dtype=object)
    held[:] = list(values)
    made.append(held)
    for dtype in (np.int64, np.uint64, np.float64):
        try:
            cells = np.array(list(values), dtype=dtype)
        except (OverflowError, TypeError, ValueError):
            continue
        if cells.tolist() == list(values):
            made.append(cells)
    return made


NUMBERS = [
    *WHOLE,
    0.0,
    -0.0,
    0.5,
    1e300,
    2.0**63,
    2.0**64,
    float("inf"),
    Decimal("0.5"),
    Decimal("0.1"),
    Fraction(1, 3),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("one", NUMBERS, ids=repr)
def test_numbers_are_numbered_and_hashed_by_value(one: Any):
    for other in NUMBERS:
        check_numbers([one], [other])


def check_numbers(one: list[Any], other: list[Any]) -> None:
    for a, b in itertools.product(arrays_of(one), arrays_of(other)):
        (x,), (y,) = numbered([a, b])
        assert (x == y) == (one[0] == other[0])
        key = hash_key(KEYS[1])
        hashes = [numbers_of(hash_units(key, np.zeros(1, dtype=np.int32), each), key.lanes)[0] for each in (a, b)]
        assert (hashes[0] == hashes[1]) == (one[0] == other[0])
        assert cells_of(joined([a, b], np.array([0, 1]))) == [one[0], other[0]]


def test_many_columns_are_numbered_at_once():
    columns = [
        np.array([-1, 2**63 - 1, 5, -(2**63)]),
        np.array([2**64 - 1, 2**63, 5], dtype=np.uint64),
        np.array([-1.0, 2.0**63, 0.5, np.inf, -0.0]),
        np.array([5, -1]).view("M8[ns]"),
        np.array([0, -1]),
    ]
    found = [number for column in numbered(columns) for number in column.tolist()]
    cells = [cell for column in columns for cell in cells_of(column)]
    for (a, x), (b, y) in itertools.combinations(zip(found, cells, strict=True), 2):
        assert (a == b) == (x == y), (x, y)


def test_no_cell_makes_it_fail():
    """Whatever the class of a cell does, it is a value or nobody's."""

    class Odd(int):
        def __hash__(self) -> int:
            raise RuntimeError

        def __eq__(self, other: object) -> bool:
            raise RuntimeError

    cells = [
        *(Odd(5), 5, object(), b"x", [1], complex(1), range(3), type, 10**5_000, "9" * 10_000),
        *(Decimal("1E+999999999"), Decimal("1E-999999999"), np.longdouble(1) / 3, np.float16(0.5)),
        *(np.datetime64(5, "as"), np.timedelta64(5), pd.NaT, pd.NA),
    ]
    for kind in (each for each in Type if not each.opaque):
        codes, values = identified(objects(cells), kind) if kind is not Type.TEXT else ([-1] * len(cells), [])
        assert len(codes) == len(cells)
        assert all(-1 <= code < len(values) for code in codes)
    codes, _ = identified(objects(cells), Type.INTEGER)
    assert codes[0] == codes[1]


# Storages that are refused


@pytest.mark.parametrize(
    "make",
    [
        lambda: pd.Series(np.array([1, 2], dtype="m8[ns]")),
        lambda: pd.Series(np.array([1, 2], dtype="complex128")),
        lambda: pd.period_range("2020", periods=2).to_series(),
        lambda: pd.Series(pd.arrays.IntervalArray.from_breaks([0, 1, 2])),
        lambda: arrow(pa.time64("ns"))([1, 2]),
        lambda: arrow(pa.duration("ns"))([1, 2]),
        lambda: arrow(pa.binary())([b"1", b"2"]),
        lambda: arrow(pa.list_(pa.int64()))([[1], [2]]),
        lambda: arrow(pa.timestamp("ns", "No/Zone"))([1, 2]),
    ],
)
def test_a_storage_that_is_not_held_exactly_is_no_unit(make: Callable[[], pd.Series]):
    frame = pd.DataFrame({"u": make().reset_index(drop=True), "v": [1, 2]})
    with pytest.raises(InvalidSchema, match='unit: column "u" is stored as .*, whose values cannot be told apart'):
        dpsql.Table(frame, unit="u", max_rows=1)
