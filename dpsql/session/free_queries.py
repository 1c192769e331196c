"""Free questions to a session: how a query would be answered, what it would cost, and how often."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.parallel import parts_of
from dpsql.errors import InvalidSchema, PostprocessFailed
from dpsql.executors.base import Store
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.argument_names import checked_methods
from dpsql.session.cache.cached_answers import Question, Replay
from dpsql.session.costs import Quote
from dpsql.session.tables.file_versions import Contents, check_unchanged, parts_reached
from dpsql.session.tables.public_tables import stores_of
from dpsql.session.tables.table_states import TableStates
from dpsql.sql.names.catalog import Catalog

if TYPE_CHECKING:
    from dpsql.answer.explain import Explanation
    from dpsql.schema.argument_types import Scalars
    from dpsql.session.multi_step.prior_releases import PriorReleases
    from dpsql.session.prepared_query import PreparedQuery
    from dpsql.session.run import OpenTables


@checked_methods
class SessionEstimates(ABC):
    """The free half of a Session. No row is read, and nothing is charged."""

    _ledger: Ledger
    _replay: Replay
    _catalog: Catalog
    _contents: Contents
    _stores: dict[str, Store]
    _read_once: Mapping[str, object] = {}

    @abstractmethod
    def _prepare(self, sql: str, asked: tuple[float | None, ...], **how: Any) -> PreparedQuery:
        """Return a prepared query, or refuse it."""

    def _state(self, opened: OpenTables | None = None) -> TableStates:
        """Return the tables' current states; for tables opened for a query, the states at that time."""
        stamps = {} if opened is None else opened.stamps
        return TableStates(self._catalog.tables, self._stores, self._read_once, stamps)

    def _parts(self, release: Release, opened: OpenTables | None = None) -> tuple[Part, ...]:
        """Return the parts of declared partitions that a query reads."""
        return parts_of(release.query.plan.input, self._state(opened).of_session(self._replay.session))

    def explain(
        self,
        sql: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        params: Scalars | None = None,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: float | None = None,
        confidence: float | None = None,
        dialect: str | None = None,
    ) -> Explanation:
        """Return the explanation of what `query` would do and cost. Free; reads no row. Parameters as for `query`.

        Raises
        ------
        QueryRefused, InvalidPrivacyParameter, InvalidArgument
            As `query`, except for the budget.
        """
        terms = (epsilon, delta, rho, error, confidence)
        prepared = self._prepare(sql, terms, params=params, strategy=strategy, mechanism=mechanism, dialect=dialect)
        return self._explanation(prepared)

    def quote(
        self,
        sql: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        params: Scalars | None = None,
        fresh: bool = False,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: float | None = None,
        confidence: float | None = None,
        dialect: str | None = None,
    ) -> Quote:
        """Return the cost of `query` now, and whether the budget admits it. Free. Parameters as for `query`, errors as
        for `explain`."""
        terms = (epsilon, delta, rho, error, confidence)
        prepared = self._prepare(sql, terms, params=params, strategy=strategy, mechanism=mechanism, dialect=dialect)
        return self._quote(prepared, self._ledger, fresh=fresh)

    def quotes(
        self,
        queries: Iterable[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        params: Scalars | None = None,
        dialect: str | None = None,
    ) -> Iterator[Quote]:
        """Yield the cost of each query, as if charged in this order; repeated queries are free. Free. Stops after the
        first query that the budget does not admit.

        Parameters
        ----------
        queries : iterable of str
            Texts of the queries. Other parameters as for `query`.

        Yields
        ------
        Quote
            Raises as `explain`, at the refused query.
        """
        terms = {"epsilon": epsilon, "delta": delta, "rho": rho, "params": params, "dialect": dialect}
        return self._in_turn({"sql": sql, **terms} for sql in queries)

    def _in_turn(self, queries: Iterable[Mapping[str, Any]]) -> Iterator[Quote]:
        """As `quotes`, for queries with separate terms."""
        trial, asked = self._ledger.trial(), set[str]()
        for terms in queries:
            sql: str = terms["sql"]
            numbers = (terms.get(each) for each in ("epsilon", "delta", "rho", "error", "confidence"))
            how = {word: terms[word] for word in ("strategy", "mechanism", "dialect") if word in terms}
            prepared = self._prepare(sql, tuple(numbers), params=terms.get("params"), **how)
            quote = self._quote(prepared, trial, asked=asked)
            yield quote
            if not quote.admitted:
                return
            if not quote.cost.free:
                trial.charge(quote.cost, sql, parts=self._parts_of(prepared.releases))
            asked |= {each.key for each in quote.questions}

    def _quote(
        self, prepared: PreparedQuery, ledger: Ledger, *, fresh: bool = False, asked: Collection[str] = ()
    ) -> Quote:
        """Return a query's cost in a ledger. asked: keys of queries that will have been answered by then."""
        releases = () if prepared.explain_only else prepared.releases
        questions, answers = ([], []) if prepared.explain_only else self._asked(prepared, fresh=fresh)
        due: list[Release] = []
        places: list[int] = []
        for place, known in enumerate(answers):
            question = questions[place]
            if known is None and (fresh or question is None or question.key not in asked):
                due.append(releases[place])
                places.append(place)
        again = not due and not prepared.explain_only
        free, parts = not due, self._parts_of(due or prepared.releases)
        cost = self._with_time(sum((each.cost for each in due), FREE))
        coin = replace(cost, delta=Fraction(0), hidden=Fraction(0))
        return Quote(
            cost,
            ledger.after(FREE, parts) or ledger.remaining,
            admitted=free or ledger.after(cost, parts) is not None,
            most=None if free else ledger.most(coin, parts),
            most_whole=None if free else ledger.most(cost, parts),
            conversion=ledger.budget.filter(ledger.rules.accountant).conversion,
            replayed=again,
            questions=tuple(each for each in questions if each is not None),
            due=tuple(places),
        )

    def _known(
        self, releases: Sequence[Release], questions: Sequence[Question | None], *, fresh: bool
    ) -> list[ReleasedValues | None]:
        """Return the earlier answers of a statement's releases."""
        if fresh:
            return [None] * len(releases)
        return [self._replay.recall(*each) for each in zip(questions, releases, strict=True)]

    def _asked(
        self, prepared: PreparedQuery, *, fresh: bool
    ) -> tuple[list[Question | None], list[ReleasedValues | None]]:
        """Return the questions of a statement's releases, and their earlier answers. A release that reads prior
        releases gets its question once these are known; until then it counts as new."""
        questions = self._questions(prepared)
        answers = self._known(prepared.releases, questions, fresh=fresh)
        if fresh or not prepared.reads_prior_releases:
            return questions, answers
        for place, release in enumerate(prepared.releases):
            needs = prepared.needs(place)
            known = {at: answer for at in needs if (answer := answers[at]) is not None}
            if not needs or answers[place] is not None or len(known) < len(needs):
                continue
            try:
                seen = prepared.prior(place, known, stores_of(self._catalog.public))
            except PostprocessFailed:  # the user is told before anything is charged
                continue
            questions[place] = self._question(release, seen)
            answers[place] = self._recalled(questions[place], release)
        return questions, answers

    def _questions(self, prepared: PreparedQuery) -> list[Question | None]:
        """Return the questions of a statement's releases before any answer is known. A release that reads prior
        releases gets one from its plan, under which no answer is ever stored."""
        if not prepared.reads_prior_releases:
            return [self._question(each) for each in prepared.releases]
        return [
            self._question(each, more=("what is shown before",) if prepared.needs(place) else ())
            for place, each in enumerate(prepared.releases)
        ]

    def _recalled(self, question: Question | None, release: Release) -> ReleasedValues | None:
        """Return a release's earlier answer, once the prior releases that it reads are known."""
        return self._replay.recall(question, release)

    def _question(
        self,
        release: Release,
        seen: PriorReleases | None = None,
        more: tuple[str, ...] = (),
        opened: OpenTables | None = None,
    ) -> Question | None:
        """Return a release's question, including the prior releases that it reads. Raises InvalidSchema if files have
        changed that must stay as they are."""
        check_unchanged(release, self._contents)
        parts = parts_reached(release, self._contents)
        parts = (*parts, *(() if seen is None else seen.asked), *more)
        return self._replay.question(release, self._catalog.tables, parts, self._state(opened))

    def _check_same(
        self, releases: Sequence[Release], questions: Sequence[Question | None], opened: OpenTables
    ) -> None:
        """Raise InvalidSchema, before anything is charged, if the opened tables have changed since their answers were
        looked up."""
        for release, question in zip(releases, questions, strict=True):
            check_unchanged(release, self._contents)
            state = self._state(opened)
            changed = [] if question is None else [name for name, at in question.states if state(name) != at]
            if changed:
                raise InvalidSchema(
                    f"{changed[0]} changed while it was opened. Nothing was charged.", hint="Ask again."
                )

    def _parts_of(self, releases: Sequence[Release], opened: OpenTables | None = None) -> tuple[Part, ...]:
        """Return the parts that all releases of a statement read together."""
        if len(releases) == 1:
            return self._parts(releases[0], opened)
        from dpsql.session.multi_step.run import parts_together  # most queries have one step

        return parts_together([self._parts(each, opened) for each in releases])

    def remaining_queries(
        self,
        sql: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        params: Scalars | None = None,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: float | None = None,
        confidence: float | None = None,
        dialect: str | None = None,
    ) -> int | float:
        """Return how many more queries of this cost the budget admits, each with new noise; `math.inf` for a free
        query. Free. Parameters as for `query`, errors as for `explain`."""
        terms = (epsilon, delta, rho, error, confidence)
        prepared = self._prepare(sql, terms, params=params, strategy=strategy, mechanism=mechanism, dialect=dialect)
        cost = self._with_time(prepared.cost)
        most = self._ledger.most(cost, self._parts_of(prepared.releases))
        return math.inf if most is None else most

    def _with_time(self, cost: Cost) -> Cost:
        """Return the cost including the response time of the answer."""
        return cost if cost.free else cost + self._ledger.time_cost

    def _explanation(self, prepared: PreparedQuery) -> Explanation:
        cost = self._with_time(prepared.cost)
        left = self._ledger.after(cost, self._parts_of(prepared.releases))
        return replace(prepared.explanation, left=left)
