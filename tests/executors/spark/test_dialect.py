"""What Spark writes otherwise than DuckDB: sums of limbs, lists of edges, constants, and hashes of texts."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpsql.executors.spark.dialect import SPARK_SQL
from dpsql.executors.spark.literals import quoted
from dpsql.executors.spark.session import own_session
from dpsql.executors.sql.dialect import MissingFeature


def asked(spark: Any, columns: dict[str, Any], listed: str) -> list[Any]:
    """Rows of a SELECT over these columns."""
    own = own_session(spark)
    own.createDataFrame(pa.table(columns)).createOrReplaceTempView("asked")
    rows = own.sql(f"SELECT {listed} FROM asked").collect()
    own.catalog.dropTempView("asked")
    return list(rows)


@pytest.mark.parametrize("most", [1, 2**27 - 1, 2**27, 2**45, 2**54, 2**62, 2**63 - 1])
def test_sums_are_exact(most: int, spark: Any):
    values = [most, most, most, -most, -(most // 3), most - 1, 0, None, -most, most]
    (row,) = asked(spark, {"x": pa.array(values, pa.int64())}, f"{SPARK_SQL.total('x', most)} AS n")
    assert int(row[0]) == sum(value or 0 for value in values)


@pytest.mark.parametrize("count", [1, 64, 65, 1_000])
def test_edges_below_a_number(count: int, spark: Any):
    draw = np.random.default_rng(count)
    edges = np.sort(draw.integers(-300, 300, count) / 4)
    values = np.append(np.append(edges, draw.normal(0, 60, 100)), [-1e300, 1e300, np.inf, -np.inf])
    rows = asked(spark, {"k": np.arange(len(values)), "x": values}, f"k, {SPARK_SQL.edges_below(edges.tolist(), 'x')}")
    assert [row[1] for row in sorted(rows)] == np.searchsorted(edges, values, side="left").tolist()


def test_texts_are_written_as_they_are(spark: Any):
    texts = ["", "\0", "it's", '"', "\\", "\\u0041", "${x}", "%_", "é", "𝒳", "\n", "--", "/*", "`"]
    (row,) = asked(spark, {"a": [1]}, ", ".join(f"{quoted(text)} AS t{place}" for place, text in enumerate(texts)))
    assert list(row) == texts
    with pytest.raises(MissingFeature, match="half a character"):
        quoted("\ud800")


def test_hashes_of_texts_are_those_of_md5(spark: Any):
    texts = ["", "a", "é", "𝒳", "a longer text"]
    low, high = SPARK_SQL.text_limbs("00ff", "t")
    rows = asked(spark, {"k": list(range(len(texts))), "t": texts}, f"k, {low}, {high}")
    for row, text in zip(sorted(rows), texts, strict=True):
        number = int.from_bytes(hashlib.md5(b"00ff" + text.encode()).digest()[8:], "little") & (2**60 - 1)
        assert row[1:] == (number & (2**30 - 1), number >> 30)


def test_halves_go_to_the_even_number(spark: Any):
    values = [0.5, 1.5, 2.5, -0.5, -1.5, 2.0**50 + 0.5, 2.0**50 + 1.5]
    rows = asked(spark, {"k": list(range(len(values))), "x": values}, f"k, {SPARK_SQL.rounded('x')}")
    assert [row[1] for row in sorted(rows)] == [round(value) for value in values]
