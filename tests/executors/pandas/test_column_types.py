"""Columns of every dtype as the values they stand for: right in blocks of any size, NULL where a cell does not fit, and
without an error or a warning whatever a cell holds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpsql
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.schema.calendar import DAYS, MICROSECONDS, MICROSECONDS_A_DAY, date_of, timestamp_of
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, resolve
from dpsql.sources.frames import stored_columns
from tests.executors.pandas.arrow_columns import ARROW, arrow, needs_arrow, wrapped

LARGEST, LEAST = 2**63 - 1, -(2**63)
ENOUGH = 3
"""Groups of so many rows are shown, next to no noise given."""
FIRST, LAST = datetime.min, datetime.max


@contextmanager
def strictly() -> Iterator[None]:
    """As the executor runs: NumPy is silent. Any other warning is an error."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def store_of(data: pd.DataFrame, **said: Any) -> ColumnStore:
    return ColumnStore(data, resolve("t", stored_columns(data), Declaration.of(**said)))


def cells(values: Any, kind: str | None = None, bounds: Any = None, *, nullable: bool | None = None) -> list[Any]:
    """The column as the engine has it, NULL as None; the same in blocks of every size, and when read again."""
    data = pd.DataFrame({"x": values})
    said: dict[str, Any] = {"types": kind, "bounds": bounds, "nullable": nullable}
    store = store_of(data, **{word: {"x": fact} for word, fact in said.items() if fact is not None})
    column = store.column("x")
    show = {Type.DATE: date_of, Type.TIMESTAMP: timestamp_of}.get(column.type, lambda value: value)
    found = []
    with strictly():
        for size in (1, 2, 3, len(data) + 1, 2):
            read = store.reader("x")
            blocks = [read(start, min(start + size, len(data))) for start in range(0, len(data), size)]
            held = [v for b in blocks for v in zip(b.values.tolist(), b.where_valid().tolist(), strict=True)]
            found.append([show(value) if present else None for value, present in held])
            limits = column.bounds
            assert limits is None or all(value in limits for value, _present in held)
            assert all(block.values.dtype == blocks[0].values.dtype for block in blocks)
    assert all(each == found[0] for each in found)
    assert [type(value) for value in found[0]] == [type(value) for value in found[-1]]
    return found[0]


def typed(values: Any) -> Type:
    (column,) = resolve("t", stored_columns(pd.DataFrame({"x": values})), Declaration()).columns
    return column.type


def objects(*held: Any) -> pd.Series:
    column = np.empty(len(held), dtype=object)
    for place, cell in enumerate(held):
        column[place] = cell
    return pd.Series(column, dtype=object)


DAY = datetime(2020, 1, 31)
MOMENT = datetime(2020, 1, 31, 10, 20, 30, 123456)

# Every dtype: the cells as they are.

