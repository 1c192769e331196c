"""Joins on keys that lead to units, over files: one side need not be led to its unit, and no integer is another."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.errors import QueryRefused
from dpsql.executors.duckdb import executor
from dpsql.executors.duckdb import file_facts as seen_in_files
from dpsql.executors.pandas.joins import pairing
from dpsql.executors.sql import sources
from dpsql.executors.sql.column_facts import NOTHING
from dpsql.testing import Integers, insecure_exact
from tests.executors.contract import KEY, TERMS, differences, session, several_tables_queries
from tests.sql import join_queries

PEOPLE = {"who": [1, 2, 3, 4, 5], "g": ["a", "b", "a", "b", "a"]}
ORDERS = {"o": [10, 11, 12, 13, 14, 15], "who": [1, 1, 2, 3, 3, 9], "p": ["x", "y", "x", "y", "x", "y"]}
ITEMS = {"o": [10, 10, 11, 12, 13, 13, 14, 15, 99], "s": [1, 2, 1, 3, 2, 1, 2, 1, 1], "x": [1, 2, 3, 4, 5, 6, 7, 8, 9]}
WHOLE = pd.Int64Dtype()


def changed(data: dict[str, list[Any]], column: str, cells: list[Any]) -> pd.DataFrame:
    frame = pd.DataFrame(data | {column: cells})
    return frame.astype({column: WHOLE}) if not isinstance(cells[0], str) else frame


STORED: dict[str, Callable[[], tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]]] = {
    "plain": lambda: (pd.DataFrame(PEOPLE), pd.DataFrame(ORDERS), pd.DataFrame(ITEMS)),
    "keys twice": lambda: (
        changed(PEOPLE, "who", [1, 2, 2, 3, 5]),
        changed(ORDERS, "o", [10, 10, 10, 13, 14, 14]),
        pd.DataFrame(ITEMS),
    ),
    "keys NULL": lambda: (
        changed(PEOPLE, "who", [1, 2, None, 3, None]),
        changed(ORDERS, "o", [10, None, 0, 13, None, 0]),
        changed(ITEMS, "o", [10, None, 0, 0, 13, None, 14, 10, 13]),
    ),
    "keys beyond bounds": lambda: (
        changed(PEOPLE, "who", [1, 2, -3, 2000, 3000]),
        changed(ORDERS, "o", [10, -5, 0, 5000, 6000, 1000]),
        changed(ITEMS, "o", [10, -5, 0, -7, 5000, 6000, 7000, 1000, 13]),
    ),
    "beyond bounds on one side": lambda: (
        pd.DataFrame(PEOPLE),
        changed(ORDERS, "o", [10, 11, 12, 1000, 0, 15]),
        changed(ITEMS, "o", [10, 5000, 11, 12, 1000, -4, 0, 15, 6000]),
    ),
}
QUERIES = [
    "SELECT COUNT(*), SUM(x) FROM items JOIN orders ON items.o = orders.o",
    "SELECT p, COUNT(*), SUM(x) FROM orders JOIN items ON items.o = orders.o WHERE x > 1 GROUP BY p",
    (
        "SELECT g, SUM(x), COUNT(DISTINCT s) FROM people JOIN orders ON people.who = orders.who "
        "JOIN items ON items.o = orders.o GROUP BY g"
    ),
    "SELECT COUNT(*), COUNT(x), SUM(x) FROM orders LEFT JOIN items ON items.o = orders.o AND items.x > 2",
    "SELECT COUNT(*), COUNT(p), SUM(x) FROM items LEFT JOIN orders ON items.o = orders.o",
    "SELECT COUNT(*) FROM orders WHERE EXISTS (SELECT * FROM items WHERE items.o = orders.o AND x > 2)",
    "SELECT COUNT(*) FROM items WHERE NOT EXISTS (SELECT * FROM orders WHERE items.o = orders.o AND p = 'x')",
    "SELECT SUM(x) FROM items WHERE o IN (SELECT o FROM orders WHERE p = 'y')",
    "SELECT SUM(x) FROM items WHERE o NOT IN (SELECT o FROM orders WHERE p = 'y')",
    "SELECT COUNT(*), SUM(a.x) FROM items AS a JOIN items AS b ON a.o = b.o",
    "SELECT SUM(a.x) FROM items AS a WHERE EXISTS (SELECT * FROM items AS b WHERE a.o = b.o AND a.s <> b.s)",
    "SELECT SUM(a.x) FROM items AS a WHERE NOT EXISTS (SELECT * FROM items AS b WHERE a.o = b.o AND a.s < b.s)",
    (
        "SELECT COUNT(*), SUM(n) FROM (SELECT o.o, COUNT(*) AS n FROM orders AS o JOIN items AS i ON i.o = o.o "
        "GROUP BY o.o) AS q"
    ),
    "SELECT COUNT(*), SUM(x) FROM items JOIN orders ON items.o = orders.o JOIN things ON items.s = things.s",
    "SELECT COUNT(*) FROM people JOIN orders ON people.who = orders.who",
    "SELECT COUNT(*) FROM orders JOIN people ON people.who = orders.who WHERE g = 'a'",
]


def tables(stored: tuple[Any, Any, Any], *, bounded: bool, nullable: bool, most: int = 4) -> dict[str, dpsql.Table]:
    people, orders, items = stored
    null = {} if nullable else {"nullable": {"o": False}}
    limits = {"o": (0, 1000)} if bounded else {}
    things = pd.DataFrame({"s": [1, 1, 2], "t": ["u", "v", "w"]})
    return {
        "people": dpsql.Table(
            people, unit="who", unique=["who"], max_rows=most, keys={"g": ["a", "b"]},
            bounds={"who": (0, 1000)} if bounded else {}, types={"who": "integer"},
        ),
        "orders": dpsql.Table(
            orders, unit="who -> people.who", unique=["o"], max_rows=most, keys={"p": ["x", "y"]}, bounds=limits,
            types={"o": "integer", "who": "integer"}, **null,
        ),
        "items": dpsql.Table(
            items, unit="o -> orders.o", max_rows=most, bounds={"x": (0, 9)} | limits,
            types={"o": "integer"}, **null,
        ),
        "things": dpsql.Table(things, public=True, max_matches={"s": 2}),
    }  # fmt: skip


def of_files(folder: Path, name: str, **said: Any) -> tuple[dpsql.Session, dpsql.Session]:
    """The same tables as frames and as files."""
    frames = STORED[name]()
    paths = [folder / f"{place}.parquet" for place in range(3)]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_parquet(path)
    files = tables((paths[0], paths[1], paths[2]), **said)
    return session(tables(frames, **said), "pandas"), session(files, "auto")


@pytest.mark.parametrize("name", STORED)
def test_the_same_integers(name: str, tmp_path: Path):
    for bounded, nullable in ((False, True), (True, False)):
        assert differences(*of_files(tmp_path, name, bounded=bounded, nullable=nullable), QUERIES) == []


def test_units_that_make_too_many_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for most in (1, 3, 8):
        monkeypatch.setattr(pairing, "MOST_PAIRS", most)
        monkeypatch.setattr(pairing, "MOST_FANNED_OUT", 2 * most)
        assert differences(*of_files(tmp_path, "plain", bounded=False, nullable=True), QUERIES) == []


def in_files(folder: Path) -> dpsql.Session:
    """The tables of the oracle's joins, as files."""
    numbers = itertools.count()

    def written(frame: pd.DataFrame) -> Path:
        path = folder / f"{next(numbers)}.parquet"
        frame.to_parquet(path)
        return path

    return session(join_queries.tables(written), "auto")


