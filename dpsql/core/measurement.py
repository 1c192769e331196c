"""Measurements: the only way out of the exact integers.

A release is a tuple of measurements: a search for bounds, noise on coordinates, partition selection, a choice on a
grid, a hierarchy of levels. Each states its sensitivity (`reach`) and its cost. Each `run`s over the exact integers and
the results of the measurements before it: by adaptive composition a release costs their sum (`core.cost` states what
sums guarantee). Only measurements produce results, except for data that all neighbours have in common: a coordinate
that will get noise is 0 until it has been measured. Callers that explain, dry-run or repeat a release do not test for
the kind of a measurement: each describes itself (`MeasurementNotes`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.core.cost import FREE, Cost
from dpsql.core.events import ApproximateStep, Event
from dpsql.core.exact import ExactPlan, ExactTable
from dpsql.core.mechanisms.exponential import Chooser
from dpsql.core.mechanisms.noise import GaussianNoise, Noise, Reach
from dpsql.core.selection.threshold import coins, show_probability, shown_at_most
from dpsql.core.selection.truncated_geometric import TruncatedGeometric
from dpsql.plan.expressions import Vector
from dpsql.plan.order import order_of
from dpsql.plan.query import GroupKey
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval


@dataclass(frozen=True, repr=False)
class Exact:
    """The private input of measurements: an executor's table, its coordinates (coordinates, groups) in steps, and the
    plan's keys."""

    table: ExactTable
    steps: NDArray[Any]
    keys: tuple[GroupKey, ...]


@dataclass(frozen=True, repr=False)
class MeasuredValues:
    """The results of measurements so far: a vector for each key, coordinates of shape (coordinates, groups) in steps,
    and chosen values. `shown`: the indices of its groups in the exact table. The groups are private until all
    measurements have run."""

    keys: tuple[Vector, ...]
    steps: NDArray[Any]
    shown: NDArray[np.int64]
    chosen: tuple[NDArray[np.float64], ...] = ()
    precisely: Callable[[], NDArray[Any]] | None = None
    """Returns the coordinates as fractions, where `steps` holds estimates in doubles."""
    bounds: tuple[Interval, ...] = ()
    """The chosen bounds of each column that was searched."""

    @classmethod
    def common(cls, exact: Exact, noisy: Collection[int]) -> MeasuredValues:
        """Return what neighbours have in common: all coordinates, with the `noisy` ones set to 0."""
        steps = exact.steps.copy()
        steps[list(noisy)] = 0
        return cls(exact.table.keys, steps, np.arange(exact.table.groups))

    def only(self, shown: NDArray[np.int64]) -> MeasuredValues:
        """Return the given groups only, in an order independent of the order of rows."""
        shown = shown[order_of((), [key.at(shown) for key in self.keys], len(shown))]
        keys = tuple(_without_trace(key.at(shown)) for key in self.keys)
        return replace(self, keys=keys, steps=self.steps[:, shown], shown=self.shown[shown])


@dataclass(frozen=True, slots=True)
class Laws:
    """The mechanisms of a dry run: for noise on coordinates, partition selection, and choices of values."""

    noise: Callable[[Any, tuple[int, ...]], Any]
    groups: Any
    chooser: Chooser


class MeasurementDescription(NamedTuple):
    """The parts of a measurement that explanations read: noise on coordinates over all rows; partition selections;
    levels, which have rows and noise of their own; choices of values; searches for bounds; and the plans of integers
    that it measures separately, before those of the release are known."""

    shares: tuple[Share, ...] = ()
    selections: tuple[ShownGroups, ...] = ()
    levels: tuple[Any, ...] = ()
    draws: tuple[Any, ...] = ()
    searches: tuple[Any, ...] = ()
    plans: tuple[ExactPlan, ...] = ()


