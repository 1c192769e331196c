"""The running sums of a ledger, for steps that read everything and steps that read parts of a declared partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from functools import reduce

from dpsql.core.cost import FREE, Cost, total_of
from dpsql.schema.frozen import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A part of a declared partition: the value that one column has in every row of a table that a step reads."""

    table: str
    column: str
    value: str

    @property
    def partition(self) -> tuple[str, str]:
        return self.table, self.column


class Account:
    """Sums of costs, for units that lie in one part of each partition. Parallel composition.

    If neighbours differ by a unit outside the parts that a step reads, the step has the same output distribution on
    both: it costs that unit nothing. So a unit costs the common sum plus the sum of its own part, of each partition
    (McSherry, SIGMOD 2009, theorem 4, unit by unit). The differing unit is fixed before the first step, so a filter may
    watch all units at once, each separately. A unit that changes (`moves`: bounded neighbours) can leave one part and
    enter another. Then it costs the sums of two parts.
    """

    def __init__(self, *, moves: bool = False) -> None:
        self._moves = moves
        self._common = FREE
        self._parts: dict[tuple[str, str], _Sums] = {}

    @property
    def plain(self) -> bool:
        """True if every step so far has read everything."""
        return not self._parts

    def tells_apart(self, parts: Sequence[Part] = ()) -> bool:
        """Return whether `concerned` yields a separate sum for each placement of a unit in parts."""
        return not self._moves and len({*self._parts, *(part.partition for part in parts)}) <= 1

    def add(self, cost: Cost, parts: Iterable[Part] = ()) -> None:
        """Add a step that reads all rows, or only those of the parts (of one partition)."""
        self.add_all([(cost, tuple(parts))])

    def add_all(self, steps: Iterable[tuple[Cost, Sequence[Part]]]) -> None:
        """Add steps in order: costs, and the parts that each reads (empty: all rows)."""
        common: list[Cost] = []
        of_parts: dict[Part, list[Cost]] = {}
        for cost, parts in steps:
            apart = self._told_apart(parts) if parts else ()
            for part in apart:
                of_parts.setdefault(part, []).append(cost)
            if not apart:
                common.append(cost)
        self._common = total_of(self._common, common)
        for part, costs in of_parts.items():
            self._parts.setdefault(part.partition, _Sums()).add(part.value, costs)

    def concerned(self, cost: Cost = FREE, parts: Sequence[Part] = ()) -> Iterator[Cost]:
        """Yield the cost, with this step, of the units that the step concerns: one sum for each possible
        part.

        A step that reads everything concerns all units. With several partitions, or units that move, the largest sums
        of the others are used, coordinate by coordinate.
        """
        parts = self._told_apart(parts)
        if parts:
            own = self._parts.get(parts[0].partition, _Sums())
            base = self._others(parts[0].partition)
            after = {part.value: own.of(part.value) + cost for part in parts}
            for value, total in after.items():
                yield base + total + (self._beside(own, value, after) if self._moves else FREE)
            return
        base = self._common + cost
        if len(self._parts) == 1 and not self._moves:
            (sums,) = self._parts.values()
            yield base
            for total in sums.all():
                yield base + total
        else:
            yield base + self._largest_of_all()

    def at_most(self, cost: Cost = FREE, parts: Sequence[Part] = ()) -> Cost:
        """Return a cost that is at least that of every unit that a step concerns, coordinate by coordinate."""
        if self._told_apart(parts):
            return reduce(Cost.join, self.concerned(cost, parts))
        return self._common + cost + self._largest_of_all()

    def _told_apart(self, parts: Iterable[Part]) -> tuple[Part, ...]:
        """Return the parts of a step; empty for a step that reads several if a unit can move between them. Such a step
        counts as reading everything: it costs that unit once, not once for each part."""
        found = tuple(parts)
        return () if self._moves and len(found) > 1 else found

    def _largest_of_all(self) -> Cost:
        return sum((sums.largest(2 if self._moves else 1) for sums in self._parts.values()), FREE)

    def _others(self, partition: tuple[str, str]) -> Cost:
        others = [sums for name, sums in self._parts.items() if name != partition]
        return sum((sums.largest(2 if self._moves else 1) for sums in others), self._common)

    @staticmethod
    def _beside(own: _Sums, value: str, after: dict[str, Cost]) -> Cost:
        """Return the largest other part that a unit can come from or go to."""
        return reduce(Cost.join, (total for name, total in after.items() if name != value), own.largest_but(value))


@dataclass(slots=True)
class _Sums:
    """The sums of one partition's parts, with the two largest of each coordinate; sums only grow."""

    _held: dict[str, Cost] = field(default_factory=dict)
    _top: list[list[tuple[_Size, str]]] = field(default_factory=lambda: [[], [], [], []])

    def of(self, value: str) -> Cost:
        return self._held.get(value, FREE)

    def all(self) -> Iterable[Cost]:
        return self._held.values()

    def add(self, value: str, costs: Sequence[Cost]) -> None:
        total = self._held[value] = total_of(self.of(value), costs)
        for top, size in zip(self._top, _sizes(total), strict=True):
            others = [each for each in top if each[1] != value]
            top[:] = sorted([*others, (size, value)], reverse=True)[:2]

    def largest(self, count: int) -> Cost:
        """Return the sum of the `count` (1 or 2) largest parts."""
        return _cost_of([[size for size, _ in top[:count]] for top in self._top])

    def largest_but(self, value: str) -> Cost:
        """Return the largest part other than this one."""
        return _cost_of([[size for size, name in top if name != value][:1] for top in self._top])


_Size = tuple[bool, Fraction]
"""A flag that is True for an infinite coordinate, and the value of a finite one."""


def _sizes(cost: Cost) -> tuple[_Size, _Size, _Size, _Size]:
    epsilon = (True, Fraction(0)) if cost.epsilon is None else (False, cost.epsilon)
    return epsilon, (False, cost.delta), (False, cost.rho), (False, cost.hidden)


def _cost_of(sizes: list[list[_Size]]) -> Cost:
    epsilon, *others = (
        None if any(each[0] for each in size) else sum((s for _, s in size), Fraction(0)) for size in sizes
    )
    delta, rho, hidden = (each or Fraction(0) for each in others)
    return Cost(epsilon, delta, rho, hidden)
