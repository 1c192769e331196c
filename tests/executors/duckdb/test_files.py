"""Parquet files and DuckDB's databases, read where they lie: the integers that a frame of the same rows gives."""

from __future__ import annotations

import gc
import os
import random
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InternalError, InvalidArgument, InvalidSchema
from dpsql.executors.duckdb import executor
from dpsql.executors.duckdb import tables as tables_of_frames
from dpsql.executors.duckdb.instance import lock, opened
from dpsql.session import prepare
from dpsql.shell.cli import main
from dpsql.testing import Integers, insecure_exact
from tests.executors.contract import KEY, TERMS, differences, session, several_tables_queries
from tests.sql import join_queries

SAMPLE = 60


def write(folder: Path, name: str, data: pd.DataFrame, kinds: dict[str, str]) -> None:
    """The rows as a table of a database, and as two Parquet files."""
    connection = duckdb.connect(str(folder / "shop.duckdb"))
    connection.register("data", data)
    columns = ", ".join(f'CAST("{column}" AS {kind}) AS "{column}"' for column, kind in kinds.items())
    connection.execute(f"CREATE TABLE {name} AS SELECT {columns} FROM data")
    for part in (0, 1):
        copied = f"SELECT * FROM {name} WHERE rowid % 2 = {part}"
        connection.execute(f"COPY ({copied}) TO '{folder}/{name}-{part}.parquet' (FORMAT parquet)")
    connection.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shop")
    for name, rows in join_queries.rows().items():
        write(made, name, join_queries.frame(name, rows), join_queries.COLUMNS[name])
    return made


def tables(folder: Path, of: str) -> dict[str, dpsql.Table]:
    """All tables, those of people with limits that cut; public ones are frames."""
    made = {}
    for name, rows in join_queries.rows().items():
        said: dict[str, Any] = dict(join_queries.FACTS[name])
        said["types"] = {column: join_queries._TYPES[kind] for column, kind in join_queries.COLUMNS[name].items()}
        data = join_queries.frame(name, rows)
        if name in join_queries.PUBLIC:
            made[name] = dpsql.Table(data, **said, public=True)
            continue
        said["nullable"] = dict.fromkeys(said["types"], True)  # as of files, which do not say
        said |= {"max_rows": 3, "max_groups": 2} if "max_rows" in said else {}
        if of == "frames":
            made[name] = dpsql.Table(data, **said)
        elif of == "Parquet":
            made[name] = dpsql.Table(str(folder / f"{name}-*.parquet"), **said)
        else:
            made[name] = dpsql.Table(folder / "shop.duckdb", table=name, **said)
    return made


@pytest.mark.parametrize("of", ["Parquet", "database"])
def test_several_tables(folder: Path, of: str):
    queries = random.Random(9).sample(several_tables_queries(), SAMPLE)
    held = session(tables(folder, of), "auto")
    assert differences(held, session(tables(folder, "frames"), "pandas"), queries) == []
    assert isinstance(insecure_exact(held, queries[0], KEY, **TERMS), Integers)


