"""Parts for the executor, noisy coordinates, and estimates for each aggregation."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from dpsql.core.exact import (
    LARGEST_STEP_COUNT,
    LARGEST_WHOLE,
    CountDistinct,
    CountRows,
    CountUnits,
    LatticeProduct,
    LatticeSum,
    Part,
    UnitMean,
    UnitTotal,
)
from dpsql.core.sensitivity.row_contributions import Analysis, MeasuredAggregation
from dpsql.plan.expressions import Expr
from dpsql.release.design.grids import FURTHER_OUT, MOST_OF_UNITS, Fineness, Grid, far
from dpsql.release.design.moves import moves_of
from dpsql.release.design.requirements import GroupRequirement
from dpsql.release.design.subcounts import around_the_count
from dpsql.release.output.labels import Label
from dpsql.release.parts import Coordinate, Estimate, Lattice, Moments
from dpsql.release.values import argument_of, count_of, grid_key, half, is_whole, middle, or_zero
from dpsql.schema.intervals import Interval, point

_FINENESS = 2**20
"""Real values are rounded to a grid at least this much finer than the noise."""


class Builder:
    """Collects distinct parts and coordinates."""

    def __init__(self, analysis: Analysis, epsilon: Fraction, wanted: GroupRequirement, *, coarse: bool) -> None:
        self.analysis = analysis
        self.coarse = coarse
        self.epsilon = epsilon
        self.fineness = Fineness(epsilon, coarse=coarse)
        self.selects = wanted.selects
        self.levels = wanted.levels
        self.of_units = wanted.of_units
        self.wanted = wanted
        self.around = wanted.around
        self.parts: dict[Part, int] = {}
        self.coordinates: list[Coordinate] = []
        self.places: dict[tuple[tuple[int, int], ...], int] = {}
        """The places of coordinates by their terms."""

    def build(self) -> Lattice | None:
        """Return the lattice; None if the integers have no common multiple of reasonable size."""
        measured = self.analysis.measured
        by_row = [m for m in measured if m.of == "rows"]
        counted: set[Part] = {count_of(m) for m in by_row if "n" in m.aggregation.kind.moments}
        selecting = self._selecting()
        if self.selects:
            counted.add(selecting)
        self.grids = self.fineness.of([m for m in measured if m.sum is not None and m.of in ("rows", "mean")])
        estimates = [self._estimate(m, counted) for m in measured]
        place = self._counted(selecting) if self.selects else 0
        if self.around and CountRows(None) not in self.parts:
            self._counted(CountRows(None))
        moves = self._moves()
        features = None
        if self.around:
            self.coordinates, features = around_the_count(tuple(self.parts), self.coordinates)
            moves = self._moves()
        steps = self._common_steps([each for each in moves if each])
        if steps is None:
            return None
        coordinates = tuple(
            each.times(steps // moved) if moved else each for each, moved in zip(self.coordinates, moves, strict=True)
        )
        one_row = coordinates[place].terms[0][1] if self.selects else 0
        return Lattice(tuple(self.parts), coordinates, tuple(estimates), place, one_row=one_row, features=features)

    def _moves(self) -> tuple[int, ...]:
        """Return the sensitivity of each coordinate; those with sensitivity 0 become noiseless."""
        moves = moves_of(tuple(self.parts), [each.terms for each in self.coordinates], self.analysis)
        pairs = zip(self.coordinates, moves, strict=True)
        self.coordinates = [each if moved else replace(each, noisy=False) for each, moved in pairs]
        return moves

    def _selecting(self) -> Part:
        """Return the count that decides which groups are shown: the requested COUNT(*), at no additional cost, unless
        units must be counted. A unit may add several to it, which raises the threshold."""
        bounds = self.analysis.bounds
        if bounds.rows.linf == 1:  # each row is a unit
            return CountRows(None)
        asked_for_units = any(m.of == "presence" and not m.argument.nullable for m in self.analysis.measured)
        for m in self.analysis.measured if not asked_for_units else ():
            if m.aggregation.kind.counts and count_of(m) == CountRows(None) and not self.of_units:
                if m.of == "rows":
                    return CountRows(None)
                if m.count.range.lower == 0:
                    return _total_of(m)
        return CountUnits(None)

    def _units(self, present: Expr | None) -> Part:
        """Return the count of units. If a unit has one row per group, in as many groups as its bounds allow, every kept
        row is a unit: the count of rows, which may be requested too, is the same number."""
        rows = self.analysis.bounds.rows
        same = present is None and rows.linf == 1 and rows.l1 == self.analysis.bounds.units.groups
        return CountRows(None) if same else CountUnits(present)

    def _counted(self, part: Part) -> int:
        return self._add(_count_name(part), ((self._part(part), 1),), 1.0)

    def _estimate(self, m: MeasuredAggregation, counted: set[Part]) -> Estimate:
        kind = m.aggregation.kind
        if m.of != "rows":
            return self._estimate_of_units(m)
        if kind.distinct:
            return Estimate(kind.estimated_as or kind, None, self._distinct(m), 0.0, point(0), whole=True)
        count = count_of(m)
        if m.sum is None:
            return Estimate(kind, None, self._counted(count), 0.0, point(0), whole=True)
        limits = m.argument.range
        whole = kind.linear and is_whole(argument_of(m))
        public = self.analysis.public_count and m.count.sure
        if kind.linear and (self.wanted.raw or (count not in counted and not self.wanted.centre_all and not public)):
            return self._on_all(m) if self.wanted.on_all else Estimate(kind, self._raw_sum(m), None, 0.0, limits, whole)
        place = self._counted(count)
        if self._too_wide_for_a_grid(m):
            return Estimate(kind, self._raw_sum(m), place, 0.0, limits, whole)
        centred = self._centred_sum(self.grids[grid_key(m)], count)
        if kind.second_moments:
            return Estimate(kind, centred, place, middle(limits), limits, whole, self._moments(m, count))
        return Estimate(kind, centred, place, middle(limits), limits, whole)

    def _moments(self, m: MeasuredAggregation, count: CountRows) -> Moments:
        """Return the second moments of the summed values."""
        kind, own = m.aggregation.kind, self.grids[grid_key(m)]
        if m.other is None:
            return Moments(half(m.argument.range), self._square(own, count))
        other = self.grids[grid_key(m, second=True)]
        varies = own.part.most > 0 and other.part.most > 0
        return Moments(
            half(m.argument.range),
            self._square(own, count) if "q" in kind.moments else None,
            self._product(own, other) if varies else None,
            self._centred_sum(other, count),
            self._square(other, count) if "r" in kind.moments else None,
            middle(m.other.range),
            half(m.other.range),
        )

    def _square(self, grid: Grid, count: CountRows) -> int | None:
        """Return the coordinate of 2 u^2 - 1 over rows, from -1 to 1 each."""
        if grid.part.most == 0:
            return None
        part = self._times(grid, grid)
        terms = ((self._part(part), 2), (self._part(count), -part.most))
        return self._add(Label("sum of squares", (grid.part.value,)), terms, 1 / part.most)

    def _product(self, own: Grid, other: Grid) -> int:
        """Return the coordinate of u v over rows, from -1 to 1 each."""
        part = self._times(own, other)
        name = Label("sum of products", (own.part.value, other.part.value))
        return self._add(name, ((self._part(part), 1),), 1 / part.most)

    def _times(self, own: Grid, other: Grid) -> LatticeProduct:
        """Return the product part, exact if both lattices are of integers and the product is not too large."""
        most = own.part.most * other.part.most
        if own.part.whole and other.part.whole and most <= self.fineness.most_exact():
            return LatticeProduct(own.part, other.part, most, whole=True)
        return LatticeProduct(own.part, other.part, self.fineness.real_steps(), whole=False)

    def _distinct(self, m: MeasuredAggregation) -> int:
        part = CountDistinct(argument_of(m))
        return self._add(Label("distinct", (part.value,)), ((self._part(part), 1),), 1.0)

    def _estimate_of_units(self, m: MeasuredAggregation) -> Estimate:
        """Return the estimate of an aggregate of one number per unit and group: its presence, its clipped total, or its
        average."""
        kind = m.aggregation.kind
        if m.of == "presence":
            units = self._units(m.aggregation.argument if m.argument.nullable else None)
            return Estimate(kind.estimated_as or kind, None, self._counted(units), 0.0, point(0), whole=True)
        if m.of == "mean":
            grid = self.grids[grid_key(m)]
            count = CountUnits(argument_of(m) if m.argument.nullable else None)
            limits = m.sum.range if m.sum is not None else m.argument.range
            centre = middle(limits)
            mean = UnitMean(grid.part if m.aggregation.per_unit is None else far(grid), 0, grid.part.most)
            place = self._centred(grid, mean, count) if grid.part.most else None
            return Estimate(kind, place, self._counted(count), centre, limits, whole=False)
        if m.sum is None:
            return Estimate(kind, None, self._counted(_total_of(m)), 0.0, point(0), whole=True)
        beside = self._total_on_all(m, m.sum.range) if self.wanted.on_all else None
        if beside is not None:
            return beside
        return Estimate(kind, self._unit_sum(m, m.sum.range), None, 0.0, m.sum.range, is_whole(argument_of(m)))

    def _total_on_all(self, m: MeasuredAggregation, clip: Interval) -> Estimate | None:
        """Return the estimate from 2 R T - (a + b) c of units' clipped totals T in [a, b] and row counts c in [0, R],
        if each is proportional to the other. Its sensitivity is R (b - a), whereas that of T alone is the larger of |a|
        and |b|."""
        rows = self.analysis.bounds.rows.linf
        lattice = self.fineness.of_totals(argument_of(m), m.argument.range, clip, rows)
        if lattice is None:
            return None
        total, step = lattice
        ends = total.least + total.most
        by = math.gcd(2 * rows, ends)
        count = UnitTotal(CountRows(None), 0, rows)
        terms = ((self._part(total), 2 * rows // by), (self._part(count), -ends // by))
        centre = step * ends / (2 * rows)
        name = Label("sum", (or_zero(argument_of(m)) if m.argument.nullable else argument_of(m),), centre)
        place = self._add(name, terms, step * by / (2 * rows))
        held = Interval(*(end // rows if end % rows == 0 else end / rows for end in (total.least, total.most)))
        if step != 1:
            held = Interval(held.lower * step, held.upper * step)
        return Estimate(m.aggregation.kind, place, self._counted(count), centre, held, is_whole(argument_of(m)))

    def _unit_sum(self, m: MeasuredAggregation, held: Interval) -> int:
        """Return the coordinate of units' clipped totals. Rows have no separate bounds here: the lattice must end
        somewhere, and extends 2^14 times further than the total."""
        argument = argument_of(m)
        whole = is_whole(argument) and held.magnitude <= self.fineness.most_exact()
        if whole:
            size, scale = max(1, int(held.magnitude)), 1.0
        else:
            size = min(self.fineness.real_steps(), MOST_OF_UNITS)
            scale = size / float(held.magnitude) if held.magnitude else 1.0
        far = min(size << FURTHER_OUT, LARGEST_STEP_COUNT - 1)
        reach = far if whole else far / scale
        part = LatticeSum(argument, -reach, reach, 0 if whole else 0.0, scale, -far, far, whole=whole)
        least, most = max(-size, math.floor(held.lower * scale)), min(size, math.ceil(held.upper * scale))
        return self._add(Label("sum", (argument,)), ((self._part(UnitTotal(part, least, most)), 1),), 1 / scale)

    def _centred_sum(self, grid: Grid, count: CountRows) -> int | None:
        if grid.part.most == 0:
            return None  # with a single value the sum is value times count
        return self._centred(grid, grid.part, count)

    def _centred(self, grid: Grid, part: Part, count: Part) -> int:
        """Return the coordinate of 2 q - N for each contribution of q in 0..N."""
        size = grid.part.most
        terms = ((self._part(part), 2), (self._part(count), -size))
        name = Label("sum", (grid.part.value,), grid.origin + grid.step * size / 2)
        return self._add(name, terms, grid.step / 2)

    def _raw_sum(self, m: MeasuredAggregation) -> int:
        part, step = self._from_zero(m)
        return self._add(Label("sum", (part.value,)), ((self._part(part), 1),), step)

    def _on_all(self, m: MeasuredAggregation) -> Estimate:
        """Return the estimate from 2 S - (l + u) N of the sum S and the count N of all rows. A row adds a value in l..u
        to S, and 0, which is in this range, for NULL. So one row moves this by at most u - l, and S alone by the larger
        of |l| and |u|."""
        part, step = self._from_zero(m)
        least, most = min(0, part.least), max(0, part.most)
        limits = Interval(least, most) if part.whole else Interval(least * step, most * step)
        kind, whole, centre = m.aggregation.kind, is_whole(part.value), (least + most) * step / 2
        if not centre:
            return Estimate(kind, self._raw_sum(m), None, 0.0, limits, whole)
        terms = ((self._part(part), 2), (self._part(CountRows(None)), -least - most))
        place = self._add(Label("sum", (or_zero(part.value),), centre), terms, step / 2)
        return Estimate(kind, place, self._counted(CountRows(None)), centre, limits, whole)

    def _from_zero(self, m: MeasuredAggregation) -> tuple[LatticeSum, float]:
        """Return the sum of an argument on a lattice that contains 0, and the value of a step."""
        return self._raw(argument_of(m), m.argument.range, exactly=self._too_wide_for_a_grid(m))

    def _raw(self, argument: Expr, held: Interval, *, exactly: bool = False) -> tuple[LatticeSum, float]:
        """Return an uncentred sum, and the value of its steps."""
        if exactly or (is_whole(argument) and held.magnitude <= self.fineness.most_exact()):
            least, most = int(held.lower), int(held.upper)
            return LatticeSum(argument, held.lower, held.upper, 0, 1.0, least, most, whole=True), 1.0
        size = self.fineness.real_steps()
        scale = size / held.magnitude if held.magnitude else 1.0
        least, most = max(-size, math.floor(held.lower * scale)), min(size, math.ceil(held.upper * scale))
        return LatticeSum(argument, held.lower, held.upper, 0, scale, least, most, whole=False), 1 / scale

    def _too_wide_for_a_grid(self, m: MeasuredAggregation) -> bool:
        """Return whether integers of public tables are summed directly, because grids are too coarse for an exact
        answer. (For private tables noise scales with the range, so the grid may too.)"""
        if self.analysis.private or m.aggregation.kind.second_moments:
            return False
        most = self.fineness.most_exact()
        return is_whole(argument_of(m)) and most < m.argument.range.magnitude <= LARGEST_WHOLE

    def _part(self, part: Part) -> int:
        return self.parts.setdefault(part, len(self.parts))

    def _add(self, name: Label, terms: tuple[tuple[int, int], ...], unit: float) -> int:
        place = self.places.setdefault(terms, len(self.coordinates))
        if place == len(self.coordinates):
            self.coordinates.append(Coordinate(name, terms, unit))
        return place

    def _common_steps(self, each: list[int]) -> int | None:
        """Return the common sensitivity of all noisy coordinates: a multiple of each, or, on coarse grids, so large
        that an integer factor for each comes within 2^-12 of it. Several coordinates, or those of levels, share a fine
        lattice on which their distributions are practically continuous. None if coarse grids are required."""
        steps = math.lcm(*each) if each else 0
        if steps > 4 * self.fineness.most_steps():
            return 1 << (max(each).bit_length() + 12) if self.coarse else None
        if len(each) > 1 or (each and self.levels):
            fineness = math.ceil(_FINENESS * self.epsilon)
            steps <<= max(0, math.ceil(fineness / steps) - 1).bit_length()
        return steps


def _total_of(m: MeasuredAggregation) -> UnitTotal:
    """Return the clipped number of rows of each unit."""
    held = m.count.range
    return UnitTotal(count_of(m), int(held.lower), int(held.upper))


def _count_name(part: Part) -> Label:
    if isinstance(part, UnitTotal):
        part = part.of
    present = part.present if isinstance(part, CountRows | CountUnits) else None
    return Label("units" if isinstance(part, CountUnits) else "count", () if present is None else (present,))
