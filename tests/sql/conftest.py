"""The several tables of join_queries, here and in DuckDB, for tests that make no tables of their own."""

from __future__ import annotations

import duckdb
import pytest

import dpsql
from tests.sql.join_queries import duck, tables


@pytest.fixture(scope="module")
def people() -> dict[str, dpsql.Table]:
    return tables()


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    return duck()
