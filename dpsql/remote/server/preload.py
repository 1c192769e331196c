"""What a worker needs for its questions: importing this loads it (`nursery`). All of it: a first question of a kind
that loads something takes longer than a second one, which would tell whether anybody has asked one."""

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
"""What rooms load when they first need it, where it is installed."""


def _load() -> None:
    for room in ROOMS:
        for found in pkgutil.walk_packages(import_module(f"dpsql.{room}").__path__, f"dpsql.{room}."):
            if not found.name.startswith(NOT_HERE):
                import_module(found.name)
    for name in OTHERS:
        with suppress(ImportError):
            import_module(name)


def _warm_up() -> None:
    """Load what a first question loads, before anybody waits for it."""
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
    ].untied()  # by a process that others are forked of, which has no thread then
gc.collect()
gc.freeze()  # what is loaded stays: to go through it for garbage would take 40 ms each time, and a copy of its pages
