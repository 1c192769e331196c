"""Blockwise execution for a privacy unit whose rows exceed the memory limit of a join.

The rows kept of a unit beyond its limits are the same as if all of its rows were present at once. The kept groups are
those of the least hashes: the least of two sets of groups are among the least of each. The kept rows, at most R in all
and r in each group, are a basis of least weight of a laminar matroid (Edmonds, "Matroids and the greedy algorithm",
1971). A row is kept just if fewer than r rows of its group, and fewer than R of those kept in their groups, come before
it by hash. More rows only raise both counts, so a row that is dropped from some blocks' rows would be dropped from all
of them. So the final rows can be chosen from the ones kept in each block. Ties go by the order of the unit's own rows,
in which blocks come. So the kept rows are a function of the unit's rows and the key, as `bounding` requires, and do not
depend on the block size.

All rows of a unit are needed at once inside EXISTS or IN, right of a join, in groups, or in windows. If a join makes
more than `MOST_WHOLE` of them there, the unit is dropped from the answer; this depends only on its own rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import (
    AllUnits,
    CountRows,
    CountUnits,
    ExactPlan,
    ExactTable,
    Part,
    UnitMean,
    UnitTotal,
    UnitWeights,
    of_units,
    weight_of,
)
from dpsql.core.unit import ContributionBound
from dpsql.executors.pandas.blockwise import blocks, hold
from dpsql.executors.pandas.database import Database
from dpsql.executors.pandas.groups import Codes, Groups
from dpsql.executors.pandas.joins.pairing import TooManyRows
from dpsql.executors.pandas.relations import Relation
from dpsql.executors.pandas.sums.partials import GroupName, Partial, Totals, names_of
from dpsql.executors.pandas.units.bounding import keep_rows
from dpsql.executors.pandas.units.kept_rows import RowHashes
from dpsql.plan.expressions import Bools, Expr
from dpsql.plan.nodes import Source
from dpsql.schema.frozen import dataclass

Hashes = NDArray[np.uint64]
MOST_WHOLE = 1 << 22
"""Most rows of one unit that are held at once. Every slice holds fewer, so slice sizes do not affect dropped units."""


class Run(Protocol):
    """A plan over rows that are all in memory."""

    groups: Groups | None

    def codes(self) -> Codes:
        """Return the group of every row; the number of groups for dropped rows."""

    def partial(self) -> Partial:
        """Return the exact answer, to be added to others."""

    def table(self) -> ExactTable:
        """Return the exact answer."""


Engine = Callable[[ExactPlan, Relation, Sequence[Expr], bytes], Run]


@dataclass(frozen=True, repr=False)
class Work:
    """A plan, the source of its rows below the filters (`predicates`), the hash key, and the engine."""

    plan: ExactPlan
    source: Source
    predicates: tuple[Expr, ...]
    key: bytes
    engine: Engine
    database: Database

    def run(self, plan: ExactPlan, rows: Relation, predicates: Sequence[Expr] = ()) -> Run:
        return self.engine(plan, rows, predicates, self.key)


def add_unit(totals: Totals, work: Work, most: int) -> None:
    """Add the contribution of the one unit whose rows the database holds. At most `most` rows are made at once, unless
    a single row makes more."""
    plan, database = work.plan, work.database
    database.most, database.most_alike = MOST_WHOLE, 0
    try:
        hold(database, work.source)
    except TooManyRows:
        return
    rows = partial(blocks, database, work.source, most)
    if plan.limits is None and plan.groups is None and not any(map(of_units, plan.parts)):
        for block in rows():
            totals.add(work.run(plan, block, work.predicates).partial())
    else:
        _LargeUnit(work, rows).add_to(totals)


class _LargeUnit:
    """A unit with contribution bounds; follows the steps of `choose_rows`."""

    def __init__(self, work: Work, blocks: Callable[[], Iterator[Relation]]) -> None:
        self.work, self.plan, self.blocks = work, work.plan, blocks
        self.bare = replace(work.plan, parts=(), grids=(), limits=None, groups=None)
        parts = list(enumerate(self.plan.parts))
        self.of_unit = {place: part for place, part in parts if of_units(part)}
        self.of_rows = {place: part for place, part in parts if not of_units(part)}

    def add_to(self, totals: Totals) -> None:
        by_row = bool(self.of_rows or self.plan.grids)
        limits = self.plan.limits if by_row else None
        for_unit, for_rows = self._kept_groups(limits)
        if by_row and limits is None:
            self._add_all_rows(totals, for_rows)
        elif limits is not None:
            self._add_rows(totals, self._least_rows(limits, for_rows))
        if self.of_unit:
            self._add_unit(totals, for_unit)

    def _kept_groups(self, limits: ContributionBound | None) -> tuple[_Groups | None, _Groups | None]:
        """Return the kept groups for parts over units, and those for parts over rows; None: all."""
        for_unit = self.plan.groups if self.of_unit and self.plan.keys else None
        fewer = limits.groups if limits is not None and self.plan.keys and limits.groups < limits.rows else None
        wanted = [most for most in (for_unit, fewer) if most is not None]
        if not wanted:
            return None, None
        least = self._least_groups(max(wanted))
        return None if for_unit is None else dict(least[:for_unit]), dict(least[: min(wanted)])

    def _row_plan(self) -> ExactPlan:
        return replace(self.bare, parts=tuple(self.of_rows.values()), grids=self.plan.grids)

    def _add_all_rows(self, totals: Totals, groups: _Groups | None) -> None:
        plan = self._row_plan()
        for block in self._seen():
            totals.add(self._answer(plan, block.rows.at(block.inside(groups))), list(self.of_rows))

    def _add_rows(self, totals: Totals, chosen: Mapping[int, Codes]) -> None:
        """Add the chosen rows, by block."""
        plan = self._row_plan()
        for number, rows in enumerate(self.blocks()) if chosen else ():
            if number in chosen:
                totals.add(self._answer(plan, rows.at(chosen[number])), list(self.of_rows))

    def _add_unit(self, totals: Totals, groups: _Groups | None) -> None:
        """Add the unit's contribution to parts over units."""
        plan = replace(self.bare, parts=tuple(each for part in self.of_unit.values() for each in _sums_of(part)))
        sums = Totals(plan)
        for block in self._seen():
            sums.add(self._answer(plan, block.rows.at(block.inside(groups))))
        whole = _of_one_unit(list(self.of_unit.values()), sums.table())
        totals.add(Partial(whole, {}), list(self.of_unit), grids=False)

    def _answer(self, plan: ExactPlan, rows: Relation) -> Partial:
        return self.work.run(plan, rows).partial()

    def _seen(self) -> Iterator[_Block]:
        for rows in self.blocks():
            run = self.work.run(self.bare, rows, self.work.predicates)
            yield _Block(self.plan, rows, run.codes(), run.groups, self.work.key)

    def _least_groups(self, most: int) -> list[tuple[GroupName, int]]:
        """Return the groups of the least hashes with their hashes, in order; ties go to the first."""
        least: dict[GroupName, int] = {}
        for block in self._seen():
            for name, number in block.least_groups(most):
                least.setdefault(name, number)
            least = dict(sorted(least.items(), key=lambda each: each[1])[:most])
        return list(least.items())

    def _least_rows(self, limits: ContributionBound, groups: _Groups | None) -> dict[int, Codes]:
        """Return the rows of the least hashes, by block."""
        limits = replace(limits, groups=limits.rows)  # groups are already chosen
        chosen = _LeastHashes(limits, grouped=bool(self.plan.keys) and limits.per_group < limits.rows)
        for number, block in enumerate(self._seen()):
            chosen.add(number, block, block.inside(groups))
        return {int(number): np.sort(chosen.rows[chosen.blocks == number]) for number in np.unique(chosen.blocks)}


