"""Texts of Parquet files whose bytes are not UTF-8: NULL, as in Arrow.

DuckDB's reader either fails on such a text, replaces each wrong byte by `?`, or omits these bytes. The last two agree
for valid UTF-8 and differ for any other text. So files are read with `?`, and the rows in which both readings of a
column differ are found once for each state of the files. The statement is the same whether or not there are such rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dpsql.executors.duckdb.files import PLACE_OF_ROW, FileStore, holds_text, rows_of
from dpsql.sources.stored import DatabaseTable, StoredFiles

if TYPE_CHECKING:
    import duckdb
    import pandas as pd


def relation(connection: duckdb.DuckDBPyConnection, store: FileStore, number: int, names: Sequence[str]) -> str:
    """Return the text after FROM for a store of that number; `names` are the columns to read."""
    rows = rows_of(store.source, number)
    read = {name.casefold() for name in names}
    columns = [each for each in store.schema.columns if each.name.casefold() in read and holds_text(each)]
    if not columns or isinstance(store.source, DatabaseTable):  # databases check the texts that they store
        return rows
    odd = {each.name: _odd_rows(connection, store, number, each.name) for each in columns}
    return sound_rows(connection, store.source, number, odd)


def sound_rows(
    connection: duckdb.DuckDBPyConnection,
    source: StoredFiles,
    number: int,
    odd: Mapping[str, pd.DataFrame],
    replaced: Sequence[str] = (),
) -> str:
    """Return the rows of Parquet files with their positions, and NULL for the texts of some columns in these rows.
    replaced: expressions that replace other columns, each with its name."""
    cells = [*replaced]
    for place, (name, rows) in enumerate(odd.items()):
        table, text = f"odd{number}_{place}", _quoted(name)
        connection.register(table, rows)
        wrong = f"CONTAINS({text}, '?') AND {PLACE_OF_ROW} IN (SELECT place FROM {table})"
        cells.append(f"CASE WHEN {wrong} THEN NULL ELSE {text} END AS {text}")
    return f"(SELECT * REPLACE ({', '.join(cells)}), file_index, file_row_number FROM {rows_of(source, number)})"


def _odd_rows(connection: duckdb.DuckDBPyConnection, store: FileStore, number: int, name: str) -> pd.DataFrame:
    """Return the rows of a store in which a text is not UTF-8; cached for files with these stamps."""
    stamps = store.stamps()
    known = store.odd_rows.get(name)
    if known is None or known[0] != stamps:
        known = stamps, odd_places(connection, store.source, number, name)
        store.odd_rows = {**store.odd_rows, name: known}
    return known[1]


def odd_places(connection: duckdb.DuckDBPyConnection, source: StoredFiles, number: int, name: str) -> pd.DataFrame:
    """Return the numbers of the rows in which both readings of a text differ."""
    with_signs, without = (
        f"(SELECT {PLACE_OF_ROW} AS place, {_quoted(name)} AS cell FROM {rows_of(source, number, word)})"
        for word in ("replace", "ignore")
    )
    return connection.execute(
        f"SELECT a.place FROM (SELECT * FROM {with_signs} WHERE CONTAINS(cell, '?')) AS a "
        f"JOIN {without} AS b ON a.place = b.place WHERE a.cell <> b.cell"
    ).df()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