STORED: dict[str, tuple[Callable[[], Any], Type, list[Any]]] = {
    "bool": (lambda: np.array([True, False]), Type.BOOLEAN, [True, False]),
    "int8": (lambda: np.array([-128, 0, 127], dtype="int8"), Type.INTEGER, [-128, 0, 127]),
    "int64": (lambda: np.array([-(2**63), 2**53 + 1, 2**63 - 1]), Type.INTEGER, [LEAST, 2**53 + 1, LARGEST]),
    "uint8": (lambda: np.array([0, 255], dtype="uint8"), Type.INTEGER, [0, 255]),
    "uint64": (
        lambda: np.array([0, 2**53 + 1, 2**63, 2**64 - 1], dtype="uint64"),
        Type.TEXT,
        ["0", f"{2**53 + 1}", f"{2**63}", f"{2**64 - 1}"],
    ),
    "float16": (lambda: np.array([1.5, np.nan, -np.inf], dtype="float16"), Type.REAL, [1.5, None, -math.inf]),
    "float32": (lambda: np.array([0.1, np.nan], dtype="float32"), Type.REAL, [float(np.float32(0.1)), None]),
    "float64": (lambda: np.array([0.1, np.nan, np.inf]), Type.REAL, [0.1, None, math.inf]),
    "longdouble": (lambda: np.array(["1.5", "nan", "1e4000"], dtype=np.longdouble), Type.REAL, [1.5, None, math.inf]),
    "datetime64[s]": (lambda: np.array(["2020-01-31", "NaT"], dtype="M8[s]"), Type.TIMESTAMP, [DAY, None]),
    "datetime64[us]": (lambda: np.array([MOMENT, "NaT"], dtype="M8[us]"), Type.TIMESTAMP, [MOMENT, None]),
    "Int8": (lambda: pd.array([-128, None], dtype="Int8"), Type.INTEGER, [-128, None]),
    "Int16": (lambda: pd.array([None, 5], dtype="Int16"), Type.INTEGER, [None, 5]),
    "Int32": (lambda: pd.array([None, None], dtype="Int32"), Type.INTEGER, [None, None]),
    "Int64": (lambda: pd.array([2**53 + 1, None, -(2**63)], dtype="Int64"), Type.INTEGER, [2**53 + 1, None, LEAST]),
    "UInt8": (lambda: pd.array([255, None], dtype="UInt8"), Type.INTEGER, [255, None]),
    "UInt64": (lambda: pd.array([2**64 - 1, None, 1], dtype="UInt64"), Type.TEXT, [f"{2**64 - 1}", None, "1"]),
    "Float32": (lambda: pd.array([0.5, None], dtype="Float32"), Type.REAL, [0.5, None]),
    "Float64": (lambda: pd.array([0.1, None, math.inf], dtype="Float64"), Type.REAL, [0.1, None, math.inf]),
    "boolean": (lambda: pd.array([True, None, False], dtype="boolean"), Type.BOOLEAN, [True, None, False]),
    "str": (lambda: pd.array(["a", None, "é"], dtype="str"), Type.TEXT, ["a", None, "é"]),
    "string": (lambda: pd.array(["a", None], dtype="string"), Type.TEXT, ["a", None]),
    "string[python]": (lambda: pd.array(["a", None], dtype="string[python]"), Type.TEXT, ["a", None]),
}
STORED_IN_ARROW: dict[str, tuple[Callable[[], Any], Type, list[Any]]] = {
    "string[pyarrow]": (lambda: pd.array(["a", None], dtype="string[pyarrow]"), Type.TEXT, ["a", None]),
    "bool": (lambda: arrow([True, None, False], "bool_"), Type.BOOLEAN, [True, None, False]),
    "int8": (lambda: arrow([-128, None], "int8"), Type.INTEGER, [-128, None]),
    "int64": (
        lambda: arrow([2**53 + 1, None, -(2**63)], "int64"),
        Type.INTEGER,
        [2**53 + 1, None, LEAST],
    ),
    "int64 without NULL": (lambda: arrow([1, 2, 3], "int64"), Type.INTEGER, [1, 2, 3]),
    "uint64": (lambda: arrow([2**64 - 1, None, 1], "uint64"), Type.TEXT, [f"{2**64 - 1}", None, "1"]),
    "halffloat": (lambda: arrow([1.5, math.nan, None], "float16"), Type.REAL, [1.5, None, None]),
    "float": (lambda: arrow([0.5, None], "float32"), Type.REAL, [0.5, None]),
    "double": (lambda: arrow([0.1, math.nan, None, math.inf], "float64"), Type.REAL, [0.1, None, None, math.inf]),
    "string": (lambda: arrow(["a", None, "é"], "string"), Type.TEXT, ["a", None, "é"]),
    "large_string": (lambda: arrow(["a", None], "large_string"), Type.TEXT, ["a", None]),
    "date32": (
        lambda: arrow([date(2020, 1, 31), None, date.min, date.max], "date32"),
        Type.DATE,
        [date(2020, 1, 31), None, date.min, date.max],
    ),
    "date64": (
        lambda: arrow([date(1960, 2, 29), None, date.min], "date64"),
        Type.DATE,
        [date(1960, 2, 29), None, date.min],
    ),
    "timestamp[s]": (lambda: arrow([DAY, None, FIRST], "timestamp", "s"), Type.TIMESTAMP, [DAY, None, FIRST]),
    "timestamp[us]": (lambda: arrow([MOMENT, None, LAST], "timestamp", "us"), Type.TIMESTAMP, [MOMENT, None, LAST]),
    "timestamp[ns]": (lambda: arrow([MOMENT, None], "timestamp", "ns"), Type.TIMESTAMP, [MOMENT, None]),
    "timestamp of a zone": (
        lambda: arrow([datetime(2020, 7, 1, tzinfo=UTC), None], "timestamp", "ms", "Europe/Paris"),
        Type.TIMESTAMP,
        [datetime(2020, 7, 1), None],
    ),
    "timestamp of an offset": (
        lambda: arrow([datetime(2020, 7, 1, tzinfo=UTC), None], "timestamp", "us", "-03:30"),
        Type.TIMESTAMP,
        [datetime(2020, 7, 1), None],
    ),
    "decimal128": (
        lambda: arrow([Decimal("0.10"), None, Decimal("-12345678901234567.89")], "decimal128", 38, 2),
        Type.REAL,
        [0.1, None, -12345678901234567.89],
    ),
    "decimal256": (
        lambda: arrow([Decimal("1e50"), None, Decimal("0.1")], "decimal256", 60, 5),
        Type.REAL,
        [1e50, None, 0.1],
    ),
    "null": (lambda: arrow([None, None], "null"), Type.TEXT, [None, None]),
    "dictionary of text": (
        lambda: arrow(["a", None, "b", "a"], "string", coded=True),
        Type.TEXT,
        ["a", None, "b", "a"],
    ),
    "dictionary of integers": (
        lambda: arrow([5, None, -5, 5], "int16", coded=True),
        Type.INTEGER,
        [5, None, -5, 5],
    ),
    "dictionary of dates": (
        lambda: arrow([date(2020, 1, 31), None], "date32", coded=True),
        Type.DATE,
        [date(2020, 1, 31), None],
    ),
    "dictionary of decimals": (
        lambda: arrow([Decimal("0.10"), None], "decimal128", 5, 2, coded=True),
        Type.REAL,
        [0.1, None],
    ),
}
EVERY = [
    *(pytest.param(*case, id=name) for name, case in STORED.items()),
    *(pytest.param(*case, id=f"arrow {name}", marks=needs_arrow) for name, case in STORED_IN_ARROW.items()),
]


