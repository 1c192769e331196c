"""Optimal composition of equal epsilon-DP steps: the exact curve of repeated randomised response.

The worst epsilon-DP step is randomised response (Kairouz, Oh, Viswanath 2015, theorem 3.1): the truth with probability
e^eps/(1 + e^eps). With k of them and l lies the loss is (k - 2l) eps and
    delta(e) = sum over l of P(l) (1 - exp(e - (k - 2l) eps)), the positive terms, P binomial(k, 1/(1 + e^eps)),
which extends their theorem 3.3 to values between its steps.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsql.core.rounding import above, raised
from dpsql.schema.frozen import dataclass

FloatArray = NDArray[np.float64]

_MARGIN = 50.0
"""Numbers of lies with a total probability below e^-50 of the wanted delta are omitted, and subtracted from it."""
_SMALLEST = -690.0
"""A delta below e^-690 is irrelevant."""


@dataclass(frozen=True, slots=True)
class Responses:
    """`count` randomised responses of the same epsilon."""

    epsilon: Fraction
    count: int

    def epsilon_at(self, delta: float) -> float:
        """Return the least epsilon for this delta >= 0, rounded up; never above count * epsilon."""
        most = self.epsilon * self.count
        if delta <= 0:
            return above(most)
        losses, masses = self._losses(math.log(delta))
        goal = delta * (1 - math.exp(-_MARGIN))
        low, high = 0.0, above(most)
        if self._delta(losses, masses, 0.0) <= goal:
            return 0.0
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (low, middle) if self._delta(losses, masses, middle) <= goal else (middle, high)
        return min(above(most), raised(high))

    def delta_at(self, epsilon: float) -> float:
        """Return the least delta for this epsilon >= 0, rounded up; 0 from count * epsilon on."""
        if Fraction(epsilon) >= self.epsilon * self.count:
            return 0.0
        found = self._delta(*self._losses(_SMALLEST), epsilon) + math.exp(_SMALLEST - _MARGIN)
        return min(1.0, raised(math.nextafter(found, 1.0)))

    def _delta(self, losses: FloatArray, masses: FloatArray, epsilon: float) -> float:
        """Return delta plus the rounding error of the masses: a few units of the last place of the logarithm, whose
        terms are of the size of the distance from the mean, some multiple of sqrt(k)."""
        over = losses > epsilon
        parts = masses[over] * -np.expm1(epsilon - losses[over])
        error = 1e-14 * (1 + math.sqrt(self.count)) * float(masses[over].sum())
        return float(parts.sum()) + error

    def _losses(self, log_delta: float) -> tuple[FloatArray, FloatArray]:
        """Return losses and their probabilities, except for numbers of lies with a probability below e^-50 delta.

        P(|l - mean| > t) <= 2 exp(-2 t^2/k) (Hoeffding 1963).
        """
        k, epsilon = self.count, above(self.epsilon)
        mean = k * math.exp(-epsilon) / (1 + math.exp(-epsilon))
        reach = math.sqrt(k * (_MARGIN + math.log(2) - log_delta) / 2)
        lies = np.arange(max(0, math.floor(mean - reach)), min(k, math.ceil(mean + reach)) + 1)
        masses = np.exp(log_binomial(lies, k, epsilon))
        # They add up to 1; dividing removes the rounding of the two probabilities, whose k-th powers are in each.
        return np.asarray((k - 2 * lies) * epsilon), np.asarray(masses / masses.sum())


def log_binomial(lies: NDArray[np.int64], k: int, epsilon: float) -> FloatArray:
    """Return log P(l) for binomial(k, 1/(1 + e^eps)), by the saddle-point expansion of Loader 2000, which is precise
    for large k: Stirling's errors and deviances instead of differences of large log-factorials."""
    log_lie, log_truth = -epsilon - math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(-epsilon))
    truths = k - lies
    inside = (lies > 0) & (truths > 0)
    logs = np.where(lies == 0, k * log_truth, k * log_lie)
    l_in, t_in = lies[inside].astype(float), truths[inside].astype(float)
    deviance = _times_log_ratio(l_in, k, log_lie) + _times_log_ratio(t_in, k, log_truth)
    correction = _stirling_error(np.array([float(k)])) - _stirling_error(l_in) - _stirling_error(t_in)
    logs[inside] = (np.log(k / (2 * math.pi)) - np.log(l_in) - np.log(t_in)) / 2 + correction - deviance
    return np.asarray(logs)


def _times_log_ratio(count: FloatArray, k: int, log_probability: float) -> FloatArray:
    """Return count * log(count / (k p)), near count = k p by log1p, since differences of logarithms lose digits."""
    expected = k * math.exp(log_probability)
    far = np.log(count) - math.log(k) - log_probability
    if expected > 0:
        part = (count - expected) / expected
        near = np.abs(part) < 0.5
        far[near] = np.log1p(part[near])
    return np.asarray(count * far)


def _stirling_error(n: FloatArray) -> FloatArray:
    """Return log n! minus Stirling's formula."""
    series = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / n**2) / n**2) / n**2) / n
    small = n < 16
    series[small] = _SMALL_ERRORS[n[small].astype(int)]
    return np.asarray(series)


_SMALL_ERRORS = np.array(
    [0.0] + [math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2 for n in range(1, 16)]
)
