"""Which groups are public: declared lists, booleans and bounded integers; everything else is private."""

from __future__ import annotations

from dpsql.errors import Span, UnsupportedSQL
from dpsql.schema import ColumnSchema, Key, Type
from dpsql.sql.expressions import Column
from dpsql.sql.plan import MOST_DERIVED_CELLS, GroupKey


def group_key(column: Column, declared: ColumnSchema, span: Span | None) -> GroupKey:
    """The key of a GROUP BY column, with its public values where there are any."""
    if declared.type is Type.OTHER:
        raise UnsupportedSQL(f"GROUP BY {column}: columns of type {declared.storage} cannot be grouped by.", span=span)
    return GroupKey(column, public_values(declared), declared, span)


def public_values(declared: ColumnSchema) -> tuple[Key, ...] | None:
    """Every value the key can have by declaration alone; NULL is one of them where the column may hold it."""
    if declared.keys is not None:
        return declared.keys
    derived: tuple[Key, ...] | None = None
    if declared.type is Type.BOOLEAN:
        derived = (False, True)
    elif declared.type is Type.INTEGER and declared.bounds is not None:
        lower, upper = int(declared.bounds.lower), int(declared.bounds.upper)
        if upper - lower < MOST_DERIVED_CELLS:
            derived = tuple(range(lower, upper + 1))
    if derived is None:
        return None
    return (*derived, None) if declared.nullable else derived
