"""Every function of the language, by its record alone: kernel, facts and SQL must say the same thing.

For each function and each mix of argument types that it takes, over values of every kind: the kernel fails and warns on
none, its results lie where the fact says and are NULL only where it allows, and DuckDB makes the same of the SQL.

DPSQL_EXAMPLES=100 tries so many ranges, and mixes of constants, of each instead of the default.
"""

from __future__ import annotations

import math
import os
import random
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dpsql.calendar import (
    DAYS,
    MICROSECONDS,
    MICROSECONDS_A_DAY,
    read_date,
    read_timestamp,
    show_date,
    show_timestamp,
)
from dpsql.intervals import BOOLEAN, EVERYTHING, Interval, point
from dpsql.schema import Type
from dpsql.sql.expressions import (
    DTYPES,
    Call,
    Column,
    Expr,
    Fact,
    Function,
    Literal,
    Slot,
    Vector,
    blank,
    call,
    evaluate,
)
from dpsql.sql.functions import FUNCTIONS

EXAMPLES = int(os.environ.get("DPSQL_EXAMPLES", "12"))
LARGEST = 2**62
KINDS = (Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT, Type.DATE, Type.TIMESTAMP)
STORED = {
    Type.INTEGER: "BIGINT",
    Type.REAL: "DOUBLE",
    Type.BOOLEAN: "BOOLEAN",
    Type.TEXT: "VARCHAR",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP",
}


def day(text: str) -> int:
    number = read_date(text)
    assert number is not None
    return number


def moment(text: str) -> int:
    number = read_timestamp(text)
    assert number is not None
    return number


# The first few of each are taken where the product of all would be too much.
SAMPLES: dict[Type, list[Any]] = {
    Type.INTEGER: [
        None, 0, 7, -3, 2, 1, LARGEST, -1, -LARGEST, 12, 100, 5, -10, 128, -129, 2**31, 4_500, 2**53 + 1, 1 - 2**53,
        -123_456_789, 10**18, 5 * 10**17 - 1, 65_536,
    ],
    Type.REAL: [
        None, 0.0, 2.5, -7.25, 1.0, math.inf, -0.5, 1e300, 0.1, -math.inf, 3.0, -2.0, 127.5, 5e-324, -1e-300, 1e16,
        2.0**53, -1e308, 0.49999999999999994, 1e-5, 123_456.789, -0.0, 3.4028235677973366e38, 1e17 / 3,
    ],
    Type.BOOLEAN: [None, True, False],
    Type.TEXT: [
        None, "", "a", " 1.5 ", "héllo", "-3", "2020-02-29", "1e3", "true", "日本 😀", "A%b_c\\", "it's", "Straße ß",
        "2020-01-05 10:11:12.5", "-128", "127", "1-1-1", "9999-12-31 23:59:59.9999999", "aa", "NO", "inf", "\t12\n",
        "127.5", "99999999999999999999", "x y,z", "İi", "1.2.3", f"{LARGEST}", f"-{LARGEST}", f"{LARGEST + 1}",
    ],
    Type.DATE: [
        None, day("2020-02-29"), day("1970-01-01"), day("0001-01-01"), day("9999-12-31"), day("2021-01-03"),
        day("1999-12-31"), day("1969-07-20"), day("2000-03-01"), day("0999-05-31"), day("2024-12-30"),
    ],
    Type.TIMESTAMP: [
        None, moment("2020-02-29 23:59:59.999999"), moment("1970-01-01"), moment("0001-01-01"),
        moment("9999-12-31 23:59:59.999999"), moment("2021-01-03 12:00"), moment("1999-12-31 00:00:00.5"),
        moment("1969-07-20 20:17:40"), moment("2000-03-01 01:02:03.000004"), moment("2024-12-30 06:30"),
    ],
}  # fmt: skip
FULL: dict[Type, Interval] = {
    Type.INTEGER: EVERYTHING,
    Type.REAL: EVERYTHING,
    Type.BOOLEAN: BOOLEAN,
    Type.TEXT: EVERYTHING,
    Type.DATE: DAYS,
    Type.TIMESTAMP: MICROSECONDS,
}
"""Where values lie of which nothing is declared."""
NARROW: dict[Type, Interval] = {
    Type.INTEGER: Interval(-10, 128),
    Type.REAL: Interval(-7.25, 127.5),
    Type.DATE: Interval(day("1969-07-20"), day("2024-12-30")),
    Type.TIMESTAMP: Interval(moment("1969-07-20"), moment("2024-12-31")),
}
POSITIVE: dict[Type, Interval] = {
    Type.INTEGER: Interval(1, 12),
    Type.REAL: Interval(0.1, 3.0),
    Type.DATE: Interval(day("2000-03-01"), day("2021-01-03")),
    Type.TIMESTAMP: Interval(moment("1999-12-31"), moment("2021-01-03 12:00")),
}
MOST_ROWS = 2_500

