"""Columns of whole numbers that may be too large for their type, such as uint64: what to declare of them."""

from __future__ import annotations

import re

from dpsql.errors import InvalidSchema
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.table_declarations import TableWords

_INTEGERS = re.compile(r"uint64|ubigint|u?hugeint|u?int128", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal(?:\d+)?\((\d+), ?(-?\d+)\)", re.IGNORECASE)
_DIGITS_OF_DOUBLES = 15
"""A double has every whole number of so many digits."""


def digits_of_decimal(storage: str) -> tuple[int, int] | None:
    """How many digits a decimal has, and how many of them stand after the point; None for any other stored type."""
    found = _DECIMAL.search(storage)
    return None if found is None else (int(found[1]), int(found[2]))


def is_wide(storage: str) -> bool:
    """Whether a stored type, by its name in pandas, Arrow, DuckDB or Spark, has whole numbers beyond 64 bits with a
    sign, or is of decimals without a fraction of which a double does not have all."""
    decimal = digits_of_decimal(storage)
    if decimal is not None:
        digits, places = decimal
        return places <= 0 and digits - places > _DIGITS_OF_DOUBLES
    return _INTEGERS.search(storage) is not None


def wide_hint(name: str, kind: Type) -> str:
    """What to write for such a column."""
    typed = "" if kind is Type.INTEGER else f' types={{"{name}": "integer"}} reads those of 64 bits,'
    return (
        f'Declare bounds, such as bounds={{"{name}": (0, 1000000)}}, to which numbers are clipped;{typed} '
        f'types={{"{name}": "text"}} reads all of them as their digits.'
    )


def check_words(table: TableSchema, words: TableWords) -> None:
    """Raises InvalidSchema where such a column is a key of a public table, or parts the rows: these are compared as
    values."""
    keys = {name for key in words.unique for name in key} | {name for name, _ in words.max_matches}
    compared = {*(keys if words.public else ()), words.partition}
    for column in table.columns:
        if column.wide and column.name in compared:
            raise InvalidSchema(
                f'column "{column.name}" of {table.name} is stored as {column.storage}: its numbers can be too large '
                "to be compared exactly.",
                hint=wide_hint(column.name, column.type),
            )
