"""All moments of two columns from one division of each row into shares.

A row at (y, x) between the ends of two ranges is divided into the shares B_i(y) B_j(x), products of Bernstein
polynomials, which are non-negative and add up to 1. So one row moves the vector of all sums of shares by an L1 distance
of exactly 1, and each of them has Laplace noise for the whole epsilon (Laplace mechanism: Dwork, McSherry, Nissim,
Smith 2006). Counts, sums, squares and products are linear in the shares. For two columns and their product this is the
encoding of Kulesza, Suresh, Wang, "Mean Estimation in the Add-Remove Model" (ICML 2024), extended to two dimensions.

If rows are divided into cells (`distinguished_cells`), such as rows with both values and rows with only one, each cell
has separate shares, of as many columns as are read there. A row is in one cell, so it moves all shares of all cells
together by 1 as well, and an aggregate over several cells is the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from dpsql.core.exact import SHARE_STEPS, CellPart, CountRows, LatticeShare, LatticeSum
from dpsql.core.sensitivity.row_contributions import Analysis, MeasuredAggregation
from dpsql.plan.expressions import Expr, Literal
from dpsql.release.design.distinguished_cells import Cell, Value, cells_of, counts_all
from dpsql.release.output.labels import Label
from dpsql.release.parts import Coordinate, Estimate, Feature, Lattice, Moments
from dpsql.release.values import count_of, half, middle
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval, point

_U = {1: (-1, 1), 2: (-1, 0, 1)}
"""u = 2 y - 1 in Bernstein polynomials of each degree."""
_SQUARE = (1, -3, 1)
"""2 u^2 - 1 in Bernstein polynomials of degree 2."""
_MOST = 288
"""The most shares of a design."""


def encoded(analysis: Analysis) -> list[Lattice]:
    """Return the designs by shares of a query about a pair of columns; none without a pair, or if more than two columns
    of a row are read."""
    pairs = [m for m in analysis.measured if m.other is not None]
    if not pairs or not analysis.private or not all(m.of == "rows" and m.aggregation.kind.moments for m in pairs):
        return []
    whole = _of_all_rows(analysis, pairs[0])
    made = (_Design(analysis, cells).lattice() for cells in (() if whole is None else (whole,), cells_of(analysis)))
    return [lattice for lattice in made if lattice is not None]


def _of_all_rows(analysis: Analysis, pair: MeasuredAggregation) -> Cell | None:
    """Return the single cell of a query that counts the same rows in all aggregates."""
    measured = analysis.measured
    if not all(m.of == "rows" and m.aggregation.kind.moments and count_of(m) == count_of(pair) for m in measured):
        return None
    counted: Value = (Literal(1, pair.aggregation.exact_type), None)
    values = [counted if m.sum is None else (m.aggregation.argument, m.aggregation.second) for m in measured]
    return Cell(None, tuple(values))


@dataclass(frozen=True, slots=True)
class _DividedCell:
    """A cell with the values that its rows are divided by, their ranges and degrees (2 if squares are requested);
    `first`: the place of its first share."""

    values: tuple[Value, ...]
    sides: Mapping[Expr, tuple[Interval, int]]
    first: int

    @property
    def indices(self) -> list[tuple[int, ...]]:
        """The index of each share; one empty index if no value is read, and rows are counted."""
        return list(product(*(range(degree + 1) for _, degree in self.sides.values())))

    def parts(self) -> Iterator[LatticeShare | CountRows]:
        grids = [_grid(expr, held) for expr, (held, _) in self.sides.items()]
        degrees = [degree for _, degree in self.sides.values()]
        for index in self.indices:
            if not index:
                yield CountRows(None)
            else:  # a single value is divided once
                yield LatticeShare(grids[0], grids[-1], (degrees[0], sum(degrees[1:])), (index[0], sum(index[1:])))

    def line(self, of: Mapping[Expr, Callable[[int], tuple[int, ...]]], worth: float) -> Iterator[tuple[int, float]]:
        """Yield a polynomial of the values as a combination of shares: for each value, the polynomial in `of` for its
        degree, or 1."""
        lines = [of[expr](degree) if expr in of else (1,) * 3 for expr, (_, degree) in self.sides.items()]
        for place, index in enumerate(self.indices, start=self.first):
            weight = worth
            for line, at in zip(lines, index, strict=True):
                weight *= line[at]
            if weight:
                yield place, weight


def _sides(measured: tuple[MeasuredAggregation, ...], cell: Cell) -> dict[Expr, tuple[Interval, int]] | None:
    """Return the values that rows of a cell are divided by, those of pairs first. None if there are more than two, or
    any is a constant, has a single-value range, or has several ranges."""
    sides: dict[Expr, tuple[Interval, int]] = {}
    for m, (value, other) in sorted(zip(measured, cell.values, strict=True), key=lambda pair: pair[0].other is None):
        if value is None:
            continue
        if m.sum is None:
            if not isinstance(value, Literal):
                return None
            continue
        read = [(value, m.argument.range, "q")]
        if other is not None and m.other is not None:
            read.append((other, m.other.range, "r"))
        for expr, limits, letter in read:
            known, degree = sides.get(expr, (limits, 1))
            varies = float(limits.lower) < float(limits.upper)  # doubles cannot divide a single value
            if isinstance(expr, Literal) or known != limits or value == other or not varies:
                return None
            sides[expr] = limits, 2 if letter in m.aggregation.kind.moments else degree
    return sides if len(sides) <= 2 else None


class _Design:
    """The shares of the requested cells."""

    def __init__(self, analysis: Analysis, cells: tuple[Cell, ...]) -> None:
        self.measured = analysis.measured
        self.public = [
            analysis.public_count and m.sum is None and counts_all(at, cells) for at, m in enumerate(self.measured)
        ]
        self.asked = [cell for cell in cells if (cell.condition is not None or len(cells) == 1) and self._reads(cell)]
        self.alternatives = tuple(cell.condition for cell in self.asked if cell.condition is not None)
        self.cells: list[_DividedCell] = []
        self.parts: list[CountRows | LatticeShare | CellPart] = []
        self.coordinates: list[Coordinate] = []
        self.features: dict[Feature, int] = {}

    def _reads(self, cell: Cell) -> bool:
        """Return whether any aggregate needs non-public facts about a cell's rows."""
        return any(value is not None and not known for (value, _), known in zip(cell.values, self.public, strict=True))

    def lattice(self) -> Lattice | None:
        """Return one coordinate for each share; None if there are too many, or a cell has none."""
        for number, cell in enumerate(self.asked, start=1):
            sides = _sides(self.measured, cell)
            if sides is None:
                return None
            self.cells.append(_DividedCell(cell.values, sides, len(self.parts)))
            self._add(number, cell, self.cells[-1])
        if not 0 < len(self.parts) <= _MOST:
            return None
        if any(self.public):
            self.coordinates.append(Coordinate(Label("count"), ((len(self.parts), 1),), 1.0, noisy=False))
            self.parts.append(CountRows(None))
        estimates = tuple(self._estimate(place, m) for place, m in enumerate(self.measured))
        parts, coordinates = tuple(self.parts), tuple(self.coordinates)
        return Lattice(parts, coordinates, estimates, features=tuple(self.features), divided=True)

    def _add(self, number: int, cell: Cell, divided: _DividedCell) -> None:
        for index, part in zip(divided.indices, divided.parts(), strict=True):
            what = f"share {''.join(map(str, index))} of " if index else "count"
            name = Label(what, tuple(divided.sides), when=cell.condition)
            steps = 1 if index else SHARE_STEPS
            self.coordinates.append(Coordinate(name, ((len(self.parts), steps),), 1 / SHARE_STEPS))
            self.parts.append(part if cell.condition is None else CellPart(part, self.alternatives, number))

    def _estimate(self, at: int, m: MeasuredAggregation) -> Estimate:
        kind, count = m.aggregation.kind, self._feature(at, "", 1.0)
        if m.sum is None:
            return Estimate(kind, None, count, 0.0, point(0), whole=True)
        limits = m.argument.range
        total, moments = self._feature(at, "s", half(limits)), None
        if kind.second_moments:
            moments = Moments(half(limits), self._feature(at, "q", 1.0) if "q" in kind.moments else None)
        if m.other is not None and moments is not None:
            moments = replace(
                moments,
                product=self._feature(at, "st", 1.0),
                sum=self._feature(at, "t", half(m.other.range)),
                other_square=self._feature(at, "r", 1.0) if "r" in kind.moments else None,
                centre=middle(m.other.range),
                other_half=half(m.other.range),
            )
        return Estimate(kind, total, count, middle(limits), limits, whole=False, moments=moments)

    def _feature(self, at: int, letters: str, worth: float) -> int:
        """Return the feature of a moment of an aggregate, summed over cells: s and q are the first value and its
        square, t and r the second and its square, several letters a product."""
        if self.public[at]:
            return self.features.setdefault(((len(self.coordinates) - 1, 1.0),), len(self.features))
        terms: list[tuple[int, float]] = []
        for cell in self.cells:
            value, other = cell.values[at]
            if value is None:
                continue
            read = {value if letter in "sq" else other: letter for letter in letters}
            lines = {expr: _LINES[letter] for expr, letter in read.items() if expr is not None}
            terms.extend(cell.line(lines, worth))
        return self.features.setdefault(tuple(terms), len(self.features))


_LINES: dict[str, Callable[[int], tuple[int, ...]]] = {
    "s": _U.__getitem__,
    "t": _U.__getitem__,
    "q": lambda _degree: _SQUARE,
    "r": lambda _degree: _SQUARE,
}


def _grid(expr: Expr, held: Interval) -> LatticeSum:
    lower, upper = float(held.lower), float(held.upper)
    return LatticeSum(expr, lower, upper, lower, SHARE_STEPS / (upper - lower), 0, SHARE_STEPS, whole=False)
