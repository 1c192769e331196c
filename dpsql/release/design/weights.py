"""Gaussian noise of coordinates of different worth: each aggregate has a part of rho, dealt out among its coordinates.

One Gaussian vector protects the L2 norm of all coordinates, and each may be scaled by itself: where a unit moves it by
w_i, and the squares add up to 1, the i-th has the variance v / w_i^2. Let each of k aggregates have a k-th of the
squares: evenly among its coordinates, or, if it is a sum of them, by their factors in it, which is the least variance
(Cauchy-Schwarz). A coordinate of several adds up its parts. So no aggregate has less than alone at a k-th of rho.
What it costs is derived (`core.sensitivity.norms`): a weight is a factor of a coordinate as any.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from dpsql.core.sensitivity.norms import reach_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.release.parts import Estimate, Lattice

_FINENESS = 2**8
"""The smallest weight in steps, so that each is within .2 % of what it is to be."""


def weighted(lattice: Lattice, analysis: Analysis) -> Iterator[Lattice]:
    """The same sums, weighted by the aggregates that they are for, and half so; none where all have one weight."""
    parts = dict.fromkeys((place for place, each in enumerate(lattice.coordinates) if each.noisy), 0.0)
    for each in lattice.estimates:
        worths = {place: worth for place, worth in _worths(each, lattice).items() if worth and place in parts}
        if not worths:
            continue
        together = reach_of(lattice.parts, [lattice.coordinates[place].terms for place in worths], analysis).l2_squared
        scale = len(worths) / (float(together) * math.fsum(worths.values()))
        parts.update((place, parts[place] + worth * scale) for place, worth in worths.items())
    least = min(parts.values(), default=0.0)
    if least and max(parts.values()) > least * (1 + 1e-9):
        for power in (0.5, 0.25):
            steps = {place: round(_FINENESS * (part / least) ** power) for place, part in parts.items()}
            coordinates = enumerate(lattice.coordinates)
            yield replace(lattice, coordinates=tuple(each.times(steps.get(place, 1)) for place, each in coordinates))


def _worths(each: Estimate, lattice: Lattice) -> dict[int, float]:
    """The coordinates of an aggregate, and what share of its part each is to have, up to a common factor."""
    if each.chosen is not None:
        return {}
    if not (each.kind.linear or each.kind.counts):
        return {place: 1.0 for feature in each.places for place, _ in lattice.weights(feature)}
    worths: dict[int, float] = {}
    for feature, factor in ((each.sum, 1.0), (each.count, 1.0 if each.kind.counts else each.centre)):
        for place, weight in lattice.weights(feature):
            worths[place] = worths.get(place, 0.0) + factor * weight * lattice.coordinates[place].unit
    return {place: abs(worth) for place, worth in worths.items()}