_Groups = dict[GroupName, int]


class _Block:
    """Some rows of the unit, with their groups."""

    def __init__(self, plan: ExactPlan, rows: Relation, codes: Codes, groups: Groups | None, key: bytes) -> None:
        self.plan, self.rows, self.codes, self.groups, self.key = plan, rows, codes, groups, key
        self.places = np.flatnonzero(codes < (groups.cells if groups else 1))

    def hashes(self, places: Codes) -> Hashes:
        """Return the hashes of rows."""
        return self._hashes(places)(np.arange(len(places)))[0]

    def _hashes(self, places: Codes) -> RowHashes:
        return RowHashes(self.plan, self.rows, self.codes, self.groups, self.key, places)

    def names(self, codes: Codes) -> list[GroupName]:
        assert self.groups is not None  # callers check that there are groups
        return names_of(self.plan, self.groups.values(codes))

    def _first_rows(self) -> tuple[Codes, Codes, Hashes]:
        """Return the groups that occur, by code, their first rows, and their hashes."""
        present, first = np.unique(self.codes[self.places], return_index=True)
        rows = self.places[first]
        return present, rows, self._hashes(rows).of_groups(np.arange(len(rows)))

    def least_groups(self, most: int) -> Iterator[tuple[GroupName, int]]:
        present, rows, hashes = self._first_rows()
        order = np.lexsort((rows, hashes))[:most]
        return zip(self.names(present[order]), hashes[order].tolist(), strict=True)

    def inside(self, groups: _Groups | None) -> Codes:
        """Return the rows in these groups."""
        if groups is None:
            return self.places
        present, _, hashes = self._first_rows()
        likely = np.isin(hashes, np.array(list(groups.values()), dtype=np.uint64))  # hashes are faster than names
        wanted = np.zeros(len(present), dtype=bool)
        wanted[likely] = [name in groups for name in self.names(present[likely])]
        return self.places[np.isin(self.codes[self.places], present[wanted])]


