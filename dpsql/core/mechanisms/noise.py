"""Noise for a vector of integers: laws on the integer lattice, each calibrated, drawn and measured here.

A release is a table of exact integers, `dimension` coordinates for each group. The caller scales coordinates so that
one privacy unit moves each of them by at most the same whole number of steps (`Reach.cube_sensitivity`).
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, Self

from numpy.typing import NDArray

from dpsql.core.conversion import rho_for
from dpsql.core.cost import Cost
from dpsql.core.loss import PrivacyLoss
from dpsql.core.mechanisms import samplers, tails
from dpsql.core.mechanisms.gaussian_curve import gaussian_rho
from dpsql.core.mechanisms.rounded_gaussian import rounded_gaussian
from dpsql.errors import InvalidPrivacyParameter
from dpsql.schema.frozen import dataclass

IntArray = NDArray[Any]
LARGEST_NUMERATOR = 2**61


@dataclass(frozen=True, slots=True)
class GroupVectorSensitivity:
    """How far one privacy unit can move any one coordinate in any one of so many public groups (`cells`), and what each
    coordinate is to all groups: one of its own in each ("each"), one that is the same in all ("all"), or one of two
    groups, of which the other's moves just the other way ("either")."""

    largest: int
    cells: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """How far one privacy unit can move the scaled vector, in lattice steps.

    cube_sensitivity: the largest sum over groups of the largest coordinate change of a group (the norm of the cube
    law), and also the largest L1 change of any one coordinate; l2_squared: an upper bound of the squared L2 change of
    the whole vector.
    """

    cube_sensitivity: int
    l2_squared: Fraction
    dimension: int
    l1: int | None = None
    """The L1 change of the whole vector, where it is known to be less than `dimension` times that of a coordinate."""
    groups: int | None = field(default=None, compare=False)
    """In how many groups a unit moves it at most, where that is known."""
    classes: tuple[int, ...] = ()
    """The class of each coordinate, where the cube norm is summed over classes (`core.mechanisms.coordinate_classes`);
    else all are one."""
    across: GroupVectorSensitivity | None = None
    """The sensitivity of all groups together, for one noise vector (`core.mechanisms.group_vectors`); the sensitivity
    of each group is then not known."""


NO_REACH = Reach(0, Fraction(0), 0)
"""Of what is the same for all neighbours."""


class Noise(Protocol):
    """A calibrated law: what it is called, its draws and its tails. Distances are lattice steps."""

    @property
    def name(self) -> str:
        """The mechanism's name in explanations."""

    @property
    def scale(self) -> float:
        """The scale of a Laplace-like law, the standard deviation of a Gaussian; in steps."""

    @property
    def spread(self) -> float:
        """The variance of one coordinate, in squared steps."""

    def __hash__(self) -> int:
        """Equal laws are one."""

    def draw(self, cells: int) -> IntArray:
        """Fresh noise, shape (dimension, cells)."""

    def upper_tail(self, t: int) -> Decimal:
        """An upper bound of P(X >= t) for one coordinate and t >= 1; exact but for rounding up."""

    def loss(self, reach: Reach) -> Cost:
        """What the noise costs for a vector of this reach: what the law was calibrated to (`epsilon`), to the last
        digit, though scales are rounded to the safe side; more where it was calibrated to less."""


def drawable(noise: Noise) -> Noise:
    """The law, if the exact samplers go so far. Raises InvalidPrivacyParameter."""
    if noise.scale > LARGEST_NUMERATOR:
        raise InvalidPrivacyParameter(
            "the noise would be larger than exact noise goes: epsilon is too small for how much one person adds.",
            hint="Give it more epsilon, or set lower limits (max_rows).",
        )
    return noise


def round_up(scale: Fraction) -> Fraction:
    """The scale or slightly more, with a numerator that fits the samplers' integers."""
    if scale.numerator <= LARGEST_NUMERATOR:
        return scale
    bits = max(0, 60 - max(0, math.ceil(scale).bit_length()))
    return Fraction(math.ceil(scale * 2**bits), 2**bits)


