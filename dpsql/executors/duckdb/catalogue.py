"""The tables of a DuckDB database. No row is read."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from dpsql.executors.duckdb.files import reach
from dpsql.executors.duckdb.instance import opened
from dpsql.sources.stored import DatabaseTable, unreadable

_LISTED = """
    SELECT table_schema, table_name FROM information_schema.tables
    WHERE table_catalog = 'database0' AND table_type = 'BASE TABLE' ORDER BY table_schema, table_name
"""


def tables_in(file: Path) -> list[str]:
    """Return the names of a database's tables, as written in an owner's file, in alphabetical order, without views.
    Raises InvalidSchema if the file is not a database."""
    try:
        with closing(opened(files=True)) as connection:
            reach(connection, (DatabaseTable(file.absolute(), ""),))
            listed = connection.execute(_LISTED).fetchall()
    except Exception:  # noqa: BLE001 - its words could quote what a file holds
        listed = None
    if listed is None:
        raise unreadable(file)
    return [str(name) if schema == "main" else f"{schema}.{name}" for schema, name in listed]
