"""What a measurement may spend, and the law that it buys: epsilon, epsilon and delta, or rho, decided in one place.

A query is paid by an epsilon, or by a rho; Gaussian noise needs a delta beside an epsilon, and a choice costs less as
rho than as epsilon. `Grant` decides what that means for one measurement, here and nowhere else: what its law is
calibrated to, what the ledger is charged and what it is told. Each charge is what the law, once it is made, is worth
for the reach that it protects (its `loss`), and `_charged` sees that this is no more than was granted.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Generic, TypeVar

from dpsql.core.cost import Cost
from dpsql.core.events import Concentrated, Event, Pure
from dpsql.core.loss import Allowance, PrivacyLoss, root_below
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.exponential import ChoiceSequence
from dpsql.core.mechanisms.group_vectors import GroupVectorLaplace
from dpsql.core.mechanisms.noise import (
    CubeLaplace,
    DiscreteGaussian,
    Noise,
    Reach,
    RoundedGaussian,
    SplitLaplace,
    drawable,
)
from dpsql.core.mechanisms.staircase import Staircase
from dpsql.schema.frozen import dataclass

LawT_co = TypeVar("LawT_co", covariant=True)
_NARROW = 2


Laplace = CubeLaplace | SplitLaplace | ClassLaplace | GroupVectorLaplace


@dataclass(frozen=True, slots=True)
class CalibratedNoise(Generic[LawT_co]):
    """A law that is calibrated, what it costs, and what the ledger is told."""

    law: LawT_co
    cost: Cost
    event: Event


@dataclass(frozen=True, slots=True)
class Grant:
    """What one measurement may spend. `epsilon`: of pure noise; `delta`: what Gaussian noise takes beside it; `rho`: of
    a query that is paid by rho, None of one that is paid by epsilon. `normal`: which Gaussian noise it buys: for a pair
    rounded noise, which is worth its exact tails; for a rho, and where rhos alone are added up, the discrete law."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    normal: type[DiscreteGaussian | RoundedGaussian] = DiscreteGaussian
    bounded_range: bool = False
    """All choices are by the exponential mechanism."""

    def part(self, share: Fraction) -> Grant:
        """A share of it. Epsilons add up, and so do rhos: the epsilon of a share of rho is that of its square root
        (Bun, Steinke 2016, proposition 3.3)."""
        if self.rho is None:
            return replace(self, epsilon=self.epsilon * share)
        return replace(self, epsilon=self.epsilon * root_below(share), rho=self.rho * share)

    @property
    def concentrated(self) -> Grant:
        """The same to be shared out by rho, as Gaussian noise is that has one epsilon for all of its parts."""
        return self if self.rho is not None else replace(self, rho=self.normal.rho_within(self._pair))

    @property
    def _pair(self) -> PrivacyLoss:
        return PrivacyLoss(self.epsilon, self.delta)

    def pure(self, law: type[Laplace | Staircase], reach: Reach) -> CalibratedNoise[Noise]:
        """Pure noise. Raises InvalidPrivacyParameter."""
        noise = law.calibrate(reach, self.epsilon)
        return CalibratedNoise(drawable(noise), _charged(noise.loss(reach), Cost.of(self.epsilon)), Pure(self.epsilon))

    def gaussian(self, reach: Reach) -> CalibratedNoise[Noise]:
        """Gaussian noise. Raises InvalidPrivacyParameter."""
        if self.rho is None:
            noise: DiscreteGaussian | RoundedGaussian = self.normal.calibrate(reach, self._pair)
            if noise.scale < _NARROW:  # rounding may add more than exact tails take away
                noise = min(noise, DiscreteGaussian.calibrate(reach, self._pair), key=lambda each: each.spread)
            cost = noise.loss(reach)
            return CalibratedNoise(drawable(noise), cost, Concentrated(cost.rho))
        noise = self.normal.of_rho(reach, self.rho)
        cost = _charged(noise.loss(reach), Cost(None, rho=self.rho))
        return CalibratedNoise(drawable(noise), cost, Concentrated(cost.rho))

    def counts(self, reach: Reach) -> CalibratedNoise[Noise]:
        """The noise of one count that is the least in the coin that pays for it. Raises InvalidPrivacyParameter."""
        return self.pure(CubeLaplace, reach) if self.rho is None else self.gaussian(reach)

    def choice(self, draws: Fraction = Fraction(1), *, bounded_range: bool = False) -> CalibratedNoise[ChoiceSequence]:
        """So many choices one after the other (`ChoiceSequence`). Paid by epsilon they are permute-and-flip, which
        is never worse than the exponential mechanism at the same epsilon; paid by rho the exponential mechanism, whose
        rho is a quarter of what its epsilon alone would imply. With `bounded_range` they are that either way: among
        candidates that are too many to be looked at one by one. They have the smaller rho as well then."""
        if self.rho is None:
            name = "exponential" if bounded_range or self.bounded_range else "permute_and_flip"
            law = ChoiceSequence(name, self.epsilon, draws, pure=True)
            return CalibratedNoise(law, _charged(law.loss, Cost.of(self.epsilon)), Pure(self.epsilon))
        law = ChoiceSequence("exponential", root_below(8 * draws * self.rho), draws, self.rho)
        return CalibratedNoise(law, _charged(law.loss, Cost(None, rho=self.rho)), Concentrated(self.rho))


def grant(allowance: Allowance, epsilon: Fraction | None = None, delta: Fraction = Fraction(0)) -> Grant:
    """What a measurement may spend of an allowance: as much as `epsilon` is of its pure epsilon, by default all."""
    concentrated = allowance.concentrated or allowance.rho is not None
    law: type[DiscreteGaussian | RoundedGaussian] = DiscreteGaussian if concentrated else RoundedGaussian
    if epsilon is None:
        return Grant(allowance.pure, delta, allowance.rho, law, allowance.bounded_range)
    rho = None if allowance.rho is None else epsilon**2 / 2
    return Grant(epsilon, delta, rho, law, allowance.bounded_range)


def _charged(loss: Cost, granted: Cost) -> Cost:
    """What a law is worth. Raises ValueError where that is more than is granted."""
    if loss.join(granted) != granted:
        raise ValueError("the noise is too small for the guarantee")
    return loss
