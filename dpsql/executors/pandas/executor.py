"""The default executor: exact integer sums over DataFrame columns, in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import (
    LARGEST_STEP_COUNT,
    NO_KEY,
    CountDistinct,
    CountRows,
    CountUnits,
    ExactPlan,
    ExactTable,
    LatticeProduct,
    LatticeShare,
    LatticeSum,
    Part,
    UnitMean,
    UnitTotal,
    expressions_of,
    of_units,
)
from dpsql.executors.pandas import slices
from dpsql.executors.pandas.bounding import distinct_pairs
from dpsql.executors.pandas.columns import ColumnStore
from dpsql.executors.pandas.database import Database
from dpsql.executors.pandas.evaluation import BLOCK, Evaluator, evaluator
from dpsql.executors.pandas.groups import Codes, Groups, group_rows
from dpsql.executors.pandas.kept_rows import Chosen, choose_rows, lattice_steps
from dpsql.executors.pandas.large_units import Work
from dpsql.executors.pandas.moments import LARGEST_MOMENT, Division, moment_steps
from dpsql.executors.pandas.pairing import TooManyRows
from dpsql.executors.pandas.partials import Partial, stack
from dpsql.executors.pandas.points import DistinctPart, GridPart
from dpsql.executors.pandas.relations import Relation
from dpsql.executors.pandas.unit_totals import unit_means, unit_totals
from dpsql.plan.expressions import Bools, Expr, Vector
from dpsql.plan.nodes import Filter

_LARGEST_ACCUMULATED = 2**62
_HALF = 32


class PandasExecutor:
    """Runs plans over column stores, found by table name."""

    def __init__(self, stores: Mapping[str, ColumnStore]) -> None:
        self.stores = stores

    def execute(self, plan: ExactPlan, key: bytes = NO_KEY) -> ExactTable:
        """As of `Executor`."""
        return executed(plan, self.stores, key)


def executed(plan: ExactPlan, stores: Mapping[str, ColumnStore], key: bytes = NO_KEY) -> ExactTable:
    """One pass over the rows: filter, group, add integers. Where units have limits, one more before it, in which
    the rows to be left out are found.

    Rows that a filter or a key leaves out go to one more cell at the end, which is cut off.
    """
    with np.errstate(all="ignore"):  # a warning would tell of the row that made it
        predicates: list[Expr] = []
        source = plan.source
        while isinstance(source, Filter):
            predicates.append(source.predicate)
            source = source.input
        database = Database(stores, source, slices.MOST_HELD)
        try:
            rows = database.relation(source)
        except TooManyRows:
            return slices.run_in_slices(Work(plan, source, tuple(predicates), key, _Run, database))
        return _Run(plan, rows, predicates, key).table()


class _Run:
    """One plan over the rows of its source.

    In one thread: blocks that fit the processor's cache are so short that threads would wait for the interpreter more
    than they compute (measured: two are slower than one).
    """

    def __init__(self, plan: ExactPlan, rows: Relation, predicates: Sequence[Expr], key: bytes) -> None:
        self.plan = plan
        self.present = rows.present()
        self.passes = [evaluator(predicate, rows) for predicate in reversed(predicates)]
        self.groups = group_rows(plan, rows) if plan.keys else None
        self.cells = self.groups.cells if self.groups else 1
        by_value = [part for part in plan.parts if not isinstance(part, CountDistinct)]
        exprs = dict.fromkeys(expr for part in by_value for expr in expressions_of(part))
        self.values = {expr: evaluator(expr, rows) for expr in exprs}
        self.rows = rows
        self.chosen: Chosen | None = None
        if plan.limits is not None or plan.groups is not None or any(map(of_units, plan.parts)):
            self.chosen = choose_rows(plan, rows, self.codes(), self.groups, key)

    def codes(self) -> Codes:
        """The group of every row; the number of groups for rows that are left out."""
        starts = range(0, self.rows.rows, BLOCK)
        blocks = [self._block(start, min(start + BLOCK, self.rows.rows)).all_codes() for start in starts]
        return np.concatenate(blocks or [np.zeros(0, dtype=np.int64)])

    def _block(self, start: int, stop: int) -> _Block:
        present = None if self.present is None else self.present[start:stop]
        return _block(self.passes, self.groups, start, stop, present)

    def sums(self, first: int, last: int) -> list[NDArray[Any]]:
        """For rows first..last: how many each group has, and each part's integers."""
        rows = np.zeros(self.cells, dtype=np.int64)
        self.division = Division()
        parts = [self._part(part) for part in self.plan.parts]
        grids = [GridPart(grid, self.cells, self.rows) for grid in self.plan.grids]
        for start in range(first, last, BLOCK):
            stop = min(start + BLOCK, last)
            read = {expr: value(start, stop) for expr, value in self.values.items()}
            if self.chosen is None:
                block = of_group = self._block(start, stop)
            else:
                block = _Block(start, stop, None, self.chosen.rows[start:stop], self.cells)
                of_group = _Block(start, stop, None, self.chosen.groups[start:stop], self.cells)
            seen = block.counts(None)
            rows += seen if block is of_group else of_group.counts(None)
            for part in parts:
                part.add(block, read, seen)
            for grid in grids:
                grid.add(start, stop, block.all_codes())
        self.grids = grids
        self.distinct = {place: part.part for place, part in enumerate(parts) if isinstance(part, _DistinctPart)}
        return [rows, *(part.values() for part in parts)]

    def _part(self, part: Part) -> _Accumulator:
        if isinstance(part, LatticeSum):
            return _SumPart(part, self.cells)
        if isinstance(part, CountRows):
            return _CountPart(part, self.cells)
        if isinstance(part, LatticeProduct | LatticeShare):
            return _MomentPart(part, self.cells, self.division)
        if isinstance(part, CountDistinct):
            return _DistinctPart(DistinctPart(part, self.cells, self.rows))
        assert self.chosen is not None  # parts of units ask for it
        return _UnitPart(part, self.chosen, self.cells)

    def partial(self) -> Partial:
        """The exact answer over these rows, to be added to those over others."""
        table = self.table()
        return Partial(table, {place: part.different(self.shown) for place, part in self.distinct.items()})

    def table(self) -> ExactTable:
        """The groups that are to be seen, with their integers."""
        rows, *parts = self.sums(0, self.rows.rows)
        groups = self.groups
        shown = np.flatnonzero(rows) if groups and not self.plan.every_cell else np.arange(self.cells)
        cut = [part[shown] for part in parts]
        keys = groups.values(shown) if groups else ()
        grids = tuple(grid.table(shown) for grid in self.grids)
        self.shown = shown
        return ExactTable(keys, stack(cut, len(shown)), len(shown), grids)


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

    def all_codes(self) -> NDArray[np.int64]:
        """The group of every row, `cells` for rows that are left out."""
        if self.codes is not None:
            return self.codes
        everywhere = np.zeros(self.stop - self.start, dtype=np.int64)
        return everywhere if self.kept is None else everywhere + ~self.kept

    def add_to(self, total: NDArray[np.int64], steps: NDArray[np.int64]) -> None:
        """Add the kept rows' integers to the groups' totals, which have one cell more at the end."""
        if self.codes is not None:
            np.add.at(total, self.codes, steps)
        else:
            total[0] += (steps if self.kept is None else steps * self.kept).sum()


