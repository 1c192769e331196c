"""What is done once a group, or not at all, gives the integers that are worked out row by row."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.executors.duckdb import executor, open_sources, pool
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, difference, differences, session

LARGE = 2**63 - 1
FRAME = pd.DataFrame(
    {
        "x": pd.array([3, -7, 500, None, 10, 0, LARGE, -LARGE] * 3, dtype="Int64"),
        "z": pd.array([5, LARGE, LARGE - 1, None, -LARGE, 5, 6, 2**62] * 3, dtype="Int64"),
        "g": ["a", "b", None, "other", "a", "", "b", "c"] * 3,
        "n": pd.array([1, None, 3, 4, None, 6, 7, 800] * 3, dtype="Int64"),
        "r": [0.0, -0.0, 1.5, None, float("nan"), 2.5, 1e300, -1e300] * 3,
    }
)
WORDS: dict[str, Any] = {
    "bounds": {"x": (0, 10), "n": (2, 9), "r": (-1, 3)},
    "keys": {"g": ["a", "b", "c"]},
    "nullable": {"n": False},
}
KEYED = ["g", "g, z", "z", "n", "g, n", "x", "g, r"]
SUMS = "COUNT(*), COUNT(x), SUM(x), AVG(x), SUM(r), COUNT_IF(x > 3), SUM(n)"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("early") / "t.parquet"
    FRAME.to_parquet(path)
    return path


@pytest.fixture(scope="module")
def both(files: Path) -> tuple[dpsql.Session, dpsql.Session]:
    frame = dpsql.Table(FRAME, **WORDS)
    return session({"t": frame}, "pandas"), session({"t": dpsql.Table(str(files), **WORDS)}, "auto")


@pytest.mark.parametrize("keys", KEYED)
def test_groups_of_cells(both: tuple[dpsql.Session, dpsql.Session], keys: str):
    assert difference(*both, f"SELECT {keys}, {SUMS} FROM t GROUP BY {keys}") == ""


@pytest.mark.parametrize("sign", ["<", "<=", "=", ">=", ">", "<>"])
def test_conditions_at_bounds(both: tuple[dpsql.Session, dpsql.Session], sign: str):
    for column, ends in (("x", (0, 10)), ("n", (2, 9))):
        for constant in {end + step for end in ends for step in (-1, 0, 1)}:
            for condition in (f"{column} {sign} {constant}", f"{constant} {sign} {column}"):
                assert difference(*both, f"SELECT COUNT(*), SUM(x) FROM t WHERE {condition}") == "", condition


def test_without_memory_for_groups_keys_are_looked_up_row_by_row(
    both: tuple[dpsql.Session, dpsql.Session], monkeypatch: pytest.MonkeyPatch
):
    tried: list[bool] = []
    honest = executor.compile_plan

    def compiled(*arguments: Any, early: bool) -> Any:
        tried.append(early)
        if early:
            raise duckdb.OutOfMemoryException("no room")
        return honest(*arguments, early=early)

    sql = f"SELECT g, {SUMS} FROM t GROUP BY g"
    wanted = insecure_exact(both[1], sql, KEY, **TERMS)
    monkeypatch.setattr(executor, "compile_plan", compiled)
    assert insecure_exact(both[1], sql, KEY, **TERMS) == wanted
    assert tried == [True, False]


def test_an_instance_waits_and_is_never_one_of_other_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened: list[int] = []
    honest = open_sources.opened
    monkeypatch.setattr(open_sources, "opened", lambda **words: opened.append(1) or honest(**words))
    path = tmp_path / "t.parquet"
    FRAME.to_parquet(path)
    held = session({"t": dpsql.Table(str(path), bounds={"x": (0, 10)})}, "auto")
    counts = [sum(sum(each) for each in _count(held).values()) for _ in range(3)]
    assert opened == [1]
    assert counts == [24] * 3
    more = tmp_path / "more"
    pd.concat([FRAME, FRAME], ignore_index=True).to_parquet(more)
    more.replace(path)
    assert list(_count(held).values()) == [(48,)]
    assert len(opened) == 2
    pool._close_all()  # as before a fork
    assert list(_count(held).values()) == [(48,)]
    assert len(opened) == 3


def _count(held: dpsql.Session) -> Any:
    return insecure_exact(held, "SELECT COUNT(*) FROM t", KEY, **TERMS).parts


def test_rounding_is_not_folded_away(both: tuple[dpsql.Session, dpsql.Session]):
    """Halves go to the even one, which x + c - c as plain arithmetic would not do."""
    cells = [0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 2.0**50 + 0.5]
    text = executor.DUCKDB_SQL.rounded("x")
    with duckdb.connect() as free, open_sources.open_sources({}, executor.ITSELF) as held, held.instance() as locked:
        for connection in (free, locked):
            listed = ", ".join(f"(CAST({cell!r} AS DOUBLE))" for cell in cells)
            rows = connection.execute(f"SELECT {text} FROM (VALUES {listed}) AS t(x)").fetchall()
            assert sorted(row[0] for row in rows) == sorted(round(cell) for cell in cells)
            assert connection.execute(f"SELECT {executor.DUCKDB_SQL.rounded('CAST(2.5 AS DOUBLE)')}").fetchall() == [
                (2,)
            ]


def test_conditions_on_days_and_reals_at_bounds(tmp_path: Path):
    """Days as times too, with a rest of a day; NULL beside a value that stands for it."""
    day = [
        None,
        dt.date(1999, 12, 31),
        dt.date(2000, 1, 1),
        dt.date(2000, 1, 2),
        dt.date(2000, 1, 5),
        dt.date(2001, 1, 1),
    ]
    real = [None, -2.0, 0.0, 0.5, 3.0, float("nan")]
    data = pd.DataFrame({"d": day, "e": day, "r": real, "s": real})
    data.to_parquet(tmp_path / "t.parquet")
    ends = (dt.date(2000, 1, 1), dt.date(2000, 1, 5))
    words: dict[str, Any] = {
        "bounds": {"d": ends, "e": ends, "r": (0, 3), "s": (0, 3)},
        "types": {"d": "date", "e": "date"},
        "nullable": {"e": False, "s": False},
    }
    frame, file = dpsql.Table(data, **words), dpsql.Table(tmp_path / "t.parquet", **words)
    sides = session({"t": frame}, "pandas"), session({"t": file}, "auto")
    times = [f"TIMESTAMP '2000-01-0{day} {hour}'" for day in (1, 2, 5) for hour in ("00:00:00", "12:00:00")]
    days = [f"DATE '{day}'" for day in ("1999-12-31", "2000-01-01", "2000-01-02", "2000-01-05", "2000-01-06")]
    for sign in ("<", "<=", "=", ">=", ">"):
        conditions = [f"{column} {sign} {value}" for column in "de" for value in times + days]
        conditions += [f"{column} {sign} {value}" for column in "rs" for value in ("-1.0", "0.0", "0.5", "3.0", "4.0")]
        asked = ", ".join(f"COUNT_IF({each})" for each in conditions[:40:7])
        assert difference(*sides, f"SELECT {asked} FROM t") == ""
        assert differences(*sides, [f"SELECT COUNT(*), COUNT(s) FROM t WHERE {each}" for each in conditions]) == []