class MeasurementNotes(Protocol):
    """The self-description of a measurement; empty by default."""

    @property
    def told(self) -> MeasurementDescription:
        return MeasurementDescription()

    @property
    def drawn(self) -> tuple[Any, ...]:
        """The noise vectors and the choices among exact counts, for the check of charges (`core.payment`)."""
        return ()

    @property
    def asked(self) -> tuple[str, object]:
        """The name and the value with which the measurement distinguishes queries in cache keys."""
        return "", ()

    def with_laws(self, _laws: Laws) -> Any:
        """Return the measurement with other mechanisms, only for dry runs on synthetic rows: results can be exact."""
        return self

    def within(self, _most: int) -> Any:
        """Return the same measurement for keys with at most `_most` values each, also for dry runs."""
        return self


class Measurement(MeasurementNotes, Protocol):
    """One way out of the exact integers."""

    @property
    def reach(self) -> object:
        """The sensitivity of the measured integers to one unit, in the terms of the mechanism."""

    @property
    def cost(self) -> Cost:
        """The cost that the ledger is charged."""

    @property
    def events(self) -> tuple[Event, ...]:
        """The events that the ledger records; empty if the measurement is free."""

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        """Return the results with this measurement added, drawn afresh at each call."""


def measured(measurements: Iterable[Measurement], exact: Exact, noisy: Collection[int] = ()) -> MeasuredValues:
    """Return the results of the measurements, run in order; only they set the `noisy` coordinates. The only way out."""
    found = MeasuredValues.common(exact, noisy)
    for measurement in measurements:
        found = measurement.run(exact, found)
    return found


def costs_of(measurements: Iterable[Measurement]) -> tuple[Cost, tuple[Event, ...]]:
    """Return the total cost of the measurements, and the events that the ledger records."""
    each = tuple(measurements)
    return sum((one.cost for one in each), FREE), tuple(event for one in each for event in one.events)


@dataclass(frozen=True)
class Share(MeasurementNotes):
    """Noise on some coordinates: its distribution, the sensitivity it covers, and the ledger's event. `epsilon`: its
    share of the epsilon that the query may spend."""

    reach: Reach
    noise: Noise
    places: tuple[int, ...]
    epsilon: Fraction
    event: Event

    @property
    def cost(self) -> Cost:
        return self.noise.loss(self.reach)

    @property
    def events(self) -> tuple[Event, ...]:
        return (self.event,)

    @property
    def told(self) -> MeasurementDescription:
        return MeasurementDescription(shares=(self,))

    @property
    def asked(self) -> tuple[str, object]:
        return "noise", (self.places, self.noise, self.cost)

    def with_laws(self, laws: Laws) -> Share:
        return replace(self, noise=laws.noise(self.noise, self.places))

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        drawn = self.noise.draw(exact.table.groups)
        steps = found.steps.astype(object if drawn.dtype == object else found.steps.dtype)
        steps[list(self.places)] = exact.steps[list(self.places)] + drawn
        return replace(found, steps=steps)


class ShownGroups(MeasurementNotes):
    """Partition selection; this base class shows all groups, which are public, at no cost. `hides`: groups of few units
    are hidden; `least`: the minimum number of units of a group that the mechanism itself selects; `half`: the number of
    units at which a group is shown about half of the time; `conditions`: pairs (coordinate, steps that it must reach)
    where noise decides; `below`: the probability that a group one step short is shown too."""

    hides = False
    word = "PUBLIC_GROUPS"
    least: int | None = None
    half = 1
    conditions: tuple[tuple[int, int], ...] = ()
    below: Fraction = Fraction(0)

    @property
    def reach(self) -> object:
        return 0

    @property
    def told(self) -> MeasurementDescription:
        return MeasurementDescription(selections=(self,))

    @property
    def cost(self) -> Cost:
        return FREE

    @property
    def events(self) -> tuple[Event, ...]:
        return ()

    def chance(self, _units: int) -> float | None:
        """Return the probability that a group of so many privacy units is shown; None if all groups are shown."""
        return None

    def run(self, _exact: Exact, found: MeasuredValues) -> MeasuredValues:
        return found