ULPS = {  # libraries of mathematics differ in the last bits
    **dict.fromkeys(("cbrt", "exp", "ln", "log10", "log2", "degrees", "radians"), 4),
    **dict.fromkeys(("log_base", "power"), 8),
    # DuckDB makes a DOUBLE of a DECIMAL with many digits in two parts.
    **dict.fromkeys(("to_decimal", "text_to_decimal"), 2),
}
OF_CONSTANTS = ("in", "to_decimal", "text_to_decimal")
"""What takes constants only, after its first argument."""
DIFFERENCES: dict[str, str] = {}
"""Functions whose SQL does not give what the kernel gives, with the reason."""


@dataclass(frozen=True)
class Use:
    """A function and types that it takes."""

    function: Function
    kinds: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.function.name}({', '.join(self.kinds)})"


def uses() -> Iterator[Use]:
    for function in FUNCTIONS.values():
        least, most = function.arity
        for arity in range(least, (max(least, 2) + 1 if most is None else most) + 1):
            taken = [use for kinds in product(KINDS, repeat=arity) if (use := Use(function, kinds)) and takes(use)]
            yield from taken if len(taken) <= 36 else random.Random(arity).sample(taken, 36)
    five = (Type.BOOLEAN, Type.INTEGER, Type.BOOLEAN, Type.REAL, Type.INTEGER)
    yield Use(FUNCTIONS["case"], five)
    yield Use(FUNCTIONS["case"], (Type.BOOLEAN, Type.TEXT, Type.BOOLEAN, Type.TEXT, Type.TEXT))


def takes(use: Use) -> bool:
    """Whether the types fit: with nothing known of the values, or with small constants after the first."""
    constants = [Fact(FULL[kind]) if kind is Type.TEXT else Fact(point(4), nullable=False) for kind in use.kinds[1:]]
    unknown = [Fact(FULL[kind]) for kind in use.kinds]
    facts = [*unknown[:1], *constants] if use.function.name in OF_CONSTANTS else unknown
    return use.function.type_of(use.kinds, facts) is not None


USES = list(uses())


@dataclass(frozen=True)
class Arg:
    """An argument: the cells of a column and what is declared of them, or a constant."""

    kind: Type
    cells: tuple[Any, ...]
    fact: Fact | None = None

    def expr(self, name: str) -> Expr:
        if self.fact is None:
            return Literal(self.cells[0], self.kind)
        return Column(name, self.kind, self.fact)


def column(kind: Type, cells: Sequence[Any], held: Interval | None = None) -> Arg:
    """A column of those samples that lie in the range."""
    held = held or FULL[kind]
    inside = tuple(cell for cell in cells if cell is None or kind is Type.TEXT or cell in held)
    return Arg(kind, inside, Fact(held, nullable=None in inside))


def grid(use: Use, ranges: dict[Type, Interval], *, nullable: bool) -> list[Arg]:
    """Columns that stand for every mix of samples in the ranges."""
    most = max(3, int(MOST_ROWS ** (1 / max(1, len(use.kinds)))))
    cells = {
        kind: [cell for cell in SAMPLES[kind] if column(kind, [cell], ranges.get(kind)).cells]
        for kind in set(use.kinds)
    }
    return [
        column(kind, [cell for cell in cells[kind] if nullable or cell is not None][:most], ranges.get(kind))
        for kind in use.kinds
    ]


def with_constants(use: Use, draw: random.Random) -> list[Arg]:
    """A column and constants after it."""
    cells = SAMPLES[use.kinds[0]][draw.randrange(2) :]  # with NULL or without
    first = column(use.kinds[0], cells, draw.choice(({}, NARROW)).get(use.kinds[0]))
    pools = {kind: [*SAMPLES[kind][:8], 38, 10] if kind is Type.INTEGER else SAMPLES[kind] for kind in use.kinds}
    return [first, *(Arg(kind, (draw.choice(pools[kind]),)) for kind in use.kinds[1:])]


