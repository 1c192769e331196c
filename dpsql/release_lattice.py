"""From aggregations to integers: which sums are taken, on which lattice, and how the answers follow from them.

Each aggregation needs a count, a sum, or both. A count moves by 1 a row. A sum of values in [L, U] is taken centred,
2 q - N for a value on the grid q = 0..N of [L, U], whenever the matching count is there too: one row then moves it by
at most N instead of by the larger end, and SUM = centred sum + midpoint * count, AVG = midpoint + centred sum / count.
Coordinates are scaled by whole numbers to one common sensitivity, `Lattice.steps` (or just below it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.analysis.sensitivity import Analysis, Contribution, Measured
from dpsql.executors.base import CountRows, LatticeSum, Part
from dpsql.intervals import Interval, Number, point
from dpsql.privacy.unit import Neighbours
from dpsql.schema import Type
from dpsql.sql.expressions import Expr
from dpsql.sql.plan import AggregateKind

_FINEST = 44
"""Lattices have at most 2^44 steps over the range of a value."""
_FINENESS = 2**20
"""Real values are rounded to a grid this much finer than the noise, at least."""


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One integer per group, a combination of parts: sum of factor * part over `terms`; `unit` is a step's worth.

    `row`: what one row can add, in steps; `l2_squared`: the squared L2 sensitivity over groups, in steps.
    `noisy` is False for what neighbours have in common (the number of rows, under bounded neighbours).
    """

    name: str
    terms: tuple[tuple[int, int], ...]
    unit: float
    row: Contribution
    sensitivity: int
    l2_squared: Fraction
    noisy: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """An aggregation from coordinates: COUNT = count, SUM = sum + centre * count, AVG = centre + sum / count.

    `sum` and `count` are places among the coordinates; None where the term is absent (a sum that is not centred, or a
    centred sum that is always 0). `range` holds the average.
    """

    kind: AggregateKind
    sum: int | None
    count: int | None
    centre: float
    range: Interval
    whole: bool
    """The exact answer is an integer."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """The lowered query. `steps`: the common sensitivity of all noisy coordinates; `selection`: the coordinate that
    decides which groups are shown, in which one unit counts `one_unit` steps; `groups_of_a_unit`: how many groups can
    appear or vanish with one unit (1; 2 under bounded neighbours, where a row can leave one group and open another)."""

    parts: tuple[Part, ...]
    coordinates: tuple[Coordinate, ...]
    estimates: tuple[Estimate, ...]
    steps: int
    selection: int
    one_unit: int
    groups_of_a_unit: int


@dataclass(frozen=True, slots=True)
class _Sum:
    """One wanted sum on its grid: part, value of q = 0, worth of a step, and the range of q."""

    part: LatticeSum
    origin: float
    step: float


def lower(analysis: Analysis, epsilon: Fraction, *, strategy: str, selects: bool) -> Lattice:
    """Lower an analysed plan's aggregations. `selects`: a count of rows is needed to decide which groups are shown.

    A SUM whose count nobody asks for can be taken as it is, or centred beside a count of its own: whichever has less
    error by public facts.
    """
    plain = _lattice(analysis, epsilon, selects, centre_all=False)
    if all(each.count is not None for each in plain.estimates):
        return plain
    centred = _lattice(analysis, epsilon, selects, centre_all=True)
    return min(plain, centred, key=lambda lattice: _error(lattice, strategy))


def _lattice(analysis: Analysis, epsilon: Fraction, selects: bool, *, centre_all: bool) -> Lattice:
    """The lattice on the integers themselves where their common multiple allows it, else on coarser grids."""
    fine = _Builder(analysis, epsilon, selects, centre_all=centre_all, coarse=False)
    lattice = fine.build()
    if lattice is None:
        lattice = _Builder(analysis, epsilon, selects, centre_all=centre_all, coarse=True).build()
    assert lattice is not None  # coarse grids always have a common scale
    return lattice


def _error(lattice: Lattice, strategy: str) -> float:
    """The sum of the logarithms of the aggregations' error variances, up to what is common to both choices."""
    d = sum(each.noisy for each in lattice.coordinates)
    spread = 2.0 * d * d if strategy == "split" else (d + 1) * (d + 2) / 3
    total = 0.0
    for each in lattice.estimates:
        places = [(each.sum, 1.0), (each.count, each.centre if each.kind is AggregateKind.SUM else 1.0)]
        worth = [lattice.coordinates[p].unit * factor for p, factor in places if p is not None]
        variance = spread * sum((unit * lattice.steps) ** 2 for unit in worth)
        total += math.log(variance) if variance else 0.0
    return total


