"""FLOOR, CEIL, ROUND and TRUNC. All are monotone, so they map the ends of a range.

Rounding to whole numbers gives an INTEGER if the declared range fits, otherwise a REAL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpsql.plan.expressions import Array, Bools, Fact, Function, Vector
from dpsql.plan.functions.rules import (
    LARGEST_INTEGER,
    FactRule,
    Kernel,
    SqlRule,
    TypeRule,
    all_numeric,
    and_valid,
    as_type,
    away_from_zero,
    both_valid,
    strict_fact,
    without_nan,
)
from dpsql.plan.work import NUMBERS
from dpsql.schema import intervals
from dpsql.schema.columns import Type
from dpsql.schema.intervals import INT64, Interval

MOST_DIGITS = 309
"""More digits than +/-309 mean the same as +/-309: 10^309 is infinite as a float."""
POWERS = np.array([*(10.0**n for n in range(MOST_DIGITS)), math.inf])
EXACT_POWERS = 22
"""10^22 is the largest power of ten that is exact as a float."""
SPLITTER = 2.0**27 + 1
"""Veltkamp's constant: `x * SPLITTER` splits a float into two halves of 26 bits."""
_NEVER_OVERFLOWS = 1e290
_INTEGER_POWERS = np.array([10**n for n in range(20)], dtype=np.uint64)
_LEAST_SIZE = np.uint64(2**63)
"""Absolute value of the least integer."""

Rounding = Callable[[Any], Array]


def _half_away(value: float) -> int:
    """Return ROUND of one number, exactly."""
    whole = math.trunc(value)
    if abs(value - whole) < 0.5:
        return whole
    return whole + (1 if value > 0 else -1)


def _end_to_end(rounded: Callable[[float], int]) -> Callable[[Interval], Interval]:
    def range_of(held: Interval) -> Interval:
        lower, upper = (end if math.isinf(end) else rounded(end) for end in (held.lower, held.upper))
        return Interval(lower, upper)

    return range_of


def _whole_type(range_of: Callable[[Interval], Interval]) -> TypeRule:
    def rule(kinds: Sequence[Type], facts: Sequence[Fact]) -> Type | None:
        if not all_numeric(kinds):
            return None
        fits = kinds[0] is Type.INTEGER or range_of(facts[0].range).magnitude <= LARGEST_INTEGER
        return Type.INTEGER if fits else Type.REAL

    return rule


def _whole(rounding: Rounding) -> Kernel:
    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        values = vectors[0].values
        if values.dtype == np.int64:
            return vectors[0]
        rounded = rounding(values)
        if kind is Type.INTEGER:  # the range fits; other cells (of NULLs) are clipped
            rounded = np.clip(rounded, -LARGEST_INTEGER, LARGEST_INTEGER).astype(np.int64)
        return Vector(rounded, vectors[0].valid)

    return kernel


def _sql_whole(name: str) -> SqlRule:
    def sql(kinds: Sequence[Type], result: Type) -> str:
        if kinds[0] is Type.INTEGER:
            return "{0}"
        return f"TRY_CAST({name}({{0}}) AS BIGINT)" if result is Type.INTEGER else f"{name}({{0}})"

    return sql


# Rounding to digits.


def _digits_type(kinds: Sequence[Type], _facts: Sequence[Fact]) -> Type | None:
    return kinds[0] if kinds[0].numeric and kinds[1] is Type.INTEGER else None


def _digits_kernel(rounding: Rounding) -> Kernel:
    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        digits = as_type(vectors[1], Type.INTEGER)
        if digits.strides == (0,):  # a constant
            digits = digits[:1]
        digits = np.clip(digits, -MOST_DIGITS, MOST_DIGITS)
        values, valid = as_type(vectors[0], kind), both_valid(vectors)
        if kind is Type.INTEGER:
            rounded, fits = _integers_to_digits(values, digits, half=rounding is away_from_zero)
            return Vector(rounded, and_valid(fits, valid))
        return without_nan(_to_digits(values, digits, rounding), valid)

    return kernel


def _integers_to_digits(values: Array, digits: Array, *, half: bool) -> tuple[Array, Bools]:
    """Return the rounded integers, and which of them fit into 64 bits."""
    left = np.maximum(-digits, 0)
    power = _INTEGER_POWERS[np.minimum(left, 19)]
    size = np.where(values < 0, 0 - values.view(np.uint64), values.view(np.uint64))  # also of the least integer
    rest = np.where(left > 19, size, size % power)
    whole = size - rest
    if half:
        whole = whole + np.where((left <= 19) & (rest >= power - rest) & (rest > 0), power, np.uint64(0))
    fits = whole <= np.where(values < 0, _LEAST_SIZE, _LEAST_SIZE - np.uint64(1))
    rounded = np.where(fits, whole, np.uint64(0)).view(np.int64)
    return np.where(values < 0, -rounded, rounded), fits


def _to_digits(values: Array, digits: Array, rounding: Rounding) -> Array:
    """Round as DuckDB 2.0 does. A value is unchanged if the computation overflows; only ROUND gives 0 if a power of ten
    before the point overflows."""
    power, after = POWERS[np.abs(digits)], digits >= 0
    with np.errstate(all="ignore"):
        scaled = values * power
        right = rounding(scaled) / power
        if rounding is away_from_zero:
            below = _is_below_half(values, power, scaled) & (digits <= EXACT_POWERS)
            right = np.where(below, np.trunc(scaled) / power, right)
        right = np.where(np.isfinite(right), right, values)
        if after.all():
            return right
        left = rounding(values / power) * power
        zero = np.isinf(power) & np.isfinite(values) & (rounding is away_from_zero)
        left = np.where(zero, 0.0, np.where(np.isfinite(left), left, values))
        return np.where(after, right, left)


