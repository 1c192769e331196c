"""The number of people in any group, beside what is counted by group: the same integers as pandas has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import AllUnits
from tests.executors.contract import difference, session

QUERIES = (
    "SELECT g, COUNT(*) FROM t GROUP BY g",
    "SELECT g, COUNT(DISTINCT pid) FROM t GROUP BY g",
    "SELECT g, COUNT(x), SUM(x) FROM t WHERE x > 2 GROUP BY g",
    "SELECT g, b, COUNT(*) FROM t WHERE g < 3 GROUP BY g, b",
    "SELECT g, COUNT(*) FROM t WHERE x > 1e9 GROUP BY g",
)
LIMITS: tuple[dict[str, int], ...] = (
    {"max_groups": 9, "max_rows_per_group": 1},
    {"max_groups": 9, "max_rows_per_group": 40},
)


def table(limits: dict[str, int]) -> dpsql.Table:
    draw = np.random.default_rng(4)
    frame = pd.DataFrame({
        "pid": [n % 37 for n in range(400)],
        "g": draw.integers(0, 11, 400),  # some on no list
        "x": np.where(draw.random(400) < 0.1, np.nan, draw.uniform(0, 10, 400)),
        "b": draw.random(400) < 0.5,
    })  # fmt: skip
    return dpsql.Table(frame, unit="pid", keys={"g": list(range(9))}, bounds={"x": (0, 10)}, **limits)


@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_people_of_all_groups_are_the_same_on_both_engines(limits: dict[str, int]) -> None:
    tables: dict[str, Any] = {"t": table(limits)}
    ours, theirs = session(tables, "duckdb"), session(tables, "pandas")
    counts = [sql for sql in QUERIES if "SUM" not in sql or limits["max_rows_per_group"] > 1]
    asked = [sql for sql in counts if AllUnits() in theirs.explain(sql, epsilon=1)._release.exact.parts]
    assert len(asked) >= 4
    for sql in asked:
        assert difference(ours, theirs, sql) == ""
    assert len(ours.query(QUERIES[0], epsilon=1)) == 9
