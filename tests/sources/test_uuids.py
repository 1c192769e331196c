"""A UUID is one value, its 128 bits, wherever it is stored: the same people and the same groups."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.errors import InvalidSchema, LedgerError
from dpsql.executors.duckdb import cells
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, session
from tests.lies import Patch, assert_caught

IDS = [uuid.UUID(int=number) for number in (0, 1, 2**64, 2**127, 2**128 - 1, 0xA0EEBC999C0B4EF8BB6D6BB9BD380A11)]
ROWS = [*IDS, *IDS[:3], IDS[0], None]
QUERIES = [
    "SELECT COUNT(*), SUM(n) FROM t",
    "SELECT COUNT(DISTINCT id) FROM t",
    "SELECT COUNT(*) FROM t WHERE id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
    "SELECT COUNT(*) FROM t JOIN u USING (id)",
]


def sixteen_bytes() -> Any:
    return pa.array([None if each is None else each.bytes for each in ROWS], pa.binary(16))


def arrow() -> Any:
    column = pa.ExtensionArray.from_storage(pa.uuid(), sixteen_bytes())
    return pa.table({"id": column, "n": list(range(len(ROWS)))})


def database(folder: Path) -> Path:
    path = folder / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (id UUID, n BIGINT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(each, n) for n, each in enumerate(ROWS)])
    return path


def parquet(folder: Path, table: Any) -> Path:
    pq.write_table(table, folder / "people.parquet")
    return folder / "people.parquet"


def relation(folder: Path) -> Any:
    return duckdb.connect(str(database(folder))).sql("FROM t")


def bare(folder: Path) -> Any:
    """The bytes without a word that they are UUIDs."""
    assert folder.is_dir()
    return pa.table({"id": sixteen_bytes(), "n": list(range(len(ROWS)))})


def copied(folder: Path) -> Path:
    path = folder / "copied.parquet"
    with duckdb.connect(str(database(folder))) as connection:
        connection.execute(f"COPY t TO '{path}'")
    return path


UUID_WORDS: dict[str, Any] = {"types": {"id": "uuid"}}
FORMS: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "relation": (relation, {}),
    "database": (database, {"table": "t"}),
    "Parquet": (lambda folder: parquet(folder, arrow()), {}),
    "Parquet by DuckDB": (copied, {}),
    "Parquet of bytes": (lambda folder: parquet(folder, bare(folder)), UUID_WORDS),
    "Arrow": (lambda _: arrow(), {}),
    "Dataset": (lambda _: ds.dataset(arrow()), {}),
    "ArrowDtype": (lambda _: arrow().to_pandas(types_mapper=pd.ArrowDtype), {}),
    "Arrow of bytes": (bare, UUID_WORDS),
    "text": (lambda _: pd.DataFrame({"id": texts(), "n": range(len(ROWS))}), {"types": {"id": "text"}}),
}


def texts() -> pd.Series:
    return pd.Series([None if each is None else str(each) for each in ROWS], dtype="str")


def numbers(form: str, folder: Path, engine: str = "duckdb") -> list[object]:
    make, words = FORMS[form]
    table = dpsql.Table(make(folder), unit="id", max_rows=2, bounds={"n": (0, 20)}, nullable={"n": True}, **words)
    other = dpsql.Table(pd.DataFrame({"id": texts().iloc[:4], "k": range(4)}), unit="id", max_rows=1)
    held = session({"t": table, "u": other}, engine)
    return [insecure_exact(held, sql, KEY, **TERMS).parts for sql in QUERIES]


@pytest.mark.parametrize("form", FORMS)
def test_people_are_the_same_in_every_storage(form: str, tmp_path: Path):
    expected = numbers("text", tmp_path)
    assert numbers(form, tmp_path) == expected
    if form in ("Arrow", "ArrowDtype", "Arrow of bytes", "text"):
        assert numbers(form, tmp_path, "pandas") == expected


def test_groups_are_named_alike(tmp_path: Path):
    for form, (make, words) in FORMS.items():
        held = session({"t": dpsql.Table(make(tmp_path), **words)}, "auto")
        found = insecure_exact(held, "SELECT id, COUNT(*) FROM t GROUP BY id", KEY, **TERMS).parts
        assert {key for (key,) in found} == {None if each is None else str(each) for each in ROWS}, form
        (tmp_path / "people.duckdb").unlink(missing_ok=True)


def test_a_ledger_remembers_the_unit(tmp_path: Path):
    """The unit is the same in files and in Arrow, so both are charged to one ledger; a table without it is refused."""
    words: dict[str, Any] = {"unit": "id", "max_rows": 2}
    ledger = tmp_path / "spent.ledger"

    def opened(source: Any, **more: Any) -> dpsql.Session:
        return dpsql.Session({"t": dpsql.Table(source, **more)}, budget=dpsql.Budget(10), ledger=ledger)

    with opened(parquet(tmp_path, arrow()), **words) as first:
        first.query("SELECT COUNT(*) FROM t", epsilon=1)
    with opened(arrow(), **words) as second:
        second.query("SELECT COUNT(*) FROM t", epsilon=1)
        assert second.spent.epsilon == 2
    with pytest.raises(LedgerError, match="unit"):
        opened(arrow()).query("SELECT COUNT(*) FROM t", epsilon=1)


def test_bytes_need_the_word(tmp_path: Path):
    for source in (bare(tmp_path), parquet(tmp_path, bare(tmp_path))):
        with pytest.raises(InvalidSchema, match=r'"id" is stored as (?s:.*)types=\{"id": "uuid"\}'):
            session({"t": dpsql.Table(source, unit="id", max_rows=1)}, "auto")
        with pytest.raises(InvalidSchema, match="cannot be read as text"):
            session({"t": dpsql.Table(source, types={"id": "text"})}, "auto")


def test_bytes_of_another_length_are_nobody(tmp_path: Path):
    table = pa.table({"id": [uuid.UUID(int=7).bytes, b"short", b"", None, b"x" * 17]})
    held = session({"t": dpsql.Table(parquet(tmp_path, table), unit="id", max_rows=1, **UUID_WORDS)}, "auto")
    assert insecure_exact(held, "SELECT COUNT(*) FROM t", KEY, **TERMS).parts == {(): (1,)}


def test_a_lie_is_caught(tmp_path: Path):
    def half_of_the_bits(patch: Patch) -> None:
        honest = cells._text

        def text(name: str, kind: str) -> str | None:
            found = honest(name, kind)
            return f"LEFT({found}, 18)" if kind == "UUID" else found

        patch.setattr(cells, "_text", text)

    assert_caught(half_of_the_bits, lambda: test_people_are_the_same_in_every_storage("Parquet", tmp_path))
