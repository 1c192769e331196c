"""What part of the budget each level of grouping sets is measured with, by public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.accuracy.hierarchies import GroupingSet, allocation
from dpsql.accuracy.two_levels import share_of_groups
from dpsql.core.mechanisms.noise import Reach

_GUARD = 0.5
"""How much a level that comes out worse than at an equal share weighs (see `allocation`)."""


def shared_out(
    sizes: tuple[int, ...],
    wanted: tuple[GroupingSet, ...],
    law: str,
    *,
    by_rho: bool,
    reach: Callable[[GroupingSet], Reach],
) -> dict[GroupingSet, Fraction]:
    """The part of epsilon, or of rho, that each level to be measured has."""
    if law == "split":
        return dict.fromkeys(wanted, Fraction(1, len(wanted)))
    if law == "gaussian":
        return allocation(sizes, wanted, "gaussian", guard=_GUARD, whole=lambda keys: float(reach(keys).l2_squared))
    # Shares of rho are the squares of those of epsilon.
    return allocation(sizes, wanted, "gaussian" if by_rho else "laplace", guard=_GUARD)


def shared_apart(
    sizes: tuple[int, ...],
    wanted: tuple[GroupingSet, ...],
    law: str,
    *,
    by_rho: bool,
    reach: Callable[[GroupingSet], Reach],
) -> dict[GroupingSet, Fraction]:
    """The same where groups and their total are to have no more noise than apart."""
    groups, total = wanted
    ratio = float(reach(groups).l2_squared / reach(total).l2_squared) if law == "gaussian" else 1.0
    part = share_of_groups(math.prod(sizes), ratio, 1 if law == "gaussian" or by_rho else 2)
    return {groups: part} if part == 1 else {groups: part, total: 1 - part}
