"""From noisy sums to the aggregates that a query asks for. Post-processing: free, and blind to the data.

With n rows and moments of u, the value from -1 to 1 between the ends of its range: s = sum u, q = sum u^2; t and r are
those of a second value v, and p = sum u v. A statistic that needs more rows
than the noisy count says there are is NULL; one that cannot lie outside some range is held in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.aggregates import AggregateKind
from dpsql.plan.expressions import DTYPES, Vector
from dpsql.release.parts import Chosen, Estimate
from dpsql.schema.calendar import show_date, show_timestamp
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

Floats = NDArray[np.float64]
Found = tuple[Floats, NDArray[np.bool_]]


def estimate(each: Estimate, values: Floats) -> Vector:
    """An aggregation from noisy features, shape (features, groups). AVG is NULL where the noisy count is below 1, and
    kept in its range."""
    if each.chosen is not None:
        return _chosen(each.chosen, values)
    count = None if each.count is None else values[each.count]
    total = np.zeros(values.shape[1]) if each.sum is None else values[each.sum]
    if each.kind in _STATISTICS:
        assert count is not None  # second moments have their count
        found, some = _STATISTICS[each.kind](each, _Read.of(each, values))
        return Vector(np.where(some, found, 0.0), some)
    if each.kind is AggregateKind.AVG:
        assert count is not None  # an average has its count
        some = count >= 1
        mean = each.centre + total / np.where(some, count, 1.0)
        return Vector(np.clip(mean, each.range.lower, each.range.upper), some)
    if each.kind is AggregateKind.COUNT:
        assert count is not None  # so has a count
        return Vector(count)
    return Vector(total if count is None else total + each.centre * count)


def _chosen(each: Chosen, values: Floats) -> Vector:
    """The values that were drawn; several of them as one text, a JSON list. A point below 0 is none."""
    points = values[each.place : each.place + each.many].astype(np.int64)
    some = points[0] >= 0
    valid = None if some.all() else some
    points = np.maximum(points, 0)
    if each.points is not None:
        return Vector(each.points.values[points[0]].astype(DTYPES[each.kind]), valid)
    if each.values is None:
        found = np.minimum(each.origin + each.step * points[0].astype(object), each.most)
        return Vector(found.astype(DTYPES[each.kind]), valid)
    if each.listed:
        shown = [[_shown(each, point) for point in column] for column in points.T.tolist()]
        return Vector(np.array([json.dumps(cells, ensure_ascii=False) for cells in shown], dtype=object), valid)
    made: Any = np.empty(len(each.values), dtype=DTYPES[each.kind])
    made[:] = each.values
    return Vector(made[points[0]], valid)


def _shown(each: Chosen, point: int) -> object:
    """A value as JSON has it: dates and times as text."""
    assert each.values is not None  # the caller has seen them
    value = each.values[point]
    if not isinstance(value, int) or not each.kind.temporal:
        return value
    return show_date(value) if each.kind is Type.DATE else show_timestamp(value)


@dataclass(frozen=True)
class _Read:
    """Noisy moments of a group; `n` is 1 where it is below that."""

    count: Floats
    n: Floats
    s: Floats
    q: Floats
    t: Floats
    r: Floats
    p: Floats

    @classmethod
    def of(cls, each: Estimate, values: Floats) -> _Read:
        moments = each.moments
        assert moments is not None  # these kinds have them,
        assert each.count is not None  # and a count
        count = values[each.count]

        def at(place: int | None, scale: float = 1.0) -> Floats:
            return np.zeros(values.shape[1]) if place is None else values[place] / scale

        def square(place: int | None) -> Floats:
            return (at(place) + count) / 2 if place is not None else np.zeros(values.shape[1])

        s, t = at(each.sum, moments.half or 1.0), at(moments.sum, moments.other_half or 1.0)
        q, r = square(moments.square), square(moments.other_square)
        return cls(count, np.where(count >= 1, count, 1.0), s, q, t, r, at(moments.product))

    @property
    def variance(self) -> Floats:
        return np.clip(self.q / self.n - (self.s / self.n) ** 2, 0, 1)

    @property
    def other_variance(self) -> Floats:
        return np.clip(self.r / self.n - (self.t / self.n) ** 2, 0, 1)

    @property
    def covariance(self) -> Floats:
        return np.clip(self.p / self.n - (self.s / self.n) * (self.t / self.n), -1, 1)

    def of_sample(self, found: Floats) -> Found:
        """With the divisor n - 1 in place of n; NULL where that is below 1."""
        some = self.count >= 2
        less = np.where(some, self.n - 1, 1.0)
        return found * self.n / less, some


def _halves(each: Estimate) -> tuple[float, float]:
    assert each.moments is not None
    return each.moments.half, each.moments.other_half


def _variance(each: Estimate, read: _Read) -> Found:
    return read.variance * _halves(each)[0] ** 2, read.count >= 1


def _sample_variance(each: Estimate, read: _Read) -> Found:
    return read.of_sample(read.variance * _halves(each)[0] ** 2)


def _root(of: Callable[[Estimate, _Read], Found]) -> Callable[[Estimate, _Read], Found]:
    def root(each: Estimate, read: _Read) -> Found:
        found, some = of(each, read)
        return np.sqrt(found), some

    return root


def _covariance(each: Estimate, read: _Read) -> Found:
    return read.covariance * _halves(each)[0] * _halves(each)[1], read.count >= 1


def _sample_covariance(each: Estimate, read: _Read) -> Found:
    return read.of_sample(_covariance(each, read)[0])


def _correlation(_each: Estimate, read: _Read) -> Found:
    both = read.variance * read.other_variance
    some = (read.count >= 1) & (both > 0)
    return np.clip(read.covariance / np.sqrt(np.where(some, both, 1.0)), -1, 1), some


def _determination(each: Estimate, read: _Read) -> Found:
    """R^2 is 1 where y does not vary, as in standard SQL; NULL where x does not."""
    found, some = _correlation(each, read)
    flat = (read.count >= 1) & (read.variance <= 0) & (read.other_variance > 0)
    return np.where(flat, 1.0, found**2), some | flat


def _slope(each: Estimate, read: _Read) -> Found:
    some = (read.count >= 1) & (read.other_variance > 0)
    half, other = _halves(each)
    return read.covariance / np.where(some, read.other_variance, 1.0) * (half / (other or 1.0)), some


def _intercept(each: Estimate, read: _Read) -> Found:
    """The mean of y less the slope times the mean of x."""
    assert each.moments is not None
    slope, some = _slope(each, read)
    half, other = _halves(each)
    y, x = each.centre + half * read.s / read.n, each.moments.centre + other * read.t / read.n
    return y - slope * x, some


_STATISTICS: Mapping[AggregateKind, Callable[[Estimate, _Read], Found]] = {
    AggregateKind.VAR_POP: _variance,
    AggregateKind.VAR_SAMP: _sample_variance,
    AggregateKind.STDDEV_POP: _root(_variance),
    AggregateKind.STDDEV_SAMP: _root(_sample_variance),
    AggregateKind.COVAR_POP: _covariance,
    AggregateKind.COVAR_SAMP: _sample_covariance,
    AggregateKind.CORR: _correlation,
    AggregateKind.REGR_SLOPE: _slope,
    AggregateKind.REGR_INTERCEPT: _intercept,
    AggregateKind.REGR_R2: _determination,
}
