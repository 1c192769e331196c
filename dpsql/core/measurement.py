"""Measurements: the one way out of exact integers, and what each of them is charged.

A release is a tuple of measurements: noise on coordinates, a selection of groups, a choice on a grid, a hierarchy of
levels; before them there may be a search for bounds. Each says how far a unit moves what it is of (`reach`) and what it
costs, and `run`s over the exact integers and what those before it have found: by adaptive composition a release costs
their sum (`core.cost` has what sums promise). Nothing is found but by them, save what neighbours have in common: a
coordinate that has noise to come is 0 until it has been measured.

A query is paid by an epsilon, or by a rho; Gaussian noise needs a delta beside an epsilon, and a choice costs less as
rho than as epsilon. `Grant` decides what that means for one measurement, here and nowhere else: what its law is
calibrated to, what the ledger is charged and what it is told. Each charge is what was granted, and `_charged` sees that
the law, once it is made, is worth no more (its `loss` for the reach that it protects).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsql.core.conversion import rho_for
from dpsql.core.cost import FREE, Cost
from dpsql.core.events import Approx, Concentrated, Event, Pure
from dpsql.core.exact import ExactTable
from dpsql.core.exponential import Choosing
from dpsql.core.loss import Allowance, PrivacyLoss, root_below
from dpsql.core.mechanisms import CubeLaplace, DiscreteGaussian, Noise, Reach, SplitLaplace, drawable
from dpsql.core.selection import show_probability
from dpsql.core.truncated_geometric import TruncatedGeometric
from dpsql.plan.expressions import Vector
from dpsql.plan.order import order_of
from dpsql.plan.query import GroupKey
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval

LawT_co = TypeVar("LawT_co", covariant=True)


@dataclass(frozen=True, repr=False)
class Exact:
    """What measurements are of: an executor's table, private, its coordinates, (coordinates, groups), in steps, and the
    plan's keys."""

    table: ExactTable
    steps: NDArray[Any]
    keys: tuple[GroupKey, ...]


@dataclass(frozen=True, repr=False)
class Found:
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
    def common(cls, exact: Exact, noisy: Collection[int]) -> Found:
        """What neighbours have in common: all coordinates but the `noisy` ones, which are 0."""
        steps = exact.steps.copy()
        steps[list(noisy)] = 0
        return cls(exact.table.keys, steps, np.arange(exact.table.groups))

    def only(self, shown: NDArray[np.int64]) -> Found:
        """Some of its groups, not in the order in which rows came."""
        shown = shown[order_of((), [key.at(shown) for key in self.keys], len(shown))]
        keys = tuple(_without_trace(key.at(shown)) for key in self.keys)
        return replace(self, keys=keys, steps=self.steps[:, shown], shown=self.shown[shown])


class Measurement(Protocol):
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

    def run(self, exact: Exact, found: Found) -> Found:
        """What is found with it, fresh at each call."""


def measured(measurements: Iterable[Measurement], exact: Exact, noisy: Collection[int] = ()) -> Found:
    """What is found by measurements, one after the other, the `noisy` coordinates by nothing else. The one way out."""
    found = Found.common(exact, noisy)
    for measurement in measurements:
        found = measurement.run(exact, found)
    return found


def costs_of(measurements: Iterable[Measurement]) -> tuple[Cost, tuple[Event, ...]]:
    """What measurements cost together, and what the ledger is told."""
    each = tuple(measurements)
    return sum((one.cost for one in each), FREE), tuple(event for one in each for event in one.events)


@dataclass(frozen=True)
class Share:
    """Noise on some coordinates: its law, what it protects, and what it costs. `epsilon`: its part of what the query
    may spend."""

    reach: Reach
    noise: Noise
    places: tuple[int, ...]
    epsilon: Fraction
    cost: Cost
    event: Event

    @property
    def events(self) -> tuple[Event, ...]:
        return (self.event,)

    def run(self, exact: Exact, found: Found) -> Found:
        drawn = self.noise.draw(exact.table.groups)
        steps = found.steps.astype(object if drawn.dtype == object else found.steps.dtype)
        steps[list(self.places)] = exact.steps[list(self.places)] + drawn
        return replace(found, steps=steps)


class ShownGroups:
    """Which groups are shown: here all, which are public, at no cost."""

    hides = False
    word = "PUBLIC_GROUPS"

    @property
    def reach(self) -> object:
        return 0

    @property
    def threshold(self) -> int | None:
        """What a group's noisy count has to reach, in steps, where that decides."""
        return None

    @property
    def cost(self) -> Cost:
        return FREE

    @property
    def events(self) -> tuple[Event, ...]:
        return ()

    def chance(self, _units: int) -> float | None:
        """The chance that a group of so many privacy units is shown; None when all groups are."""
        return None

    def run(self, _exact: Exact, found: Found) -> Found:
        return found


