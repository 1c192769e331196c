"""Columns of Python objects: refused by their dtype until a type is declared, then read cell by cell."""

from __future__ import annotations

import tomllib
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, InternalError, InvalidSchema, TypeMismatch

ROWS = 90
EPSILON = 1e6


def series(cells: list[Any]) -> pd.Series:
    held = np.empty(len(cells), dtype=object)
    held[:] = cells
    return pd.Series(held, dtype=object)


def frame(**columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({name: series(cells) for name, cells in columns.items()})


FROM_SQL = frame(
    pid=[uuid.UUID(int=i // 2) for i in range(ROWS)],
    born=[date(1980, 1, 1 + i % 28) for i in range(ROWS)],
    fee=[Decimal("10.50")] * ROWS,
    ok=[True, None, False] * 30,
    zip=[8001, "8001", "08001"] * 30,
    tags=[["a"]] * ROWS,
    at=[time(10)] * ROWS,
)
TYPES = {"pid": "text", "born": "date", "fee": "decimal", "ok": "boolean", "zip": "text"}
READING = [
    "SELECT COUNT({0}) FROM t", "SELECT COUNT(*) FROM t WHERE {0} IS NOT NULL",
    "SELECT {0}, COUNT(*) FROM t GROUP BY {0}",
    "SELECT COUNT(DISTINCT {0}) FROM t", "SELECT COUNT(*) FROM t WHERE {0} = 'a'", "SELECT SUM({0}) FROM t",
    "SELECT COUNT(x) FROM (SELECT {0} AS x FROM t)", "SELECT COUNT({0}) FROM (SELECT * FROM t)",
    "SELECT COUNT(t.{0}) FROM t", "SELECT COUNT(*) FROM t JOIN t AS u USING ({0})", "SELECT MAX({0}) FROM t",
    "SELECT COUNT(CAST({0} AS TEXT)) FROM t", "SELECT COUNT(*) FROM (SELECT DISTINCT * FROM t)",
    "SELECT COUNT({0}) FROM (SELECT * FROM t UNION ALL SELECT * FROM t)",
    "WITH w AS (SELECT * FROM t) SELECT COUNT({0}) FROM w",
]  # fmt: skip


@pytest.mark.parametrize("sql", READING)
@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_a_query_that_reads_objects_without_a_type_is_refused(sql: str, engine: str):
    for cells in ([], ["a"], [None], [date(2020, 1, 1)], [["a"]]):
        with pytest.raises(DPSQLError) as refused:
            dpsql.query({"t": frame(born=cells)}, sql.format("born"), epsilon=1, delta=1e-9, engine=engine)
        assert not isinstance(refused.value, InternalError)


def test_the_refusal_says_what_to_declare():
    with pytest.raises(TypeMismatch) as refused:
        dpsql.query({"t": FROM_SQL}, "SELECT COUNT(born) FROM t", epsilon=1)
    text = str(refused.value)
    assert '"born" is stored as Python objects' in text
    assert "^^^^" in text
    assert 'types={"born": "text"}, or "integer", "real", "boolean", "date" or "timestamp"' in text
    for kind in ("text", "integer", "real", "boolean", "date", "timestamp"):
        dpsql.query({"t": FROM_SQL}, "SELECT COUNT(born) FROM t", epsilon=1, types={"born": kind})


def test_nothing_is_charged_for_a_refusal():
    session = dpsql.Session({"t": FROM_SQL}, budget=dpsql.Budget(1))
    with pytest.raises(TypeMismatch):
        session.query("SELECT COUNT(born) FROM t", epsilon=1)
    assert session.query("SELECT COUNT(*) FROM t", epsilon=1).item() is not None


def test_a_query_that_does_not_read_the_column_is_answered():
    for sql in ("SELECT COUNT(*) FROM t", "SELECT COUNT(*) FROM (SELECT * FROM t)"):
        assert dpsql.query({"t": FROM_SQL}, sql, epsilon=EPSILON).item() == ROWS


def test_columns_of_objects_as_unit_key_or_public_table_are_refused():
    for said in ({"unit": "pid", "max_rows": 1}, {"unique": ["pid"]}, {"public": True}, {"keys": {"zip": ["a"]}},
                 {"bounds": {"fee": (0, 9)}}):  # fmt: skip
        with pytest.raises(InvalidSchema, match="declared type") as refused:
            dpsql.Table(FROM_SQL, **said)
        assert "types={" in str(refused.value)


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_declared_types_read_every_cell(engine: str):
    table = dpsql.Table(FROM_SQL, types=TYPES, unit="pid", max_rows=2)
    sql = "SELECT COUNT(*), COUNT(born), COUNT(fee), COUNT(ok), COUNT(DISTINCT pid), COUNT_IF(zip = '8001') FROM t"
    (row,) = dpsql.query({"t": table}, sql, epsilon=EPSILON, engine=engine)
    assert row == (ROWS, ROWS, ROWS, 60, ROWS // 2, 60)
    late = "SELECT COUNT(*) FROM t WHERE born >= '1980-01-10'"
    expected = sum(each >= date(1980, 1, 10) for each in FROM_SQL["born"])
    assert dpsql.query({"t": table}, late, epsilon=EPSILON, engine=engine).item() == expected


def test_a_category_of_objects_needs_a_type_too():
    held = pd.DataFrame({"x": pd.Categorical(series([date(2020, 1, 1), 5, "a"] * 3))})
    with pytest.raises(TypeMismatch):
        dpsql.query({"t": held}, "SELECT COUNT(x) FROM t", epsilon=1)
    for kind, count in (("date", 3), ("integer", 3), ("text", 9)):
        asked = dpsql.query({"t": held}, "SELECT COUNT(x) FROM t", epsilon=EPSILON, types={"x": kind})
        assert asked.item() == count


class Counting:
    """Counts how often a method of its class is called."""

    calls = 0

    def called(self, *_args: Any) -> Any:
        Counting.calls += 1
        raise RuntimeError

    __eq__ = __str__ = __float__ = __int__ = __bool__ = __len__ = __iter__ = __index__ = called
    __hash__ = called  # type: ignore[assignment]
    __class__ = property(called)  # type: ignore[assignment]


@pytest.mark.parametrize("kind", ["text", "integer", "real", "boolean", "date", "timestamp"])
@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_no_method_of_a_cells_class_is_called(kind: str, engine: str):
    plain = {"text": "a", "integer": 1, "real": 1.5, "boolean": True, "date": date(2020, 1, 1)}.get(kind)
    plain = datetime(2020, 1, 1, tzinfo=UTC) if plain is None else plain
    before = Counting.calls
    held = frame(x=[plain, Counting(), plain], u=[1, Counting(), 2])
    table = dpsql.Table(held, types={"x": kind, "u": kind if kind == "text" else "integer"}, unit="u", max_rows=3)
    assert dpsql.query({"t": table}, "SELECT COUNT(x) FROM t", epsilon=EPSILON, engine=engine).item() == 2
    assert Counting.calls == before


def test_suggest_schema_proposes_types_of_objects(tmp_path: Path):
    data = FROM_SQL.assign(seen=series([datetime(2020, 1, 1)] * ROWS), n=series([1, None, 2] * 30))
    data["code"] = series(["22.5", "3"] * 45)
    data["day"] = series(["05/13/2024"] * ROWS)
    columns = tomllib.loads(dpsql.suggest_schema(data, "t"))["tables"]["t"]["columns"]
    assert {name: facts["type"] for name, facts in columns.items()} == {
        "pid": "text", "born": "date", "fee": "real", "ok": "boolean", "zip": "text", "tags": "text", "at": "text",
        "seen": "timestamp", "n": "integer", "code": "real", "day": "date",
    }  # fmt: skip
    assert columns["day"]["format"] == "%m/%d/%Y"
    types = {name: facts["type"] for name, facts in columns.items()}
    table = dpsql.Table(data, types=types, format={"day": "%m/%d/%Y"})
    counts = ", ".join(f"COUNT({name})" for name in data.columns)
    (row,) = dpsql.query({"t": table}, f"SELECT {counts} FROM t", epsilon=EPSILON)
    assert row == (ROWS, ROWS, ROWS, 60, ROWS, 0, ROWS, ROWS, 60, ROWS, ROWS)


def test_an_owners_file_types_the_objects_of_a_frame(tmp_path: Path):
    (tmp_path / "o.toml").write_text('[budget]\nepsilon = 1e9\n[tables.t.columns]\nborn = { type = "date" }\n')
    session = dpsql.Session({"t": FROM_SQL}, schema=dpsql.Schema.from_toml(tmp_path / "o.toml"))
    assert session.query("SELECT COUNT(born) FROM t", epsilon=EPSILON).item() == ROWS
    with pytest.raises(TypeMismatch):
        session.query("SELECT COUNT(fee) FROM t", epsilon=EPSILON)
