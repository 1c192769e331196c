"""What may be asked of a session for nothing: how a query would be answered, what it would cost, how often."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpsql.answer.explain import Explanation
from dpsql.core.cost import FREE
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.ledger import Ledger
from dpsql.release.release import Release
from dpsql.session.contents import Contents, check_unchanged, parts_reached
from dpsql.session.prepare import Prepared
from dpsql.session.quote import Quote
from dpsql.session.replay import Replay
from dpsql.sql.catalog import Catalog


class FreeQuestions(ABC):
    """The free half of a Session. No row is read, and nothing is charged."""

    _ledger: Ledger
    _replay: Replay
    _catalog: Catalog
    _contents: Contents

    @abstractmethod
    def _prepare(self, sql: str, asked: tuple[float | None, ...], **how: Any) -> Prepared:
        """A query made ready, or refused."""

    @abstractmethod
    def _parts(self, release: Release) -> tuple[Part, ...]:
        """The parts of declared partitions that a query reads."""

    def explain(
        self,
        sql: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        params: Mapping[str, Any] | None = None,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: float | None = None,
        confidence: float | None = None,
    ) -> Explanation:
        """What `query` would do and cost. Free; reads no row; refuses what `query` would refuse, save for the
        budget."""
        terms = (epsilon, delta, rho, error, confidence)
        prepared = self._prepare(sql, terms, params=params, strategy=strategy, mechanism=mechanism)
        return self._explanation(prepared)

    def quote(
        self,
        sql: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        params: Mapping[str, Any] | None = None,
        fresh: bool = False,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: float | None = None,
        confidence: float | None = None,
    ) -> Quote:
        """What `query` would be charged now, and whether the budget admits it; free. Raises what `explain` raises."""
        terms = (epsilon, delta, rho, error, confidence)
        prepared = self._prepare(sql, terms, params=params, strategy=strategy, mechanism=mechanism)
        return self._quote(prepared, self._ledger, fresh=fresh)

    def quotes(
        self,
        queries: Iterable[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        params: Mapping[str, Any] | None = None,
    ) -> Iterator[Quote]:
        """What a list of queries would be charged, one after another: each as after those before it, a repeat of one
        of them free. Ends behind the first that the budget does not admit. Free; raises what `explain` raises, at the
        query that is refused."""
        trial, asked = self._ledger.trial(), set[str]()
        for sql in queries:
            prepared = self._prepare(sql, (epsilon, delta, rho, None, None), params=params)
            quote = self._quote(prepared, trial, asked=asked)
            yield quote
            if not quote.admitted:
                return
            if not quote.cost.free:
                trial.charge(quote.cost, sql, parts=self._parts(prepared.release))
            if quote.question is not None:
                asked.add(quote.question.key)

    def _quote(self, prepared: Prepared, ledger: Ledger, *, fresh: bool = False, asked: Collection[str] = ()) -> Quote:
        """What a query is charged by a ledger. asked: keys of questions that are answered by then."""
        release, question = prepared.release, None
        if not prepared.explain_only:
            check_unchanged(release, self._contents)
            question = self._replay.question(release, self._catalog.tables, parts_reached(release, self._contents))
        given = question is not None and (question.key in asked or self._replay.recall(question, release) is not None)
        again = given and not fresh
        free, parts = again or prepared.explain_only, self._parts(release)
        cost = FREE if free else release.cost
        coin = replace(cost, delta=Fraction(0), hidden=Fraction(0))
        return Quote(
            cost,
            ledger.after(FREE, parts) or ledger.remaining,
            admitted=free or ledger.after(cost, parts) is not None,
            most=None if free else ledger.most(coin, parts),
            most_whole=None if free else ledger.most(cost, parts),
            conversion=ledger.budget.filter(ledger.rules.accountant).conversion,
            replayed=again,
            question=question,
        )

    def remaining_queries(
        self,
        sql: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        params: Mapping[str, Any] | None = None,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: float | None = None,
        confidence: float | None = None,
    ) -> int | float:
        """How many more queries of this cost the budget admits, each drawn anew; `math.inf` for one that costs nothing.
        Free. Raises what `explain` raises."""
        terms = (epsilon, delta, rho, error, confidence)
        prepared = self._prepare(sql, terms, params=params, strategy=strategy, mechanism=mechanism)
        most = self._ledger.most(prepared.release.cost, self._parts(prepared.release))
        return math.inf if most is None else most

    def _explanation(self, prepared: Prepared) -> Explanation:
        release = prepared.release
        return Explanation(release, self._ledger.after(release.cost, self._parts(release)))
