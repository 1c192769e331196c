"""How much one privacy unit can change each exact sum, in the three norms over all groups.

Everything the mechanisms need of the data is one fact per sum: the interval of values that one row can add, and
whether every row surely adds one. `norms` turns it into sensitivities; it is used on real values to describe a query,
and on the lattice integers that the noise is really added to, so the two cannot drift apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from dpsql.core.contribution import Bounds, bounds_of
from dpsql.core.missing_bounds import missing_bounds
from dpsql.core.stability import stability
from dpsql.core.unit import ONE_ROW, ContributionBound, Neighbours, Sensitivity
from dpsql.plan.aggregates import CHOSEN, PAIRS, SPREADS, AggregateKind, Aggregation
from dpsql.plan.expressions import Expr, Fact, call
from dpsql.plan.expressions import Literal as ExprLiteral
from dpsql.plan.facts import Known, fact, known_of
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Source
from dpsql.plan.options import Options
from dpsql.plan.query import Aggregate
from dpsql.schema.intervals import Interval, Number, point

Of = Literal["rows", "total", "mean", "presence", "choice"]
_ONE = Bounds(ONE_ROW, ONE_ROW, enforced=False, declared=False)


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one row adds to one sum of its group: a value in `range`; nothing at all may be added unless `sure`."""

    range: Interval
    sure: bool

    @property
    def least(self) -> Number:
        return self.range.lower if self.sure else min(0, self.range.lower)

    @property
    def most(self) -> Number:
        return self.range.upper if self.sure else max(0, self.range.upper)


def norms(
    row: Contribution, neighbours: Neighbours, *, grouped: bool, bound: ContributionBound = ONE_ROW
) -> Sensitivity:
    """The sensitivity of one sum per group over all groups, where a unit adds at most `bound` contributions.

    With M the largest |value|, W the width of the interval (0 included where nothing may be added), and c_i the
    contributions of a unit to group i, whose largest norms are those of `bound`:

    UNBOUNDED: what the unit adds to group i is at most c_i M: the norms of (c_i) times M.
    BOUNDED, one group: the difference of two such sums, each between c times the ends of the interval: c W.
    BOUNDED, many groups: the unit's contributions c_i leave and others c'_i enter. L1: at most 2 |c|_1 M. Linf: in one
    group the difference is at most max(c_i, c'_i) W, or M where only one of both is there: c W suffices, as W >= M.
    L2: with P the largest positive value and N the largest negative one (P + N = W) the difference in a group is at
    most max(c P + c' N, c N + c' P); the sum of its squares, with the squares of c and of c' adding up to at most Q
    each, is at most 2 (P^2 + N^2) Q (its quadratic form in (c, c') has that largest value). For one row in one group
    of each it is max(2 M^2, W^2): the row leaves one group and enters another, or changes inside one.
    """
    largest = max(abs(row.least), abs(row.most))
    width = row.most - row.least
    if neighbours is Neighbours.UNBOUNDED:
        return Sensitivity(largest * bound.l1, largest * math.sqrt(bound.l2_squared), largest * bound.linf)
    if not grouped:
        return Sensitivity(width * bound.linf, width * bound.linf, width * bound.linf)
    l1 = 2 * largest * bound.l1
    l2 = min(l1, math.sqrt(l2_squared_of_change(row, bound)))
    return Sensitivity(l1, l2, min(l2, max(largest, width) * bound.linf))


def l2_squared_of_change(row: Contribution, bound: ContributionBound) -> Number:
    """The squared L2 norm of a changed unit's difference over many groups, as `norms` proves it."""
    most, least = max(0, row.most), min(0, row.least)
    if bound.rows == 1:
        width = row.most - row.least
        return max(2 * max(most, -least) ** 2, width * width)
    return 2 * (most * most + least * least) * bound.l2_squared


