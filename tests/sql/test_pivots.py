"""PIVOT with a list of values, and UNPIVOT: what DuckDB gives, over people's rows and over answers."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, SQLSyntaxError, UnsupportedSQL
from tests.executors.contract import session

BY_SEX = "(SELECT sex, COUNT(*) AS a, COUNT(x) AS b FROM t GROUP BY sex)"
COUNTED = "(SELECT sex, g, COUNT(*) AS n FROM t GROUP BY sex, g)"
ANSWERED = [
    "PIVOT t ON sex IN ('F', 'M') USING COUNT(*) GROUP BY g",
    "PIVOT t ON sex IN ('F', 'M') GROUP BY g",
    "PIVOT t ON sex IN ('F') USING SUM(x) AS total, COUNT(*) AS n GROUP BY g",
    "PIVOT t ON g IN (1, 2) USING COUNT(*) FILTER (WHERE x > 4) AS n GROUP BY sex",
    "PIVOT t ON b IN (TRUE, FALSE) USING COUNT(*) GROUP BY sex",
    "SELECT * FROM (SELECT sex, g, x FROM t) PIVOT (SUM(x) FOR sex IN ('F' AS f, 'M'))",
    "SELECT * FROM (SELECT sex FROM t) PIVOT (COUNT(*) AS n FOR sex IN ('F', 'M')) AS p",
    "SELECT g, F - M AS more FROM (PIVOT t ON sex IN ('F', 'M') USING COUNT(*) GROUP BY g) AS p",
    "WITH c AS (SELECT * FROM t WHERE x > 2) PIVOT c ON sex IN ('F', 'M') USING COUNT(*) GROUP BY g",
    f"PIVOT {COUNTED} ON sex IN ('F', 'M') USING SUM(n) GROUP BY g",
    f"SELECT * FROM {COUNTED} PIVOT (SUM(n) FOR sex IN ('F', 'M'))",
    f"SELECT * FROM {BY_SEX} UNPIVOT (v FOR k IN (a, b))",
    f"SELECT k, SUM(v) AS v FROM {BY_SEX} UNPIVOT (v FOR k IN (a, b)) AS u GROUP BY k",
    f"UNPIVOT {BY_SEX} ON a, b INTO NAME k VALUE v",
    f"UNPIVOT {BY_SEX} ON a, b",
]
REFUSED: list[tuple[type[DPSQLError], str, str]] = [
    (UnsupportedSQL, "without a list", "PIVOT t ON sex USING COUNT(*) GROUP BY g"),
    (UnsupportedSQL, "without a list", "PIVOT t ON sex IN (SELECT sex FROM t) USING COUNT(*) GROUP BY g"),
    (UnsupportedSQL, "every other column", "PIVOT t ON sex IN ('F') USING COUNT(*)"),
    (UnsupportedSQL, "every other column", "SELECT * FROM t PIVOT (COUNT(*) FOR sex IN ('F'))"),
    (UnsupportedSQL, "one column", "PIVOT t ON sex IN ('F'), g IN (1) USING COUNT(*) GROUP BY b"),
    (UnsupportedSQL, "one person each", "PIVOT t ON sex IN ('F') USING COUNT(*) GROUP BY pid"),
    (SQLSyntaxError, "", "PIVOT t ON sex IN ('F') USING COUNT(*) INTO NAME k GROUP BY g"),
    (SQLSyntaxError, "99 columns", f"PIVOT t ON g IN ({', '.join(map(str, range(100)))}) GROUP BY sex"),
]


def frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "pid": rng.integers(0, 80, 400),
            "sex": pd.Series(rng.choice(["F", "M", "X"], 400), dtype="str"),
            "g": rng.integers(1, 4, 400),
            "b": rng.random(400) > 0.5,
            "x": pd.Series(rng.integers(0, 10, 400), dtype="Int64").where(rng.random(400) > 0.1),
        }
    )


def tables() -> dict[str, Any]:
    said: dict[str, Any] = {"bounds": {"x": (0, 10), "g": (1, 3)}, "keys": {"sex": ["F", "M", "X"]}}
    return {"t": dpsql.Table(frame(), unit="pid", max_rows=20, nullable={"g": False}, **said)}


def test_answers_are_those_of_duckdb():
    held = session(tables(), "pandas")
    with duckdb.connect() as connection:
        connection.register("t", frame())
        for sql in ANSWERED:
            found, cursor = held.query(sql, epsilon=1e6), connection.execute(sql)
            assert [*found.df.columns] == [each[0] for each in cursor.description or ()], sql
            rows = [tuple(map(plain, row)) for row in found]
            expected = [tuple(map(plain, row)) for row in cursor.fetchall()]
            assert sorted(rows) == sorted(expected), sql


def plain(cell: Any) -> str:
    return f"{round(float(cell), 3) + 0.0:g}" if isinstance(cell, int | float | np.number) else str(cell)


def test_a_pivot_over_people_is_one_release_without_delta():
    held = session(tables(), "pandas")
    explained = held.explain("PIVOT t ON sex IN ('F', 'M') USING COUNT(*) GROUP BY g", epsilon=1)
    other = held.explain(
        "SELECT g, COUNT(*) FILTER (WHERE sex = 'F') AS F, COUNT(*) FILTER (WHERE sex = 'M') AS M FROM t GROUP BY g",
        epsilon=1,
    )
    assert explained.to_dict()["groups"] == other.to_dict()["groups"]
    assert held.query(f"UNPIVOT {BY_SEX} ON a, b", epsilon=1).loss.epsilon == 1, "drawn once"


@pytest.mark.parametrize(("kind", "words", "sql"), REFUSED)
def test_refused(kind: type[DPSQLError], words: str, sql: str):
    with pytest.raises(kind) as caught:
        session(tables(), "pandas").query(sql, epsilon=1)
    assert words in str(caught.value)
