"""Tables that are added to a session together: given ones, and those of the owner's file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dpsql.errors import InvalidArgument, InvalidSchema, as_written
from dpsql.executors.base import checked_word
from dpsql.executors.resources import AUTO, Resources
from dpsql.schema.column_declarations import about
from dpsql.session.owner_file import Schema
from dpsql.session.tables.table import Table, as_table


def all_tables(tables: Mapping[Any, Table], schema: Schema | None, present: Collection[str]) -> dict[str, Table]:
    """Return the tables with the owner's file's declarations, and the file's tables that have a path; `present`: folded
    names already in use. Raises InvalidSchema."""
    entries = dict(schema.tables) if schema else {}
    declared = {name.casefold(): entry.declaration for name, entry in entries.items()}
    added: dict[str, Table] = {}
    for name, table in tables.items():
        if not isinstance(name, str) or not name:
            raise InvalidSchema(f"a table's name must be text, got {as_written(name)}.")
        if name.casefold() in present or name.casefold() in map(str.casefold, added):
            raise InvalidSchema(f'there is a table "{name}" already.')
        declaration = table.declaration
        if name.casefold() in declared:
            declaration = declaration.over(declared[name.casefold()])
        with about(name):
            added[name] = Table.of(table.frame, declaration, table.origin)
    for name, entry in entries.items():
        if name.casefold() not in map(str.casefold, added) and entry.path is not None:
            from dpsql.session.tables.paths import table_at  # frames need no file reader

            frame, declaration, origin = table_at(entry.path, entry.declaration, entry.text, entry.table)
            with about(name):
                added[name] = Table.of(frame, declaration, origin)
    return added


def adding_up(engine: str, resources: Resources, schema: Schema | None) -> tuple[str, Resources]:
    """Return the engine's name and resources; the owner's file supplies what the caller omits."""
    word = checked_word(engine)
    if not isinstance(schema, Schema):
        return word, resources
    return (schema.engine if word == AUTO else word), resources.over(schema.resources)


def named(tables: object) -> dict[Any, Table]:
    """Return the caller's tables. Raises InvalidArgument, InvalidSchema."""
    if tables is not None and not isinstance(tables, Mapping):
        raise InvalidArgument(
            f"tables must map names to DataFrames, got {type(tables).__name__}.", hint='Write {"people": df}.'
        )
    return {name: as_table(source) for name, source in (tables or {}).items()}
