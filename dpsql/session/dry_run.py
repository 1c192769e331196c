"""Dry run of a plan on synthetic rows, to the last line of its answer, before it is paid for.

It finds failures that the query's shape alone can cause, such as an accepted form that cannot be run, while nothing is
charged. Proof that a dry run reveals nothing about people: it has the plan, which follows from declared facts, public
tables as they are, and for all other tables one with no row and one with a synthetic row, which follow from their
schemas. It has no access to stores of private rows.

Its work is bounded: public lists of groups are cut to a few values each. A plan's shape depends only on whether a list
has no, one or more values, and whether it contains NULL.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dpsql.answer.result import rendered, result_of
from dpsql.core.exact import ExactPlan, ExactTable, Grid
from dpsql.errors import InternalError
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import executed
from dpsql.executors.pandas.synthetic_tables import made_up_key, made_up_stores
from dpsql.plan.domains import vector_of
from dpsql.plan.expressions import unfiltered
from dpsql.plan.nodes import scans_of
from dpsql.plan.prior_releases import tried_with
from dpsql.plan.query import GroupKey, axes_of, number_of_cells
from dpsql.release.dry_run import quiet
from dpsql.release.found_bounds import of_columns
from dpsql.release.release import Release
from dpsql.schema.columns import ColumnSchema, Key, TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import Interval
from dpsql.session.cache.released_text import from_bytes, to_bytes
from dpsql.session.tables.constant_tables import constant_tables

_MOST_CELLS = 4
"""Number of groups of a dry run."""


Tables = Mapping[str, TableSchema]


def tried(release: Release, tables: Tables, public: Mapping[str, ColumnStore]) -> None:
    """Run a release on synthetic rows. tables: schemas by folded name; public: stores of public tables.

    First checks that all measurements are paid for (`core.payment`). Raises InternalError if anything fails.
    """
    release.assert_paid()
    failed = ""
    step = _Step("its plan")
    try:
        _try(release, _read(release, tables), public, step)
    except Exception as error:  # noqa: BLE001 - whatever it is, the query cannot be answered
        failed = type(error).__name__
    if failed:
        raise InternalError(
            f"the query is accepted, but {step.name} fails ({failed}), as a trial over made-up rows shows, before any "
            "row of the tables is read.",
            hint="This is a fault of dpsql, not of the query. Please report it.",
        )


@dataclass
class _Step:
    """Current step of the dry run, for the message of a failure."""

    name: str


def _try(release: Release, tables: Tables, public: Mapping[str, ColumnStore], step: _Step) -> None:
    alike = all(table.public for table in tables.values())
    shown: set[object] = set()
    public = {**public, **constant_tables((plan.source for plan in release.plans), public)}
    for rows in (1,) if alike else (1, 0):
        stores = _stores(tables, public, rows)
        step.name = "its run"
        bounds = quiet(release).choose_bounds(lambda plan: executed(tried_with(plan), stores))  # noqa: B023 - called here
        settled = _with_few_groups(release.settled(bounds))
        answers = [executed(tried_with(settled.exact), stores)]
        if rows and not answers[0].groups and not settled.exact.every_cell:
            answers.append(_one_group(settled.exact))
        for exact in answers:
            if (bounds, exact.groups) not in shown:  # the same number of groups is shown in the same way
                shown.add((bounds, exact.groups))
                _release(settled, exact, bounds, step)


def _release(settled: Release, exact: ExactTable, bounds: tuple[Interval, ...], step: _Step) -> None:
    """Compute everything that is made of exact integers, here of synthetic ones."""
    step.name = "its noise"
    released = replace(quiet(settled).privatise(exact), bounds=bounds)
    step.name = "keeping its answer"
    released = from_bytes(to_bytes(released))
    nothing = replace(settled, meaningless=of_columns(settled, {each.column for each in settled.bounds}))
    for each in (settled, nothing) if settled.bounds else (settled,):
        step.name = "what is done with its answer"
        result = result_of(each, released, "")
        step.name = "showing its answer"
        list(result)
        rendered(result)


def _read(release: Release, tables: Tables) -> Tables:
    """Return the tables that a release reads, and those on the paths to their units."""
    read = {scan.table.name.casefold(): scan.table for scan in scans_of(release.query.plan.input)}
    for table in tuple(read.values()):
        for each in table.unit.steps if table.unit is not None else ():
            read.setdefault(each.table, tables[each.table])
    return read


def _stores(tables: Tables, public: Mapping[str, ColumnStore], rows: int) -> dict[str, ColumnStore]:
    """Return a store for each table: public tables as they are, others with `rows` synthetic rows, 0 or 1."""
    return {
        name: public[name] if table.public and name in public else made_up_stores(table)[rows]
        for name, table in tables.items()
    }


def _with_few_groups(release: Release) -> Release:
    """Return the release with its public lists of groups cut to a few."""
    keys = release.exact.keys
    if number_of_cells([key for key in keys if key.values is not None]) <= _MOST_CELLS:
        return release
    sizes = [axis.cells for axis in axes_of(keys) if keys[axis.keys[0]].values is not None]
    most = min(max(sizes), _MOST_CELLS)
    while math.prod(min(size, most) for size in sizes) > _MOST_CELLS:
        most -= 1
    cut = [replace(key, values=_cut(key.values, most)) if key.together is None else key for key in keys]
    measurements = tuple(each.within(most) for each in release.measurements)
    return replace(release, exact=replace(release.exact, keys=_cut_together(cut, most)), measurements=measurements)


def _cut(values: tuple[Key, ...] | None, most: int) -> tuple[Key, ...] | None:
    """Return the first values, with NULL if it is listed and there is room for two."""
    if values is None or len(values) <= most:
        return values
    kept = values[:most]
    return (*kept[:-1], None) if most > 1 and None not in kept and None in values else kept


def _cut_together(keys: Sequence[GroupKey], most: int) -> tuple[GroupKey, ...]:
    """As `_cut`, for public rows of correlated keys."""
    cut = list(keys)
    for axis in axes_of(keys):
        own = [(place, keys[place].together) for place in axis.keys]
        columns = [together.places for _, together in own if together is not None]
        rows = [*zip(*columns, strict=True)]
        nulls = [(values.index(None) if None in (values := keys[place].values or ()) else -1) for place in axis.keys]
        empty = [row for row in rows[most:] if any(cell == null for cell, null in zip(row, nulls, strict=True))]
        kept = sorted([*rows[: most - 1], *empty[:1], *rows[most - 1 :]][:most])
        for (place, together), column in zip(own, zip(*kept, strict=True), strict=False):
            if together is not None:
                found = sorted(set(column))
                values = tuple((keys[place].values or ())[at] for at in found)
                places = tuple(found.index(cell) for cell in column)
                cut[place] = replace(keys[place], values=values, together=replace(together, places=places))
    return tuple(cut)


def _one_group(plan: ExactPlan) -> ExactTable:
    """Return a synthetic group of unknown keys: the one row's group if no condition had dropped the row."""
    columns = [ColumnSchema("", key.expr.type, wide=unfiltered(key.expr).wide) for key in plan.keys]
    cells = [key.values[0] if key.values else made_up_key(each) for key, each in zip(plan.keys, columns, strict=True)]
    keys = tuple(vector_of([cell], key.expr.type) for cell, key in zip(cells, plan.keys, strict=True))
    none = np.zeros(0, dtype=np.int64)
    parts = np.zeros((len(plan.parts), 1), dtype=np.int64)
    return ExactTable(keys, parts, 1, tuple(Grid(none, none, none) for _ in plan.grids))