@pytest.mark.parametrize(("make", "kind", "expected"), EVERY)
def test_cells_of_every_dtype(make: Callable[[], Any], kind: Type, expected: list[Any]):
    values = make()
    assert typed(values) is kind
    found = cells(values)
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


@pytest.mark.parametrize(("make", "kind", "expected"), EVERY)
def test_no_rows_and_one_row_of_every_dtype(make: Callable[[], Any], kind: Type, expected: list[Any]):
    values = pd.Series(make())
    assert typed(values.iloc[:0]) is kind
    assert cells(values.iloc[:0]) == []
    for place, cell in enumerate(expected):
        assert cells(values.iloc[place : place + 1]) == [cell]
    assert cells(values.iloc[::-1]) == expected[::-1]


@pytest.mark.parametrize(("make", "kind", "expected"), EVERY)
def test_every_dtype_is_grouped_and_counted(make: Callable[[], Any], kind: Type, expected: list[Any]):
    data = pd.DataFrame({"x": pd.concat([pd.Series(make())] * ENOUGH, ignore_index=True)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dpsql.query(data, "SELECT x, COUNT(*) FROM t GROUP BY x", epsilon=1e9, delta=1e-9)
        ((present,),) = dpsql.query(data, "SELECT COUNT(x) FROM t", epsilon=1e9)
    if "int64" in str(data["x"].dtype).casefold() and kind is Type.TEXT:  # digits are shown as numbers
        expected = [None if cell is None else int(cell) for cell in expected]
    assert dict(found) == {cell: ENOUGH * expected.count(cell) for cell in expected}
    assert present == ENOUGH * sum(cell is not None for cell in expected)


@pytest.mark.parametrize(("make", "kind", "expected"), EVERY)
def test_a_column_declared_without_null_has_none(make: Callable[[], Any], kind: Type, expected: list[Any]):
    zero = {
        Type.BOOLEAN: False,
        Type.INTEGER: 0,
        Type.REAL: 0.0,
        Type.TEXT: "",
        Type.DATE: date(1970, 1, 1),
        Type.TIMESTAMP: datetime(1970, 1, 1),
    }
    if "int64" in str(pd.Series(make()).dtype).casefold() and kind is Type.TEXT:
        zero[Type.TEXT] = "0"
    assert cells(make(), nullable=False) == [zero[kind] if cell is None else cell for cell in expected]


@pytest.mark.parametrize(("make", "kind", "expected"), [each for each in EVERY if each.values[1] not in
    (Type.TEXT, Type.BOOLEAN)])  # fmt: skip
def test_bounds_hold_for_every_dtype(make: Callable[[], Any], kind: Type, expected: list[Any]):
    lower, upper = {
        Type.INTEGER: (3, 100),
        Type.REAL: (0.25, 1.0),
        Type.DATE: (date(1990, 1, 1), date(2019, 12, 31)),
        Type.TIMESTAMP: (datetime(1990, 1, 1), datetime(2020, 1, 31, 5)),
    }[kind]
    clipped = [None if cell is None else min(max(cell, lower), upper) for cell in expected]
    assert cells(make(), bounds=(lower, upper)) == clipped
    assert cells(make(), bounds=(lower, upper), nullable=False) == [lower if c is None else c for c in clipped]


# Declared otherwise than stored.

NUMBERS = [0, 1, 2, -1]
OTHERWISE: list[tuple[str, Any, str, list[Any]]] = [
    ("int64 as real", np.array(NUMBERS), "real", [0.0, 1.0, 2.0, -1.0]),
    ("int64 as boolean", np.array(NUMBERS), "boolean", [False, True, None, None]),
    ("uint64 as real", np.array([2**64 - 1], dtype="uint64"), "real", [2.0**64]),
    ("uint64 as boolean", np.array([2**64 - 1, 1], dtype="uint64"), "boolean", [None, True]),
    ("Int64 as boolean", pd.array([0, 1, 2, None], dtype="Int64"), "boolean", [False, True, None, None]),
    ("boolean as integer", pd.array([True, None, False], dtype="boolean"), "integer", [1, None, 0]),
    ("bool as real", np.array([True, False]), "real", [1.0, 0.0]),
    (
        "float64 as integer",
        np.array([2.0, 2.5, np.nan, np.inf, -np.inf, 1e300, -1e300, 2.0**62]),
        "integer",
        [2, None, None, None, None, None, None, 2**62],
    ),
    ("float16 as integer", np.array([2, 2.5, np.inf, 65504], dtype="float16"), "integer", [2, None, None, 65504]),
    ("float64 as boolean", np.array([0.0, 1.0, 0.5, np.nan, np.inf]), "boolean", [False, True, None, None, None]),
    ("Float64 as integer", pd.array([2.0, 2.5, None], dtype="Float64"), "integer", [2, None, None]),
    ("str as real", pd.array(["1.5", "x", None, "1.5"], dtype="str"), "decimal", [1.5, None, None, 1.5]),
    ("str as date", pd.array(["2020-01-31", "2020-02-30", None], dtype="str"), "date", [date(2020, 1, 31), None, None]),
    (
        "string as timestamp",
        pd.array(["2020-01-31T10:20:30.123456", None], dtype="string"),
        "timestamp",
        [MOMENT, None],
    ),
    ("datetime64[ns] as date", np.array([MOMENT, "NaT"], dtype="M8[ns]"), "date", [date(2020, 1, 31), None]),
    ("category as integer", pd.Categorical(["1", "x", None, "1"]), "integer", [1, None, None, 1]),
    ("category of floats as integer", pd.Categorical([1.0, 2.5, None]), "integer", [1, None, None]),
    ("category of integers as real", pd.Categorical([1, 2, None]), "real", [1.0, 2.0, None]),
    ("category of integers as boolean", pd.Categorical([1, 2, None]), "boolean", [True, None, None]),
    ("category of text as date", pd.Categorical(["2020-1-5", "?"]), "date", [date(2020, 1, 5), None]),
    ("category of objects as real", pd.Categorical(objects(1, "2.5", Decimal(3), None)), "real", [1.0, 2.5, 3.0, None]),
    ("category of dates as date", pd.Categorical(objects(date(2020, 1, 5), None)), "date", [date(2020, 1, 5), None]),
]
OTHERWISE_IN_ARROW: list[tuple[str, Any, str, list[Any]]] = [
    ("int64 as real", lambda: arrow([1, None], "int64"), "real", [1.0, None]),
    ("bool as integer", lambda: arrow([True, None], "bool_"), "integer", [1, None]),
    ("double as integer", lambda: arrow([1.0, 1.5, None], "float64"), "integer", [1, None, None]),
    ("uint64 as boolean", lambda: arrow([1, 2**64 - 1, None], "uint64"), "boolean", [True, None, None]),
    (
        "decimal as integer",
        lambda: arrow([Decimal(2**53 + 1), Decimal("0.5"), None], "decimal128", 38, 1),
        "integer",
        [2**53 + 1, None, None],
    ),
    (
        "decimal as boolean",
        lambda: arrow([Decimal(1), Decimal(0), Decimal(2), None], "decimal128", 5, 1),
        "boolean",
        [True, False, None, None],
    ),
    ("date32 as timestamp", lambda: arrow([date(2020, 1, 31), None], "date32"), "timestamp", [DAY, None]),
    ("timestamp as date", lambda: arrow([MOMENT, None], "timestamp", "us"), "date", [DAY.date(), None]),
    ("string as integer", lambda: arrow(["5", "x", None], "string"), "integer", [5, None, None]),
    ("large_string as date", lambda: arrow(["2020-01-31", None], "large_string"), "date", [DAY.date(), None]),
    ("null as date", lambda: arrow([None, None], "null"), "date", [None, None]),
    ("null as integer", lambda: arrow([None, None], "null"), "integer", [None, None]),
    (
        "dictionary of text as integer",
        lambda: arrow(["5", "x", None], "string", coded=True),
        "integer",
        [5, None, None],
    ),
    (
        "dictionary of integers as real",
        lambda: arrow([5, None], "int64", coded=True),
        "real",
        [5.0, None],
    ),
]


@pytest.mark.parametrize(
    ("make", "kind", "expected"),
    [
        *(pytest.param(lambda values=values: values, *rest, id=name) for name, values, *rest in OTHERWISE),
        *(pytest.param(*case, id=f"arrow {name}", marks=needs_arrow) for name, *case in OTHERWISE_IN_ARROW),
    ],
)
def test_a_column_declared_otherwise(make: Callable[[], Any], kind: str, expected: list[Any]):
    found = cells(make(), kind)
    assert found == expected
    assert [type(each) for each in found] == [type(each) for each in expected]


# Categories.

CATEGORIES: dict[str, list[Any]] = {
    "text": ["a", "b", "c"],
    "integers": [3, -1, 2**53 + 1],
    "floats": [0.1, -math.inf, 3.0],
    "booleans": [True, False],
    "times": [pd.Timestamp("2020-01-31"), pd.Timestamp("2020-02-01 10:00")],
}


@pytest.mark.parametrize("name", CATEGORIES)
@pytest.mark.parametrize("ordered", [True, False])
def test_categories_unused_ones_and_missing_codes(name: str, ordered: bool):
    held = CATEGORIES[name]
    codes = [0, -1, 1, 1, -1, 0]  # of some kinds the last category is never used
    column = pd.Series(pd.Categorical.from_codes(codes, categories=held, ordered=ordered))
    assert cells(column) == [None if code < 0 else held[code] for code in codes]
    assert cells(pd.Series(pd.Categorical([None, None], categories=held))) == [None, None]
    assert cells(pd.Series(pd.Categorical([], categories=held))) == []


def test_categories_of_a_range_and_of_nullable_and_zoned_dtypes():
    assert cells(pd.Categorical.from_codes([2, -1, 0], categories=pd.RangeIndex(3))) == [2, None, 0]
    nullable = pd.Index(pd.array([7, 9], dtype="Int64"))
    assert cells(pd.Categorical.from_codes([1, -1], categories=nullable)) == [9, None]
    zoned = pd.DatetimeIndex(["2020-07-01"], tz="UTC").tz_convert("Europe/Paris")
    assert cells(pd.Categorical.from_codes([0, -1], categories=zoned)) == [datetime(2020, 7, 1), None]


def test_bounds_and_nullability_of_categories():
    column = pd.Categorical([3, 50, None, 50])
    assert cells(column, bounds=(5, 20)) == [5, 20, None, 20]
    assert cells(column, bounds=(5, 20), nullable=False) == [5, 20, 5, 20]


@needs_arrow
def test_an_arrow_dictionary_with_repeated_and_missing_entries():
    import pyarrow as pa

    held = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.uint16()), pa.array(["a", None, "a"]))
    column = wrapped(held)
    assert cells(column) == ["a", None, "a", None]
    by_key = dpsql.query(pd.DataFrame({"x": column}), "SELECT x, COUNT(*) FROM t GROUP BY x", epsilon=1e9, delta=1e-9)
    assert list(by_key) == [("a", 2), (None, 2)]


