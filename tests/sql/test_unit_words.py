"""Columns named like units of time and keywords, and keywords in small letters."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta

import duckdb
import pandas as pd
import pytest
from sqlglot.tokens import TokenType

import dpsql
from dpsql.errors import QueryRefused
from dpsql.sql.syntax.parse import _DIALECT, parse
from dpsql.sql.syntax.postprocess_grammar import check_separated
from tests.sql.test_fuzz import CORPUS

NAMES = ("day", "month", "date", "year", "week", "hour", "minute", "second", "quarter", "timestamp", "time", "datetime",
         "count", "user", "name", "type", "key", "value", "first", "row", "range", "d", "m", "mon", "dd")  # fmt: skip
FORMS = (
    "DATE_TRUNC('MONTH', {c}) = TIMESTAMP '2024-03-01'",
    "DATE_TRUNC('Day', t.{c}) = TIMESTAMP '2024-03-01'",
    "DATETRUNC('month', {c}) = TIMESTAMP '2024-03-01'",
    "DATE_DIFF('DAY', {c}, x) > 10",
    "DATE_DIFF('day', x, {c}) > 10",
    "DATEDIFF('month', day, {c}) > 2",
    "DATE_DIFF('hour', {c}, month) > 2",
    "DATE_PART('YEAR', {c}) = 2024",
    "DATEPART('month', {c}) = 3",
    "EXTRACT(month FROM {c}) = 3",
    "MONTH({c}) = 3",
    "{c} + INTERVAL 1 DAY > TIMESTAMP '2024-06-01'",
    "CAST({c} AS DATE) = DATE '2024-03-01'",
    "LAST_DAY({c}) = DATE '2024-03-31'",
)
_RANDOM = random.Random(2)
_HOURS = [[datetime(2024, 1, 1) + timedelta(hours=_RANDOM.randint(0, 8000)) for _ in range(80)] for _ in NAMES]
FRAME = pd.DataFrame(dict(zip(NAMES, map(pd.to_datetime, _HOURS), strict=True))).astype("datetime64[us]")
FRAME["x"] = pd.Series([datetime(2024, 6, 1)] * 80).astype("datetime64[us]")


@pytest.mark.parametrize("name", NAMES)
def test_a_column_may_be_named_like_a_unit(name: str) -> None:
    with duckdb.connect() as connection:
        connection.register("t", FRAME)
        for form in FORMS:
            sql = f"SELECT COUNT(*) FROM t WHERE {form.format(c=name)}"
            expected = connection.sql(sql).fetchall()[0][0]
            assert dpsql.query({"t": FRAME}, sql, epsilon=1e9).df.iloc[0, 0] == expected, sql


def test_upper_case_units_and_a_column_of_that_name_make_groups() -> None:
    sql = "SELECT DATE_TRUNC('MONTH', month) AS cut, COUNT(*) AS n FROM t GROUP BY cut ORDER BY cut"
    answer = dpsql.query({"t": FRAME}, sql, epsilon=1e9, bounds={"month": ("2024-01-01", "2024-12-31")})
    with duckdb.connect() as connection:
        connection.register("t", FRAME)
        expected = {row[0]: row[1] for row in connection.sql(sql).fetchall()}
    assert {m: n for m, n in zip(answer.df["cut"], answer.df["n"], strict=True) if n} == expected


def _changed(sql: str, change: Callable[[str], str]) -> str:
    text = list(sql)
    for token in _DIALECT.tokenize(sql):
        if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            text[token.start : token.end + 1] = change(sql[token.start : token.end + 1])
    return "".join(text)


def _accepted(sql: str) -> str:
    try:
        check_separated(parse(sql))
    except QueryRefused as error:
        return error.message.casefold()
    return ""


FRAMES = [
    f"SELECT job, SUM(COUNT(*)) OVER (ORDER BY job {frame}) FROM t GROUP BY job"
    for frame in (
        "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
        "ROWS UNBOUNDED PRECEDING",
        "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "GROUPS BETWEEN CURRENT ROW AND 2 FOLLOWING EXCLUDE CURRENT ROW",
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES",
    )
]


@pytest.mark.parametrize("change", [str.lower, str.upper, str.capitalize])
def test_keywords_may_be_written_in_any_case(change: Callable[[str], str]) -> None:
    for sql in [*CORPUS, *FRAMES]:
        try:
            changed = _changed(sql, change)
        except Exception:  # noqa: BLE001 - texts that are no words
            continue
        assert _accepted(changed) == _accepted(sql), changed


@pytest.mark.parametrize("frame", ["rows between 1 preceding and 1 following", "rows unbounded preceding"])
def test_frames_in_small_letters_are_answered(frame: str) -> None:
    sql = f"select day(day) as k, sum(count(*)) over (order by day(day) {frame}) as s from t group by k order by k"
    answer = dpsql.query({"t": FRAME}, sql, epsilon=1e9)
    upper = dpsql.query({"t": FRAME}, sql.replace(frame, frame.upper()), epsilon=1e9)
    assert (answer.df["s"] - upper.df["s"]).abs().max() < 1e-3
    inside = (
        "SELECT SUM(CLAMP(n, 0, 3)) FROM (SELECT day, COUNT(*) OVER (PARTITION BY day ORDER BY x {}) AS n FROM t) q"
    )
    asked = [
        dpsql.query({"t": FRAME}, inside.format(each), epsilon=1e9, unit="day", max_rows=2)
        for each in (frame, frame.upper())
    ]
    assert asked[0].df.iloc[0, 0] == asked[1].df.iloc[0, 0]
