"""Intervals for statistics of noisy moments: variance, covariance, slope, correlation.

The rows of a group hold values u and v of [-1, 1]. Noisy sums over them are given, one of each for every group: n
(rows), s = sum u, q = sum u^2, t = sum v, r = sum v^2, p = sum u v. The noise distribution is given as `width(weights,
level)`: for weights of shape (k, m), in the order of the function's arguments, half-widths of shape (m,), each at least
h(w) for a norm h with P(|noise of the combination w| <= h(w)) >= level. Exact half-widths of symmetric log-concave laws
are such norms (`linear_combinations`), also with multiples of sum |w_i| added for a lattice.

Method, after Fieller (1954): each statistic x solves an equation, linear in the exact moments and in x, whose
coefficients contain nuisance parameters y (the means of u and v, the ratio of their standard deviations). With the true
x and y, the same combination of the noisy moments is pure noise, so that |combination| <= width(weights) holds with the
level's probability: {x : some y in its own region fits} covers x if the noise fits and y lies in its region. A
twentieth of 1 - level is allotted to the regions, in equal parts, the rest to the noise, and by the union bound all
hold with probability `level` at least, for any n and data. The coefficients are chosen such that a small error of y
moves the combination only by its square (they are orthogonal), so that little is lost if n is large.

The regions are boxes of intervals. The coefficients are products of functions of single nuisance parameters, each on a
curve of the plane, (m, m^2) for a mean. The curve is cut into arcs, each of which lies in the triangle of its ends and
the intersection of their tangents. So the vector of coefficients lies in the convex hull of those at the corners,
products of such points, of one of the arcs (or products of arcs). If combination > width at every corner, then it holds
on all these hulls: the width is convex, the combination linear. (The corners of `_squares` are (m1 + m2)/2 and m1 m2
for m1, m2 among the two ends of an arc: the triangle above.)

For a correlation that would be too wide: with large noise the ratio k is so uncertain that the interval for all of its
region is half as wide again as the noise. There means and k are those of the noisy moments themselves, k^2 = a / b for
the variances a and b, times n. With c, the covariance times n, and for any k, including the true one, the combination
  F(x) = c - x sqrt(a b) = c - x/2 (a / k + b k) + x/2 (sqrt(a / k) - sqrt(b k))^2
is pure noise at the true x, except for the last term and the errors of the means, which are of second order. With the
noise e = a / k - b k the last term is x/2 e^2 / (sqrt(a / k) + sqrt(b k))^2, about x e^2 / (8 sqrt(a b)). Twice its
mean, which is sigma^2 / (4 sqrt(a b)) for sigma of e, is added to the width. As in Fieller's method F is linear in x,
and nothing is divided by a possibly pure noise value; if the variance of a column may be pure noise, the whole range is
returned. This is no union bound: simulation showed that the level holds, with noise from some that hides all to some
that hides little (`tests/accuracy/test_correlations.py`).

A statistic's range is returned if nothing is excluded (n near 0), or if everything is, which has probability at most 1
- level. The statistics of the exact moments must exist: n >= 1, n >= 2 for a sample, no variance of 0 in a divisor.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpsql.schema.frozen import dataclass

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]
Width = Callable[[Floats, float], Floats]
"""(weights of shape (k, m), level) -> half-widths of shape (m,)."""

_NUISANCE = 0.05
_ARCS = 2
_TOLD_FROM_0 = 0.5
"""The share of the error probability for mistaking pure noise for the variance of a column."""
_ONE_SIGMA = 0.6827
_ROUNDS = 20
_PRECISION = 1e-3  # of the width
_ROUNDING = 2.0**-45  # of the terms of a combination
_CHUNK = 512


def variance_interval(  # noqa: PLR0917 - moments in a fixed order
    n: Floats, s: Floats, q: Floats, width: Width, level: float, sample: bool
) -> Bounds:
    """Return lower and upper ends, shape (groups,), within [0, 1], of the variance of u; with `sample`, of n / (n -
    1) times that, within [0, 2]. The equation, with m the mean of u: q - 2 m s + m^2 n = x n, or x (n - 1) for a
    sample."""

    def of_chunk(moments: Floats) -> Bounds:
        mean = _mean(moments, 1, width, 1 - _NUISANCE * (1 - level))
        base = np.stack([_centred_square(moments, 1, 2, pair) for pair in _squares(mean)])
        return _ratio_to_count(base, moments, (0.0, 2.0 if sample else 1.0), sample, width=width, level=level)

    return _in_chunks(of_chunk, (n, s, q))


def covariance_interval(  # noqa: PLR0917 - moments in a fixed order
    n: Floats, s: Floats, t: Floats, p: Floats, width: Width, level: float, sample: bool
) -> Bounds:
    """Return lower and upper ends, shape (groups,), within [-1, 1], of the covariance of u and v; with `sample`, of n /
    (n - 1) times that, within [-2, 2]. The equation, with means m and l: p - m t - l s + m l n = x n, or x (n - 1)."""

    def of_chunk(moments: Floats) -> Bounds:
        share = 1 - _NUISANCE / 2 * (1 - level)
        means = _mean(moments, 1, width, share), _mean(moments, 2, width, share)
        base = np.stack([_centred_product(moments, (1, 2, 3), corner) for corner in itertools.product(*means)])
        reach = 2.0 if sample else 1.0
        return _ratio_to_count(base, moments, (-reach, reach), sample, width=width, level=level)

    return _in_chunks(of_chunk, (n, s, t, p))


def slope_interval(  # noqa: PLR0917 - moments in a fixed order
    n: Floats, s: Floats, q: Floats, t: Floats, p: Floats, width: Width, level: float
) -> Bounds:
    """Return lower and upper ends, shape (groups,), of the slope of the least-squares line of v on u, covariance by
    variance; infinite if a variance of 0 cannot be ruled out. The equation: p - m t - l s + m l n = x (q - 2 m s + m^2
    n)."""

    def of_chunk(moments: Floats) -> Bounds:
        share = 1 - _NUISANCE / 2 * (1 - level)
        means = _squares(_mean(moments, 1, width, share)), _mean(moments, 3, width, share)
        corners = list(itertools.product(*means))
        product = np.stack([_centred_product(moments, (1, 3, 4), (_middle(m), other)) for m, other in corners])
        square = np.stack([_centred_square(moments, 1, 2, m) for m, _ in corners])
        # x = y / z on the path (y, z) = (-1, 0), (0, 1), (1, 0), on which z product - y square is piecewise linear.
        places = _hull([_End.of(each, moments) for each in (square, product, -square)], width, _main(level))
        with np.errstate(divide="ignore"):
            lower, upper = ((place - 1) / (1 - np.abs(place - 1)) for place in places)
        return lower, upper

    return _in_chunks(of_chunk, (n, s, q, t, p))


def correlation_interval(  # noqa: PLR0917 - moments in a fixed order
    n: Floats, s: Floats, q: Floats, t: Floats, r: Floats, p: Floats, width: Width, level: float
) -> Bounds:
    """Return lower and upper ends, shape (groups,), within [-1, 1], of the correlation of u and v; the whole range if a
    variance cannot be distinguished from 0.

    The equation, with k the ratio of the standard deviations: covariance = x/2 (variance of u / k + variance of v * k).
    Means and k are those of the noisy moments."""

    def of_chunk(moments: Floats) -> Bounds:
        lower, upper = np.full(moments.shape[1], -1.0), np.full(moments.shape[1], 1.0)
        square, other, product = _plugged_in(moments)
        told = 1 - _TOLD_FROM_0 * (1 - level)
        apart = [(each * moments).sum(axis=0) > width(each, told) for each in (square, other)]
        known = np.flatnonzero(apart[0] & apart[1] & (moments[0] >= 1))
        square, other, product, moments = (each[:, known] for each in (square, other, product, moments))
        sizes = [(each * moments).sum(axis=0) for each in (square, other)]
        k = np.sqrt(sizes[0] / sizes[1])
        second_order = (width(square / k - other * k, _ONE_SIGMA) / 2) ** 2 / np.sqrt(sizes[0] * sizes[1])
        half = (square / k + other * k) / 2
        path = [_End.of(each[None], moments).blurred(second_order) for each in (product + half, product - half)]
        lower[known], upper[known] = (2 * end - 1 for end in _hull(path, width, level))
        return lower, upper

    return _in_chunks(of_chunk, (n, s, q, t, r, p))


def _plugged_in(moments: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the weights of both variances and of the covariance, n times each, at the means of the noisy moments."""
    u, v = (np.clip(moments[place] / np.maximum(moments[0], 1.0), -1, 1) for place in (1, 3))
    squares = _centred_square(moments, 1, 2, (u, u)), _centred_square(moments, 3, 4, (v, v))
    return *squares, _centred_product(moments, (1, 3, 5), (u, v))


