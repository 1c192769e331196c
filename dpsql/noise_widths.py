"""Half-widths of the noise in combinations of a release's features, by the law of the coordinates that they are made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsql.release import Release

Floats = NDArray[np.float64]


def half_widths(release: Release, places: Sequence[int | None], weights: Floats, level: float) -> Floats:
    """t with P(|noise of the combination| <= t) >= level, for each of m combinations of the features at `places` (all
    of one noise vector; None: a feature that is 0) with weights of shape (len(places), m)."""
    by_coordinate = _of_coordinates(release, places, weights)
    if not by_coordinate:
        return np.zeros(weights.shape[1])
    share = release.share_of(next(iter(by_coordinate)))
    assert share is not None  # noisy coordinates have one
    if len(by_coordinate) == 1:
        return np.abs(next(iter(by_coordinate.values()))) * share.noise.half_width(level)
    return share.noise.half_widths(np.stack(list(by_coordinate.values())), level)


def noisy_coordinates(release: Release, places: Sequence[int | None]) -> int:
    """How many noisy coordinates the features at `places` are made of."""
    return len(_of_coordinates(release, places, np.ones((len(places), 1))))


def _of_coordinates(release: Release, places: Sequence[int | None], weights: Floats) -> dict[int, Floats]:
    """The same combinations in terms of coordinates, in their steps; those without noise, or weight, left out."""
    found: dict[int, Floats] = {}
    for place, row in zip(places, weights, strict=True):
        for coordinate, factor in release.lattice.weights(place):
            each = release.coordinates[coordinate]
            if each.noisy:
                found[coordinate] = found.get(coordinate, np.zeros(len(row))) + row * (factor * each.unit)
    return {place: row for place, row in found.items() if row.any()}
