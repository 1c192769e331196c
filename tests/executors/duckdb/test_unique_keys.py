"""Keys that lead to units: whether each stands in one row is seen in the files, and changes no integer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.executors.duckdb import executor
from dpsql.executors.duckdb import file_facts as seen_in_files
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, differences, session

ONCE = {"o": [1, 2, 3, None, 5], "who": ["e", "d", "i", "x", None]}
TWICE = {"o": [1, 1, 2, 2, 3, None, None], "who": ["e", "d", "i", "j", "g", "y", "z"]}
ITEMS = pd.DataFrame({"o": [1, 1, 1, 2, 2, 3, 4, None, 5], "x": [1, 2, 3, 4, 5, 6, 7, 8, 9]})
QUERIES = [
    "SELECT COUNT(*), SUM(x), COUNT(DISTINCT x) FROM items",
    "SELECT SUM(x) FROM items JOIN orders ON items.o = orders.o",
    "SELECT COUNT(*) FROM items WHERE EXISTS (SELECT * FROM orders WHERE orders.o = items.o)",
]


def tables(orders: object, items: object) -> dict[str, dpsql.Table]:
    return {
        "orders": dpsql.Table(orders, unit="who", unique=["o"], max_rows=2),
        "items": dpsql.Table(items, unit="o -> orders.o", max_rows=2, bounds={"x": (0, 9)}),
    }


def of_files(folder: Path, orders: dict[str, list[Any]]) -> tuple[dpsql.Session, dpsql.Session]:
    """The same tables as frames and as files."""
    frame = pd.DataFrame(orders)
    frame.to_parquet(folder / "orders.parquet")
    ITEMS.to_parquet(folder / "items.parquet")
    files = tables(folder / "orders.parquet", folder / "items.parquet")
    return session(tables(frame, ITEMS), "pandas"), session(files, "auto")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """What each run takes for unique."""
    runs: list[set[str]] = []
    honest = seen_in_files.unique_keys

    def noted(*given: Any) -> set[str]:
        runs.append(honest(*given))
        return runs[-1]

    monkeypatch.setattr(seen_in_files, "unique_keys", noted)
    return runs


@pytest.mark.parametrize(("orders", "unique"), [(ONCE, {"orders.o"}), (TWICE, set())], ids=["once", "twice"])
def test_it_changes_no_integer(tmp_path: Path, orders: dict[str, list[Any]], unique: set[str], seen: list[set[str]]):
    assert differences(*of_files(tmp_path, orders), QUERIES) == []
    assert seen
    assert all(each == unique for each in seen)


def test_it_is_looked_at_once_for_the_same_files(tmp_path: Path, seen: list[set[str]], monkeypatch: pytest.MonkeyPatch):
    looked: list[str] = []
    honest = seen_in_files._is_unique
    monkeypatch.setattr(seen_in_files, "_is_unique", lambda *given: looked.append(given[3]) or honest(*given))
    _, held = of_files(tmp_path, ONCE)
    for _ in range(3):
        insecure_exact(held, QUERIES[0], KEY, **TERMS)
    assert looked == ["o"]
    pd.DataFrame(TWICE).to_parquet(tmp_path / "new")
    (tmp_path / "new").replace(tmp_path / "orders.parquet")
    assert differences(held, session(tables(pd.DataFrame(TWICE), ITEMS), "pandas"), QUERIES[:1]) == []
    assert looked == ["o", "o"]
    assert seen == [{"orders.o"}, {"orders.o"}, {"orders.o"}, set()]


def test_in_slices(tmp_path: Path, seen: list[set[str]], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(executor, "passes", lambda *_: 3)
    for orders, unique in ((ONCE, {"orders.o"}), (TWICE, set())):
        seen.clear()
        assert differences(*of_files(tmp_path, orders), QUERIES) == []
        assert all(each == unique for each in seen)


def test_a_key_that_is_taken_for_unique_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(seen_in_files, "_is_unique", lambda *_: True)
    assert differences(*of_files(tmp_path, TWICE), QUERIES) != []
