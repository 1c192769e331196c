"""The contribution of one row to each aggregate: its range, and whether every row surely contributes.

These are facts about real values, for planning and describing queries. The sensitivity of the integers that get noise
follows from those integers' own ranges (`core.sensitivity.norms`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from dpsql.core.row_work import check_row_work
from dpsql.core.sensitivity.contribution_bounds import Bounds, bounds_of
from dpsql.core.sensitivity.missing_bounds import missing_bounds
from dpsql.core.sensitivity.stability import stability
from dpsql.core.unit import ONE_ROW, ContributionBound, Neighbours
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Expr, Fact, call
from dpsql.plan.expressions import Literal as ExprLiteral
from dpsql.plan.facts import Known, fact, known_of
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Source
from dpsql.plan.options import Options
from dpsql.plan.query import Aggregate
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval, Number, point

Of = Literal["rows", "total", "mean", "presence", "choice"]
_ONE = Bounds(ONE_ROW, ONE_ROW, enforced=False, declared=False)


@dataclass(frozen=True, slots=True)
class Contribution:
    """The contribution of one row to one sum of its group: a value in `range`; possibly none unless `sure`."""

    range: Interval
    sure: bool

    @property
    def least(self) -> Number:
        return self.range.lower if self.sure else min(0, self.range.lower)

    @property
    def most(self) -> Number:
        return self.range.upper if self.sure else max(0, self.range.upper)


_LARGEST = 1e100
_SMALLEST = 1e-100
"""Values beyond `_LARGEST` count as unbounded, ranges narrower than `_SMALLEST` as one value: doubles have to hold
their grids, and the squares of sums of many of them with their noise."""


@dataclass(frozen=True, slots=True)
class MeasuredAggregation:
    """One aggregation, the known facts of its argument, and a row's contributions to its count and sum."""

    aggregation: Aggregation
    argument: Fact
    count: Contribution
    sum: Contribution | None
    """None for COUNT, which sums nothing."""
    bound: ContributionBound = ONE_ROW
    """The maximum number of such contributions of a unit."""
    of: Of = "rows"
    """The contributor: each row, or each unit once in a group, by its clipped total, its own average, or its presence;
    "choice": rows make values more likely to be chosen."""
    other: Fact | None = None
    """Facts of the second argument, if there are two; then both are NULL in the same rows."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The plan's measured aggregations, and whether the number of rows itself is public."""

    neighbours: Neighbours
    grouped: bool
    measured: tuple[MeasuredAggregation, ...]
    public_count: bool
    """True if neighbours have the same number of rows and all of them reach the one group."""
    known: Known
    """Facts about expressions that the filters imply, for the golden texts."""
    bounds: Bounds = _ONE
    private: bool = True
    """True if some rows are private."""


def analyse(
    plan: Aggregate, neighbours: Neighbours, options: Options | None = None, written: Mapping[Expr, Expr] | None = None
) -> Analysis:
    """Measure every aggregation of a plan. Raises MissingBounds if a sum has no finite sensitivity, or a unit any
    number of rows; the error shows parts of arguments as they are `written`."""
    below = stability(plan.input)
    bounds = bounds_of(plan, options)
    check_row_work(plan)
    known = known_of(plan.input)
    grouped = bool(plan.keys)
    reaches = below.every_row and not grouped and bounds.rows == ONE_ROW and bool(below.by_unit)
    rows = _Rows(plan.input, known, reaches, written or {})
    measured = tuple(
        _of_units(_measure(each, rows), plan, bounds, averages=options is not None) for each in plan.aggregations
    )
    public_count = neighbours is Neighbours.BOUNDED and reaches
    return Analysis(neighbours, grouped, measured, public_count, known, bounds, bool(below.by_unit))


def _of_units(row: MeasuredAggregation, plan: Aggregate, bounds: Bounds, *, averages: bool) -> MeasuredAggregation:
    """Set the contributions of a unit: its rows, or one clipped number for each group.

    COUNT and SUM: dropping rows beyond the limit has the same sensitivity as clipping the unit's total at what so many
    rows could add, if the limits on rows and groups coincide, |c|_1 = groups * |c|_inf. Clipping then loses less, as it
    changes only totals outside the range. Not used next to an AVG or the like, whose sum and count belong together.
    `averages`: AVG averages the units' own averages, as in GoogleSQL, whose clause the query uses."""
    each, limit = row.aggregation, bounds.rows.linf
    if each.of_units:
        return replace(row, bound=bounds.units, of="presence")
    if each.kind.chosen:
        return replace(row, bound=bounds.rows, of="choice")
    if each.per_unit is not None:
        if each.kind.averages:
            own = replace(row.argument, range=each.per_unit)
            return replace(row, argument=own, bound=bounds.units, of="mean")
        return _total(row, each.per_unit, bounds)
    row = replace(row, bound=bounds.rows)
    if not bounds.declared or limit == 1:
        return row
    if each.kind.averages:
        return replace(row, bound=bounds.units, of="mean") if averages else row
    if not each.kind.linear or not _clips(plan, bounds, averages=averages):
        return row
    of_row = row.count if row.sum is None else row.sum
    return _total(row, Interval(min(0, of_row.range.lower) * limit, max(0, of_row.range.upper) * limit), bounds)