_LARGEST = 1e100
_SMALLEST = 1e-100
"""Values beyond the one count as unbounded, ranges narrower than the other as one value: doubles have to hold their
grids, and the squares of sums of many of them with their noise."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One aggregation, what its argument's values are known to be, and what a row adds to its count and sum."""

    aggregation: Aggregation
    argument: Fact
    count: Contribution
    sum: Contribution | None
    """None for COUNT, which sums nothing."""
    bound: ContributionBound = ONE_ROW
    """How many such contributions a unit makes."""
    of: Of = "rows"
    """What contributes: each row, or each unit once a group, by its clipped total, its own average, or its presence;
    "choice": rows make values likelier to be chosen."""
    other: Fact | None = None
    """Of the second argument, where there are two; both are then NULL in the same rows."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The plan's aggregations measured, and whether the number of rows itself is public."""

    neighbours: Neighbours
    grouped: bool
    measured: tuple[Measured, ...]
    public_count: bool
    """True when neighbours have the same number of rows and all of them reach the one group."""
    known: Known
    """What the filters imply of expressions, for the golden texts."""
    bounds: Bounds = _ONE
    private: bool = True
    """Some rows are people's."""

    def of(self, row: Contribution, bound: ContributionBound = ONE_ROW) -> Sensitivity:
        if not self.private:
            return Sensitivity(0, 0, 0)
        return norms(row, self.neighbours, grouped=self.grouped, bound=bound)


def analyse(plan: Aggregate, neighbours: Neighbours, options: Options | None = None) -> Analysis:
    """Measure every aggregation of a plan. Raises MissingBounds where a sum has no finite sensitivity, or a unit any
    number of rows."""
    below = stability(plan.input)
    bounds = bounds_of(plan, options)
    known = known_of(plan.input)
    grouped = bool(plan.keys)
    reaches = below.every_row and not grouped and bounds.rows == ONE_ROW and bool(below.by_unit)
    rows = _Rows(plan.input, known, reaches)
    measured = tuple(
        _of_units(_measure(each, rows), plan, bounds, averages=options is not None) for each in plan.aggregations
    )
    public_count = neighbours is Neighbours.BOUNDED and reaches
    return Analysis(neighbours, grouped, measured, public_count, known, bounds, bool(below.by_unit))


def _of_units(row: Measured, plan: Aggregate, bounds: Bounds, *, averages: bool) -> Measured:
    """What a unit contributes: its rows, or one clipped number for each group.

    COUNT and SUM: leaving out rows beyond the limit and clipping the unit's total at what so many rows could add have
    the same sensitivity where the limits on rows and groups are one and the same, |c|_1 = groups * |c|_inf; the total
    then loses less, as it is changed only where it lies outside. Not beside an AVG or the like, whose sum and count go
    together.
    `averages`: AVG is of the units' own averages, as in GoogleSQL, whose clause the text uses."""
    each, limit = row.aggregation, bounds.rows.linf
    if each.of_units:
        return replace(row, bound=bounds.units, of="presence")
    if each.kind in CHOSEN:
        return replace(row, bound=bounds.rows, of="choice")
    if each.per_unit is not None:
        if each.kind is AggregateKind.AVG:
            own = replace(row.argument, range=each.per_unit)
            return replace(row, argument=own, bound=bounds.units, of="mean")
        return _total(row, each.per_unit, bounds)
    row = replace(row, bound=bounds.rows)
    if not bounds.declared or limit == 1:
        return row
    if each.kind is AggregateKind.AVG:
        return replace(row, bound=bounds.units, of="mean") if averages else row
    if each.kind not in (AggregateKind.COUNT, AggregateKind.SUM) or not _clips(plan, bounds, averages=averages):
        return row
    of_row = row.count if row.sum is None else row.sum
    return _total(row, Interval(min(0, of_row.range.lower) * limit, max(0, of_row.range.upper) * limit), bounds)


