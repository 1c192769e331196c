"""Exact COUNT and SUM of integers from noisy lattice steps, where doubles would be too coarse.

Released values are doubles, which represent all integers up to 2^53. Sums of large numbers exceed that, while their
noise may be small. Then the steps, the value of a step and the middle of the range are combined as fractions, and
rounded once. All computations use noisy steps and public facts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Expr, Vector, unfiltered
from dpsql.release.parts import Estimate, Lattice
from dpsql.schema.frozen import dataclass

Floats = NDArray[np.float64]
Integers = Mapping[int, tuple[int, ...]]
"""By aggregation, an integer for each group."""

LARGEST_IN_DOUBLES = 2.0**50
"""Below this, terms and sums of a few of them are exact integers in doubles,"""
LARGEST_OF_LEVELS = 2.0**44
"""and below this, so are the least-squares estimates of levels, which take some dozens of roundings."""


@dataclass(frozen=True, slots=True)
class _ExactSum:
    """The sum of weight * coordinate, divided by `below`; the weights are integers."""

    weights: Mapping[int, int] = field(default_factory=dict)
    below: int = 1

    def values(self, steps: NDArray[Any]) -> tuple[int, ...]:
        """Return the values of all groups, rounding halves to even."""
        rows = [[weight * each for each in steps[place].tolist()] for place, weight in self.weights.items()]
        return tuple(_rounded(sum(terms), self.below) for terms in zip(*rows, strict=True))


def integers_of(lattice: Lattice, steps: NDArray[Any], features: Floats) -> dict[int, tuple[int, ...]]:
    """Return the integer aggregations that are too large for doubles in any group. steps: (coordinates, groups), noisy,
    integers or Fractions; features: the same in the answer's units."""
    integers = {}
    for place, each in enumerate(lattice.estimates):
        if _is_large(each, features, LARGEST_IN_DOUBLES):
            exactly = _exactly(lattice, each)
            if exactly.weights:
                integers[place] = exactly.values(steps)
    return integers


def are_large(lattice: Lattice, features: Floats, largest: float) -> bool:
    """Return whether any integer aggregation is too large for doubles."""
    return any(_is_large(each, features, largest) for each in lattice.estimates)


def _is_large(each: Estimate, features: Floats, largest: float) -> bool:
    return is_integer(each) and _largest(each, features) >= largest


def is_integer(estimate: Estimate) -> bool:
    """Return whether an estimate is an integer and a combination of noisy sums."""
    whole = estimate.whole or estimate.unrounded
    return whole and estimate.kind.linear


def _largest(each: Estimate, features: Floats) -> float:
    """Return the largest term of any group: a small sum of two terms is no more exact than they are."""
    if not features.shape[1]:
        return 0.0
    scale = 1.0 if each.kind.counts else abs(each.centre)
    terms = [(each.sum, 1.0), (each.count, max(1.0, scale))]
    return max(float(np.abs(features[place]).max()) * scale for place, scale in terms if place is not None)


def _exactly(lattice: Lattice, each: Estimate) -> _ExactSum:
    weights: dict[int, Fraction] = {}
    centre = Fraction(1) if each.kind.counts else each.exact_centre
    for feature, scale in ((each.sum, Fraction(1)), (each.count, centre)):
        for place, factor in lattice.weights(feature):
            worth = scale * Fraction(factor) * lattice.coordinates[place].worth
            weights[place] = weights.get(place, Fraction(0)) + worth
    below = math.lcm(*(weight.denominator for weight in weights.values()))
    return _ExactSum({place: int(weight * below) for place, weight in weights.items()}, below)


def _rounded(above: int, below: int) -> int:
    whole, rest = divmod(above, below)
    return whole + (2 * rest > below or (2 * rest == below and whole % 2 == 1))


def as_array(integers: tuple[int, ...]) -> NDArray[Any]:
    """Return 64-bit integers if they suffice, else Python's."""
    small = all(-(2**63) <= each < 2**63 for each in integers)
    return np.array(integers, dtype=np.int64 if small else object)


def numbers_of(expr: Expr, vector: Vector) -> Vector:
    """Convert digits to integers; leave values of other expressions unchanged."""
    if not unfiltered(expr).wide:
        return vector
    cells = zip(vector.values.tolist(), vector.where_valid().tolist(), strict=True)
    return Vector(as_array(tuple(int(cell) if valid else 0 for cell, valid in cells)), vector.valid)


def around(integers: tuple[int, ...], width: float) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Return the ends of intervals of an integer half-width around the integers, as Python's integers, which pandas
    does not convert next to doubles; None if the width is infinite."""
    if not math.isfinite(width):
        return None
    low, high = ([each + int(sign * width) for each in integers] for sign in (-1, 1))
    return np.array(low, dtype=object), np.array(high, dtype=object)


def outward(low: NDArray[Any], high: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return ends of intervals as doubles, moving integers that are not doubles outwards."""
    if low.dtype == np.float64 and high.dtype == np.float64:
        return low, high
    return np.array([_double(each, -math.inf) for each in low.tolist()]), np.array(
        [_double(each, math.inf) for each in high.tolist()]
    )


def _double(integer: int, towards: float) -> float:
    try:
        near = float(integer)
    except OverflowError:
        return math.copysign(math.inf, integer)
    inside = near > integer if towards < 0 else near < integer
    return math.nextafter(near, towards) if inside else near
