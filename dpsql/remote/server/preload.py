"""Imports everything that workers need for queries (see `fork_server`). Lazy loading would make the first query of a
kind slower than the second, and so reveal whether anybody has run one."""

from __future__ import annotations

import gc
import pkgutil
import sys
from contextlib import suppress
from importlib import import_module

import pandas as pd

from dpsql.core.ledger.budget import Budget
from dpsql.remote.server import encoding
from dpsql.session.session import Session
from dpsql.session.tables.table import Table

ROOMS = ("plan", "core", "postprocess", "sql", "accuracy", "release", "answer", "session", "executors")
NOT_HERE = "dpsql.executors.spark."
OTHERS = ("duckdb", "re2")
"""Optional dependencies that the packages load when they first need them."""


def _load() -> None:
    for room in ROOMS:
        for found in pkgutil.walk_packages(import_module(f"dpsql.{room}").__path__, f"dpsql.{room}."):
            if not found.name.startswith(NOT_HERE):
                import_module(found.name)
    for name in OTHERS:
        with suppress(ImportError):
            import_module(name)


def _warm_up() -> None:
    """Load what a first query loads, before anybody waits for it."""
    frame = pd.DataFrame({"g": ["a", "b"], "x": [1.0, 2.0]})
    with Session({"t": Table(frame, bounds={"x": (0, 1)}, keys={"g": ["a", "b"]})}, budget=Budget(1)) as session:
        sql = "SELECT g, COUNT(*) AS n, AVG(x) AS x FROM t GROUP BY g"
        encoding.explanation_in_json(session.explain(sql, epsilon=1))
        encoding.result_in_json(session.query(sql, epsilon=1))


_load()
_warm_up()
if "dpsql.remote.server.parent_watch" in sys.modules:
    sys.modules[
        "dpsql.remote.server.parent_watch"
    ].untied()  # only in the fork server, which has no threads from then on
gc.collect()
gc.freeze()  # keep loaded objects: collecting them would take 40 ms each time, and copy their shared pages
