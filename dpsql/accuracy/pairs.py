"""Tails of a coordinate of noise, or of a combination of two: the continuous laws, and tables.

Distances are in units of the law's scale (standard deviation for the Gaussian), so that one table serves every epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.schema.memoization import remembered

PairTail = Callable[[float, float], float]
"""(ratio, t) -> P(|X + ratio Y| > t) for two coordinates of a law, 0 <= ratio <= 1."""

_GRID = 64
_SMALLEST_RATIO = 1e-3


def _gamma_tail(shape: int, x: float) -> float:
    """Return P(R > x), R Gamma(shape, 1) with integer `shape`: exp(-x) times the sum of x^j / j! for j < shape."""
    if x <= 0:
        return 1.0
    log = math.log(x)
    return min(1.0, math.fsum(math.exp(j * log - x - math.lgamma(j + 1)) for j in range(shape)))


def cube_pair_tail(dimension: int) -> PairTail:
    """Return the tail of the K-norm law on the cube, density proportional to exp(-max |x_i|) in `dimension`
    coordinates.

    The law is R times a uniform point of [-1, 1]^d with R Gamma(d + 1) (Hardt, Talwar 2010, section 4). Given R, X +
    ratio Y is a sum of two uniforms, a trapezoid; its tail is a quadratic in 1/R on two pieces, integrated with E[R^-k;
    R > x] = Gamma(d + 1 - k) / Gamma(d + 1) * P(Gamma(d + 1 - k) > x). A ratio near 0 is rounded up: the sum is more
    spread out the larger the ratio (sums of symmetric unimodal laws)."""
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
    """Return P(|X + ratio Y| > t) for independent Laplace X, Y of scale 1."""
    if ratio == 0:
        return math.exp(-t)
    if ratio > 1 - 1e-6:
        return (1 + t / 2) * math.exp(-t)
    b = max(ratio, _SMALLEST_RATIO)
    return (math.exp(-t) - b * b * math.exp(-t / b)) / (1 - b * b)


def solve(tail: Callable[[float], float], probability: float) -> float:
    """Return the t >= 0 at which a decreasing tail falls to `probability`, from above: tail(t) <= probability."""
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
    """Return half-widths for an array of ratios in [0, 1] by interpolation in a table of `quantile_table`."""
    inside = np.interp(ratios, table_ratios(), table)
    return np.asarray(inside * _INTERPOLATION, dtype=np.float64)


def pair_weights() -> NDArray[np.float64]:
    """Return the pairs of a `quantile_table`, shape (2, 65): 1 and the ratio."""
    ratios = table_ratios()
    return np.stack([np.ones_like(ratios), ratios])


def of_pairs(sizes: NDArray[np.float64], table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return half-widths for pairs of absolute weights, shape (2, m), by interpolation in a table: there may be a
    million pairs, and a norm is below its chords."""
    large, small = sizes.max(axis=0), sizes.min(axis=0)
    ratio = np.divide(small, large, out=np.zeros_like(small), where=large > 0)
    return np.asarray(large * quantiles(ratio, table))


@lru_cache(maxsize=1)
def table_ratios() -> NDArray[np.float64]:
    """Return the ratios of a `quantile_table`, read-only."""
    found = np.linspace(0, 1, _GRID + 1)
    found.flags.writeable = False
    return found


@remembered(1024)
def cube_quantile(dimension: int, level: float) -> float:
    """Return the t with P(|X| > t) = 1 - level for one coordinate of the law on the cube."""
    tail = cube_pair_tail(dimension)
    return solve(lambda t: tail(0.0, t), 1 - level)


@remembered(256)
def quantile_table(law: str, dimension: int, level: float) -> NDArray[np.float64]:
    """Return the t with P(|X + ratio Y| > t) = 1 - level at 65 ratios from 0 to 1, for the law "cube" or "laplace"."""
    tail = cube_pair_tail(dimension) if law == "cube" else laplace_pair_tail
    ratios = table_ratios()
    return np.array([solve(lambda t, r=ratio: tail(r, t), 1 - level) for ratio in ratios])  # type: ignore[misc]