@pytest.mark.slow
def test_all_queries_of_several_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The oracle's, of files where they lie, with what is seen of these and without, are pandas' of equal facts."""
    held, frames = in_files(tmp_path), session(join_queries.tables(as_files=True), "pandas")
    seen = {sql: integers(held, sql) for sql in several_tables_queries()}
    assert sum(isinstance(each, Integers) for each in seen.values()) > 300
    assert {sql: integers(frames, sql) for sql in seen} == seen
    monkeypatch.setattr(executor, "seen_in", lambda *_: NOTHING)
    assert {sql: integers(held, sql) for sql in seen} == seen


UNITS_STORED_APART = [
    f"SELECT COUNT(*), COUNT(i_qty), COUNT(v_day) FROM items JOIN orders ON i_orderkey = o_orderkey {kind} JOIN visits "
    "ON o_custkey = v_custkey"
    for kind in ("", "LEFT", "FULL")
]


@pytest.mark.parametrize("sql", UNITS_STORED_APART)
def test_a_column_is_a_value_and_tells_units_apart_that_are_stored_otherwise(sql: str, tmp_path: Path):
    """The key of orders is joined as a whole number, and their people are compared with doubles of another file."""
    found = integers(in_files(tmp_path), sql)
    assert isinstance(found, Integers)
    assert found == integers(session(join_queries.tables(as_files=True), "pandas"), sql)


OF_COLUMNS_WITHOUT_NULL = [
    "SELECT COUNT(*), COUNT(c_custkey), COUNT(a.c_custkey) FROM customer a RIGHT JOIN notes b USING (c_custkey)",
    (
        "SELECT SUM(LEAST(s, 500)), COUNT(s) FROM (SELECT o_custkey, SUM(i_qty) AS s FROM items, orders "
        "WHERE i_orderkey = o_orderkey GROUP BY o_custkey)"
    ),
    "SELECT p_kind, COUNT(*), SUM(i_qty), AVG(i_qty * p_price) FROM items JOIN prod ON i_prod = p_id GROUP BY p_kind",
    "SELECT i_back, COUNT(*), COUNT(DISTINCT o_custkey) FROM items JOIN orders ON i_orderkey = o_orderkey GROUP BY 1",
]


def test_facts_alone_make_plans_of_files_others(tmp_path: Path):
    """A frame shows that its columns hold no NULL, files say nothing of it: what is measured then differs, and with the
    same facts every integer is the same."""
    held, shown, alike = (
        in_files(tmp_path),
        session(join_queries.tables(), "pandas"),
        session(join_queries.tables(as_files=True), "pandas"),
    )
    for sql in OF_COLUMNS_WITHOUT_NULL:
        assert integers(held, sql) == integers(alike, sql), sql
        assert integers(held, sql) != integers(shown, sql), sql


def integers(held: dpsql.Session, sql: str) -> Integers | str:
    try:
        return insecure_exact(held, sql, KEY, **TERMS)
    except QueryRefused as error:
        return str(error)


def test_what_is_believed_without_a_look_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(seen_in_files, "_is_plain", lambda *_: True)
    assert differences(*of_files(tmp_path, "keys beyond bounds", bounded=True, nullable=True), QUERIES) != []


def test_sides_that_are_taken_for_one_unit_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sources, "one_unit", lambda *_: True)
    assert differences(*of_files(tmp_path, "keys twice", bounded=False, nullable=True), QUERIES) != []


def test_pairs_that_are_taken_for_few_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pairing, "MOST_PAIRS", 3)
    monkeypatch.setattr(sources, "most_of_unit", lambda *_: 1)
    assert differences(*of_files(tmp_path, "plain", bounded=False, nullable=True), QUERIES) != []
