"""STRFTIME, TO_CHAR, TIME_BUCKET over the oldest and the newest times there are, cell by cell against DuckDB."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, SQLSyntaxError, TypeMismatch, UnsupportedSQL
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call
from dpsql.schema.calendar import MICROSECONDS_A_DAY, timestamp_of
from dpsql.schema.columns import Type
from dpsql.schema.declaration import Declaration, resolve
from dpsql.sources.frames import stored_columns
from dpsql.sql import plan_of
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.rewrite.time_formats import STRFTIME
from tests.plan.records import vector
from tests.plan.samples import SAMPLES, randoms

TIMES = [*SAMPLES[Type.TIMESTAMP], *randoms(Type.TIMESTAMP)[:150]]
FRAME = pd.DataFrame({"t": pd.to_datetime(["2024-01-01"]), "d": pd.to_datetime(["2024-01-01"])})
CATALOG = Catalog({"x": resolve("x", stored_columns(FRAME), Declaration.of({}, {}, {"d": "date"}))})


def ours(text: str) -> list[Any]:
    """What an expression over t (a timestamp) and d (its day) is for all samples."""
    argument = plan_of(f"SELECT COUNT({text}) FROM x", CATALOG)[0].query.plan.aggregations[0].argument
    assert isinstance(argument, Call)
    days = [None if each is None else each // MICROSECONDS_A_DAY for each in TIMES]
    blocks = {"t": vector(Type.TIMESTAMP, TIMES), "d": vector(Type.DATE, days)}
    found = evaluate(argument, lambda column: blocks[column.name], len(TIMES))
    return [cell if valid else None for cell, valid in zip(found.values.tolist(), found.where_valid(), strict=True)]


@cache
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE x (k INTEGER, t TIMESTAMP, d DATE)")
    rows = [(k, None if each is None else timestamp_of(each)) for k, each in enumerate(TIMES)]
    connection.executemany("INSERT INTO x SELECT ?, v, CAST(v AS DATE) FROM (SELECT CAST(? AS TIMESTAMP) AS v)", rows)
    return connection


def theirs(text: str) -> list[Any]:
    return [cell for (cell,) in oracle().execute(f"SELECT {text} FROM x ORDER BY k").fetchall()]


CODES = [code for code in STRFTIME if code != "%Q"]  # that one is BigQuery's


@pytest.mark.parametrize("column", ["t", "d"])
@pytest.mark.parametrize("form", [*CODES, "".join(CODES), "%Y-%m-%d %H:%M:%S", "a %Y/%m %H:%S", "%d%m%Y", "%H:%M%p%%"])
def test_a_format_is_duckdbs(form: str, column: str):
    text = f"STRFTIME({column}, '{form}')"
    assert ours(text) == theirs(text)


@pytest.mark.parametrize("width", ["1 day", "7 days", "13 hours", "1 second", "4 microseconds", "1 month", "5 months",
                                   "3 years", "1 quarter", "2 weeks", "400 years", "999 days"])  # fmt: skip
@pytest.mark.parametrize("column", ["t", "d"])
def test_a_bucket_is_duckdbs_from_year_1_on(width: str, column: str):
    kind = "TIMESTAMP" if column == "t" else "DATE"
    text = f"TIME_BUCKET(INTERVAL '{width}', {column})"
    unit = "epoch_us" if column == "t" else "86400000000 * DATE_DIFF('day', DATE '1970-01-01', "
    numbers = theirs(f"{unit}({text})" if column == "t" else f"{unit}{text})")
    first = theirs(f"epoch_us({kind} '0001-01-01')")[0]
    expected = [None if each is None or each < first else each for each in numbers]
    found = [each if column == "t" or each is None else each * MICROSECONDS_A_DAY for each in ours(text)]
    assert found == expected


def test_an_origin_is_where_buckets_begin():
    text = "TIME_BUCKET(INTERVAL '10 hours', t, TIMESTAMP '2020-02-29 03:30:00')"
    first = theirs("epoch_us(TIMESTAMP '0001-01-01')")[0]
    expected = [None if each is None or each < first else each for each in theirs(f"epoch_us({text})")]
    assert ours(text) == expected
    assert ours(text.replace("TIME_BUCKET", "DATE_BIN")) == expected


WRITTEN = [
    ("YYYY-MM-DD HH24:MI:SS", "%Y-%m-%d %H:%M:%S"), ("yyyy/mm", "%Y/%m"), ("Mon YY", "%b %y"),
    ("HH12:MI AM", "%I:%M %p"),
    ("FMMonth FMDD", "%B %-d"), ("Dy, DD", "%a, %d"), ('"Year" YYYY', "Year %Y"), ("IYYY-IW", "%G-%V"), ("DDD", "%j"),
]  # fmt: skip


@pytest.mark.parametrize(("postgres", "duckdbs"), WRITTEN)
def test_postgres_codes(postgres: str, duckdbs: str):
    assert ours(f"TO_CHAR(t, '{postgres}')") == theirs(f"STRFTIME(t, '{duckdbs}')")


def test_names_in_full_are_padded_and_follow_the_case_of_their_code():
    assert ours("TO_CHAR(t, 'MONTH')")[1] == "FEBRUARY "
    assert ours("TO_CHAR(t, 'day')")[1] == "saturday "
    assert ours("TO_CHAR(t, 'Q')") == [None if each is None else str(each) for each in theirs("QUARTER(t)")]
    assert ours("FORMAT_DATE('%Y, %Q', d)") == theirs("YEAR(d)::VARCHAR.lpad(4, '0') || ', ' || QUARTER(d)")


def months(form: str, bounds: tuple[str, str] = ("2023-11-10", "2024-02-03")) -> list[Any]:
    table = dpsql.Table(FRAME[["t"]], bounds={"t": bounds}, nullable={"t": False})
    answer = dpsql.query({"x": table}, f"SELECT {form} AS k, COUNT(*) FROM x GROUP BY 1", epsilon=1)
    return [row[0] for row in answer]


def test_public_groups_are_those_of_the_finest_code():
    listed = ["2023-11", "2023-12", "2024-01", "2024-02"]
    assert months("STRFTIME(t, '%Y-%m')") == listed
    assert sorted(months("TO_CHAR(t, 'MM/YYYY')")) == sorted(f"{each[5:]}/{each[:4]}" for each in listed)
    assert sorted(months("STRFTIME(t, '%b %Y')")) == ["Dec 2023", "Feb 2024", "Jan 2024", "Nov 2023"]
    assert len(months("STRFTIME(t, '%Y-%m-%d')")) == 86
    assert months("STRFTIME(t, '%Y')") == ["2023", "2024"]
    assert months("STRFTIME(t, '%H')", ("1950-01-01", "2024-01-01")) == [f"{hour:02}" for hour in range(24)]


def test_public_groups_of_buckets_are_the_buckets():
    weeks = months("TIME_BUCKET(INTERVAL '2 weeks', t)")
    assert weeks == [datetime(2023, 11, 6) + pd.Timedelta(days=14 * k) for k in range(len(weeks))]
    assert 6 <= len(weeks) <= 8
    assert months("TIME_BUCKET(INTERVAL '2 months', t)") == [datetime(2023, 11, 1), datetime(2024, 1, 1)]


REFUSED = [
    (UnsupportedSQL, "STRFTIME(t, '%U')", "not known"),
    (UnsupportedSQL, "STRFTIME(t, 'x%')", "not known"),
    (UnsupportedSQL, "TO_CHAR(t, 'YYYY J')", "not known"),
    (SQLSyntaxError, "STRFTIME(t, 'year')", "without a code"),
    (UnsupportedSQL, "STRFTIME(t, 't' || '%Y')", "constant text"),
    (TypeMismatch, "STRFTIME(1, '%Y')", "format"),
    (SQLSyntaxError, "TIME_BUCKET(INTERVAL 0 DAY, t)", "wider than nothing"),
    (UnsupportedSQL, "TIME_BUCKET(INTERVAL 1 MONTH, t, DATE '2020-01-15')", "origin"),
    (UnsupportedSQL, "t > INTERVAL 3 DAY", "INTERVAL stands only"),
    (UnsupportedSQL, "EXTRACT(day FROM t) > INTERVAL 3 DAY", "INTERVAL stands only"),
    (DPSQLError, "EXTRACT(week FROM t - d)", ""),
]


@pytest.mark.parametrize(("kind", "text", "words"), REFUSED)
def test_refusals(kind: type[DPSQLError], text: str, words: str):
    with pytest.raises(kind) as caught:
        plan_of(f"SELECT COUNT({text}) FROM x", CATALOG)
    assert words in str(caught.value)
