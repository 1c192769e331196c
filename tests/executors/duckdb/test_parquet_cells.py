"""Extremes of every type of Parquet: a question is answered, or refused before it is charged, whether or not they are
there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsql
from dpsql.errors import InternalError, InvalidSchema, QueryRefused, UnsupportedSQL
from dpsql.executors.duckdb import files, parquet_texts
from dpsql.testing import insecure_exact
from tests.executors.contract import KEY, TERMS, session
from tests.lies import Patch, assert_caught

WORDS = [-(2**63), -(2**63) + 1, 2**63 - 1]
HALVES = [-(2**31), -(2**31) + 1, 2**31 - 1]


def ticks(kind: Any, extremes: bool) -> Any:
    small = pa.types.is_time32(kind) or pa.types.is_date32(kind)
    cells = [0, 1, None, *((HALVES if small else WORDS) if extremes else [2, 3, 4])]
    return pa.array(cells, pa.int32() if small else pa.int64()).view(kind)


def decimals(kind: Any, extremes: bool) -> Any:
    size = kind.byte_width
    most = 2 ** (8 * size - 1)
    cells = [0, 150, *([-most, most - 1, 10**kind.precision] if extremes else [1, 2, 3])]
    data = b"".join(each.to_bytes(size, "little", signed=True) for each in cells)
    return pa.Array.from_buffers(kind, len(cells), [None, pa.py_buffer(data)])


def texts(extremes: bool, kind: Any = None) -> Any:
    odd = [b"\xff", b"\xed\xa0\x80", b"caf\xe9?", b"?\xc0\x80"] if extremes else [None] * 4
    return pa.array([b"a", b"?", b"what?", b"", None, *odd], pa.binary()).view(kind or pa.string())


def nested(kind: Any, extremes: bool) -> Any:
    inner = ticks(kind, extremes)
    return pa.StructArray.from_arrays([inner, pa.ListArray.from_arrays(list(range(len(inner) + 1)), inner)], ["a", "b"])


def jsons(extremes: bool) -> Any:
    last = [b"{", b"\xff"] if extremes else [b"1", b"2"]
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array([b"{}", *last], pa.binary()).view(pa.string()))


INT96 = {"use_deprecated_int96_timestamps": True}
AS_INTEGERS = {"store_decimal_as_integer": True}
SAFE: dict[str, tuple[Any, dict[str, Any]]] = {
    **{f"timestamp {unit}": (lambda ex, u=unit: ticks(pa.timestamp(u), ex), {}) for unit in ("us", "ns")},
    **{f"instant {unit}": (lambda ex, u=unit: ticks(pa.timestamp(u, "UTC"), ex), {}) for unit in ("us", "ns")},
    "date": (lambda ex: ticks(pa.date32(), ex), {}),
    "duration": (lambda ex: ticks(pa.duration("ns"), ex), {}),
    "int64": (lambda ex: ticks(pa.int64(), ex), {}),
    "uint64": (lambda ex: pa.array([0, 1, 2**64 - 1 if ex else 2], pa.uint64()), {}),
    "half": (lambda ex: pa.array([0.5, float("nan") if ex else 1.0, float("inf") if ex else 2.0], pa.float16()), {}),
    "double": (lambda ex: pa.array([0.5, float("nan") if ex else 1.0, 1e308 if ex else 2.0, -0.0]), {}),
    "decimal of 38": (lambda ex: decimals(pa.decimal128(38, 0), ex), {}),
    "decimal of 38 with places": (lambda ex: decimals(pa.decimal128(38, 10), ex), {}),
    "decimal of 76": (lambda ex: decimals(pa.decimal256(76, 2), ex), {}),
    "decimal in 64 bits": (lambda ex: decimals(pa.decimal64(18, 0), ex), AS_INTEGERS),
    "text": (texts, {}),
    "text without a dictionary": (texts, {"use_dictionary": False}),
    "dictionary": (lambda ex: texts(ex).dictionary_encode(), {}),
    "bytes": (lambda ex: pa.array([b"a", b"\xff" if ex else b"b"]), {}),
    "list of texts": (lambda ex: pa.ListArray.from_arrays(list(range(10)), texts(ex)), {}),
    "nested times": (lambda ex: nested(pa.timestamp("us"), ex), {}),
}
UNSAFE: dict[str, tuple[Any, dict[str, Any]]] = {
    "timestamp ms": (lambda ex: ticks(pa.timestamp("ms"), ex), {}),
    "instant ms": (lambda ex: ticks(pa.timestamp("ms", "UTC"), ex), {}),
    "INT96": (lambda ex: ticks(pa.timestamp("us"), ex), INT96),
    "time s": (lambda ex: ticks(pa.time32("s"), ex), {}),
    "time ms": (lambda ex: ticks(pa.time32("ms"), ex), {}),
    "time us": (lambda ex: ticks(pa.time64("us"), ex), {}),
    "time ns": (lambda ex: ticks(pa.time64("ns"), ex), {}),
    "JSON": (jsons, {}),
    "nested timestamp ms": (lambda ex: nested(pa.timestamp("ms"), ex), {}),
    "nested time": (lambda ex: nested(pa.time64("us"), ex), {}),
}
QUERIES = [
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(*) FROM t WHERE n > 1",
    "SELECT COUNT(x) FROM t WHERE n > 1",
    "SELECT COUNT(*) FROM t WHERE x IS NULL AND n > 100",
    "SELECT x, COUNT(*) FROM t GROUP BY x",
    "SELECT COUNT(DISTINCT x) FROM t",
    "SELECT COUNT(*) FROM t WHERE x > 5",
    "SELECT COUNT(*) FROM t WHERE x < TIMESTAMP '2020-01-01 00:00:00'",
    "SELECT COUNT(*) FROM t WHERE x LIKE 'a%'",
]


def written(folder: Path, form: tuple[Any, dict[str, Any]], extremes: bool) -> Path:
    make, options = form
    column = make(extremes)
    path = folder / f"{extremes}.parquet"
    pq.write_table(pa.table({"n": range(len(column)), "x": column}), path, **options)
    return path


def outcomes(path: Path, **words: Any) -> list[str]:
    """For each question "answer" or the refusal's words; nothing is charged for a refusal."""
    try:
        held = dpsql.Session({"t": dpsql.Table(path, **words)}, budget=dpsql.Budget(1e6, 0.1))
    except InvalidSchema as error:
        return [str(error)]
    found = [outcome(held, sql) for sql in QUERIES]
    assert held.spent.epsilon == found.count("answer")
    return found


