"""Queries over several tables against DuckDB: with limits that cut nothing and next to no noise both give one answer.

DPSQL_STREAM=20000 asks that many random queries instead of the default; DPSQL_STREAM_SEED=n begins at another seed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql
from tests.language.join_queries import GROUPED, MOST, UNKNOWN, Joins, duck, one_row, queries, rows, tables
from tests.language.oracle import Row, matched

STREAM = int(os.environ.get("DPSQL_STREAM", "300"))
FIRST_SEED = int(os.environ.get("DPSQL_STREAM_SEED", "0"))
PER_TEST = 50
LARGEST_EPSILON = 1e9
DELTA = 1e-9
NOISE = 0.02
"""Sums have noise of scale MOST * 100 / 1e9, and what is added up lies on quarters."""


@pytest.fixture(scope="module")
def people() -> dict[str, dpsql.Table]:
    return tables(rows())


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    return duck(rows())


def ask(data: Mapping[str, dpsql.Table], sql: str, **options: Any) -> list[Row]:
    return list(dpsql.query(data, sql, epsilon=LARGEST_EPSILON, **options))


@pytest.mark.parametrize(("sql", "theirs"), one_row())
def test_one_row(sql: str, theirs: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    expected = oracle.execute(theirs).fetchall()
    ours = ask(people, sql)
    assert matched(ours, expected, NOISE) == ([], []), f"{ours} is not {expected}"


def by_group(ours: list[Row], expected: list[Row], keys: int) -> None:
    """DuckDB's groups, and others whose count, behind the keys, is 0."""
    unmet, missing = matched(ours, expected, NOISE)
    assert not missing, f"{missing} are not in {ours}"
    assert all(row[keys] == 0 for row in unmet), f"{unmet} are not in {expected}"


@pytest.mark.parametrize(("keys", "shown", "sql"), queries(GROUPED))
def test_by_group(keys: str, shown: str, sql: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    ours = ask(people, sql)
    by_group(ours, oracle.execute(sql).fetchall(), int(keys))
    assert len(ours) == int(shown)


@pytest.mark.parametrize(("keys", "sql"), queries(UNKNOWN))
def test_groups_of_one_person_stay_hidden(
    keys: str, sql: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection
):
    expected = [row for row in oracle.execute(sql).fetchall() if row[int(keys)] > 1]
    ours = ask(people, sql, delta=DELTA)
    assert expected
    assert matched(ours, expected) == ([], [])


@pytest.mark.parametrize("first", range(0, STREAM, PER_TEST))
def test_random_queries(first: int, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    asked = 0
    for seed in range(FIRST_SEED + first, FIRST_SEED + min(first + PER_TEST, STREAM)):
        query = Joins(seed).query()
        (size,) = oracle.execute(query.size).fetchone() or (0,)
        if size > MOST:
            continue
        expected = oracle.execute(query.sql).fetchall()
        try:
            by_group(ask(people, query.sql), expected, query.keys)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {query.sql}\n{error}") from error
        asked += 1
    assert asked > PER_TEST // 2
