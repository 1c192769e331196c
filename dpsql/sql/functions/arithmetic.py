"""Arithmetic on numbers. Total: x / 0, x // 0 and x % 0 are NULL; overflow is decided from ranges (rules.py)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpsql import intervals
from dpsql.intervals import EVERYTHING, Interval
from dpsql.schema import Type
from dpsql.sql.expressions import Array, Fact, Function, Vector
from dpsql.sql.functions.rules import (
    LARGEST_INTEGER,
    all_numeric,
    always,
    as_type,
    both_valid,
    strict,
    strict_fact,
    unless_overflow,
    widest,
    without_nan,
)


def _divide_fact(facts: Sequence[Fact]) -> Fact:
    return Fact(intervals.divide(facts[0].range, facts[1].range), nullable=True)


def _nonzero(kind: Type, vectors: Sequence[Vector]) -> tuple[Any, Any, Any]:
    """Dividend, divisor with 1 in place of 0, and where the result is not NULL."""
    top, bottom = (as_type(each, kind) for each in vectors)
    usable = bottom != 0
    valid = both_valid(vectors)
    return top, np.where(usable, bottom, 1), usable if valid is None else usable & valid


def _divide(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    top, bottom, valid = _nonzero(Type.REAL, vectors)
    with np.errstate(all="ignore"):
        return without_nan(top / bottom, valid)


def _int_divide(kind: Type, vectors: Sequence[Vector]) -> Vector:
    top, bottom, valid = _nonzero(kind, vectors)
    with np.errstate(all="ignore"):
        if kind is Type.INTEGER:
            quotient = np.abs(top) // np.abs(bottom)
            return Vector(np.where((top < 0) != (bottom < 0), -quotient, quotient), valid)
        return without_nan(np.trunc(top / bottom), valid)


def _modulo(kind: Type, vectors: Sequence[Vector]) -> Vector:
    top, bottom, valid = _nonzero(kind, vectors)
    with np.errstate(all="ignore"):
        return without_nan(np.fmod(top, bottom), valid)


def _int_divide_fact(facts: Sequence[Fact]) -> Fact:
    """|x // y| is at most |x| where y is never between -1 and 1, 0 apart (which gives NULL)."""
    top, bottom = facts[0].range, facts[1].range
    if facts[1].whole or bottom.lower >= 1 or bottom.upper <= -1:
        return Fact(Interval(-top.magnitude, top.magnitude), nullable=True)
    return Fact(EVERYTHING, nullable=True)


def _modulo_fact(facts: Sequence[Fact]) -> Fact:
    """|x % y| is at most |x| and at most |y|, and has the sign of x."""
    top, size = facts[0].range, min(facts[0].range.magnitude, facts[1].range.magnitude)
    return Fact(Interval(-size if top.lower < 0 else 0, size if top.upper > 0 else 0), nullable=True)


def _whole_range(held: Interval) -> Interval:
    """Floor, ceiling and rounding move a value by at most 1, and not past an integer bound."""
    lower = held.lower if math.isinf(held.lower) else math.floor(held.lower)
    upper = held.upper if math.isinf(held.upper) else math.ceil(held.upper)
    return Interval(lower, upper)


def _whole_type(kinds: Sequence[Type], facts: Sequence[Fact]) -> Type | None:
    if not all_numeric(kinds):
        return None
    if kinds[0] is Type.INTEGER or _whole_range(facts[0].range).magnitude <= LARGEST_INTEGER:
        return Type.INTEGER
    return Type.REAL


def _whole(operation: Any) -> Any:
    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        values = vectors[0].values
        if values.dtype == np.int64:
            return vectors[0]
        with np.errstate(all="ignore"):
            rounded = operation(values)
        if kind is Type.INTEGER:  # the range says that it fits; a cell that does not (a NULL's) is made to
            rounded = np.clip(rounded, -LARGEST_INTEGER, LARGEST_INTEGER).astype(np.int64)
        return Vector(rounded, vectors[0].valid)

    return kernel


