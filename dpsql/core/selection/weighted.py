"""Groups chosen by weights: a unit in k groups adds 1 / sqrt(k) to each, and noisy sums of weights are held against a
height.

Counts of units are to be private for a unit in as many groups as may count, though most are in fewer. By weights all
groups of a unit share one L2 norm of 1, however many they are, and Gaussian noise is for that alone.

Privacy. A unit's weights are those of its own rows: nobody else's change with it. In steps they are floor(scale /
sqrt(k)) in each of its k groups, so their squares come to at most scale^2. Under unbounded neighbours common groups
move by these or some of them; under bounded ones by the difference of two such vectors, none negative, whose square is
at most the sum of both: `sides` scale^2. What is shown of common groups is made of their noisy sums. A unit's own
groups (which no other unit has), m of its k, have the weight w(k) alone: one of them is shown with a chance of at most
k times that of one, P(w(k) + X >= height). As this is at most delta / sides for every k, own groups of both tables are
shown with at most delta, and `selection.threshold` proves what follows: the noise's own loss, and delta.

Source: Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin, "Differentially Private Set Union" (ICML 2020): weighted
Gaussian noise, without the policies that go through units one after the other; a sum of chances for their power.
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
"""Steps of a weight of 1."""
MOST_GROUPS = 256
"""For a unit in more groups each k would take too long to look at."""


@dataclass(frozen=True)
class GroupsByWeights(ShownGroups):
    """The groups whose noisy sum of weights, the `part`, reaches a height. `each`: the most groups of a unit; `sides`:
    how many tables' worth of them can change, 2 under bounded neighbours; `delta`: for a unit's own groups alone.
    Raises ValueError for a height at which these show too often."""

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
        """The least height but for a thousandth of the noise, for (each, sides); raised by so many units as `least` is
        above 1. Raises InvalidPrivacyParameter."""
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
        """How many groups can come or go with a unit."""
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
        """Of so many units in as many groups as may count; in fewer each weighs more."""
        return show_probability(self.noise, units * weight_of(self.scale, self.each), self.height)

    def run(self, exact: Exact, found: MeasuredValues) -> MeasuredValues:
        noisy: Any = exact.table.parts[self.part] + self.noise.draw(exact.table.groups)[0]
        return found.only(np.flatnonzero(noisy >= self.height))


def _reach(each: int, sides: int, scale: int) -> Reach:
    """In L1, k weights of scale / sqrt(k) come to scale sqrt(k)."""
    return Reach(sides * (math.isqrt(each * scale * scale) + 1), Fraction(sides * scale * scale), 1)


def _shown(noise: Noise, height: int, scale: int, k: int) -> Fraction:
    """An upper bound of the chance that any of a unit's k groups is shown for its weight alone."""
    above = height - weight_of(scale, k)
    return k * Fraction(noise.upper_tail(above)) if above > 0 else Fraction(k)
