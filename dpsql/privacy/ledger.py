"""What has been spent of a budget, in memory: charged before anything is read, never given back, never overdrawn.

The filter is basic composition: a query is admitted when the sum of all losses, its own included, stays within the
budget. It is sound for losses chosen after seeing earlier answers (Rogers, Roth, Ullman, Vadhan, NeurIPS 2016,
section 5).
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from dpsql.errors import BudgetExceeded, LedgerError
from dpsql.privacy.loss import PrivacyLoss, as_delta, as_epsilon, show
from dpsql.privacy.unit import Neighbours


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """The most that all answers of a session may cost together. Raises InvalidPrivacyParameter."""

    loss: PrivacyLoss

    def __init__(self, epsilon: object, delta: object = 0) -> None:
        object.__setattr__(self, "loss", PrivacyLoss(as_epsilon(epsilon), as_delta(delta)))

    @property
    def epsilon(self) -> float:
        return float(self.loss.epsilon)

    @property
    def delta(self) -> float:
        return float(self.loss.delta)

    def __repr__(self) -> str:
        return f"Budget(epsilon={show(self.loss.epsilon)}, delta={show(self.loss.delta)})"


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge: the query's text and what it cost."""

    label: str
    loss: PrivacyLoss


class Ledger:
    """The entries of one budget, under one neighbour relation. One process, any number of threads.

    It cannot be copied, pickled or used in a forked child: two ledgers could each spend the whole budget.
    """

    def __init__(self, budget: Budget, neighbours: Neighbours) -> None:
        self.budget = budget
        self.neighbours = neighbours
        self._entries: list[Entry] = []
        self._spent = PrivacyLoss(Fraction(0))
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    @property
    def spent(self) -> PrivacyLoss:
        return self._spent

    @property
    def remaining(self) -> PrivacyLoss:
        """What is left in each coordinate."""
        budget = self.budget.loss
        return PrivacyLoss(budget.epsilon - self._spent.epsilon, budget.delta - self._spent.delta)

    def charge(self, loss: PrivacyLoss, label: str) -> None:
        """Enter a loss before its query runs. Raises BudgetExceeded (nothing entered) or LedgerError."""
        if os.getpid() != self._process:
            raise LedgerError(
                "this session was forked: parent and child would each spend the whole budget.",
                hint="Open a session of its own, with a budget of its own, in each process.",
            )
        with self._lock:
            after = self._spent + loss
            if not after.within(self.budget.loss):
                raise self._exceeded(loss)
            self._entries.append(Entry(label, loss))
            self._spent = after

    def _exceeded(self, loss: PrivacyLoss) -> BudgetExceeded:
        left, budget = self.remaining, self.budget.loss
        by_epsilon = loss.epsilon > left.epsilon
        cost, rest, spent, whole = (
            (show(each.epsilon) if by_epsilon else show(each.delta)) for each in (loss, left, self._spent, budget)
        )
        word = "epsilon" if by_epsilon else "delta"
        if rest != "0":
            hint = f"Run it with {word}={rest}, reuse an earlier answer, or ask the data owner."
        else:
            hint = "Reuse an earlier answer, or ask the data owner."
        return BudgetExceeded(
            f"this query costs {word} {cost} but {rest} is left (spent {spent} of {whole} in "
            f"{len(self._entries)} {'query' if len(self._entries) == 1 else 'queries'}). "
            "Nothing was run, nothing was charged.",
            hint=hint,
        )

    def __copy__(self) -> NoReturn:
        raise LedgerError("a ledger cannot be copied: each copy could spend the whole budget.")

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a ledger in memory cannot be pickled: each copy could spend the whole budget.")
