"""Private choice of clip bounds for columns that are declared "auto".

The exponential mechanism selects one interval from a public list (`bounds.candidates`). The score counts the rows that
the interval would clip. Wider intervals carry a penalty, because the noise they add is worth it only if they save
enough clipped rows. AboveThreshold, which tests one bound after another, would have to pay for a noisy threshold and
for every test: `docs/decisions/0021-automatic-clip-bounds.md` has the comparison.

Privacy. Adding or removing a row changes max(below I, above I) by 0 or 1, for all I in the same direction: the spread
(`core.mechanisms.exponential`) is 1. Replacing a row removes one and adds one: spread 2. The spreads of a unit's rows
add up. Penalties, and the number of candidates of each kind, are public. The chosen bounds are then public, and the
query is planned with them for the rest of its epsilon (sequential composition).
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
"""The share of a query's epsilon that is spent on choosing bounds."""
SURE = 0.95
"""The probability with which the stated limits on clipped rows hold."""
_LOWEST = {Type.INTEGER: 2.0, Type.REAL: 2.0**-4}
"""Without any rows, 99 of 100 searches return bounds no larger than these."""
_WORTH = Fraction(3, 4)
"""Widening by half an octave must save this many clipped rows, divided by the epsilon of the search,"""
_LEAST_WORTH = Fraction(1, 160)
"""or this part of a row, where epsilon is large: all half octaves together, some 140, are never worth a row."""
_MOST_GROUPS = 32
"""The rows of all k groups have to pay for the noise of all k: half an octave is then worth k/2 times as much, for at
most this many groups."""


@dataclass(frozen=True)
class Search:
    """The private choice of one column's bounds. `epsilon`: its cost, with at most `rows` rows of one unit; `worth`:
    how many clipped rows half an octave is worth, times epsilon; `cost`: its part of the query's cost."""

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
    """In a dry run, replaces the mechanism's own chooser."""

    @classmethod
    def of(cls, column: Column, epsilon: Fraction, rows: int, **how: Any) -> Search:
        intervals = intervals_of(column)
        value = column if intervals.outer is None else clamped(column, intervals.outer)
        of = LeadingDigits(value, intervals.digits)
        return cls(column, intervals, GridCounts(of, 2 * of.middle), epsilon, rows, **how)

    def choose(self, grid: Grid) -> Interval:
        """Select bounds from exact counts by the exponential mechanism: exp(-epsilon clipped / (spread rows) -
        penalty), up to normalisation."""
        found = self.weighed(grid)
        place = (self.chosen_by or exponential)(found.gaps[None], found.rate, found.many[None])[0]
        return found.drawn(int(place), chance=self.chosen_by is None)

    def weighed(self, grid: Grid) -> WeightedCandidates:
        """Return all candidates, with equal ones grouped."""
        assert isinstance(self.grid.of, LeadingDigits)
        return WeightedCandidates.all(self.intervals, self.grid.of, grid, float(self.worth), self.rate)

    @property
    def law(self) -> ChoiceSequence:
        """The choice as an input of privacy accounting."""
        return ChoiceSequence(self.mechanism, self.epsilon, pure=self.cost.epsilon is not None)

    @property
    def rate(self) -> Fraction:
        """The change of the exponent per clipped row."""
        return self.epsilon / self.spread

    @property
    def spread(self) -> int:
        """The most by which a unit changes the difference between two candidates' scores."""
        return spread_of_counts(self.rows, self.bounded)

    def clipped_at_most(self, drawn: Interval) -> tuple[int, int]:
        """Return upper limits on the rows below and above the drawn bounds, not counting rows beyond the widest
        candidate. Both hold at once with probability `SURE`, over the draw and for any data.

        Proof. Let I clip f_I rows on the side where more are clipped, and weigh w_I if there are no rows. Let K be the
        widest candidate. The probability of I is at most w_I exp(-r f_I) / (w_K exp(-r f_K)), r = epsilon / spread. All
        I with f_I > f_K + x have together a probability of at most exp(-r x) sum w / w_K: at most 1 - SURE for x =
        log(sum w / w_K / (1 - SURE)) / r. f_K counts the rows beyond K on one side, so at most f_K + x rows lie beyond
        I."""
        worth = float(self.worth)
        odds = math.log(self.intervals.weight(worth) / (1 - SURE)) + float(self.intervals.penalties(worth)[0][-1])
        most = math.floor(odds * self.spread / float(self.epsilon) * (1 + 1e-9)) + 1
        widest = self.intervals.widest
        return 0 if drawn.lower <= widest.lower else most, 0 if drawn.upper >= widest.upper else most

    def is_lowest(self, drawn: Interval) -> bool:
        """Return whether the drawn bounds are among those that result if there are hardly any rows."""
        return drawn != self.intervals.widest and drawn.magnitude <= _LOWEST[self.column.type]

    def rows_enough(self, drawn: Interval) -> float:
        """Return the number of rows from which on, with probability `SURE`, no more than half lie beyond either drawn
        bound, if none lie beyond 2^32: by the proof of `clipped_at_most` with these bounds as the widest."""
        if drawn == self.intervals.widest:
            return -math.inf
        worth, ends = float(self.worth), (-(2**32), 2**32)
        widest = self.intervals.outer or Interval(*(ends if self.intervals.whole else map(float, ends)))
        odds = math.log(self.intervals.weight(worth) / (1 - SURE)) + self.intervals.penalty(widest, worth)
        return 2 * odds / float(self.rate)

    def rows_needed(self, drawn: Interval) -> float:
        """Return the number of rows that outweighs the penalty of the drawn bounds: fewer rows hardly explain them."""
        return self.intervals.penalty(drawn, float(self.worth)) / float(self.rate)


