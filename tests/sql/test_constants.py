"""Tables whose rows stand in the text: joined with people's they mean what DuckDB means, on every engine alike."""

from __future__ import annotations

from collections import Counter

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError
from dpsql.plan.constants import MOST_ROWS
from dpsql.plan.nodes import Join
from dpsql.schema.declaration import Declaration, resolve
from dpsql.session.tables.public_tables import NoPublicTables
from dpsql.sources.frames import stored_columns
from dpsql.sql import plan_of
from dpsql.sql.names.catalog import Catalog
from dpsql.testing import insecure_exact
from tests.sql.oracle import matched
from tests.sql.people import BOUNDS, KEYS, LARGEST_EPSILON, TYPES, ask, duck, frame


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return frame(80)


@pytest.fixture(scope="module")
def duckdbs(rows: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    return duck(rows)


ANSWERED = """
    SELECT COUNT(*) FROM t JOIN (VALUES (1, 'a'), (2, 'b')) AS v(k, x) ON i = k
    SELECT COUNT(*), SUM(CLAMP(k, 0, 9)) AS z FROM t CROSS JOIN (VALUES (1), (2), (NULL)) AS v(k) | SELECT COUNT(*), SUM(k) FROM t CROSS JOIN (VALUES (1), (2), (NULL)) AS v(k)
    SELECT SUM(weight) FROM t JOIN (VALUES (1, 1.5), (2, 2)) AS q(k, weight) ON i = k
    WITH v(k, y) AS (VALUES (TRUE, 'yes'), (FALSE, 'no')) SELECT COUNT(*) FROM t JOIN v ON b = k WHERE y = 'yes'
    WITH v AS (SELECT 1 AS k, 'm' AS y UNION ALL SELECT 2, 'f' UNION ALL SELECT 2, 'f') SELECT COUNT(*) FROM t JOIN v ON i = k
    WITH v AS (SELECT 1 AS k UNION SELECT 2 UNION SELECT 2) SELECT COUNT(*) FROM t JOIN v ON i = k
    WITH c AS (SELECT 3 AS low, 2 + 5 AS high) SELECT COUNT(*) FROM t, c WHERE i BETWEEN low AND c.high
    WITH c AS (SELECT 3 AS low) SELECT COUNT(*) FROM t WHERE i > (SELECT low FROM c)
    SELECT COUNT(*) FROM t WHERE i > (SELECT 3)
    SELECT COUNT(*) FROM t WHERE i IN (SELECT * FROM (VALUES (1), (5)) q(k))
    SELECT COUNT(*) FROM t WHERE i IN (VALUES (1), (5))
    SELECT COUNT(*) FROM t WHERE i NOT IN (SELECT UNNEST([1, 5]))
    SELECT COUNT(*) FROM t WHERE d IN (SELECT k FROM (VALUES (DATE '2020-01-25'), ('2020-02-01')) q(k))
    SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM (VALUES (1), (5)) q(k) WHERE k = i)
    SELECT COUNT(*) FROM t JOIN UNNEST(['12', 'abc']) AS q(k) ON x = k
    SELECT COUNT(*) FROM t JOIN (SELECT UNNEST([1, 2]) + 1 AS k, 'c' AS c) q ON i = k
    SELECT COUNT(*) FROM t JOIN generate_series(-3, 9, 4) AS g(k) ON i = k
    SELECT COUNT(*) FROM t JOIN generate_series(9, -3, -4) AS g(k) ON i = k
    SELECT COUNT(*) FROM t JOIN range(5) ON i = range
    SELECT COUNT(*) FROM t JOIN range(5, 5) AS g(k) ON i = k
    WITH n AS (SELECT range AS k FROM range(12)), m AS (SELECT DATE '2020-01-01' + INTERVAL (k) MONTH AS f FROM n WHERE k < 2) SELECT COUNT(*) FROM t JOIN m ON DATE_TRUNC('month', d) = f
    SELECT COUNT(*) FROM t JOIN (SELECT CAST(k AS DATE) AS k FROM range(DATE '2020-02-01', DATE '2020-02-09', INTERVAL 1 DAY) q(k)) c ON d = k
    SELECT COUNT(*) FROM t JOIN range(DATE '2020-02-01', DATE '2020-02-09', INTERVAL 2 DAY) q(k) ON d = CAST(k AS DATE)
    SELECT COUNT(*) FROM t JOIN generate_series(TIMESTAMP '2020-01-31', TIMESTAMP '2020-05-01', INTERVAL 1 MONTH) q(k) ON d > k
    SELECT COUNT(*) FROM (VALUES (1), (2)) v(k)
    SELECT MAX(x), SUM(x), COUNT(*) FROM generate_series(1, 1000) AS g(x)
""".strip().splitlines()  # noqa: E501
GROUPED = """
    SELECT v.x, COUNT(*) FROM t JOIN (VALUES (1, 'a'), (10, 'b'), (3, 'a')) AS v(k, x) ON i = v.k GROUP BY v.x
    SELECT k, COUNT(i) FROM generate_series(-3, 3) AS g(k) LEFT JOIN t ON i = k GROUP BY k
    SELECT f, COUNT(d) FROM (SELECT UNNEST(generate_series(DATE '2020-01-01', DATE '2020-04-01', INTERVAL 1 MONTH)) AS f) LEFT JOIN t ON DATE_TRUNC('month', d) = f GROUP BY f
    SELECT band, COUNT(*) FROM t JOIN (VALUES ('low', -10, 3), ('high', 4, 20)) AS q(band, a, z) ON i BETWEEN a AND z GROUP BY band
    WITH q(k) AS (VALUES (TRUE), (FALSE)) SELECT k, n FROM q LEFT JOIN (SELECT b, COUNT(*) AS n FROM t GROUP BY b) ON b = k
    WITH c AS (SELECT f FROM range(DATE '2020-01-01', DATE '2020-03-01', INTERVAL 1 MONTH) q(f)) SELECT f, COALESCE(n, 0) FROM c LEFT JOIN (SELECT DATE_TRUNC('month', d) AS f, COUNT(*) AS n FROM t GROUP BY 1) USING (f)
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("sql", [line.strip() for line in (*ANSWERED, *GROUPED)])
def test_the_answer_is_duckdbs(sql: str, rows: pd.DataFrame, duckdbs: duckdb.DuckDBPyConnection):
    ours, _, theirs = sql.partition(" | ")
    oracle_rows = duckdbs.execute(theirs or ours).fetchall()
    assert matched(ask({"t": rows}, ours), oracle_rows) == ([], []), (list(ask({"t": rows}, ours)), oracle_rows)


def test_engines_are_handed_the_same_integers(rows: pd.DataFrame):
    table = dpsql.Table(rows, bounds=BOUNDS, keys=KEYS, types=TYPES)
    both = [dpsql.Session({"t": table}, budget=dpsql.Budget(1e9), engine=name) for name in ("pandas", "duckdb")]
    asked = [line.strip().partition(" | ")[0] for line in (*ANSWERED[:-2], *GROUPED[:4])]
    for sql in asked:
        one, other = (insecure_exact(each, sql, bytes(32), epsilon=1) for each in both)
        assert one.parts == other.parts, sql


def test_a_table_of_constants_has_no_more_rows_of_one_value_than_it_is_said_to(rows: pd.DataFrame):
    """What stability rests on, against counts by hand: the rows that have one value of what is compared, whose number
    is the most by which a person changes a count."""
    cells = [(1, "a"), (1, "b"), (2, "a"), (2, "c"), (2, "d"), (None, "e"), (-1, "e")]
    values = ", ".join(f"({'NULL' if k is None else k}, '{y}')" for k, y in cells)
    of_cells = {
        "k": [k for k, _ in cells],
        "k % 2": [k and k % 2 for k, _ in cells],
        "ABS(k)": [k and abs(k) for k, _ in cells],
        "k + LENGTH(y)": [k and k + 1 for k, _ in cells],
    }
    few = rows[["i"]].head(12)
    for key, found in of_cells.items():
        sql = f"SELECT COUNT(*) FROM t JOIN (VALUES {values}) AS v(k, y) ON i % 3 = {key}"
        schema = resolve("t", stored_columns(few), Declaration.of({"i": (-20, 30)}, None, None))
        plan = plan_of(sql, Catalog({"t": schema}, public=NoPublicTables()))[0].query.plan
        assert isinstance(plan.input, Join)
        assert plan.input.matches == max(Counter(k for k in found if k is not None).values()), key
        counts = [_count(few, sql), *(_count(few.drop(index=row), sql) for row in few.index)]
        assert max(counts[0] - each for each in counts[1:]) <= plan.input.matches


def _count(rows: pd.DataFrame, sql: str) -> int:
    session = dpsql.Session({"t": dpsql.Table(rows, bounds={"i": (-20, 30)})}, budget=dpsql.Budget(9))
    ((integers),) = insecure_exact(session, sql, bytes(32), epsilon=1).parts.values()
    return integers[0]


def test_a_question_is_its_constants(rows: pd.DataFrame):
    """The same cells are the same question, given again for nothing; others are another one."""
    session = dpsql.Session({"t": dpsql.Table(rows, bounds=BOUNDS)}, budget=dpsql.Budget(3))
    text = "SELECT COUNT(*) AS n FROM t JOIN (VALUES (1, 'a'), (2, 'b')) AS v(k, x) ON i = k"
    first = session.query(text, epsilon=1)
    again = session.query(text.replace("v(k, x)", "v(k, x)").replace("(1, 'a')", "( 1 , 'a' )"), epsilon=1)
    assert list(first) == list(again)
    assert session.spent.epsilon == 1
    session.query(text.replace("'b'", "'c'"), epsilon=1)
    assert session.spent.epsilon == 2


def test_constants_of_parameters(rows: pd.DataFrame):
    sql = "SELECT COUNT(*) FROM t JOIN (VALUES (:a), (:b)) AS v(k) ON i = k"
    people = dpsql.Table(rows, bounds=BOUNDS)
    answer = dpsql.query({"t": people}, sql, epsilon=LARGEST_EPSILON, params={"a": 1, "b": 5})
    assert next(iter(answer))[0] == sum(value in (1, 5) for value in rows["i"])


REFUSED = [
    ("SELECT COUNT(*) FROM t JOIN (VALUES (1, 2), (3)) v(a, b) ON i = a", "one length"),
    ("SELECT COUNT(*) FROM t JOIN (VALUES (1), ('a')) v(a) ON i = a", "one type"),
    ("SELECT COUNT(*) FROM t JOIN (VALUES (i)) v(a) ON i = a", "constants stand here"),
    ("SELECT COUNT(*) FROM t, UNNEST([i]) AS u(a)", "constants stand here"),
    ("SELECT COUNT(*) FROM t, UNNEST([1]) WITH ORDINALITY AS u(a, o)", "UNNEST"),
    (f"SELECT COUNT(*) FROM generate_series(1, {MOST_ROWS + 1}) AS g(k)", "at most 1,000,000"),
    ("SELECT COUNT(*) FROM generate_series(1, 1e12) AS g(k)", "whole numbers"),
    ("SELECT COUNT(*) FROM generate_series(1, 4611686018427387904) AS g(k)", "at most 1,000,000"),
    ("SELECT COUNT(*) FROM generate_series(1, 5, 0) AS g(k)", "no end"),
    ("SELECT COUNT(*) FROM generate_series(DATE '2020-01-01', DATE '2020-01-09') AS g(k)", "INTERVAL"),
    ("SELECT COUNT(*) FROM t, generate_series(i, 5) AS g(k)", "constants"),
    ("SELECT COUNT(*) FROM t, generate_series(1, 20000) AS g(k)", "10,000"),
    ("SELECT COUNT(*) FROM t CROSS JOIN (SELECT 1 AS a WHERE TRUE) q", "no FROM"),
    ("SELECT COUNT(UNNEST([1, 2])) FROM t", "UNNEST"),
    ("WITH v AS (VALUES (1)) SELECT COUNT(*) FROM t *", "*"),
    ("SELECT COUNT(*) FROM t JOIN (VALUES (1), (1)) v(a) ON u = a + RANDOM()", "RANDOM"),
]


def test_what_is_no_table_of_constants_is_refused(rows: pd.DataFrame):
    for sql, words in REFUSED:
        with pytest.raises(DPSQLError) as caught:
            ask({"t": rows}, sql)
        assert words in str(caught.value), sql
