"""One small table with a column of every dtype, its declared facts, and the same rows in DuckDB."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd

import dpsql

BOUNDS: dict[str, tuple[Any, Any]] = {
    "i": (-10, 20),
    "j": (0, 5),
    "r": (-5.0, 7.5),
    "n": (0, 100),
    "d": (date(2020, 1, 25), date(2020, 3, 5)),
    "w": (datetime(2020, 1, 1), datetime(2020, 2, 29, 18)),
}
KEYS: dict[str, list[Any]] = {"s": ["a", "b", "zz", None], "c": ["red", "blue", "none of these"]}
"""Of `s` every value that occurs but "c" is declared, of `c` every value but "green" and NULL: their rows are left
out. "zz" and "none of these" are declared and never occur."""
TYPES = {"d": "date", "e": "date", "s": "text", "x": "text"}
"""The frame holds dates as timestamps at midnight. A frame of objects needs the type of a text."""
LARGEST_EPSILON = 1e9
COLUMNS = {
    "i": "BIGINT",
    "j": "BIGINT",
    "r": "DOUBLE",
    "u": "DOUBLE",
    "n": "BIGINT",
    "s": "VARCHAR",
    "c": "VARCHAR",
    "o": "VARCHAR",
    "b": "BOOLEAN",
    "nb": "BOOLEAN",
    "d": "DATE",
    "e": "DATE",
    "w": "TIMESTAMP",
    "v": "TIMESTAMP",
    "x": "VARCHAR",
}
_TEXTS = ["abc", "ABC", " Ab ", "a%c", "12", "-3.5", "", "Straße", "aab", "2020-02-29", "yes", "日本 a", None]


def frame(rows: int = 60, seed: int = 7) -> pd.DataFrame:
    """The table: NULLs and NaN in every column that can hold them, some values outside their bounds."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any]) -> list[Any]:
        return [values[k] for k in rng.integers(0, len(values), rows)]

    def days(values: list[str | None]) -> list[pd.Timestamp]:
        return [pd.Timestamp(value) for value in some(values)]

    return pd.DataFrame(
        {
            "i": rng.integers(-13, 24, rows).astype("int64"),
            "j": rng.integers(0, 6, rows).astype("int64"),
            "r": np.where(rng.random(rows) < 0.2, np.nan, np.round(rng.uniform(-6, 9, rows) * 4) / 4),
            "u": np.where(rng.random(rows) < 0.2, np.nan, np.round(rng.uniform(-60, 60, rows) * 2) / 2),
            "n": pd.array(some([0, 1, 7, 50, 99, 100, 130, pd.NA]), dtype="Int64"),
            "s": pd.Series(some(["a", "b", "c", None]), dtype="str"),
            "c": pd.Categorical(some(["red", "blue", "green", None]), categories=["green", "blue", "red", "unused"]),
            "o": pd.Series(some(["x", "y", "it's", "", None, None, None, None]), dtype="string"),
            "b": np.array(some([True, False]), dtype=bool),
            "nb": pd.array(some([True, False, None]), dtype="boolean"),
            "d": pd.Series(days([*_days("2020-01-20", 30, 2), None, None, None]), dtype="datetime64[us]"),
            "e": pd.Series(
                days(["1969-12-31", "2000-02-29", "2020-02-29", "2021-01-03", None]), dtype="datetime64[us]"
            ),
            "w": pd.Series(days([*_days("2019-12-28 05:06:07.25", 24, 3, 7), None, None]), dtype="datetime64[us]"),
            "v": pd.Series(
                days(
                    ["1899-12-31 23:59:59", "2020-02-29 12:30:15.5", "2020-12-31", "2021-06-05 04:03:02.000001", None]
                ),
                dtype="datetime64[us]",
            ),
            "x": pd.Series(some(_TEXTS), dtype="str"),
        }
    )


def _days(first: str, count: int, step: int, hours: int = 0) -> list[str]:
    """Times some days, and some hours, after one another."""
    return [str(pd.Timestamp(first) + pd.Timedelta(days=step * k, hours=hours * k)) for k in range(count)]


def cells(data: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as dpsql has them: values clipped to their bounds; NaN, and what is not text in a text column, NULL."""
    return list(zip(*(_column(data, name) for name in COLUMNS), strict=True))


def _column(data: pd.DataFrame, name: str) -> list[Any]:
    return [_cell(value, name) for value in data[name].astype(object)]


def _cell(value: Any, name: str) -> Any:
    kind = COLUMNS[name]
    if kind == "VARCHAR":
        return value if isinstance(value, str) else None
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if kind in ("DATE", "TIMESTAMP"):
        day = type(value) is date  # Arrow's
        held = datetime(value.year, value.month, value.day) if day else pd.Timestamp(value).to_pydatetime()
        return _clipped(held.date() if kind == "DATE" else held, name)
    if kind == "BOOLEAN":
        return bool(value)
    return _clipped(float(value) if kind == "DOUBLE" else int(value), name)


def _clipped(value: Any, name: str) -> Any:
    return min(max(value, BOUNDS[name][0]), BOUNDS[name][1]) if name in BOUNDS else value


def duck(data: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with the rows as table t, each with m = 1 (a mark that is never NULL)."""
    connection = duckdb.connect(config={"threads": 1})
    # In DuckDB 2.0.0 the optimizer makes NULLIF('red', c) IN ('red', 'x') leave out the rows where c is NULL.
    connection.execute("PRAGMA disable_optimizer")
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    connection.execute(f"CREATE TABLE t ({columns}, m INTEGER DEFAULT 1)")
    marks = ", ".join("?" for _ in COLUMNS)
    rows = cells(data)
    if rows:
        connection.executemany(f"INSERT INTO t ({', '.join(COLUMNS)}) VALUES ({marks})", rows)
    return connection


def ask(data: Any, sql: str, **options: Any) -> Any:
    """dpsql's answer with next to no noise; bounds are those that are declared."""
    options = {
        "auto_bounds": False,
        "epsilon": LARGEST_EPSILON,
        "bounds": BOUNDS,
        "keys": KEYS,
        "types": TYPES,
        **options,
    }
    return dpsql.query(data, sql, **options)
