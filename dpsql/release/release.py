"""calibrate: a plan, its analysis and a privacy loss -> a Release, everything about an answer but the data.

A release lowers the aggregations to integer *parts* (what the executor sums) and to *coordinates* (integer combinations
of parts that noise is added to), so that one privacy unit moves every coordinate by at most the same number of lattice
steps. COUNT, SUM and AVG of the same columns share their coordinates, and so one spend.
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
    """Noisy values, safe to show: a vector for each key, and the features in the answer's units, (n, groups)."""

    keys: tuple[Vector, ...]
    values: NDArray[np.float64]
    bounds: tuple[Interval, ...] = ()
    """Those that the query has chosen, of each column that it searched bounds for."""
    integers: Integers = field(default_factory=dict)
    """Whole numbers that are too large for `values`, by aggregation, one for each group."""

    @property
    def groups(self) -> int:
        return int(self.values.shape[1])

    def at(self, places: Any) -> ReleasedValues:
        """Those of some groups."""
        numbers = np.arange(self.groups)[places].tolist() if self.integers else ()
        integers = {of: tuple(each[number] for number in numbers) for of, each in self.integers.items()}
        return ReleasedValues(tuple(key.at(places) for key in self.keys), self.values[:, places], self.bounds, integers)


@dataclass(frozen=True)
class Release:
    """A calibrated query. `measurements` are made one after the other; `cost` is what the ledger is charged, `events`
    are the steps that it is made of, `allowed` what was asked for; `choice`: how Laplace and Gaussian noise compare,
    where both were possible."""

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
    """Bounds that were chosen."""
    goal: Goal | None = None
    """The error that was asked for, where epsilon was found for it."""
    meaningless: frozenset[int] = frozenset()
    """The aggregations, by place, that are NULL since no bounds were found for them (`found_bounds`)."""
    as_declared: Callable[[], Release] | None = field(default=None, compare=False, repr=False)
    """Plans the query for the case that its chosen bounds had been declared, so that nothing is spent on a search."""

    @cached_property
    def told(self) -> MeasurementDescription:
        """What its measurements say of themselves, one after the other."""
        each = zip(*[one.told for one in self.measurements], strict=True)
        return MeasurementDescription(*map(tuple, map(chain.from_iterable, each)))

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """Its noise vectors, none where nothing private is measured, the one that chooses groups first."""
        return self.told.shares

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The values that it chooses."""
        return self.told.draws

    @property
    def selection(self) -> ShownGroups:
        """Which groups it shows."""
        return next(iter(self.told.selections), ALL_SHOWN)

    @property
    def levels(self) -> Levels:
        """The levels of a query with grouping sets, which have noise of their own in place of `shares`; else none."""
        return next(iter(self.told.levels), NO_LEVELS)

    @property
    def searches(self) -> Searches:
        """How bounds are chosen that are still to be chosen; all else then stands for the widest ones."""
        return next(iter(self.told.searches), NO_SEARCHES)

    @property
    def provisional(self) -> bool:
        """Whether some bounds are still to be chosen."""
        return bool(self.searches.searches)

    @property
    def plans(self) -> tuple[ExactPlan, ...]:
        """What an executor is asked for, one after the other."""
        return (*self.told.plans, self.exact)

    @cached_property
    def sections(self) -> tuple[tuple[Release, slice], ...]:
        """The rows of the answer by the law of their noise: all of one, or those of each level. What the release is to
        them, and which they are."""
        each = [(self.at_level(keys), rows) for levels in self.told.levels for keys, rows in levels.rows()]
        return tuple(each) or ((self, slice(None)),)

    def settled(self, bounds: tuple[Interval, ...]) -> Release:
        """The release with bounds for its columns; itself where none are to be chosen. Costs what this one does."""
        if not self.told.searches:
            return self
        release: Release
        release, intervals = self.searches.settle(bounds)
        release = replace(release, query=replace(release.query, finish=self.query.finish))  # it may be another step's
        searches = zip(self.searches.searches, intervals, bounds, strict=True)
        chosen_bounds = tuple(ChosenBounds.of(*each) for each in searches)
        return replace(release, cost=self.cost, allowed=self.allowed, events=self.events, bounds=chosen_bounds)

    @cached_property
    def _derived(self) -> dict[Any, Any]:
        return {}

    def once(self, derive: Callable[[Release], Derived]) -> Derived:
        """What follows from the release alone, derived when it is first asked for. Nothing that a run has found: the
        same release is run again for the next question of its kind."""
        if derive not in self._derived:
            self._derived[derive] = derive(self)
        found: Derived = self._derived[derive]
        return found

    @cached_property
    def price(self) -> str:
        """The cost in words, in the coin that was asked for."""
        if self.allowed.rho is None or not self.cost.rho:
            return str(self.cost)
        return str(Allowance(None, self.cost.delta, self.cost.rho))

    @property
    def hides(self) -> bool:
        """Whether groups of few units are hidden."""
        return self.selection.hides

    @property
    def width(self) -> int:
        """How many values of a group are released."""
        return self.lattice.width + sum(len(draw.places) for draw in self.draws)

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
        return self.shares[0].reach if self.shares else NO_REACH

    def for_all(self, level: float, groups: int) -> float:
        """The level of each group's interval at which all hold at once with probability `level`. Noise of different
        groups is independent; that of levels, or of all groups at once, is not, and there the union bound serves."""
        together = self.levels.wanted or any(share.reach.across for share in self.shares)
        return 1 - (1 - level) / max(1, groups) if together else level ** (1 / max(1, groups))

    @property
    def log_error(self) -> float:
        """The mean over the aggregations (and levels) of the logarithm of their standard error."""
        return sum(log_error(self.lattice, one.shares) for one, _ in self.sections) / len(self.sections)

    @property
    def even_chance(self) -> float | None:
        """Of how many rows (or units) a group is shown as likely as not, by its threshold; None where there is none."""
        height = dict(self.selection.conditions).get(self.lattice.selection)
        return None if height is None else height / self.lattice.one_row

    def at_level(self, keys: tuple[int, ...]) -> Release:
        """The release as one level of it sees it, for its noise; it is not to be run."""
        if not self.levels.measured:
            return replace(self, measurements=())
        noise: Any = self.levels.noise_of(keys)
        places = self.levels.noisy
        share = Share(replace(NO_REACH, dimension=len(places)), noise, places, Fraction(0), Pure(Fraction(1)))
        return replace(self, measurements=(share,))

    @property
    def law(self) -> str:
        """The word for its noise."""
        laws = [*(share.noise for share in self.shares), *(level.noise for level in self.levels.measured)]
        return "gaussian" if any(isinstance(each, GaussianNoise) for each in laws) else "laplace"

    def share_of(self, place: int | None) -> Share | None:
        """The noise that a coordinate has; None for one that has none."""
        return next((share for share in self.shares if place in share.places), None)

    def sensitivity(self, place: int, level: tuple[int, int] | None = None) -> Sensitivity:
        """How far a unit moves a coordinate in all groups; or in those of a `level` (see `sensitivity_of`)."""
        share, terms = self.share_of(place), self.coordinates[place].terms
        if share is not None and share.reach.across is not None:
            return sensitivity_across(self.exact, terms, self.analysis)
        return sensitivity_of(self.lattice.parts, terms, self.analysis, level)

    def share_noise(self, some: Iterable[int], others: Iterable[int]) -> bool:
        """Whether the noise of two sets of coordinates is dependent: one vector's is that joins its coordinates, else
        that of a coordinate itself."""
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
        """The noise of an aggregation."""
        used = [place for feature in (estimate.sum, estimate.count) for place, _ in self.lattice.weights(feature)]
        return next((share.noise for place in used if (share := self.share_of(place)) is not None), None)

    def choose_bounds(self, execute: Callable[[ExactPlan], ExactTable]) -> tuple[Interval, ...]:
        """Choose the bounds that are still to be chosen: what is measured of integers of its own, before those of the
        release itself are known."""
        bounds: tuple[Interval, ...] = ()
        for each in self.measurements if self.told.plans else ():  # most have none
            for plan in each.told.plans:
                table = execute(plan)
                exact = Exact(table, np.zeros((0, table.groups), dtype=np.int64), plan.keys)
                bounds += measured([each], exact).bounds
        return bounds

    def privatise(self, table: ExactTable) -> ReleasedValues:
        """Measure the exact integers, and decode what is found."""
        noisy = [place for place, each in enumerate(self.coordinates) if each.noisy]
        return self._decoded(self.asked.measured(self.measurements, table, noisy))

    def _decoded(self, found: MeasuredValues) -> ReleasedValues:
        """What is found, in the answer's units."""
        steps = found.steps
        units = np.array([each.unit for each in self.coordinates], dtype=np.float64)
        values = self.features_of(steps.astype(np.float64) * units[:, None])
        # An estimate that is made of many others is no more exact in doubles than the largest of them.
        if found.precisely is not None and are_large(self.lattice, values, LARGEST_OF_LEVELS):
            steps = found.precisely()
            worths = np.array([each.worth for each in self.coordinates], dtype=object)
            values = self.features_of((steps * worths[:, None]).astype(np.float64))
        integers = integers_of(self.lattice, steps, values)
        return ReleasedValues(found.keys, np.concatenate([values, *found.chosen]), integers=integers)

    def features_of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates, in the answer's units, to what estimates speak of."""
        features = self.lattice.features
        if features is None:
            return values
        sums = [sum((values[place] * factor for place, factor in each), np.zeros(values.shape[1])) for each in features]
        return np.stack(sums)

    def coordinate_steps(self, parts: NDArray[Any]) -> NDArray[Any]:
        """The exact coordinates, (coordinates, groups), from the exact parts; integers in lattice steps."""
        return self.asked.steps(parts)

    @cached_property
    def asked(self) -> PaidRequest:
        """What is measured of which integers."""
        return PaidRequest(self.exact, self.analysis, tuple(each.terms for each in self.coordinates))

    def assert_paid(self) -> None:
        """Raises InternalError where it is worth more than it costs (`core.payment`)."""
        self.once(_assert_paid)

    def chance_shown(self, units: int) -> float | None:
        """The chance that a group of so many privacy units is shown; None when all groups are."""
        return self.selection.chance(units)


def _assert_paid(release: Release) -> None:
    cost, allowed = release.cost, release.allowed
    pair = allowed.rho is None and not cost.within(PrivacyLoss(allowed.pure, allowed.delta))
    if pair or cost.delta > allowed.delta or (allowed.rho is not None and cost.rho > allowed.rho):
        raise InternalError("a release would cost more than it may")
    assert_paid(release.asked, release.measurements, cost, [bounded.cost for bounded in release.bounds])


def _source(share: Share, place: int) -> int:
    """What the noise of a coordinate depends on: itself, or its class or vector, below 0."""
    if isinstance(share.noise, ClassLaplace):
        return -1 - share.noise.classes[share.places.index(place)]
    return place if isinstance(share.noise, INDEPENDENT) else -1
