"""The noise of a value that is shown only if it falls within a window, such as a count at or above a threshold.

Given that a value is shown, its noise no longer has its original law: a small group is shown if its noise was large.
With an exact integer k and noise X the shown value is Y = k + X, with the law of Y given low <= Y <= high. The
probabilities of X are log-concave (proof below), so this law has a monotone likelihood ratio in k (Karlin, "Total
positivity", 1968), P(Y >= y | window) grows with k, and the equal-tailed set

    { k : P(Y >= y | window) >= (1 - level) / 2  and  P(Y <= y | window) >= (1 - level) / 2 }

is an interval that contains k with probability at least `level`, given the window (Pratt 1961; for selected values
Fithian, Sun, Taylor, "Optimal inference after model selection", 2014).

A value exactly at `low` may be shown only by a coin, with probability `edge`. Then Y has the law of k + X with weights
(edge at low, 1 above). The ratio for two k is unchanged, and all of the above holds; the weights are log-concave, and
so is the probability of the window in k.

Log-concave: the discrete Laplace and Gaussian laws are, by their formulas. A coordinate x of the K-norm law on the cube
has the probability sum over r >= |x| of (2r + 1)^(d - 1) a^r, up to a factor (see `tails.cube_upper_tail`). The terms
are log-concave in r, hence their tail sums are, and |x| does not increase them: log-concave on both sides of 0 and
symmetric. The normal law rounded to integers has the probabilities of a log-concave density over steps of 1, which are
log-concave (Prekopa 1973).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy.normal import log_upper_tail
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian, RoundedGaussian, SplitLaplace
from dpsql.core.mechanisms.tails import cube_tail_polynomial
from dpsql.schema.frozen import dataclass
from dpsql.schema.memoization import remembered

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]
Pair = tuple[float, float]
Weighted = tuple[float, float, float]
"""A window, and the probability that a value at its lower end is shown."""

_TIE = 1 + 1e-9
"""Computed probabilities are exact up to this factor; intervals are widened by it."""
_NEGLIGIBLE = 1e-13
"""A negligible probability of being hidden."""
_MOST_VALUES = 4_096
_MOST_PARTS = 256
_NOT_SMALL = 1e-6
_MOST_SUMMED = 300.0
_FINE = 1_024
_FARTHEST = 1 << 20


class Tail(Protocol):
    """A law of noise on the integers, given by the logarithms of its tails."""

    @property
    def scale(self) -> float:
        """The approximate width."""

    @property
    def whole(self) -> bool:
        """True if values are integers; otherwise they are real."""

    def __hash__(self) -> int:
        """Hash by identity."""

    def log_above(self, t: Floats) -> Bounds:
        """Return bounds on log P(X >= t) for integers t."""


@dataclass(frozen=True, eq=False)
class _CubeTail:
    """A coordinate of the K-norm law on the cube; in one dimension the discrete Laplace law. Exact."""

    scale: float
    polynomial: Floats
    """P(X >= t) = exp(-t / scale) times this polynomial in t / scale, lowest power first, for t >= 1."""
    whole: bool = True

    def log_above(self, t: Floats) -> Bounds:
        u = np.maximum(t, 1 - t) / self.scale  # P(X >= t) = 1 - P(X >= 1 - t)
        log = self._log_polynomial(u) - u
        found = log if (t >= 1).all() else np.where(t >= 1, log, np.log1p(-np.exp(np.minimum(log, -1e-300))))
        return found, found

    def _log_polynomial(self, u: Floats) -> Floats:
        if len(self.polynomial) == 1:
            return np.log(self.polynomial)
        # Horner's rule from the end that does not overflow; all terms are positive.
        near, far = np.zeros_like(u), np.zeros_like(u)
        small, large = np.minimum(u, 1), 1 / np.maximum(u, 1)
        for low, high in zip(self.polynomial, self.polynomial[::-1], strict=True):
            near, far = near * small + high, far * large + low
        return np.where(u <= 1, np.log(near), np.log(far) + (len(self.polynomial) - 1) * np.log(np.maximum(u, 1)))


@dataclass(frozen=True, eq=False)
class _SummedTail:
    """The discrete Gaussian law: sums of its weights, and beyond them the normal law's bounds."""

    scale: float
    sums: Floats
    """log P(X >= t) for t = 0, 1, ..."""
    whole: bool = True

    def log_above(self, t: Floats) -> Bounds:
        size = np.maximum(t, 1 - t)
        least = self.sums[np.minimum(size, len(self.sums) - 1).astype(np.int64)]
        most = least.copy()
        beyond = size >= len(self.sums)
        if beyond.any():
            least[beyond], most[beyond] = _normal(size[beyond], self.scale)
        return (
            np.where(t >= 1, least, np.log1p(-np.exp(np.minimum(most, -1e-300)))),
            np.where(t >= 1, most, np.log1p(-np.exp(np.minimum(least, -1e-300)))),
        )


