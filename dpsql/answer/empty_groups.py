"""Notes on values of groups that may be empty: an average without rows is the middle of its bounds, and a selected
value without rows is random."""

from __future__ import annotations

import numpy as np

from dpsql.plan.expressions import Slot, walk
from dpsql.plan.facts import fact, known_of
from dpsql.plan.nodes import Scan
from dpsql.release.intervals.averages import unsure_rows
from dpsql.release.output.select import Answer
from dpsql.release.release import Release, ReleasedValues


def empty_groups_notes(release: Release, released: ReleasedValues, answer: Answer) -> tuple[str, ...]:
    """Name the averages and the selected values of possibly empty groups, judged by noisy counts and the query."""
    first = len(release.query.plan.keys)
    averages, choices = [], []
    for output in release.query.finish.outputs:
        places = [part.index - first for part in walk(output.expr) if isinstance(part, Slot) and part.index >= first]
        if any(_is_doubtful_average(release, released, answer, place) for place in places):
            averages.append(output.name)
        if any(_is_doubtful_choice(release, released, answer, place) for place in places):
            choices.append(output.name)
    notes = []
    if averages:
        text = "some groups may be empty. If so, their averages are" if first else "there may be no rows. If so, it is"
        notes.append(f"{', '.join(averages)}: {text} meaningless.")
    if choices:
        text = "some groups may have no values. If so, theirs are" if first else "there may be no values. If so, it is"
        notes.append(f"{', '.join(choices)}: {text} drawn at random.")
    return tuple(notes)


def _is_doubtful_average(release: Release, released: ReleasedValues, answer: Answer, place: int) -> bool:
    """Return whether some shown group of an average may have no rows."""
    each = release.estimates[place]
    return (
        place not in release.meaningless
        and each.kind.averages
        and each.sum is not None
        and _has_doubtful_count(release, released, answer, place)
    )


def _is_doubtful_choice(release: Release, released: ReleasedValues, answer: Answer, place: int) -> bool:
    """Return whether some shown group of a median, an extreme or a mode may have no rows, by the noisy count of the
    same rows. Without such a count, only the query text decides."""
    aggregations = release.query.plan.aggregations
    chosen = aggregations[place].argument
    if release.estimates[place].chosen is None or not release.exact.every_cell or chosen is None:
        return False
    nullable = fact(chosen, known_of(release.query.plan.input)).nullable
    for other, each in enumerate(aggregations):
        of_all = each.kind.counts and each.argument is None and not nullable
        if of_all or (each.argument == chosen and (each.kind.counts or each.kind.averages)):
            return _has_doubtful_count(release, released, answer, other)
    return bool(release.query.plan.keys) or not isinstance(release.query.plan.input, Scan)


def _has_doubtful_count(release: Release, released: ReleasedValues, answer: Answer, place: int) -> bool:
    """Return whether, in some shown group, the noisy count of an aggregate does not rule out that there are no rows."""
    if release.estimates[place].count is None or not released.groups:
        return False
    shown = np.ones(released.groups, dtype=bool)
    if not release.query.stages:
        shown[:] = False
        shown[answer.groups] = True
    return any(
        bool((unsure_rows(one, place, released.at(rows).values) & shown[rows]).any()) for one, rows in release.sections
    )
