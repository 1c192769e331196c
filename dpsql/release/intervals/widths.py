"""Half-widths of the noise in combinations of a release's features, by the distribution of their coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy import classes
from dpsql.accuracy import widths as noise_widths
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.staircase import Staircase
from dpsql.release.release import Release
from dpsql.schema.frozen import dataclass

Floats = NDArray[np.float64]
_ANGLES, _FEWER_ANGLES = 257, 33
"""Numbers of chords, normally and for a distribution that takes long to compute. Widths between two chords are too wide
by a factor of up to 1 / cos of half their angle, 0.002 % and 0.12 %."""
_NEAREST = 1 - 1e-9
_HALVINGS = 50
_FEW = 256


def half_widths(release: Release, places: Sequence[int | None], weights: Floats, level: float) -> Floats:
    """Return t with P(|noise of the combination| <= t) >= level, for each of m combinations of the features at `places`
    (all of one noise vector; None: a feature that is 0) with weights of shape (len(places), m).

    Distributions are not tabled at levels beyond 1 - 1e-9. There, widths grow in proportion to the logarithm of the
    error probability. The logarithm of a tail is concave and 0 at 0 (see `linear_combinations`), so they are never too
    narrow. The staircase's tail is not log-concave, but known at any level."""
    by_coordinate = in_coordinates(release, places, weights)
    if not by_coordinate:
        return np.zeros(weights.shape[1])
    share = release.share_of(next(iter(by_coordinate)))
    assert share is not None  # noisy coordinates have one
    if level > _NEAREST and not isinstance(share.noise, Staircase):
        further = math.log1p(-level) / math.log1p(-_NEAREST) * (1 + 1e-9)
        return half_widths(release, places, weights, _NEAREST) * further
    if isinstance(share.noise, ClassLaplace):
        rows = [share.places.index(place) for place in by_coordinate]
        return classes.half_widths(share.noise, rows, np.stack(list(by_coordinate.values())), level)
    if len(by_coordinate) == 1:
        return np.abs(next(iter(by_coordinate.values()))) * noise_widths.half_width(share.noise, level)
    return noise_widths.half_widths(share.noise, np.stack(list(by_coordinate.values())), level)


def noisy_coordinates(release: Release, places: Sequence[int | None]) -> int:
    """Return the number of noisy coordinates in the features at `places`."""
    return len(in_coordinates(release, places, np.ones((len(places), 1))))


def shares_of(release: Release, places: Sequence[int | None]) -> set[int]:
    """Return the noise vectors (by their place in the release) of the features at `places`."""
    used = in_coordinates(release, places, np.ones((len(places), 1)))
    return {number for number, share in enumerate(release.shares) if any(place in share.places for place in used)}


def of_whole(width: Any) -> Any:
    """Return the half-width of one or many rounded answers: |round(exact + noise) - exact| <= k whenever |noise| < k +
    1/2, and noise may come in half steps."""
    return np.floor(width + 0.5)


@dataclass(frozen=True)
class Chords:
    """Half-widths of above cos(a) - below sin(a) for angles a from -90 to 90 degrees, exact at some angles.

    Between two of these angles a combination is a non-negative combination of theirs. The half-width is a norm of the
    weights (see `linear_combinations`), so it is at most the same combination of their half-widths: an upper bound."""

    angles: Floats
    widths: Floats

    @classmethod
    def of(cls, release: Release, places: Sequence[int], above: Floats, below: Floats, level: float) -> Chords:
        slow = any(isinstance(release.shares[place].noise, ClassLaplace) for place in shares_of(release, places))
        angles = np.linspace(-np.pi / 2, np.pi / 2, _FEWER_ANGLES if slow else _ANGLES)
        weights = above[:, None] * np.cos(angles) - below[:, None] * np.sin(angles)
        return cls(angles, half_widths(release, places, weights, level))

    def at(self, angle: Floats) -> Floats:
        """Return upper bounds of the half-widths at other angles."""
        step = self.angles[1] - self.angles[0]
        before = np.clip(((angle - self.angles[0]) / step).astype(np.int64), 0, len(self.angles) - 2)
        off = np.clip(angle - self.angles[before], 0, step)
        ahead = np.sin(off) / np.sin(step)
        behind = np.sin(step - off) / np.sin(step)
        return np.asarray(behind * self.widths[before] + ahead * self.widths[before + 1])


def in_coordinates(release: Release, places: Sequence[int | None], weights: Floats) -> dict[int, Floats]:
    """Return the same combinations in terms of coordinates, in their steps, without coordinates that have no noise or
    weight."""
    combinations: dict[int, Floats] = {}
    for place, row in zip(places, weights, strict=True):
        for coordinate, factor in release.lattice.weights(place):
            each = release.coordinates[coordinate]
            if each.noisy:
                combinations[coordinate] = combinations.get(coordinate, np.zeros(len(row))) + row * (factor * each.unit)
    return {place: row for place, row in combinations.items() if row.any()}


def edge(within: Floats, beyond: Floats, inside: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """Return the edges of sets, each between a point `within` it and one that may lie `beyond`: to 2^-50 of their
    distance, from beyond. inside: whether points are in the sets, of shape (m, *within.shape).

    For few sets many points are checked in one call, since calls dominate the cost. The last point inside counts, so
    that the result encloses the set as far as it was checked."""
    beyond = np.where(np.isfinite(beyond), beyond, within)
    halvings = 5 if within.size <= _FEW else 1
    parts = 2**halvings
    numbers = np.arange(parts + 1).reshape(-1, *[1] * within.ndim)
    for _ in range(0, _HALVINGS, halvings):
        if (within == beyond).all():
            break
        points = within + (beyond - within) * (numbers / parts)
        points[-1] = beyond
        last = (inside(points[1:-1]) * numbers[1:-1]).max(axis=0)
        within, beyond = np.take_along_axis(points, np.stack([last, last + 1]), axis=0)
    return beyond
