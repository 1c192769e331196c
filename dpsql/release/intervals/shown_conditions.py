"""Conditional noise distributions, given that a row is shown.

An interval is read next to a shown row. If noisy values selected the row (a threshold on its count, HAVING), its noise
no longer has its original distribution. Intervals hold at their level given that the row is shown:

* Values without noise in common with the selecting values keep their distribution.
* The selecting value: exact equal-tailed sets of the distribution within its window (`accuracy.truncated`).
* Other values with noise of the same vector: given the window W, an interval is missed with probability at most
  P(missed) / P(W), for any distributions. P(W) depends only on the exact selecting value k. Take an interval for k
  that is missed with probability at most a / 20 given W, and the least P(W) over it. An interval at level
  1 - (19/20) a P(W) for the other values is then missed with probability at most (19/20) a: together a. (For the
  true k the level used is at least as high as that of a fixed interval, unless k is missed. An interval here means
  the event that the noise lies within its half-width, which grows with the level.)

For rows selected by their rank among others (ORDER BY and LIMIT), the intervals of all candidate rows must hold at
once. The noise of groups is independent, also given which of them passed a threshold. By the union bound each of m
intervals may be missed with probability a / m.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsql.core.measurement import Share
from dpsql.core.mechanisms.coordinate_classes import law_of
from dpsql.release.intervals.widths import in_coordinates
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.frozen import dataclass
from dpsql.schema.numbers import SOME_ROWS

if TYPE_CHECKING:
    from dpsql.accuracy.truncated import Tail  # imported late: noise rarely selects rows

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Bounds = tuple[Floats, Floats]
Weights = dict[int, float]
"""Coordinates by place, with the value of a step of each."""

_OF_WINDOWS = 0.05
"""The share of the error probability for the selecting value's interval, if that serves another value."""
_LEAST_MISSED = 1e-14
"""Floats hardly distinguish levels nearer to 1 than this,"""
_ROUNDING = 0.98
"""and levels nearby only to within a fiftieth of the error probability."""


