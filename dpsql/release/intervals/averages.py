"""Noise intervals of averages, their worst-case width, and the noisy counts that rule out any rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.release.intervals.widths import edge, half_widths, noisy_coordinates
from dpsql.release.parts import Estimate
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.numbers import SOME_ROWS

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]

_LEVEL = 0.95
_EMPTY = 1 - 1e-9
"""The probability with which a group has no rows if its average is NULL."""
_SHARES = (1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2)
_GRID = 129
_CHUNK = 8_192
_BISECTIONS = 50


def average_at_worst(release: Release, estimate: Estimate, rows: float, level: float) -> float:
    """Return a t such that the average of `rows` rows is off by at most t with probability `level`, wherever in its
    range the mean is.

    Let m be the distance of the mean from the middle of the range, reach the largest |m|, and s, c the noise of sum and
    count. If n + c >= 1/2, the noisy average is off by more than t only if s - (m + t) c > t n or s - (m - t) c < - t
    n. With q(x) the half-width of s - x c, which grows with |x|, each is half as likely as |s - x c| > q(reach + t) if
    q(reach + t) <= t n. If n + c < 1/2, the average is the middle of the range, and off by at most reach. For a t below
    reach, part of the error probability covers -c > n - 1/2: the least of a few shares that suffices. The average is
    kept in the range, so it is never off by more than the range's width."""
    width = float(estimate.range.upper) - float(estimate.range.lower)
    if estimate.sum is None:
        return 0.0

    def least(at_level: float) -> float:
        """Return the t of the first two events for this probability."""

        def enough(t: float) -> bool:
            weights = np.array([[1.0], [width / 2 + t]])
            return float(half_widths(release, (estimate.sum, estimate.count), weights, at_level)[0]) <= t * rows

        low, high = 0.0, width
        if not enough(high):
            return width
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high

    missed = 1 - level
    for share in _SHARES:
        off = _count_width(release, estimate, 1 - 2 * share * missed)  # one side is half as likely as both
        if off < rows - SOME_ROWS:
            return least(1 - (1 - share) * missed)
    return max(least(level), width / 2)


def _count_width(release: Release, estimate: Estimate, level: float) -> float:
    """Return the half-width of an average's count."""
    return float(half_widths(release, (estimate.count,), np.ones((1, 1)), level)[0])


def empty_below(release: Release, groups: int) -> list[Floats | float]:
    """Return for each aggregate the noisy count below which it has no rows: 1 minus the half-width of the noise at
    level 1 - 1e-9 (0 for public counts). With several levels, an array with the limit of each group."""
    levels = [one.once(least_counts) for one, _ in release.sections]
    if len(levels) == 1:
        return [*levels[0]]
    places: list[Floats | float] = []
    for each in zip(*levels, strict=True):
        below = np.empty(groups)
        for (_, rows), value in zip(release.sections, each, strict=True):
            below[rows] = value
        places.append(below)
    return places


def least_counts(release: Release) -> tuple[float, ...]:
    """Return the limits of `empty_below` for one level."""
    of_averages = [each.kind.averages and each.count is not None for each in release.estimates]
    return tuple(
        1 - _count_width(release, each, _EMPTY) if mean else 1.0
        for each, mean in zip(release.estimates, of_averages, strict=True)
    )


def counts_in_doubt(release: Release) -> tuple[tuple[float, float], ...]:
    """Return for each average and count the range of noisy counts that leave open whether there are rows: from the
    least that does not rule out rows to the half-width of the 95 % interval. The range is empty for other
    aggregates."""
    counted = [(each.kind.averages or each.kind.counts) and each.count is not None for each in release.estimates]
    return tuple(
        (1 - _count_width(release, each, _EMPTY), _count_width(release, each, _LEVEL)) if has else (math.inf, math.inf)
        for each, has in zip(release.estimates, counted, strict=True)
    )


