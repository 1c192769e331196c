"""Tails of a combination of noisy coordinates that is compared with a bound, such as a centred sum.

The laws are the continuous ones (see `linear_combinations`). The noise is on a lattice, so a tail lies between those
one step of each coordinate further out and further in. They are symmetric and log-concave, as sums of coordinates of
log-concave laws (Prekopa 1973), as intervals within a window require (`truncated`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from operator import mul

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy.normal import log_upper_tail
from dpsql.accuracy.truncated import Tail
from dpsql.core.mechanisms.noise import CubeLaplace, GaussianNoise, SplitLaplace
from dpsql.schema.frozen import dataclass
from dpsql.schema.memoization import remembered

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]

FINE = 4_096
"""The number of value steps per scale of the widest term."""
_LEAST_RATIO = 1 / 256
"""Below it, the terms of the cube's formula would cancel,"""
_LEAST_PRODUCT = 2.0**-16
"""and also if several terms are small."""
_FARTHEST = 1e6
_EQUAL = 1 - 1e-6
_UNIT = 256
"""Coefficients are of powers of x / 256: those of x are as small as 1 / d!, below the range of doubles."""


@dataclass(frozen=True, eq=False)
class _SumTail:
    """P(|sum| > t) = exp(log_both(t)) for t >= 0 in units of the scale, for real t; `slack`: one step of each
    coordinate, in value steps."""

    scale: float
    log_both: Callable[[Floats], Floats]
    slack: float
    whole: bool = False

    def log_above(self, t: Floats) -> Bounds:
        return self._log(t + self.slack), self._log(t - self.slack)

    def _log(self, t: Floats) -> Floats:
        half = self.log_both(np.abs(t) / self.scale) - math.log(2)
        return np.where(t >= 0, half, np.log1p(-np.exp(half)))


def tail_of_sum(noise: object, sizes: tuple[float, ...]) -> tuple[Tail, float] | None:
    """Return the tail of the sum of different coordinates times numbers of these absolute sizes, and the value step;
    None for a law without a known tail."""
    if not isinstance(noise, CubeLaplace | SplitLaplace | GaussianNoise) or not all(map(math.isfinite, sizes)):
        return None
    return _tail(noise, tuple(sorted(sizes, reverse=True)))


@remembered(256)
def _tail(noise: CubeLaplace | SplitLaplace | GaussianNoise, sizes: tuple[float, ...]) -> tuple[Tail, float] | None:
    largest, step = sizes[0], sizes[0] * noise.scale / FINE
    ratios = tuple(each / largest for each in sizes)
    both: Callable[[Floats], Floats]
    if isinstance(noise, GaussianNoise):
        both, wide = _normal, math.hypot(*sizes) / largest
    elif len(sizes) < 2 or ratios[-1] < _LEAST_RATIO or math.prod(ratios) < _LEAST_PRODUCT:
        return None
    elif isinstance(noise, CubeLaplace):
        both, wide = _cube(noise.dimension, ratios), 1.0
    elif ratios[-1] > _EQUAL:
        both, wide = _laplaces(len(sizes)), 1.0
    elif len(sizes) > 2:
        return None
    else:
        both, wide = _laplace(ratios[1]), 1.0
    return _SumTail(FINE * wide, both, sum(sizes) / step), step


def _normal(t: Floats) -> Floats:
    return log_upper_tail(t) + math.log(2)


def _laplace(b: float) -> Callable[[Floats], Floats]:
    """Return the log tail of X + b Y, as `pairs.laplace_pair_tail`."""
    if b > _EQUAL:
        return lambda t: np.log1p(t / 2) - t
    return lambda t: np.log1p(-b * b * np.exp(-t * (1 / b - 1))) - math.log1p(-b * b) - t


def _laplaces(k: int) -> Callable[[Floats], Floats]:
    """Return the log tail of the sum of k independent Laplace variables, the difference of two gamma variables of shape
    k, with the density at t >= 0

        exp(-t) / (k - 1)!^2  sum over i < k of  C(k - 1, i) t^(k - 1 - i) (k - 1 + i)! / 2^(k + i).

    Its integral is exp(-t) times a polynomial with positive coefficients."""
    powers = [Fraction(0)] * k
    for i in range(k):
        m = k - 1 - i
        of_density = Fraction(
            math.comb(k - 1, i) * math.factorial(k - 1 + i), math.factorial(k - 1) ** 2 * 2 ** (k + i)
        )
        for j in range(m + 1):  # the integral of t^m exp(-t) is m! exp(-t) times the sum of t^j / j!
            powers[j] += 2 * of_density * math.factorial(m) / math.factorial(j)
    coefficients = [float(each) for each in powers]

    def log_both(t: Floats) -> Floats:
        x = np.minimum(t, _FARTHEST)
        total = np.zeros_like(x)
        for power in reversed(coefficients):
            total = total * x + power
        return np.asarray(np.minimum(np.log(total) - t, 0))

    return log_both


def _log_polynomial(powers: Sequence[float], x: Floats) -> Floats:
    """Return the logarithm of a polynomial with these coefficients, lowest power first and none negative, by Horner's
    rule from the end that does not overflow."""
    near, far = np.zeros_like(x), np.zeros_like(x)
    small, large = np.minimum(x, 1), 1 / np.maximum(x, 1)
    for low, high in zip(powers, reversed(powers), strict=True):
        near, far = near * small + high, far * large + low
    return np.where(x <= 1, np.log(near), np.log(far) + (len(powers) - 1) * np.log(np.maximum(x, 1)))


def _cube(d: int, weights: tuple[float, ...]) -> Callable[[Floats], Floats]:
    """Return the log tail of the sum of w_i X_i, k non-negative weights. Given the radius R the sum is R times a
    sum of independent uniform values, so that (Polya 1912; Feller II, I.9)

        P(|sum| > t) = 2 / (2^k k! prod w)  sum over signs s with s.w > 0 of  (prod s) (s.w)^k h(t / s.w)

    with h(x) = E[max(0, 1 - x / R)^k], R Gamma(d + 1), which is exp(-x) times a polynomial with positive
    coefficients (see `linear_combinations`). For two weights that is ((1 + b)^2 h(t / (1 + b)) - (1 - b)^2 h(t / (1
    - b))) / (4 b)."""
    k = len(weights)
    powers = [math.comb(d - k, i) * math.factorial(d - i) * _UNIT**i / math.factorial(d) for i in range(d - k + 1)]
    signed = [(math.prod(signs), sum(map(mul, signs, weights))) for signs in product((1, -1), repeat=k)]
    (_, widest), *others = [(sign, reach) for sign, reach in signed if reach > 1 - _EQUAL]
    factor = math.log(2 / (2**k * math.factorial(k) * math.prod(weights)))

    def log_part(reach: float, t: Floats) -> Floats:
        x = np.minimum(t / reach, _FARTHEST)
        return np.asarray(k * math.log(reach) + _log_polynomial(powers, x / _UNIT) - x)

    def log_both(t: Floats) -> Floats:
        first = log_part(widest, t)
        rest = sum((sign * np.exp(log_part(reach, t) - first) for sign, reach in others), np.zeros_like(first))
        return np.minimum(first + np.log1p(np.maximum(rest, -_EQUAL)) + factor, 0)

    return log_both
