"""A client of Spark Connect, over a server of its own on this machine: what it finds, as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np
import pyarrow as pa

import dpsql
from dpsql.errors import UnsupportedSQL
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
    draw = np.random.default_rng(1)
    rows = pa.table(
        {"who": draw.integers(0, 50, 300), "g": draw.choice(["a", "b", "c"], 300), "x": draw.integers(0, 9, 300)}
    )
    asked, other = (session({"t": dpsql.Table(each, **FACTS)}, "auto") for each in (spark.createDataFrame(rows), rows))
    before = sorted(map(tuple, spark.sql("SET").collect()))
    told: dict[str, Any] = {"engine": asked._engine.name, "module": type(spark).__module__}
    told["differences"] = [each for sql in QUERIES if (each := difference(asked, other, sql))]
    told["settings stay"] = sorted(map(tuple, spark.sql("SET").collect())) == before
    told["views"] = [each.name for each in spark.catalog.listTables()]
    spark.udf.register("md5", lambda _text: "0")
    try:
        told["registered"] = str(asked.query(QUERIES[0], epsilon=1))
    except UnsupportedSQL as refusal:
        told["registered"] = str(refusal)
    spark.stop()
    return told


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(found()) + "\n")
