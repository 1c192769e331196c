"""People are gone over in passes: how many changes no integer, and depends on rows' number and memory alone."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.duckdb import executor, passes
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, session

QUERIES = [
    "SELECT COUNT(*), SUM(x), AVG(x) FROM t",
    "SELECT g, COUNT(*), COUNT(DISTINCT who), SUM(x) FROM t GROUP BY g",
    "SELECT u, COUNT(*), SUM(x) FROM t GROUP BY u",
    "SELECT MEDIAN(x) FROM t",
    "SELECT COUNT(DISTINCT who), COUNT(DISTINCT g) FROM t",
    "SELECT COUNT(*), SUM(CLAMP(y, 0, 20)) FROM (SELECT who, SUM(x) AS y FROM t GROUP BY who)",
    "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.who = b.who AND a.u = b.u",
    "SELECT WITH DIFFERENTIAL_PRIVACY g, COUNT(*), SUM(x, contribution_bounds_per_group => (0, 4)) FROM t GROUP BY g",
]


def tables() -> dict[str, dpsql.Table]:
    draw = np.random.default_rng(5)
    rows = 400
    frame = pd.DataFrame(
        {
            "who": draw.choice([f"w{number}" for number in range(60)], rows),
            "x": draw.integers(-3, 12, rows),
            "g": draw.choice(["a", "b", "c", "other"], rows),
            "u": draw.integers(0, 9, rows),
        }
    )
    words: dict[str, Any] = {"unit": "who", "max_rows": 3, "max_groups": 2}
    return {"t": dpsql.Table(frame, bounds={"x": (0, 9)}, keys={"g": ["a", "b", "c"]}, **words)}


def test_how_many_changes_no_integer(monkeypatch: pytest.MonkeyPatch):
    of_pandas, of_duckdb = session(tables(), "pandas"), session(tables(), "duckdb")
    asked: list[int] = []
    honest = executor.passes
    for number in (1, 2, 7):

        def so_many(connection: Any, plan: Any, stores: Any, times: int, number: int = number) -> int:
            asked.append(number)
            monkeypatch.setattr(passes, "memory_of", lambda _connection: -(-2 * passes.BYTES_OF_ROW * 400 // number))
            counted = honest(connection, plan, stores, times)
            assert counted in (1, number)
            return counted

        monkeypatch.setattr(executor, "passes", so_many)
        for sql in QUERIES:
            wanted, got = (insecure_exact(held, sql, KEY, **TERMS) for held in (of_pandas, of_duckdb))
            assert wanted == got, (number, sql)
    assert set(asked) == {1, 2, 7}


def test_one_pass_where_nobody_is_limited(monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []
    honest = executor.passes

    def noted(*arguments: Any) -> int:
        seen.append(honest(*arguments))
        return seen[-1]

    monkeypatch.setattr(executor, "passes", noted)
    monkeypatch.setattr(passes, "memory_of", lambda _connection: passes.BYTES_OF_ROW)
    free = session({"t": dpsql.Table(tables()["t"].frame, bounds={"x": (0, 9)})}, "duckdb")
    insecure_exact(free, "SELECT u, SUM(x) FROM t GROUP BY u", KEY, **TERMS)
    assert seen == [1]
    insecure_exact(session(tables(), "duckdb"), "SELECT SUM(x) FROM t", KEY, **TERMS)
    assert seen == [1, 800]


def test_with_too_little_memory_there_are_more(monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []
    honest, compiled = executor.passes, executor.compile_plan

    def noted(*arguments: Any) -> int:
        seen.append(honest(*arguments))
        return seen[-1]

    def without_room(*arguments: Any, early: bool) -> Any:
        if early:
            raise duckdb.OutOfMemoryException("no room")
        return compiled(*arguments, early=early)

    held, sql = session(tables(), "duckdb"), "SELECT g, COUNT(*), SUM(x) FROM t GROUP BY g"
    wanted = insecure_exact(held, sql, KEY, **TERMS)
    monkeypatch.setattr(executor, "passes", noted)
    monkeypatch.setattr(executor, "compile_plan", without_room)
    assert insecure_exact(held, sql, KEY, **TERMS) == wanted
    insecure_exact(held, "SELECT COUNT(DISTINCT u) FROM t", KEY, **TERMS)
    assert seen == [1, executor.TIMES_AGAIN, 1, 1]
