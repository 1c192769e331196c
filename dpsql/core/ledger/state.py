"""The state that the lines of a ledger describe: charges and their sums, kept answers, claims, and units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from dpsql.core.cost import Cost
from dpsql.core.ledger import text as ledger_text
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.filters import Filter, RemainingBudget, Watch
from dpsql.core.ledger.lines import (
    FORMAT,
    Answer,
    BudgetRenewal,
    Claim,
    DroppedClaim,
    FormatChange,
    Line,
    Note,
    Process,
    UnitOf,
    UnknownLine,
)
from dpsql.core.ledger.reading import Charge, Charges, read_line, read_line_1
from dpsql.core.ledger.share_lines import AnalystRequest, FailedRequest, Share
from dpsql.core.ledger.shares import Shares
from dpsql.core.ledger.store import LATER, RESTORE, UNREADABLE
from dpsql.core.ledger.text import Rules
from dpsql.core.ledger.units import TableUnit, check_units
from dpsql.core.unit import Neighbours
from dpsql.errors import LedgerError


class LastLine(NamedTuple):
    """The last line of a ledger: its number, its hash, and the format of the lines after it."""

    number: int
    hash: str
    format: int


class HeldClaim(NamedTuple):
    """A claim's line: its number and hash, its time, and the process."""

    number: int
    digest: str
    time: str
    process: Process