@dataclass(frozen=True, eq=False)
class Window:
    """A row is shown only if a noisy value is between `low` and `high`, in steps of `unit`. `weights`: the value as a
    combination of coordinates, with the value of a step of each. A single coordinate has integer values and this unit.
    `tail`: of its noise. The exact value is at least `least`. `edge`: the probability that a row exactly at `low` is
    shown."""

    weights: Weights
    unit: float
    tail: Tail
    low: float = -math.inf
    high: float = math.inf
    least: float = -math.inf
    edge: float = 1.0

    def noisy(self, release: Release, released: ReleasedValues) -> Floats | None:
        """Return the noisy values, in steps; None if the released values do not determine them."""
        value = combined(release, released, self.weights)
        if value is None:
            return None
        return np.rint(value / self.unit) if self.tail.whole else value / self.unit

    def exact(self, noisy: Floats, level: float) -> Bounds:
        """Return intervals of the exact values, in steps, with this probability given the window."""
        from dpsql.accuracy.truncated import interval_within  # imported late, see `Tail`

        return interval_within(self.tail, noisy, self.low, self.high, level, least=self.least, edge=self.edge)

    def within(self, other: Window) -> Window:
        """Return the intersection of two windows of one value."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        edge = math.prod(each.edge for each in (self, other) if each.low == low)  # independent coins
        return replace(self, low=low, high=high, least=max(self.least, other.least), edge=edge)


@dataclass(frozen=True)
class ShownCases:
    """A row is shown in one of two cases, by its noisy count (the feature `count`): `some` if that is at least 1/2,
    `few` below. Intervals that hold given the case of each row also hold given that it is shown."""

    count: int
    some: tuple[Window, ...]
    few: tuple[Window, ...]

    @property
    def coordinates(self) -> frozenset[int]:
        return frozenset(place for each in (*self.some, *self.few) for place in each.weights)


@dataclass(frozen=True)
class ShownCondition:
    """The condition that a row is shown: its windows, of different values. `ways`: cases that depend on the row.
    `unread`: the coordinates of each condition that is not a window. `ranked`: the coordinates of each ranking (an
    order and a limit) that selected some of `among` rows."""

    windows: tuple[Window, ...] = ()
    ways: tuple[ShownCases, ...] = ()
    unread: tuple[frozenset[int], ...] = ()
    ranked: tuple[frozenset[int], ...] = ()
    among: int = 1

    @property
    def chosen_rows(self) -> bool:
        """True if noise selected the rows."""
        return bool(self.windows or self.ways or self.unread or self.ranked)

    def further(self, *conditions: Window | ShownCases | frozenset[int]) -> ShownCondition:
        """Return the condition with more conditions added. For ranked rows, conditions on their noise are not used,
        because the rows are then no longer independent."""
        windows, ways, unread = [*self.windows], [*self.ways], [*self.unread]
        for each in conditions:
            if isinstance(each, frozenset):
                unread.append(each)
            elif self.ranked:
                unread.append(each.coordinates if isinstance(each, ShownCases) else frozenset(each.weights))
            elif isinstance(each, ShownCases):
                ways.append(each)
            else:
                same = next((i for i, other in enumerate(windows) if other.weights == each.weights), None)
                if same is None:
                    windows.append(each)
                else:
                    windows[same] = windows[same].within(each)
        return replace(self, windows=tuple(windows), ways=tuple(ways), unread=tuple(unread))

    def of_rows(self, released: ReleasedValues) -> Iterator[tuple[Places, ShownCondition]]:
        """Yield rows that are shown in the same cases, and the condition of each such set."""
        some = np.stack([released.values[each.count] >= SOME_ROWS for each in self.ways])
        if not released.groups:
            return
        patterns, which = np.unique(some, axis=1, return_inverse=True)
        for number, pattern in enumerate(patterns.T.tolist()):
            taken = [each.some if many else each.few for each, many in zip(self.ways, pattern, strict=True)]
            found = replace(self, ways=(), ranked=()).further(*itertools.chain(*taken))
            yield np.flatnonzero(which.ravel() == number), replace(found, ranked=self.ranked)

    def chosen(self, by: frozenset[int], among: int) -> ShownCondition:
        """Return the condition for some of `among` rows, selected by noise of these coordinates. Intervals that hold
        for all rows at once hold for the selected ones; rows that were ranked before come from more rows."""
        return replace(self, ranked=(*self.ranked, by), among=max(among, self.among))

    def level(self, release: Release, coordinates: frozenset[int], level: float) -> float:
        """Return the level of each row's interval such that those of the selected rows hold: all rows hold together."""
        ranked = any(release.share_noise(coordinates, each) for each in self.ranked)
        return 1 - (1 - level) / self.among if ranked else level

    def about(self, release: Release, coordinates: frozenset[int]) -> tuple[Window, ...]:
        """Return the windows that depend on the noise of some coordinates."""
        return tuple(each for each in self.windows if release.share_noise(coordinates, each.weights))

    def overlooks(self, release: Release, coordinates: frozenset[int]) -> bool:
        """Return whether intervals of these coordinates ignore a selection: a condition without a window that shares
        noise with them, directly or through other conditions."""
        left = [*(frozenset(each.weights) for each in self.windows), *self.unread, *self.ranked]
        left += [each.coordinates for each in self.ways]
        reached = coordinates
        while found := [each for each in left if release.share_noise(reached, each)]:
            left = [each for each in left if each not in found]
            reached = reached.union(*found)
        return any(release.share_noise(reached, each) for each in self.unread)


def threshold_of(release: Release) -> ShownCondition:
    """Return the condition that a release's threshold places on its shown rows. (Selections of groups with separate
    noise place none.) An existing group has at least one row, which adds `one_row` steps to its count."""
    given = ShownCondition()
    for place, height in release.selection.conditions:
        share = release.share_of(place)
        given = given if share is None else given.further(_reaching(release, share, place, height))
    return given


def _reaching(release: Release, share: Share, place: int, height: int) -> Window | frozenset[int]:
    """Return the window of a count that reaches a height, or is one step short of it and passes by a coin."""
    from dpsql.accuracy.truncated import tail_of  # imported late, see `Tail`

    tail, unit, one = (
        tail_of(law_of(share.noise, share.places, place)),
        release.coordinates[place].unit,
        release.lattice.one_row,
    )
    if tail is None:
        return frozenset({place})
    below = float(release.selection.below)
    low, edge = (height - 1, below) if below else (height, 1.0)
    return Window({place: unit}, unit, tail, low=float(low), least=float(one), edge=edge)


