"""The calibrated release of a query: everything about an answer except the data.

A release lowers the aggregations to integer *parts* (the sums that the executor computes) and to *coordinates* (integer
combinations of parts that noise is added to), so that one privacy unit moves every coordinate by at most the same
number of lattice steps. COUNT, SUM and AVG of the same columns share their coordinates, and therefore one cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsql.core.cost import Cost
from dpsql.core.events import Event, Pure
from dpsql.core.exact import ExactPlan, ExactTable
from dpsql.core.goal import Goal
from dpsql.core.loss import Allowance, PrivacyLoss
from dpsql.core.measurement import (
    ALL_SHOWN,
    Exact,
    MeasuredValues,
    Measurement,
    MeasurementDescription,
    Share,
    ShownGroups,
    measured,
)
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.group_vectors import sensitivity_across
from dpsql.core.mechanisms.noise import INDEPENDENT, NO_REACH, GaussianNoise, Noise, Reach
from dpsql.core.payment import PaidRequest, assert_paid
from dpsql.core.sensitivity.norms import sensitivity_of
from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.core.unit import Sensitivity
from dpsql.errors import InternalError
from dpsql.plan.expressions import Vector
from dpsql.plan.query import Query
from dpsql.release.bounds.auto_bounds import NO_SEARCHES, ChosenBounds, Searches
from dpsql.release.choices import Draw
from dpsql.release.laws import Choice, log_error
from dpsql.release.levels.estimates import NO_LEVELS, Levels
from dpsql.release.output.integers import LARGEST_OF_LEVELS, Integers, are_large, integers_of
from dpsql.release.parts import Coordinate, Estimate, Lattice
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval

Derived = TypeVar("Derived")


@dataclass(frozen=True)
class ReleasedValues:
    """Noisy values, safe to show: a vector for each key, and the features in the answer's units, (features, groups)."""

    keys: tuple[Vector, ...]
    values: NDArray[np.float64]
    bounds: tuple[Interval, ...] = ()
    """The chosen bounds of each searched column."""
    integers: Integers = field(default_factory=dict)
    """Integers that are too large for `values`, by aggregation, one for each group."""

    @property
    def groups(self) -> int:
        return int(self.values.shape[1])

    def at(self, places: Any) -> ReleasedValues:
        """Return the values of some groups."""
        numbers = np.arange(self.groups)[places].tolist() if self.integers else ()
        integers = {of: tuple(each[number] for number in numbers) for of, each in self.integers.items()}
        return ReleasedValues(tuple(key.at(places) for key in self.keys), self.values[:, places], self.bounds, integers)


