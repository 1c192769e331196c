"""Declared facts of tables in words; rows are not read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpsql.answer.number_format import printable
from dpsql.schema.calendar import show_date, show_timestamp
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.intervals import Number

_MOST_KEYS_SHOWN = 20


def list_tables(tables: Iterable[TableSchema]) -> str:
    """List the tables, one a line: name, number of columns, and privacy unit."""
    rows = [(printable(each.name), f"{len(each.columns)} columns", whose(each)) for each in tables]
    return aligned(rows) if rows else "no tables"


def whose(table: TableSchema) -> str:
    """Describe the privacy unit of a table and its contribution bounds."""
    if table.public:
        return "public"
    if table.unit is None:
        return "each row is one person's"
    word = table.unit_word
    path = f" -> {word.table}.{word.key}" if word is not None and word.table else ""
    limits = {"row{}": table.limits.rows, "group{}": table.limits.groups, "row{} a group": table.limits.per_group}
    most = ", ".join(
        f"{limit:,} {what.format('' if limit == 1 else 's')}" for what, limit in limits.items() if limit is not None
    )
    return printable(f"unit {table.unit.column}{path}{f', at most {most}' if most else ''}")


def list_columns(tables: Iterable[TableSchema]) -> str:
    """List the declared facts of each column of each table."""
    blocks = []
    for table in tables:
        columns = aligned([facts_of(column) for column in table.columns], indent=2)
        blocks.append(f"{printable(table.name)} ({whose(table)})\n{columns}")
    return "\n".join(blocks)


def list_keys(tables: Iterable[TableSchema]) -> str:
    """List all declared keys, one line for each column that has some."""
    rows = [
        (f"{printable(table.name)}.{printable(column.name)}", _some(column, len(column.keys)))
        for table in tables
        for column in table.columns
        if column.keys is not None
    ]
    return aligned(rows) if rows else "no keys are declared: an owner's file has them as city = { keys = [...] }"


def list_bounds(tables: Iterable[TableSchema]) -> str:
    """List the declared bounds, one line for each column of numbers or times, including those without bounds."""
    rows = [
        (f"{printable(table.name)}.{printable(column.name)}", str(column.type), _bounds_of(column) or "no bounds")
        for table in tables
        for column in table.columns
        if column.type.numeric or column.type.temporal
    ]
    hint = "An owner's file has them as age = { bounds = [0, 120] }; a query may write CLAMP(age, 0, 120)."
    return f"{aligned(rows)}\n{hint}" if rows else f"no column of numbers or dates. {hint}"


def facts_of(column: ColumnSchema) -> tuple[str, str, str]:
    """Return a column's name, its type, and its bounds and keys."""
    facts = [_bounds_of(column)] if _bounds_of(column) else []
    if column.keys is not None:
        facts.append(f"keys {_some(column)}")
    kind = f"{column.type}{'' if column.nullable else ' not null'}"
    return printable(column.name), kind, ", ".join(facts)


def _bounds_of(column: ColumnSchema) -> str:
    """Describe the bounds of a column; "" if it has none."""
    bounds = column.bounds
    between = "" if bounds is None else f"from {_end(column, bounds.lower)} to {_end(column, bounds.upper)}"
    if column.auto:
        return f"bounds chosen privately, {between}" if between else "bounds chosen privately"
    return between


def _end(column: ColumnSchema, end: Number) -> str:
    """Format a bound as in a declaration."""
    if column.type.temporal:
        return show_date(int(end)) if column.type is Type.DATE else show_timestamp(int(end))
    return f"{end:.12g}"


def _some(column: ColumnSchema, most: int = _MOST_KEYS_SHOWN) -> str:
    keys = column.keys or ()
    timed = column.type.temporal
    texts = [_end(column, key) if timed and isinstance(key, int) else repr(key) for key in keys[:most]]
    shown = ", ".join("NULL" if text == "None" else text for text in texts)
    more = len(keys) - most
    return f"{shown} and {more:,} more" if more > 0 else shown


def aligned(rows: Sequence[Sequence[str]], indent: int = 0) -> str:
    """Align columns of text, two blanks apart."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(f"{' ' * indent}{line}".rstrip() for line in lines)