def unsure_rows(release: Release, place: int, values: Floats) -> NDArray[np.bool_]:
    """Return the groups in which the average or count at this place may have no rows."""
    least, most = release.once(counts_in_doubt)[place]
    counts = values[release.estimates[place].count]
    return np.asarray((counts >= least) & (counts < most))


def average_interval(release: Release, released: ReleasedValues, estimate: Estimate, level: float) -> Bounds:
    """Return the interval of the means m for which the noise in sum - m * count is within its quantile: exact coverage
    at every count.

    The set can be split or empty if the count is near 0. The interval is its hull within the declared range, or the
    whole range if it is empty (Fieller's method, with the exact distribution). If the count is below 1/2, the interval
    includes the middle of the range, which is the shown value."""
    low, high = float(estimate.range.lower), float(estimate.range.upper)
    if estimate.sum is None:
        same = np.full(released.groups, estimate.centre)
        return same, same.copy()
    assert estimate.count is not None
    sums, counts = released.values[estimate.sum], released.values[estimate.count]
    reach = (high - low) / 2
    places = (estimate.sum, estimate.count)
    noisy = noisy_coordinates(release, places)
    if not noisy:  # only the exact mean fits, and rounding may exclude it
        some = counts >= 1
        means = np.clip(estimate.centre + sums / np.where(some, counts, 1.0), low, high)
        return np.where(some, means, low), np.where(some, means, high)

    def exactly(mean: Floats) -> Floats:
        return half_widths(release, places, np.stack([np.ones(len(mean)), -mean]), level)

    quantile = exactly
    if noisy > 2:
        # A half-width is a norm of the weights (see `linear_combinations`), so lines between two of them lie above it.
        grid = np.linspace(-reach, reach, _GRID)
        known = exactly(grid)

        def quantile(mean: Floats) -> Floats:
            return np.interp(mean, grid, known)

    ends = [
        _inversion(sums[start : start + _CHUNK], counts[start : start + _CHUNK], reach, quantile)
        for start in range(0, released.groups, _CHUNK)
    ]
    lower = np.concatenate([each[0] for each in ends]) if ends else np.zeros(0)
    upper = np.concatenate([each[1] for each in ends]) if ends else np.zeros(0)
    middle = estimate.range.middle - estimate.centre
    lower = np.where(counts < SOME_ROWS, np.minimum(lower, middle), lower)
    upper = np.where(counts < SOME_ROWS, np.maximum(upper, middle), upper)
    return estimate.centre + lower, estimate.centre + upper


def _inversion(sums: Floats, counts: Floats, reach: float, quantile: Any) -> Bounds:
    """Return the hull of {m in [-reach, reach] : |sum - m count| <= quantile(m)}, by a grid and bisection."""
    grid = np.linspace(-reach, reach, _GRID)
    limits = quantile(grid)

    def inside(means: Floats) -> NDArray[np.bool_]:
        """Return whether means are in the set. Several means per group are checked at once, to save calls."""
        widths = quantile(means.ravel()).reshape(means.shape)
        return np.asarray(np.abs(sums - means * counts) <= widths)

    fits = np.abs(sums[:, None] - grid * counts[:, None]) <= limits
    guess = np.clip(sums / np.where(counts == 0, 1, counts), -reach, reach)
    fitting = inside(guess)
    largest = np.where(fits.any(axis=1), grid[_GRID - 1 - np.argmax(fits[:, ::-1], axis=1)], -np.inf)
    smallest = np.where(fits.any(axis=1), grid[np.argmax(fits, axis=1)], np.inf)
    largest, smallest = (
        np.where(fitting, np.maximum(largest, guess), largest),
        np.where(fitting, np.minimum(smallest, guess), smallest),
    )
    empty = ~np.isfinite(largest)
    step = grid[1] - grid[0]
    ends = np.stack([np.where(empty, -reach, smallest), np.where(empty, reach, largest)])
    beyond = np.stack([np.maximum(-reach, smallest - step), np.minimum(reach, largest + step)])
    lower, upper = edge(ends, beyond, inside)
    return np.where(empty, -reach, lower), np.where(empty, reach, upper)
