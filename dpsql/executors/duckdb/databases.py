"""Checks of tables in DuckDB databases. Only tables are read: a view or a computed column is the owner's program, which
would run again for each query, and could fail because of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsql.errors import InvalidSchema
from dpsql.sources.external import folded, no_such_table
from dpsql.sources.stored import DatabaseTable

if TYPE_CHECKING:
    import duckdb


def check_table(connection: duckdb.DuckDBPyConnection, source: DatabaseTable, number: int) -> None:
    """Raise InvalidSchema unless the name is a table's of only stored columns, in the database attached as `number`."""
    listed = connection.execute(
        "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_catalog = ?",
        [f"database{number}"],
    ).fetchall()
    kinds: dict[tuple[str, ...], tuple[str, str, str]] = {
        (folded(schema), folded(name)): (schema, name, kind) for schema, name, kind in listed
    }
    parts = folded(source.table).split(".")
    schema, name, kind = kinds.get(("main", *parts) if len(parts) == 1 else tuple(parts), ("", "", ""))
    if not kind:
        raise InvalidSchema(
            no_such_table(source.table, source.file.name, [str(name) for _, name, _ in listed]),
            hint=f"SHOW TABLES in {source.file.name} lists them; of another schema than main: schema.table.",
        )
    if kind != "BASE TABLE":
        raise InvalidSchema(
            f'"{source.table}" of {source.file.name} is a view, which would run anew with each question.',
            hint="Make it a table (CREATE TABLE ... AS FROM the view), or have it run once, when the table is opened: "
            f'Table(duckdb.connect("{source.file.name}", read_only=True), table="{source.table}").',
        )
    generated = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_catalog = ? AND table_schema = ? "
        "AND table_name = ? AND is_generated <> 'NEVER'",
        [f"database{number}", schema, name],
    ).fetchone()
    if generated is not None:
        raise InvalidSchema(
            f'column "{generated[0]}" of {source} is computed anew with each question.',
            hint="Make a table of stored columns: CREATE TABLE ... AS FROM it.",
        )
