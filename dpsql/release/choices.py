"""Values chosen at random by their fit: MEDIAN and other quantiles, MIN, MAX, MODE, APPROX_TOP_K.

Rows are counted on a public grid of values, and one point of it is drawn for each group: the better it fits, the
likelier (`core.exponential`, `core.quantiles`). Quantiles of one argument are drawn together, so that they do not
cross. MIN and MAX are values of a low and a high rank, far enough from the end that the answer is hardly ever beyond
all rows. Of several values a row counts for one only, so the counts of all values together have noise for one row, and
the values with the largest ones are taken: that costs as much for any number of them, where one draw after the other
would share epsilon. A draw paid by epsilon is permute-and-flip, which is never worse than the exponential mechanism at
the same epsilon; one paid by rho is the exponential mechanism, whose rho is a quarter of what its epsilon alone would
imply.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy.widths import half_width
from dpsql.core.cost import FREE, Cost
from dpsql.core.events import Concentrated, Event, Pure
from dpsql.core.exact import Edges, Grid, GridCounts, LatticeSum
from dpsql.core.exponential import Chooser, exponential, gaps_of, permute_and_flip, top_k
from dpsql.core.loss import Allowance, root_below
from dpsql.core.mechanisms import CubeLaplace, DiscreteGaussian, Noise, Reach, drawable
from dpsql.core.quantiles import extreme_rank, fixed_rank_spread, quantiles, rank_gaps, rank_gaps_at, rows_off
from dpsql.core.sensitivity import Analysis, Contribution, Measured
from dpsql.core.unit import Neighbours
from dpsql.errors import InvalidPrivacyParameter, UnsupportedSQL
from dpsql.plan.aggregates import MOST_POINTS, RANKED, AggregateKind
from dpsql.plan.query import Aggregate, GroupKey
from dpsql.release.parts import Chosen, Estimate, squared
from dpsql.release.points import Points
from dpsql.release.values import argument_of
from dpsql.schema.intervals import point

_MOST_CELLS = 1 << 22
"""Points of all public groups together, for the sake of time."""
_FEWEST_POINTS = 256
_POINTS_OF_UNKNOWN = 4_096
_FEWER = 16
_CHUNK = 1 << 20
_LARGEST_RANK = 1 << 40
_MOST_WORK = 1 << 28
"""Points of all groups and draws together."""
EXACT = "exact"
"""What is asked of nobody's rows needs no chance."""


