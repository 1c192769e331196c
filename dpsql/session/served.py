"""The session of one analyst of a server: limited by a share, with answers that outlive the process, and no replay of
answers before they may be seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpsql.core.cost import Cost
from dpsql.core.ledger.lines import Entry
from dpsql.core.ledger.sharing import PriorCharge, Request, ZeroCharge
from dpsql.core.ledger.store import RESTORE
from dpsql.core.loss import PrivacyLoss, show
from dpsql.core.row_work import unit_work
from dpsql.errors import DPSQLError, InvalidPrivacyParameter, LedgerError, UnsupportedSQL
from dpsql.release.release import Release, ReleasedValues
from dpsql.session.cache.cached_answers import Question, Replay
from dpsql.session.costs import Quote, multi_step_footer
from dpsql.session.prepared_query import PreparedQuery
from dpsql.session.serialized_plan import from_bytes, in_bytes
from dpsql.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpsql.core.ledger.account import Part
    from dpsql.session.owner_file import Schema
    from dpsql.session.run import OpenTables
    from dpsql.session.server_settings import ServerWords
    from dpsql.session.tables.table import Table


class ServedSession(Session):
    """Queries of one analyst on the tables that the analyst may read, charged to the analyst's share.

    words: the server's settings, by which the response time of an answer is charged. run: name of the server's run:
    over tables without a version, answers are repeated within one run, by any of its processes. Raises as `Session`,
    and LedgerError for an analyst without a share.
    """

    _all_held = True

    def __init__(
        self,
        tables: Mapping[str, Table],
        schema: Schema,
        analyst: str,
        *,
        run: str,
        words: ServerWords,
    ) -> None:
        super().__init__(tables, schema=replace(schema, tables={}), analyst=analyst)
        self._min_epsilon, self._run = words.min_epsilon, run
        self._ledger.most_runs = words.max_runs
        self._replay = Replay(self._ledger, run)
        self._ledger.may_ask(analyst)
        self._words = words
        self._ledger.time = words.response_time(self.share.delta)

    plan = b""
    """Current query, as planned, dry-run and charged by another process (`planned`); empty: planned here."""

    @property
    def share(self) -> PrivacyLoss:
        """Limit of the total cost of this analyst's answers."""
        holding = self._ledger.holding(str(self._ledger.analyst))
        assert holding is not None  # a session without a holding is not opened
        return holding.loss

    def reach(self, **terms: Any) -> int:
        """Return the most microseconds by which one privacy unit changes the query's run time."""
        sql, asked, how = _said(terms)
        return _reach_of(self._prepare(sql, asked, **how).releases)

    @property
    def delayed(self) -> bool:
        """True if answers have a random delay; otherwise they are seen after the deadline of every run."""
        return self._ledger.time is not None

    @property
    def own_entries(self) -> tuple[Entry, ...]:
        """The analyst's charges."""
        return tuple(each for each in self._ledger.entries if each.analyst == self._ledger.analyst)

    @property
    def charged(self) -> bool:
        """True if the query is charged: then it has an answer, or draws one under that charge."""
        return self._replay.charge is not None

    @contextmanager
    def asked_under(self, request: Request) -> Iterator[bool]:
        """Enter charges under a key. If the key has a charge, continue its run, or repeat its answer. Yields whether
        there is one."""
        asked, answered = self._ledger.asked(request.key), False
        if asked is not None:
            answered = self._ledger.answered(asked.charge)
            self._replay.charge = asked.charge
            request = request._replace(run=asked.run, before=asked.before)
        self._ledger.request = request
        self._replay.session = request.run
        try:
            yield answered
        finally:
            self._ledger.request = self._replay.charge = None
            self._replay.session = self._run

    @property
    def end(self) -> tuple[int, str] | None:
        """Outcome of the charge under the current key, as in `Ledger.outcome`."""
        asked = None if self._ledger.request is None else self._ledger.asked(self._ledger.request.key)
        return None if asked is None else self._ledger.outcome(asked.charge)

    def at_one_moment(self) -> AbstractContextManager[None]:
        """As in `Ledger`."""
        return self._ledger.at_one_moment()

    def given_before(self, quote: Quote, **terms: Any) -> tuple[PreparedQuery, int] | None:
        """Return the statement of one release and the ledger line of its cached answer, which determine the whole
        display but the remaining share. None if the answer is not one of its own question, and has to be looked up."""
        sql, asked, how = _said(terms)
        prepared = self._prepare(sql, asked, **how)
        of_its_own = prepared.postprocess is None and not self._replay.others and not self.charged
        if not of_its_own or not quote.replayed or len(quote.questions) != 1:
            return None
        line = self._ledger.answer_line(quote.questions[0].key)
        return (prepared, line) if line else None

    def footer_again(self, prepared: PreparedQuery) -> str:
        """Return the current footer of a repeated answer."""
        return multi_step_footer(
            self._ledger, prepared.releases, (), self._parts_of(prepared.releases), self._place.aside
        )

    @contextmanager
    def not_seen_yet(self, keys: frozenset[str]) -> Iterator[None]:
        """Treat these questions as unanswered."""
        self._replay.hidden = keys
        try:
            yield
        finally:
            self._replay.hidden = frozenset()

    @contextmanager
    def with_answers_of_others(self) -> Iterator[None]:
        """Treat answers that other analysts paid for as given: they were released, and may be shown to any analyst who
        may ask the same question. Costs and explanations are made without them: otherwise they would reveal, for free,
        what others have asked."""
        everybody = self._ledger.shares()
        self._replay.others = tuple(name for name in everybody if name != self._ledger.analyst)
        try:
            yield
        finally:
            self._replay.others = ()

    def before(self, quote: Quote) -> tuple[int, ...]:
        """Return the line of each release's answer, 0 if it would be charged, for a statement of several. The processes
        that charge and run it use these lines, whatever is answered meanwhile."""
        request = self._ledger.request
        if request is not None and request.before:
            return request.before
        lines = [
            0 if place in quote.due else self._ledger.answer_line(each.key)
            for place, each in enumerate(quote.questions)
        ]
        return tuple(lines) if len(lines) > 1 else ()

    def planned(self, **terms: Any) -> bytes:
        """Return the serialized plan of the query."""
        sql, asked, how = _said(terms)
        return in_bytes(self._prepare(sql, asked, **how), self.catalog)

    def check_charge(self, **terms: Any) -> None:
        """Raise what `query` would raise before its charge, and charge nothing."""
        self._ledger.dry = True
        try:
            self.query(**terms)
        except ZeroCharge:
            pass
        finally:
            self._ledger.dry = False

    def charge(self, **terms: Any) -> None:
        """Enter the charge of `query` under its key without reading a row; `query` then continues under it. Raises as
        `query` before its charge, and LedgerError if that key has an answer."""
        self._ledger.ahead = True
        try:
            self.query(**{**terms, "fresh": True})  # no claim: the process that runs it makes one
        except PriorCharge:
            pass
        finally:
            self._ledger.ahead = False

    def quotes_in_turn(self, queries: Sequence[Mapping[str, Any]]) -> Iterator[Quote]:
        """As `quotes`, for queries with separate terms. A refusal names the query's index."""
        at = -1

        def each() -> Iterator[Mapping[str, Any]]:
            nonlocal at
            for at, terms in enumerate(queries):  # noqa: B007 - read below
                yield terms

        try:
            yield from self._in_turn(each())
        except DPSQLError as error:
            error.about["place"] = str(at)
            raise

    def may_ask(self) -> None:
        """Raise LedgerError if the share was withdrawn, or too many runs had no result."""
        self._ledger.may_ask(str(self._ledger.analyst))

    def _known(
        self, releases: Sequence[Release], questions: Sequence[Question | None], *, fresh: bool
    ) -> list[ReleasedValues | None]:
        request = self._ledger.request
        if request is None or not request.before:
            return super()._known(releases, questions, fresh=fresh)
        return self._replay.recall_own(releases, request.before)

    def _recalled(self, question: Question | None, release: Release) -> ReleasedValues | None:
        """Ignore earlier answers if the charged request lists them."""
        request = self._ledger.request
        return super()._recalled(question, release) if request is None or not request.before else None

    def _released(
        self, prepared: PreparedQuery, sql: str, *, fresh: bool, plain: bool
    ) -> tuple[list[ReleasedValues], list[int], tuple[str, ...]]:
        """As in `Session`, but a request with a list of earlier answers uses only these. Shows the values that the
        ledger stores."""
        before = () if self._ledger.request is None else self._ledger.request.before
        if not before:
            return super()._released(prepared, sql, fresh=fresh, plain=plain)
        releases = prepared.releases
        due = [place for place, line in enumerate(before) if not line]
        known = self._replay.recall_own(releases, before)
        if None in known:
            self._drawn_together(prepared, self._questions(prepared), known, due, sql, fresh=True)
            kept = self._replay.recall_own(releases, before)
        else:
            kept, due = known, []
        released = [each for each in kept if each is not None]
        if len(released) != len(releases):
            raise LedgerError("an answer that was drawn is not there.", hint=RESTORE)
        return released, due, ()

    def _prepare(self, sql: str, asked: tuple[float | None, ...], **how: Any) -> PreparedQuery:
        """As in `Session`, but refuse costs below the minimum: such runs could be timed almost for free."""
        prepared = from_bytes(self.plan, self.catalog)
        if prepared is None:
            prepared = super()._prepare(sql, asked, whose=str(self._ledger.analyst), **how)
        if not prepared.explain_only:
            for release in prepared.releases:
                self._check_enough(release.cost)
            self._check_delay(prepared.releases)
        return prepared

    def _parts(self, release: Release, opened: OpenTables | None = None) -> tuple[Part, ...]:
        """Return no parts if response time is charged: a run takes time for people of all parts."""
        return super()._parts(release, opened) if self._ledger.time is None else ()

    def _check_delay(self, releases: Sequence[Release]) -> None:
        """Raise UnsupportedSQL if the query's random delay could exceed the deadline."""
        if self._ledger.time is None:
            return
        seconds = 2 * self._ledger.time.shift(_reach_of(releases)) / 1_000_000
        if seconds > self._words.deadline:
            raise UnsupportedSQL(
                f"one person's rows could change the response time so much that hiding them needs a delay of up to "
                f"{seconds:,.0f} s; answers are given within {self._words.deadline:g} s here.",
                hint="Read shorter texts, as in LEFT(x, 50), use shorter patterns, or join smaller public tables.",
            )

    def _check_enough(self, cost: Cost) -> None:
        least = self._min_epsilon
        little = cost.rho < least * least / 2 if cost.epsilon is None else cost.epsilon < least
        if little and not cost.free:
            price = f"rho {show(cost.rho)}" if cost.epsilon is None else f"epsilon {show(cost.epsilon)}"
            raise InvalidPrivacyParameter(
                f"a query here spends at least epsilon {show(least)} (or rho {show(least * least / 2)}), and this one "
                f"{price}.",
                hint="Ask with more, or put several questions into one.",
            )


def _reach_of(releases: Sequence[Release]) -> int:
    """Return the microseconds by which one unit's rows change the run time of all releases together."""
    nanoseconds = sum(unit_work(each.query.plan, each.analysis.bounds.rows.rows) for each in releases)
    return math.ceil(nanoseconds / 1_000)


def _said(terms: Mapping[str, Any]) -> tuple[str, tuple[float | None, ...], dict[str, Any]]:
    """Split terms into the arguments of `Session.query`."""
    how = {"params": terms.get("params")}
    how |= {word: terms.get(word, "auto") for word in ("strategy", "mechanism")}
    how["dialect"] = terms.get("dialect")
    return terms["sql"], tuple(terms.get(word) for word in ("epsilon", "delta", "rho", "error", "confidence")), how
