"""Shares of a budget, given and changed by lines of its ledger: a filter for each analyst, independent of what other
analysts do.

docs/proofs/14-filters.md proves that all analysts together learn no more than the budget's (epsilon, delta), whatever
they tell each other. It requires that the sums in `check_room` stay within the budget whenever a share is given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from fractions import Fraction
from sys import intern
from typing import NamedTuple

from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.filters import Filter
from dpsql.core.ledger.share_lines import ALLOWED, ENDED, GIVEN, REVOKED, AnalystRequest, FailedRequest, ShareLine
from dpsql.core.loss import PrivacyLoss, show
from dpsql.errors import InvalidPrivacyParameter, LedgerError

MOST_FAILURES = 3
"""The number of failed runs that stops an analyst, since each may reveal a little about rows."""


class HeldShare(NamedTuple):
    """An analyst's share, and whether it may be spent."""

    loss: PrivacyLoss
    current: bool


class Shares:
    """The state described by all lines of shares."""

    def __init__(self) -> None:
        self.holdings: dict[str, HeldShare] = {}
        self.ended: set[str] = set()  # hashes of tokens
        self.asked: dict[str, AnalystRequest] = {}  # by the hash of the key
        self.of_charge: dict[int, AnalystRequest] = {}
        self.failed: dict[int, str] = {}
        self.failures: dict[str, int] = {}  # by analyst, since the last ALLOWED
        self.changes = 0  # of shares
        self._charges: dict[str, list[int]] = {}  # by analyst, those under keys
        self._ends: dict[int, str] = {}  # by charge: the hash of the line with its outcome

    def enter(self, line: ShareLine, digest: str = "") -> None:
        """Add one line, with its hash."""
        if isinstance(line, AnalystRequest):
            self.asked[line.key] = self.of_charge[line.charge] = line
            self._charges.setdefault(line.analyst, []).append(line.charge)
        elif isinstance(line, FailedRequest):
            self.failed[line.charge] = line.reason
            self.answered(line.charge, digest)
            asked = self.of_charge.get(line.charge)
            if asked is not None:
                self.failures[asked.analyst] = self.failures.get(asked.analyst, 0) + 1
        elif line.event == GIVEN:
            self.changes += 1
            self.holdings[line.analyst] = HeldShare(PrivacyLoss(line.epsilon, line.delta), True)
        elif line.event == REVOKED:
            self.changes += 1
            self.holdings[line.analyst] = self.holdings[line.analyst]._replace(current=False)
        elif line.event == ENDED:
            self.ended.add(line.token)
        elif line.event == ALLOWED:
            self.failures[line.analyst] = 0

    def answered(self, charge: int, digest: str) -> None:
        """Record a line with the outcome of a charge, by its hash."""
        if charge in self.of_charge:
            self._ends[charge] = intern(digest)

    def outcome(self, charge: int) -> tuple[int, str] | None:
        """See `SharedBook.outcome`."""
        asked, digest = self.of_charge.get(charge), self._ends.get(charge)
        if asked is None or digest is None:
            return None
        return bisect_left(self._charges[asked.analyst], charge) + 1, digest

    def holds_outcome(self, analyst: str, place: int, digest: str) -> bool:
        """See `SharedBook.holds_outcome`."""
        charges = self._charges.get(analyst, [])
        return 0 < place <= len(charges) and self._ends.get(charges[place - 1]) == digest

    def check(self, analyst: str | None) -> None:
        """Raise LedgerError if there are shares and the analyst has none to spend, or was stopped."""
        if not self.holdings:
            return
        holding = None if analyst is None else self.holdings.get(analyst)
        if holding is None:
            raise LedgerError(
                "this budget is shared out, and whoever asks here has no share of it. Nothing was charged.",
                hint="Its owner gives shares: dpsql access add NAME --schema FILE --epsilon X --tables ...",
            )
        if not holding.current:
            raise LedgerError(f'the share of analyst "{analyst}" was revoked. Nothing was charged.')
        if self.failures.get(analyst or "", 0) >= MOST_FAILURES:
            raise LedgerError(
                f'{MOST_FAILURES} runs of analyst "{analyst}" came to no answer. Nothing was charged.',
                hint=f"The owner looks why, and says: dpsql access allow {analyst} --schema FILE",
            )

    def check_given(self, analyst: str, loss: PrivacyLoss) -> None:
        """Raise InvalidPrivacyParameter if a share changes its delta: the part of it at which rho is converted must not
        depend on answers."""
        before = self.holdings.get(analyst)
        if before is not None and before.loss.delta != loss.delta:
            raise InvalidPrivacyParameter(
                f'the share of analyst "{analyst}" has delta {show(before.loss.delta)}, which stays as it is.',
                hint="Leave --delta out, or give a share of another name.",
            )


Loss = tuple[Fraction, Fraction]
"""An epsilon and a delta."""


def spent_of(total: Cost, watched: Filter, whole: Loss) -> Loss:
    """Return the loss that counts for steps that have ended: the plain sums, plus the part of delta at which rho was to
    be converted, since the filter may have relied on it on other paths; `whole` if the epsilons reach it."""
    if total == FREE:
        return Fraction(0), Fraction(0)
    if total.epsilon is None or total.epsilon >= whole[0]:
        return whole
    return total.epsilon, min(total.delta + (watched.conversion or 0), whole[1])


def check_room(budget: Budget, losses: Iterable[Loss]) -> None:
    """Raise InvalidPrivacyParameter if losses together exceed the budget."""
    epsilons, deltas = zip(*losses, strict=True)
    for word, total, whole in (
        ("epsilon", sum(epsilons), budget.loss.epsilon),
        ("delta", sum(deltas), budget.loss.delta),
    ):
        if total > whole:
            raise InvalidPrivacyParameter(
                f"all shares would come to {word} {show(Fraction(total), up=True)}, and the budget is {show(whole)}.",
                hint="Of a share that was revoked what it spent counts, of every other all of it. Give less, set a\n"
                "new total first (dpsql ledger renew FILE --epsilon X --reason TEXT), or say overlap = true in\n"
                "[server]: then what one analyst spends can keep another from asking.",
            )
