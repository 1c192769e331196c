"""Which keys that lead to units stand in one row each: looked at once, for files that stay as they are.

Of such a key the least unit is the only one, so a path to units is a plain join, and rows need not be grouped by it. It
is seen, not believed: an owner's `unique` does not make it so. It changes no integer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpsql.core.exact import ExactPlan
from dpsql.executors.duckdb.files import FileStore, identity_text, rows_of
from dpsql.executors.sql.scans import lookups

if TYPE_CHECKING:
    import duckdb

Stamped = Mapping[str, tuple[FileStore, int, object]]
"""Stores by folded name, with their number in the instance and the stamps of their files before the run."""


def unique_keys(connection: duckdb.DuckDBPyConnection, plan: ExactPlan, files: Stamped, slices: int) -> set[str]:
    """Those of a plan, as table.column, folded; each is looked at in so many slices, as memory asks for."""
    unique: set[str] = set()
    for step in lookups(plan):
        if step.table not in files:
            continue
        store, number, stamps = files[step.table]
        key = step.key.casefold()
        known = store.unique.get((key, stamps))
        if known is None:
            known = _is_unique(connection, store, number, key, slices)
            now = {each: of_now for each, of_now in store.unique.items() if each[1] == stamps}
            store.unique = {**now, (key, stamps): known}
        if known:
            unique.add(f"{step.table}.{key}")
    return unique


def _is_unique(connection: duckdb.DuckDBPyConnection, store: FileStore, number: int, key: str, slices: int) -> bool:
    column = store.schema.by_name[key]
    text = identity_text(column.name, column.storage, column.type)
    keys = f"(SELECT {text} AS k FROM {rows_of(store.source, number)})"
    for place in range(slices):
        where = f" WHERE hash(k) % {slices} = {place}" if slices > 1 else ""
        ((same,),) = connection.execute(f"SELECT COUNT(k) = COUNT(DISTINCT k) FROM {keys}{where}").fetchall()
        if not same:
            return False
    return True
