"""Clip bounds that a query chooses itself, privately, for columns that are declared "auto".

One interval is drawn of a public list (`bound_candidates`), by the rows that it would clip and by how wide it is: being
wider is worth the noise that it brings only while it saves enough clipped rows. This takes the place of asking one
bound after the other whether few enough rows are beyond it (AboveThreshold), which has to pay for a noisy threshold and
for every question: `docs/decisions/0021-automatic-clip-bounds.md` has the comparison.

Privacy. A row more or less moves max(below I, above I) by 0 or 1, for all I in the same direction: the spread
(`core.mechanisms.exponential`) is 1. A row that changes counts as one that leaves and one that enters: spread 2. Those
of a unit's rows add up. Penalties, and how many candidates there are of each kind, are public. The bounds are then
public, and the query is planned with them for the rest of its epsilon (sequential composition).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from fractions import Fraction
from typing import Any

from dpsql.core.cost import FREE, Cost
from dpsql.core.events import Event
from dpsql.core.exact import ExactPlan, ExactTable, Grid, GridCounts, LeadingDigits
from dpsql.core.loss import Allowance
from dpsql.core.measurement import Exact, Laws, MeasuredValues, MeasurementDescription, MeasurementNotes
from dpsql.core.mechanisms.exponential import ChoiceSequence, Chooser, exponential, spread_of_counts
from dpsql.core.mechanisms.grants import grant
from dpsql.core.payment import SelectionStep
from dpsql.core.sensitivity.norms import assert_limited, of_one_group
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.core.unit import Neighbours
from dpsql.plan.aggregates import AGGREGATES, Aggregation
from dpsql.plan.expressions import Call, Column, Expr, Literal, Slot, call, call_of, rebuild
from dpsql.plan.facts import Known, fact
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import scans_of
from dpsql.plan.query import Aggregate, Query
from dpsql.release.bounds.candidates import Intervals, WeightedCandidates
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import EVERYTHING, Interval

SHARE = Fraction(3, 10)
"""The part of a query's epsilon that its bounds cost."""
SURE = 0.95
"""How sure it is that no more rows are clipped than is said."""
_LOWEST = {Type.INTEGER: 2.0, Type.REAL: 2.0**-4}
"""Bounds that are no larger come out in 99 of 100 searches without any row."""
_WORTH = Fraction(3, 4)
"""Half an octave wider is worth so many clipped rows, divided by the epsilon of the search,"""
_LEAST_WORTH = Fraction(1, 160)
"""or such a part of a row, where epsilon is large: all half octaves together, some 140, are never worth a row."""
_MOST_GROUPS = 32
"""Among k groups the noise of all is to be paid for by the rows of all: half an octave is then worth k/2 times as much,
up to so many groups."""


