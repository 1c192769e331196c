"""What came to the language after the plans of the contract: released values, tables whose rows stand in the text, and
patterns, which Spark has none of in linear time."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.errors import UnsupportedSQL
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, differences, of_one_table, session
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


def test_groups_of_stored_texts_are_those_of_what_they_mean(spark: Any):
    """Bytes that are no text are NULL, and with NULL listed all that is not: groups of cells become one."""
    frame = spark.sql(
        "SELECT CAST(b AS STRING) AS s, k, x FROM VALUES (X'61', 1, 3), (X'62', 1, 4), (X'FF', 2, 5), (X'FE', 2, 6), "
        "(NULL, 3, 7), (X'7A', 3, 8), (X'61', NULL, 90), (X'6962', 9, 9) AS t(b, k, x)"
    )
    sql = "SELECT s, k, COUNT(*), COUNT(k), SUM(x) FROM t GROUP BY s, k"
    listed: dict[str, Any] = {"k": [1, 2, 3, None, 7, 8]}
    for texts, groups in ((["a", "b", None], 18), (["b", "ib"], 12)):
        table = dpsql.Table(frame, keys={"s": texts, **listed}, bounds={"x": (4, 50)})
        found = insecure_exact(session({"t": table}, "auto"), sql, KEY, **TERMS).parts
        assert len(found) == groups
        ours = {key: cells for key, cells in found.items() if any(cells)}
        if None in texts:
            assert [ours[None, place][0] for place in (2, 3)] == [2, 2]
            assert sum(cells[0] for cells in ours.values()) == 8
        else:
            assert {key: cells[0] for key, cells in ours.items()} == {("b", 1): 1, ("ib", None): 1}
