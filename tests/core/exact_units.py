"""Values in every storage that can be a privacy unit, and what is asked of them at every place where units are made,
merged, compared or counted.

What is one unit and what is two is said here by Python's own equality of the values, not by the engine.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa

import dpsql
from dpsql.core.exact import ExactTable
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.release.release import Release
from dpsql.session.tables.public_tables import resolved
from dpsql.sql.names.catalog import Catalog
from tests.core.checks import U, cells_of
from tests.core.unit_checks import KEYS, planned

Value = Any


@dataclass(frozen=True)
class Storage:
    """A way to hold a column: `make` of cells, None being NULL, and the type that is declared, if one is. `holds`:
    which values it can hold; `null`: whether it can hold NULL."""

    name: str
    make: Callable[[Sequence[Value]], pd.Series]
    holds: Callable[[Value], bool]
    declared: str | None = None
    null: bool = True

    def __str__(self) -> str:
        return self.name

    def of(self, values: Sequence[Value]) -> list[Value]:
        return [value for value in values if self.holds(value)]

    def table(self, values: Sequence[Value], *, repeat: int = 1, own: str = "own", **said: Any) -> dpsql.Table:
        """Rows of these units, each so many times, with v = 1 and a number of their own, and one row of nobody's."""
        cells = [each for each in values for _ in range(repeat)] + ([None] if self.null else [])
        frame = pd.DataFrame({"u": self.make(cells), "v": np.ones(len(cells)), own: np.arange(len(cells))})
        types = {} if self.declared is None else {"u": self.declared}
        return dpsql.Table(frame, types=types, bounds={"v": (0, 1), **said.pop("bounds", {})}, **said)


def objects(cells: Sequence[Value]) -> pd.Series:
    array = np.empty(len(cells), dtype=object)
    array[:] = list(cells)
    return pd.Series(array)


def exactly(dtype: str) -> Callable[[Sequence[Value]], pd.Series]:
    """Through objects, for pandas sends a list of large numbers through float64."""
    return lambda cells: objects(cells).astype(dtype)


def arrow(stored: Any, read: Callable[[Value], Value] = lambda value: value) -> Callable[[Sequence[Value]], pd.Series]:
    def make(cells: Sequence[Value]) -> pd.Series:
        held = [None if cell is None else read(cell) for cell in cells]
        half = len(held) // 2
        chunks = [pa.array(held[:half], stored), pa.array(held[half:], stored)]
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(chunks)))

    return make


def dictionary(stored: Any, read: Callable[[Value], Value] = lambda value: value) -> Callable[[Any], pd.Series]:
    """Arrow's dictionaries, of which each chunk has its own."""

    def make(cells: Sequence[Value]) -> pd.Series:
        chunks = [chunk.dictionary_encode() for chunk in arrow(stored, read)(cells).array.__arrow_array__().chunks]
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(chunks)))

    return make


def category(make: Callable[[Sequence[Value]], pd.Series]) -> Callable[[Sequence[Value]], pd.Series]:
    def coded(cells: Sequence[Value]) -> pd.Series:
        kinds = list(dict.fromkeys(cell for cell in cells if cell is not None))
        codes = [-1 if cell is None else kinds.index(cell) for cell in cells]
        return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(make(kinds))))

    return coded


def written(make: Callable[[Sequence[Value]], pd.Series], text: Callable[[Value], str] = str) -> Any:
    return lambda cells: make([None if cell is None else text(cell) for cell in cells])


# Whole numbers

WHOLE = (
    *(0, 1, 5, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 - 1, 2**62, 2**62 + 1, -(2**62), -(2**62) - 1),
    *(2**63 - 1, 2**63, 2**63 + 5, -(2**63), -(2**63) + 5, 2**64 - 1, 2**64 - 2, 2**64, 2**70, 2**70 + 1),
)


def signed(value: Value) -> bool:
    return -(2**63) <= value < 2**63


def unsigned(value: Value) -> bool:
    return 0 <= value < 2**64


def of_64_bits(value: Value) -> bool:
    return -(2**63) <= value < 2**64


def anything(_value: Value) -> bool:
    return True