def typed(use: Use, args: Sequence[Arg]) -> Call | None:
    return call(use.function, *(arg.expr(f"a{place}") for place, arg in enumerate(args)))


def rows_of(args: Sequence[Arg]) -> list[tuple[Any, ...]]:
    return list(product(*(arg.cells for arg in args)))


def vector(kind: Type, cells: Sequence[Any]) -> Vector:
    """The cells as a block; what stands in the cell of a NULL is some value of the type."""
    filler = next((cell for cell in reversed(cells) if cell is not None), blank(kind))
    values = np.array([filler if cell is None else cell for cell in cells], dtype=DTYPES[kind])
    return Vector(values, np.array([cell is not None for cell in cells], dtype=bool) if None in cells else None)


def computed(expr: Call, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What the kernel makes of the rows, None for NULL."""
    blocks = {
        arg.name: vector(arg.type, [row[place] for row in rows])
        for place, arg in enumerate(expr.args)
        if isinstance(arg, Column)
    }

    def read(leaf: Any) -> Vector:
        assert isinstance(leaf, Column | Slot)
        return blocks[leaf.name]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(expr, read, len(rows))
    size = 1 if not expr.args else len(rows)
    assert found.values.dtype == DTYPES[expr.type]
    assert found.values.shape == (size,)
    if found.valid is not None:
        assert found.valid.dtype == np.bool_
        assert found.valid.shape == (size,)
    return [cell if valid else None for cell, valid in zip(found.values.tolist(), found.where_valid(), strict=True)]


def check_fact(expr: Call, rows: Sequence[tuple[Any, ...]], results: Sequence[Any]) -> None:
    """Every result is of its type, lies in the range, and is NULL only where it may be."""
    python = {Type.INTEGER: int, Type.REAL: float, Type.BOOLEAN: bool, Type.TEXT: str, Type.DATE: int,
              Type.TIMESTAMP: int}[expr.type]  # fmt: skip
    for row, result in zip(rows, results, strict=False):
        if result is None:
            assert expr.held.nullable, f"{expr} of {row} is NULL"
            continue
        assert type(result) is python, f"{expr} of {row} is {result!r}"
        assert not (isinstance(result, float) and math.isnan(result)), f"{expr} of {row} is NaN"
        if expr.type is not Type.TEXT:
            assert result in expr.held.range, f"{expr} of {row} is {result!r}, not in {expr.held.range}"
        if expr.type is Type.INTEGER:
            assert abs(result) <= LARGEST
        if expr.type.temporal:
            assert result in FULL[expr.type]


# DuckDB.


@cache
def oracle() -> duckdb.DuckDBPyConnection:
    """A connection with the samples of each type as table s_TYPE(k, v)."""
    connection = duckdb.connect(config={"threads": 1})
    for kind in KINDS:
        connection.execute(f"CREATE TABLE s_{kind} (k INTEGER, v {STORED[kind]})")
        cells = [*SAMPLES[kind], *(cell for cell in randoms(kind) if cell not in SAMPLES[kind])]
        rows = [(place, spelt(kind, cell)) for place, cell in enumerate(cells)]
        connection.executemany(f"INSERT INTO s_{kind} VALUES (?, CAST(? AS {STORED[kind]}))", rows)
    return connection


@cache
def places(kind: Type) -> dict[Any, int]:
    cells = [*SAMPLES[kind], *(cell for cell in randoms(kind) if cell not in SAMPLES[kind])]
    return {key(cell): place for place, cell in enumerate(cells)}


def key(cell: Any) -> Any:
    """-0.0 and 0.0 are two samples."""
    return (cell, math.copysign(1, cell)) if isinstance(cell, float) else cell


def spelt(kind: Type, cell: Any) -> Any:
    """The cell as DuckDB's driver takes it."""
    if cell is None or kind in (Type.BOOLEAN, Type.TEXT):
        return cell
    if kind is Type.REAL:
        return repr(cell)
    return show_date(cell) if kind is Type.DATE else show_timestamp(cell) if kind is Type.TIMESTAMP else str(cell)


def sql_of(arg: Arg, name: str) -> str:
    """A column, or a constant: an integer is bare, as a DECIMAL's digits must be."""
    if arg.fact is not None:
        return f"{name}.v"
    cell = spelt(arg.kind, arg.cells[0])
    if isinstance(arg.cells[0], int) and arg.kind is Type.INTEGER:
        return f"({cell})" if arg.cells[0] < 0 else str(cell)
    text = "NULL" if cell is None else "'" + str(cell).replace("'", "''") + "'"
    return f"CAST({text} AS {STORED[arg.kind]})"


def selected(args: Sequence[Arg], *texts: str) -> list[tuple[Any, ...]]:
    """What DuckDB makes of texts over a0.v, a1.v, for the same rows in the same order."""
    names = [(f"a{place}", arg) for place, arg in enumerate(args) if arg.fact is not None]
    sql = f"SELECT {', '.join(texts)}"
    if names:
        chosen = {name: [places(arg.kind)[key(cell)] for cell in arg.cells] for name, arg in names}
        sql += " FROM " + ", ".join(f"s_{arg.kind} {name}" for name, arg in names)
        sql += " WHERE " + " AND ".join(f"{name}.k IN ({', '.join(map(str, cells))})" for name, cells in chosen.items())
        sql += " ORDER BY " + ", ".join(f"list_position({cells}, {name}.k)" for name, cells in chosen.items())
    return oracle().execute(sql).fetchall()


def asked(expr: Call, args: Sequence[Arg]) -> list[Any]:
    """What DuckDB makes of the record's SQL."""
    written = expr.function.emit(
        [arg.kind for arg in args], expr.type, [sql_of(arg, f"a{place}") for place, arg in enumerate(args)]
    )
    rows = selected(args, as_number(expr.type, written), f"typeof({written})")
    assert {kind for _, kind in rows} <= {STORED[expr.type]}, written
    return [cell for cell, _ in rows]


def as_number(kind: Type, written: str) -> str:
    """Dates and timestamps as the integers that they are here."""
    if kind is Type.DATE:
        return f"CAST({written} - DATE '1970-01-01' AS BIGINT)"
    return f"epoch_us({written})" if kind is Type.TIMESTAMP else written


def same(function: Function, ours: Any, theirs: Any) -> bool:
    if not isinstance(ours, float) or not isinstance(theirs, float):
        return type(ours) is type(theirs) and bool(ours == theirs)
    if ours == theirs:
        return True
    ulps = ULPS.get(function.name, 0)
    return math.isfinite(ours) and math.isfinite(theirs) and abs(ours - theirs) <= ulps * math.ulp(ours)


def check(use: Use, args: Sequence[Arg]) -> bool:
    """Kernel, fact and SQL agree; False where these arguments are not taken."""
    expr = typed(use, args)
    if expr is None:
        return False
    rows = rows_of(args)
    results = computed(expr, rows)
    check_fact(expr, rows, results)
    if use.function.name not in DIFFERENCES:
        wrong = [
            f"{expr} of {row} is {ours!r}, in DuckDB {theirs!r}"
            for row, ours, theirs in zip(rows, results, asked(expr, args), strict=True)
            if not same(use.function, ours, theirs)
        ]
        assert not wrong, f"{len(wrong)} of {len(rows)}: " + "; ".join(wrong[:8])
    return True


# The tests.


OF_COLUMNS = [use for use in USES if use.function.name not in OF_CONSTANTS or len(use.kinds) < 2]


@pytest.mark.parametrize("use", OF_COLUMNS, ids=str)
def test_every_mix_of_samples(use: Use):
    for ranges in ({}, NARROW, POSITIVE):
        assert check(use, grid(use, ranges, nullable=True))
        assert check(use, grid(use, ranges, nullable=False))


@pytest.mark.parametrize("use", [use for use in USES if len(use.kinds) > 1], ids=str)
def test_constants(use: Use):
    draw = random.Random(str(use))
    times = 3 * EXAMPLES if use.function.name in OF_CONSTANTS else EXAMPLES // 2
    tried = [check(use, with_constants(use, draw)) for _ in range(times)]
    assert any(tried)


RANDOMS = 400


@cache
def randoms(kind: Type) -> tuple[Any, ...]:
    """Values from everywhere, most of them of everyday size."""
    draw = random.Random(kind)
    if kind is Type.BOOLEAN:
        return (True, False)
    if kind is Type.TEXT:
        return tuple(dict.fromkeys(random_text(draw) for _ in range(RANDOMS)))
    if kind is Type.INTEGER:
        return tuple({draw.randint(-(10**k), 10**k) for k in range(1, 19) for _ in range(RANDOMS // 18)})
    if kind is Type.REAL:
        sizes = [10.0 ** draw.uniform(-3, 6) for _ in range(RANDOMS)] + [
            10.0 ** draw.uniform(-320, 308) for _ in "x" * 60
        ]
        found = {draw.choice((-1, 1)) * size for size in sizes}
        return tuple({*found, *(round(each, draw.randint(0, 4)) for each in found), *HALVES})
    limit = FULL[kind]
    width = 1 if kind is Type.DATE else MICROSECONDS_A_DAY
    near = [draw.randint(-20_000 * width, 40_000 * width) for _ in range(RANDOMS // 2)]
    far = [draw.randint(int(limit.lower), int(limit.upper)) for _ in range(RANDOMS // 2)]
    return tuple({*near, *far})


HALVES = [each / 2 for each in range(-520, 520, 7)]


def random_text(draw: random.Random) -> str:
    kind = draw.randrange(6)
    if kind == 0:
        return "".join(draw.choice("abAB zé日😀%_\\'") for _ in range(draw.randint(0, 8)))
    if kind == 1:
        return f"{draw.randint(0, 3000)}-{draw.randint(0, 14)}-{draw.randint(0, 33)}"
    if kind == 2:
        return (
            f"20{draw.randint(10, 30)}-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}{draw.choice(' T')}"
            + ":".join(str(draw.randint(0, 62)) for _ in range(draw.randint(1, 3)))
            + draw.choice(("", ".5", ".123456789", "Z", "."))
        )
    digits = "".join(draw.choice("0123456789") for _ in range(draw.randint(0, draw.choice((3, 8, 25)))))
    point_at = draw.choice((None, draw.randint(0, len(digits))))
    number = digits if point_at is None else f"{digits[:point_at]}.{digits[point_at:]}"
    exponent = draw.choice(("", "", "e2", "E-3", "e+10", "e", "e400"))
    return draw.choice(("", " ")) + draw.choice(("", "-", "+")) + number + exponent + draw.choice(("", "\t", "x"))


@pytest.mark.parametrize("use", [use for use in USES if len(use.kinds) == 1], ids=str)
def test_random_values_of_one_argument(use: Use):
    assert check(use, [column(use.kinds[0], randoms(use.kinds[0]))])


@pytest.mark.parametrize("use", [use for use in OF_COLUMNS if len(use.kinds) == 2], ids=str)
def test_random_values_of_two_arguments(use: Use):
    draw = random.Random(str(use))
    args = [column(kind, draw.sample(randoms(kind), min(50, len(randoms(kind))))) for kind in use.kinds]
    assert check(use, args)


@pytest.mark.parametrize("use", OF_COLUMNS, ids=str)
def test_single_values(use: Use):
    """Facts of one value each: the result is computed, and typed, for it alone."""
    draw = random.Random(str(use))
    taken = 0
    for _ in range(60):
        row = tuple(draw.choice((*SAMPLES[kind][1:], *randoms(kind))) for kind in use.kinds)
        exact = [
            point(cell) if kind is not Type.TEXT else EVERYTHING for kind, cell in zip(use.kinds, row, strict=True)
        ]
        args = [Arg(kind, (cell,), Fact(held, nullable=False))
                for kind, cell, held in zip(use.kinds, row, exact, strict=True)]  # fmt: skip
        expr = typed(use, args)
        if expr is not None:
            taken += 1
            check_fact(expr, [row], computed(expr, [row]))
    assert taken


@pytest.mark.parametrize("use", [use for use in USES if use.kinds], ids=str)
def test_no_rows(use: Use):
    draw = random.Random(str(use))
    if not use.kinds:
        return
    tried = [
        typed(use, args) for args in (grid(use, {}, nullable=True), *(with_constants(use, draw) for _ in range(9)))
    ]
    taken = [expr for expr in tried if expr is not None]
    assert taken
    for expr in taken:
        assert computed(expr, []) == []


numbers = st.one_of(st.integers(-20, 20), st.integers(-LARGEST, LARGEST))
floats = st.one_of(
    st.floats(-100, 100), st.floats(allow_nan=False), st.sampled_from([c for c in SAMPLES[Type.REAL] if c is not None])
)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.INTEGER: numbers,
    Type.REAL: floats,
    Type.BOOLEAN: st.booleans(),
    Type.TEXT: st.one_of(st.sampled_from(SAMPLES[Type.TEXT][1:]), st.text(st.characters(codec="utf-8"), max_size=6)),
    Type.DATE: st.integers(int(DAYS.lower), int(DAYS.upper)),
    Type.TIMESTAMP: st.integers(int(MICROSECONDS.lower), int(MICROSECONDS.upper)),
}


@st.composite
def sub_interval(draw: st.DrawFn, kind: Type) -> Arg:
    """A range between two values, and some values in it, both ends among them."""
    nullable = draw(st.booleans())
    drawn = draw(st.lists(VALUES[kind], min_size=2, max_size=5))
    held = EVERYTHING if kind is Type.TEXT else BOOLEAN if kind is Type.BOOLEAN else Interval(min(drawn), max(drawn))
    return Arg(kind, (*drawn, None) if nullable else tuple(drawn), Fact(held, nullable))


@pytest.mark.parametrize("use", [use for use in OF_COLUMNS if use.kinds], ids=str)
def test_facts_of_sub_intervals(use: Use):
    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
              suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
    @given(st.tuples(*(sub_interval(kind) for kind in use.kinds)))
    def hold(args: tuple[Arg, ...]) -> None:
        expr = typed(use, args)
        if expr is not None:
            rows = rows_of(args)
            check_fact(expr, rows, computed(expr, rows))

    hold()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_written(name: str):
    """The record is found by its name, says what it wants, and can be shown."""
    function = FUNCTIONS[name]
    assert function.name == name
    assert function.sql
    assert function.wants
    least, most = function.arity
    assert 0 <= least <= (least if most is None else most)
    arity = least if least % 2 or most is not None else least + 1
    args = tuple(Column(f"arg{place}", Type.INTEGER, Fact()) for place in range(arity))
    shown = str(Call(function, args, Type.INTEGER, Fact(), 1, 0))
    assert all(f"arg{place}" in shown for place in range(arity))
    assert "{" not in shown


def test_case_is_shown_as_sql():
    b, x = Column("b", Type.BOOLEAN, Fact()), Column("x", Type.INTEGER, Fact())
    test = call(FUNCTIONS["gt"], x, Literal(1, Type.INTEGER))
    assert test is not None
    expr = call(FUNCTIONS["case"], test, x, b, Literal(2, Type.INTEGER), Literal(None, Type.INTEGER))
    assert str(expr) == "CASE WHEN x > 1 THEN x WHEN b THEN 2 ELSE NULL END"


def test_spellings_are_of_the_parser_and_of_one_function_each():
    seen: dict[str, str] = {}
    for function in FUNCTIONS.values():
        for written in function.syntax:
            node, _, rest = written.partition("(")
            assert seen.setdefault(node, function.name) == function.name, f"{node} is written for two functions"
            if not rest:
                assert node == node.upper(), written
                continue
            known = getattr(exp, node).arg_types
            names = [part.strip().lstrip("*") for part in rest.rstrip(")").split(",") if part.strip()]
            assert set(names) <= set(known), f"{written}: the parser has {list(known)}"


def test_the_harness_sees_a_wrong_kernel():
    """A kernel that is off by one, one that makes NULL, and a range that is too narrow are each caught."""
    right = FUNCTIONS["add"]
    args = grid(Use(right, (Type.INTEGER, Type.INTEGER)), NARROW, nullable=False)
    broken = {
        "in DuckDB": {"sql": "{0} + {1} + 1"},
        "is NULL": {"kernel": lambda _kind, v: Vector(v[0].values, v[0].values > 0)},
        "not in": {"fact_of": lambda _facts: Fact(Interval(0, 5), nullable=False)},
    }
    for words, change in broken.items():
        fields = {name: getattr(right, name) for name in right.__dataclass_fields__}
        wrong = Function(**{**fields, **change})  # type: ignore[arg-type]
        with pytest.raises(AssertionError, match=words):
            check(Use(wrong, (Type.INTEGER, Type.INTEGER)), args)
