"""Measurements: the one way out of exact integers.

A release is a tuple of measurements: a search for bounds, noise on coordinates, a selection of groups, a choice on a
grid, a hierarchy of levels. Each says how far a unit moves what it is of (`reach`) and what it costs, and `run`s over
the exact integers and what those before it have found: by adaptive composition a release costs their sum (`core.cost`
has what sums promise). Nothing is found but by them, save what neighbours have in common: a coordinate that has noise
to come is 0 until it has been measured. Nobody asks which kind one is: whoever explains, tries or repeats a release
goes through all, and each says of itself what there is to say (`MeasurementNotes`).
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
    """What measurements are of: an executor's table, private, its coordinates, (coordinates, groups), in steps, and the
    plan's keys."""

    table: ExactTable
    steps: NDArray[Any]
    keys: tuple[GroupKey, ...]


@dataclass(frozen=True, repr=False)
class MeasuredValues:
    """What measurements have found so far: a vector for each key, coordinates of shape (coordinates, groups), in steps,
    and chosen values. `shown`: the numbers of its groups in the exact table. Groups are for nobody to see until all
    measurements have run."""

    keys: tuple[Vector, ...]
    steps: NDArray[Any]
    shown: NDArray[np.int64]
    chosen: tuple[NDArray[np.float64], ...] = ()
    precisely: Callable[[], NDArray[Any]] | None = None
    """The coordinates as fractions, where they are estimates in doubles."""
    bounds: tuple[Interval, ...] = ()
    """Those that were chosen, of each column that was searched."""

    @classmethod
    def common(cls, exact: Exact, noisy: Collection[int]) -> MeasuredValues:
        """What neighbours have in common: all coordinates but the `noisy` ones, which are 0."""
        steps = exact.steps.copy()
        steps[list(noisy)] = 0
        return cls(exact.table.keys, steps, np.arange(exact.table.groups))

    def only(self, shown: NDArray[np.int64]) -> MeasuredValues:
        """Some of its groups, not in the order in which rows came."""
        shown = shown[order_of((), [key.at(shown) for key in self.keys], len(shown))]
        keys = tuple(_without_trace(key.at(shown)) for key in self.keys)
        return replace(self, keys=keys, steps=self.steps[:, shown], shown=self.shown[shown])


@dataclass(frozen=True, slots=True)
class Laws:
    """What a trial has in the place of laws: of noise on coordinates, of what chooses groups, and what values."""

    noise: Callable[[Any, tuple[int, ...]], Any]
    groups: Any
    chooser: Chooser


class MeasurementDescription(NamedTuple):
    """What there is to tell of a measurement: its noise on coordinates, of all rows alike; how it chooses groups; its
    levels, which have rows and noise of their own; how it chooses values, and bounds; and the integers of its own that
    it is of, before the release's are known: of these it runs by itself."""

    shares: tuple[Share, ...] = ()
    selections: tuple[ShownGroups, ...] = ()
    levels: tuple[Any, ...] = ()
    draws: tuple[Any, ...] = ()
    searches: tuple[Any, ...] = ()
    plans: tuple[ExactPlan, ...] = ()


class MeasurementNotes(Protocol):
    """What a measurement says of itself; by default nothing."""

    @property
    def told(self) -> MeasurementDescription:
        return MeasurementDescription()

    @property
    def drawn(self) -> tuple[Any, ...]:
        """Its vectors of noise and its draws among exact counts, to be seen to be paid for (`core.payment`)."""
        return ()

    @property
    def asked(self) -> tuple[str, object]:
        """What tells questions apart that it is for, and the word for it in their keys."""
        return "", ()

    def with_laws(self, _laws: Laws) -> Any:
        """The same by other laws, for trials over made-up rows alone: what it finds can be exact."""
        return self

    def within(self, _most: int) -> Any:
        """The same where keys have no more than so many values each, for trials as well."""
        return self


class Measurement(MeasurementNotes, Protocol):
    """One way out of the exact integers."""

    @property
    def reach(self) -> object:
        """How far one unit moves what it is of, in the terms of its law."""

    @property
    def cost(self) -> Cost:
        """What the ledger is charged."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What it is told; nothing of what costs nothing."""

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        """What is found with it, fresh at each call."""


def measured(measurements: Iterable[Measurement], exact: Exact, noisy: Collection[int] = ()) -> MeasuredValues:
    """What is found by measurements, one after the other, the `noisy` coordinates by nothing else. The one way out."""
    found = MeasuredValues.common(exact, noisy)
    for measurement in measurements:
        found = measurement.run(exact, found)
    return found


def costs_of(measurements: Iterable[Measurement]) -> tuple[Cost, tuple[Event, ...]]:
    """What measurements cost together, and what the ledger is told."""
    each = tuple(measurements)
    return sum((one.cost for one in each), FREE), tuple(event for one in each for event in one.events)


@dataclass(frozen=True)
class Share(MeasurementNotes):
    """Noise on some coordinates: its law, what it protects, and what the ledger is told. `epsilon`: its part of what
    the query may spend."""

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
    """Which groups are shown: here all, which are public, at no cost. `hides`: groups of few units are not; `least`:
    how many units the groups have at least that a law chooses by itself; `half`: with how many a group is shown about
    every other time; `conditions`: which coordinate of a group has to reach how many steps, where noise decides;
    `below`: with what chance one that is a step short of it is shown too."""

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
        """The chance that a group of so many privacy units is shown; None when all groups are."""
        return None

    def run(self, _exact: Exact, found: MeasuredValues) -> MeasuredValues:
        return found


@dataclass(frozen=True)
class GroupsByThreshold(ShownGroups):
    """The groups whose noisy count, the coordinate `place`, reaches a height, and those that are a step short of it by
    a coin each, which shows with the chance `below`; `noise` is that of the count, in which a unit makes `one_row`
    steps at least and `most_of_a_unit` at most. `groups`: how many can come or go with a unit.

    These are shown with a chance of `delta`, all together (`core.selection.threshold`); all else is work on what has
    paid for the noise, and coins that know no rows. Raises ValueError for a height or coins that show too often for
    it."""

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
    """The groups that a law chooses by their exact number of privacy units, which is the `part`."""

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
        sizes = range(1, self.law.certain + 1)  # the chance never falls: halved, as there may be millions
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
    """The shown cells alone: that some other row had NULL there must not show in how they are held."""
    if key.valid is None or key.valid.all():
        return Vector(key.values)
    return key
