"""Whatever a session remembers about rows is of one state of the files: what was asked of other rows is asked anew, and
parts of a declared partition cost a person once only as long as the rows stay where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.errors import BudgetExceeded, InvalidSchema
from dpsql.session.tables import table_states
from dpsql.testing import insecure_exact
from tests.lies import Patch, assert_caught

STATES = ["AL", "AK", "AZ", "AR", "CA"]
KEY = bytes(32)


def rows(state: str, filler: int = 3) -> pa.Table:
    """One person, who is in `state`, and others who are in none of these."""
    return pa.table({"state": [state] + ["XX"] * filler, "x": list(range(filler + 1))})


def parquet(folder: Path, state: str, filler: int = 3) -> Path:
    pq.write_table(rows(state, filler), folder / "p.parquet")
    return folder / "p.parquet"


def replaced(folder: Path, state: str, filler: int = 3) -> Path:
    """The file of another inode, as tools write that replace one."""
    pq.write_table(rows(state, filler), folder / "new")
    (folder / "new").rename(folder / "p.parquet")
    return folder / "p.parquet"


def pattern(folder: Path, state: str, filler: int = 3) -> str:
    for place in (0, 1):
        pq.write_table(rows(state if place else "XX", filler), folder / f"p-{place}.parquet")
    return str(folder / "p-*.parquet")


def parted(folder: Path, state: str, filler: int = 3) -> str:
    for each in STATES:
        pq.write_table(rows(state, filler), folder / f"of-{each}.parquet")
    return str(folder / "of-{state}.parquet")


def database(folder: Path, state: str, filler: int = 3) -> Path:
    with duckdb.connect(str(folder / "p.duckdb")) as base:
        held = rows(state, filler)
        base.register("held", held)
        base.execute("CREATE OR REPLACE TABLE p AS SELECT * FROM held")
    return folder / "p.duckdb"


def csv(folder: Path, state: str, filler: int = 3) -> Path:
    rows(state, filler).to_pandas().to_csv(folder / "p.csv", index=False)
    return folder / "p.csv"


Write = Callable[..., Any]
READ_WITH_EACH_QUESTION: dict[str, Write] = {
    "Parquet": parquet,
    "Parquet, replaced": replaced,
    "a pattern": pattern,
    "parts": parted,
    "a database": database,
    "a dataset": lambda folder, state, filler=3: ds.dataset(parquet(folder, state, filler)),
}
READ_ONCE: dict[str, Write] = {
    "CSV": csv,
    "a frame": lambda _, state, filler=3: rows(state, filler).to_pandas(),
    "Arrow": lambda _, state, filler=3: rows(state, filler),
    "a relation": lambda _, state, filler=3: duckdb.connect().from_arrow(rows(state, filler)),
}
SOURCES = READ_WITH_EACH_QUESTION | READ_ONCE


def table(kind: str, source: Any, **words: Any) -> dpsql.Table:
    words = {"types": {"state": "text", "x": "integer"}, "partition": "state", **words}
    return dpsql.Table(source, **words, **({"table": "p"} if kind == "a database" else {}))


def session(kind: str, source: Any, *, neighbours: str = "unbounded", **words: Any) -> dpsql.Session:
    return dpsql.Session({"p": table(kind, source, **words)}, budget=dpsql.Budget(1e6), neighbours=neighbours)


def count(state: str) -> str:
    return f"SELECT COUNT(*) AS n FROM p WHERE state = '{state}'"


def paid_by_one(folder: Path, kind: str, neighbours: str, *, write: bool = True) -> tuple[float, float]:
    """What one person has paid for, whose row is moved before each of five questions about one state; and what the
    ledger says is spent."""
    held = session(kind, SOURCES[kind](folder, STATES[0]), neighbours=neighbours)
    paid = 0
    for place, state in enumerate(STATES):
        if write:
            SOURCES[kind](folder, state, 3 + place)
        paid += insecure_exact(held, count(state), KEY, epsilon=1).parts[()][0] > 0
        held.query(count(state), epsilon=1)
    return float(paid), float(held.spent.epsilon)


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
@pytest.mark.parametrize("kind", SOURCES)
def test_parts_of_rows_that_move_add_up(tmp_path: Path, kind: str, neighbours: str):
    paid, spent = paid_by_one(tmp_path, kind, neighbours)
    assert paid == (5 if kind in READ_WITH_EACH_QUESTION else 1)
    assert spent >= paid


@pytest.mark.parametrize("kind", SOURCES)
def test_parts_of_rows_that_stay_cost_once(tmp_path: Path, kind: str):
    assert paid_by_one(tmp_path, kind, "unbounded", write=False) == (1, 1)


def test_a_budget_ends_in_time(tmp_path: Path):
    held = dpsql.Session({"p": table("Parquet", parquet(tmp_path, "AL"))}, budget=dpsql.Budget(2))
    asked = 0
    for place in range(10):
        parquet(tmp_path, STATES[place % 5], 3 + place)
        with suppress(BudgetExceeded):
            held.query(count(STATES[place % 5]), epsilon=1)
            asked += 1
    assert asked == 2


def test_steps_of_one_statement_are_parts_of_one_state(tmp_path: Path):
    sql = "SELECT (SELECT COUNT(*) FROM p WHERE state = 'AL') - (SELECT COUNT(*) FROM p WHERE state = 'AK') AS d"
    held = session("Parquet", parquet(tmp_path, "AL"))
    held.query(sql, epsilon=2)
    before = float(held.spent.epsilon)
    parquet(tmp_path, "AK", 4)
    assert not held.query(sql, epsilon=2).replayed
    assert float(held.spent.epsilon) == 2 * before


@pytest.mark.parametrize("kind", SOURCES)
def test_an_answer_is_given_again_while_the_rows_are_the_same(tmp_path: Path, kind: str):
    asked = [count("AL"), "SELECT SUM(x) AS n FROM p WHERE x > (SELECT AVG(x) FROM p)"]
    held = session(kind, SOURCES[kind](tmp_path, "AL"), bounds={"x": (0, 9)})
    for sql in asked:
        assert [held.query(sql, epsilon=1).replayed for _ in range(2)] == [False, True]
    SOURCES[kind](tmp_path, "AL", 4)
    for sql in asked:
        again = kind in READ_ONCE
        assert held.quote(sql, epsilon=1).replayed == again
        assert [held.query(sql, epsilon=1).replayed for _ in range(2)] == [again, True]
    assert len(held.ledger()) == (2 if kind in READ_ONCE else 4)


@pytest.mark.parametrize("kind", READ_WITH_EACH_QUESTION)
def test_what_was_seen_of_other_rows_decides_nothing(tmp_path: Path, kind: str):
    """Of keys that are unique, of units and of how many rows a unit has: after files were rewritten, a session has the
    integers of a new one."""
    queries = [
        "SELECT COUNT(*) AS n FROM p",
        "SELECT COUNT(*) AS n FROM q",
        "SELECT SUM(q.y) AS n FROM q JOIN p ON q.to = p.x",
        "SELECT COUNT(*) AS n FROM q WHERE q.to IN (SELECT x FROM p WHERE state = 'AL')",
    ]

    def held() -> dpsql.Session:
        words: dict[str, Any] = {"partition": None, "max_rows": 2}
        people = table(kind, source, unit="x", unique=["x"], **words)
        of_people = dpsql.Table(tmp_path / "q.parquet", unit="to -> p.x", max_rows=3, bounds={"y": (0, 9)})
        return dpsql.Session({"p": people, "q": of_people}, budget=dpsql.Budget(1e6))

    def integers(asked: dpsql.Session) -> list[Any]:
        return [insecure_exact(asked, sql, KEY, epsilon=1) for sql in queries]

    def write(people: int, keys: list[int]) -> Any:
        pq.write_table(pa.table({"to": keys, "y": [1] * len(keys)}), tmp_path / "q.parquet")
        return SOURCES[kind](tmp_path, "AL", people)

    source = write(5, [0, 1, 2])
    first = held()
    before = integers(first)
    write(2, [0, 0, 0, 0, 7, 7])
    after = integers(first)
    assert after == integers(held())
    assert after != before


def test_a_version_names_rows_that_stay(tmp_path: Path):
    for kind, version in (("Parquet", "1"), ("Parquet", "content"), ("a database", "1"), ("parts", "1")):
        folder = tmp_path / f"{kind} {version}"
        folder.mkdir()
        held = session(kind, SOURCES[kind](folder, "AL"), version=version)
        held.query(count("AL"), epsilon=1)
        SOURCES[kind](folder, "AK", 4)
        for sql in (count("AL"), count("AK")):
            with pytest.raises(InvalidSchema, match=r"has changed since its version was taken\. Nothing was charged"):
                held.query(sql, epsilon=1)
        assert len(held.ledger()) == 1


def test_the_log_of_a_database_belongs_to_its_version(tmp_path: Path):
    held = session("a database", database(tmp_path, "AL"), version="content")
    held.query(count("AL"), epsilon=1)
    (tmp_path / "p.duckdb.wal").write_bytes(b"")
    with pytest.raises(InvalidSchema, match=r"p\.duckdb\.wal has changed"):
        held.query(count("AL"), epsilon=1)


def test_rows_that_nothing_holds_still_are_charged_for_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As of a frame of Spark, which is run with each question."""
    held = session("Parquet", parquet(tmp_path, "AL"))
    monkeypatch.setattr(table_states.TableStates, "_stamps", lambda *_: None)
    for state in STATES:
        held.query(count(state), epsilon=1)
    assert float(held.spent.epsilon) == 5


