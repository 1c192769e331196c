"""calibrate: a plan, its analysis and a privacy loss -> a Release, everything about an answer but the data.

A release lowers the aggregations to integer *parts* (what the executor sums) and to *coordinates* (integer combinations
of parts that noise is added to), so that one privacy unit moves every coordinate by at most the same number of lattice
steps. COUNT, SUM and AVG of the same columns share their coordinates, and so one spend.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.analysis.sensitivity import Analysis
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, UnknownGroups
from dpsql.executors.base import ExactPlan, ExactTable
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import CubeLaplace, DiscreteGaussian, Noise, Reach, SplitLaplace
from dpsql.privacy.partitions import show_probability, threshold
from dpsql.release_lattice import Coordinate, Estimate, Lattice, lower
from dpsql.release_order import order_of
from dpsql.sql.expressions import Vector
from dpsql.sql.plan import Query

STRATEGIES = ("auto", "split")
MECHANISMS = ("auto", "laplace", "gaussian")


@dataclass(frozen=True)
class Released:
    """Noisy values, safe to show: a vector for each key, and the coordinates in the answer's units, (n, groups)."""

    keys: tuple[Vector, ...]
    values: NDArray[np.float64]

    @property
    def groups(self) -> int:
        return int(self.values.shape[1])


@dataclass(frozen=True)
class Release:
    """A calibrated query. `noise` is None where nothing private is measured; `cost` is what the ledger is charged."""

    query: Query
    analysis: Analysis
    exact: ExactPlan
    lattice: Lattice
    reach: Reach
    noise: Noise | None
    threshold: int | None
    strategy: str
    cost: PrivacyLoss

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return self.lattice.coordinates

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """How each aggregation follows from the coordinates, in the order of the plan's aggregations."""
        return self.lattice.estimates

    def privatise(self, exact: ExactTable) -> Released:
        """Add noise to the exact integers, hide the groups below the threshold, and decode. The one way out."""
        steps = self.coordinate_steps(exact.parts)
        noisy = [index for index, each in enumerate(self.coordinates) if each.noisy]
        if self.noise is not None:
            drawn = self.noise.draw(exact.groups)
            steps = steps.astype(object) if drawn.dtype == object else steps
            steps[noisy] += drawn
        keys = exact.keys
        if self.threshold is not None:
            index = self.lattice.selection
            shown = np.flatnonzero(steps[index] >= self.threshold)
            shown = shown[order_of((), [key.at(shown) for key in keys], len(shown))]  # not as they came
            steps, keys = steps[:, shown], tuple(key.at(shown) for key in keys)
        units = np.array([each.unit for each in self.coordinates], dtype=np.float64)
        return Released(keys, steps.astype(np.float64) * units[:, None])

    def coordinate_steps(self, parts: NDArray[Any]) -> NDArray[Any]:
        """The exact coordinates, (coordinates, groups), from the exact parts; integers in lattice steps.

        Python integers take over where 64 bits could be too few, which follows the number of rows but changes nothing.
        """
        groups = parts.shape[1]
        largest = max((int(abs(part).max()) for part in parts), default=0) if groups else 0
        weight = max((sum(abs(f) for _, f in each.terms) for each in self.coordinates), default=0)
        wide = parts.dtype == object or largest * weight >= 2**61
        held = parts.astype(object) if wide else parts
        steps = np.zeros((len(self.coordinates), groups), dtype=held.dtype)
        for row, coordinate in enumerate(self.coordinates):
            for part, factor in coordinate.terms:
                steps[row] += held[part] * factor
        return steps

    def chance_shown(self, units: int) -> float | None:
        """The chance that a group of so many privacy units is shown; None when all groups are."""
        if self.threshold is None or self.noise is None:
            return None
        return show_probability(self.noise, units * self.lattice.one_unit, self.threshold)


def calibrate(
    query: Query, analysis: Analysis, loss: PrivacyLoss, *, strategy: str = "auto", mechanism: str = "auto"
) -> Release:
    """Choose lattice, noise and threshold for a loss. Raises UnknownGroups, InvalidPrivacyParameter,
    InvalidArgument."""
    _one_of("strategy", strategy, STRATEGIES)
    _one_of("mechanism", mechanism, MECHANISMS)
    every_cell = query.plan.public_cells is not None
    if not every_cell and not loss.delta:
        raise _unknown_groups(query)
    gaussian = mechanism == "gaussian"
    lattice = lower(analysis, loss.epsilon, strategy=strategy, selects=not every_cell)
    noisy = [each for each in lattice.coordinates if each.noisy]
    reach = Reach(lattice.steps, sum((each.l2_squared for each in noisy), Fraction(0)), len(noisy))
    exact = ExactPlan(query.plan.input, query.plan.keys, every_cell, lattice.parts)
    if not noisy:
        return Release(query, analysis, exact, lattice, reach, None, None, strategy, PrivacyLoss(Fraction(0)))
    if gaussian and not loss.delta:
        raise InvalidPrivacyParameter(
            "Gaussian noise needs delta > 0.", hint='Add delta=1e-6, or use mechanism="laplace".'
        )
    shares = (1 if gaussian else 0) + (0 if every_cell else 1)
    share = loss.delta / shares if shares else Fraction(0)
    noise = _noise(reach, PrivacyLoss(loss.epsilon, share), strategy, gaussian)
    tau = None if every_cell else threshold(noise, lattice.one_unit, share / lattice.groups_of_a_unit)
    cost = PrivacyLoss(loss.epsilon, share * shares)
    return Release(query, analysis, exact, lattice, reach, noise, tau, strategy, cost)


def _noise(reach: Reach, loss: PrivacyLoss, strategy: str, gaussian: bool) -> Noise:
    if gaussian:
        return DiscreteGaussian.calibrate(reach, loss)
    if strategy == "split" and reach.dimension > 1:
        return SplitLaplace.calibrate(reach, loss.epsilon)
    return CubeLaplace.calibrate(reach, loss.epsilon)


def _one_of(name: str, word: object, words: tuple[str, ...]) -> None:
    if word not in words:
        raise InvalidArgument(f"{name} must be {', '.join(map(repr, words[:-1]))} or {words[-1]!r}, got {word!r}.")


def _unknown_groups(query: Query) -> UnknownGroups:
    keys = [key for key in query.plan.keys if key.values is None]
    if not keys:
        names = ", ".join(str(key.column) for key in query.plan.keys)
        return UnknownGroups(
            f"GROUP BY {names} has more combinations of public values than are shown at once.",
            span=query.plan.keys[0].span,
            hint="Group by fewer columns, or allow delta=1e-6: combinations of few people are then hidden.",
        )
    column, name = keys[0].column, keys[0].column.name
    return UnknownGroups(
        f"GROUP BY {column} would reveal which values of {column} occur.",
        span=keys[0].span,
        hint=f'List them: keys={{"{name}": [...]}} (costs no delta, shows empty ones too),\n'
        "or allow delta=1e-6: groups of few people are then hidden.",
    )