class _Builder:
    """Collects parts and coordinates, each once."""

    def __init__(self, analysis: Analysis, epsilon: Fraction, selects: bool, *, centre_all: bool, coarse: bool) -> None:
        self.analysis = analysis
        self.coarse = coarse
        self.epsilon = epsilon
        self.selects = selects
        self.centre_all = centre_all
        self.parts: dict[Part, int] = {}
        self.coordinates: list[Coordinate] = []

    def build(self) -> Lattice | None:
        """The lattice; None where integers have no common multiple of reasonable size."""
        measured = self.analysis.measured
        counted = {_count_of(m) for m in measured if m.aggregation.kind is not AggregateKind.SUM}
        if self.selects:
            counted.add(CountRows(None))
        self.grids = self._grids([m for m in measured if m.sum is not None])
        estimates = [self._estimate(m, counted) for m in measured]
        selection = self._count(CountRows(None), sure=False) if self.selects else 0
        steps = self._common_steps()
        if steps is None:
            return None
        coordinates = tuple(
            _times(each, steps // each.sensitivity) if each.noisy else each for each in self.coordinates
        )
        one_unit = coordinates[selection].terms[0][1] if self.selects else 0
        groups = 2 if self.analysis.neighbours is Neighbours.BOUNDED else 1
        return Lattice(tuple(self.parts), coordinates, tuple(estimates), steps, selection, one_unit, groups)

    def _estimate(self, m: Measured, counted: set[CountRows]) -> Estimate:
        kind = m.aggregation.kind
        count = _count_of(m)
        if m.sum is None:
            return Estimate(kind, None, self._count(count, m.count.sure), 0.0, point(0), whole=True)
        held = m.argument.range
        whole = kind is AggregateKind.SUM and _is_whole(m)
        public = self.analysis.public_count and m.count.sure
        if kind is AggregateKind.SUM and count not in counted and not self.centre_all and not public:
            return Estimate(kind, self._raw_sum(m), None, 0.0, held, whole)
        centre = float(Fraction(held.lower) + Fraction(held.upper)) / 2
        place = self._count(count, m.count.sure)
        return Estimate(kind, self._centred_sum(m, count), place, centre, held, whole)

    def _count(self, part: CountRows, sure: bool) -> int:
        row = Contribution(point(1), sure)
        return self._add(
            "count" if part.present is None else f"count({part.present})", ((self._part(part), 1),), 1.0, row
        )

    def _centred_sum(self, m: Measured, count: CountRows) -> int | None:
        grid = self.grids[_argument(m)]
        size = grid.part.most
        if size == 0:
            return None  # one value only: the sum is that value times the count
        row = Contribution(Interval(-size, size), _surely(m))
        terms = ((self._part(grid.part), 2), (self._part(count), -size))
        middle = _short(grid.origin + grid.step * size / 2)
        name = (
            f"sum({_argument(m)} - {middle})" if not middle.startswith("-") else f"sum({_argument(m)} + {middle[1:]})"
        )
        return self._add(name, terms, grid.step / 2, row)

    def _raw_sum(self, m: Measured) -> int:
        argument, held = _argument(m), m.argument.range
        if _is_whole(m) and held.magnitude <= self._most_exact():
            part = LatticeSum(argument, held.lower, held.upper, 0, 1.0, int(held.lower), int(held.upper), whole=True)
            step = 1.0
        else:
            size = self._real_steps()
            scale = size / held.magnitude if held.magnitude else 1.0
            least = max(-size, math.floor(held.lower * scale))
            most = min(size, math.ceil(held.upper * scale))
            part = LatticeSum(argument, held.lower, held.upper, 0, scale, least, most, whole=False)
            step = 1 / scale
        row = Contribution(Interval(part.least, part.most), _surely(m))
        return self._add(f"sum({argument})", ((self._part(part), 1),), step, row)

    def _grids(self, summed: list[Measured]) -> dict[Expr, _Sum]:
        """A grid for each summed argument. Integers get the grid of all integers, exact, as long as the common multiple
        of the grids' sizes stays small; else 2^k steps."""
        sizes: dict[Expr, int] = {}
        common = 1
        for m in summed:
            width = m.argument.range.upper - m.argument.range.lower
            exact = _is_whole(m) and math.lcm(common, max(1, int(width))) <= self._most_exact()
            sizes[_argument(m)] = int(width) if exact else 0
            common = math.lcm(common, max(1, sizes[_argument(m)]))
        return {_argument(m): self._grid(m, sizes[_argument(m)]) for m in summed}

    def _grid(self, m: Measured, exact_size: int) -> _Sum:
        argument, held = _argument(m), m.argument.range
        if exact_size or held.lower == held.upper:
            whole = _is_whole(m)
            part = LatticeSum(argument, held.lower, held.upper, held.lower, 1.0, 0, exact_size, whole=whole)
            return _Sum(part, float(held.lower), 1.0)
        size = self._real_steps()
        lower_end, upper_end = float(held.lower), float(held.upper)
        scale = size / (upper_end - lower_end)
        part = LatticeSum(argument, lower_end, upper_end, lower_end, scale, 0, size, whole=False)
        return _Sum(part, lower_end, (upper_end - lower_end) / size)

    def _real_steps(self) -> int:
        """Steps over the range of a real value: 2^30 at epsilon 1, finer for larger epsilon."""
        return 1 << max(10, min(_FINEST, 30 + _log2(self.epsilon)))

    def _most_steps(self) -> int:
        return 1 << max(10, min(_FINEST, 40 + _log2(self.epsilon)))

    def _most_exact(self) -> int:
        """The widest range of integers that keeps its own grid; booleans always do."""
        return 1 if self.coarse else self._most_steps()

    def _part(self, part: Part) -> int:
        return self.parts.setdefault(part, len(self.parts))

    def _add(self, name: str, terms: tuple[tuple[int, int], ...], unit: float, row: Contribution) -> int:
        for place, each in enumerate(self.coordinates):
            if each.terms == terms:
                return place
        norms = self.analysis.of(row)
        l1 = round(norms.l1)  # of whole numbers, and whole
        l2 = _l2_squared(row, self.analysis)
        self.coordinates.append(Coordinate(name, terms, unit, row, l1, l2, noisy=l1 > 0))
        return len(self.coordinates) - 1

    def _common_steps(self) -> int | None:
        """The common sensitivity of all noisy coordinates: a multiple of each, or, on coarse grids, so much larger that
        a whole factor for each comes within 2^-12 of it. Two and more coordinates share a fine lattice, on which the
        joint law is as good as continuous. None where only coarse grids will do."""
        each = [coordinate.sensitivity for coordinate in self.coordinates if coordinate.noisy]
        steps = math.lcm(*each) if each else 0
        if steps > 4 * self._most_steps():
            return 1 << (max(each).bit_length() + 12) if self.coarse else None
        if len(each) > 1:
            fineness = math.ceil(_FINENESS * self.epsilon)
            steps <<= max(0, math.ceil(fineness / steps) - 1).bit_length()
        return steps


def _times(each: Coordinate, factor: int) -> Coordinate:
    terms = tuple((part, weight * factor) for part, weight in each.terms)
    row = Contribution(Interval(each.row.range.lower * factor, each.row.range.upper * factor), each.row.sure)
    return replace(
        each,
        terms=terms,
        unit=each.unit / factor,
        row=row,
        sensitivity=each.sensitivity * factor,
        l2_squared=each.l2_squared * factor * factor,
    )


def _l2_squared(row: Contribution, analysis: Analysis) -> Fraction:
    """The squared L2 norm of `norms`, in exact integers."""
    largest, width = Fraction(max(abs(row.least), abs(row.most))), Fraction(row.most - row.least)
    if analysis.neighbours is Neighbours.UNBOUNDED:
        return largest * largest
    return max(2 * largest * largest, width * width) if analysis.grouped else width * width


def _log2(number: Fraction) -> int:
    return math.floor(math.log2(number))


def _count_of(m: Measured) -> CountRows:
    """The count that belongs to an aggregation: of all rows, or of those where the argument is not NULL."""
    argument = m.aggregation.argument
    return CountRows(argument if argument is not None and m.argument.nullable else None)


def _surely(m: Measured) -> bool:
    return m.sum is not None and m.sum.sure


def _is_whole(m: Measured) -> bool:
    argument = _argument(m)
    return argument.type in (Type.INTEGER, Type.BOOLEAN)


def _argument(m: Measured) -> Expr:
    assert m.aggregation.argument is not None  # only SUM and AVG come here
    return m.aggregation.argument


def _short(value: Number) -> str:
    return f"{value:.10g}"
