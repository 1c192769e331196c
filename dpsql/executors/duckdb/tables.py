"""Frames as tables of an instance: typed columns, created when a statement reads them."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import numpy as np
import pandas as pd

from dpsql.executors.duckdb.dialect import DUCKDB_SQL
from dpsql.executors.duckdb.pool import Pool
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.columns.exact_values import canonical, cells_of
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.sources.stored import HERE, ExternalFrame

_WORD = 2**63


class FrameStore:
    """A DataFrame under a schema, for this engine. Cells are read, and declarations enforced, as in the pandas engine.
    source: the original source of the frame, if any."""

    def __init__(self, frame: pd.DataFrame, schema: TableSchema, source: ExternalFrame | None = None) -> None:
        self.columns = ColumnStore(frame, schema)
        self.schema = schema
        self._source = source
        self.pool = Pool()
        self._cells: dict[str, dict[str, Any]] = {}
        self._alike: dict[str, int] = {}

    @property
    def source(self) -> pd.DataFrame | ExternalFrame:
        return self.columns.frame if self._source is None else self._source

    def stamps(self) -> object:
        """See `Store`: rows are in this process."""
        return HERE

    def typed(self, column: ColumnSchema) -> dict[str, Any]:
        """Return the arrays of a column, cached: `cells`, or `codes` into texts, and `valid` if there are NULLs."""
        if column.name not in self._cells:
            self._cells[column.name] = self._typed(column)
        return self._cells[column.name]

    def most_alike(self, name: str) -> int:
        """Return the most rows with the same cell of a column, without NULL."""
        if name not in self._alike:
            arrays = self.typed(self.schema.by_name[name.casefold()])
            cells = pd.Series(arrays["cells"])
            present = cells[arrays["valid"]] if "valid" in arrays else cells
            self._alike[name] = int(present.value_counts().max()) if present.notna().any() else 0
        return self._alike[name]

    def _typed(self, column: ColumnSchema) -> dict[str, Any]:
        rows = self.columns.rows
        if column.type is Type.TEXT:
            encoded = self.columns.encoded(column.name)
            cells, valid = encoded.dictionary.values.tolist(), encoded.dictionary.where_valid().tolist()
            seen: dict[str, int] = {}
            numbers = [
                seen.setdefault(str(cell), len(seen)) if present else -1
                for cell, present in zip(cells, valid, strict=True)
            ]
            table = np.array(numbers, dtype=np.int32)
            return {
                "cells": pd.Categorical.from_codes(table[encoded.codes], categories=pd.Index(list(seen), dtype=object))
            }
        vector = self.columns.reader(column.name)(0, rows)
        if column.type.opaque:
            return {"cells": vector.where_valid()}
        return _arrays(vector)

    def identity(self, name: str) -> tuple[dict[str, Any], bool]:
        """Return the arrays of a unit column, and whether they are integers of 64 bits instead of texts."""
        codes, values = self.columns.identified(name)
        whole = values.values.dtype.kind in "ib" and self.schema.by_name[name.casefold()].identity is not Type.TEXT
        valid = values.where_valid()
        if whole:
            cells = values.values.astype(np.int64)
            present = np.append(valid, False)[codes]
            return {"cells": np.append(cells, 0)[codes], "valid": present}, True
        return {"cells": self._identity_texts(codes, values, valid)}, False

    def _identity_texts(self, codes: Any, values: Vector, valid: Any) -> Any:
        texts = [
            canonical(cell) if present else None
            for cell, present in zip(cells_of(values.values), valid.tolist(), strict=True)
        ]
        present_texts = [text for text in texts if text is not None]
        numbers = (
            np.cumsum([text is not None for text in texts], dtype=np.int32) - 1 if texts else np.zeros(0, np.int32)
        )
        table = np.append(np.where(np.array(valid, dtype=bool), numbers, -1), -1).astype(np.int32)
        return pd.Categorical.from_codes(table[codes], categories=pd.Index(present_texts, dtype=object))

    def identity_texts(self, name: str) -> dict[str, Any]:
        codes, values = self.columns.identified(name)
        return {"cells": self._identity_texts(codes, values, values.where_valid())}


_public: dict[int, FrameStore] = {}
_lock = threading.Lock()


def public_store(frame: pd.DataFrame, schema: TableSchema) -> FrameStore:
    """Return the store of a public table: its cells are read once for all queries, as long as the frame lives."""
    with _lock:
        known = _public.get(id(frame))
        if known is None or known.schema != schema:
            if known is None:
                weakref.finalize(frame, _public.pop, id(frame), None)
            known = _public[id(frame)] = FrameStore(frame, schema)
        return known


def _arrays(vector: Vector) -> dict[str, Any]:
    found: dict[str, Any] = {"cells": np.ascontiguousarray(vector.values)}
    if vector.valid is not None:
        found["valid"] = np.ascontiguousarray(vector.valid)
    return found


class FrameTable:
    """The columns of a frame that one statement reads, by names of their own (see `StoredTable`)."""

    enforced = True

    def __init__(self, store: FrameStore, number: int) -> None:
        self.store = store
        self.schema = store.schema
        self.number = number
        self.name = f"frame{number}"
        self._prefix = f"f{number}_"
        self._cells: dict[str, tuple[ColumnSchema, str]] = {}
        self._identities: dict[str, str] = {}
        self._row = False

    def rows(self) -> str:
        return self.name

    def cell(self, column: ColumnSchema) -> str:
        name = self._cells.setdefault(column.name, (column, f"{self._prefix}{len(self._cells)}"))[1]
        if column.type.opaque:
            return f"CASE WHEN {name} THEN TRUE END"
        if column.type is Type.TEXT:
            return f"CAST({name} AS VARCHAR)"
        text = DUCKDB_SQL.moment(name, column.type) if column.type.temporal else name
        return f"CASE WHEN {name}v THEN {text} END" if "valid" in self.store.typed(column) else text

    def identity(self, name: str) -> str:
        ident = self._identities.setdefault(name, f"{self._prefix}i{len(self._identities)}")
        return f"{ident}u"

    def kind(self, name: str) -> Type:
        return self.schema.by_name[name.casefold()].identity

    def row(self) -> str:
        self._row = True
        return f"({self._prefix}row * 4096 + {self.number})"

    def whole_identities(self) -> bool:
        """Return whether its unit identities are whole numbers of 64 bits."""
        return all(self.store.identity(name)[1] for name in self._identities)

    def view(self, *, as_texts: bool) -> tuple[str, pd.DataFrame]:
        """Return a SELECT of the rows and its frame, to be registered as `self.name + "_"`."""
        columns: dict[str, Any] = {}
        listed: list[str] = []
        for column, name in self._cells.values():
            arrays = self.store.typed(column)
            columns[name] = arrays["cells"]
            listed.append(name)
            if "valid" in arrays:
                columns[f"{name}v"] = arrays["valid"]
                listed.append(f"{name}v")
        for column_name, ident in self._identities.items():
            arrays = self.store.identity_texts(column_name) if as_texts else self.store.identity(column_name)[0]
            columns[ident] = arrays["cells"]
            if as_texts:
                listed.append(f"CAST({ident} AS VARCHAR) AS {ident}u")
            else:
                columns[f"{ident}v"] = arrays["valid"]
                listed.append(f"CASE WHEN {ident}v THEN {ident} END AS {ident}u")
        if self._row or not columns:
            columns[f"{self._prefix}row"] = np.arange(self.store.columns.rows)
            listed.append(f"{self._prefix}row")
        return f"SELECT {', '.join(listed)} FROM {self.name}_", pd.DataFrame(columns, copy=False)
