"""Rows without ORDER BY are in the declared order of their keys, and of CASE in that of its branches."""

from typing import Any

import pandas as pd
import pytest

import dpsql

FRAME = pd.DataFrame({"size": ["S", "M", "L", None] * 30, "n": [3, 1, 2, 9] * 30})
KEYS: dict[str, Any] = {"size": ["S", "M", "L"], "n": [3, 1, 2]}
BANDS = "CASE WHEN n = 1 THEN 'low' WHEN n = 2 THEN 'middle' ELSE 'high' END"

ORDERS = [
    ("SELECT size, COUNT(*) FROM t GROUP BY size", ["S", "M", "L"]),
    ("SELECT n, COUNT(*) FROM t GROUP BY n", [3, 1, 2]),
    (f"SELECT {BANDS} AS band, COUNT(*) FROM t GROUP BY band", ["low", "middle", "high"]),
    ("SELECT CASE n WHEN 3 THEN 'b' WHEN 1 THEN 'a' END AS band, COUNT(*) FROM t GROUP BY band", ["b", "a", None]),
    ("SELECT size, COUNT(*) FROM t GROUP BY size LIMIT 1", ["S"]),
    ("SELECT DISTINCT size FROM t", ["S", "M", "L"]),
    ("SELECT size, COUNT(*) AS c FROM t GROUP BY ROLLUP (size)", ["S", "M", "L", None]),
    ("SELECT * FROM (SELECT size, COUNT(*) AS c FROM t GROUP BY size)", ["S", "M", "L"]),
    ("SELECT size, COUNT(*) FROM t GROUP BY size ORDER BY size", ["L", "M", "S"]),
    ("SELECT UPPER(size) AS u, COUNT(*) FROM t GROUP BY u", ["L", "M", "S"]),
]


@pytest.mark.parametrize(("sql", "order"), ORDERS, ids=[sql for sql, _ in ORDERS])
@pytest.mark.parametrize("rows", [120, 0])
def test_rows_are_in_the_declared_order(sql: str, order: list[Any], rows: int) -> None:
    result = dpsql.query(FRAME.head(rows), sql, epsilon=100, keys=KEYS)
    assert [row[0] for row in result] == order
    low_high = result.intervals()
    assert len(low_high) == len(result)


def test_intervals_and_types_go_with_their_rows() -> None:
    result = dpsql.query(FRAME, "SELECT n, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY n", epsilon=100, keys=KEYS)
    assert result.df["s"].tolist() == pytest.approx([90, 30, 60], abs=9)
    ends = result.intervals()
    assert ((ends["s_low"] <= result.df["s"]) & (result.df["s"] <= ends["s_high"])).all()
    assert [str(each) for each in result.df.dtypes] == ["int64", "int64", "int64"]


def test_a_key_first_listed_as_null_comes_first() -> None:
    result = dpsql.query(FRAME, ORDERS[0][0], epsilon=100, keys={"size": [None, "S"]})
    assert [row[0] for row in result] == [None, "S"]


def test_hidden_groups_stay_in_ascending_order() -> None:
    result = dpsql.query(FRAME, ORDERS[0][0], epsilon=100, delta=1e-6)
    assert [row[0] for row in result] == ["L", "M", "S", None]
