"""Checks of the rows against their declarations. They report exact numbers without noise, for the owner only.

Cells are distinguished and compared as in queries, by the same columns. Nothing here takes a ledger, and no command for
analysts uses this module.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsql.executors.base import MOST_PUBLIC, public_frame
from dpsql.executors.duckdb.public import CheckedRows, rows_to_check
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.owner.cell_checks import Flags, bare_store, misfits
from dpsql.owner.line_checks import FIRST, TableLines, lines_of_table
from dpsql.owner.suggestion import may_name_people
from dpsql.plan.expressions import Vector
from dpsql.schema.argument_names import checked_names
from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.session.owner_file import Schema
from dpsql.session.tables.declared_tables import all_tables
from dpsql.session.tables.public_tables import resolved
from dpsql.sources.stored import StoredFiles

Codes = npt.NDArray[np.int64]
NOBODY = -1


@dataclass(frozen=True)
class Finding:
    """Rows of a table that contradict their declaration: in what respect, how many, and how queries treat them. lines:
    the first of them in text files (with the file's name if there are several), or their rows."""

    table: str
    what: str
    rows: int
    outcome: str
    lines: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        first = f" (first: {', '.join(self.lines)})" if self.lines else ""
        return f"{self.table}: {self.what}: {self.rows:,} {'row' if self.rows == 1 else 'rows'}, {self.outcome}{first}"


@dataclass(frozen=True)
class Repeats:
    """The most rows that share one value of a column that may name people."""

    table: str
    column: str
    rows: int
    by_row: bool
    """Each row is a unit."""

    def __str__(self) -> str:
        apart = ' Each of these rows is protected separately, as the unit is "row" or not decided.'
        return (
            f"{self.table}: {self.column}: one value has up to {self.rows:,} {'row' if self.rows == 1 else 'rows'}."
            f"{apart if self.by_row and self.rows > 1 else ''} This is the number of one person, so it must not become "
            "max_rows: whoever reads the limit would learn it. Choose a limit that you know most people stay below."
        )


@dataclass(frozen=True)
class DataReport:
    """Results of checking the rows of a schema file's tables."""

    findings: tuple[Finding, ...]
    repeats: tuple[Repeats, ...]


@checked_names
def check_data(path: str | os.PathLike[str]) -> tuple[Finding, ...]:
    """Check the rows of a schema file's tables against its declarations. Finds cells that cannot be read as their types
    or in their encoding, lines that violate their format, duplicates of unique keys, cells outside bounds, unlisted
    keys, undeclared NULLs, rows beyond `max_rows`, and rows without owner.

    Returns exact numbers of private rows: for the owner only. Limits on groups depend on the query, and are not
    checked. Tables without a path are skipped. Raises InvalidSchema.
    """
    return report_data(path).findings


def report_data(path: str | os.PathLike[str]) -> DataReport:
    """Return the findings of `check_data`, and the most rows of one value in columns that may name people. Raises
    InvalidSchema."""
    declared = Schema.from_toml(Path(path))
    tables = all_tables({}, declared, ())
    schemas = resolved(tables)
    rows = {name.casefold(): _rows(table.frame) for name, table in tables.items()}
    stores = {name: bare_store(each.frame, schemas[name]) for name, each in rows.items()}
    entries = {name.casefold(): entry for name, entry in declared.tables.items()}
    findings: list[Finding] = []
    for name, store in stores.items():
        lines = lines_of_table(entries[name], tuple(column.name for column in schemas[name].columns))
        findings += [*_lines(schemas[name], lines), *_misfits(schemas[name], store, lines)]
        findings += _stored(schemas[name], rows[name], entries[name].declaration.named, lines)
        findings += _of_table(schemas[name], stores, schemas, lines)
    return DataReport(tuple(findings), tuple(each for name in stores for each in _repeats(schemas[name], stores[name])))


def _rows(source: object) -> CheckedRows:
    if isinstance(source, StoredFiles):
        return rows_to_check(source, MOST_PUBLIC)
    frame = public_frame(source)
    assert isinstance(frame, pd.DataFrame)
    return CheckedRows(frame, {}, {})


def _stored(schema: TableSchema, rows: CheckedRows, declared: Collection[str], lines: TableLines) -> Iterator[Finding]:
    """Yield findings about Parquet files: texts that are not UTF-8, and declared columns that queries refuse."""
    for name, odd in rows.undecoded.items():
        if odd.any():
            yield Finding(schema.name, f"{name} is not UTF-8", int(odd.sum()), "NULL", _first(odd, lines))
    for name, storage in rows.unread.items():
        if name in declared:
            what = f"{name} is stored as {storage}, which can end a query by one cell"
            yield Finding(schema.name, what, len(rows.frame), "refused where a query reads it")


def _lines(schema: TableSchema, lines: TableLines) -> Iterator[Finding]:
    for kind, places in lines.broken.items():
        yield Finding(schema.name, kind, places.count, "each a row of NULLs", places.first)
    for column, places in lines.undecoded.items():
        yield Finding(schema.name, f"{column} is {lines.undecoded_as}", places.count, "NULL", places.first)


def _misfits(schema: TableSchema, store: ColumnStore, lines: TableLines) -> Iterator[Finding]:
    for column in schema.columns:
        if column.type.opaque or not column.nullable:  # the latter are reported as declared never NULL
            continue
        fits, unfit = misfits(store, column)
        if unfit.any():
            none = f"no cell of {column.name} can be read as {column.type}"
            what = f"{column.name} cannot be read as {column.type}" if fits.any() else none
            yield Finding(schema.name, what, int(unfit.sum()), "NULL", _first(unfit, lines))
        elif lines.is_json and store.rows and not fits.any() and column.name not in lines.undecoded:
            yield Finding(schema.name, f"{column.name} is in no line", store.rows, "NULL")


def _first(rows: Flags, lines: TableLines) -> tuple[str, ...]:
    return tuple(map(lines.place_of, np.flatnonzero(rows)[:FIRST].tolist()))


def _repeats(schema: TableSchema, store: ColumnStore) -> Iterator[Repeats]:
    """Yield the repeats of private tables, also of columns that are declared unique."""
    unit = schema.unit_word.column if schema.unit_word else ""
    for column in schema.columns:
        if schema.public or column.type.opaque or not (column.name == unit or may_name_people(column.name)):
            continue
        codes = _codes(store, column.name)
        most = int(np.bincount(codes[codes != NOBODY]).max()) if (codes != NOBODY).any() else 0
        if most:
            yield Repeats(schema.name, column.name, most, by_row=schema.unit_word is None)


def _of_table(
    schema: TableSchema,
    stores: Mapping[str, ColumnStore],
    schemas: Mapping[str, TableSchema],
    lines: TableLines,
) -> Iterator[Finding]:
    store, name = stores[schema.name.casefold()], schema.name
    findings = [
        *_duplicates(schema, store),
        *_cells(schema, store),
        *(() if schema.public or schema.unit_word is None else _units(schema, stores, schemas)),
    ]
    yield from (Finding(name, what, rows, outcome) for what, rows, outcome in findings if rows)
    for column in schema.columns:
        if not column.nullable and not column.type.opaque:
            fits, _ = misfits(store, column)
            what = f"{column.name} is declared never NULL, and is, or cannot be read"
            outcome = "read as the lower bound, the first key, or the type's zero"
            if not fits.all():
                yield Finding(name, what, int((~fits).sum()), outcome, _first(~fits, lines))


Found = Iterator[tuple[str, int, str]]
"""Description, number of rows, and treatment in queries."""


def _duplicates(schema: TableSchema, store: ColumnStore) -> Found:
    for key in schema.unique:
        codes = pd.DataFrame({column: _codes(store, column) for column in key})
        whole = codes[(codes != NOBODY).all(axis=1)]
        named = ", ".join(key)
        outcome = "of rows that lead to several people the smallest unit is taken"
        yield f"{named} is declared unique, and shared", int(whole.duplicated(keep=False).sum()), outcome


def _cells(schema: TableSchema, store: ColumnStore) -> Found:
    for column in schema.columns:
        if column.type.opaque or (column.bounds is None and column.keys is None):
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


def _units(schema: TableSchema, stores: Mapping[str, ColumnStore], schemas: Mapping[str, TableSchema]) -> Found:
    owners = _owners(schema.name, stores, schemas)
    yield "owned by nobody, as the unit is NULL or leads nowhere", int((owners == NOBODY).sum()), "never counted"
    most = schema.limits.rows
    if most is not None:
        counts = np.bincount(owners[owners != NOBODY]) if (owners != NOBODY).any() else np.zeros(0, dtype=np.int64)
        beyond = int(np.maximum(counts - most, 0).sum())
        yield f"beyond max_rows = {most:,} of a person", beyond, "left out at random by a query that reads all"


def _owners(name: str, stores: Mapping[str, ColumnStore], schemas: Mapping[str, TableSchema]) -> Codes:
    """Return a number for the privacy unit of each row of a table, NOBODY for rows without one."""
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
    """Return a number for each cell, equal for equal cells; NOBODY for NULL."""
    codes, values = store.identified(column)
    present = values.where_valid()
    absent = (codes < 0) | ~present[np.clip(codes, 0, None)] if len(present) else np.ones(len(codes), dtype=bool)
    return np.where(absent, NOBODY, codes).astype(np.int64)


def _values(store: ColumnStore, column: str) -> list[object]:
    """Return the cells as Python values that compare as units do; None for NULL."""
    codes, values = store.identified(column)
    cells = [*_as_objects(values), None]
    return [cells[code] if 0 <= code < len(cells) - 1 else None for code in codes.tolist()]


def _as_objects(values: Vector) -> list[object]:
    present = values.where_valid().tolist()
    return [value if there else None for value, there in zip(values.values.tolist(), present, strict=True)]
