"""Conversion between zero-concentrated and approximate differential privacy, always rounded to the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

from dpsql.schema.memoization import remembered


def delta_of_rho(rho: float, epsilon: float) -> float:
    """Return a delta for which rho-zCDP implies (epsilon, delta)-DP: the minimum over alpha > 1 of
    exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha.

    Source: Canonne, Kamath, Steinke 2020, corollary 13. Any alpha gives a valid delta, so an inexact search stays
    sound.
    """

    def log_delta(alpha: float) -> float:
        return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)

    low, high = 1 + 1e-9, (epsilon + 1) / (2 * rho) + 2
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(100):  # the exponent is convex in alpha
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if log_delta(left) <= log_delta(right) else (left, high)
    return min(1.0, math.exp(min(0.0, log_delta((low + high) / 2))))


@remembered(1024)
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho (rounded down) for which rho-zCDP implies (epsilon, delta)-DP; delta > 0."""
    low, high = 0.0, float(epsilon) + 1.0
    goal = float(delta) * (1 - 1e-9)
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of_rho(middle, float(epsilon)) <= goal else (low, middle)
    return Fraction(low)


def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon (rounded up) for which rho-zCDP implies (epsilon, delta)-DP; delta > 0."""
    if not rho:
        return Fraction(0)
    goal = float(delta) * (1 - 1e-9)
    least = float(rho) * (1 + 1e-12)
    low, high = 0.0, least + 2 * math.sqrt(least * math.log(1 / goal)) + 1e-9  # classic: Bun, Steinke 2016, prop. 1.3
    while delta_of_rho(least, high) > goal:  # only because of rounding
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of_rho(least, middle) <= goal else (middle, high)
    return Fraction(high)
