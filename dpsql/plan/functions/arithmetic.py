"""Arithmetic on numbers. Total: x / 0, x // 0 and x % 0 are NULL; overflow is decided from ranges (rules.py)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from dpsql.plan.expressions import Array, Fact, Function, Vector
from dpsql.plan.functions.rules import (
    LEAST_INTEGER,
    FactRule,
    Kernel,
    SqlRule,
    all_numeric,
    always,
    and_valid,
    any_nullable,
    as_type,
    both_valid,
    in_result_type,
    maybe_infinite,
    strict,
    strict_fact,
    unless_overflow,
    widest,
    without_nan,
)
from dpsql.plan.work import NUMBERS
from dpsql.schema import intervals
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval, Number, hull, point

_SMALLEST = math.ulp(0.0)
"""The smallest float above 0."""


def _nonzero_parts(divisor: Fact) -> list[Interval]:
    """Return the negative and the positive part of a divisor's range, without 0 (which gives NULL)."""
    step = 1 if divisor.whole else _SMALLEST
    sides = (Interval(-math.inf, -step), Interval(step, math.inf))
    return [part for side in sides if (part := divisor.range.intersect(side))]


def _quotient_fact(facts: Sequence[Fact], span: Interval) -> Fact:
    """Return the fact of a quotient: NULL if an argument is, if the divisor is 0, and if inf / inf is NaN."""
    nullable = any_nullable(facts) or 0 in facts[1].range or all(map(maybe_infinite, facts))
    return Fact(span, nullable)


def divide_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact of x / y; y may be 0, which gives NULL."""
    parts = _nonzero_parts(facts[1])
    held = hull(intervals.divide(facts[0].range, part) for part in parts) if parts else EVERYTHING
    return _quotient_fact(facts, held)


def _reaches_least(known: Fact) -> bool:
    """Return whether an integer may be the least one, which has no positive counterpart."""
    return known.whole and known.range.lower <= LEAST_INTEGER


def _int_divide_fact(facts: Sequence[Fact]) -> Fact:
    known = _quotient_range_fact(facts)
    overflows = _reaches_least(facts[0]) and facts[1].whole and -1 in facts[1].range
    return replace(known, nullable=True) if overflows else known


def _quotient_range_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact of x // y: truncation is monotone, so it maps the ends of the quotient to the ends of the
    result."""
    parts = _nonzero_parts(facts[1])
    if not parts:
        return _quotient_fact(facts, EVERYTHING)
    if all(each.whole for each in facts):
        top = (facts[0].range.lower, facts[0].range.upper)
        span = hull(point(_truncated(x, y)) for part in parts for y in (part.lower, part.upper) for x in top)
    else:
        quotient = divide_fact(facts).range
        span = Interval(*(end if math.isinf(end) else math.trunc(end) for end in (quotient.lower, quotient.upper)))
    return _quotient_fact(facts, span)