class State:
    """The state after all lines up to `last`. analyst: whose share is watched too; owner: watch no share; within: a
    smaller budget, which is watched in addition to the whole. The caller synchronises threads."""

    def __init__(self, rules: Rules, *, analyst: str | None, owner: bool, within: Budget | None = None) -> None:
        moves = rules.neighbours is Neighbours.BOUNDED
        self.rules, self.budget = rules, rules.budget
        self.whole = Watch(rules.budget.filter(rules.accountant), moves=moves)
        self.watches = [self.whole]
        if within is not None:
            tighter = within.filter(rules.accountant)
            self.watches.append(Watch(tighter, moves=moves, whose=" of this session's budget"))
        own = None if owner else rules.budget.filter_of(analyst, rules.accountant)
        if own is not None:
            self.watches.append(Watch(own, moves=moves, whose=f' for analyst "{analyst}"', analyst=analyst))
        self._analyst = None if owner else analyst
        self._own: Watch | None = None  # for a share given by a line
        self.shares = Shares()
        self.charges = Charges()
        self.answers: dict[str, tuple[int, str]] = {}
        self.paid: dict[tuple[int | None, int], tuple[int, str]] = {}  # by charge and slot: the answer's line and hash
        self.claims: dict[str, HeldClaim] = {}  # those without an answer yet
        self.units: dict[str, TableUnit] = {}
        self.last = LastLine(0, ledger_text.first_hash(rules.text), rules.format)
        self.time = ""

    def answered(self, charge: int) -> bool:
        """Return whether a charge has all the answers that it paid for."""
        asked = self.shares.of_charge.get(charge)
        return all((charge, slot) in self.paid for slot in range(1 if asked is None else asked.due))

    def ended(self, charge: int) -> bool:
        """Return whether a charge has all its answers, or has finally failed."""
        return charge in self.shares.failed or self.answered(charge)

    def admits(self, cost: Cost, parts: Sequence[Part] = ()) -> bool:
        """Return whether a charge fits into the whole, and into the share."""
        return all(each.admits(cost, parts) for each in self.watches)

    def after(self, cost: Cost, parts: Sequence[Part] = ()) -> RemainingBudget | None:
        """Return what would remain after a charge, for queries about the same parts; None if it would be rejected."""
        if not self.admits(cost, parts):
            return None
        first, *others = [each.remaining(cost, parts) for each in self.watches]
        for each in others:
            first = first.least(each)
        return first

    def most(self, cost: Cost, parts: Sequence[Part] = ()) -> int | None:
        """Return how many more steps of this cost would be admitted; None if unlimited."""
        counts = [each.most(cost, parts) for each in self.watches]
        return min((count for count in counts if count is not None), default=None)

    def short_of(self, cost: Cost, parts: Sequence[Part] = ()) -> str:
        """Return, for a rejected step, what it lacks in words, if that is delta or includes delta; "" otherwise."""
        coin = replace(cost, delta=Fraction(0), hidden=Fraction(0))
        alone = Cost(Fraction(0), cost.delta, hidden=cost.hidden)
        fits, fits_alone = (self.admits(step, parts) for step in (coin, alone))
        name = "rho" if cost.epsilon is None else "epsilon"
        if fits_alone:
            return f"{name} and delta together" if fits and cost.delta else ""
        return f"{'' if fits else f'{name} and '}delta"

    def read(self, lines: Iterable[tuple[int, str, str]]) -> None:
        """Enter lines that follow the last one read: all of them or, if one is invalid, none."""
        last = self.last
        before, number, format_ = last.hash, last.number, last.format
        read = read_line if format_ == FORMAT else _read_old
        charges, others, latest, budget = Charges(), [], self.time, self.budget
        for place, text, digest in lines:
            number += 1
            if place != number or digest != ledger_text.next_hash(before, number, text):
                raise LedgerError(f"line {number} of the ledger is not what was written.", hint=RESTORE)
            try:
                line = read(text)
                if isinstance(line, BudgetRenewal):
                    budget = budget.renewed(line.epsilon, line.delta)
                    budget.filter(self.rules.accountant)
            except UnknownLine as error:
                raise LedgerError(f"line {number} of the ledger {error}.", hint=LATER) from None
            except UNREADABLE:
                raise LedgerError(f"line {number} of the ledger cannot be read.", hint=RESTORE) from None
            if isinstance(line, Charge):
                charges.append(number, line)
            else:
                others.append((number, digest, line))
                if isinstance(line, FormatChange):
                    read, format_ = read_line, FORMAT
            latest = line.time if line.time > latest or isinstance(line, Note) else latest
            before = digest
        if number == last.number:  # the usual case: nobody else has written
            return
        self._enter(charges, others)
        if budget is not self.budget:
            self.budget, self.whole.filter = budget, budget.filter(self.rules.accountant)
        self.last, self.time = LastLine(number, before, format_), latest

    def _enter(self, charges: Charges, others: Sequence[tuple[int, str, Line]]) -> None:
        """Enter lines that were read; those that are not charges have their numbers and hashes."""
        units = dict(self.units)
        for _, _, line in others:
            if isinstance(line, UnitOf):
                check_units(units, [line.unit])
                units[line.unit.table] = line.unit
        self.units = units
        for number, digest, line in others:
            if isinstance(line, Claim):
                self.claims[line.key] = HeldClaim(number, digest, line.time, line.process)
            elif isinstance(line, Answer):
                self.answers[line.key] = (number, line.digest)
                self.claims.pop(line.key, None)
                if line.charge is not None:
                    self.paid[line.charge, line.slot] = (number, line.digest)
                    self.shares.answered(line.charge, digest)
            elif isinstance(line, DroppedClaim):
                late_first = reversed(self.claims.items())  # usually a recent one
                dropped = next((key for key, held in late_first if held.number == line.claim), None)
                if dropped is not None:
                    del self.claims[dropped]
            elif isinstance(line, Share | AnalystRequest | FailedRequest):
                self.shares.enter(line, digest)
        self.charges.extend(charges)
        watched = self.watches if self.whole in self.watches else [self.whole, *self.watches]
        for each in watched:
            each.add_all(charges.steps(each.analyst))
        self._watch_share()

    def _watch_share(self) -> None:
        """Limit the analyst by the share that a line has given, and by nothing of others: their spending must not show
        in what is admitted here. Whenever a share is given, all shares together are checked against the whole."""
        holding = None if self._analyst is None else self.shares.holdings.get(self._analyst)
        if holding is None:
            return
        filter_ = Filter(holding.loss, self.rules.accountant)
        if self._own is not None:
            self._own.filter = filter_
            return
        moves = self.rules.neighbours is Neighbours.BOUNDED
        self._own = Watch(filter_, moves=moves, whose=f' for analyst "{self._analyst}"', analyst=self._analyst)
        self._own.add_all(self.charges.steps_of(self._analyst))
        self.watches[:1] = [self._own]


def _read_old(text: str) -> Line | Charge:
    """Return a line of format 1, or the line that ends it."""
    return read_line(text) if text.startswith('{"kind":"format",') else read_line_1(text)
