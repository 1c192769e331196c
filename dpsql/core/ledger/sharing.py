"""Operations on the shares of a ledger, for its owner and for a server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.book import Book
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.filters import Filter, RemainingBudget, SpentBudget, Watch
from dpsql.core.ledger.lines import FORMAT, Entry
from dpsql.core.ledger.share_lines import ALLOWED, ENDED, GIVEN, REVOKED, AnalystRequest, FailedRequest, Share
from dpsql.core.ledger.shares import HeldShare, Loss, check_room, spent_of
from dpsql.core.ledger.store import RESTORE
from dpsql.core.loss import PrivacyLoss
from dpsql.core.response_time import ResponseTime
from dpsql.core.unit import Neighbours
from dpsql.errors import BudgetExceeded, InvalidArgument, LedgerError


class Request(NamedTuple):
    """A query under a key: hashes of key and body; the name of the run of sessions; and which answers of its releases
    were given before (`AnalystRequest.before`)."""

    key: str
    body: str
    run: str
    before: tuple[int, ...] = ()


class ShareReport(NamedTuple):
    """A share, what is spent and left of it, in how many queries, and the time of the last ("": none)."""

    holding: HeldShare
    spent: SpentBudget
    left: RemainingBudget
    queries: int
    last: str
    failures: int


class ZeroCharge(Exception):
    """Raised instead of entering an admitted charge in a dry ledger."""


class PriorCharge(Exception):
    """Raised after a charge whose run comes later."""


class SharedBook(Book):
    """A book with shares."""

    request: Request | None = None
    """The request of the next charges; each charge is entered with its key, once."""
    dry: bool = False
    """Charges are rejected as usual, and admitted charges raise ZeroCharge instead of being entered."""
    time: ResponseTime | None = None
    """The privacy cost of each answer's response time, charged with the query."""
    ahead: bool = False
    """Charges are entered, and PriorCharge is raised instead of running: `_requested` finds the charges then."""
    most_runs: int | None = None
    """The maximum number of charges of an analyst, over the life of a share."""
    overlap: bool = False
    """True if the shares may exceed the budget together."""
    _seen: object = None
    _over = False

    @property
    def time_cost(self) -> Cost:
        """The privacy cost that is charged for the response time of an answer."""
        return FREE if self.time is None else self.time.cost

    @property
    def ended_tokens(self) -> frozenset[str]:
        """Hashes of tokens known to have ended."""
        with self._current():
            return frozenset(self._state.shares.ended)

    @property
    def latest(self) -> str:
        """The time of the last line, "" if there is none."""
        with self._current():
            return self._state.time

    def holding(self, analyst: str) -> HeldShare | None:
        """Return the share of an analyst, None if there never was one."""
        with self._current():
            return self._state.shares.holdings.get(analyst)

    def failures(self, analyst: str) -> int:
        """Return how many runs of an analyst ended without an answer since the analyst was last allowed to query."""
        with self._current():
            return self._state.shares.failures.get(analyst, 0)

    def may_ask(self, analyst: str) -> None:
        """Raise LedgerError if the analyst has no share to spend, or was stopped, or if there are no shares."""
        with self._current():
            if not self._state.shares.holdings:
                raise LedgerError("this budget is not shared out.")
            self._state.shares.check(analyst)

    def shares(self) -> dict[str, ShareReport]:
        """Return every share that was ever given, by analyst."""
        with self._current():
            state = self._state
            reports = {}
            for name, holding in state.shares.holdings.items():
                watch = self._watch(name, holding.loss)
                failures = state.shares.failures.get(name, 0)
                last = state.charges.last_time(name)
                left = watch.remaining() if holding.current else RemainingBudget(Fraction(0))
                reports[name] = ShareReport(holding, watch.spent(), left, watch.queries, last, failures)
            return reports

    def give_share(self, analyst: str, loss: PrivacyLoss, *, anew: bool) -> None:
        """Give an analyst a share or, without `anew`, give the share another epsilon. What was spent stays spent, and
        has to fit into it. Raises InvalidArgument, InvalidPrivacyParameter (also if the shares would exceed the
        budget), LedgerError."""
        if not isinstance(analyst, str) or not analyst or analyst == "*":
            raise InvalidArgument("a share is of one analyst, by name.")
        with self._writing():
            state = self._state
            if state.last.format < FORMAT:
                raise LedgerError("the ledger is of format 1.", hint="Open a session on it first: it takes its units.")
            if self.rules.budget.analysts:
                raise InvalidArgument(
                    "the owner's file has [budget.analysts], so its shares are written there.",
                    hint="Take them out, with a ledger that is new.",
                )
            before = state.shares.holdings.get(analyst)
            if (before is None) != anew:
                raise InvalidArgument(
                    f'analyst "{analyst}" has {"a" if before else "no"} share'
                    + (", and a name never starts anew." if before else "."),
                    hint=f"dpsql access {'share' if before else 'add'} {analyst} --schema FILE --epsilon X",
                )
            state.shares.check_given(analyst, loss)
            if not self._watch(analyst, loss).fits(self._filter(loss)):
                raise InvalidArgument(f'analyst "{analyst}" has spent more than {loss} already.')
            self._check_room(state.budget, {analyst: HeldShare(loss, True)})
            self._append(Share(self._now(), analyst, GIVEN, loss.epsilon, loss.delta))

    def revoke_share(self, analyst: str) -> None:
        """Revoke a share: nothing more is charged to it, and only what it spent counts. Raises InvalidArgument."""
        self._say(analyst, REVOKED)

    def allow(self, analyst: str) -> None:
        """Let an analyst whose runs failed too often query again. Raises InvalidArgument."""
        self._say(analyst, ALLOWED)

    def end_token(self, analyst: str, token: str) -> None:
        """Note that a token (its hash) has ended: a clock that goes back does not revive it. Raises InvalidArgument."""
        self._say(analyst, ENDED, token)

    def _say(self, analyst: str, event: str, token: str = "") -> None:
        with self._writing():
            if analyst not in self._state.shares.holdings:
                raise InvalidArgument(f'analyst "{analyst}" has no share.')
            if token and token in self._state.shares.ended:
                return
            self._append(Share(self._now(), analyst, event, token=token))

    def asked(self, key: str) -> AnalystRequest | None:
        """Return the request that was paid for under that key."""
        with self._current():
            return self._state.shares.asked.get(key)

    def answered(self, charge: int) -> bool:
        """Return whether a charge has all the answers that it paid for."""
        with self._current():
            return self._state.answered(charge)

    def failure(self, charge: int) -> str:
        """Return why a charge finally failed; "" if it has not."""
        with self._current():
            return self._state.shares.failed.get(charge, "")

    def fail(self, charge: int, reason: str) -> bool:
        """Let a charge fail, finally, unless it has all its answers; return whether it has failed. Free."""
        with self._writing():
            if self._state.answered(charge):
                return False
            if charge not in self._state.shares.failed:
                self._append(FailedRequest(self._now(), charge, reason))
        return True

    def _empty(self, charge: int | None, slot: int) -> bool:
        """Return whether a slot of a charge has no answer yet. Inside a transaction. Raises LedgerError for a charge
        that finally failed: a later answer, of a run that went on elsewhere, would be a second outcome."""
        if charge in self._state.shares.failed:
            raise LedgerError("the run of this charge has ended without an answer, for good.")
        return (charge, slot) not in self._state.paid

    def _to_run(self, charge: Entry) -> Entry:
        """Return the durable charge, outside the transaction. Raises PriorCharge if the run comes later."""
        if self.ahead:
            raise PriorCharge
        return charge

    def _requested(self, entry: Entry) -> Entry | None:
        """Return the charge already entered for this request, if it has no outcome yet: its run continues under it.
        Inside a transaction.

        Proof that one charge pays for one draw: the draw of a run that ended was shown to nobody, since an answer is
        shown only when it is kept, and of one charge one answer is kept in each slot (`Ledger.keep`). A statement of
        several releases has a slot for each that it was charged for (`AnalystRequest.before`), and the charge is the
        same only if their costs, events and parts are. Raises LedgerError if the request differs from the one that was
        paid for."""
        asked = None if self.request is None else self._state.shares.asked.get(self.request.key)
        if asked is None or self.request is None:
            return None
        before = self._state.charges.entry(asked.charge)
        same = before is not None and (before.analyst, before.label, before.cost, before.events, before.parts) == (
            entry.analyst,
            entry.label,
            entry.cost,
            entry.events,
            entry.parts,
        )
        if asked.analyst != entry.analyst or asked.body != self.request.body or not same:
            raise LedgerError("something else was paid for under this key. Nothing was charged.", hint=RESTORE)
        if self._state.answered(asked.charge) or asked.charge in self._state.shares.failed:
            raise LedgerError("what was paid for under this key has had its answer. Nothing was charged.", hint=RESTORE)
        return before

    def _enter_request(self, charge: Entry) -> None:
        """Write the request after its charge, in the same transaction."""
        if self.request is not None and charge.analyst is not None:
            key, body, run, before = self.request
            self._append(AnalystRequest(charge.time, charge.analyst, key, body, run, charge.number, before))

    def _check_runs(self, analyst: str | None) -> None:
        """Raise BudgetExceeded for an analyst at the maximum number of runs: a run can be observed from outside."""
        if self.most_runs is not None and len(self._state.charges.steps_of(analyst)) >= self.most_runs:
            raise BudgetExceeded(
                f"{self.most_runs} queries were run for this share, which is all that it has. Nothing was charged.",
                hint="Reuse an earlier answer, or ask the data owner.",
            )

    def _check_room(self, budget: Budget, changed: dict[str, HeldShare] | None = None) -> None:
        """Raise InvalidPrivacyParameter if the shares, with the changed ones, exceed a budget; not if they may
        overlap."""
        if not self.overlap:
            check_room(budget, self._all_counted({**self._state.shares.holdings, **(changed or {})}))

    def check_room(self) -> None:
        """Raise InvalidPrivacyParameter if the shares exceed the budget."""
        with self._current():
            if self._state.shares.holdings:
                self._check_room(self._state.budget)

    def _all_counted(self, holdings: Mapping[str, HeldShare]) -> list[Loss]:
        losses = [self._counted(name, each) for name, each in holdings.items()]
        return [*losses, self._unshared(holdings.keys())]

    def _overlapping(self) -> bool:
        """Return whether the shares exceed the budget, so that it has to cover all of them together too. Depends on the
        lines only, not on the session that charges, and changes only with shares and the budget."""
        state = self._state
        known = (state.shares.changes, state.budget)
        if self._seen != known:
            totals = [sum(column) for column in zip(*self._all_counted(state.shares.holdings), strict=True)]
            over = totals[0] > state.budget.loss.epsilon or totals[1] > state.budget.loss.delta
            self._seen, self._over = known, bool(state.shares.holdings) and over
        return self._over

    def _check_whole(self, cost: Cost, parts: Sequence[Part]) -> None:
        """Raise BudgetExceeded, without figures, if shares overlap and all analysts together have too little left: then
        the whole is a filter too."""
        if self._overlapping() and not self._state.whole.admits(cost, parts):
            raise BudgetExceeded(
                "the budget that all analysts share has not enough left for it. Nothing was charged.",
                hint="Reuse an earlier answer, ask with less, or ask the data owner.",
            )

    def outcome(self, charge: int) -> tuple[int, str] | None:
        """Return the outcome of a charge under a key, if it has ended: how many charges the analyst had up to it, and
        the hash of the line with the outcome. Charges are counted because their order is fixed before any row is read;
        counting outcomes would reveal which of two runs took longer."""
        with self._current():
            return self._state.shares.outcome(charge) if self._state.ended(charge) else None

    def holds_outcome(self, analyst: str, place: int, digest: str) -> bool:
        """Return whether that charge of an analyst has that outcome."""
        with self._current():
            return self._state.shares.holds_outcome(analyst, place, digest)

    def _counted(self, name: str, holding: HeldShare) -> Loss:
        whole = (holding.loss.epsilon, holding.loss.delta)
        return whole if holding.current else spent_of(self._total([name]), self._filter(holding.loss), whole)

    def _unshared(self, names: Collection[str | None]) -> Loss:
        """Return the loss of charges without a share, from before there were shares."""
        others = {each for each in self._state.charges.analysts() if each not in names}
        whole = (self._state.budget.loss.epsilon, self._state.budget.loss.delta)
        return spent_of(self._total(others), self._state.budget.filter(self.rules.accountant), whole)

    def _total(self, names: Iterable[str | None]) -> Cost:
        """Return the sum of all charges of these analysts, for a unit that all of them concern."""
        watch = Watch(self._filter(self._state.budget.loss), moves=self.rules.neighbours is Neighbours.BOUNDED)
        for name in names:
            watch.add_all(self._state.charges.steps_of(name))
        return watch.total

    def _filter(self, loss: PrivacyLoss) -> Filter:
        return Filter(loss, self.rules.accountant)

    def _watch(self, analyst: str, loss: PrivacyLoss) -> Watch:
        watch = Watch(self._filter(loss), moves=self.rules.neighbours is Neighbours.BOUNDED, analyst=analyst)
        watch.add_all(self._state.charges.steps_of(analyst))
        return watch
