"""How much one privacy unit can change each exact sum, in the three norms over all groups.

Everything the mechanisms need of the data is one fact per sum: the interval of values that one row can add, and
whether every row surely adds one. `norms` turns it into sensitivities; it is used on real values to describe a query,
and on the lattice integers that the noise is really added to, so the two cannot drift apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsql.analysis.filters import known_of
from dpsql.analysis.stability import stability
from dpsql.errors import InternalError, MissingBounds
from dpsql.intervals import Interval, Number, point
from dpsql.privacy.unit import Neighbours, Sensitivity
from dpsql.sql.expressions import Column, Fact, Slot, columns, rebuild
from dpsql.sql.facts import Known, fact
from dpsql.sql.plan import Aggregate, AggregateKind, Aggregation


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


def norms(row: Contribution, neighbours: Neighbours, *, grouped: bool) -> Sensitivity:
    """The sensitivity of one sum per group over all groups, for rows that are one privacy unit each.

    With M the largest |value| and W the width of the interval (0 included where a row may add nothing):

    UNBOUNDED: the row that is added or removed reaches one group and adds at most M there: all norms are M.
    BOUNDED, one group: the sum changes by the difference of two contributions: all norms are W.
    BOUNDED, many groups: the row leaves one group and enters another (changes M and M: L1 2M, L2 sqrt(2) M, Linf M),
    or changes inside one (W <= 2M: L1 W, L2 W, Linf W). The larger of both in each norm.
    """
    largest = max(abs(row.least), abs(row.most))
    width = row.most - row.least
    if neighbours is Neighbours.UNBOUNDED:
        return Sensitivity(largest, largest, largest)
    if not grouped:
        return Sensitivity(width, width, width)
    return Sensitivity(2 * largest, max(math.sqrt(2) * largest, width), max(largest, width))


_LARGEST = 1e290
_SMALLEST = 1e-290
"""Values beyond the one count as unbounded, ranges narrower than the other as one value: no float could hold their
grid."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One aggregation, what its argument's values are known to be, and what a row adds to its count and sum."""

    aggregation: Aggregation
    argument: Fact
    count: Contribution
    sum: Contribution | None
    """None for COUNT, which sums nothing."""


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

    def of(self, row: Contribution) -> Sensitivity:
        return norms(row, self.neighbours, grouped=self.grouped)


def analyse(plan: Aggregate, neighbours: Neighbours) -> Analysis:
    """Measure every aggregation of a plan. Raises MissingBounds where a sum has no finite sensitivity."""
    below = stability(plan.input)
    if below.factor != 1:
        raise InternalError("one row per unit is all that is measured here")
    known = known_of(plan.input)
    grouped = bool(plan.keys)
    reaches = below.every_row and not grouped
    measured = tuple(_measure(each, known, reaches) for each in plan.aggregations)
    public_count = neighbours is Neighbours.BOUNDED and reaches
    return Analysis(neighbours, grouped, measured, public_count, known)


def _measure(aggregation: Aggregation, known: Known, reaches: bool) -> Measured:
    if aggregation.argument is None:
        return Measured(aggregation, Fact(point(1), nullable=False), Contribution(point(1), reaches), None)
    argument = fact(aggregation.argument, known)
    sure = reaches and not argument.nullable
    count = Contribution(point(1), sure)
    if aggregation.kind is AggregateKind.COUNT:
        return Measured(aggregation, argument, count, None)
    if not (argument.range.bounded and argument.range.magnitude <= _LARGEST):
        raise _missing_bounds(aggregation, known)
    if argument.range.upper - argument.range.lower < _SMALLEST:  # a range of one value, or as good as one
        argument = replace(argument, range=point(argument.range.lower if argument.range.magnitude > _SMALLEST else 0))
    return Measured(aggregation, argument, count, Contribution(argument.range, sure))


def _missing_bounds(aggregation: Aggregation, known: Known) -> MissingBounds:
    expr = aggregation.argument
    assert expr is not None  # COUNT(*) has no argument and no bounds to miss
    loose = [each for each in columns(expr) if not fact(each, known).range.bounded]
    why = "Noise is scaled to how much one person can change the sum; without bounds that is unlimited.\n"
    if not loose:
        return MissingBounds(
            f"{aggregation} has no bounds: {expr} can be as large as numbers go.",
            span=aggregation.span,
            hint=f"{why}Limit it, for example {aggregation.kind}(CLAMP({expr}, 0, 100)).",
        )
    column = loose[0]
    return MissingBounds(
        f'{aggregation} needs bounds for column "{column.name}".',
        span=aggregation.span,
        hint=f'{why}Add bounds={{"{column.name}": (0, 100)}}, or write {_clamped(aggregation, column)}. '
        "Choose them from what you know, not from the data.",
    )


def _clamped(aggregation: Aggregation, column: Column) -> str:
    assert aggregation.argument is not None
    clamped = rebuild(aggregation.argument, {column: Slot(0, f"CLAMP({column}, 0, 100)", column.type)})
    return f"{aggregation.kind}({clamped})"
