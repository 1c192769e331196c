"""Tails of the noise laws: how likely a coordinate, or a combination of two, is to be far from 0.

Distances are in units of the law's scale (standard deviation for the Gaussian), so that one table serves every epsilon.
The formulas are for the continuous laws; the exact discrete ones, where a decision hangs on a single step, are below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

PairTail = Callable[[float, float], float]
"""(ratio, t) -> P(|X + ratio Y| > t) for two coordinates of a law, 0 <= ratio <= 1."""

_GRID = 64
_SMALLEST_RATIO = 1e-3


def _gamma_tail(shape: int, x: float) -> float:
    """P(R > x), R Gamma(shape, 1) with whole `shape`: exp(-x) times the sum of x^j / j! for j < shape."""
    if x <= 0:
        return 1.0
    log = math.log(x)
    return min(1.0, math.fsum(math.exp(j * log - x - math.lgamma(j + 1)) for j in range(shape)))


def cube_pair_tail(dimension: int) -> PairTail:
    """The tail of the K-norm law on the cube, density proportional to exp(-max |x_i|) in `dimension` coordinates.

    The law is R times a uniform point of [-1, 1]^d with R Gamma(d + 1) (Hardt, Talwar 2010, section 4). Given R, X +
    ratio Y is a sum of two uniforms, a trapezoid; its tail is a quadratic in 1/R on two pieces, integrated with
    E[R^-k; R > x] = Gamma(d + 1 - k) / Gamma(d + 1) * P(Gamma(d + 1 - k) > x).
    A ratio near 0 is rounded up: the sum is more spread out the larger the ratio (sums of symmetric unimodal laws).
    """
    d = dimension

    def tail(ratio: float, t: float) -> float:
        if d == 1:
            return math.exp(-t)

        def moment(k: int, x: float) -> float:
            if math.isinf(x):
                return 0.0
            return _gamma_tail(d + 1 - k, x) * (1.0, 1 / d, 1 / (d * (d - 1)))[k]

        if ratio == 0:
            return moment(0, t) - t * moment(1, t)
        b = max(ratio, _SMALLEST_RATIO)
        near, far = t / (1 + b), t / (1 - b) if b < 1 else math.inf
        flat = moment(0, far) - t * moment(1, far)
        m0, m1, m2 = (moment(k, near) - moment(k, far) for k in range(3))
        return flat + ((1 + b) ** 2 * m0 - 2 * (1 + b) * t * m1 + t * t * m2) / (4 * b)

    return tail


def laplace_pair_tail(ratio: float, t: float) -> float:
    """P(|X + ratio Y| > t) for independent Laplace X, Y of scale 1."""
    if ratio == 0:
        return math.exp(-t)
    if ratio > 1 - 1e-6:
        return (1 + t / 2) * math.exp(-t)
    b = max(ratio, _SMALLEST_RATIO)
    return (math.exp(-t) - b * b * math.exp(-t / b)) / (1 - b * b)


def solve(tail: Callable[[float], float], probability: float) -> float:
    """The t >= 0 at which a decreasing tail falls to `probability`, from above: tail(t) <= probability."""
    low, high = 0.0, 1.0
    while tail(high) > probability:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > probability else (low, middle)
    return high


_INTERPOLATION = 1 + 1e-4
"""Linear interpolation between the grid's points falls short by less than this factor (tests compare it with `solve`);
it may be up to 3e-4 wider at levels beyond .99999."""


def quantiles(ratios: Any, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half-widths for an array of ratios in [0, 1] by interpolation in a table of `quantile_table`."""
    inside = np.interp(ratios, table_ratios(), table)
    return np.asarray(inside * _INTERPOLATION, dtype=np.float64)


def pair_weights() -> NDArray[np.float64]:
    """The pairs of a `quantile_table`, shape (2, 65): 1 and the ratio."""
    ratios = table_ratios()
    return np.stack([np.ones_like(ratios), ratios])


