"""Stages of statements: they end in the plan that is run, and leave the parsed tree as it was."""

from __future__ import annotations

from contextlib import suppress

import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidParameter, QueryRefused, UnknownColumn
from dpsql.session.session import Session
from dpsql.sql.bind.statement import bind
from dpsql.sql.compile import separate
from dpsql.sql.syntax.parse import parse
from dpsql.testing import compile_trace
from tests.sql.test_manual import blocks, declared

FRAME = pd.DataFrame({"sex": ["F", "M"] * 5, "age": range(10), "city": ["a", "b"] * 5})
TABLES = {"people": dpsql.Table(FRAME, bounds={"age": (0, 100)}, keys={"sex": ["F", "M"]})}
SEPARATED = (
    "SELECT age // 10 AS decade, COUNT(*) AS n, SUM(COUNT(*)) OVER () AS t FROM people GROUP BY decade ORDER BY decade",
    "SELECT COUNT_IF(sex = 'F') / (SELECT COUNT(*) FROM people) FROM people",
    "SELECT MAD(age) FROM people",
    "SELECT COUNT(*) FROM people UNION ALL SELECT AVG(age) FROM people",
)
WHOLE = (
    "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY ALL",
    "SELECT AVG(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY 1)",
    "SELECT COUNT(*) FROM people WHERE age = ANY([1, 2])",
)


@pytest.mark.parametrize("sql", SEPARATED)
def test_a_separated_statement_has_sql_over_its_releases(sql: str):
    trace = compile_trace(sql, TABLES)
    assert trace.plan.postprocess is not None
    assert trace.postprocess == trace.plan.postprocess.sql
    assert len(trace.releases) == len(trace.plan.releases)
    for release in trace.plan.releases:
        assert f"bind: {release.relation}" in str(trace)


@pytest.mark.parametrize("sql", WHOLE)
def test_a_whole_statement_is_its_own_release(sql: str):
    trace = compile_trace(sql, TABLES)
    assert trace.plan.postprocess is None
    assert trace.postprocess is None
    assert trace.releases == (trace.rewrite,)


def test_sugar_is_gone_after_the_rewrite():
    assert "ALL" in compile_trace(WHOLE[0], TABLES).syntax
    assert compile_trace(WHOLE[0], TABLES).rewrite.endswith("GROUP BY 1")
    assert compile_trace(WHOLE[2], TABLES).rewrite.endswith("age IN (1, 2)")


def test_parameters_and_refusals_are_those_of_a_query():
    sql = "SELECT COUNT(*) FROM people WHERE age > :least"
    assert compile_trace(sql, TABLES, params={"least": 3}).syntax.endswith("$least")
    with pytest.raises(InvalidParameter):
        compile_trace(sql, TABLES)
    with pytest.raises(UnknownColumn):
        compile_trace("SELECT COUNT(agee) FROM people", TABLES)


def test_no_pass_changes_the_parsed_tree():
    catalog = Session(declared(), budget=dpsql.Budget(epsilon=1))._catalog
    texts = [text for block in blocks("sql") for text in block.split(";") if text.strip()]
    changed = []
    for text in texts:
        try:
            statement = parse(text)
        except QueryRefused:
            continue
        before = repr(statement.select)
        for run in (bind, separate):
            with suppress(QueryRefused):
                run(statement, catalog, ())
        if repr(statement.select) != before:
            changed.append(text)
    assert len(texts) > 40
    assert changed == []