@dataclass(frozen=True)
class Search:
    """The choice of one column's bounds. `epsilon`: what it costs, with `rows` rows of one unit at most; `worth`: how
    many clipped rows half an octave is worth, times epsilon; `cost`: its part of what the query costs."""

    column: Column
    intervals: Intervals
    grid: GridCounts
    epsilon: Fraction
    rows: int
    bounded: bool
    mechanism: str
    worth: Fraction
    cost: Cost
    chosen_by: Chooser | None = field(default=None, compare=False)
    """In a trial, in place of the mechanism's own."""

    @classmethod
    def of(cls, column: Column, epsilon: Fraction, rows: int, **how: Any) -> Search:
        intervals = intervals_of(column)
        value = column if intervals.outer is None else clamped(column, intervals.outer)
        of = LeadingDigits(value, intervals.digits)
        return cls(column, intervals, GridCounts(of, 2 * of.middle), epsilon, rows, **how)

    def choose(self, grid: Grid) -> Interval:
        """Bounds for exact counts of places, by the exponential mechanism: exp(-epsilon clipped / (spread rows) -
        penalty), up to normalisation."""
        found = self.weighed(grid)
        place = (self.chosen_by or exponential)(found.gaps[None], found.rate, found.many[None])[0]
        return found.drawn(int(place), chance=self.chosen_by is None)

    def weighed(self, grid: Grid) -> WeightedCandidates:
        """All candidates, those alike together."""
        assert isinstance(self.grid.of, LeadingDigits)
        return WeightedCandidates.all(self.intervals, self.grid.of, grid, float(self.worth), self.rate)

    @property
    def law(self) -> ChoiceSequence:
        """What chooses, for all that it is worth."""
        return ChoiceSequence(self.mechanism, self.epsilon, pure=self.cost.epsilon is not None)

    @property
    def rate(self) -> Fraction:
        """The exponent of a row."""
        return self.epsilon / self.spread

    @property
    def spread(self) -> int:
        """By how much the rows that two candidates clip can move apart."""
        return spread_of_counts(self.rows, self.bounded)

    def clipped_at_most(self, drawn: Interval) -> tuple[int, int]:
        """How many rows lie below and how many above drawn bounds, at most, not counting those beyond the widest that
        can be chosen: both hold at once with probability `SURE`, over the draw and whatever the data are.

        Proof. Let I clip f_I rows on the side where these are more, and weigh w_I where there are no rows, K being the
        widest. The chance of I is at most w_I exp(-r f_I) / (w_K exp(-r f_K)), r = epsilon / spread. All I with f_I >
        f_K + x have together a chance of at most exp(-r x) sum w / w_K: at most 1 - SURE for x = log(sum w / w_K / (1 -
        SURE)) / r. f_K counts what lies beyond K on one side, so as many rows and x more lie beyond I at most."""
        worth = float(self.worth)
        odds = math.log(self.intervals.weight(worth) / (1 - SURE)) + float(self.intervals.penalties(worth)[0][-1])
        most = math.floor(odds * self.spread / float(self.epsilon) * (1 + 1e-9)) + 1
        widest = self.intervals.widest
        return 0 if drawn.lower <= widest.lower else most, 0 if drawn.upper >= widest.upper else most

    def is_lowest(self, drawn: Interval) -> bool:
        """Tell if drawn bounds are among those that come out where there are hardly any rows."""
        return drawn != self.intervals.widest and drawn.magnitude <= _LOWEST[self.column.type]

    def rows_enough(self, drawn: Interval) -> float:
        """How many rows there have to be so that half of them are not beyond one of drawn bounds, with probability
        `SURE`, if none lie beyond 2^32: by the proof of `clipped_at_most` with these bounds for the widest."""
        if drawn == self.intervals.widest:
            return -math.inf
        worth, ends = float(self.worth), (-(2**32), 2**32)
        widest = self.intervals.outer or Interval(*(ends if self.intervals.whole else map(float, ends)))
        odds = math.log(self.intervals.weight(worth) / (1 - SURE)) + self.intervals.penalty(widest, worth)
        return 2 * odds / float(self.rate)

    def rows_needed(self, drawn: Interval) -> float:
        """How many rows make up for the penalty of drawn bounds: with fewer these are hardly drawn for their rows."""
        return self.intervals.penalty(drawn, float(self.worth)) / float(self.rate)


@dataclass(frozen=True)
class ChosenBounds:
    """A column whose bounds were chosen, the bounds, what the choice cost, and how many rows they clip at most, below
    and above, with probability `SURE` (besides those beyond the largest bounds that could be chosen). `lowest`,
    `rows_needed`, `rows_enough`: as of `Search`; `free`: they are no bounds near 0; `rows`: how many of one unit were
    searched at most."""

    column: Column
    held: Interval
    cost: Cost
    clipped: tuple[int, int] = (0, 0)
    lowest: bool = False
    free: bool = False
    rows_needed: float = 0.0
    rows_enough: float = -math.inf
    rows: int = 1

    @classmethod
    def of(cls, search: Search, held: Interval, drawn: Interval) -> ChosenBounds:
        """The bounds that were drawn by a search, and those that values are held in."""
        return cls(
            search.column,
            held,
            search.cost,
            search.clipped_at_most(drawn),
            search.is_lowest(drawn),
            drawn not in search.intervals.named[0],
            search.rows_needed(drawn),
            search.rows_enough(drawn),
            search.rows,
        )

    @property
    def clipped_in_words(self) -> str:
        """How many rows are clipped."""
        below, above = self.clipped
        beyond = f"not counting any beyond {widest(self.column).magnitude:.2g}"
        return f"at most {above:,} rows lie above and {below:,} below ({SURE:.0%}; {beyond})"

    def __str__(self) -> str:
        return f"{self.column} to [{float(self.held.lower):.6g}, {float(self.held.upper):.6g}]"


