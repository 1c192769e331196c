"""A parameter may stand wherever the text may have a number or a text: over people's rows and over answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import dpsql
from dpsql.errors import DPSQLError
from tests.plan.oracle_functions import written
from tests.sql import people

LITERAL = re.compile(r"[A-Z]+ '[^']*'|INTERVAL \d+|'(?:[^']|'')*'|(?<![\w.'])\d+(?:\.\d+)?(?![\w.'])")
"""Texts and numbers; those after a word belong to it, as in DATE '2020-01-31' and INTERVAL 3 DAY."""
PRIVATE = {
    "n": "SELECT SUM(CLAMP({}, 0, 9)) FROM people",
    "t": "SELECT COUNT(*) FROM people WHERE {} = 'a'",
    "b": "SELECT COUNT(*) FROM people WHERE {}",
    "d": "SELECT COUNT(*) FROM people WHERE {} > DATE '2020-01-01'",
    "w": "SELECT COUNT(*) FROM people WHERE {} > TIMESTAMP '2020-01-01'",
}
OVER_ANSWERS = (
    "SELECT {} AS y FROM (SELECT COUNT(*) AS n, 2 AS i, 3 AS j, 1.5 AS r, 'ab' AS x, 'b' AS o, DATE '2020-01-01' AS d, "
    "DATE '2020-02-01' AS e, TIMESTAMP '2020-01-01' AS w, TIMESTAMP '2020-01-01' AS v, TRUE AS b FROM people) q"
)
BUCKETS = ("WIDTH_BUCKET(i, 0, 10, 5)", "WIDTH_BUCKET(n, 1, 7, 3)")
STATEMENTS = (
    "SELECT WIDTH_BUCKET(r, 0, 5, 5) AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT j // 2 AS k, COUNT(*) FROM people GROUP BY k",
    "SELECT SUM(ROUND(r, 1)) FROM people",
    "SELECT QUANTILE_CONT(i, 0.5) FROM people",
    "SELECT QUANTILE_CONT(i, [0.25, 0.5]) FROM people",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY i) FROM people",
    "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY n) AS y FROM (SELECT j, COUNT(*) AS n FROM people GROUP BY j)",
    "SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY n) AS y FROM (SELECT j, COUNT(*) AS n FROM people GROUP BY j)",
    "SELECT j, COUNT(*) AS n FROM people GROUP BY j ORDER BY n LIMIT 3",
)
WORDS = re.compile(r"DECIMAL\([^)]*:p|INTERVAL :p\b|DATE_TRUNC\(:p|DATE_?DIFF\(:p|ORDER BY :p")
"""Units, sizes of types and places in SELECT are words of the language, no values."""


def texts() -> Iterator[str]:
    for each in written():
        yield PRIVATE[each.kind].format(each.ours)
        yield OVER_ANSWERS.format(each.ours)
    for bucket in BUCKETS:
        yield PRIVATE["n"].format(bucket)
        yield OVER_ANSWERS.format(bucket)
    yield from STATEMENTS


def with_parameters(sql: str) -> Iterator[tuple[str, Any]]:
    """The text with each constant in turn as a parameter, and its value. Those of the text around are left."""
    for found in LITERAL.finditer(sql):
        text = found[0]
        if text[0].isalpha():
            continue
        asked = f"{sql[: found.start()]}:p{sql[found.end() :]}"
        if text.startswith("'"):
            yield asked, text[1:-1].replace("''", "'")
        else:
            yield asked, float(text) if "." in text else int(text)


@pytest.fixture(scope="module")
def session() -> dpsql.Session:
    table = dpsql.Table(people.frame(), bounds=people.BOUNDS, keys=people.KEYS, types=people.TYPES)
    return dpsql.Session({"people": table}, budget=dpsql.Budget(1e9, 1e-3))


def refused(session: dpsql.Session, sql: str, params: dict[str, Any] | None = None) -> str:
    try:
        session.explain(sql, epsilon=1, params=params)
    except DPSQLError as error:
        return str(error)
    return ""


def check(session: dpsql.Session, sql: str) -> None:
    if refused(session, sql):
        return  # it belongs to another kind of query
    for asked, value in with_parameters(sql):
        if not WORDS.search(asked):
            assert not refused(session, asked, {"p": value}), (asked, value)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_each_constant_may_be_a_parameter(part: int, session: dpsql.Session) -> None:
    for sql in list(dict.fromkeys(texts()))[part::8]:
        check(session, sql)


@pytest.mark.parametrize("sql", [*STATEMENTS, *(OVER_ANSWERS.format(each) for each in BUCKETS),
    PRIVATE["t"].format("STRFTIME(w, '%Y-%m')"), PRIVATE["t"].format("REGEXP_REPLACE(x, 'a', 'z', 'g')"),
    PRIVATE["n"].format("DATE_PART('year', w)"), PRIVATE["n"].format("DATE_SUB('year', d, e)"),
    OVER_ANSWERS.format("DATE_PART('month', w)")])  # fmt: skip
def test_a_parameter_stands_for_the_constant(sql: str, session: dpsql.Session) -> None:
    assert not refused(session, sql)
    check(session, sql)
    for asked, value in with_parameters(sql):
        if not WORDS.search(asked):
            for sign in ("$p", ":p"):
                assert not refused(session, asked.replace(":p", sign), {"p": value})


def test_the_answer_is_that_of_the_constants(session: dpsql.Session) -> None:
    bucket = "SELECT WIDTH_BUCKET(r, {}, {}, {}) AS k, COUNT(*) AS n FROM people GROUP BY k"
    plain = session.query(bucket.format(-1.5, 5, 5), epsilon=1e6).df
    given = session.query(bucket.format(":low", "$high", ":n"), epsilon=1e6, params={"low": -1.5, "high": 5, "n": 5}).df
    assert plain.to_numpy().tolist() == given.to_numpy().tolist()


@pytest.mark.parametrize(("low", "high", "buckets"), [(5, 0, 5), (0, 5, 0), (0, 5, 1.5), (None, 5, 5), ("a", 5, 5)])
def test_a_value_that_is_no_such_constant_is_refused(low: Any, high: Any, buckets: Any, session: dpsql.Session) -> None:
    sql = "SELECT WIDTH_BUCKET(r, :low, :high, :n) AS k, COUNT(*) FROM people GROUP BY k"
    assert "WIDTH_BUCKET takes a value" in refused(session, sql, {"low": low, "high": high, "n": buckets})
