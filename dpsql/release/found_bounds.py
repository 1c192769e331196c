"""Checks whether the private search for bounds has found any, from its bounds and noisy counts, at no cost.

With too few rows the search draws by its penalties only: nearly always the least bounds, and in one of 30 searches
others, anywhere. Values inside such bounds are meaningless, however small their noise is. So bounds count as found only
if noisy values of the same answer agree. All of this is post-processing of paid values:
`docs/proofs/10-automatic-bounds.md`, 10.4.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Column, walk
from dpsql.plan.facts import fact, known_of
from dpsql.release.bounds.auto_bounds import ChosenBounds, clamped
from dpsql.release.intervals.widths import half_widths
from dpsql.release.parts import Estimate
from dpsql.release.release import Release, ReleasedValues

Floats = NDArray[np.float64]
_LEVEL = 0.99
"""The level of the deciding intervals."""


class Rows(NamedTuple):
    """Limits from noisy values: the least and the most rows of the search, and how many are surely not all beyond one
    bound."""

    least: float = -math.inf
    most: float = math.inf
    inside: float = math.inf


def judged(release: Release, released: ReleasedValues) -> Release:
    """Return the release with its chosen bounds (`Release.settled`). Aggregations are `meaningless` if rows did not
    determine the bounds of their values."""
    settled = release.settled(released.bounds)
    if not settled.bounds or not released.groups:
        return settled
    lost = {each.column for each in settled.bounds if not _is_found(each, _rows(settled, released, each))}
    return replace(settled, meaningless=of_columns(settled, lost)) if lost else settled


def unfound(release: Release) -> tuple[ChosenBounds, ...]:
    """Return the chosen bounds that make aggregations of a judged release meaningless."""
    return tuple(each for each in release.bounds if of_columns(release, {each.column}) & release.meaningless)


def of_columns(release: Release, columns: Collection[Column]) -> frozenset[int]:
    """Return the aggregations, by place, of values of some columns, not only in their conditions."""
    clamps = {clamped(each.column, each.held) for each in release.bounds if each.column in columns}
    places = enumerate(release.query.plan.aggregations)
    return frozenset(
        place
        for place, each in places
        if each.kind.ranged and any(part in clamps for argument in each.arguments for part in walk(argument))
    )


def _is_found(bounds: ChosenBounds, rows: Rows) -> bool:
    """Return whether rows determined the bounds.

    With `rows_enough` rows few are clipped. With fewer rows the bounds must not be among those drawn without any rows:
    many rows have to outweigh their penalty, and not all may lie beyond them on one side. Narrow bounds away from 0 may
    then clip half of the rows on each side: they count only for a selection without a count of rows."""
    if rows.least >= bounds.rows_enough:
        return True
    if bounds.lowest or rows.most < bounds.rows_needed:
        return False
    return rows.least == -math.inf if bounds.free else rows.inside > 0


def _rows(release: Release, released: ReleasedValues, bounds: ChosenBounds) -> Rows:
    """Return the limits on rows from all aggregations of the clipped column."""
    told = [Rows(), *_told(release, released, bounds)]
    inside = [each.inside for each in told if each.inside < math.inf]
    return Rows(max(each.least for each in told), min(each.most for each in told), max(inside) if inside else math.inf)


def _told(release: Release, released: ReleasedValues, bounds: ChosenBounds) -> Iterator[Rows]:
    column = clamped(bounds.column, bounds.held)
    one, rows = release.sections[0]  # with grouping sets the first level: each has all rows
    values = released.values[:, rows]
    nullable = fact(bounds.column, known_of(release.query.plan.input)).nullable
    for aggregation, each in zip(release.query.plan.aggregations, one.estimates, strict=True):
        of_rows = aggregation.argument in (None, bounds.column, column) and aggregation.second is None
        if each.chosen is not None or aggregation.per_unit is not None or not of_rows:
            continue
        told = _of_estimate(one, each, values)
        if aggregation.argument is None and nullable:  # COUNT(*) includes NULLs, which were not searched
            told = Rows(most=told.most)
        # Hidden groups are unknown, and a unit may have several rows.
        yield told._replace(most=math.inf if release.hides else told.most * bounds.rows)


def _of_estimate(one: Release, each: Estimate, values: Floats) -> Rows:
    """Return the limits on rows from one aggregation."""
    if each.kind.distinct or not (each.kind.counts or each.kind.linear or each.count is not None):
        return Rows()
    count = None if each.count is None else _total(one, each, values, (0.0, 1.0))
    if each.kind.counts:
        return Rows() if count is None else Rows(*count)
    low, high = float(each.range.lower), float(each.range.upper)
    if each.kind.linear:
        return _of_sum(_total(one, each, values, (1.0, each.centre)), low, high)
    if count is None or each.sum is None or not low < high:
        return Rows() if count is None else Rows(*count)
    # Rows at the lower bound add 0 to the first of these, rows at the upper one 0 to the second.
    above = _total(one, each, values, (1.0, each.centre - low))[0] / (high - low)
    below = _total(one, each, values, (-1.0, high - each.centre))[0] / (high - low)
    return Rows(*count, min(above, below))


def _of_sum(total: tuple[float, float], low: float, high: float) -> Rows:
    """Return the limits on rows from a SUM of values between two ends; the most only if 0 is not between them."""
    least = max(total[0] / high if high > 0 else 0.0, total[1] / low if low < 0 else 0.0)
    if low > 0:
        return Rows(least, total[1] / low)
    return Rows(least, total[0] / high if high < 0 else math.inf)


def _total(one: Release, each: Estimate, values: Floats, weights: tuple[float, float]) -> tuple[float, float]:
    """Return the interval of a weighted sum and count over all groups together."""
    total, groups = np.zeros(values.shape[1]), values.shape[1]
    for place, weight in zip((each.sum, each.count), weights, strict=True):
        total += 0.0 if place is None else weight * values[place]
    half = float(half_widths(one, (each.sum, each.count), np.array(weights)[:, None], _LEVEL)[0]) * math.sqrt(groups)
    return float(total.sum()) - half, float(total.sum()) + half
