"""Windows inside a person: Spark gives pandas' integers."""

from __future__ import annotations

import pytest

import dpsql
from tests.executors.contract import difference, session
from tests.executors.test_windows import FACTS, compared, frame


def test_windows_without_an_order_and_by_range():
    """Ranks of rows that nothing orders, and ends of frames among peers, which engines have ways of their own for."""
    ours, spark = (session({"o": dpsql.Table(frame(), **FACTS)}, each) for each in ("pandas", "spark"))
    windows = (
        "PERCENT_RANK() OVER (PARTITION BY pid) AS a, "
        "LAST_VALUE(s IGNORE NULLS) OVER (PARTITION BY pid ORDER BY x RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS b, "
        "LEAD(r, 1, 0.5) OVER (PARTITION BY pid ORDER BY day) AS c, SUM(x) OVER (PARTITION BY pid ORDER BY t) AS d"
    )
    sql = f"SELECT COUNT(a), COUNT(DISTINCT b), COUNT(c), COUNT(DISTINCT d) FROM (SELECT *, {windows} FROM o)"
    assert difference(ours, spark, sql) == ""


@pytest.mark.slow
def test_windows_of_all_kinds():
    compared("spark", 31, 60)
