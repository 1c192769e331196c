"""What one row adds to each aggregate: its interval of values, and whether every row surely adds one.

These are facts of real values, from which queries are planned and described. How far one privacy unit moves the
integers that noise is really added to follows from those integers' own ranges (`core.sensitivity.norms`).
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
    """What one row adds to one sum of its group: a value in `range`; nothing at all may be added unless `sure`."""

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
"""Values beyond the one count as unbounded, ranges narrower than the other as one value: doubles have to hold their
grids, and the squares of sums of many of them with their noise."""


@dataclass(frozen=True, slots=True)
class MeasuredAggregation:
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
    measured: tuple[MeasuredAggregation, ...]
    public_count: bool
    """True when neighbours have the same number of rows and all of them reach the one group."""
    known: Known
    """What the filters imply of expressions, for the golden texts."""
    bounds: Bounds = _ONE
    private: bool = True
    """Some rows are people's."""


def analyse(
    plan: Aggregate, neighbours: Neighbours, options: Options | None = None, written: Mapping[Expr, Expr] | None = None
) -> Analysis:
    """Measure every aggregation of a plan. Raises MissingBounds where a sum has no finite sensitivity, or a unit any
    number of rows; it speaks of parts of arguments as they are `written`."""
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
    """What a unit contributes: its rows, or one clipped number for each group.

    COUNT and SUM: leaving out rows beyond the limit and clipping the unit's total at what so many rows could add have
    the same sensitivity where the limits on rows and groups are one and the same, |c|_1 = groups * |c|_inf; the total
    then loses less, as it is changed only where it lies outside. Not beside an AVG or the like, whose sum and count go
    together.
    `averages`: AVG is of the units' own averages, as in GoogleSQL, whose clause the text uses."""
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
    """Whether COUNT and SUM clip a unit's total rather than leave out rows of it, by the rule of `_of_units`."""
    if not bounds.enforced or bounds.rows.l1 < bounds.rows.most_groups * bounds.rows.linf:
        return False
    asked = [each.kind for each in plan.aggregations if not each.of_units]
    return all(kind.chosen or kind.linear or (averages and kind.averages) for kind in asked)


def _total(row: MeasuredAggregation, clip: Interval, bounds: Bounds) -> MeasuredAggregation:
    if row.sum is None:  # a number of rows is whole: the limits that it is held between are too
        whole = Interval(math.floor(clip.lower), math.ceil(clip.upper))
        return replace(row, count=Contribution(whole, sure=False), bound=bounds.units, of="total")
    return replace(row, sum=Contribution(clip, sure=False), bound=bounds.units, of="total")


@dataclass(frozen=True, slots=True)
class _Rows:
    """What aggregates read, what is known of it, and whether all rows surely reach the one group; and parts of their
    arguments as the text has them."""

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
    if aggregation.kind.distinct:  # a row adds a value, or one that is there already
        return MeasuredAggregation(aggregation, argument, Contribution(point(1), sure=False), None)
    if not aggregation.kind.ranged:
        return MeasuredAggregation(aggregation, argument, count, None)
    if aggregation.per_unit is not None:
        return MeasuredAggregation(aggregation, argument, count, Contribution(aggregation.per_unit, sure=False))
    argument = _bounded(aggregation, aggregation.argument, argument, rows)
    return MeasuredAggregation(aggregation, argument, count, Contribution(argument.range, sure))


def _measure_pair(aggregation: Aggregation, first: Expr, second: Expr, rows: _Rows) -> MeasuredAggregation:
    """Rows count where neither argument is NULL: each is made NULL where the other one is."""
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
        raise missing_bounds(aggregation, expr, rows.source, rows.known, rows.written)
    if known.range.upper - known.range.lower < _SMALLEST:  # a range of one value, or as good as one
        return replace(known, range=point(known.range.lower if known.range.magnitude > _SMALLEST else 0))
    return known
