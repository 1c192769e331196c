"""Execution in slices of privacy units, for a query whose joins make more rows than may be held at once.

No node of a plan combines rows of two units, and each part of the answer is a sum over units (distinct values are
merged). So the answers over slices of units, however divided, add up to the answer over all of them: the same integers,
with the kept rows of a unit still chosen among its own rows. A slice whose joins make too many rows is halved. If it is
a single unit, it runs block by block (see `large_units`).

Every private scan is restricted to the rows of the slice's units; public tables stay whole. So a run holds only the
tables, a slice's rows, and the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import ExactPlan, ExactTable
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.database import Database
from dpsql.executors.pandas.joins.pairing import TooManyRows
from dpsql.executors.pandas.relations import Relation, Units, merged_units
from dpsql.executors.pandas.sums.partials import Partial, Totals
from dpsql.executors.pandas.units import large_units
from dpsql.executors.pandas.units.large_units import Engine, Work, add_unit
from dpsql.plan.expressions import Expr
from dpsql.plan.nodes import Scan, Source, inputs_of, scans_of
from dpsql.schema.frozen import dataclass

MOST_HELD = 1 << 20
"""Most rows that a join makes at once; twice as many, before slicing, if its sides have as many together."""
Places = NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, repr=False)
class _Rows:
    """The rows of one private scan by unit: those of unit u are `order[starts[u] : starts[u + 1]]`."""

    scan: Scan
    rows: Relation
    order: Places
    starts: Places

    def of(self, first: int, last: int) -> Relation:
        """Return the rows of the units first..last, in order."""
        rows = self.rows.at(np.sort(self.order[self.starts[first] : self.starts[last]]))
        assert rows.units is not None  # the scan is private
        rows.units = _close(rows.units)
        return rows


def run(
    plan: ExactPlan,
    source: Source,
    stores: Mapping[str, ColumnStore],
    *,
    predicates: tuple[Expr, ...],
    key: bytes,
    engine: Engine,
) -> ExactTable:
    """Return the exact answer to a plan over any source, below its filters: at once if its rows fit."""
    database = Database(stores, source, MOST_HELD, predicates, key)
    database.most_alike = min(2 * MOST_HELD, large_units.MOST_WHOLE)
    try:
        rows = database.relation(source)
    except TooManyRows:
        return run_in_slices(Work(plan, source, predicates, key, engine, database))
    return engine(plan, rows, database.early.still_to_pass(), key).table()


def run_in_slices(work: Work) -> ExactTable:
    """Return the exact answer to a plan. Sets `given` and the limits of the work's database."""
    work.database.early.give_up()
    scans, units = _by_unit(work.database, work.source)
    public = {id(node): work.database.relation(node) for node in _public_nodes(work.source)}
    totals = Totals(work.plan)

    def answer(first: int, last: int) -> Partial:
        """Return the answer over the rows of the units first..last."""
        work.database.given = {**public, **{id(each.scan): each.of(first, last) for each in scans}}
        work.database.most, work.database.most_alike = MOST_HELD, 0
        return work.run(work.plan, work.database.relation(work.source), work.predicates).partial()

    totals.add(answer(0, 0))  # public groups exist without rows too
    middle = units // 2  # all units at once were too many
    waiting = [(middle, units), (0, middle)] if middle else [(0, units)]
    while waiting:
        first, last = waiting.pop()
        try:
            totals.add(answer(first, last))
        except TooManyRows:
            if last - first > 1:
                middle = (first + last) // 2
                waiting += [(middle, last), (first, middle)]
            else:
                add_unit(totals, work, MOST_HELD)
    return totals.table()


def _public_nodes(source: Source) -> Iterator[Source]:
    """Yield the outermost nodes over only public tables: the same rows for every slice."""
    if all(scan.table.public for scan in scans_of(source)):
        yield source
        return
    for each in inputs_of(source):
        yield from _public_nodes(each)


def _by_unit(database: Database, source: Source) -> tuple[list[_Rows], int]:
    """Return the private scans by unit, and the number of units. Equal values are one unit in all scans."""
    scans = {id(scan): scan for scan in scans_of(source) if not scan.table.public}
    rows = [database.relation(scan) for scan in scans.values()]
    whose = merged_units([each.units for each in rows if each.units is not None])
    numbers, private, start = whose.numbers(), [], 0
    for scan, each in zip(scans.values(), rows, strict=True):
        codes = numbers[start : start + each.rows]
        start += each.rows
        order = np.argsort(codes, kind="stable")
        nobody = int(np.count_nonzero(codes < 0))
        counts = np.bincount(codes[codes >= 0], minlength=whose.count)
        private.append(_Rows(scan, each, order[nobody:], np.concatenate([[0], np.cumsum(counts)])))
    return private, whose.count


def _close(units: Units) -> Units:
    """Return the same units with dense codes."""
    if units.values is None or units.codes is None:
        return units
    found, codes = np.unique(units.codes, return_inverse=True)
    return replace(units, codes=codes, count=len(found), values=units.values.at(found))
