"""Relations and connections of DuckDB, and datasets of Arrow: run once, or the list of files that they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.errors import InvalidArgument, InvalidSchema
from dpsql.sources.stored import ExternalFrame, ParquetFiles
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, session

ROWS = {"x": [1, 2, 3, None, 90], "s": ["a", "A", "b", None, "a"], "u": [1, 1, 2, 3, None]}
BOUNDS = {"x": (0, 50)}


def counted(source: Any, sql: str = "SELECT COUNT(*), SUM(x) FROM p", **more: Any) -> Any:
    held = session({"p": dpsql.Table(source, **{"bounds": BOUNDS, **more})}, "auto")
    assert held._engine.name == "duckdb"
    return insecure_exact(held, sql, KEY, **TERMS)


def expected(sql: str = "SELECT COUNT(*), SUM(x) FROM p", **more: Any) -> Any:
    frame = pd.DataFrame({"x": pd.array(ROWS["x"], "Int64"), "s": ROWS["s"], "u": pd.array(ROWS["u"], "Int64")})
    return insecure_exact(session({"p": dpsql.Table(frame, bounds=BOUNDS, **more)}, "pandas"), sql, KEY, **TERMS)


@pytest.fixture
def connection() -> Any:
    connection = duckdb.connect()
    connection.register("rows", pa.table(ROWS))
    connection.execute("CREATE TABLE p AS FROM rows")
    yield connection
    connection.close()


def test_a_relation_is_run_once(connection: Any):
    connection.execute("CREATE SEQUENCE drawn; CREATE VIEW v AS SELECT *, nextval('drawn') AS n FROM p")
    held = session({"p": dpsql.Table(connection.table("v"), bounds=BOUNDS)}, "auto")
    assert connection.sql("SELECT nextval('drawn')").fetchall() == [(6,)]
    for _ in range(2):
        assert insecure_exact(held, "SELECT COUNT(*), SUM(x) FROM p", KEY, **TERMS) == expected()
    assert connection.sql("SELECT nextval('drawn')").fetchall() == [(7,)]
    connection.execute("DELETE FROM p")
    connection.close()
    assert insecure_exact(held, "SELECT COUNT(*), SUM(x) FROM p", KEY, **TERMS) == expected()


@pytest.mark.parametrize("of", ["relation", "connection"])
def test_what_is_done_to_the_connection_does_not_matter(connection: Any, of: str):
    """Macros, a collation, a time zone and filters of the user's own."""
    for word in ("sum(x)", "count(x)", "isfinite(x)", "coalesce(x)", "least(x, y)", "epoch_us(x)"):
        connection.execute(f"CREATE MACRO {word} AS 7")
    connection.execute("SET default_collation = 'nocase'; SET TimeZone = 'Asia/Tokyo'")
    source = {"source": connection.table("p")} if of == "relation" else {"source": connection, "table": "p"}
    table = dpsql.Table(source["source"], bounds=BOUNDS, table=source.get("table"), unit="u", max_rows=1)
    held = session({"p": table}, "auto")
    for sql in ("SELECT COUNT(*), SUM(x) FROM p", "SELECT s, COUNT(*) FROM p GROUP BY s"):
        assert insecure_exact(held, sql, KEY, **TERMS) == expected(sql, unit="u", max_rows=1)


def test_times_of_a_zone_are_those_of_utc(connection: Any, tmp_path: Path):
    """Whatever the connection's zone is, which is the machine's where nobody says another; as in files."""
    connection.execute("SET TimeZone = 'UTC'; CREATE TABLE z AS SELECT '2020-03-29 23:30:00+00'::TIMESTAMPTZ AS t")
    connection.execute("INSERT INTO z VALUES ('2020-10-25 01:15:00+00'), (NULL)")
    connection.execute(f"COPY z TO '{tmp_path}/z.parquet' (FORMAT parquet)")
    sql = "SELECT DAY(t) AS d, HOUR(t) AS h, COUNT(*) FROM p GROUP BY d, h"
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        connection.execute(f"SET TimeZone = '{zone}'")
        answers = [counted(source, sql, bounds={}) for source in (connection.table("z"), tmp_path / "z.parquet")]
        assert answers[0] == answers[1], zone


def test_a_connection_needs_a_name_that_is_a_tables(connection: Any):
    """Else a name would be looked up among Python's variables."""
    orders = whole = names = here = pd.DataFrame({"x": [1]})
    assert len(orders) == len(whole) == len(names) == len(here)
    for name in ("orders", "whole", "names", "here", "table", "pa", "q", "main.q", "a.b.c.d"):
        with pytest.raises(InvalidSchema, match=r'no table "[a-z.]+" in the connection\.'):
            dpsql.Table(connection, table=name)
    with pytest.raises(InvalidSchema, match="which one"):
        dpsql.Table(connection)
    with pytest.raises(InvalidArgument, match="table= is of a database"):
        dpsql.Table(connection.table("p"), table="p")
    connection.execute("""CREATE SCHEMA s; CREATE TABLE s."we ""ird" AS FROM p; CREATE VIEW v AS FROM p""")
    connection.execute("CREATE TEMP TABLE t AS FROM p")
    for name in ("P", "main.p", "memory.main.p", 's.we "ird', "v", "t"):
        assert counted(connection, table=name) == expected()
    connection.close()
    with pytest.raises(InvalidSchema, match="Is it closed"):
        dpsql.Table(connection, table="p")


