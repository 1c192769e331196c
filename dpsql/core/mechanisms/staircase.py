"""Staircase noise for one integer: level stairs, as wide as the sensitivity to a unit, instead of a slope.

Laplace noise also decreases within a unit's sensitivity, which privacy does not require. The staircase distribution
puts as much mass as epsilon allows on the innermost stair, which is narrow if epsilon is large: at epsilon 10 its
standard deviation is a fifth of Laplace's.

Privacy. P(x) is proportional to exp(-g(|x|) epsilon) with g(m) = floor((m + width - inner) / width). g does not
decrease, and g(m + width) = g(m) + 1. For integers v, v' with |v - v'| <= width and any outcome z, ||z - v| - |z - v'||
<= width, so the values of g differ by at most 1: the ratio is at most e^epsilon, pure.

This holds for ONE integer. If several change together, even by `width` in sum, each may go down a stair: rounded steps
have no triangle inequality. So the noise is only for vectors of one coordinate that a unit changes in at most one group
(`Reach.groups`), and rejects others.

Source: Geng, Kairouz, Oh, Viswanath, "The Staircase Mechanism in Differential Privacy" (IEEE J. Sel. Topics Signal
Process. 2015); Geng, Viswanath, "The Optimal Noise-Adding Mechanism in Differential Privacy" (IEEE Trans. Inform.
Theory 2016), theorem 7 for `inner`.
"""

from __future__ import annotations

import math
from dataclasses import field
from decimal import Decimal
from fractions import Fraction

from dpsql.core.cost import Cost
from dpsql.core.mechanisms import samplers, tails
from dpsql.core.mechanisms.noise import LARGEST_NUMERATOR, IntArray, Reach, round_up
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Staircase:
    """Stairs of `width` steps, the innermost of `inner` on either side of 0, each e^(1 / exact_scale) times less likely
    than the one before."""

    exact_scale: Fraction
    width: int
    inner: int
    epsilon: Fraction = field(default=Fraction(0), compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.inner <= self.width <= LARGEST_NUMERATOR:
            raise ValueError("stairs need 1 <= inner <= width <= 2^61")

    @classmethod
    def calibrate(cls, reach: Reach, epsilon: Fraction) -> Staircase:
        """Return noise of the least variance, up to the rounding of `inner`. Raises ValueError for several integers."""
        _check(reach)
        width = reach.cube_sensitivity
        inner = math.floor(_inner(float(epsilon)) * width)
        made = (cls(round_up(1 / epsilon), width, max(1, min(width, each)), epsilon) for each in (inner, inner + 1))
        return min(made, key=lambda noise: noise.spread)

    @property
    def name(self) -> str:
        return "staircase"

    @property
    def scale(self) -> float:
        return float(self.exact_scale * self.width)

    @property
    def spread(self) -> float:
        # Of the stairs k width + u, 0 <= u < width, those below `inner` have the weight b^k, the others b^(k + 1).
        b, a = math.exp(-1 / self.exact_scale), -math.expm1(-1 / self.exact_scale)
        both = zip(_powers(self.inner), _powers(self.width), strict=True)
        none, one, two = (part + b * (whole - part) for part, whole in both)
        far = self.width**2 * none * b * (1 + b) / a**2 + 2 * self.width * one * b / a + two
        return 2 * far / (2 * none - a)

    def draw(self, cells: int) -> IntArray:
        return samplers.staircase(self.exact_scale, self.width, self.inner, cells)[None]

    def upper_tail(self, t: int) -> Decimal:
        return tails.staircase_upper_tail(self.exact_scale, self.width, self.inner, t)

    def loss(self, reach: Reach) -> Cost:
        _check(reach)
        stairs = -(-reach.cube_sensitivity // self.width)
        return Cost.of(max(self.epsilon, stairs / self.exact_scale))


def suits(reach: Reach) -> bool:
    """Return whether a unit changes only one coordinate of one group, by no more than the widest stairs."""
    return (reach.dimension, reach.groups) == (1, 1) and 1 <= reach.cube_sensitivity <= LARGEST_NUMERATOR


def _check(reach: Reach) -> None:
    if not suits(reach):
        raise ValueError("stairs are for one coordinate that a unit moves in one group")


def _inner(epsilon: float) -> float:
    """Return the width of the innermost stair on either side, as a part of a stair (theorem 7). Its rounding affects
    only the variance."""
    b = math.exp(-epsilon)
    return ((b * (1 + b) / 2) ** (1 / 3) - b) / (1 - b) if b < 1 - 1e-6 else 0.5


def _powers(n: int) -> tuple[int, int, int]:
    """Return the sums of 1, u and u^2 for 0 <= u < n."""
    return n, n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6
