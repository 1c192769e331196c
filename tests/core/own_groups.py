"""The largest delta that one of several groups of a unit can have, where noise is independent."""

from __future__ import annotations

import math
from fractions import Fraction

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