TYPES = {
    "t": "TINYINT",
    "u": "UBIGINT",
    "h": "HUGEINT",
    "f": "FLOAT",
    "x": "DOUBLE",
    "m": "DECIMAL(20,2)",
    "b": "BOOLEAN",
    "s": "VARCHAR",
    "d": "DATE",
    "ns": "TIMESTAMP_NS",
    "z": "TIMESTAMP WITH TIME ZONE",
    "l": "INTEGER[]",
}
CELLS: dict[str, list[str]] = {
    "t": ["-128", "127", "NULL"],
    "u": ["18446744073709551615", "0", "9223372036854775808", "NULL"],
    "h": ["-170141183460469231731687303715884105727", "5", "NULL"],
    "f": ["'nan'", "'inf'", "0.1", "-0.0", "NULL"],
    "x": ["'nan'", "'-inf'", "0.1", "-0.0", "5e-324", "1e308", "4611686018427387904.0", "2.5", "NULL"],
    "m": ["0.01", "-999999999999999999.99", "2.50", "NULL"],
    "b": ["TRUE", "FALSE", "NULL"],
    "s": ["''", "'a'", "'it''s'", "'日本'", "NULL"],
    "d": ["'0001-01-01'", "'9999-12-31'", "'infinity'", "'-infinity'", "'2020-02-29'", "'0044-03-15 (BC)'", "NULL"],
    "ns": ["'1969-12-31 23:59:59.999999999'", "'2020-01-01 00:00:00.000001001'", "NULL"],
    "z": ["'2020-01-01 12:00:00+02'", "'1969-01-01 00:00:00+00'", "NULL"],
    "l": ["[1, 2]", "NULL"],
}
ODD_QUERIES = [
    *(f"SELECT {name}, COUNT(*) FROM p GROUP BY {name}" for name in TYPES if name not in ("l", "u")),
    *(f"SELECT COUNT({name}), COUNT(*) FROM p" for name in TYPES),
    "SELECT SUM(CLAMP(u, 0, 1000)), SUM(CLAMP(h, -10, 10)), SUM(CLAMP(t, -200, 200)) FROM p",
    "SELECT AVG(CLAMP(x, -1, 1)), AVG(CLAMP(f, -1, 1)), AVG(CLAMP(m, -10, 10)) FROM p",
    "SELECT MEDIAN(CLAMP(x, -10, 10)), MIN(d), MAX(ns) FROM p",
    "SELECT YEAR(d) AS k, MINUTE(ns) AS minutes, COUNT(*) FROM p GROUP BY k, minutes",
]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Parquet file with odd cells of every type, in a folder whose name is one of a partition."""
    folder = tmp_path_factory.mktemp("odd") / "year=2020"
    folder.mkdir()
    connection = duckdb.connect()
    rng = random.Random(2)
    rows = [", ".join(f"CAST({rng.choice(CELLS[name])} AS {kind})" for name, kind in TYPES.items()) for _ in range(150)]
    connection.execute("SET TimeZone = 'UTC'")
    columns = ", ".join(TYPES)
    values = ", ".join(f"({row})" for row in rows)
    connection.execute(
        f"COPY (SELECT * FROM (VALUES {values}) AS p({columns})) TO '{folder}/p.parquet' (FORMAT parquet)"
    )
    connection.close()
    return folder / "p.parquet"


@pytest.mark.thinned(2)
@pytest.mark.parametrize("unit", [None, "u", "h", "x", "m", "ns", "z", "s", "d"])
def test_odd_cells_are_answered(odd: Path, unit: str | None):
    """No cell makes a statement fail, whatever tells units apart."""
    more: dict[str, Any] = {} if unit is None else {"unit": unit, "max_rows": 4, "max_groups": 2}
    held = session({"p": dpsql.Table(odd, **more)}, "auto")
    for sql in [each for each in ODD_QUERIES if not each.endswith(f"GROUP BY {unit}")]:
        assert isinstance(insecure_exact(held, sql, KEY, **TERMS), Integers), sql


def test_odd_cells_are_those_of_a_frame(odd: Path):
    columns = ["t", "x", "f", "b", "s"]
    frame = dpsql.Table(duckdb.connect().execute(f"SELECT {', '.join(columns)} FROM '{odd}'").to_arrow_table())
    queries = [
        sql
        for sql in ODD_QUERIES
        if not any(f"({name})" in sql or f" {name}," in sql for name in TYPES if name not in columns)
    ]
    queries = [
        sql
        for sql in queries
        if "CLAMP(u" not in sql and "CLAMP(m" not in sql and "d" not in sql.split()[1:4] and "ns" not in sql
    ]
    assert len(queries) > 8
    assert differences(session({"p": dpsql.Table(odd)}, "auto"), session({"p": frame}, "pandas"), queries) == []


def test_whole_numbers_and_days_are_read_exactly(odd: Path):
    held = session({"p": dpsql.Table(odd)}, "auto")
    texts = session({"p": dpsql.Table(odd, types={"u": "text"})}, "auto")
    counted = {group[0] for group in insecure_exact(texts, "SELECT u, COUNT(*) FROM p GROUP BY u", KEY, **TERMS).parts}
    assert counted == {"18446744073709551615", "9223372036854775808", "0", None}
    counted = {group[0] for group in insecure_exact(held, "SELECT ns, COUNT(*) FROM p GROUP BY ns", KEY, **TERMS).parts}
    assert counted == {-1, 1_577_836_800_000_001, None}
    days = {group[0] for group in insecure_exact(held, "SELECT d, COUNT(*) FROM p GROUP BY d", KEY, **TERMS).parts}
    assert days == {-719_162, 2_932_896, 18_321, None}


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Two files, one of which has signs of a pattern in its name."""
    for name, first in (("a", 0), ("b[1]*", 5)):
        duckdb.execute(
            f"COPY (SELECT range + {first} AS x FROM range(5)) TO '{tmp_path}/{name}.parquet' (FORMAT parquet)"
        )
    return tmp_path


def count(source: Any, **more: Any) -> int:
    held = session({"p": dpsql.Table(source, bounds={"x": (0, 99)}, **more)}, "auto")
    return insecure_exact(held, "SELECT COUNT(*) FROM p", KEY, **TERMS).parts[()][0]


