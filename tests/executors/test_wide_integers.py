"""Whole numbers of 64 bits: values, comparisons, keys and joins are those of the stored numbers, on each engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql

EXTREMES = [-(2**63), 1 - 2**63, -(2**62) - 1, -(2**62), 0, 2**53, 2**53 + 1, 2**62, 2**62 + 1, 2**63 - 2, 2**63 - 1]
HASHES = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 500, endpoint=True).tolist()
NUMBERS = EXTREMES + HASHES
SOURCES = ("pandas", "frame", "arrow", "parquet", "database", "csv")
COUNTED = (
    "COUNT(DISTINCT h)",
    "COUNT_IF(h % 10 = 0)",
    "COUNT_IF(h % -1 = 0)",
    "COUNT_IF(h // 7 > 0)",
    "COUNT_IF(h > 4611686018427387904)",
    "COUNT_IF(h >= 9223372036854775806)",
    "COUNT_IF(h = -9223372036854775808)",
    "COUNT_IF(h <> 9223372036854775807)",
    "COUNT_IF(h IN (9223372036854775807, -9223372036854775807, 9007199254740993))",
    "COUNT_IF(h BETWEEN -9223372036854775808 AND -4611686018427387905)",
    "COUNT_IF(h > 4.7e18)",
    "COUNT_IF(h = 9223372036854775808)",
    "COUNT_IF(h < 9223372036854775808)",
    "COUNT_IF(18446744073709551615 <= h)",
    "COUNT_IF(h IN (9223372036854775808, -9223372036854775809, 0))",
    "COUNT_IF(h <> -9223372036854775809)",
    "COUNT_IF(h IS DISTINCT FROM 9223372036854775808)",
    "COUNT_IF(SIGN(h) < 0)",
    "COUNT_IF(COALESCE(h, 0) = 4611686018427387905)",
    "COUNT_IF(GREATEST(h, 9223372036854775806) = 9223372036854775807)",
    "COUNT_IF(CAST(CAST(h AS TEXT) AS BIGINT) = h)",
)


def table(where: str, folder: Path, **words: Any) -> dpsql.Table:
    """The numbers as a table of one source."""
    frame = pd.DataFrame({"h": NUMBERS})
    if where == "arrow":
        return dpsql.Table(duckdb.from_df(frame).to_arrow_table(), **words)
    file = folder / f"t.{where}"
    if where == "parquet":
        frame.to_parquet(file)
    elif where == "csv":
        frame.to_csv(file, index=False)
        return dpsql.Table(file, types={"h": "integer"}, **words)
    elif where == "database":
        file = folder / "t.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.register("numbers", frame)
            connection.execute("CREATE TABLE t AS SELECT * FROM numbers")
        return dpsql.Table(file, table="t", **words)
    else:
        return dpsql.Table(frame, **words)
    return dpsql.Table(file, **words)


def session(tables: dict[str, dpsql.Table], where: str) -> dpsql.Session:
    engine = "pandas" if where == "pandas" else "auto"
    return dpsql.Session(tables, budget=dpsql.Budget(1e9), engine=engine)


@pytest.mark.parametrize("where", SOURCES)
def test_values_are_the_stored_numbers(where: str, tmp_path: Path):
    held = session({"t": table(where, tmp_path)}, where)
    numbers = pd.DataFrame({"h": NUMBERS})
    plain = duckdb.connect()
    plain.register("t", numbers)
    for text in COUNTED:
        ((wanted,),) = plain.execute(f"SELECT {text} FROM t").fetchall()
        ((found,),) = held.query(f"SELECT {text} FROM t", epsilon=1e6)
        assert found == wanted, text


@pytest.mark.parametrize("where", SOURCES)
def test_the_least_integer_has_no_opposite(where: str, tmp_path: Path):
    held = session({"t": table(where, tmp_path)}, where)
    for text in ("-h", "ABS(h)", "h // -1"):
        ((found,),) = held.query(f"SELECT COUNT({text}) FROM t", epsilon=1e6)
        assert found == len(NUMBERS) - 1, text


@pytest.mark.parametrize("where", ["pandas", "frame", "parquet"])
def test_a_public_table_has_such_keys(where: str, tmp_path: Path):
    names = pd.DataFrame({"h": EXTREMES, "place": range(len(EXTREMES))})
    public = dpsql.Table(names, public=True, unique=["h"])
    held = session({"t": table(where, tmp_path), "names": public}, where)
    ((found,),) = held.query("SELECT COUNT(*) FROM t JOIN names ON t.h = names.h", epsilon=1e6)
    assert found == sum(each in EXTREMES for each in NUMBERS)
    counted = held.query("SELECT h, COUNT(*) AS n FROM names LEFT JOIN t USING (h) GROUP BY h", epsilon=1e6)
    assert {key: round(n) for key, n in counted} == {each: NUMBERS.count(each) for each in EXTREMES}


@pytest.mark.parametrize("where", ["pandas", "frame"])
def test_declared_bounds_clip_before_a_sum(where: str, tmp_path: Path):
    held = session({"t": table(where, tmp_path, bounds={"h": (-10, 10)})}, where)
    ((found,),) = held.query("SELECT SUM(h) FROM t", epsilon=1e6)
    assert round(found) == sum(max(-10, min(10, each)) for each in NUMBERS)


def test_numbers_beyond_64_bits_are_null_without_bounds():
    data = pd.DataFrame({"x": ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e30"]})
    data["x"] = data["x"].astype("str")
    ((found,),) = dpsql.query(data, "SELECT COUNT(x) FROM t", epsilon=1e9, types={"x": "integer"})
    assert found == 2
    floats = pd.DataFrame({"x": [1e30, -1e30, 2.0**62, -(2.0**63)]})
    ((found,),) = dpsql.query(floats, "SELECT COUNT(x) FROM t", epsilon=1e9, types={"x": "integer"})
    assert found == 2
    held = {"types": {"x": "integer"}, "bounds": {"x": (-5, 5)}}
    ((found,),) = dpsql.query(floats, "SELECT SUM(x) FROM t", epsilon=1e9, **held)
    assert round(found) == 0
