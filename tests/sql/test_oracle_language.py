"""The language's clauses against DuckDB: what one SELECT, sub-queries, groups, answers of answers and parameters mean.

On a frame of NumPy's dtypes, and on the same rows in nullable, categorical and Arrow ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql
from tests.sql.oracle import matched, same_rows
from tests.sql.oracle_queries import GROUPED, ORDERED, PARAMETERS, whole
from tests.sql.people import ask, cells, duck, frame

DELTA = 1e-9
NOISE = 1e-4


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return frame()


@pytest.fixture(scope="module")
def oracle(people: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    return duck(people)


@pytest.mark.parametrize(("sql", "theirs"), whole())
def test_one_row(sql: str, theirs: str | None, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    expected = oracle.execute(theirs or sql).fetchall()
    ours = list(ask(people, sql))
    assert len(ours) == len(expected) == 1
    assert matched(ours, expected, NOISE) == ([], []), f"{ours} is not {expected}"


def in_groups(data: Any, oracle: duckdb.DuckDBPyConnection, keys: int, sql: str, theirs: str | None) -> list[Any]:
    """The answer, after its groups are compared: those that DuckDB lacks have a count of 0 after their keys."""
    expected = oracle.execute(theirs or sql).fetchall()
    ours = list(ask(data, sql))
    unmet, missing = matched(ours, expected, NOISE)
    assert not missing, f"{missing} are not in {ours}"
    assert all(row[keys] == 0 for row in unmet), f"{unmet} are not in {expected}"
    return ours


@pytest.mark.parametrize(("keys", "shown", "sql", "theirs"), GROUPED)
def test_by_group(
    keys: int, shown: int, sql: str, theirs: str | None, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection
):
    assert len(in_groups(people, oracle, keys, sql, theirs)) == shown


@pytest.mark.parametrize(("sql", "theirs"), ORDERED)
def test_in_order(sql: str, theirs: str | None, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    expected = oracle.execute(theirs or sql).fetchall()
    ours = list(ask(people, sql, delta=DELTA))
    assert same_rows(ours, expected, NOISE), f"{ours} is not {expected}"


@pytest.mark.parametrize(("sql", "params", "theirs"), PARAMETERS)
def test_parameters(
    sql: str, params: dict[str, Any], theirs: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection
):
    expected = oracle.execute(theirs).fetchall()
    ours = list(ask(people, sql, params=params))
    assert same_rows(ours, expected, NOISE), f"{ours} is not {expected}"


# The same rows in other dtypes.


def nullable(data: pd.DataFrame) -> pd.DataFrame:
    """pandas' own nullable dtypes."""
    return data.drop(columns="o").convert_dtypes().assign(o=data["o"])[list(data.columns)]


def categorical(data: pd.DataFrame) -> pd.DataFrame:
    """Every column but the mixed one as a category, of which one is never used where it is text."""
    stored = {name: data[name].astype("category") for name in data.columns if name != "o"}
    for name in ("s", "x"):
        stored[name] = stored[name].cat.add_categories(["never"])
    return pd.DataFrame({name: stored.get(name, data[name]) for name in data.columns})


def narrow(data: pd.DataFrame) -> pd.DataFrame:
    """Small integers and floats, times in seconds, text as objects."""
    kinds = {"i": "int8", "j": "uint8", "n": "Int16", "r": "float32", "u": "float32", "s": "object", "x": "object"}
    return data.astype(kinds).assign(d=data["d"].astype("datetime64[s]"), e=data["e"].astype("datetime64[ns]"))


def arrow(data: pd.DataFrame) -> pd.DataFrame:
    """Arrow's dtypes, dates as dates."""
    pa = pytest.importorskip("pyarrow")
    stored = data.drop(columns="o").convert_dtypes(dtype_backend="pyarrow").assign(o=data["o"])
    days = {name: stored[name].astype(pd.ArrowDtype(pa.date32())) for name in ("d", "e")}
    return stored.assign(**days)[list(data.columns)]