@dataclass(frozen=True, slots=True)
class CubeLaplace:
    """The discrete K-norm law on the cube: P(x) proportional to exp(-max_i |x_i| / scale). Dimension 1 is the discrete
    Laplace law.

    Privacy: for vectors v, v' with max_i |v_i - v'_i| <= steps in the one group that a unit reaches, the ratio of the
    probabilities of any x is exp((max|x - v'| - max|x - v|) / scale) <= exp(steps / scale) by the triangle inequality;
    over several groups the exponents add up, which is what `cube_sensitivity` sums. So epsilon = steps / scale, pure.
    Source: Hardt, Talwar, "On the Geometry of Differential Privacy", STOC 2010, theorem 4.2 with K the cube; for two
    coordinates it is the encoding of Kulesza, Suresh, Wang (ICML 2024), turned by 45 degrees.
    """

    exact_scale: Fraction
    dimension: int
    epsilon: Fraction = field(default=Fraction(0), compare=False)

    @classmethod
    def calibrate(cls, reach: Reach, epsilon: Fraction) -> CubeLaplace:
        return cls(round_up(Fraction(reach.cube_sensitivity) / epsilon), reach.dimension, epsilon)

    @property
    def name(self) -> str:
        return "discrete_laplace" if self.dimension == 1 else "discrete_k_norm"

    @property
    def scale(self) -> float:
        return float(self.exact_scale)

    @property
    def spread(self) -> float:
        if self.dimension == 1:
            return _laplace_variance(self.scale)
        return (self.dimension + 1) * (self.dimension + 2) / 3 * self.scale**2  # of the continuous law

    def draw(self, cells: int) -> IntArray:
        return samplers.cube_laplace(self.exact_scale, self.dimension, cells)

    def upper_tail(self, t: int) -> Decimal:
        return tails.cube_upper_tail(self.exact_scale, self.dimension, t)

    def loss(self, reach: Reach) -> Cost:
        return Cost.of(max(self.epsilon, Fraction(reach.cube_sensitivity) / self.exact_scale))


@dataclass(frozen=True, slots=True)
class SplitLaplace:
    """Independent discrete Laplace noise for each coordinate, the budget split evenly among them.

    Privacy: Laplace mechanism on the L1 norm (Dwork, McSherry, Nissim, Smith 2006); each of the d coordinates moves by
    at most `steps` in sum over groups, so the L1 change is at most d steps, or `l1` where that is known to be less, and
    epsilon is that by the scale.
    """

    exact_scale: Fraction
    dimension: int
    epsilon: Fraction = field(default=Fraction(0), compare=False)

    @classmethod
    def calibrate(cls, reach: Reach, epsilon: Fraction) -> SplitLaplace:
        return cls(round_up(Fraction(_whole_l1(reach)) / epsilon), reach.dimension, epsilon)

    @property
    def name(self) -> str:
        return "discrete_laplace"

    @property
    def scale(self) -> float:
        return float(self.exact_scale)

    @property
    def spread(self) -> float:
        return _laplace_variance(self.scale)

    def draw(self, cells: int) -> IntArray:
        flat = samplers.discrete_laplace(self.exact_scale, self.dimension * cells)
        return flat.reshape(self.dimension, cells)

    def upper_tail(self, t: int) -> Decimal:
        return tails.cube_upper_tail(self.exact_scale, 1, t)

    def loss(self, reach: Reach) -> Cost:
        return Cost.of(max(self.epsilon, Fraction(_whole_l1(reach)) / self.exact_scale))


@dataclass(frozen=True, slots=True)
class SharedLaplace(SplitLaplace):
    """The same law for a vector of shares, where each coordinate has the full epsilon.

    Privacy: as above. One unit moves all shares together by at most `Reach.l1` in L1 distance, however many there are.
    """

    @property
    def name(self) -> str:
        return "discrete_laplace_of_shares"