@needs_arrow
def test_chunks_of_an_arrow_dictionary_that_number_their_values_differently():
    import pyarrow as pa

    chunks = [pa.array(each).dictionary_encode() for each in (["a", "b"], ["b", "c", None], [])]
    chunks[2] = chunks[2].cast(chunks[0].type)
    column = wrapped(*chunks)
    assert cells(column) == ["a", "b", "b", "c", None]


@pytest.mark.parametrize("dtype", [pd.StringDtype("python", na_value=np.nan), "string[python]", object], ids=str)
def test_a_lone_surrogate_is_null_and_its_spelling_a_text(dtype: Any):
    spelt = repr("\ud800")  # what pandas' hash table takes it for
    for order in (["\ud800", spelt, "a", None, spelt], [spelt, "\ud800", "\ud800", "a"]):
        assert cells(pd.Series(order, dtype=dtype), "text") == [None if text == "\ud800" else text for text in order]


# Moments.

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
INT64 = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-(10**11), 10**11), st.integers(-(10**17), 10**17))


def moment(ticks: int, unit: str) -> int:
    """Microseconds since 1970, rounded down and held within the calendar."""
    found = ticks * 10**6 // UNITS[unit]
    return int(min(max(found, MICROSECONDS.lower), MICROSECONDS.upper))


