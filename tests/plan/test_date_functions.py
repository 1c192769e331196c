"""The functions of dates and timestamps against DuckDB, and their facts against their kernels.

Differences from DuckDB, on purpose:
- A result outside the years 1 to 9999 is NULL (DuckDB goes on to year 290,000 and before year 1).
- MAKE_DATE of a day that does not exist is NULL (DuckDB fails).
- Any INTEGER may be added to a DATE (DuckDB refuses BIGINT); so large a number that DuckDB overflows gives NULL.
- DATE_TRUNC and DATE_DIFF take units only, not parts (DuckDB reads DATE_TRUNC('dow', x) as 'day'). The parts
  millennium, era, julian, yearweek and timezone, and the unit millennium, are not known.
"""

import itertools
import warnings
from collections.abc import Iterator, Sequence
from datetime import date, datetime

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dpsql.plan.expressions import DTYPES, Fact, Function, Vector
from dpsql.plan.functions import FUNCTIONS, date_parts, date_units, dates
from dpsql.plan.functions.dates import NODES, PARTS, UNITS
from dpsql.schema.calendar import DAYS, MICROSECONDS, civil, day_number, first_day, microsecond_number, month_number
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval, point

OURS = [*dates.FUNCTIONS, *date_parts.FUNCTIONS, *date_units.FUNCTIONS]
KINDS = (Type.DATE, Type.TIMESTAMP, Type.INTEGER)
RANGES = {Type.DATE: DAYS, Type.TIMESTAMP: MICROSECONDS, Type.INTEGER: Interval(-(2**62), 2**62)}
A_DAY = 86_400_000_000


def signature(function: Function) -> tuple[tuple[Type, ...], Type]:
    """The one list of argument types that the function takes, and its result's type."""
    size = function.arity[0]
    found = [
        (kinds, kind)
        for kinds in itertools.product(Type, repeat=size)
        if (kind := function.type_of(kinds, [Fact()] * size)) is not None
    ]
    assert len(found) == 1, function.name
    return found[0]


def run(function: Function, vectors: Sequence[Vector]) -> Vector:
    """What the kernel gives; it must not warn, and must give the right length and array type."""
    kind = signature(function)[1]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        result = function.kernel(kind, vectors)
    assert result.values.dtype == DTYPES[kind]
    assert result.values.shape == (len(vectors[0]),)
    assert result.valid is None or result.valid.shape == (len(vectors[0]),)
    return result