def _in_chunks(of_chunk: Callable[[Floats], Bounds], moments: tuple[Floats, ...]) -> Bounds:
    """Return both ends for all groups, in chunks to keep the arrays small."""
    table = np.stack([np.asarray(moment, dtype=np.float64) for moment in moments])
    ends = np.empty((2, table.shape[1]))
    for start in range(0, table.shape[1], _CHUNK):
        ends[:, start : start + _CHUNK] = of_chunk(table[:, start : start + _CHUNK])
    return ends[0], ends[1]


def _main(level: float) -> float:
    """Return the level of the noise of an equation: what the regions of the nuisance parameters leave."""
    return 1 - (1 - _NUISANCE) * (1 - level)


# Weights of moments, shape (k, groups); `n` always comes first.


def _centred_square(moments: Floats, s: int, q: int, pair: Bounds) -> Floats:
    """Return q - 2 m s + m^2 n with (m, m^2) replaced by ((m1 + m2)/2, m1 m2); s and q are places among the moments."""
    weights = np.zeros_like(moments)
    weights[0], weights[s], weights[q] = pair[0] * pair[1], -(pair[0] + pair[1]), 1.0
    return weights


def _centred_product(moments: Floats, places: tuple[int, int, int], means: Bounds) -> Floats:
    """Return p - m t - l s + m l n for the means (m, l) of u and v; `places` are those of s, t and p."""
    weights = np.zeros_like(moments)
    s, t, p = places
    weights[0], weights[s], weights[t], weights[p] = means[0] * means[1], -means[1], -means[0], 1.0
    return weights


