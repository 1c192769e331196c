"""SQL over answers that its own constants make fail is refused before the charge; what depends on answers is not."""

from __future__ import annotations

import pandas as pd
import pytest

import dpsql
from dpsql.errors import PostprocessFailed, UnsupportedSQL

COUNTS = "(SELECT job, COUNT(*) AS n FROM people GROUP BY job)"
BEFORE = "LAG(n) OVER (ORDER BY job)"


def session() -> dpsql.Session:
    people = pd.DataFrame({"job": ["a", "b", "c"] * 20})
    table = dpsql.Table(people, keys={"job": ["a", "b", "c"]})
    return dpsql.Session({"people": table}, budget=dpsql.Budget(epsilon=100))


@pytest.mark.parametrize(
    "item",
    [
        "LAG(n, 1, 'none') OVER (ORDER BY job)",
        "LEAD(n, 1, DATE '2024-01-01') OVER (ORDER BY job)",
        "NTH_VALUE(n, 'second') OVER (ORDER BY job)",
        f"COALESCE({BEFORE}, 'none')",
        f"{BEFORE} = 'none'",
        f"{BEFORE} IN (1, 'none')",
        f"{BEFORE} + 'none'",
        f"ROUND({BEFORE}, 'none')",
        f"{BEFORE} + LENGTH(CAST(MAKE_DATE(2024, 13, 1) AS TEXT))",
        f"{BEFORE} + FACTORIAL(100)",
        f"{BEFORE} + (9223372036854775807 + 1)",
    ],
)
def test_constants_that_always_fail_are_refused_before_the_charge(item: str):
    asked = session()
    with pytest.raises(UnsupportedSQL, match="whatever the answers are"):
        asked.query(f"SELECT job, {item} AS v FROM {COUNTS}", epsilon=1)
    with pytest.raises(UnsupportedSQL, match="whatever the answers are"):
        asked.quote(f"SELECT job, {item} AS v FROM {COUNTS}", epsilon=1)
    assert asked.spent.epsilon == 0


@pytest.mark.parametrize(
    "item",
    [
        "LAG(n, 1, 0) OVER (ORDER BY job)",
        "LAG(job, 1, 'none') OVER (ORDER BY job)",
        f"{BEFORE} || 'none'",
        f"CHR(CAST({BEFORE} + 60 AS INTEGER))",
        f"MAKE_DATE(2024, CAST({BEFORE} / 20 AS INTEGER) + 1, 1)",
    ],
)
def test_what_some_answers_pass_is_asked(item: str):
    assert len(session().query(f"SELECT job, {item} AS v FROM {COUNTS}", epsilon=50)) == 3


def test_what_fails_on_some_answers_is_charged_and_handed_over():
    asked = session()
    with pytest.raises(PostprocessFailed) as caught:
        asked.query(f"SELECT job, IF({BEFORE} > 3, CHR(-5), 'few') AS v FROM {COUNTS}", epsilon=50)
    assert len(caught.value.answers) == 1
    assert asked.spent.epsilon == 50
