"""Aggregates over rows that exclude each other: counts and sums of cells, of which each row is in one.

Filters that exclude each other or nest (CASE, FILTER, COUNT_IF, bands), booleans and NULLs tell cells of rows apart.
One row moves the coordinates of its own cell alone, so each cell has the noise of the whole epsilon (`core.classes`),
and what is asked of several cells is the sum of theirs: twelve bands have the error of one count. Whether that is
better than coordinates of all rows is decided by the exact expected error, as for every design (`choose`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.core.exact import CountRows, InCell
from dpsql.core.sensitivity import Analysis, Measured
from dpsql.core.unit import Neighbours
from dpsql.plan.expressions import Call, Expr, Fact, Literal
from dpsql.plan.facts import fact
from dpsql.release.design.alternatives import (
    State,
    Told,
    Undecided,
    conditions_of,
    made,
    states_of,
    value_in,
)
from dpsql.release.design.coordinates import Builder
from dpsql.release.design.grids import Grid
from dpsql.release.design.wanted import Wanted
from dpsql.release.labels import Label
from dpsql.release.parts import Estimate, Feature, Lattice
from dpsql.release.values import argument_of, is_whole, middle
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval, point

MOST_CELLS = 64
_MOST_CHANGED = 16
"""Cells under bounded neighbours, where a row can leave any for any other."""
_MOST_WORK = 4_096
_AVERAGED_FROM = 2
_LARGEST = 2.0**40
"""Beyond it middles of ranges, which are factors here, are left to designs that keep them as fractions."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's alternative, None of rows that nobody asks for, and what each aggregate's argument comes to there."""

    condition: Expr | None
    values: tuple[Expr | None, ...]


def cells_of(analysis: Analysis) -> tuple[Cell, ...]:
    """The cells that a query's aggregates tell apart; none where there is one only, or too many."""
    measured = analysis.measured
    if not analysis.private or not all(map(_of_rows, measured)):
        return ()
    conditions = [each for m in measured if m.aggregation.argument for each in conditions_of(m.aggregation.argument)]
    try:
        apart = _told_apart(analysis, conditions)
    except Undecided:
        return ()
    if apart is None:
        return ()
    states, rows = apart
    most = _MOST_CHANGED if analysis.neighbours is Neighbours.BOUNDED else MOST_CELLS
    if not 2 <= len(rows) <= min(most, 4 * len(measured) + 4):
        return ()
    told = Told(states)
    asked = {values: _is_asked(measured, values) for values in rows}
    return tuple(Cell(told.of(own) if asked[values] else None, values) for values, own in rows.items())


def _of_rows(m: Measured) -> bool:
    """Whether an aggregate is a count, a sum or an average of rows, in bounds that factors of doubles are good for."""
    held = m.argument.range
    small = m.sum is None or (held.bounded and held.magnitude < _LARGEST)
    return m.of == "rows" and m.aggregation.kind.moments in ("n", "s", "ns") and m.other is None and small


Values = tuple[Expr | None, ...]


def _told_apart(analysis: Analysis, conditions: list[Expr]) -> tuple[list[State], dict[Values, list[int]]] | None:
    """The states of the conditions, and of whether values are NULL that aggregates come to in some of them; and where
    the aggregates come to the same."""
    values_of = _values(analysis, states := states_of(conditions, analysis.known))
    if states is None or values_of is None:
        return None
    values = dict.fromkeys(value for values in values_of for value in values if value is not None)
    told = states[0].nulls
    nullable = [each for each in values if each not in told and fact(each, analysis.known).nullable]
    if nullable:
        states = states_of([*conditions, *(made("is_null", each) for each in nullable)], analysis.known)
        values_of = _values(analysis, states)
        if states is None or values_of is None:
            return None
    rows: dict[Values, list[int]] = {}
    for row, each in enumerate(values_of):
        rows.setdefault(each, []).append(row)
    return states, rows


def _values(analysis: Analysis, states: list[State] | None) -> list[Values] | None:
    """What arguments come to in each state; None where that would be too much work."""
    if states is None or len(states) * len(analysis.measured) > _MOST_WORK:
        return None
    return [tuple(_value(m, state, analysis) for m in analysis.measured) for state in states]


def _value(m: Measured, state: State, analysis: Analysis) -> Expr | None:
    """What an argument comes to: None for NULL; of counts, which ask for no more, 1."""
    if m.aggregation.argument is None:
        return _ONE
    value = value_in(m.aggregation.argument, state)
    if isinstance(value, Literal):
        return None if value.value is None else _ONE if m.sum is None else value
    sure = state.nulls.get(value) is False or not fact(value, analysis.known).nullable
    return _ONE if m.sum is None and sure else value


def _is_asked(measured: Sequence[Measured], values: Values) -> bool:
    """Whether any aggregate asks for rows of a cell. Others need no alternative: they are the rest."""
    return any(_counts(m, value) or _is_summed(value) for m, value in zip(measured, values, strict=True))


def _counts(m: Measured, value: Expr | None) -> bool:
    """Whether an aggregate asks for the number of rows where its argument comes to a value."""
    if value is None:
        return False
    return "n" in m.aggregation.kind.moments or (isinstance(value, Literal) and bool(value.value))


def _is_summed(value: Expr | None) -> bool:
    return value is not None and not isinstance(value, Literal)


_ONE = Literal(1, Type.INTEGER)


