"""The default executor: exact integer sums over DataFrame columns, in blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import NO_KEY, CellPart, CountDistinct, ExactPlan, ExactTable, Part, expressions_of, of_units
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.evaluation import BLOCK, Evaluator, evaluator, evaluators
from dpsql.executors.pandas.groups import Codes, Groups, group_rows
from dpsql.executors.pandas.relations import Relation, rows_alone
from dpsql.executors.pandas.sums.accumulators import Accumulator, Block, accumulator_of, both
from dpsql.executors.pandas.sums.alternatives import CellNumbers, CellSum
from dpsql.executors.pandas.sums.moments import Division
from dpsql.executors.pandas.sums.partials import Partial, stack
from dpsql.plan.expressions import Bools, Expr
from dpsql.plan.nodes import Filter

if TYPE_CHECKING:
    from dpsql.executors.pandas.sums.points import GridPart
    from dpsql.executors.pandas.units.kept_rows import UnitRows


class PandasExecutor:
    """Executor of plans over column stores, by table name."""

    def __init__(self, stores: Mapping[str, ColumnStore]) -> None:
        self.stores = stores

    def execute(self, plan: ExactPlan, key: bytes = NO_KEY) -> ExactTable:
        """See `Executor`."""
        return executed(plan, self.stores, key)


def executed(plan: ExactPlan, stores: Mapping[str, ColumnStore], key: bytes = NO_KEY) -> ExactTable:
    """Run a plan in one pass over the rows: filter, group, add integers. Contribution bounds need an earlier pass,
    which finds the rows to drop.

    Rows excluded by a filter or a key go to an extra last cell, which is cut off.
    """
    with np.errstate(all="ignore"):  # a warning would reveal the row that caused it
        predicates: list[Expr] = []
        source = plan.source
        while isinstance(source, Filter):
            predicates.append(source.predicate)
            source = source.input
        rows = rows_alone(source, {name.casefold(): store for name, store in stores.items()})
        if rows is not None:
            return _Run(plan, rows, predicates, key).table()
        from dpsql.executors.pandas.unit_chunks import (
            run,  # loaded with the first query about units or several tables
        )

        return run(plan, source, stores, predicates=tuple(predicates), key=key, engine=_Run)


class _Run:
    """One plan over the rows of its source.

    Single-threaded: blocks that fit the processor's cache are so short that threads would mostly wait for the
    interpreter (measured: two are slower than one).
    """

    def __init__(self, plan: ExactPlan, rows: Relation, predicates: Sequence[Expr], key: bytes) -> None:
        self.plan = plan
        self.present = rows.present()
        self.passes = [evaluator(predicate, rows) for predicate in reversed(predicates)]
        self.groups = _groups(plan, rows) if plan.keys else None
        self.cells = self.groups.cells if self.groups else 1
        by_value = [part for part in plan.parts if not isinstance(part, CountDistinct)]
        exprs = dict.fromkeys(expr for part in by_value for expr in expressions_of(part))
        self.values = evaluators(exprs, rows)
        self.rows = rows
        self.chosen: UnitRows | None = None
        if plan.limits is not None or plan.groups is not None or any(map(of_units, plan.parts)):
            from dpsql.executors.pandas.units.kept_rows import choose_rows  # loaded with the first contribution bounds

            self.chosen = choose_rows(plan, rows, self.codes(), self.groups, key)

    def codes(self) -> Codes:
        """Return the group of every row; the number of groups for excluded rows."""
        starts = range(0, self.rows.rows, BLOCK)
        blocks = [self._block(start, min(start + BLOCK, self.rows.rows)).all_codes() for start in starts]
        return np.concatenate(blocks or [np.zeros(0, dtype=np.int64)])

    def _block(self, start: int, stop: int) -> Block:
        present = None if self.present is None else self.present[start:stop]
        return _block(self.passes, self.groups, start, stop, present)

    def sums(self, first: int, last: int) -> list[NDArray[Any]]:
        """Return, for rows first..last, the row count of each group, and each part's integers."""
        rows = np.zeros(self.cells, dtype=np.int64)
        self.division, self.numbers = Division(), CellNumbers()
        parts = [self._accumulator(part) for part in self.plan.parts]
        grids = self._grids()
        for start in range(first, last, BLOCK):
            stop = min(start + BLOCK, last)
            read = {expr: value(start, stop) for expr, value in self.values.items()}
            if self.chosen is None:
                block = of_group = self._block(start, stop)
            else:
                block = Block(start, stop, None, self.chosen.rows[start:stop], self.cells)
                of_group = Block(start, stop, None, self.chosen.groups[start:stop], self.cells)
            seen = block.counts(None)
            rows += seen if block is of_group else of_group.counts(None)
            for part in parts:
                part.add(block, read, seen)
            for grid in grids:
                grid.add(start, stop, block.all_codes())
        self.grids = grids
        self.parts = parts
        return [rows, *(part.values() for part in parts)]

    def _accumulator(self, part: Part) -> Accumulator:
        if isinstance(part, CellPart):
            return CellSum(part, self._accumulator(part.of), self.numbers)
        found = accumulator_of(part, self.cells, self.division)
        if found is not None:
            return found
        from dpsql.executors.pandas.units.unit_sums import unit_sum_of  # loaded with the first such part

        return unit_sum_of(part, self.cells, self.rows, self.chosen)

    def _grids(self) -> list[GridPart]:
        if not self.plan.grids:
            return []
        from dpsql.executors.pandas.sums.points import GridPart  # loaded with the first grid

        return [GridPart(grid, self.cells, self.rows) for grid in self.plan.grids]

    def partial(self) -> Partial:
        """Return the exact answer over these rows, to be added to those over others."""
        table = self.table()
        different = {place: part.different(self.shown) for place, part in enumerate(self.parts)}
        return Partial(table, {place: each for place, each in different.items() if each is not None})

    def table(self) -> ExactTable:
        """Return the visible groups with their integers."""
        rows, *parts = self.sums(0, self.rows.rows)
        groups = self.groups
        shown = np.flatnonzero(rows) if groups and not self.plan.every_cell else np.arange(self.cells)
        cut = [part[shown] for part in parts]
        keys = groups.values(shown) if groups else ()
        grids = tuple(grid.table(shown) for grid in self.grids)
        self.shown = shown
        return ExactTable(keys, stack(cut, len(shown)), len(shown), grids)


def _groups(plan: ExactPlan, rows: Relation) -> Groups:
    for key in plan.keys:
        if key.together is not None:
            from dpsql.executors.pandas.correlated_groups import group_rows_together  # few queries have such keys

            return group_rows_together(plan, rows)
    return group_rows(plan, rows)


def _block(passes: list[Evaluator], groups: Groups | None, start: int, stop: int, kept: Bools | None = None) -> Block:
    for passing in passes:
        verdict = passing(start, stop)
        kept = both(kept, both(verdict.values.astype(bool, copy=False), verdict.valid))
    if groups is None:
        return Block(start, stop, kept, None, 1)
    codes = groups.read(start, stop)
    if not groups.complete:
        kept = both(kept, codes >= 0)
    if kept is not None:
        codes = np.where(kept, codes, groups.cells)
    return Block(start, stop, kept, codes, groups.cells)