def test_a_frame_that_is_written_to_stays_as_it_was(tmp_path: Path):
    frame = rows("AL").to_pandas()
    held = session("a frame", frame)
    for state in STATES:
        frame.loc[0, "state"] = state
        frame["x"] = frame["x"] + 1
        held.query(count(state), epsilon=1)
    assert insecure_exact(held, count("AL"), KEY, epsilon=1).parts == {(): (1,)}
    assert isinstance(frame, pd.DataFrame)
    assert float(held.spent.epsilon) == 1


# Lies.


def have_one_state_for_ever(patch: Patch) -> None:
    patch.setattr(table_states.TableStates, "__call__", lambda *_: "")


def look_at_names_alone(patch: Patch) -> None:
    patch.setattr("dpsql.executors.duckdb.files.stamps_of", tuple)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Path]:
    def numbered() -> Iterator[Path]:
        place = 0
        while True:
            (tmp_path / str(place)).mkdir()
            yield tmp_path / str(place)
            place += 1

    return numbered()


@pytest.mark.parametrize("lie", [have_one_state_for_ever, look_at_names_alone])
def test_a_lie_is_caught(folders: Iterator[Path], lie: Callable[[Patch], None]):
    def check() -> None:
        paid, spent = paid_by_one(next(folders), "Parquet", "unbounded")
        assert spent >= paid

    assert_caught(lie, check)
