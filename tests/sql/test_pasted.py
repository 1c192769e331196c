"""Words that other engines' texts bring along: they mean what DuckDB means by them, or what the plain words mean."""

from __future__ import annotations

import math

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, UnsupportedSQL
from tests.sql.oracle import matched
from tests.sql.people import LARGEST_EPSILON, ask, duck, frame


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return frame(80)


@pytest.fixture(scope="module")
def duckdbs(rows: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    return duck(rows)


ALIKE = """
    SELECT COUNT() FROM t
    SELECT COUNT(*) FROM t WHERE (i, b) IN ((1, TRUE), (2, FALSE), (5, TRUE), (7, TRUE))
    SELECT COUNT(*) FROM t WHERE (n, nb) IN ((7, TRUE), (50, NULL), (NULL, FALSE))
    SELECT COUNT(*) FROM t WHERE (n, nb) NOT IN ((7, TRUE), (50, NULL), (NULL, FALSE))
    SELECT COUNT(*) FROM t WHERE ((n, nb) IN ((7, TRUE))) IS NULL OR i > 0
    SELECT COUNT(*) FROM t WHERE n = ANY([7, 50])
    SELECT COUNT(*) FROM t WHERE (n = ANY([7, NULL])) IS NULL
    SELECT COUNT(*) FROM t WHERE n <> ALL([7, 50]) OR n <> ALL(ARRAY[7])
    SELECT COUNT(CAST(i AS VARCHAR(1))), COUNT(x::CHAR(2)) FROM t WHERE CAST(i AS VARCHAR(1)) = '12'
    SELECT REGR_COUNT(n, r), REGR_COUNT(n, i) FILTER (WHERE b) FROM t
    SELECT b, COUNT(*) FROM t GROUP BY ALL ORDER BY ALL
    SELECT b, COUNT(*) AS cnt, 2 * cnt AS twice, 7 AS c FROM t GROUP BY ALL ORDER BY ALL DESC
    SELECT COUNT(*) FROM t GROUP BY ALL
    SELECT COUNT(*) FROM main.t
""".strip().splitlines()
SAME_AS = [
    ("SELECT COUNT(*) FROM (t)", "SELECT COUNT(*) FROM t"),
    ("SELECT COUNT(*) FROM ((t)) AS u WHERE u.i > 3", "SELECT COUNT(*) FROM t AS u WHERE u.i > 3"),
    ("SELECT STD(i) FROM t", "SELECT STDDEV(i) FROM t"),
    ("SELECT COUNT(`i`) FROM `t` WHERE `t`.`i` > 3", "SELECT COUNT(i) FROM t WHERE i > 3"),
    ("SELECT b, COUNT(*) FROM t GROUP BY b ORDER BY b FETCH FIRST 1 ROW ONLY",
     "SELECT b, COUNT(*) FROM t GROUP BY b ORDER BY b LIMIT 1"),
    ("SELECT b, COUNT(*) FROM t GROUP BY b ORDER BY b OFFSET 1 ROWS FETCH NEXT ROW ONLY",
     "SELECT b, COUNT(*) FROM t GROUP BY b ORDER BY b LIMIT 1 OFFSET 1"),
]  # fmt: skip


@pytest.mark.parametrize("sql", [line.strip() for line in ALIKE])
def test_the_answer_is_duckdbs(sql: str, rows: pd.DataFrame, duckdbs: duckdb.DuckDBPyConnection):
    theirs = duckdbs.execute(sql).fetchall()
    assert matched(ask({"t": rows}, sql), theirs) == ([], []), (list(ask({"t": rows}, sql)), theirs)


@pytest.mark.parametrize(("sql", "other"), SAME_AS)
def test_what_duckdb_has_not_is_what_its_words_are(
    sql: str, other: str, rows: pd.DataFrame, duckdbs: duckdb.DuckDBPyConnection
):
    assert matched(ask({"t": rows}, sql), duckdbs.execute(other).fetchall()) == ([], [])


def test_an_approximate_quantile_is_a_quantile(rows: pd.DataFrame):
    one, other = next(iter(ask({"t": rows}, "SELECT APPROX_QUANTILE(i, 0.3), QUANTILE(i, 0.3) FROM t")))
    assert one == other


@pytest.mark.parametrize(("low", "high", "pieces"), [(0, 10, 5), (-3, 4, 7), (-2.5, 7.5, 3), (0, 1, 1)])
@pytest.mark.parametrize("column", ["i", "n", "r"])
def test_a_bucket_is_the_number_of_its_piece(column: str, low: float, high: float, pieces: int, rows: pd.DataFrame):
    """Against the numbers by hand, ends and NULL among them; every bucket has a group."""
    sql = f"SELECT WIDTH_BUCKET({column}, {low}, {high}, {pieces}) AS k, COUNT(*) AS n FROM t GROUP BY 1"
    answer = {key: round(count) for key, count in ask({"t": rows}, sql)}
    lower, upper = {"i": (-10, 20), "n": (0, 100), "r": (-5.0, 7.5)}[column]
    expected: dict[int | None, int] = {}
    for value in rows[column].tolist():
        key = None
        if not (value is pd.NA or math.isnan(value)):
            clipped = min(max(value, lower), upper)
            inside = math.floor((clipped - low) * pieces / (high - low)) + 1
            key = 0 if clipped < low else pieces + 1 if clipped >= high else inside
        expected[key] = expected.get(key, 0) + 1
    assert {key: count for key, count in answer.items() if count} == expected
    assert {key for key in answer if key is not None} <= set(range(pieces + 2))


JOINS = """
    SELECT COUNT(*) FROM orders SEMI JOIN customer ON orders.o_custkey = customer.c_custkey
    SELECT COUNT(*) FROM customer SEMI JOIN orders ON orders.o_custkey = customer.c_custkey
    SELECT COUNT(*) FROM customer AS c ANTI JOIN orders AS o ON o.o_custkey = c.c_custkey WHERE c_custkey > 1
    SELECT COUNT(*) FROM customer SEMI JOIN orders ON o_custkey = c_custkey AND o_custkey > 1
    SELECT COUNT(*) FROM customer ANTI JOIN orders ON c_custkey = o_custkey
    SELECT COUNT(*) FROM (orders JOIN customer ON o_custkey = c_custkey)
    SELECT COUNT(*) FROM customer JOIN (orders) ON o_custkey = c_custkey
""".strip().splitlines()


@pytest.mark.parametrize("sql", [line.strip() for line in JOINS])
def test_joins_are_duckdbs(sql: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    unlimited = sql.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1000)", 1)
    answer = dpsql.query(people, unlimited, epsilon=LARGEST_EPSILON)
    theirs = oracle.execute(sql.replace("(orders)", "orders")).fetchall()  # parentheses that not all of DuckDB reads
    assert theirs[0][0] > 0
    assert matched(answer, theirs) == ([], [])


REFUSED = [
    ("SELECT COUNT(*) FROM a.t JOIN b.t AS u ON t.i = u.i", "different databases"),
    ("WITH t AS (SELECT i FROM t) SELECT COUNT(*) FROM main.t", "different databases"),
    ("SELECT COUNT(*) FROM t SEMI JOIN t ON t.i = t.i", "two tables of different names"),
    ("SELECT WIDTH_BUCKET(i, 0, j, 10), COUNT(*) FROM t GROUP BY 1", "WIDTH_BUCKET takes"),
    ("SELECT WIDTH_BUCKET(i, 9, 0, 10), COUNT(*) FROM t GROUP BY 1", "WIDTH_BUCKET takes"),
    ("SELECT *, COUNT(*) FROM t GROUP BY ALL", "Name the columns"),
    ("SELECT COUNT(*) FROM t WHERE i > ANY([1, 2])", "ANY"),
    ("SELECT COUNT([1, 2]) FROM t", "lists"),
    ("SELECT COUNT(*) FROM t WHERE n > CURRENT_DATE - INTERVAL 30 DAY", "datetime.date.today()"),
]


@pytest.mark.parametrize(("sql", "words"), REFUSED)
def test_what_could_mean_something_else_is_refused(sql: str, words: str, rows: pd.DataFrame):
    with pytest.raises(DPSQLError) as caught:
        ask({"t": rows}, sql)
    assert words in str(caught.value)
    assert isinstance(caught.value, UnsupportedSQL)
