"""Which groups may be shown when their keys are themselves private: noisy counts against a threshold."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from dpsql.privacy.mechanisms import Noise


def threshold(noise: Noise, one_unit: int, delta: Fraction) -> int:
    """The least tau (to within the lattice's fineness) with P(one_unit + X >= tau) <= delta.

    A group that one unit alone makes has a count of at most `one_unit` steps; it is shown with probability at most
    delta, and groups that exist without the unit are covered by the noise's own guarantee. The tail is the exact
    discrete one with >=: the continuous formula can release up to 2 / (1 + a) times delta on integers.
    Source: Korolova, Kenthapadi, Mishra, Ntoulas, WWW 2009; with this delta, Wilson et al., PoPETs 2020, section 3.5.
    """
    goal = Decimal(delta.numerator) / Decimal(delta.denominator)
    low, high = 0, 1  # the tail at low is above the goal, at high not
    while noise.upper_tail(high) > goal:
        low, high = high, 2 * high
    while high - low > max(1, high >> 20):
        middle = (low + high) // 2
        low, high = (middle, high) if noise.upper_tail(middle) > goal else (low, middle)
    return one_unit + high


def show_probability(noise: Noise, count: int, tau: int) -> float:
    """The chance that a group whose exact count is `count` steps is shown: P(count + X >= tau)."""
    if count < tau:
        return min(1.0, float(noise.upper_tail(tau - count)))
    return 1.0 - min(1.0, float(noise.upper_tail(count - tau + 1)))  # the law is symmetric
