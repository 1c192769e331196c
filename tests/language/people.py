"""One small table with a column of every dtype, its declared facts, and the same rows in DuckDB."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pandas as pd

import dpsql

BOUNDS: dict[str, tuple[float, float]] = {"i": (-10, 20), "j": (0, 5), "r": (-5.0, 7.5), "n": (0, 100)}
KEYS: dict[str, list[Any]] = {"s": ["a", "b", "zz", None], "c": ["red", "blue", "none of these"]}
"""Of `s` every value that occurs but "c" is declared, of `c` every value but "green" and NULL: their rows are left
out. "zz" and "none of these" are declared and never occur."""
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
}


def frame(rows: int = 60, seed: int = 7) -> pd.DataFrame:
    """The table: NULLs and NaN in every column that can hold them, some values outside their bounds."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any]) -> list[Any]:
        return [values[k] for k in rng.integers(0, len(values), rows)]

    return pd.DataFrame(
        {
            "i": rng.integers(-13, 24, rows).astype("int64"),
            "j": rng.integers(0, 6, rows).astype("int64"),
            "r": np.where(rng.random(rows) < 0.2, np.nan, np.round(rng.uniform(-6, 9, rows) * 4) / 4),
            "u": np.where(rng.random(rows) < 0.2, np.nan, np.round(rng.uniform(-60, 60, rows) * 2) / 2),
            "n": pd.array(some([0, 1, 7, 50, 99, 100, 130, pd.NA]), dtype="Int64"),
            "s": pd.Series(some(["a", "b", "c", None]), dtype="str"),
            "c": pd.Categorical(some(["red", "blue", "green", None]), categories=["green", "blue", "red", "unused"]),
            "o": pd.Series(some(["x", "y", "it's", "", None, 3, 4.5, True]), dtype=object),
            "b": np.array(some([True, False]), dtype=bool),
            "nb": pd.array(some([True, False, None]), dtype="boolean"),
        }
    )


def cells(data: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as dpsql has them: values clipped to their bounds; NaN, and what is not text in a text column, NULL."""
    return list(zip(*(_column(data, name) for name in COLUMNS), strict=True))


def _column(data: pd.DataFrame, name: str) -> list[Any]:
    return [_cell(value, name) for value in data[name].astype(object)]


def _cell(value: Any, name: str) -> Any:
    kind = COLUMNS[name]
    if kind == "VARCHAR":
        return value if isinstance(value, str) else None
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if kind == "BOOLEAN":
        return bool(value)
    if name in BOUNDS:
        value = min(max(value, BOUNDS[name][0]), BOUNDS[name][1])
    return float(value) if kind == "DOUBLE" else int(value)


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
    """dpsql's answer with next to no noise."""
    options = {"epsilon": LARGEST_EPSILON, "bounds": BOUNDS, "keys": KEYS, **options}
    return dpsql.query(data, sql, **options)
