"""Columns of the outer rows inside a sub-query: where they take the place of one of the sub-query's own, a slip that
is SQL all the same, what is asked is whether the sub-query has rows.

What is answered is compared with DuckDB's answer; what is not is refused, by name, before anything is charged.
"""

from __future__ import annotations

import duckdb
import pytest

import dpsql
from dpsql.errors import QueryRefused, UnsupportedSQL
from tests.sql.join_queries import duck, queries, tables
from tests.sql.oracle import matched
from tests.sql.test_joins import NOISE, ask

ANSWERED = """
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT c_nation + n_key FROM nation);
    SELECT COUNT(*) FROM customer c WHERE c_custkey IN (SELECT o_custkey FROM orders WHERE c.c_nation IN (SELECT n_key
        FROM nation));
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_name FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_city NOT IN (SELECT c_name FROM nation);
    SELECT COUNT(*) FROM customer WHERE NOT c_city IN (SELECT c_city FROM nation);
    SELECT COUNT(*) FROM customer WHERE (c_city IN (SELECT c_city FROM nation)) IS NULL;
    SELECT COUNT(*) FROM customer WHERE (c_city NOT IN (SELECT c_city FROM nation)) IS NULL;
    SELECT COUNT(*) FROM customer WHERE (c_city IN (SELECT c_name FROM nation)) IS NOT TRUE;
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM nothing);
    SELECT COUNT(*) FROM customer WHERE c_city NOT IN (SELECT c_city FROM nothing);
    SELECT COUNT(*) FROM customer WHERE (c_city IN (SELECT c_city FROM nothing)) IS NULL;
    SELECT COUNT(*) FROM customer WHERE (c_city IN (SELECT c_city FROM nothing)) IS FALSE;
    SELECT COUNT(*) FROM customer WHERE (c_city NOT IN (SELECT c_name FROM nothing)) IS TRUE;
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM nation WHERE n_name = 'no such');
    SELECT COUNT(*) FROM customer WHERE c_city NOT IN (SELECT c_city FROM nation WHERE n_name = 'no such');
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT c_nation + 0 FROM nation WHERE n_big);
    SELECT COUNT(*) FROM customer WHERE c_nation + 1 IN (SELECT c_nation FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT c_balance FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_nation * 2 IN (SELECT c_nation + c_nation FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_vip IN (SELECT c_vip FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_vip IN (SELECT c_nation > 3 FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_since IN (SELECT c_since FROM days);
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT UPPER(c_city) FROM nation);
    SELECT COUNT(*) FROM customer WHERE LOWER(c_city) IN (SELECT LOWER(c_city) FROM gaps);
    SELECT COUNT(*) FROM customer WHERE 'Ada' IN (SELECT c_city FROM nation);
    SELECT COUNT(*) FROM customer WHERE 'Ada' NOT IN (SELECT c_city FROM nation);
    SELECT COUNT(*) FROM customer WHERE NULL IN (SELECT c_city FROM nation);
    SELECT COUNT(*) FROM customer WHERE (NULL IN (SELECT c_city FROM nothing)) IS FALSE;
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT DISTINCT c_city FROM nation);
    SELECT COUNT(*) FROM customer c WHERE c_city IN (SELECT c.c_city FROM nation);
    SELECT COUNT(*) FROM customer c WHERE c.c_city IN (SELECT c.c_name FROM nation n WHERE n.n_key = c.c_nation);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT c_nation FROM nation WHERE n_key = c_nation);
    SELECT COUNT(*) FROM customer WHERE c_nation NOT IN (SELECT c_nation FROM nation WHERE n_key = c_nation AND n_big);
    SELECT COUNT(*) FROM customer WHERE c_nation NOT IN (SELECT c_nation FROM nation WHERE n_key > c_nation);
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM nation WHERE c_vip);
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM nation WHERE c_vip AND n_big);
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM nation, rates WHERE n_key = r_nation);
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM (SELECT n_key FROM nation WHERE n_big) n);
    WITH n AS (SELECT n_key AS k FROM nation) SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM n);
    WITH n AS (SELECT n_key AS k FROM nation WHERE n_key > 99) SELECT COUNT(*) FROM customer WHERE c_city NOT IN
        (SELECT c_city FROM n WHERE k = c_nation);
    WITH c AS (SELECT c_city AS a, c_name AS b FROM customer) SELECT COUNT(*) FROM c WHERE a IN (SELECT b FROM nation);
    WITH c AS (SELECT c_custkey AS k FROM customer WHERE c_city IN (SELECT c_city FROM nation)) SELECT COUNT(*) FROM c;
    SELECT COUNT(*) FROM (SELECT c_city AS a FROM customer) s WHERE a IN (SELECT a FROM nation);
    SELECT COUNT(*) FROM (SELECT UPPER(c_city) AS a, c_city AS b FROM customer) s WHERE b IN (SELECT a FROM nation);
    SELECT COUNT(*) FROM (SELECT c_city FROM customer WHERE c_city IN (SELECT c_name FROM nation)) s;
    SELECT COUNT(*) FROM (SELECT c_city FROM customer WHERE c_name NOT IN (SELECT c_city FROM nation) UNION ALL SELECT
        c_city FROM notes WHERE c_city IN (SELECT c_city FROM tags)) u;
    SELECT COUNT(*) FROM (SELECT c_custkey, COUNT(*) AS n FROM notes WHERE c_city IN (SELECT c_city FROM nation) GROUP
        BY c_custkey) s;
    SELECT COUNT(*) FROM (SELECT c_custkey, COUNT(*) AS n FROM notes GROUP BY c_custkey) s WHERE n IN (SELECT n FROM
        nation);
    SELECT COUNT(*), COUNT(*) FILTER (WHERE c_city IN (SELECT c_city FROM nation)) FROM customer;
    SELECT COUNT(*) FILTER (WHERE c_city NOT IN (SELECT c_name FROM nation)) FROM customer;
    SELECT SUM(CASE WHEN c_city IN (SELECT c_city FROM nation) THEN c_nation ELSE 1 END) FROM customer;
    SELECT SUM(CASE WHEN c_city IN (SELECT c_name FROM nation) THEN 1 WHEN c_vip THEN 2 ELSE 3 END) FROM customer;
    SELECT COUNT(c_city IN (SELECT c_city FROM nation)) FROM customer;
    SELECT COUNT(*) FROM customer JOIN orders ON c_custkey = o_custkey WHERE c_city IN (SELECT o_prio FROM nation);
    SELECT COUNT(*) FROM customer JOIN orders ON c_custkey = o_custkey WHERE o_year - 2018 IN (SELECT c_nation FROM
        nation);
    SELECT COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key WHERE n_name IN (SELECT n_name FROM tags);
    SELECT COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key WHERE n_name NOT IN (SELECT n_region FROM tags);
    SELECT COUNT(*) FROM customer JOIN nation ON c_nation = n_key WHERE c_nation IN (SELECT n_key FROM tags);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT c_city FROM nation);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT c_city FROM nothing);
    SELECT COUNT(*) FROM customer WHERE NOT EXISTS (SELECT c_city FROM nation WHERE c_vip);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE c_city = c_name OR n_key = c_nation);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE c_city IS NULL);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE c_vip = c_vip);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE c_nation IN (SELECT n_key FROM tags));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE c_nation IN (SELECT g_key FROM gaps));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE c_nation IN (SELECT g_key FROM gaps) AND
        n_key = c_nation);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE n_key IN (SELECT n_key FROM tags));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE n_key = c_nation AND n_key NOT IN (SELECT
        r_nation FROM rates WHERE r_nation IS NOT NULL));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE EXISTS (SELECT 1 FROM rates WHERE r_nation =
        n_key) AND n_key = c_nation);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT n_key FROM nation WHERE n_key IN (SELECT n_key FROM tags));
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT c_nation FROM nation WHERE n_key IN (SELECT g_key FROM
        gaps));
    SELECT COUNT(*) FROM customer WHERE (c_nation IN (SELECT c_nation FROM nation)) IN (SELECT w_flag FROM words);
    SELECT COUNT(*) FROM customer WHERE (c_custkey, c_city) IN (SELECT c_custkey, c_city FROM nation) | SELECT COUNT(*)
        FROM customer WHERE c_custkey = c_custkey AND c_city = c_city;
    SELECT COUNT(*) FROM customer WHERE (c_custkey, c_city) NOT IN (SELECT c_custkey, c_name FROM nation) | SELECT
        COUNT(*) FROM customer WHERE NOT (c_custkey = c_custkey AND c_city = c_name);
    SELECT COUNT(*) FROM customer WHERE (c_nation, c_city) IN (SELECT n_key, c_city FROM nation) | SELECT COUNT(*) FROM
        customer WHERE c_nation IN (SELECT n_key FROM nation) AND c_city = c_city;
    SELECT COUNT(*) FROM customer WHERE (c_nation, c_city) NOT IN (SELECT n_key, c_city FROM nation WHERE
        n_big) | SELECT COUNT(*) FROM customer WHERE NOT (c_nation IN (SELECT n_key FROM nation WHERE n_big) AND c_city
        = c_city);
    SELECT COUNT(*) FROM customer WHERE ((c_nation, c_city) IN (SELECT g_key, c_city FROM gaps)) IS NULL | SELECT
        COUNT(*) FROM customer WHERE (c_nation IN (SELECT g_key FROM gaps) AND c_city = c_city) IS NULL;
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT c_custkey FROM orders WHERE o_custkey = c_custkey);
    SELECT COUNT(*) FROM customer WHERE c_custkey NOT IN (SELECT c_custkey FROM orders WHERE o_custkey = c_custkey);
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM orders WHERE o_custkey = c_custkey);
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_name FROM orders WHERE o_custkey = c_custkey);
    SELECT COUNT(*) FROM customer WHERE (c_city IN (SELECT c_city FROM orders WHERE o_custkey = c_custkey AND o_total >
        50)) IS NULL;
    SELECT COUNT(*) FROM customer WHERE c_city NOT IN (SELECT c_city FROM orders WHERE o_custkey = c_custkey AND
        o_total > 50);
    SELECT COUNT(*) FROM orders WHERE o_prio IN (SELECT o_prio FROM customer WHERE c_custkey = o_custkey AND c_vip);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND c_nation IN (SELECT
        n_key FROM nation WHERE n_big));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND o_code IN (SELECT
        o_code FROM nation));
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT c_custkey FROM orders, items WHERE o_custkey = c_custkey
        AND i_orderkey = o_orderkey);
    SELECT COUNT(*) FROM nation WHERE n_key IN (SELECT n_key FROM tags);
    SELECT COUNT(*) FROM nation WHERE n_name NOT IN (SELECT n_region FROM tags);
    SELECT COUNT(*) FROM nation WHERE n_key IN (SELECT n_key FROM nothing);
"""

