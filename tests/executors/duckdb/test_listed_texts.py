"""Rows in a list of few texts: asked of stored cells, they are the same as by their places in the list."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dpsql
from dpsql.executors.sql import groups
from tests.executors.contract import differences, session
from tests.executors.duckdb.test_limits import FACTS, rows_of

DECLARED: list[dict[str, Any]] = [
    {"keys": {"u": ["x", "y"]}},
    {"keys": {"u": ["x", None]}},
    {"keys": {"u": ["y", "x"]}, "nullable": {"u": False}},
    {"keys": {"u": ["a longer text", "y", "it's"]}},
]


OF_LISTS = [
    "SELECT t.u, COUNT(*) FROM t AS s LEFT JOIN t ON s.who = t.who AND s.d = t.d GROUP BY t.u",
    "SELECT u, COUNT(*), SUM(x) FROM t GROUP BY u",
    "SELECT u, b, MEDIAN(x) FROM t GROUP BY u, b",
]


def in_lists(place: int, folder: Path) -> list[str]:
    """Where DuckDB over a file and pandas differ."""
    file, said = folder / "t.parquet", {**FACTS, "nullable": {}, **DECLARED[place]}
    frame = rows_of([1, 2, 3, -4])
    frame.to_parquet(file)
    facts = {**said, "nullable": {name: bool(frame[name].isna().any()) for name in frame} | said["nullable"]}
    return differences(session({"t": dpsql.Table(file, **facts)}, "duckdb"),
                       session({"t": dpsql.Table(frame, **facts)}, "pandas"), OF_LISTS)  # fmt: skip


@pytest.mark.parametrize("place", range(len(DECLARED)))
def test_rows_in_a_list(place: int, tmp_path: Path):
    assert in_lists(place, tmp_path) == []


def test_a_list_that_forgets_null_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    honest = groups._is_listed
    monkeypatch.setattr(groups, "_is_listed", lambda *given: re.sub(r" OR \w+ IS NULL", "", honest(*given)))
    assert in_lists(2, tmp_path) != []


def test_a_list_with_null_takes_all_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The lie: that NULL is in the list is overlooked."""
    honest = groups._is_listed
    monkeypatch.setattr(
        groups, "_is_listed", lambda key, *rest: honest(replace(key, values=tuple(filter(None, key.values))), *rest)
    )
    assert in_lists(1, tmp_path) != []
