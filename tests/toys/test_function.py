"""A new function is one record, in a file of dpsql/plan/functions/: here a toy one, asked for in a query and compared
with DuckDB's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import MissingBounds, SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.expressions import Fact, Function
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.functions.rules import always, in_result_type, strict, strict_fact
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval
from dpsql.session import prepare
from dpsql.sql.syntax import spellings
from tests.plan.records import Use, check, grid
from tests.plan.samples import NARROW


def _distance(a: Interval, b: Interval) -> Interval:
    least = max(0.0, a.lower - b.upper, b.lower - a.upper)
    return Interval(least, max(a.upper - b.lower, b.upper - a.lower))


def _apart_is_nan(*facts: Fact) -> bool:
    return not all(each.range.bounded for each in facts)


APART = Function(
    "apart", (2, 2), always(Type.REAL), strict_fact(_distance, _apart_is_nan), strict(lambda a, b: np.abs(a - b)),
    "APART({args})", "two numbers",
    sql=in_result_type("ABS({0} - {1})"),
    syntax=("APART",),
)  # fmt: skip


@pytest.fixture(autouse=True)
def record(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The record's line in FUNCTIONS of its file. All else follows from it: how it is written is read from it here as
    it is when the package is loaded."""
    monkeypatch.setitem(FUNCTIONS, APART.name, APART)
    _nodes, names = spellings._read()
    monkeypatch.setitem(spellings.NAMES, "APART", names["APART"])
    prepare._cache.clear()
    yield
    prepare._cache.clear()


FRAME = pd.DataFrame({"x": [1.0, 7.5, None, 3.25, 100.0], "y": [4, 2, 5, 3, -100], "g": ["a", "b", "a", "b", "a"]})


def session() -> dpsql.Session:
    table = dpsql.Table(FRAME, bounds={"x": (0, 10), "y": (0, 5)}, keys={"g": ["a", "b"]})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1e7))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(APART(x, y)) AS v FROM t",
        "SELECT AVG(apart(x, 2) + 1) AS v FROM t WHERE APART(y, 4) < 2",
        "SELECT g, COUNT(*) AS v FROM t WHERE APART(x, y) >= 1 GROUP BY g ORDER BY g",
        "SELECT FLOOR(APART(y, 5)) AS d, COUNT(*) AS v FROM t GROUP BY d ORDER BY d",
    ],
)
def test_a_query_uses_it_from_text_to_answer(sql: str):
    t = FRAME.assign(x=FRAME["x"].clip(0, 10), y=FRAME["y"].clip(0, 5))
    connection = duckdb.connect()
    connection.register("t", t)
    connection.execute("CREATE MACRO apart(a, b) AS abs(a - b)")
    expected = connection.sql(sql).df()
    found = session().query(sql, epsilon=1e4).df
    rows = (
        found.merge(expected, on=[name for name in found if name != "v"], how="outer")
        if len(found.columns) > 1
        else None
    )
    if rows is None:
        assert found["v"].tolist() == pytest.approx(expected["v"].tolist(), abs=0.01)
    else:
        assert rows["v_x"].tolist() == pytest.approx(rows["v_y"].fillna(0).tolist(), abs=0.01)


def test_its_range_bounds_a_sum():
    explained = session().explain("SELECT SUM(APART(x, y)) AS v FROM t", epsilon=1)
    assert "APART(x, y)" in str(explained)
    (half_width,) = (each["interval_95"] for each in explained.to_dict()["columns"])
    assert half_width == pytest.approx(10 * math.log(20), rel=0.05)  # Laplace noise of scale 10: |x - y| <= 10
    unbounded = dpsql.Session({"t": FRAME}, budget=dpsql.Budget(1), auto_bounds=False)
    with pytest.raises(MissingBounds):
        unbounded.query("SELECT SUM(APART(x, y)) FROM t", epsilon=1)


def test_its_arguments_are_checked():
    for sql, error, words in (
        ("SELECT SUM(APART(x)) FROM t", SQLSyntaxError, "APART takes 2 arguments, got 1"),
        ("SELECT SUM(APART(x, g)) FROM t", TypeMismatch, "two numbers"),
        ("SELECT SUM(APERT(x, y)) FROM t", UnsupportedSQL, "APART"),
    ):
        with pytest.raises(error, match=words):
            session().query(sql, epsilon=1)


@pytest.mark.parametrize("kinds", [(Type.REAL, Type.REAL), (Type.INTEGER, Type.REAL), (Type.INTEGER, Type.INTEGER)])
def test_kernel_facts_and_sql_say_the_same(kinds: Sequence[Type]):
    use = Use(APART, tuple(kinds))
    for ranges in ({}, NARROW):
        assert check(use, grid(use, ranges, nullable=True))
        assert check(use, grid(use, ranges, nullable=False))


def test_an_answer_of_it_is_given_again_free():
    held = session()
    first, second = (held.query("SELECT SUM(APART(x, y)) AS v FROM t", epsilon=1) for _ in range(2))
    assert first.df.equals(second.df)
    assert held.spent.epsilon == 1
