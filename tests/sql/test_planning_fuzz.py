"""Statements of a random grammar: each has a plan, or is refused by the library in its own words.

DPSQL_FUZZ=20 asks for twenty times as many.
"""

from __future__ import annotations

import os
import random
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpsql
from dpsql.errors import DPSQLError, InternalError
from tests.sql.statement_grammar import PARAMS, fuzz_session, written

TIMES = int(os.environ.get("DPSQL_FUZZ", "1"))


@cache
def session() -> dpsql.Session:
    return fuzz_session()


def plan(sql: str) -> bool:
    """Whether a text has a plan. Raises what is no refusal."""
    read = {name: value for name, value in PARAMS.items() if f":{name}" in sql or f"${name}" in sql}
    try:
        session().quote(sql, epsilon=1, params=read or None)
    except InternalError as error:
        raise AssertionError(f"{error}\n{sql}") from None
    except DPSQLError:
        return False
    return True


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Mostly statements that have a plan."""
    depth, odd = draw(st.integers(3, 6)), draw(st.sampled_from([60, 20, 6]))
    return written("statement", lambda below: draw(st.integers(0, below - 1)), depth=depth, odd=odd)


@settings(max_examples=60 * TIMES, deadline=None, suppress_health_check=list(HealthCheck))
@given(statements())
def test_a_statement_has_a_plan_or_a_refusal(sql: str):
    plan(sql)


def drawn(seed: int) -> str:
    chance = random.Random(seed)
    return written("statement", chance.randrange, depth=chance.choice([3, 4, 5, 6]), odd=chance.choice([6, 20, 60]))


def test_many_statements_of_the_grammar_have_a_plan():
    """Else the test above says little."""
    assert sum(plan(drawn(seed)) for seed in range(80)) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_a_hundred_thousand_statements_have_a_plan_or_a_refusal(block: int):
    for seed in range(block * 1000, block * 1000 + 1000):
        plan(drawn(seed))


MENDED = (
    "SELECT sex AS k, SUM(age, epsilon => 0.5), COALESCE(COUNT(*), 0), SUM(COUNT(*)) OVER () FROM people GROUP BY k",
    "SELECT MAD((SELECT COUNT(*) FROM people)) AS a FROM people",
    "WITH r AS (SELECT sex AS k, QUANTILE(POWER(age, 2), [0.1, 'F']) AS a FROM people GROUP BY 1) SELECT k FROM r",
    "SELECT k, n FROM (SELECT sex AS k, COUNT(*) AS n FROM people GROUP BY k) ORDER BY COUNT(*)",
    "WITH x AS (SELECT *, (SELECT COUNT(*) FROM people) AS x1 FROM people) SELECT sex, MAD(age) FROM x GROUP BY sex",
    "WITH x AS (SELECT age, (SELECT MAX(age) FROM people) FROM people) SELECT SUM(3 < (SELECT AVG(age) FROM x)) FROM x",
    "SELECT sex AS k, MODE() IS NULL AS m FROM people SEMI JOIN visits ON pid = who GROUP BY k",
)  # fmt: skip


@pytest.mark.parametrize("sql", MENDED)
def test_statements_that_had_neither(sql: str):
    plan(sql)


def test_a_call_with_named_arguments_stands_beside_a_window():
    quote = session().quote(MENDED[0], epsilon=1)
    assert quote.cost.epsilon == 1


def test_no_text_of_an_analyst_is_logged(caplog: pytest.LogCaptureFixture):
    assert not plan("WITH x AS (EXPLAIN PRIVACY SELECT COUNT(*) FROM people) SELECT * FROM x")
    plan("SELECT DISTINCT sex FROM people UNION ALL BY NAME WITH x AS (SELECT 1) SELECT * FROM x;")
    assert not caplog.records
