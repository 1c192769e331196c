"""A ledger restored from a copy, which does not know what was spent since."""

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
"""Spending since the copy that the owner knows of, by analyst; "": in total for a ledger without shares."""


class RestoredBook(SharedBook):
    """A book that can be restored."""

    def restored(self, note: str, stated: Stated | None = None) -> dict[str, Loss]:
        """Charge what may have been spent since these lines were copied: all that was left of each share, and all that
        could have been given to others; less only for analysts whose spending the owner states by name. Return the
        charges.

        Proof that every answer since is counted: each was admitted either by a share that is among these lines, and was
        then within what was left of it; or by a share given since. Shares given since were together within what no
        share had (`check_room`), or within what was left of the whole if shares overlap. A charge without an answer may
        have had one since, so it gets none from here on: another draw under it would not be paid for.
        Raises LedgerError for a ledger of format 1."""
        with self._writing():
            if self._state.last.format < FORMAT:
                raise LedgerError("the ledger is of format 1.", hint="Open a session on it first: it takes its units.")
            now, charged = self._now(), dict(self._lost(stated))
            self._append(Note(now, note))
            shared = self._state.shares.holdings
            for name, (epsilon, delta) in charged.items():
                unknown = shared and name not in shared
                if unknown:  # a share given since the copy, now gone: its spending counts, and its name is taken
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
        """Return what others may have been given and have spent."""
        whole, counted = self._state.budget.loss, self._all_counted(self._state.shares.holdings)
        if self._overlapping():
            return self._left(self._state.whole, (whole.epsilon, whole.delta))
        epsilons, deltas = zip(*counted, strict=True)
        return max(whole.epsilon - sum(epsilons), Fraction(0)), max(whole.delta - sum(deltas), Fraction(0))

    @staticmethod
    def _left(watch: Watch, whole: Loss) -> Loss:
        """Return all that is left: by plain sums if they account for all of it, otherwise the whole again."""
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
            if shares.failures.get(name, 0) < MOST_FAILURES:  # not failures of the analyst's runs
                self._append(Share(now, name, ALLOWED))
