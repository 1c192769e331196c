"""A ledger that was put back from a copy: what may have been spent since, it does not know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from dpsql.core.cost import Cost
from dpsql.core.ledger.filters import Watch
from dpsql.core.ledger.lines import FORMAT, Entry, Note
from dpsql.core.ledger.share_lines import ALLOWED, GIVEN, REVOKED, FailedRequest, Share
from dpsql.core.ledger.shares import MOST_FAILURES, Loss
from dpsql.core.ledger.sharing import SharedBook
from dpsql.errors import LedgerError

Stated = Mapping[str, Loss]
"""What the owner knows to have been spent since, by analyst; "": by all of a ledger without shares."""


class RestoredBook(SharedBook):
    """A book that can be put back."""

    def restored(self, note: str, stated: Stated | None = None) -> dict[str, Loss]:
        """Charge what may have been spent since these lines were copied: of each share all that was left, and all that
        could have been given to others; less only where the owner states it, of each by name. Returns what was charged.

        Proof that whatever was answered since is counted: each answer since was admitted by a share that is among these
        lines, and was then within what was left of it; or by one that was given since, and those together were within
        what no share had (`check_room`), or within what was left of the whole where shares overlap. A charge without an
        answer may have had one since, so it has none from here on: another draw under it would not be paid for.
        Raises LedgerError for a ledger of format 1."""
        with self._writing():
            if self._state.last.format < FORMAT:
                raise LedgerError("the ledger is of format 1.", hint="Open a session on it first: it takes its units.")
            now, charged = self._now(), dict(self._lost(stated))
            self._append(Note(now, note))
            shared = self._state.shares.holdings
            for name, (epsilon, delta) in charged.items():
                unknown = shared and name not in shared
                if unknown:  # a share that has come since and is gone: what it had counts, and its name is taken
                    self._append(Share(now, name, GIVEN, epsilon, delta))
                self._append(Entry(now, name or None, note, Cost.of(epsilon, delta)))
                if unknown:
                    self._append(Share(now, name, REVOKED))
            self._end_open_charges(now)
        return charged

    def _lost(self, stated: Stated | None) -> Iterator[tuple[str, Loss]]:
        known, holdings = dict(stated or {}), self._state.shares.holdings
        whole = self._state.budget.loss
        if not holdings:
            yield "", known.get("", self._left(self._state.whole, (whole.epsilon, whole.delta)))
            return
        for name, holding in holdings.items():
            share = (holding.loss.epsilon, holding.loss.delta)
            if name in known:
                yield name, known.pop(name)
            elif holding.current:
                yield name, self._left(self._watch(name, holding.loss), share)
        if stated is None:
            known[f"given to others until {self._now()}"] = self._given_since()
        yield from ((name, loss) for name, loss in known.items() if name and loss[0])

    def _given_since(self) -> Loss:
        """What others may have been given, and have spent."""
        whole, counted = self._state.budget.loss, self._all_counted(self._state.shares.holdings)
        if self._overlapping():
            return self._left(self._state.whole, (whole.epsilon, whole.delta))
        epsilons, deltas = zip(*counted, strict=True)
        return max(whole.epsilon - sum(epsilons), Fraction(0)), max(whole.delta - sum(deltas), Fraction(0))

    @staticmethod
    def _left(watch: Watch, whole: Loss) -> Loss:
        """All that is left: by plain sums where that says all of it, else the whole once more."""
        total, left = watch.total, watch.remaining()
        if watch.plain and total.epsilon is not None and whole[0] - total.epsilon == left.epsilon:
            return left.epsilon, whole[1]
        return whole

    def _end_open_charges(self, now: str) -> None:
        shares = self._state.shares
        open_ = [each for each in shares.of_charge.values() if not self._state.answered(each.charge)]
        for each in open_:
            if each.charge not in shares.failed:
                self._append(FailedRequest(now, each.charge, "error"))
        for name in dict.fromkeys(each.analyst for each in open_):
            if shares.failures.get(name, 0) < MOST_FAILURES:  # these are no deaths of theirs
                self._append(Share(now, name, ALLOWED))
