"""Noise intervals: where the exact (clipped) answer lies, given the noisy one and the law of the noise.

They cover the noise that privacy adds, not clipping or sampling, and hold at the stated level for every data set. All
is computed from released values and public facts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.intervals import EVERYTHING, Interval
from dpsql.noise_of_moments import moments_interval
from dpsql.noise_widths import half_widths, noisy_coordinates
from dpsql.release import Release, Released
from dpsql.release_parts import Estimate
from dpsql.sql.expressions import Call, Expr, Fact, IntervalEnd, Literal, Report, Slot, walk
from dpsql.sql.plan import AggregateKind

Floats = NDArray[np.float64]
Bounds = tuple[Floats, Floats]

_GRID = 129
_CHUNK = 8_192
_BISECTIONS = 50


def interval(release: Release, released: Released, expr: Expr, level: float) -> Bounds | None:
    """Lower and upper ends for every released group, of an output expression; None for one without any aggregate.

    A bare aggregate gets its law's interval. An expression over m aggregates gets interval arithmetic over their
    intervals at level 1 - (1 - level) / m, which together hold by the union bound.
    """
    first = len(release.query.plan.keys)
    if any(isinstance(part, IntervalEnd | Report) for part in walk(expr)):
        return None
    used = list(dict.fromkeys(part for part in walk(expr) if isinstance(part, Slot) and part.index >= first))
    if not used:
        return None
    if used == [expr]:
        return aggregate_interval(release, released, used[0].index - first, level)
    share = 1 - (1 - level) / len(used)
    found = [(slot, aggregate_interval(release, released, slot.index - first, share)) for slot in used]
    known = {slot: bounds for slot, bounds in found if bounds is not None}
    if len(known) < len(used):
        return None
    ends = [_propagate(expr, {s: Interval(*_ends(b, row)) for s, b in known.items()}) for row in range(released.groups)]
    return np.array([e.lower for e in ends], dtype=np.float64), np.array([e.upper for e in ends], dtype=np.float64)


def _ends(bounds: Bounds, row: int) -> tuple[float, float]:
    return float(bounds[0][row]), float(bounds[1][row])


def _propagate(expr: Expr, known: dict[Slot, Interval]) -> Interval:
    if isinstance(expr, Slot):
        return known.get(expr, EVERYTHING)
    if isinstance(expr, Literal):
        return expr.fact.range
    assert isinstance(expr, Call)
    return expr.function.fact_of([Fact(_propagate(arg, known), nullable=False) for arg in expr.args]).range


def aggregate_interval(release: Release, released: Released, index: int, level: float) -> Bounds | None:
    """The interval of one aggregation, for every released group; None for a value that was chosen."""
    estimate = release.estimates[index]
    if estimate.chosen is not None:
        return None
    if estimate.kind is AggregateKind.AVG:
        return _average_interval(release, released, estimate, level)
    if estimate.moments is not None:
        return moments_interval(release, released, estimate, level)
    value = _linear_value(estimate, released.values)
    width = linear_half_width(release, estimate, level)
    if estimate.whole:  # shown rounded: |round(value) - exact| <= k whenever |noise| < k + 1/2
        value, width = np.rint(value), max(0.0, math.ceil(width - 0.5))
    return value - width, value + width


def _linear_value(estimate: Estimate, values: Floats) -> Floats:
    total: Floats = np.zeros(values.shape[1]) if estimate.sum is None else values[estimate.sum]
    if estimate.count is None:
        return total
    scale = estimate.centre if estimate.kind is AggregateKind.SUM else 1.0
    centred: Floats = total + values[estimate.count] * scale
    return centred


def linear_half_width(release: Release, estimate: Estimate, level: float) -> float:
    """The half-width of a COUNT or SUM, the same for every group."""
    scale = estimate.centre if estimate.kind is AggregateKind.SUM else 1.0
    weights = np.array([[1.0], [scale]])
    return float(half_widths(release, (estimate.sum, estimate.count), weights, level)[0])


def _average_interval(release: Release, released: Released, estimate: Estimate, level: float) -> Bounds:
    """The means m for which the noise in sum - m * count is within its quantile: exact coverage at every count.

    The set can be split or empty when the count is near 0; its hull within the declared range is given, or that whole
    range where it is empty (Fieller's method, with the exact law).
    """
    low, high = float(estimate.range.lower), float(estimate.range.upper)
    if estimate.sum is None:
        same = np.full(released.groups, estimate.centre)
        return same, same.copy()
    assert estimate.count is not None
    sums, counts = released.values[estimate.sum], released.values[estimate.count]
    reach = (high - low) / 2
    places = (estimate.sum, estimate.count)

    def exactly(mean: Floats) -> Floats:
        return half_widths(release, places, np.stack([np.ones(len(mean)), -mean]), level)

    quantile = exactly
    if noisy_coordinates(release, places) > 2:
        # A half-width is a norm of the weights (see `linear_tails`), so lines between two of them lie above it.
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
    return estimate.centre + lower, estimate.centre + upper


def _inversion(sums: Floats, counts: Floats, reach: float, quantile: Any) -> Bounds:
    """The hull of {m in [-reach, reach] : |sum - m count| <= quantile(m)}, by a grid and bisection."""
    grid = np.linspace(-reach, reach, _GRID)
    limits = quantile(grid)

    def inside(mean: Floats) -> NDArray[np.bool_]:
        return np.asarray(np.abs(sums - mean * counts) <= quantile(mean))

    fits = np.abs(sums[:, None] - grid * counts[:, None]) <= limits
    guess = np.clip(sums / np.where(counts == 0, 1, counts), -reach, reach)
    found = inside(guess)
    largest = np.where(fits.any(axis=1), grid[_GRID - 1 - np.argmax(fits[:, ::-1], axis=1)], -np.inf)
    smallest = np.where(fits.any(axis=1), grid[np.argmax(fits, axis=1)], np.inf)
    largest, smallest = (
        np.where(found, np.maximum(largest, guess), largest),
        np.where(found, np.minimum(smallest, guess), smallest),
    )
    empty = ~np.isfinite(largest)
    step = grid[1] - grid[0]
    upper = _edge(np.where(empty, reach, largest), np.minimum(reach, largest + step), inside)
    lower = _edge(np.where(empty, -reach, smallest), np.maximum(-reach, smallest - step), inside)
    return np.where(empty, -reach, lower), np.where(empty, reach, upper)


def _edge(within: Floats, beyond: Floats, inside: Any) -> Floats:
    """The edge of the set between a point within it and one that may lie beyond."""
    beyond = np.where(np.isfinite(beyond), beyond, within)
    for _ in range(_BISECTIONS):
        middle = (within + beyond) / 2
        kept = inside(middle)
        within, beyond = np.where(kept, middle, within), np.where(kept, beyond, middle)
    return beyond