def _clips(plan: Aggregate, bounds: Bounds, *, averages: bool) -> bool:
    """Return whether COUNT and SUM clip a unit's total instead of dropping rows, by the rule of `_of_units`."""
    if not bounds.enforced or bounds.rows.l1 < bounds.rows.most_groups * bounds.rows.linf:
        return False
    asked = [each.kind for each in plan.aggregations if not each.of_units]
    return all(kind.chosen or kind.linear or (averages and kind.averages) for kind in asked)


def _total(row: MeasuredAggregation, clip: Interval, bounds: Bounds) -> MeasuredAggregation:
    if row.sum is None:  # a number of rows is whole, so its clip bounds are too
        whole = Interval(math.floor(clip.lower), math.ceil(clip.upper))
        return replace(row, count=Contribution(whole, sure=False), bound=bounds.units, of="total")
    return replace(row, sum=Contribution(clip, sure=False), bound=bounds.units, of="total")


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that aggregates read, the known facts, whether all rows surely reach the one group, and parts of
    arguments as written in the query."""

    source: Source
    known: Known
    reaches: bool
    written: Mapping[Expr, Expr]


def _measure(aggregation: Aggregation, rows: _Rows) -> MeasuredAggregation:
    if aggregation.argument is None:
        return MeasuredAggregation(
            aggregation, Fact(point(1), nullable=False), Contribution(point(1), rows.reaches), None
        )
    if aggregation.second is not None:
        return _measure_pair(aggregation, aggregation.argument, aggregation.second, rows)
    argument = fact(aggregation.argument, rows.known)
    sure = rows.reaches and not argument.nullable
    count = Contribution(point(1), sure)
    if aggregation.kind.distinct:  # a row adds a new value, or one that is there already
        return MeasuredAggregation(aggregation, argument, Contribution(point(1), sure=False), None)
    if not aggregation.kind.ranged:
        return MeasuredAggregation(aggregation, argument, count, None)
    if aggregation.per_unit is not None:
        return MeasuredAggregation(aggregation, argument, count, Contribution(aggregation.per_unit, sure=False))
    argument = _bounded(aggregation, aggregation.argument, argument, rows)
    return MeasuredAggregation(aggregation, argument, count, Contribution(argument.range, sure))


def _measure_pair(aggregation: Aggregation, first: Expr, second: Expr, rows: _Rows) -> MeasuredAggregation:
    """Measure a pair of arguments. Rows count if neither is NULL: each is made NULL where the other is."""
    y, x = fact(first, rows.known), fact(second, rows.known)
    y, x = _bounded(aggregation, first, y, rows), _bounded(aggregation, second, x, rows)
    if first != second:
        there = _where(first, second) if x.nullable else first, _where(second, first) if y.nullable else second
        aggregation = replace(aggregation, argument=there[0], second=there[1])
    nullable = y.nullable or x.nullable
    y, x = replace(y, nullable=nullable), replace(x, nullable=nullable)
    sure = rows.reaches and not nullable
    return MeasuredAggregation(aggregation, y, Contribution(point(1), sure), Contribution(y.range, sure), other=x)


def _where(value: Expr, other: Expr) -> Expr:
    """Return the value where the other one is not NULL."""
    return _made("case", _made("not", _made("is_null", other)), value, ExprLiteral(None, value.type))


def _made(name: str, *args: Expr) -> Expr:
    made = call(FUNCTIONS[name], *args)
    assert made is not None  # the types fit
    return made


def _bounded(aggregation: Aggregation, expr: Expr, known: Fact, rows: _Rows) -> Fact:
    """Return the fact of an argument that has bounds. Raises MissingBounds.

    The limits of a type do not count as bounds: a sum would be drowned in noise of that size. Timestamps may be chosen
    from the whole calendar, since the mechanism for choices depends on ranks and not on distances."""
    meant = known.limited or expr.type.temporal
    if not (meant and known.range.bounded and known.range.magnitude <= _LARGEST):
        raise missing_bounds(aggregation, expr, rows.source, rows.known, rows.written)
    if known.range.upper - known.range.lower < _SMALLEST:  # practically a single value
        return replace(known, range=point(known.range.lower if known.range.magnitude > _SMALLEST else 0))
    return known
