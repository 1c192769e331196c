"""Upper tails of noise distributions, for decisions that depend on a single step: thresholds."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

# Exact discrete tails. 60 digits leave at least 30 after the cancellation in 1 - a; the factor below covers the rest.
_DIGITS = 60
_ROUND_UP = Decimal(1) + Decimal(10) ** -20


def cube_upper_tail(scale: Fraction, dimension: int, t: int) -> Decimal:
    """Return P(X >= t), t >= 1, rounded up, for one coordinate of the discrete distribution P(x) proportional to
    a^max|x_i|, a = exp(-1/scale).

    The coordinate is uniform on {-r..r} for a radius r of weight (2r + 1)^d a^r, so the tail is the sum over r >= t of
    (r - t + 1) (2r + 1)^(d - 1) a^r divided by the sum over r >= 0 of (2r + 1)^d a^r. Each is a polynomial times a
    geometric series, summed exactly through its forward differences (all positive): sum over k of C(k, j) a^k = a^j /
    (1 - a)^(j + 1).
    """
    d = dimension
    with localcontext() as context:
        context.prec = _DIGITS
        a = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        tail = _series([(k + 1) * (2 * (t + k) + 1) ** (d - 1) for k in range(d + 1)], a)
        total = _series([(2 * r + 1) ** d for r in range(d + 1)], a)
        return a**t * tail / total * _ROUND_UP


def staircase_upper_tail(scale: Fraction, width: int, inner: int, t: int) -> Decimal:
    """Return P(X >= t), t >= 1, for the staircase distribution (`core.mechanisms.staircase`); rounded up. Of the places
    k width + u on one side, 0 <= u < width, those with u < inner weigh a^k, the others a^(k + 1); a place weighs a
    times as much as the one a width before."""
    with localcontext() as context:
        context.prec = _DIGITS
        a = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        stair, u = divmod(t, width)
        one = inner + a * (width - inner)
        left = max(inner - u, 0) + a * (width - max(inner, u))
        weight = a**stair if stair else 1  # 0^0 is undefined
        return weight * (left + one * a / (1 - a)) / (2 * one / (1 - a) - 1) * _ROUND_UP


def cube_tail_polynomial(scale: Fraction, dimension: int) -> NDArray[np.float64]:
    """Return the coefficients, lowest power first and none negative, of p with P(X >= t) = exp(-t / scale) p(t / scale)
    for whole t >= 1, X as in `cube_upper_tail`: its sum over r = t + k, with (2t + 2k + 1)^(d - 1) expanded in t."""
    d = dimension
    with localcontext() as context:
        context.prec = _DIGITS
        step = Decimal(scale.numerator) / Decimal(scale.denominator)
        a = (-1 / step).exp()
        total = _series([(2 * r + 1) ** d for r in range(d + 1)], a)
        coefficients = []
        for i in range(d):
            rest = d - 1 - i
            weights = _series([(k + 1) * (2 * k + 1) ** rest for k in range(rest + 2)], a)
            coefficients.append(math.comb(d - 1, i) * (2 * step) ** i * weights / total)
        return np.array([float(each) for each in coefficients])


def _series(values: list[int], a: Decimal) -> Decimal:
    """Return the sum over k >= 0 of f(k) a^k for the polynomial f of degree len(values) - 1 with these first values."""
    total, ratio = Decimal(0), 1 / (1 - a)
    weight = ratio
    while values:
        total += values[0] * weight
        values = [after - before for before, after in pairwise(values)]
        weight *= a * ratio
    return total


def gaussian_tail(x: float) -> float:
    """Return P(Z > x) for a standard normal Z."""
    return 0.5 * math.erfc(x / math.sqrt(2))
