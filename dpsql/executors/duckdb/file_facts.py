"""Facts about columns of files, found once for each state of the files (see `executors.sql.column_facts`).

If a key occurs in one row, its least unit is the only one, so a path to units is a plain join without grouping. For
joins of private rows, the facts also include the keys whose cells equal their identities, and the most rows of a unit.
They are observed, not taken from declarations: an owner's `unique` does not suffice. They change no integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from dpsql.core.exact import ExactPlan
from dpsql.executors.duckdb.cells import cell_of, identity_text
from dpsql.executors.duckdb.dialect import DuckDBDialect
from dpsql.executors.duckdb.files import FileStore, FileTable
from dpsql.executors.duckdb.parquet_texts import relation
from dpsql.executors.duckdb.tables import FrameStore
from dpsql.executors.sql.column_facts import ColumnFacts
from dpsql.executors.sql.rows import Names, Writer
from dpsql.executors.sql.scans import Scans, lookups
from dpsql.plan.expressions import Column
from dpsql.plan.nodes import Join, Mark, Scan, nodes_of, scans_of
from dpsql.schema.columns import ColumnSchema, Type

if TYPE_CHECKING:
    import duckdb

Stamped = Mapping[str, tuple[FileStore, int, object]]
"""Stores by folded name, with their number in the instance and the stamps of their files before the run."""


def seen_in(
    connection: duckdb.DuckDBPyConnection,
    plan: ExactPlan,
    stores: Mapping[str, FrameStore | FileStore],
    files: Stamped,
    slices: int,
) -> ColumnFacts:
    """Return the facts for a plan with private rows that have units; in `slices` slices, to limit memory."""
    unique = unique_keys(connection, plan, files, slices)
    if not any(isinstance(node, Join | Mark) for node in nodes_of(plan.source)):
        return ColumnFacts(frozenset(unique))
    scans = {scan.table.name.casefold(): scan for scan in scans_of(plan.source)}
    people = [scan for scan in scans.values() if not scan.table.public]
    if len(people) < 2 and not any(isinstance(node, Mark) for node in nodes_of(plan.source)):
        people = []
    counted = {scan.table.name: _most_rows(connection, scan, files, unique, slices) for scan in people}
    most = {name.casefold(): rows for name, rows in counted.items() if rows is not None}
    return ColumnFacts(frozenset(unique), _plain_keys(connection, plan, people, files), most, _alike(plan, stores))


def unique_keys(connection: duckdb.DuckDBPyConnection, plan: ExactPlan, files: Stamped, slices: int) -> set[str]:
    """Return the unique keys on the paths to a plan's units, as table.column, folded."""
    keys = dict.fromkeys((step.table, step.key.casefold()) for step in lookups(plan) if step.table in files)
    return {
        f"{table}.{key}"
        for table, key in keys
        if _once(f"unique {key}", [files[table]], partial(_is_unique, connection, *files[table][:2], key, slices))
    }


def _once(what: str, files: Iterable[tuple[FileStore, int, object]], look: Callable[[], int]) -> int:
    """Return a fact about these files, cached in the first of them as long as their stamps stay the same."""
    first, *_ = held = list(files)
    key = what, tuple(stamps for _, _, stamps in held)
    known = first[0].seen.get(key)
    if known is None:
        known = look()
        kept = {each: value for each, value in first[0].seen.items() if each[0] != what}
        first[0].seen = {**kept, key: known}
    return known


def _is_unique(connection: duckdb.DuckDBPyConnection, store: FileStore, number: int, key: str, slices: int) -> bool:
    column = store.schema.by_name[key]
    text = identity_text(column.name, column.storage, column.identity, column.cell_format, column.zone)
    keys = f"(SELECT {text} AS k FROM {relation(connection, store, number, [key])})"
    for place in range(slices):
        where = f" WHERE hash(k) % {slices} = {place}" if slices > 1 else ""
        ((same,),) = connection.execute(f"SELECT COUNT(k) = COUNT(DISTINCT k) FROM {keys}{where}").fetchall()
        if not same:
            return False
    return True


