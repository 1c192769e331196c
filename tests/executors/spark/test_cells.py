"""Cells of every type that Spark stores: read as what they are, to the ends of their ranges, and never an error."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, session

LEAST, MOST = "-9223372036854775808", "9223372036854775807"
NTZ = [
    f"CAST(timestamp_micros({cell}) AS TIMESTAMP_NTZ)"
    for cell in (f"{MOST}L - 86400000000", f"CAST('{LEAST}' AS BIGINT) + 86400000000")
]
SOME: dict[str, list[str]] = {  # SQL of cells, and there is a NULL beside them
    "tinyint": [f"CAST({cell} AS TINYINT)" for cell in (-128, 127)],
    "smallint": [f"CAST({cell} AS SMALLINT)" for cell in (-32768, 32767)],
    "int": ["-2147483648", "2147483647"],
    "bigint": [f"CAST('{LEAST}' AS BIGINT)", f"{MOST}L"],
    "float": [f"CAST('{cell}' AS FLOAT)" for cell in ("-inf", "nan", "3.4e38", "-0.0")],
    "double": [f"CAST('{cell}' AS DOUBLE)" for cell in ("inf", "nan", "1.7e308", "-0", "4.9e-324", "4.6e18")],
    "decimal(38,0)": [f"CAST('{cell}' AS DECIMAL(38, 0))" for cell in ("9" * 38, "-1")],
    "decimal(38,18)": [f"CAST('{cell}' AS DECIMAL(38, 18))" for cell in ("9" * 20 + ".5", "1e-18")],
    "decimal(38,38)": [f"CAST('{cell}' AS DECIMAL(38, 38))" for cell in ("0." + "9" * 38, "1e-38")],
    "decimal(10,2)": [f"CAST('{cell}' AS DECIMAL(10, 2))" for cell in ("12345678.90", "-0.01")],
    "boolean": ["TRUE", "FALSE"],
    "string": ["''", "'a'", "CAST(X'FF' AS STRING)", "CAST(X'00' AS STRING)", "repeat('é', 5000)"],
    "binary": ["X''", "X'FF00'"],
    "date": [
        *(f"DATE '{day}'" for day in ("0001-01-01", "9999-12-31")),
        *(f"DATE_FROM_UNIX_DATE({day})" for day in (2147483647, -2147483648)),
    ],
    "timestamp": [
        *(f"timestamp_micros({cell})" for cell in (f"CAST('{LEAST}' AS BIGINT)", f"{MOST}L")),
        "TIMESTAMP '1582-10-10'",
    ],
    "timestamp_ntz": ["TIMESTAMP_NTZ '9999-12-31 23:59:59'", "TIMESTAMP_NTZ '0001-01-01 00:00:00'", *NTZ],
    "array<int>": ["array(1)", "array()"],
    "struct<a:int>": ["named_struct('a', 1)"],
    "map<string,int>": ["map('a', 1)"],
    "interval": ["INTERVAL 1 YEAR", "INTERVAL -1 MONTH"],
    "variant": ["parse_json('{\"a\": 1}')", "parse_json('null')"],
    "void": ["NULL"],
}
WORDS = ["integer", "real", "boolean", "text", "date", "timestamp", None]


def counted(asked: dpsql.Session, sql: str) -> dict[Any, int]:
    return {group: parts[0] for group, parts in insecure_exact(asked, sql, KEY, **TERMS).parts.items()}


@pytest.mark.spark
@pytest.mark.parametrize("stored", SOME)
def test_cells_of_a_type(stored: str, spark: Any):
    rows = ", ".join(f"({place}, {cell})" for place, cell in enumerate([*SOME[stored], "NULL"]))
    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(k, v)").repartition(1)
    read = []
    for word in WORDS:
        types = {} if word is None else {"v": word}
        try:
            asked = session({"t": dpsql.Table(frame, types=types)}, "auto")
        except InvalidSchema:
            continue
        read.append(word)
        assert counted(asked, "SELECT COUNT(*) FROM t") == {(): len(SOME[stored]) + 1}
        assert counted(asked, "SELECT COUNT(*) FROM t WHERE v IS NULL")[()] >= 1
        if word is not None:
            assert sum(counted(asked, "SELECT v, COUNT(*) FROM t GROUP BY v").values()) == len(SOME[stored]) + 1
            by_unit = session({"t": dpsql.Table(frame, types=types, unit="v", max_rows=1)}, "auto")
            assert counted(by_unit, "SELECT COUNT(*) FROM t")[()] <= len(SOME[stored])
    assert None in read


DECIMALS = [
    "0.00000010",
    "-0.00000010",
    "0.0000001",
    "-1.5",
    "1e-18",
    "-1e-18",
    "1",
    "12345678901234567890",
    "0",
    "1.50",
]


@pytest.mark.parametrize("places", [18, 38])
def test_decimals_tell_people_apart_exactly(places: int, spark: Any):
    """As the same numbers with fewer places do, in another table."""
    cells = [cell for cell in map(Decimal, DECIMALS) if places < 38 or abs(cell) < 1]
    rows = [pa.table({"who": pa.array(cells * 2, pa.decimal128(38, scale))}) for scale in (places, 18)]
    one, other = (dpsql.Table(spark.createDataFrame(each), unit="who", max_rows=1) for each in rows)
    typed = {
        f"as_{word}": dpsql.Table(spark.createDataFrame(rows[0]), types={"who": word})
        for word in ("integer", "boolean")
    }
    asked = session({"t": one, "o": other, **typed}, "auto")
    assert counted(asked, "SELECT COUNT(*) FROM t") == {(): len(set(cells))}
    assert counted(asked, "SELECT COUNT(*) FROM t JOIN o ON t.who = o.who") == {(): len(set(cells))}
    wholes = {
        "as_integer": [cell for cell in cells if cell == int(cell) and cell < 2**63],  # larger ones do not fit
        "as_boolean": [c for c in cells if c in (0, 1)],
    }
    for name, read in wholes.items():
        assert counted(asked, f"SELECT COUNT(*) FROM {name} WHERE who IS NOT NULL") == {(): 2 * len(read)}


DOUBLES = [
    0.5,
    0.1,
    -0.1,
    1e-5,
    2.0**-44,
    2e-3,
    5e-324,
    2.0**53 + 2,
    2.0**63,
    1e22,
    1e23,
    2.0**99,
    1e37,
    9.9e37,
    1.5e38,
    2e38,
]
PLAIN = ["0.5", "0.1", "-0.1", "0.00001", "7", "9007199254740994", "9223372036854775808", "0.0625", "1e16"]
LONG = ["1e22", "1e23", "99999999999999991611392", str(2**99), "1e37", str(int(9.9e37)), "99" + "0" * 36]


def _frames(spark: Any) -> dict[str, tuple[list[Fraction], Any]]:
    """The same numbers and others in all that Spark stores and that is brought to it: exact values, and their table."""
    reals = [*DOUBLES, -DOUBLES[0], 3.0]
    plain, long = ([Decimal(each) for each in cells] for cells in (PLAIN, LONG))
    arrow = {
        "doubles": (reals, pa.float64()),
        "floats": ([0.5, float(np.float32(0.1)), 2.0**63], pa.float32()),
        "plain": (plain, pa.decimal128(38, 16)),
        "long": (long, pa.decimal128(38, 0)),
        "whole": ([7, 3, -5], pa.int64()),
    }
    tables: dict[str, tuple[list[Any], Any]] = {
        name: (cells, spark.createDataFrame(pa.table({"who": pa.array(cells, kind)})))
        for name, (cells, kind) in arrow.items()
    }
    tables["brought_doubles"] = (reals, pd.DataFrame({"who": reals}))
    mixed = [*plain, *long, *reals]
    tables["brought_cells"] = (mixed, pd.DataFrame({"who": pd.Series(mixed, dtype=object)}))
    return {name: (list({Fraction(cell) for cell in cells}), frame) for name, (cells, frame) in tables.items()}


def test_equal_numbers_are_one_person_whatever_stores_them(spark: Any):
    frames = _frames(spark)
    tables = {
        name: dpsql.Table(frame, unit="who", max_rows=1, types={"who": "real"}) for name, (_, frame) in frames.items()
    }
    asked = session(tables, "spark")
    for name, (numbers, _) in frames.items():
        assert counted(asked, f"SELECT COUNT(*) FROM {name}") == {(): len(numbers)}, name
        for other in ("doubles", "brought_cells"):
            others = frames[other][0]
            if name != other:
                same = len(set(numbers) & set(others))
                sql = f"SELECT COUNT(*) FROM {name} AS a JOIN {other} AS b ON a.who = b.who"
                assert counted(asked, sql) == {(): same}, (name, other)


@pytest.mark.parametrize("zone", ["Europe/Rome", "Australia/Lord_Howe", "+05:45"])
def test_instants_are_shown_in_the_zone_of_the_session(zone: str, spark: Any):
    """As pandas shows the same instants, at changes of clocks and far from them."""
    starts = ("2022-03-26 12:00", "2022-10-29 12:00", "1969-12-31 12:00", "1899-01-01", "2150-07-01")
    cells = [
        each for start in starts for each in pd.date_range(start, periods=50, freq="30min", tz="UTC").as_unit("us")
    ]
    frame = pd.DataFrame({"ts": pd.Series([*cells, None], dtype="datetime64[us, UTC]")})
    rows = pa.table({"ts": pa.array(frame["ts"], pa.timestamp("us", tz="UTC"))})
    budget = dpsql.Budget(epsilon=1e9, delta=1e-3)
    asked = dpsql.Session({"t": spark.createDataFrame(rows)}, budget=budget, timezone=zone)
    told = dpsql.Session({"t": frame}, budget=budget, timezone=zone)
    for key in ("ts", "HOUR(ts)", "CAST(ts AS DATE)"):
        sql = f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY k"
        assert counted(asked, sql) == counted(told, sql)
