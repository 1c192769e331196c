"""Tables of constants as stores of columns, passed to every engine like public tables."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from dpsql.errors import InternalError
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.plan.constants import ConstantTable
from dpsql.plan.domains import cells_of
from dpsql.plan.expressions import Vector
from dpsql.plan.nodes import Source, scans_of
from dpsql.schema.columns import Type


def constant_stores(sources: Iterable[Source], beside: Iterable[str] = ()) -> dict[str, ColumnStore]:
    """Return the stores of the constant tables of these sources, by folded name. beside: other stores' names, all
    different."""
    tables = {scan.table.name.casefold(): scan.table for source in sources for scan in scans_of(source)}
    found = {name: constant_store(table) for name, table in tables.items() if isinstance(table, ConstantTable)}
    if found.keys() & {name.casefold() for name in beside}:
        raise InternalError("a table has the name of a table of constants.")
    return found


def constant_store(table: ConstantTable) -> ColumnStore:
    """Return the store of a table of constants, created once."""
    store = table.__dict__.get("_store")
    if store is None:
        pairs = zip(table.columns, table.cells, strict=True)
        frame = pd.DataFrame({column.name: _series(cells, column.type) for column, cells in pairs})
        store = ColumnStore(frame, table)
        object.__setattr__(table, "_store", store)
    assert isinstance(store, ColumnStore)
    return store


def _series(cells: Vector, kind: Type) -> pd.Series:
    """Return a column as a pandas Series."""
    if kind is Type.TEXT:
        return pd.Series(cells_of(cells, kind), dtype=object)
    missing = None if cells.valid is None else ~cells.valid
    if kind.temporal:
        times = cells.values.astype("datetime64[D]").astype("datetime64[s]") if kind is Type.DATE else (
            cells.values.astype("datetime64[us]"))  # fmt: skip
        if missing is not None:
            times = times.copy()
            times[missing] = np.datetime64("NaT")
        return pd.Series(times)
    if missing is None:
        return pd.Series(cells.values)
    if kind is Type.REAL:
        return pd.Series(np.where(missing, np.nan, cells.values))
    array = pd.arrays.BooleanArray if kind is Type.BOOLEAN else pd.arrays.IntegerArray
    return pd.Series(array(cells.values.copy(), missing))
