"""The rows of a release as SQL above reads them."""

from __future__ import annotations

import numpy as np

from dpsql.plan.program import Step
from dpsql.postprocess.frames import Frame
from dpsql.release.output.select import Answer, Places, finish
from dpsql.release.release import Release, ReleasedValues


def frame_of(step: Step, release: Release, released: ReleasedValues, answer: Answer | None = None) -> Frame:
    """The rows of a release as SQL above reads them. answer: what its finish has made, where that is known."""
    return frame_and_groups(step, release, released, answer)[0]


def frame_and_groups(
    step: Step, release: Release, released: ReleasedValues, answer: Answer | None = None
) -> tuple[Frame, Places]:
    """The rows, and which released group each is."""
    with np.errstate(all="ignore"):
        answer = finish(release, released) if answer is None else answer
    vectors = tuple(answer.vectors[each.output] for each in step.columns)
    names, types = tuple(each.name for each in step.columns), tuple(each.type for each in step.columns)
    return Frame(names, types, vectors), answer.groups
