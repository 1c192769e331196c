"""Noise for every level of a ROLLUP, CUBE or GROUPING SETS, and estimates that add up.

The exact sums of the finest groups determine those of all levels. Each measured level has independent noise, for its
share of the budget. A level of the answer is the least-squares estimate from all measured levels
(`accuracy.hierarchies`), so that groups add up to the levels above, and every level informs the others.

Privacy. Summing cells moves no more in L1 distance than the cells move, so the sensitivity of each level is at most
that of the finest one. Its share of epsilon pays for it, and the shares add up (sequential composition). A budget in
rho is divided by rho, half the square of an epsilon. In L2 distance, contributions of a unit to the same merged cell
count together (`core.sensitivity.norms.merged`). Coordinates that neighbouring tables share are summed without noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy import widths
from dpsql.accuracy.hierarchies import GroupingSet, consistent, variances_of
from dpsql.accuracy.pairs import of_pairs, pair_weights
from dpsql.core.cost import FREE, Cost
from dpsql.core.events import Event
from dpsql.core.loss import Allowance, PrivacyLoss
from dpsql.core.measurement import Exact, Laws, MeasuredValues, MeasurementDescription, MeasurementNotes
from dpsql.core.mechanisms.grants import grant
from dpsql.core.mechanisms.noise import CubeLaplace, Noise, Reach, SplitLaplace
from dpsql.core.payment import NoisyVector
from dpsql.core.sensitivity.norms import reach_of_level
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.plan.domains import vector_of
from dpsql.plan.expressions import Vector
from dpsql.plan.query import Aggregate, GroupKey
from dpsql.release.parts import Lattice
from dpsql.schema.frozen import dataclass
from dpsql.schema.memoization import remembered

_LAWS = {
    "discrete_gaussian": "gaussian",
    "rounded_gaussian": "gaussian",
    "discrete_k_norm": "cube",
    "discrete_laplace": "laplace",
}


@dataclass(frozen=True)
class LevelNoise:
    """The noise of one level's estimates: a mixture of the noise of all measured levels."""

    name: str
    dimension: int
    terms: tuple[tuple[float, int], ...]
    spread: float

    @property
    def scale(self) -> float:
        """The standard deviation, in steps."""
        return math.sqrt(self.spread)

    def _exact(self, size: NDArray[np.float64], level: float) -> NDArray[np.float64]:
        from dpsql.accuracy.levels import half_widths  # only intervals need it

        return half_widths(self.terms, _LAWS[self.name], self.dimension, size, level)


@remembered(256)
def _pairs(noise: LevelNoise, level: float) -> NDArray[np.float64]:
    """Return the half-widths of the pairs in the table of `accuracy.pairs`."""
    return noise._exact(pair_weights(), level)


@widths.half_width.register
def _(noise: LevelNoise, level: float) -> float:
    return float(widths.half_widths(noise, np.ones((1, 1)), level)[0])


@widths.half_widths.register
def _(noise: LevelNoise, weights: NDArray[np.float64], level: float) -> NDArray[np.float64]:
    """The lattice of each measured level is taken to be fine compared with its noise."""
    size = np.abs(weights)
    found = of_pairs(size, _pairs(noise, level)) if len(size) == 2 else noise._exact(size, level)
    slack = sum(factor * count for factor, count in noise.terms if count == 1) * 2.0**-20
    return np.asarray(found + slack * size.sum(axis=0))


@dataclass(frozen=True)
class Level:
    """One measured level: its keys, share of the budget, sensitivity, noise and ledger event."""

    keys: GroupingSet
    share: Fraction
    reach: Reach
    noise: Noise
    event: Event

    @property
    def cost(self) -> Cost:
        return self.noise.loss(self.reach)


@dataclass(frozen=True, repr=False)
class MeasuredLevels:
    """The measured values: noisy integers of each measured level, with an axis for each of its keys after that of the
    noisy coordinates; and the exact part of each wanted level, (other coordinates, rows)."""

    noisy: dict[GroupingSet, NDArray[Any]]
    known: dict[GroupingSet, NDArray[Any]]


