"""Moment generating functions E exp(s <w, X>), at complex s, of linear combinations <w, X> of a noise vector's
coordinates. For sums of independent copies they multiply.

The laws are the continuous ones at scale 1, for m weight vectors w at once. All are symmetric and log-concave.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.schema.frozen import dataclass

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

MOST_CUBE_WEIGHTS = 3
_LEAST_WEIGHT = 1 / 256
_SERIES, _SMALL = 12, 0.5


class Combination(Protocol):
    """<w, X> for m weight vectors of k weights, shape (k, m), in decreasing order from 1."""

    @property
    def reach(self) -> Floats:
        """The r such that the moments E exp(s <w, X>) are finite for |Re s| < 1 / r; shape (m,)."""

    @property
    def variance(self) -> Floats:
        """The variance, shape (m,)."""

    def moments(self, s: Complexes) -> Complexes:
        """Return E exp(s <w, X>), shape (n, m), as s."""

    def bound(self, s: Complexes) -> Floats:
        """Return a bound on |moments| that decreases as the imaginary part grows."""

    def decay(self, s: Complexes) -> Floats:
        """Return a bound on the integral of bound(s') / bound(s) / |s'| over s' from s = c + i y, y > 0, to c + i
        infinity."""


@dataclass(frozen=True, slots=True)
class LaplaceCombination:
    """Independent Laplace coordinates: E exp(s <w, X>) = product of 1 / ((1 - w s) (1 + w s)).

    For s = c + i y each factor decreases in y, so the absolute value is its own bound. The factor of w = 1 falls by at
    least (a^2 + y^2) / (a^2 + y'^2) with a = 1 + c, and the integral of 1 / (y' (a^2 + y'^2)) is below 1 / (2 y^2)."""

    weights: Floats

    @property
    def reach(self) -> Floats:
        return np.ones(self.weights.shape[1])

    @property
    def variance(self) -> Floats:
        return np.asarray(2 * (self.weights**2).sum(axis=0))

    def moments(self, s: Complexes) -> Complexes:
        square = s * s
        product = 1 - square
        for weight in self.weights[1:]:
            product *= 1 - weight**2 * square
        return np.asarray(1 / product)

    def bound(self, s: Complexes) -> Floats:
        return np.asarray(np.abs(self.moments(s)))

    def decay(self, s: Complexes) -> Floats:
        return np.asarray((1 + ((1 + s.real) / s.imag) ** 2) / 2)


@dataclass(frozen=True, slots=True)
class CubeCombination:
    """Coordinates of the law on the cube: X = R U with R Gamma(d + 1) and U uniform on [-1, 1]^d (Hardt, Talwar 2010,
    section 4), so that E exp(s <w, X>) = E (1 - s <w, U>)^-(d + 1).

    Integrated over k uniforms this is a sum over signs e of (product of e_i) (1 - s e.w)^-p, p = d + 1 - k, divided by
    (product of 2 w_i) s^k d (d - 1) ... p. Let z = s^2 and x = z (e.w)^2. By the binomial theorem the terms of e and -e
    add up to 2 (sum of C(p, 2 i) x^i) / (1 - x)^p for even k, and to e.w s times the same sum with C(p, 2 i + 1) for
    odd k. The remaining divisor is z for k = 2 or 3, and none for k = 1.

    The terms cancel if s or a weight is small. For small s the power series is used, whose coefficients are all
    positive: C(d + 2 n, 2 n) E <w, U>^(2 n); the terms from n = 12 on total less than 1e-12. Weights are rounded up to
    1/256 of the largest. This makes <w, X>, and any sum of it and other symmetric unimodal terms, only more spread out:
    given R it is a sum of such terms (Birnbaum, "On random variables with comparable peakedness", 1948).

    For s = c + i y each |1 - s e.w| and |s| increase with y, so the sum of absolute values is a decreasing bound. The
    powers of |s| in it and in 1 / |s| have an integral below (|s| / y)^k / k times the bound."""

    dimension: int
    weights: Floats
    sums: Floats
    """    e.w| for the signs e with e_1 = 1, shape (2^(k - 1), m)."""
    parities: Floats
    """The product of the e_i, and of the sign of e.w for odd k."""
    scale: Floats
    """2 / (product of 2 w_i) / (d (d - 1) ... p), shape (m,)."""
    series: Floats
    """Coefficients of z^n, shape (12, m)."""

    @classmethod
    def of(cls, dimension: int, weights: Floats) -> CubeCombination:
        d, k = dimension, len(weights)
        if not k <= min(d, MOST_CUBE_WEIGHTS):
            raise ValueError("more weights than the law on the cube has coordinates, or than can be summed accurately")
        weights = np.maximum(weights, _LEAST_WEIGHT)
        signs = np.array([(1, *rest) for rest in product((1, -1), repeat=k - 1)], dtype=np.float64)
        sums = signs @ weights
        parities = signs.prod(axis=1)[:, None] * (np.sign(sums) if k % 2 else 1)
        scale = 2 / ((2 * weights).prod(axis=0) * math.perm(d, k))
        # E exp(x <w, U>) is the product of sinh(w_i x) / (w_i x), and 1 / (1 - s)^(d + 1) = E exp(s R).
        orders = np.arange(_SERIES)[:, None]
        factorials = np.array([[float(math.factorial(2 * n + 1))] for n in range(_SERIES)])
        lines = [weight ** (2 * orders) / factorials for weight in weights]
        series = lines[0]
        for line in lines[1:]:
            series = np.array([(series[: n + 1] * line[n::-1]).sum(axis=0) for n in range(_SERIES)])
        rising = np.array([[float(math.perm(d + 2 * n, 2 * n))] for n in range(_SERIES)])
        return cls(d, weights, np.abs(sums), parities, scale, series * rising)

    @property
    def reach(self) -> Floats:
        return np.asarray(self.sums[0])

    @property
    def variance(self) -> Floats:
        return np.asarray((self.weights**2).sum(axis=0) * ((self.dimension + 1) * (self.dimension + 2) / 3))

    def moments(self, s: Complexes) -> Complexes:
        k, z = len(self.weights), s * s
        p = self.dimension + 1 - k
        binomials = [math.comb(p, i) for i in range(k % 2, p + 1, 2)][::-1]
        moments = np.zeros_like(z)
        for total, parity in zip(self.sums, self.parities, strict=True):
            x = z * total**2
            line = np.full_like(z, binomials[0])
            for binomial in binomials[1:]:
                line *= x
                line += binomial
            with np.errstate(over="ignore", invalid="ignore"):
                term = line / power(1 - x, p)
            # Where floats overflow the quotient falls as x^-(p / 2): negligible next to the values near 0.
            moments += (parity * total if k % 2 else parity) * np.where(np.isfinite(term), term, 0)
        moments *= self.scale
        if k == 1:
            return moments
        moments /= z
        small = np.abs(s) * (self.reach * (self.dimension + 1)) < _SMALL
        at, column = z[small], np.nonzero(small)[1]
        line = self.series[-1, column].astype(np.complex128)
        for coefficients in self.series[-2::-1]:
            line *= at
            line += coefficients[column]
        moments[small] = line
        return moments

    def bound(self, s: Complexes) -> Floats:
        k = len(self.weights)
        p = self.dimension + 1 - k
        bounds = np.zeros(s.shape)
        for total in self.sums:
            bounds += np.abs(1 - s * total) ** -p + np.abs(1 + s * total) ** -p
        return np.asarray(bounds * (self.scale / 2) / np.abs(s) ** k)

    def decay(self, s: Complexes) -> Floats:
        k = len(self.weights)
        return np.asarray((np.abs(s) / s.imag) ** k / k)


def power(x: Complexes, n: int) -> Complexes:
    """Return x^n for n >= 1, by squaring."""
    product = x
    for bit in bin(n)[3:]:
        product = product * product
        if bit == "1":
            product = product * x
    return product