def _squares(mean: Bounds, arcs: int = _ARCS) -> list[Bounds]:
    """Return pairs (m1, m2); each gives a corner ((m1 + m2)/2, m1 m2) of triangles that cover the curve (m, m^2)."""
    points = [mean[0] + (mean[1] - mean[0]) * (place / arcs) for place in range(arcs)] + [mean[1]]
    found = [pair for one, other in itertools.pairwise(points) for pair in ((one, one), (one, other))]
    return [*found, (mean[1], mean[1])]


def _middle(pair: Bounds) -> Floats:
    return (pair[0] + pair[1]) / 2


def _mean(moments: Floats, place: int, width: Width, level: float) -> Bounds:
    """Return the interval of a mean m within [-1, 1] by the equation sum - m n = 0; `place` is that of the sum."""
    start = np.zeros((1, *moments.shape))
    start[0, 0], start[0, place] = 1.0, 1.0
    stop = start.copy()
    stop[0, 0] = -1.0
    low, high = _hull([_End.of(start, moments), _End.of(stop, moments)], width, level)
    return 2 * low - 1, 2 * high - 1


def _ratio_to_count(
    base: Floats, moments: Floats, reach: tuple[float, float], sample: bool, *, width: Width, level: float
) -> Bounds:
    """Return the interval of x within `reach` by the equation base = x n, for a sample x (n - 1); base for each
    corner."""
    path = []
    for x in reach:
        weights = base.copy()
        weights[:, 0] -= x
        path.append(_End.of(weights, moments, x if sample else 0.0))
    low, high = _hull(path, width, _main(level))
    return reach[0] + (reach[1] - reach[0]) * low, reach[0] + (reach[1] - reach[0]) * high