def _clips(plan: Aggregate, bounds: Bounds, *, averages: bool) -> bool:
    """Whether COUNT and SUM clip a unit's total rather than leave out rows of it, by the rule of `_of_units`."""
    if not bounds.enforced or bounds.rows.l1 < bounds.rows.most_groups * bounds.rows.linf:
        return False
    by_row = SPREADS | PAIRS | {AggregateKind.DISTINCT} | (set() if averages else {AggregateKind.AVG})
    return not any(other.kind in by_row and not other.of_units for other in plan.aggregations)


def _total(row: Measured, clip: Interval, bounds: Bounds) -> Measured:
    if row.sum is None:  # a number of rows is whole: the limits that it is held between are too
        whole = Interval(math.floor(clip.lower), math.ceil(clip.upper))
        return replace(row, count=Contribution(whole, sure=False), bound=bounds.units, of="total")
    return replace(row, sum=Contribution(clip, sure=False), bound=bounds.units, of="total")


@dataclass(frozen=True, slots=True)
class _Rows:
    """What aggregates read, what is known of it, and whether all rows surely reach the one group."""

    source: Source
    known: Known
    reaches: bool


def _measure(aggregation: Aggregation, rows: _Rows) -> Measured:
    if aggregation.argument is None:
        return Measured(aggregation, Fact(point(1), nullable=False), Contribution(point(1), rows.reaches), None)
    if aggregation.second is not None:
        return _measure_pair(aggregation, aggregation.argument, aggregation.second, rows)
    argument = fact(aggregation.argument, rows.known)
    sure = rows.reaches and not argument.nullable
    count = Contribution(point(1), sure)
    if aggregation.kind is AggregateKind.DISTINCT:  # a row adds a value, or one that is there already
        return Measured(aggregation, argument, Contribution(point(1), sure=False), None)
    if aggregation.kind in (AggregateKind.COUNT, AggregateKind.MODE, AggregateKind.TOP_K):
        return Measured(aggregation, argument, count, None)
    if aggregation.per_unit is not None:
        return Measured(aggregation, argument, count, Contribution(aggregation.per_unit, sure=False))
    argument = _bounded(aggregation, aggregation.argument, argument, rows)
    return Measured(aggregation, argument, count, Contribution(argument.range, sure))


def _measure_pair(aggregation: Aggregation, first: Expr, second: Expr, rows: _Rows) -> Measured:
    """Rows count where neither argument is NULL: each is made NULL where the other one is."""
    y, x = fact(first, rows.known), fact(second, rows.known)
    y, x = _bounded(aggregation, first, y, rows), _bounded(aggregation, second, x, rows)
    if first != second:
        there = _where(first, second) if x.nullable else first, _where(second, first) if y.nullable else second
        aggregation = replace(aggregation, argument=there[0], second=there[1])
    nullable = y.nullable or x.nullable
    y, x = replace(y, nullable=nullable), replace(x, nullable=nullable)
    sure = rows.reaches and not nullable
    return Measured(aggregation, y, Contribution(point(1), sure), Contribution(y.range, sure), other=x)


def _where(value: Expr, other: Expr) -> Expr:
    """The value where the other one is not NULL."""
    return _made("case", _made("not", _made("is_null", other)), value, ExprLiteral(None, value.type))


def _made(name: str, *args: Expr) -> Expr:
    made = call(FUNCTIONS[name], *args)
    assert made is not None  # the types fit
    return made


def _bounded(aggregation: Aggregation, expr: Expr, known: Fact, rows: _Rows) -> Fact:
    """The fact of an argument that has bounds. Raises MissingBounds.

    The limits of a type are no bounds: noise as large as they are is all that a sum would show. Points of time may be
    chosen from the whole calendar, for the law of what is chosen goes by ranks and not by distances."""
    meant = known.limited or expr.type.temporal
    if not (meant and known.range.bounded and known.range.magnitude <= _LARGEST):
        raise missing_bounds(aggregation, expr, rows.source, rows.known)
    if known.range.upper - known.range.lower < _SMALLEST:  # a range of one value, or as good as one
        return replace(known, range=point(known.range.lower if known.range.magnitude > _SMALLEST else 0))
    return known
