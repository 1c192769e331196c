"""The default executor: exact integer sums over DataFrame columns, in blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.executors.base import CountRows, ExactPlan, ExactTable, LatticeSum
from dpsql.executors.columns import ColumnStore, clip
from dpsql.executors.evaluation import Evaluator, evaluator
from dpsql.executors.groups import BLOCK, Codes, Groups, group_rows
from dpsql.sql.expressions import Bools, Expr, Vector
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
        store = self.stores[scan_of(plan.source).table.name]
        with np.errstate(all="ignore"):  # a warning would tell of the row that made it
            run = _Run(plan, store)
            return run.table(run.sums(0, store.rows))


class _Run:
    """One plan over one store.

    In one thread: blocks that fit the processor's cache are so short that threads would wait for the interpreter more
    than they compute (measured: two are slower than one).
    """

    def __init__(self, plan: ExactPlan, store: ColumnStore) -> None:
        self.plan = plan
        self.passes = [evaluator(predicate, store) for predicate in filters_of(plan.source)]
        self.groups = group_rows(plan, store) if plan.keys else None
        self.cells = self.groups.cells if self.groups else 1
        exprs = [part.value if isinstance(part, LatticeSum) else part.present for part in plan.parts]
        self.values = {expr: evaluator(expr, store) for expr in exprs if expr is not None}

    def sums(self, first: int, last: int) -> list[NDArray[Any]]:
        """For rows first..last: how many each group has, and each part's integers."""
        rows = np.zeros(self.cells, dtype=np.int64)
        parts = [
            _SumPart(part, self.cells) if isinstance(part, LatticeSum) else _CountPart(part, self.cells)
            for part in self.plan.parts
        ]
        for start in range(first, last, BLOCK):
            block = _block(self.passes, self.groups, start, min(start + BLOCK, last))
            seen = block.counts(None)
            rows += seen
            read = {expr: value(block.start, block.stop) for expr, value in self.values.items()}
            for part in parts:
                part.add(block, read, seen)
        return [rows, *(part.values() for part in parts)]

    def table(self, found: list[NDArray[Any]]) -> ExactTable:
        """The groups that are to be seen, with their integers."""
        rows, *parts = found
        groups = self.groups
        shown = np.flatnonzero(rows) if groups and not self.plan.every_cell else np.arange(self.cells)
        cut = [part[shown] for part in parts]
        return ExactTable(groups.values(shown) if groups else (), _stack(cut, len(shown)), len(shown))


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

    def __init__(self, part: CountRows, cells: int) -> None:
        self.part = part
        self.total: NDArray[np.int64] = np.zeros(cells, dtype=np.int64)

    def add(self, block: _Block, read: Mapping[Expr, Vector], seen: NDArray[np.int64]) -> None:
        present = self.part.present
        valid = None if present is None else read[present].valid
        self.total += seen if valid is None else block.counts(valid)

    def values(self) -> NDArray[Any]:
        return self.total


class _SumPart:
    """Accumulates a LatticeSum. int64 partial sums are moved to Python integers before they could pass 2^62."""

    def __init__(self, part: LatticeSum, cells: int) -> None:
        self.part = part
        self.partial: NDArray[np.int64] = np.zeros(cells + 1, dtype=np.int64)
        self.moved: NDArray[Any] | None = None
        self.room = _LARGEST_ACCUMULATED // max(1, abs(part.least), abs(part.most))
        self.rows = 0

    def add(self, block: _Block, read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        vector = read[self.part.value]
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


def lattice_steps(part: LatticeSum, vector: Vector) -> NDArray[np.int64]:
    """The integers that the rows of a block add; cells of NULL hold some integer of the range."""
    values: Any = vector.values
    if part.whole:
        clipped = clip(values.astype(np.int64, copy=False), int(part.lower), int(part.upper))
        steps = clipped - int(part.origin)
        held = part.least <= part.lower - part.origin and part.upper - part.origin <= part.most
        return np.asarray(steps if held else clip(steps, part.least, part.most), dtype=np.int64)
    clipped = clip(values.astype(np.float64, copy=False), part.lower, part.upper)
    steps = np.rint((clipped - part.origin) * part.steps_per_unit)
    return np.clip(np.where(np.isfinite(steps), steps, 0), part.least, part.most).astype(np.int64)


def _stack(parts: list[NDArray[Any]], groups: int) -> NDArray[Any]:
    if not parts:
        return np.zeros((0, groups), dtype=np.int64)
    if any(part.dtype == object for part in parts):
        return np.stack([part.astype(object) for part in parts])
    return np.stack(parts)
