"""Optimal partition selection, for groups whose keys are private.

Exact counts of units decide, with a separate epsilon and delta; no noisy count is needed. Every decision is made in
integers.
"""

from __future__ import annotations

import math
from array import array
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsql.core.loss import PrivacyLoss, show
from dpsql.core.mechanisms import samplers
from dpsql.errors import InvalidPrivacyParameter
from dpsql.schema.frozen import dataclass
from dpsql.schema.memoization import remembered

LARGEST_TABLE = 2_000_000
"""The largest number of units at which a group must be certain to be shown: the table of probabilities ends there."""

_LARGEST_LEAST = 2**62


@dataclass(frozen=True, slots=True)
class TruncatedGeometric:
    """Shows a group of n units with probability pi(n), each group independently.

    epsilon, delta: the guarantee for one unit that is in at most `groups` groups (under bounded neighbours: that
    changes at most `groups` counts by one each); least: groups of fewer units are never shown.

    With e' = epsilon / groups, d' = delta / groups and E = e^e',
        pi(0) = 0,  pi(n) = min { E pi(n-1) + d',  1 - (1 - pi(n-1) - d') / E,  1 }.
    Source: Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", PoPETs 2022 (arXiv
    2006.03684), theorem 1: no (e', d')-DP choice for a group shows a group of any size with a greater probability.

    Privacy. One more unit makes n of n - 1 in a group, whose output is a bit. With p = pi(n-1) and r = pi(n), that bit
    is (e', d')-DP if and only if
        (1) r <= E p + d'    (2) p <= E r + d'    (3) 1 - r <= E (1 - p) + d'    (4) 1 - p <= E (1 - r) + d'.
    (1) is the first term of the minimum; (4), solved for r, the second; (2) and (3) follow from p <= r and E >= 1. And
    p <= r because every term is at least p: E p + d' is; the second is at least p + d' if p + d' <= 1, otherwise above
    1. A unit changes at most `groups` counts by one each, and the bits are independent: by basic composition the choice
    is (epsilon, delta)-DP. A group without units is never shown, so it does not matter which such groups exist.

    Exactness. E, d' and pi are replaced by E_ <= E, d_ <= d' and whole multiples of 2^-k, each rounded down from the
    minimum with E_ and d_ (`_Recursion`). Rounding r down keeps (1) and (4), which bound r from above. It keeps p <= r,
    since p is itself a multiple and at most the unrounded r; hence (2) and (3), as E_ >= 1. So the four hold with E_
    and d_. They then hold with E and d', which occur only on the right sides, E_ times a probability: a smaller E_ or
    d_ only makes the guarantee stronger.

    `least` shifts pi: the probability is pi(n - least + 1) from n = least on, and 0 below. So for n - 1 and n units the
    probabilities are both 0 or pi(m - 1) and pi(m) for some m: the same four inequalities.

    Raises TypeError unless epsilon and delta are fractions; InvalidPrivacyParameter unless epsilon > 0, 0 < delta < 1
    and pi is 1 within LARGEST_TABLE steps; ValueError unless groups >= 1 and 1 <= least <= 2^62.
    """

    epsilon: Fraction
    delta: Fraction
    groups: int = 1
    least: int = 1

    def __post_init__(self) -> None:
        if not (isinstance(self.epsilon, Fraction) and isinstance(self.delta, Fraction)):
            raise TypeError("groups are chosen with fractions; read numbers with as_epsilon and as_delta")
        if self.groups < 1 or not 1 <= self.least <= _LARGEST_LEAST:
            raise ValueError(f"groups must be at least 1, and least from 1 to 2^62: {self}")
        if self.epsilon <= 0:
            raise InvalidPrivacyParameter(
                "epsilon for choosing groups must be a number > 0.",
                hint="Leave a part of epsilon for choosing groups, or declare their keys.",
            )
        if not 0 < self.delta < 1:
            raise InvalidPrivacyParameter(
                "delta for choosing groups must be above 0 and below 1: with this chance a group of one unit is shown.",
                hint="Add delta=1e-6 (well below 1 / the number of units), or declare the keys of the groups.",
            )
        self._table()  # rejects too small an epsilon here, before anything is read

    def _table(self) -> _Table:
        return _table(self.epsilon, self.delta, self.groups)

    @property
    def loss(self) -> PrivacyLoss:
        """The cost of the choice for one unit, over all of its groups."""
        return PrivacyLoss(self.epsilon, self.delta)

    @property
    def certain(self) -> int:
        """The least number of units at which a group is certain to be shown."""
        return self.least - 1 + self._table().last

    def probability(self, units: int) -> Fraction:
        """Return the exact probability that a group of so many units is shown."""
        table = self._table()
        return Fraction(table.numerator(min(max(units - self.least + 1, 0), table.last)), 2**table.step.bits)

    def draw(self, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which groups with these exact counts of units are shown, shape (n,) as counts; drawn afresh at each
        call.

        No value of a count raises an error, and a negative one counts as 0. Raises TypeError unless they are signed
        integers.
        """
        if counts.dtype.kind != "i":
            raise TypeError(f"counts of units must be signed integers, not {counts.dtype}")
        table, below = self._table(), self.least - 1
        # Clipped before the shift, so that no count overflows.
        places = np.clip(counts.astype(np.int64, copy=False), below, below + table.last) - below
        return samplers.bernoulli_dyadic(
            table.firsts[places], lambda i: table.numerator(int(places[i])), table.step.bits
        )


_SPARE_BITS = 64
"""Bits of pi below those of d'. Rounding down takes at most 2^-64 of pi while it grows by E: the deficits, of up to
2^-64 d' a step, grow as d' does. Past 1/2 each step adds at most another 2^-64 d'."""

_GROWTH_BITS = 128


@dataclass(frozen=True, slots=True)
class _Recursion:
    """The step from pi(n - 1) to pi(n), in units of 2^-bits: growth is E_ 2^128, delta is d_ 2^bits."""

    bits: int
    growth: int
    delta: int

    @classmethod
    def of(cls, epsilon: Fraction, delta: Fraction) -> _Recursion:
        """Return the step for one group's epsilon and delta."""
        bits = _SPARE_BITS + math.ceil(1 / delta).bit_length()
        # An E above 2^bits is not needed: 2^bits already leads from d' to 1 - 2^-bits, and from there to 1.
        growth = _exp_below(min(epsilon, Fraction(bits)), _GROWTH_BITS)
        return cls(bits, growth, math.floor(delta * 2**bits))

    def after(self, p: int) -> int:
        """Return pi(n) for p = pi(n - 1): the minimum, rounded down (// and >> also round negative numbers down)."""
        one = 1 << self.bits
        first = (p * self.growth >> _GROWTH_BITS) + self.delta
        second = one + ((p + self.delta - one) << _GROWTH_BITS) // self.growth
        return min(first, second, one)


def _exp_below(x: Fraction, bits: int) -> int:
    """Return an integer from 2^bits to e^x 2^bits, for x >= 0; below the latter by a relative error of about 2^-bits.

    Taylor's series at x / 2^h < 1, squared h times: all terms are positive and every operation rounds down. A squaring
    doubles the relative error, hence the guard bits.
    """
    halvings = math.floor(x).bit_length()
    guard = 2 * halvings + 8
    one = 1 << (bits + guard)
    p, q, n = x.numerator, x.denominator << halvings, 0
    total = term = one
    while term:
        n += 1
        term = term * p // (q * n)
        total += term
    for _ in range(halvings):
        total = total * total // one
    return total >> guard


_STRIDE = 1024


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """pi(0), ..., pi(last) = 1: the first 64 bits of each, and every 1024th in full, to compute the rest."""

    step: _Recursion
    firsts: NDArray[np.uint64]
    marks: tuple[int, ...]

    @property
    def last(self) -> int:
        return len(self.firsts) - 1

    def numerator(self, n: int) -> int:
        """Return pi(n) 2^bits, for n = 0..last."""
        p = self.marks[n // _STRIDE]
        for _ in range(n % _STRIDE):
            p = self.step.after(p)
        return p


@remembered(8)
def _table(epsilon: Fraction, delta: Fraction, groups: int) -> _Table:
    """Return the table for a unit in `groups` groups. Raises InvalidPrivacyParameter beyond LARGEST_TABLE steps."""
    share = epsilon / groups, delta / groups
    step = _Recursion.of(*share)
    one, further_bits = 1 << step.bits, step.bits - 64
    firsts, marks, p = array("Q"), [], 0
    hopeless = _fewest_steps(*map(float, share)) > LARGEST_TABLE
    while p < one:
        if hopeless or len(firsts) == LARGEST_TABLE:
            raise _too_small(epsilon, delta, groups)
        if len(firsts) % _STRIDE == 0:
            marks.append(p)
        firsts.append(p >> further_bits)
        p = step.after(p)
    if len(firsts) % _STRIDE == 0:
        marks.append(p)
    firsts.append(2**64 - 1)  # represents 1 in the sampler
    return _Table(step, np.array(firsts), tuple(marks))


def _fewest_steps(epsilon: float, delta: float) -> float:
    """Return a lower bound of the number of steps to 1: the n at which d' (1 + E + ... + E^(n-1)), which bounds pi(n),
    is 1.

    The true number is at most about twice as large: pi is symmetric, and goes from 1/2 to 1 as from 0 to 1/2.
    """
    e, d = max(epsilon, 1e-18), max(delta, 1e-300)  # larger values take fewer steps
    return 1.0 if e > 100 else math.log1p(math.expm1(e) / d) / e * (1 - 1e-9)


def _too_small(epsilon: Fraction, delta: Fraction, groups: int) -> InvalidPrivacyParameter:
    """Return the error, with an epsilon that is enough and hardly more than needed."""
    enough = max(float(epsilon), 1e-18)
    while 2 * _fewest_steps(enough / groups, float(delta / groups)) > 0.9 * LARGEST_TABLE:
        enough *= 1.05
    words = show(Fraction(f"{enough:.2g}"))
    return InvalidPrivacyParameter(
        f"epsilon {show(epsilon)} for choosing groups is too small: only groups of more than {LARGEST_TABLE:,} units "
        "would be shown for certain.",
        hint=f"Write an epsilon of {words} or more for choosing groups, let a unit be in fewer groups, or declare the "
        "keys of the groups.",
    )
