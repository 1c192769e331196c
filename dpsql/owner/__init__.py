"""Tools for data owners: write, check and price a schema file, inspect and renew a ledger. Their output is for the
owner only; no query of an analyst reaches them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsql.owner.costs import Bill, cost
    from dpsql.owner.data_checks import Finding, check_data
    from dpsql.owner.ledgers import LedgerReport, export_ledger, renew_ledger, show_ledger, verify_ledger
    from dpsql.owner.mistakes import Mistake, check
    from dpsql.owner.rehearsal import Rehearsal, rehearse
    from dpsql.owner.suggestion import init, suggest_schema
    from dpsql.owner.todos import Todo, open_todos

__all__ = [
    "Bill",
    "Finding",
    "LedgerReport",
    "Mistake",
    "Rehearsal",
    "Todo",
    "check",
    "check_data",
    "cost",
    "export_ledger",
    "init",
    "open_todos",
    "rehearse",
    "renew_ledger",
    "show_ledger",
    "suggest_schema",
    "verify_ledger",
]

_HOMES = {
    "Bill": "costs",
    "Finding": "data_checks",
    "LedgerReport": "ledgers",
    "Mistake": "mistakes",
    "Rehearsal": "rehearsal",
    "Todo": "todos",
    "check": "mistakes",
    "check_data": "data_checks",
    "cost": "costs",
    "export_ledger": "ledgers",
    "init": "suggestion",
    "open_todos": "todos",
    "rehearse": "rehearsal",
    "renew_ledger": "ledgers",
    "show_ledger": "ledgers",
    "suggest_schema": "suggestion",
    "verify_ledger": "ledgers",
}
"""The module of each public name."""


def __getattr__(name: str) -> object:
    """Return a public name, imported when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'dpsql.owner' has no attribute {name!r}")
    return getattr(import_module(f"dpsql.owner.{_HOMES[name]}"), name)
