"""What tests ask of a release's measurements by their kind, which the package does not."""

from __future__ import annotations

from dpsql.core.measurement import GroupsByChance
from dpsql.release.release import Release


def by_chance(made: Release) -> tuple[GroupsByChance, ...]:
    """The selection by a law of its own, if there is one."""
    return tuple(each for each in made.measurements if isinstance(each, GroupsByChance))


def height_of(made: Release) -> int:
    """What a group's noisy count has to reach, in steps; 0 where nothing."""
    return next((height for _, height in made.selection.conditions), 0)
