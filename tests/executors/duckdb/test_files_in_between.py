"""Files that go, change or are closed between the opening of a table and a question: named, and where nothing was read
yet nothing is charged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpsql
from dpsql.errors import DPSQLError, InternalError, InvalidSchema
from dpsql.executors.duckdb import executor

SUM = "SELECT SUM(x) FROM t"
TWO_STEPS = "SELECT SUM(x) FROM t WHERE x > (SELECT AVG(x) FROM t)"


def parquet(file: Path, rows: str = "SELECT range AS x FROM range(5)") -> Path:
    duckdb.execute(f"COPY ({rows}) TO '{file}' (FORMAT parquet)")
    return file


def linked(file: Path, to: Path) -> None:
    file.unlink()
    file.symlink_to(to)


HARM: dict[str, tuple[str, Callable[[Path], object]]] = {
    "gone": (r"no file .*t\.parquet\.", Path.unlink),
    "a folder": (r"no file .*t\.parquet\.", lambda file: (file.unlink(), file.mkdir())),
    "cut": (r"t\.parquet cannot be read\.", lambda file: os.truncate(file, 60)),
    "another type": (r"t\.parquet has other columns", lambda file: parquet(file, "SELECT 'a secret' AS x")),
    "another name": (r"t\.parquet has other columns", lambda file: parquet(file, "SELECT 1::BIGINT AS secret")),
    "a link to no table": (r"t\.parquet cannot be read\.", lambda file: linked(file, Path(__file__))),
    "a link to itself": (r"t\.parquet cannot be read", lambda file: linked(file, file)),
}


@pytest.mark.parametrize("harm", HARM)
def test_what_is_another_table_by_now_is_refused_at_no_cost(tmp_path: Path, harm: str):
    file = parquet(tmp_path / "t.parquet")
    held = dpsql.Session({"t": dpsql.Table(file, bounds={"x": (0, 9)})}, budget=dpsql.Budget(9))
    words, do = HARM[harm]
    do(file)
    for sql in (SUM, TWO_STEPS):
        with pytest.raises(InvalidSchema, match=f"{words}(?s:.*)Nothing was charged") as caught:
            held.query(sql, epsilon=1)
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is None
    assert held.spent.epsilon == 0
    assert held.ledger() == ()


def test_more_rows_of_the_same_columns_are_the_table(tmp_path: Path):
    file = parquet(tmp_path / "t.parquet")
    held = dpsql.Session({"t": dpsql.Table(file, bounds={"x": (0, 99)})}, budget=dpsql.Budget(1e9))
    parquet(file, "SELECT range AS x FROM range(10)")
    assert held.query(SUM, epsilon=1e6).df.iloc[0, 0] == 45
    parquet(file, "SELECT range AS x FROM range(11)")
    assert held.query(SUM, epsilon=1e6).df.iloc[0, 0] == 55  # other rows: another question
    assert len(held.ledger()) == 2
    assert held.query(SUM, epsilon=1e6).replayed
    file.unlink()
    with pytest.raises(InvalidSchema, match="no file(?s:.*)Nothing was charged"):
        held.query(SUM, epsilon=1e6)


@pytest.mark.parametrize("harm", ["gone", "cut", "another type"])
def test_what_becomes_another_table_in_a_run_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str):
    """Also where the run fails of it."""
    file = parquet(tmp_path / "t.parquet")
    held = dpsql.Session({"t": dpsql.Table(file, bounds={"x": (0, 9)})}, budget=dpsql.Budget(9))
    honest = executor.passes

    def passes(*args: Any) -> int:
        HARM[harm][1](file)
        return honest(*args)

    monkeypatch.setattr(executor, "passes", passes)
    with pytest.raises(InternalError, match=r"t\.parquet changed while it was read(?s:.*)stays spent") as caught:
        held.query(SUM, epsilon=1)
    assert caught.value.__context__ is None
    assert held.spent.epsilon == 1


WRITER = """
import duckdb, sys
connection = duckdb.connect(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def test_a_database_that_another_process_writes_to_is_named(tmp_path: Path):
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as base:
        base.execute("CREATE TABLE t AS SELECT range AS x FROM range(5)")
    held = dpsql.Session({"t": dpsql.Table(file, table="t")}, budget=dpsql.Budget(1e9))
    command = [sys.executable, "-c", WRITER, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        asked: list[tuple[type[DPSQLError], Callable[[], object]]] = [
            (InvalidSchema, lambda: dpsql.Table(file, table="t")),
            (InvalidSchema, lambda: held.query("SELECT COUNT(*) FROM t", epsilon=1)),
        ]
        for kind, ask in asked:
            with pytest.raises(kind, match="table t cannot be read(?s:.*)open for writing"):
                ask()
        assert held.ledger() == ()
        writer.communicate()
    assert held.query("SELECT COUNT(*) AS n FROM t", epsilon=1e6).df["n"].tolist() == [5]


def test_what_a_killed_writer_left_in_the_log_is_read(tmp_path: Path):
    file = tmp_path / "shop.duckdb"
    killed = f"import duckdb, os; c = duckdb.connect({str(file)!r}); c.execute('CREATE TABLE t AS SELECT 1 AS x'); "
    subprocess.run([sys.executable, "-c", f"{killed}os.kill(os.getpid(), 9)"], check=False)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert "shop.duckdb.wal" in before
    held = dpsql.Session({"t": dpsql.Table(file, table="t")}, budget=dpsql.Budget(1e9))
    assert held.query("SELECT COUNT(*) AS n FROM t", epsilon=1e6).df["n"].tolist() == [1]
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_column_that_is_named_like_the_number_of_a_file_is_no_number_of_a_file(tmp_path: Path):
    for day in (1, 2):
        parquet(tmp_path / f"{day}.parquet", f"SELECT {day}::INTEGER AS day, 1 - {day}::BIGINT AS File_Index")
    with pytest.raises(InvalidSchema, match='a column is named "File_Index"'):
        dpsql.Session({"t": dpsql.Table(str(tmp_path / "{day}.parquet"))}, budget=dpsql.Budget(1))
    assert dpsql.Session({"t": dpsql.Table(str(tmp_path / "*.parquet"))}, budget=dpsql.Budget(1)).tables == ("t",)
