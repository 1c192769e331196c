"""Statements of which a part is missing: a syntax error with its place, decided by the text, and never a fault."""

from __future__ import annotations

import random

import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, SQLSyntaxError
from tests.sql.test_fuzz import CORPUS, EMPTY, FACTS, given, words

EMPTY_SELECTS = """
SELECT
SELECT FROM t
SELECT DISTINCT FROM t
SELECT WITH DIFFERENTIAL_PRIVACY FROM t
FROM t SELECT
EXPLAIN PRIVACY SELECT
(SELECT)
SELECT COUNT(*) FROM (SELECT) AS q
SELECT COUNT(*) FROM (SELECT FROM t) AS q
SELECT COUNT(*) FROM (FROM t SELECT) AS q
SELECT COUNT(*) FROM select
SELECT COUNT(*) FROM t, select
SELECT COUNT(*) FROM t JOIN (SELECT) AS q ON TRUE
SELECT COUNT(*) FROM t ASOF JOIN select ON TRUE
SELECT COUNT(*) FROM t, LATERAL (SELECT) AS q
SELECT SUM(select) FROM t
SELECT COUNT(select) FROM t
SELECT COUNT(*), (SELECT) FROM t
SELECT COALESCE((SELECT), 1) FROM t
SELECT CAST((SELECT) AS INTEGER) FROM t
SELECT CASE WHEN (SELECT) THEN 1 END FROM t
SELECT SUM(CASE WHEN age > 5 THEN (SELECT) ELSE 0 END) FROM t
SELECT COUNT(*) FROM t WHERE age > (SELECT)
SELECT COUNT(*) FROM t WHERE age IN (SELECT)
SELECT COUNT(*) FROM t WHERE (age, s) IN (SELECT)
SELECT COUNT(*) FROM t WHERE EXISTS (SELECT)
SELECT COUNT(*) FROM t WHERE EXISTS (SELECT FROM t)
SELECT COUNT(*) FROM t WHERE age > ALL (SELECT)
SELECT COUNT(*) FROM t GROUP BY (SELECT)
SELECT COUNT(*) FROM t HAVING (SELECT)
SELECT COUNT(*) FROM t ORDER BY (SELECT)
SELECT COUNT(*) FROM t LIMIT (SELECT)
SELECT COUNT(*) FROM t UNION ALL SELECT
SELECT UNION ALL SELECT COUNT(*) FROM t
SELECT COUNT(*) FROM (SELECT age FROM t UNION ALL SELECT) AS q
SELECT COUNT(*) FROM t INTERSECT SELECT
WITH q AS (SELECT) SELECT COUNT(*) FROM q
WITH q AS (SELECT DISTINCT), r AS (SELECT 1) SELECT COUNT(*) FROM t
SELECT COUNT(*) FROM (VALUES ((SELECT))) AS v
SELECT COUNT(*) FROM UNNEST((SELECT)) AS u
PIVOT (SELECT) ON s IN ('a') USING COUNT(*)
SELECT AVG(age, contribution_bounds_per_row => (SELECT)) FROM t
SELECT * FROM (SELECT COUNT(*) AS n FROM t) AS q JOIN (SELECT) AS r ON TRUE
""".strip().splitlines()
OTHERS = {
    "SELECT COUNT(*) FROM (VALUES ()) AS v": "is empty",
    "SELECT COUNT(*) FROM (VALUES (1), ()) AS v": "is empty",
    "SELECT COUNT(*) FROM (SELECT *) AS q": "has no FROM",
    "SELECT COUNT(*) FROM t WHERE age IN (SELECT *)": "has no FROM",
}
PIECES = ["(SELECT)", "select", "()", "(VALUES ())", "[]", "(SELECT *)", "(SELECT FROM t)", "(FROM)", "CASE END",
    "OVER ()", "ROLLUP ()", "UNNEST()", "CAST()", "EXISTS ()", "INTERVAL", "x ->", "::", "WITHIN GROUP ()"]  # fmt: skip
CHANGES = 400


@pytest.mark.parametrize("sql", EMPTY_SELECTS)
def test_an_empty_select_is_named(sql: str):
    with pytest.raises(SQLSyntaxError, match="a SELECT has nothing to select") as refused:
        dpsql.query({"t": pd.DataFrame({"age": [1], "s": ["a"]})}, sql, epsilon=1)
    span = refused.value.span
    assert span is not None
    assert span.sql[span.start : span.end + 1].upper() in ("SELECT", "DISTINCT", "DIFFERENTIAL_PRIVACY")
    assert "SELECT COUNT(*)" in refused.value.hint


@pytest.mark.parametrize("sql", OTHERS)
def test_an_empty_list_is_named(sql: str):
    with pytest.raises(SQLSyntaxError, match=OTHERS[sql]) as refused:
        dpsql.query({"t": pd.DataFrame({"age": [1], "s": ["a"]})}, sql, epsilon=1)
    assert refused.value.span is not None


def shortened(seed: int) -> str:
    """A query of the corpus that breaks off, has lost words, or has an empty piece in it."""
    rng = random.Random(seed)
    text = words(rng.choice(CORPUS))
    place = rng.randrange(len(text))
    change = rng.randrange(4)
    if change == 0:
        text = text[: place + 1]
    elif change == 1:
        del text[place : place + rng.randint(1, 4)]
    elif change == 2:
        text[place : place + rng.randint(0, 3)] = [rng.choice(PIECES)]
    else:
        openings = [at for at, word in enumerate(text) if word == "("]
        if openings:
            first = rng.choice(openings)
            depths = [0]
            for word in text[first:]:
                depths.append(depths[-1] + (word == "(") - (word == ")"))
            text[first + 1 : first + depths.index(0, 1) - 1] = rng.choice([[], ["SELECT"], ["SELECT", "*"]])
    return " ".join(text)


def test_statements_that_break_off_are_answered_or_refused():
    held = dpsql.Session({"t": dpsql.Table(EMPTY, **FACTS)}, budget=dpsql.Budget(1e9, 0.5))
    outcomes = [outcome(held, shortened(seed)) for seed in range(CHANGES)]
    assert [(seed, shortened(seed)) for seed, each in enumerate(outcomes) if each == "InternalError"] == []
    assert outcomes.count("answer") < CHANGES // 2


def outcome(held: dpsql.Session, sql: str) -> str:
    """ "answer", or the name of the refusal; other exceptions are raised."""
    try:
        held.query(sql, epsilon=1, delta=1e-6, params=given(sql))
    except DPSQLError as error:
        return type(error).__name__
    return "answer"