@dataclass(frozen=True)
class Draw:
    """One draw for each group. `epsilon`: what all groups together cost, with `rows` rows of one unit at most;
    `wanted`: the quantiles, in ascending order, of a rank that is counted from the top or not, or how many values are
    drawn one after the other; `grid`: the place among the plan's grids; `places`: where the results stand among the
    released values."""

    kind: AggregateKind
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
    """Of each count, where values are chosen by noisy counts."""

    @property
    def chooser(self) -> Chooser:
        return permute_and_flip if self.mechanism == "permute_and_flip" else exponential

    @property
    def rate(self) -> Fraction:
        """The exponent of one row's difference, of MIN, MAX, MODE and APPROX_TOP_K. The spread of counts is 1 for a row
        added or removed (all move the same way) and 2 for one that is changed."""
        if self.kind in RANKED:
            return self.epsilon / (fixed_rank_spread(self.bounded, self.one_group) * self.rows)
        return self.epsilon / (len(self.places) * self.rows * (2 if self.bounded else 1))

    @property
    def rank(self) -> int:
        """The rank of MIN from the bottom and of MAX from the top."""
        return extreme_rank(self.points, self.rate)

    def rows_off(self, level: float) -> int:
        """How many rows the drawn value's rank, or its count, may be off from the best one's, with this probability
        and whatever the data are: the utility theorem of the exponential mechanism, exactly (see `extreme_rank`)."""
        beta = Fraction(1) - Fraction(repr(level))
        if self.kind is AggregateKind.QUANTILE:
            return rows_off(
                self.points,
                self.wanted,
                self.epsilon,
                rows=self.rows,
                bounded=self.bounded,
                beta=beta,
                one_group=self.one_group,
            )
        if self.noise is not None:  # no count is off by more than that, so none taken is behind by twice as much
            return 2 * math.ceil(half_width(self.noise, float(1 - beta / self.points)))
        return extreme_rank(self.points, self.rate, beta)

    def draw(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Points for counts of shape (groups, points), shape (len(places), groups); -1 of a public group without rows,
        which has none."""
        if self.mechanism == EXACT:
            found = self._best(counts)
            return np.where(counts.any(axis=1), found, -1)
        if self.kind is AggregateKind.QUANTILE:
            found = quantiles(
                counts,
                self.wanted,
                self.epsilon,
                rows=self.rows,
                bounded=self.bounded,
                chooser=self.chooser,
                one_group=self.one_group,
            )
            return found.T
        if self.kind in RANKED:
            gaps = rank_gaps_at(counts, self.rank, self.kind is AggregateKind.MAX)
            return self.chooser(gaps, self.rate)[None]
        if len(self.places) == 1:
            return self.chooser(gaps_of(counts), self.rate)[None]
        if self.noise is not None:
            return _largest(counts + self.noise.draw(counts.size).reshape(counts.shape), len(self.places))
        return top_k(counts, len(self.places), self.rate, self.chooser).T

    def _best(self, counts: NDArray[Any]) -> NDArray[Any]:
        """The best points, as they are asked of nobody's rows."""
        if self.kind is AggregateKind.QUANTILE:
            return np.stack([rank_gaps(counts, q).argmin(axis=1) for q in self.wanted])
        if self.kind is AggregateKind.MIN:
            return np.asarray((counts > 0).argmax(axis=1)[None])
        if self.kind is AggregateKind.MAX:
            return np.asarray((self.points - 1 - (counts[:, ::-1] > 0).argmax(axis=1))[None])
        return _largest(counts, len(self.places))

    def run(self, grid: Grid, shown: NDArray[Any]) -> NDArray[np.float64]:
        """Points of the groups `shown` (numbers of groups), shape (len(places), len(shown))."""
        found = np.zeros((len(self.places), len(shown)))
        step = max(1, _CHUNK // self.points)
        for start in range(0, len(shown), step):
            found[:, start : start + step] = self.draw(_dense(grid, shown[start : start + step], self.points))
        return found


def _largest(counts: NDArray[Any], many: int) -> NDArray[Any]:
    """The places of the largest counts of each group, in their order, shape (many, groups)."""
    return np.argsort(-counts, axis=1, kind="stable")[:, :many].T


def _dense(grid: Grid, groups: NDArray[Any], points: int) -> NDArray[np.int64]:
    counts = np.zeros((len(groups), points), dtype=np.int64)
    first = np.searchsorted(grid.groups, groups, side="left")
    last = np.searchsorted(grid.groups, groups, side="right")
    for row, (start, stop) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        counts[row, grid.points[start:stop]] = grid.counts[start:stop]
    return counts


@dataclass(frozen=True)
class Family:
    """Aggregations (places in the plan) that are drawn together, what they may cost, and whether they are quantiles."""

    places: tuple[int, ...]
    epsilon: Fraction


def families(measured: Sequence[Measured]) -> list[tuple[int, ...]]:
    """The chosen aggregations that have no epsilon of their own, those that are drawn together in one tuple."""
    found: dict[object, list[int]] = {}
    for place, m in enumerate(measured):
        if m.of == "choice" and m.aggregation.epsilon is None:
            together = m.aggregation.kind is AggregateKind.QUANTILE
            found.setdefault(m.aggregation.argument if together else place, []).append(place)
    return [tuple(places) for places in found.values()]


def draws_of(
    analysis: Analysis, plan: Aggregate, asked: Sequence[Family], allowed: Allowance, *, first: int
) -> tuple[tuple[Draw, ...], tuple[GridCounts, ...], dict[int, Estimate]]:
    """The draws of some families, the grids that they need, and what they mean, by place in the plan. `first`: how many
    released values there are before; `allowed`: what the query may cost."""
    grids: dict[GridCounts, int] = {}
    draws: list[Draw] = []
    estimates: dict[int, Estimate] = {}
    for family in asked:
        measured = [analysis.measured[place] for place in family.places]
        kind = measured[0].aggregation.kind
        wanted = sorted({m.aggregation.at or Fraction(0) for m in measured})
        grid, chosen = _grid_of(measured[0], plan, several=kind is AggregateKind.QUANTILE and len(wanted) > 1)
        many = int(measured[0].aggregation.at or 1) if kind is AggregateKind.TOP_K else len(wanted)
        many = min(many, grid.points) if kind is AggregateKind.TOP_K else many
        places = tuple(range(first, first + many))
        first += many
        for place, m in zip(family.places, measured, strict=True):
            own = places[wanted.index(m.aggregation.at or Fraction(0))] if kind is AggregateKind.QUANTILE else places[0]
            estimates[place] = Estimate(
                kind, None, None, 0.0, point(0), whole=False, chosen=chosen.at(own, many if own == places[0] else 1)
            )
        event: Event
        epsilon, mechanism, cost, event = (
            family.epsilon,
            "permute_and_flip",
            Cost.of(family.epsilon),
            Pure(family.epsilon),
        )
        if allowed.rho is not None:
            share = family.epsilon**2 / 2
            after = many if kind is AggregateKind.TOP_K else many.bit_length()
            epsilon, mechanism = root_below(8 * after * share), "exponential"
            cost, event = Cost(None, rho=share), Concentrated(share)
        noise = None
        if kind is AggregateKind.TOP_K and many > (1 if allowed.rho is None else 2):
            noise = _noise_of_counts(measured[0], analysis, epsilon if allowed.rho is None else None, cost.rho)
            mechanism = noise.name
        if not analysis.private:
            mechanism, cost, noise = EXACT, FREE, None
        draw = Draw(
            kind,
            grids.setdefault(grid, len(grids)),
            grid.points,
            places,
            tuple(wanted),
            epsilon,
            measured[0].bound.l1,
            analysis.neighbours is Neighbours.BOUNDED,
            not plan.keys,
            mechanism,
            cost,
            event,
            noise,
        )
        if kind in RANKED and draw.rank > _LARGEST_RANK:
            raise InvalidPrivacyParameter(
                f"{kind} would be asked for by a rank beyond any table's rows: epsilon is too small for how much one "
                "person adds.",
                hint="Give it more epsilon, or set lower limits (max_rows).",
            )
        work = grid.points * (plan.public_cells or 1) * (many if kind is AggregateKind.TOP_K else 1)
        if work > _MOST_WORK:
            raise UnsupportedSQL(
                f"{measured[0].aggregation.word} of {grid.points:,} values in {plan.public_cells or 1:,} groups would "
                "take too long.",
                span=measured[0].aggregation.span,
                hint="Choose among fewer values, or group by fewer.",
            )
        draws.append(draw)
    return tuple(draws), tuple(grids), estimates


def _noise_of_counts(m: Measured, analysis: Analysis, epsilon: Fraction | None, rho: Fraction) -> Noise:
    """The noise of the counts of all values, in all groups, for an epsilon or else a rho. Values are to the rows of a
    unit what groups are: each row is in one, and one that changes leaves one for another."""
    row = Contribution(point(1), sure=False)
    split = replace(analysis, grouped=True)
    reach = Reach(round(split.of(row, m.bound).l1), squared(row, m.bound, split), 1)
    return drawable(DiscreteGaussian.of_rho(reach, rho) if epsilon is None else CubeLaplace.calibrate(reach, epsilon))


def _grid_of(m: Measured, plan: Aggregate, *, several: bool) -> tuple[GridCounts, Chosen]:
    """The public points of an aggregation, and how a point is read."""
    expr, kind = argument_of(m), argument_of(m).type
    values = m.aggregation.values
    if values is not None:
        many = m.aggregation.kind is AggregateKind.TOP_K
        return GridCounts(GroupKey(expr, values, listed=True), len(values)), Chosen(
            0, kind=kind, values=values, listed=many
        )
    held = m.argument.range
    cells = plan.public_cells
    most = _POINTS_OF_UNKNOWN if cells is None else max(_FEWEST_POINTS, min(MOST_POINTS, _MOST_CELLS // max(1, cells)))
    if several and plan.keys:  # whose points come in pieces
        most = max(_FEWEST_POINTS, most // _FEWER)
    if not kind.discrete or (not kind.temporal and int(held.upper) - int(held.lower) >= most):
        points = Points(held.lower, held.upper, most, kind.discrete)
        return GridCounts(Edges(expr, points.edges), len(points.values)), Chosen(0, kind=kind, points=points)
    lower, width = int(held.lower), int(held.upper) - int(held.lower)
    step = -(-width // (most - 1)) or 1
    size = -(-width // step)
    lattice = LatticeSum(expr, lower, int(held.upper), lower, 1 / step, 0, size, whole=step == 1)
    return GridCounts(lattice, size + 1), Chosen(0, kind=kind, origin=lower, step=step, most=int(held.upper))


def own_families(measured: Sequence[Measured]) -> Iterator[Family]:
    """Chosen aggregations with an epsilon of their own."""
    for place, m in enumerate(measured):
        if m.of == "choice" and m.aggregation.epsilon is not None:
            yield Family((place,), m.aggregation.epsilon)
