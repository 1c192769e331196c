"""Expected errors of aggregates, to first order, at a reference table: the measure that compares designs and
distributions of noise.

The reference is public: many rows, every column spread evenly over its declared range, two columns with half of the
largest correlation. A smooth statistic g of noisy features has the standard error |gradient of g|, weighted by the
noise (delta method); the number of rows is a common factor of all designs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpsql.release.identity_key import IdentityKey
from dpsql.release.output.estimate import estimate
from dpsql.release.parts import Coordinate, Estimate, Feature, Lattice

Estimates = tuple[Estimate, ...]
Coordinates = tuple[Coordinate, ...]
Features = tuple[Feature, ...] | None
_ROWS = 1e6
_NUDGE = 1e-3
_LEAST = 1e-300
"""The least variance; noise this small is never visible, whichever distribution it has."""


def mean_log_error(lattice: Lattice, variance: Mapping[int, float]) -> float:
    """Return the mean over the aggregations of the logarithm of their standard error. `variance`: of each coordinate's
    noise, in squared steps, by place."""
    total, counted = 0.0, 0
    for worths in _squared_worths(
        IdentityKey(lattice.estimates), IdentityKey(lattice.coordinates), IdentityKey(lattice.features)
    ):
        if any(place in variance and squared for place, squared in worths):  # its variance may be 0 as a float
            total += math.log(max(_weighted(worths, variance), _LEAST)) / 2
            counted += 1
    return total / counted if counted else 0.0


def error_variance(each: Estimate, lattice: Lattice, variance: Mapping[int, float]) -> float:
    """Return the variance of one aggregation at the reference table; 0 without noise, and for a selected value."""
    return _weighted(_worths(_slopes(each), lattice.coordinates, lattice.features), variance)


def _weighted(worths: Worths, variance: Mapping[int, float]) -> float:
    return math.fsum(variance[place] * squared for place, squared in worths if place in variance)


Slopes = Mapping[int, float]
Worths = tuple[tuple[int, float], ...]
"""The derivatives of an aggregation by its features, by place; and by its coordinates, squared."""


@lru_cache(maxsize=64)
def _squared_worths(
    estimates: IdentityKey[Estimates], coordinates: IdentityKey[Coordinates], features: IdentityKey[Features]
) -> tuple[Worths, ...]:
    """Return the squared derivatives of all aggregations, for any noise distribution."""
    return tuple(_worths(slopes, coordinates.value, features.value) for slopes in _all_slopes(estimates))


def _worths(slopes: Slopes, coordinates: Coordinates, features: Features) -> Worths:
    by_coordinate: dict[int, float] = {}
    for place, slope in slopes.items():
        for coordinate, factor in ((place, 1.0),) if features is None else features[place]:
            worth = slope * factor * coordinates[coordinate].unit
            by_coordinate[coordinate] = by_coordinate.get(coordinate, 0.0) + worth
    return tuple((place, worth**2) for place, worth in by_coordinate.items())


@lru_cache(maxsize=64)
def _all_slopes(estimates: IdentityKey[Estimates]) -> tuple[Slopes, ...]:
    """Return the derivatives of all aggregations by features, for any weights of coordinates."""
    return tuple(map(_slopes, estimates.value))


def _slopes(each: Estimate) -> Slopes:
    """Return the derivatives; empty for a selected value."""
    return {} if each.chosen is not None else _gradient(each, reference(each, _ROWS))


def reference(each: Estimate, rows: float) -> dict[int, float]:
    """Return the features of an aggregation at the reference table with so many rows, by place."""
    if each.chosen is not None:
        return {}
    values: dict[int, float] = {}
    if each.count is not None:
        values[each.count] = rows
    if each.sum is not None:
        middle = float(Fraction(each.range.lower) + Fraction(each.range.upper)) / 2
        values[each.sum] = rows * middle if each.count is None else 0.0
    if each.moments is not None:
        squares = (each.moments.square, each.moments.other_square)
        values.update({place: -rows / 3 for place in squares if place is not None})
        if each.moments.sum is not None:
            values[each.moments.sum] = 0.0
        if each.moments.product is not None:
            values[each.moments.product] = rows / 6
    return values


def _gradient(each: Estimate, features: Mapping[int, float]) -> dict[int, float]:
    """Return the derivatives of an aggregation by its features, by central differences."""
    if each.terms is not None:
        return each.terms
    if not features:
        return {}
    places = sorted(features)
    size = dict.fromkeys(places, _ROWS)
    if each.sum is not None:
        half = float(each.range.upper) / 2 - float(each.range.lower) / 2
        size[each.sum] *= (half if each.moments is None else each.moments.half) or 1.0
    if each.moments is not None and each.moments.sum is not None:
        size[each.moments.sum] *= each.moments.other_half or 1.0
    values = np.zeros((max(places) + 1, 2 * len(places)))
    for place in places:
        values[place] = features[place]
    for row, place in enumerate(places):
        values[place, 2 * row] += _NUDGE * size[place]
        values[place, 2 * row + 1] -= _NUDGE * size[place]
    with np.errstate(all="ignore"):
        found: NDArray[np.float64] = estimate(each, values).values
    return {
        place: float(found[2 * row] - found[2 * row + 1]) / (2 * _NUDGE * size[place])
        for row, place in enumerate(places)
    }