@dataclass(frozen=True)
class GroupsByThreshold(ShownGroups):
    """The groups whose noisy count, the coordinate `place`, reaches a height; `noise` is that of the count, in which a
    unit makes `one_row` steps at least and `most_of_a_unit` at most. `groups`: how many can come or go with a unit.

    These are shown with a chance of `delta`, all together (`core.selection`); all else is work on what has paid for the
    noise. Raises ValueError for a height that is too low for it."""

    height: int
    place: int
    one_row: int
    most_of_a_unit: int
    groups: int
    noise: Noise
    delta: Fraction
    hides = True

    def __post_init__(self) -> None:
        share, above = self.delta / self.groups, self.noise.upper_tail(self.height - self.most_of_a_unit)
        if above > Decimal(share.numerator) / Decimal(share.denominator):
            raise ValueError("the threshold is too low for its delta")

    @property
    def reach(self) -> tuple[int, int]:
        return self.groups, self.most_of_a_unit

    @property
    def word(self) -> str:  # type: ignore[override]
        return "GAUSSIAN_THRESHOLD" if isinstance(self.noise, DiscreteGaussian) else "LAPLACE_THRESHOLD"

    @property
    def threshold(self) -> int:
        return self.height

    @property
    def cost(self) -> Cost:
        return Cost.of(Fraction(0), self.delta)

    @property
    def events(self) -> tuple[Event, ...]:
        return (Approx(Fraction(0), self.delta),)

    def chance(self, units: int) -> float:
        return show_probability(self.noise, units * self.one_row, self.height)

    def run(self, _exact: Exact, found: Found) -> Found:
        return found.only(np.flatnonzero(found.steps[self.place] >= self.height))


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
    def cost(self) -> Cost:
        return Cost.of(self.law.loss.epsilon, self.law.loss.delta)

    @property
    def events(self) -> tuple[Event, ...]:
        return (Approx(self.law.loss.epsilon, self.law.loss.delta),)

    def chance(self, units: int) -> float:
        return float(self.law.probability(units))

    def run(self, exact: Exact, found: Found) -> Found:
        counts = np.asarray(np.minimum(exact.table.parts[self.part], 2**62), dtype=np.int64)  # within 64 bits
        return found.only(np.flatnonzero(self.law.draw(counts)))


ALL_SHOWN = ShownGroups()


@dataclass(frozen=True, slots=True)
class Paid(Generic[LawT_co]):
    """A law that is calibrated, what it costs, and what the ledger is told."""

    law: LawT_co
    cost: Cost
    event: Event


@dataclass(frozen=True, slots=True)
class Grant:
    """What one measurement may spend. `epsilon`: of pure noise; `delta`: what Gaussian noise takes beside it; `rho`: of
    a query that is paid by rho, None of one that is paid by epsilon."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None

    def part(self, share: Fraction) -> Grant:
        """A share of it. Epsilons add up, and so do rhos: the epsilon of a share of rho is that of its square root
        (Bun, Steinke 2016, proposition 3.3)."""
        if self.rho is None:
            return replace(self, epsilon=self.epsilon * share)
        return replace(self, epsilon=self.epsilon * root_below(share), rho=self.rho * share)

    @property
    def concentrated(self) -> Grant:
        """The same to be shared out by rho, as Gaussian noise is that has one epsilon for all of its parts."""
        return self if self.rho is not None else replace(self, rho=rho_for(self.epsilon, self.delta))

    def pure(self, law: type[CubeLaplace | SplitLaplace], reach: Reach) -> Paid[Noise]:
        """Pure noise. Raises InvalidPrivacyParameter."""
        noise = law.calibrate(reach, self.epsilon)
        cost = _charged(noise.loss(reach), Cost.of(self.epsilon))
        return Paid(drawable(noise), cost, Pure(self.epsilon))

    def gaussian(self, reach: Reach) -> Paid[Noise]:
        """Gaussian noise. Raises InvalidPrivacyParameter."""
        if self.rho is None:
            noise = DiscreteGaussian.calibrate(reach, PrivacyLoss(self.epsilon, self.delta))
            cost = noise.loss(reach)
            return Paid(drawable(noise), cost, Concentrated(cost.rho))
        noise = DiscreteGaussian.of_rho(reach, self.rho)
        cost = _charged(noise.loss(reach), Cost(None, rho=self.rho))
        return Paid(drawable(noise), cost, Concentrated(cost.rho))

    def counts(self, reach: Reach) -> Paid[Noise]:
        """The noise of one count that is the least in the coin that pays for it. Raises InvalidPrivacyParameter."""
        return self.pure(CubeLaplace, reach) if self.rho is None else self.gaussian(reach)

    def choice(self, draws: int = 1) -> Paid[Choosing]:
        """So many choices one after the other, at an equal part each. Paid by epsilon they are permute-and-flip, which
        is never worse than the exponential mechanism at the same epsilon; paid by rho the exponential mechanism, whose
        rho is a quarter of what its epsilon alone would imply."""
        if self.rho is None:
            law, granted = Choosing("permute_and_flip", self.epsilon, draws), Cost.of(self.epsilon)
            return Paid(law, _charged(law.loss, granted), Pure(self.epsilon))
        law = Choosing("exponential", root_below(8 * draws * self.rho), draws)
        return Paid(law, _charged(law.loss, Cost(None, rho=self.rho)), Concentrated(self.rho))


def grant(allowance: Allowance, epsilon: Fraction | None = None, delta: Fraction = Fraction(0)) -> Grant:
    """What a measurement may spend of an allowance: as much as `epsilon` is of its pure epsilon, by default all."""
    if epsilon is None:
        return Grant(allowance.pure, delta, allowance.rho)
    return Grant(epsilon, delta, None if allowance.rho is None else epsilon**2 / 2)


def _charged(loss: Cost, granted: Cost) -> Cost:
    """What is granted, which laws that are rounded to the safe side may leave a little of. Raises ValueError where a
    law is worth more."""
    if loss.join(granted) != granted:
        raise ValueError("the noise is too small for the guarantee")
    return granted


def _without_trace(key: Vector) -> Vector:
    """The shown cells alone: that some other row had NULL there must not show in how they are held."""
    if key.valid is None or key.valid.all():
        return Vector(key.values)
    return key
