"""Descriptions of a session: its tables, their declared facts, its budget. Rows are not read."""

from __future__ import annotations

from dpsql.answer.declared_facts import aligned
from dpsql.answer.number_format import printable
from dpsql.core.loss import show
from dpsql.core.unit import Neighbours
from dpsql.remote.client import RemoteSession
from dpsql.schema.columns import TableSchema
from dpsql.session.session import Session

_WIDEST_QUERY = 80


def tables_of(session: Session | RemoteSession) -> list[TableSchema]:
    """Return the declared facts of each table."""
    return list(session.catalog.tables.values())


def banner(session: Session | RemoteSession, version: str, unpaid: str = "") -> str:
    """Return the greeting line: tables, privacy unit, and budget or the reason why there is none."""
    names = [printable(name) for name in session.tables]
    tables = f"{'table' if len(names) == 1 else 'tables'} {', '.join(names)}"
    budget = unpaid or f"budget {session.budget.loss}"
    return " | ".join([f"dpsql {version}", tables, protects(session), budget, ".help"])


def protects(session: Session | RemoteSession) -> str:
    """Describe what an answer protects."""
    private = [table for table in tables_of(session) if not table.public]
    of_rows = [table for table in private if table.unit is None]
    row = "one row" if len(private) == 1 else "one row of each table"
    whose = row if len(of_rows) == len(private) else "one person, with all rows in all tables"
    if of_rows and len(of_rows) < len(private):
        whose += f" (one row of {', '.join(printable(table.name) for table in of_rows)})"
    return f"protects what {whose} says" if session.neighbours is Neighbours.BOUNDED else f"protects {whose}"


def list_budget(session: Session | RemoteSession) -> str:
    """List the total, spent and remaining budget."""
    asked = len(session.ledger())
    kept = session.budget.filter(session.accountant).conversion
    rows = [
        ("budget", str(session.budget.loss)),
        ("spent", f"{session.spent} in {asked} {'query' if asked == 1 else 'queries'}"),
        ("left", str(session.remaining)),
    ]
    if kept:
        rows.append(("kept", f"delta {show(kept)}, which converts rho to epsilon (accountant {session.accountant})"))
    if isinstance(session, RemoteSession):
        rows.append(("ledger", f"of {session.address}, for {session.analyst}"))
    else:
        rows.append(("ledger", str(session.ledger_path or "none: counts in this process only")))
    return aligned(rows)


def list_ledger(session: Session | RemoteSession) -> str:
    """List the charges, one a line: time, analyst, cost, and the query's text on one line."""
    rows = [
        (each.time[:19].replace("T", " "), printable(each.analyst or ""), str(each.cost), _on_a_line(each.label))
        for each in session.ledger()
    ]
    return aligned(rows) if rows else "nothing has been spent"


def _on_a_line(sql: str) -> str:
    text = printable(" ".join(sql.split()))
    return text if len(text) <= _WIDEST_QUERY else f"{text[: _WIDEST_QUERY - 3]}..."