@dataclass(frozen=True)
class ChosenBounds:
    """The chosen bounds of a column, the cost of the choice, and upper limits on the rows clipped below and above, with
    probability `SURE` (not counting rows beyond the widest candidate). `lowest`, `rows_needed`, `rows_enough`: see
    `Search`; `free`: the bounds are not near 0; `rows`: the most rows of one unit in the search."""

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
        """Describe the `drawn` bounds of a search, and the bounds `held` that values are clamped to."""
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
        """The limits on clipped rows, as text."""
        below, above = self.clipped
        beyond = f"not counting any beyond {widest(self.column).magnitude:.2g}"
        return f"at most {above:,} rows lie above and {below:,} below ({SURE:.0%}; {beyond})"

    def __str__(self) -> str:
        return f"{self.column} to [{float(self.held.lower):.6g}, {float(self.held.upper):.6g}]"


@dataclass(frozen=True)
class Searches(MeasurementNotes):
    """The searches of a query, the exact counts that they need (`counted`, all groups in one), and their cost. `settle`
    plans the release from an interval for each column."""

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
        """The spread of each search."""
        return tuple(search.spread for search in self.searches)

    @property
    def drawn(self) -> tuple[SelectionStep, ...]:
        """The selection steps, for the check that each is paid for."""
        return tuple(SelectionStep(each.law, None, each.rows, each.bounded, False, each.cost) for each in self.searches)

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        return replace(found, bounds=self.choose(exact.table))

    def choose(self, table: ExactTable) -> tuple[Interval, ...]:
        """Select bounds for each column from the exact counts."""
        intervals = []
        for search, grid in zip(self.searches, table.grids, strict=True):
            intervals.append(search.choose(grid))
        return tuple(intervals)


def loose_columns(query: Query, known: Known, *, auto_bounds: bool = False) -> tuple[Column, ...]:
    """Return the columns whose bounds a query chooses: those declared "auto" in aggregates that need bounds, where no
    bounds are known except the range declared for the choice. auto_bounds: include columns of private tables without
    any bounds."""
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
                if column_schema.bounds is None or each.kind.chosen:  # a selection needs only a range
                    needed = not fact(argument, known).limited and not fact(column, known).limited
                else:
                    needed = _would_be_loose(argument, column, known)
                if needed:
                    loose[column] = None
    return tuple(loose)


def with_count(query: Query, loose: tuple[Column, ...], allowed: Allowance) -> Query:
    """Add a count of each undeclared column that the query only uses in selections, such as MEDIAN: otherwise nothing
    would show whether there are enough rows for bounds. The count costs a fifth of what the search leaves. No count is
    added where the text divides epsilon."""
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
    """Return the stored column if a query may choose its bounds, otherwise None."""
    stored = None if table is None else table.by_name.get(column.name.casefold())
    if table is None or stored is None:
        return None
    undeclared = auto_bounds and stored.bounds is None and stored.type.numeric and not table.public
    return stored if stored.auto or undeclared else None


def _would_be_loose(argument: Expr, column: Column, known: Known) -> bool:
    """Return whether an argument would lose its bounds if a column lost its own, and no filter gives the column both
    bounds."""
    declared, held = column.fact.range, fact(column, known).range
    without = rebuild(argument, {column: replace(column, fact=replace(column.fact, range=EVERYTHING, meant=None))})
    return not (declared.lower < held.lower and held.upper < declared.upper) and not fact(without, known).limited


def _of_values(expr: Expr) -> Iterator[Column]:
    """Yield the columns that contribute values to an expression, not only conditions."""
    if isinstance(expr, Column):
        yield expr
    elif isinstance(expr, Call) and expr.type is not Type.BOOLEAN:
        for arg in expr.args[:1] if expr.function.name == "nullif" else expr.args:
            yield from _of_values(arg)


def clipped(query: Query, bounds: dict[Column, Interval]) -> Query:
    """Return the query with columns clipped to bounds inside its aggregates."""
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
    """Clip the columns of an expression. Conditions (of FILTER, CASE, NULLIF) still read the unclipped columns."""
    if expr in held:
        return held[expr]
    if not isinstance(expr, Call) or expr.type is Type.BOOLEAN:
        return expr
    if expr.function.name == "nullif":
        same, value = call(FUNCTIONS["eq"], *expr.args), _values_clipped(expr.args[0], held)
        made = None if same is None else call(FUNCTIONS["case"], same, Literal(None, value.type), value)
        assert made is not None  # NULLIF has already compared the same arguments
        return made
    return call_of(expr.function, tuple(_values_clipped(arg, held) for arg in expr.args), expr.type)


def clamped(column: Column, held: Interval) -> Expr:
    """Return a column clamped to bounds."""
    made = call(FUNCTIONS["clamp"], column, *(Literal(end, column.type) for end in (held.lower, held.upper)))
    assert made is not None  # numbers are clamped to numbers of their type
    return made


def widest(column: Column) -> Interval:
    """Return the widest bounds that can be chosen."""
    return intervals_of(column).widest


def intervals_of(column: Column) -> Intervals:
    """Return the candidates for a column's bounds, within the declared range if there is one."""
    return Intervals(column.type is Type.INTEGER, column.fact.range if column.fact.limited else None)


def searches_of(
    loose: tuple[Column, ...],
    plan: Aggregate,
    analysis: Analysis,
    allowed: Allowance,
    settle: Callable[[tuple[Interval, ...]], Any],
) -> Searches:
    """Return the searches of some columns. Each gets an equal part of the bounds' share, since a row counts in all of
    them."""
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
"""For a query whose bounds are all known."""
