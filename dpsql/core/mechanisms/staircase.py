"""Noise for one integer whose change comes all at once: level stairs, as wide as a unit reaches, in place of a slope.

Laplace noise falls within a unit's reach as well, where nothing asks it to. The staircase law puts as much of itself as
epsilon allows on the innermost stair, which is narrow where epsilon is large: at epsilon 10 its standard deviation is a
fifth of Laplace's.

Privacy. P(x) is proportional to exp(-g(|x|) epsilon) with g(m) = floor((m + width - inner) / width). g does not fall,
and g(m + width) = g(m) + 1. For integers v, v' with |v - v'| <= width and any outcome z, ||z - v| - |z - v'|| <= width,
so g of these two differ by 1 at most: the ratio is at most e^epsilon, pure.

It holds for ONE integer. Of several that move together, even by `width` in sum, each may go down a stair: a law of
rounded steps has no triangle inequality. So it is for vectors of one coordinate that a unit moves in one group at most
(`Reach.groups`), and refuses others.

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
        """Of the least variance, but for the rounding of `inner`. Raises ValueError for what is not one integer."""
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
    """Whether all of a unit's change is in one coordinate of one group, and no wider than stairs are drawn."""
    return (reach.dimension, reach.groups) == (1, 1) and 1 <= reach.cube_sensitivity <= LARGEST_NUMERATOR


def _check(reach: Reach) -> None:
    if not suits(reach):
        raise ValueError("stairs are for one coordinate that a unit moves in one group")


def _inner(epsilon: float) -> float:
    """What part of a stair the innermost one is, on either side (theorem 7). Its rounding moves the variance alone."""
    b = math.exp(-epsilon)
    return ((b * (1 + b) / 2) ** (1 / 3) - b) / (1 - b) if b < 1 - 1e-6 else 0.5


def _powers(n: int) -> tuple[int, int, int]:
    """The sums of 1, u and u^2 for 0 <= u < n."""
    return n, n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6
