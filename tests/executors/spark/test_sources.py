"""Frames of Spark and Parquet files as tables: recognised by their kind, read once, and nothing of the owner's session
changes an answer or is changed by one."""

from __future__ import annotations

import shutil
import sys
import traceback
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.errors import InternalError, InvalidSchema, TypeMismatch, UnsupportedSQL
from dpsql.executors.spark import binding, executor
from dpsql.executors.spark import session as sessions
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, differences, session

FACTS: dict[str, Any] = {
    "unit": "who",
    "max_rows": 3,
    "max_groups": 2,
    "bounds": {"x": (0, 6), "r": (-1, 1)},
    "keys": {"g": ["a", "b"]},
}
QUERIES = [
    "SELECT COUNT(*), SUM(x), AVG(r) FROM t",
    "SELECT g, COUNT(*), COUNT(DISTINCT who) FROM t GROUP BY g",
    "SELECT d, COUNT(*) FROM t WHERE s >= TIMESTAMP '2020-01-03 12:00:00' OR s IS NULL GROUP BY d",
    "SELECT MEDIAN(x) FROM t",
    "SELECT COUNT(*) FROM t AS one JOIN t AS other ON one.who = other.who WHERE one.x > other.x",
    "SELECT SUM(m), COUNT(w) FROM t",
]


