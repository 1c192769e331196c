"""From exact numbers to floats and back, always to the safe side: what is returned as a cost is never too small."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from dpsql.core.loss import exact

RELATIVE_MARGIN = 1e-12
"""By this part of itself a computed epsilon or delta is raised. The formulas below add, multiply and take logarithms
of positive terms a few dozen times, each within 2^-52 of its value, so their error stays below a hundredth of it; where
terms cancel, the code that cancels them adds its own margin."""

_LONGEST = 512
_KEPT = 256


def raised(value: float) -> float:
    """The value and the margin of its float error; 0 stays 0 and NaN stays NaN."""
    return math.nextafter(value * (1 + RELATIVE_MARGIN), math.inf) if value > 0 else value


def at_least(number: Fraction) -> float:
    """The least float that reads, as the decimal it prints as, as `number` or more; 3/10 gives 0.3."""
    nearest = float(number)
    return nearest if exact(nearest, "number") >= number else math.nextafter(nearest, math.inf)


def above(number: Fraction) -> float:
    """A float that is truly `number` or more: at most one step above the nearest."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def below(number: Fraction) -> float:
    """A float that is truly `number` or less."""
    return -above(-number)


def total(numbers: Iterable[Fraction]) -> Fraction:
    """The sum, exact while it needs no more than a few hundred digits; else above it by less than a part in 2^200.

    Added pairwise, since the denominators of many unequal fractions grow with every one that is added.
    """
    terms = list(numbers) or [Fraction(0)]
    while len(terms) > 1:
        pairs = [_shortened(a + b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


def _shortened(number: Fraction) -> Fraction:
    if number.denominator.bit_length() <= _LONGEST:
        return number
    shift = _KEPT - number.numerator.bit_length() + number.denominator.bit_length()
    return Fraction(math.ceil(number * Fraction(2) ** shift)) / Fraction(2) ** shift