GROUPED = """
    SELECT c_city IN (SELECT c_city FROM nation) AS a, COUNT(*) FROM customer GROUP BY a ORDER BY a;
    SELECT c_city IN (SELECT c_name FROM nation) AS a, COUNT(*) FROM customer GROUP BY a ORDER BY a;
    SELECT c_vip NOT IN (SELECT c_nation > 3 FROM nation) AS a, COUNT(*) FROM customer GROUP BY a ORDER BY a;
"""
"""Not all groups of ours are DuckDB's: those without rows are shown too."""

REFUSED = """
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM orders);
    SELECT COUNT(*) FROM customer WHERE c_city NOT IN (SELECT c_city FROM orders);
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT c_custkey FROM orders);
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT c_custkey FROM orders WHERE o_total > 50);
    SELECT COUNT(*) FROM customer WHERE c_custkey IN (SELECT c_custkey + 0 FROM orders);
    SELECT COUNT(*) FROM customer WHERE (c_custkey, c_city) IN (SELECT c_custkey, c_city FROM orders);
    SELECT COUNT(*) FROM customer WHERE c_nation IN (SELECT c_nation FROM orders WHERE o_year = c_nation);
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM profiles);
    SELECT COUNT(*) FROM nation WHERE n_key IN (SELECT n_key FROM customer);
    SELECT COUNT(*) FROM nation WHERE n_name IN (SELECT n_name FROM customer WHERE c_nation = n_key);
    SELECT COUNT(*) FILTER (WHERE c_city IN (SELECT c_city FROM orders)) FROM customer;
    SELECT SUM(CASE WHEN c_city IN (SELECT c_city FROM orders) THEN 1 ELSE 0 END) FROM customer;
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT c_city FROM orders);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE c_vip);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE c_city IN (SELECT c_city FROM orders));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE (c_nation, n_key) IN (SELECT g_key, g_key
        FROM gaps));
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM nation WHERE EXISTS (SELECT 1 FROM rates WHERE r_nation =
        n_key AND r_year = c_nation));
    SELECT COUNT(*) FROM customer WHERE c_nation > (SELECT MAX(c_nation) FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_nation > (SELECT MAX(n_key) FROM nation WHERE c_city IN (SELECT t_code FROM
        tags));
    SELECT COUNT(*) FROM customer JOIN orders ON c_custkey = o_custkey AND c_city IN (SELECT c_city FROM nation);
    SELECT COUNT(*) FROM customer LEFT JOIN nation ON c_nation = n_key AND c_city IN (SELECT c_city FROM tags);
    SELECT c_city IN (SELECT c_city FROM nation), COUNT(*) FROM customer;
    SELECT c_city, COUNT(*) FROM customer GROUP BY c_city HAVING c_city IN (SELECT c_city FROM nation);
    SELECT COUNT(*) FROM customer WHERE c_vip IN (SELECT c_city IN (SELECT c_city FROM nation) FROM nation);
    SELECT COUNT(*) FROM customer WHERE EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey AND c_city IN (SELECT
        c_city FROM nation));
    SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c.c_city FROM nation);
"""