def _whole_l1(reach: Reach) -> int:
    return reach.cube_sensitivity * reach.dimension if reach.l1 is None else reach.l1


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Independent Gaussian noise for each coordinate, made integers in one of two ways: what both have in common.

    Privacy: rho = L2^2 / (2 variance) zCDP, and (epsilon, delta) by what `rho_within` says of its law. `guarantee` is
    the pair that it was calibrated to, None where it was calibrated to a rho.
    """

    variance: Fraction
    dimension: int
    guarantee: PrivacyLoss | None = None
    rho: Fraction | None = None

    @classmethod
    def calibrate(cls, reach: Reach, guarantee: PrivacyLoss) -> Self:
        """The least noise that is (epsilon, delta)-DP."""
        return replace(cls.of_rho(reach, cls.rho_within(guarantee)), guarantee=guarantee)

    @classmethod
    def of_rho(cls, reach: Reach, rho: Fraction) -> Self:
        """The least noise that is rho-zCDP."""
        variance = Fraction(math.ceil(reach.l2_squared / (2 * rho) * 2**20), 2**20)
        return cls(variance, reach.dimension, None, rho)

    @staticmethod
    def rho_within(guarantee: PrivacyLoss) -> Fraction:
        """The largest rho with which the law is (epsilon, delta)-DP."""
        raise NotImplementedError

    @property
    def scale(self) -> float:
        return math.sqrt(self.variance)

    def loss(self, reach: Reach) -> Cost:
        rho = reach.l2_squared / (2 * self.variance)
        pair = self.guarantee
        allowed = self.rho if pair is None else self.rho_within(pair)
        if allowed is None or rho > allowed:
            raise ValueError("the noise is too small for the guarantee")
        return Cost(None, rho=allowed) if pair is None else Cost(pair.epsilon, pair.delta, allowed)


@dataclass(frozen=True, slots=True)
class DiscreteGaussian(GaussianNoise):
    """P(x) proportional to exp(-x^2 / (2 variance)).

    Privacy: rho = L2^2 / (2 variance) zCDP (Canonne, Kamath, Steinke 2020, theorem 14, for vectors corollary 16), and
    by the tight conversion (epsilon, delta). Of a vector its own (epsilon, delta) depends on more than the length of
    the difference. For a rho it has the least noise: where variance is small, rounding adds to that of the other law.
    """

    @staticmethod
    def rho_within(guarantee: PrivacyLoss) -> Fraction:
        return rho_for(guarantee.epsilon, guarantee.delta)

    @property
    def name(self) -> str:
        return "discrete_gaussian"

    @property
    def spread(self) -> float:
        return _gaussian_variance(float(self.variance))

    def draw(self, cells: int) -> IntArray:
        flat = samplers.discrete_gaussian(self.variance, self.dimension * cells)
        return flat.reshape(self.dimension, cells)

    def upper_tail(self, t: int) -> Decimal:
        # CKS 2020, proposition 25: P(X >= t) <= P(N(0, variance) >= t - 1) for whole t.
        return Decimal(tails.gaussian_tail((t - 1) / self.scale)) * (1 + Decimal("1e-9"))


@dataclass(frozen=True, slots=True)
class RoundedGaussian(GaussianNoise):
    """round(Y) for a normal Y of this variance.

    Privacy: for integers v, v + round(Y) = round(v + Y) is made of v + Y alone, so that it is as private as the
    continuous Gaussian mechanism: of vectors too (epsilon, delta) by the exact curve at mu = L2 / sigma
    (`gaussian_curve`), and mu^2/2-zCDP (Bun, Steinke 2016, proposition 1.6). Several such vectors of one table are
    parts of one, whose mu^2 is the sum of theirs, and so is its rho.
    """

    @staticmethod
    def rho_within(guarantee: PrivacyLoss) -> Fraction:
        return gaussian_rho(guarantee.epsilon, guarantee.delta)

    @property
    def name(self) -> str:
        return "rounded_gaussian"

    @property
    def spread(self) -> float:
        return _rounded_variance(self.scale)

    def draw(self, cells: int) -> IntArray:
        flat = rounded_gaussian(self.variance, self.dimension * cells)
        return flat.reshape(self.dimension, cells)

    def upper_tail(self, t: int) -> Decimal:
        return Decimal(tails.gaussian_tail((t - 0.5) / self.scale)) * (1 + Decimal("1e-9"))  # exact but for its floats


INDEPENDENT = (SplitLaplace, GaussianNoise)
"""The laws whose coordinates are independent of one another."""


def _laplace_variance(scale: float) -> float:
    """2 a / (1 - a)^2 for a = exp(-1 / scale)."""
    return 0.5 * (1 / math.sinh(0.5 / scale)) ** 2 if scale > 1e-3 else 0.0


def _gaussian_variance(variance: float) -> float:
    """That of the discrete law: `variance` itself but for very small ones (Canonne, Kamath, Steinke 2020, part 3)."""
    if variance > 2:
        return variance
    weights = [math.exp(-x * x / (2 * variance)) for x in range(1, 20)]
    squares = math.fsum(x * x * weight for x, weight in enumerate(weights, start=1))
    return 2 * squares / (1 + 2 * math.fsum(weights))


def _rounded_variance(sigma: float) -> float:
    """sigma^2 + 1/12, but for exp(-2 (pi sigma)^2); of a small sigma the sum of (2 k - 1) P(|X| >= k)."""
    if sigma > 2:
        return sigma**2 + 1 / 12
    return math.fsum(2 * (2 * k - 1) * tails.gaussian_tail((k - 0.5) / sigma) for k in range(1, 20))
