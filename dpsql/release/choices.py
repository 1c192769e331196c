"""Private selection of values: MEDIAN and other quantiles, MIN, MAX, MODE, APPROX_TOP_K.

Rows are counted on a public grid of values, and the exponential mechanism selects one point for each group
(`core.mechanisms.exponential`, `core.mechanisms.quantiles`). Quantiles of one argument are drawn together, so that they
do not cross. If a range has too many values to count one by one, they are drawn by runs of values
(`core.mechanisms.quantile_runs`). MIN and MAX are values of a low and a high rank, far enough from the end that the
answer is hardly ever beyond all rows. For the most frequent values, each row counts for one value only. So the counts
of all values together have noise for one row, and the values with the largest counts are taken. That costs the same for
any number of values, whereas successive draws would divide epsilon. A draw paid by epsilon is permute-and-flip, which
is never worse than the exponential mechanism at the same epsilon. Draws paid by rho, and draws among runs, use the
exponential mechanism, whose rho is a quarter of the rho that its epsilon alone implies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy.widths import half_width
from dpsql.core.cost import FREE, Cost
from dpsql.core.events import Event
from dpsql.core.exact import Grid, GridCounts
from dpsql.core.loss import Allowance
from dpsql.core.measurement import Exact, Laws, MeasuredValues, MeasurementDescription, MeasurementNotes
from dpsql.core.mechanisms.exponential import (
    ChoiceSequence,
    Chooser,
    exponential,
    gaps_of,
    permute_and_flip,
    spread_of_counts,
    top_k,
)
from dpsql.core.mechanisms.grants import Grant, grant
from dpsql.core.mechanisms.noise import Noise
from dpsql.core.mechanisms.quantile_runs import CountedRows, RoundNumbers, best_among, quantiles_among
from dpsql.core.mechanisms.quantiles import (
    Tree,
    extreme_rank,
    fixed_rank_spread,
    quantiles,
    rank_gaps,
    rank_gaps_at,
    rows_off,
)
from dpsql.core.payment import SelectionStep
from dpsql.core.sensitivity.norms import reach_of_counts
from dpsql.core.sensitivity.row_contributions import Analysis, MeasuredAggregation
from dpsql.core.unit import Neighbours
from dpsql.errors import InvalidPrivacyParameter, UnsupportedSQL
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.query import Aggregate
from dpsql.release.bounds.grids import grid_of
from dpsql.release.bounds.points import dense
from dpsql.release.design.ranks import tree_of
from dpsql.release.parts import ChosenPoint, Estimate
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import point

_CHUNK = 1 << 20
_LARGEST_RANK = 1 << 40
_MOST_WORK = 1 << 28
"""The most points of all groups and draws together."""
EXACT = "exact"
"""The mechanism for public tables: no randomness."""


@dataclass(frozen=True)
class Draw(MeasurementNotes):
    """One private selection for each group. `epsilon`: the cost of all groups together, with at most `rows` rows of one
    unit; `wanted`: the quantiles in ascending order, or the number of values to select; `grid`: the place among the
    plan's grids; `places`: of the results among the released values."""

    kind: AggregateFunction
    grid: int
    points: int
    places: tuple[int, ...]
    wanted: tuple[Fraction, ...]
    epsilon: Fraction
    rows: int
    bounded: bool
    one_group: bool
    mechanism: str
    cost: Cost
    event: Event
    noise: Noise | None = None
    """The noise of each count, where values are selected by noisy counts."""
    chosen_by: Chooser | None = field(default=None, compare=False)
    """In a dry run, replaces the mechanism's own chooser."""
    among: RoundNumbers | None = None
    """The points, if there are too many to count one by one; a point may be repeated."""
    tree: Tree | None = None
    """The order of several quantiles, and the epsilon of each."""

    @property
    def chooser(self) -> Chooser:
        return self.chosen_by or (permute_and_flip if self.mechanism == "permute_and_flip" else exponential)

    @property
    def rate(self) -> Fraction:
        """The exponent per row of difference, for MIN, MAX, MODE and APPROX_TOP_K. The spread of counts is 1 for a row
        added or removed (all move the same way) and 2 for a replaced row."""
        if self.kind.ranked:
            return self.epsilon / (fixed_rank_spread(self.bounded, self.one_group) * self.rows)
        return self.epsilon / (len(self.places) * spread_of_counts(self.rows, self.bounded))

    @property
    def rank(self) -> int:
        """The rank of MIN from the bottom and of MAX from the top."""
        return extreme_rank(self.points, self.rate)

    @property
    def _neighbours(self) -> dict[str, Any]:
        """The neighbour relation for the distribution of quantiles, and the order of draws."""
        return {"rows": self.rows, "bounded": self.bounded, "one_group": self.one_group, "tree": self.tree}

    def rows_off(self, level: float) -> int:
        """Return the most rows by which the rank or count of the drawn value differs from the best, with this
        probability and for any data: the utility theorem of the exponential mechanism, exactly (see `extreme_rank`)."""
        beta = Fraction(1) - Fraction(repr(level))
        if self.kind.quantile:
            candidates = self.points if self.among is None else self.among.odds
            return rows_off(candidates, self.wanted, self.epsilon, beta=beta, **self._neighbours)
        if (
            self.noise is not None
        ):  # each count is off by at most this, so a selected value is behind by at most twice as much
            return 2 * math.ceil(half_width(self.noise, float(1 - beta / self.points)))
        return extreme_rank(self.points, self.rate, beta)

    def draw(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Draw points for counts of shape (groups, points), shape (len(places), groups); -1 for a group of a public
        table without rows."""
        if self.mechanism == EXACT:
            found = self._best(counts)
            return np.where(counts.any(axis=1), found, -1)
        if self.kind.quantile:
            return quantiles(counts, self.wanted, self.epsilon, chooser=self.chooser, **self._neighbours).T
        if self.kind.ranked:
            gaps = rank_gaps_at(counts, self.rank, self.kind.end == "largest")
            return self.chooser(gaps, self.rate)[None]
        if len(self.places) == 1:
            return self.chooser(gaps_of(counts), self.rate)[None]
        if self.noise is not None:
            return _largest(counts + self.noise.draw(counts.size).reshape(counts.shape), len(self.places))
        return top_k(counts, len(self.places), self.rate, self.chooser).T

    def _among_runs(self, grid: Grid, shown: NDArray[Any], of: RoundNumbers) -> NDArray[Any]:
        """Draw quantiles by runs of points. Groups are shown in any order, and rows are counted by group and value."""
        order = np.argsort(shown)
        groups = np.append(shown[order], -1)
        number = np.searchsorted(groups[:-1], grid.groups)
        kept = groups[number] == grid.groups
        counted = CountedRows(number[kept], grid.points[kept] + of.least, grid.counts[kept])
        points = np.empty((len(self.wanted), len(shown)))
        if self.mechanism == EXACT:
            some = np.bincount(counted.groups, minlength=len(shown)) > 0
            best = best_among(of, counted, len(shown), self.wanted).T - of.least
            points[:, order] = np.where(some, best, -1)
            return points
        how = {"trial": self.chosen_by, **self._neighbours}
        drawn = quantiles_among(of, counted, len(shown), self.wanted, self.epsilon, **how)
        points[:, order] = drawn.T - of.least
        return points

    def _best(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Return the best points exactly, for public tables."""
        if self.kind.quantile:
            return np.stack([rank_gaps(counts, q).argmin(axis=1) for q in self.wanted])
        if self.kind.end == "least":
            return np.asarray((counts > 0).argmax(axis=1)[None])
        if self.kind.end == "largest":
            return np.asarray((self.points - 1 - (counts[:, ::-1] > 0).argmax(axis=1))[None])
        return _largest(counts, len(self.places))

    @property
    def told(self) -> MeasurementDescription:
        return MeasurementDescription(draws=(self,))

    @property
    def asked(self) -> tuple[str, object]:
        return "draws", self

    def with_laws(self, laws: Laws) -> Draw:
        """Replace the noise and the chooser; selections from public tables have neither."""
        noise = None if self.noise is None else laws.noise(self.noise, ())
        return replace(self, noise=noise, chosen_by=laws.chooser)

    @property
    def reach(self) -> int:
        """The most rows of a unit; the mechanism determines how far each moves the scores apart."""
        return self.rows

    @property
    def drawn(self) -> tuple[SelectionStep, ...]:
        """The selection steps, for the check that each is paid for."""
        draws = Fraction(len(self.places)) if self.tree is None else 1 / self.tree.along(2)
        chosen = self.mechanism != EXACT and not self.noise
        pure = self.cost.epsilon is not None
        law = ChoiceSequence(self.mechanism, self.epsilon, draws, pure=pure) if chosen else None
        return (SelectionStep(law, self.noise, self.rows, self.bounded, self.one_group, self.cost),)

    @property
    def events(self) -> tuple[Event, ...]:
        """The ledger events; selections from public tables cost nothing."""
        return () if self.cost.free else (self.event,)

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        return replace(found, chosen=(*found.chosen, self.chosen(exact.table.grids[self.grid], found.shown)))

    def chosen(self, grid: Grid, shown: NDArray[Any]) -> NDArray[np.float64]:
        """Return points of the groups `shown` (numbers of groups), shape (len(places), len(shown))."""
        if self.among is not None:
            return self._among_runs(grid, shown, self.among)
        points = np.zeros((len(self.places), len(shown)))
        step = max(1, _CHUNK // self.points)
        for start in range(0, len(shown), step):
            points[:, start : start + step] = self.draw(dense(grid, shown[start : start + step], self.points))
        return points


def _largest(counts: NDArray[Any], many: int) -> NDArray[Any]:
    """Return the places of the largest counts of each group, in descending order, shape (many, groups)."""
    return np.argsort(-counts, axis=1, kind="stable")[:, :many].T


@dataclass(frozen=True)
class Family:
    """Aggregations (places in the plan) that are drawn together, and their epsilon."""

    places: tuple[int, ...]
    epsilon: Fraction


def families(measured: Sequence[MeasuredAggregation]) -> list[tuple[int, ...]]:
    """Return the selecting aggregations without an epsilon of their own; those drawn together share a tuple."""
    together_at: dict[object, list[int]] = {}
    for place, m in enumerate(measured):
        if m.of == "choice" and m.aggregation.epsilon is None:
            together = m.aggregation.kind.quantile
            together_at.setdefault(m.aggregation.argument if together else place, []).append(place)
    return [tuple(places) for places in together_at.values()]


def draws_of(
    analysis: Analysis, plan: Aggregate, asked: Sequence[Family], allowed: Allowance, *, first: int
) -> tuple[tuple[Draw, ...], tuple[GridCounts, ...], dict[int, Estimate]]:
    """Return the draws of some families, their grids, and the estimates by place in the plan. `first`: the number of
    released values before them; `allowed`: the cost of the query."""
    grids: dict[GridCounts, int] = {}
    draws: list[Draw] = []
    estimates: dict[int, Estimate] = {}
    for family in asked:
        question = _Question.of(family, analysis, plan)
        places = tuple(range(first, first + question.many))
        first += question.many
        estimates |= dict(zip(family.places, question.estimates(places), strict=True))
        grid = grids.setdefault(question.grid, len(grids))
        draw = question.draw(grant(allowed, family.epsilon), grid, places, analysis, one_group=not plan.keys)
        question.check(draw, plan.public_cells or 1)
        draws.append(draw)
    return tuple(draws), tuple(grids), estimates


@dataclass(frozen=True)
class _Question:
    """The input of one draw: the aggregations of a family, their distinct ranks in ascending order, the public points,
    and how to decode a point."""

    measured: tuple[MeasuredAggregation, ...]
    wanted: tuple[Fraction, ...]
    grid: GridCounts
    chosen: ChosenPoint

    @classmethod
    def of(cls, family: Family, analysis: Analysis, plan: Aggregate) -> _Question:
        measured = tuple(analysis.measured[place] for place in family.places)
        wanted = tuple(sorted({_at(m) for m in measured}))
        several = measured[0].aggregation.kind.quantile and len(wanted) > 1
        return cls(measured, wanted, *grid_of(measured[0], plan, several=several))

    @property
    def kind(self) -> AggregateFunction:
        return self.measured[0].aggregation.kind

    @property
    def top(self) -> bool:
        return self.kind.several

    @property
    def many(self) -> int:
        """The number of points drawn for a group."""
        return min(int(self.measured[0].aggregation.at or 1), self.grid.points) if self.top else len(self.wanted)

    def estimates(self, places: tuple[int, ...]) -> Iterator[Estimate]:
        """Yield the estimate of each aggregation from the points at these places of the released values."""
        for m in self.measured:
            own = places[self.wanted.index(_at(m))] if self.kind.quantile else places[0]
            chosen = self.chosen.at(own, self.many if own == places[0] else 1)
            yield Estimate(self.kind, None, None, 0.0, point(0), whole=False, chosen=chosen)

    def draw(self, granted: Grant, grid: int, places: tuple[int, ...], analysis: Analysis, *, one_group: bool) -> Draw:
        """Return the draw for a granted cost. Several most frequent values are selected by noisy counts if that needs
        less noise than successive draws."""
        among = self.chosen.among
        bounded = analysis.neighbours is Neighbours.BOUNDED
        several = self.kind.quantile and self.many > 1
        tree = tree_of(self.wanted, bounded, one_group, granted.rho is not None) if several else None
        draws = Fraction(self.many) if tree is None else 1 / tree.along(2)
        paid = granted.choice(draws, bounded_range=among is not None)
        draw = Draw(
            self.kind,
            grid,
            self.grid.points,
            places,
            self.wanted,
            paid.law.epsilon,
            self.measured[0].bound.l1,
            bounded,
            one_group,
            paid.law.mechanism,
            paid.cost,
            paid.event,
            tree=tree,
        )
        if among is not None:
            draw = replace(draw, among=among.numbers)
        if not analysis.private:
            return replace(draw, mechanism=EXACT, cost=FREE)
        if not self.top or self.many <= (1 if granted.rho is None else 2):
            return draw
        noisy = granted.counts(reach_of_counts(analysis))  # of all values, in all groups
        return replace(draw, mechanism=noisy.law.name, cost=noisy.cost, event=noisy.event, noise=noisy.law)

    def check(self, draw: Draw, groups: int) -> None:
        """Refuse a draw that would be meaningless or take too long. Raises InvalidPrivacyParameter, UnsupportedSQL."""
        if self.kind.ranked and draw.rank > _LARGEST_RANK:
            raise InvalidPrivacyParameter(
                f"{self.kind} would be asked for by a rank beyond any table's rows: epsilon is too small for how much "
                "one person adds.",
                hint="Give it more epsilon, or set lower limits (max_rows).",
            )
        if self.chosen.among is None and self.grid.points * groups * (self.many if self.top else 1) > _MOST_WORK:
            aggregation = self.measured[0].aggregation
            raise UnsupportedSQL(
                f"{aggregation.word} of {self.grid.points:,} values in {groups:,} groups would take too long.",
                span=aggregation.span,
                hint="Choose among fewer values, or group by fewer.",
            )


def _at(m: MeasuredAggregation) -> Fraction:
    return m.aggregation.at or Fraction(0)
