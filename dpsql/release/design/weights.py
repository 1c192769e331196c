"""Weighted Gaussian noise: each aggregate gets a share of rho, divided among its coordinates.

One Gaussian vector protects the L2 norm of all coordinates, and each coordinate may be scaled separately. If a unit
moves it by w_i, and the squares add up to 1, the i-th has the variance v / w_i^2. Let each of k aggregates have a k-th
of the squares: evenly among its coordinates, or, if it is a sum of them, by their factors in it, which is the least
variance (Cauchy-Schwarz). A coordinate of several aggregates adds up its shares. So no aggregate is worse than alone at
a k-th of rho. The cost is derived (`core.sensitivity.norms`): a weight is a factor of a coordinate like any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from dpsql.core.sensitivity.norms import reach_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.release.parts import Estimate, Lattice

_FINENESS = 2**8
"""The smallest weight in steps, so that each weight is within .2 % of its target."""


def weighted(lattice: Lattice, analysis: Analysis) -> Iterator[Lattice]:
    """Yield the same sums, weighted by their aggregates, and half as strongly; none if all have the same weight."""
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
    """Return the coordinates of an aggregate, and their relative shares of its part."""
    if each.chosen is not None:
        return {}
    if not (each.kind.linear or each.kind.counts):
        return {place: 1.0 for feature in each.places for place, _ in lattice.weights(feature)}
    worths: dict[int, float] = {}
    for feature, factor in ((each.sum, 1.0), (each.count, 1.0 if each.kind.counts else each.centre)):
        for place, weight in lattice.weights(feature):
            worths[place] = worths.get(place, 0.0) + factor * weight * lattice.coordinates[place].unit
    return {place: abs(worth) for place, worth in worths.items()}
