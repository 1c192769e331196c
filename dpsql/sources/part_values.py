"""Column values in file names: for each file of a parted table one value of the column's declared type."""

from __future__ import annotations

import re

from dpsql.errors import InvalidSchema, did_you_mean
from dpsql.schema.calendar import read_date
from dpsql.schema.columns import Key, TableSchema, Type
from dpsql.schema.intervals import INT64
from dpsql.sources.stored import PartedFiles

_WHOLE = re.compile("0|-?[1-9][0-9]{0,18}")


def part_values(source: PartedFiles, schema: TableSchema) -> tuple[Key, ...]:
    """Return the value of each file, dates as days. Raises InvalidSchema if the table has no such column of text, whole
    numbers or dates, or a name is not such a value."""
    column = schema.by_name.get(source.column.casefold())
    if column is None:
        near = did_you_mean(source.column, [each.name for each in schema.columns])
        raise InvalidSchema(
            f'{{{source.column}}} in the path of {schema.name}: its files have no column "{source.column}".{near}',
            hint="Each file holds the column that its name tells; rows with another value are nobody's.",
        )
    if column.type not in (Type.TEXT, Type.INTEGER, Type.DATE):
        raise InvalidSchema(
            f'{{{source.column}}} in the path of {schema.name}: "{column.name}" is {column.type}.',
            hint="A part is told by a text, a whole number or a date.",
        )
    values = tuple(_value(text, column.type) for text in source.values)
    for file, value in zip(source.files, values, strict=True):
        if value is None:
            raise InvalidSchema(
                f"{file}: its name says no {column.type} where {{{source.column}}} stands.",
                hint="Dates are written 2026-11-23, whole numbers without leading zeros.",
            )
    return values


def _value(text: str, kind: Type) -> Key:
    if kind is Type.TEXT:
        return text
    if kind is Type.DATE:
        return read_date(text) if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else None
    return int(text) if _WHOLE.fullmatch(text) and int(text) in INT64 else None