def combined(release: Release, released: ReleasedValues, weights: Weights) -> Floats | None:
    """Return the noisy values of a combination of coordinates, from features; None if these do not determine them."""
    lattice = release.lattice
    if lattice.features is None:
        parts = [(place, factor / release.coordinates[place].unit) for place, factor in weights.items()]
    else:
        features = np.zeros((len(lattice.features), len(release.coordinates)))
        for row, feature in enumerate(lattice.features):
            for place, factor in feature:
                features[row, place] += factor
        wanted = np.zeros(len(release.coordinates))
        for place, factor in weights.items():
            wanted[place] = factor / release.coordinates[place].unit
        found = np.linalg.lstsq(features.T, wanted, rcond=None)[0]
        if not np.allclose(features.T @ found, wanted, rtol=1e-9, atol=1e-12 * float(np.abs(wanted).max())):
            return None
        parts = [(row, float(factor)) for row, factor in enumerate(found) if abs(factor) > 1e-12]
    return sum((released.values[row] * factor for row, factor in parts), np.zeros(released.groups))


@dataclass(frozen=True, eq=False)
class WindowMultiple:
    """Values that are a multiple of a window's, with `weights`, plus a noiseless term. `noisy`: the values of the
    window."""

    window: Window
    weights: Weights
    noisy: Floats

    def ends(self, value: Floats, level: float) -> Bounds:
        """Return the interval of each value."""
        low, high = self.window.exact(self.noisy, level)
        ends = value + self._worth * (low - self.noisy), value + self._worth * (high - self.noisy)
        return ends if self._worth > 0 else ends[::-1]

    def least(self, value: Floats) -> Floats:
        """Return the lower limit of each value."""
        found: Floats = value + self._worth * (self.window.least - self.noisy) if self._worth > 0 else value - math.inf
        return found

    @property
    def _worth(self) -> float:
        place = next(iter(self.window.weights))
        return self.weights[place] / self.window.weights[place] * self.window.unit


def along(weights: Weights, window: Window) -> bool:
    """Return whether a combination of coordinates is a multiple of a window's value."""
    if set(weights) != set(window.weights):
        return False
    ratios = [weights[place] / window.weights[place] for place in weights]
    return all(math.isclose(each, ratios[0], rel_tol=1e-12) for each in ratios)


def raised_levels(
    release: Release, released: ReleasedValues, windows: Sequence[Window], level: float
) -> Iterator[tuple[Places, float]]:
    """Yield rows and the level that their intervals need: at least 1 - (19/20) (1 - level) P(all windows).
    Probabilities are rounded down to a few, so that there are few levels; level 1 means that no interval suffices.

    The probability of several windows is their product if their noise is independent. In any case it is at least their
    sum minus (the number of windows - 1)."""
    from dpsql.accuracy.truncated import chance_within  # imported late, see `Tail`

    missed = (1 - _OF_WINDOWS) * (1 - level)
    chances = []
    for window in windows:
        noisy = window.noisy(release, released)
        if noisy is None:
            low, high = np.full(released.groups, window.least), np.full(released.groups, math.inf)
        else:
            low, high = window.exact(noisy, 1 - _OF_WINDOWS / len(windows) * (1 - level))
        chances.append(chance_within(window.tail, window.low, window.high, low, high, edge=window.edge))
    pairs = itertools.combinations(windows, 2)
    if any(release.share_noise(one.weights, other.weights) for one, other in pairs):
        together = np.maximum(np.sum(chances, axis=0) - (len(chances) - 1), 0)
    else:
        together = np.prod(chances, axis=0)
    rounded = _rounded_down(together)
    for chance in np.unique(rounded).tolist():
        rest = missed * chance
        found = 1.0 if rest < _LEAST_MISSED else 1 - (_ROUNDING if rest < 1e-9 else 1.0) * rest
        yield np.flatnonzero(rounded == chance), found


def _rounded_down(chances: Floats) -> Floats:
    """Round down to .999, half powers of 2 down to 1/8, and powers of 8; 0 for negligible probabilities."""
    with np.errstate(divide="ignore"):
        log = np.log2(np.minimum(chances, 1.0))
    rough = np.where(log >= -3, np.floor(2 * log) / 2, 3 * np.floor(log / 3))
    found = np.where(chances >= 0.999, 0.999, np.exp2(rough))
    return np.where(chances > _LEAST_MISSED, found, 0.0)


def coordinates_of(release: Release, places: Sequence[int | None]) -> frozenset[int]:
    """Return the noisy coordinates of features."""
    return frozenset(in_coordinates(release, places, np.ones((len(places), 1))))


def weights_of(release: Release, features: dict[int, float]) -> Weights:
    """Return a combination of features in terms of noisy coordinates, with the value of a step of each."""
    rows = np.array([[weight] for weight in features.values()]).reshape(len(features), 1)
    return {place: float(row[0]) for place, row in in_coordinates(release, tuple(features), rows).items()}
