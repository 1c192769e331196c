"""Cells of a column that are present but not readable as its type, by the columns that queries read. For the owner
only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsql.errors import InvalidSchema
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.owner.line_checks import TableLines, lines_of_table
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.text_format import TEXT_ENDINGS, TextFormat
from dpsql.session.owner_file import TableEntry
from dpsql.sources.files import files_of, kind_of
from dpsql.sources.frames import encodings_of
from dpsql.sources.json_lines import read_json_lines
from dpsql.sources.text_scans import see_blocks

Flags = npt.NDArray[np.bool_]
_LEAST_ROWS = 2
"""A single line is no evidence of a file's format."""


def bare_store(frame: pd.DataFrame, schema: TableSchema) -> ColumnStore:
    """Return the stored columns, with only their types enforced."""
    bare = [replace(column, bounds=None, keys=None, nullable=True) for column in schema.columns]
    return ColumnStore(frame, replace(schema, columns=tuple(bare), rows=len(frame) if schema.public else None))


def misfits(store: ColumnStore, column: ColumnSchema) -> tuple[Flags, Flags]:
    """Return which cells of a column are readable, and which are present but not readable."""
    fits = store.reader(column.name)(0, store.rows).where_valid()
    series = store.series(column.name)
    unfit = _present(series) & ~fits
    nulls = column.cell_format.null if column.cell_format is not None else ()
    if nulls and unfit.any():
        places = np.flatnonzero(unfit)
        unfit[places[series.iloc[places].astype(str).str.strip().isin(nulls).to_numpy(dtype=bool)]] = False
    return fits, unfit


def _present(series: pd.Series) -> Flags:
    """Return which cells are present: neither NULL nor NaN, which is read as NULL."""
    present: Flags = series.notna().to_numpy(dtype=bool, copy=True)
    if getattr(series.dtype, "kind", "") == "f":
        present &= (series == series).fillna(value=False).to_numpy(dtype=bool)  # noqa: PLR0124 - NaN of an Arrow column
    return present


def unreadable_columns(entry: TableEntry, schema: TableSchema) -> Iterator[tuple[str, InvalidSchema]]:
    """Yield the columns of a text table without any readable cell, with the error; "" for all columns together. Rows
    are read until each column has a readable cell. Raises InvalidSchema for a file that cannot be opened."""
    if entry.path is None:
        return
    waiting = {column.name: False for column in schema.columns if not column.type.opaque}
    rows = 0

    def see(frame: pd.DataFrame) -> bool:
        nonlocal rows
        rows += len(frame)
        store = bare_store(frame, schema)
        for name in list(waiting):
            fits, unfit = misfits(store, schema.by_name[name.casefold()])
            waiting[name] |= bool(unfit.any())
            if fits.any():
                del waiting[name]
        return not waiting

    is_text = kind_of(files_of(entry.path)[0]) in TEXT_ENDINGS
    for file in files_of(entry.path):
        if waiting and is_text:
            see_blocks(file, entry.text, encodings_of(entry.declaration), see)
        elif waiting:
            see(read_json_lines(file, list(schema_names(schema))))
    yield from ((name, _unfit(schema.by_name[name.casefold()])) for name, seen in waiting.items() if seen)
    empty = [name for name, seen in waiting.items() if not seen]
    if is_text and empty and rows >= _LEAST_ROWS:
        lines = lines_of_table(entry, ())
        yield from _unreadable_lines(entry.path, entry.text, lines, empty)


def check_readable(path: Path, form: TextFormat, frame: pd.DataFrame, columns: Iterable[tuple[str, Type]]) -> None:
    """Raise InvalidSchema for a text file in which no line, or no cell of a column, is readable. frame: its rows;
    columns: the recognized types."""
    schema = TableSchema("data", tuple(ColumnSchema(name, kind, storage="str") for name, kind in columns))
    store = bare_store(frame, schema)
    empty = []
    for column in schema.columns:
        fits, unfit = misfits(store, column)
        if not fits.any() and unfit.any():
            raise _unfit(column)
        empty += [] if fits.any() else [column.name]
    if empty and len(frame) >= _LEAST_ROWS and kind_of(path) in TEXT_ENDINGS:
        from dpsql.schema.declaration import Declaration

        lines = lines_of_table(TableEntry(Declaration(), path, form), ())
        for _, refusal in _unreadable_lines(path, form, lines, empty):
            raise refusal


def schema_names(schema: TableSchema) -> tuple[str, ...]:
    return tuple(column.name for column in schema.columns)


def _unfit(column: ColumnSchema) -> InvalidSchema:
    return InvalidSchema(
        f'no cell of "{column.name}" can be read as {column.type}.',
        hint='Write the type that it has, or type = "text". dpsql check --data says on which lines.',
    )


def _unreadable_lines(
    path: Path, form: TextFormat, lines: TableLines, empty: list[str]
) -> Iterator[tuple[str, InvalidSchema]]:
    """Yield the errors of a file whose lines are all broken, or of columns whose cells have another encoding."""
    if lines.rows and lines.broken_rows == lines.rows:
        kinds = sorted(lines.broken, key=lambda kind: -lines.broken[kind].count)
        yield (
            "",
            InvalidSchema(
                f"no line of {path.name} can be read as its header says: it has {kinds[0]}"
                f"{f' and {kinds[1]}' if len(kinds) > 1 else ''}.",
                hint="Where the header stands further down: skip = 2 (how many lines are above it).\n"
                'Where another character stands between fields: delimiter = ";".\n'
                "Where cells in quotes hold line ends: multiline = true.\n"
                'Where each line ends with a delimiter: skip = 1 and header = ["name", "age", "rest"].',
            ),
        )
        return
    for name in empty:
        if name in lines.undecoded:
            yield (
                name,
                InvalidSchema(
                    f'no cell of "{name}" is text in {form.encoding.upper()}.',
                    hint='Write the encoding of the file: encoding = "cp1252", "latin-1" or another.',
                ),
            )
