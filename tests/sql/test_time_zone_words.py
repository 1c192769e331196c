"""Types with a time zone, in every place and misspelling: refused by whole sentences, none of which is the parser's."""

from __future__ import annotations

import inspect
import re
from itertools import product

import pandas as pd
import pytest
import sqlglot.generator
from sqlglot.generators import duckdb as sqlglot_duckdb

import dpsql
from dpsql.errors import DPSQLError

ZONED = ("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH", "TIMESTAMPLTZ", "TIMETZ", "TIMESTAMP(3)",
    "TIMESTAMPTZ(3)", "TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP_TZ")  # fmt: skip
VALUES = ("'2024-01-01 00:00:00+02'", "d", "")
FORMS = ("EXTRACT(YEAR FROM {z} {v})", "EXTRACT({z} {v})", "EXTRACT({z} FROM d)",
    "EXTRACT(YEAR FROM d AT TIME ZONE {z})",
    "EXTRACT(YEAR FROM CAST(d AS {z}))", "EXTRACT(YEAR FROM d::{z})", "CAST({z} {v})", "CAST({v} AS {z})",
    "CAST({v} {z})", "{z} {v}", "{z} {v} AT TIME ZONE 'UTC'", "{z}({v})", "DATE_TRUNC('day', {z} {v})",
    "EXTRACT(YEAR FROM {z} {v} AT TIME)")  # fmt: skip
QUERIES = (
    "SELECT COUNT(*) FROM t WHERE {} > 1",
    "SELECT {} AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT {} FROM (SELECT COUNT(*) AS n FROM t) q",
)
SQLGLOT = re.compile(r"may produce|transpil|Unsupported|DuckDB does not|Expected|Required keyword|unsupported")


@pytest.fixture(scope="module")
def session() -> dpsql.Session:
    frame = pd.DataFrame({"d": pd.to_datetime(["2024-01-01"] * 3), "s": ["2024-01-01 00:00:00+02"] * 3})
    return dpsql.Session({"t": frame}, budget=dpsql.Budget(1e9))


@pytest.mark.parametrize("zoned", ZONED)
def test_no_sentence_of_the_parser_is_shown(zoned: str, session: dpsql.Session) -> None:
    for value, form, query in product(VALUES, FORMS, QUERIES):
        sql = query.format(form.format(z=zoned, v=value))
        message = refusal(session, sql)
        assert message.endswith((".", "?")), (sql, message)
        assert not SQLGLOT.search(message), (sql, message)
        bare = re.sub('"[()]"', "", message)
        assert bare.count("(") == bare.count(")"), (sql, message)


def refusal(session: dpsql.Session, sql: str) -> str:
    try:
        session.explain(sql, epsilon=1)
    except DPSQLError as error:
        return error.message
    return "answered."


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t WHERE CAST(d AS TIMESTAMPTZ) > d",
        "SELECT COUNT(*) FROM t WHERE d > TIMESTAMPTZ '2024-01-01 00:00:00+02'",
        "SELECT COUNT(*) FROM t WHERE d > TIMESTAMP WITH TIME ZONE '2024-01-01 00:00:00+02'",
        "SELECT EXTRACT(YEAR FROM TIMESTAMPTZ '2024-01-01') AS y FROM (SELECT COUNT(*) AS n FROM t) q",
        "SELECT CAST('2024-01-01' AS TIMESTAMP WITH TIME ZONE) AS y FROM (SELECT COUNT(*) AS n FROM t) q",
    ],
)
def test_a_type_with_a_zone_is_refused_with_what_to_write(sql: str, session: dpsql.Session) -> None:
    with pytest.raises(DPSQLError, match=r"Write TIMESTAMP: TIMESTAMP '2024-01-31 10:30:00\+02:00'"):
        session.explain(sql, epsilon=1)


def test_the_remedy_is_read_as_utc(session: dpsql.Session) -> None:
    for text in ("TIMESTAMP '2024-01-01 00:00:00+02:00'", "CAST(s AS TIMESTAMP)"):
        sql = f"SELECT COUNT(*) FROM t WHERE {text} = TIMESTAMP '2023-12-31 22:00:00'"
        assert session.query(sql, epsilon=1e6).df.iloc[0, 0] == 3


def test_the_printer_has_sentences_that_are_longer_than_a_name() -> None:
    """What dpsql takes from them is the name of a function at most."""
    texts = re.findall(
        r"unsupported\(\s*f?\"([^\"]*)", inspect.getsource(sqlglot.generator) + inspect.getsource(sqlglot_duckdb)
    )
    assert len(texts) > 40
    assert any("may produce different results due to timezone" in text for text in texts)
