"""A session in words: its tables, their declared facts, its budget. Declared facts only, nothing of the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dpsql.core.loss import show
from dpsql.core.unit import Neighbours
from dpsql.schema.calendar import show_date, show_timestamp
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.intervals import Number
from dpsql.session.session import Session
from dpsql.shell.show import printable

_MOST_KEYS_SHOWN = 20
_WIDEST_QUERY = 80


def tables_of(session: Session) -> list[TableSchema]:
    """The declared facts of each table."""
    return list(session.catalog.tables.values())


def banner(session: Session, version: str) -> str:
    """One line for a start: what can be asked, what is protected, what may be spent."""
    names = [printable(name) for name in session.tables]
    tables = f"{'table' if len(names) == 1 else 'tables'} {', '.join(names)}"
    return " | ".join([f"dpsql {version}", tables, protects(session), f"budget {session.budget.loss}", ".help"])


def protects(session: Session) -> str:
    """What one answer is private about."""
    private = [table for table in tables_of(session) if not table.public]
    of_rows = [table for table in private if table.unit is None]
    whose = "one row of each table" if len(of_rows) == len(private) else "one person, with all rows in all tables"
    if of_rows and len(of_rows) < len(private):
        whose += f" (one row of {', '.join(printable(table.name) for table in of_rows)})"
    return f"protects what {whose} says" if session.neighbours is Neighbours.BOUNDED else f"protects {whose}"


def list_tables(tables: Iterable[TableSchema]) -> str:
    """A line for each table: its name and how many columns it has."""
    rows = [(printable(each.name), f"{len(each.columns)} columns", _whose(each)) for each in tables]
    return _aligned(rows) if rows else "no tables"


def _whose(table: TableSchema) -> str:
    """Whose rows a table holds, and how many of one unit count."""
    if table.public:
        return "public"
    if table.unit is None:
        return "each row is one person's"
    word = table.unit_word
    path = f" -> {word.table}.{word.key}" if word is not None and word.table else ""
    limits = [("rows", table.limits.rows), ("groups", table.limits.groups), ("rows a group", table.limits.per_group)]
    most = ", ".join(f"{limit:,} {what}" for what, limit in limits if limit is not None)
    return printable(f"unit {table.unit.column}{path}{f', at most {most}' if most else ''}")


def list_columns(tables: Iterable[TableSchema]) -> str:
    """What is declared of each column of each table."""
    blocks = [
        f"{printable(table.name)} ({_whose(table)})\n{_aligned([_facts(column) for column in table.columns], indent=2)}"
        for table in tables
    ]
    return "\n".join(blocks)


def list_budget(session: Session) -> str:
    """What may be spent, what has been and what is left."""
    asked = len(session.ledger())
    kept = session.budget.filter(session.accountant).conversion
    rows = [
        ("budget", str(session.budget.loss)),
        ("spent", f"{session.spent} in {asked} {'query' if asked == 1 else 'queries'}"),
        ("left", str(session.remaining)),
    ]
    if kept:
        rows.append(("kept", f"delta {show(kept)}, which converts rho to epsilon (accountant {session.accountant})"))
    return _aligned(rows)


def list_ledger(session: Session) -> str:
    """A line for each charge: when, whose, what it cost, the query's text on one line."""
    rows = [
        (each.time[:19].replace("T", " "), printable(each.analyst or ""), str(each.cost), _on_a_line(each.label))
        for each in session.ledger()
    ]
    return _aligned(rows) if rows else "nothing has been spent"


def _on_a_line(sql: str) -> str:
    text = printable(" ".join(sql.split()))
    return text if len(text) <= _WIDEST_QUERY else f"{text[: _WIDEST_QUERY - 3]}..."


def _facts(column: ColumnSchema) -> tuple[str, ...]:
    facts = []
    if column.auto:
        facts.append("bounds chosen privately")
    if column.bounds is not None:
        facts.append(f"from {_end(column, column.bounds.lower)} to {_end(column, column.bounds.upper)}")
    if column.keys is not None:
        facts.append(f"keys {_some(column)}")
    kind = f"{column.type}{'' if column.nullable else ' not null'}"
    return printable(column.name), kind, ", ".join(facts)


def _end(column: ColumnSchema, end: Number) -> str:
    """A bound as its owner would write it."""
    if column.type.temporal:
        return show_date(int(end)) if column.type is Type.DATE else show_timestamp(int(end))
    return f"{end:.12g}"


def _some(column: ColumnSchema) -> str:
    keys = column.keys or ()
    timed = column.type.temporal
    texts = [_end(column, key) if timed and isinstance(key, int) else repr(key) for key in keys[:_MOST_KEYS_SHOWN]]
    shown = ", ".join("NULL" if text == "None" else text for text in texts)
    more = len(keys) - _MOST_KEYS_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def _aligned(rows: Sequence[Sequence[str]], indent: int = 0) -> str:
    """Columns of text, two blanks apart."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(f"{' ' * indent}{line}".rstrip() for line in lines)
