"""The default executor: exact integer sums over DataFrame columns, in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.executors.base import CountRows, ExactPlan, ExactTable, LatticeSum, Part
from dpsql.executors.columns import ColumnStore, clip
from dpsql.executors.evaluation import Evaluator, evaluator
from dpsql.executors.groups import BLOCK, Codes, Groups, group_rows
from dpsql.sql.expressions import Bools, Vector
from dpsql.sql.plan import filters_of, scan_of

_LARGEST_ACCUMULATED = 2**62


class PandasExecutor:
    """Runs plans over column stores, found by table name."""

    def __init__(self, stores: Mapping[str, ColumnStore]) -> None:
        self.stores = stores

    def execute(self, plan: ExactPlan) -> ExactTable:
        """One pass over the rows: filter, group, add integers.

        Rows that a filter or a key leaves out go to one more cell at the end, which is cut off.
        """
        with np.errstate(all="ignore"):  # a warning would tell of the row that made it
            return self._execute(plan)

    def _execute(self, plan: ExactPlan) -> ExactTable:
        store = self.stores[scan_of(plan.source).table.name]
        passes = [evaluator(predicate, store) for predicate in filters_of(plan.source)]
        groups = group_rows(plan, store) if plan.keys else None
        cells = groups.cells if groups else 1
        sums = [_accumulator(part, store, cells) for part in plan.parts if part != CountRows(None)]
        rows_seen = np.zeros(cells, dtype=np.int64)
        for start in range(0, store.rows, BLOCK):
            stop = min(start + BLOCK, store.rows)
            block = _block(passes, groups, start, stop)
            rows_seen += block.counts(None)
            for each in sums:
                each.add(block)
        shown = np.flatnonzero(rows_seen) if groups and not plan.every_cell else np.arange(cells)
        parts = [rows_seen[shown] if each is None else each.values()[shown] for each in _answers(plan, sums)]
        return ExactTable(groups.values(shown) if groups else (), _stack(parts, len(shown)), len(shown))


def _answers(plan: ExactPlan, sums: list[_Accumulator]) -> list[_Accumulator | None]:
    """The accumulator of each part, in order; None for the plain count of rows."""
    rest = iter(sums)
    return [None if part == CountRows(None) else next(rest) for part in plan.parts]


@dataclass(frozen=True, repr=False)
class _Block:
    """Rows start..stop: `kept` marks those that the filters pass (None: all), `codes` their groups (None: one group).

    A row that is not kept has the code `cells`.
    """

    start: int
    stop: int
    kept: Bools | None
    codes: Codes | None
    cells: int

    def counts(self, valid: Bools | None) -> NDArray[np.int64]:
        """How many kept rows each group has, among those that are valid."""
        if self.codes is None:
            mask = both(self.kept, valid)
            found = self.stop - self.start if mask is None else int(np.count_nonzero(mask))
            return np.array([found], dtype=np.int64)
        codes = self.codes if valid is None else np.where(valid, self.codes, self.cells)
        return np.bincount(codes, minlength=self.cells + 1)[: self.cells]

    def add_to(self, total: NDArray[np.int64], steps: NDArray[np.int64]) -> None:
        """Add the kept rows' integers to the groups' totals, which have one cell more at the end."""
        if self.codes is not None:
            np.add.at(total, self.codes, steps)
        else:
            total[0] += (steps if self.kept is None else steps * self.kept).sum()


def _block(passes: list[Evaluator], groups: Groups | None, start: int, stop: int) -> _Block:
    kept: Bools | None = None
    for passing in passes:
        verdict = passing(start, stop)
        kept = both(kept, both(verdict.values.astype(bool, copy=False), verdict.valid))
    if groups is None:
        return _Block(start, stop, kept, None, 1)
    codes = groups.read(start, stop)
    if not groups.complete:
        kept = both(kept, codes >= 0)
    if kept is not None:  # in arithmetic, which is several times faster than np.where on a random mask
        codes = codes * kept + groups.cells * ~kept
    return _Block(start, stop, kept, codes, groups.cells)


def both(a: Bools | None, b: Bools | None) -> Bools | None:
    """Where both hold; None stands for everywhere."""
    if a is None or b is None:
        return a if b is None else b
    return a & b


class _CountPart:
    """Accumulates a CountRows."""

    def __init__(self, present: Evaluator, cells: int) -> None:
        self.present = present
        self.total: NDArray[np.int64] = np.zeros(cells, dtype=np.int64)

    def add(self, block: _Block) -> None:
        self.total += block.counts(self.present(block.start, block.stop).valid)

    def values(self) -> NDArray[Any]:
        return self.total


class _SumPart:
    """Accumulates a LatticeSum. int64 partial sums are moved to Python integers before they could pass 2^62."""

    def __init__(self, part: LatticeSum, value: Evaluator, cells: int) -> None:
        self.part = part
        self.value = value
        self.partial: NDArray[np.int64] = np.zeros(cells + 1, dtype=np.int64)
        self.moved: NDArray[Any] | None = None
        self.room = _LARGEST_ACCUMULATED // max(1, abs(part.least), abs(part.most))
        self.rows = 0

    def add(self, block: _Block) -> None:
        vector = self.value(block.start, block.stop)
        steps = lattice_steps(self.part, vector)
        if vector.valid is not None:
            steps = steps * vector.valid
        if self.rows + len(steps) > self.room:
            self.moved = self.partial.astype(object) + (0 if self.moved is None else self.moved)
            self.partial[:] = 0
            self.rows = 0
        self.rows += len(steps)
        block.add_to(self.partial, steps)

    def values(self) -> NDArray[Any]:
        total = self.partial if self.moved is None else self.partial.astype(object) + self.moved
        return total[:-1]


_Accumulator = _CountPart | _SumPart


def lattice_steps(part: LatticeSum, vector: Vector) -> NDArray[np.int64]:
    """The integers that the rows of a block add; cells of NULL hold some integer of the range."""
    values: Any = vector.values
    if part.whole:
        clipped = clip(values.astype(np.int64, copy=False), int(part.lower), int(part.upper))
        return np.asarray(clip(clipped - int(part.origin), part.least, part.most), dtype=np.int64)
    clipped = clip(values.astype(np.float64, copy=False), part.lower, part.upper)
    steps = np.rint((clipped - part.origin) * part.steps_per_unit)
    return np.clip(np.where(np.isfinite(steps), steps, 0), part.least, part.most).astype(np.int64)


def _accumulator(part: Part, store: ColumnStore, cells: int) -> _Accumulator:
    if isinstance(part, LatticeSum):
        return _SumPart(part, evaluator(part.value, store), cells)
    assert part.present is not None  # plain counts of rows are taken once for all
    return _CountPart(evaluator(part.present, store), cells)


def _stack(parts: list[NDArray[Any]], groups: int) -> NDArray[Any]:
    if not parts:
        return np.zeros((0, groups), dtype=np.int64)
    if any(part.dtype == object for part in parts):
        return np.stack([part.astype(object) for part in parts])
    return np.stack(parts)
