"""Post-processing of a multi-step query: SQL over released values and public tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dpsql.answer.multi_step import MultiStepExplanation
from dpsql.answer.result import Result, result_of
from dpsql.plan.query_plan import Postprocess, ReleasePlan, handed
from dpsql.postprocess.database import Statement, run
from dpsql.postprocess.frames import Frame, no_rows
from dpsql.release.found_bounds import judged
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.frozen import dataclass
from dpsql.session.multi_step.release_frames import frame_of

if TYPE_CHECKING:
    from dpsql.executors.pandas.columns.declared_columns import ColumnStore
    from dpsql.session.multi_step.prior_releases import PriorReleases


@dataclass(frozen=True)
class PostprocessPlan:
    """Post-processing of a query, bound over answers without rows.

    `places`: for each release of the query plan, the index of the calibrated release that answers it; `finishes`: that
    release with the outputs of the query plan's.
    """

    plans: tuple[ReleasePlan, ...]
    postprocess: Postprocess
    places: tuple[int, ...]
    finishes: tuple[Release, ...]
    statement: Statement
    public: Mapping[str, Frame]
    firsts: tuple[ReleasePlan, ...]
    """For each release, the step that it was planned for."""
    inputs: tuple[tuple[Statement, ...], ...]
    """For each release, the bound SQL over prior releases, as in its step's `inputs`."""
    merged: tuple[int, ...]
    """For each release, the number of steps that it answers."""

    @property
    def dry_runs(self) -> tuple[Release, ...]:
        """The releases with the outputs of each step."""
        return tuple({id(each): each for each in self.finishes}.values())

    @property
    def reads_prior_releases(self) -> bool:
        """True if a release reads the answers of prior ones."""
        return any(self.inputs)

    def needs(self, place: int) -> frozenset[int]:
        """Return the indices of the releases that this one reads."""
        names = {name for each in self.firsts[place].inputs for name in each.reads}
        pairs = zip(self.plans, self.places, strict=True)
        return frozenset(at for step, at in pairs if step.relation in names)

    def prior(
        self,
        releases: Sequence[Release],
        place: int,
        released: Mapping[int, ReleasedValues],
        public: Mapping[str, ColumnStore],
    ) -> PriorReleases | None:
        """As `PreparedQuery.prior`."""
        inputs, release = self.firsts[place].inputs, releases[place]
        if not inputs:
            return None
        from dpsql.session.multi_step.prior_releases import seen  # most statements have none

        frames = dict(self.public)
        for at, step, finish in zip(self.places, self.plans, self.finishes, strict=True):
            if at in self.needs(place):
                frames[step.relation] = frame_of(step, judged(finish, released[at]), released[at])
        rows = []
        for each, statement in zip(inputs, self.inputs[place], strict=True):
            known = {header.name: frames.get(header.name, no_rows(header)) for header in statement.relations}
            rows.append(run(statement, known, handed(each.parameters)))
        return seen(inputs, rows, release.query.plan.input, release.query.plan.keys, public)

    def answers(self, released: Mapping[int, ReleasedValues]) -> tuple[Result, ...]:
        """Return the answers of the releases that were run."""
        answers: list[Result] = []
        for place, release in zip(self.places, self.finishes, strict=True):
            if place in released:
                answers.append(result_of(judged(release, released[place]), released[place], ""))
        return tuple(answers)

    def explanation(self, releases: tuple[Release, ...]) -> MultiStepExplanation:
        """Return the explanation of all releases together."""
        reads = tuple(
            tuple((self._last(each.reads), each.written) for each in step.inputs) if step.inputs else ()
            for step in self.firsts
        )
        given = reads if self.reads_prior_releases else ()
        return MultiStepExplanation(
            releases[0], _releases=releases, _sql=self.postprocess.sql, _inputs=given, _merges=self.merged
        )

    def _last(self, names: Sequence[str]) -> int:
        """Return the number of the last of the named releases; 0 if there is none."""
        pairs = zip(self.plans, self.places, strict=True)
        return max((place + 1 for step, place in pairs if step.relation in names), default=0)
