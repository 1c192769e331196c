"""DuckDB gives pandas' integers, by ==: golden plans, oracle queries and functions, joins, units and marks."""

from __future__ import annotations

import traceback
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InternalError, InvalidArgument, UnsupportedSQL
from dpsql.executors.duckdb import executor
from dpsql.testing import insecure_exact
from tests.executors.contract import (
    KEY,
    TERMS,
    differences,
    function_queries,
    functions_together,
    of_one_table,
    of_several_tables,
    one_table_queries,
    session,
    several_tables_queries,
)

PER_TEST = 40
GOLDEN = Path(__file__).parents[2] / "sql" / "golden"


def parts(queries: list[str], most: int = PER_TEST) -> list[list[str]]:
    return [queries[start : start + most] for start in range(0, len(queries), most)]


@pytest.mark.parametrize("queries", parts(one_table_queries()), ids=lambda each: each[0][:60])
def test_one_table(queries: list[str]):
    assert differences(of_one_table("duckdb"), of_one_table("pandas"), queries) == []


@pytest.mark.parametrize("sql", functions_together(2), ids=lambda each: each[:60])
def test_functions_together(sql: str):
    """All of them; one by one, in WHERE and as keys, they are below."""
    of_one_table("duckdb").explain(sql, **TERMS)  # refused alike, none of the others would be seen
    assert differences(of_one_table("duckdb"), of_one_table("pandas"), [sql]) == []


@pytest.mark.thinned(8)
@pytest.mark.parametrize("queries", parts(function_queries(), 10), ids=lambda each: each[0][:60])
def test_functions(queries: list[str]):
    assert differences(of_one_table("duckdb"), of_one_table("pandas"), queries) == []


@pytest.mark.parametrize("queries", parts(several_tables_queries()), ids=lambda each: each[0][:60])
def test_several_tables(queries: list[str]):
    assert differences(of_several_tables("duckdb"), of_several_tables("pandas"), queries) == []


def golden_people(rows: int = 300) -> dpsql.Table:
    """Rows of the table of the golden plans."""
    rng = np.random.default_rng(1)

    def some(values: list[Any]) -> list[Any]:
        return [values[k] for k in rng.integers(0, len(values), rows)]

    data = pd.DataFrame(
        {
            "age": rng.integers(10, 100, rows),
            "hours": pd.array(some([1, 40, 60, 120, pd.NA]), dtype="Int64"),
            "year": rng.integers(1900, 2030, rows),
            "income": np.where(rng.random(rows) < 0.1, np.nan, rng.uniform(-10, 250_000, rows)),
            "change": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(0, 4, rows)),
            "score": np.where(rng.random(rows) < 0.1, np.inf, rng.normal(0, 1e3, rows)),
            "sex": pd.Series(some(["Female", "Male", "other", None]), dtype="str"),
            "region": pd.Series(some(["north", "south", "east", None]), dtype="str"),
            "city": pd.Series(some([f"city {k}" for k in range(9)] + ["", None]), dtype="str"),
            "member": rng.random(rows) < 0.5,
            "active": pd.array(some([True, False, pd.NA]), dtype="boolean"),
            "born": pd.Series(some([pd.Timedelta(1), pd.NaT]), dtype="timedelta64[us]"),
        }
    )
    return dpsql.Table(
        data,
        bounds={"age": (17, 90), "hours": (1, 99), "income": (0, 200_000), "change": (-5, 3)},
        keys={"sex": ["Female", "Male"], "region": ["north", "south", None]},
        nullable={"change": False},
    )


def test_golden_plans():
    texts = [path.read_text(encoding="utf-8") for path in sorted(GOLDEN.glob("*.sql"))]
    assert len(texts) > 50
    engines = [session({"people": golden_people()}, engine) for engine in ("duckdb", "pandas")]
    assert differences(*engines, texts) == []


def test_empty_tables():
    empty = of_one_table("pandas")._stores["t"].source.iloc[:0]
    engines = [
        session({"t": dpsql.Table(empty, bounds={"i": (-10, 20), "r": (-5.0, 7.5)}, keys={"s": ["a", None]})}, engine)
        for engine in ("duckdb", "pandas")
    ]
    queries = [
        "SELECT COUNT(*), SUM(i), AVG(r) FROM t",
        "SELECT s, COUNT(*), SUM(i) FROM t GROUP BY s",
        "SELECT x, COUNT(*) FROM t GROUP BY x",
        "SELECT MEDIAN(r) FROM t",
        "SELECT COUNT(DISTINCT x) FROM t",
    ]
    assert differences(*engines, queries) == []


ODD: dict[str, list[Any]] = {
    "texts": ["", "\0", "a\0b", "it's", '"', "\\u0041", "𝒳", "e\u0301", "é", "NULL", "nan", " ", "a" * 2_000, None],
    "reals": [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"), 0.1, None],
    "wholes": [0, -1, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**53 + 1, None],
    "days": [date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2024, 2, 29), None],
    "times": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), datetime(1969, 12, 31, 23, 59, 59), None],
    "truths": [True, False, None],
}
ODD_TYPES = {"texts": "text", "reals": "real", "wholes": "integer", "days": "date", "times": "timestamp",
             "truths": "boolean"}  # fmt: skip