def outcome(held: dpsql.Session, sql: str) -> str:
    try:
        held.query(sql, epsilon=1, delta=1e-6)
    except QueryRefused as error:
        return str(error)
    return "answer"


@pytest.mark.parametrize("name", SAFE)
def test_extremes_are_read(name: str, tmp_path: Path):
    plain, extreme = (written(tmp_path, SAFE[name], extremes) for extremes in (False, True))
    assert outcomes(extreme) == outcomes(plain)
    assert outcomes(extreme)[:4] == ["answer"] * 4
    assert outcomes(extreme, unit="x", max_rows=1) == outcomes(plain, unit="x", max_rows=1)


@pytest.mark.parametrize("name", UNSAFE)
def test_a_type_that_the_reader_can_fail_on_is_refused_by_the_schema(name: str, tmp_path: Path):
    plain, extreme = (written(tmp_path, UNSAFE[name], extremes) for extremes in (False, True))
    found = outcomes(plain)
    assert outcomes(extreme) == found
    assert found[:2] == ["answer"] * 2  # the other columns are read
    assert all('reading of "x" that no cell can make fail' in each for each in found[2:4])
    assert outcomes(extreme, unit="x", max_rows=1) == outcomes(plain, unit="x", max_rows=1)
    assert "stored as" in outcomes(plain, unit="x", max_rows=1)[0]


def test_the_advice_is_accepted(tmp_path: Path):
    """Read as Arrow, such a column is answered whatever its cells."""
    for extremes in (False, True):
        table = pq.read_table(written(tmp_path, UNSAFE["timestamp ms"], extremes))
        held = session({"t": dpsql.Table(table)}, "auto")
        assert insecure_exact(held, "SELECT COUNT(x) FROM t", KEY, **TERMS).parts == {(): (4 if extremes else 5,)}


