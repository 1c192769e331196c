"""Public points for ranges with more values than points: of reals, and wide ranges of integers.

Bounds are often declared far wider than the values: evenly spaced points of [0, 10^7] have one among values around 20.
So about half of the points are spaced evenly over the range. The other half are spaced geometrically towards the point
of the range nearest to 0, on both sides of it if it lies inside. Rows are counted at the nearest point. All points
follow from declared facts.

Quantiles are selected from many more points: all integers, or decimals of reals, as finely as rows can be counted
(`RoundPoints`). MIN and MAX are not: their rank error grows with the number of points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import Grid, LatticeSum
from dpsql.core.mechanisms.quantile_runs import RoundNumbers, powers_of_ten
from dpsql.plan.aggregates import MOST_POINTS
from dpsql.plan.expressions import Expr
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval, Number
from dpsql.schema.memoization import remembered

_OCTAVES = 40
"""Geometric points begin at a sixteenth of the range: beyond that, the even points are closer together."""
_MOST_DIGITS = 300
_MOST_STEPS = 3 * 10**13
"""For values that are counted in floats: the lattice of one row has fewer than 2^45 steps."""
_MOST_WHOLE = 10**14
_MOST_TIMES = 9 * 10**15
"""Places of selections are stored as floats, exact up to 2^53."""
_COARSE_TIME = 10_000
"""Microseconds between points if single microseconds would give too many."""
_TIMES = (1, 1_000, 10**6, 60 * 10**6, 3_600 * 10**6, 86_400 * 10**6)
"""A microsecond, a millisecond, a second, a minute, an hour, a day."""
_LEAST_POWER = 250
"""The largest power of ten: beyond it floats have no room for the number of steps."""


@dataclass(frozen=True, slots=True)
class Points:
    """At most `most` points of [lower, upper], including both ends; `whole`: integers."""

    lower: Number
    upper: Number
    most: int
    whole: bool

    @property
    def values(self) -> NDArray[Any]:
        """The distinct points, ascending: int64 or float64."""
        return _values(self)

    @property
    def edges(self) -> tuple[float, ...]:
        """The midpoints between neighbouring points, ascending. Values above one edge, up to the next, belong to the
        point between them."""
        return _edges(self)


@remembered(16)
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
    """Return the distinct points inside the range."""
    held = np.clip(np.concatenate(parts), float(of.lower), float(of.upper))
    return np.unique(np.rint(held) if of.whole else held) + 0.0


def _rounded(points: NDArray[Any], spacing: NDArray[Any]) -> NDArray[np.float64]:
    """Round each point to the decimals that its spacing requires."""
    with np.errstate(divide="ignore"):
        digits = np.maximum(np.ceil(-np.log10(spacing)), 0)
    found = points.copy()
    for each in np.unique(digits[digits <= _MOST_DIGITS]).astype(int).tolist():
        found[digits == each] = np.round(points[digits == each], each)
    return found


@remembered(16)
def _edges(of: Points) -> tuple[float, ...]:
    points = of.values.astype(np.float64)
    before, behind = points[:-1], points[1:]
    middle = before + (behind - before) / 2
    return tuple(np.where(middle < behind, middle, before).tolist())


def dense(grid: Grid, groups: NDArray[Any], points: int) -> NDArray[np.int64]:
    """Return the counts of these groups at all points, shape (groups, points)."""
    counts = np.zeros((len(groups), points), dtype=np.int64)
    first = np.searchsorted(grid.groups, groups, side="left")
    last = np.searchsorted(grid.groups, groups, side="right")
    for row, (start, stop) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        counts[row, grid.points[start:stop]] = grid.counts[start:stop]
    return counts


@dataclass(frozen=True, slots=True)
class RoundPoints:
    """Points of [lower, upper] that are multiples of one step (10^-digits for reals): all distinguishable values except
    for very wide ranges. Round points are repeated (`RoundNumbers`). Points nearer to 0 than most of the range are
    together as likely as the others, except for times."""

    lower: Number
    upper: Number
    kind: Type
    step: int = 1
    digits: int = 0

    @property
    def numbers(self) -> RoundNumbers:
        """The points in steps from 0."""
        if self.kind is Type.REAL:
            scale = _power(self.digits)
            least, most = (round(float(end) * scale) for end in (self.lower, self.upper))
        else:
            least, most = -(-int(self.lower) // self.step), int(self.upper) // self.step
        if not self.kind.temporal:
            return RoundNumbers(least, most, powers_of_ten(least, most), decades=True)
        round_times = (each // self.step for each in _TIMES) if self.kind is Type.TIMESTAMP else ()
        strides = sorted({1, *(each for each in round_times if 1 < each <= (most - least) // 16)})
        return RoundNumbers(least, most, tuple(strides), decades=False)

    def lattice(self, value: Expr) -> LatticeSum:
        """Return the lattice that assigns a row to its point."""
        of, scale = self.numbers, _power(self.digits) if self.kind is Type.REAL else 1 / self.step
        whole = self.kind is not Type.REAL and self.step == 1
        return LatticeSum(value, self.lower, self.upper, 0, scale, of.least, of.most, whole)

    @property
    def apart(self) -> float:
        """The distance between two points."""
        return _power(-self.digits) if self.kind is Type.REAL else float(self.step)

    def read(self, places: NDArray[np.int64]) -> NDArray[Any]:
        """Return the values of places, counted from the first point: decimals are the nearest floats."""
        steps = places + self.numbers.least
        if self.kind is not Type.REAL:
            return np.asarray(steps * self.step)
        found = steps / _power(self.digits) if self.digits >= 0 else steps * _power(-self.digits)
        return np.clip(found, float(self.lower), float(self.upper)) + 0.0


def round_points(held: Interval, kind: Type) -> RoundPoints | None:
    """Return the finest round points of a range; None if floats distinguish too few values or cannot represent the
    range."""
    lower, upper = held.lower, held.upper
    if kind is not Type.REAL:
        lower, upper = int(lower), int(upper)
        largest, step = max(abs(lower), abs(upper)), 1
        if kind.temporal:
            step = 1 if upper - lower < _MOST_TIMES else _COARSE_TIME
        elif largest > _MOST_WHOLE:
            while largest > step * _MOST_STEPS:
                step *= 10
        return RoundPoints(lower, upper, kind, step)
    largest_real = max(abs(float(lower)), abs(float(upper)))
    if not 10.0**-_LEAST_POWER < largest_real < 10.0**_LEAST_POWER:
        return None
    digits = int(np.floor(np.log10(_MOST_STEPS) - np.log10(largest_real)))
    if (float(upper) - float(lower)) * _power(digits) < MOST_POINTS:
        return None
    return RoundPoints(float(lower), float(upper), kind, digits=digits)


def _power(digits: int) -> float:
    """Return the float nearest to 10^digits."""
    return float(f"1e{digits}")
