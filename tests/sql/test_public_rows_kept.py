"""public LEFT JOIN people, and its mirror: the rows of the inner join, and all public groups."""

from __future__ import annotations

import duckdb
import pytest

import dpsql
from dpsql.session.tables.public_tables import resolved
from dpsql.sql import plan_of
from dpsql.sql.names.catalog import Catalog
from tests.sql.oracle import matched
from tests.sql.people import LARGEST_EPSILON

KEPT = [
    ("nation LEFT JOIN customer ON c_nation = n_key", "customer JOIN nation ON c_nation = n_key"),
    ("customer RIGHT JOIN nation ON c_nation = n_key", "customer JOIN nation ON c_nation = n_key"),
    ("nation LEFT JOIN customer ON c_nation = n_key AND c_vip", "customer JOIN nation ON c_nation = n_key AND c_vip"),
    (
        "nation LEFT JOIN customer ON c_nation = n_key LEFT JOIN orders ON o_custkey = c_custkey",
        "customer JOIN nation ON c_nation = n_key LEFT JOIN orders ON o_custkey = c_custkey",
    ),
    (
        "orders JOIN customer ON o_custkey = c_custkey RIGHT JOIN nation ON c_nation = n_key",
        "orders JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nation = n_key",
    ),
]


@pytest.mark.parametrize(("kept", "inner"), KEPT)
@pytest.mark.parametrize(
    "sql", ["SELECT n_name, COUNT(*) FROM {} GROUP BY n_name", "SELECT COUNT(*) FROM {} WHERE n_key > 0"]
)
def test_the_plan_is_that_of_the_inner_join(sql: str, kept: str, inner: str, people: dict[str, dpsql.Table]):
    """So it has the same stability, and the same proof."""
    catalog = Catalog(resolved(people))
    one, other = (plan_of(sql.format(tables), catalog)[0].query.plan for tables in (kept, inner))
    assert one.input == other.input
    assert [key.values for key in one.keys] == [key.values for key in other.keys]


def test_every_public_group_is_shown(people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    """With the number of its matches, which SQL counts by a column of theirs."""
    sql = "SELECT n_name, COUNT({}) FROM nation LEFT JOIN customer ON c_nation = n_key GROUP BY n_name"
    theirs = oracle.execute(sql.format("c_custkey")).fetchall()
    assert any(count == 0 for _, count in theirs)
    assert matched(dpsql.query(people, sql.format("*"), epsilon=LARGEST_EPSILON), theirs) == ([], [])


def test_a_merged_column_is_the_public_one(people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    sql = (
        "SELECT k, COUNT(*) FROM (SELECT c_nation AS k FROM customer) AS c {} "
        "(SELECT n_key AS k FROM nation) AS n USING (k) GROUP BY k"
    )
    answer = list(dpsql.query(people, sql.format("RIGHT JOIN"), epsilon=LARGEST_EPSILON))
    theirs = oracle.execute(sql.format("JOIN")).fetchall()
    assert matched([row for row in answer if row[1]], theirs) == ([], [])
    keys = oracle.execute("SELECT DISTINCT n_key FROM nation").fetchall()
    assert {row[0] for row in answer} == {key for (key,) in keys}