@dataclass(frozen=True)
class Levels(MeasurementNotes):
    """The levels of a query: `wanted` in the order of the answer, over keys with `sizes` values each.

    A key without any values, whose groups can have no rows, counts as one with a single value: no wanted level contains
    it, and the other levels are those of exact zeros."""

    sizes: tuple[int, ...]
    wanted: tuple[GroupingSet, ...]
    measured: tuple[Level, ...]
    noisy: tuple[int, ...]
    """The noisy coordinates; if there are none, no level is measured."""

    pair: PrivacyLoss | None = None
    """The (epsilon, delta) of all Gaussian levels together; each single level has only a rho."""

    @property
    def cost(self) -> Cost:
        """The cost of all levels together."""
        cost = sum((level.cost for level in self.measured), FREE)
        return cost if self.pair is None else replace(cost, epsilon=self.pair.epsilon, delta=self.pair.delta)

    @property
    def reach(self) -> tuple[Reach, ...]:
        return tuple(level.reach for level in self.measured)

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(level.event for level in self.measured)

    @property
    def told(self) -> MeasurementDescription:
        return MeasurementDescription(levels=(self,))

    @property
    def asked(self) -> tuple[str, object]:
        """The cache key; the joint epsilon and delta of Gaussian levels are stored with the first level, as in earlier
        keys."""
        costs = [each.cost for each in self.measured]
        if self.pair is not None and costs:
            costs = [Cost(Fraction(0), Fraction(0), each.rho) for each in costs]
            costs[0] = Cost(self.pair.epsilon, self.pair.delta, costs[0].rho)
        measured = zip(self.measured, costs, strict=True)
        each = tuple((level.keys, level.share, level.noise, cost) for level, cost in measured)
        return "levels", (self.sizes, self.wanted, each, self.noisy)

    def with_laws(self, laws: Laws) -> Levels:
        return replace(self, measured=tuple(replace(each, noise=laws.noise(each.noise, ())) for each in self.measured))

    def within(self, most: int) -> Levels:
        return replace(self, sizes=tuple(min(size, most) for size in self.sizes))

    @property
    def drawn(self) -> tuple[NoisyVector, ...]:
        """The noise of each measured level, for the check that it is paid for."""
        return tuple(NoisyVector(self.noisy, level.noise, level.cost, level.keys) for level in self.measured)

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        """Measure all rows of the answer, level after level."""
        measured = self.privatise(exact.steps)
        keys = exact.table.keys if exact.table.groups else self.finest(exact.keys)
        steps = self.estimates(measured)
        precisely = partial(self.estimates, measured, exactly=True)
        return MeasuredValues(self.keys_of(keys), steps, np.arange(steps.shape[1]), found.chosen, precisely)

    def cells_of(self, keys: GroupingSet) -> tuple[int, int]:
        """Return the number of cells of a level, and of the finest cells in each."""
        return _cells_of(self.sizes, keys)

    def rows(self) -> Iterator[tuple[GroupingSet, slice]]:
        """Yield each level of the answer and its rows."""
        start = 0
        for each in self.wanted:
            size = math.prod(self.sizes[key] for key in each)
            yield each, slice(start, start + size)
            start += size

    def privatise(self, steps: NDArray[Any]) -> MeasuredLevels:
        """Add noise to every measured level of the exact coordinates of the finest groups, (coordinates, groups)."""
        if not steps.shape[1]:  # some key has no values
            steps = np.zeros((len(steps), math.prod(self.sizes)), dtype=np.int64)
        known = [place for place in range(len(steps)) if place not in self.noisy]
        return MeasuredLevels(
            {level.keys: self._measure(steps, level) for level in self.measured},
            {
                keys: self._summed(steps[known], keys).reshape(len(known), rows.stop - rows.start)
                for keys, rows in self.rows()
            },
        )

    def estimates(self, measured: MeasuredLevels, *, exactly: bool = False) -> NDArray[Any]:
        """Return the coordinates of all rows of the answer, (coordinates, rows), as doubles; with `exactly` as
        Fractions."""
        noisy, dtype = measured.noisy, object if exactly else np.float64
        levels = consistent(noisy, self._variances(), self.wanted, exactly=exactly) if noisy else {}
        width = len(self.noisy) + len(next(iter(measured.known.values()), ()))
        known = [place for place in range(width) if place not in self.noisy]
        out: NDArray[Any] = np.zeros((width, sum(rows.stop - rows.start for _, rows in self.rows())), dtype)
        for keys, rows in self.rows():
            out[known, rows] = measured.known[keys]
            if noisy:
                out[list(self.noisy), rows] = levels[keys].reshape(len(self.noisy), rows.stop - rows.start)
        return out

    def of_noise(self, noisy: dict[GroupingSet, NDArray[np.float64]]) -> list[NDArray[np.float64]]:
        """Return the estimates of each wanted level from tables of the measured ones, with the same axes in front of
        the keys."""
        levels = consistent(noisy, self._variances(), self.wanted)
        return [levels[keys] for keys, _ in self.rows()]

    def _summed(self, steps: NDArray[Any], keys: GroupingSet) -> NDArray[Any]:
        """Return the exact coordinates of a level, with one axis for each of its keys."""
        finest = steps.reshape(len(steps), *self.sizes)
        others = tuple(1 + key for key in range(len(self.sizes)) if key not in keys)
        return np.asarray(finest.astype(object).sum(axis=others) if others else finest, dtype=object)

    def _measure(self, steps: NDArray[Any], level: Level) -> NDArray[Any]:
        exact = self._summed(steps[list(self.noisy)], level.keys)
        drawn = level.noise.draw(math.prod(self.sizes[key] for key in level.keys))
        return np.asarray(exact + drawn.astype(object).reshape(exact.shape))

    def _variances(self) -> dict[GroupingSet, float]:
        return {level.keys: level.noise.spread for level in self.measured}

    def noise_of(self, keys: GroupingSet) -> LevelNoise:
        """Return the noise of the estimates of a wanted level."""
        from dpsql.accuracy.levels import mixture  # only intervals need it

        variances = self._variances()
        scales = {level.keys: level.noise.scale for level in self.measured}
        found = mixture(variances, self.sizes, keys)
        terms = tuple((abs(weight) * scales[measured], count) for measured, weight, count in found if weight)
        spread = variances_of(variances, self.sizes, [keys])[keys]
        first = self.measured[0].noise
        return LevelNoise(first.name, _dimension(first), terms, spread)

    def finest(self, keys: tuple[GroupKey, ...]) -> tuple[Vector, ...]:
        """Return the keys of the finest groups from their public values; NULL for a key without values."""
        at = np.indices(self.sizes).reshape(len(self.sizes), -1)
        return tuple(vector_of(key.values or (None,), key.expr.type).at(at[place]) for place, key in enumerate(keys))

    def keys_of(self, keys: tuple[Vector, ...]) -> tuple[Vector, ...]:
        """Expand the keys of the finest groups to all rows: NULL where a level sums over the key."""
        number = np.arange(math.prod(self.sizes)).reshape(self.sizes)
        out = []
        for place, key in enumerate(keys):
            parts, kept = [], []
            for each, _ in self.rows():
                first = tuple(slice(None) if other in each else slice(1) for other in range(len(self.sizes)))
                parts.append(number[first].reshape(-1))
                kept.append(np.full(len(parts[-1]), place in each))
            found = key.at(np.concatenate(parts))
            out.append(Vector(found.values, found.where_valid() & np.concatenate(kept)))
        return tuple(out)

    def groupings(self, groups: int) -> Iterator[Vector]:
        """Yield GROUPING of each key, the last first: 1 in the rows that are summed over it. groups: the number of
        rows, a multiple of the answer's rows."""
        for key in reversed(range(len(self.sizes))):
            parts = [np.full(rows.stop - rows.start, int(key not in each)) for each, rows in self.rows()]
            once = np.concatenate(parts).astype(np.int64)
            yield Vector(np.tile(once, groups // max(1, len(once))))


NO_LEVELS = Levels((), (), (), ())
"""For a query without grouping sets."""


def _dimension(noise: Noise) -> int:
    return noise.dimension  # type: ignore[attr-defined,no-any-return]


def levels_of(
    plan: Aggregate, analysis: Analysis, lattice: Lattice, allowed: Allowance, *, law: str, delta: Fraction
) -> Levels:
    """Return the levels of a plan with grouping sets. law: "laplace", "split" (equal shares for each level and each
    sum) or "gaussian"."""
    sizes = _sizes(plan.keys)
    empty = {place for place, key in enumerate(plan.keys) if not key.values}
    wanted = tuple(each for each in plan.sets if not empty.intersection(each))
    noisy = tuple(place for place, each in enumerate(lattice.coordinates) if each.noisy)
    if not noisy:
        return Levels(sizes, wanted, (), noisy)

    def reach(keys: GroupingSet) -> Reach:
        return reach_of_level(lattice.parts, lattice.noisy, analysis, *_cells_of(sizes, keys))

    from dpsql.release.levels.shares import shared_apart, shared_out  # most queries have no levels

    share_out = shared_apart if plan.apart and law != "split" else shared_out
    shares = share_out(sizes, wanted, law, by_rho=allowed.rho is not None, reach=reach)
    granted = grant(allowed, delta=delta)
    if law == "gaussian":
        granted = granted.concentrated
    kind = SplitLaplace if law == "split" and len(noisy) > 1 else CubeLaplace
    measured = []
    for keys, share in shares.items():
        part, far = granted.part(share), reach(keys)
        paid = part.gaussian(far) if law == "gaussian" else part.pure(kind, far)
        measured.append(Level(keys, share, far, paid.law, paid.event))
    pair = PrivacyLoss(allowed.pure, delta) if law == "gaussian" and allowed.rho is None else None
    return Levels(sizes, wanted, tuple(measured), noisy, pair)


def _sizes(keys: Sequence[GroupKey]) -> tuple[int, ...]:
    if any(key.together is not None for key in keys):
        raise ValueError("grouping sets are of all combinations of public values")
    return tuple(max(1, len(key.values or ())) for key in keys)


def _cells_of(sizes: tuple[int, ...], keys: GroupingSet) -> tuple[int, int]:
    cells = math.prod(sizes[key] for key in keys)
    return cells, math.prod(sizes) // max(1, cells)