@dataclass(frozen=True, slots=True)
class _End:
    """An end of a piece of the path along which a statistic runs through its range, for each corner of the nuisance
    region: weights of the moments, shape (corners, k, groups), the value of the combination, (corners, groups), and the
    rounding error of that value."""

    weights: Floats
    value: Floats
    rounding: Floats

    @classmethod
    def of(cls, weights: Floats, moments: Floats, constant: float = 0.0) -> _End:
        terms = weights * moments
        return cls(weights, terms.sum(axis=1) + constant, _ROUNDING * (np.abs(terms).sum(axis=1) + abs(constant)))

    def blurred(self, by: Floats) -> _End:
        """Return the end with a larger error of its values."""
        return _End(self.weights, self.value, self.rounding + by)

    def only(self, groups: NDArray[np.intp]) -> _End:
        return _End(self.weights[:, :, groups], self.value[:, groups], self.rounding[:, groups])

    def beside(self, other: _End) -> _End:
        """Return both ends, as if for different groups."""
        return _End(
            np.concatenate([self.weights, other.weights], axis=-1),
            np.concatenate([self.value, other.value], axis=-1),
            np.concatenate([self.rounding, other.rounding], axis=-1),
        )

    def towards(self, other: _End, share: Floats) -> _End:
        """Return the point at this share of the way to the other end; shares may differ by group."""
        rest = 1 - share
        return _End(
            self.weights * rest + other.weights * share,
            self.value * rest + other.value * share,
            self.rounding * rest + other.rounding * share,
        )

    def excess(self, wide: Callable[[Floats], Floats]) -> Floats:
        """Return, shape (3, groups), the least excess over all corners of the value over the width, the same for minus
        the value, and the largest width."""
        corners, k, groups = self.weights.shape
        width = wide(self.weights.transpose(1, 0, 2).reshape(k, corners * groups)).reshape(corners, groups)
        width = width + self.rounding
        return np.stack([(self.value - width).min(axis=0), (-self.value - width).min(axis=0), width.max(axis=0)])


def _hull(path: list[_End], width: Width, level: float) -> Bounds:
    """Return the first and last place on the path where the combination can be noise, each between 0 and the number of
    pieces; the whole path if there is none. On a piece the weights are linear between its ends. Both ends of the hull
    are sought together, from either end of the path."""

    def wide(weights: Floats) -> Floats:
        return width(weights, level)

    pieces, groups = len(path) - 1, path[0].value.shape[1]
    measured = [end.excess(wide) for end in path]
    ways = [end.beside(other) for end, other in zip(path, path[::-1], strict=True)]
    excess = [np.concatenate(pair, axis=1) for pair in zip(measured, measured[::-1], strict=True)]
    excluded = np.zeros(2 * groups)
    going = np.arange(2 * groups)
    for i in range(pieces):
        piece = _Piece(ways[i].only(going), ways[i + 1].only(going), excess[i][:, going], excess[i + 1][:, going])
        share = piece.excluded(wide)
        excluded[going] += share
        going = going[share == 1]
    first, last = excluded[:groups], pieces - excluded[groups:]
    empty = first > last
    return np.where(empty, 0.0, first), np.where(empty, pieces, last)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of the path with the excess at its ends."""

    start: _End
    stop: _End
    first: Floats
    last: Floats

    def excluded(self, wide: Callable[[Floats], Floats]) -> Floats:
        """Return the share of the piece, from its start, on which the combination cannot be noise; shape (groups,).

        It cannot be noise where the smallest of (value - width) over the corners, a concave function of the place, is
        above 0, or that of (-value - width). If the function is above 0 at some place and not at the end, it is above 0
        up to where the chord between the two meets 0; from there the next chord continues. A width larger than the norm
        lowers the chord and is safe, and the steps may stop at any time. They stop if the rest is small compared with
        the width: at the next place the function is below the line through the last two."""
        sign = np.where(self.first[0] > 0, 0, 1)
        gap, end = (np.choose(sign, each[:2]) for each in (self.first, self.last))
        share = np.where((gap > 0) & (end > 0), 1.0, 0.0)
        allowed, slope = _PRECISION * self.first[2], np.zeros(len(share))
        going = np.flatnonzero((gap > 0) & (end <= 0))
        for _ in range(_ROUNDS):
            if not going.size:
                break
            step = (1 - share[going]) * gap[going] / (gap[going] - end[going])
            share[going] += step
            more = gap[going] + slope[going] * step > allowed[going]
            going, step = going[more], step[more]
            point = self.start.only(going).towards(self.stop.only(going), share[going])
            above, below, width = point.excess(wide)
            reached = np.choose(sign[going], (above, below))
            slope[going] = (reached - gap[going]) / step
            gap[going], allowed[going] = reached, _PRECISION * width
            going = going[reached > allowed[going]]
        return share