def test_names_are_names_and_not_patterns(few: Path):
    assert count(few / "a.parquet") == 5
    assert count(few / "b[1]*.parquet") == 5
    assert count(few / "*.parquet") == 10
    duckdb.execute(f"COPY (SELECT range AS x FROM range(7)) TO '{few}/b1c.parquet' (FORMAT parquet)")
    assert count(few / "b[1]*.parquet") == 5


def test_a_user_is_answered(few: Path):
    result = dpsql.query(str(few / "*.parquet"), "SELECT SUM(x) AS s FROM df", epsilon=1e6, bounds={"x": (0, 99)})
    assert result.df["s"].round().tolist() == [45]
    held = dpsql.Session({"p": dpsql.Table(few / "a.parquet")}, budget=dpsql.Budget(1e7))
    assert held.query("SELECT COUNT(*) AS n FROM p", epsilon=1e6).df["n"].tolist() == [5]


def test_an_owners_file_names_them(few: Path):
    base = duckdb.connect(str(few / "shop.duckdb"))
    base.execute("CREATE TABLE orders AS SELECT range AS x FROM range(12)")
    base.close()
    text = (
        '[budget]\nepsilon = 1e7\n[tables.p]\npath = "a.parquet"\n[tables.o]\npath = "shop.duckdb"\ntable = "orders"\n'
    )
    (few / "owner.toml").write_text(text, encoding="utf-8")
    held = dpsql.Session(schema=dpsql.Schema.from_toml(few / "owner.toml"))
    before = sorted(few.iterdir())
    assert held.query("SELECT COUNT(*) AS n FROM o", epsilon=1e6).df["n"].tolist() == [12]
    assert held.query("SELECT COUNT(*) AS n FROM p", epsilon=1e6).df["n"].tolist() == [5]
    assert sorted(few.iterdir()) == before  # not even a log is written


def test_what_is_wrong_is_said(few: Path):
    (few / "bad.parquet").write_bytes(b"secret,cells\n1,2\n")
    duckdb.execute(f"COPY (SELECT 'a' AS y) TO '{few}/other.parquet' (FORMAT parquet)")
    with duckdb.connect(str(few / "mart.duckdb")) as base:
        base.execute("CREATE TABLE orders AS SELECT 1 AS x; CREATE VIEW late AS SELECT random() AS x FROM orders")
        base.execute("CREATE SCHEMA s; CREATE VIEW s.late AS FROM main.late")
        base.execute("CREATE TABLE made (y VARCHAR, z INTEGER GENERATED ALWAYS AS (CAST(y AS INTEGER)))")
    wrong: list[tuple[type[Exception], str, Any, dict[str, Any]]] = [
        (InvalidSchema, r"no file .*none\.parquet", few / "none.parquet", {}),
        (InvalidSchema, r"no file .*none", few / "none*.parquet", {}),
        (InvalidSchema, r"bad\.parquet cannot be read\.", few / "bad.parquet", {}),
        (InvalidSchema, r"other\.parquet has other columns than a\.parquet", few / "[ao]*.parquet", {}),
        (
            InvalidSchema,
            "stored as BIGINT cannot be read as date",
            few / "a.parquet",
            {"types": {"x": "date"}},
        ),
        (InvalidSchema, "which table of it", few / "shop.duckdb", {}),
        (InvalidSchema, "no file", few / "shop.duckdb", {"table": "orders"}),
        (
            InvalidSchema,
            'no table "ordrs" in mart.duckdb. Did you mean "orders"',
            few / "mart.duckdb",
            {"table": "ordrs"},
        ),
        (InvalidSchema, "is a view, which would run anew", few / "mart.duckdb", {"table": "Late"}),
        (InvalidSchema, "is a view, which would run anew", few / "mart.duckdb", {"table": "s.late"}),
        (InvalidSchema, 'column "z" of mart.duckdb, table made is computed', few / "mart.duckdb", {"table": "made"}),
        (InvalidArgument, "table= is of databases", few / "a.parquet", {"table": "orders"}),
        (InvalidArgument, "table= is of a database", pd.DataFrame({"x": [1]}), {"table": "orders"}),
    ]
    for kind, words, source, more in wrong:
        with pytest.raises(kind, match=words) as caught:
            session({"p": dpsql.Table(source, **more)}, "auto")
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_engines_do_not_mix(few: Path):
    files, frame = dpsql.Table(few / "a.parquet"), pd.DataFrame({"x": [1]})
    with pytest.raises(InvalidSchema, match='is read by the engine(?s:.*)Write engine="duckdb"'):
        session({"p": files, "f": frame}, "auto")
    with pytest.raises(InvalidSchema, match='p is read by the engine duckdb, and engine="pandas" is asked for'):
        session({"p": files}, "pandas")
    held = session({"p": files, "f": frame}, "duckdb")
    assert insecure_exact(held, "SELECT COUNT(*) FROM f", KEY, **TERMS).parts == {(): (1,)}


