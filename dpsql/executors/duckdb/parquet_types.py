"""Types of Parquet columns for which DuckDB's reader can fail on a single cell, found in the file's schema.

The reader converts times of milliseconds, INT96 and times of day to its own types, and parses JSON. A cell out of range
aborts the whole statement, whatever the WHERE clause. No option of the reader, and no TRY, makes such a cell NULL. So a
query that reads such a column is refused before it is charged, by the schema of the file only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import duckdb

_MARK = " in Parquet's "
_CONVERTED = frozenset({
    *("UTF8", "ENUM", "DECIMAL", "DATE", "TIMESTAMP_MICROS", "INTERVAL", "LIST", "MAP", "MAP_KEY_VALUE"),
    *("INT_8", "INT_16", "INT_32", "INT_64", "UINT_8", "UINT_16", "UINT_32", "UINT_64"),
})  # fmt: skip
_LOGICAL = frozenset({
    *("StringType", "EnumType", "DecimalType", "DateType", "IntType", "NullType", "UUIDType", "Float16Type"),
    *("TimestampType", "ListType", "MapType"),
})  # fmt: skip
"""Annotations that the reader accepts for every cell. Any other annotation is unsafe."""


class _Field(NamedTuple):
    kind: str | None
    children: int
    converted: str | None
    logical: str | None

    def unsafe(self) -> str | None:
        """Return the name of the type if the reader can fail on one of its cells."""
        logical = (self.logical or "").split("(")[0]
        if self.kind == "INT96":
            return "INT96"
        if logical == "TimestampType" and "MILLIS=<null>" not in (self.logical or ""):
            return "TIMESTAMP_MILLIS"
        if self.kind == "BYTE_ARRAY" and "DECIMAL" in (self.converted, logical.upper().removesuffix("TYPE")):
            return "DECIMAL of bytes"
        if logical and logical not in _LOGICAL:
            return logical.removesuffix("Type").upper()
        return None if self.converted is None or self.converted in _CONVERTED else self.converted


def unsafe_types(connection: duckdb.DuckDBPyConnection, file: str) -> list[str | None]:
    """Return, for each column of a file in order, the type that makes it unsafe, or None."""
    wanted = "type, num_children, converted_type, logical_type"
    rows = connection.execute(f"SELECT {wanted} FROM parquet_schema({file})").fetchall()
    fields = iter([_Field(kind, children or 0, converted, logical) for kind, children, converted, logical in rows])
    root = next(fields)
    return [_first_unsafe(fields) for _ in range(root.children)]


def _first_unsafe(fields: Iterator[_Field]) -> str | None:
    """Return the first unsafe type in a column and everything nested in it."""
    field = next(fields)
    nested = [_first_unsafe(fields) for _ in range(field.children)]
    return field.unsafe() or next((each for each in nested if each is not None), None)


def marked(storage: str, unsafe: str | None) -> str:
    """Return the name of a stored type, marked if it is unsafe."""
    return storage if unsafe is None else f"{storage}{_MARK}{unsafe}"


def is_unsafe(storage: str) -> bool:
    return _MARK in storage


def plain(storage: str) -> str:
    """Return DuckDB's own name for a stored type."""
    return storage.partition(_MARK)[0]


def lack_of(name: str, storage: str) -> str:
    """Return the feature that is missing for a query that reads an unsafe column."""
    return (
        f'reading of "{name}" that no cell can make fail: it is stored as {storage}. Write the file with timestamps of '
        "microseconds, or with text in place of times of day and JSON; or read it as Arrow: "
        "dpsql.Table(pyarrow.parquet.read_table(path))"
    )
