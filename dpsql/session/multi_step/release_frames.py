"""Rows of a release, as read by post-processing SQL."""

from __future__ import annotations

import numpy as np

from dpsql.plan.query_plan import ReleasePlan
from dpsql.postprocess.frames import Frame
from dpsql.release.output.select import Answer, Places, finish
from dpsql.release.release import Release, ReleasedValues


def frame_of(step: ReleasePlan, release: Release, released: ReleasedValues, answer: Answer | None = None) -> Frame:
    """Return the rows of a release, as read by post-processing SQL. answer: the result of its finish, if known."""
    return frame_and_groups(step, release, released, answer)[0]


def frame_and_groups(
    step: ReleasePlan, release: Release, released: ReleasedValues, answer: Answer | None = None
) -> tuple[Frame, Places]:
    """Return the rows, and the index of each row's released group."""
    with np.errstate(all="ignore"):
        answer = finish(release, released) if answer is None else answer
    vectors = tuple(answer.vectors[each.output] for each in step.columns)
    names, types = tuple(each.name for each in step.columns), tuple(each.type for each in step.columns)
    return Frame(names, types, vectors), answer.groups
