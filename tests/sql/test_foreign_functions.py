"""Functions and words of other engines: what they mean here, and what is refused with the words to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql import errors

ROWS = 2_000
SHAPES = np.random.default_rng(3)
ORDERS = pd.DataFrame(
    {
        "customer": SHAPES.integers(1, 200, ROWS),
        "state": SHAPES.choice(["open", "paid", "sent"], ROWS),
        "total": SHAPES.integers(0, 500, ROWS),
        "less": np.where(SHAPES.random(ROWS) < 0.3, SHAPES.integers(0, 9, ROWS), np.nan),
        "placed": pd.Timestamp("2024-01-01") + pd.to_timedelta(SHAPES.integers(0, 366 * 86_400, ROWS), unit="s"),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(SHAPES.integers(0, 366, ROWS), unit="D"),
    }
)
BOUNDS = {
    "total": (0, 500),
    "less": (0, 9),
    "placed": ("2024-01-01", "2024-12-31 23:59:59"),
    "day": ("2024-01-01", "2024-12-31"),
}
TABLES: dict[str, Any] = {
    "orders": dpsql.Table(
        ORDERS,
        unit="customer",
        max_rows=60,
        types={"day": "date"},
        bounds=BOUNDS,
        keys={"state": ["open", "paid", "sent"]},
        nullable={"placed": False, "day": False},
    )
}

MEANT = dict(
    block.split("\n=\n", maxsplit=1)
    for block in Path(__file__).with_suffix(".sql").with_stem("foreign_functions").read_text("utf-8").split("\n\n")[1:]
)
"""Queries, and what they say in DuckDB's own words."""


def cells(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    """Rows in order, numbers as numbers and times as texts."""
    plain = [
        [cell if isinstance(cell, int | float) else str(cell).removesuffix(" 00:00:00") for cell in row] for row in rows
    ]
    return sorted(plain, key=lambda row: [cell if isinstance(cell, str) else f"{cell:09.0f}" for cell in row])


@pytest.mark.parametrize("sql", MEANT)
def test_what_they_mean(sql: str) -> None:
    """With noise switched to nearly nothing, against plain DuckDB over the same rows."""
    answer = dpsql.query(TABLES, sql, epsilon=1e6, delta=1e-6)
    with duckdb.connect() as connection:
        connection.register("held", ORDERS)
        connection.execute("CREATE TABLE orders AS SELECT * REPLACE (CAST(day AS DATE) AS day) FROM held")
        exact = connection.execute(MEANT[sql]).fetchall()
    shown = cells(list(answer))
    assert len(shown) == len(exact)
    for row, other in zip(shown, cells(exact), strict=True):
        assert row == pytest.approx(other, rel=1e-3, abs=0.01)


REFUSED = {
    "SELECT DATEDIFF(week, placed, placed) AS k, COUNT(*) FROM orders GROUP BY k": "weeks begin on Monday",
    "SELECT DATE_TRUNC(placed, WEEK) AS k, COUNT(*) FROM orders GROUP BY k": "weeks begin on Monday",
    "SELECT DATE_FORMAT(placed, 'YYYY-ww') AS k, COUNT(*) FROM orders GROUP BY k": "STRFTIME",
    "SELECT DATE_FORMAT(placed, '%u') AS k, COUNT(*) FROM orders GROUP BY k": "STRFTIME",
    "SELECT ADD_MONTHS(day, 1) AS k, COUNT(*) FROM orders GROUP BY k": "INTERVAL 1 MONTH",
    "SELECT TO_DATE('01/02/2024', 'DD/MM/YYYY') AS k, COUNT(*) FROM orders GROUP BY k": "CAST",
    "SELECT TOP 3 state, COUNT(*) FROM orders GROUP BY state": "LIMIT 3",
    "SELECT COUNT(*) FROM [orders]": '"orders"',
    "SELECT state FROM orders GROUP BY state MINUS SELECT 'open'": "EXCEPT",
    "SELECT * FROM (SELECT state, COUNT(*) AS n FROM orders GROUP BY state) WHERE ROWNUM <= 2": "LIMIT",
    "SELECT COUNT(*) FROM orders WHERE placed > SYSDATE - 7": ":today",
    "SUMMARIZE orders": "AVG(x)",
    "SELECT * FROM (SELECT state, COUNT(*) AS n FROM orders GROUP BY state) USING SAMPLE 2": "LIMIT",
    "SELECT COUNT(*) FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer "
    "QUALIFY RANK() OVER (ORDER BY COUNT(*)) < 3)": "PARTITION BY",
    "SELECT AVG(DATE_DIFF(day, DATE '2024-01-01', MONTH)) FROM orders": "unit in quotes",
    "SELECT state FROM (SELECT * EXCLUDE (total) FROM orders) WHERE total > 3 GROUP BY state": 'no column "total"',
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_refused_says_what_to_write(sql: str) -> None:
    with pytest.raises(errors.QueryRefused) as refusal:
        dpsql.query(TABLES, sql, epsilon=1, delta=1e-6)
    assert REFUSED[sql] in str(refusal.value)


def test_public_days_are_those_that_a_key_can_have() -> None:
    """Of months cast to dates and ends of months, not of all days between them."""
    for key in ("CAST(DATE_TRUNC('month', placed) AS DATE)", "LAST_DAY(placed)", "TIME_BUCKET(INTERVAL 1 MONTH, day)"):
        assert len(dpsql.query(TABLES, f"SELECT {key} AS k, COUNT(*) AS n FROM orders GROUP BY k", epsilon=1)) == 12
    days = "placed::DATE BETWEEN '2024-02-01' AND '2024-02-10'"
    sql = f"SELECT placed::DATE AS k, COUNT(*) FROM orders WHERE {days} GROUP BY k"
    assert len(dpsql.query(TABLES, sql, epsilon=1)) == 10