def _plain_keys(
    connection: duckdb.DuckDBPyConnection, plan: ExactPlan, people: list[Scan], files: Stamped
) -> frozenset[str]:
    """Return the columns that paths start from or lead to and whose cells all equal their identities."""
    wanted = {(step.table, step.key.casefold()) for step in lookups(plan)}
    wanted |= {(scan.table.name.casefold(), scan.table.unit.column.casefold()) for scan in people if scan.table.unit}
    return frozenset(
        f"{table}.{key}"
        for table, key in sorted(wanted)
        if table in files
        and people
        and _once(f"plain {key}", [files[table]], partial(_is_plain, connection, *files[table][:2], key))
    )


def _is_plain(connection: duckdb.DuckDBPyConnection, store: FileStore, number: int, key: str) -> bool:
    condition = _as_stored(store.schema.by_name[key])
    if condition is None:
        return False
    counted = f"COUNT(*) = COUNT(CASE WHEN {condition} THEN 1 END)"
    rows = relation(connection, store, number, [key])
    ((same,),) = connection.execute(f"SELECT {counted} FROM {rows}").fetchall()
    return bool(same)


def _as_stored(column: ColumnSchema) -> str | None:
    """Return the condition that a cell's value is the stored one, despite declarations; None for unsupported types."""
    cell = cell_of(column)
    if cell != identity_text(column.name, column.storage, column.identity, column.cell_format, column.zone):
        return None
    if column.type is Type.TEXT:
        return f"{cell} IS NOT NULL"
    if column.type is not Type.INTEGER:
        return None
    if column.bounds is None:
        return f"{cell} IS NOT NULL"
    return f"{cell} BETWEEN {int(column.bounds.lower)} AND {int(column.bounds.upper)}"


def _most_rows(
    connection: duckdb.DuckDBPyConnection, scan: Scan, files: Stamped, unique: set[str], slices: int
) -> int | None:
    """Return the most rows of a table that one unit has; None if its path leads through a table not in files."""
    table = scan.table
    if table.unit is None:
        return 1
    path = [table.name.casefold(), *(step.table for step in table.unit.steps)]
    if not all(name in files for name in path):
        return None
    stores = {name: files[name] for name in path}
    seen = ColumnFacts(frozenset(unique))

    def counted() -> int:
        return max(_counted(connection, scan, stores, seen, DuckDBDialect(place, slices)) for place in range(slices))

    return _once(f"most of {table.unit}", stores.values(), counted)


def _counted(
    connection: duckdb.DuckDBPyConnection, scan: Scan, stores: Stamped, seen: ColumnFacts, dialect: DuckDBDialect
) -> int:
    tables = {name: FileTable(store, number, number) for name, (store, number, _) in stores.items()}
    rows = Scans(Writer(dialect, Names()), tables, frozenset(), seen, units=True).rows(scan)
    as_texts = not all(each.whole_identities() for each in tables.values())
    views = {
        each.name: each.view(relation(connection, each.store, each.number, each.columns_read()), as_texts=as_texts)
        for each in tables.values()
    }
    heads = ", ".join(f"{name} AS NOT MATERIALIZED ({text})" for name, text in views.items())
    counted = f"SELECT COUNT(*) AS n FROM {rows.text} GROUP BY {rows.unit}"
    ((most,),) = connection.execute(f"WITH {heads} SELECT COALESCE(MAX(n), 0) FROM ({counted}) AS q").fetchall()
    return int(most)


def _alike(plan: ExactPlan, stores: Mapping[str, FrameStore | FileStore]) -> dict[str, int]:
    """Return, for each column of a public table used as a join key, the most rows with the same cell."""
    scans = {scan.name: scan for scan in scans_of(plan.source) if scan.table.public}
    counts: dict[str, int] = {}
    joins = [node for node in nodes_of(plan.source) if isinstance(node, Join)]
    for column in [other for node in joins for _, other in node.keys if isinstance(other, Column)]:
        scan = scans.get(column.table)
        store = None if scan is None else stores.get(scan.table.name.casefold())
        if isinstance(store, FrameStore):
            counts[f"{store.schema.name}.{column.name}".casefold()] = store.most_alike(column.name)
    return counts
