"""The session of one analyst of a server: held by a share, with answers that outlive the process, and no replay of what
may not be seen yet."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dpsql.core.ledger.lines import Entry
from dpsql.core.ledger.sharing import ChargedAhead, NothingCharged, Request
from dpsql.core.loss import PrivacyLoss, show
from dpsql.errors import InvalidPrivacyParameter, UnsupportedSQL
from dpsql.session.prepare import Prepared
from dpsql.session.replay import Replay
from dpsql.session.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpsql.session.owner_file import Schema
    from dpsql.session.table import Table


class ServedSession(Session):
    """Questions of one analyst about the tables that he may read, out of his share.

    run: the name of the server's run: over tables without a version, answers are given again within one run, by any of
    its processes. min_epsilon, max_runs: as of `ServerWords`. Raises as `Session`, and LedgerError for one who has no
    share.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        schema: Schema,
        analyst: str,
        *,
        run: str,
        min_epsilon: Fraction = Fraction(0),
        max_runs: int | None = None,
    ) -> None:
        super().__init__(tables, schema=replace(schema, tables={}), analyst=analyst)
        self._min_epsilon, self._run = min_epsilon, run
        self._ledger.most_runs = max_runs
        self._replay = Replay(self._ledger, run)
        self._ledger.may_ask(analyst)

    @property
    def share(self) -> PrivacyLoss:
        """What all answers of this analyst may come to."""
        holding = self._ledger.holding(str(self._ledger.analyst))
        assert holding is not None  # or it would not be open
        return holding.loss

    @property
    def own_entries(self) -> tuple[Entry, ...]:
        """The analyst's own charges."""
        return tuple(each for each in self._ledger.entries if each.analyst == self._ledger.analyst)

    @contextmanager
    def asked_under(self, request: Request) -> Iterator[bool]:
        """What is charged here is entered under a key. Where one was charged under it already, its run goes on, or its
        own answer is given again: whether it has one."""
        before = self._ledger.asked(request.key)
        run, answered = request.run, False
        if before is not None:
            run, answered = before.run, self._ledger.recall_paid(before.charge) is not None
            self._replay.charge = before.charge
        self._ledger.request = request._replace(run=run)
        self._replay.session = run
        try:
            yield answered
        finally:
            self._ledger.request = self._replay.charge = None
            self._replay.session = self._run

    @contextmanager
    def not_seen_yet(self, keys: frozenset[str]) -> Iterator[list[str]]:
        """Answers of these questions count as not given. Gives the list into which questions come as they are met."""
        self._replay.hidden = keys
        self._replay.met = []
        try:
            yield self._replay.met
        finally:
            self._replay.hidden = frozenset()

    def check_charge(self, **terms: Any) -> None:
        """Raises what `query` would raise before its charge, and charges nothing."""
        self._ledger.dry = True
        try:
            self.query(**terms)
        except NothingCharged:
            pass
        finally:
            self._ledger.dry = False

    def charge(self, **terms: Any) -> None:
        """Enter what `query` would charge under the same key, and read no row: `query` then goes on under it. Raises as
        `query` does before its charge, and LedgerError where that key has its answer."""
        self._ledger.ahead = True
        try:
            self.query(**{**terms, "fresh": True})  # no claim: whoever runs it makes that
        except ChargedAhead:
            pass
        finally:
            self._ledger.ahead = False

    def may_ask(self) -> None:
        """Raises LedgerError where the share was taken away, or runs came to nothing too often."""
        self._ledger.may_ask(str(self._ledger.analyst))

    def _prepare(self, sql: str, asked: tuple[float | None, ...], **how: Any) -> Prepared:
        """As every session does, and nothing that spends less than may be: such a run could be watched for nothing."""
        prepared = super()._prepare(sql, asked, **how)
        if not isinstance(prepared, Prepared):
            raise UnsupportedSQL(
                "a server answers queries of one step.",
                hint="Ask for each answer, and combine them here.",
            )
        cost, least = prepared.release.cost, self._min_epsilon
        little = cost.rho < least * least / 2 if cost.epsilon is None else cost.epsilon < least
        if little and not cost.free and not prepared.explain_only:
            price = f"rho {show(cost.rho)}" if cost.epsilon is None else f"epsilon {show(cost.epsilon)}"
            raise InvalidPrivacyParameter(
                f"a query here spends at least epsilon {show(least)} (or rho {show(least * least / 2)}), and this one "
                f"{price}.",
                hint="Ask with more, or put several questions into one.",
            )
        return prepared