@dataclass(frozen=True)
class Release:
    """A calibrated query. `measurements` run in order; `cost`: the charge to the ledger; `events`: its steps;
    `allowed`: the requested privacy loss; `choice`: the comparison of Laplace and Gaussian noise, if both were
    possible."""

    query: Query
    analysis: Analysis
    exact: ExactPlan
    lattice: Lattice
    measurements: tuple[Measurement, ...]
    strategy: str
    cost: Cost
    allowed: Allowance
    events: tuple[Event, ...] = ()
    choice: Choice | None = None
    bounds: tuple[ChosenBounds, ...] = ()
    """The chosen bounds."""
    goal: Goal | None = None
    """The requested error, if epsilon was derived from it."""
    meaningless: frozenset[int] = frozenset()
    """The aggregations, by place, that are NULL because no bounds were found for them (`found_bounds`)."""
    as_declared: Callable[[], Release] | None = field(default=None, compare=False, repr=False)
    """Plans the query as if its chosen bounds had been declared, so that nothing is spent on a search."""

    @cached_property
    def told(self) -> MeasurementDescription:
        """The descriptions of all measurements, in order."""
        each = zip(*[one.told for one in self.measurements], strict=True)
        return MeasurementDescription(*map(tuple, map(chain.from_iterable, each)))

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The noise vectors, the one that selects groups first; empty if nothing private is measured."""
        return self.told.shares

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The private selections of values."""
        return self.told.draws

    @property
    def selection(self) -> ShownGroups:
        """The selection of groups."""
        return next(iter(self.told.selections), ALL_SHOWN)

    @property
    def levels(self) -> Levels:
        """The levels of a query with grouping sets, whose noise replaces `shares`; otherwise `NO_LEVELS`."""
        return next(iter(self.told.levels), NO_LEVELS)

    @property
    def searches(self) -> Searches:
        """The searches of bounds that are still to be chosen; until then, everything else assumes the widest bounds."""
        return next(iter(self.told.searches), NO_SEARCHES)

    @property
    def provisional(self) -> bool:
        """True if some bounds are still to be chosen."""
        return bool(self.searches.searches)

    @property
    def plans(self) -> tuple[ExactPlan, ...]:
        """The exact plans for the executor, in order."""
        return (*self.told.plans, self.exact)

    @cached_property
    def sections(self) -> tuple[tuple[Release, slice], ...]:
        """The rows of the answer by noise distribution: all rows together, or those of each level, as pairs of the
        release for these rows and their slice."""
        each = [(self.at_level(keys), rows) for levels in self.told.levels for keys, rows in levels.rows()]
        return tuple(each) or ((self, slice(None)),)

    def settled(self, bounds: tuple[Interval, ...]) -> Release:
        """Return the release with bounds for its columns, at the same cost; `self` if there are none to choose."""
        if not self.told.searches:
            return self
        release: Release
        release, intervals = self.searches.settle(bounds)
        release = replace(
            release, query=replace(release.query, finish=self.query.finish)
        )  # `finish` may belong to another step
        searches = zip(self.searches.searches, intervals, bounds, strict=True)
        chosen_bounds = tuple(ChosenBounds.of(*each) for each in searches)
        return replace(release, cost=self.cost, allowed=self.allowed, events=self.events, bounds=chosen_bounds)

    @cached_property
    def _derived(self) -> dict[Any, Any]:
        return {}

    def once(self, derive: Callable[[Release], Derived]) -> Derived:
        """Derive a value from the release on first use. It must not depend on the results of a run: the same release
        runs again for the next query of its kind."""
        if derive not in self._derived:
            self._derived[derive] = derive(self)
        found: Derived = self._derived[derive]
        return found

    @cached_property
    def price(self) -> str:
        """The cost as text, in the privacy measure of the request."""
        if self.allowed.rho is None or not self.cost.rho:
            return str(self.cost)
        return str(Allowance(None, self.cost.delta, self.cost.rho))

    @property
    def hides(self) -> bool:
        """True if groups of few units are hidden."""
        return self.selection.hides

    @property
    def width(self) -> int:
        """The number of released values of a group."""
        return self.lattice.width + sum(len(draw.places) for draw in self.draws)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        return self.lattice.coordinates

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The estimate of each aggregation from the coordinates, in the order of the plan's aggregations."""
        return self.lattice.estimates

    @property
    def noise(self) -> Noise | None:
        """The noise of the first share."""
        return self.shares[0].noise if self.shares else None

    @property
    def reach(self) -> Reach:
        """The sensitivity of the first share."""
        return self.shares[0].reach if self.shares else NO_REACH

    def for_all(self, level: float, groups: int) -> float:
        """Return the level of each group's interval at which all hold at once with probability `level`. Noise of
        different groups is independent, except for levels or one vector across groups, where the union bound applies.
        """
        together = self.levels.wanted or any(share.reach.across for share in self.shares)
        return 1 - (1 - level) / max(1, groups) if together else level ** (1 / max(1, groups))

    @property
    def log_error(self) -> float:
        """The mean over the aggregations (and levels) of the logarithm of their standard error."""
        return sum(log_error(self.lattice, one.shares) for one, _ in self.sections) / len(self.sections)

    @property
    def even_chance(self) -> float | None:
        """The number of rows (or units) for which a group is shown as likely as not by its threshold; None without a
        threshold."""
        height = dict(self.selection.conditions).get(self.lattice.selection)
        return None if height is None else height / self.lattice.one_row

    def at_level(self, keys: tuple[int, ...]) -> Release:
        """Return a view of the release with the noise of one level; it cannot be run."""
        if not self.levels.measured:
            return replace(self, measurements=())
        noise: Any = self.levels.noise_of(keys)
        places = self.levels.noisy
        share = Share(replace(NO_REACH, dimension=len(places)), noise, places, Fraction(0), Pure(Fraction(1)))
        return replace(self, measurements=(share,))

    @property
    def law(self) -> str:
        """The name of the noise distribution."""
        laws = [*(share.noise for share in self.shares), *(level.noise for level in self.levels.measured)]
        return "gaussian" if any(isinstance(each, GaussianNoise) for each in laws) else "laplace"

    def share_of(self, place: int | None) -> Share | None:
        """Return the share with the noise of a coordinate; None if it has no noise."""
        return next((share for share in self.shares if place in share.places), None)

    def sensitivity(self, place: int, level: tuple[int, int] | None = None) -> Sensitivity:
        """Return a unit's sensitivity in a coordinate in all groups, or in those of a `level` (see
        `sensitivity_of`)."""
        share, terms = self.share_of(place), self.coordinates[place].terms
        if share is not None and share.reach.across is not None:
            return sensitivity_across(self.exact, terms, self.analysis)
        return sensitivity_of(self.lattice.parts, terms, self.analysis, level)

    def share_noise(self, some: Iterable[int], others: Iterable[int]) -> bool:
        """Return whether two sets of coordinates have dependent noise: from the same vector with joint noise, or in the
        same coordinate."""
        return bool(self._sources(some) & self._sources(others))

    def _sources(self, places: Iterable[int]) -> set[tuple[int, int]]:
        sources = set()
        for place in places:
            for number, share in enumerate(self.shares):
                if place in share.places:
                    joint = not isinstance(share.noise, INDEPENDENT)
                    sources.add((number, -1 if joint else place))
        return sources

    def noise_of(self, estimate: Estimate) -> Noise | None:
        """Return the noise of an aggregation."""
        used = [place for feature in (estimate.sum, estimate.count) for place, _ in self.lattice.weights(feature)]
        return next((share.noise for place in used if (share := self.share_of(place)) is not None), None)

    def choose_bounds(self, execute: Callable[[ExactPlan], ExactTable]) -> tuple[Interval, ...]:
        """Choose the bounds that are still to be chosen, from exact integers measured before those of the release are
        known."""
        bounds: tuple[Interval, ...] = ()
        for each in self.measurements if self.told.plans else ():  # most have none
            for plan in each.told.plans:
                table = execute(plan)
                exact = Exact(table, np.zeros((0, table.groups), dtype=np.int64), plan.keys)
                bounds += measured([each], exact).bounds
        return bounds

    def privatise(self, table: ExactTable) -> ReleasedValues:
        """Measure the exact integers, and decode the results."""
        noisy = [place for place, each in enumerate(self.coordinates) if each.noisy]
        return self._decoded(self.asked.measured(self.measurements, table, noisy))

    def _decoded(self, found: MeasuredValues) -> ReleasedValues:
        """Convert measured values to the answer's units."""
        steps = found.steps
        units = np.array([each.unit for each in self.coordinates], dtype=np.float64)
        values = self.features_of(steps.astype(np.float64) * units[:, None])
        # In doubles, an estimate from many others is no more exact than the largest of them.
        if found.precisely is not None and are_large(self.lattice, values, LARGEST_OF_LEVELS):
            steps = found.precisely()
            worths = np.array([each.worth for each in self.coordinates], dtype=object)
            values = self.features_of((steps * worths[:, None]).astype(np.float64))
        integers = integers_of(self.lattice, steps, values)
        return ReleasedValues(found.keys, np.concatenate([values, *found.chosen]), integers=integers)

    def features_of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Combine coordinates, in the answer's units, into the features of the estimates."""
        features = self.lattice.features
        if features is None:
            return values
        sums = [sum((values[place] * factor for place, factor in each), np.zeros(values.shape[1])) for each in features]
        return np.stack(sums)

    def coordinate_steps(self, parts: NDArray[Any]) -> NDArray[Any]:
        """Return the exact coordinates, (coordinates, groups), from the exact parts; integers in lattice steps."""
        return self.asked.steps(parts)

    @cached_property
    def asked(self) -> PaidRequest:
        """The integers to be measured, for the check of payment."""
        return PaidRequest(self.exact, self.analysis, tuple(each.terms for each in self.coordinates))

    def assert_paid(self) -> None:
        """Raise InternalError if the privacy loss exceeds the cost (`core.payment`)."""
        self.once(_assert_paid)

    def chance_shown(self, units: int) -> float | None:
        """Return the probability that a group of `units` privacy units is shown; None if all groups are."""
        return self.selection.chance(units)


def _assert_paid(release: Release) -> None:
    cost, allowed = release.cost, release.allowed
    pair = allowed.rho is None and not cost.within(PrivacyLoss(allowed.pure, allowed.delta))
    if pair or cost.delta > allowed.delta or (allowed.rho is not None and cost.rho > allowed.rho):
        raise InternalError("a release would cost more than it may")
    assert_paid(release.asked, release.measurements, cost, [bounded.cost for bounded in release.bounds])


def _source(share: Share, place: int) -> int:
    """Return the source of a coordinate's noise: the coordinate itself, or its class or vector as a negative number."""
    if isinstance(share.noise, ClassLaplace):
        return -1 - share.noise.classes[share.places.index(place)]
    return place if isinstance(share.noise, INDEPENDENT) else -1
