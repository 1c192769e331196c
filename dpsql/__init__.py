"""dpsql: SQL over DataFrames with differential privacy.

import dpsql
dpsql.query(df, "SELECT AVG(age) FROM df", epsilon=1, bounds={"age": (17, 90)})
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dpsql.shell import interrupts as _interrupted  # noqa: F401  isort: skip - first, as all else takes its time

if TYPE_CHECKING:
    from dpsql import accounting, accuracy, dbapi, errors, owner
    from dpsql.answer.explain import Explanation
    from dpsql.answer.result import Result
    from dpsql.core.ledger.budget import Budget
    from dpsql.core.loss import PrivacyLoss
    from dpsql.core.unit import Neighbours
    from dpsql.errors import DPSQLError
    from dpsql.owner.suggestion import suggest_schema
    from dpsql.remote.client import connect
    from dpsql.session.owner_file import Schema
    from dpsql.session.query import query
    from dpsql.session.session import Session
    from dpsql.session.tables.table import Table, declare
    from dpsql.version import __version__

__all__ = [
    "Budget",
    "DPSQLError",
    "Explanation",
    "Neighbours",
    "PrivacyLoss",
    "Result",
    "Schema",
    "Session",
    "Table",
    "__version__",
    "accounting",
    "accuracy",
    "connect",
    "dbapi",
    "declare",
    "errors",
    "owner",
    "query",
    "suggest_schema",
]

_HOMES = {
    "Budget": "core.ledger.budget",
    "DPSQLError": "errors",
    "Explanation": "answer.explain",
    "Neighbours": "core.unit",
    "PrivacyLoss": "core.loss",
    "Result": "answer.result",
    "Schema": "session.owner_file",
    "Session": "session.session",
    "Table": "session.tables.table",
    "__version__": "version",
    "connect": "remote.client",
    "declare": "session.tables.table",
    "query": "session.query",
    "suggest_schema": "owner.suggestion",
}
"""The module of each public name; the other names in `__all__` are modules themselves."""


def __getattr__(name: str) -> object:
    """Return a public name, imported at first use: `query` needs no ledger, and a client no engine."""
    if name not in __all__:
        raise AttributeError(f"module 'dpsql' has no attribute {name!r}")
    home = _HOMES.get(name)
    found: object = import_module(f"dpsql.{name}") if home is None else getattr(import_module(f"dpsql.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: object) -> None:
    """Register the %dpsql and %%dpsql magics for `%load_ext dpsql`."""
    from dpsql.shell.notebook.extension import register

    register(shell)
