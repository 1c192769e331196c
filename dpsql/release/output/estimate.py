"""Estimates of aggregates from noisy sums. Post-processing: free, and without access to the data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.aggregates.record import NoisySums
from dpsql.plan.expressions import DTYPES, Vector
from dpsql.release.parts import ChosenPoint, Estimate
from dpsql.schema.calendar import show_date, show_timestamp
from dpsql.schema.columns import Type

Floats = NDArray[np.float64]


def estimate(each: Estimate, values: Floats, empty_below: Floats | float = 1.0) -> Vector:
    """Return an aggregation from noisy features, shape (features, groups). `empty_below`: the noisy counts below which
    a group has no rows (`intervals.averages`)."""
    if each.chosen is not None:
        return _chosen(each.chosen, values)
    assert each.kind.estimate is not None  # all others are estimated
    found, some = each.kind.estimate(_sums(each, values, empty_below))
    return Vector(found if some is None or each.moments is None else np.where(some, found, 0.0), some)


def _sums(each: Estimate, values: Floats, empty_below: Floats | float) -> NoisySums:
    """Return the input of an aggregate's estimator."""

    def at(place: int | None) -> Floats | None:
        return None if place is None else values[place]

    rows, total = at(each.count), at(each.sum)
    total = np.zeros(values.shape[1]) if total is None else total
    more = each.moments
    if more is None:
        return NoisySums(rows, total, each.centre, each.range, empty_below=empty_below)
    pair = (at(more.product), at(more.sum), at(more.other_square), more.centre, more.other_half)
    return NoisySums(rows, total, each.centre, each.range, more.half, at(more.square), *pair)


def _chosen(each: ChosenPoint, values: Floats) -> Vector:
    """Return the selected values; several of them as one text, a JSON list. A negative point is NULL."""
    points = values[each.place : each.place + each.many].astype(np.int64)
    some = points[0] >= 0
    valid = None if some.all() else some
    points = np.maximum(points, 0)
    if each.points is not None:
        return Vector(each.points.values[points[0]].astype(DTYPES[each.kind]), valid)
    if each.among is not None:
        return Vector(each.among.read(points[0]).astype(DTYPES[each.kind]), valid)
    if each.values is None:
        found = np.minimum(each.origin + each.step * points[0].astype(object), each.most)
        return Vector(found.astype(DTYPES[each.kind]), valid)
    if each.listed:
        shown = [[_shown(each, point) for point in column] for column in points.T.tolist()]
        return Vector(np.array([json.dumps(cells, ensure_ascii=False) for cells in shown], dtype=object), valid)
    made: Any = np.empty(len(each.values), dtype=DTYPES[each.kind])
    made[:] = each.values
    return Vector(made[points[0]], valid)


def _shown(each: ChosenPoint, point: int) -> object:
    """Return a value for JSON: dates and times as text."""
    assert each.values is not None  # checked by the caller
    value = each.values[point]
    if not isinstance(value, int) or not each.kind.temporal:
        return value
    return show_date(value) if each.kind is Type.DATE else show_timestamp(value)