@given(st.sampled_from(list(UNITS)), st.lists(INT64, min_size=1, max_size=8))
@example("s", [-(2**63), 2**63 - 1, -(2**63) + 1, 0, -1])
@example("ms", [-62135596800000, -62135596800001, 253402300799999, 253402300800000, -1])
@example("ns", [-1, -999, -1000, -1001, 999, 1000, 86_399_999_999_999, -86_400_000_000_001])
def test_moments_of_every_unit_are_rounded_down_and_held(unit: str, ticks: list[int]):
    column = np.array(ticks, dtype=np.int64).view(f"M8[{unit}]")
    expected = [None if each == -(2**63) else moment(each, unit) for each in ticks]
    assert cells(column) == [None if each is None else timestamp_of(each) for each in expected]
    days = [None if each is None else date_of(each // MICROSECONDS_A_DAY) for each in expected]
    assert cells(column, "date") == days
    assert cells(pd.Categorical(column.astype(f"M8[{unit}]"))) == cells(column)
    if ARROW:
        import pyarrow as pa

        held = pa.array([None if each == -(2**63) else each for each in ticks], pa.int64()).cast(pa.timestamp(unit))
        in_arrow = wrapped(held)
        assert cells(in_arrow) == cells(column)
        assert cells(in_arrow, "date") == days


ZONES = ["UTC", "Europe/Paris", "America/New_York", "Pacific/Kiritimati", "Asia/Kathmandu", "Africa/Monrovia"]
SAFE = int((datetime(9999, 12, 1) - datetime(1970, 1, 1)).total_seconds())


@given(st.sampled_from(ZONES), st.sampled_from(["s", "us"]), st.lists(st.integers(-(SAFE // 5), SAFE), min_size=1))
def test_a_zoned_moment_is_what_clocks_of_utc_show(zone: str, unit: str, seconds: list[int]):
    ticks = np.array(seconds, dtype=np.int64) * UNITS[unit]
    column = pd.Series(pd.DatetimeIndex(ticks.view(f"M8[{unit}]")).tz_localize("UTC").tz_convert(zone))
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    shown = [(epoch + timedelta(seconds=each)).replace(tzinfo=None) for each in seconds]
    assert cells(column) == shown
    assert cells(column, "date") == [each.date() for each in shown]
    if ARROW:
        assert cells(column.astype(f"timestamp[{unit}, tz={zone}][pyarrow]")) == cells(column)


def test_an_hour_that_clocks_show_twice_is_two_of_utc():
    utc = pd.DatetimeIndex(["2024-10-27 00:30", "2024-10-27 01:30", "2024-03-31 00:59:59", "2024-03-31 01:00"])
    column = pd.Series(utc.tz_localize("UTC").tz_convert("Europe/Paris"))
    assert cells(column) == utc.to_pydatetime().tolist()


@pytest.mark.parametrize("zone", [*ZONES, "America/Los_Angeles", timezone(timedelta(hours=23, minutes=59)),
    timezone(timedelta(microseconds=1 - 86_400 * 10**6))], ids=str)  # fmt: skip
@pytest.mark.parametrize("unit", list(UNITS))
def test_zoned_moments_at_the_ends_of_64_bits_and_of_the_calendar(zone: Any, unit: str):
    ends = [-(2**63) + 1, 2**63 - 1, -(2**63)]
    if unit != "ns":
        first, last = int(MICROSECONDS.lower) * UNITS[unit] // 10**6, int(MICROSECONDS.upper) * UNITS[unit] // 10**6
        day = 86_400 * UNITS[unit]
        ends += [edge + step * day for edge in (first, last) for step in (-2, -1, 0, 1, 2)]
    ticks = np.array(ends, dtype=np.int64)
    made = pd.DatetimeIndex(ticks.view(f"M8[{unit}]")).tz_localize("UTC")
    column = pd.Series(made).astype(pd.DatetimeTZDtype(unit, zone))  # no clock is asked
    found = cells(column)
    assert found[2] is None
    if unit != "ns":
        assert found[:2] == [FIRST, LAST]
        assert found[3] == FIRST
        assert found[7] - found[6] == timedelta(days=1)
        assert (found[8], found[12]) == (found[3] + (found[8] - FIRST), LAST)
    assert cells(column, "date") == [None if each is None else each.date() for each in found]


@needs_arrow
def test_an_arrow_zone_that_nobody_knows_is_no_time():
    import pyarrow as pa

    held = pa.array([1, None], pa.int64()).cast(pa.timestamp("ms", "No/Where"))
    column = wrapped(held)
    assert typed(column) is Type.OTHER
    ((present,),) = dpsql.query(pd.DataFrame({"x": column}), "SELECT COUNT(x) FROM t", epsilon=1e9)
    assert present == 1


# Python's own objects, and what is none.

PARIS = ZoneInfo("Europe/Paris")
READ: dict[str, list[tuple[Any, Any]]] = {
    "date": [
        (date(2020, 1, 31), date(2020, 1, 31)),
        (datetime(2020, 1, 31, 23, 59), date(2020, 1, 31)),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), date(1969, 12, 31)),
        (datetime(2020, 1, 31, 0, 59, tzinfo=PARIS), date(2020, 1, 30)),
        (pd.Timestamp("2020-01-31 23:00", tz="America/New_York"), date(2020, 2, 1)),
        ("2020-01-31 23:00:00-05:00", date(2020, 1, 31)),
        (b"2020-01-31", date(2020, 1, 31)),
        ("2020-01-31 10:00", date(2020, 1, 31)),
        (pd.Timestamp("1969-12-31 23:59:59.999999999"), date(1969, 12, 31)),
        (np.datetime64("2020-01-31"), date(2020, 1, 31)),
        (np.datetime64("2020-01"), date(2020, 1, 1)),
        (np.datetime64("2020"), date(2020, 1, 1)),
        (np.datetime64("2020-01-31T23", "h"), date(2020, 1, 31)),
        (np.datetime64(-1, "ns"), date(1969, 12, 31)),
        ("2020-01-31", date(2020, 1, 31)),
        (" 2020/1/5 ", date(2020, 1, 5)),
        ("0001-01-01", date.min),
        (np.str_("2020-01-31"), date(2020, 1, 31)),
        (date.max, date.max),
    ],
    "timestamp": [
        (date(2020, 1, 31), DAY),
        (MOMENT, MOMENT),
        (datetime(2020, 1, 31, 1, tzinfo=PARIS), DAY),
        (datetime(2020, 1, 31, 2, tzinfo=timezone(timedelta(hours=2))), DAY),
        ("2020-01-31T02:00:00+02:00", DAY),
        ("2020-01-30 24:00", DAY),
        (datetime(2020, 1, 31, 1, tzinfo=UTC), datetime(2020, 1, 31, 1)),
        (pd.Timestamp("1969-12-31 23:59:59.999999999"), datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (pd.Timestamp(2**62, unit="ns"), datetime(2116, 2, 20, 23, 53, 38, 427387)),
        (np.datetime64(-1, "ps"), datetime(1969, 12, 31, 23, 59, 59, 999999)),
        (np.datetime64(5, "25s"), datetime(1970, 1, 1, 0, 2, 5)),
        (np.datetime64(2**62, "as"), datetime(1970, 1, 1, 0, 0, 4, 611686)),
        (np.datetime64(3, "W"), datetime(1970, 1, 22)),
        ("2020-01-31 10:20:30.123456789", MOMENT),
        ("2020-01-31", DAY),
        (datetime.max, LAST),
    ],
    "real": [
        (True, 1.0),
        (np.False_, 0.0),
        (5, 5.0),
        (" 1.5 ", 1.5),
        (b"2", 2.0),
        ("-inf", -math.inf),
        (Decimal("0.1"), 0.1),
        (Decimal("-1e-400"), -0.0),
        (Decimal("1e400"), math.inf),
        (Decimal("-Infinity"), -math.inf),
        (Decimal("12345678901234567.89"), 12345678901234567.89),
        (10**400, math.inf),
        (-(10**400), -math.inf),
        (np.float16(1.5), 1.5),
        (np.longdouble("1e4000"), math.inf),
    ],
    "integer": [
        (Decimal(2**53 + 1), 2**53 + 1),
        (Decimal("2.00"), 2),
        (Decimal("1e999999"), None),
        (Decimal("-1e30"), None),
        (Decimal(LEAST), LEAST),
        (Decimal(LARGEST), LARGEST),
        (LARGEST + 1, None),
        (np.uint64(2**64 - 1), None),
        (1e300, None),
        (2.0**63, None),
        (-(2.0**63), LEAST),
        (True, 1),
        (np.False_, 0),
        (np.int8(-5), -5),
        ("2.0", 2),
        ("1e3", 1000),
        ("22.5", 23),
        (bytearray(b"7"), 7),
    ],
    "boolean": [
        (True, True),
        (np.False_, False),
        ("TRUE", True),
        (1, True),
        (0, False),
        (1.0, True),
        (np.uint8(1), True),
        (Decimal("0.00"), False),
        ("1", True),
        ("Yes", True),
        (" no ", False),
    ],
    "text": [
        ("a", "a"),
        (np.str_("b"), "b"),
        (b"c", "c"),
        (memoryview("é".encode()), "é"),
        (8001, "8001"),
        (np.int64(-3), "-3"),
        (2**70, str(2**70)),
        (True, "true"),
        (np.False_, "false"),
        (1.5, "1.5"),
        (8001.0, "8001.0"),
        (Decimal("10.50"), "10.50"),
        (Decimal("1E+3"), "1000"),
        (date(2020, 1, 31), "2020-01-31"),
        (MOMENT, "2020-01-31 10:20:30.123456"),
        (pd.Timestamp("2020-01-31 02:00", tz="Europe/Paris"), "2020-01-31 01:00:00"),
        (np.datetime64("2020-01-31T10", "h"), "2020-01-31 10:00:00"),
        (time(10, 20), "10:20:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
}
# Beyond the calendar, on either side.
FAR: list[tuple[Any, Any]] = [
    (np.datetime64(10**15, "Y"), LAST),
    (np.datetime64(-(10**15), "M"), FIRST),
    (np.datetime64(8030, "Y"), LAST),
    (np.datetime64(-1970, "Y"), FIRST),
    (np.datetime64(-(2**62), "W"), FIRST),
    (np.datetime64(2**62, "s"), LAST),
    (np.datetime64(2**62, "us"), LAST),
    (pd.Timestamp(np.datetime64(10**12, "s")), LAST),
    (pd.Timestamp(np.datetime64(-(10**12), "s")), FIRST),
]


class Hostile:
    """Fails whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def fail(self, *_args: Any) -> Any:
        raise RuntimeError

    __eq__ = __lt__ = __bool__ = __float__ = __int__ = __index__ = __str__ = __len__ = __iter__ = fail
    __hash__ = fail  # type: ignore[assignment]
    __repr__ = fail


class HostileText(str):
    __slots__ = ()
    __eq__ = __str__ = __len__ = __iter__ = __getitem__ = strip = encode = Hostile.fail
    __hash__ = Hostile.fail  # type: ignore[assignment]


class HostileDate(date):
    year = month = day = property(Hostile.fail)  # type: ignore[assignment]


class HostileMoment(datetime):
    year = property(Hostile.fail)  # type: ignore[assignment]
    __sub__ = replace = utcoffset = Hostile.fail


class HostileNumber(int):
    __int__ = __index__ = __float__ = __lt__ = __gt__ = __ge__ = __le__ = Hostile.fail


class HostileFloat(float):
    __float__ = __trunc__ = is_integer = Hostile.fail


class HostileDecimal(Decimal):
    __float__ = __int__ = __eq__ = is_finite = Hostile.fail
    __hash__ = Hostile.fail  # type: ignore[assignment]


HOSTILE = [Hostile(), HostileDate(2020, 1, 1), HostileMoment(2020, 1, 1), HostileNumber(3), HostileFloat(3.5),
    HostileDecimal(3)]  # fmt: skip
UNREAD: dict[str, list[Any]] = {
    "date": ["", "x", "2020-02-30", "2020-13-01", "20200131", "10000-01-01", "2020-01-31Z", b"2020",
        1, 1.5, True, math.nan, pd.NaT, pd.NA, np.datetime64("NaT"), pd.Timedelta("1s"), timedelta(1),
        np.timedelta64(1, "D"), pd.Period("2020"), Decimal(1), (2020, 1, 1), "9" * 10**6, "\ud800", None],
    "timestamp": ["", "x", "2020-01-31 24:01", "2020-01-31 10:00 CET", "2020-01-31T10:00+2", "now", "infinity", 0,
        pd.NaT, np.datetime64("NaT", "ns"), pd.Period("2020"), pd.Timedelta(0), datetime(2020, 1, 1).time(), None],
    "real": [Decimal("NaN"), Decimal("-NaN"), Decimal("sNaN"), Decimal("sNaN5"), date(2020, 1, 1), MOMENT,
        pd.Timestamp(0), np.datetime64(5, "ns"), np.timedelta64(5, "ns"), np.complex64(1), Fraction(1, 2), "1_000",
        "nan", UUID(int=1), None],
    "integer": [Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("0.5"), Decimal("1e-999999"), date.max,
        np.datetime64(5, "ns"), np.timedelta64(5, "ns"), "1_000", "\uff11", "9" * 20, "9" * 41, None],
    "boolean": [2, -1, 0.5, math.nan, "2", "on", Decimal(2), date.max, np.datetime64("2020"), None],
    "text": [math.nan, pd.NaT, pd.NA, b"\xff", [1], ("a",), {"a": 1}, timedelta(1), pd.Timedelta(1),
        np.timedelta64(1, "D"), pd.Period("2020"), pd.Interval(0, 1), np.array([1]), 1j, Fraction(1, 2),
        Decimal("1e999999"),
        np.datetime64(10**15, "Y"), time(1, tzinfo=UTC), object(), "\ud800", None],
}  # fmt: skip


@pytest.mark.parametrize("kind", READ)
def test_objects_that_are_read(kind: str):
    given = READ[kind]
    assert cells(objects(*(cell for cell, _value in given)), kind) == [value for _cell, value in given]
    for cell, value in given:
        assert cells(objects(cell), kind) == [value], cell


def test_objects_beyond_the_calendar_are_held_at_its_ends():
    assert cells(objects(*(cell for cell, _end in FAR)), "timestamp") == [end for _cell, end in FAR]
    assert cells(objects(*(cell for cell, _end in FAR)), "date") == [end.date() for _cell, end in FAR]


@pytest.mark.parametrize("kind", UNREAD)
def test_objects_that_do_not_fit_are_null(kind: str):
    column = objects(*UNREAD[kind])
    assert cells(column, kind) == [None] * len(column)


@pytest.mark.parametrize("kind", UNREAD)
def test_a_cell_whose_class_fails_is_null_or_a_value_and_changes_no_other_cell(kind: str):
    plain = {"date": "2020-01-31", "timestamp": "2020-01-31", "boolean": "true", "text": "a"}.get(kind, "5")
    values = [3, 3.0, 3.5, "a", "3", "3.5", date(2020, 1, 1), datetime(2020, 1, 1), "2020-01-01", "2020-01-01 00:00:00"]
    (fine,) = cells(objects(plain), kind)
    for cell in [*HOSTILE, HostileText("a")]:
        found = cells(objects(plain, cell, plain), kind)
        assert (found[0], found[2]) == (fine, fine), type(cell)
        assert found[1] is None or found[1] in values, type(cell)


class OddText(str):
    __slots__ = ()
    encode = strip = __getitem__ = Hostile.fail


def test_a_text_of_another_class_is_its_text():
    for column in (objects(OddText("a"), "a", OddText("b")), pd.Categorical(objects(OddText("a"), "a", OddText("b")))):
        found = cells(column, "text")
        assert found == ["a", "a", "b"]
        assert {type(text) for text in found} == {str}
        assert cells(column, "integer") == [None, None, None]


def test_texts_of_categories_and_columns_are_read_alike():
    texts = ["2020-01-31", "x", None, "2020-01-31", "\\ud800"]
    expected = [date(2020, 1, 31), None, None, date(2020, 1, 31), None]
    for dtype in ("str", "string", "category", object):
        assert cells(pd.Series(texts, dtype=object).astype(dtype), "date") == expected


def test_the_ends_of_the_calendar_are_the_limits_of_times_without_bounds():
    assert MICROSECONDS.upper + 1 == (DAYS.upper + 1) * MICROSECONDS_A_DAY
    column = np.array([2**62, -(2**62)], dtype=np.int64).view("M8[us]")
    assert cells(column) == [LAST, FIRST]
