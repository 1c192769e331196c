"""Aggregates over disjoint cells of rows: each row counts in one cell only.

Filters that exclude each other or nest (CASE, FILTER, COUNT_IF, bands), booleans and NULLs divide rows into cells. A
row moves only the coordinates of its own cell, so each cell has the noise of the whole epsilon
(`core.mechanisms.coordinate_classes`). An aggregate over several cells is the sum of theirs: twelve bands have the
error of one count. As for every design, the exact expected error decides whether this is better than coordinates of all
rows (`choose`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from dpsql.core.exact import CellPart, CountRows
from dpsql.core.sensitivity.row_contributions import Analysis, MeasuredAggregation
from dpsql.plan.expressions import Call, Expr, Fact, Literal
from dpsql.plan.facts import fact
from dpsql.release.design.coordinates import Builder
from dpsql.release.design.distinguished_cells import Cell, cells_of, counts, counts_all, is_summed
from dpsql.release.design.grids import Grid
from dpsql.release.design.requirements import GroupRequirement
from dpsql.release.output.labels import Label
from dpsql.release.parts import Estimate, Feature, Lattice, Moments
from dpsql.release.values import argument_of, half, is_whole, middle
from dpsql.schema.intervals import Interval, point

_AVERAGED_FROM = 2


def in_cells(analysis: Analysis, epsilon: Fraction, wanted: GroupRequirement, *, law: str) -> list[Lattice]:
    """Return the design by cells, if there is one."""
    if wanted.selects or wanted.levels or law == "split":
        return []
    cells = cells_of(analysis)
    if not cells:
        return []
    found = (CellBuilder(analysis, epsilon, wanted, cells, law, coarse=coarse).build() for coarse in (False, True))
    return [each for each in (next((lattice for lattice in found if lattice is not None), None),) if each is not None]


class CellBuilder(Builder):
    """Collects counts and sums of cells; a feature is the sum of an aggregate's values over its cells."""

    def __init__(
        self,
        analysis: Analysis,
        epsilon: Fraction,
        wanted: GroupRequirement,
        cells: tuple[Cell, ...],
        law: str,
        *,
        coarse: bool,
    ) -> None:
        super().__init__(analysis, epsilon, wanted, coarse=coarse)
        self.cells = cells
        self.asked = [cell for cell in cells if cell.condition is not None]
        self.alternatives = tuple(cell.condition for cell in self.asked if cell.condition is not None)
        self.law, self.divides = law, wanted.divides
        self.classes: list[int] = []
        self.features: list[Feature] = []
        self.sums: dict[tuple[Expr, Interval], Grid] = {}
        self.follows = self._follows() if analysis.public_count and len(self.asked) == len(cells) == 2 else 0

    def _follows(self) -> int:
        """Return the cell whose rows need not be counted, if there are two cells and the number of all rows is public;
        else 0."""
        plain = [not any(map(is_summed, cell.values)) for cell in self.asked]
        return 2 if plain[1] else 1 if plain[0] else 0

    def build(self) -> Lattice | None:
        """Return the lattice; None if the integers have no common multiple of reasonable size."""
        estimates = tuple(self._of(place, m) for place, m in enumerate(self.analysis.measured))
        if not all(self.features):
            return None
        moves = self._moves()
        steps = self._steps([each for each in moves if each])
        if steps is None:
            return None
        pairs = zip(self.coordinates, moves, strict=True)
        coordinates = tuple(each.times(steps // moved) if moved else each for each, moved in pairs)
        features = tuple(self.features)
        return Lattice(
            tuple(self.parts), coordinates, estimates, features=features, one_row=0, classes=tuple(self.classes)
        )

    def _steps(self, moves: list[int]) -> int | None:
        """Return the common sensitivity. Counts that are each in a separate class stay integers: they need the fine
        lattice only for the intervals of averages and quotients with wide noise."""
        if not moves:
            return 1
        averages = self.divides or not all(m.aggregation.kind.linear for m in self.analysis.measured)
        if (
            set(moves) == {moves[0]}
            and not (averages and self.epsilon < _AVERAGED_FROM)
            and self.law != "gaussian"
            and len(set(self.classes)) == len(self.classes)
        ):
            return moves[0]
        return self._common_steps(moves)

    def _of(self, place: int, m: MeasuredAggregation) -> Estimate:
        """Return the estimate of an aggregate from its cells."""
        kind = m.aggregation.kind
        values = [(number, cell.values[place]) for number, cell in enumerate(self.asked, start=1)]
        if kind.second_moments:
            return self._of_moments(m, [(number, *both) for number, both in values if both[0] is not None])
        some = [(number, value) for number, (value, _) in values if value is not None]
        if m.sum is None and self.analysis.public_count and counts_all(place, self.cells):
            return Estimate(kind, None, self._alone(self._all()), 0.0, point(0), whole=True)
        count = None
        if "n" in kind.moments:
            count = self._feature(term for number, _ in some for term in self._rows(number, 1.0))
        if m.sum is None:
            return Estimate(kind, None, count, 0.0, point(0), whole=True)
        limits = m.argument.range
        centre = 0.0 if count is None else middle(limits)
        total = self._feature(term for number, value in some for term in self._terms(m, number, value, centre))
        whole = kind.linear and is_whole(argument_of(m))
        return Estimate(kind, total, count, centre, limits, whole)

    def _of_moments(self, m: MeasuredAggregation, found: list[tuple[int, Expr | None, Expr | None]]) -> Estimate:
        """Return second moments of the rows of one cell. Those of several cells have separate designs (`encodings`),
        because intervals for sums over classes take long to compute."""
        kind, limits = m.aggregation.kind, m.argument.range
        number, value, other = found[0] if len(found) == 1 else (0, None, None)
        varies = all(each.range.lower < each.range.upper for each in (m.argument, m.other) if each is not None)
        if value is None or isinstance(value, Literal) or isinstance(other, Literal) or not varies:
            self._feature(())
            return Estimate(kind, None, None, 0.0, limits, whole=False)
        count, own = self._feature(self._rows(number, 1.0)), self._grid(value, limits)
        total = self._alone(self._centred_in(number, own))
        square = self._square_in(number, own) if "q" in kind.moments else None
        moments = Moments(half(limits), square)
        if other is not None and m.other is not None:
            beside = self._grid(other, m.other.range)
            moments = replace(
                moments,
                product=self._product_in(number, own, beside),
                sum=self._alone(self._centred_in(number, beside)),
                other_square=self._square_in(number, beside) if "r" in kind.moments else None,
                centre=middle(m.other.range),
                other_half=half(m.other.range),
            )
        return Estimate(kind, total, count, middle(limits), limits, whole=False, moments=moments)

    def _alone(self, place: int) -> int:
        return self._feature([(place, 1.0)])

    def _feature(self, terms: Iterable[tuple[int, float]]) -> int:
        found: dict[int, float] = {}
        for place, factor in terms:
            found[place] = found.get(place, 0.0) + factor
        feature = tuple((place, factor) for place, factor in found.items() if factor)
        self.features.append(feature)
        return len(self.features) - 1

    def _terms(self, m: MeasuredAggregation, number: int, value: Expr, centre: float) -> list[tuple[int, float]]:
        """Return a cell's contribution to a sum of centred values: coordinates with factors."""
        if isinstance(value, Literal):
            factor = float(value.value) - centre  # type: ignore[arg-type]
            return self._rows(number, factor) if factor else []
        limits = self._held(m, value)
        if limits.lower == limits.upper:
            return self._rows(number, float(limits.lower) - centre)
        if not self._is_counted(number):
            return [(self._plain(number, value, limits), 1.0)]
        grid = self._grid(value, limits)
        return [(self._centred_in(number, grid), 1.0), *self._rows(number, middle(limits) - centre)]

    def _rows(self, number: int, factor: float) -> list[tuple[int, float]]:
        """Return the number of rows in a cell times a factor. The cell that is not counted has the rows that the other
        leaves."""
        if number != self.follows:
            return [(self._count(number), factor)]
        return [(self._all(), factor), (self._count(3 - number), -factor)]

    def _all(self) -> int:
        """Return the place of the public number of all rows."""
        place = self._counted(CountRows(None))
        if place == len(self.classes):
            self.classes.append(0)
        return place

    def _held(self, m: MeasuredAggregation, value: Expr) -> Interval:
        """Return the range of a value that an argument takes in a cell."""
        own = fact(value, self.analysis.known)
        held = (own.range.intersect(m.argument.range) if own.limited else None) or m.argument.range
        return Interval(math.ceil(held.lower), math.floor(held.upper)) if is_whole(value) else held

    def _is_counted(self, number: int) -> bool:
        """Return whether rows of a cell are counted anyway, so that sums are centred. A sum without a count has less
        noise uncentred."""
        pairs = zip(self.analysis.measured, self.asked[number - 1].values, strict=True)
        return any(counts(m, value) for m, value in pairs)

    def _count(self, number: int) -> int:
        return self._in(number, Label("count"), ((CellPart(CountRows(None), self.alternatives, number), 1),), 1.0)

    def _plain(self, number: int, value: Expr, held: Interval) -> int:
        part, step = self._raw(value, held)
        return self._in(number, Label("sum", (value,)), ((CellPart(part, self.alternatives, number), 1),), step)

    def _centred_in(self, number: int, grid: Grid) -> int:
        size = grid.part.most
        name = Label("sum", (grid.part.value,), grid.origin + grid.step * size / 2)
        own, count = (CellPart(part, self.alternatives, number) for part in (grid.part, CountRows(None)))
        return self._in(number, name, ((own, 2), (count, -size)), grid.step / 2)

    def _square_in(self, number: int, grid: Grid) -> int:
        """Return the feature for the sum of 2 u^2 - 1 over rows."""
        part = self._times(grid, grid)
        own, count = (CellPart(each, self.alternatives, number) for each in (part, CountRows(None)))
        name = Label("sum of squares", (grid.part.value,))
        return self._alone(self._in(number, name, ((own, 2), (count, -part.most)), 1 / part.most))

    def _product_in(self, number: int, own: Grid, other: Grid) -> int:
        """Return the feature for the sum of u v over rows."""
        part = self._times(own, other)
        name = Label("sum of products", (own.part.value, other.part.value))
        return self._alone(self._in(number, name, ((CellPart(part, self.alternatives, number), 1),), 1 / part.most))

    def _in(self, number: int, name: Label, terms: tuple[tuple[CellPart, int], ...], unit: float) -> int:
        """Return the place of a cell's coordinate, and record its class."""
        name = _named(name, self.alternatives[number - 1])
        place = self._add(name, tuple((self._part(part), factor) for part, factor in terms), unit)
        if place == len(self.classes):
            self.classes.append(number)
        return place

    def _grid(self, value: Expr, held: Interval) -> Grid:
        """Return the grid of a value; integers keep their own grid while the common multiple of all stays small."""
        if (value, held) not in self.sums:
            width = max(1, int(held.upper - held.lower))
            sizes = [max(1, grid.part.most) for grid in self.sums.values()]
            exact = is_whole(value) and math.lcm(width, *sizes) <= self.fineness.most_exact()
            self.sums[value, held] = self.fineness.grid(value, Fact(held), width if exact else 0)
        return self.sums[value, held]


def _named(name: Label, condition: Expr) -> Label:
    """Return the label of a count or sum over rows with a TRUE condition; IS NOT NULL of a value becomes a count of
    values."""
    absent = condition.args[0] if isinstance(condition, Call) and condition.function.name == "not" else None
    value = absent.args[0] if isinstance(absent, Call) and absent.function.name == "is_null" else None
    if value is not None and name.of in ((), (value,)):
        return replace(name, of=(value,))
    return replace(name, when=condition)
