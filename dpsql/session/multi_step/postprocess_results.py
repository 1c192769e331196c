"""Answers of queries with post-processing, computed from released values and public tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from dpsql.answer.computed_result import StagedResult
from dpsql.answer.multi_step import MultiStepResult
from dpsql.answer.result import Result, result_of
from dpsql.errors import PostprocessFailed
from dpsql.plan.query_plan import Postprocess, QueryPlan, handed
from dpsql.postprocess.database import run
from dpsql.postprocess.frames import Frame
from dpsql.release.found_bounds import judged
from dpsql.release.output.select import Answer
from dpsql.release.release import Release, ReleasedValues
from dpsql.session.multi_step.postprocess_plan import PostprocessPlan
from dpsql.session.multi_step.release_frames import frame_of
from dpsql.session.multi_step.simulated_intervals import PostprocessRows, ReleaseRows
from dpsql.session.tables.public_data import PublicData
from dpsql.sql.names.catalog import PublicValues


def public_frames(postprocess: Postprocess, public: PublicValues | None) -> dict[str, Frame]:
    """Return the rows of the public tables that post-processing SQL reads."""
    data = public if isinstance(public, PublicData) else PublicData({})
    return {name: data.frame(schema) for name, schema in postprocess.public}


def with_intervals(
    result: Result, settled: Release, released: ReleasedValues, plan: QueryPlan, public: PublicValues | None
) -> StagedResult:
    """Return the answer of SELECTs over one release, with what simulates intervals of their computed values."""
    (step,) = plan.releases
    postprocess = plan.postprocess
    assert postprocess is not None  # by `postprocess_of`
    plain = replace(settled, query=replace(settled.query, stages=()))
    drawn = ReleaseRows(step, result_of(plain, released, ""), frame_of(step, plain, released))
    answer = result._answer
    rows = Frame(answer.names, answer.types, answer.vectors)
    above = PostprocessRows(
        postprocess, (drawn,), public_frames(postprocess, public), handed(postprocess.parameters), rows
    )
    shown = {each.name: getattr(result, each.name) for each in fields(result)}
    return StagedResult(**shown, _computed=above)


def _noisy(postprocess: Postprocess, names: Sequence[str]) -> frozenset[str]:
    """Return the columns known to have noise."""
    again = postprocess.redrawn
    if again is None:
        return frozenset()
    return frozenset(name for name, noise in zip(names, again.columns, strict=True) if not noise.known)


def multi_step_result(
    releases: tuple[Release, ...],
    plan: PostprocessPlan,
    released: Sequence[ReleasedValues],
    footer: str,
    *,
    notes: tuple[str, ...],
    replayed: bool,
    again: str,
) -> MultiStepResult:
    """Return the answer of a multi-step query from the values of its releases. Raises PostprocessFailed, which holds
    their answers."""
    answers: list[Result] = []
    drawn: list[ReleaseRows] = []
    for place, step, release in zip(plan.places, plan.plans, plan.finishes, strict=True):
        settled = judged(release, released[place])
        answers.append(result_of(settled, released[place], footer, replayed=replayed))
        drawn.append(ReleaseRows(step, answers[-1], frame_of(step, settled, released[place], answers[-1]._answer)))
    frames = {**plan.public, **{each.step.relation: each.frame for each in drawn}}
    try:
        rows = run(plan.statement, frames, handed(plan.postprocess.parameters))
    except PostprocessFailed as error:
        raise error.with_answers(tuple(answers), again) from None
    whole = Answer(
        rows.names,
        rows.types,
        rows.vectors,
        np.arange(len(rows)),
        (None,) * len(rows.names),
        noisy=_noisy(plan.postprocess, rows.names),
    )
    first = answers[0]
    return MultiStepResult(
        whole,
        first._release,
        first._released,
        footer,
        notes,
        replayed,
        answers=tuple(answers),
        _explained=plan.explanation(releases),
        _computed=PostprocessRows(
            plan.postprocess, tuple(drawn), plan.public, handed(plan.postprocess.parameters), rows
        ),
    )