@dataclass(frozen=True, eq=False)
class _RoundedTail:
    """The normal law rounded to integers: P(X >= t) = P(Y >= t - 1/2). Exact."""

    scale: float
    whole: bool = True

    def log_above(self, t: Floats) -> Bounds:
        log = log_upper_tail((t - 0.5) / self.scale)
        return log, log


@dataclass(frozen=True, eq=False)
class _NormalTail:
    """The discrete Gaussian law between two normal ones, one step apart: P(N >= t) <= P(X >= t) <= P(N >= t - 1)
    (Canonne, Kamath, Steinke 2020, proposition 25). The lower bound is that of a sum of decreasing terms by its
    integral, since the weights add up to the normal law's except for exp(-2 pi^2 variance); for t <= 0 both follow by
    symmetry."""

    scale: float
    whole: bool = True

    def log_above(self, t: Floats) -> Bounds:
        return _normal(t, self.scale)


def _normal(t: Floats, scale: float) -> Bounds:
    return log_upper_tail(t / scale), log_upper_tail((t - 1) / scale)


@remembered(256)
def tail_of(noise: object) -> Tail | None:
    """Return the tails of a coordinate of a noise vector; None for a law that this module does not know."""
    if isinstance(noise, CubeLaplace | SplitLaplace):
        d = noise.dimension if isinstance(noise, CubeLaplace) else 1
        return _CubeTail(noise.scale, cube_tail_polynomial(noise.exact_scale, d))
    if isinstance(noise, RoundedGaussian):
        return _RoundedTail(noise.scale)
    if not isinstance(noise, DiscreteGaussian):
        return None
    sigma = noise.scale
    if sigma > _MOST_SUMMED:
        return _NormalTail(sigma)
    x = np.arange(math.ceil(36 * sigma) + 2)
    above = np.cumsum(np.exp(-x * x / (2 * float(noise.variance)))[::-1])[::-1]
    positive = above > 0
    return _SummedTail(sigma, np.log(above[positive]) - math.log(2 * above[0] - 1))


def log_between(tail: Tail, low: Floats, high: Floats) -> Bounds:
    """Return bounds on log P(low <= X <= high), for integers low <= high, either of which may be infinite."""
    turned = low + high < 0  # the law is symmetric, and tails are small on the right
    first, after = np.where(turned, -high, low), np.where(turned, -low, high) + float(tail.whole)
    open_ = np.isinf(after)
    both = np.stack([np.where(np.isinf(first), -(2.0**52), first), np.where(open_, 0.0, after)])
    (least, least_after), (most, most_after) = tail.log_above(both)
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = least + np.log1p(-np.exp(np.minimum(most_after - least, 0)))
        upper = most + np.log1p(-np.exp(np.minimum(least_after - most, 0)))
    found = np.where(open_, least, lower), np.where(open_, most, upper)
    return np.where(np.isnan(found[0]), -np.inf, found[0]), np.where(np.isnan(found[1]), -np.inf, found[1])