def mixed_numbers(cells: Sequence[Value]) -> pd.Series:
    """Whole numbers of every class that there is, by turns."""
    makes = [int, Decimal, str, lambda v: np.uint64(v) if 0 <= v < 2**64 else v, lambda v: Decimal(v) + Decimal("0.00")]
    return objects([None if v is None else makes[place % len(makes)](v) for place, v in enumerate(cells)])


INTEGERS = [
    Storage("int64", exactly("int64"), signed, null=False),
    Storage("uint64", exactly("uint64"), unsigned, null=False),
    Storage("int8", exactly("int8"), lambda v: -128 <= v < 128, null=False),
    Storage("Int64", exactly("Int64"), signed),
    Storage("UInt64", exactly("UInt64"), unsigned),
    Storage("Arrow int64", arrow(pa.int64()), signed),
    Storage("Arrow uint64", arrow(pa.uint64()), unsigned),
    Storage("objects", objects, anything, "integer"),
    Storage("objects of all classes", mixed_numbers, anything, "integer"),
    Storage("category of int64", category(exactly("int64")), signed),
    Storage("category of uint64", category(exactly("uint64")), unsigned),
    Storage("category of objects", category(objects), anything, "integer"),
    Storage("dictionary of uint64", dictionary(pa.uint64()), unsigned),
    Storage("text", written(objects), of_64_bits, "integer"),
    Storage("text, written otherwise", written(exactly("str"), lambda v: f" {v:+030d} "), of_64_bits, "integer"),
    Storage("Arrow text", written(arrow(pa.string())), of_64_bits, "integer"),
    Storage("category of texts", category(written(objects)), of_64_bits, "integer"),
    Storage("Arrow decimals", arrow(pa.decimal128(38, 3), Decimal), anything, "integer"),
    Storage("float64", exactly("float64"), lambda v: float(v) == v, "integer"),
]

# Real numbers

TENTH = Decimal("0.1")
REALS = (
    *(0.0, -0.0, 0.5, -0.5, 1.0, 2.0**53, 2.0**62, 2.0**63, 2.0**64 - 2048, 2.0**64, -(2.0**63), 1e300, 5e-324),
    *(float("inf"), float("-inf"), 0.1, TENTH, Decimal(2**53 + 1), Decimal("100000000000000000.5"), Decimal(2**62 + 1)),
)


def as_double(value: Value) -> bool:
    return float(value) == value


def within(dtype: Any) -> Callable[[Value], bool]:
    def holds(value: Value) -> bool:
        with np.errstate(over="ignore"):
            return as_double(value) and float(dtype(float(value))) == value

    return holds


def as_decimal(digits: int, scale: int) -> Callable[[Value], bool]:
    def holds(value: Value) -> bool:
        held = Decimal(value)
        if not held.is_finite() or abs(held) >= Decimal(10) ** (digits - scale):
            return False
        return (Fraction(held) * 10**scale).denominator == 1

    return holds


def rescaled(scale: int) -> Callable[[Value], Decimal]:
    return lambda value: Decimal(int(Fraction(Decimal(value)) * 10**scale)).scaleb(-scale)


DECIMALS = [
    Storage("float64", exactly("float64"), as_double),
    Storage("float32", exactly("float32"), within(np.float32)),
    Storage("float16", exactly("float16"), within(np.float16)),
    Storage("Float64", exactly("Float64"), as_double),
    Storage("long double", exactly("longdouble"), as_double),
    Storage("Arrow double", arrow(pa.float64(), float), as_double),
    Storage("Arrow float", arrow(pa.float32(), float), within(np.float32)),
    Storage("decimal128", arrow(pa.decimal128(38, 4), rescaled(4)), as_decimal(38, 4)),
    Storage("decimal128 of another scale", arrow(pa.decimal128(38, 1), rescaled(1)), as_decimal(38, 1)),
    Storage("decimal256", arrow(pa.decimal256(76, 9), rescaled(9)), as_decimal(76, 9)),
    Storage("dictionary of decimals", dictionary(pa.decimal128(38, 4), rescaled(4)), as_decimal(38, 4)),
    Storage("objects", objects, anything, "real"),
    Storage("Decimals", lambda cells: objects([None if v is None else Decimal(v) for v in cells]), anything, "decimal"),
    Storage("category", category(exactly("float64")), as_double),
    Storage("text", written(objects, lambda v: repr(float(v))), as_double, "real"),
    Storage("whole numbers", exactly("int64"), lambda v: as_decimal(18, 0)(v) and signed(v), "real", null=False),
    Storage("text of whole numbers", written(objects, lambda v: str(int(v))),
            lambda v: as_decimal(30, 0)(v) and as_double(v), "real"),
]  # fmt: skip

