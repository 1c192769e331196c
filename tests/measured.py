"""What tests ask of a release's measurements by their kind, which the package does not."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.measurement import GroupsByChance, Share
from dpsql.release.release import Release


def by_chance(made: Release) -> tuple[GroupsByChance, ...]:
    """The selection by a law of its own, if there is one."""
    return tuple(each for each in made.measurements if isinstance(each, GroupsByChance))


def height_of(made: Release) -> int:
    """What a group's noisy count has to reach, in steps; 0 where nothing."""
    return next((height for _, height in made.selection.conditions), 0)


def norm_of(share: Share, change: Sequence[int]) -> int:
    """The norm of the share's law, of one group's change: the largest coordinate, or that of each class together."""
    classes = share.reach.classes or (0,) * len(share.places)
    largest: dict[int, int] = {}
    for own, place in zip(classes, share.places, strict=True):
        largest[own] = max(largest.get(own, 0), abs(change[place]))
    return sum(largest.values())