ODD_QUERIES = [
    *(f"SELECT {name}, COUNT(*) FROM t GROUP BY {name}" for name in ODD),
    *(f"SELECT COUNT(DISTINCT {name}), COUNT({name}) FROM t" for name in ODD),
    "SELECT SUM(CLAMP(reals, -1e300, 1e300)), AVG(CLAMP(reals, 0, 1)) FROM t",
    "SELECT SUM(CLAMP(wholes, -4611686018427387904, 4611686018427387904)) FROM t",
    "SELECT SUM(CLAMP(wholes // 3, -1000, 1000)), AVG(CLAMP(-wholes, -10, 10)) FROM t",
    "SELECT wholes * 0.5 AS k, COUNT(*) FROM t WHERE reals * 1e300 > 0 OR reals / 0 IS NULL GROUP BY k",
    "SELECT CAST(reals AS INTEGER) AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT TRY_CAST(texts AS DOUBLE) AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT texts || texts AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT REPEAT(texts, 3) AS k, COUNT(DISTINCT texts || 'a') FROM t GROUP BY k",
    "SELECT days + 100000 AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT days + INTERVAL 1 MONTH AS k, times - INTERVAL 10 YEAR AS l, COUNT(*) FROM t GROUP BY k, l",
    "SELECT DATE_TRUNC('month', times) AS k, YEAR(days) AS y, COUNT(*) FROM t GROUP BY k, y",
    "SELECT COUNT(*) FROM t WHERE texts = 'a' || CHR(0) OR texts LIKE '%b' OR texts < 'é'",
    "SELECT MEDIAN(CLAMP(reals, -5, 5)), MIN(days), MAX(times) FROM t",
    "SELECT VAR_POP(CLAMP(reals, -5, 5)), CORR(CLAMP(reals, -1, 1), CLAMP(wholes, -9, 9)) FROM t",
    "SELECT texts, truths, COUNT(*), SUM(CLAMP(reals, -1, 1)) FROM t GROUP BY texts, truths",
]


@pytest.mark.parametrize("units", [False, True])
def test_odd_cells(units: bool):
    """No row makes a statement fail, or is another on the other engine."""
    rng = np.random.default_rng(5)
    rows = 200
    data = pd.DataFrame(
        {
            name: pd.Series([cells[k] for k in rng.integers(0, len(cells), rows)], dtype=object)
            for name, cells in ODD.items()
        }
    )
    declared: dict[str, Any] = {"types": dict(ODD_TYPES)}
    if units:
        declared |= {"unit": "wholes", "max_rows": rows}
    engines = [session({"t": dpsql.Table(data, **declared)}, engine) for engine in ("duckdb", "pandas")]
    assert differences(*engines, ODD_QUERIES) == []


def test_keys_of_last_bits_are_refused():
    held = of_one_table("duckdb")
    with pytest.raises(
        UnsupportedSQL, match="the engine duckdb, which reads these tables, has no groups by the last bits"
    ):
        held.query("SELECT CBRT(i) AS k, COUNT(*) FROM t GROUP BY k", epsilon=1)
    assert held.ledger() == ()


def test_a_query_and_a_session_are_answered():
    data = pd.DataFrame({"g": ["a", "b"] * 50, "x": range(100)})
    facts: dict[str, Any] = {"bounds": {"x": (0, 50)}, "keys": {"g": ["a", "b"]}}
    sql = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM df GROUP BY g"
    one, other = (
        dpsql.query(data, sql, epsilon=1e6, engine=engine, **facts).df.round() for engine in ("duckdb", "pandas")
    )
    pd.testing.assert_frame_equal(one, other)
    with pytest.raises(InvalidArgument, match='engine must be one of "auto", "pandas", "duckdb", "spark", got .duck.'):
        dpsql.query(data, sql, epsilon=1, engine="duck", **facts)
    with pytest.raises(InvalidArgument, match="engine must be one of"):
        dpsql.Session({"df": data}, budget=dpsql.Budget(1), engine=None)  # type: ignore[arg-type]


def test_what_duckdb_says_of_a_failure_never_gets_out(monkeypatch: pytest.MonkeyPatch):
    """Its words quote cells."""
    held = session({"t": dpsql.Table(pd.DataFrame({"g": ["secret"]}))}, "duckdb")
    honest = executor.compile_plan

    def failing(*given: Any) -> Any:
        return replace(honest(*given), text="SELECT CAST('secret' AS INTEGER)")

    monkeypatch.setattr(executor, "compile_plan", failing)
    for ask in (
        lambda: held.query("SELECT COUNT(*) FROM t", epsilon=1),
        lambda: insecure_exact(held, "SELECT COUNT(*) FROM t", KEY, epsilon=1),
    ):
        with pytest.raises(InternalError, match="the run failed") as caught:
            ask()
        told = "".join(traceback.format_exception(caught.value))
        assert "secret" not in told.replace('["secret"]', "").replace("CAST('secret' AS INTEGER)\")", "")
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
