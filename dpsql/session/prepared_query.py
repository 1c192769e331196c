"""A prepared query: its releases, and the post-processing over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dpsql.answer.result import Result, result_of
from dpsql.core.cost import FREE, Cost
from dpsql.core.loss import Allowance
from dpsql.release.found_bounds import judged
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.frozen import dataclass

if TYPE_CHECKING:
    from dpsql.answer.explain import Explanation
    from dpsql.executors.pandas.columns.declared_columns import ColumnStore
    from dpsql.plan.query_plan import QueryPlan
    from dpsql.session.multi_step.postprocess_plan import PostprocessPlan
    from dpsql.session.multi_step.prior_releases import PriorReleases
    from dpsql.sql.names.catalog import PublicValues


def cost_in_words(releases: Sequence[Release]) -> str:
    """Return the total cost of releases in words, as rho if the caller asked by rho."""
    cost = sum((each.cost for each in releases), FREE)
    by_rho = any(each.allowed.rho is not None and each.cost.rho for each in releases)
    return str(Allowance(None, cost.delta, cost.rho)) if by_rho else str(cost)


@dataclass(frozen=True)
class PreparedQuery:
    """Releases, in order of need, and the post-processing over them.

    Attributes
    ----------
    releases : tuple of Release
        Different releases, each after those that it reads.
    explain_only : bool
        Whether the text began with EXPLAIN PRIVACY.
    postprocess : PostprocessPlan or None
        SQL over the releases. None where the answer is that of one release.
    intervals : QueryPlan or None
        For one release with SELECTs over its answer: these as SQL, from which intervals are simulated.
    """

    releases: tuple[Release, ...]
    explain_only: bool
    postprocess: PostprocessPlan | None = None
    intervals: QueryPlan | None = None

    @property
    def dry_runs(self) -> tuple[Release, ...]:
        """Releases that are run on synthetic rows before they are paid for."""
        return self.releases if self.postprocess is None else self.postprocess.dry_runs

    @property
    def cost(self) -> Cost:
        """Total cost of all releases."""
        return sum((each.cost for each in self.releases), FREE)

    @property
    def reads_prior_releases(self) -> bool:
        """True if a release reads the answers of prior ones."""
        return self.postprocess is not None and self.postprocess.reads_prior_releases

    def needs(self, place: int) -> frozenset[int]:
        """Return the indices of the releases that this one reads."""
        return frozenset() if self.postprocess is None else self.postprocess.needs(place)

    def prior(
        self, place: int, released: Mapping[int, ReleasedValues], public: Mapping[str, ColumnStore]
    ) -> PriorReleases | None:
        """Return the answers of prior releases that a release reads, or None.

        public: the stores of public tables, by folded name. Raises PostprocessFailed, which holds the answers.
        """
        if self.postprocess is None:
            return None
        return self.postprocess.prior(self.releases, place, released, public)

    def answers(self, released: Mapping[int, ReleasedValues]) -> tuple[Result, ...]:
        """Return the answers of the releases that were run."""
        if self.postprocess is not None:
            return self.postprocess.answers(released)
        return tuple(result_of(judged(self.releases[at], each), each, "") for at, each in released.items())

    @property
    def explanation(self) -> Explanation:
        """Explanation of the query: releases, noise and cost."""
        if self.postprocess is not None:
            return self.postprocess.explanation(self.releases)
        from dpsql.answer.explain import Explanation  # most calls need no explanation

        return Explanation(self.releases[0])

    def result(
        self,
        released: Sequence[ReleasedValues],
        footer: str,
        *,
        notes: tuple[str, ...] = (),
        replayed: bool = False,
        public: PublicValues | None = None,
        again: str = "Ask again with other SQL over them: it is free.",
    ) -> Result:
        """Return the answer, from the released values of every release.

        public: public tables, which intervals of post-processing may need. again: advice if the post-processing fails.
        Raises PostprocessFailed, which holds the answers of the releases.
        """
        if self.postprocess is not None:
            from dpsql.session.multi_step.postprocess_results import (
                multi_step_result,  # most queries have one release
            )

            return multi_step_result(
                self.releases, self.postprocess, released, footer, notes=notes, replayed=replayed, again=again
            )
        (release,), (values,) = self.releases, released
        settled = judged(release, values)
        result = result_of(settled, values, footer, notes=notes, replayed=replayed)
        if self.intervals is None:
            return result
        from dpsql.session.multi_step.postprocess_results import (
            with_intervals,  # most queries have no SELECT over an answer
        )

        return with_intervals(result, settled, values, self.intervals, public)
