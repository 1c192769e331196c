"""The grouping sets that words of SQL stand for."""

from __future__ import annotations

from itertools import combinations

from dpsql.accuracy.hierarchies import GroupingSet


def rollup_sets(keys: int) -> tuple[GroupingSet, ...]:
    """The sets of ROLLUP over so many keys: all keys, all but the last, and so on down to ()."""
    return tuple(tuple(range(length)) for length in range(keys, -1, -1))


def cube_sets(keys: int) -> tuple[GroupingSet, ...]:
    """The sets of CUBE over so many keys: every subset, larger ones first."""
    return tuple(chosen for length in range(keys, -1, -1) for chosen in combinations(range(keys), length))