def _away_from_zero(values: Any) -> Array:
    """ROUND: halves away from zero, as SQL has it."""
    whole = np.trunc(values)
    return np.asarray(whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0))


def _round_type(kinds: Sequence[Type], facts: Sequence[Fact]) -> Type | None:
    if len(kinds) == 1:
        return _whole_type(kinds, facts)
    return kinds[0] if kinds[0].numeric and kinds[1] is Type.INTEGER else None


def _round_fact(facts: Sequence[Fact]) -> Fact:
    if len(facts) == 1:
        return Fact(_whole_range(facts[0].range), facts[0].nullable)
    # Rounding to n digits (n limited to +/-300 by the kernel) moves a value by at most half of 10^-n.
    step = 10.0 ** max(-300.0, min(300.0, -float(facts[1].range.lower)))
    return Fact(intervals.add(facts[0].range, Interval(-step, step)), nullable=True)


def _round(kind: Type, vectors: Sequence[Vector]) -> Vector:
    if len(vectors) == 1:
        return _whole(_away_from_zero)(kind, vectors)  # type: ignore[no-any-return]
    digits = np.clip(vectors[1].values, -300, 300).astype(np.float64)
    values = as_type(vectors[0], Type.REAL)
    with np.errstate(all="ignore"):
        scaled = np.where(
            digits >= 0,
            _away_from_zero(values * 10.0**digits) / 10.0**digits,
            _away_from_zero(values / 10.0**-digits) * 10.0**-digits,
        )
        rounded = np.where(np.isfinite(scaled), scaled, values)
    if kind is Type.INTEGER:
        rounded = np.clip(rounded, -LARGEST_INTEGER, LARGEST_INTEGER).astype(np.int64)
    return without_nan(rounded, both_valid(vectors))


FUNCTIONS = (
    Function("add", (2, 2), unless_overflow(intervals.add), strict_fact(intervals.add), strict(np.add),
             "{0} + {1}", "numbers",
             syntax=("Add(this, expression)",)),
    Function("subtract", (2, 2), unless_overflow(intervals.subtract), strict_fact(intervals.subtract),
             strict(np.subtract), "{0} - {1}", "numbers",
             syntax=("Sub(this, expression)",)),
    Function("multiply", (2, 2), unless_overflow(intervals.multiply), strict_fact(intervals.multiply),
             strict(np.multiply), "{0} * {1}", "numbers",
             syntax=("Mul(this, expression)",)),
    Function("divide", (2, 2), always(Type.REAL), _divide_fact, _divide, "{0} / {1}", "numbers",
             syntax=("Div(this, expression)",)),
    Function("int_divide", (2, 2), widest, _int_divide_fact, _int_divide, "{0} // {1}", "numbers",
             syntax=("IntDiv(this, expression)",)),
    Function("modulo", (2, 2), widest, _modulo_fact, _modulo, "{0} % {1}", "numbers",
             syntax=("Mod(this, expression)",)),
    Function("negate", (1, 1), widest, strict_fact(intervals.negate), strict(np.negative), "-{0}", "a number",
             syntax=("Neg(this)",)),
    Function("abs", (1, 1), widest, strict_fact(intervals.absolute), strict(np.abs), "ABS({args})", "a number",
             syntax=("Abs(this)",)),
    Function("floor", (1, 1), _whole_type, lambda f: Fact(_whole_range(f[0].range), f[0].nullable),
             _whole(np.floor), "FLOOR({args})", "a number",
             syntax=("Floor(this)",)),
    Function("ceil", (1, 1), _whole_type, lambda f: Fact(_whole_range(f[0].range), f[0].nullable),
             _whole(np.ceil), "CEIL({args})", "a number",
             syntax=("Ceil(this)",)),
    Function("round", (1, 2), _round_type, _round_fact, _round, "ROUND({args})",
             "a number and a whole number of digits",
             syntax=("Round(this, decimals)",)),
)  # fmt: skip
