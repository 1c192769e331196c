"""Clip bounds that a query chooses itself, privately, for columns that are declared "auto".

A candidate bound B of one side is scored by f(B) = #{rows beyond B}, the values that it would clip, and by how far up
it stands: going up is worth the noise that it brings only while it saves enough clipped rows. One is drawn by its
score, in place of asking one after the other whether few enough rows are beyond it (AboveThreshold), which has to pay
for a noisy threshold and for every question: `docs/decisions/0014` has the comparison.

Privacy. With f counted on one side, a row more or less moves f(B) by 0 or 1, for all B in the same direction: the
spread (`core.exponential`) is 1. A row lies on one side alone, above 0 or below, so both searches together cost what
one does. A row that changes counts as one that leaves and one that enters: spread 2. Those of a unit's rows add up. The
bounds are then public, and the query is planned with them for the rest of its epsilon (sequential composition).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.cost import FREE, Cost
from dpsql.core.events import Event
from dpsql.core.exact import Edges, ExactPlan, ExactTable, GridCounts
from dpsql.core.exponential import Chooser, Choosing, exponential, permute_and_flip, spread_of_counts
from dpsql.core.grants import grant
from dpsql.core.loss import Allowance
from dpsql.core.measurement import Exact, Found, Laws, Said, Told
from dpsql.core.paid import Drawing
from dpsql.core.reach import assert_limited, of_one_group
from dpsql.core.sensitivity import Analysis
from dpsql.core.unit import Neighbours
from dpsql.plan.expressions import Call, Column, Expr, Literal, call, call_of
from dpsql.plan.facts import Known, fact
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import scans_of
from dpsql.plan.query import Aggregate, Query
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval, Number

SHARE = Fraction(3, 10)
"""The part of a query's epsilon that its bounds cost."""
SURE = 0.95
"""How sure it is that no more rows are clipped than is said."""
_WORTH = Fraction(7, 10)
"""Half an octave more is worth so many clipped rows, divided by the epsilon of the search."""
_MOST_GROUPS = 32
"""Among k groups the noise of all is to be paid for by the rows of all: half an octave is then worth k/2 times as much,
up to so many groups."""
_FINE = 1_000
_HIGHEST = 124
"""Bounds go up to 2^62, in half octaves."""


@lru_cache(maxsize=2)
def candidates(*, whole: bool) -> tuple[tuple[Number, ...], tuple[int, ...]]:
    """The bounds to choose from, ascending, and how many half octaves each stands above 0.

    Of integers the distinct floors of 2^(k/2). Of reals 2^(k/2) too, down to 2^-3.5, and from 2^-4 to 2^-32 powers of
    16, each two steps: so much smaller values are rare, and cost few steps where they are all there is."""
    halves = range(_HIGHEST + 1)
    if whole:
        found: dict[Number, int] = {0: 0}
        for k in halves:
            found.setdefault(math.isqrt(2**k), 4 + k)
        return tuple(found), tuple(found.values())
    small = [(2.0 ** (-32 + 4 * k), 2 * (k + 1)) for k in range(8)]
    large = [(2.0 ** (k / 2), 24 + k) for k in range(-7, _HIGHEST + 1)]
    pairs = [(0.0, 0), *small, *large]
    return tuple(bound for bound, _ in pairs), tuple(steps for _, steps in pairs)


@dataclass(frozen=True)
class Search:
    """The choice of one column's bounds. `epsilon`: what it costs, with `rows` rows of one unit at most; `worth`: how
    many clipped rows half an octave is worth, times epsilon; `cost`: its part of what the query costs."""

    column: Column
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
        ends = [float(bound) for bound in candidates(whole=column.type is Type.INTEGER)[0]]
        below = [math.nextafter(-end, -math.inf) for end in ends]  # at most that: less than -end
        edges = Edges(column, (*reversed(below), *ends))
        return cls(column, GridCounts(edges, len(edges.edges) + 1), epsilon, rows, **how)

    @property
    def chooser(self) -> Chooser:
        return self.chosen_by or (permute_and_flip if self.mechanism == "permute_and_flip" else exponential)

    def choose(self, counts: NDArray[np.int64]) -> Interval:
        """Bounds for exact counts between the edges, shape (points,)."""
        bounds, steps = candidates(whole=self.column.type is Type.INTEGER)
        beyond = counts.sum() - np.cumsum(counts)  # beyond each edge
        upper = beyond[len(bounds) : 2 * len(bounds)]
        lower = np.cumsum(counts)[: len(bounds)][::-1]  # at or below each edge under 0
        low, high = (bounds[self.place(side, steps)] for side in (lower, upper))
        return Interval(-low if low else 0, high) if high or low else Interval(0, bounds[1])

    def place(self, beyond: NDArray[np.int64], steps: tuple[int, ...]) -> int:
        """One candidate of a side: exp(-epsilon f / (spread rows)) exp(-worth steps), up to normalisation."""
        scores = [_FINE * int(f) + self.penalty * step for f, step in zip(beyond, steps, strict=True)]
        least = min(scores)
        gaps: Any = np.array([[score - least for score in scores]], dtype=object)
        if int(gaps.max()) < 2**62:
            gaps = gaps.astype(np.int64)
        return int(self.chooser(gaps, self.epsilon / (_FINE * self.spread))[0])

    @property
    def spread(self) -> int:
        """By how much the counts beyond two bounds can move apart."""
        return spread_of_counts(self.rows, self.bounded)

    @property
    def penalty(self) -> int:
        """What half an octave is worth, where a clipped row is worth `_FINE`."""
        return max(1, round(_FINE * self.worth * self.spread / self.epsilon))

    def clipped_at_most(self, drawn: Interval) -> tuple[int, int]:
        """How many rows lie below and how many above drawn bounds, at most, not counting those beyond the largest
        candidate: both hold at once with probability `SURE`, over the draw and whatever the data are.

        Proof, for one side. Let f_i rows be beyond candidate i, which stands s_i half octaves up, the last being K.
        Gaps to the best score are in units of 1 / _FINE rows: gap_i >= _FINE (f_i - f_K) - penalty (s_K - s_i), since
        the best is no worse than K. Both choosers take i with a chance of at most exp(-rate gap_i), rate = epsilon /
        (_FINE spread): permute-and-flip needs a success of that chance, and the exponential mechanism divides it by a
        sum that holds exp(0). So with t = log(K / miss) / rate the chance to take any i < K of gap_i > t is at most
        miss, and else _FINE (f_i - f_K) <= t + penalty (s_K - s_i). Each side may miss (1 - SURE) / 2. (The smallest
        bounds of all, [0, 1] or so, stand for a drawn 0 too.)
        """
        bounds, steps = candidates(whole=self.column.type is Type.INTEGER)
        last = len(bounds) - 1
        chance = math.log(last * 2 / (1 - SURE)) * self.spread / float(self.epsilon) * (1 + 1e-12)

        def beyond(bound: Number, *, least: bool = False) -> int:
            place = 0 if least else bisect_right(bounds, bound) - 1
            return 0 if place == last else math.floor(self.penalty * (steps[last] - steps[place]) / _FINE + chance)

        nothing = drawn.lower == 0 and drawn.upper <= bounds[1]
        return beyond(-drawn.lower), beyond(drawn.upper, least=nothing)


