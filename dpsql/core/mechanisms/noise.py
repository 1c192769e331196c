"""Noise for a vector of integers: distributions on the integer lattice, with their calibration, draws and tails.

A release is a table of exact integers, `dimension` coordinates for each group. The caller scales coordinates so that
one privacy unit changes each of them by at most the same whole number of steps (`Reach.cube_sensitivity`).
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
    """The largest change that one privacy unit can cause in any coordinate of any of `cells` public groups; and the
    kind of each coordinate: a separate one in each group ("each"), one that is the same in all ("all"), or one of two
    groups, where the other group's changes by the opposite amount ("either")."""

    largest: int
    cells: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reach:
    """The sensitivity of the scaled vector to one privacy unit, in lattice steps.

    cube_sensitivity: the largest sum over groups of the largest coordinate change of a group (the norm of the cube
    distribution), and also the largest L1 change of any one coordinate; l2_squared: an upper bound of the squared L2
    change of the whole vector.
    """

    cube_sensitivity: int
    l2_squared: Fraction
    dimension: int
    l1: int | None = None
    """The L1 change of the whole vector, if known to be less than `dimension` times that of a coordinate."""
    groups: int | None = field(default=None, compare=False)
    """The maximum number of groups in which a unit changes the vector, where known."""
    classes: tuple[int, ...] = ()
    """The class of each coordinate, where the cube norm is summed over classes (`core.mechanisms.coordinate_classes`);
    otherwise all are in one class."""
    across: GroupVectorSensitivity | None = None
    """The sensitivity of all groups together, for one noise vector (`core.mechanisms.group_vectors`); then the
    sensitivity of each group is unknown."""


NO_REACH = Reach(0, Fraction(0), 0)
"""The sensitivity of values that are the same for all neighbours."""


class Noise(Protocol):
    """A calibrated noise distribution: its name, draws and tails. Distances are lattice steps."""

    @property
    def name(self) -> str:
        """The mechanism's name in explanations."""

    @property
    def scale(self) -> float:
        """The scale of a Laplace-like distribution, the standard deviation of a Gaussian; in steps."""

    @property
    def spread(self) -> float:
        """The variance of one coordinate, in squared steps."""

    def __hash__(self) -> int:
        """Hash equal distributions equally."""

    def draw(self, cells: int) -> IntArray:
        """Return fresh noise, shape (dimension, cells)."""

    def upper_tail(self, t: int) -> Decimal:
        """Return an upper bound of P(X >= t) for one coordinate and t >= 1; exact except for rounding up."""

    def loss(self, reach: Reach) -> Cost:
        """Return the cost of the noise for a vector of this sensitivity: exactly the `epsilon` of its calibration,
        though scales are rounded to the safe side; more if it was calibrated to a smaller sensitivity."""


def drawable(noise: Noise) -> Noise:
    """Return the noise if its scale is within the exact samplers' range. Raises InvalidPrivacyParameter."""
    if noise.scale > LARGEST_NUMERATOR:
        raise InvalidPrivacyParameter(
            "the noise would be larger than exact noise goes: epsilon is too small for how much one person adds.",
            hint="Give it more epsilon, or set lower limits (max_rows).",
        )
    return noise


def round_up(scale: Fraction) -> Fraction:
    """Return the scale or slightly more, with a numerator that fits the samplers' integers."""
    if scale.numerator <= LARGEST_NUMERATOR:
        return scale
    bits = max(0, 60 - max(0, math.ceil(scale).bit_length()))
    return Fraction(math.ceil(scale * 2**bits), 2**bits)


