"""People are gone over in passes: how many changes no integer, and depends on rows' number and memory alone."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InternalError
from dpsql.executors.duckdb import executor
from dpsql.executors.duckdb import unit_chunks as passes
from dpsql.executors.duckdb.instance import lock, opened
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.executors.resources import Resources
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

        def so_many(*arguments: Any, number: int = number) -> int:
            asked.append(number)
            monkeypatch.setattr(passes, "memory_of", lambda _connection: -(-2 * passes.BYTES_OF_ROW * 400 // number))
            counted = honest(*arguments)
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


def died_of_memory(held: dpsql.Session, sql: str) -> None:
    """It is asked, is paid for, and says what to write."""
    with pytest.raises(InternalError, match="more memory than it may have. What it cost stays spent") as caught:
        held.query(sql, epsilon=1)
    for word in ("memory=", "spill=", "--memory", "--spill", "owner's file"):
        assert word in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert held.spent.epsilon == 1


def test_a_run_that_memory_has_no_room_for_says_what_to_write(monkeypatch: pytest.MonkeyPatch):
    def without_room(*_: Any, **__: Any) -> Any:
        raise duckdb.OutOfMemoryException("no room for a secret")

    held = dpsql.Session(tables(), budget=dpsql.Budget(2), engine="duckdb")
    monkeypatch.setattr(executor, "compile_plan", without_room)
    died_of_memory(held, "SELECT SUM(x) FROM t")


def test_a_frame_that_memory_has_no_room_for(monkeypatch: pytest.MonkeyPatch):
    def without_room(*_: Any, **__: Any) -> Any:
        raise MemoryError

    held = dpsql.Session(tables(), budget=dpsql.Budget(2))
    monkeypatch.setattr(PandasExecutor, "execute", without_room)
    with pytest.raises(InternalError, match='more memory than it may have. What it cost stays spent(.|\n)*"duckdb"'):
        held.query("SELECT SUM(x) FROM t", epsilon=1)


def test_what_memory_has_no_room_for_is_written_to_the_folder(tmp_path: Path):
    """Encrypted: the wheel has one library for that, which has to be asked for."""
    sql = "SELECT COUNT(DISTINCT repeat('x', 250) || range) FROM range(400000)"
    with opened(resources=Resources(100_000_000, 1)) as connection, pytest.raises(duckdb.OutOfMemoryException):
        connection.execute(sql)
    with opened(resources=Resources(100_000_000, 1), folder=str(tmp_path)) as connection:
        lock(connection)
        assert connection.execute(sql).fetchall() == [(400_000,)]


@pytest.mark.slow
def test_of_really_too_many_values(tmp_path: Path):
    """Different values are counted in one pass, and there are more of them than have room."""
    file, sql = tmp_path / "t.parquet", "SELECT COUNT(DISTINCT x) FROM t"
    with duckdb.connect() as connection:
        wide = "repeat('x', 250) || range AS x"
        connection.execute(f"COPY (SELECT range AS who, {wide} FROM range(400000)) TO '{file}'")
    table = dpsql.Table(file, unit="who", max_rows=1)
    died_of_memory(dpsql.Session({"t": table}, budget=dpsql.Budget(2, 1e-6), memory="100MB", threads=1), sql)
    room = dpsql.Session({"t": table}, budget=dpsql.Budget(1), memory="100MB", threads=1, spill=tmp_path)
    assert insecure_exact(room, sql, KEY, epsilon=1).parts == {(): (400_000,)}
