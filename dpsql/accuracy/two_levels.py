"""How a total and its groups share a budget so that neither has more noise than at a half of it, by itself.

There are k groups. A share s of the budget gives their cells a variance of g / s^p, and what is left gives the total
one of t / (1 - s)^p, with p = 2 for epsilons of Laplace noise and 1 for rhos of Gaussian noise. By least squares
(`hierarchies`) the total has the variance T of the weighted mean of its own measurement and of the sum of the groups,
and a group T / k^2 + (1 - 1 / k) g / s^p: the mean of the groups is as far off as the total's k-th part, and what is
left of it has the noise of the cells. At s = 1/2 neither is above its own half, g 2^p and t 2^p. So some share is
always as good, and the best is searched for among multiples of 1/1000, which hides how machines round.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.schema.memoization import remembered

_GRAIN = 1000
_SLACK = 1e-9
_SPARED = 0.95
"""Whole numbers, of which counts are by themselves, have somewhat less noise than the fine steps of levels: by a
fiftieth of the variance at an epsilon of 1/2."""


def variances(groups: int, ratio: float, power: int, share: float) -> tuple[float, float]:
    """Those of a group and of the total by least squares, in parts of what each has at half of the budget. `ratio`:
    that of g to t."""
    cell = ratio / share**power
    precision = 1 / (groups * cell) + (1 - share) ** power
    total = 1 / precision
    group = total / groups**2 + (1 - 1 / groups) * cell
    return group / (ratio * 2**power), total / 2**power


@remembered(256)
def share_of_groups(groups: int, ratio: float, power: int) -> Fraction:
    """The part of the budget that the groups are measured with; 1 where the total is best made of them. Neither
    variance is above that at a half, with something to spare, and their product is least; a half where no other will
    do."""
    best, least = _GRAIN // 2, math.inf
    for number in range(_GRAIN // 2, _GRAIN + 1):
        group, total = variances(groups, ratio, power, number / _GRAIN)
        if max(group, total) <= _SPARED and group * total < least * (1 - _SLACK):
            best, least = number, group * total
    return Fraction(best, _GRAIN)
