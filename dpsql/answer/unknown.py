"""Averages and medians that the noise leaves entirely open: they print as `unknown`.

An average of a group that may be empty is the middle of its bounds, and its interval is the whole declared range. The
number without its interval would mislead. Post-processing: the intervals and noisy counts are released.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from dpsql.answer.explanation_builder import LEVEL
from dpsql.plan.expressions import Expr, Slot, columns
from dpsql.plan.facts import fact, known_of
from dpsql.release.bounds.auto_bounds import clamped
from dpsql.release.choices import Draw
from dpsql.release.intervals.intervals import Bounds
from dpsql.release.output.select import Answer
from dpsql.release.parts import Estimate
from dpsql.release.release import Release, ReleasedValues

Bools = NDArray[np.bool_]
Ranges = Mapping[str, tuple[float, float]]


def ranges_of_averages(release: Release, answer: Answer) -> dict[str, tuple[float, float]]:
    """Return the declared ranges of the outputs that are averages."""
    ranges = {}
    for name, expr in zip(answer.names, answer.exprs, strict=True):
        each = _estimate(release, expr)
        if each is not None and each.kind.averages and each.sum is not None:
            ranges[name] = (float(each.range.lower), float(each.range.upper))
    return ranges


def unknown_averages(ranges: Ranges, bounds: Mapping[str, Bounds]) -> dict[str, Bools]:
    """Return the rows of averages whose interval is their whole range, by output; only outputs that have some."""
    marks = {}
    for name, (low, high) in ranges.items():
        if name in bounds and low < high:
            marks[name] = np.asarray(
                (bounds[name][0] <= low) & (bounds[name][1] >= high) & np.isfinite(bounds[name][0].astype(np.float64))
            )
    return {name: rows for name, rows in marks.items() if rows.any()}


def unknown_medians(release: Release, released: ReleasedValues, answer: Answer) -> dict[str, Bools]:
    """Return the rows of medians and quantiles whose rank error is at least the noisy number of rows, by output."""
    marks = {}
    for name, expr in zip(answer.names, answer.exprs, strict=True):
        each = _estimate(release, expr)
        draw = None if each is None else _draw_of(release, each)
        counts = None if draw is None else _counts(release, released, expr)
        if draw is not None and counts is not None:
            marks[name] = np.asarray(counts[answer.groups] <= draw.rows_off(LEVEL))
    return {name: rows for name, rows in marks.items() if rows.any()}


def unknown_line(release: Release, answer: Answer, unknown: Mapping[str, Bools]) -> str:
    """Explain `unknown`, and how to leave out unknown groups of NULL; "" if nothing is unknown."""
    if not unknown:
        return ""
    rows = np.logical_or.reduce(list(unknown.values()))
    text = f"unknown: the noise leaves {', '.join(unknown)} open between its bounds (the estimate is in .df)"
    nullable = dict.fromkeys(_columns_of_null_groups(release, answer, rows))
    if not nullable:
        return text
    where = " AND ".join(f"{name} IS NOT NULL" for name in nullable)
    declared = ", ".join(f'"{name}": False' for name in nullable)
    return f"{text}. To leave out the group of NULL, write WHERE {where}, or declare nullable={{{declared}}}."


def _columns_of_null_groups(release: Release, answer: Answer, rows: Bools) -> Iterator[str]:
    """Yield the nullable columns in keys that are NULL in some of these rows."""
    known = known_of(release.query.plan.input)
    for vector, expr in zip(answer.vectors, answer.exprs, strict=True):
        if not isinstance(expr, Slot) or not 0 <= expr.index < len(release.query.plan.keys):
            continue
        if (rows & ~vector.where_valid()).any():
            key = release.query.plan.keys[expr.index].expr
            yield from (each.name for each in columns(key) if fact(each, known).nullable)


def _estimate(release: Release, expr: Expr | None) -> Estimate | None:
    """Return the aggregate that an output is, if any."""
    place = expr.index - len(release.query.plan.keys) if isinstance(expr, Slot) else -1
    return (
        release.estimates[place] if 0 <= place < len(release.estimates) and place not in release.meaningless else None
    )


def _draw_of(release: Release, each: Estimate) -> Draw | None:
    """Return the draw of a quantile; None for extremes and other aggregates."""
    if each.chosen is None or not each.kind.ranked:
        return None
    draws = (draw for draw in release.draws if each.chosen is not None and each.chosen.place in draw.places)
    return next((draw for draw in draws if draw.kind.end is None), None)


def _counts(release: Release, released: ReleasedValues, expr: Expr | None) -> NDArray[np.float64] | None:
    """Return a noisy count, by group, of all rows or of the rows that a value is selected from."""
    assert isinstance(expr, Slot)  # it has an estimate
    aggregations = release.query.plan.aggregations
    chosen = aggregations[expr.index - len(release.query.plan.keys)].argument
    same = {None, chosen, *(each.column for each in release.bounds if clamped(each.column, each.held) == chosen)}
    for each, estimate in zip(aggregations, release.estimates, strict=True):
        if each.kind.counts and not each.kind.distinct and each.argument in same and estimate.count is not None:
            counts: NDArray[np.float64] = released.values[estimate.count]
            return counts
    return None
