"""`version = "content"`: an answer is given again where the files are the same, and only there."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InternalError, InvalidSchema, LedgerError
from dpsql.session import session as sessions
from dpsql.session.tables import file_versions as contents
from dpsql.sources.content import content_of
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS

COUNT = "SELECT COUNT(*) AS n FROM t"


def write(file: Path, rows: int, day: str = "2026-11-01") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows_of = f"SELECT range AS x, DATE '{day}' AS day FROM range({rows})"
    if file.suffix == ".duckdb":
        file.unlink(missing_ok=True)
        with duckdb.connect(str(file)) as base:
            base.execute(f"CREATE TABLE t AS {rows_of}; CREATE TABLE other AS {rows_of}")
    elif file.suffix == ".csv":
        duckdb.sql(rows_of).write_csv(str(file))
    else:
        duckdb.sql(rows_of).write_parquet(str(file))


def session(source: Any, ledger: Path | None = None, **more: Any) -> dpsql.Session:
    words = {"version": "content", "types": {"x": "integer", "day": "date"}, **more}
    return dpsql.Session({"t": dpsql.Table(source, **words)}, budget=dpsql.Budget(1e9), ledger=ledger)


def answer(held: dpsql.Session, sql: str = COUNT) -> tuple[float, bool]:
    """An answer with some noise, and whether it was given before."""
    before = len(held.ledger())
    result = held.query(sql, epsilon=0.001)
    assert isinstance(result, dpsql.Result)
    return float(result.df["n"].sum()), len(held.ledger()) == before


@pytest.mark.parametrize("name", ["t.parquet", "t.duckdb", "t.csv"])
def test_files_that_are_the_same_are_answered_again(tmp_path: Path, name: str):
    file, ledger = tmp_path / name, tmp_path / "a.ledger"
    more = {"table": "t"} if name == "t.duckdb" else {}
    write(file, 20)
    with session(file, ledger, **more) as held:
        first, again = answer(held)
        assert not again
        assert answer(held) == (first, True)
    file.touch()  # the same bytes
    with session(file, ledger, **more) as held:
        assert answer(held) == (first, True)
    write(file, 21)
    with session(file, ledger, **more) as held:
        assert not answer(held)[1]
    write(tmp_path / "elsewhere" / name, 20)
    if name != "t.duckdb":  # whose bytes say when it was made
        with session(tmp_path / "elsewhere" / name, ledger, **more) as held:
            assert answer(held) == (first, True)


def test_what_tells_contents_apart(tmp_path: Path):
    """Bytes, names, their order, where one file ends, which table, and the key."""
    for name, text in (("a", "1"), ("b", "2"), ("c", "12"), ("d", ""), ("e", "1")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    lists = ["a", "b", "c", "d", "e", "ab", "ba", "cd", "dc", "aa", ""]
    versions = [content_of(b"k", [tmp_path / name for name in each], more) for each in lists for more in ("", "t")]
    versions += [content_of(b"other", [tmp_path / name for name in each]) for each in lists]
    assert len(set(versions)) == 3 * len(lists)
    assert content_of(b"k", [tmp_path / "a"]) == versions[0]
    with pytest.raises(InvalidSchema, match="no file"):
        content_of(b"k", [tmp_path / "none"])


def test_the_key_is_of_the_ledger_and_is_shown_nowhere(tmp_path: Path):
    write(tmp_path / "t.parquet", 20)
    keys = set()
    for name in ("a.ledger", "b.ledger", "a.ledger"):
        with session(tmp_path / "t.parquet", tmp_path / name) as held:
            answer(held)
            keys.add(held._ledger.content_key)
            secret = held._ledger.content_key.hex()
            assert secret not in held.export_ledger() + repr(held.ledger()) + str(held.explain(COUNT, epsilon=1))
            assert set(json.loads(held.export_ledger())) == {"rules", "lines"}
    assert len(keys) == 2
    of_sessions = {session(tmp_path / "t.parquet")._catalog.tables["t"].version for _ in range(2)}
    assert len(of_sessions) == 2  # without a ledger each session has a key of its own
    with dpsql.Session({"t": pd.DataFrame({"x": [1]})}, budget=dpsql.Budget(1e9), ledger=tmp_path / "c.ledger"):
        pass
    with sqlite3.connect(tmp_path / "c.ledger") as plain:
        assert len(plain.execute("SELECT * FROM sqlite_master").fetchall()) == 3  # made where it is asked for


@pytest.mark.parametrize(
    "harm",
    [
        "DELETE FROM secret",
        "UPDATE secret SET key = 'text'",
        "UPDATE secret SET key = x'00'",
        "DROP TABLE secret; CREATE TABLE secret (one INTEGER, key BLOB)",
    ],
)
def test_a_secret_that_was_edited_is_noticed(tmp_path: Path, harm: str):
    write(tmp_path / "t.parquet", 20)
    session(tmp_path / "t.parquet", tmp_path / "a.ledger").close()
    with sqlite3.connect(tmp_path / "a.ledger") as file:
        file.executescript(harm)
    file.close()
    with pytest.raises(LedgerError):
        session(tmp_path / "t.parquet", tmp_path / "a.ledger")


def test_files_that_change_before_a_question(tmp_path: Path):
    file = tmp_path / "t.parquet"
    write(file, 20)
    held = session(file)
    answer(held)
    os.utime(file, ns=(1, 1))
    for sql in (COUNT, "SELECT COUNT(*) AS n FROM t WHERE x > 2"):
        with pytest.raises(InvalidSchema, match=r"t\.parquet has changed since its version was taken\. Nothing was"):
            answer(held, sql)
    assert len(held.ledger()) == 1
    file.unlink()
    with pytest.raises(InvalidSchema, match=r"t\.parquet has changed"):
        answer(held)


def test_files_that_change_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, ledger = tmp_path / "t.parquet", tmp_path / "a.ledger"
    write(file, 20)
    held = session(file, ledger)
    honest = sessions.run

    def change(*args: Any, **more: Any) -> Any:
        write(file, 30)  # before the engine looks
        return honest(*args, **more)

    monkeypatch.setattr(sessions, "run", change)
    words = r"t\.parquet changed between the charge and the run, and nothing is released(?s:.*)no row was read"
    with pytest.raises(InternalError, match=words) as caught:
        answer(held)
    assert caught.value.__context__ is None
    assert len(held.ledger()) == 1
    monkeypatch.undo()
    held.close()
    with session(file, ledger) as held:
        assert not answer(held)[1]


def test_rows_in_memory_have_none(tmp_path: Path):
    frame = pd.DataFrame({"x": [1]})
    for source in (frame, duckdb.sql("SELECT 1 AS x")):
        table = dpsql.Table(source, version="content")
        with pytest.raises(InvalidSchema, match='t: version "content" is of files'):
            dpsql.Session({"t": table}, budget=dpsql.Budget(1), ledger=tmp_path / "a.ledger")
        assert not (tmp_path / "a.ledger").exists()
    held = dpsql.Session({"s": frame}, budget=dpsql.Budget(1))
    with pytest.raises(InvalidSchema, match="is of files"):
        held.add("t", dpsql.Table(frame, version="content"))
    assert held.tables == ("s",)
    assert dpsql.query({"t": dpsql.Table(frame, version="content")}, COUNT, epsilon=1e6).item() == 1


def test_tables_that_come_later_and_public_ones(tmp_path: Path):
    ledger = tmp_path / "a.ledger"
    for name in ("t", "p"):
        write(tmp_path / f"{name}.parquet", 20)
    sql = "SELECT COUNT(*) AS n FROM t JOIN p ON t.x = p.x"
    found = []
    for rows in (20, 20, 19):
        write(tmp_path / "p.parquet", rows)
        with dpsql.Session(budget=dpsql.Budget(1e9), ledger=ledger) as held:
            held.add("t", dpsql.Table(tmp_path / "t.parquet", version="content"))
            public = dpsql.Table(tmp_path / "p.parquet", public=True, unique=["x"], version="content")
            held.add("p", public)
            write(tmp_path / "p.parquet", 3)  # its rows are here already
            found.append(answer(held, sql))
    assert [again for _, again in found] == [False, True, False]


def test_an_owners_file_says_it(tmp_path: Path):
    write(tmp_path / "t.csv", 20)
    text = 'budget = {epsilon = 1e9, ledger = "a.ledger"}\n[tables.t]\npath = "t.csv"\nversion = "content"\n'
    (tmp_path / "owner.toml").write_text(text, encoding="utf-8")
    found = []
    for _ in range(2):
        with dpsql.Session(schema=dpsql.Schema.from_toml(tmp_path / "owner.toml")) as held:
            found.append(answer(held))
    assert found[0][0] == found[1][0]
    assert found[1][1]


# Parts.

DAYS = [f"2026-11-{day:02}" for day in range(1, 13)]
OF_DAYS = "SELECT COUNT(*) AS n FROM t WHERE day BETWEEN DATE '2026-11-01' AND DATE '2026-11-03'"


def parts(folder: Path, days: list[str], rows: int = 10) -> Path:
    for day in days:
        write(folder / f"orders-{day}.parquet", rows, day)
    return folder / "orders-{day}.parquet"


def test_yesterdays_answers_are_given_again(tmp_path: Path):
    path, ledger = parts(tmp_path, DAYS[:3]), tmp_path / "a.ledger"
    all_days = "SELECT day, COUNT(*) AS n FROM t GROUP BY day"
    keys = {"keys": {"day": DAYS}, "bounds": {"x": (0, 100)}}
    questions = [OF_DAYS, all_days, COUNT]
    with session(path, ledger, **keys) as held:
        first = [answer(held, sql) for sql in questions]
        assert [again for _, again in first] == [False] * 3
    parts(tmp_path, DAYS[3:4])  # a new day
    with session(path, ledger, **keys) as held:
        assert answer(held, OF_DAYS) == (first[0][0], True)
        assert not answer(held, all_days)[1]
        assert not answer(held, COUNT)[1]
        whole = insecure_exact(held, COUNT, KEY, **TERMS).parts[()]
        assert whole == (40,)
    parts(tmp_path, DAYS[1:2], rows=11)  # a day that is put right
    with session(path, ledger, **keys) as held:
        assert not answer(held, OF_DAYS)[1]
        assert answer(held, OF_DAYS.replace("01' AND", "04' AND").replace("11-03", "11-04"))[1] is False
    (tmp_path / "orders-2026-11-02.parquet").unlink()
    with session(path, ledger, **keys) as held:
        assert not answer(held, OF_DAYS)[1]


REACHING = [  # a condition, and the days that it reaches
    ("day = DATE '2026-11-02'", ["02"]),
    ("day IN (DATE '2026-11-01', DATE '2026-11-03') AND x > 1", ["01", "03"]),
    ("day < DATE '2026-11-03' AND day <> DATE '2026-11-01'", ["02"]),
    ("DAY(day) <= 2 OR day = DATE '2026-11-04'", ["01", "02", "04"]),
    ("NOT (day > DATE '2026-11-01')", ["01"]),
    ("YEAR(day) = 2026", ["01", "02", "03", "04"]),
    ("YEAR(day) = 2025", []),
    ("day IS NULL", []),
    ("x > 1", ["01", "02", "03", "04"]),
    ("x > 1 OR day = DATE '2026-11-02'", ["01", "02", "03", "04"]),
    ("LN(DAY(day)) < 0.5", ["01", "02", "03", "04"]),
]


@pytest.mark.parametrize(("condition", "days"), REACHING)
def test_which_parts_are_reached(tmp_path: Path, condition: str, days: list[str]):
    """Whatever a condition lets pass lies in the parts that the key names; changes elsewhere are replayed."""
    path, ledger = parts(tmp_path, DAYS[:4]), tmp_path / "a.ledger"
    sql = f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
    with session(path, ledger) as held:
        answer(held, sql)
        whole = insecure_exact(held, sql, KEY, **TERMS)
    for day in DAYS[:4]:
        before = (tmp_path / f"orders-{day}.parquet").read_bytes()
        parts(tmp_path, [day], rows=11)
        with session(path, ledger) as held:
            again = answer(held, sql)[1]
            assert again == (day[-2:] not in days), day
            if again:
                assert insecure_exact(held, sql, KEY, **TERMS) == whole
        (tmp_path / f"orders-{day}.parquet").write_bytes(before)


def replays_of_changed_rows(folder: Path) -> int:
    """How often an answer is given again though the exact integers are others."""
    path, ledger, wrong = parts(folder, DAYS[:3]), folder / "a.ledger", 0
    for condition, _ in REACHING:
        sql = f"SELECT COUNT(*) AS n FROM t WHERE {condition}"
        with session(path, ledger) as held:
            answer(held, sql)
            before = insecure_exact(held, sql, KEY, **TERMS)
        write(folder / f"orders-{DAYS[1]}.parquet", 15, DAYS[1])
        with session(path, ledger) as held:
            wrong += answer(held, sql)[1] and insecure_exact(held, sql, KEY, **TERMS) != before
        write(folder / f"orders-{DAYS[1]}.parquet", 10, DAYS[1])
    return wrong


LIES = {
    "no part is reached": lambda *_: False,
    "the first part is": lambda value, *_: value == 20_758,
    "any term that is not TRUE ends it": lambda value, _column, _scan, terms: len(terms) > 1 or value == 20_758,
}


@pytest.mark.parametrize("lie", [None, *LIES])
def test_a_lie_about_what_is_reached_is_caught(tmp_path: Path, lie: str | None, monkeypatch: pytest.MonkeyPatch):
    if lie is not None:
        monkeypatch.setattr(contents, "_reached", LIES[lie])
    assert (replays_of_changed_rows(tmp_path) > 0) == (lie is not None)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.x = b.x WHERE a.day = DATE '2026-11-01'",
        "SELECT COUNT(*) AS n FROM t WHERE day = DATE '2026-11-01' AND x IN (SELECT b.x FROM t AS b)",
        "SELECT COUNT(*) AS n FROM (SELECT x, COUNT(*) AS c FROM t GROUP BY x) AS a",
    ],
)
def test_other_shapes_reach_all_parts(tmp_path: Path, sql: str):
    path, ledger = parts(tmp_path, DAYS[:2]), tmp_path / "a.ledger"
    words = {"unit": "x", "max_rows": 10, "bounds": {}}
    with session(path, ledger, **words) as held:
        answer(held, sql)
        assert answer(held, sql)[1]
    parts(tmp_path, DAYS[1:2], rows=11)
    with session(path, ledger, **words) as held:
        assert not answer(held, sql)[1]


def test_what_chooses_bounds_reaches_the_same_parts(tmp_path: Path):
    path, ledger = parts(tmp_path, DAYS[:3]), tmp_path / "a.ledger"
    sql = "SELECT SUM(x) AS n, MEDIAN(x) AS m FROM t WHERE day < DATE '2026-11-03'"
    for changed, again in ((None, False), (DAYS[2], True), (DAYS[0], False)):
        if changed:
            parts(tmp_path, [changed], rows=12)
        with session(path, ledger, bounds={"x": "auto"}) as held:
            assert len(held.explain(sql, epsilon=0.001)._release.plans) == 2
            assert answer(held, sql)[1] == again


def test_rows_outside_their_files_value_are_nobodys(tmp_path: Path):
    """In twelve files whose order is not that of their values, read with a filter that skips some of them."""
    for place, day in enumerate(reversed(DAYS)):
        folder = tmp_path / day
        folder.mkdir()
        strangers = "SELECT 1000 + range, DATE '2026-11-05' FROM range(7) UNION ALL SELECT 2000, NULL"
        own = f"SELECT range + {100 * place} AS x, DATE '{day}' AS day FROM range({place + 1})"
        duckdb.sql(f"{own} UNION ALL {strangers if day != '2026-11-05' else own}").write_parquet(
            str(folder / "p.parquet")
        )
    held = session(tmp_path / "{day}" / "*.parquet", keys={"day": DAYS})
    by_day = insecure_exact(held, "SELECT day, COUNT(*) AS n FROM t GROUP BY day", KEY, **TERMS).parts
    expected = {place: (place + 1) * (2 if day == "2026-11-05" else 1) for place, day in enumerate(reversed(DAYS))}
    assert sorted(count for (count,) in by_day.values()) == sorted(expected.values())
    some = "SELECT COUNT(*) AS n FROM t WHERE x >= 900 AND x < 3000"
    assert insecure_exact(held, some, KEY, **TERMS).parts[()] == (10 + 11 + 12,)
    word = insecure_exact(held, "SELECT COUNT(*) AS n FROM t WHERE day = DATE '2026-11-05'", KEY, **TERMS).parts[()]
    assert word == (16,)


def test_bounds_move_days_before_they_are_compared(tmp_path: Path):
    path, ledger = parts(tmp_path, DAYS[:3]), tmp_path / "a.ledger"
    words = {"bounds": {"day": ("2026-11-02", "2026-11-30")}}
    sql = "SELECT COUNT(*) AS n FROM t WHERE day = DATE '2026-11-02'"
    with session(path, ledger, **words) as held:
        answer(held, sql)
        assert insecure_exact(held, sql, KEY, **TERMS).parts[()] == (20,)
    parts(tmp_path, DAYS[:1], rows=11)
    with session(path, ledger, **words) as held:
        assert not answer(held, sql)[1]


def test_parts_of_texts_and_numbers(tmp_path: Path):
    for place, name in enumerate(("a b", "it's", "7")):
        duckdb.sql(
            f"SELECT '{name.replace(chr(39), 2 * chr(39))}' AS s, range AS x FROM range({place + 1})"
        ).write_parquet(str(tmp_path / f"{name}.parquet"))
    held = session(tmp_path / "{s}.parquet", types={"s": "text"})
    assert insecure_exact(held, COUNT, KEY, **TERMS).parts[()] == (6,)
    duckdb.sql("SELECT 7 AS n, range AS x FROM range(3)").write_parquet(str(tmp_path / "n7.parquet"))
    held = session(tmp_path / "n{n}.parquet", types={})
    assert insecure_exact(held, COUNT, KEY, **TERMS).parts[()] == (3,)


def test_wrong_parts_are_named(tmp_path: Path):
    path = parts(tmp_path, DAYS[:1])
    write(tmp_path / "orders-late.parquet", 1)
    with pytest.raises(InvalidSchema, match=r"orders-late\.parquet: its name says no date where \{day\} stands"):
        session(path)
    (tmp_path / "orders-late.parquet").unlink()
    wrong = [
        ("orders-{days}.parquet", r'its files have no column "days"\. Did you mean "day"'),
        ("orders-{x}.parquet", "its name says no integer"),
        ("{x}-{day}.parquet", "one column in braces"),
        ("orders-*{day}.parquet", "one column in braces"),
        ("none-{day}.parquet", "no file"),
    ]
    for name, words in wrong:
        with pytest.raises(InvalidSchema, match=words):
            session(tmp_path / name)
    with pytest.raises(InvalidSchema, match="is of tables of people's rows"):
        session(path, public=True)
    held = session(path, version="1")
    assert insecure_exact(held, COUNT, KEY, **TERMS).parts[()] == (10,)


def test_a_partition_of_parts_costs_once_in_a_session_only(tmp_path: Path):
    """A row may move from one day's file to another's between two sessions: it would have paid for one of them only."""
    path, ledger = parts(tmp_path, DAYS[:2]), tmp_path / "a.ledger"
    names = []
    for _ in range(2):
        with session(path, ledger, partition="day") as held:
            for day in DAYS[:2]:
                held.query(f"SELECT COUNT(*) AS n FROM t WHERE day = DATE '{day}'", epsilon=1, fresh=True)
            names.append({part.column for entry in held.ledger() for part in entry.parts})
            assert float(held.spent.epsilon) == len(names)
    assert len(names[1]) == 2