@pytest.mark.parametrize(("sql", "theirs"), [(row[0], row[-1]) for row in queries(ANSWERED)])
def test_answered_as_duckdb_does(
    sql: str, theirs: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection
):
    assert matched(ask(people, sql), oracle.execute(theirs).fetchall(), NOISE) == ([], [])


@pytest.mark.parametrize(("sql", "theirs"), [(row[0], row[-1]) for row in queries(GROUPED)])
def test_as_a_key(sql: str, theirs: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    ours = [row for row in ask(people, sql) if abs(row[-1]) > 0.5]  # groups without rows are shown too
    assert matched(ours, oracle.execute(theirs).fetchall(), NOISE) == ([], [])


@pytest.mark.parametrize("sql", [row[0] for row in queries(REFUSED)])
def test_refused_before_it_is_charged(sql: str, people: dict[str, dpsql.Table]):
    session = dpsql.Session(people, budget=dpsql.Budget(10))
    for ask_ in (session.query, session.explain):
        with pytest.raises(QueryRefused):
            ask_(sql, epsilon=1)
    assert not session.ledger()


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("SELECT COUNT(*) FROM customer WHERE c_city IN (SELECT c_city FROM orders)", ("c_city", "customer", "orders")),
        (
            "SELECT COUNT(*) FROM customer WHERE c_city NOT IN (SELECT UPPER(c_name) FROM orders WHERE o_total > 3)",
            ("c_name", "customer", "orders"),
        ),
        ("SELECT COUNT(*) FROM nation WHERE n_key IN (SELECT n_key FROM customer)", ("n_key", "nation", "customer")),
        (
            "SELECT COUNT(*) FROM customer JOIN nation ON c_nation = n_key WHERE n_name IN (SELECT n_name FROM orders)",
            ("nation.n_name", "nation", "orders"),
        ),
        (
            (
                "SELECT COUNT(*) FROM (SELECT c_custkey, COUNT(*) AS n FROM notes GROUP BY c_custkey) WHERE n IN "
                "(SELECT n FROM orders)"
            ),
            ("n", "the SELECT around it", "orders"),
        ),
    ],
)
def test_whether_people_have_rows_is_refused_by_name(
    sql: str, named: tuple[str, str, str], people: dict[str, dpsql.Table]
):
    with pytest.raises(UnsupportedSQL) as refused:
        ask(people, sql)
    column, outer, inner = named
    assert refused.value.message == (
        f"{column} is a column of {outer}, not of {inner}: all that is asked of {inner} is whether it has any rows, "
        "which is one person's to decide."
    )
    assert refused.value.hint == f"Name a column of {inner}, or compare with {column} outside of a sub-query."
    assert refused.value.span is not None


@pytest.mark.parametrize("without", [("orders",), ("customer", "orders"), ("nation",)])
def test_without_rows(without: tuple[str, ...]):
    people, oracle = tables(without=without), duck(without=without)
    for sql, theirs in [(row[0], row[-1]) for row in queries(ANSWERED)]:
        if "SUM" not in sql and sql == theirs:  # SUM is NULL there, where no row is
            assert matched(ask(people, sql), oracle.execute(theirs).fetchall(), NOISE) == ([], []), sql


def test_each_has_its_own_rows_alone(people: dict[str, dpsql.Table]):
    """A person without orders is not counted for the orders of others, nor left out for want of them."""
    sql = "SELECT COUNT(*) FROM customer WHERE c_custkey {} (SELECT c_custkey FROM orders WHERE o_custkey = c_custkey)"
    (has,), (has_not,) = (next(iter(ask(people, sql.format(word)))) for word in ("IN", "NOT IN"))
    assert has > 0.5
    assert has_not > 0.5