def _truncated(x: Number, y: Number) -> Number:
    """Return x // y of integers or infinities."""
    if math.isinf(y):
        return 0
    if math.isinf(x):
        return x if y > 0 else -x
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _modulo_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact of x % y: |x % y| is at most |x| and less than |y|, and has the sign of x. inf % y is NaN."""
    top, bottom = (intervals.as_floats(each.range) for each in facts)
    size = bottom.magnitude
    if size >= 1 and all(each.whole for each in facts):
        size -= 1
    held = Interval(max(top.lower, -size) if top.lower < 0 else 0, min(top.upper, size) if top.upper > 0 else 0)
    nullable = any_nullable(facts) or 0 in facts[1].range or maybe_infinite(facts[0])
    return Fact(held, nullable)


def _nonzero(kind: Type, vectors: Sequence[Vector]) -> tuple[Any, Any, Any]:
    """Return the dividend, the divisor with 1 instead of 0, and a mask of results that are not NULL."""
    top, bottom = (as_type(each, kind) for each in vectors)
    if len(bottom) and bottom.strides == (0,) and bottom[0] != 0:  # NumPy divides faster by a constant
        return top, bottom[0], both_valid(vectors)
    usable = bottom != 0
    return top, np.where(usable, bottom, 1), and_valid(usable, both_valid(vectors))


def _divide(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    top, bottom, valid = _nonzero(Type.REAL, vectors)
    with np.errstate(all="ignore"):
        return without_nan(top / bottom, valid)


def _int_divide(kind: Type, vectors: Sequence[Vector]) -> Vector:
    top, bottom, valid = _nonzero(kind, vectors)
    with np.errstate(all="ignore"):
        if kind is Type.INTEGER and np.ndim(bottom) == 0 and bottom > 0 and top.min(initial=0) >= 0:
            return Vector(top // bottom, valid)
        if kind is Type.INTEGER:
            quotient = top // bottom  # rounded down
            up = ((top < 0) != (bottom < 0)) & (quotient * bottom != top)
            fits = (top != LEAST_INTEGER) | (bottom != -1)
            return Vector(quotient + up, and_valid(fits, valid))
        return without_nan(np.trunc(top / bottom), valid)


def _modulo(kind: Type, vectors: Sequence[Vector]) -> Vector:
    top, bottom, valid = _nonzero(kind, vectors)
    with np.errstate(all="ignore"):
        return without_nan(np.fmod(top, bottom), valid)


def _sql_int_divide(kinds: Sequence[Type], result: Type) -> str:
    """Return the SQL of x // y: DuckDB's // does not truncate floats, and fails if an integer overflows, which only -1
    can cause. An optimizer drops the comparison if the divisor is a constant."""
    if result is Type.INTEGER:
        return f"CASE WHEN {{1}} = -1 THEN {_SQL_NEGATED} ELSE {{0}} // NULLIF(NULLIF({{1}}, 0), -1) END"
    return in_result_type("TRUNC({0} / NULLIF({1}, 0))")(kinds, result)


def _opposite(operation: Callable[..., Array]) -> Kernel:
    """Return the kernel of -x or ABS(x): NULL for the least integer."""

    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        result = strict(operation)(kind, vectors)
        values = vectors[0].values
        if kind is not Type.INTEGER or values.min(initial=0) > LEAST_INTEGER:
            return result
        return Vector(result.values, and_valid(values != LEAST_INTEGER, result.valid))

    return kernel


def _opposite_fact(range_of: Callable[[Interval], Interval]) -> FactRule:
    return lambda facts: Fact(range_of(facts[0].range), facts[0].nullable or _reaches_least(facts[0]))


_SQL_NEGATED = "TRY_CAST(- CAST({0} AS HUGEINT) AS BIGINT)"


def _sql_opposite(real: str, whole: str) -> SqlRule:
    return lambda kinds, _result: whole if kinds[0] is Type.INTEGER else real


def _sign(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    return Vector(np.sign(vectors[0].values).astype(np.int64), vectors[0].valid)


def _sign_range(a: Interval) -> Interval:
    lower, upper = ((end > 0) - (end < 0) for end in (a.lower, a.upper))
    return Interval(lower, upper)


def _both_infinite(x: Fact, y: Fact) -> bool:
    """Return whether both may be infinite: inf - inf is NaN."""
    return maybe_infinite(x) and maybe_infinite(y)


def _zero_times_infinity(x: Fact, y: Fact) -> bool:
    return (maybe_infinite(x) and 0 in y.range) or (maybe_infinite(y) and 0 in x.range)


FUNCTIONS = (
    Function("add", (2, 2), unless_overflow(intervals.add), strict_fact(intervals.add, _both_infinite),
             strict(np.add), "{0} + {1}", "numbers",
             work=NUMBERS,
             sql=in_result_type("{0} + {1}"),
             syntax=("Add(this, expression)",)),
    Function("subtract", (2, 2), unless_overflow(intervals.subtract), strict_fact(intervals.subtract, _both_infinite),
             strict(np.subtract), "{0} - {1}", "numbers",
             work=NUMBERS,
             sql=in_result_type("{0} - {1}"),
             syntax=("Sub(this, expression)",)),
    Function("multiply", (2, 2), unless_overflow(intervals.multiply),
             strict_fact(intervals.multiply, _zero_times_infinity), strict(np.multiply), "{0} * {1}", "numbers",
             work=NUMBERS,
             sql=in_result_type("{0} * {1}"),
             syntax=("Mul(this, expression)",)),
    # a number of steps and the length of a step; messages show only the first, the column of a window
    Function("of_steps", (2, 2), unless_overflow(intervals.multiply),
             strict_fact(intervals.multiply, _zero_times_infinity), strict(np.multiply), itemgetter(0), "numbers",
             work=NUMBERS,
             sql=in_result_type("{0} * {1}")),
    Function("divide", (2, 2), always(Type.REAL), divide_fact, _divide, "{0} / {1}", "numbers",
             work=NUMBERS,
             sql=in_result_type("{0} / NULLIF({1}, 0)"),
             syntax=("Div(this, expression)",)),
    Function("int_divide", (2, 2), widest, _int_divide_fact, _int_divide, "{0} // {1}", "numbers",
             work=NUMBERS,
             sql=_sql_int_divide,
             syntax=("IntDiv(this, expression)",)),
    Function("modulo", (2, 2), widest, _modulo_fact, _modulo, "{0} % {1}", "numbers",
             work=NUMBERS,
             sql=in_result_type("{0} % NULLIF({1}, 0)"),
             syntax=("Mod(this, expression)",)),
    Function("negate", (1, 1), widest, _opposite_fact(intervals.negate), _opposite(np.negative), "-{0}", "a number",
             work=NUMBERS,
             sql=_sql_opposite("- {0}", _SQL_NEGATED),  # separated, since two adjacent minus signs begin a comment
             syntax=("Neg(this)",)),
    Function("abs", (1, 1), widest, _opposite_fact(intervals.absolute), _opposite(np.abs), "ABS({args})", "a number",
             work=NUMBERS,
             sql=_sql_opposite("ABS({0})", "TRY_CAST(ABS(CAST({0} AS HUGEINT)) AS BIGINT)"),
             syntax=("Abs(this)",)),
    Function("sign", (1, 1), lambda k, _f: Type.INTEGER if all_numeric(k) else None,
             lambda facts: Fact(_sign_range(facts[0].range), facts[0].nullable), _sign, "SIGN({args})", "a number",
             work=NUMBERS,
             sql="CAST(SIGN({0}) AS BIGINT)",
             syntax=("Sign(this)",)),
)  # fmt: skip
