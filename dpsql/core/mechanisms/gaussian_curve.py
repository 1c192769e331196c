"""The exact (epsilon, delta) of Gaussian noise by its tails, bounded from above in decimals.

For noise of standard deviation sigma on a vector whose L2 change is at most D, with mu = D / sigma, the least delta at
epsilon is Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), which grows with mu (Balle, Wang, "Improving the
Gaussian Mechanism for Differential Privacy", ICML 2018, theorem 8; for vectors too, as the distribution is the same in
all directions). With a = epsilon/mu - mu/2, b = a + mu and the Mills ratio M(x) = Phi(-x) / phi(x) it is phi(a) (M(a)
- M(b)), as e^epsilon phi(b) = phi(a).
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from dpsql.schema.memoization import remembered

_DIGITS = 70
_ROOT = Decimal("2.5066282746310005024157652848110452530069867406099383166299235763422936546078420")
"""sqrt(2 pi), to more digits than are used."""
_MARGIN = Decimal("1.000000000000000000000000000001")
"""Covers the roundings: each is below 10^-69 of a term of at most 10^9, and the difference of two Mills ratios is mu
times a derivative that is above 10^-5 / (1 + x^2), mu above 10^-12."""
_NEAR = 6
_LEVELS = 90


def delta_above(mu: Fraction, epsilon: Fraction) -> Decimal:
    """Return an upper bound, to 30 digits, of the delta of Gaussian noise at epsilon > 0; mu > 0."""
    with localcontext() as context:
        context.prec = _DIGITS
        wide = _decimal(mu)
        a = _decimal(epsilon) / wide - wide / 2
        density = (-a * a / 2).exp() / _ROOT
        least = _mills(a + wide)[0]
        if a >= 0:
            return density * (_mills(a)[1] - least) * _MARGIN
        return min(Decimal(1), (1 - density * (_mills(-a)[0] + least)) * _MARGIN)


def _mills(x: Decimal) -> tuple[Decimal, Decimal]:
    """Return bounds of the Mills ratio at x >= 0.

    Up to 6 it is e^(x^2/2) sqrt(2 pi) / 2 minus the sum of x^(2n + 1) / (2n + 1)!!, whose remainder is below the last
    term once the ratio of two terms is below 1/2. Beyond 6, two consecutive convergents of Laplace's fraction
    1/(x + 1/(x + 2/(x + ...))), which lie on either side of it.
    """
    if x <= _NEAR:
        total, term, n = Decimal(0), x, 0
        while 2 * x * x > 2 * n + 3 or term > total * Decimal(10) ** -_DIGITS:
            total, n = total + term, n + 1
            term *= x * x / (2 * n + 1)
        whole = (x * x / 2).exp() * _ROOT / 2 - total
        return whole - 2 * term, whole
    ends = []
    for last in (_LEVELS, _LEVELS + 1):
        below = x
        for level in range(last, 0, -1):
            below = x + level / below
        ends.append(1 / below)
    return min(ends), max(ends)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def _guess(epsilon: float, delta: float) -> float:
    """Return an approximate mu for epsilon and delta, in doubles: only the start of a search."""
    low, high = 1e-9 * epsilon, 2 * (epsilon + 9)
    for _ in range(80):
        mu = (low + high) / 2
        far, near = (math.erfc((epsilon / mu + sign * mu / 2) / math.sqrt(2)) / 2 for sign in (1, -1))
        above = near - far * math.exp(min(epsilon, 700)) > delta
        low, high = (low, mu) if above else (mu, high)
    return high


@remembered(1024)
def gaussian_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho = mu^2 / 2 (rounded down by a part in 10^9) for which Gaussian noise is (epsilon,
    delta)-DP; epsilon, delta > 0."""

    def enough(mu: float) -> bool:
        return Fraction(delta_above(Fraction(mu), epsilon)) <= delta

    low = high = _guess(float(epsilon), float(delta))
    step = 1e-9 * low
    while enough(high):
        low, high, step = high, high + step, 8 * step
    while not enough(low):
        low, high, step = max(low - step, low / 2), low, 8 * step
    while high - low > 1e-10 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return Fraction(math.nextafter(low * low / 2, 0.0))
