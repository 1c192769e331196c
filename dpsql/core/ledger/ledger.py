"""The ledger: what has been spent of a budget. Charged before anything is read, never refunded, never overdrawn.

A ledger lives in memory or in one file (`file`). Its rules (budget, accountant, neighbour relation) are fixed when it
is first opened; its lines are chained by hash (`text`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction

from dpsql.core.cost import FREE, Cost
from dpsql.core.events import Event
from dpsql.core.ledger import claims, clock
from dpsql.core.ledger import text as ledger_text
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.anchor import read_anchor
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.exceeded import ASKED, RequestedTerms, exceeded
from dpsql.core.ledger.filters import NOTHING, RemainingBudget, SpentBudget
from dpsql.core.ledger.lines import (
    FORMAT,
    Answer,
    BudgetRenewal,
    Claim,
    DroppedClaim,
    Entry,
    FormatChange,
    Note,
    UnitOf,
)
from dpsql.core.ledger.restored import RestoredBook
from dpsql.core.ledger.sharing import ZeroCharge
from dpsql.core.ledger.state import HeldClaim
from dpsql.core.ledger.store import RESTORE, MemoryStore, Store
from dpsql.core.ledger.text import Rules
from dpsql.core.ledger.units import TableUnit, check_units
from dpsql.core.unit import Neighbours
from dpsql.errors import InvalidPrivacyParameter, LedgerError

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05
"""Seconds between two checks for an answer."""


class Ledger(RestoredBook):
    """The entries of one budget, under one neighbour relation, for any number of threads and, with a file, processes.

    analyst: who is charged; if the budget has shares for analysts, a charge has to fit into the share too. owner: reads
    the whole, without a share. within: a smaller budget, which all charges through this ledger have to fit into too.
    A ledger cannot be copied, pickled or used in a forked child: two in memory could each spend the whole budget, and a
    file's locks do not survive a fork. Raises LedgerError if the store's lines are not those that were written.
    """

    def __init__(
        self,
        rules: Rules,
        store: Store | None = None,
        *,
        analyst: str | None = None,
        owner: bool = False,
        within: Budget | None = None,
    ) -> None:
        self._entries: list[Entry] = []  # charges read by `entries` so far
        self._made: dict[tuple[int, str], str] = {}  # by thread and key: the hash of the claim in progress
        self.within = within
        super().__init__(rules, store, analyst=analyst, owner=owner, within=within)

    @property
    def budget(self) -> Budget:
        """The current total."""
        with self._current():
            return self._state.budget

    @property
    def whole(self) -> Fraction:
        """The epsilon of the budget, or of the analyst's share if that is less."""
        return min(each.filter.budget.epsilon for each in self._state.watches)

    @property
    def whole_delta(self) -> Fraction:
        """The delta of the budget, or of the analyst's share if that is less."""
        return min(each.filter.budget.delta for each in self._state.watches)

    @property
    def kept_delta(self) -> Fraction:
        """The part of `whole_delta` reserved for converting rho to epsilon; steps have the rest."""
        least = min((each.filter for each in self._state.watches), key=lambda each: each.budget.delta)
        return least.conversion or Fraction(0)

    @property
    def neighbours(self) -> Neighbours:
        return self.rules.neighbours

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every charge, in order."""
        with self._current():
            self._entries += self._state.charges.entries(len(self._entries))
            return tuple(self._entries)

    @property
    def content_key(self) -> bytes:
        """The key for versions of files: random, of this ledger only, and in no line or export."""
        with self._current():
            return self._store.secret()

    @property
    def anchor(self) -> str:
        """The number and hash of the last line. Kept elsewhere, it reveals later whether lines are missing."""
        with self._current():
            return f"{self._state.last.number}:{self._state.last.hash}"

    @property
    def spent(self) -> SpentBudget:
        """The sum of all charges."""
        with self._current():
            return self._state.watches[0].spent()

    @property
    def remaining(self) -> RemainingBudget:
        """The most that the next query may cost."""
        return self.after(FREE) or NOTHING

    def after(self, cost: Cost, parts: Sequence[Part] = ()) -> RemainingBudget | None:
        """Return what would remain after a charge, for queries about the same parts; None if it would be rejected."""
        with self._current():
            return self._state.after(cost, parts)

    def most(self, cost: Cost, parts: Sequence[Part] = ()) -> int | None:
        """Return how many more steps of this cost would be admitted; None if unlimited."""
        with self._current():
            return self._state.most(cost, parts)

    def short_of(self, cost: Cost, parts: Sequence[Part] = ()) -> str:
        """Return, for a rejected step, what it lacks in words, if that is delta or includes delta; "" otherwise."""
        with self._current():
            return self._state.short_of(cost, parts)

    def check_units(self, units: Iterable[TableUnit]) -> None:
        """Raise LedgerError if a table's privacy unit differs from the one that was charged for."""
        with self._current():
            check_units(self._state.units, units)

    def take_units(self, units: Sequence[TableUnit]) -> tuple[str, ...]:
        """Check the tables of a session that opens, and return messages for its user. A ledger of format 1, which had
        no units, adopts theirs, since its charges are taken to be about them. Raises LedgerError."""
        self.check_units(units)
        if self._state.last.format == FORMAT:
            return ()
        with self._writing():
            if self._state.last.format == FORMAT:  # another process was first
                check_units(self._state.units, units)
                return ()
            self._append(FormatChange(self._now(), FORMAT))
            for unit in units:
                self._append(UnitOf(self._now(), unit))
        told = "; ".join(f"{unit.table}: {unit}" for unit in units) or "none"
        kept = len(self._state.answers)
        answers = f" Its {kept} kept answers are listed, and not given again." if kept else ""
        what = f"the ledger was of format 1, which knew no privacy units: it has taken this session's ({told})"
        return (f"{what}, and later sessions must declare the same.{answers}",)

    def charge(
        self,
        cost: Cost,
        label: str,
        *,
        events: Sequence[Event] = (),
        parts: Sequence[Part] = (),
        asked: RequestedTerms = ASKED,
        units: Sequence[TableUnit] = (),
    ) -> Entry:
        """Enter a cost before its query runs; on return it is durable. units: those of the tables that the query reads,
        entered with their first charge. Raises BudgetExceeded (nothing entered) or LedgerError (nothing may run)."""
        with self._current() if self.dry else self._writing():
            entry = self._charge(self._entry(cost, label, events, parts), asked, units)
        return self._to_run(entry)

    def claim(
        self,
        key: str,
        cost: Cost,
        label: str,
        *,
        events: Sequence[Event] = (),
        parts: Sequence[Part] = (),
        asked: RequestedTerms = ASKED,
        units: Sequence[TableUnit] = (),
    ) -> Entry | None:
        """Charge as `charge` does, for an answer to be kept under this key: once for all concurrent callers, in any
        thread or process. Waits while another caller works on it. Returns None if the answer is there to `recall`. A
        charged caller must eventually call `keep` or `drop`."""
        entry = self._entry(cost, label, events, parts)
        try:
            while True:
                with self._current() if self.dry else self._writing():
                    if key in self._state.answers:
                        return None
                    if self.dry or not self._claimed(key):
                        return self._charge(entry, asked, units, key)
                self._wait(key)
        except BaseException:
            self.give_up(key)
            raise

    def keep(
        self, key: str, payload: bytes, charge: Entry | None = None, *, claimed: bool = False, slot: int = 0
    ) -> bool:
        """Keep a released answer under a key. Free. charge: the charge that paid for it, for one answer in each slot;
        claimed: whether it was charged by `claim`, or by a caller that gives way to whoever was first.

        Return False, and keep nothing, if that charge has its answer, or if another caller took over the claim and was
        first. Then this draw is discarded, and the kept answer is shown instead. So all who claimed a query show one
        answer, and a slot of a charge never shows two."""
        paid = None if charge is None else charge.number
        with self._writing():
            last, _ = self._state.answers.get(key, (0, ""))
            first = self._empty(paid, slot) and not (claimed and paid is not None and last > paid)
            if first:
                number = self._append(Answer(self._now(), key, ledger_text.digest_of(payload), paid, slot))
                self._store.keep(number, payload)
        self._made.pop((threading.get_ident(), key), None)
        return first

    def drop(self, charge: Entry) -> None:
        """End the claim of this charge without an answer: callers that wait for it claim again, and pay. The charge
        stays.
        Raises no ledger error: if no line can be written, this process remembers the end."""
        with self._lock:  # other threads read lines meanwhile
            claimed = self._state.claims.items()
            key, claim = next((each for each in claimed if each[1].number == charge.number - 1), ("", None))
        if claim is not None:
            claims.end(claim.digest)
            self._made.pop((threading.get_ident(), key), None)
            self._drop(claim)

    def give_up(self, key: str) -> None:
        """Drop a claim of this thread that was interrupted at any point: it may have been written although its charge
        is not known here. No effect if its answer is kept, or if the thread made no claim."""
        digest = self._made.pop((threading.get_ident(), key), None)
        if digest is None:
            return
        claims.end(digest)  # before anything else that could fail
        held = self._state.claims.get(key)
        if held is not None and held.digest == digest:
            self._drop(held)

    def _drop(self, claim: HeldClaim) -> None:
        with suppress(LedgerError), self._writing():
            if claim in self._state.claims.values():
                self._append(DroppedClaim(self._now(), claim.number))

    def renew(self, epsilon: object, delta: object, reason: str) -> None:
        """Set another total. It has to cover what is already spent, which stays spent. Then every step so far would
        have been admitted under it too, as sums only grow, so the filters' proof holds for the new total from the first
        step on.
        Raises InvalidPrivacyParameter; LedgerError for a ledger of format 1, whose units are not known yet."""
        with self._writing():
            state = self._state
            if state.last.format < FORMAT:
                raise LedgerError(
                    "the ledger is of format 1, which knew no privacy units.",
                    hint="Open a session on it first: it takes the units of that session.",
                )
            budget = state.budget.renewed(epsilon, delta)
            if state.shares.holdings:
                self._check_room(budget)
            elif not state.watches[0].fits(budget.filter(self.rules.accountant)):
                raise InvalidPrivacyParameter(
                    f"{budget.loss} is less than what is spent already, {state.watches[0].spent()}.",
                    hint="A ledger never forgets: name a total that has room for it.",
                )
            self._append(BudgetRenewal(self._now(), budget.loss.epsilon, budget.loss.delta, reason))

    def accept_clock(self) -> None:
        """Note that the clock is right now, although entries have a later time."""
        with self._writing():
            self._append(Note(clock.text_of(clock.now()), "the clock is right"))

    def to_json(self) -> str:
        """Return all lines with their hashes, for people and other programs."""
        with self._current():
            return ledger_text.export(self.rules, self._store.since(1))

    def trial(self) -> Ledger:
        """Return a copy in memory, to test what would be admitted in sequence: entries there do not count."""
        store = MemoryStore()
        with self._current():
            for line in self._store.since(1):
                store.append(*line)
        return Ledger(self.rules, store, analyst=self.analyst, owner=self.analyst is None, within=self.within)

    def check_anchor(self, anchor: str) -> None:
        """Raise LedgerError unless the line of an earlier `anchor` is still there."""
        place, digest = read_anchor(anchor)
        with self._current():
            if place == 0:
                known = ledger_text.first_hash(self.rules.text)
            else:
                with closing(self._store.since(place)) as lines:
                    number, _, line_hash = next(lines, (0, "", ""))
                known = line_hash if number == place else ""
        if known != digest:
            raise LedgerError("the ledger was rolled back or replaced: the anchor's line is not in it.", hint=RESTORE)

    def _entry(self, cost: Cost, label: str, events: Sequence[Event], parts: Sequence[Part]) -> Entry:
        """Return a charge that includes the response time. A run takes as long for units of all parts, so with a cost
        for the response time a query about some parts is charged to all."""
        if self.time is None:
            return Entry("", self.analyst, label, cost, tuple(events), tuple(parts))
        return Entry("", self.analyst, label, cost + self.time_cost, (*events, self.time.event))

    def _charge(self, entry: Entry, asked: RequestedTerms, units: Sequence[TableUnit], key: str | None = None) -> Entry:
        """Enter a charge, after its new units and, with a key, a claim; inside a transaction."""
        check_units(self._state.units, units)
        self._state.shares.check(entry.analyst)
        before = self._requested(entry)
        if before is None and not self._state.admits(entry.cost, entry.parts):
            raise exceeded(entry.cost, self._state.watches, entry.parts, asked)
        if before is None:
            self._check_whole(entry.cost, entry.parts)
            self._check_runs(entry.analyst)
        if self.dry:
            raise ZeroCharge("this would be charged.")
        now = self._now()
        for unit in units:
            if unit.table not in self._state.units:
                self._append(UnitOf(now, unit))
        for held in self._state.claims.values():
            if claims.ended(held.digest):  # if no line could be written when it ended
                self._append(DroppedClaim(now, held.number))
        if key is not None:
            self._append(Claim(now, key, claims.this_process()))
            self._made[threading.get_ident(), key] = self._next.hash
        if before is not None:
            return before
        entry = replace(entry, time=now)
        entry = replace(entry, number=self._append(entry))
        self._enter_request(entry)
        return entry

    def _claimed(self, key: str) -> bool:
        """Return whether somebody works on the answer of this key."""
        held = self._state.claims.get(key)
        return held is not None and not claims.gone(held.process, clock.age(held.time), held.digest)

    def _wait(self, key: str) -> None:
        """Wait until the answer of this key is there, or nobody works on it. Raises LedgerError if the clock went
        backwards."""
        pause = _SHORTEST_PAUSE
        while True:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            with self._current():
                self._now()  # with a clock that went backwards no claim would expire
                if key in self._state.answers or not self._claimed(key):
                    return
