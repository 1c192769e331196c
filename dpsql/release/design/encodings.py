"""Two columns, and all that is asked of them, from one division of each row into shares.

A row at (y, x) between the ends of two ranges is divided into the shares B_i(y) B_j(x), products of Bernstein's
polynomials, which are not negative and add up to 1. So one row moves the vector of all sums of shares by an L1 distance
of exactly 1, and each of them has Laplace noise for the whole epsilon (Laplace mechanism: Dwork, McSherry, Nissim,
Smith 2006). Counts, sums, squares and products are linear in the shares. For two columns and their product it is the
encoding of Kulesza, Suresh, Wang, "Mean Estimation in the Add-Remove Model" (ICML 2024), taken to two dimensions.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from dpsql.core.exact import SHARE_STEPS, LatticeShare, LatticeSum
from dpsql.core.sensitivity import Analysis, Measured
from dpsql.plan.expressions import Expr, Fact
from dpsql.release.labels import Label
from dpsql.release.parts import Coordinate, Estimate, Feature, Lattice, Moments
from dpsql.release.values import count_of, half, middle
from dpsql.schema.intervals import Interval, point

_U = {1: (-1, 1), 2: (-1, 0, 1)}
"""u = 2 y - 1 in Bernstein's polynomials of each degree."""
_SQUARE = (1, -3, 1)
"""2 u^2 - 1 in those of degree 2."""


def encoded(analysis: Analysis) -> list[Lattice]:
    """The design of a query about one pair of columns and nothing else; none for any other query."""
    measured = analysis.measured
    pairs = [m for m in measured if m.other is not None]
    if not pairs or not analysis.private:
        return []
    sides = dict(
        zip(pairs[0].aggregation.arguments, (pairs[0].argument, pairs[0].other or pairs[0].argument), strict=True)
    )
    count = count_of(pairs[0])
    if not all(_follows(m, sides) and count_of(m) == count for m in measured):
        return []
    if len(sides) < 2 or any(float(side.range.lower) == float(side.range.upper) for side in sides.values()):
        return []  # there is nothing to divide, at least for doubles
    return [_Design(analysis, sides, pairs[0]).lattice()]


def _follows(m: Measured, sides: Collection[Expr]) -> bool:
    """Whether an aggregate follows from the shares of these two columns."""
    arguments = m.aggregation.arguments
    if m.of != "rows" or not m.aggregation.kind.moments:
        return False
    if m.sum is not None and not all(each in sides for each in arguments):
        return False
    return m.other is None or len(set(arguments)) > 1


class _Design:
    """The shares of two columns. A degree is 2 where squares of the column are asked for."""

    def __init__(self, analysis: Analysis, sides: dict[Expr, Fact], pair: Measured) -> None:
        self.analysis, self.sides, self.pair = analysis, sides, pair
        squared: set[Expr] = set()
        for m in analysis.measured:
            arguments = m.aggregation.arguments
            if "q" in m.aggregation.kind.moments:
                squared.add(arguments[0])
            if "r" in m.aggregation.kind.moments:
                squared.add(arguments[1])
        self.exprs = list(sides)
        self.degrees = tuple(2 if expr in squared else 1 for expr in self.exprs)
        self.indices = list(product(range(self.degrees[0] + 1), range(self.degrees[1] + 1)))

    def lattice(self) -> Lattice:
        """One coordinate for each share."""
        parts = tuple(self._part(index) for index in self.indices)
        coordinates = tuple(
            Coordinate(Label(f"share {i}{j} of ", tuple(self.exprs)), ((place, 1),), 1 / SHARE_STEPS)
            for place, (i, j) in enumerate(self.indices)
        )
        features, places = self._features()
        estimates = tuple(self._estimate(m, places) for m in self.analysis.measured)
        return Lattice(parts, coordinates, estimates, features=features, divided=True)

    def _part(self, index: tuple[int, int]) -> LatticeShare:
        first, second = (_grid(expr, held.range) for expr, held in self.sides.items())
        return LatticeShare(first, second, (self.degrees[0], self.degrees[1]), index)

    def _features(self) -> tuple[tuple[Feature, ...], dict[object, int]]:
        """Every moment as a combination of shares, and its place: 1, the columns, their squares, their product."""
        ones = tuple((1,) * (degree + 1) for degree in self.degrees)
        lines = tuple(_U[degree] for degree in self.degrees)
        features: dict[object, Feature] = {"count": self._outer(ones[0], ones[1], 1.0)}
        for side, expr in enumerate(self.exprs):
            worth = half(self.sides[expr].range)
            features[expr] = self._outer(*_beside(lines[side], ones[1 - side], side), worth)
            if self.degrees[side] == 2:
                features[expr, "square"] = self._outer(*_beside(_SQUARE, ones[1 - side], side), 1.0)
        features["product"] = self._outer(lines[0], lines[1], 1.0)
        return tuple(features.values()), {name: place for place, name in enumerate(features)}

    def _outer(self, first: tuple[int, ...], second: tuple[int, ...], worth: float) -> Feature:
        found = ((place, worth * first[i] * second[j]) for place, (i, j) in enumerate(self.indices))
        return tuple((place, weight) for place, weight in found if weight)

    def _estimate(self, m: Measured, places: dict[object, int]) -> Estimate:
        kind, count = m.aggregation.kind, places["count"]
        if m.sum is None:
            return Estimate(kind, None, count, 0.0, point(0), whole=True)
        arguments, limits = m.aggregation.arguments, m.argument.range
        own = arguments[0]
        moments = None
        if m.other is not None:
            other = arguments[1]
            squares = (
                places[own, "square"] if "q" in kind.moments else None,
                places[other, "square"] if "r" in kind.moments else None,
            )
            moments = Moments(
                half(limits),
                squares[0],
                places["product"],
                places[other],
                squares[1],
                middle(m.other.range),
                half(m.other.range),
            )
        elif kind.second_moments:
            moments = Moments(half(limits), places[own, "square"])
        return Estimate(kind, places[own], count, middle(limits), limits, whole=False, moments=moments)


def _beside(own: tuple[int, ...], other: tuple[int, ...], side: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (own, other) if side == 0 else (other, own)


def _grid(expr: Expr, held: Interval) -> LatticeSum:
    lower, upper = float(held.lower), float(held.upper)
    return LatticeSum(expr, lower, upper, lower, SHARE_STEPS / (upper - lower), 0, SHARE_STEPS, whole=False)