def rows_of(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(8)

    def some(cells: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([cells[k] for k in rng.integers(0, len(cells), rows)], kind)

    return pa.table(
        {
            "who": some([*range(70), None], pa.int32()),
            "g": some(["a", "b", "c", None], pa.string()),
            "x": some([*range(9), None], pa.int64()),
            "r": some([0.25, -0.5, float("nan"), float("inf"), None], pa.float64()),
            "d": some([date(2020, 1, day) for day in range(1, 5)], pa.date32()),
            "s": some([datetime(2020, 1, day, 12) for day in range(1, 5)] + [None], pa.timestamp("us")),
            "m": some([Decimal("1.50"), Decimal("-7.25"), None], pa.decimal128(10, 2)),
            "w": some([True, False, None], pa.bool_()),
        }
    )


def declared(source: Any) -> dpsql.Table:
    return dpsql.Table(source, **{**FACTS, "bounds": {**FACTS["bounds"], "m": (-8, 8)}})


@pytest.fixture
def held(spark: Any) -> Any:
    return spark.createDataFrame(rows_of())


def test_a_frame_of_spark_is_a_table(held: Any):
    asked = session({"t": declared(held)}, "auto")
    assert asked._engine.name == "spark"
    assert differences(asked, session({"t": declared(rows_of())}, "pandas"), QUERIES) == []
    answer = dpsql.query({"t": declared(held)}, "SELECT COUNT(*) AS n FROM t", epsilon=1e6)
    assert answer.df["n"].round().tolist() == [
        insecure_exact(asked, "SELECT COUNT(*) FROM t", KEY, **TERMS).parts[()][0]
    ]


def test_parquet_files_on_spark(tmp_path: Path):
    table = rows_of()
    folder = tmp_path / "year=2020 x"
    folder.mkdir()
    for number, start in enumerate(range(0, 300, 100)):
        pq.write_table(table.slice(start, 100), folder / f"part {number}.parquet")
    asked = session({"t": declared(folder / "*.parquet")}, "spark")
    assert differences(asked, session({"t": declared(table)}, "pandas"), QUERIES) == []


@pytest.mark.parametrize("name", ["_part.parquet", ".part.parquet", "a,b.parquet", "a[1].parquet", "a:b.parquet"])
def test_files_that_spark_would_not_see_are_refused(name: str, tmp_path: Path):
    pq.write_table(rows_of(), tmp_path / name)
    with pytest.raises(InvalidSchema, match="Spark does not read a file that is named"):
        session({"t": dpsql.Table(tmp_path / name.replace("[", "[[]"))}, "spark")


def test_files_that_change_are_named(tmp_path: Path):
    path = tmp_path / "t.parquet"
    pq.write_table(rows_of(), path)
    asked = session({"t": declared(path)}, "spark")
    pq.write_table(rows_of(200), path)
    with pytest.raises(InvalidSchema, match=r"t.parquet has changed since it was opened. Nothing was charged"):
        asked.query(QUERIES[0], epsilon=1)
    assert asked.ledger() == ()


def test_settings_and_names_of_the_owner_stay(held: Any, spark: Any):
    before = {row[0]: row[1] for row in spark.sql("SET").collect()}
    spark.udf.register("md5", lambda _text: "0" * 32)
    spark.createDataFrame(pa.table({"a": [1]})).createOrReplaceTempView("stored0")
    try:
        asked = session({"t": declared(held)}, "auto")
        assert differences(asked, session({"t": declared(rows_of())}, "pandas"), QUERIES[:2]) == []
        assert {row[0]: row[1] for row in spark.sql("SET").collect()} == before
        assert [each.name for each in spark.catalog.listTables()] == ["stored0"]
        assert spark.sql("SHOW VIEWS IN global_temp").collect() == spark.sql("SHOW VIEWS").collect()
        assert [each.name for each in sessions.own_session(spark).catalog.listTables()] == []
    finally:
        spark.catalog.dropTempView("stored0")
        spark.sql("DROP TEMPORARY FUNCTION md5")


def test_a_frame_that_differs_each_time_is_run_once(spark: Any):
    """Two readings of a random frame would not agree: that of the pairs of rows of which both are one."""
    frame = spark.range(400).selectExpr("id AS who", "CAST(rand() * 1000000 AS BIGINT) AS x")
    asked = session({"t": dpsql.Table(frame, unit="who", max_rows=1, bounds={"x": (0, 1_000_000)})}, "auto")
    sql = "SELECT COUNT(*) FROM t AS one JOIN t AS other ON one.who = other.who WHERE one.x = other.x"
    assert insecure_exact(asked, sql, KEY, **TERMS).parts[()][0] == 400


def test_text_is_compared_by_its_bytes(spark: Any):
    frame = spark.sql(
        "SELECT COLLATE(g, 'UTF8_LCASE') AS g FROM VALUES ('a'), ('A'), ('b'), (CAST(X'FF' AS STRING)) AS t(g)"
    )
    asked = session({"t": dpsql.Table(frame)}, "auto")
    found = insecure_exact(asked, "SELECT g, COUNT(*) FROM t GROUP BY g", KEY, **TERMS).parts
    assert {group: parts[0] for group, parts in found.items()} == {("a",): 1, ("A",): 1, ("b",): 1, (None,): 1}


def test_times_are_those_of_utc(spark: Any):
    """The owner's session has another zone."""
    text = "SELECT TIMESTAMP '2020-01-01 23:00:00' AS s, TIMESTAMP_NTZ '2020-01-01 23:00:00' AS n"
    asked = session({"t": dpsql.Table(spark.sql(text))}, "auto")
    found = insecure_exact(
        asked, "SELECT DAY(s) AS d, HOUR(s) AS h, HOUR(n) AS k, COUNT(*) FROM t GROUP BY d, h, k", KEY, **TERMS
    )
    assert list(found.parts) == [(2, 4, 23)]


def test_no_row_can_make_a_cast_fail(spark: Any):
    frame = spark.sql(
        "SELECT * FROM VALUES "
        "(CAST('inf' AS DOUBLE), CAST('99999999999999999999' AS DECIMAL(38, 0)), DATE '9999-12-31'),"
        " (CAST('nan' AS DOUBLE), CAST('-1' AS DECIMAL(38, 0)), DATE '0001-01-01'), (1e300D, NULL, DATE '-0001-01-01'),"
        " (CAST(-3 AS DOUBLE), NULL, NULL) AS t(f, c, d)"
    )
    types = {"f": "integer", "c": "integer", "d": "timestamp"}
    asked = session({"t": dpsql.Table(frame, types=types)}, "auto")
    for name, wanted in (("f", {None: 3, -3: 1}), ("c", {-1: 1, None: 3})):
        found = insecure_exact(asked, f"SELECT {name}, COUNT(*) FROM t GROUP BY {name}", KEY, **TERMS).parts
        assert {group[0]: parts[0] for group, parts in found.items()} == wanted
    assert len(insecure_exact(asked, "SELECT d, COUNT(*) FROM t GROUP BY d", KEY, **TERMS).parts) == 3


def test_what_spark_lacks_is_refused_before_the_charge(held: Any):
    asked = session({"t": declared(held)}, "auto")
    for sql, word in (
        ("SELECT COUNT(*) FROM t WHERE g LIKE g", "LIKE with a pattern that is no constant"),
        ("SELECT CAST(r AS TEXT) AS k, COUNT(*) FROM t GROUP BY k", "CAST of a REAL to text"),
    ):
        with pytest.raises(UnsupportedSQL, match=f"the engine spark, which reads these tables, has no {word}"):
            asked.query(sql, epsilon=1, delta=1e-6)
    assert asked.ledger() == ()


def test_large_public_tables_are_refused_before_the_charge(held: Any, monkeypatch: pytest.MonkeyPatch):
    public = dpsql.Table(pd.DataFrame({"g": ["a", "b"], "n": [1, 2]}), public=True, unique=["g"])
    asked = session({"t": declared(held), "p": public}, "auto")
    sql = "SELECT p.n, COUNT(*) FROM t JOIN p ON t.g = p.g GROUP BY p.n"
    assert len(insecure_exact(asked, sql, KEY, **TERMS).parts) == 2
    monkeypatch.setattr(binding, "MOST_PUBLIC", 1)
    binding._lacking.cache_clear()
    with pytest.raises(UnsupportedSQL, match="no public tables of more than 1 rows"):
        asked.query(sql, epsilon=1)
    binding._lacking.cache_clear()
    assert asked.ledger() == ()


def test_tables_of_two_engines_are_refused(held: Any, tmp_path: Path):
    pq.write_table(rows_of(), tmp_path / "t.parquet")
    tables = {"t": declared(held), "o": declared(tmp_path / "t.parquet")}
    with pytest.raises(InvalidSchema, match="is read by the engine"):
        session(tables, "auto")
    asked = session(tables, "spark")
    assert len(insecure_exact(asked, "SELECT COUNT(*) FROM t JOIN o ON t.who = o.who", KEY, **TERMS).parts) == 1
    with pytest.raises(InvalidSchema, match="asked for"):
        session({"t": declared(held)}, "duckdb")


def test_a_run_that_dies_keeps_the_charge_and_quotes_no_cell(held: Any, monkeypatch: pytest.MonkeyPatch):
    asked = session({"t": declared(held)}, "auto")
    honest = executor.compile_plan

    def failing(*given: Any) -> Any:
        return replace(honest(*given), text="SELECT 0, raise_error(g) FROM stored0")

    monkeypatch.setattr(executor, "compile_plan", failing)
    with pytest.raises(InternalError, match="the run failed .*What it cost stays spent") as caught:
        asked.query("SELECT g, COUNT(*) FROM t GROUP BY g", epsilon=1)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "USER_RAISED" not in "".join(traceback.format_exception(caught.value))
    assert asked.spent.epsilon == 1


def test_missing_java_is_one_clear_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda *_given, **_more: None)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    with pytest.raises(InvalidSchema, match="Spark needs Java 17") as caught:
        session({"t": dpsql.Table(pd.DataFrame({"x": [1]}))}, "spark")
    assert "apt-get install openjdk-17-jre-headless" in str(caught.value)


def test_a_missing_extra_is_one_clear_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(InvalidSchema, match="Spark is not installed") as caught:
        session({"t": dpsql.Table(pd.DataFrame({"x": [1]}))}, "spark")
    assert 'pip install "dpsql[spark]"' in str(caught.value)


def test_whole_numbers_of_more_than_64_bits_are_exact_or_refused(spark: Any):
    frame = spark.sql(
        "SELECT CAST(x AS DECIMAL(20, 0)) AS h FROM VALUES ('18446744073709551615'), ('9223372036854775808'), ('-7') "
        "AS t(x)"
    )
    asked = session({"t": dpsql.Table(frame)}, "auto")
    with pytest.raises(TypeMismatch, match="cannot be computed exactly"):
        asked.query("SELECT COUNT(*) FROM t WHERE h // 10 = 0", epsilon=1)
    conditions = {"h = 9223372036854775808": 1, "h IN (18446744073709551615, -7, 5)": 2, "h % 10 = -7": 1, "h < 0": 1}
    for condition, wanted in conditions.items():
        assert insecure_exact(asked, f"SELECT COUNT(*) FROM t WHERE {condition}", KEY, **TERMS).parts[()][0] == wanted
    assert insecure_exact(asked, "SELECT COUNT(DISTINCT h) FROM t", KEY, **TERMS).parts[()][0] == 3
    asked = session({"t": dpsql.Table(frame, types={"h": "text"})}, "auto")
    found = insecure_exact(asked, "SELECT h, COUNT(*) FROM t GROUP BY h", KEY, **TERMS).parts
    assert set(found) == {("18446744073709551615",), ("9223372036854775808",), ("-7",)}
    asked = session({"t": dpsql.Table(frame, bounds={"h": (-9, 9)}, types={"h": "integer"})}, "auto")
    found = insecure_exact(asked, "SELECT h, COUNT(*) FROM t GROUP BY h", KEY, **TERMS).parts
    assert {group[0]: parts[0] for group, parts in found.items() if parts[0]} == {9: 2, -7: 1}
    asked = session({"t": dpsql.Table(frame, unit="h", max_rows=1)}, "auto")
    assert insecure_exact(asked, "SELECT COUNT(DISTINCT h) FROM t", KEY, **TERMS).parts[()][0] == 3
