"""Each clause of a sub-query means something: beside DISTINCT, under EXISTS, in a CTE that nothing reads.

What is answered is compared with DuckDB's answer; what is not is refused before anything is charged.
"""

from __future__ import annotations

import duckdb
import pytest

import dpsql
from dpsql.errors import DPSQLError, TypeMismatch, UnknownColumn, UnsupportedSQL
from tests.sql.join_queries import queries
from tests.sql.oracle import matched
from tests.sql.test_joins import NOISE, ask

ANSWERED = """
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT DISTINCT o_custkey FROM orders GROUP BY o_custkey
        HAVING COUNT(*) > 2);
    SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT DISTINCT o_custkey FROM orders GROUP BY o_custkey
        HAVING COUNT(*) > 2);
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT DISTINCT o_custkey FROM orders GROUP BY o_custkey, o_year
        HAVING COUNT(*) > 1);
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT DISTINCT o_custkey FROM orders GROUP BY o_custkey
        HAVING COUNT(*) > 1000);
    SELECT COUNT(*) FROM (SELECT DISTINCT o_custkey, o_year FROM orders GROUP BY o_custkey, o_year);
    SELECT COUNT(*) FROM (SELECT DISTINCT o_year, COUNT(*) AS n, o_custkey FROM orders GROUP BY o_custkey, o_year);
    SELECT COUNT(*) FROM (SELECT DISTINCT o_custkey FROM (SELECT o_custkey, o_year FROM orders GROUP BY o_custkey,
        o_year));
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT n_region FROM nation GROUP BY n_region) AS d;
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT *, o_year + 1, c_city FROM orders WHERE o_custkey = c_custkey);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT n.* FROM nation n WHERE n_key = c_nation);
"""

_KEYS = "DISTINCT beside GROUP BY is not supported in a sub-query that does not show all its keys."
_ANSWER = "a sub-query in an expression is of rows, and this one makes an answer."

REFUSED = [
    ("SELECT COUNT(*) FROM (SELECT DISTINCT o_custkey FROM orders GROUP BY o_custkey, o_year)", UnsupportedSQL, _KEYS),
    (
        "SELECT COUNT(*) FROM (SELECT DISTINCT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey, o_year)",
        UnsupportedSQL,
        _KEYS,
    ),
    (
        "SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT COUNT(*) AS n FROM nation GROUP BY n_key) AS d",
        UnsupportedSQL,
        _KEYS,
    ),
    (
        "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT DISTINCT 1 FROM nation HAVING COUNT(*) > 1000)",
        UnsupportedSQL,
        _ANSWER,
    ),
    (
        "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT DISTINCT COUNT(*) FROM nation)",
        UnsupportedSQL,
        _ANSWER,
    ),
    (
        (
            "SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT DISTINCT n_key FROM nation GROUP BY n_key "
            "HAVING COUNT(*) > 1)"
        ),
        UnsupportedSQL,
        _ANSWER,
    ),
    (
        (
            "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT DISTINCT 1 FROM orders WHERE o_custkey = c_custkey "
            "GROUP BY o_year HAVING COUNT(*) > 1)"
        ),
        UnsupportedSQL,
        "c_custkey is a column of the row that this sub-query stands beside, and a release is of all rows.",
    ),
    (
        "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT nobody FROM orders WHERE o_custkey = c_custkey)",
        UnknownColumn,
        'no column "nobody" in orders.',
    ),
    (
        "SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 + 'a' FROM nation)",
        TypeMismatch,
        "+ wants numbers, got 1 (integer), 'a' (text).",
    ),
    (
        (
            "SELECT COUNT(*) FROM customer WHERE c_nation IN (WITH q AS (SELECT nobody FROM nation) SELECT n_key FROM "
            "nation)"
        ),
        UnknownColumn,
        'no column "nobody" in nation.',
    ),
]


@pytest.mark.parametrize("sql", [row[0] for row in queries(ANSWERED)])
def test_answered_as_duckdb_does(sql: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    assert matched(ask(people, sql), oracle.execute(sql).fetchall(), NOISE) == ([], [])


@pytest.mark.parametrize(("sql", "kind", "message"), REFUSED)
def test_refused_rather_than_left_out(sql: str, kind: type[DPSQLError], message: str, people: dict[str, dpsql.Table]):
    session = dpsql.Session(people, budget=dpsql.Budget(10))
    for ask_ in (session.query, session.explain):
        with pytest.raises(kind) as refused:
            ask_(sql, epsilon=1)
        assert str(refused.value).split("\n", maxsplit=1)[0].startswith(message)
    assert not session.ledger()
