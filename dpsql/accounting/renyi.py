"""Renyi differential privacy: exact curves of noise distributions, conversion to (epsilon, delta), the best order.

Orders are written alpha = 1 + s. With L the privacy loss of the worst pair of neighbours, under the first of them,
D_(1+s) = log E[e^(s L)] / s.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpsql.core.events import Steps, Tally, weighted
from dpsql.core.rounding import above, raised

FloatArray = NDArray[np.float64]
Curve = Callable[[FloatArray], FloatArray]
"""Maps orders, as s = alpha - 1 > 0, to upper bounds of the divergence at each."""

_SMALL = 1e-5
_ROUNDING = 1e-14
"""Bounds the rounding error relative to the largest of the terms that a divergence or a conversion adds up."""


def laplace(epsilon: FloatArray, s: FloatArray) -> FloatArray:
    """Return the divergence of Laplace noise of scale 1/epsilon and sensitivity 1 (Mironov 2017, proposition 6), as
    epsilon + log1p(s/(1 + 2s) (e^(-(1 + 2s) epsilon) - 1))/s, which avoids cancellation for small s."""
    found = epsilon + np.log1p(s / (1 + 2 * s) * np.expm1(-(1 + 2 * s) * epsilon)) / s
    return _capped(found, epsilon, s)


def response(epsilon: FloatArray, s: FloatArray) -> FloatArray:
    """Return the divergence of randomised response, the largest of any epsilon-DP step (Mironov 2017, proposition 5;
    worst pair by Kairouz, Oh, Viswanath 2015, theorem 3.1): epsilon + log1p((e^(-2 s epsilon) - 1)/(1 + e^epsilon))/s.
    """
    lie = np.exp(-epsilon) / (1 + np.exp(-epsilon))
    found = epsilon + np.log1p(lie * np.expm1(-2 * s * epsilon)) / s
    return _capped(found, epsilon, s)


def _capped(found: FloatArray, epsilon: FloatArray, s: FloatArray) -> FloatArray:
    """Cap a divergence at alpha epsilon^2/2 (Bun, Steinke 2016, proposition 3.3) and epsilon, bounds of any epsilon-DP
    step. Where alpha epsilon is tiny and the formula cancels, they are the value to a part in 10^5."""
    bound = np.minimum((1 + s) * epsilon * epsilon / 2, epsilon)
    return np.where((1 + 2 * s) * epsilon < _SMALL, bound, np.minimum(found + _ROUNDING * epsilon, bound))


def curve_of(steps: Steps) -> Curve:
    """Return the sum of the steps' divergences (Mironov 2017, proposition 1), without their own deltas."""
    rho = above(weighted(steps.rhos))
    known = [(law, *arrays(tally)) for law, tally in ((laplace, steps.laplace), (response, steps.response)) if tally]

    def curve(s: FloatArray) -> FloatArray:
        divergence = (1 + s) * rho
        for law, epsilons, counts in known:
            divergence = divergence + counts @ law(epsilons[:, None], s[None, :])
        return np.asarray(divergence * (1 + _ROUNDING * 10))

    return curve


def arrays(tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Return parameters (rounded up to floats) and counts."""
    return np.array([above(key) for key in tally]), np.array(list(tally.values()), dtype=np.float64)


def tight(divergence: FloatArray, s: FloatArray, log_delta: float) -> FloatArray:
    """Return epsilon = D + log(1 - 1/alpha) - log(delta alpha)/(alpha - 1), at each order, or 0 if that is negative.

    Source: Canonne, Kamath, Steinke 2020, proposition 12. A negative value proves (0, delta)-DP: their bound of delta
    falls as epsilon grows.
    """
    gain = np.log1p(1 / s)
    slack = (-log_delta - np.log1p(s)) / s
    return np.asarray(np.maximum(0.0, divergence - gain + slack + _ROUNDING * (gain + (1 - log_delta) / s)))


def classic(divergence: FloatArray, s: FloatArray, log_delta: float) -> FloatArray:
    """Return epsilon = D - log(delta)/(alpha - 1) (Mironov 2017, proposition 3)."""
    return np.asarray(divergence - log_delta / s)


def best(curve: Curve, delta: float, scale: float, least: float = 0.0) -> float:
    """Return the least `tight` epsilon over all orders alpha = 1 + s with s >= least, rounded up. Any order is valid.

    The orders are fixed before any data, so choosing among them costs nothing. The exponent is unimodal in log(s) for
    the curves here; a grid around sqrt(log(1/delta)/scale), the best for D = alpha scale, finds its valley, and three
    finer grids its minimum.
    """
    log_delta = math.log(delta) * (1 + 1e-15)
    middle = math.log(max(1.0, -log_delta) / scale) / 2
    logs, step = np.arange(middle - 12, middle + 25, 0.125), 0.125
    if least:
        logs = np.maximum(logs, math.log(least))
    lowest = math.inf
    for _ in range(4):
        s = np.maximum(np.exp(logs), least)
        epsilons = tight(curve(s), s, log_delta)
        place = int(np.argmin(epsilons))
        lowest = min(lowest, float(epsilons[place]))
        logs, step = np.linspace(logs[place] - step, logs[place] + step, 33), step / 16
    return raised(lowest)
