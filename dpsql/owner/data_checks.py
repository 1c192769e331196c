"""What an owner should know of the rows, for the owner's eyes alone: exact numbers, which no noise protects.

Cells are told apart and compared as a query does it, by the same columns. Nothing here takes a ledger, and no analyst's
command leads here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsql.executors.base import public_frame
from dpsql.executors.pandas.columns import ColumnStore
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.frozen import dataclass
from dpsql.session.owner_file import Schema
from dpsql.session.public_tables import resolved
from dpsql.session.tables import all_tables

Codes = npt.NDArray[np.int64]
NOBODY = -1


@dataclass(frozen=True)
class Finding:
    """Rows that are not as their owner declares: of which table, in what way, how many, and what becomes of them."""

    table: str
    what: str
    rows: int
    outcome: str

    def __str__(self) -> str:
        return f"{self.table}: {self.what}: {self.rows:,} {'row' if self.rows == 1 else 'rows'}, {self.outcome}"


def check_data(path: str | os.PathLike[str]) -> tuple[Finding, ...]:
    """What the rows of an owner's file's tables have beside its declarations: duplicates of unique keys, cells outside
    bounds, keys that are not listed, NULLs where none are said to be, rows beyond `max_rows`, rows that nobody owns.

    Exact numbers of private rows: for the owner's eyes. Limits on groups depend on the query, and are not looked at.
    Tables without a path are left out. Raises InvalidSchema.
    """
    tables = all_tables({}, Schema.from_toml(Path(path)), ())
    schemas = resolved(tables)
    frames = {name.casefold(): public_frame(table.frame) for name, table in tables.items()}
    stores = {name: _store(frame, schemas[name]) for name, frame in frames.items()}
    return tuple(finding for name in stores for finding in _of_table(schemas[name], stores, schemas))


def _store(frame: object, schema: TableSchema) -> ColumnStore:
    """The columns as they are stored, with nothing enforced but their types."""
    assert isinstance(frame, pd.DataFrame)
    bare = [replace(column, bounds=None, keys=None, nullable=True) for column in schema.columns]
    return ColumnStore(frame, replace(schema, columns=tuple(bare), rows=len(frame) if schema.public else None))


def _of_table(
    schema: TableSchema, stores: Mapping[str, ColumnStore], schemas: Mapping[str, TableSchema]
) -> Iterator[Finding]:
    store, name = stores[schema.name.casefold()], schema.name
    findings = [
        *_duplicates(schema, store),
        *_cells(schema, store),
        *(() if schema.public or schema.unit_word is None else _units(schema, stores, schemas)),
    ]
    yield from (Finding(name, what, rows, outcome) for what, rows, outcome in findings if rows)


Found = Iterator[tuple[str, int, str]]
"""In what way, how many rows, and what becomes of them."""


def _duplicates(schema: TableSchema, store: ColumnStore) -> Found:
    for key in schema.unique:
        codes = pd.DataFrame({column: _codes(store, column) for column in key})
        whole = codes[(codes != NOBODY).all(axis=1)]
        named = ", ".join(key)
        outcome = "of rows that lead to several people the smallest unit is taken"
        yield f"{named} is declared unique, and shared", int(whole.duplicated(keep=False).sum()), outcome


def _cells(schema: TableSchema, store: ColumnStore) -> Found:
    for column in schema.columns:
        if column.type is Type.OTHER or (column.bounds is None and column.keys is None and column.nullable):
            continue
        block = store.reader(column.name)(0, store.rows)
        present = block.where_valid()
        if column.bounds is not None and column.type.ordered_number and not column.auto:
            values = block.values[present]
            outside = (values < column.bounds.lower) | (values > column.bounds.upper)
            yield f"{column.name} outside its bounds", int(outside.sum()), "clipped to them"
        if column.keys is not None:
            listed = pd.Series(block.values[present]).isin([key for key in column.keys if key is not None])
            yield f"{column.name} not among its keys", int((~listed).sum()), "in no group"
        if not column.nullable:
            default = "read as the lower bound, the first key, or the type's zero"
            what = f"{column.name} is declared never NULL, and is, or cannot be read"
            yield what, int((~present).sum()), default


def _units(schema: TableSchema, stores: Mapping[str, ColumnStore], schemas: Mapping[str, TableSchema]) -> Found:
    owners = _owners(schema.name, stores, schemas)
    yield "owned by nobody, as the unit is NULL or leads nowhere", int((owners == NOBODY).sum()), "never counted"
    most = schema.limits.rows
    if most is not None:
        counts = np.bincount(owners[owners != NOBODY]) if (owners != NOBODY).any() else np.zeros(0, dtype=np.int64)
        beyond = int(np.maximum(counts - most, 0).sum())
        yield f"beyond max_rows = {most:,} of a person", beyond, "left out at random by a query that reads all"


def _owners(name: str, stores: Mapping[str, ColumnStore], schemas: Mapping[str, TableSchema]) -> Codes:
    """For each row of a table a number for whose it is, NOBODY for nobody's."""
    schema, store = schemas[name.casefold()], stores[name.casefold()]
    word = schema.unit_word
    assert word is not None
    if not word.table:
        return _codes(store, word.column)
    above = stores[word.table.casefold()]
    keys, own = _values(above, word.key), _values(store, word.column)
    there = _owners(word.table, stores, schemas) if schemas[word.table.casefold()].unit_word else np.arange(above.rows)
    first: dict[object, int] = {}
    for key, owner in zip(keys, there.tolist(), strict=True):
        if key is not None and owner != NOBODY:
            first[key] = min(owner, first.get(key, owner))
    return np.array([NOBODY if key is None else first.get(key, NOBODY) for key in own], dtype=np.int64)


def _codes(store: ColumnStore, column: str) -> Codes:
    """A number for each cell, equal for equal cells; NOBODY for NULL."""
    codes, values = store.identified(column)
    present = values.where_valid()
    absent = (codes < 0) | ~present[np.clip(codes, 0, None)] if len(present) else np.ones(len(codes), dtype=bool)
    return np.where(absent, NOBODY, codes).astype(np.int64)


def _values(store: ColumnStore, column: str) -> list[object]:
    """The cells as Python values that compare as units do; None for NULL."""
    codes, values = store.identified(column)
    cells = [*_as_objects(values), None]
    return [cells[code] if 0 <= code < len(cells) - 1 else None for code in codes.tolist()]


def _as_objects(values: Vector) -> list[object]:
    present = values.where_valid().tolist()
    return [value if there else None for value, there in zip(values.values.tolist(), present, strict=True)]