def same(ours: Vector, theirs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Where both have the same value or NULL."""
    values, valid = theirs
    return (ours.where_valid() == valid) & (~valid | (ours.values == values))


def as_stored(text: str, kind: Type) -> str:
    """A result as it is held here: a number for dates and timestamps."""
    return {Type.DATE: f"({text}) - DATE '1970-01-01'", Type.TIMESTAMP: f"EPOCH_US({text})"}.get(kind, text)


def within(text: str, kind: Type) -> str:
    """NULL where DuckDB goes on beyond the years 1 to 9999, or fails."""
    return f"CASE WHEN YEAR(TRY({text})) BETWEEN 1 AND 9999 THEN TRY({text}) END" if kind.temporal else text


def column(connection: duckdb.DuckDBPyConnection, text: str, kind: Type) -> tuple[np.ndarray, np.ndarray]:
    """Values and validity of an expression over the table `t`, in its order."""
    read = connection.execute(f"SELECT {as_stored(text, kind)} AS x FROM t ORDER BY row").fetchnumpy()["x"]
    if isinstance(read, np.ma.MaskedArray):
        return read.filled("" if kind is Type.TEXT else 0), ~np.ma.getmaskarray(read)
    return np.asarray(read), np.ones(len(read), dtype=bool)


def table(connection: duckdb.DuckDBPyConnection, columns: dict[str, tuple[Type, Sequence[int | None]]]) -> None:
    """The table `t` of columns of days, microseconds and integers."""
    frame = pd.DataFrame({name: pd.array(values, dtype="Int64") for name, (_kind, values) in columns.items()})
    frame["row"] = np.arange(len(frame))
    read = {Type.DATE: "DATE '1970-01-01' + CAST({0} AS INTEGER)", Type.TIMESTAMP: "MAKE_TIMESTAMP({0})"}
    chosen = [f"{read.get(kind, '{0}').format(name)} AS {name}" for name, (kind, _values) in columns.items()]
    connection.register("frame", frame)
    connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT {', '.join(chosen)}, row FROM frame")
    connection.unregister("frame")


def vector(values: Sequence[int | None], blank: int = 0) -> Vector:
    valid = np.array([value is not None for value in values], dtype=bool)
    return Vector(np.array([blank if value is None else value for value in values], dtype=np.int64), valid)


# --- Real SQL over real days -----------------------------------------------------------------------------------------


def sampled() -> dict[str, np.ndarray]:
    """Every day of 1895 to 2105, those near the ends of time, and others; d and t lie on one day, e and u on others."""
    random = np.random.default_rng(7)
    low, high = int(DAYS.lower), int(DAYS.upper)
    days = np.concatenate(
        [
            np.arange(day_number(date(1895, 1, 1)), day_number(date(2105, 12, 31)) + 1),
            np.arange(low, low + 800),
            np.arange(high - 800, high + 1),
            random.integers(low, high, 5_000, endpoint=True),
        ]
    )
    times = random.integers(0, A_DAY, len(days))
    times[::5], times[1::5] = 0, A_DAY - 1
    others = random.permutation(days)
    others[::3] = np.clip(days[::3] + random.integers(-40, 41, len(days[::3])), low, high)
    return {
        "d": days,
        "t": days * A_DAY + times,
        "e": others,
        "u": others * A_DAY + random.permutation(times),
        "n": random.integers(-60, 61, len(days)) * random.choice([1, 1, 7, 100], len(days)),
        "y": random.integers(1, 10_000, len(days)),
        "m": random.integers(1, 13, len(days)),
        "k": random.integers(1, 32, len(days)),
    }


_TYPES = {"d": Type.DATE, "e": Type.DATE, "t": Type.TIMESTAMP, "u": Type.TIMESTAMP}


@pytest.fixture(scope="module")
def sample_days() -> dict[str, np.ndarray]:
    return sampled()


@pytest.fixture(scope="module")
def duck(sample_days: dict[str, np.ndarray]) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        table(connection, {name: (_TYPES.get(name, Type.INTEGER), v.tolist()) for name, v in sample_days.items()})
        yield connection


def parts_written() -> Iterator[tuple[str, str, str]]:
    for word, part in PARTS.items():
        yield f"extract_{part}", "t", f"EXTRACT({word} FROM t)"
        yield f"extract_{part}_of_date", "d", f"date_part('{word.lower()}', d)"
    for part in sorted(set(PARTS.values())):
        yield f"extract_{part}", "t", f"{part}(t)"
        yield f"extract_{part}_of_date", "d", f"{part}(d)"


def units_written() -> Iterator[tuple[str, str, str]]:
    for word, unit in UNITS.items():
        yield f"trunc_{unit}", "t", f"DATE_TRUNC('{word}', t)"
        yield f"diff_{unit}", "tu", f"DATE_DIFF('{word.lower()}', t, u)"
    for unit in sorted(set(UNITS.values())):
        yield f"add_{unit}", "tn", f"t + INTERVAL (n) {unit}"
        yield f"add_{unit}", "tn", f"t - INTERVAL (-n) {unit}"


WRITTEN = [
    *parts_written(),
    *units_written(),
    ("date_to_timestamp", "d", "CAST(d AS TIMESTAMP)"),
    ("date_to_timestamp", "d", "d + INTERVAL 0 DAY"),
    ("date_to_timestamp", "d", "DATE_TRUNC('day', d)"),
    ("timestamp_to_date", "t", "t::DATE"),
    ("timestamp_to_date", "t", "DATE_TRUNC('day', t)::DATE"),
    ("add_days", "dn", "d + n::INTEGER"),
    ("add_days", "dn", "n::INTEGER + d"),
    ("add_days", "dn", "date_add(d, n::INTEGER)"),
    ("subtract_days", "dn", "d - n::INTEGER"),
    ("days_between", "de", "d - e"),
    ("microseconds_between", "tu", "DATE_DIFF('microsecond', u, t)"),
    ("days_between", "de", "DATE_DIFF('day', e, d)"),
    ("make_date", "ymk", "make_date(y, m, k)"),
    ("last_day_of_date", "d", "last_day(d)"),
    ("last_day", "t", "last_day(t)"),
    ("dayname_of_date", "d", "dayname(d)"),
    ("dayname", "t", "dayname(t)"),
    ("monthname_of_date", "d", "monthname(d)"),
    ("monthname", "t", "monthname(t)"),
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("name", "args", "written"), WRITTEN, ids=[written for *_, written in WRITTEN])
def test_duckdb_gives_the_same_over_centuries(
    duck: duckdb.DuckDBPyConnection, sample_days: dict[str, np.ndarray], name: str, args: str, written: str
):
    kind = signature(FUNCTIONS[name])[1]
    ours = run(FUNCTIONS[name], [Vector(sample_days[arg]) for arg in args])
    agree = same(ours, column(duck, within(written, kind), kind))
    assert agree.all(), f"first at row {int(np.argmin(agree))}"


def test_every_function_is_written_above():
    assert {name for name, *_ in WRITTEN} == {function.name for function in OURS}
    assert all(FUNCTIONS[function.name] is function for function in OURS)


def test_nodes_are_the_parsers_and_mean_their_part(duck: duckdb.DuckDBPyConnection, sample_days: dict[str, np.ndarray]):
    words = {
        *("year", "quarter", "month", "week", "weekofyear", "day", "dayofmonth", "dayofweek", "isodow", "dayofyear"),
        *("hour", "minute", "second", "epoch"),
    }
    found = {}
    for word in words:
        node = sqlglot.parse_one(f"SELECT {word}(t)", dialect="duckdb").expressions[0]
        assert set(node.args) == {"this"}
        found[type(node).__name__] = part = NODES[type(node).__name__]
        function = FUNCTIONS[f"extract_{part}"]
        ours = run(function, [Vector(sample_days["t"])])
        assert same(ours, column(duck, f"{word}(t)", signature(function)[1])).all(), word
    assert found == NODES


def test_names_that_the_parser_does_not_know_are_functions_of_duckdb(
    duck: duckdb.DuckDBPyConnection, sample_days: dict[str, np.ndarray]
):
    named = {name: function for function in OURS for name in function.syntax if name.isupper()}
    assert set(named) == {"WEEKDAY", "ISOYEAR", "DECADE", "CENTURY", "MILLISECOND", "MICROSECOND"}
    for name, function in named.items():
        node = sqlglot.parse_one(f"SELECT {name}(t)", dialect="duckdb").expressions[0]
        assert isinstance(node, exp.Anonymous)
        ours = run(function, [Vector(sample_days["t"])])
        assert same(ours, column(duck, f"{name}(t)", Type.INTEGER)).all(), name


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("make_date(1, 2, 3)", "make_date"),
        ("last_day(1)", "last_day"),
        ("dayname(1)", "dayname"),
        ("monthname(1)", "monthname"),
    ],
)
def test_syntax_names_the_parsers_arguments_in_order(written: str, name: str):
    node = sqlglot.parse_one(f"SELECT {written}", dialect="duckdb").expressions[0]
    arguments = [key for key, _ in sorted(node.args.items(), key=lambda item: str(item[1]))]
    assert FUNCTIONS[name].syntax == (f"{type(node).__name__}({', '.join(arguments)})",)


def test_only_one_function_of_a_pair_is_written():
    twins = [function for function in OURS if function.name.endswith("_of_date")]
    assert len(twins) == 17 + 3
    for twin in twins:
        other = FUNCTIONS[twin.name.removesuffix("_of_date")]
        assert not twin.syntax
        assert signature(twin) == ((Type.DATE,), signature(other)[1])
        assert signature(other)[0] == (Type.TIMESTAMP,)


@pytest.mark.parametrize("unit", sorted(set(UNITS.values())))
def test_duckdb_makes_timestamps_of_dates_as_the_casts_do(
    duck: duckdb.DuckDBPyConnection, sample_days: dict[str, np.ndarray], unit: str
):
    midnight = run(FUNCTIONS["date_to_timestamp"], [Vector(sample_days["d"])])
    other = run(FUNCTIONS["date_to_timestamp"], [Vector(sample_days["e"])])
    count = Vector(sample_days["n"])
    cases = [
        (f"trunc_{unit}", [midnight], f"DATE_TRUNC('{unit}', d)"),
        (f"diff_{unit}", [midnight, other], f"DATE_DIFF('{unit}', d, e)"),
        (f"add_{unit}", [midnight, count], f"d + INTERVAL (n) {unit}"),
    ]
    for name, vectors, written in cases:
        kind = signature(FUNCTIONS[name])[1]
        types = duck.execute(f"SELECT DISTINCT TYPEOF({written}) FROM t").fetchall()
        assert types == [("TIMESTAMP" if kind is Type.TIMESTAMP else "BIGINT",)]
        assert same(run(FUNCTIONS[name], vectors), column(duck, within(written, kind), kind)).all(), name


# --- Emitted SQL, on all kinds of values -----------------------------------------------------------------------------

_LOW, _HIGH = int(DAYS.lower), int(DAYS.upper)
_CHOSEN_DAYS = [
    _LOW, _LOW + 1, _LOW + 58, _LOW + 59, _LOW + 3_651, -719_163 + 36_523, -1, 0, 1, 58, 59, 364, 365, _HIGH - 30,
    _HIGH - 1, _HIGH,
    *(day_number(date(*each)) for each in [(1900, 2, 28), (2000, 2, 29), (2020, 2, 29), (2021, 1, 31), (2021, 12, 31),
                                           (2018, 12, 31), (2016, 1, 3), (1969, 12, 28)]),
]  # fmt: skip
POOLS: dict[Type, list[int | None]] = {
    Type.DATE: [None, *_CHOSEN_DAYS],
    Type.TIMESTAMP: [
        None,
        *(day * A_DAY + time for day in _CHOSEN_DAYS for time in (0, 1, 45_296_789_012, A_DAY - 1)),
    ],
    Type.INTEGER: [
        None, 0, 1, 2, 3, 5, 12, 13, 28, 29, 30, 31, 32, 99, 100, 1_900, 2_000, 2_023, 2_024, 9_998, 9_999, 10_000,
        119_987, 119_988, 3_652_058, 3_652_059, 2**31 - 1, 2**31, 10**9, 10**15, 315_537_897_599_999_999, 2**62,
        2**63 - 1,
    ],
}  # fmt: skip
POOLS[Type.INTEGER] += [-value for value in POOLS[Type.INTEGER] if value]
DUCKDB_TYPES = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
    Type.TEXT: "VARCHAR",
}


def crossed(kinds: Sequence[Type]) -> list[list[int | None]]:
    """A column for each type: all combinations of their values."""
    return [list(each) for each in zip(*itertools.product(*(POOLS[kind] for kind in kinds)), strict=True)]


@pytest.mark.parametrize("function", OURS, ids=lambda function: function.name)
def test_emitted_sql_is_the_kernel(function: Function):
    kinds, kind = signature(function)
    columns = crossed(kinds)
    # A NULL's cell may hold anything.
    ours = [run(function, [vector(each, blank) for each in columns]) for blank in (0, -(2**63), 2**63 - 1)]
    names = [f"a{place}" for place in range(len(kinds))]
    with duckdb.connect() as connection:
        table(connection, {n: (k, values) for n, k, values in zip(names, kinds, columns, strict=True)})
        text = function.emit(kinds, kind, names)
        assert connection.execute(f"SELECT DISTINCT TYPEOF({text}) FROM t").fetchall() == [(DUCKDB_TYPES[kind],)]
        theirs = column(connection, text, kind)
    for each in ours:
        agree = same(each, theirs)
        assert agree.all(), [values[int(np.argmin(agree))] for values in columns]
    null = np.any([[value is None for value in values] for values in columns], axis=0)
    assert not theirs[1][null].any()


@pytest.mark.parametrize("function", OURS, ids=lambda function: function.name)
def test_emitted_sql_of_constants_is_the_kernel(function: Function):
    """Constants take other types in DuckDB than columns do: a small integer is INTEGER, NULL of any type."""
    kinds, kind = signature(function)
    written = {
        Type.DATE: ["DATE '2020-02-29'", "DATE '9999-12-31'", "CAST(NULL AS DATE)"],
        Type.TIMESTAMP: [
            "TIMESTAMP '2020-02-29 12:34:56.789012'",
            "TIMESTAMP '0001-01-01 00:00:00'",
            "CAST(NULL AS TIMESTAMP)",
        ],
        Type.INTEGER: ["5", "-4000000", "4611686018427387904", "NULL"],
    }
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 0 AS row")
        for texts in itertools.product(*(written[each] for each in kinds)):
            values = [
                column(connection, f"CAST({text} AS {DUCKDB_TYPES[each]})", each)
                for text, each in zip(texts, kinds, strict=True)
            ]
            ours = run(function, [Vector(held.astype(np.int64), valid) for held, valid in values])
            assert same(ours, column(connection, function.emit(kinds, kind, texts), kind)).all(), texts


def test_emitted_sql_names_each_argument_once():
    """Else the text of nested calls would double at every level."""
    for function in OURS:
        names = [f"argument{place}" for place in range(function.arity[0])]
        text = function.emit(*signature(function), names)
        assert [text.count(name) for name in names] == [1] * len(names), function.name


# --- Facts -----------------------------------------------------------------------------------------------------------


@st.composite
def held_range(draw: st.DrawFn, kind: Type) -> Interval:
    """A range of values: long, of some years, days or microseconds, or a single value."""
    limit = RANGES[kind]
    low, high = int(limit.lower), int(limit.upper)
    if kind is Type.INTEGER:
        low, high = draw(st.sampled_from([(-5, 40), (-40, 40), (-3_000, 12_000), (-(10**12), 10**12), (low, high)]))
    first = draw(st.integers(low, high))
    lengths = {
        Type.DATE: [0, 1, 8, 40, 400, 4_000, high - low],
        Type.TIMESTAMP: [0, 1, 10**6, 10**9, A_DAY, 40 * A_DAY, 400 * A_DAY, 5_000 * A_DAY, high - low],
        Type.INTEGER: [0, 1, 3, 12, 400, high - low],
    }
    longest = draw(st.sampled_from(lengths[kind]))
    return Interval(first, min(high, first + draw(st.integers(0, longest))))


def values_of(random: np.random.Generator, kind: Type, held: Interval, size: int) -> np.ndarray:
    """Values of a range: both ends, those near them, and others, often at midnight or at the ends of months."""
    low, high = int(held.lower), int(held.upper)
    steps = [1, 2, 3, 29, 31] if kind is not Type.TIMESTAMP else [1, 10**6, A_DAY - 1, A_DAY, A_DAY + 1, 3 * A_DAY]
    found = random.integers(low, high, size, endpoint=True)
    unit = A_DAY if kind is Type.TIMESTAMP else 1
    if kind is not Type.INTEGER:
        starts = first_day(month_number(found[: size // 3] // unit))
        found[: size // 3] = starts * unit + random.choice([-unit, -1, 0, 1, 5], len(starts))
    near = [low, high, *(low + step for step in steps), *(high - step for step in steps)]
    found[-len(near) :] = near
    return np.clip(random.permutation(found), low, high)


@pytest.mark.parametrize("function", OURS, ids=lambda function: function.name)
@settings(max_examples=60)
@given(data=st.data())
def test_facts_hold_for_all_values_inside_them(function: Function, data: st.DataObject):
    kinds, _kind = signature(function)
    ranges = [data.draw(held_range(kind)) for kind in kinds]
    missing = [data.draw(st.booleans()) for _ in kinds]
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    vectors = []
    for kind, held, nullable in zip(kinds, ranges, missing, strict=True):
        values = values_of(random, kind, held, 120)
        vectors.append(Vector(values, random.random(120) < 0.9 if nullable else None))
    result = run(function, vectors)
    said = function.fact_of([Fact(held, nullable, True) for held, nullable in zip(ranges, missing, strict=True)])
    valid = result.where_valid()
    assert said.nullable or valid.all()
    assert result.values.dtype == object or not np.isnan(result.values.astype(float)).any()
    if result.values.dtype != object and valid.any():
        assert said.range.lower <= result.values[valid].min().item()
        assert result.values[valid].max().item() <= said.range.upper


@pytest.mark.parametrize("function", OURS, ids=lambda function: function.name)
def test_facts_know_a_single_value(function: Function):
    """The fact of single values is the single result, so that no rule is wider than it must be at its ends."""
    kinds, kind = signature(function)
    rows = np.array([row for row in zip(*crossed(kinds), strict=True) if None not in row])
    result = run(function, [Vector(rows[:, place].copy()) for place in range(len(kinds))])
    valid = np.flatnonzero(result.where_valid())
    some = valid[:: max(1, len(valid) // 200)]
    none = np.flatnonzero(~result.where_valid())[::499]
    assert len(some) > 10
    for place in [*some, *none]:
        said = function.fact_of([Fact(point(value), False, True) for value in rows[place].tolist()])
        if place in none:
            assert said.nullable
            continue
        width = {Type.REAL: 4 * np.spacing(abs(result.values[place])) if kind is Type.REAL else 0.0, Type.TEXT: np.inf}
        slack = width.get(kind, 0)
        if function.name.startswith("add_") and kind is Type.TIMESTAMP:
            slack = A_DAY - 1  # a day that is clamped is known without its time
        assert said.range.upper - said.range.lower <= slack, rows[place]
        assert kind is Type.TEXT or result.values[place].item() in said.range


def spans(values: Sequence[int]) -> list[tuple[int, int]]:
    """All ranges with ends among the values."""
    ordered = sorted(values)
    return [(first, last) for place, first in enumerate(ordered) for last in ordered[place:]]


_MONTH_ENDS = [
    day_number(date(year, *rest))
    for year in (2023, 2024)
    for rest in [(1, 28), (1, 29), (1, 30), (1, 31), (2, 1), (2, 27), (2, 28), (3, 1), (3, 30), (3, 31), (12, 31)]
] + [day_number(date(2024, 2, 29))]


def test_facts_of_months_added_around_their_ends():
    """Two days that become the last of a month may have their times in the other order."""
    function = FUNCTIONS["add_month"]
    moments = np.array([day * A_DAY + time for day in sorted(_MONTH_ENDS) for time in (0, 10**9, A_DAY - 1)])
    for least, most in spans([-11, -1, 0, 1, 13]):
        counts = np.unique([least, most, (least + most) // 2])
        every = [
            run(function, [Vector(moments), Vector(np.full(len(moments), count))]).values for count in counts.tolist()
        ]
        for place, first in enumerate(moments.tolist()):
            for end, last in list(enumerate(moments.tolist()))[place :: 1 + place % 3]:
                said = function.fact_of([Fact(Interval(first, last), False, True), Fact(Interval(least, most), False)])
                inside = [each[place : end + 1] for each in every]
                assert said.range.lower <= min(each.min() for each in inside), (first, last, least, most)
                assert said.range.upper >= max(each.max() for each in inside), (first, last, least, most)
                assert not said.nullable


@pytest.mark.parametrize("first", [date(2015, 12, 20), date(2020, 2, 20), date(2018, 12, 20), date(1999, 12, 20)])
@pytest.mark.parametrize(
    "function",
    [each for each in OURS if signature(each)[0] == (Type.DATE,) and signature(each)[1] is not Type.TEXT],
    ids=lambda function: function.name,
)
def test_facts_of_days_in_a_row_are_exact_while_the_result_rises(function: Function, first: date):
    start = day_number(first)
    results = run(function, [Vector(np.arange(start, start + 25))]).values
    every = run(function, [Vector(np.arange(day_number(date(1996, 1, 1)), day_number(date(2024, 1, 1))))]).values
    for low, high in spans(range(25)):
        said = function.fact_of([Fact(Interval(start + low, start + high), False, True)])
        inside = results[low : high + 1]
        hull = Interval(inside.min().item(), inside.max().item())
        if (np.diff(inside) >= 0).all() and signature(function)[1] is not Type.REAL:
            assert said == Fact(hull, nullable=False), (low, high)
        else:
            assert said.range.lower <= hull.lower
            assert said.range.upper >= hull.upper
            assert said.range.lower >= every.min() - 1e-3
            assert said.range.upper <= every.max() + 1e-3


def test_facts_of_made_dates():
    function = FUNCTIONS["make_date"]
    for years, months, month_days in itertools.product(
        spans([2023, 2024]), spans([0, 1, 2, 3, 12, 13]), spans([0, 1, 28, 29, 30, 31, 32])
    ):
        ranges = [years, months, month_days]
        rows = np.array(list(itertools.product(*(range(low, high + 1) for low, high in ranges))))
        result = run(function, [Vector(rows[:, place].copy()) for place in range(3)])
        said = function.fact_of([Fact(Interval(*each), False, True) for each in ranges])
        valid = result.where_valid()
        assert said.nullable or valid.all(), ranges
        exists = min(months[0], month_days[0]) >= 1 and months[1] <= 12 and month_days[1] <= 28
        assert said.nullable is not exists, ranges
        if valid.any():
            found = result.values[valid]
            assert said.range.lower <= found.min(), ranges
            assert said.range.upper >= found.max(), ranges


def days(first: str, last: str) -> Interval:
    return Interval(day_number(date.fromisoformat(first)), day_number(date.fromisoformat(last)))


def instants(first: str, last: str) -> Interval:
    ends = (microsecond_number(datetime.fromisoformat(each)) for each in (first, last))
    return Interval(*ends)


D, T = days, instants


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("extract_year_of_date", [D("2000-01-01", "2010-12-31")], Interval(2000, 2010)),
        ("extract_year", [T("2000-01-01", "2010-12-31 23:00")], Interval(2000, 2010)),
        ("extract_decade", [T("1999-12-31", "2010-01-01")], Interval(199, 201)),
        ("extract_century", [T("2000-12-31", "2001-01-01")], Interval(20, 21)),
        ("extract_isoyear_of_date", [D("2016-01-03", "2018-12-31")], Interval(2015, 2019)),
        ("extract_quarter_of_date", [D("2000-04-01", "2000-12-31")], Interval(2, 4)),
        ("extract_quarter_of_date", [D("2000-12-31", "2001-01-01")], Interval(1, 4)),
        ("extract_month_of_date", [D("2000-03-05", "2000-06-01")], Interval(3, 6)),
        ("extract_month_of_date", [D("2000-03-05", "2001-02-01")], Interval(1, 12)),
        ("extract_month", [T("2000-03-05", "2000-06-01")], Interval(3, 6)),
        ("extract_week_of_date", [D("2018-12-31", "2019-12-29")], Interval(1, 52)),
        ("extract_week_of_date", [D("2018-12-30", "2019-12-29")], Interval(1, 53)),
        ("extract_day_of_date", [D("2000-02-03", "2000-02-29")], Interval(3, 29)),
        ("extract_day_of_date", [D("2000-02-03", "2000-03-01")], Interval(1, 31)),
        ("extract_dayofweek_of_date", [D("2024-06-02", "2024-06-04")], Interval(0, 2)),  # from a Sunday
        ("extract_dayofweek_of_date", [D("2024-06-01", "2024-06-02")], Interval(0, 6)),
        ("extract_isodow_of_date", [D("2024-06-01", "2024-06-02")], Interval(6, 7)),
        ("extract_dayofyear_of_date", [D("2024-02-01", "2024-12-31")], Interval(32, 366)),
        ("extract_dayofyear_of_date", [D("2023-02-01", "2024-01-01")], Interval(1, 366)),
        ("extract_hour", [T("2024-06-01 08:59", "2024-06-01 17:00")], Interval(8, 17)),
        ("extract_hour", [T("2024-06-01 08:59", "2024-06-02 17:00")], Interval(0, 23)),
        ("extract_hour_of_date", [D("2024-06-01", "2024-07-01")], Interval(0, 0)),
        ("extract_minute", [T("2024-06-01 08:05", "2024-06-01 08:07")], Interval(5, 7)),
        ("extract_second", [T("2024-06-01 08:05", "2024-06-01 08:06")], Interval(0, 59)),
        ("extract_millisecond", [T("2024-06-01 08:05:01", "2024-06-01 08:05:02.5")], Interval(1_000, 2_500)),
        ("extract_microsecond", [T("2024-06-01", "2024-06-02")], Interval(0, 59_999_999)),
        ("trunc_month", [T("2024-02-29", "2024-05-31 12:00")], T("2024-02-01", "2024-05-01")),
        ("trunc_week", [T("1970-01-01", "1970-01-05")], T("1969-12-29", "1970-01-05")),
        ("last_day_of_date", [D("2023-02-01", "2024-02-01")], D("2023-02-28", "2024-02-29")),
        ("timestamp_to_date", [T("1969-12-31 23:59", "1970-01-01")], Interval(-1, 0)),
        ("date_to_timestamp", [D("1969-12-31", "1970-01-01")], Interval(-A_DAY, 0)),
        ("add_days", [D("2000-01-01", "2000-01-31"), Interval(-1, 10)], D("1999-12-31", "2000-02-10")),
        ("subtract_days", [D("2000-01-01", "2000-01-31"), Interval(-1, 10)], D("1999-12-22", "2000-02-01")),
        ("days_between", [D("2000-01-11", "2000-01-31"), D("2000-01-01", "2000-01-05")], Interval(6, 30)),
        ("add_month", [T("2023-01-15", "2023-01-20 12:00"), point(1)], T("2023-02-15", "2023-02-20 12:00")),
        ("add_month", [T("2023-01-15", "2023-01-31"), point(1)], T("2023-02-15", "2023-02-28 23:59:59.999999")),
        ("add_month", [T("2023-01-30 10:00", "2023-02-15"), point(1)], T("2023-02-28", "2023-03-15")),
        ("add_year", [T("2023-01-01", "2023-12-31"), Interval(-1, 1)], T("2022-01-01", "2024-12-31")),
        ("add_hour", [T("2023-01-01", "2023-01-02"), Interval(1, 2)], T("2023-01-01 01:00", "2023-01-02 02:00")),
        ("diff_month", [T("2023-01-31", "2023-02-01"), T("2023-06-01", "2023-07-01")], Interval(4, 6)),
        ("diff_week", [T("2024-06-02", "2024-06-02"), T("2024-05-25", "2024-06-10")], Interval(-1, 1)),
        ("make_date", [Interval(2000, 2010), point(1), point(1)], D("2000-01-01", "2010-01-01")),
        ("make_date", [Interval(2000, 2010), Interval(1, 12), Interval(1, 28)], D("2000-01-01", "2010-12-28")),
    ],
)
def test_facts_narrow(name: str, args: list[Interval], result: Interval):
    assert FUNCTIONS[name].fact_of([Fact(each, False, True) for each in args]) == Fact(result, nullable=False)


@pytest.mark.parametrize(
    ("name", "args", "nullable"),
    [
        ("add_days", [DAYS, point(1)], True),
        ("add_days", [D("0001-01-01", "9999-12-30"), point(1)], False),
        ("add_days", [D("0001-01-01", "9999-12-30"), EVERYTHING], True),
        ("subtract_days", [D("0001-01-02", "9999-12-31"), point(1)], False),
        ("subtract_days", [DAYS, point(1)], True),
        ("add_month", [T("0001-01-01", "9999-11-30"), point(1)], False),
        ("add_month", [MICROSECONDS, point(1)], True),
        ("trunc_decade", [T("0010-01-01", "9999-12-31")], False),
        ("trunc_decade", [T("0009-12-31", "9999-12-31")], True),
        ("trunc_century", [T("0100-01-01", "9999-12-31")], False),
        ("trunc_year", [MICROSECONDS], False),
        ("trunc_week", [MICROSECONDS], False),
        ("make_date", [Interval(1, 9_999), Interval(1, 12), Interval(1, 29)], True),
        ("make_date", [Interval(0, 9_999), Interval(1, 12), Interval(1, 28)], True),
        ("make_date", [Interval(1, 9_999), Interval(1, 13), Interval(1, 28)], True),
        ("make_date", [Interval(1, 9_999), Interval(13, 14), Interval(1, 28)], True),
        ("make_date", [point(2023), point(2), Interval(29, 31)], True),
    ],
)
def test_null_where_a_result_can_be_none(name: str, args: list[Interval], nullable: bool):
    said = FUNCTIONS[name].fact_of([Fact(each, False, True) for each in args])
    assert said.nullable is nullable
    assert said.range.bounded


@pytest.mark.parametrize("function", OURS, ids=lambda function: function.name)
def test_facts_of_anything_at_all(function: Function):
    """A released value has no fact of its own; those of its functions still hold for every date there is."""
    kinds, kind = signature(function)
    said = function.fact_of([Fact()] * len(kinds))
    assert said.nullable
    assert said.range.bounded or kind is Type.TEXT
    assert said.range == function.fact_of([Fact(RANGES[each]) for each in kinds]).range


# --- Shapes and types ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", OURS, ids=lambda function: function.name)
def test_empty_vectors_and_constants(function: Function):
    kinds, _kind = signature(function)
    nothing = np.zeros(0, dtype=np.int64)
    for valid in (None, np.zeros(0, dtype=bool)):
        assert len(run(function, [Vector(nothing, valid)] * len(kinds))) == 0
    values = [[value for value in POOLS[kind] if value is not None][:20] for kind in kinds]
    for place, held in enumerate(values):
        constant = np.broadcast_to(np.array([held[3]]), 20)
        full = [Vector(np.array(each)) for each in values]
        viewed = [Vector(constant) if other == place else each for other, each in enumerate(full)]
        spelled = [Vector(constant.copy()) if other == place else each for other, each in enumerate(full)]
        seen, expected = run(function, viewed), run(function, spelled)
        assert same(seen, (expected.values, expected.where_valid())).all()


def test_kernels_leave_their_arguments_alone():
    for function in OURS:
        kinds, _kind = signature(function)
        arrays = [np.array([value or 0 for value in column]) for column in crossed(kinds)]
        masks = [np.array([value is not None for value in column]) for column in crossed(kinds)]
        before = [each.copy() for each in (*arrays, *masks)]
        run(function, [Vector(values, valid) for values, valid in zip(arrays, masks, strict=True)])
        assert all(map(np.array_equal, before, [*arrays, *masks])), function.name


def test_the_civil_calendar_of_every_day():
    every = np.arange(_LOW, _HIGH + 1)
    year, month, day = civil(every)
    theirs = every.astype("datetime64[D]")
    assert np.array_equal(year, theirs.astype("datetime64[Y]").astype(np.int64) + 1970)
    assert np.array_equal(month, theirs.astype("datetime64[M]").astype(np.int64) % 12 + 1)
    assert np.array_equal(day, (theirs - theirs.astype("datetime64[M]")).astype(np.int64) + 1)
    assert np.array_equal(month_number(every), 12 * year + month - 1)
    assert np.array_equal(first_day(month_number(every)) + day - 1, every)


@pytest.mark.parametrize("name", ["extract_isoyear_of_date", "extract_week_of_date", "extract_isodow_of_date"])
def test_iso_weeks_are_pythons(name: str):
    field = {"extract_isoyear_of_date": 0, "extract_week_of_date": 1, "extract_isodow_of_date": 2}[name]
    edges = [date(year, 1, 1).toordinal() + shift for year in range(2, 9_999, 7) for shift in range(-7, 8)]
    found = run(FUNCTIONS[name], [Vector(np.array(edges) - date(1970, 1, 1).toordinal())])
    assert found.values.tolist() == [date.fromordinal(edge).isocalendar()[field] for edge in edges]
