"""Statements over public tables alone: windows, QUALIFY and sub-queries stand over their answers as over private ones,
exact and free."""

from __future__ import annotations

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import QueryRefused

PRODUCTS = pd.DataFrame({"id": range(20), "kind": list("abcd") * 5, "price": [k % 7 for k in range(20)]})
STATEMENTS = [
    "SELECT kind, COUNT(*) AS n, RANK() OVER (ORDER BY kind) AS r FROM products GROUP BY kind ORDER BY kind",
    "SELECT kind, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS s FROM products GROUP BY kind ORDER BY 1",
    (
        "SELECT kind, n FROM (SELECT kind, SUM(price) AS n FROM products GROUP BY kind) "
        "QUALIFY ROW_NUMBER() OVER (ORDER BY n DESC, kind) < 3 ORDER BY kind"
    ),
    "SELECT kind, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM products) AS share FROM products GROUP BY kind ORDER BY kind",
    "WITH k AS (SELECT kind, SUM(price) AS n FROM products GROUP BY kind) SELECT AVG(n) AS a, MAX(n) AS m FROM k",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_they_are_duckdbs_and_free(sql: str):
    opened = dpsql.Session({"products": dpsql.Table(PRODUCTS, public=True)}, budget=dpsql.Budget(1))
    with duckdb.connect() as connection:
        connection.register("products", PRODUCTS)
        expected = connection.execute(sql).fetchall()
    answer = opened.query(sql, epsilon=1)
    assert [tuple(row) for row in answer] == [pytest.approx(row) for row in expected]
    assert opened.remaining.epsilon == 1
    assert "people" not in str(answer)


@pytest.mark.parametrize("sql", ["SELECT kind FROM products", "SELECT ROW_NUMBER() OVER (ORDER BY id) FROM products"])
def test_their_rows_are_read_without_dpsql(sql: str):
    with pytest.raises(QueryRefused):
        dpsql.query({"products": dpsql.Table(PRODUCTS, public=True)}, sql, epsilon=1)
