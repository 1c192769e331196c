"""In which order quantiles are drawn together, and what part of epsilon each draw has: public, and chosen well.

A draw cuts a part in two, and is off by some ranks, as many as its spread divided by its epsilon. What is drawn after
it in the lower part aims at a rank between those of the part's ends, so it is off by e (q - low) / (middle - low)
besides, whatever is drawn in between, for the ranks aimed at are linear in those of the ends; in the upper part
likewise. So the mean square of all ranks, to first order, is a sum over draws of A / epsilon^2, A = spread^2 (1 + the
squares of these shares).

The order. With as much for each level it is least over all trees of so many levels by dynamic programming over parts.
In the tail the middle of the list is far from the middle of the rows: .9, and not .99, comes first of .5, .9, .99,
.999. (Trees of more levels may be better to first order. But a draw of little epsilon lands in places without rows,
and all that is drawn after it is lost.)

The parts. What is drawn on one side of a cut costs the rows on the other nothing: both sides may have all that is left.
Let b be left for a part, of epsilon (p = 1) or of rho (p = 2), and C / b^(2/p) the least sum of what is drawn there.
With s of it for the first draw that is A / (s b)^(2/p) + (C' + C'') / (b - s b)^(2/p), least for s to 1 - s as A^k to
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
"""More quantiles are drawn from the middle of their list on: there are too many trees."""
_FINE = 2**16
"""Parts of epsilon are in so many parts."""


@remembered(256)
def tree_of(qs: tuple[Fraction, ...], bounded: bool, one_group: bool, by_rho: bool) -> Tree:
    """How so many quantiles are drawn that are paid by epsilon, or by rho; bounded, one_group: how neighbours differ,
    as `rank_spread` has it."""
    many = len(qs)
    ends = [0.0, *map(float, qs), 1.0]
    power = 2 if by_rho else 1
    k = power / (power + 2)

    @cache
    def squares(first: int, last: int, place: int) -> float:
        """Of all that are drawn from here on in this part, for what this draw is off."""
        low, own, high = ends[first], ends[place + 1], ends[last + 1]
        spread = float(rank_spread(Fraction((own - low) / (high - low)), bounded, one_group and last - first == many))
        below = sum(((each - low) / (own - low)) ** 2 for each in ends[first + 1 : place + 1])
        above = sum(((high - each) / (high - own)) ** 2 for each in ends[place + 2 : last + 1])
        return math.pow(spread, 2) * (1 + below + above)

    @cache
    def best(first: int, last: int, levels: int) -> tuple[float, int]:
        """The least sum of squares of this part by so many levels that have as much, and which is drawn first."""
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
    """A tree: which is drawn first, its share of what is left, the sum of squares of all, and what follows."""

    place: int
    share: float
    sum: float
    below: _DrawOrder | None
    above: _DrawOrder | None


def _tree(of: _DrawOrder | None, power: int) -> Tree:
    """With parts of epsilon, which add up to 1 at most."""

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
    assert tree is not None  # some quantile is asked for
    return tree
