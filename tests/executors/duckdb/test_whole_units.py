"""Units with too many rows where all of them are needed at once are left out, on either engine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.pandas import unit_chunks as slices
from dpsql.executors.pandas.units import large_units
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, differences, session

OF_EACH = "SELECT who, COUNT(*) AS n, SUM(a.x) AS s FROM a JOIN p ON a.k = p.k GROUP BY who"
OF_COUNTS = "SELECT COUNT(*), SUM(CLAMP(n, 0, 100)) FROM"
QUERIES = [
    f"SELECT COUNT(*), SUM(CLAMP(n, 0, 100)), SUM(CLAMP(s, 0, 500)) FROM ({OF_EACH}) AS q",
    f"{OF_COUNTS} (SELECT who, COUNT(*) AS n FROM a LEFT JOIN p ON a.k = p.k GROUP BY who) AS q",
    f"{OF_COUNTS} (SELECT a.who, COUNT(*) AS n FROM a JOIN b ON a.who = b.who GROUP BY a.who) AS q",
    "SELECT COUNT(*) FROM b WHERE who IN (SELECT a.who FROM a JOIN p ON a.k = p.k)",
    "SELECT COUNT(*) FROM b WHERE who NOT IN (SELECT a.who FROM a JOIN p ON a.k = p.k)",
    "SELECT COUNT(*) FROM b WHERE NOT EXISTS (SELECT 1 FROM a JOIN p ON a.k = p.k WHERE a.who = b.who AND a.x > b.x)",
    f"SELECT COUNT(*), SUM(CLAMP(q.n, 0, 100)) FROM b JOIN ({OF_EACH}) AS q ON b.who = q.who",
    f"SELECT COUNT(*), SUM(CLAMP(q.n, 0, 100)) FROM b LEFT JOIN ({OF_EACH}) AS q ON b.who = q.who",
    "SELECT a.k, COUNT(*) FROM a JOIN p ON a.k = p.k GROUP BY a.k",  # not needed at once
    f"SELECT COUNT(*) FROM (SELECT n AS v FROM ({OF_EACH}) AS q UNION ALL SELECT x FROM b) AS r",
]


def tables() -> dict[str, dpsql.Table]:
    """People with few and with many rows."""
    rng, made = np.random.default_rng(6), {}
    for name, rows in (("a", 120), ("b", 60)):
        who = np.minimum(rng.geometric(0.25, rows), 12)
        data = pd.DataFrame({"who": who, "k": rng.choice(["u", "v", "w"], rows), "x": rng.integers(0, 6, rows)})
        made[name] = dpsql.Table(
            data, unit="who", max_rows=2_000, bounds={"x": (0, 6), "who": (0, 99)}, keys={"k": ["u", "v", "w"]}
        )
    return made | {"p": dpsql.Table(pd.DataFrame({"k": ["u", "u", "v"]}), public=True, max_matches={"k": 2})}


@pytest.mark.parametrize("most", [1, 4, 20, 60])
def test_the_same_units_are_left_out(most: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slices, "MOST_HELD", 1)
    monkeypatch.setattr(large_units, "MOST_WHOLE", most)
    assert differences(session(tables(), "duckdb"), session(tables(), "pandas"), QUERIES) == []


def test_some_are_and_none_where_rows_may_come_in_blocks(monkeypatch: pytest.MonkeyPatch):
    held = session(tables(), "duckdb")
    whole = [insecure_exact(held, sql, KEY, **TERMS) for sql in QUERIES]
    monkeypatch.setattr(large_units, "MOST_WHOLE", 4)
    others = [insecure_exact(session(tables(), "duckdb"), sql, KEY, **TERMS) for sql in QUERIES]
    assert [one != other for one, other in zip(whole, others, strict=True)] == [
        place not in (4, 8) for place in range(10)
    ]
