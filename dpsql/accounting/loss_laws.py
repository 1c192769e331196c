"""Privacy loss distribution of one step, for its worst pair of neighbours (P, Q): log dP/dQ under P.

    Laplace     loss from -eps to eps: P puts 1/2 on eps, e^-eps/2 on -eps and density e^((x - eps)/2)/4 between
    response    eps with probability e^eps/(1 + e^eps), else -eps (the worst epsilon-DP step)
    Gaussian    normal, mean rho and variance 2 rho

Each pair remains the worst one under composition, and is its own mirror image, so one direction serves both (Zhu, Dong,
Wang 2022, section 3). `on_grid` makes a slightly worse pair on integer multiples of h.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpsql.schema.frozen import dataclass

FloatArray = NDArray[np.float64]

_FAINT = 160.0
"""A Laplace step's losses this far below its largest have a probability below e^-80 together."""


@dataclass(frozen=True, slots=True)
class LossLaw:
    """A distribution of losses under P: points with masses, and a density, smooth at the given scale, from `low` to
    `high`.

    `lost` bounds the omitted mass above `high`. Mass below `low` has been moved up to it, which is safe: a larger loss
    is a worse one.
    """

    points: FloatArray
    masses: FloatArray
    low: float
    high: float
    smooth: float
    density: Callable[[FloatArray], FloatArray] | None
    lost: float = 0.0

    def on_grid(self, h: float) -> tuple[NDArray[np.int64], FloatArray]:
        """Return multiples of h (as integers, possibly repeated) and the mass of each.

        Mass at x between two multiples a, b is split between them so that both its P mass and its Q mass (e^-x times
        that) are preserved: a part (1 - e^(a - x))/(1 - e^(a - b)) goes to b. By Jensen's inequality this raises the
        mean under Q of every convex function of dP/dQ, so every delta(e), also under composition: the pair on the grid
        dominates ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, sections 4 and 5).
        """
        places, masses = _split(self.points, self.masses, h)
        if self.density is not None:
            inside, weights = _split(*self._quadrature(h), h)
            places, masses = np.append(places, inside), np.append(masses, weights)
            first = int(places.min())
            masses = np.asarray(np.bincount(places - first, masses), dtype=np.float64)
            places = first + np.arange(len(masses), dtype=np.int64)
        used = masses > 0
        return places[used], masses[used]

    def _quadrature(self, h: float) -> tuple[FloatArray, FloatArray]:
        """Return the density as points with masses: Gauss rules on panels that end at the multiples of h."""
        assert self.density is not None
        nodes, weights = _GAUSS[4 if h <= self.smooth / 10 else 8]
        first, last = math.floor(self.low / h), math.ceil(self.high / h)
        if h > 50 * self.smooth:  # the distribution is narrow compared with the grid
            inner = np.linspace(self.low, self.high, math.ceil(2 * (self.high - self.low) / self.smooth) + 1)
            edges = np.unique(np.append(inner, np.clip(np.arange(first, last + 1) * h, self.low, self.high)))
        else:
            panels = max(1, math.ceil(2 * h / self.smooth))
            edges = np.clip(np.arange(first * panels, last * panels + 1) * (h / panels), self.low, self.high)
        widths = np.diff(edges)[:, None]
        places = edges[:-1, None] + widths * nodes
        return places.ravel(), (widths * weights * self.density(places)).ravel()


def _rule(count: int) -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


_GAUSS = {count: _rule(count) for count in (4, 8)}
"""Gauss rules on [0, 1]: on panels of half a smooth scale 8 points, of a tenth 4 points, err below a part in 10^13."""


def _split(points: FloatArray, masses: FloatArray, h: float) -> tuple[NDArray[np.int64], FloatArray]:
    """Split each mass between the multiples of h on both sides of it."""
    places = points / h
    under = np.floor(places).astype(np.int64)
    upper = masses * np.minimum(1.0, np.expm1(-h * (places - under)) / math.expm1(-h))
    return np.concatenate([under, under + 1]), np.concatenate([masses - upper, upper])


def laplace(epsilon: float) -> LossLaw:
    """Return the losses of Laplace noise of scale 1/epsilon on sensitivity 1."""
    low = max(-epsilon, epsilon - _FAINT)

    def density(x: FloatArray) -> FloatArray:
        return np.asarray(np.exp((x - epsilon) / 2) / 4)

    ends = np.array([low, epsilon])
    return LossLaw(ends, np.array([math.exp((low - epsilon) / 2) / 2, 0.5]), low, epsilon, 2.0, density)


def response(epsilon: float) -> LossLaw:
    """Return the losses of randomised response."""
    lie = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    return LossLaw(np.array([-epsilon, epsilon]), np.array([lie, 1 - lie]), -epsilon, epsilon, 1.0, None)


def gaussian(rho: float, log_lost: float) -> LossLaw:
    """Return the losses of a Gaussian of this rho, truncated at tails of probability at most exp(log_lost) each:
    P(Z > z) <= exp(-z^2/2)."""
    deviation, z = math.sqrt(2 * rho), math.sqrt(-2 * log_lost)
    low, high = rho - z * deviation, rho + z * deviation

    def density(x: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-(((x - rho) / deviation) ** 2) / 2) / (deviation * math.sqrt(2 * math.pi)))

    lost = math.exp(log_lost)
    return LossLaw(np.array([low]), np.array([lost]), low, high, deviation, density, lost)


def log_mgf_laplace(epsilon: FloatArray, s: FloatArray) -> FloatArray:
    """Return log E[e^(s L)] for every real s: with c = 2s + 1, log of e^(-eps/2) (cosh(c eps/2) + sinh(c eps/2)/c)."""
    c = np.maximum(np.abs(2 * s + 1), 1e-9)
    even = (1 + np.exp(-c * epsilon)) / 2
    odd = -np.expm1(-c * epsilon) / (2 * c)
    return np.asarray((c - 1) * epsilon / 2 + np.log(even + odd))


def log_mgf_response(epsilon: FloatArray, s: FloatArray) -> FloatArray:
    """Return log E[e^(s L)] for every real s: log of cosh((2s + 1) eps/2)/cosh(eps/2)."""
    c = np.abs(2 * s + 1)
    return np.asarray((c - 1) * epsilon / 2 + np.log1p(np.exp(-c * epsilon)) - np.log1p(np.exp(-epsilon)))
