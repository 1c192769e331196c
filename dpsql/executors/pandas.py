"""The default executor: exact integer sums over DataFrame columns, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.executors.base import CountRows, ExactPlan, ExactTable, LatticeSum, Part
from dpsql.executors.columns import ColumnStore, take
from dpsql.executors.groups import Codes, Groups, group_rows
from dpsql.intervals import EVERYTHING
from dpsql.schema import Type
from dpsql.sql.expressions import Call, Column, Expr, Fact, Slot, Vector, columns, evaluate, rebuild
from dpsql.sql.plan import filters_of, scan_of

BLOCK = 65_536
_MOST_BINCOUNT_CELLS = 4_096
_LARGEST_ACCUMULATED = 2**62

Evaluator = Callable[[int, int], Vector]


class PandasExecutor:
    """Runs plans over column stores, found by table name."""

    def __init__(self, stores: Mapping[str, ColumnStore]) -> None:
        self.stores = stores

    def execute(self, plan: ExactPlan) -> ExactTable:
        """One pass over the rows: filter, group, add integers."""
        store = self.stores[scan_of(plan.source).table.name]
        passes = [_evaluator(predicate, store) for predicate in filters_of(plan.source)]
        groups = group_rows(plan, store) if plan.keys else _one_group()
        seen = _Counter(groups.cells)
        sums = [_accumulator(part, store, groups.cells) for part in plan.parts]
        for start in range(0, store.rows, BLOCK):
            stop = min(start + BLOCK, store.rows)
            kept, codes = _kept(passes, groups, bool(plan.keys), start, stop)
            if plan.keys and not plan.every_cell:
                seen.add(codes, None)
            for add in sums:
                add.block(start, stop, kept, codes)
        shown = np.arange(groups.cells) if plan.every_cell or not plan.keys else np.flatnonzero(seen.total)
        parts = [each.values()[shown] for each in sums]
        return ExactTable(groups.values(shown), _stack(parts, len(shown)), len(shown))


def _one_group() -> Groups:
    return Groups(lambda start, stop: np.zeros(stop - start, dtype=np.int64), 1, lambda _codes: ())


def _kept(
    passes: list[Evaluator], groups: Groups, keyed: bool, start: int, stop: int
) -> tuple[NDArray[np.bool_] | None, Codes]:
    """Which rows of the block count (None: all of them), and the group codes of those rows."""
    kept: NDArray[np.bool_] | None = None
    for evaluator in passes:
        verdict = evaluator(start, stop)
        true = verdict.values.astype(bool, copy=False)
        true = true if verdict.valid is None else true & verdict.valid
        kept = true if kept is None else kept & true
    codes = groups.read(start, stop)
    if keyed and (codes < 0).any():
        grouped = codes >= 0
        kept = grouped if kept is None else kept & grouped
    return kept, codes if kept is None else codes[kept]


class _Counter:
    """Counts rows by group."""

    def __init__(self, cells: int) -> None:
        self.total: NDArray[np.int64] = np.zeros(cells, dtype=np.int64)

    def add(self, codes: Codes, valid: NDArray[np.bool_] | None) -> None:
        codes = codes if valid is None else codes[valid]
        if len(self.total) == 1:
            self.total[0] += len(codes)
        elif len(self.total) <= _MOST_BINCOUNT_CELLS:
            self.total += np.bincount(codes, minlength=len(self.total))
        else:
            np.add.at(self.total, codes, 1)


class _CountPart:
    """Accumulates a CountRows."""

    def __init__(self, present: Evaluator | None, cells: int) -> None:
        self.present = present
        self.counter = _Counter(cells)

    def block(self, start: int, stop: int, kept: NDArray[np.bool_] | None, codes: Codes) -> None:
        valid = None if self.present is None else self.present(start, stop).valid
        if valid is not None and kept is not None:
            valid = valid[kept]
        self.counter.add(codes, valid)

    def values(self) -> NDArray[Any]:
        return self.counter.total


class _SumPart:
    """Accumulates a LatticeSum. int64 partial sums are moved to Python integers before they could pass 2^62."""

    def __init__(self, part: LatticeSum, value: Evaluator, cells: int) -> None:
        self.part = part
        self.value = value
        self.partial: NDArray[np.int64] = np.zeros(cells, dtype=np.int64)
        self.moved: NDArray[Any] | None = None
        self.room = _LARGEST_ACCUMULATED // max(1, abs(part.least), abs(part.most))
        self.rows = 0

    def block(self, start: int, stop: int, kept: NDArray[np.bool_] | None, codes: Codes) -> None:
        vector = self.value(start, stop)
        steps = lattice_steps(self.part, vector)
        valid = vector.valid
        if kept is not None:
            steps, valid = steps[kept], None if valid is None else valid[kept]
        if valid is not None:
            steps, codes = steps[valid], codes[valid]
        if self.rows + len(steps) > self.room:
            self.moved = self.partial.astype(object) + (0 if self.moved is None else self.moved)
            self.partial[:] = 0
            self.rows = 0
        self.rows += len(steps)
        if len(self.partial) == 1:
            self.partial[0] += steps.sum()
        else:
            np.add.at(self.partial, codes, steps)

    def values(self) -> NDArray[Any]:
        return self.partial if self.moved is None else self.partial.astype(object) + self.moved


def lattice_steps(part: LatticeSum, vector: Vector) -> NDArray[np.int64]:
    """The integers that the rows of a block add; cells of NULL hold some integer of the range."""
    values: Any = vector.values
    if part.whole:
        clipped = np.clip(values.astype(np.int64, copy=False), int(part.lower), int(part.upper))
        return np.asarray(clipped - int(part.origin), dtype=np.int64)
    clipped = np.clip(values.astype(np.float64, copy=False), part.lower, part.upper)
    steps = np.rint((clipped - part.origin) * part.steps_per_unit)
    return np.clip(np.where(np.isfinite(steps), steps, 0), part.least, part.most).astype(np.int64)


def _accumulator(part: Part, store: ColumnStore, cells: int) -> _CountPart | _SumPart:
    if isinstance(part, CountRows):
        return _CountPart(None if part.present is None else _evaluator(part.present, store), cells)
    return _SumPart(part, _evaluator(part.value, store), cells)


def _stack(parts: list[NDArray[Any]], groups: int) -> NDArray[Any]:
    if not parts:
        return np.zeros((0, groups), dtype=np.int64)
    if any(part.dtype == object for part in parts):
        return np.stack([part.astype(object) for part in parts])
    return np.stack(parts)


def _evaluator(expr: Expr, store: ColumnStore) -> Evaluator:
    """A function (start, stop) -> the block of an expression. Parts over one text column run on its dictionary."""
    lifted: dict[str, Evaluator] = {}
    plain = rebuild(expr, {part: _lift(part, store, lifted) for part in _liftable(expr)})
    readers = lifted | {each.name: store.reader(each.name) for each in columns(plain) if each.name not in lifted}

    def run(start: int, stop: int) -> Vector:
        def read(column: Column | Slot) -> Vector:
            return readers[column.name](start, stop)

        return evaluate(plain, read, stop - start)

    return run


def _liftable(expr: Expr) -> list[Call]:
    """The outermost calls that read exactly one column, of text: their value depends on its code alone."""
    if not isinstance(expr, Call):
        return []
    read = columns(expr)
    if len(read) == 1 and read[0].type is Type.TEXT:
        return [expr]
    return [part for arg in expr.args for part in _liftable(arg)]


def _lift(expr: Call, store: ColumnStore, lifted: dict[str, Evaluator]) -> Column:
    """A made-up column that stands for the call: computed on the dictionary once, then gathered by code."""
    encoded = store.encoded(columns(expr)[0].name)
    table = evaluate(expr, lambda _column: encoded.dictionary, len(encoded.dictionary))
    table = Vector(np.ascontiguousarray(table.values), table.valid)
    name = f"\0{len(lifted)}"  # no column of a query can have this name
    lifted[name] = lambda start, stop: take(table, encoded.codes[start:stop])
    return Column(name, expr.type, Fact(EVERYTHING))