def _block(passes: list[Evaluator], groups: Groups | None, start: int, stop: int, kept: Bools | None = None) -> _Block:
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
    """Accumulates a LatticeSum. int64 partial sums are moved to Python integers before they could pass 2^62; numbers of
    which few would pass it are summed in two halves."""

    def __init__(self, part: LatticeSum, cells: int) -> None:
        self.part = part
        self.partial: NDArray[np.int64] = np.zeros(cells + 1, dtype=np.int64)
        self.moved: NDArray[Any] | None = None
        largest = max(1, abs(part.least), abs(part.most))
        wide = largest >= LARGEST_STEP_COUNT
        self.high = _SumPart(_high_half(part), cells) if wide else None
        self.room = _LARGEST_ACCUMULATED // (2**_HALF if wide else largest)
        self.rows = 0

    def add(self, block: _Block, read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        vector = read[self.part.value]
        self.add_steps(block, lattice_steps(self.part, vector), vector.valid)

    def add_steps(self, block: _Block, steps: NDArray[np.int64], valid: Bools | None) -> None:
        if valid is not None:
            steps = steps * valid
        if self.high is not None:
            self.high.add_steps(block, steps >> _HALF, None)
            steps = steps & (2**_HALF - 1)
        if self.rows + len(steps) > self.room:
            self.moved = self.partial.astype(object) + (0 if self.moved is None else self.moved)
            self.partial[:] = 0
            self.rows = 0
        self.rows += len(steps)
        block.add_to(self.partial, steps)

    def values(self) -> NDArray[Any]:
        total = self.partial if self.moved is None else self.partial.astype(object) + self.moved
        if self.high is not None:
            return np.asarray(total[:-1].astype(object) + self.high.values().astype(object) * 2**_HALF, dtype=object)
        return total[:-1]


def _high_half(part: LatticeSum) -> LatticeSum:
    """What is summed of whole numbers too large for one sum: they are floor(q / 2^32) times 2^32 and a rest."""
    least, most = part.least >> _HALF, part.most >> _HALF
    return replace(part, lower=least, upper=most, least=least, most=most)


class _MomentPart:
    """Accumulates products of values, or shares of rows: below 2^45 each, as those of a sum."""

    def __init__(self, part: LatticeProduct | LatticeShare, cells: int, division: Division) -> None:
        self.part = part
        self.division = division
        first, second = part.first, part.second
        self.sum = _SumPart(replace(first, least=-LARGEST_MOMENT, most=LARGEST_MOMENT), cells)
        self.exprs = (first.value, second.value)

    def add(self, block: _Block, read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        first, second = (read[expr] for expr in self.exprs)
        valid = both(first.valid, second.valid)
        if isinstance(self.part, LatticeProduct):
            self.sum.add_steps(block, moment_steps(self.part, first, second), valid)
        else:
            self.sum.add_steps(block, self.division.steps(self.part, first, second, block.start), valid)

    def values(self) -> NDArray[Any]:
        return self.sum.values()


class _DistinctPart:
    """Accumulates a CountDistinct."""

    def __init__(self, part: DistinctPart) -> None:
        self.part = part

    def add(self, block: _Block, _read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        self.part.add(block.start, block.stop, block.all_codes())

    def values(self) -> NDArray[Any]:
        return self.part.values()


class _UnitPart:
    """Accumulates what units add, each one number for a group: their rows are gathered, block by block, and summed at
    the end."""

    def __init__(self, part: CountUnits | UnitTotal | UnitMean, chosen: Chosen, cells: int) -> None:
        self.part = part
        self.chosen = chosen
        self.cells = cells
        self.found: list[tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]] = []

    def add(self, block: _Block, read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        groups = self.chosen.groups[block.start : block.stop]
        vector = next((read[expr] for expr in expressions_of(self.part)), None)
        kept = groups < self.cells
        if vector is not None and vector.valid is not None:
            kept = kept & vector.valid
        steps = np.ones(len(groups), dtype=np.int64)
        if not isinstance(self.part, CountUnits) and isinstance(self.part.of, LatticeSum) and vector is not None:
            steps = lattice_steps(self.part.of, vector)
        units = self.chosen.units[block.start : block.stop]
        whole = bool(kept.all())
        self.found.append((units, groups, steps) if whole else (units[kept], groups[kept], steps[kept]))

    def values(self) -> NDArray[Any]:
        empty = np.zeros(0, dtype=np.int64)
        columns = zip(*self.found, strict=True) if self.found else ([empty], [empty], [empty])
        units, groups, steps = (np.concatenate(list(each)) for each in columns)
        units, groups = units.astype(np.int64, copy=False), groups.astype(np.int64, copy=False)
        by = groups if self.cells > 1 else None
        if isinstance(self.part, CountUnits):
            return distinct_pairs(units, by, self.cells)
        run = unit_totals if isinstance(self.part, UnitTotal) else unit_means
        return run(units, by, self.cells, steps, least=self.part.least, most=self.part.most)


_Accumulator = _CountPart | _SumPart | _MomentPart | _DistinctPart | _UnitPart
