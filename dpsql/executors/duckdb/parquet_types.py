"""Types of Parquet columns that DuckDB's reader can fail on because of one cell, found in the file's schema.

The reader turns times of milliseconds, INT96 and times of day into its own types, and parses JSON. A cell out of range
ends the whole statement, whatever the WHERE says. No option of the reader, and no TRY, makes such a cell NULL. So a
question that reads such a column is refused before it is charged, by the schema of the file alone.
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
"""What the reader takes whatever a cell holds. An annotation that is not listed is unsafe."""


class _Field(NamedTuple):
    kind: str | None
    children: int
    converted: str | None
    logical: str | None

    def unsafe(self) -> str | None:
        """The name of the type, if the reader can fail on a cell of it."""
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
    """Of each column of a file, in order: the type that makes reading it unsafe, None if none does."""
    wanted = "type, num_children, converted_type, logical_type"
    rows = connection.execute(f"SELECT {wanted} FROM parquet_schema({file})").fetchall()
    fields = iter([_Field(kind, children or 0, converted, logical) for kind, children, converted, logical in rows])
    root = next(fields)
    return [_first_unsafe(fields) for _ in range(root.children)]


def _first_unsafe(fields: Iterator[_Field]) -> str | None:
    """The first unsafe type in a column and in all that is nested in it."""
    field = next(fields)
    nested = [_first_unsafe(fields) for _ in range(field.children)]
    return field.unsafe() or next((each for each in nested if each is not None), None)


def marked(storage: str, unsafe: str | None) -> str:
    """The name of a stored type, which says that it is unsafe."""
    return storage if unsafe is None else f"{storage}{_MARK}{unsafe}"


def is_unsafe(storage: str) -> bool:
    return _MARK in storage


def plain(storage: str) -> str:
    """DuckDB's own name for a stored type."""
    return storage.partition(_MARK)[0]


def lack_of(name: str, storage: str) -> str:
    """What an engine has not, where a question reads an unsafe column."""
    return (
        f'reading of "{name}" that no cell can make fail: it is stored as {storage}. Write the file with timestamps of '
        "microseconds, or with text in place of times of day and JSON; or read it as Arrow: "
        "dpsql.Table(pyarrow.parquet.read_table(path))"
    )
