"""The upper tail of the normal law, far out and to the last digits.

The Mills ratio M(x) = Phi(-x)/phi(x) is the integral of exp(-x t - t^2/2) over t > 0: all terms are positive, so
nothing cancels, even where the tail underflows.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_CUT = 84.0
"""Integrals end where the exponent x t + t^2/2 reaches half of this: the rest is below e^-42 of them."""


def log_upper_tail(x: Any) -> FloatArray:
    """Return log P(Z > x) for a standard normal Z, elementwise, even where the tail underflows."""
    x = np.asarray(x, dtype=np.float64)
    size = np.abs(x).reshape(-1)
    log = (log_density(size) + np.log(mills(size))).reshape(x.shape)
    return np.where(x >= 0, log, np.log1p(-np.exp(log)))


def log_density(x: FloatArray) -> FloatArray:
    """Return log phi(x)."""
    return -x * x / 2 - math.log(2 * math.pi) / 2


@cache
def _rule() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of Gauss and Legendre on [0, 1]. Made on first use: NumPy loads its polynomials for
    them."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    return (nodes + 1) / 2, weights / 2


def points(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return nodes t and weights for integrals of exp(-x t - t^2/2), one row for each x >= -1."""
    end = _CUT / (x + np.hypot(x, math.sqrt(_CUT)))
    nodes, weights = _rule()
    return np.multiply.outer(end, nodes), np.multiply.outer(end, weights)


def mills(x: FloatArray) -> FloatArray:
    """Return the Mills ratio of each x >= -1."""
    t, weights = points(x)
    return np.asarray((weights * np.exp(-(x[:, None] + t / 2) * t)).sum(axis=1))
