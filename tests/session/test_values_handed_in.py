"""Answers of one row that stand for a value: SQL over them is handed the value, and is what it is over a relation."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

import dpsql
from dpsql.plan.expressions import Vector
from dpsql.postprocess import database as machine
from dpsql.postprocess.database import bound, run
from dpsql.postprocess.frames import Frame, Header
from dpsql.postprocess.headers import value_name
from dpsql.postprocess.projections import ColumnProjection
from dpsql.schema.columns import Type
from dpsql.session.multi_step.postprocess_plan import PostprocessPlan
from tests.session.test_steps import FRAMES, tables
from tests.sql.oracle import matched

EPSILON = 1e9
COUNT = "(SELECT COUNT(*) FROM people)"
MEAN = "(SELECT AVG(pay) FROM people WHERE sex = 'F')"
MALE = "(SELECT AVG(pay) FROM people WHERE sex = 'M')"
HANDED = (
    f"SELECT {MEAN} - {MALE} AS d",
    f"SELECT 100.0 * {MEAN} / {COUNT} AS d, {COUNT} AS n",
    f"SELECT ROUND({MEAN}, 3), ABS({MEAN} - {MALE}), -{MEAN}",
    f"SELECT CASE WHEN {MEAN} > {MALE} THEN 1 ELSE 0 END AS more, COALESCE({MEAN}, 0) AS m",
    f"SELECT sex, COUNT(*) * 100.0 / {COUNT} AS p FROM people WHERE age > 21 GROUP BY sex",
    f"SELECT NULLIF({COUNT}, {COUNT}) AS none, {COUNT} / NULLIF({MEAN} - {MEAN}, 0) AS nothing",
)
RELATIONS = (
    "SELECT (SELECT COUNT(*) AS n FROM people HAVING COUNT(*) > 5) + 1 AS d",
    f"SELECT {COUNT} IN (SELECT COUNT(*) FROM people) AS same",
    f"SELECT COUNT(*) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) WHERE n < (SELECT n FROM {COUNT} t(n))",
)
"""Those that are not, as they may have no row, or stand where a relation is wanted."""


def session() -> dpsql.Session:
    return dpsql.Session(tables(), budget=dpsql.Budget(epsilon=1e9, delta=0.5))


def duckdbs(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        for name, frame in FRAMES.items():
            connection.register(name, frame)
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize("sql", [*HANDED, *RELATIONS])
def test_the_answer_is_duckdbs(sql: str):
    answer = list(session().query(sql, epsilon=EPSILON, delta=0.1))
    assert matched(answer, duckdbs(sql)) == ([], [])


def program_of(sql: str) -> PostprocessPlan:
    asked = session()
    prepared = asked._prepare(sql, (1.0, 1e-6, None, None, None))
    assert prepared.postprocess is not None
    return prepared.postprocess


@pytest.mark.parametrize("sql", HANDED)
def test_no_relation_is_made_of_a_value(sql: str):
    statement = program_of(sql).statement
    assert statement.values
    assert all(value.header.most == value.header.least == 1 for value in statement.values)
    assert not {each.name for each in statement.headers} & {value.header.name for value in statement.values}


@pytest.mark.parametrize("sql", RELATIONS)
def test_what_may_have_no_row_stays_a_relation(sql: str):
    assert not program_of(sql).statement.values


def test_a_relation_that_is_not_named_is_not_made():
    frames = {name: Frame(("x",), (Type.INTEGER,), (Vector(np.array([1, 2])),)) for name in ("a", "b")}
    headers = [Header(name, (("x", Type.INTEGER),), 2) for name in frames]
    assert [each.name for each in bound("SELECT x FROM a", headers).headers] == ["a"]


def test_a_parameter_of_a_relation_of_several_rows_is_none():
    header = Header("a", (("x", Type.INTEGER),), 2, least=2)
    with pytest.raises(dpsql.errors.UnsupportedSQL):
        bound(f"SELECT CAST(${value_name('a', 0)} AS BIGINT)", [header])


def test_null_and_infinity_are_handed_in():
    header = Header("a", (("x", Type.REAL), ("n", Type.INTEGER)), 1, least=1)
    sql = f"SELECT CAST(${value_name('a', 0)} AS DOUBLE) AS x, CAST(${value_name('a', 1)} AS BIGINT) AS n"
    statement = bound(sql, [header])
    vectors = Vector(np.array([np.inf])), Vector(np.array([7]), np.array([False]))
    rows = run(statement, {"a": Frame(("x", "n"), (Type.REAL, Type.INTEGER), vectors)})
    assert rows.vectors[0].values.tolist() == [np.inf]
    assert rows.vectors[1].where_valid().tolist() == [False]


PASSED = (
    "SELECT COUNT(*) AS n FROM people WHERE pay > (SELECT AVG(pay) FROM people)",
    "SELECT sex, COUNT(*) AS n FROM people WHERE city IN (SELECT city FROM people GROUP BY city) GROUP BY sex",
    "SELECT age, COUNT(*) AS n FROM people WHERE pay > (SELECT AVG(pay) FROM people) GROUP BY age",
    "SELECT age, COUNT(*) AS n FROM people WHERE pay > (SELECT AVG(pay) FROM people) GROUP BY age ORDER BY n DESC",
)
"""What stands above is columns of one release, and nothing else."""


@pytest.mark.parametrize("sql", PASSED)
def test_what_only_passes_columns_on_needs_no_duckdb(sql: str, monkeypatch: pytest.MonkeyPatch):
    """The same rows in the same order as DuckDB gives them; of texts, which are put in order, by DuckDB."""
    asked = session()
    calls: list[object] = []
    real = machine.with_connection
    first = list(asked.query(sql, epsilon=1e4, delta=0.1))
    monkeypatch.setattr(machine, "with_connection", lambda *given, **how: calls.append(given) or real(*given, **how))
    assert list(asked.query(sql, epsilon=1e4, delta=0.1)) == first
    assert bool(calls) == ("sex" in sql)
    monkeypatch.setattr(ColumnProjection, "rows", lambda *_given: None)
    assert list(asked.query(sql, epsilon=1e4, delta=0.1)) == first


ONE_ROW = Header("a", (("s", Type.TEXT), ("d", Type.DATE), ("t", Type.TIMESTAMP), ("x", Type.REAL)), 1, least=1)


@pytest.mark.parametrize("text", ["it's", "", "a\nb -- c", "\\n", "日本; DROP", "with \0 in it", None])
def test_a_row_is_said_exactly(text: str | None):
    """In the text of the statement, or in a table where no text says it."""
    cells = np.empty(1, dtype=object)
    cells[0] = text
    there = np.array([text is not None])
    vectors = (
        Vector(cells, there),
        Vector(np.array([-3])),
        Vector(np.array([1_234_567])),
        Vector(np.array([0.1 + 0.2])),
    )
    frame = Frame(tuple(name for name, _ in ONE_ROW.columns), tuple(kind for _, kind in ONE_ROW.columns), vectors)
    common = 'WITH __cte_0 AS (SELECT * FROM "a") SELECT *, 1 AS one FROM __cte_0'
    for sql in ('SELECT s, d, t, x, 1 AS one FROM "a"', common):
        rows = run(bound(sql, [ONE_ROW]), {"a": frame})
        assert rows.vectors[0].values.tolist() == [text or ""]
        assert rows.vectors[0].where_valid().tolist() == [text is not None]
        assert [each.values.tolist() for each in rows.vectors[1:]] == [[-3], [1_234_567], [0.1 + 0.2], [1]]
