"""The tables that come to a session together: those that are given, and those that the owner's file leads to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dpsql.errors import InvalidSchema, as_written
from dpsql.schema.words import about
from dpsql.session.owner_file import Schema
from dpsql.session.table import Table


def all_tables(tables: Mapping[Any, Table], schema: Schema | None, present: Collection[str]) -> dict[str, Table]:
    """The tables with what the owner's file declares of them, and those of it that have a path; `present`: folded names
    that are taken. Raises InvalidSchema."""
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
            from dpsql.session.paths import table_at  # frames need no reader of files

            frame, declaration, origin = table_at(entry.path, entry.declaration, entry.text, entry.table)
            with about(name):
                added[name] = Table.of(frame, declaration, origin)
    return added
