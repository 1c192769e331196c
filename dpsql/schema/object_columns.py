"""Columns of Python objects without a declared type: declarations that they cannot have, and hints."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.errors import InvalidSchema
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.table_declarations import TableWords


def undeclared_hint(name: str) -> str:
    """Return the hint for a column of Python objects."""
    return (
        f'Say what it holds: types={{"{name}": "text"}}, or "integer", "real", "boolean", "date" or "timestamp"; each '
        "cell is then read as that type."
    )


def check_facts(name: str, words: Sequence[str]) -> None:
    """Raise InvalidSchema for declarations about values of a column without a type."""
    if words:
        raise InvalidSchema(
            f'{name}: {words[0]} need a declared type, as "{name}" is stored as Python objects.',
            hint=undeclared_hint(name),
        )


def check_words(table: TableSchema, words: TableWords) -> None:
    """Raise InvalidSchema for a column without a type that the table's own declarations read: all columns of a public
    table, otherwise the unit and keys."""
    read = {column.name for column in table.columns} if words.public else set(words.columns)
    for column in table.columns:
        if column.type is Type.OBJECT and column.name in read:
            raise InvalidSchema(
                f'column "{column.name}" of {table.name} is stored as Python objects: it needs a declared type.',
                hint=undeclared_hint(column.name),
            )
