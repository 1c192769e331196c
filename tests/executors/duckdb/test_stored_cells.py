"""Cells of files as they are stored: whatever a database or a Parquet file can hold is answered as of a frame."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb.cells import cell_text, identity_text
from dpsql.executors.duckdb.instance import lock, opened
from dpsql.executors.pandas.columns.exact_values import canonical
from dpsql.schema.columns import Type
from dpsql.testing import Integers, insecure_exact
from tests.executors.contract import KEY, TERMS, difference, session


def integers(source: Any, sql: str, engine: str = "auto", **said: Any) -> Any:
    return insecure_exact(session({"p": dpsql.Table(source, **said)}, engine), sql, KEY, **TERMS).parts


def database(folder: Path, *statements: str, **tables: pa.Table) -> Path:
    file = folder / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register("arrived", table)
            connection.execute(f"CREATE TABLE {name} AS FROM arrived")
        for statement in statements:
            connection.execute(statement)
    return file


def test_texts_are_told_apart_whatever_the_collation_of_their_column(tmp_path: Path):
    made = "CREATE TABLE t (s VARCHAR COLLATE NOCASE, u VARCHAR COLLATE NOCASE.NOACCENT)"
    file = database(tmp_path, made, "INSERT INTO t VALUES ('a', 'x'), ('A', 'X'), ('b', 'é'), ('b', 'e')")
    groups = {("a",): (1,), ("A",): (1,), ("b",): (2,)}
    assert integers(file, "SELECT s, COUNT(*) FROM p GROUP BY s", table="t") == groups
    assert integers(file, "SELECT s, COUNT(*) FROM p GROUP BY s", table="t", keys={"s": ["a", "A", "b"]}) == groups
    assert integers(file, "SELECT COUNT(*) FROM p WHERE s = 'a' OR s IN ('A')", table="t") == {(): (2,)}
    assert integers(file, "SELECT COUNT(*) FROM p WHERE s LIKE 'A'", table="t") == {(): (1,)}
    assert integers(file, "SELECT COUNT(*) FROM p", table="t", unit="u", max_rows=1) == {(): (4,)}


def test_names_are_those_that_the_database_tells_apart(tmp_path: Path):
    file = database(
        tmp_path,
        'CREATE TABLE "straße" (x VARCHAR, z INTEGER GENERATED ALWAYS AS (CAST(x AS INTEGER)))',
        'CREATE TABLE "É" AS SELECT 1 AS x',
        'CREATE TABLE "a.b.c" AS SELECT 1 AS x',
        'CREATE SCHEMA "database0"',
        'CREATE TABLE database0."it""s" AS SELECT range AS x FROM range(3)',
    )
    with pytest.raises(InvalidSchema, match='column "z" of shop.duckdb, table straße is computed'):
        dpsql.Table(file, table="straße")
    for name in ("STRASSE", "é", "a.b.c", "information_schema.tables"):
        with pytest.raises(InvalidSchema, match=f'no table "{name}" in shop.duckdb'):
            dpsql.Table(file, table=name)
    assert integers(file, "SELECT COUNT(*) FROM p", table='DATABASE0.it"S') == {(): (3,)}


TICKS = [2**62, -(2**62), 2**63 - 1, 1 - 2**63, 2**63 // 1000, 253_402_300_800, -62_135_596_801, 0, -1, None]
DAYS = [2**31 - 1, 1 - 2**31, 2**31 - 2, 2_932_897, -719_163, 0, -1, None]
TIMES: dict[str, pa.DataType] = {
    **{unit: pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
    "us_zoned": pa.timestamp("us", "UTC"),
    "ns_zoned": pa.timestamp("ns", "UTC"),
    "days": pa.date32(),
}


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, pa.Table]]:
    tables = {}
    for name, kind in TIMES.items():
        cells = pa.array(DAYS, pa.int32()).cast(kind) if name == "days" else pa.array(TICKS, kind)
        tables[name] = pa.table({"x": cells, "g": [f"{place % 3}" for place in range(len(cells))]})
    return database(tmp_path_factory.mktemp("moments"), **tables), tables


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", TIMES)
def test_no_time_makes_a_question_fail(moments: tuple[Path, dict[str, pa.Table]], name: str):
    """Those beyond the calendar are its ends, and those that DuckDB calls infinite too; each is a unit."""
    file, tables = moments
    for kind in ("timestamp", "date"):
        said: dict[str, Any] = {"types": {"x": kind}}
        of_units = {**said, "unit": "x", "max_rows": 1}
        for sql, words in (
            ("SELECT x, COUNT(*), COUNT(x) FROM p GROUP BY x", said),
            ("SELECT COUNT(*) FROM p WHERE x > DATE '2000-01-01'", said),
            ("SELECT g, COUNT(*) FROM p GROUP BY g", of_units),
        ):
            if name in ("s", "ms") and words is of_units and kind == "timestamp":
                assert integers(file, sql, table=name, **words)  # beyond what TIMESTAMP holds: nobody's
                continue
            frame = session({"p": dpsql.Table(tables[name], **words)}, "pandas")
            assert difference(session({"p": dpsql.Table(file, table=name, **words)}, "auto"), frame, sql) == ""


CELLS: dict[str, list[Any]] = {
    "TINYINT": [-128, 127],
    "SMALLINT": [-(2**15), 0],
    "INTEGER": [-(2**31), 0],
    "BIGINT": [-(2**63), 2**63 - 1],
    "UTINYINT": [0, 255],
    "USMALLINT": [0, 1],
    "UINTEGER": [0, 1],
    "UBIGINT": [2**64 - 1, 2**62],
    "UHUGEINT": [2**128 - 1, 2**127, 0],
    "HUGEINT": [2**127 - 1, -(2**127), 1],
    "FLOAT": ["nan", "-inf", "1e-45", "3.4028235e38", -0.0],
    "DOUBLE": ["nan", "inf", "5e-324", "1.7e308", "-0.0", 0.5],
    "DECIMAL(38,0)": ["9" * 38, "-" + "9" * 38, 0],
    "DECIMAL(38,38)": ["0." + "9" * 38, "-0." + "9" * 38, 0],
    "DECIMAL(38,30)": ["99999999." + "9" * 30, -1],
    "DECIMAL(18,18)": ["-0." + "9" * 18, 0],
    "DECIMAL(4,2)": ["99.99", 1],
    "BOOLEAN": ["true", "false"],
    "VARCHAR": ["", "\u0000a", "ß"],
    "ENUM('a)', '')": ["a)", ""],
    "DATE": ["infinity", "-infinity", "5881580-07-10", "5877642-06-25 (BC)", "1970-01-01"],
    "TIMESTAMP": ["infinity", "-infinity", "294247-01-10 04:00:54", "290309-12-22 (BC) 00:00:00"],
    "TIMESTAMP_S": ["infinity", "-infinity", "1970-01-01"],
    "TIMESTAMP_MS": ["infinity", "-infinity", "1970-01-01"],
    "TIMESTAMP_NS": ["infinity", "-infinity", "1969-12-31 23:59:59.999999999"],
    "TIMESTAMP WITH TIME ZONE": ["infinity", "-infinity", "294247-01-10 04:00:54+00"],
    "TIMESTAMPTZ_NS": ["1969-12-31 23:59:59.999999999+00"],
    "UUID": ["00000000-0000-0000-0000-000000000000"],
    "BLOB": ["\\xFF"],
    "INTEGER[]": ["[1, NULL]"],
    "BIGNUM": ["9" * 60],
    "BIT": ["101"],
    "INTERVAL": ["3 months"],
    "TIME": ["23:59:59"],
}
"""Odd cells of every type that a file can have."""


def test_no_cell_of_any_type_makes_an_expression_fail():
    """Neither as a value nor as what tells units apart, and no declared type does."""
    read = 0
    for kind, values in CELLS.items():
        connection = opened()
        connection.execute(f"CREATE TABLE t (x {kind})")
        connection.executemany(f"INSERT INTO t VALUES (CAST(? AS {kind}))", [[str(each)] for each in values])
        connection.execute("INSERT INTO t VALUES (NULL)")
        ((stored, *_),) = connection.execute("SELECT column_type FROM (DESCRIBE t)").fetchall()
        lock(connection)
        for wanted in Type:
            if cell_text("x", stored, wanted) is None:
                continue
            listed = [cell_text("x", stored, wanted)]
            listed += [] if wanted.opaque else [identity_text("x", stored, wanted)]
            for text in listed:
                cells = connection.execute(f"SELECT {text} AS c, x IS NULL FROM t").fetchall()
                assert all(cell is None for cell, missing in cells if missing), text
                read += 1
        connection.close()
    assert read > 150


# What tells units apart: equal numbers are one person, whatever stores them; others never are.

FRACTIONS = ["0.5", "0.1", "2.5", "-3", "0.0005", "123456789012.25", "0.30000000000000004", "1e300", "inf", "-inf"]
STORED = ["DOUBLE", "FLOAT", "DECIMAL(18, 4)", "DECIMAL(38, 17)"]
BOTH = "SELECT COUNT(*) FROM (SELECT u, x FROM a UNION ALL SELECT u, x FROM b)"


@pytest.fixture(scope="module")
def fractions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fractions")
    listed = ", ".join(f"('{each}')" for each in FRACTIONS)
    for number, kind in enumerate(STORED):
        chosen = f"SELECT TRY_CAST(s AS {kind}) AS u, 1 AS x FROM (VALUES {listed}, {listed}) AS t(s)"
        duckdb.execute(f"COPY ({chosen}) TO '{folder}/{number}.parquet' (FORMAT parquet)")
    return folder


@pytest.mark.thinned(6)
@pytest.mark.parametrize("other", range(len(STORED)))
@pytest.mark.parametrize("one", range(len(STORED)))
def test_equal_numbers_are_one_unit_whatever_stores_them(fractions: Path, one: int, other: int):
    files = [fractions / f"{number}.parquet" for number in (one, other)]
    frames = [pq.read_table(file) for file in files]
    said: dict[str, Any] = {"unit": "u", "max_rows": 1}

    def asked(sources: list[Any], engine: str) -> list[Integers]:
        a, b = sources
        apart = session({"a": dpsql.Table(a, **said), "b": dpsql.Table(b, **said)}, engine)
        led = session({"a": dpsql.Table(a, **said), "b": dpsql.Table(b, unit="u -> a.u", max_rows=1)}, engine)
        return [
            insecure_exact(held, sql, KEY, **TERMS)
            for held, sql in (
                (apart, BOTH),
                (apart, "SELECT COUNT(*) FROM a JOIN b ON a.u = b.u"),
                (led, "SELECT COUNT(*) FROM b"),
            )
        ]

    expected = asked(frames, "pandas")
    assert asked(files, "auto") == asked(frames, "duckdb") == asked([frames[0], files[1]], "duckdb") == expected
    if one == other:
        assert expected[0].parts == {(): (len({each for each in frames[0]["u"].to_pylist() if each is not None}),)}


def test_a_fraction_is_hashed_alike_in_files_and_frames(fractions: Path):
    """So that the same rows are left out beyond a limit."""
    for number, kind in enumerate(STORED):
        file = fractions / f"{number}.parquet"
        numbered = duckdb.sql(f"SELECT u, row_number() OVER () AS x FROM '{file}'").to_arrow_table()
        pq.write_table(numbered, fractions / f"numbered{number}.parquet")
        said: dict[str, Any] = {"unit": "u", "max_rows": 1, "bounds": {"x": (0, 99)}}
        stored = integers(fractions / f"numbered{number}.parquet", "SELECT SUM(x) FROM p", **said)
        assert stored == integers(numbered, "SELECT SUM(x) FROM p", **said), kind


def test_the_text_of_a_value_is_a_function_of_the_number():
    alike = [
        (0.5, Decimal("0.50"), Fraction(1, 2)),
        (0.1, Fraction(0.1)),
        (Decimal("0.10"), Fraction(1, 10)),
        (Fraction(1, 3),),
        (Decimal("-12.030"), Fraction(-1203, 100)),
        (3, 3.0, Decimal("3.00"), True + 2),
        (2.0**126, 2**126),
        (2.0**127, 2**127),
        (2**127 + 1,),
        (10**400,),
        (float("inf"),),
    ]
    texts = [{canonical(each) for each in equal} for equal in alike]
    assert [len(each) for each in texts] == [1] * len(alike)
    assert len(set.union(*texts)) == len(alike)
    assert canonical(Decimal("-12.030")) == "#-12.03"
