"""Nothing of the owner's session changes an answer or is changed by one; what Spark says of an error stays there."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import InternalError, InvalidSchema, UnsupportedSQL
from dpsql.executors.spark import binding
from dpsql.executors.spark import session as sessions
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, differences, session
from tests.executors.spark.conftest import OWNERS

ODD_NAMES = ["a.b", "`", "a`b.c", ".*", "f0_0", "ı", "i", "K.", "größe", "x y", "select", "c1", '"', "𝒳"]


def counted(table: dpsql.Table, sql: str) -> dict[Any, int]:
    found = insecure_exact(session({"t": table}, "auto"), sql, KEY, **TERMS).parts
    return {group: parts[0] for group, parts in found.items()}


def test_no_setting_of_the_owners_is_kept_but_of_work(spark: Any):
    own = sessions.own_session(spark)
    held = own.conf.getAll
    said = {
        name: value for name, value in held.items() if name.startswith("spark.sql.") and own.conf.isModifiable(name)
    }
    others = said.keys() - sessions.SETTINGS.keys()
    assert all(name.startswith((*sessions._OF_WORK, *sessions._OF_DATA)) for name in others), others
    assert {name: own.conf.get(name) for name in sessions.SETTINGS} == sessions.SETTINGS
    assert held["spark.sql.shuffle.partitions"] == "2"
    for name, value in OWNERS.items():
        assert spark.conf.get(name) == value
        assert name in sessions.SETTINGS or name not in held


def test_work_is_done_as_the_owner_says(spark: Any):
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    try:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        spark.conf.set("spark.sql.legacy.setopsPrecedence.enabled", "true")
        own = sessions.own_session(spark)
        assert own.conf.get("spark.sql.autoBroadcastJoinThreshold") == "-1"
        assert own.conf.get("spark.sql.legacy.setopsPrecedence.enabled") == "false"
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)
        spark.conf.unset("spark.sql.legacy.setopsPrecedence.enabled")


def test_columns_of_all_names(spark: Any):
    """Names that are patterns, parts of others, or the same, to Spark."""
    rows = pa.table({name: [place, place, 99] for place, name in enumerate(ODD_NAMES)})
    frame = spark.createDataFrame(rows)
    for place, name in enumerate(ODD_NAMES):
        quoted = '"' + name.replace('"', '""') + '"'
        other = ODD_NAMES[place - 1].replace('"', '""')
        table = dpsql.Table(frame, unit=f'"{other}"', max_rows=5)
        assert counted(table, f"SELECT COUNT(*) FROM t WHERE {quoted} = {place}") == {(): 2}


def test_names_that_are_the_same_to_dpsql_are_refused(spark: Any):
    for names in (["a", "A"], ["ß", "ss"]):
        with pytest.raises(InvalidSchema):
            session({"t": dpsql.Table(spark.createDataFrame(pa.table({name: [1] for name in names})))}, "auto")
    with pytest.raises(InvalidSchema):
        session({"t": dpsql.Table(spark.sql("SELECT 1 AS a, 2 AS a"))}, "auto")


def test_frames_of_two_sessions_are_refused(spark: Any):
    rows = pa.table({"who": [1, 2], "x": [3, 4]})
    one, other = (
        dpsql.Table(held.createDataFrame(rows), unit="who", max_rows=1) for held in (spark, spark.newSession())
    )
    assert len(session({"t": one, "o": one}, "auto").tables) == 2
    for engine in ("auto", "spark"):
        with pytest.raises(InvalidSchema, match=r"o and t are frames of two sessions of Spark"):
            session({"t": one, "o": other}, engine)
    with pytest.raises(InvalidSchema, match="two sessions of Spark"):
        dpsql.query({"t": one, "o": other}, "SELECT COUNT(*) FROM t JOIN o USING (who)", epsilon=1)
    asked = session({"t": one}, "auto")
    with pytest.raises(InvalidSchema, match="two sessions of Spark"):
        asked.add("o", other)
    assert asked.query("SELECT COUNT(*) FROM t", epsilon=1)
    again = type(spark)(spark.sparkContext, spark._jsparkSession)  # another object of the same session
    assert session({"t": one, "o": dpsql.Table(again.createDataFrame(rows), unit="who", max_rows=1)}, "auto")


def test_a_stream_is_refused(spark: Any):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(InvalidSchema, match="a frame that streams has no end"):
        session({"t": dpsql.Table(stream)}, "auto")


def test_a_frame_that_cannot_be_handed_over_is_refused_when_it_is_opened(spark: Any, monkeypatch: pytest.MonkeyPatch):
    frame = spark.createDataFrame(pa.table({"x": [1]}))

    def refused(_self: Any, _name: str) -> None:
        raise RuntimeError("x is 1")

    monkeypatch.setattr(type(frame), "createGlobalTempView", refused)
    with pytest.raises(InvalidSchema, match=r"cannot be handed over .*\(RuntimeError\)") as caught:
        session({"t": dpsql.Table(frame)}, "auto")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_session_that_does_not_answer_is_said_before_the_charge(spark: Any, monkeypatch: pytest.MonkeyPatch):
    asked = session({"t": dpsql.Table(spark.createDataFrame(pa.table({"x": [1]})))}, "auto")
    monkeypatch.setattr(binding, "session_of_trials", object)
    binding._is_understood.cache_clear()
    with pytest.raises(UnsupportedSQL, match="has no session that answers"):
        asked.query("SELECT COUNT(*) FROM t WHERE x = 12345", epsilon=1)
    assert asked.ledger() == ()


def test_errors_of_the_owners_program_are_in_no_log(spark: Any, monkeypatch: pytest.MonkeyPatch):
    """pyspark logs an error as it is made, whoever catches it."""
    written: list[str] = []

    def write(_self: Any, record: logging.LogRecord) -> None:
        written.append(f"{record.getMessage()} {record.exc_info}")

    monkeypatch.setattr(logging.StreamHandler, "emit", write)
    frame = spark.sql("SELECT CAST(s AS INT) AS x FROM VALUES ('1'), ('the cell of somebody') AS t(s)").repartition(1)
    asked = session({"t": dpsql.Table(frame, bounds={"x": (0, 1)})}, "auto")
    with pytest.raises(InternalError, match="the run failed") as caught:
        asked.query("SELECT SUM(x) FROM t", epsilon=1)
    assert "somebody" not in "".join([*traceback.format_exception(caught.value), *written])
    with pytest.raises(Exception, match="somebody"):
        frame.collect()
    assert "somebody" in "".join(written)  # the owner's own errors are logged as before


def test_no_view_is_left(spark: Any):
    frame = spark.range(10).selectExpr("id AS who", "CAST(rand() * 9 AS INT) AS x")
    asked = session({"t": dpsql.Table(frame, unit="who", max_rows=1, bounds={"x": (0, 9)})}, "auto")
    asked.query("SELECT COUNT(*), MEDIAN(x) FROM t", epsilon=1)
    failing = spark.sql("SELECT id AS who, CAST(CONCAT('a', id) AS INT) AS x FROM RANGE(3)")
    with pytest.raises(InternalError):
        session({"t": dpsql.Table(failing, bounds={"x": (0, 9)})}, "auto").query("SELECT SUM(x) FROM t", epsilon=1)
    for held in (spark, sessions.own_session(spark)):
        assert held.sql("SHOW VIEWS IN global_temp").collect() == []


def test_tables_of_no_row_have_groups_of_none(spark: Any):
    rows = pa.table({"g": pa.array([], pa.string()), "x": pa.array([], pa.int64())})
    tables = [dpsql.Table(each, bounds={"x": (0, 9)}) for each in (spark.createDataFrame(rows), rows)]
    queries = [
        "SELECT g, COUNT(*) FROM t GROUP BY g",
        "SELECT g, MEDIAN(x) FROM t GROUP BY g",
        "SELECT MEDIAN(x) FROM t",
    ]
    assert differences(*(session({"t": each}, "auto") for each in tables), queries) == []