def _log_shown(tail: Tail, low: Floats, high: Floats, edge: float) -> Bounds:
    """Return bounds on log(edge P(X = low) + P(low < X <= high)), the probability that a value is shown."""
    every = log_between(tail, low, high)
    if edge == 1:
        return every
    inner, log = log_between(tail, low + 1, high), math.log(edge)
    least, most = (np.logaddexp(math.log1p(-edge) + one, log + other) for one, other in zip(inner, every, strict=True))
    return least, most


def interval_within(
    tail: Tail, y: Floats, low: float, high: float, level: float, *, least: float = -math.inf, edge: float = 1.0
) -> Bounds:
    """Return ends, shape (m,), of the exact integer k behind values y = k + X that are shown because low <= y <= high,
    or with probability `edge` > 0 if y = low; k is at least `least`.

    Ends may be infinite, and y itself is always included (at the very end of a window no k may make a value so near to
    it likely). A law with a large scale is searched in steps of a thousandth of it, outward."""
    half = (1 - level) / 2
    y = np.clip(np.asarray(y, dtype=np.float64), low, high)
    if math.isinf(low) and math.isfinite(high):
        lower, upper = _ends(tail, -y, (-high, math.inf, 1.0), half, (-math.inf, -least))
        lower, upper = -upper, -lower
    else:
        lower, upper = _ends(tail, y, (low, high, edge), half, (least, math.inf))
    return np.maximum(lower, least), np.maximum(upper, least)


def _ends(tail: Tail, y: Floats, window: Weighted, half: float, known: Pair) -> Bounds:
    """Return the ends for a window that is not bounded only above; `known`: a range that contains k."""
    low, high, edge = window
    step = max(1, math.floor(tail.scale / _FINE))
    moved = y
    if math.isinf(high):
        # Beyond this the window contains nearly all of the law, and ends move with y. The remaining mass
        # makes the lower end for a larger y no lower, and the upper one no higher but for ties.
        far = max(low, known[0]) + _quantile(tail, half) + _quantile(tail, _NEGLIGIBLE) + 2 * step + (edge < 1)
        moved = np.minimum(y, far)
    values, places = np.unique(moved, return_inverse=True)  # few distinct values
    if not len(values):
        return np.zeros(0), np.zeros(0)

    def lower(of: Floats) -> Floats:
        def likely(y: Floats, off: Floats) -> NDArray[np.bool_]:
            return (y - off >= known[0]) & _at_least(tail, y, y - off, window, half)

        return of - _furthest(likely, of, step)

    def upper(of: Floats) -> Floats:
        def likely(y: Floats, off: Floats) -> NDArray[np.bool_]:
            return (y + off <= known[1]) & _at_most(tail, y, y + off, window, half)

        return of + _furthest(likely, of, step)

    if len(values) <= _MOST_VALUES:
        ends = lower(values), upper(values)
    else:  # ends grow with y
        width = max(1.0, math.ceil((values[-1] - low) / _MOST_VALUES))
        down = low + np.floor((values - low) / width) * width
        up = np.minimum(low + np.ceil((values - low) / width) * width, high)
        ends = _by_value(down, lower), _by_value(up, upper)
    return ends[0][places] + (y - moved), ends[1][places] + (y - moved)


def _at_least(tail: Tail, y: Floats, k: Floats, window: Weighted, half: float) -> NDArray[np.bool_]:
    """Return whether P(Y >= y | window) is at least `half`, ties included (for y = low it is 1)."""
    low, high, edge = window
    if edge < 1:
        above, shown = log_between(tail, y - k, high - k)[1], _log_shown(tail, low - k, high - k, edge)[0]
        return np.asarray(~(above - shown < math.log(half / _TIE)))
    from_ = np.stack([y - k, low - k])  # together, to save calls for few values
    least, most = tail.log_above(from_) if math.isinf(high) else log_between(tail, from_, high - k)
    return np.asarray(~(most[0] - least[1] < math.log(half / _TIE)))