class _LeastHashes:
    """The rows of the least hashes in the blocks so far."""

    def __init__(self, limits: ContributionBound, *, grouped: bool) -> None:
        self.limits = limits
        self.grouped = grouped
        self.blocks = self.rows = self._groups = np.zeros(0, dtype=np.int64)
        self._hashes: Hashes = np.zeros(0, dtype=np.uint64)
        self._numbers: dict[GroupName, int] = {}

    def add(self, number: int, block: _Block, places: Codes) -> None:
        hashes = block.hashes(places)
        kept = self._least(hashes, block.codes[places] if self.grouped else None)
        places, hashes = places[kept], hashes[kept]
        self.blocks = np.concatenate([self.blocks, np.full(len(places), number)])
        self.rows = np.concatenate([self.rows, places])
        self._hashes = np.concatenate([self._hashes, hashes])
        if self.grouped:
            present, codes = np.unique(block.codes[places], return_inverse=True)
            names = [self._numbers.setdefault(name, len(self._numbers)) for name in block.names(present)]
            self._groups = np.concatenate([self._groups, np.array(names, dtype=np.int64)[codes]])
        kept = self._least(self._hashes, self._groups if self.grouped else None)
        self.blocks, self.rows, self._hashes = self.blocks[kept], self.rows[kept], self._hashes[kept]
        if self.grouped:
            self._forget(kept)

    def _forget(self, kept: Codes) -> None:
        """Renumber the groups that still have rows."""
        present, self._groups = np.unique(self._groups[kept], return_inverse=True)
        place = {int(number): at for at, number in enumerate(present)}
        self._numbers = {name: place[number] for name, number in self._numbers.items() if number in place}

    def _least(self, hashes: Hashes, groups: Codes | None) -> Codes:
        units = np.zeros(len(hashes), dtype=np.int64)
        kept: Bools | None = keep_rows(units, groups, self.limits, lambda rows: (hashes[rows], hashes[rows]), 1)
        return np.arange(len(hashes)) if kept is None else np.flatnonzero(kept)


def _sums_of(part: Part) -> tuple[Part, Part]:
    """Return the row sum that a part over units needs of one unit, and the row count."""
    if isinstance(part, CountUnits | UnitWeights | AllUnits):
        rows = CountRows(part.present if isinstance(part, CountUnits) else None)
        return rows, rows
    assert isinstance(part, UnitTotal | UnitMean)  # the only other parts
    return part.of, part.of if isinstance(part.of, CountRows) else CountRows(part.of.value)


def _of_one_unit(parts: Sequence[Part], table: ExactTable) -> ExactTable:
    """Compute the parts of one unit from the sums of its rows."""
    rows = table.parts.tolist()
    numbers = [
        _weights(part, rows[2 * at])
        if isinstance(part, UnitWeights)
        else [_one_number(part, total, count) for total, count in zip(rows[2 * at], rows[2 * at + 1], strict=True)]
        for at, part in enumerate(parts)
    ]
    for each, part in zip(numbers, parts, strict=True):
        if isinstance(part, AllUnits):  # the unit counts in every group, wherever its rows are
            each[:] = [max(each, default=0)] * len(each)
    cells = np.array(numbers, dtype=object).reshape(len(parts), table.groups)
    return ExactTable(table.keys, cells, table.groups)


def _weights(part: UnitWeights, counts: list[int]) -> list[int]:
    """Return the unit's weighted contribution to its groups."""
    one = weight_of(part.scale, max(1, sum(count > 0 for count in counts)))
    return [one if count else 0 for count in counts]


def _one_number(part: Part, total: int, count: int) -> int:
    """Return the unit's contribution to a group; 0 without rows there."""
    if isinstance(part, CountUnits | AllUnits) or not count:
        return min(1, count)
    assert isinstance(part, UnitTotal | UnitMean)  # the only other parts
    if isinstance(part, UnitMean):
        mean, rest = divmod(total, count)
        total = mean + (2 * rest > count or (2 * rest == count and mean % 2 == 1))
    return max(part.least, min(part.most, total))