def test_files_that_change_in_a_run_are_named(few: Path, monkeypatch: pytest.MonkeyPatch):
    held = dpsql.Session({"p": dpsql.Table(few / "a.parquet")}, budget=dpsql.Budget(10))
    honest = executor._answer

    def change(*args: Any) -> Any:
        os.utime(few / "a.parquet", ns=(1, 1))
        return honest(*args)

    monkeypatch.setattr(executor, "_answer", change)
    with pytest.raises(InternalError, match=r"a\.parquet changed while it was read, and nothing is released") as caught:
        held.query("SELECT COUNT(*) FROM p", epsilon=1)
    assert caught.value.__context__ is None
    assert held.spent.epsilon == 1


def test_nothing_else_can_be_read(few: Path):
    """What an instance runs reaches no file that is not listed, and cannot be set free."""
    for files in (False, True):
        connection = opened(files=files)
        if files:
            connection.execute(f"SET allowed_paths = ['{few}/a.parquet']")
            connection.execute("SET enable_external_access = false")
        lock(connection)
        for text in (
            f"SELECT * FROM '{few}/b[1]*.parquet'",
            f"SELECT * FROM read_text('{few}/a.parquet.key')",
            f"COPY (SELECT 1) TO '{few}/out.csv'",
            f"ATTACH '{few}/new.duckdb'",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SET lock_configuration = false",
            "SELECT * FROM few",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(text)
        connection.close()


def test_the_owners_file_and_the_command_line_say_the_engine(few: Path, capsys: pytest.CaptureFixture[str]):
    (few / "people.csv").write_text("x\n1\n2\n", encoding="utf-8")
    text = 'engine = "duckdb"\n[budget]\nepsilon = 1e7\n[tables.people]\npath = "people.csv"\n'
    (few / "owner.toml").write_text(text, encoding="utf-8")
    schema = dpsql.Schema.from_toml(few / "owner.toml")
    held = dpsql.Session(schema=schema)
    assert held._engine.name == "duckdb"
    assert held.query("SELECT COUNT(*) AS n FROM people", epsilon=1e6).df["n"].tolist() == [2]
    assert dpsql.Session(schema=schema, engine="pandas")._engine.name == "pandas"
    with pytest.raises(InvalidArgument, match="engine must be one of"):
        dpsql.Schema.from_dict({"engine": "sqlite"})
    words = [
        str(few / "people.csv"),
        "--budget",
        "1e7",
        "--epsilon",
        "1e6",
        "--yes",
        "-c",
        "SELECT COUNT(*) AS n FROM people",
    ]
    assert main([*words, "--engine", "duckdb"]) == 0
    assert "2" in capsys.readouterr().out
    assert main([*words, "--engine", "sqlite"]) == 2
    assert "engine must be one of" in capsys.readouterr().err


def test_a_public_table_is_read_once_as_long_as_it_lives():
    frame = pd.DataFrame({"k": ["a", "b"]})
    people = pd.DataFrame({"k": ["a", "a", "c"]})
    held = session({"t": people, "p": dpsql.Table(frame, public=True, unique=["k"])}, "duckdb")
    sql = "SELECT COUNT(*) FROM t JOIN p ON t.k = p.k"
    before = len(tables_of_frames._public)
    for _ in range(2):
        assert insecure_exact(held, sql, KEY, **TERMS).parts == {(): (2,)}
        assert len(tables_of_frames._public) == before + 1
    others = session({"t": people, "p": dpsql.Table(frame, public=True, unique=["k"], nullable={"k": False})}, "duckdb")
    assert insecure_exact(others, "SELECT COUNT(*) FROM t JOIN p ON t.k = p.k", KEY, **TERMS).parts == {(): (2,)}
    prepare._cache.clear()
    del held, others
    gc.collect()
    assert len(tables_of_frames._public) <= before


def test_a_run_that_dies_keeps_the_charge_and_quotes_no_cell(few: Path, monkeypatch: pytest.MonkeyPatch):
    held = dpsql.Session({"t": dpsql.Table(few / "a.parquet")}, budget=dpsql.Budget(2))
    honest = executor.compile_plan

    def failing(*given: Any, **more: Any) -> Any:
        return replace(honest(*given, **more), text="SELECT 0, CAST('a secret' AS BIGINT)")

    monkeypatch.setattr(executor, "compile_plan", failing)
    with pytest.raises(InternalError, match="the run failed .*What it cost stays spent") as caught:
        held.query("SELECT COUNT(*) FROM t", epsilon=1)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert held.spent.epsilon == 1
