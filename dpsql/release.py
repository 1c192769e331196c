"""calibrate: a plan, its analysis and a privacy loss -> a Release, everything about an answer but the data.

A release lowers the aggregations to integer *parts* (what the executor sums) and to *coordinates* (integer combinations
of parts that noise is added to), so that one privacy unit moves every coordinate by at most the same number of lattice
steps. COUNT, SUM and AVG of the same columns share their coordinates, and so one spend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsql.analysis.sensitivity import Analysis
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, UnknownGroups, UnsupportedSQL
from dpsql.executors.base import ExactPlan, ExactTable
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms import CubeLaplace, DiscreteGaussian, Noise, Reach, SplitLaplace
from dpsql.privacy.partitions import show_probability, threshold
from dpsql.release_lattice import Coordinate, Estimate, Lattice
from dpsql.release_order import order_of
from dpsql.release_shares import Batch, Share, batches, joined, lattices
from dpsql.schema import MOST_KEYS
from dpsql.sql.expressions import Vector, columns, unfiltered
from dpsql.sql.plan import MOST_DERIVED_CELLS, Query

if TYPE_CHECKING:
    from dpsql.sql.options import Options

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
    """A calibrated query. `shares` are its noise vectors, none where nothing private is measured, the one that chooses
    groups first; `cost` is what the ledger is charged."""

    query: Query
    analysis: Analysis
    exact: ExactPlan
    lattice: Lattice
    shares: tuple[Share, ...]
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

    @property
    def noise(self) -> Noise | None:
        """The law of the first share."""
        return self.shares[0].noise if self.shares else None

    @property
    def reach(self) -> Reach:
        """What the first share protects."""
        return self.shares[0].reach if self.shares else Reach(0, Fraction(0), 0)

    def share_of(self, place: int | None) -> Share | None:
        """The noise that a coordinate has; None for one that has none."""
        return next((share for share in self.shares if place in share.places), None)

    def noise_of(self, estimate: Estimate) -> Noise | None:
        """The noise of an aggregation."""
        share = self.share_of(estimate.sum) or self.share_of(estimate.count)
        return None if share is None else share.noise

    def privatise(self, exact: ExactTable) -> Released:
        """Add noise to the exact integers, hide the groups below the threshold, and decode. The one way out."""
        steps = self.coordinate_steps(exact.parts)
        for share in self.shares:
            drawn = share.noise.draw(exact.groups)
            steps = steps.astype(object) if drawn.dtype == object else steps
            steps[list(share.places)] += drawn
        keys = exact.keys
        if self.threshold is not None:
            index = self.lattice.selection
            shown = np.flatnonzero(steps[index] >= self.threshold)
            shown = shown[order_of((), [key.at(shown) for key in keys], len(shown))]  # not as they came
            steps, keys = steps[:, shown], tuple(_without_trace(key.at(shown)) for key in keys)
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


def _without_trace(key: Vector) -> Vector:
    """The shown cells alone: that some other row had NULL there must not show in how they are held."""
    if key.valid is None or key.valid.all():
        return Vector(key.values)
    return key


def calibrate(
    query: Query,
    analysis: Analysis,
    loss: PrivacyLoss,
    *,
    strategy: str = "auto",
    mechanism: str = "auto",
    options: Options | None = None,
) -> Release:
    """Choose lattice, noise and threshold for a loss. Raises UnknownGroups, InvalidPrivacyParameter,
    InvalidArgument."""
    _one_of("strategy", strategy, STRATEGIES)
    _one_of("mechanism", mechanism, MECHANISMS)
    selection = _selection(query, options)
    if selection in ("LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD"):
        mechanism = _mechanism_of(selection, mechanism)
    every_cell = query.plan.public_cells is not None and selection in (None, "PUBLIC_GROUPS")
    if not every_cell and not loss.delta:
        if query.plan.public_cells is None:
            raise _unknown_groups(query)
        raise UnknownGroups(
            f"{selection} hides groups of few people, which needs delta > 0.",
            span=options.places.get("group_selection_strategy") if options is not None else None,
            hint="Add delta=1e-6, or leave it out.",
        )
    parts = batches(analysis, loss.epsilon, selects=not every_cell)
    found = lattices(analysis, parts, strategy)
    lattice = joined(found, parts)
    exact = ExactPlan(query.plan.input, query.plan.keys, every_cell, lattice.parts)
    noisy = sum(_is_noisy(one) for one in found)
    if not noisy:
        return Release(query, analysis, exact, lattice, (), None, strategy, PrivacyLoss(Fraction(0)))
    gaussian = mechanism == "gaussian"
    if gaussian and not loss.delta:
        raise InvalidPrivacyParameter(
            "Gaussian noise needs delta > 0.", hint='Add delta=1e-6, or use mechanism="laplace".'
        )
    spends = (noisy if gaussian else 0) + (0 if every_cell else 1)
    delta = loss.delta / spends if spends else Fraction(0)
    shares = _shares(found, parts, delta, strategy, gaussian=gaussian)
    tau = None
    if not every_cell:
        least = options.min_privacy_units_per_group if options is not None else None
        tau = threshold(shares[0].noise, lattice.one_unit, delta / lattice.groups_of_a_unit)
        tau += ((least or 1) - 1) * lattice.one_unit
    epsilon = sum((part.epsilon for part, one in zip(parts, found, strict=True) if _is_noisy(one)), Fraction(0))
    return Release(query, analysis, exact, lattice, shares, tau, strategy, PrivacyLoss(epsilon, delta * spends))


def _is_noisy(lattice: Lattice) -> bool:
    return any(each.noisy for each in lattice.coordinates)


def _shares(
    found: tuple[Lattice, ...], parts: tuple[Batch, ...], delta: Fraction, strategy: str, *, gaussian: bool
) -> tuple[Share, ...]:
    """The noise of each lattice that has any, for the coordinates of all of them in a row."""
    shares, first = [], 0
    for lattice, part in zip(found, parts, strict=True):
        places = tuple(first + place for place, each in enumerate(lattice.coordinates) if each.noisy)
        first += len(lattice.coordinates)
        if places:
            l2_squared = sum((each.l2_squared for each in lattice.coordinates if each.noisy), Fraction(0))
            reach = Reach(lattice.steps, l2_squared, len(places))
            noise = _noise(reach, PrivacyLoss(part.epsilon, delta), strategy, gaussian)
            shares.append(Share(reach, noise, places, part.epsilon))
    return tuple(shares)


def _selection(query: Query, options: Options | None) -> str | None:
    """How groups are chosen, as the text says; None where it says nothing. Raises a QueryRefused for what rows that are
    one person each have no use for."""
    if options is None:
        return None
    if options.privacy_unit_column is not None:
        raise UnsupportedSQL(
            "privacy_unit_column is not supported: each row is one privacy unit.",
            span=options.places.get("privacy_unit_column"),
            hint="Leave it out if every person has one row.",
        )
    if options.group_selection_epsilon is not None:
        raise UnsupportedSQL(
            "group_selection_epsilon is not supported: groups are chosen by a count that the aggregates share,\n"
            "which costs nothing of its own.",
            span=options.places.get("group_selection_epsilon"),
            hint="Leave it out.",
        )
    selection, place = options.group_selection_strategy, options.places.get("group_selection_strategy")
    if selection == "TRUNCATED_GEOMETRIC":
        raise UnsupportedSQL(f"{selection} is not supported.", span=place, hint="Write LAPLACE_THRESHOLD.")
    public = query.plan.public_cells is not None
    if selection == "PUBLIC_GROUPS" and not public:
        raise _unknown_groups(query)
    if options.min_privacy_units_per_group is not None and public and selection in (None, "PUBLIC_GROUPS"):
        raise UnsupportedSQL(
            "min_privacy_units_per_group has no use for public groups: all of them are shown.",
            span=options.places.get("min_privacy_units_per_group"),
            hint="Leave it out.",
        )
    if selection not in (None, "PUBLIC_GROUPS") and not query.plan.keys:
        raise UnsupportedSQL(f"{selection} chooses groups, and there is no GROUP BY.", span=place, hint="Leave it out.")
    return selection


def _mechanism_of(selection: str, mechanism: str) -> str:
    wanted = "gaussian" if selection == "GAUSSIAN_THRESHOLD" else "laplace"
    if mechanism not in ("auto", wanted):
        raise InvalidArgument(f"{selection} goes with mechanism={wanted!r}, got {mechanism!r}.")
    return wanted


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
        names = ", ".join(str(key.expr) for key in query.plan.keys)
        cells = math.prod(len(key.values or ()) for key in query.plan.keys)
        return UnknownGroups(
            f"GROUP BY {names} has {cells:,} combinations of public values, more than are shown at once "
            f"({MOST_KEYS if all(key.listed for key in query.plan.keys) else MOST_DERIVED_CELLS:,}).",
            span=query.plan.keys[0].span,
            hint="Group by fewer columns, or allow delta=1e-6: combinations of few people are then hidden.",
        )
    expr = keys[0].expr
    if columns(expr) and all(unfiltered(column).range.bounded for column in columns(expr)):
        times = [column for column in columns(expr) if column.type.temporal]
        fewer = (
            f'Declare bounds={{"{times[0].name}": ("2020-01-01", "2024-12-31")}}, or put them into WHERE,'
            if times
            else f"Group by something coarser, such as {columns(expr)[0]} // 10,"
        )
        return UnknownGroups(
            f"GROUP BY {expr} has too many public values to show them all.",
            span=keys[0].span,
            hint=f"{fewer}\nor allow delta=1e-6: groups of few people are then hidden.",
        )
    inner = [column for column in columns(expr) if not unfiltered(column).range.bounded]
    declare = f'List them: keys={{"{inner[0].name}": [...]}} (costs no delta, shows empty ones too),\n' if inner else ""
    return UnknownGroups(
        f"GROUP BY {expr} would reveal which values of {expr} occur.",
        span=keys[0].span,
        hint=f"{declare}or allow delta=1e-6: groups of few people are then hidden.",
    )
