"""Noise of least-squares estimates over grouping sets: its components, and its half-widths.

GROUP BY ROLLUP or CUBE releases several sums at once. Each cell of a measured grouping set M has an independent noise
vector X in R^d, a coordinate for each sum, all of one law up to the scale b_M, and `hierarchies.consistent` combines
every coordinate with the same weights a. So the noise of a combination <w, estimate> of the sums of one cell is

    N = sum over measured cells c of  a_c <w, X_c>  =  <w, sum of a_c X_c>.

`mixture` returns the |a_c| and their multiplicities, `half_widths` the t with P(|N| <= t) >= level. Each X_c is
symmetric and log-concave, hence so is their weighted sum (Prekopa 1973). As in `linear_combinations` the half-width is
a norm of w, so linear interpolation between weight vectors errs to the safe side.

The tail. Let M(s) = E exp(s N), finite for |Re s| < 1 / r, and 0 < c < 1 / r. The function exp(c t) P(N > t) has the
Fourier transform M(c + i y) / (c + i y), so that Poisson's summation formula reads, for every step h > 0,

    h / (2 pi) * sum over all j of  exp(-s_j t) M(s_j) / s_j,  s_j = c + i j h
        =  sum over all k of  exp(2 pi k c / h) P(N > t + 2 pi k / h)  >=  P(N > t).

No c or h can make it less than the tail; they only determine the excess. It is about exp(-2 pi c / h) for k < 0 and,
since log P(N > t) is concave, a similar factor with its slope for c - slope for k > 0 (Abate, Whitt, "The Fourier-
series method for inverting transforms of probability distributions", 1992, is the same rule). The terms beyond j = K
are at most exp(-c t) / (2 pi) times the integral over |y| > K h of a decreasing bound of |M(s) / s|. This is added, and
1e-6 of the sum of absolute values for rounding errors. The half-width found is thus no narrower than exact, and tests
check how much wider it is.

Newton's method for the logarithm of a tail starts at the Chernoff bound min over c of (log M(c) + log(2 / p)) / c, p =
1 - level. That is beyond the solution and log P(|N| > t) is concave, so its tangents are above it: each step ends at or
beyond the solution.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsql.accuracy import linear_combinations
from dpsql.accuracy.generating_functions import (
    MOST_CUBE_WEIGHTS,
    Combination,
    Complexes,
    CubeCombination,
    Floats,
    LaplaceCombination,
    power,
)
from dpsql.accuracy.hierarchies import GroupingSet, components_of, evidence_of, places_of, union_of, weights_of
from dpsql.schema.frozen import dataclass

Places = NDArray[np.intp]

_LEAST_FACTOR = 1e-30  # of the largest; smaller ones are rounded up, so that no power of them overflows
_MERGED = 1 / 3000  # of the standard deviation
_ALLOWED = 5e-4  # of log p: the most that each of the three errors may add to log T
_CLOSE = 1e-4  # of log p: where Newton's method stops
_ROUNDING = 1e-6  # of the sum of absolute values
_ROUNDS = 100
_CHUNK = 64  # weight vectors at a time
_LEAST_LEVEL = 0.05


# Components of the noise


class Cells(NamedTuple):
    """The weight in an estimate of `copies` cells of a measured set."""

    measured: GroupingSet
    weight: float
    copies: int


def mixture(variances: Mapping[GroupingSet, float], sizes: Sequence[int], wanted: GroupingSet) -> tuple[Cells, ...]:
    """Return the weights of all measured cells in the least-squares estimate of a cell of the wanted marginal, the same
    for each of its cells; key i has sizes[i] values. With variances v_M the variance of the estimate is the sum of
    weight^2 v_M copies, as in `hierarchies.variances_of`. Raises ValueError like that function.

    In the notation of `hierarchies`, the estimate of a cell of S is the sum over T <= S of 1 / s_(S - T) times its part
    of z_T. That part is the mean over M >= T, with weights a_M / A_T, of the component T of the sums of M over M - T.
    The projection on that component multiplies values on an axis of T by 1 - 1 / s_i if key i has the cell's value, and
    by -1 / s_i otherwise. So a cell of M has the weight

        a_M / s_S * sum over T <= S and M of  1 / A_T * product over i in T of  (s_i - 1 or, elsewhere, -1).

    It depends only on which keys of S and M have the cell's value; the other s_i - 1 values of each, and the s_i values
    of keys outside S, are alike."""
    known = dict(enumerate(sizes))
    keys = sorted(union_of(variances))
    weights = weights_of(variances, known)
    evidence = evidence_of(weights, keys)
    components_of(wanted, known, evidence, keys)
    mixed = []
    for measured, own in weights.items():
        common = tuple(key for key in wanted if key in measured)
        parts = evidence[places_of(keys, common)]
        sums = np.divide(1.0, parts, out=np.zeros(parts.shape), where=parts > 0)
        for axis, key in enumerate(common):
            without, within = np.moveaxis(sums, axis, 0)
            sums = np.stack([without - within, without + (sizes[key] - 1) * within], axis)
        alike = math.prod(sizes[key] for key in measured if key not in common)
        cells = math.prod(sizes[key] for key in wanted)
        for same in product((0, 1), repeat=len(common)):
            count = alike * math.prod(1 if each else sizes[key] - 1 for key, each in zip(common, same, strict=True))
            if count:
                mixed.append(Cells(measured, float(sums[same]) * own / cells, count))
    return tuple(mixed)


# Half-widths


def half_widths(terms: Iterable[tuple[float, int]], law: str, dimension: int, weights: Floats, level: float) -> Floats:
    """Return the t, shape (m,), with P(|N| <= t) >= level for each column w of `weights`, shape (k, m), where N is the
    sum over terms (factor, count) of `count` independent copies of factor * <w, X>.

    law: "cube" (density proportional to exp(-max |x_i|) in `dimension` coordinates, k of them used), "laplace" or
    "gaussian" (k independent coordinates), at scale 1. A factor is |a| b_M for `count` cells of weight a in the set M
    with noise of scale b_M. Never narrower than exact, and at most 0.3 % wider for dimensions up to 20 and levels from
    0.05, and for "cube" up to 3 non-zero weights: with more, the smallest are merged (`linear_combinations.fewer`).
    Weights, factors and counts of 0 drop out. Raises ValueError for an unknown law, a level outside (0, 1), weights or
    factors that are not finite, counts below 0, and for "cube" more than `dimension` non-zero weights."""
    size = np.abs(np.asarray(weights, dtype=np.float64))
    present = _present(terms)
    largest = present[-1][0] if present else 0.0
    if law == "gaussian":
        return linear_combinations.half_widths(law, dimension, size, level) * math.sqrt(
            math.fsum(factor**2 * count for factor, count in present)
        )
    if sum(count for _, count in present) <= 1:
        return linear_combinations.half_widths(law, dimension, size, level) * largest
    if size.ndim != 2 or not np.isfinite(size).all():
        raise ValueError("weights must be finite, of shape (k, m)")
    if not 0 < level < 1:
        raise ValueError("level must be between 0 and 1")
    if law not in {"cube", "laplace"}:
        raise ValueError(f"unknown law {law!r}")
    # N is unimodal, so P(|N| <= t) is concave in t: a fraction of t has at least that fraction of the probability.
    part = min(1.0, level / _LEAST_LEVEL)
    relative = _merged([(max(factor / largest, _LEAST_FACTOR), count) for factor, count in present])
    widths = np.zeros(size.shape[1])
    for k, chunk in _chunks(size):
        ordered = -np.sort(-size[:, chunk], axis=0)[:k]
        if law == "cube":
            ordered = linear_combinations.fewer(ordered, dimension, MOST_CUBE_WEIGHTS)
        loudest, ordered = ordered[0], ordered / ordered[0]
        one = CubeCombination.of(dimension, ordered) if law == "cube" else LaplaceCombination(ordered)
        widths[chunk] = _solved(_Sum(one, relative), max(level, _LEAST_LEVEL)) * loudest
    return widths * (largest * part)


def _present(terms: Iterable[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return the terms from the smallest factor to the largest: each |factor| once, none of them 0. Raises
    ValueError."""
    counts: dict[float, int] = {}
    for factor, count in terms:
        if not (math.isfinite(factor) and count >= 0):
            raise ValueError("factors must be finite and counts at least 0")
        counts[abs(factor)] = counts.get(abs(factor), 0) + count
    return sorted((factor, count) for factor, count in counts.items() if factor and count)


