"""Interval arithmetic: the range of an expression's result.

Integers stay integers and are exact up to 2^53; beyond that, ends are moved outward to the next integer that is a
float, so that a range also holds for its values as floats. A float bound is moved outward by one unit in the last
place, so that the float that a kernel computes for any inputs inside lies inside (each operation is monotone and
rounded to nearest). Source: Moore, Kearfott, Cloud, "Introduction to Interval Analysis", SIAM 2009, chapters 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from dpsql.schema.frozen import dataclass

Number = int | float
INFINITY = math.inf
_LARGEST_EXACT = 2**53
"""Every integer up to this is a float."""
_LIBM_ULPS = 8
"""Error bound of mathematics library functions, here and in the kernel together. NumPy's vectorised ones are within 4
units in the last place, scalar ones within 1, and neither is proven to be monotone to the last bit."""


@dataclass(frozen=True, slots=True)
class Interval:
    """All values between `lower` and `upper`, both included; either may be infinite, neither is NaN."""

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

    @property
    def middle(self) -> float:
        """Midpoint of a bounded interval, as a double."""
        return float(self.lower) / 2 + float(self.upper) / 2

    def __contains__(self, value: Number) -> bool:
        return self.lower <= value <= self.upper

    def intersect(self, other: Interval) -> Interval | None:
        """Return the common part, None if there is none."""
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        return Interval(lower, upper) if lower <= upper else None

    def __str__(self) -> str:
        return f"[{self.lower}, {self.upper}]"


INT64 = Interval(-(2**63), 2**63 - 1)
"""Values of an INTEGER: signed 64 bits."""
INT128 = Interval(-(2**127), 2**128 - 1)
"""Whole numbers of 128 bits, signed or unsigned."""


EVERYTHING = Interval(-INFINITY, INFINITY)
BOOLEAN = Interval(0, 1)


def point(value: Number) -> Interval:
    return Interval(value, value)


def hull(intervals: Iterable[Interval]) -> Interval:
    """Return the least interval that contains all of them."""
    held = list(intervals)
    return Interval(min(each.lower for each in held), max(each.upper for each in held))


def as_floats(a: Interval) -> Interval:
    """Return the range of the values as floats: integers beyond 2^53 may be rounded."""
    return Interval(-_float_up(-a.lower), _float_up(a.upper))


def add(a: Interval, b: Interval) -> Interval:
    a, b = as_floats(a), as_floats(b)
    return _outward([_sum(a.lower, b.lower), _sum(a.upper, b.upper)])


def subtract(a: Interval, b: Interval) -> Interval:
    return add(a, negate(b))


def negate(a: Interval) -> Interval:
    return Interval(-a.upper, -a.lower)


def multiply(a: Interval, b: Interval) -> Interval:
    a, b = as_floats(a), as_floats(b)
    return _outward([_product(x, y) for x in (a.lower, a.upper) for y in (b.lower, b.upper)])


def divide(a: Interval, b: Interval) -> Interval:
    """Return the range of a / b, without zero divisors (they give NULL, which is not a value)."""
    if b.lower <= 0 <= b.upper:
        return _divide_through_zero(a, b)
    return _outward([_quotient(x, y) for x in (a.lower, a.upper) for y in (b.lower, b.upper)])


def _divide_through_zero(a: Interval, b: Interval) -> Interval:
    # Divisors of either sign can be arbitrarily near to 0 as floats; only the sign of the quotient can be known.
    one_signed = a.lower >= 0 and b.lower >= 0
    return Interval(0, INFINITY) if one_signed else EVERYTHING


def around(value: float, ulps: int = _LIBM_ULPS) -> Interval:
    """Return the range of a computed value on other machines: some units in the last place below or above."""
    lower = upper = value
    for _ in range(ulps):
        lower, upper = math.nextafter(lower, -INFINITY), math.nextafter(upper, INFINITY)
    return Interval(lower, upper)


def rising(function: Callable[[float], float], a: Interval, ulps: int = _LIBM_ULPS) -> Interval:
    """Return the range over `a` of a monotone function that is accurate to some units in the last place."""
    return hull(around(_computed(function, float_of(end)), ulps) for end in (a.lower, a.upper))


def _computed(function: Callable[[float], float], value: float) -> float:
    """Return the function's value; an overflow of a rising function is infinity."""
    try:
        return function(value)
    except OverflowError:
        return INFINITY


def absolute(a: Interval) -> Interval:
    if a.lower >= 0:
        return a
    return negate(a) if a.upper <= 0 else Interval(0, a.magnitude)


def least(a: Interval, b: Interval) -> Interval:
    return Interval(min(a.lower, b.lower), min(a.upper, b.upper))


def greatest(a: Interval, b: Interval) -> Interval:
    return Interval(max(a.lower, b.lower), max(a.upper, b.upper))


def _outward(ends: list[Number]) -> Interval:
    if any(isinstance(end, float) and math.isnan(end) for end in ends):  # inf - inf: nothing is known
        return EVERYTHING
    lower, upper = min(ends), max(ends)
    return Interval(-_up(-lower), _up(upper))


def _up(value: Number) -> Number:
    if isinstance(value, int):
        return _float_up(value)
    # 0 stays: a sum, product or quotient with end 0 never becomes a float of the other sign.
    return value if math.isinf(value) or value == 0 else math.nextafter(value, INFINITY)


def _float_up(value: Number) -> Number:
    """Return the value, or the next integer above it that is a float; infinity beyond the largest float."""
    if not isinstance(value, int) or abs(value) <= _LARGEST_EXACT:
        return value
    near = float_of(value)
    above = near if near >= value else math.nextafter(near, INFINITY)
    return above if math.isinf(above) else int(above)


def _sum(x: Number, y: Number) -> Number:
    return x + y if isinstance(x, int) and isinstance(y, int) else float_of(x) + float_of(y)


def _product(x: Number, y: Number) -> Number:
    if x == 0 or y == 0:
        return 0 if isinstance(x, int) and isinstance(y, int) else 0.0  # 0 * inf: NaN is NULL, not a value
    return x * y if isinstance(x, int) and isinstance(y, int) else float_of(x) * float_of(y)


def _quotient(x: Number, y: Number) -> float:
    if math.isinf(y):
        return 0.0
    return float_of(x) / float_of(y)


def float_of(value: Number) -> float:
    """Return the nearest float; beyond the largest one, infinity of that sign."""
    try:
        return float(value)
    except OverflowError:
        return INFINITY if value > 0 else -INFINITY