# Moments, in nanoseconds since 1970

A_DAY = 86_400 * 10**9
BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
REPEATED = int(pd.Timestamp("2020-10-25 00:30", tz="UTC").value)
MOMENTS = (
    *(0, 1, 2, -1, 1_000, 1_001, 1_000_000, 1_001_000, 10**9, 10**9 + 1, -A_DAY, A_DAY),
    *(REPEATED, REPEATED + 1, REPEATED + 3_600 * 10**9, REPEATED + 7_200 * 10**9),
)


def ticks(unit: str) -> tuple[Callable[[Value], bool], int]:
    size = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    return (lambda value: value % size == 0), size


def clock(unit: str, zone: Any = None) -> Storage:
    holds, size = ticks(unit)

    def make(cells: Sequence[Value]) -> pd.Series:
        held = np.array(["NaT" if v is None else v // size for v in cells], dtype=f"M8[{unit}]")
        times = pd.Series(held)
        return times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)

    return Storage(f"datetime64[{unit}, {zone}]", make, holds)


def arrow_clock(unit: str, zone: Any = None) -> Storage:
    holds, size = ticks(unit)
    make = arrow(pa.timestamp(unit, zone), lambda v: v // size)
    return Storage(f"Arrow timestamp[{unit}, {zone}]", make, holds)


def python_moment(value: int, zone: Any = None) -> dt.datetime:
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=value // 1_000)
    return moment.replace(tzinfo=None) if zone is None else moment.astimezone(zone)


def moments_as(*makes: Callable[[Value], Value]) -> Callable[[Sequence[Value]], pd.Series]:
    return lambda cells: objects([None if v is None else makes[i % len(makes)](v) for i, v in enumerate(cells)])


def whole_microseconds(value: Value) -> bool:
    return value % 1_000 == 0


TIMES = [
    *(clock(unit) for unit in ("s", "ms", "us", "ns")),
    *(arrow_clock(unit) for unit in ("s", "ms", "us", "ns")),
    Storage("category", category(clock("ns").make), anything),
    Storage("datetimes", moments_as(python_moment), whole_microseconds, "timestamp"),
    Storage("objects", moments_as(pd.Timestamp, lambda v: np.datetime64(v, "ns")), anything, "timestamp"),
    Storage("text", written(objects, lambda v: python_moment(v).isoformat(" ")), whole_microseconds, "timestamp"),
]
INSTANTS = [
    *(clock(unit, zone) for unit, zone in (("ns", "Europe/Berlin"), ("us", "UTC"), ("ns", "America/New_York"))),
    *(arrow_clock(unit, zone) for unit, zone in (("ns", "Europe/Berlin"), ("s", "America/New_York"))),
    Storage("category", category(clock("ns", "Europe/Berlin").make), anything),
    Storage("datetimes", moments_as(lambda v: python_moment(v, BERLIN), lambda v: python_moment(v, NEW_YORK)),
            whole_microseconds, "timestamp"),
    Storage("objects", moments_as(lambda v: pd.Timestamp(v, tz="Europe/Berlin")), anything, "timestamp"),
]  # fmt: skip

# Days, truths, texts

DATES = (0, 1, -1, 18_262, -719_162, 2_932_896)


def python_date(value: int) -> dt.date:
    return dt.date(1970, 1, 1) + dt.timedelta(days=value)


DAYS = [
    Storage("Arrow date32", arrow(pa.date32()), anything),
    Storage("Arrow date64", arrow(pa.date64(), python_date), anything),
    Storage("dates", moments_as(python_date), anything, "date"),
    Storage("text", written(objects, lambda v: python_date(v).isoformat()), anything, "date"),
    Storage("category", category(moments_as(python_date)), anything, "date"),
    Storage("timestamps", lambda cells: clock("s").make([None if v is None else v * A_DAY + 10**9 for v in cells]),
            anything, "date"),
]  # fmt: skip
TRUTHS = [
    Storage("bool", exactly("bool"), anything, null=False),
    Storage("boolean", exactly("boolean"), anything),
    Storage("Arrow", arrow(pa.bool_()), anything),
    Storage("objects", objects, anything, "boolean"),
    Storage("text", written(objects), anything, "boolean"),
    Storage("numbers", exactly("float64"), anything, "boolean"),
    Storage("category", category(exactly("bool")), anything),
]
TEXTS = ("", "a", "A", "a ", "é", "e\u0301", "a\0b", "a\0c", "\\ud800", "1", "01", "NaN", "null", "ß", "ss", "😀")
WORDS = [
    Storage("objects", objects, anything),
    Storage("str", exactly("str"), anything),
    Storage("string of Python", exactly("string[python]"), anything),
    Storage("Arrow", arrow(pa.string()), anything),
    Storage("large Arrow", arrow(pa.large_string()), anything),
    Storage("category", category(objects), anything),
    Storage("dictionary", dictionary(pa.string()), anything),
]


@dataclass(frozen=True)
class Domain:
    """Storages of one type, and the values that are held in them: `same` gives equal keys to equal values. `joins`:
    whether an equality in the text compares any two of the storages as units are."""

    name: str
    values: tuple[Value, ...]
    storages: Sequence[Storage]
    joins: Callable[[Storage, Storage], bool] = field(default=lambda _one, _other: True)

    def __str__(self) -> str:
        return self.name


DOMAINS = [
    Domain("integers", WHOLE, INTEGERS),
    Domain("reals", REALS, DECIMALS),
    Domain("times", MOMENTS, TIMES),
    Domain("instants", MOMENTS, INSTANTS),
    Domain("dates", DATES, DAYS),
    Domain("truths", (True, False), TRUTHS),
    Domain("texts", TEXTS, WORDS),
]


# What the engine makes of them


def asked(tables: Mapping[str, dpsql.Table], sql: str, key: bytes = KEYS[1], **how: Any) -> tuple[float, ...]:
    """The exact answer in terms of its coordinates, of a query without groups."""
    made, table = executed(tables, sql, key, **how)
    cells = cells_of(made, table)[()]
    return tuple(cell * each.unit for cell, each in zip(cells, made.coordinates, strict=True))


def executed(
    tables: Mapping[str, dpsql.Table], sql: str, key: bytes = KEYS[1], **how: Any
) -> tuple[Release, ExactTable]:
    schemas = resolved(tables)
    world: Any = SimpleNamespace(catalog=Catalog(schemas))
    made = planned(world, sql, U, **how)
    stores = {name: ColumnStore(table.frame, schemas[name]) for name, table in tables.items()}
    return made, PandasExecutor(stores).execute(made.exact, key)


# Checks


def check_one_table(domain: Domain, storage: Storage) -> None:
    """Every value is a unit, of whose two rows one counts; the row of nobody's counts nowhere."""
    values = storage.of(domain.values)
    people = len(set(values))
    table = storage.table(values, repeat=2, unit="u", max_rows=1)
    for sql in (
        "SELECT COUNT(DISTINCT u) FROM t",
        "SELECT COUNT(*) FROM t",
        "SELECT SUM(v) FROM t",
        "SELECT COUNT(*) FROM (SELECT u, COUNT(*) AS n FROM t GROUP BY u)",
        "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.u = t.u)",
        "SELECT COUNT(*) FROM t JOIN (SELECT u, COUNT(*) AS n FROM t GROUP BY u) AS a ON t.u = a.u",
        "SELECT COUNT(*) FROM (SELECT u FROM t UNION ALL SELECT u FROM t) AS a JOIN t AS b ON a.u = b.u",
        "SELECT COUNT(*) FROM t WHERE u IN (SELECT u FROM (SELECT u, COUNT(*) AS n FROM t GROUP BY u) AS a)",
        "SELECT COUNT(*) FROM (SELECT u FROM t UNION ALL SELECT u FROM t)",
    ):
        found = asked({"t": table}, sql)
        assert found == (people,), f"{domain} in {storage}: {sql} finds {found} of {people} units"


def check_numbers_of_two_types(one: Storage, other: Storage) -> None:
    """Whole numbers in a column of integers beside a column of reals: along a path, joined, listed."""
    left, right = one.of(WHOLE), other.of(WHOLE)
    both = len({*left} & {*right})
    t, q = one.table(left, repeat=2, unit="u", max_rows=1), other.table(right, unit="u", unique=["u"], max_rows=1)
    keys = other.table(right, unit="own", unique=["u"], max_rows=1)
    path = one.table(left, repeat=2, unit="u -> keys.u", max_rows=1)
    for given, sql in (
        ({"keys": keys, "path": path}, "SELECT COUNT(*) FROM path"),
        ({"t": t, "q": q}, "SELECT COUNT(*) FROM t JOIN q ON t.u = q.u"),
        ({"t": t, "q": q}, "SELECT COUNT(*) FROM t WHERE u IN (SELECT u FROM q)"),
    ):
        found = asked(given, sql)
        assert found == (both,), f"{one} beside {other}: {sql} finds {found} of {both} units"


def check_two_tables(domain: Domain, one: Storage, other: Storage) -> None:
    """Values of one storage beside those of another: together, along a path, joined, listed."""
    left, right = one.of(domain.values), list(dict.fromkeys(other.of(domain.values)))
    either, both = len({*left, *right}), len({*left} & {*right})
    t, q = one.table(left, repeat=2, unit="u", max_rows=1), other.table(right, unit="u", unique=["u"], max_rows=1)
    keys = other.table(right, unit="own", unique=["u"], max_rows=1)
    path = one.table(left, repeat=2, unit="u -> keys.u", max_rows=1)
    tables = {"t": t, "q": q}
    joined = [
        (tables, "SELECT COUNT(*) FROM t JOIN q ON t.u = q.u", both),
        (tables, "SELECT COUNT(*) FROM t WHERE u IN (SELECT u FROM q)", both),
        (tables, "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM q WHERE q.u = t.u)", both),
    ]
    expected = [
        (tables, "SELECT COUNT(DISTINCT u) FROM (SELECT u FROM t UNION ALL SELECT u FROM q)", either),
        (tables, "SELECT COUNT(*) FROM (SELECT u FROM t UNION ALL SELECT u FROM q)", either),
        ({"keys": keys, "path": path}, "SELECT COUNT(*) FROM path", both),
        *(joined if domain.joins(one, other) else []),
    ]
    for given, sql, people in expected:
        found = asked(given, sql)
        assert found == (people,), f"{domain} in {one} beside {other}: {sql} finds {found} of {people} units"


_UNION = "(SELECT x FROM t UNION ALL SELECT x FROM q)"


def check_apart(domain: Domain, one: Storage, other: Storage) -> None:
    """What is kept of a unit beyond its limits is a function of its own rows: what all come to is the sum of what each
    comes to by itself, though another array holds the units of all."""
    whole = list(dict.fromkeys([*one.of(domain.values), *other.of(domain.values)]))
    for key in KEYS:
        found = [_kept(one, other, units, key) for units in (whole, *([each] for each in whole))]
        alone = tuple(map(sum, zip(*found[1:], strict=True)))
        assert found[0] == alone, f"{domain} in {one} and {other}: {found[0]} together, {alone} one by one"


def _kept(one: Storage, other: Storage, units: Sequence[Value], key: bytes) -> tuple[int, ...]:
    tables = {}
    for name, storage in (("t", one), ("q", other)):
        held = [each for each in storage.of(units) for _ in range(5)]
        x = [float(place % 5) + (0.5 if name == "q" else 0) for place in range(len(held))]
        types = {} if storage.declared is None else {"u": storage.declared}
        frame = pd.DataFrame({"u": storage.make(held), "x": np.array(x, dtype=float)})
        tables[name] = dpsql.Table(frame, types=types, bounds={"x": (0, 8)}, unit="u", max_rows=2)
    made, table = executed(tables, f"SELECT SUM(x), AVG(x) FROM {_UNION}", key)
    return cells_of(made, table)[()]


@dataclass(frozen=True)
class Pair:
    """A value in one storage and a value in another."""

    one: tuple[Storage, Value]
    other: tuple[Storage, Value]

    def __str__(self) -> str:
        return " and ".join(f"{value} in {storage}" for storage, value in (self.one, self.other))

    def tables(self, more: Sequence[int], **said: Any) -> dict[str, dpsql.Table]:
        """A table of each, with a row of the value for each number in `more`, whose x it is."""
        made = {}
        for name, (storage, value), rows in zip("tq", (self.one, self.other), (more[0], more[1]), strict=True):
            sign = 1 if name == "t" else -1
            cells = [value] * rows
            frame = pd.DataFrame({"u": storage.make(cells), "x": np.full(rows, float(sign))})
            types = {} if storage.declared is None else {"u": storage.declared}
            made[name] = dpsql.Table(frame, types=types, bounds={"x": (-1, 1)}, **said)
        return made


def stored(domain: int, name: str) -> Storage:
    return next(each for each in DOMAINS[domain].storages if each.name == name)


_INT, _UINT, _TEXT = stored(0, "int64"), stored(0, "uint64"), stored(0, "text")
_DEC, _FLOAT, _WIDE = stored(1, "decimal128"), stored(1, "float64"), stored(1, "decimal256")
_NS, _US, _ARROW_NS = clock("ns"), clock("us"), arrow_clock("ns")
_BERLIN, _YORK = clock("ns", "Europe/Berlin"), arrow_clock("ns", "America/New_York")
MERGED = [
    Pair((_UINT, 2**64 - 1), (_INT, -1)),
    Pair((_UINT, 2**63 + 5), (_INT, -(2**63) + 5)),
    Pair((stored(0, "UInt64"), 2**64 - 2), (stored(0, "Arrow int64"), -2)),
    Pair((_UINT, 2**62 + 1), (stored(0, "Int64"), 2**62)),
    Pair((_TEXT, 2**64 - 1), (_TEXT, -1)),
    Pair((_TEXT, 2**63), (_UINT, 2**63 + 1)),
    Pair((stored(0, "objects"), 2**70), (stored(0, "objects"), 2**70 + 1)),
    Pair((_NS, 1_000), (_NS, 1_001)),
    Pair((_NS, 1), (_US, 0)),
    Pair((_ARROW_NS, 10**9 + 1), (clock("s"), 10**9)),
    Pair((_DEC, Decimal(2**53 + 1)), (_FLOAT, 2.0**53)),
    Pair((_DEC, Decimal(2**53 + 1)), (_WIDE, Decimal(2**53))),
    Pair((_DEC, Decimal("0.1")), (_FLOAT, 0.1)),
    Pair((_FLOAT, float("inf")), (_FLOAT, 1e308)),
    Pair((_FLOAT, float("inf")), (_FLOAT, float("-inf"))),
    Pair((_BERLIN, REPEATED), (_BERLIN, REPEATED + 3_600 * 10**9)),
    Pair((_BERLIN, 0), (_YORK, 6 * 3_600 * 10**9)),
]
"""Two people each, whom some conversion would make one."""
EQUAL = [
    Pair((_FLOAT, -0.0), (_FLOAT, 0.0)),
    Pair((_FLOAT, -0.0), (_DEC, Decimal(0))),
    Pair((_DEC, Decimal("1.5")), (_WIDE, Decimal("1.500"))),
    Pair((_DEC, Decimal("0.5")), (_FLOAT, 0.5)),
    Pair((_UINT, 2**63 + 1), (_TEXT, 2**63 + 1)),
    Pair((stored(0, "Arrow uint64"), 2**64 - 1), (stored(0, "objects of all classes"), 2**64 - 1)),
    Pair((_NS, 1_000), (_US, 1_000)),
    Pair((_BERLIN, REPEATED), (_YORK, REPEATED)),
]
"""One person each, held in two ways."""


def check_equal(pair: Pair) -> None:
    tables = pair.tables((2, 2), unit="u", max_rows=1)
    assert asked(tables, f"SELECT COUNT(*) FROM {_UNION}") == (1,), f"one person is two: {pair}"


def check_merged(pair: Pair) -> None:
    """Neighbours: with and without either of two people, of whom one has many rows of 1 and the other some of -1.
    Neither moves the sum by more than one row can, in a union of two tables, in one table, along a path."""
    rows = (10, 5)
    for sums in ("SUM(x)", "SUM(x), AVG(x)"):  # of the one totals are clipped, of the other rows left out
        for place, ask in (("UNION ALL", _in_a_union), ("a path", _along_a_path), ("one table", _in_one_table)):
            for key in KEYS:
                whole, *less = [ask(pair, held, sums, key)[0] for held in (rows, (0, rows[1]), (rows[0], 0))]
                for without in less:
                    assert abs(whole - without) <= 1, f"{pair} in {place}: one moves {sums} by {abs(whole - without)}"


def _in_a_union(pair: Pair, rows: tuple[int, int], sums: str, key: bytes) -> tuple[float, ...]:
    return asked(pair.tables(rows, unit="u", max_rows=1), f"SELECT {sums} FROM {_UNION}", key)


def _along_a_path(pair: Pair, rows: tuple[int, int], sums: str, key: bytes) -> tuple[float, ...]:
    """Both values are keys of one column, where one storage holds both; the rows lead to it."""
    tables = pair.tables(rows, unit="u -> keys.u", max_rows=1)
    values = (pair.one[1], pair.other[1])
    storage = next((each for each, _ in (pair.one, pair.other) if all(map(each.holds, values))), pair.one[0])
    held = [value for (_, value), n in zip((pair.one, pair.other), rows, strict=True) if n and storage.holds(value)]
    tables["keys"] = storage.table(held, unit="own", unique=["u"], max_rows=1)
    return asked(tables, f"SELECT {sums} FROM {_UNION}", key)


def _in_one_table(pair: Pair, rows: tuple[int, int], sums: str, key: bytes) -> tuple[float, ...]:
    (one, a), (other, b) = pair.one, pair.other
    if one is not other:
        return _in_a_union(pair, rows, sums, key)
    frame = pd.DataFrame({"u": one.make([a] * rows[0] + [b] * rows[1]), "x": [1.0] * rows[0] + [-1.0] * rows[1]})
    types = {} if one.declared is None else {"u": one.declared}
    table = dpsql.Table(frame, types=types, bounds={"x": (-1, 1)}, unit="u", max_rows=1)
    return asked({"t": table}, f"SELECT {sums} FROM t", key)


def check_what_is_declared() -> None:
    """Neither bounds nor a default for NULL make one of two people, or somebody of nobody."""
    for storage in INTEGERS:
        values = storage.of(WHOLE)
        for said in ({"bounds": {"u": (0, 3)}}, {"nullable": {"u": False}}, {"keys": {"u": [1, 2]}}):
            table = storage.table(values, repeat=2, unit="u", max_rows=1, **said)
            assert asked({"t": table}, "SELECT COUNT(*) FROM t") == (len(values),), f"{said} of {storage}"


def check_doubled_keys() -> None:
    """Of two rows with one key that of the smaller unit leads on, in the order of exact values: its own row is one more
    than the limit."""
    order = [float("-inf"), -(2**70), Decimal("0.1"), 0.1, 2**53, 2**53 + 1, Decimal(2**53) + Decimal("1.5"), 2**70]
    for low, high in itertools.pairwise([*order, 1e300, float("inf")]):
        for pair in ((low, high), (high, low)):
            said = {"unit": "u", "types": {"u": "real"}, "max_rows": 1}
            tables = {
                "keys": dpsql.Table(pd.DataFrame({"k": [7, 7], "u": objects(pair)}), unique=["k"], **said),
                "t": dpsql.Table(pd.DataFrame({"k": [7]}), unit="k -> keys.k", max_rows=1),
                "own": dpsql.Table(pd.DataFrame({"u": objects([low]), "k": [7]}), **said),
            }
            sql = "SELECT COUNT(*) FROM (SELECT k FROM t UNION ALL SELECT k FROM own)"
            assert asked(tables, sql) == (1,), f"the key of {low} and {high} leads to {high}"


def check_times_in_the_text() -> None:
    """An equality compares what the text reads, microseconds, whichever of its columns has bounds or is public; the
    people that it brings together are the same to the nanosecond."""
    times = clock("ns")
    t = times.table(MOMENTS, unit="u", max_rows=1)
    read = list(dict.fromkeys(each // 1_000 * 1_000 for each in MOMENTS))
    others = [
        times.table(MOMENTS, unit="u", unique=["u"], max_rows=1),
        times.table(MOMENTS, unit="u", unique=["u"], max_rows=1, bounds={"u": ("1900-01-01", "2100-01-01")}),
        times.table(read, public=True, unique=["u"]),
    ]
    for q in others:
        found = asked({"t": t, "q": q}, "SELECT COUNT(*) FROM t JOIN q ON t.u = q.u")
        assert found == (len(MOMENTS),), f"{found} of {len(MOMENTS)} people meet themselves, {q.declaration}"
