"""Synthetic tables: some rows that any table of a schema could have, and no actual row.

A dry run executes a plan on them before it is charged. They depend only on the schema: columns of the stored types,
with cells that the declarations allow.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any, cast

import numpy as np
import pandas as pd

from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.schema.calendar import date_of, timestamp_of
from dpsql.schema.columns import ColumnSchema, Key, TableSchema, Type

_PLAIN: Mapping[Type, Key] = {Type.INTEGER: 1, Type.REAL: 1.0, Type.BOOLEAN: True, Type.TEXT: "a"}
_DTYPES = {
    Type.INTEGER: "int64",
    Type.REAL: "float64",
    Type.BOOLEAN: "bool",
    Type.DATE: "datetime64[s]",
    Type.TIMESTAMP: "datetime64[us]",
}
_ARROW = "[pyarrow]"
_DECIMAL = re.compile(r"decimal(128|256)\((\d+), (-?\d+)\)")
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(\w+), ordered=\w+>")


_MOST_KEPT = 64
_kept: OrderedDict[int, tuple[SyntheticStore, ...]] = OrderedDict()
_lock = Lock()


def made_up_stores(schema: TableSchema) -> tuple[SyntheticStore, ...]:
    """Return a store without rows and one of one row; those of recent schemas are cached, with their column caches."""
    with _lock:
        stores = _kept.pop(id(schema), None)
        if stores is None or stores[0].schema is not schema:
            stores = (SyntheticStore(schema, 0), SyntheticStore(schema, 1))
        _kept[id(schema)] = stores
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return stores


class SyntheticStore(ColumnStore):
    """A store of equal synthetic rows; a column is created when it is first read."""

    def __init__(self, schema: TableSchema, rows: int) -> None:
        super().__init__(cast(pd.DataFrame, _Frame(schema, rows)), schema)


class _Frame:
    """The parts of a DataFrame's interface that a store uses."""

    def __init__(self, schema: TableSchema, rows: int) -> None:
        self._schema = schema
        self._rows = rows
        self._made: dict[str, pd.Series] = {}

    def copy(self, *, deep: bool) -> _Frame:
        assert not deep  # nothing is ever written
        return self

    def __len__(self) -> int:
        return self._rows

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self._schema.columns]

    def __getitem__(self, name: str) -> pd.Series:
        if name not in self._made:
            self._made[name] = made_up(self._schema.by_name[name.casefold()], self._rows)
        return self._made[name]


def made_up(column: ColumnSchema, rows: int) -> pd.Series:
    """Return equal cells of a column in its stored type; NULLs if that type cannot hold the value."""
    cell = made_up_cell(column)
    cell = int(cell) if column.wide else cell
    if column.storage.startswith("category"):
        return pd.Series(pd.Categorical([cell] * rows, categories=[] if cell is None else [cell]))
    dtype, plain = _dtype(column), np.dtype(_DTYPES.get(column.type, "object"))
    text = None if cell is None else str(cell)
    for each, kind in ((cell, dtype), (text, dtype), (cell, plain)):  # numbers and times may be stored as text
        try:
            return pd.Series([each] * rows, dtype=kind)
        except Exception:  # noqa: BLE001 - pandas' types refuse with errors of every kind
            continue
    return pd.Series([None] * rows, dtype=object)


def made_up_cell(column: ColumnSchema) -> Any:
    """Return a value that the declarations of a column allow: its first key, or else 1 or the nearest value within its
    bounds. Columns with the same declarations have the same value, so that synthetic rows of several tables match."""
    key = made_up_key(column)
    if not column.type.temporal or key is None:
        return key
    return date_of(int(key)) if column.type is Type.DATE else timestamp_of(int(key))


def made_up_key(column: ColumnSchema) -> Key:
    """As `made_up_cell`, in the form of keys and bounds: dates and times as numbers."""
    listed = next((key for key in column.keys or () if key is not None), None)
    if listed is not None or column.type.opaque:
        return listed
    key = "1" if column.wide else _PLAIN.get(column.type, 1)
    if column.bounds is None or not isinstance(key, int | float) or column.type is Type.BOOLEAN:
        return key
    held = max(column.bounds.lower, min(column.bounds.upper, key))
    return float(held) if column.type is Type.REAL else int(held)


def _dtype(column: ColumnSchema) -> Any:
    """Return the dtype of a column's storage; objects if its name cannot be parsed."""
    storage = column.storage
    try:
        if not storage.endswith(_ARROW) or not storage.startswith(("decimal", "dictionary", "string[")):
            return pd.api.types.pandas_dtype(storage)
        return pd.ArrowDtype(_arrow_type(storage.removesuffix(_ARROW)))  # names that pandas misreads
    except Exception:  # noqa: BLE001 - as above
        return np.dtype(object)


def _arrow_type(name: str) -> Any:
    """Return the Arrow type of that name."""
    import pyarrow as pa  # type: ignore[import-untyped]  # there: a column of the table is Arrow's

    decimal, dictionary = _DECIMAL.fullmatch(name), _DICTIONARY.fullmatch(name)
    if decimal is not None:
        bits, digits, places = map(int, decimal.groups())
        return (pa.decimal128 if bits == 128 else pa.decimal256)(digits, places)
    if dictionary is not None:
        return pa.dictionary(_arrow_type(dictionary[2]), _arrow_type(dictionary[1]))
    return pa.type_for_alias(name)
