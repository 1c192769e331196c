"""Columns of whole numbers that may have more than 64 bits: exact as units and as text, else refused by type."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import InvalidSchema, TypeMismatch

NUMBERS = np.random.default_rng(2).integers(0, 2**64 - 1, 200, dtype=np.uint64, endpoint=True)
NUMBERS[:4] = [0, 2**63 - 1, 2**63, 2**64 - 1]
PEOPLE = NUMBERS[np.random.default_rng(3).integers(0, 40, 200)]


def decimals(numbers: Any) -> pd.Series:
    cells = pa.array([Decimal(int(each)) for each in numbers], pa.decimal128(38, 0))
    return pd.Series(pd.arrays.ArrowExtensionArray(cells))


FRAMES = {
    "uint64": pd.Series,
    "UInt64": lambda numbers: pd.Series(pd.array(numbers, dtype="UInt64")),
    "arrow": lambda numbers: pd.Series(numbers).astype("uint64[pyarrow]"),
    "category": lambda numbers: pd.Series(pd.Categorical(numbers)),
    "dictionary": lambda numbers: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(numbers).dictionary_encode())),
    "decimal": decimals,
}
STORED = ("UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL(38,0)")
PLACES = [
    *((kind, engine) for kind in FRAMES for engine in ("pandas", "duckdb")),
    *((kind, "parquet") for kind in ("uint64", "decimal")),
    *((kind, "database") for kind in STORED),
]


def table(kind: str, where: str, folder: Path, **words: Any) -> dpsql.Table:
    plain = pd.DataFrame({"h": NUMBERS, "pid": PEOPLE})
    if where == "database":
        file = folder / f"{len(list(folder.iterdir()))}.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.register("plain", plain)
            connection.execute(
                f"CREATE TABLE t AS SELECT CAST(h AS {kind}) AS h, CAST(pid AS {kind}) AS pid FROM plain"
            )
        return dpsql.Table(file, table="t", **words)
    frame = pd.DataFrame({"h": FRAMES[kind](NUMBERS), "pid": FRAMES[kind](PEOPLE)})
    if where != "parquet":
        return dpsql.Table(frame, **words)
    file = folder / f"{len(list(folder.iterdir()))}.parquet"
    frame.to_parquet(file)
    return dpsql.Table(file, **words)


def session(where: str, **tables: dpsql.Table) -> dpsql.Session:
    engine = where if where in ("pandas", "duckdb") else "auto"
    return dpsql.Session(tables, budget=dpsql.Budget(1e9), engine=engine)


def answer(asked: dpsql.Session, sql: str) -> Any:
    ((found,),) = asked.query(sql, epsilon=1e6)
    return found


@pytest.mark.parametrize(("kind", "where"), PLACES)
def test_values_are_refused_by_type(kind: str, where: str, tmp_path: Path):
    asked = session(where, t=table(kind, where, tmp_path))
    assert answer(asked, "SELECT COUNT(h) FROM t") == len(NUMBERS)
    assert answer(asked, "SELECT COUNT(*) FROM t WHERE h IS NULL") == 0
    spent = asked.spent
    for sql in (
        "SELECT COUNT(DISTINCT h) FROM t",
        "SELECT COUNT(*) FROM t WHERE h = 5",
        "SELECT COUNT(*) FROM t WHERE h IN (5, 6)",
        "SELECT COUNT(*) FROM t WHERE h % 10 = 0",
        "SELECT COUNT(*) FROM t WHERE h = pid",
        "SELECT COUNT(DISTINCT CASE WHEN h IS NOT NULL THEN h END) FROM t",
        "SELECT h, COUNT(*) FROM t GROUP BY h",
        "SELECT COUNT(CAST(h AS TEXT)) FROM t",
    ):
        with pytest.raises(TypeMismatch, match="cannot be read exactly"):
            asked.query(sql, epsilon=1, delta=1e-6)
    assert asked.spent == spent


@pytest.mark.parametrize(("kind", "where"), PLACES)
def test_the_digits_are_exact(kind: str, where: str, tmp_path: Path):
    asked = session(where, t=table(kind, where, tmp_path, types={"h": "text"}))
    assert answer(asked, "SELECT COUNT(DISTINCT h) FROM t") == len(set(NUMBERS.tolist()))
    ends = "('0', '9223372036854775807', '9223372036854775808', '18446744073709551615')"
    assert answer(asked, f"SELECT COUNT(*) FROM t WHERE h IN {ends}") == 4
    assert answer(asked, "SELECT COUNT(*) FROM t WHERE RIGHT(h, 1) = '0'") == sum(NUMBERS % 10 == 0)


@pytest.mark.parametrize(("kind", "where"), PLACES)
def test_bounds_clip_them(kind: str, where: str, tmp_path: Path):
    asked = session(where, t=table(kind, where, tmp_path, bounds={"h": (0, 1000)}))
    assert round(answer(asked, "SELECT SUM(h) FROM t")) == sum(min(1000, each) for each in NUMBERS.tolist())
    assert answer(asked, "SELECT COUNT(DISTINCT h) FROM t") == 2


@pytest.mark.parametrize(("kind", "where"), PLACES)
def test_units_are_the_stored_numbers(kind: str, where: str, tmp_path: Path):
    held = table(kind, where, tmp_path, unit="pid", max_rows=500)
    asked = session(where, t=held, o=table(kind, where, tmp_path, unit="pid", max_rows=500))
    people = len(set(PEOPLE.tolist()))
    assert answer(asked, "SELECT COUNT(DISTINCT pid) FROM t") == people
    assert answer(asked, "SELECT COUNT(DISTINCT pid) FILTER (WHERE h IS NOT NULL) FROM t") == people
    assert answer(asked, "SELECT COUNT(DISTINCT CASE WHEN h IS NOT NULL THEN pid END) FROM t") == people
    assert answer(asked, "SELECT COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM t GROUP BY pid)") == people
    assert answer(asked, "SELECT COUNT(*) FROM t WHERE pid IN (SELECT pid FROM o)") == len(PEOPLE)
    windowed = "SELECT ROW_NUMBER() OVER (PARTITION BY pid ORDER BY h IS NULL) AS r FROM t"
    assert answer(asked, f"SELECT COUNT(*) FROM ({windowed}) WHERE r = 1") == people
    pairs = sum(count**2 for count in np.unique(PEOPLE, return_counts=True)[1].tolist())
    assert answer(asked, "SELECT COUNT(*) FROM t JOIN o USING (pid)") == pairs
    for sql in (
        "SELECT COUNT(*) FROM t WHERE pid % 2 = 0",
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY pid ORDER BY pid) AS r FROM t) WHERE r = 1",
        "SELECT COUNT(*) FROM (SELECT pid, MAX(pid) AS m FROM t GROUP BY pid) WHERE m > 7",
        "SELECT COUNT(*) FROM t WHERE pid = h",
    ):
        with pytest.raises(TypeMismatch, match="cannot be read exactly"):
            asked.query(sql, epsilon=1)


def test_public_keys_are_refused_where_they_are_declared():
    with pytest.raises(InvalidSchema, match="too large to be compared exactly") as refusal:
        session("pandas", p=dpsql.Table(pd.DataFrame({"h": NUMBERS}), public=True, unique=["h"]))
    assert 'types={"h": "text"}' in str(refusal.value)
    public = dpsql.Table(pd.DataFrame({"h": NUMBERS}), public=True, unique=["h"], types={"h": "text"})
    asked = session("pandas", t=table("uint64", "pandas", Path(), types={"h": "text"}), p=public)
    assert answer(asked, "SELECT COUNT(*) FROM t JOIN p USING (h)") == len(NUMBERS)


@pytest.mark.parametrize("kind", ["uint64", "decimal"])
def test_the_advice_is_accepted_where_it_is_typed(kind: str):
    """Each of its declarations lets the refused query be answered."""
    frame = pd.DataFrame({"h": FRAMES[kind](NUMBERS)})
    sql = "SELECT COUNT(DISTINCT h) FROM t"
    with pytest.raises(TypeMismatch) as refusal:
        dpsql.query(frame, sql, epsilon=1)
    advised = [{"bounds": {"h": (0, 1000000)}}, {"types": {"h": "text"}}]
    advised += [{"types": {"h": "integer"}}] if kind == "decimal" else []
    for words in advised:
        ((word, value),) = words.items()
        assert f"{word}={value}".replace("'", '"') in str(refusal.value)
        assert len(dpsql.query(frame, sql, epsilon=1, **words)) == 1


def test_the_same_text_is_planned_for_each_declaration():
    frame = pd.DataFrame({"h": decimals(NUMBERS)})
    assert len(dpsql.query(frame, "SELECT COUNT(DISTINCT h) FROM t", epsilon=1, types={"h": "real"})) == 1
    with pytest.raises(TypeMismatch):
        dpsql.query(frame, "SELECT COUNT(DISTINCT h) FROM t", epsilon=1)


@pytest.mark.parametrize("where", ["pandas", "duckdb", "parquet"])
def test_units_of_other_types_are_compared_as_numbers(where: str, tmp_path: Path):
    """2^53 + 1 is no double: it is not the person whose number a double is."""
    whole, real = [2**53, 2**53 + 1, 2**53 + 2, 2**62 + 1, 5], [2.0**53, 2.0**53 + 2, 2.0**62, 5.0, 2.0**63]
    frames = {"t": pd.DataFrame({"pid": whole}), "o": pd.DataFrame({"pid": real})}
    tables = {}
    for name, frame in frames.items():
        frame.to_parquet(tmp_path / f"{name}.parquet")
        source = tmp_path / f"{name}.parquet" if where == "parquet" else frame
        tables[name] = dpsql.Table(source, unit="pid", max_rows=1)
    asked = session(where, **tables)
    assert answer(asked, "SELECT COUNT(*) FROM t JOIN o ON t.pid = o.pid") == 3
    assert answer(asked, "SELECT COUNT(*) FROM t WHERE pid IN (SELECT pid FROM o)") == 3
