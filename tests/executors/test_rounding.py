"""ROUND to digits adds the same integers on every engine, over a frame and over a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from tests.executors.contract import differences

MONEY = [cents / 1000 for cents in range(5, 10_000, 10)]
QUERIES = (
    "SELECT COUNT(*) FROM t WHERE ROUND(r, 2) = FLOOR(r * 100) / 100",
    "SELECT SUM(ROUND(r, 2)), SUM(TRUNC(r, 2)), SUM(CAST(r AS DECIMAL(6, 2))) FROM t",
    "SELECT CAST(100 * ROUND(r, 2) AS INTEGER) AS cents, COUNT(*) FROM t GROUP BY cents",
)


def session(source: Any, engine: str) -> dpsql.Session:
    return dpsql.Session(
        {"t": dpsql.Table(source, bounds={"r": (0, 10)})}, budget=dpsql.Budget(epsilon=1e9), engine=engine
    )


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_a_value_stored_below_a_half_is_rounded_down(engine: str):
    answer = session(pd.DataFrame({"r": [0.15] * 10}), engine).query("SELECT SUM(ROUND(r, 1)) AS s FROM t", epsilon=1e6)
    assert float(answer.df["s"][0]) == pytest.approx(1, abs=0.01)


def test_groups_of_money_are_the_same_on_every_engine(tmp_path: Path):
    frame = pd.DataFrame({"r": MONEY})
    frame.to_parquet(tmp_path / "money.parquet")
    one = session(frame, "pandas")
    assert differences(one, session(frame, "duckdb"), QUERIES) == []
    assert differences(one, session(tmp_path / "money.parquet", "duckdb"), QUERIES) == []
