"""dpsql: SQL over DataFrames with differential privacy.

import dpsql
dpsql.query(df, "SELECT AVG(age) FROM df", epsilon=1, bounds={"age": (17, 90)})
"""

from __future__ import annotations

from importlib import import_module

from dpsql.shell import interrupted as _interrupted  # noqa: F401  isort: skip - first, as all else takes its time

from dpsql import errors
from dpsql.answer.explain import Explanation
from dpsql.answer.result import Result
from dpsql.core.ledger.budget import Budget
from dpsql.core.loss import PrivacyLoss
from dpsql.core.unit import Neighbours
from dpsql.errors import DPSQLError
from dpsql.session.owner_file import Schema
from dpsql.session.query import query
from dpsql.session.session import Session
from dpsql.session.table import Table, declare
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
    "declare",
    "errors",
    "query",
]


def __getattr__(name: str) -> object:
    """`dpsql.accounting` and `dpsql.accuracy`, imported when they are first asked for."""
    if name in ("accounting", "accuracy"):
        return import_module(f"dpsql.{name}")
    raise AttributeError(f"module 'dpsql' has no attribute {name!r}")


def load_ipython_extension(shell: object) -> None:
    """`%load_ext dpsql`: the %dpsql and %%dpsql magics."""
    from dpsql.shell.magic import register

    register(shell)