def in_cells(analysis: Analysis, epsilon: Fraction, wanted: Wanted, *, law: str) -> list[Lattice]:
    """The design by cells, if there is one."""
    if wanted.selects or wanted.levels or law == "split":
        return []
    cells = cells_of(analysis)
    if not cells:
        return []
    found = (CellBuilder(analysis, epsilon, wanted, cells, law, coarse=coarse).build() for coarse in (False, True))
    return [each for each in (next((lattice for lattice in found if lattice is not None), None),) if each is not None]


class CellBuilder(Builder):
    """Collects counts and sums of cells; a feature is the sum of what an aggregate comes to in each."""

    def __init__(
        self, analysis: Analysis, epsilon: Fraction, wanted: Wanted, cells: tuple[Cell, ...], law: str, *, coarse: bool
    ) -> None:
        super().__init__(analysis, epsilon, wanted, coarse=coarse)
        self.asked = [cell for cell in cells if cell.condition is not None]
        self.alternatives = tuple(cell.condition for cell in self.asked if cell.condition is not None)
        self.law, self.divides = law, wanted.divides
        self.classes: list[int] = []
        self.features: list[Feature] = []
        self.sums: dict[tuple[Expr, Interval], Grid] = {}
        self.follows = self._follows() if analysis.public_count and len(self.asked) == len(cells) == 2 else 0

    def _follows(self) -> int:
        """Of two cells, where the number of all rows is public, one whose rows need not be counted; 0: both do."""
        plain = [not any(map(_is_summed, cell.values)) for cell in self.asked]
        return 2 if plain[1] else 1 if plain[0] else 0

    def build(self) -> Lattice | None:
        """The lattice; None where integers have no common multiple of reasonable size."""
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
        """Of counts alone, each in a class of its own, the integers: nothing of the fine lattice is needed there, but
        for the intervals of averages and quotients where noise is wide."""
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

    def _of(self, place: int, m: Measured) -> Estimate:
        """An aggregate from its cells."""
        kind = m.aggregation.kind
        values = [(number, cell.values[place]) for number, cell in enumerate(self.asked, start=1)]
        some = [(number, value) for number, value in values if value is not None]
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

    def _feature(self, terms: Iterable[tuple[int, float]]) -> int:
        found: dict[int, float] = {}
        for place, factor in terms:
            found[place] = found.get(place, 0.0) + factor
        feature = tuple((place, factor) for place, factor in found.items() if factor)
        self.features.append(feature)
        return len(self.features) - 1

    def _terms(self, m: Measured, number: int, value: Expr, centre: float) -> list[tuple[int, float]]:
        """What a cell adds to a sum of values less their centre: coordinates with factors."""
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
        """The number of rows in a cell, so many times: of the one that follows, what the other leaves of all rows."""
        if number != self.follows:
            return [(self._count(number), factor)]
        place = self._counted(CountRows(None))
        if place == len(self.classes):
            self.classes.append(0)
        return [(place, factor), (self._count(3 - number), -factor)]

    def _held(self, m: Measured, value: Expr) -> Interval:
        """The range of a value where an argument comes to it."""
        own = fact(value, self.analysis.known)
        held = (own.range.intersect(m.argument.range) if own.limited else None) or m.argument.range
        return Interval(math.ceil(held.lower), math.floor(held.upper)) if is_whole(value) else held

    def _is_counted(self, number: int) -> bool:
        """Whether rows of a cell are counted anyway: then sums are centred. By itself a sum has less noise as it is."""
        pairs = zip(self.analysis.measured, self.asked[number - 1].values, strict=True)
        return any(_counts(m, value) for m, value in pairs)

    def _count(self, number: int) -> int:
        return self._in(number, Label("count"), ((InCell(CountRows(None), self.alternatives, number), 1),), 1.0)

    def _plain(self, number: int, value: Expr, held: Interval) -> int:
        part, step = self._raw(value, held)
        return self._in(number, Label("sum", (value,)), ((InCell(part, self.alternatives, number), 1),), step)

    def _centred_in(self, number: int, grid: Grid) -> int:
        size = grid.part.most
        name = Label("sum", (grid.part.value,), grid.origin + grid.step * size / 2)
        own, count = (InCell(part, self.alternatives, number) for part in (grid.part, CountRows(None)))
        return self._in(number, name, ((own, 2), (count, -size)), grid.step / 2)

    def _in(self, number: int, name: Label, terms: tuple[tuple[InCell, int], ...], unit: float) -> int:
        """The coordinate of a cell, whose class it is in."""
        name = _named(name, self.alternatives[number - 1])
        place = self._add(name, tuple((self._part(part), factor) for part, factor in terms), unit)
        if place == len(self.classes):
            self.classes.append(number)
        return place

    def _grid(self, value: Expr, held: Interval) -> Grid:
        """Integers keep their own while the common multiple of all stays small."""
        if (value, held) not in self.sums:
            width = max(1, int(held.upper - held.lower))
            sizes = [max(1, grid.part.most) for grid in self.sums.values()]
            exact = is_whole(value) and math.lcm(width, *sizes) <= self.fineness.most_exact()
            self.sums[value, held] = self.fineness.grid(value, Fact(held), width if exact else 0)
        return self.sums[value, held]


def _named(name: Label, condition: Expr) -> Label:
    """A count or sum of the rows of which a condition is TRUE; of those where a value is not NULL, as one of values."""
    absent = condition.args[0] if isinstance(condition, Call) and condition.function.name == "not" else None
    value = absent.args[0] if isinstance(absent, Call) and absent.function.name == "is_null" else None
    if value is not None and name.of in ((), (value,)):
        return replace(name, of=(value,))
    return replace(name, when=condition)