def of_pairs(sizes: NDArray[np.float64], table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half-widths for pairs of absolute weights, shape (2, m), by interpolation in a table: there may be a million of
    them, and a norm is below its chords."""
    large, small = sizes.max(axis=0), sizes.min(axis=0)
    ratio = np.divide(small, large, out=np.zeros_like(small), where=large > 0)
    return np.asarray(large * quantiles(ratio, table))


@lru_cache(maxsize=1)
def table_ratios() -> NDArray[np.float64]:
    """The ratios of a `quantile_table`; not to be written to."""
    found = np.linspace(0, 1, _GRID + 1)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=1024)
def cube_quantile(dimension: int, level: float) -> float:
    """The t with P(|X| > t) = 1 - level for one coordinate of the law on the cube."""
    tail = cube_pair_tail(dimension)
    return solve(lambda t: tail(0.0, t), 1 - level)


@lru_cache(maxsize=256)
def quantile_table(law: str, dimension: int, level: float) -> NDArray[np.float64]:
    """The t with P(|X + ratio Y| > t) = 1 - level at 65 ratios from 0 to 1, for the law "cube" or "laplace"."""
    tail = cube_pair_tail(dimension) if law == "cube" else laplace_pair_tail
    ratios = table_ratios()
    return np.array([solve(lambda t, r=ratio: tail(r, t), 1 - level) for ratio in ratios])  # type: ignore[misc]


# Exact discrete tails. 60 digits leave at least 30 after the cancellation in 1 - a; the factor below covers the rest.
_DIGITS = 60
_ROUND_UP = Decimal(1) + Decimal(10) ** -20


def cube_upper_tail(scale: Fraction, dimension: int, t: int) -> Decimal:
    """P(X >= t), t >= 1, for one coordinate of the discrete law P(x) proportional to a^max|x_i|, a = exp(-1/scale);
    rounded up.

    The coordinate is uniform on {-r..r} for a radius r of weight (2r + 1)^d a^r, so the tail is the sum over r >= t of
    (r - t + 1) (2r + 1)^(d - 1) a^r by the sum over r >= 0 of (2r + 1)^d a^r. Each is a polynomial times a geometric
    series, summed exactly through its forward differences (all positive): sum over k of C(k, j) a^k = a^j / (1 -
    a)^(j + 1).
    """
    d = dimension
    with localcontext() as context:
        context.prec = _DIGITS
        a = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        tail = _series([(k + 1) * (2 * (t + k) + 1) ** (d - 1) for k in range(d + 1)], a)
        total = _series([(2 * r + 1) ** d for r in range(d + 1)], a)
        return a**t * tail / total * _ROUND_UP


def cube_tail_polynomial(scale: Fraction, dimension: int) -> NDArray[np.float64]:
    """The coefficients, lowest power first and none negative, of p with P(X >= t) = exp(-t / scale) p(t / scale) for
    whole t >= 1, X as of `cube_upper_tail`: its sum over r = t + k, with (2t + 2k + 1)^(d - 1) written out in t."""
    d = dimension
    with localcontext() as context:
        context.prec = _DIGITS
        step = Decimal(scale.numerator) / Decimal(scale.denominator)
        a = (-1 / step).exp()
        total = _series([(2 * r + 1) ** d for r in range(d + 1)], a)
        found = []
        for i in range(d):
            rest = d - 1 - i
            weights = _series([(k + 1) * (2 * k + 1) ** rest for k in range(rest + 2)], a)
            found.append(math.comb(d - 1, i) * (2 * step) ** i * weights / total)
        return np.array([float(each) for each in found])


def _series(values: list[int], a: Decimal) -> Decimal:
    """The sum over k >= 0 of f(k) a^k for the polynomial f of degree len(values) - 1 with these first values."""
    total, ratio = Decimal(0), 1 / (1 - a)
    weight = ratio
    while values:
        total += values[0] * weight
        values = [after - before for before, after in pairwise(values)]
        weight *= a * ratio
    return total


def gaussian_tail(x: float) -> float:
    """P(Z > x) for a standard normal Z."""
    return 0.5 * math.erfc(x / math.sqrt(2))


def gaussian_half_width(variance: Fraction, level: float) -> int:
    """The least whole t with P(|X| <= t) >= level, X discrete Gaussian: exact sums for small variances, else one step
    more than the continuous quantile (Canonne, Kamath, Steinke 2020, proposition 25: the tails differ by one step)."""
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
