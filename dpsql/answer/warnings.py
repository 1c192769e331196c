"""Warnings for readers of an answer, from public facts and released values: they cost nothing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsql.answer.explanation_builder import of_one_level
from dpsql.core.loss import show
from dpsql.plan.expressions import Expr, IntervalEnd, Report, Slot, walk
from dpsql.plan.facts import fact, known_of
from dpsql.plan.nodes import scans_of
from dpsql.release.intervals.conditions import sources
from dpsql.release.intervals.intervals import has_interval, linear_half_widths
from dpsql.release.output.estimate import estimate
from dpsql.release.output.select import Answer
from dpsql.release.parts import Estimate
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import Type

Floats = NDArray[np.float64]

LARGE_EPSILON = Fraction(10)
LARGE_DELTA = Fraction(1, 1000)
LEVEL = 0.95
FEW = 30
"""An answer about fewer people gets a note."""
_MANY = 8


def warnings_of(release: Release, released: ReleasedValues, shown: NDArray[np.int64]) -> tuple[str, ...]:
    """Return short sentences, most important first; empty without warnings."""
    sentences = []
    if not release.cost.free and (release.cost.epsilon or release.allowed.pure) > LARGE_EPSILON:
        sentences.append("epsilon above 10 protects little: one person can change the odds of an answer e^10 times.")
    if large := _large_delta(release):
        sentences.append(large)
    if len(release.estimates) > _MANY:
        sentences.append(f"{len(release.estimates)} aggregates share one epsilon; fewer are more exact each.")
    if _drowned(release, released, shown):
        sentences.append("the noise is larger than some counts; use larger groups or more epsilon.")
    private = any(not scan.table.public for scan in scans_of(release.query.plan.input))
    if private and (few := _of_few(release, released, shown)):
        sentences.append(few)
    if _drowned(release, released, shown, sums=True):
        sentences.append("the noise is larger than some sums; use larger groups, narrower bounds or more epsilon.")
    if _has_durations(release) and (unit := release.once(_unit_note)):
        sentences.append(unit)
    return tuple(sentences)


def _has_durations(release: Release) -> bool:
    """Return whether the query reads a timestamp: otherwise no difference of timestamps occurs."""
    columns = (column for scan in scans_of(release.query.plan.input) for column in scan.table.columns)
    return any(column.type.temporal for column in columns)


def _unit_note(release: Release) -> str:
    from dpsql.answer.durations import unit_note  # few answers read times

    return unit_note(release.query)


def _large_delta(release: Release) -> str:
    """Warn of a large delta, the chance that the guarantee fails for somebody: it must be far below 1 / people."""
    delta = release.cost.delta
    known = max((scan.table.people or 0 for scan in scans_of(release.query.plan.input)), default=0)
    if known and delta * known > 1:
        return (
            f"delta {show(delta)} is above 1 divided by the {known:,} people of the table: the promise then allows "
            "to show the row of one of them."
        )
    if delta > LARGE_DELTA:
        return "delta above 1/1000: it should be far below 1 divided by the number of people."
    return ""


def _of_few(release: Release, released: ReleasedValues, shown: NDArray[np.int64]) -> str:
    """Return the note on groups that surely have rows, and probably fewer than `FEW` people."""
    if not released.groups or release.query.stages or len(release.sections) != 1:
        return ""
    counted = _counts_of_all_rows(release)
    for count, of_groups in release.once(_widths_of_counts):
        rows, half = released.values[count][shown], of_groups[shown] if len(of_groups) > 1 else of_groups
        if count in counted and bool(((rows > half) & (rows + half < FEW)).any()):
            groups = "some groups probably have" if release.query.plan.keys else "the answer probably covers"
            return f"{groups} fewer than {FEW} people; results for so few people are unreliable."
    return ""


def _counts_of_all_rows(release: Release) -> set[int | None]:
    """Return the features that count all rows or people of a group. Other counts may be small in large groups: of
    distinct values, of rows under FILTER, and of values that are not NULL."""
    pairs = zip(release.query.plan.aggregations, release.estimates, strict=True)
    known = known_of(release.query.plan.input)
    return {
        estimate.count
        for each, estimate in pairs
        if each.of_units or (each.kind.counts and not (each.argument and fact(each.argument, known).nullable))
    }


def unread_choices(release: Release, released: ReleasedValues, answer: Answer) -> tuple[str, ...]:
    """Warn that rows were chosen by noisy values in a way that the intervals do not account for."""
    if not answer.given.unread or not released.groups:
        return ()
    one = of_one_level(release)
    names = []
    for name, kind, expr in zip(answer.names, answer.types, answer.exprs, strict=True):
        if (
            expr is None
            or not kind.ordered_number
            or not answer.given.overlooks(one, sources(one, expr, lambda _column: None))
        ):
            continue
        told = any(isinstance(part, IntervalEnd | Report) for part in walk(expr))
        if told or has_interval(one, expr):
            names.append(name)
    if not names:
        return ()
    text = (
        f"a condition on noisy values chose these rows; intervals of {', '.join(names)} hold at their level over all "
        "groups, shown or not, and given that these are shown less often."
    )
    return (text,)


def too_large(answer: Answer) -> tuple[str, ...]:
    """Warn of numbers that were too large for a SELECT over an answer."""
    if not answer.too_large:
        return ()
    names = ", ".join(sorted(answer.too_large))
    return (f"some whole numbers of {names} are too large to compute with: what is made of them is NULL.",)


def without_interval(release: Release, answer: Answer) -> tuple[str, ...]:
    """Return the outputs that are computed from noisy values and have no interval. (Selected values have a line.)"""
    one, names = of_one_level(release), []
    for name, kind, expr in zip(answer.names, answer.types, answer.exprs, strict=True):
        silent = _in_words(expr) if kind is Type.TEXT else kind.ordered_number and not _speaks(one, expr)
        if name in answer.noisy and silent:
            names.append(name)
    return tuple(names)


def _in_words(expr: Expr | None) -> bool:
    """Return whether an expression is text made from noisy numbers, like HISTOGRAM, without intervals in it."""
    parts = [] if expr is None else list(walk(expr))
    told = any(isinstance(part, IntervalEnd | Report) for part in parts)
    return not told and any(isinstance(part, Slot) and part.type.numeric for part in parts)


def _speaks(one: Release, expr: Expr | None) -> bool:
    """Return whether there is an interval, or the value is the end of one, or only drawn values make it random."""
    if expr is None:
        return False
    told = any(isinstance(part, IntervalEnd | Report) for part in walk(expr))
    return told or has_interval(one, expr) or not sources(one, expr, lambda _column: None)


def _drowned(release: Release, released: ReleasedValues, shown: NDArray[np.int64], *, sums: bool = False) -> bool:
    """Return whether a count is smaller than its noise; with `sums`, a sum that cannot be negative. Only the shown
    groups count if levels were requested separately and may contain groups that nobody requested."""
    if not released.groups:
        return False
    rows: NDArray[np.int64] | slice = shown if release.query.plan.apart else slice(None)
    if not sums:
        widths = release.once(_widths_of_counts)
        return any(bool((np.abs(released.values[count]) < half)[rows].any()) for count, half in widths)
    totals = ((estimate(each, released.values), half) for each, half in release.once(_widths_of_sums))
    return any(bool((total.where_valid() & (total.values < half))[rows].any()) for total, half in totals)


def _widths_of_sums(release: Release) -> list[tuple[Estimate, Floats]]:
    """Return the sums that are never negative, with their half-widths in each group of the levels, or in any group."""
    groups = max(rows.stop or 1 for _, rows in release.sections)
    known = [each for place, each in enumerate(release.estimates) if place not in release.meaningless]
    sums = [each for each in known if each.kind.linear and each.sum is not None]
    return [(each, linear_half_widths(release, each, LEVEL, groups)) for each in sums if each.range.lower >= 0]


def _widths_of_counts(release: Release) -> list[tuple[int, Floats]]:
    """Return the features that are counts, with their half-widths in each group of the levels, or in any group."""
    groups = max(rows.stop or 1 for _, rows in release.sections)
    counts = {each.count: each for each in release.estimates if each.kind.counts}
    return [
        (place, linear_half_widths(release, each, 0.95, groups)) for place, each in counts.items() if place is not None
    ]
