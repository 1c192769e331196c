"""The rows of a release as SQL above reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsql.plan.program import Step
from dpsql.postprocess.frames import Frame
from dpsql.release.finish import Places, finish, slot_vectors
from dpsql.release.release import Release, Released


def frame_of(step: Step, release: Release, released: Released) -> Frame:
    """The rows of a release as SQL above reads them."""
    return frame_and_groups(step, release, released)[0]


def frame_and_groups(step: Step, release: Release, released: Released) -> tuple[Frame, Places]:
    """The rows, and which released group each is."""
    with np.errstate(all="ignore"):
        answer = finish(release, released)
        slots = slot_vectors(release, released)
    vectors = []
    for column in step.columns:
        if column.unrounded:
            slot: Any = release.query.finish.outputs[column.output].expr
            vectors.append(slots[slot.index].at(answer.groups))
        else:
            vectors.append(answer.vectors[column.output])
    names, types = tuple(each.name for each in step.columns), tuple(each.type for each in step.columns)
    return Frame(names, types, tuple(vectors)), answer.groups
