"""Rows that a scan drops because of their cells: the number of those that are left is not public.

Under bounded neighbours one row changes its cells, and `COUNT(*)` of a table whose rows are units is exact and free
where every stored row is counted. So for every kind of source, whatever one row's cells become: the number of rows is
the same, or it has noise.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.owner.rehearsal import rehearse
from dpsql.session.tables import public_tables
from dpsql.sources.stored import DatabaseTable, Origin, ParquetFiles, PartedFiles, StoredFiles
from dpsql.testing import insecure_exact
from tests.lies import Patch, assert_caught

COUNT = "SELECT COUNT(*) AS n FROM t"
ROWS = [{"day": "2026-11-01", "x": 1}, {"day": "2026-11-01", "x": 2}, {"day": "2026-11-02", "x": 3}]
TYPES = {"day": "text", "x": "integer"}
CHANGED: list[dict[str, Any]] = [
    {"day": None, "x": None},
    {"day": "2026-11-01", "x": 3},
    {"day": "2027-01-01", "x": 3},
    {"day": "", "x": 2**62},
    {"day": "\0", "x": -(2**63)},
]
"""What the cells of the last row become."""
LINES = [
    b"",
    b"2026-11-02",
    b"2026-11-02,3,4",
    b'"2026-11-02,3',
    b'"2026-11-02" x,3',
    b"\xff,3",
    b"\0",
    b" ",
    b"\r",
    b'"',
]
OBJECTS = [b"", b"{}", b"[]", b"null", b"{", b'{"day": "\xff"}', b'{"day": "\\ud800", "x": 3}', b"{}{}", b"\0"]

Make = Callable[[Path, list[dict[str, Any]]], Any]


def frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame({"day": pd.Series([row["day"] for row in rows], dtype="str"), "x": integers(rows)})


def integers(rows: list[dict[str, Any]]) -> pd.Series:
    return pd.Series([row["x"] for row in rows], dtype="Int64")


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    days, numbers = ([row[name] for row in rows] for name in ("day", "x"))
    return pa.table({"day": pa.array(days, pa.string()), "x": pa.array(numbers, pa.int64())})


def parquet(folder: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(arrow(rows), folder / "t.parquet")
    return folder / "t.parquet"


def parted(folder: Path, rows: list[dict[str, Any]]) -> str:
    """The first two rows in the file of one day, the last one in that of another, whatever day it says."""
    for name, some in (("2026-11-01", rows[:2]), ("2026-11-02", rows[2:])):
        pq.write_table(arrow(some), folder / f"{name}.parquet")
    return str(folder / "{day}.parquet")


def database(folder: Path, rows: list[dict[str, Any]]) -> Path:
    with duckdb.connect(str(folder / "t.duckdb")) as base:
        held = arrow(rows)
        base.register("held", held)
        base.execute("CREATE TABLE t AS SELECT * FROM held")
    return folder / "t.duckdb"


def relation(rows: list[dict[str, Any]]) -> Any:
    return duckdb.connect().from_arrow(arrow(rows))


def polars(rows: list[dict[str, Any]]) -> Any:
    library = pytest.importorskip("polars")
    return library.from_arrow(arrow(rows))


SOURCES: dict[str, Make] = {
    "pandas": lambda _, rows: frame(rows),
    "pandas of objects": lambda _, rows: frame(rows).astype({"day": object}),
    "categories": lambda _, rows: frame(rows).astype({"day": "category"}),
    "Arrow": lambda _, rows: arrow(rows),
    "batches": lambda _, rows: arrow(rows).to_reader(),
    "Polars": lambda _, rows: polars(rows),
    "lazy Polars": lambda _, rows: polars(rows).lazy(),
    "Parquet": parquet,
    "parts": parted,
    "a database": database,
    "a relation": lambda _, rows: relation(rows),
    "a dataset of files": lambda folder, rows: ds.dataset(parquet(folder, rows)),
    "a dataset that is run": lambda _, rows: ds.dataset(arrow(rows)),
}


def session(source: Any, **words: Any) -> dpsql.Session:
    table = dpsql.Table(source, **{"types": TYPES, **words})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1e9), neighbours="bounded")


def counted(held: dpsql.Session) -> tuple[bool, int]:
    """Whether the number of rows is free, so that it has no noise; and that number."""
    ((number,),) = insecure_exact(held, COUNT, bytes(32), epsilon=1).parts.values()
    return held.quote(COUNT, epsilon=1).cost.free, number


def assert_public_or_noisy(held: Iterator[dpsql.Session]) -> list[tuple[bool, int]]:
    found = [counted(each) for each in held]
    assert len({free for free, _ in found}) == 1
    if found[0][0]:
        assert len({number for _, number in found}) == 1
    return found


def sessions(folder: Path, make: Make, **words: Any) -> Iterator[dpsql.Session]:
    for place, last in enumerate([ROWS[-1], *CHANGED]):
        own = folder / str(place)
        own.mkdir(parents=True)
        yield session(make(own, [*ROWS[:2], last]), **words)


@pytest.mark.parametrize("kind", SOURCES)
def test_cells(tmp_path: Path, kind: str):
    words = {"table": "t"} if kind == "a database" else {}
    found = assert_public_or_noisy(sessions(tmp_path, SOURCES[kind], **words))
    assert found[0][0] == (kind != "parts")


@pytest.mark.parametrize("kind", ["pandas", "Polars", "Arrow"])
def test_cells_of_frames_on_duckdb(tmp_path: Path, kind: str):
    held = (
        dpsql.Session({"t": each._stores["t"].source}, engine="duckdb", neighbours="bounded", budget=dpsql.Budget(1e9))
        for each in sessions(tmp_path, SOURCES[kind])
    )
    assert all(free for free, _ in assert_public_or_noisy(held))


def texts(
    folder: Path, name: str, head: bytes, lines: list[bytes], end: bytes, **words: Any
) -> Iterator[dpsql.Session]:
    pack: Callable[[bytes], bytes] = gzip.compress if name.endswith(".gz") else bytes
    for place, line in enumerate(lines):
        file = folder / f"{place}" / name
        file.parent.mkdir()
        file.write_bytes(pack(head + line + end))
        yield session(file, **words)


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.tsv", "t.txt"])
def test_lines_of_several_columns(tmp_path: Path, name: str, end: bytes):
    head = b"day,x\n2026-11-01,1\n2026-11-01,2\n".replace(b",", b"\t" if name == "t.tsv" else b",")
    found = assert_public_or_noisy(texts(tmp_path, name, head, [b"2026-11-02,3", *LINES], end))
    assert set(found) == {(True, 3)}


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("words", [{}, {"header": ["x"]}])
def test_lines_of_one_column(tmp_path: Path, end: bytes, words: dict[str, Any]):
    """A NULL there is an empty line, which is a line where something closes it."""
    words |= {"types": {"x": "integer"}}
    found = assert_public_or_noisy(texts(tmp_path, "t.csv", b"x\n1\n2\n", [b"3", *LINES], end, **words))
    assert not any(free for free, _ in found)


def test_lines_that_a_quote_joins(tmp_path: Path):
    head = b"day,x\n2026-11-01,1\n"
    lines = [b"2026-11-02,3\n2026-11-01,2", b'"2026-11-02,3\n2026-11-01,2']
    found = assert_public_or_noisy(texts(tmp_path, "t.csv", head, lines, b"\n", multiline=True))
    assert not any(free for free, _ in found)


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson.gz"])
def test_lines_of_json(tmp_path: Path, name: str):
    head = b"".join(json.dumps(row).encode() + b"\n" for row in ROWS[:2])
    last = json.dumps(ROWS[2]).encode()
    found = assert_public_or_noisy(texts(tmp_path, name, head, [last, *OBJECTS], b"\n"))
    assert set(found) == {(True, 3)}


def test_a_unit_that_is_null_is_nobodys(tmp_path: Path):
    for kind in ("pandas", "Parquet", "a database", "a relation", "parts"):
        words = {"table": "t"} if kind == "a database" else {}
        made = sessions(tmp_path / kind, SOURCES[kind], unit="x", max_rows=1, **words)
        assert not any(free for free, _ in assert_public_or_noisy(made))


@pytest.mark.parametrize(
    "query", [COUNT, "SELECT AVG(x) FROM t", "SELECT COUNT(*) FROM t UNION ALL SELECT SUM(x) FROM t"]
)
def test_the_answer_over_parts_has_noise_whatever_it_asks(tmp_path: Path, query: str):
    held = session(parted(tmp_path, ROWS), bounds={"x": (0, 9)})
    assert not held.quote(query, epsilon=1).cost.free
    assert "can drop rows" in str(held.explain(COUNT, epsilon=1)._release.query.plan.input)
    numbers = {int(held.query(COUNT, epsilon=0.1, fresh=True).df["n"][0]) for _ in range(20)}
    assert len(numbers) > 1


def test_what_is_charged_over_parts_is_what_a_condition_costs(tmp_path: Path):
    held = session(parted(tmp_path, ROWS))
    assert held.quote(COUNT, epsilon=1).cost.epsilon == 1
    whole = session(parquet(tmp_path, ROWS))
    where = whole.explain("SELECT COUNT(*) AS n FROM t WHERE day IS NOT NULL", epsilon=1)
    assert held.explain(COUNT, epsilon=1)._release.cost == where._release.cost


def test_a_rehearsal_has_the_same_cost(tmp_path: Path):
    file = tmp_path / "t.toml"
    file.write_text(
        'neighbours = "bounded"\n[budget]\nepsilon = 9\n[tables.t]\npath = "{day}.parquet"\n'
        '[tables.t.columns]\nday = { type = "text" }\n',
        encoding="utf-8",
    )
    with rehearse(file) as held:
        assert held.quote(COUNT, epsilon=1).cost.epsilon == 1


def test_every_kind_of_files_says_whether_it_can_drop_rows():
    assert {kind: kind.can_drop_rows for kind in (*StoredFiles.__args__, Origin)} == {
        ParquetFiles: False,
        PartedFiles: True,
        DatabaseTable: False,
        Origin: False,
    }


# Lies.


def take_parts_for_whole_files(patch: Patch) -> None:
    patch.setattr(PartedFiles, "can_drop_rows", False)


def forget_that_rows_are_dropped(patch: Patch) -> None:
    """As if declared facts had no room for it."""
    honest = public_tables.resolve

    def resolve(*args: Any, **words: Any) -> Any:
        return honest(*args, **{**words, "can_drop_rows": False})

    patch.setattr(public_tables, "resolve", resolve)


@pytest.mark.parametrize("lie", [take_parts_for_whole_files, forget_that_rows_are_dropped])
def test_a_lie_is_caught(tmp_path: Path, lie: Callable[[Patch], None]):
    turns = iter(range(9))

    def check() -> None:
        assert_public_or_noisy(sessions(tmp_path / str(next(turns)), parted))

    assert_caught(lie, check)