def _at_most(tail: Tail, y: Floats, k: Floats, window: Weighted, half: float) -> NDArray[np.bool_]:
    """Return whether P(Y <= y | window) is at least `half`, ties included."""
    low, high, edge = window
    if edge < 1:
        below, shown = _log_shown(tail, low - k, y - k, edge)[1], _log_shown(tail, low - k, high - k, edge)[0]
        return np.asarray(~(below - shown < math.log(half / _TIE)))
    if math.isinf(high) and half > _NOT_SMALL:  # the shorter computation, if no digits are lost
        least, most = tail.log_above(np.stack([y - k + float(tail.whole), low - k]))
        return np.asarray(~(-np.expm1(np.minimum(least[0] - most[1], 0)) < half / _TIE))
    least, most = log_between(tail, low - k, np.stack([y - k, high - k]))
    return np.asarray(~(most[0] - least[1] < math.log(half / _TIE)))


def _furthest(likely: Callable[[Floats, Floats], NDArray[np.bool_]], values: Floats, step: int) -> Floats:
    """Return the last distance from each value at which a condition holds, in integer steps, or the next one if a step
    is more than 1; infinite if it holds throughout the searched range. It holds up to some distance and fails from
    there on, or fails at once. Far out, where bounds of a law are loose, it may seem to hold again."""
    least, most = np.zeros(len(values)), np.full(len(values), 2.0 * _FARTHEST)
    parts = min(_MOST_PARTS, max(2, _MOST_VALUES // len(values)))  # with few values, many places at a time
    share = np.arange(1, parts)[:, np.newaxis] / parts
    going = np.arange(len(values))
    while going.size:
        # By ratios, since the searched distance is near. Between integers more than 1 apart the ceilings lie beyond
        # the lower one, and the first of them before the higher one.
        nearest, after = least[going], most[going]
        places = np.ceil((nearest + 1) * ((after + 1) / (nearest + 1)) ** share - 1)
        holds = np.logical_and.accumulate(likely(values[going], step * places)).sum(axis=0)
        ends = np.vstack([nearest, places, after])
        column = np.arange(len(going))
        least[going], most[going] = ends[holds, column], ends[holds + 1, column]
        going = np.flatnonzero((most - least > 1) & (least < _FARTHEST))
    return np.where(least >= _FARTHEST, np.inf, step * (least + (step > 1)))


def _by_value(values: Floats, of: Callable[[Floats], Floats]) -> Floats:
    """Apply a function to many values of which few are distinct."""
    unique, places = np.unique(values, return_inverse=True)
    return of(unique)[places]


@remembered(1024)
def _quantile(tail: Tail, probability: float) -> float:
    """Return an integer t with P(X >= t) <= probability, the least up to a thousandth of the scale."""
    goal = math.log(probability)

    def above(t: float) -> bool:
        return float(tail.log_above(np.array([t]))[1][0]) > goal

    low, high = 0.0, 1.0
    while above(high):
        low, high = high, 2 * high
    while high - low > max(1.0, tail.scale / _FINE):
        middle = math.floor((low + high) / 2)
        low, high = (middle, high) if above(middle) else (low, middle)
    return high


def chance_within(tail: Tail, low: float, high: float, lower: Floats, upper: Floats, *, edge: float = 1.0) -> Floats:
    """Return a lower bound, shape (m,), on the probability that k + X falls within a window and is shown, for any k of
    each interval: it is log-concave in k, and so least at an end."""

    def at(k: Floats, certain: bool) -> Floats:
        known = np.isfinite(k)
        held = np.where(known, k, 0.0)
        chance = np.exp(_log_shown(tail, low - held, high - held, edge)[0]) / _TIE
        return np.where(known, chance, float(certain))

    return np.minimum(at(lower, math.isinf(low)), at(upper, math.isinf(high)))
