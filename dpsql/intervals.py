"""Interval arithmetic over values: where the result of an expression must lie.

Integers stay integers and are exact; a float bound is moved outward by one unit in the last place, so that the float
that a kernel computes for any inputs inside lies inside (each operation is monotone and rounded to nearest).
Source: Moore, Kearfott, Cloud, "Introduction to Interval Analysis", SIAM 2009, chapters 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

Number = int | float
INFINITY = math.inf


@dataclass(frozen=True, slots=True)
class Interval:
    """All values between `lower` and `upper`, both included; either may be infinite, none is NaN."""

    lower: Number
    upper: Number

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ValueError("an interval needs lower <= upper")

    @property
    def bounded(self) -> bool:
        return self.lower > -INFINITY and self.upper < INFINITY

    @property
    def magnitude(self) -> Number:
        return max(abs(self.lower), abs(self.upper))

    def __contains__(self, value: Number) -> bool:
        return self.lower <= value <= self.upper

    def intersect(self, other: Interval) -> Interval | None:
        """The common part, None where there is none."""
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        return Interval(lower, upper) if lower <= upper else None

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"


EVERYTHING = Interval(-INFINITY, INFINITY)
BOOLEAN = Interval(0, 1)


def point(value: Number) -> Interval:
    return Interval(value, value)


def hull(intervals: Iterable[Interval]) -> Interval:
    """The least interval that holds them all."""
    held = list(intervals)
    return Interval(min(each.lower for each in held), max(each.upper for each in held))


def add(a: Interval, b: Interval) -> Interval:
    return _outward([_sum(a.lower, b.lower), _sum(a.upper, b.upper)])


def subtract(a: Interval, b: Interval) -> Interval:
    return add(a, negate(b))


def negate(a: Interval) -> Interval:
    return Interval(-a.upper, -a.lower)


def multiply(a: Interval, b: Interval) -> Interval:
    return _outward([_product(x, y) for x in (a.lower, a.upper) for y in (b.lower, b.upper)])


def divide(a: Interval, b: Interval) -> Interval:
    """a / b where b is never 0 (a zero divisor gives NULL, which is no value)."""
    if b.lower <= 0 <= b.upper:
        return _divide_through_zero(a, b)
    return _outward([_quotient(x, y) for x in (a.lower, a.upper) for y in (b.lower, b.upper)])


def _divide_through_zero(a: Interval, b: Interval) -> Interval:
    # Divisors of either sign come as near to 0 as floats do; only the sign of the quotient can still be known.
    one_signed = a.lower >= 0 and b.lower >= 0
    return Interval(0, INFINITY) if one_signed else EVERYTHING


def absolute(a: Interval) -> Interval:
    if a.lower >= 0:
        return a
    return negate(a) if a.upper <= 0 else Interval(0, a.magnitude)


def least(a: Interval, b: Interval) -> Interval:
    return Interval(min(a.lower, b.lower), min(a.upper, b.upper))


def greatest(a: Interval, b: Interval) -> Interval:
    return Interval(max(a.lower, b.lower), max(a.upper, b.upper))


def _outward(ends: list[Number]) -> Interval:
    if any(math.isnan(end) for end in ends):  # inf - inf: nothing is known
        return EVERYTHING
    lower, upper = min(ends), max(ends)
    return Interval(_down(lower), _up(upper))


def _down(value: Number) -> Number:
    return value if isinstance(value, int) or math.isinf(value) else math.nextafter(value, -INFINITY)


def _up(value: Number) -> Number:
    return value if isinstance(value, int) or math.isinf(value) else math.nextafter(value, INFINITY)


def _sum(x: Number, y: Number) -> Number:
    return x + y if isinstance(x, int) and isinstance(y, int) else _float(x) + _float(y)


def _product(x: Number, y: Number) -> Number:
    if x == 0 or y == 0:
        return 0 if isinstance(x, int) and isinstance(y, int) else 0.0  # 0 * inf: NaN is NULL, no value
    return x * y if isinstance(x, int) and isinstance(y, int) else _float(x) * _float(y)


def _quotient(x: Number, y: Number) -> float:
    if math.isinf(y):
        return 0.0
    return _float(x) / _float(y)


def _float(value: Number) -> float:
    """The nearest float; beyond the largest one, infinity of that sign."""
    try:
        return float(value)
    except OverflowError:
        return INFINITY if value > 0 else -INFINITY
