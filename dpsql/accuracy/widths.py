"""Half-widths of the noise of a calibrated law, for one coordinate and for combinations.

Functions dispatch on the law's class, so that laws defined elsewhere register their own widths
(`functools.singledispatch`).
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy.pairs import cube_quantile, of_pairs, pair_weights, quantile_table, solve
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian, RoundedGaussian, SplitLaplace
from dpsql.core.mechanisms.staircase import Staircase
from dpsql.core.mechanisms.tails import gaussian_tail
from dpsql.schema.memoization import remembered

Floats = NDArray[np.float64]


@singledispatch
def half_width(noise: object, level: float) -> float:  # noqa: ARG001
    """Return the least t with P(|X| <= t) >= level for one coordinate, in lattice steps. Raises TypeError for unknown
    laws."""
    raise TypeError(f"no law of noise: {type(noise).__name__}")


@singledispatch
def half_widths(noise: object, weights: Floats, level: float) -> Floats:  # noqa: ARG001
    """Return t with P(|sum of weights times coordinates| <= t) >= level, in lattice steps, for each of m combinations
    of different coordinates; weights have shape (k, m). Raises TypeError for unknown laws."""
    raise TypeError(f"no law of noise: {type(noise).__name__}")


@half_width.register
def _(noise: CubeLaplace, level: float) -> float:
    if noise.dimension == 1:
        return _laplace_half_width(noise.exact_scale, level)
    return cube_quantile(noise.dimension, level) * noise.scale + 1


@half_width.register
def _(noise: SplitLaplace, level: float) -> float:
    return _laplace_half_width(noise.exact_scale, level)


@half_width.register
def _(noise: DiscreteGaussian, level: float) -> float:
    return gaussian_half_width(noise.variance, level)


@half_width.register
def _(noise: RoundedGaussian, level: float) -> float:
    """Return the least whole t with P(|X| > t) = 2 P(Y > t + 1/2) <= 1 - level."""
    quantile = solve(lambda x: 2 * gaussian_tail(x), 1 - level)
    return float(max(0, math.ceil(quantile * noise.scale * (1 + 1e-12) - 0.5)))


@half_width.register
def _(noise: Staircase, level: float) -> float:
    return _stair_half_width(noise, level)


@half_widths.register
def _(noise: Staircase, weights: Floats, level: float) -> Floats:
    (one,) = np.abs(weights)  # this law has a single coordinate
    return np.asarray(one * _stair_half_width(noise, level))


@half_widths.register
def _(noise: CubeLaplace, weights: Floats, level: float) -> Floats:
    return _linear("cube", noise.dimension, weights, level, noise.scale)


@half_widths.register
def _(noise: SplitLaplace, weights: Floats, level: float) -> Floats:
    return _linear("laplace", noise.dimension, weights, level, noise.scale)


@half_widths.register
def _(noise: RoundedGaussian, weights: Floats, level: float) -> Floats:
    """Return half-widths; each coordinate is rounded by at most a half."""
    wide = _linear("gaussian", noise.dimension, weights, level, noise.scale)
    return np.asarray(wide - np.abs(weights).sum(axis=0) / 2)


@half_widths.register
def _(noise: DiscreteGaussian, weights: Floats, level: float) -> Floats:
    return _linear("gaussian", noise.dimension, weights, level, noise.scale)


def _laplace_half_width(scale: Fraction, level: float) -> float:
    """Return the least whole t with P(|X| > t) = 2 a^(t + 1) / (1 + a) <= 1 - level."""
    a = math.exp(-1 / scale)
    t = math.ceil(math.log(2 / ((1 - level) * (1 + a))) * float(scale) - 1 - 1e-9)
    return float(max(0, t))


@remembered(1024)
def _stair_half_width(noise: Staircase, level: float) -> float:
    """Return the least whole t with P(|X| > t) <= 1 - level, at any level."""
    goal = (1 - Decimal(level)) / 2
    low, high = -1, 0  # too little, enough
    while noise.upper_tail(high + 1) > goal:
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if noise.upper_tail(middle + 1) > goal else (low, middle)
    return float(high)


def _linear(law: str, dimension: int, weights: NDArray[np.float64], level: float, scale: float) -> NDArray[np.float64]:
    """Return half-widths of combinations of coordinates: those of the law on the line, plus one step for each
    coordinate, because of the lattice."""
    sizes = np.abs(weights)
    if len(sizes) == 2 and law != "gaussian":
        wide = of_pairs(sizes, _table(law, dimension, level))
    else:
        from dpsql.accuracy import linear_combinations  # only some intervals need it

        wide = linear_combinations.half_widths(law, dimension, sizes, level)
    return np.asarray(wide * scale + sizes.sum(axis=0), dtype=np.float64)


@remembered(256)
def _table(law: str, dimension: int, level: float) -> NDArray[np.float64]:
    """Return the half-widths of pairs with the weights 1 and the table's ratios, all at once if that is as exact."""
    from dpsql.accuracy import linear_combinations  # imported late, as above

    least, most = linear_combinations.EXACT_LEVELS
    if not least <= level <= most:
        return quantile_table(law, dimension, level)
    return linear_combinations.half_widths(law, dimension, pair_weights(), level)


def gaussian_half_width(variance: Fraction, level: float) -> int:
    """Return the least whole t with P(|X| <= t) >= level, X discrete Gaussian: exact sums for small variances, else one
    step more than the continuous quantile (Canonne, Kamath, Steinke 2020, proposition 25: the tails differ by one
    step)."""
    sigma = math.sqrt(variance)
    if sigma > _LARGEST_SUM:
        return math.ceil(solve(lambda x: 2 * gaussian_tail(x), 1 - level) * sigma) + 1
    reach = math.ceil(12 * sigma) + 2
    weights = [math.exp(-x * x / (2 * float(variance))) for x in range(reach)]
    total = 2 * math.fsum(weights) - 1
    inside, t = 1.0, 0
    while inside / total < level and t + 1 < reach:
        t += 1
        inside += 2 * weights[t]
    return t


_LARGEST_SUM = 1000
