"""What is remembered of a column: by where its cells lie in memory, so that a cell changed in place is seen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors import columns
from dpsql.executors.columns import ColumnStore
from dpsql.schema import Declaration, resolve
from dpsql.sources import stored_columns

needs_arrow = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
PRIVACY = {"epsilon": 1e8, "delta": 1e-9}
"""Next to no noise; groups of three rows are shown."""


def ask(data: Any, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    return list(dpsql.query(data, sql, **{**PRIVACY, **options}))


def session_of(data: pd.DataFrame, **said: Any) -> dpsql.Session:
    return dpsql.Session({"t": dpsql.Table(data, **said)}, budget=dpsql.Budget(1e9, 0.1))


def store_of(data: pd.DataFrame, **said: Any) -> ColumnStore:
    return ColumnStore(data, resolve("t", stored_columns(data), Declaration.of(**said)))


def objects(*held: Any) -> pd.Series:
    return pd.Series(list(held), dtype=object)


def in_arrow(cells: list[Any], kind: str) -> pd.Series:
    """An Arrow column in two chunks."""
    dtype: Any = pd.array([], dtype=f"{kind}[pyarrow]").dtype
    import pyarrow as pa

    made = [pa.array(part, dtype.pyarrow_dtype) for part in (cells[:2], cells[2:])]
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(made)))


MORNING, EVENING = datetime(2020, 1, 1, 8), datetime(2020, 1, 1, 20, 30)

# A column's cells, twice the two of a list, and the facts that it is declared with.

Case = tuple[Callable[[list[Any]], Any], list[Any], dict[str, Any]]
REMEMBERED: dict[str, Case] = {
    "int64": (np.array, [1, 2], {}),
    "float64": (np.array, [1.5, 2.5], {}),
    "datetime64": (pd.to_datetime, [MORNING, EVENING], {}),
    "datetime64 as date": (pd.to_datetime, [MORNING, datetime(2020, 1, 2)], {"types": {"x": "date"}}),
    "zoned": (lambda cells: pd.to_datetime(cells).tz_localize("Asia/Tokyo"), [MORNING, EVENING], {}),
    "Int64": (lambda cells: pd.array(cells, dtype="Int64"), [1, 2], {}),
    "Int64 with NULL": (lambda cells: pd.array(cells, dtype="Int64"), [None, 2], {}),
    "Float64": (lambda cells: pd.array(cells, dtype="Float64"), [1.5, 2.5], {}),
    "boolean": (lambda cells: pd.array(cells, dtype="boolean"), [True, None], {}),
    "str as integer": (lambda cells: pd.array(cells, dtype="str"), ["1", "2"], {"types": {"x": "integer"}}),
    "object as date": (lambda cells: objects(*cells), [date(2020, 1, 1), date(2020, 1, 2)], {"types": {"x": "date"}}),
    "object as decimal": (lambda cells: objects(*cells), [Decimal(1), Decimal(2)], {"types": {"x": "decimal"}}),
    "category of text": (pd.Categorical, ["a", "b"], {}),
    "category of integers": (pd.Categorical, [1, 2], {}),
    "category of times": (pd.Categorical, [pd.Timestamp(MORNING), pd.Timestamp(EVENING)], {}),
    "category as integer": (pd.Categorical, ["1", "2"], {"types": {"x": "integer"}}),
}
IN_ARROW: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "str": ("string", ["a", "b"], {}),
    "int64": ("int64", [1, 2], {}),
    "double": ("double", [1.5, None], {}),
    "bool": ("bool", [True, False], {}),
    "date32": ("date32[day]", [date(2020, 1, 1), date(2020, 1, 2)], {}),
    "timestamp": ("timestamp[us]", [MORNING, EVENING], {}),
    "timestamp as date": ("timestamp[ns]", [MORNING, datetime(2020, 1, 2)], {"types": {"x": "date"}}),
    "decimal": ("decimal128(5, 1)", [Decimal(1), Decimal(2)], {}),
    "dictionary": ("dictionary<values=string, indices=int32>", ["a", "b"], {}),
}


def _arrow_case(kind: str, cells: list[Any], said: dict[str, Any]) -> Case:
    return lambda held: in_arrow(held, kind), cells, said


CASES = [
    *(pytest.param(*case, id=name) for name, case in REMEMBERED.items()),
    *(pytest.param(*_arrow_case(*case), id=f"arrow {name}", marks=needs_arrow) for name, case in IN_ARROW.items()),
]