def test_a_failure_quotes_no_cell(connection: Any):
    relation = connection.sql("SELECT CAST('secret' || s AS INTEGER) AS x FROM p")
    with pytest.raises(InvalidSchema, match="a relation of DuckDB cannot be read") as caught:
        dpsql.Table(relation)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def write(folder: Path) -> None:
    for part in (0, 1):
        place = folder / f"day={part}"
        place.mkdir(parents=True)
        pq.write_table(pa.table(ROWS).slice(3 * part, 3), place / "p.parquet", row_group_size=2)


def test_a_dataset_of_whole_files_is_their_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path / "d")
    monkeypatch.chdir(tmp_path)
    for made in (ds.dataset(tmp_path / "d"), ds.dataset("d"), ds.dataset(["d/day=0/p.parquet", "d/day=1/p.parquet"])):
        table = dpsql.Table(made)
        assert isinstance(table.frame, ParquetFiles)
        assert [str(each) for each in table.frame.files] == [f"{tmp_path}/d/day={part}/p.parquet" for part in (0, 1)]
        assert counted(made) == expected()


def test_another_dataset_is_run_once(tmp_path: Path):
    write(tmp_path / "d")
    files = ds.dataset(tmp_path / "d")
    hive = ds.dataset(tmp_path / "d", partitioning="hive")
    first = next(iter(files.get_fragments())).subset(row_group_ids=[0])
    part = ds.FileSystemDataset([first], files.schema, files.format, files.filesystem)
    (tmp_path / "p.csv").write_text("x,s\n1,a\n2,b\n", encoding="utf-8")
    for made, rows in (
        (files.filter(ds.field("x") > 1), 3),
        (part, 2),
        (ds.dataset(pa.table(ROWS)), 5),
        (ds.dataset([files, files]), 10),
        (ds.dataset(tmp_path / "p.csv", format="csv"), 2),
        (hive, 5),
        (files.replace_schema(pa.schema([("x", pa.int64())])), 5),
    ):
        assert isinstance(dpsql.Table(made).frame, ExternalFrame)
        assert counted(made).parts[()][0] == rows
    assert counted(hive, "SELECT COUNT(*) FROM p WHERE day = 1").parts[()] == (2,)
    for path in (tmp_path / "d").rglob("*.parquet"):
        path.write_bytes(b"secret")
    with pytest.raises(InvalidSchema, match="cannot be read") as caught:
        dpsql.Table(hive)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_no_private_table_goes_through_pandas(connection: Any):
    with pytest.raises(InvalidSchema, match='p is read by the engine duckdb, and engine="pandas" is asked for'):
        session({"p": dpsql.Table(connection.table("p"))}, "pandas")
    with pytest.raises(InvalidSchema, match='Write engine="duckdb"'):
        session({"p": connection.table("p"), "q": pd.DataFrame({"x": [1]})}, "auto")


@pytest.mark.parametrize("of", ["files", "database", "relation"])
def test_public_tables_are_brought(connection: Any, tmp_path: Path, of: str, monkeypatch: pytest.MonkeyPatch):
    pq.write_table(pa.table({"s": ["a", "b"], "w": [1, 2]}), tmp_path / "q.parquet")
    with duckdb.connect(str(tmp_path / "q.duckdb")) as made:
        made.execute(f"CREATE TABLE q AS FROM '{tmp_path}/q.parquet'")
    source: Any = {
        "files": tmp_path / "q.parquet",
        "database": tmp_path / "q.duckdb",
        "relation": duckdb.read_parquet(str(tmp_path / "q.parquet")),
    }[of]
    name = "q" if of == "database" else None
    public = dpsql.Table(source, table=name, public=True, unique=["s"])
    people = dpsql.Table(connection.table("p"), bounds=BOUNDS)
    sql = "SELECT p.s, COUNT(*) FROM p JOIN q ON p.s = q.s GROUP BY p.s"
    assert insecure_exact(session({"p": people, "q": public}, "auto"), sql, KEY, **TERMS).parts == {
        ("a",): (2,),
        ("b",): (1,),
    }
    monkeypatch.setattr("dpsql.executors.base.MOST_PUBLIC", 1)
    with pytest.raises(InvalidSchema, match="is public, and has more than the 1 rows"):
        dpsql.Table(source, table=name, public=True)


def test_a_missing_library_is_named(connection: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(InvalidSchema, match="is read by way of pyarrow") as caught:
        dpsql.Table(connection, table="p")
    assert caught.value.hint == "pip install pyarrow"
