"""The exact privacy curve of one continuous Gaussian, rounded up.

For noise of standard deviation sigma and sensitivity D, with mu = D/sigma, the least delta at epsilon is
    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)          (Balle, Wang 2018, theorem 8).
With a = epsilon/mu - mu/2, b = a + mu and the Mills ratio M(x) = Phi(-x)/phi(x) it is phi(a) (M(a) - M(b)), because
e^epsilon phi(b) = phi(a). M(x) is the integral of exp(-x t - t^2/2) over t > 0, so that M(a) - M(b) is the integral of
exp(-a t - t^2/2)(1 - e^(-mu t)): all terms positive, also for tiny mu and far tails, where the plain formula cancels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpsql.accuracy.normal import FloatArray, log_density, mills, points

_ERROR = 1e-12
"""Bounds the relative error of a computed delta (64-point Gauss rule and rounding; tests compare with 50 digits)."""
_erfc = np.vectorize(math.erfc, otypes=[float])


def log_delta(mu: Any, shift: Any) -> FloatArray:
    """Return the log of an upper bound of delta at epsilon = mu * shift, elementwise; mu > 0, shift >= 0."""
    mu, shift = np.broadcast_arrays(np.asarray(mu, dtype=np.float64), np.asarray(shift, dtype=np.float64))
    shift = shift - 1e-15 * (shift + mu / 2)  # a and b are rounded; a smaller epsilon covers it
    a, b = shift - mu / 2, shift + mu / 2
    logs = np.empty(mu.shape)
    far = a < -1
    small = ~far & (mu <= 0.5)
    large = ~far & ~small
    with np.errstate(divide="ignore", under="ignore"):  # far in the tail delta is 0 and its logarithm -inf
        logs[far] = np.log(_erfc(a[far] / math.sqrt(2)) / 2 - np.exp(log_density(a[far])) * mills(b[far]))
        logs[small] = log_density(a[small]) + np.log(_mills_drop(a[small], mu[small]))
        logs[large] = log_density(a[large]) + np.log(mills(a[large]) - mills(b[large]))
    return np.minimum(logs + _ERROR, 0.0)


def _mills_drop(x: FloatArray, mu: FloatArray) -> FloatArray:
    t, weights = points(x)
    return np.asarray((weights * np.exp(-(x[:, None] + t / 2) * t) * -np.expm1(-mu[:, None] * t)).sum(axis=1))


def epsilons_of(mu: Any, delta: float) -> FloatArray:
    """Return an upper bound of the least epsilon >= 0 for (epsilon, delta)-DP of a Gaussian of each mu; 0 < delta < 1.

    Bisection in epsilon/mu, whose upper end keeps log_delta <= log(delta); initially it follows from
    Phi(-a) <= exp(-a^2/2).
    """
    mu = np.atleast_1d(np.asarray(mu, dtype=np.float64))
    goal = math.log(delta) - 1e-15 * (1 - math.log(delta))
    low, high = np.zeros_like(mu), (mu / 2 + math.sqrt(-2 * goal)) * (1 + 1e-9)
    for _ in range(60):
        middle = (low + high) / 2
        enough = log_delta(mu, middle) <= goal
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    nothing = log_delta(mu, np.zeros_like(mu)) <= goal
    return np.where(nothing, 0.0, mu * high * (1 + 1e-12))


def epsilon_of(mu: float, delta: float) -> float:
    """Return `epsilons_of` for one Gaussian."""
    return float(epsilons_of(mu, delta)[0])


def delta_of(mu: float, epsilon: float) -> float:
    """Return an upper bound of the delta of one Gaussian at epsilon >= 0; never 0."""
    return min(1.0, math.nextafter(math.exp(float(log_delta([mu], [epsilon / mu])[0])), 1.0))
