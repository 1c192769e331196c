"""Budget shares of the levels of grouping sets, from public facts only."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpsql.accuracy.hierarchies import GroupingSet, allocation
from dpsql.accuracy.two_levels import share_of_groups
from dpsql.core.mechanisms.noise import Reach

_GUARD = 0.5
"""The weight of a level that is less accurate than at an equal share (see `allocation`)."""


def shared_out(
    sizes: tuple[int, ...],
    wanted: tuple[GroupingSet, ...],
    law: str,
    *,
    by_rho: bool,
    reach: Callable[[GroupingSet], Reach],
) -> dict[GroupingSet, Fraction]:
    """Return the share of epsilon, or of rho, of each measured level."""
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
    """Return the shares if groups and their total must have no more noise than in separate queries."""
    groups, total = wanted
    ratio = float(reach(groups).l2_squared / reach(total).l2_squared) if law == "gaussian" else 1.0
    part = share_of_groups(math.prod(sizes), ratio, 1 if law == "gaussian" or by_rho else 2)
    return {groups: part} if part == 1 else {groups: part, total: 1 - part}
