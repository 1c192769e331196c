"""Half-widths of the noise in combinations of a release's features, by the law of the coordinates that make them."""

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
"""Numbers of chords, usually and for a law that takes long to compute: widths between two are too wide by a factor of
up to 1 / cos of half their angle, 0.002 % and 0.12 %."""
_NEAREST = 1 - 1e-9
_HALVINGS = 50
_FEW = 256


def half_widths(release: Release, places: Sequence[int | None], weights: Floats, level: float) -> Floats:
    """t with P(|noise of the combination| <= t) >= level, for each of m combinations of the features at `places` (all
    of one noise vector; None: a feature that is 0) with weights of shape (len(places), m).

    At levels beyond 1 - 1e-9, where laws are no longer tabled, as much wider as the logarithm of what may be missed is
    larger: the logarithm of a tail is concave and 0 at 0 (see `linear_combinations`), so that is never too narrow. That
    of stairs is not concave, and known at any level."""
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
    """How many noisy coordinates the features at `places` are made of."""
    return len(in_coordinates(release, places, np.ones((len(places), 1))))


def shares_of(release: Release, places: Sequence[int | None]) -> set[int]:
    """The noise vectors (by their place in the release) that the features at `places` have noise of."""
    used = in_coordinates(release, places, np.ones((len(places), 1)))
    return {number for number, share in enumerate(release.shares) if any(place in share.places for place in used)}


def of_whole(width: Any) -> Any:
    """The half-width, of one answer or many, of what is shown rounded: |round(exact + noise) - exact| <= k whenever
    |noise| < k + 1/2, and noise may come in half steps."""
    return np.floor(width + 0.5)


@dataclass(frozen=True)
class Chords:
    """Half-widths of above cos(a) - below sin(a) for angles a from -90 to 90 degrees, exact at some angles.

    Between two of them a combination is one of their two combinations with factors that are not negative, and the
    half-width, a norm of the weights (see `linear_combinations`), is at most that of theirs: so it is read, to the
    safe side.
    """

    angles: Floats
    widths: Floats

    @classmethod
    def of(cls, release: Release, places: Sequence[int], above: Floats, below: Floats, level: float) -> Chords:
        slow = any(isinstance(release.shares[place].noise, ClassLaplace) for place in shares_of(release, places))
        angles = np.linspace(-np.pi / 2, np.pi / 2, _FEWER_ANGLES if slow else _ANGLES)
        weights = above[:, None] * np.cos(angles) - below[:, None] * np.sin(angles)
        return cls(angles, half_widths(release, places, weights, level))

    def at(self, angle: Floats) -> Floats:
        """The half-widths of other angles."""
        step = self.angles[1] - self.angles[0]
        before = np.clip(((angle - self.angles[0]) / step).astype(np.int64), 0, len(self.angles) - 2)
        off = np.clip(angle - self.angles[before], 0, step)
        ahead = np.sin(off) / np.sin(step)
        behind = np.sin(step - off) / np.sin(step)
        return np.asarray(behind * self.widths[before] + ahead * self.widths[before + 1])


def in_coordinates(release: Release, places: Sequence[int | None], weights: Floats) -> dict[int, Floats]:
    """The same combinations in terms of coordinates, in their steps; those without noise, or weight, left out."""
    combinations: dict[int, Floats] = {}
    for place, row in zip(places, weights, strict=True):
        for coordinate, factor in release.lattice.weights(place):
            each = release.coordinates[coordinate]
            if each.noisy:
                combinations[coordinate] = combinations.get(coordinate, np.zeros(len(row))) + row * (factor * each.unit)
    return {place: row for place, row in combinations.items() if row.any()}


def edge(within: Floats, beyond: Floats, inside: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """The edges of sets, each between a point within it and one that may lie beyond: to 2^-50 of their distance, from
    beyond. inside: whether points are in the sets, of shape (m, *within.shape).

    Where there are few of them many are looked at in one call, since it is calls that cost; of points that are in the
    set it is the last that counts, so that what comes of it encloses the set as far as it was looked at."""
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
