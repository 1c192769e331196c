"""What came to the language after the plans of the contract: released values, tables whose rows stand in the text, and
patterns, which Spark has none of in linear time."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.errors import UnsupportedSQL
from tests.executors.contract import differences, of_one_table, session
from tests.executors.test_released_values import compared
from tests.sql.test_constants import ANSWERED, GROUPED

CONSTANTS = [
    "SELECT COUNT(*), SUM(CLAMP(k, 0, 9)) AS z FROM t CROSS JOIN (VALUES (1), (2), (NULL)) AS v(k)",
    "SELECT COUNT(*) FROM t WHERE d IN (SELECT k FROM (VALUES (DATE '2020-01-25'), ('2020-02-01')) q(k))",
    "SELECT v.x, COUNT(*) FROM t JOIN (VALUES (1, 'a'), (10, 'it''s'), (3, 'a')) AS v(k, x) ON i = v.k GROUP BY v.x",
    "SELECT COUNT(*) FROM t JOIN range(DATE '2020-02-01', DATE '2020-02-09', INTERVAL 2 DAY) q(k) ON d = k::DATE",
]


def test_tables_of_constants():
    assert differences(of_one_table("spark"), of_one_table("pandas"), CONSTANTS) == []


@pytest.mark.spark
def test_all_tables_of_constants():
    queries = [line.strip().partition(" | ")[0] for line in (*ANSWERED[:-2], *GROUPED[:4])]
    assert differences(of_one_table("spark"), of_one_table("pandas"), queries) == []


def test_released_values():
    assert compared("spark", 61, 4) == []


@pytest.mark.spark
@pytest.mark.parametrize("seed", range(62, 66))
def test_released_values_of_all_kinds(seed: int):
    assert compared("spark", seed, 25) == []


@pytest.mark.parametrize("condition", ["REGEXP_MATCHES(x, 'a+')", "x SIMILAR TO '(a|b)*'", "x ~ 'a'"])
def test_patterns_are_refused_before_the_charge(condition: str):
    asked: Any = session({"t": dpsql.Table(pd.DataFrame({"x": ["a", "b"]}))}, "spark")
    with pytest.raises(UnsupportedSQL, match="the engine spark, .* has no regular expressions"):
        asked.query(f"SELECT COUNT(*) FROM t WHERE {condition}", epsilon=1)
    assert asked.ledger() == ()
