"""The least epsilon at which answers are as close as they are asked to be."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from dpsql.errors import InvalidPrivacyParameter, UnsupportedSQL
from dpsql.noise_intervals import constant_half_width
from dpsql.privacy.goal import Goal
from dpsql.privacy.loss import LARGEST_EPSILON, SMALLEST_EPSILON, show
from dpsql.release import Release
from dpsql.sql.expressions import Slot, walk
from dpsql.sql.plan import Output

_DIGITS = Context(prec=4, rounding=ROUND_CEILING)
"""An epsilon that is found has so many digits, the last one rounded up."""
_STEPS = 40
_CLOSE = 1 + 1e-5


def reached(make: Callable[[Fraction], Release], goal: Goal) -> Release:
    """The release with the least epsilon, to four digits, at which every output's noise is within the goal.

    The half-width of noise falls as epsilon grows, and depends on public facts alone; where it does not, the question
    is refused. Raises UnsupportedSQL, InvalidPrivacyParameter.
    """
    first = make(Fraction(1))
    outputs = _noisy(first)
    _check(first, outputs)
    level = float(goal.confidence)

    def wide(epsilon: float) -> bool:
        release = make(Fraction(Decimal(repr(epsilon))))
        return any((constant_half_width(release, each.expr, level) or 0.0) > goal.error for each in outputs)

    low, high = 1.0, 1.0
    while wide(high):
        low, high = high, 4 * high
        if high > LARGEST_EPSILON:
            raise InvalidPrivacyParameter(f"no epsilon up to {show(LARGEST_EPSILON)} brings these answers {goal}.")
    while low == high or not wide(low):
        low, high = low / 4, low
        if low < SMALLEST_EPSILON:
            break
    for _ in range(_STEPS):
        if high <= low * _CLOSE:
            break
        middle = math.sqrt(low * high)
        low, high = (middle, high) if wide(middle) else (low, middle)
    return make(Fraction(_DIGITS.create_decimal(Decimal(repr(high)))))


def _noisy(release: Release) -> list[Output]:
    """The outputs that are more than keys and constants."""
    first = len(release.query.plan.keys)
    return [
        output
        for output in release.query.finish.outputs
        if any(isinstance(part, Slot) and part.index >= first for part in walk(output.expr))
    ]


def _check(release: Release, outputs: list[Output]) -> None:
    """Only COUNT, SUM and their sums and differences have noise whose size is public."""
    if release.searches is not None:
        raise UnsupportedSQL(
            "WITHIN needs bounds that are declared: those that are chosen decide how large the noise is.",
            hint="Declare bounds for the columns, or give an epsilon.",
        )
    own = [each for each in release.query.plan.aggregations if each.epsilon is not None]
    if own:
        raise InvalidPrivacyParameter(f"WITHIN finds the epsilon of all aggregates, and {own[0].word} has its own.")
    for output in outputs:
        if constant_half_width(release, output.expr, 0.5) is None:
            raise UnsupportedSQL(
                f"WITHIN cannot promise the error of {output.name}: it depends on private counts.",
                hint="Ask for COUNT and SUM within an error and divide them, or give an epsilon.",
            )
    if not outputs:
        raise UnsupportedSQL("WITHIN is about noisy answers, and there is none.", hint="Leave it out.")
