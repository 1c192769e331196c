"""A text of Arrow whose bytes are not UTF-8 is NULL, as a value, a key and a unit, wherever it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import dpsql
from dpsql.executors.pandas.columns import encoding
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, session
from tests.lies import Patch, assert_caught

ODD = [b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"a\xe2\x82", b"\xf4\x90\x80\x80"]
"""A byte of no character, half a character, a NUL too long, a character cut off, and one beyond the last."""
QUERIES = [
    "SELECT s, COUNT(*) FROM t GROUP BY s",
    "SELECT COUNT(*) FROM t WHERE s <> 'zz'",
    "SELECT COUNT(*), SUM(CLAMP(n, 0, 9)) FROM t WHERE UPPER(s) LIKE '%A' OR s IS NULL",
    "SELECT COUNT(DISTINCT s) FROM t",
]


def texts(cells: list[bytes | None], kind: Any = None) -> Any:
    """An Arrow array of these bytes as texts, unchecked, as pyarrow.parquet.read_table gives it."""
    if kind == pa.string_view():
        return pa.array(cells, pa.binary_view()).view(kind)
    large = kind == pa.large_string()
    return pa.array(cells, pa.large_binary() if large else pa.binary()).view(kind or pa.string())


def table(column: Any) -> Any:
    return pa.table({"s": column, "n": list(range(len(column)))})


def nested(cells: list[bytes | None]) -> Any:
    inner = texts(cells).dictionary_encode()
    return pa.DictionaryArray.from_arrays(pa.array(range(len(inner)), pa.int8()), inner)


ARROW = pd.ArrowDtype
FORMS: dict[str, Callable[[list[bytes | None]], Any]] = {
    "Table": lambda cells: table(texts(cells)),
    "chunks": lambda cells: pa.concat_tables([table(texts(cells)).slice(0, 2), table(texts(cells)).slice(2)]),
    "RecordBatch": lambda cells: table(texts(cells)).to_batches()[0],
    "RecordBatchReader": lambda cells: table(texts(cells)).to_reader(),
    "large_string": lambda cells: table(texts(cells, pa.large_string())),
    "string_view": lambda cells: table(texts(cells, pa.string_view())),
    "str": lambda cells: table(texts(cells)).to_pandas(),
    "ArrowDtype": lambda cells: table(texts(cells)).to_pandas(types_mapper=ARROW),
    "ArrowDtype of views": lambda cells: table(texts(cells, pa.string_view())).to_pandas(types_mapper=ARROW),
    "dictionary": lambda cells: table(texts(cells).dictionary_encode()),
    "dictionary as ArrowDtype": lambda cells: table(texts(cells).dictionary_encode()).to_pandas(types_mapper=ARROW),
    "dictionary of large texts": lambda cells: table(texts(cells, pa.large_string()).dictionary_encode()),
    "nested dictionary": lambda cells: table(nested(cells)),
    "runs": lambda cells: table(pc.run_end_encode(texts(cells))),
    "relation": lambda cells: duckdb.connect().from_arrow(table(texts(cells))),
    "Dataset": lambda cells: ds.dataset(table(texts(cells))),
    "Dataset of a dictionary": lambda cells: ds.dataset(table(texts(cells).dictionary_encode())),
}
GOOD: list[bytes | None] = [b"a", b"b", b"a", None, b"", b"b"]


def held(source: Any, name: str, engine: str, **words: Any) -> dpsql.Session:
    return session({"t": dpsql.Table(source, **words)}, "auto" if name.startswith(("Dataset", "relation")) else engine)


def numbers(name: str, engine: str, cells: list[bytes | None], **words: Any) -> list[object]:
    of_cells = held(FORMS[name](cells), name, engine, **words)
    return [
        insecure_exact(of_cells, sql, KEY, **TERMS).parts for sql in QUERIES if "unit" not in words or " s" not in sql
    ]


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
@pytest.mark.parametrize("name", FORMS)
def test_bytes_that_are_no_text_are_null(name: str, engine: str):
    odd, null = [*GOOD, *ODD], [*GOOD, *[None] * len(ODD)]
    assert numbers(name, engine, odd) == numbers(name, engine, null)
    with_keys: dict[str, Any] = {"keys": {"s": ["a", "b"]}, "nullable": {"s": False}}
    assert numbers(name, engine, odd, **with_keys) == numbers(name, engine, null, **with_keys)


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
@pytest.mark.parametrize("name", FORMS)
def test_bytes_that_are_no_text_are_nobody(name: str, engine: str):
    people = [
        insecure_exact(
            held(FORMS[name](cells), name, engine, unit="s", max_rows=1), "SELECT COUNT(*) FROM t", KEY, **TERMS
        )
        for cells in ([*GOOD, *ODD], GOOD)
    ]
    assert [each.parts for each in people] == [{(): (3,)}, {(): (3,)}]


def test_a_question_is_answered_whether_or_not_such_a_cell_is_there():
    for name in ("Table", "ArrowDtype", "dictionary"):
        for last in (b"ok", *ODD):
            asked = dpsql.Session({"t": FORMS[name]([b"ok"] * 3 + [last])}, budget=dpsql.Budget(5))
            asked.query("SELECT COUNT(*) AS n FROM t WHERE s <> 'zz'", epsilon=1)
            assert asked.spent.epsilon == 1


def read_texts_strictly(patch: Patch) -> None:
    patch.setattr(encoding, "_decoded_text", bytes.decode)


def test_a_lie_is_caught():
    assert_caught(
        read_texts_strictly,
        test_a_question_is_answered_whether_or_not_such_a_cell_is_there,
        by=dpsql.errors.InternalError,
    )