@dataclass(frozen=True, slots=True)
class CubeLaplace:
    """The discrete K-norm distribution on the cube: P(x) proportional to exp(-max_i |x_i| / scale). Dimension 1 is the
    discrete Laplace distribution.

    Privacy: for vectors v, v' with max_i |v_i - v'_i| <= steps in the one group that a unit reaches, the ratio of the
    probabilities of any x is exp((max|x - v'| - max|x - v|) / scale) <= exp(steps / scale) by the triangle inequality.
    Over several groups the exponents add up; `cube_sensitivity` is their sum. So epsilon = steps / scale, pure.
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
        return (self.dimension + 1) * (self.dimension + 2) / 3 * self.scale**2  # of the continuous distribution

    def draw(self, cells: int) -> IntArray:
        return samplers.cube_laplace(self.exact_scale, self.dimension, cells)

    def upper_tail(self, t: int) -> Decimal:
        return tails.cube_upper_tail(self.exact_scale, self.dimension, t)

    def loss(self, reach: Reach) -> Cost:
        return Cost.of(max(self.epsilon, Fraction(reach.cube_sensitivity) / self.exact_scale))


@dataclass(frozen=True, slots=True)
class SplitLaplace:
    """Independent discrete Laplace noise for each coordinate, the budget split evenly among them.

    Privacy: Laplace mechanism on the L1 norm (Dwork, McSherry, Nissim, Smith 2006). Each of the d coordinates changes
    by at most `steps` summed over groups, so the L1 change is at most d steps, or `l1` if that is known to be less.
    Epsilon is the L1 change divided by the scale.
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
    """The same noise for a vector of shares, where each coordinate has the full epsilon.

    Privacy: as above. One unit changes all shares together by at most `Reach.l1` in L1 distance, whatever their number.
    """

    @property
    def name(self) -> str:
        return "discrete_laplace_of_shares"


def _whole_l1(reach: Reach) -> int:
    return reach.cube_sensitivity * reach.dimension if reach.l1 is None else reach.l1


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Independent Gaussian noise for each coordinate: the base of two ways to make it integer.

    Privacy: rho = L2^2 / (2 variance) zCDP, and (epsilon, delta) by `rho_within` of the distribution. `guarantee` is
    the (epsilon, delta) pair of the calibration, None if it was calibrated to a rho.
    """

    variance: Fraction
    dimension: int
    guarantee: PrivacyLoss | None = None
    rho: Fraction | None = None

    @classmethod
    def calibrate(cls, reach: Reach, guarantee: PrivacyLoss) -> Self:
        """Return the least noise that is (epsilon, delta)-DP."""
        return replace(cls.of_rho(reach, cls.rho_within(guarantee)), guarantee=guarantee)

    @classmethod
    def of_rho(cls, reach: Reach, rho: Fraction) -> Self:
        """Return the least noise that is rho-zCDP."""
        variance = Fraction(math.ceil(reach.l2_squared / (2 * rho) * 2**20), 2**20)
        return cls(variance, reach.dimension, None, rho)

    @staticmethod
    def rho_within(guarantee: PrivacyLoss) -> Fraction:
        """Return the largest rho for which the noise is (epsilon, delta)-DP."""
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
    (epsilon, delta) by the tight conversion. The exact (epsilon, delta) of a vector depends on more than the length of
    the difference. For a given rho this noise is the smallest: at small variances rounding adds to the other kind.
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

    Privacy: for integers v, v + round(Y) = round(v + Y) is post-processing of v + Y, so it is as private as the
    continuous Gaussian mechanism, for vectors too: (epsilon, delta) by the exact curve at mu = L2 / sigma
    (`gaussian_curve`), and mu^2/2-zCDP (Bun, Steinke 2016, proposition 1.6). Several such vectors of one table are
    parts of a single vector, whose mu^2 and rho are the sums of theirs.
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
        return Decimal(tails.gaussian_tail((t - 0.5) / self.scale)) * (1 + Decimal("1e-9"))  # exact except for floats


INDEPENDENT = (SplitLaplace, GaussianNoise)
"""The noise classes whose coordinates are independent of one another."""


def _laplace_variance(scale: float) -> float:
    """Return 2 a / (1 - a)^2 for a = exp(-1 / scale)."""
    return 0.5 * (1 / math.sinh(0.5 / scale)) ** 2 if scale > 1e-3 else 0.0


def _gaussian_variance(variance: float) -> float:
    """Return the discrete Gaussian's variance: `variance` unless very small (Canonne, Kamath, Steinke 2020, part 3)."""
    if variance > 2:
        return variance
    weights = [math.exp(-x * x / (2 * variance)) for x in range(1, 20)]
    squares = math.fsum(x * x * weight for x, weight in enumerate(weights, start=1))
    return 2 * squares / (1 + 2 * math.fsum(weights))


def _rounded_variance(sigma: float) -> float:
    """Return sigma^2 + 1/12, exact to exp(-2 (pi sigma)^2); for a small sigma the sum of (2 k - 1) P(|X| >= k)."""
    if sigma > 2:
        return sigma**2 + 1 / 12
    return math.fsum(2 * (2 * k - 1) * tails.gaussian_tail((k - 0.5) / sigma) for k in range(1, 20))
