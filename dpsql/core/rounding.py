"""Conversion between exact numbers and floats, rounded to the safe side: a returned cost is never too small."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from dpsql.core.loss import exact

RELATIVE_MARGIN = 1e-12
"""Computed epsilons and deltas are raised by this fraction. The formulas below add, multiply and take logarithms of
positive terms a few dozen times, each within 2^-52 of its value, so their error stays below a hundredth of the margin.
Code that cancels terms adds its own margin."""

_LONGEST = 512
_KEPT = 256


def raised(value: float) -> float:
    """Return the value plus the margin for its float error; 0 stays 0 and NaN stays NaN."""
    return math.nextafter(value * (1 + RELATIVE_MARGIN), math.inf) if value > 0 else value


def at_least(number: Fraction) -> float:
    """Return the least float whose printed decimal is `number` or more; 3/10 gives 0.3."""
    nearest = float(number)
    return nearest if exact(nearest, "number") >= number else math.nextafter(nearest, math.inf)


def above(number: Fraction) -> float:
    """Return a float whose exact value is `number` or more: at most one step above the nearest."""
    nearest = float(number)
    return nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf)


def below(number: Fraction) -> float:
    """Return a float whose exact value is `number` or less."""
    return -above(-number)


def total(numbers: Iterable[Fraction]) -> Fraction:
    """Return the sum, exact up to a few hundred digits; otherwise too large by less than a part in 2^200.

    Terms are added pairwise, because the denominators of many unequal fractions grow with every addition.
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
