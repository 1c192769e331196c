"""The rows of a release as SQL above reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsql.plan.program import Step
from dpsql.postprocess.frames import Frame
from dpsql.release.finish import Answer, Places, finish, slot_vectors
from dpsql.release.release import Release, Released


def frame_of(step: Step, release: Release, released: Released, answer: Answer | None = None) -> Frame:
    """The rows of a release as SQL above reads them. answer: what its finish has made, where that is known."""
    return frame_and_groups(step, release, released, answer)[0]


def frame_and_groups(
    step: Step, release: Release, released: Released, answer: Answer | None = None
) -> tuple[Frame, Places]:
    """The rows, and which released group each is."""
    with np.errstate(all="ignore"):
        answer = finish(release, released) if answer is None else answer
        slots = slot_vectors(release, released) if any(each.unrounded for each in step.columns) else ()
    vectors = []
    for column in step.columns:
        if column.unrounded:
            slot: Any = release.query.finish.outputs[column.output].expr
            vectors.append(slots[slot.index].at(answer.groups))
        else:
            vectors.append(answer.vectors[column.output])
    names, types = tuple(each.name for each in step.columns), tuple(each.type for each in step.columns)
    return Frame(names, types, tuple(vectors)), answer.groups
