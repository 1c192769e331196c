"""The order in which quantiles are drawn together, and the epsilon of each draw: public, and optimised.

A draw cuts a part in two, with a rank error of its spread divided by its epsilon. A later draw in the lower part aims
at a rank between the ranks of the part's ends. An error e therefore adds e (q - low) / (middle - low) to it, whatever
is drawn in between, because targets are linear in the ranks of the ends; the same holds in the upper part. So the mean
square of all rank errors, to first order, is a sum over draws of A / epsilon^2, A = spread^2 (1 + the squares of these
factors).

The order. With equal epsilon for each level, dynamic programming over parts minimises this sum over all trees of the
given depth. In the tail the middle of the list is far from the middle of the rows: of .5, .9, .99, .999 the first draw
is .9, not .99. (Deeper trees may be better to first order. But a draw with little epsilon lands in places without rows,
and all later draws are lost.)

The shares. Draws on one side of a cut cost the rows on the other side nothing: both sides may use all that is left. Let
a part have b left, of epsilon (p = 1) or of rho (p = 2), and let C / b^(2/p) be the least sum for its draws. If the
first draw gets s of it, the sum is A / (s b)^(2/p) + (C' + C'') / (b - s b)^(2/p). It is least for s to 1 - s as A^k to
(C' + C'')^k, k = p / (p + 2): C = (A^k + (C' + C'')^k)^(1/k).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from dpsql.core.mechanisms.quantiles import Tree, rank_spread
from dpsql.schema.frozen import dataclass
from dpsql.schema.memoization import remembered

MOST = 32
"""Longer lists are drawn starting from their middle: there are too many trees."""
_FINE = 2**16
"""Shares of epsilon are multiples of 1 / `_FINE`."""


@remembered(256)
def tree_of(qs: tuple[Fraction, ...], bounded: bool, one_group: bool, by_rho: bool) -> Tree:
    """Return the tree of draws for these quantiles, paid by epsilon or by rho. bounded, one_group: the neighbour
    relation, as in `rank_spread`."""
    many = len(qs)
    ends = [0.0, *map(float, qs), 1.0]
    power = 2 if by_rho else 1
    k = power / (power + 2)

    @cache
    def squares(first: int, last: int, place: int) -> float:
        """Return the sum of squared errors that this draw adds to itself and to later draws in this part."""
        low, own, high = ends[first], ends[place + 1], ends[last + 1]
        spread = float(rank_spread(Fraction((own - low) / (high - low)), bounded, one_group and last - first == many))
        below = sum(((each - low) / (own - low)) ** 2 for each in ends[first + 1 : place + 1])
        above = sum(((high - each) / (high - own)) ** 2 for each in ends[place + 2 : last + 1])
        return math.pow(spread, 2) * (1 + below + above)

    @cache
    def best(first: int, last: int, levels: int) -> tuple[float, int]:
        """Return the least sum of squares of this part with so many levels of equal epsilon, and its first draw."""
        if first == last:
            return 0.0, first
        most = 2 ** (levels - 1)
        places = [each for each in range(first, last) if each - first < most and last - each - 1 < most]
        return min(
            (squares(first, last, each) + best(first, each, levels - 1)[0] + best(each + 1, last, levels - 1)[0], each)
            for each in (places if many <= MOST else [(first + last) // 2])
        )

    def weighed(first: int, last: int, levels: int) -> _DrawOrder | None:
        if first == last:
            return None
        place = best(first, last, levels)[1]
        below, above = weighed(first, place, levels - 1), weighed(place + 1, last, levels - 1)
        rest = sum(each.sum for each in (below, above) if each)
        own = math.pow(squares(first, last, place), k)
        every = own + math.pow(rest, k)
        return _DrawOrder(place, own / every, math.pow(every, 1 / k), below, above)

    return _tree(weighed(0, many, many.bit_length()), power)


@dataclass(frozen=True, slots=True)
class _DrawOrder:
    """A tree of draws: the first draw, its share of what is left, the sum of squares of all, and the two subtrees."""

    place: int
    share: float
    sum: float
    below: _DrawOrder | None
    above: _DrawOrder | None


def _tree(of: _DrawOrder | None, power: int) -> Tree:
    """Return the tree with shares of epsilon that add up to at most 1."""

    def most(of: _DrawOrder | None, left: float) -> float:
        if of is None:
            return 0.0
        spent = left * of.share
        return math.pow(spent, 1 / power) + max(most(of.below, left - spent), most(of.above, left - spent))

    def parts(of: _DrawOrder | None, left: float) -> Tree | None:
        if of is None:
            return None
        spent = left * of.share
        part = Fraction(math.floor(math.pow(spent, 1 / power) / whole * _FINE), _FINE)
        return Tree(of.place, part, parts(of.below, left - spent), parts(of.above, left - spent))

    whole = most(of, 1.0)
    tree = parts(of, 1.0)
    assert tree is not None  # at least one quantile is requested
    return tree
