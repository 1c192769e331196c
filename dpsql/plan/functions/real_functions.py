"""Roots, exponentials, logarithms and powers, computed in floats. Results that are not real numbers are NULL, as is 0
to a negative power; a result beyond the largest float is infinity, as in DuckDB.

Ranges are computed from end to end and widened by some units in the last place, since neither the library here nor
another engine's is exact to the last bit (intervals.rising).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpsql.plan.expressions import Bools, Fact, Function, Vector
from dpsql.plan.functions.arithmetic import divide_fact
from dpsql.plan.functions.cellwise import by_cell
from dpsql.plan.functions.rules import (
    FactRule,
    Kernel,
    always,
    and_valid,
    any_nullable,
    as_type,
    both_valid,
    in_result_type,
    strict_fact,
    without_nan,
)
from dpsql.plan.row_local import elementary
from dpsql.plan.work import NUMBERS
from dpsql.schema import intervals
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval, Number, hull, negate, point

_SMALLEST = math.ulp(0.0)
_NEGATIVE, _POSITIVE = Interval(-math.inf, 0), Interval(0, math.inf)
_NUMBERS = always(Type.REAL)


def _cells(operation: np.ufunc, defined: Callable[[Any], Bools] | None = None) -> Kernel:
    """Return the kernel of a function of one float, NULL where undefined."""

    def kernel(_kind: Type, vectors: Sequence[Vector]) -> Vector:
        values, valid = as_type(vectors[0], Type.REAL), vectors[0].valid
        if defined is not None:
            fits = defined(values)
            if not fits.all():
                values, valid = np.where(fits, values, 1.0), and_valid(fits, valid)
        with np.errstate(all="ignore"):
            return Vector(elementary(operation, values), valid)

    return kernel


def _rising(function: Callable[[float], float], within: Interval | None = None) -> FactRule:
    """Return the fact rule of a monotone function with values in `within`."""

    def range_of(held: Interval) -> Interval:
        found = intervals.rising(function, held)
        return found if within is None else found.intersect(within) or within

    return strict_fact(range_of)


def _sqrt_fact(facts: Sequence[Fact]) -> Fact:
    """Return the exact fact of SQRT: square roots are rounded to nearest on every machine."""
    held = facts[0].range.intersect(_POSITIVE)
    return Fact(intervals.rising(math.sqrt, held or point(0), ulps=0), facts[0].nullable or held != facts[0].range)


def _positive(fact: Fact) -> Interval | None:
    """Return the part of a range above 0, which begins at the first integer or float."""
    return fact.range.intersect(Interval(1 if fact.whole else _SMALLEST, math.inf))


def _log_fact(function: Callable[[float], float]) -> FactRule:
    def rule(facts: Sequence[Fact]) -> Fact:
        held = _positive(facts[0])
        found = intervals.rising(function, held or point(1))
        return Fact(found, facts[0].nullable or held != facts[0].range)

    return rule


_log10_fact = _log_fact(math.log10)


def _log_base_fact(facts: Sequence[Fact]) -> Fact:
    base, value = (_log10_fact([each]) for each in facts)
    return divide_fact([value, base])


def _log_base(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    base, value = (as_type(each, Type.REAL) for each in vectors)
    fits = (base > 0) & (base != 1) & (value > 0)
    with np.errstate(all="ignore"):
        value, base = np.where(fits, value, 1.0), np.where(fits, base, 10.0)
        found = elementary(np.log10, value) / elementary(np.log10, base)
    return without_nan(found, and_valid(fits, both_valid(vectors)))


def _power_fact(facts: Sequence[Fact]) -> Fact:
    base, exponent = facts[0].range, facts[1].range
    known = intervals.float_of(exponent.lower) if exponent.lower == exponent.upper and exponent.bounded else None
    whole = facts[1].whole or (known is not None and known == math.trunc(known))
    undefined = (base.lower < 0 and not whole) or (0 in base and exponent.lower < 0)
    positive, negative = base.intersect(_POSITIVE), base.intersect(_NEGATIVE)
    parts = []
    if positive is not None:
        parts.append(_power(positive, exponent))
    if negative is not None and negative.lower < 0:
        size = _power(negate(negative), exponent)
        odd = whole and known is not None and known % 2 == 1
        even = whole and known is not None and known % 2 == 0
        parts += [size] * (not odd) + [negate(size)] * (not even)
    return Fact(hull(parts), any_nullable(facts) or undefined)


def _power(base: Interval, exponent: Interval) -> Interval:
    """Return x^y = exp(y ln x) for 0 <= x: y ln x is linear in either, so its extremes are at the corners."""
    corners = [_pow(x, y) for x in (base.lower, base.upper) for y in (exponent.lower, exponent.upper)]
    return hull(map(intervals.around, corners)).intersect(_POSITIVE) or _POSITIVE


def _pow(x: Number, y: Number) -> float:
    """Return the power; if undefined, its limit for x towards 0."""
    if x == 0 and y < 0:
        return math.inf
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.inf


def _power_kernel(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    base, exponent = (as_type(each, Type.REAL) for each in vectors)
    fits = (base != 0) | (exponent >= 0)
    with np.errstate(all="ignore"):
        found = elementary(np.power, base, exponent)
    return without_nan(found, and_valid(fits, both_valid(vectors)))


def _wave(function: Callable[[float], float]) -> Kernel:
    """Return a trigonometric function's kernel, by the C library for each cell: NumPy's versions process several cells
    together. NULL for an infinity."""
    return by_cell(lambda value: function(value) if math.isfinite(value) else None)


def _wave_fact(span: Interval) -> FactRule:
    def rule(facts: Sequence[Fact]) -> Fact:
        return Fact(span, facts[0].nullable or not facts[0].range.bounded)

    return rule


def _pi(_kind: Type, _vectors: Sequence[Vector]) -> Vector:
    """Return one cell: a function without arguments is folded into a literal."""
    return Vector(np.array([math.pi]))


# A value at or below 0 becomes 0, and so NULL; so does NULL, which GREATEST skips. So the value is written only once.
_SQL_POSITIVE = "NULLIF(GREATEST({0}, 0), 0)"
_SQL_FINITE = "CASE WHEN ABS({{0}}) <= 1.7976931348623157e308 THEN {}({{0}}) END"
_SQL_LOG10 = f"LOG10({_SQL_POSITIVE})"
_SQL_NOT_NEGATIVE = f"NULLIF(GREATEST({{0}}, CAST('-{_SMALLEST}' AS DOUBLE)), CAST('-{_SMALLEST}' AS DOUBLE))"


def _function(name: str, fact_of: FactRule, kernel: Kernel, sql: str, *syntax: str) -> Function:
    return Function(
        name, (1, 1), _NUMBERS, fact_of, kernel, f"{name.upper()}({{args}})", "a number",
        work=NUMBERS,
        sql=in_result_type(sql),
        syntax=syntax,
    )  # fmt: skip


FUNCTIONS = (
    _function("sqrt", _sqrt_fact, _cells(np.sqrt, lambda x: x >= 0), f"SQRT({_SQL_NOT_NEGATIVE})", "Sqrt(this)"),
    _function("cbrt", _rising(math.cbrt), _cells(np.cbrt), "CBRT({0})", "Cbrt(this)"),
    _function("exp", _rising(math.exp, _POSITIVE), _cells(np.exp), "EXP({0})", "Exp(this)"),
    _function("ln", _log_fact(math.log), _cells(np.log, lambda x: x > 0), f"LN({_SQL_POSITIVE})", "Ln(this)"),
    _function("log10", _log10_fact, _cells(np.log10, lambda x: x > 0), _SQL_LOG10, "LOG10"),
    _function("log2", _log_fact(math.log2), _cells(np.log2, lambda x: x > 0), f"LOG2({_SQL_POSITIVE})", "LOG2"),
    Function("log_base", (2, 2), _NUMBERS, _log_base_fact, _log_base, "LOG({args})", "a base and a number",
             work=NUMBERS,
             sql=in_result_type(f"{_SQL_LOG10.replace('{0}', '{1}')} / NULLIF({_SQL_LOG10}, 0)")),
    Function("power", (2, 2), _NUMBERS, _power_fact, _power_kernel, "POWER({args})", "numbers",
             work=NUMBERS,
             sql=in_result_type("CASE WHEN {0} <> 0 OR {1} >= 0 THEN POWER({0}, {1}) END"),
             syntax=("Pow(this, expression)",)),
    _function("degrees", _rising(math.degrees), _cells(np.degrees), "DEGREES({0})", "Degrees(this)"),
    _function("radians", _rising(math.radians), _cells(np.radians), "RADIANS({0})", "Radians(this)"),
    *(_function(name, _wave_fact(span), _wave(function), _SQL_FINITE.format(name.upper()), f"{name.capitalize()}(this)")
      for name, function, span in (("sin", math.sin, Interval(-1, 1)), ("cos", math.cos, Interval(-1, 1)),
                                   ("tan", math.tan, EVERYTHING))),
    Function("pi", (0, 0), _NUMBERS, lambda _facts: Fact(point(math.pi), nullable=False), _pi, "PI()", "nothing",
             work=NUMBERS,
             sql="PI()",
             syntax=("Pi()",)),
)  # fmt: skip
