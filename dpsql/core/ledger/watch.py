"""A filter over the running sums of a ledger: the whole's, or that of one analyst's share."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.account import Account, Part
from dpsql.core.ledger.filters import Filter, Remaining, Spent


class Watch:
    """Admits a step if its filter does so for every unit. `whose`: a phrase for an analyst's share, in messages."""

    def __init__(self, held: Filter, *, moves: bool, whose: str = "") -> None:
        self.filter = held
        self.whose = whose
        self.queries = 0
        self._account = Account(moves=moves)

    def add(self, cost: Cost, parts: Sequence[Part]) -> None:
        """Enter a step that was admitted."""
        self.add_all([(cost, parts)])

    def add_all(self, steps: Sequence[tuple[Cost, Sequence[Part]]]) -> None:
        """Enter steps that were admitted: costs, and the parts that each reads."""
        self._account.add_all(steps)
        self.queries += len(steps)

    def admits(self, cost: Cost, parts: Sequence[Part] = ()) -> bool:
        """Whether one more step is admitted.

        A filter is about a pair of neighbours, so each unit may be within it in a way of its own; one cost that is at
        least all of theirs is tried first, since they can be many. Where units are not told apart one by one (several
        partitions, or moves between parts), one cost for all units has to be admitted, so that there is always one.
        """
        concerned = self._account.at_most(cost, parts)
        if not self._account.tells_apart(parts):
            return self.filter.admits(concerned.join(self._account.at_most()))
        if self.filter.admits(concerned):
            return True
        return all(self.filter.admits(total) for total in self._account.concerned(cost, parts))

    def spent(self, parts: Sequence[Part] = ()) -> Spent:
        """What the units of these parts have spent, or all units: those that have spent most."""
        return max(map(self.filter.spent, self._totals(FREE, parts)), key=lambda spent: (spent.epsilon, spent.delta))

    def remaining(self, cost: Cost = FREE, parts: Sequence[Part] = ()) -> Remaining:
        """What the next query about these parts may have, after a step that is admitted."""
        first, *others = map(self.filter.remaining, self._totals(cost, parts))
        for each in others:
            first = first.least(each)
        return first

    def most(self, cost: Cost, parts: Sequence[Part] = ()) -> int | None:
        """How many steps of this cost are admitted; None for any number."""
        if cost == FREE:
            return None
        at_most = self._account.at_most(parts=parts)
        if not parts and self._account.plain:
            return self.filter.most(at_most, cost)
        low, high = 0, 1
        while self.admits(cost.times(high), parts):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.admits(cost.times(middle), parts) else (low, middle)
        return low

    def _totals(self, cost: Cost, parts: Sequence[Part]) -> list[Cost]:
        """Sums that are admitted, of which the largest tells: as `admits` looks at them."""
        at_most = self._account.at_most(cost, parts)
        if not self._account.tells_apart(parts):
            return [at_most.join(self._account.at_most())]
        return [at_most] if self.filter.admits(at_most) else list(self._account.concerned(cost, parts))
