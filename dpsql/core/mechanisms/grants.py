"""Privacy grants of measurements, and the calibration for them: by epsilon, by epsilon and delta, or by rho.

A query is paid by an epsilon or by a rho. Gaussian noise needs a delta next to an epsilon, and a choice costs less as
rho than as epsilon. Only `Grant` decides what that means for one measurement: the calibration of its mechanism, the
charge, and the ledger's event. Each charge is the `loss` of the calibrated mechanism for the sensitivity that it
covers, and `_charged` checks that it is no more than granted.
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
    """A calibrated mechanism, its cost, and the ledger's event."""

    law: LawT_co
    cost: Cost
    event: Event


@dataclass(frozen=True, slots=True)
class Grant:
    """The privacy budget of one measurement. `epsilon`: of pure noise; `delta`: for Gaussian noise next to epsilon;
    `rho`: if the query is paid by rho, None if by epsilon. `normal`: the kind of Gaussian noise: rounded for a pair,
    costed by its exact tails; discrete for a rho, and where only rhos are added up."""

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    normal: type[DiscreteGaussian | RoundedGaussian] = DiscreteGaussian
    bounded_range: bool = False
    """True if all choices are by the exponential mechanism."""

    def part(self, share: Fraction) -> Grant:
        """Return a share of the grant. Epsilons add up, and so do rhos: a share of rho has the epsilon of the share's
        square root (Bun, Steinke 2016, proposition 3.3)."""
        if self.rho is None:
            return replace(self, epsilon=self.epsilon * share)
        return replace(self, epsilon=self.epsilon * root_below(share), rho=self.rho * share)

    @property
    def concentrated(self) -> Grant:
        """The grant to be divided by rho, for Gaussian noise that has one epsilon for all of its parts."""
        return self if self.rho is not None else replace(self, rho=self.normal.rho_within(self._pair))

    @property
    def _pair(self) -> PrivacyLoss:
        return PrivacyLoss(self.epsilon, self.delta)

    def pure(self, law: type[Laplace | Staircase], reach: Reach) -> CalibratedNoise[Noise]:
        """Return pure noise. Raises InvalidPrivacyParameter."""
        noise = law.calibrate(reach, self.epsilon)
        return CalibratedNoise(drawable(noise), _charged(noise.loss(reach), Cost.of(self.epsilon)), Pure(self.epsilon))

    def gaussian(self, reach: Reach) -> CalibratedNoise[Noise]:
        """Return Gaussian noise. Raises InvalidPrivacyParameter."""
        if self.rho is None:
            noise: DiscreteGaussian | RoundedGaussian = self.normal.calibrate(reach, self._pair)
            if noise.scale < _NARROW:  # rounding may add more variance than exact tails save
                noise = min(noise, DiscreteGaussian.calibrate(reach, self._pair), key=lambda each: each.spread)
            cost = noise.loss(reach)
            return CalibratedNoise(drawable(noise), cost, Concentrated(cost.rho))
        noise = self.normal.of_rho(reach, self.rho)
        cost = _charged(noise.loss(reach), Cost(None, rho=self.rho))
        return CalibratedNoise(drawable(noise), cost, Concentrated(cost.rho))

    def counts(self, reach: Reach) -> CalibratedNoise[Noise]:
        """Return the smallest noise of one count for the grant's kind of payment. Raises InvalidPrivacyParameter."""
        return self.pure(CubeLaplace, reach) if self.rho is None else self.gaussian(reach)

    def choice(self, draws: Fraction = Fraction(1), *, bounded_range: bool = False) -> CalibratedNoise[ChoiceSequence]:
        """Return consecutive choices (`ChoiceSequence`). Paid by epsilon they are permute-and-flip, which is never
        worse than the exponential mechanism at the same epsilon. Paid by rho they are the exponential mechanism, whose
        rho is a quarter of what its epsilon implies. With `bounded_range` they are the exponential mechanism either
        way, with its smaller rho: for candidates too many to be enumerated."""
        if self.rho is None:
            name = "exponential" if bounded_range or self.bounded_range else "permute_and_flip"
            law = ChoiceSequence(name, self.epsilon, draws, pure=True)
            return CalibratedNoise(law, _charged(law.loss, Cost.of(self.epsilon)), Pure(self.epsilon))
        law = ChoiceSequence("exponential", root_below(8 * draws * self.rho), draws, self.rho)
        return CalibratedNoise(law, _charged(law.loss, Cost(None, rho=self.rho)), Concentrated(self.rho))


def grant(allowance: Allowance, epsilon: Fraction | None = None, delta: Fraction = Fraction(0)) -> Grant:
    """Return the grant of a measurement from an allowance: `epsilon` of its pure epsilon, by default all."""
    concentrated = allowance.concentrated or allowance.rho is not None
    law: type[DiscreteGaussian | RoundedGaussian] = DiscreteGaussian if concentrated else RoundedGaussian
    if epsilon is None:
        return Grant(allowance.pure, delta, allowance.rho, law, allowance.bounded_range)
    rho = None if allowance.rho is None else epsilon**2 / 2
    return Grant(epsilon, delta, rho, law, allowance.bounded_range)


def _charged(loss: Cost, granted: Cost) -> Cost:
    """Return the loss of a mechanism. Raises ValueError if it is more than granted."""
    if loss.join(granted) != granted:
        raise ValueError("the noise is too small for the guarantee")
    return loss
