"""Completed years, months and days beside DuckDB's, where the two could differ: leap days, ends of months, times of
day, and a second time that comes first."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql

UNITS = ["century", "decade", "year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"]
PARTS = [
    "century",
    "decade",
    "year",
    "quarter",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
]
EDGES = [
    "2000-02-28 00:00:00", "2000-02-29 00:00:00", "2000-02-29 12:00:00.000001", "2000-03-01 00:00:00",
    "1999-12-31 23:59:59.999999", "2000-01-31 10:00:00", "2000-01-30 12:00:00", "2023-02-28 10:00:00",
    "2023-02-28 23:59:59", "2024-02-29 00:00:00", "2023-04-30 11:00:00", "2023-03-31 11:00:00", "2023-05-31 10:59:59",
]  # fmt: skip


def pairs() -> pd.DataFrame:
    edges = [datetime.fromisoformat(text) for text in EDGES]
    near = [edge + timedelta(seconds=step) for edge in edges for step in (-1, 0, 86_400)]
    rng = np.random.default_rng(5)
    some = [datetime(1990, 1, 1) + timedelta(seconds=int(each)) for each in rng.integers(0, 1_000_000_000, 400)]
    both = [
        *itertools.product(edges, near),
        *zip(some[:200], some[200:], strict=True),
        (edges[0], None),
        (None, edges[0]),
    ]
    held = pd.DataFrame(both, columns=["a", "b"]).astype("datetime64[us]")
    return held.assign(c=held.a.dt.normalize(), d=held.b.dt.normalize(), id=range(len(held)))


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return pairs()


def sums(people: pd.DataFrame, exprs: list[str], engine: str) -> list[int]:
    """How many rows fulfil each of some conditions."""
    days = ("1960-01-01", "2040-01-01")
    bounds = {"a": days, "b": days, "c": days, "d": days, "id": (0, 10_000)}
    table = dpsql.Table(people, bounds=bounds, types={"c": "date", "d": "date"})
    held = dpsql.Session({"t": table}, budget=dpsql.Budget(10**9), engine=engine)
    listed = ", ".join(f"COUNT_IF({each})" for each in exprs)
    (row,) = held.query(f"SELECT {listed} FROM t", epsilon=10**7)  # noise is below a half
    return [int(each) for each in row]


def check(people: pd.DataFrame, calls: list[str], engine: str) -> None:
    """Some values of every call, by how many rows have each."""
    connection = duckdb.connect()
    connection.register("frame", people)
    connection.sql("CREATE TABLE t AS SELECT a, b, CAST(c AS DATE) AS c, CAST(d AS DATE) AS d, id FROM frame")
    columns = ", ".join(f"{call} AS v{place}" for place, call in enumerate(calls))
    truth = connection.sql(f"SELECT {columns} FROM t ORDER BY id").df()
    expected: dict[str, int] = {}
    for place, call in enumerate(calls):
        counts = truth[f"v{place}"].dropna().astype("int64").value_counts()
        expected |= {f"{call} = {value}": int(rows) for value, rows in counts.iloc[:3].items()}
        expected[f"{call} > {counts.index[0]}"] = int(counts[counts.index > counts.index[0]].sum())
    for first in range(0, len(expected), 40):
        asked = dict([*expected.items()][first : first + 40])
        assert dict(zip(asked, sums(people, [*asked], engine), strict=True)) == asked


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_completed_units_are_those_of_duckdb(people: pd.DataFrame, engine: str):
    calls = [f"DATE_SUB('{unit}', {first}, {second})" for unit in UNITS for first, second in (("a", "b"), ("c", "d"))]
    check(people, calls, engine)


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_parts_of_ages_are_those_of_duckdb(people: pd.DataFrame, engine: str):
    calls = [f"EXTRACT({part} FROM AGE({end}, {start}))" for part in PARTS for start, end in (("a", "b"), ("c", "d"))]
    check(people, calls, engine)


def test_ages_are_compared_with_intervals_as_in_duckdb(people: pd.DataFrame):
    conditions = [f"AGE(b, a) {sign} INTERVAL {amount}" for sign, amount in itertools.product(
        ("<", "<=", ">", "="), ("1 MONTH", "30 DAY", "31 DAY", "23 YEAR", "'-2' MONTH", "0 DAY"))]  # fmt: skip
    connection = duckdb.connect()
    connection.register("t", people)
    truth = connection.sql(f"SELECT {', '.join(f'COUNT_IF({each})' for each in conditions)} FROM t").fetchall()[0]
    assert sums(people, conditions, "pandas") == sums(people, conditions, "duckdb") == [*truth]


def test_nobody_is_of_age_before_the_birthday():
    """As people are counted who are 18: DATE_DIFF counts borders of years."""
    born = pd.to_datetime(["2006-06-15", "2006-06-16", "2004-02-29", "2006-12-31"]).repeat(50)
    table = dpsql.Table(
        pd.DataFrame({"born": born}), types={"born": "date"}, bounds={"born": ("1920-01-01", "2024-01-01")}
    )
    sql = """SELECT COUNT_IF(DATE_SUB('year', born, DATE '2024-06-15') >= 18) AS adults,
        COUNT_IF(AGE(DATE '2024-06-15', born) >= INTERVAL 18 YEAR) AS of_age FROM t"""
    row = dpsql.query({"t": table}, sql, epsilon=1e6).df.iloc[0]
    assert (row.adults, row.of_age) == (100, 100)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT AVG(b - a) FROM t", "AVG(b - a) is in microseconds"),
        ("SELECT SUM(b - a), MEDIAN(b - a), MIN(b - a), MAX(a - b) FROM t", "MAX(a - b) are in microseconds"),
        ("SELECT AVG(x) FROM (SELECT id, MAX(b - a) AS x FROM t GROUP BY id)", "AVG(x) is in microseconds"),
        ("SELECT AVG(CLAMP(b - c, 0, 1000)) FROM t", "is in microseconds"),
        ("SELECT AVG(b - a) FILTER (WHERE a > c) FROM t", "is in microseconds"),
        ("SELECT AVG(EXTRACT(epoch FROM b - a)), AVG(d - c), COUNT(b - a) FROM t", ""),
        ("SELECT AVG((b - a) / 86400000000) FROM t", ""),
    ],
)
def test_an_average_of_times_says_its_unit(people: pd.DataFrame, sql: str, said: str):
    facts: dict[str, Any] = {
        "types": {"c": "date", "d": "date"},
        "bounds": dict.fromkeys(["a", "b", "c", "d"], ("1960-01-01", "2040-01-01")),
    }
    tables = [dpsql.Table(rows, unit="id", max_rows=1, **facts) for rows in (people, people.iloc[:0])]
    notes = [dpsql.query({"t": table}, sql, epsilon=1).warnings for table in tables]
    units = [[note for note in each if "microseconds" in note] for each in notes]
    assert units[0] == units[1]
    assert said in "".join(units[0]) if said else units[0] == []


def test_an_answer_over_answers_has_completed_years_too(people: pd.DataFrame):
    """There DuckDB computes them."""
    held = dpsql.Session(
        {"t": dpsql.Table(people, bounds={"a": ("2000-01-01", "2001-12-31")})}, budget=dpsql.Budget(10)
    )
    sql = (
        "WITH months AS (SELECT DATE_TRUNC('month', a) AS m, COUNT(*) AS n FROM t WHERE a IS NOT NULL GROUP BY m) "
        "SELECT m, DATE_SUB('year', m, TIMESTAMP '2024-01-15') AS y FROM months ORDER BY m LIMIT 1"
    )
    assert [row[1] for row in held.query(sql, epsilon=1)] == [24]
