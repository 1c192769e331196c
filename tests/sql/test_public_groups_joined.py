"""Groups of public rows, joined with people's: they are public rows again, and compared with DuckDB's."""

from __future__ import annotations

import duckdb
import pytest

import dpsql
from dpsql.errors import QueryRefused
from tests.sql.join_queries import queries
from tests.sql.oracle import matched
from tests.sql.test_joins import NOISE, ask

ANSWERED = """
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT n_region FROM nation) r;
    SELECT COUNT(*), SUM(c_balance) FROM customer, (SELECT DISTINCT n_region FROM nation) r;
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT n_region, n_big FROM nation) r;
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT n_region FROM nation GROUP BY n_region) r;
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT n_region, COUNT(*) AS n FROM nation GROUP BY n_region HAVING
        COUNT(*) > 1) r;
    SELECT SUM(CLAMP(n, 0, 9)) FROM customer CROSS JOIN (SELECT n_region, COUNT(*) AS n FROM nation GROUP BY n_region) r
        | SELECT SUM(n) FROM customer CROSS JOIN (SELECT n_region, COUNT(*) AS n FROM nation GROUP BY n_region) r;
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT n_region FROM nation WHERE n_region = 'none') r;
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT z_code FROM nothing) r;
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT n_key % 2 AS odd FROM nation) r WHERE odd = 1;
    SELECT COUNT(*) FROM customer JOIN (SELECT DISTINCT n_key AS k FROM nation) r ON c_nation = k;
    SELECT COUNT(*), COUNT(k) FROM customer LEFT JOIN (SELECT DISTINCT r_nation AS k FROM rates) r ON c_nation = k;
    SELECT COUNT(*) FROM customer JOIN (SELECT r_nation AS k, MAX(r_year) AS y FROM rates GROUP BY r_nation) r ON
        c_nation = k WHERE y > 2019;
    SELECT COUNT(*) FROM customer JOIN nation ON c_nation = n_key JOIN (SELECT DISTINCT n_region AS g FROM nation) r ON
        n_region = g;
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT n_region FROM nation, rates WHERE n_key = r_nation) r;
    WITH r AS (SELECT DISTINCT n_region FROM nation) SELECT COUNT(*) FROM customer CROSS JOIN r;
    WITH r AS (SELECT DISTINCT n_region FROM nation) SELECT COUNT(*) FROM customer CROSS JOIN r a CROSS JOIN r b WHERE
        a.n_region = b.n_region;
    SELECT COUNT(*) FROM nation a CROSS JOIN (SELECT DISTINCT n_region FROM nation) b;
    SELECT COUNT(*) FROM orders JOIN (SELECT DISTINCT t_code AS c FROM tags) t ON o_code = c;
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT n_region FROM nation WHERE n_key IN (SELECT r_nation FROM
        rates)) r;
"""
GROUPED = """
    SELECT r.n_region, COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT n_region FROM nation) r GROUP BY r.n_region;
    SELECT k, COUNT(*) FROM customer JOIN (SELECT DISTINCT n_key AS k FROM nation) r ON c_nation = k GROUP BY k;
"""
REFUSED = """
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT MAX(n_key) AS m FROM nation) r;
    SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT n_region FROM nation LIMIT 2) r;
    SELECT COUNT(*) FROM customer JOIN (SELECT DISTINCT n_region AS g, n_key AS k FROM nation) r ON g = c_city;
"""


@pytest.mark.parametrize(("sql", "theirs"), [(row[0], row[-1]) for row in queries(ANSWERED)])
def test_answered_as_duckdb_does(
    sql: str, theirs: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection
):
    expected = [tuple(cell or 0 for cell in row) for row in oracle.execute(theirs).fetchall()]
    assert matched(ask(people, sql), expected, NOISE) == ([], [])


@pytest.mark.parametrize(("sql", "theirs"), [(row[0], row[-1]) for row in queries(GROUPED)])
def test_keys_are_public(sql: str, theirs: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    ours = [row for row in ask(people, sql, delta=1e-9) if abs(row[-1]) > 0.5]
    assert matched(ours, oracle.execute(theirs).fetchall(), NOISE) == ([], [])


@pytest.mark.parametrize("sql", [row[0] for row in queries(REFUSED)])
def test_refused(sql: str, people: dict[str, dpsql.Table]):
    with pytest.raises(QueryRefused):
        ask(people, sql)


@pytest.mark.parametrize(
    ("asked", "key"),
    [("orders", "o_prio"), ("nation, customer WHERE n_key = c_nation", "n_region")],
)
def test_groups_that_an_answer_shows_are_joined_as_many_as_it_shows(
    asked: str, key: str, people: dict[str, dpsql.Table]
):
    """An answer of people's rows is a release of its own; a person then counts once for each group that it shows."""
    shown = len(ask(people, f"SELECT DISTINCT {key} FROM {asked}"))
    ((customers,),) = ask(people, "SELECT COUNT(*) FROM customer")
    ((joined,),) = ask(people, f"SELECT COUNT(*) FROM customer CROSS JOIN (SELECT DISTINCT {key} FROM {asked}) r")
    assert shown > 1
    assert joined == pytest.approx(customers * shown, rel=1e-3)


def test_a_row_counts_once_for_each_group(people: dict[str, dpsql.Table]):
    """The sensitivity is the number of groups that there are, not that of the rows which they are of."""
    regions = people["nation"].frame["n_region"].nunique(dropna=False)
    held = dpsql.Session({"t": people["customer"].frame[["c_nation"]], "nation": people["nation"]},
                         budget=dpsql.Budget(10))  # fmt: skip
    sql = "SELECT COUNT(*) FROM t CROSS JOIN (SELECT DISTINCT n_region FROM nation) r"
    (noise,) = held.explain(sql, epsilon=1)._release.shares
    assert noise.reach.cube_sensitivity == regions
