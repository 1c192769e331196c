"""In which order quantiles are drawn together: whose draw comes first is public, and may be chosen well.

A draw cuts a part in two, and is off by some ranks, e times as many as its spread. What is drawn after it in the lower
part aims at a rank between those of the part's ends, so it is off by e (q - low) / (middle - low) besides, whatever is
drawn in between, for the ranks aimed at are linear in those of the ends; in the upper part likewise. All draws have one
epsilon. So the mean square of all ranks, to first order, is a sum over draws of spread^2 (1 + the squares of these
shares), which is least over all trees of so many levels by dynamic programming over parts. In the tail the middle of
the list is far from the middle of the rows: .9, and not .99, comes first of .5, .9, .99, .999.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache, lru_cache

from dpsql.core.quantiles import Order, rank_spread

MOST = 32
"""More quantiles are drawn from the middle of their list on: there are too many trees."""


@lru_cache(maxsize=256)
def order_of(qs: tuple[Fraction, ...], bounded: bool, one_group: bool) -> Order | None:
    """Which of the quantiles first..last-1 is drawn first, of each part that comes to be; None: the middle one."""
    many = len(qs)
    if not 3 < many <= MOST:
        return None
    ends = [0.0, *map(float, qs), 1.0]

    def squares(first: int, last: int, place: int) -> float:
        """Of all that are drawn from here on in this part, for what this draw is off."""
        low, own, high = ends[first], ends[place + 1], ends[last + 1]
        inside = (ends[place + 1] - low) / (high - low)
        spread = float(rank_spread(Fraction(inside), bounded, one_group and last - first == many))
        below = sum(((each - low) / (own - low)) ** 2 for each in ends[first + 1 : place + 1])
        above = sum(((high - each) / (high - own)) ** 2 for each in ends[place + 2 : last + 1])
        return spread**2 * (1 + below + above)

    @cache
    def best(first: int, last: int, levels: int) -> tuple[float, int]:
        """The least sum of squares of this part by so many levels, and which is drawn first."""
        if first == last:
            return 0.0, first
        most = 2 ** (levels - 1)
        places = [each for each in range(first, last) if each - first < most and last - each - 1 < most]
        return min(
            (squares(first, last, each) + best(first, each, levels - 1)[0] + best(each + 1, last, levels - 1)[0], each)
            for each in places
        )

    order: dict[tuple[int, int], int] = {}

    def walk(first: int, last: int, levels: int) -> None:
        if first < last:
            order[first, last] = place = best(first, last, levels)[1]
            walk(first, place, levels - 1)
            walk(place + 1, last, levels - 1)

    walk(0, many, many.bit_length())
    return order
