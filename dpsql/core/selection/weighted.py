"""Partition selection by weights: a unit in k groups adds 1 / sqrt(k) to each, and noisy sums of weights are compared
with a threshold.

A count of units must be private for a unit in the maximum number of groups, though most units are in fewer. With
weights, all groups of a unit together have an L2 norm of 1, for any number of groups, and Gaussian noise is calibrated
to that.

Privacy. A unit's weights depend only on its own rows, so no other unit's weights change with them. In steps they are
floor(scale / sqrt(k)) in each of its k groups, so their squares sum to at most scale^2. Under unbounded neighbours
common groups change by all or some of these weights; under bounded ones by the difference of two such vectors, none
negative, whose square is at most the sum of both: `sides` scale^2. The output for common groups depends on their noisy
sums. A unit's own groups (which no other unit has), m of its k, have only the weight w(k): one of them is shown with a
probability of at most k times that of a single group, P(w(k) + X >= height). As this is at most delta / sides for every
k, own groups of both tables are shown with at most delta, and `selection.threshold` proves the rest: the noise's own
loss, and delta.

Source: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin, "Differentially Private Set Union" (ICML 2020): weighted
Gaussian noise, without the policies that process units in sequence; with a sum of probabilities instead of their power.
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from dpsql.core.cost import Cost
from dpsql.core.events import ApproximateStep, Event
from dpsql.core.exact import weight_of
from dpsql.core.measurement import Exact, GroupsByChance, Laws, MeasuredValues, ShownGroups
from dpsql.core.mechanisms.grants import Grant
from dpsql.core.mechanisms.noise import Noise, Reach
from dpsql.core.selection.threshold import show_probability
from dpsql.schema.frozen import dataclass

SCALE = 2**20
"""The number of steps of a weight of 1."""
MOST_GROUPS = 256
"""For a unit in more groups, checking each k would take too long."""


@dataclass(frozen=True)
class GroupsByWeights(ShownGroups):
    """Selects the groups whose noisy sum of weights, the part `part`, reaches a height. `each`: the maximum number of
    groups of a unit; `sides`: how many tables' worth of them can change, 2 under bounded neighbours; `delta`: for a
    unit's own groups only. Raises ValueError if the height shows these too often."""

    part: int
    each: int
    sides: int
    scale: int
    noise: Noise
    height: int
    delta: Fraction
    event: Event
    hides = True
    word = "WEIGHTED_GAUSSIAN"

    def __post_init__(self) -> None:
        own = self.delta / self.sides
        if not all(_shown(self.noise, self.height, self.scale, k) <= own for k in range(1, self.each + 1)):
            raise ValueError("the height is too low for its delta")

    @classmethod
    def calibrate(
        cls, part: int, groups: tuple[int, int], granted: Grant, delta: Fraction, least: int = 1
    ) -> GroupsByWeights:
        """Return the least height, to within a thousandth of the noise, for `groups`: (each, sides); raised by `least`
        - 1 units. Raises InvalidPrivacyParameter."""
        each, sides = groups
        paid = granted.gaussian(_reach(each, sides, SCALE))
        noise, step = paid.law, max(1, math.floor(paid.law.scale / 1024))
        chances = {k: float(delta / (sides * k)) for k in range(1, each + 1)}
        far = max(weight_of(SCALE, k) - noise.scale * NormalDist().inv_cdf(chance) for k, chance in chances.items())
        height = math.ceil(far)
        while any(_shown(noise, height, SCALE, k) > delta / sides for k in chances):
            height += step
        return cls(part, each, sides, SCALE, noise, height + (least - 1) * SCALE, delta, paid.event)

    @property
    def groups(self) -> int:
        """The number of groups that can appear or disappear with a unit."""
        return self.each * self.sides

    @property
    def reach(self) -> Reach:
        return _reach(self.each, self.sides, self.scale)

    @property
    def cost(self) -> Cost:
        return self.noise.loss(self.reach) + Cost.of(Fraction(0), self.delta)

    @property
    def events(self) -> tuple[Event, ...]:
        return (self.event, ApproximateStep(Fraction(0), self.delta))

    @property
    def half(self) -> int:  # type: ignore[override]
        return -(-self.height // weight_of(self.scale, self.each))

    @property
    def asked(self) -> tuple[str, object]:
        return "weights", (self.height, self.part, self.noise, self.cost)

    def with_laws(self, laws: Laws) -> GroupsByChance:
        return GroupsByChance(laws.groups, self.part)

    def chance(self, units: int) -> float:
        """Return the probability for units in the maximum number of groups; in fewer groups each weighs more."""
        return show_probability(self.noise, units * weight_of(self.scale, self.each), self.height)

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        noisy: Any = exact.table.parts[self.part] + self.noise.draw(exact.table.groups)[0]
        return found.only(np.flatnonzero(noisy >= self.height))


def _reach(each: int, sides: int, scale: int) -> Reach:
    """Return the sensitivity. In L1, k weights of scale / sqrt(k) sum to scale sqrt(k)."""
    return Reach(sides * (math.isqrt(each * scale * scale) + 1), Fraction(sides * scale * scale), 1)


def _shown(noise: Noise, height: int, scale: int, k: int) -> Fraction:
    """Return an upper bound of the probability that any of a unit's k groups is shown by its weight only."""
    above = height - weight_of(scale, k)
    return k * Fraction(noise.upper_tail(above)) if above > 0 else Fraction(k)