def test_the_reader_fails_where_it_is_not_asked(tmp_path: Path):
    """Each type that is refused is one that DuckDB's own reader fails on: else the refusal can go."""
    for name, form in UNSAFE.items():
        with pytest.raises(duckdb.Error):
            duckdb.sql(f"SELECT hash(x) FROM '{written(tmp_path, form, True)}'").fetchall()
        assert name


ODD_QUERIES = [
    "SELECT x, COUNT(*) FROM t GROUP BY x",
    "SELECT COUNT(*) FROM t WHERE x LIKE '%?%'",
    "SELECT COUNT(*) FROM t WHERE x <> 'zz'",
    "SELECT COUNT(*), SUM(CLAMP(n, 0, 9)) FROM t WHERE x IS NULL",
    "SELECT COUNT(DISTINCT x) FROM t",
]


@pytest.mark.parametrize("words", [{}, {"unit": "x", "max_rows": 1}, {"public": True}], ids=["value", "unit", "public"])
def test_bytes_that_are_no_text_are_null_as_in_arrow(words: dict[str, Any], tmp_path: Path):
    for name in ("text", "text without a dictionary", "dictionary"):
        path = written(tmp_path, SAFE[name], True)
        sources = [path, pq.read_table(path)]
        queries = [sql for sql in ODD_QUERIES if "unit" not in words or " x" not in sql] + ["SELECT COUNT(*) FROM t"]
        if "public" in words:
            tables = [dpsql.Session({"t": dpsql.Table(each, **words)}, budget=dpsql.Budget(1)) for each in sources]
            a, b = ([held.query(sql, epsilon=1).df.to_dict() for sql in queries] for held in tables)
        else:
            more = {**words, "nullable": {"n": True}}
            held = [session({"t": dpsql.Table(each, **more)}, "duckdb") for each in sources]
            a, b = ([insecure_exact(each, sql, KEY, **TERMS).parts for sql in queries] for each in held)
        assert a == b, name


def test_files_of_several_row_groups_and_parts(tmp_path: Path):
    for place in (0, 1):
        table = pa.table({"n": range(9), "x": texts(True)})
        pq.write_table(table, tmp_path / f"p{place}.parquet", row_group_size=2)
    held = session({"t": dpsql.Table(str(tmp_path / "p*.parquet"))}, "auto")
    found = insecure_exact(held, ODD_QUERIES[0], KEY, **TERMS).parts
    assert found == {("a",): (2,), ("?",): (2,), ("what?",): (2,), ("",): (2,), (None,): (10,)}


def test_a_file_that_is_replaced_is_looked_at_again(tmp_path: Path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"n": range(9), "x": texts(False)}), path)
    held = session({"t": dpsql.Table(path)}, "auto")
    assert insecure_exact(held, ODD_QUERIES[2], KEY, **TERMS).parts == {(): (4,)}
    pq.write_table(pa.table({"n": range(9), "x": texts(True)}), path)
    assert insecure_exact(held, ODD_QUERIES[2], KEY, **TERMS).parts == {(): (4,)}


def test_a_column_that_hides_where_a_row_stands_is_refused(tmp_path: Path):
    pq.write_table(pa.table({"file_row_number": [1], "x": ["a"]}), tmp_path / "t.parquet")
    with pytest.raises(InvalidSchema, match='a column is named "file_row_number"'):
        session({"t": dpsql.Table(tmp_path / "t.parquet")}, "auto")


def test_lies_are_caught(tmp_path: Path):
    def believe_every_type(patch: Patch) -> None:
        patch.setattr(files, "marked", lambda storage, _: storage)

    def keep_odd_texts(patch: Patch) -> None:
        honest = parquet_texts.odd_places
        patch.setattr(parquet_texts, "odd_places", lambda *given: honest(*given).iloc[:0])

    def refused() -> None:
        held = dpsql.Session({"t": dpsql.Table(written(tmp_path, UNSAFE["INT96"], True))}, budget=dpsql.Budget(5))
        with pytest.raises(UnsupportedSQL):
            held.query("SELECT COUNT(x) FROM t", epsilon=1)

    def null() -> None:
        test_bytes_that_are_no_text_are_null_as_in_arrow({}, tmp_path)

    assert_caught(believe_every_type, refused, by=InternalError)
    assert_caught(keep_odd_texts, null)