@dataclass(frozen=True)
class Bounded:
    """A column whose bounds were chosen, the bounds, what the choice cost, and how many rows they clip at most, below
    and above, with probability `SURE` (besides those beyond the largest bounds that could be chosen)."""

    column: Column
    held: Interval
    cost: Cost
    clipped: tuple[int, int] = (0, 0)

    @property
    def told(self) -> str:
        """Whose the intervals are, in words."""
        below, above = self.clipped
        return (
            f"intervals are of the clipped values; at most {above:,} rows lie above and {below:,} below "
            f"({SURE:.0%}; not counting any beyond {candidates(whole=False)[0][-1]:.2g})"
        )

    def __str__(self) -> str:
        return f"{self.column} to [{float(self.held.lower):.6g}, {float(self.held.upper):.6g}]"


@dataclass(frozen=True)
class Searches(Said):
    """The searches of a query, the counts that they need (`counted`, all groups in one), what they cost, and how the
    query is planned with their bounds: `settle` makes the release from an interval for each column."""

    searches: tuple[Search, ...]
    counted: tuple[ExactPlan, ...]
    cost: Cost
    events: tuple[Event, ...]
    settle: Callable[[tuple[Interval, ...]], Any] = field(compare=False, repr=False)

    @property
    def told(self) -> Told:
        return Told(searches=(self,), plans=self.counted)

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
    def drawings(self) -> tuple[Drawing, ...]:
        """What chooses, to be seen to be paid for."""
        return tuple(
            Drawing(Choosing(each.mechanism, each.epsilon), None, each.rows, each.bounded, False, each.cost)
            for each in self.searches
        )

    def run(self, exact: Exact, found: Found) -> Found:
        return replace(found, bounds=self.choose(exact.table))

    def choose(self, table: ExactTable) -> tuple[Interval, ...]:
        """Bounds for each column, from the exact counts."""
        intervals = []
        for search, grid in zip(self.searches, table.grids, strict=True):
            counts = np.zeros(search.grid.points, dtype=np.int64)
            counts[grid.points] = grid.counts
            intervals.append(search.choose(counts))
        return tuple(intervals)


def loose_columns(query: Query, known: Known) -> tuple[Column, ...]:
    """The columns without bounds that aggregates of a query need some for, and that are declared "auto"."""
    tables = {scan.name: scan.table for scan in scans_of(query.plan.input)}
    loose: dict[Column, None] = {}
    for each in query.plan.aggregations:
        if not each.kind.ranged or each.per_unit is not None:
            continue
        for argument in each.arguments:
            if fact(argument, known).limited:
                continue
            for column in _of_values(argument):
                table = tables.get(column.table)
                column_schema = table.by_name.get(column.name.casefold()) if table is not None else None
                if column_schema is not None and column_schema.auto and not fact(column, known).limited:
                    loose[column] = None
    return tuple(loose)


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
    most = candidates(whole=column.type is Type.INTEGER)[0][-1]
    return Interval(-most, most)


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
    paid = grant(allowed).part(SHARE / len(loose)).choice()
    groups = min(plan.public_cells or 1, _MOST_GROUPS) if plan.keys else 1
    searches = tuple(
        Search.of(
            column,
            paid.law.epsilon,
            rows.l1,
            bounded=analysis.neighbours is Neighbours.BOUNDED,
            mechanism=paid.law.mechanism,
            worth=_WORTH * max(Fraction(1), Fraction(groups, 2)),
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
