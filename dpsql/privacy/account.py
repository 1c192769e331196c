"""The running sums of a ledger: steps that read everything, and steps that read one part of a declared partition."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from dpsql.privacy.cost import FREE, Cost
from dpsql.privacy.filters import Filter


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A part of a declared partition: the value that a column of a table has in every row that a step reads."""

    table: str
    column: str
    value: str


class Account:
    """Sums of costs, for units that lie in one part of each partition. Parallel composition.

    A step that reads only rows of some parts has, for neighbours that differ by a unit of another part, the same law on
    both: it costs that unit nothing. So a unit costs the common sum and the sum of its own part, of each partition, at
    most; the largest parts are taken, coordinate by coordinate (McSherry, SIGMOD 2009, theorem 4, unit by unit; which
    unit it is is fixed before the first step, so a filter may watch all of them at once). A unit that changes (bounded
    neighbours) can leave one part and enter another: `most` = 2 parts.
    """

    def __init__(self, most: int = 1) -> None:
        self._most = most
        self._common = FREE
        self._parts: dict[tuple[str, str], dict[str, Cost]] = {}
        self._largest: dict[tuple[str, str], Cost] = {}

    @property
    def parted(self) -> bool:
        """Whether some step has read parts only."""
        return bool(self._parts)

    def add(self, cost: Cost, parts: Iterable[Part] = ()) -> None:
        """Enter a step that reads all rows, or those of the parts (of one partition) only."""
        parts = tuple(parts)
        if not parts:
            self._common += cost
            return
        for part in parts:
            sums = self._parts.setdefault((part.table, part.column), {})
            sums[part.value] = sums.get(part.value, FREE) + cost
        for partition in {(part.table, part.column) for part in parts}:
            self._largest[partition] = self._most_of(self._parts[partition])

    def total(self, cost: Cost = FREE, parts: Iterable[Part] = ()) -> Cost:
        """What any unit costs at most, after one more step."""
        parts = tuple(parts)
        largest = dict(self._largest)
        for partition in {(part.table, part.column) for part in parts}:
            sums = dict(self._parts.get(partition, {}))
            for part in parts:
                sums[part.value] = sums.get(part.value, FREE) + cost
            largest[partition] = self._most_of(sums)
        return sum(largest.values(), self._common if parts else self._common + cost)

    def admitted(self, held: Filter, cost: Cost = FREE, parts: Iterable[Part] = ()) -> bool:
        """Whether a filter admits one more step, for every unit.

        A filter is about a pair of neighbours, so each unit may be within it in a way of its own: first the largest
        sums are tried, then, for one partition, part by part.
        """
        parts = tuple(parts)
        if held.admits(self.total(cost, parts)):
            return True
        partitions = {*self._parts, *((part.table, part.column) for part in parts)}
        if self._most > 1 or len(partitions) != 1:
            return False
        (sums,) = self._parts.values() or ({},)
        read = {part.value for part in parts}
        common = self._common if parts else self._common + cost
        return all(
            held.admits(common + sums.get(value, FREE) + (cost if value in read else FREE)) for value in {*sums, *read}
        )

    def of(self, parts: Iterable[Part] = ()) -> Cost:
        """What units of these parts have cost so far, those that cost most; of all units, where no part is named."""
        parts = tuple(parts)
        if not parts:
            return self.total()
        partition = (parts[0].table, parts[0].column)
        sums = self._parts.get(partition, {})
        others = sum((cost for name, cost in self._largest.items() if name != partition), self._common)
        return others + reduce(Cost.join, (self._beside(part.value, sums) for part in parts), FREE)

    def _beside(self, value: str, sums: dict[str, Cost]) -> Cost:
        """A part and, where units can move, the largest other one."""
        own = sums.get(value, FREE)
        if self._most == 1:
            return own
        return own + reduce(Cost.join, (cost for name, cost in sums.items() if name != value), FREE)

    def _most_of(self, sums: dict[str, Cost]) -> Cost:
        if self._most == 1:
            return reduce(Cost.join, sums.values(), FREE)
        few = sums.values()
        return Cost(
            None if any(each.epsilon is None for each in few) else self._top(lambda c: c.epsilon or Fraction(0), few),
            self._top(lambda c: c.delta, few),
            self._top(lambda c: c.rho, few),
            self._top(lambda c: c.hidden, few),
        )

    def _top(self, coordinate: Callable[[Cost], Fraction], sums: Iterable[Cost]) -> Fraction:
        return sum(heapq.nlargest(self._most, map(coordinate, sums)), Fraction(0))
