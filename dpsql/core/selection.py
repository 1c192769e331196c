"""Which groups may be shown when their keys are themselves private: noisy counts against a threshold.

(`truncated_geometric` chooses groups by their exact counts of units instead, on an epsilon of its own.)
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from dpsql.core.mechanisms import Noise


def threshold(noise: Noise, one_unit: int, delta: Fraction) -> int:
    """The least tau (to within the lattice's fineness) with P(one_unit + X >= tau) <= delta.

    A group that one unit alone makes has a count of at most `one_unit` steps; it is shown with probability at most
    delta, and groups that exist without the unit are covered by the noise's own guarantee. For a unit that can be in
    several groups delta is here the share of one, delta / groups: at most `per_group_delta`, whose proof covers it.
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
    return one_unit + high


_SERIES_BITS = 128
_MOST_TERMS = 1000


def per_group_delta(delta: Fraction, groups: int) -> Fraction:
    """The delta of one group, for a unit that can be in `groups` groups whose noise is independent: a rational p with
    delta / groups <= p <= 1 - (1 - delta)^(1 / groups), close to the latter.

    delta: what all groups of the unit may cost, 0 <= delta < 1; groups: how many groups can be the unit's own, without
    any other unit in them, in two neighbouring tables taken together (a unit that changes can leave some and open
    others). ValueError for others.

    Why p is enough. An own group is shown with probability at most p, each independently. So ANY of table A's is shown
    with probability q, any of table B's with probability q', where (1 - q)(1 - q') >= (1 - p)^groups >= 1 - delta.
    Let A* and B* be the outputs with all own groups hidden. They are made from noise on the common groups, and so y =
    P(A* in O) <= e^eps x + d for x = P(B* in O), any set O of outputs and the noise's own (eps, d). A differs from A*
    only if an own group of A is shown, which is independent of A*. Let O be without the own groups of B, which A cannot
    show. Then, by y <= (1 - q') y + q' and P(B in O) = (1 - q') x,
        P(A in O) <= (1 - q) y + q <= (1 - q)(1 - q') y + 1 - (1 - q)(1 - q')
                  <= (1 - q')(e^eps x + d) + delta <= e^eps P(B in O) + d + delta.
    The same for A and B exchanged: no e^eps comes before delta either way. (For pairs (eps, delta) in general it is
    Kairouz, Oh, Viswanath, ICML 2015, theorem 3.3: k of them compose to (k eps, 1 - (1 - delta)^k).)
    The gain over delta / groups is a factor of less than 1 + delta for delta <= 1/2: next to nothing at usual deltas.

    How p is found. 1 - (1 - delta)^a is the sum over j >= 1 of c_j delta^j, c_1 = a, c_(j+1) = c_j (j - a) / (j + 1):
    all positive for a = 1 / groups < 1. So a partial sum of terms rounded down is a lower bound. The sum ends where a
    term is below 2^-128 of the first, or at the thousandth: with delta near 1 the bound is less close.
    """
    if not (0 <= delta < 1 <= groups):
        raise ValueError("the delta of a group needs 0 <= delta < 1 and at least one group")
    share = delta / groups
    if groups == 1 or delta == 0:
        return share
    bits = _SERIES_BITS + math.ceil(1 / share).bit_length()
    total = term = math.floor(share * 2**bits)
    for j in range(1, _MOST_TERMS):
        term = term * (j * groups - 1) * delta.numerator // (groups * (j + 1) * delta.denominator)
        total += term
        if not term:
            break
    return max(share, Fraction(total, 2**bits))


@lru_cache(maxsize=1024)
def show_probability(noise: Noise, count: int, tau: int) -> float:
    """The chance that a group whose exact count is `count` steps is shown: P(count + X >= tau)."""
    if count < tau:
        return min(1.0, float(noise.upper_tail(tau - count)))
    return 1.0 - min(1.0, float(noise.upper_tail(count - tau + 1)))  # the law is symmetric