NEVER_NULL = ("i", "j", "b")
"""Columns whose dtype cannot hold NULL in the first frame, so that there is no NULL group."""
STORED: list[Callable[[pd.DataFrame], pd.DataFrame]] = [nullable, categorical, narrow, arrow]


@pytest.mark.parametrize("stored", STORED)
def test_other_dtypes_hold_the_same_rows(stored: Callable[[pd.DataFrame], pd.DataFrame], people: pd.DataFrame):
    data = stored(people)
    assert list(data.columns) == list(people.columns)
    assert set(map(str, data.dtypes)) != set(map(str, people.dtypes))
    assert cells(data) == cells(people)


@pytest.mark.parametrize("stored", STORED)
def test_other_dtypes_give_the_same_answers(
    stored: Callable[[pd.DataFrame], pd.DataFrame], people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection
):
    data = dpsql.Table(stored(people), nullable=dict.fromkeys(NEVER_NULL, False))
    for sql, theirs in whole()[::3]:
        expected = oracle.execute(theirs or sql).fetchall()
        assert matched(list(ask(data, sql)), expected, NOISE) == ([], []), sql
    for keys, shown, sql, theirs in GROUPED[::3]:
        assert len(in_groups(data, oracle, keys, sql, theirs)) == shown, sql
    for sql, theirs in ORDERED[::5]:
        expected = oracle.execute(theirs or sql).fetchall()
        assert same_rows(list(ask(data, sql, delta=DELTA)), expected, NOISE), sql


def test_a_frame_without_rows_answers_everything(people: pd.DataFrame):
    none = people.iloc[:0]
    oracle = duck(none)
    for keys, shown, sql, theirs in GROUPED[::4]:
        assert len(in_groups(none, oracle, keys, sql, theirs)) == shown, sql
    for sql, _theirs in whole()[::4]:
        assert len(list(ask(none, sql))) == 1, sql
    (row,) = list(ask(none, "SELECT COUNT(*), SUM(i), COUNT_IF(b), COUNT(x) FILTER (WHERE b) FROM t"))
    assert row == (0, 0, 0, 0)


# Bugs once: words that stand for a unit and for a part, NULL beside a date and a text, powers with constant exponents.
ONCE_WRONG = [
    "SELECT COUNT(DATE_TRUNC('day', w)), COUNT(EXTRACT(day FROM w)) FROM t",
    "SELECT COUNT(w + INTERVAL 1 DAY), SUM(DAY(w)) FROM t",
    "SELECT COUNT(*) FROM t WHERE d IN ('2020-02-01', '2020-02-03', NULL)",
    "SELECT COUNT(CASE WHEN b THEN d WHEN nb THEN '2020-01-01' END) FROM t",
    "SELECT COUNT(COALESCE(NULL, d, '2020-01-01')) FROM t",
    "SELECT COUNT(LEAST(d, '2020-01-01', NULL)) FROM t",
    "SELECT COUNT(POWER(y, 0.5)) FROM (SELECT -1 * EXP(1000 + j) AS y FROM t) AS q",
    "SELECT SUM(CASE WHEN b THEN 1 ELSE IF(nb, 2, 3) END) FROM t",
    "SELECT COUNT(*) FROM t WHERE d <= w + INTERVAL 5 DAY HAVING COUNT(*) > 0.5",
]


@pytest.mark.parametrize("sql", ONCE_WRONG)
def test_what_was_wrong_once(sql: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    assert same_rows(list(ask(people, sql)), oracle.execute(sql).fetchall())


def test_a_key_that_is_null_beside_one_outside_its_list(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    key = "CASE WHEN c IS NULL THEN nb ELSE TRUE END AS k"
    in_groups(people, oracle, 1, f"SELECT {key}, COUNT(*) FROM t WHERE c IS DISTINCT FROM 'green' GROUP BY k", None)
