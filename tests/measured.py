"""What tests ask of a release's measurements by their kind, which the package does not."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.measurement import GroupsByChance, Share
from dpsql.core.mechanisms.group_vectors import ALL, EITHER
from dpsql.core.selection.weighted import GroupsByWeights
from dpsql.release.release import Release


def by_chance(made: Release) -> tuple[GroupsByChance, ...]:
    """The selection by a law of its own, if there is one."""
    return tuple(each for each in made.measurements if isinstance(each, GroupsByChance))


def by_weights(made: Release) -> tuple[GroupsByWeights, ...]:
    """The selection by noisy sums of weights, if there is one."""
    return tuple(each for each in made.measurements if isinstance(each, GroupsByWeights))


def height_of(made: Release) -> int:
    """What a group's noisy count has to reach, in steps; 0 where nothing."""
    return next((height for _, height in made.selection.conditions), 0)


def assert_across(share: Share, changes: Sequence[Sequence[int]], where: str) -> None:
    """Noise for all groups together, beside the signed changes of all groups: none is larger than it is for, what is
    one number for all groups is one, and what one of two groups gains the other loses."""
    across = share.reach.across
    if across is None:
        return
    for kind, place in zip(across.kinds, share.places, strict=True):
        moves = [change[place] for change in changes]
        assert max(map(abs, moves), default=0) <= across.largest, f"{moves} of {across.largest}: {where}"
        assert kind != ALL or len(set(moves)) <= 1, f"not one number in all groups, {moves}: {where}"
        assert kind != EITHER or (len(moves) == 2 and sum(moves) == 0), f"one does not follow, {moves}: {where}"


def norm_of(share: Share, change: Sequence[int]) -> int:
    """The norm of the share's law, of one group's change: the largest coordinate, or that of each class together."""
    classes = share.reach.classes or (0,) * len(share.places)
    largest: dict[int, int] = {}
    for own, place in zip(classes, share.places, strict=True):
        largest[own] = max(largest.get(own, 0), abs(change[place]))
    return sum(largest.values())
