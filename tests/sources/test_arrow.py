"""Tables of Arrow and of Polars are the frames that they would be."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpsql
from dpsql.errors import InvalidArgument, InvalidSchema
from dpsql.sources.arrow import framed
from dpsql.testing import insecure_exact

ROWS: dict[str, list[Any]] = {
    "u": [3, 1, 1, 2**40, None] * 4,
    "k": ["b", "a", "b", None, "a"] * 4,
    "x": [1.5, 2.25, float("nan"), None, -3.0] * 4,
    "b": [True, False, None, True, True] * 4,
    "d": [datetime.date(2020, 2, 29), None, datetime.date(1999, 1, 1)] * 6 + [None, None],
    "t": [datetime.datetime(2021, 5, 4, 3, 2, 1, 999_999), None] * 10,
    "m": [Decimal("1.25"), Decimal("-0.50"), None, Decimal("9.75")] * 5,
}
WORDS: dict[str, Any] = {
    "bounds": {"u": (0, 9), "x": (-5, 5), "m": (-1, 10), "d": ("1990-01-01", "2030-01-01")},
    "keys": {"k": ["a", "b"]},
}
ASKED = [
    "SELECT k, COUNT(*), COUNT(x), SUM(u), AVG(m) FROM t GROUP BY k",
    "SELECT COUNT_IF(b), SUM(x), COUNT(d), COUNT(t) FROM t WHERE d IS NOT NULL OR t IS NULL",
    "SELECT YEAR(d), MEDIAN(x) FROM t GROUP BY YEAR(d)",
]


def polars() -> pl.DataFrame:
    return pl.DataFrame(ROWS, schema_overrides={"m": pl.Decimal(10, 2)})


SOURCES: dict[str, Callable[[], Any]] = {
    "Table": lambda: polars().to_arrow(),
    "several batches": lambda: pa.concat_tables([polars().to_arrow().slice(0, 7), polars().to_arrow().slice(7)]),
    "RecordBatch": lambda: polars().to_arrow().combine_chunks().to_batches()[0],
    "RecordBatchReader": lambda: pa.Table.to_reader(polars().to_arrow(), max_chunksize=3),
    "DataFrame": polars,
    "LazyFrame": lambda: polars().lazy(),
    "categories": lambda: polars().with_columns(k=pl.col("k").cast(pl.Categorical)),
    "an enumeration": lambda: polars().with_columns(k=pl.col("k").cast(pl.Enum(["b", "a"]))),
}


@pytest.mark.parametrize("sql", ASKED)
@pytest.mark.parametrize("name", SOURCES)
def test_the_integers_are_those_of_the_frame(name: str, sql: str) -> None:
    frame = pd.DataFrame(ROWS).astype({"u": "Int64", "k": "str", "b": "boolean"})
    frame["d"] = frame["d"].astype(pd.ArrowDtype(pa.date32()))
    frame["m"] = frame["m"].astype(pd.ArrowDtype(pa.decimal128(10, 2)))
    tables = (dpsql.Table(source, **WORDS) for source in (frame, SOURCES[name]()))
    sessions = [dpsql.Session({"t": table}, budget=dpsql.Budget(1)) for table in tables]
    one, other = (insecure_exact(session, sql, bytes(32), epsilon=1, delta=1e-6) for session in sessions)
    assert one == other


def test_names_and_columns_are_kept() -> None:
    table = pa.table([[1, 2], ["x", None]], names=["a b", "É"])
    frame = framed(table)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["a b", "É"]
    assert framed(frame) is frame
    assert framed(3) == 3
    twice = pa.table([[1], [2]], names=["a", "a"])
    with pytest.raises(InvalidSchema):
        dpsql.Table(twice)


def test_tables_of_no_rows_and_of_no_columns() -> None:
    none = dpsql.query(polars().clear(), "SELECT COUNT(*) FROM t", epsilon=1e6)
    assert none.item() == 0
    assert dpsql.query(pa.table({"x": pa.array([], pa.int64())}), "SELECT COUNT(x) FROM t", epsilon=1e6).item() == 0


def test_sessions_and_queries_take_them() -> None:
    assert dpsql.query(polars(), "SELECT COUNT(*) FROM t", epsilon=1e6).item() == 20
    people = dpsql.Table(polars().to_arrow(), unit="u", max_rows=20)
    session = dpsql.Session({"t": polars(), "s": people}, budget=dpsql.Budget(1e9))
    assert session.query("SELECT COUNT(*) FROM t", epsilon=1e6).item() == 20
    assert session.query("SELECT COUNT(*) FROM s", epsilon=1e6).item() == 16


def test_a_type_that_arrow_has_not_is_refused_by_its_column() -> None:
    wide = polars().with_columns(wide=pl.col("u").cast(pl.Int128))
    with pytest.raises(InvalidSchema, match='column "wide" has a type that Arrow has not: Int128'):
        dpsql.Table(wide)


def test_other_things_are_no_tables() -> None:
    for other in (polars()["x"], pa.chunked_array([[1]]), {"x": [1]}):
        with pytest.raises(InvalidArgument, match="a table is made of a DataFrame of pandas"):
            dpsql.Table(other)


def test_other_ways_to_hold_the_same_cells_are_read() -> None:
    texts, flags = ["b", None, "b", "é" * 40], [True, None, None, False]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array([7, None], pa.int64()))
    flagged = pa.ExtensionArray.from_storage(pa.bool8(), pa.array(flags, pa.bool_()).cast(pa.int8()))
    views = pa.table({"s": pa.array(texts, pa.string_view()), "b": flagged, "n": runs})
    plain = pa.table({"s": texts, "b": flags, "n": [7, 7, None, None]})
    for sql in ("SELECT s, COUNT(*), COUNT_IF(b) FROM t GROUP BY s", "SELECT n, COUNT(*) FROM t GROUP BY n"):
        one, other = (
            insecure_exact(dpsql.Session({"t": each}, budget=dpsql.Budget(1)), sql, bytes(32), epsilon=1, delta=1e-6)
            for each in (views, plain)
        )
        assert one == other
    assert framed(views.slice(0, 0)) is not None


def test_a_reader_gives_its_rows_once() -> None:
    """A second table of it would silently be one of no rows."""
    reader = polars().to_arrow().to_reader()
    assert dpsql.query(reader, "SELECT COUNT(*) FROM t", epsilon=1e6).item() == 20
    with pytest.raises(InvalidSchema, match="gives its rows once"):
        dpsql.query(reader, "SELECT COUNT(*) FROM t", epsilon=1e6)


def test_what_fails_while_it_is_read_quotes_no_cell() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"x": [1]})
        raise ValueError("a secret")

    lazy = pl.LazyFrame({"x": ["a secret"]}).with_columns(pl.col("x").str.to_integer())
    reader = pa.RecordBatchReader.from_batches(pa.schema([("x", pa.int64())]), batches())
    for source in (lazy, reader):
        with pytest.raises(InvalidSchema, match="a (LazyFrame|RecordBatchReader) cannot be read") as caught:
            dpsql.Table(source)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None