@dataclass(frozen=True)
class Searches(MeasurementNotes):
    """The searches of a query, the counts that they need (`counted`, all groups in one), what they cost, and how the
    query is planned with their bounds: `settle` makes the release from an interval for each column."""

    searches: tuple[Search, ...]
    counted: tuple[ExactPlan, ...]
    cost: Cost
    events: tuple[Event, ...]
    settle: Callable[[tuple[Interval, ...]], Any] = field(compare=False, repr=False)

    @property
    def told(self) -> MeasurementDescription:
        return MeasurementDescription(searches=(self,), plans=self.counted)

    @property
    def asked(self) -> tuple[str, object]:
        return "bounds", (self.searches, *self.counted)

    def with_laws(self, laws: Laws) -> Searches:
        return replace(self, searches=tuple(replace(each, chosen_by=laws.chooser) for each in self.searches))

    @property
    def reach(self) -> tuple[int, ...]:
        """By how much the counts beyond two bounds can move apart, in each search."""
        return tuple(search.spread for search in self.searches)

    @property
    def drawn(self) -> tuple[SelectionStep, ...]:
        """What chooses, to be seen to be paid for."""
        return tuple(SelectionStep(each.law, None, each.rows, each.bounded, False, each.cost) for each in self.searches)

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        return replace(found, bounds=self.choose(exact.table))

    def choose(self, table: ExactTable) -> tuple[Interval, ...]:
        """Bounds for each column, from the exact counts."""
        intervals = []
        for search, grid in zip(self.searches, table.grids, strict=True):
            intervals.append(search.choose(grid))
        return tuple(intervals)


def loose_columns(query: Query, known: Known, *, auto_bounds: bool = False) -> tuple[Column, ...]:
    """The columns whose bounds a query chooses: declared "auto", in aggregates that need bounds and have none but those
    that are declared for the choice. auto_bounds: columns of private tables without any bounds too."""
    tables = {scan.name: scan.table for scan in scans_of(query.plan.input)}
    loose: dict[Column, None] = {}
    for each in query.plan.aggregations:
        if not each.kind.ranged or each.per_unit is not None:
            continue
        for argument in each.arguments:
            for column in _of_values(argument):
                column_schema = _loose_schema(column, tables.get(column.table), auto_bounds=auto_bounds)
                if column_schema is None:
                    continue
                if column_schema.bounds is None or each.kind.chosen:  # a draw needs no more than a range
                    needed = not fact(argument, known).limited and not fact(column, known).limited
                else:
                    needed = _would_be_loose(argument, column, known)
                if needed:
                    loose[column] = None
    return tuple(loose)


def with_count(query: Query, loose: tuple[Column, ...], allowed: Allowance) -> Query:
    """The query with a count of an undeclared column of which it only draws values, such as MEDIAN: without a count
    nothing would tell if there are enough rows for bounds. The count costs a fifth of what the search leaves. Where the
    text divides epsilon, there is none."""
    aggregations = query.plan.aggregations
    if query.plan.sets or not all(each.kind.chosen and each.epsilon is None for each in aggregations):
        return query
    tables = {scan.name: scan.table for scan in scans_of(query.plan.input)}
    for column in loose:
        alone = [each for each in aggregations if column in each.arguments]
        stored = _loose_schema(column, tables.get(column.table), auto_bounds=True)
        declared = stored is None or stored.auto
        if declared or not alone:
            continue
        own = None if allowed.rho is not None else allowed.pure * (1 - SHARE) / 5
        count = Aggregation(AGGREGATES["COUNT"], column, alone[0].span, own)
        slot = Slot(len(query.slots), str(count), Type.INTEGER)
        plan = replace(query.plan, aggregations=(*aggregations, count))
        return replace(query, plan=plan, slots=(*query.slots, slot))
    return query


def _loose_schema(column: Column, table: TableSchema | None, *, auto_bounds: bool) -> ColumnSchema | None:
    """The stored column whose bounds a query may choose; None of other columns."""
    stored = None if table is None else table.by_name.get(column.name.casefold())
    if table is None or stored is None:
        return None
    undeclared = auto_bounds and stored.bounds is None and stored.type.numeric and not table.public
    return stored if stored.auto or undeclared else None