@dataclass(frozen=True)
class GroupsByThreshold(ShownGroups):
    """Selects the groups whose noisy count, the coordinate `place`, reaches `height`. A group that is one step short is
    shown with probability `below`. `noise` is that of the count, to which a unit adds at least `one_row` and at most
    `most_of_a_unit` steps. `groups`: how many groups can appear or disappear with a unit.

    The probability that any of these is shown is at most `delta` (`core.selection.threshold`). The rest is
    post-processing of the noisy count, with coins that do not depend on rows. Raises ValueError if the height and the
    coins show groups too often for `delta`."""

    height: int
    place: int
    one_row: int
    most_of_a_unit: int
    groups: int
    noise: Noise
    delta: Fraction
    below: Fraction = Fraction(0)
    hides = True

    def __post_init__(self) -> None:
        shown = shown_at_most(self.noise, self.most_of_a_unit, self.height, self.below)
        if not 0 <= self.below < 1 or shown > self.delta / self.groups:
            raise ValueError("the threshold is too low for its delta")

    @property
    def reach(self) -> tuple[int, int]:
        return self.groups, self.most_of_a_unit

    @property
    def word(self) -> str:  # type: ignore[override]
        return "GAUSSIAN_THRESHOLD" if isinstance(self.noise, GaussianNoise) else "LAPLACE_THRESHOLD"

    @property
    def conditions(self) -> tuple[tuple[int, int], ...]:  # type: ignore[override]
        return ((self.place, self.height),)

    @property
    def half(self) -> int:  # type: ignore[override]
        return math.ceil((self.height - (2 * self.below >= 1)) / self.one_row)

    @property
    def asked(self) -> tuple[str, object]:
        return "threshold", (self.height, self.place, *([self.below] if self.below else []))

    @property
    def cost(self) -> Cost:
        return Cost.of(Fraction(0), self.delta)

    @property
    def events(self) -> tuple[Event, ...]:
        return (ApproximateStep(Fraction(0), self.delta),)

    def with_laws(self, _laws: Laws) -> GroupsByThreshold:
        return replace(self, below=Fraction(0))

    def chance(self, units: int) -> float:
        return show_probability(self.noise, units * self.one_row, self.height, self.below)

    def run(self, _exact: Exact, found: MeasuredValues) -> MeasuredValues:
        short = self.height - found.steps[self.place]
        shown = short <= 0
        if self.below:
            shown |= (short == 1) & coins(self.below, len(short))
        return found.only(np.flatnonzero(shown))


@dataclass(frozen=True)
class GroupsByChance(ShownGroups):
    """Selects groups by their exact number of privacy units, the part `part`."""

    law: TruncatedGeometric
    part: int
    hides = True
    word = "TRUNCATED_GEOMETRIC"

    @property
    def reach(self) -> int:
        return self.law.groups

    @property
    def least(self) -> int:  # type: ignore[override]
        return self.law.least

    @property
    def half(self) -> int:  # type: ignore[override]
        sizes = range(1, self.law.certain + 1)  # the chance never decreases: bisected, as there may be millions
        return sizes[bisect_left(sizes, 0.5, key=self.chance)]

    @property
    def asked(self) -> tuple[str, object]:
        return "chance", (self.law, self.part)

    def with_laws(self, laws: Laws) -> GroupsByChance:
        return replace(self, law=laws.groups)

    @property
    def cost(self) -> Cost:
        return Cost.of(self.law.loss.epsilon, self.law.loss.delta)

    @property
    def events(self) -> tuple[Event, ...]:
        return (ApproximateStep(self.law.loss.epsilon, self.law.loss.delta),)

    def chance(self, units: int) -> float:
        return float(self.law.probability(units))

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        counts = np.asarray(np.minimum(exact.table.parts[self.part], 2**62), dtype=np.int64)  # within 64 bits
        return found.only(np.flatnonzero(self.law.draw(counts)))


ALL_SHOWN = ShownGroups()


def _without_trace(key: Vector) -> Vector:
    """Drop the validity mask if all shown cells are valid: it would reveal that a hidden row has NULL."""
    if key.valid is None or key.valid.all():
        return Vector(key.values)
    return key
