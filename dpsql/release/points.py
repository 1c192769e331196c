"""Public points for ranges that have more values than points: of reals, and of wide ranges of integers.

Bounds are often declared far wider than the values: evenly spaced points of [0, 10^7] have one among values around 20.
So about half of the points are spaced evenly over the range, and the other half geometrically towards the point of the
range that is nearest to 0, on both sides of it where it lies inside. Rows are counted at the nearest point. All of it
follows from declared facts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import Grid
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Number

_OCTAVES = 40
"""Geometric points begin at a sixteenth of the range: from there up, the even ones are closer together."""
_MOST_DIGITS = 300


@dataclass(frozen=True, slots=True)
class Points:
    """At most `most` points of [lower, upper], both ends among them; `whole`: they are integers."""

    lower: Number
    upper: Number
    most: int
    whole: bool

    @property
    def values(self) -> NDArray[Any]:
        """The points, each once and ascending: int64, or float64."""
        return _values(self)

    @property
    def edges(self) -> tuple[float, ...]:
        """What lies at each point: values above the edge before it, up to the one behind it. Edges are in the middle of
        two points, and ascend."""
        return _edges(self)


@lru_cache(maxsize=16)
def _values(of: Points) -> NDArray[Any]:
    low, high = float(of.lower), float(of.upper)
    nearest = min(max(low, 0.0), high)
    sides = [end for end in (low, high) if end != nearest]
    geometric = of.most // 2 // max(1, len(sides))
    sixteenth = high / 16 - low / 16
    parts = [np.array([low, nearest, high])]
    for end in sides:
        reach = min(abs(end - nearest), sixteenth)
        octaves = min(_OCTAVES, max(1.0, float(np.log2(reach)))) if of.whole else _OCTAVES
        away = reach * 2.0 ** (-octaves / geometric * np.arange(geometric))
        parts.append(_rounded(nearest + (away if end > nearest else -away), away * (octaves / geometric * np.log(2))))
    points = _once(parts, of)
    even = max(2, of.most - len(points))
    part = np.arange(even) / (even - 1)
    spacing = np.full(even, 16 * (sixteenth / (even - 1)))
    points = _once([points, _rounded(low * (1 - part) + high * part, spacing)], of)
    if of.whole:  # floats beyond 2^53 are whole, and the ends as declared lie before the next ones
        points = np.minimum(points, np.nextafter(2.0**63, 0)).astype(np.int64)
        points[0], points[-1] = int(of.lower), int(of.upper)
    points.setflags(write=False)
    return points


def _once(parts: list[NDArray[np.float64]], of: Points) -> NDArray[Any]:
    """Those of the range, each once."""
    held = np.clip(np.concatenate(parts), float(of.lower), float(of.upper))
    return np.unique(np.rint(held) if of.whole else held) + 0.0


def _rounded(points: NDArray[Any], spacing: NDArray[Any]) -> NDArray[np.float64]:
    """With no more digits after the point than tell one from the next."""
    with np.errstate(divide="ignore"):
        digits = np.maximum(np.ceil(-np.log10(spacing)), 0)
    found = points.copy()
    for each in np.unique(digits[digits <= _MOST_DIGITS]).astype(int).tolist():
        found[digits == each] = np.round(points[digits == each], each)
    return found


@lru_cache(maxsize=16)
def _edges(of: Points) -> tuple[float, ...]:
    points = of.values.astype(np.float64)
    before, behind = points[:-1], points[1:]
    middle = before + (behind - before) / 2
    return tuple(np.where(middle < behind, middle, before).tolist())


def dense(grid: Grid, groups: NDArray[Any], points: int) -> NDArray[np.int64]:
    """The counts of these groups at all points, shape (groups, points)."""
    counts = np.zeros((len(groups), points), dtype=np.int64)
    first = np.searchsorted(grid.groups, groups, side="left")
    last = np.searchsorted(grid.groups, groups, side="right")
    for row, (start, stop) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        counts[row, grid.points[start:stop]] = grid.counts[start:stop]
    return counts
