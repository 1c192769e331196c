"""Partition selection by noisy counts and a threshold, for groups whose keys are private.

(`truncated_geometric` selects groups by their exact counts of units instead, with a separate epsilon.)
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from dpsql.core.mechanisms.noise import Noise
from dpsql.core.mechanisms.samplers import BoolArray, bernoulli_dyadic
from dpsql.schema.memoization import remembered

_FINE = 1024
"""If one unit makes more steps than this, a single step is negligible."""


def threshold(noise: Noise, most_of_a_unit: int, delta: Fraction) -> int:
    """Return the least tau (to within the lattice's fineness) with P(most_of_a_unit + X >= tau) <= delta.

    A group of only one unit has a count of at most `most_of_a_unit` steps and is shown with probability at most delta.
    Groups that exist without the unit are covered by the noise's own guarantee. For a unit that can have several groups
    of its own, in two neighbouring tables together, delta is here the share of one group, so that the shares sum to all
    of it.

    Proof. ANY own group of table A is shown with probability q, any of table B's with q', and q + q' <= delta. Let A*
    and B* be the outputs with all own groups hidden. They are made from noise on the common groups, so y = P(A* in O)
    <= e^eps x + d for x = P(B* in O), any set O of outputs and the noise's own (eps, d). A differs from A* only if an
    own group of A is shown, which is independent of A*. Let O be without the own groups of B, which A cannot show.
    Then, by y <= (1 - q') y + q' and P(B in O) = (1 - q') x,
        P(A in O) <= (1 - q) y + q <= (1 - q)(1 - q') y + 1 - (1 - q)(1 - q')
                  <= (1 - q')(e^eps x + d) + delta <= e^eps P(B in O) + d + delta.
    The same with A and B exchanged: delta has no factor e^eps either way.

    The tail is the exact discrete one with >=: the continuous formula can release up to 2 / (1 + a) times delta on
    integers.
    Source: Korolova, Kenthapadi, Mishra, Ntoulas, WWW 2009; with this delta, Wilson et al., PoPETs 2020, section 3.5.
    """
    goal = Decimal(delta.numerator) / Decimal(delta.denominator)
    low, high = 0, 1  # the tail at low is above the goal, at high not
    while noise.upper_tail(high) > goal:
        low, high = high, 2 * high
    while high - low > max(1, high >> 20):
        middle = (low + high) // 2
        low, high = (middle, high) if noise.upper_tail(middle) > goal else (low, middle)
    return most_of_a_unit + high


def chance_below(noise: Noise, most_of_a_unit: int, tau: int, delta: Fraction) -> Fraction:
    """Return the probability with which a noisy count of tau - 1 may be shown too, by a separate coin: the multiple of
    2^-64 that spends what tau leaves of delta, rounded down. 0 on fine lattices, where it would be negligible.

    A group of one unit is then shown with (1 - q) P(M + X >= tau) + q P(M + X >= tau - 1), at most delta with upper
    bounds of the tails as well."""
    if most_of_a_unit > _FINE:
        return Fraction(0)
    above, before = (shown_at_most(noise, most_of_a_unit, height) for height in (tau, tau - 1))
    if before <= delta:  # tau is not the least
        return Fraction(0)
    return Fraction(math.floor((delta - above) / (before - above) * 2**64), 2**64)


def shown_at_most(noise: Noise, count: int, tau: int, below: Fraction = Fraction(0)) -> Fraction:
    """Return an upper bound of the probability that a group whose exact count is `count` steps is shown."""
    rest = below * shown_at_most(noise, count, tau - 1) if below else 0
    return (1 - below) * (Fraction(noise.upper_tail(tau - count)) if tau > count else Fraction(1)) + rest


def coins(chance: Fraction, size: int) -> BoolArray:
    """Toss coins, shape (size,), each True with this probability, a multiple of 2^-64 below 1: exact."""
    first = math.floor(chance * 2**64)
    return bernoulli_dyadic(np.full(size, first, np.uint64), lambda _: first, 64)


@remembered(1024)
def show_probability(noise: Noise, count: int, tau: int, below: Fraction = Fraction(0)) -> float:
    """Return the probability that a group whose exact count is `count` steps is shown: a mixture of P(count + X >= tau)
    and, with weight `below`, that of tau - 1."""
    if below:
        share = float(below)
        return (1 - share) * show_probability(noise, count, tau) + share * show_probability(noise, count, tau - 1)
    if count < tau:
        return min(1.0, float(noise.upper_tail(tau - count)))
    return 1.0 - min(1.0, float(noise.upper_tail(count - tau + 1)))  # the noise is symmetric