def _would_be_loose(argument: Expr, column: Column, known: Known) -> bool:
    """Whether an argument had no bounds if a column had none, and no filter gives the column both."""
    declared, held = column.fact.range, fact(column, known).range
    without = rebuild(argument, {column: replace(column, fact=replace(column.fact, range=EVERYTHING, meant=None))})
    return not (declared.lower < held.lower and held.upper < declared.upper) and not fact(without, known).limited


def _of_values(expr: Expr) -> Iterator[Column]:
    """The columns of an expression that are more than conditions."""
    if isinstance(expr, Column):
        yield expr
    elif isinstance(expr, Call) and expr.type is not Type.BOOLEAN:
        for arg in expr.args[:1] if expr.function.name == "nullif" else expr.args:
            yield from _of_values(arg)


def clipped(query: Query, bounds: dict[Column, Interval]) -> Query:
    """The query with columns clipped to bounds inside its aggregates."""
    clamps: dict[Expr, Expr] = {column: clamped(column, interval) for column, interval in bounds.items()}
    aggregations = tuple(
        replace(
            each,
            argument=None if each.argument is None else _values_clipped(each.argument, clamps),
            second=None if each.second is None else _values_clipped(each.second, clamps),
        )
        if each.kind.ranged
        else each
        for each in query.plan.aggregations
    )
    return replace(query, plan=replace(query.plan, aggregations=aggregations))


def _values_clipped(expr: Expr, held: dict[Expr, Expr]) -> Expr:
    """An expression of clipped columns; its conditions (of FILTER, CASE, NULLIF) are of the columns as they are."""
    if expr in held:
        return held[expr]
    if not isinstance(expr, Call) or expr.type is Type.BOOLEAN:
        return expr
    if expr.function.name == "nullif":
        same, value = call(FUNCTIONS["eq"], *expr.args), _values_clipped(expr.args[0], held)
        made = None if same is None else call(FUNCTIONS["case"], same, Literal(None, value.type), value)
        assert made is not None  # what NULLIF compares can be compared
        return made
    return call_of(expr.function, tuple(_values_clipped(arg, held) for arg in expr.args), expr.type)


def clamped(column: Column, held: Interval) -> Expr:
    """A column between bounds."""
    made = call(FUNCTIONS["clamp"], column, *(Literal(end, column.type) for end in (held.lower, held.upper)))
    assert made is not None  # numbers are clamped to numbers of their type
    return made


def widest(column: Column) -> Interval:
    """The widest bounds that can be chosen."""
    return intervals_of(column).widest


def intervals_of(column: Column) -> Intervals:
    """The candidates for a column's bounds: in its owner's range, where there is one."""
    return Intervals(column.type is Type.INTEGER, column.fact.range if column.fact.limited else None)


def searches_of(
    loose: tuple[Column, ...],
    plan: Aggregate,
    analysis: Analysis,
    allowed: Allowance,
    settle: Callable[[tuple[Interval, ...]], Any],
) -> Searches:
    """The searches of some columns, at an equal part of the bounds' share each: a row counts in all of them."""
    whole = of_one_group(analysis)
    rows = whole.bounds.rows
    paid = grant(allowed).part(SHARE / len(loose)).choice(bounded_range=True)
    groups = min(plan.public_cells or 1, _MOST_GROUPS) if plan.keys else 1
    bounded = analysis.neighbours is Neighbours.BOUNDED
    spread = spread_of_counts(rows.l1, bounded)
    searches = tuple(
        Search.of(
            column,
            paid.law.epsilon,
            rows.l1,
            bounded=bounded,
            mechanism=paid.law.mechanism,
            worth=max(_WORTH * max(Fraction(1), Fraction(groups, 2)), _LEAST_WORTH * paid.law.epsilon / spread),
            cost=paid.cost,
        )
        for column in loose
    )
    limits = rows if whole.bounds.enforced else None
    exact = ExactPlan(plan.input, (), every_cell=False, parts=(), limits=limits, grids=tuple(s.grid for s in searches))
    assert_limited(exact, whole)
    return Searches(searches, (exact,), paid.cost.times(len(searches)), (paid.event,) * len(searches), settle)


def _chosen_already(_bounds: tuple[Interval, ...]) -> Any:
    raise AssertionError("no bounds are to be chosen")


NO_SEARCHES = Searches((), (), FREE, (), _chosen_already)
"""Of a query all of whose bounds are known."""
