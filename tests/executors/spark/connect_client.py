"""A client of Spark Connect, over a server of its own on this machine: what it finds, as JSON."""

from __future__ import annotations

import io
import json
import logging
import sys
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa

import dpsql
from dpsql.errors import InternalError, InvalidSchema
from tests.executors.contract import difference, session

FACTS: dict[str, Any] = {
    "unit": "who",
    "max_rows": 3,
    "max_groups": 2,
    "bounds": {"x": (0, 6)},
    "keys": {"g": ["a", "b"]},
}
QUERIES = [
    "SELECT COUNT(*), SUM(x) FROM t",
    "SELECT g, COUNT(*), COUNT(DISTINCT who) FROM t GROUP BY g",
    "SELECT MEDIAN(x) FROM t",
    "SELECT COUNT(*) FROM t AS one JOIN t AS other ON one.who = other.who WHERE one.x > other.x",
]


def found() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "America/Lima")
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.parser.quotedRegexColumnNames", "true")
    draw = np.random.default_rng(1)
    rows = pa.table(
        {"who": draw.integers(0, 50, 300), "g": draw.choice(["a", "b", "c"], 300), "x": draw.integers(0, 9, 300)}
    )
    asked, other = (session({"t": dpsql.Table(each, **FACTS)}, "auto") for each in (spark.createDataFrame(rows), rows))
    before = sorted(spark.conf.getAll.items())
    told: dict[str, Any] = {"engine": asked._engine.name, "module": type(spark).__module__}
    told["differences"] = [each for sql in QUERIES if (each := difference(asked, other, sql))]
    told["settings stay"] = sorted(spark.conf.getAll.items()) == before
    told["views"] = [each.name for each in spark.catalog.listTables()]
    told["global views"] = [row[1] for row in spark.sql("SHOW VIEWS IN global_temp").collect()]
    spark.udf.register("md5", lambda _text: "0")
    spark.createDataFrame(pa.table({"a": [1]})).createOrReplaceTempView("stored0")
    told["registered"] = [each for sql in QUERIES if (each := difference(asked, other, sql))]
    with ThreadPoolExecutor(1) as elsewhere:  # where no session is active
        told["threads"] = elsewhere.submit(difference, asked, other, QUERIES[0]).result()
    told["two sessions"] = refused(spark, spark.newSession(), rows)
    told["failing"] = failing(spark)
    spark.stop()
    return told


def refused(spark: Any, another: Any, rows: pa.Table) -> str:
    """What is said of frames of two sessions."""
    tables = {name: dpsql.Table(held.createDataFrame(rows), **FACTS) for name, held in (("t", spark), ("o", another))}
    try:
        session(tables, "auto")
    except InvalidSchema as refusal:
        return str(refusal)
    return "nothing"


def failing(spark: Any) -> str:
    """What comes out of a program of the owner's that fails, with all that is logged."""
    frame = spark.sql("SELECT CAST(s AS INT) AS x FROM VALUES ('1'), ('the cell of somebody') AS t(s)").repartition(1)
    asked = session({"t": dpsql.Table(frame, bounds={"x": (0, 1)})}, "auto")
    logged = io.StringIO()
    logger = logging.getLogger("pyspark.sql.connect.logging")
    logger.disabled = False  # as of SPARK_CONNECT_LOG_LEVEL
    handler = logging.StreamHandler(logged)
    for each in (logger, logging.getLogger("SQLQueryContextLogger")):
        each.addHandler(handler)
    try:
        asked.query("SELECT SUM(x) FROM t", epsilon=1)
    except InternalError as error:
        return "".join([*traceback.format_exception(error), logged.getvalue()])
    return "nothing"


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(found()) + "\n")
