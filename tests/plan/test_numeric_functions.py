"""Functions of numbers and choices: what their ranges come to, and DuckDB's own functions beside them.

What differs from DuckDB, on purpose:
- no real number, no value: x / 0, x // 0, x % 0, LN and LOG of what is not above 0, SQRT of what is below, a logarithm
  to the base 1, 0 to a negative power are NULL (infinity, NaN or an error there);
- // truncates on REAL as it does on INTEGER (there it is true division on DOUBLE);
- FLOOR, CEIL, ROUND and TRUNC to whole numbers are INTEGER where the range says that it fits (DOUBLE there);
- CLAMP is not in DuckDB;
- an INTEGER that rounding takes beyond 2^62 is NULL.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.plan.expressions import Call, Column, Expr, Fact, Literal, Vector, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema import intervals
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval, point
from tests.plan.records import ULPS, column, computed, rows_of, selected
from tests.plan.samples import SAMPLES, STORED, randoms

I, R, B, T = Type.INTEGER, Type.REAL, Type.BOOLEAN, Type.TEXT  # noqa: E741


def made(name: str, *args: Expr) -> Call:
    expr = call(FUNCTIONS[name], *args)
    assert expr is not None
    return expr


def integer(lower: float, upper: float, *, nullable: bool = False) -> Column:
    return Column(f"i{lower}_{upper}", I, Fact(Interval(lower, upper), nullable))


def real(lower: float, upper: float, *, nullable: bool = False) -> Column:
    return Column(f"r{lower}_{upper}", R, Fact(Interval(lower, upper), nullable))


def number(value: float) -> Literal:
    return Literal(value, R if isinstance(value, float) else I)


AGE = integer(17, 90)
SIGNED = integer(-20, 30)
CHANGE = real(-2.5, 1.5)
INCOME = real(0.04, 200_000.26)
ANY_INTEGER = Column("i", I, Fact(nullable=False))
ANY_REAL = Column("r", R, Fact(nullable=False))
NEVER, MAYBE = False, True

# Worked out by hand: type, least and greatest value, whether NULL is possible.
FACTS: list[tuple[str, tuple[Expr, ...], tuple[Type, float, float, bool]]] = [
    ("int_divide", (AGE, number(10)), (I, 1, 9, NEVER)),
    ("int_divide", (AGE, number(-10)), (I, -9, -1, NEVER)),
    ("int_divide", (SIGNED, number(7)), (I, -2, 4, NEVER)),
    ("int_divide", (AGE, integer(-3, 5)), (I, -90, 90, MAYBE)),
    ("int_divide", (AGE, integer(2, 5)), (I, 3, 45, NEVER)),
    ("int_divide", (AGE, integer(2, 5, nullable=True)), (I, 3, 45, MAYBE)),
    ("int_divide", (CHANGE, number(0.5)), (R, -5, 3, NEVER)),
    ("int_divide", (ANY_INTEGER, number(2)), (I, -math.inf, math.inf, NEVER)),
    ("int_divide", (ANY_REAL, real(1, math.inf)), (R, -math.inf, math.inf, MAYBE)),
    ("modulo", (AGE, number(7)), (I, 0, 6, NEVER)),
    ("modulo", (SIGNED, number(7)), (I, -6, 6, NEVER)),
    ("modulo", (SIGNED, number(-100)), (I, -20, 30, NEVER)),
    ("modulo", (integer(-20, -1), number(7)), (I, -6, 0, NEVER)),
    ("modulo", (AGE, integer(0, 5)), (I, 0, 4, MAYBE)),
    ("modulo", (CHANGE, number(2.0)), (R, -2, 1.5, NEVER)),
    ("modulo", (ANY_REAL, number(2.0)), (R, -2, 2, MAYBE)),
    ("divide", (AGE, number(0)), (R, -math.inf, math.inf, MAYBE)),
    ("divide", (real(0, 8), real(2, 4)), (R, 0, math.nextafter(4, 5), NEVER)),
    ("divide", (real(0, 8), integer(0, 4)), (R, 0, math.nextafter(8, 9), MAYBE)),
    ("divide", (real(0, 8), real(0, 4)), (R, 0, math.inf, MAYBE)),
    ("divide", (ANY_REAL, number(2)), (R, -math.inf, math.inf, NEVER)),
    ("divide", (ANY_REAL, ANY_REAL), (R, -math.inf, math.inf, MAYBE)),
    ("divide", (ANY_INTEGER, real(1, math.inf)), (R, -math.inf, math.inf, NEVER)),
    ("add", (ANY_REAL, number(1)), (R, -math.inf, math.inf, NEVER)),
    ("add", (ANY_REAL, ANY_REAL), (R, -math.inf, math.inf, MAYBE)),
    ("add", (AGE, SIGNED), (I, -3, 120, NEVER)),
    ("multiply", (ANY_REAL, real(1, 2)), (R, -math.inf, math.inf, NEVER)),
    ("multiply", (ANY_REAL, real(0, 2)), (R, -math.inf, math.inf, MAYBE)),
    ("multiply", (AGE, integer(0, 2**60)), (R, 0, 90 * 2**60, NEVER)),
    ("abs", (ANY_REAL,), (R, 0, math.inf, NEVER)),
    ("sign", (SIGNED,), (I, -1, 1, NEVER)),
    ("sign", (real(0, 5, nullable=True),), (I, 0, 1, MAYBE)),
    ("floor", (CHANGE,), (I, -3, 1, NEVER)),
    ("ceil", (CHANGE,), (I, -2, 2, NEVER)),
    ("round", (CHANGE,), (I, -3, 2, NEVER)),
    ("trunc", (CHANGE,), (I, -2, 1, NEVER)),
    ("floor", (real(0, 1e300),), (R, 0, int(1e300), NEVER)),
    ("round", (INCOME, number(1)), (R, 0.0, 200_000.3, NEVER)),
    ("round", (INCOME, number(-3)), (R, 0.0, 200_000.0, NEVER)),
    ("round", (CHANGE, number(0)), (R, -3.0, 2.0, NEVER)),
    ("trunc", (INCOME, number(1)), (R, 0.0, 200_000.2, NEVER)),
    ("round", (integer(17, 96), number(-1)), (I, 20, 100, NEVER)),
    ("trunc", (integer(17, 96), number(-1)), (I, 10, 90, NEVER)),
    ("round", (AGE, number(2)), (I, 17, 90, NEVER)),
    ("round", (ANY_INTEGER, number(2)), (I, -(2**63), 2**63 - 1, MAYBE)),
    ("round", (AGE, number(-2)), (I, 0, 100, NEVER)),
    ("round", (AGE, SIGNED), (I, 0, 180, NEVER)),
    ("sqrt", (real(0, 100),), (R, 0, 10, NEVER)),
    ("sqrt", (CHANGE,), (R, 0, math.sqrt(1.5), MAYBE)),
    ("exp", (ANY_REAL,), (R, 0, math.inf, NEVER)),
    ("least", (AGE, SIGNED), (I, -20, 30, NEVER)),
    ("nullif", (AGE, number(0)), (I, 17, 90, NEVER)),
    ("nullif", (AGE, number(20)), (I, 17, 90, MAYBE)),
    ("coalesce", (integer(1, 2, nullable=True), number(9)), (I, 1, 9, NEVER)),
    ("case", (Column("b", B, Fact()), AGE, number(5)), (I, 5, 90, NEVER)),
    ("case", (Column("b", B, Fact()), integer(1, 2, nullable=True), number(5.5)), (R, 1, 5.5, MAYBE)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "wanted"), FACTS)
def test_facts_as_worked_out(name: str, args: tuple[Expr, ...], wanted: tuple[Type, float, float, bool]):
    expr = made(name, *args)
    held = expr.held
    assert (expr.type, held.range.lower, held.range.upper, held.nullable) == wanted


# Of functions that no machine computes to the last bit: a range that may be a little wider.
NEARLY: list[tuple[str, tuple[Expr, ...], float, float, bool]] = [
    ("round", (CHANGE, integer(1, 3)), -2.6, 1.6, NEVER),
    ("exp", (real(-1, 2),), math.exp(-1), math.exp(2), NEVER),
    ("ln", (real(1, 100),), 0, math.log(100), NEVER),
    ("ln", (integer(0, 100),), 0, math.log(100), MAYBE),
    ("ln", (real(0, 100),), math.log(5e-324), math.log(100), MAYBE),
    ("log10", (real(0.001, 1000),), -3, 3, NEVER),
    ("log2", (integer(1, 8),), 0, 3, NEVER),
    ("log_base", (number(2), integer(1, 8)), 0, 3, NEVER),
    ("cbrt", (real(-8, 27),), -2, 3, NEVER),
    ("sin", (real(-3, 3),), -1, 1, NEVER),
    ("cos", (integer(0, 100),), -1, 1, NEVER),
    ("degrees", (real(0, math.pi),), 0, 180, NEVER),
    ("radians", (real(0, 180),), 0, math.pi, NEVER),
    ("power", (real(0.5, 2), number(2)), 0.25, 4, NEVER),
    ("power", (real(0.5, 2), real(-2, 3)), 0.125, 8, NEVER),
    ("power", (real(-2, 3), number(2)), 0, 9, NEVER),
    ("power", (real(-2, 3), number(3)), -8, 27, NEVER),
    ("power", (real(-2, -0.5), number(-1)), -2, -0.5, NEVER),
    ("power", (real(-2, 3), integer(0, 2)), -4, 9, NEVER),
    ("power", (real(-2, 3), number(0.5)), -(2**0.5), 3**0.5, MAYBE),
    ("power", (real(0, 3), number(2.5)), 0, 3**2.5, NEVER),
    ("power", (real(0, 3), number(-1)), 1 / 3, math.inf, MAYBE),
]


@pytest.mark.parametrize(("name", "args", "lower", "upper", "nullable"), NEARLY)
def test_facts_as_worked_out_nearly(name: str, args: tuple[Expr, ...], lower: float, upper: float, nullable: bool):
    held = made(name, *args).held
    assert held.range.lower == pytest.approx(lower, rel=1e-14, abs=1e-300)
    assert held.range.upper == pytest.approx(upper, rel=1e-14, abs=1e-300)
    assert held.range.lower <= lower <= upper <= held.range.upper
    assert held.nullable is nullable


big = st.one_of(st.integers(-100, 100), st.integers(-(2**62), 2**62))


@pytest.mark.parametrize(
    ("range_of", "operation"),
    [
        (intervals.add, operator.add),
        (intervals.subtract, operator.sub),
        (intervals.multiply, operator.mul),
    ],
)
def test_ranges_of_integers_hold_for_floats_too(range_of: Any, operation: Any):
    """A sum of integers that is computed in floats may be rounded past the exact one."""

    @given(big, big)
    def holds(x: int, y: int) -> None:
        held = range_of(point(x), point(y))
        assert operation(x, y) in held
        assert operation(float(x), float(y)) in held

    holds()


# DuckDB's own functions.

Undefined = Callable[..., bool]
DIGITS = "CAST(CASE WHEN {1} < -999 THEN -999 WHEN {1} > 999 THEN 999 ELSE {1} END AS INT)"
PLAIN: list[tuple[str, tuple[Type, ...], str, Undefined]] = [
    ("add", (R, R), "{0} + {1}", lambda _x, _y: False),
    ("subtract", (R, I), "{0} - {1}", lambda _x, _y: False),
    ("multiply", (I, R), "{0} * {1}", lambda _x, _y: False),
    ("divide", (I, I), "{0} / {1}", lambda _x, y: y == 0),
    ("divide", (R, R), "{0} / {1}", lambda _x, y: y == 0),
    ("int_divide", (I, I), "{0} // NULLIF({1}, 0)", lambda _x, y: y == 0),
    ("modulo", (I, I), "{0} % NULLIF({1}, 0)", lambda _x, y: y == 0),
    ("modulo", (R, R), "{0} % {1}", lambda _x, y: y == 0),
    ("negate", (R,), "-({0})", lambda _x: False),
    ("abs", (R,), "ABS({0})", lambda _x: False),
    ("sign", (R,), "SIGN({0})", lambda _x: False),
    ("sign", (I,), "SIGN({0})", lambda _x: False),
    ("floor", (R,), "FLOOR({0})", lambda _x: False),
    ("ceil", (R,), "CEIL({0})", lambda _x: False),
    ("round", (R,), "ROUND({0})", lambda _x: False),
    ("trunc", (R,), "TRUNC({0})", lambda _x: False),
    ("round", (R, I), f"ROUND({{0}}, {DIGITS})", lambda _x, _n: False),
    ("trunc", (R, I), f"TRUNC({{0}}, {DIGITS})", lambda _x, _n: False),
    ("sqrt", (R,), "SQRT({0})", lambda x: x < 0),
    ("cbrt", (R,), "CBRT({0})", lambda _x: False),
    ("exp", (R,), "EXP({0})", lambda _x: False),
    *(
        (name, (R,), f"{name.upper()}(CASE WHEN isfinite({{0}}) THEN {{0}} END)", math.isinf)
        for name in ("sin", "cos", "tan")
    ),
    ("ln", (R,), "LN({0})", lambda x: x <= 0),
    ("log10", (R,), "LOG10({0})", lambda x: x <= 0),
    ("log2", (R,), "LOG2({0})", lambda x: x <= 0),
    ("log_base", (R, R), "LOG({0}, {1})", lambda b, x: b <= 0 or b == 1 or x <= 0),
    (
        "power",
        (R, R),
        "POWER({0}, {1})",
        lambda x, y: (x == 0 and y < 0) or (-math.inf < x < 0 and y not in (math.inf, -math.inf) and y % 1 != 0),
    ),
    ("power", (I, I), "{0} ^ {1}", lambda x, y: x == 0 and y < 0),
    ("degrees", (R,), "DEGREES({0})", lambda _x: False),
    ("radians", (R,), "RADIANS({0})", lambda _x: False),
]


def near(ours: Any, theirs: Any, ulps: int) -> bool:
    if ours is None or theirs is None or ours == theirs:
        return ours is theirs or ours == theirs
    return math.isfinite(ours) and math.isfinite(theirs) and abs(ours - theirs) <= ulps * math.ulp(ours)


@pytest.mark.parametrize(("name", "kinds", "sql", "undefined"), PLAIN)
def test_duckdbs_own_function(name: str, kinds: tuple[Type, ...], sql: str, undefined: Undefined):
    draw = random.Random(sql)
    pool = {kind: [*SAMPLES[kind], *draw.sample(randoms(kind), 300 if len(kinds) == 1 else 30)] for kind in kinds}
    args = [column(kind, list(dict.fromkeys(pool[kind]))) for kind in kinds]
    expr = made(name, *(arg.expr(f"a{place}") for place, arg in enumerate(args)))
    rows = rows_of(args)
    compared = 0
    texts = ["a0.v", "a1.v"]
    if name == "int_divide" and set(kinds) == {I}:  # where DuckDB fails at an overflow
        texts[0] = "NULLIF(a0.v, CASE WHEN a1.v = -1 THEN -9223372036854775807 - 1 END)"
    text = sql.format(*texts)
    found = selected(args, f"NULLIF({text}, 'NaN')" if expr.type is R else text)
    for row, ours, (theirs,) in zip(rows, computed(expr, rows), found, strict=True):
        if None not in row and undefined(*row):
            assert ours is None, f"{expr} of {row} is {ours}"
            continue
        assert near(ours, theirs, ULPS.get(name, 0)), f"{expr} of {row} is {ours!r}, in DuckDB {theirs!r}"
        compared += ours is not None
    assert compared > len(rows) / 5


def of_values(name: str, *values: float | None) -> Any:
    """The result for constants, by the kernel."""
    args = [Literal(value, R) for value in values]
    return computed(made(name, *args), [()])[0]


def test_what_is_no_number_is_null():
    assert of_values("power", -8.0, 0.5) is None
    assert of_values("power", 0.0, -1.0) is None
    assert of_values("power", -0.0, -1.0) is None
    assert of_values("power", 0.0, 0.0) == 1.0
    assert of_values("power", -8.0, 3.0) == -512.0
    assert of_values("power", 1e200, 2.0) == math.inf
    assert of_values("sqrt", -5e-324) is None
    assert of_values("sqrt", 0.0) == 0.0
    assert of_values("ln", 0.0) is None
    assert of_values("ln", math.inf) == math.inf
    assert of_values("log_base", 1.0, 5.0) is None
    assert of_values("log_base", 2.0, 8.0) == pytest.approx(3)
    assert of_values("log_base", math.inf, math.inf) is None
    assert of_values("exp", 1000.0) == math.inf
    assert of_values("divide", 1.0, 0.0) is None
    assert of_values("divide", 1.0, None) is None
    assert computed(made("pi"), [()]) == [math.pi]


@pytest.mark.parametrize(
    ("x", "digits", "rounded"),
    [
        (2**62, -18, 5 * 10**18),
        (2**62, -19, 0),
        (5 * 10**18 - 1, -19, 0),
        (5 * 10**18, -19, None),
        (-(2**63), -19, None),
        (-(2**63), -20, 0),
        (-(2**63), -18, -9 * 10**18),
        (-(2**63), 0, -(2**63)),
        (2**63 - 1, -1, None),
        (2**63 - 1, -2, 9_223_372_036_854_775_800),
        (4_500_000_000_000_000_000, -18, 5 * 10**18),
        (4_499_999_999_999_999_999, -18, 4 * 10**18),
        (-15, -1, -20),
        (-14, -1, -10),
        (2**53 + 1, -1, 9_007_199_254_740_990),
        (2**53 + 1, 5, 2**53 + 1),
        (7, -30, 0),
        (7, None, None),
    ],
)
def test_integers_are_rounded_as_integers(x: int, digits: int | None, rounded: int | None):
    expr = made("round", Column("x", I, Fact()), Literal(digits, I))
    assert expr.type is I
    assert computed(expr, [(x,)]) == [rounded]


def test_released_counts_are_rounded_to_integers():
    """A count with its noise is INTEGER, but held as a float."""
    count = Vector(np.array([12.7, -0.6, 3.0]))
    ten = Vector(np.broadcast_to(np.array([10]), 3))
    assert FUNCTIONS["greatest"].kernel(I, [count, Vector(np.zeros(3, dtype=np.int64))]).values.tolist() == [13, 0, 3]
    assert FUNCTIONS["int_divide"].kernel(I, [count, ten]).values.tolist() == [1, 0, 0]
    assert FUNCTIONS["sign"].kernel(I, [count]).values.tolist() == [1, -1, 1]


# CASE.


def first_true(conditions: Sequence[Any], values: Sequence[Any]) -> Any:
    return next((value for test, value in zip(conditions, values, strict=False) if test is True), values[-1])


@pytest.mark.parametrize("arms", [1, 2, 3, 7, 300])
@pytest.mark.parametrize("kind", [I, R, T, B])
@pytest.mark.parametrize("shape", ["columns", "constants", "both"])
def test_case_takes_the_first_that_is_true(arms: int, kind: Type, shape: str):
    draw = random.Random(f"{arms}{kind}{shape}")
    rows = 50
    tests = [[draw.choice((True, False, False, None)) for _ in range(rows)] for _ in range(arms)]
    cells = [
        [draw.choice(SAMPLES[kind])] * rows
        if shape == "constants" or (shape == "both" and arm % 2)
        else [draw.choice(SAMPLES[kind]) for _ in range(rows)]
        for arm in range(arms + 1)
    ]
    columns: list[list[Any]] = []
    args: list[Expr] = []
    for arm, values in enumerate(cells):
        if arm < arms:
            args.append(Column(f"t{arm}", B, Fact()))
            columns.append(tests[arm])
        constant = shape == "constants" or (shape == "both" and arm % 2 == 1)
        args.append(Literal(values[0], kind) if constant else Column(f"v{arm}", kind, Fact()))
        columns.append(values)
    found = computed(made("case", *args), list(zip(*columns, strict=True)))
    wanted = [first_true([test[row] for test in tests], [value[row] for value in cells]) for row in range(rows)]
    assert found == wanted


def test_case_wants_conditions_and_values_of_one_type():
    b, i, r, s = (Column(name, kind, Fact()) for name, kind in zip("birs", (B, I, R, T), strict=True))
    case = FUNCTIONS["case"]
    assert made("case", b, i, r).type is R
    assert made("case", b, i, b, r, i).type is R
    assert call(case, i, i, i) is None
    assert call(case, b, i, s) is None
    assert call(case, b, i, b, i) is None


# What fits what.

D, M = Type.DATE, Type.TIMESTAMP


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "in", "distinct", "not_distinct"])
@pytest.mark.parametrize("left", list(STORED))
@pytest.mark.parametrize("right", list(STORED))
def test_only_values_of_one_type_are_compared(name: str, left: Type, right: Type):
    fits = left is right or {left, right} == {I, R}
    found = call(FUNCTIONS[name], Column("x", left, Fact()), Column("y", right, Fact()))
    assert (found is not None) == fits
    assert found is None or found.type is B


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "int_divide", "modulo", "power"])
@pytest.mark.parametrize("other", [B, T, D, M, Type.OTHER])
def test_arithmetic_is_on_numbers(name: str, other: Type):
    x, y = Column("x", I, Fact()), Column("y", other, Fact())
    assert call(FUNCTIONS[name], x, x) is not None
    assert call(FUNCTIONS[name], x, y) is None
    assert call(FUNCTIONS[name], y, x) is None
    assert call(FUNCTIONS[name], y, y) is None


@pytest.mark.parametrize("name", ["least", "greatest", "coalesce", "nullif"])
@pytest.mark.parametrize("kind", list(STORED))
def test_choices_keep_the_type(name: str, kind: Type):
    x = Column("x", kind, Fact())
    assert made(name, x, x).type is kind
    assert call(FUNCTIONS[name], x, Column("y", Type.OTHER, Fact())) is None


def test_ranges_of_dates_are_ranges_of_days():
    early, late = (Column(name, D, Fact(Interval(lower, lower + 10), False)) for name, lower in (("a", 0), ("b", 100)))
    assert made("least", early, late).held.range == Interval(0, 10)
    assert made("greatest", early, late).held.range == Interval(100, 110)
    assert made("clamp", early, Literal(3, D), Literal(5, D)).held.range == Interval(3, 5)
    assert made("eq", early, late).held == Fact(Interval(0, 1), nullable=False, whole=True)


def test_nothing_known_stays_nothing_known():
    assert made("least", ANY_REAL, ANY_REAL).held.range == EVERYTHING
