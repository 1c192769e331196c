"""Budget shares of a total and its groups, such that neither has more noise than alone at half of the budget.

There are k groups. A share s of the budget gives their cells a variance of g / s^p, and the rest gives the total one of
t / (1 - s)^p, with p = 2 for epsilons of Laplace noise and 1 for rhos of Gaussian noise. By least squares
(`hierarchies`) the total has the variance T of the weighted mean of its own measurement and of the sum of the groups,
and a group T / k^2 + (1 - 1 / k) g / s^p: the mean of the groups has the error of the total's k-th part, and the rest
has the noise of the cells. At s = 1/2 neither is above its own half, g 2^p and t 2^p. So some share is always as good,
and the best is searched for among multiples of 1/1000, which hides how machines round.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.schema.memoization import remembered

_GRAIN = 1000
_SLACK = 1e-9
_SPARED = 0.95
"""Integers, such as single counts, have slightly less noise than the fine steps of levels: by a fiftieth of the
variance at an epsilon of 1/2."""


def variances(groups: int, ratio: float, power: int, share: float) -> tuple[float, float]:
    """Return the variances of a group and of the total by least squares, relative to each at half of the budget.
    `ratio`: that of g to t."""
    cell = ratio / share**power
    precision = 1 / (groups * cell) + (1 - share) ** power
    total = 1 / precision
    group = total / groups**2 + (1 - 1 / groups) * cell
    return group / (ratio * 2**power), total / 2**power


@remembered(256)
def share_of_groups(groups: int, ratio: float, power: int) -> Fraction:
    """Return the budget share of the groups; 1 if the total is best computed from them. Neither variance is above that
    at a half, with a margin, and their product is least; a half if no other share qualifies."""
    best, least = _GRAIN // 2, math.inf
    for number in range(_GRAIN // 2, _GRAIN + 1):
        group, total = variances(groups, ratio, power, number / _GRAIN)
        if max(group, total) <= _SPARED and group * total < least * (1 - _SLACK):
            best, least = number, group * total
    return Fraction(best, _GRAIN)