def _is_below_half(values: Array, power: Array, scaled: Array) -> Bools:
    """Return whether `scaled`, the float nearest to values * power, is a half although the exact product is nearer to
    zero.

    0.15 * 10 is 1.5 as a float, and 1.49999... exactly. The float's error is computed without rounding (Dekker 1971):
    no half overflows, and 10^0 to 10^22 are exact.
    """
    half = np.abs(scaled - np.trunc(scaled)) == 0.5
    high, low = halves_of(values)
    high_power, low_power = halves_of(power)
    error = ((high * high_power - scaled) + high * low_power + low * high_power) + low * low_power
    return np.asarray(half & (np.sign(error) == -np.sign(values)))


def halves_of(values: Array) -> tuple[Array, Array]:
    """Return two floats of at most 26 bits each whose sum is the value."""
    large = values * SPLITTER
    high = large - (large - values)
    return high, values - high


def _digits_fact(rounding: Rounding) -> FactRule:
    def rule(facts: Sequence[Fact]) -> Fact:
        values, digits = facts[0].range, facts[1].range
        reached = _at_constant(values, digits, rounding, whole=facts[0].whole) or _at_any(values, digits)
        nullable = any(each.nullable for each in facts)
        if not facts[0].whole:
            return Fact(reached, nullable)
        inside = reached.intersect(INT64)
        return Fact(inside or INT64, nullable or inside != reached).meaning(reached)

    return rule


def _at_constant(values: Interval, digits: Interval, rounding: Rounding, *, whole: bool) -> Interval | None:
    """Return the range from end to end: the kernel is monotone unless there is an overflow. None if that is
    possible."""
    if digits.lower != digits.upper or not digits.bounded:
        return None
    if not values.bounded or (whole and values.magnitude > LARGEST_INTEGER):
        return values if whole and digits.lower >= 0 else None
    places = np.array([max(-MOST_DIGITS, min(MOST_DIGITS, int(digits.lower)))])
    ends = np.array([values.lower, values.upper], dtype=np.int64 if whole else np.float64)
    if whole:
        (lower, upper), _ = _integers_to_digits(ends, places, half=rounding is away_from_zero)
        return Interval(int(lower), int(upper))
    if values.magnitude > _NEVER_OVERFLOWS or abs(int(places[0])) > 15:
        return None
    lower, upper = _to_digits(ends, places, rounding)
    return Interval(float(lower), float(upper))


def _at_any(values: Interval, digits: Interval) -> Interval:
    """Return the range of rounding to n digits, which keeps the sign, moves a value by at most 10^-n and at most
    doubles it."""
    doubled = intervals.rising(lambda end: 2 * end, Interval(min(values.lower, 0), max(values.upper, 0)))
    step = math.inf if digits.lower <= -MOST_DIGITS else 10.0 ** min(308, -digits.lower)
    near = intervals.add(intervals.rising(float, values), Interval(-step, step))
    return doubled.intersect(near) or doubled


def _sql_digits(name: str) -> SqlRule:
    def sql(kinds: Sequence[Type], _result: Type) -> str:
        limited = f"LEAST(GREATEST({{1}}, {-MOST_DIGITS}), {MOST_DIGITS})"  # LEAST and GREATEST would skip NULL
        rounded = f"{name}({{0}}, CAST(CASE WHEN {{1}} IS NOT NULL THEN {limited} END AS INTEGER))"
        if kinds[0] is not Type.INTEGER:
            return rounded
        return f"TRY_CAST({rounded.replace('{0}', 'CAST({0} AS HUGEINT)')} AS BIGINT)"

    return sql


def _with_digits(name: str, rounding: Rounding, rounded: Callable[[float], int]) -> Function:
    """Return a function of one argument, or with a second one: the number of digits after the point."""
    range_of = _end_to_end(rounded)
    whole = (_whole_type(range_of), strict_fact(range_of), _whole(rounding), _sql_whole(name))
    digits = (_digits_type, _digits_fact(rounding), _digits_kernel(rounding), _sql_digits(name))
    return Function(
        name.lower(), (1, 2),
        lambda kinds, facts: (whole, digits)[len(kinds) - 1][0](kinds, facts),
        lambda facts: (whole, digits)[len(facts) - 1][1](facts),
        lambda kind, vectors: (whole, digits)[len(vectors) - 1][2](kind, vectors),
        f"{name}({{args}})", "a number and a whole number of digits",
        sql=lambda kinds, result: (whole, digits)[len(kinds) - 1][3](kinds, result),
        work=NUMBERS,
        syntax=(f"{name.capitalize()}(this, decimals)",),
    )  # fmt: skip


def _to_whole(name: str, rounding: Rounding, rounded: Callable[[float], int]) -> Function:
    range_of = _end_to_end(rounded)
    return Function(
        name.lower(), (1, 1), _whole_type(range_of), strict_fact(range_of), _whole(rounding),
        f"{name}({{args}})", "a number",
        sql=_sql_whole(name),
        work=NUMBERS,
        syntax=(f"{name.capitalize()}(this)",),
    )  # fmt: skip


FUNCTIONS = (
    _to_whole("FLOOR", np.floor, math.floor),
    _to_whole("CEIL", np.ceil, math.ceil),
    _with_digits("ROUND", away_from_zero, _half_away),
    _with_digits("TRUNC", np.trunc, math.trunc),
)