def _chunks(size: Floats) -> Iterator[tuple[int, Places]]:
    """Yield numbers of non-zero weights and the places of their weight vectors, in chunks, without vectors of zeros."""
    others = (size > 0).sum(axis=0)
    for k in np.unique(others[others > 0]).tolist():
        columns = np.flatnonzero(others == k)
        for chunk in np.split(columns, range(_CHUNK, len(columns), _CHUNK)):
            yield k, chunk


def _merged(terms: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return fewer terms, both from the smallest factor to the largest. Some factors are rounded up to the next, which
    makes N only more spread out. The standard deviation of the part of N up to any factor grows by at most 1/3000 of
    N's. Next to a single large term, which has a kink at 0, a small term counts by its standard deviation, not its
    variance."""
    most = math.sqrt(math.fsum(factor**2 * count for factor, count in terms)) * _MERGED
    merged: list[tuple[float, int]] = []
    exact = rounded = 0.0
    for factor, count in terms:
        below, copies = merged[-1] if merged else (factor, 0)
        exact += factor**2 * count
        rounded += factor**2 * count
        more = copies * (factor**2 - below**2)
        if math.sqrt(rounded + more) <= math.sqrt(exact) + most:
            merged[-1:] = [(factor, copies + count)]
            rounded += more
        else:
            merged.append((factor, count))
    return merged


@dataclass(frozen=True, slots=True)
class _Sum:
    """N for m weight vectors: independent copies of <w, X> for each factor, the largest of which is 1."""

    law: Combination
    terms: list[tuple[float, int]]

    def moments(self, s: Complexes) -> Complexes:
        """Return M(s), shape (n, m), as s."""
        product = np.ones_like(s)
        for factor, count in self.terms:
            product *= power(self.law.moments(factor * s), count)
        return product

    def log_moments(self, c: Floats) -> list[Floats]:
        """Return log E exp(c factor <w, X>) for one copy of each term, in the shape of the real numbers c."""
        return [np.log(self.law.moments(factor * c.astype(np.complex128)).real) for factor, _ in self.terms]

    def log_rest(self, s: Complexes) -> Floats:
        """Return the log of a bound on the integral of |M(s') / s'| over s' from s = c + i y, y > 0, to c + i infinity.

        One copy of factor 1 is at most its bound, and decreases with it. All other copies are limited from y on by
        their bound, and by unimodality. Tilted by exp(c x) their law is still log-concave. The difference of two draws
        from it is symmetric and log-concave, hence a mixture of uniforms on [-u, u] (Khinchine). With m = E exp(c ...)
        this makes
        E exp(s' ...)|^2 = m^2 E sinc(y' u), where sinc(x) = sin(x) / x. For x' >= x one has 1 - sinc(x') >= 0.71 (1 -
        sinc(x)): sinc falls until it is below all of its later values, which are between -0.2173 and 0.1284. So for y'
        >= y the square is at most 0.29 m^2 + 0.71 |E exp(s ...)|^2."""
        log_bound = np.log(self.law.bound(s) * self.law.decay(s))
        for factor, count in self.terms:
            top = self.law.moments(factor * s[:1].real.astype(np.complex128)).real
            here = np.abs(self.law.moments(factor * s))
            most = np.minimum(self.law.bound(factor * s), np.sqrt(0.29 * top**2 + 0.71 * here**2))
            log_bound += (count - (factor == 1)) * np.log(most)
        return log_bound


def _solved(noise: _Sum, level: float) -> Floats:
    """Return half-widths, shape (m,)."""
    goal = math.log1p(-level)
    allowed = -_ALLOWED * goal
    deviation = np.sqrt(noise.law.variance * math.fsum(factor**2 * count for factor, count in noise.terms))
    # The best c is g / deviation for normal noise, and nearer to 1 / r where exponential tails matter.
    points = 0.7 * math.sqrt(2 * (math.log(2) - goal)) * 1.3 ** np.arange(11)[:, None]
    slopes = points / (deviation + points * noise.law.reach)
    log_moments = sum(count * log for (_, count), log in zip(noise.terms, noise.log_moments(slopes), strict=True))
    reached = (log_moments + math.log(2) - goal) / slopes
    best = np.argmin(reached, axis=0)[None]
    slope: Floats = np.take_along_axis(slopes, best, 0)[0]
    t: Floats = np.take_along_axis(reached, best, 0)[0]
    # log T falls at about this slope: both errors of the sum are about `allowed` for this c and h.
    below, above = math.log(2 / allowed) - goal, math.log(1 / allowed)
    c, h = slope * (below / (below + above)), 2 * math.pi / (below + above) * slope
    # This is the saddle point's estimate of the solution, with a standard deviation below 1 / slope + t.
    least = np.maximum(t - np.log(2.5 * (1 + slope * t)) / slope, 0)
    nodes, shares, left_out = _sum_over_nodes(noise, c, h, math.log(allowed) + goal + c * least)
    active = np.arange(len(t))
    for _ in range(_ROUNDS):
        parts = shares[:, active] * np.exp(-nodes[:, active] * t[active])
        rest = left_out[active] * np.exp(-c[active] * t[active])
        tail = parts.real.sum(axis=0) + rest
        density = (parts * nodes[:, active]).real.sum(axis=0) + rest * c[active]
        log = np.log(tail)
        going = ~((log <= goal) & (log >= goal * (1 + _CLOSE)))
        if not going.any():
            return t
        active = active[going]
        t[active] += ((log - goal * (1 + _CLOSE / 2)) * tail / density)[going]
    raise ArithmeticError("a half-width was not found")


def _sum_over_nodes(noise: _Sum, c: Floats, h: Floats, most: Floats) -> tuple[Complexes, Complexes, Floats]:
    """Return the s_j and the factors of exp(-s_j t) in P(|N| > t), shape (nodes, m), s_j and s_-j together; and the
    factor of exp(-c t) in a bound of all errors that could make the sum too small, shape (m,). There are enough nodes
    to keep the log of that factor below `most`, except for rounding."""
    ends = 3.0 * 1.4 ** np.arange(28)[:, None] * h
    enough = noise.log_rest(c + 1j * ends) + math.log(2 / math.pi) <= most
    enough[-1] = True
    few = np.argmax(enough, axis=0)
    places = np.arange(math.ceil(3.0 * 1.4 ** int(few.max())) + 1)[:, None]
    nodes = c + 1j * h * places
    shares = noise.moments(nodes) / nodes * (np.where(places == 0, 1, 2) * h / math.pi)
    left_out = np.exp(noise.log_rest(nodes[-1:])[0]) * (2 / math.pi) + _ROUNDING * np.abs(shares).sum(axis=0)
    return nodes, shares, left_out
