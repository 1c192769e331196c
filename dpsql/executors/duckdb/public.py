"""Public tables in files, as DataFrames: they are about nobody, and are brought to any engine."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb.files import reach, rows_of
from dpsql.executors.duckdb.instance import lock, opened
from dpsql.sources.arrow import framed, needs_arrow
from dpsql.sources.stored import Brought, StoredFiles, unreadable


def public_rows(source: StoredFiles | Brought, most: int) -> pd.DataFrame:
    """All rows. Raises InvalidSchema where they are more than `most`, or cannot be read."""
    frame = source.frame if isinstance(source, Brought) else _read(source, most)
    if len(frame) > most:
        raise InvalidSchema(
            f"{source} is public, and has more than the {most:,} rows that a public table may have.",
            hint="Public tables are brought to the engine of the others: keep the rows that are asked about.",
        )
    return frame


def _read(source: StoredFiles, most: int) -> pd.DataFrame:
    needs_arrow("a public table in files")
    table: Any = None
    connection = opened(files=True)
    try:
        reach(connection, (source,))
        lock(connection)
        table = connection.sql(f"SELECT * FROM {rows_of(source, 0)} LIMIT {most + 1}").to_arrow_table()
    except Exception:  # noqa: BLE001 - its words could quote what a file holds
        pass
    finally:
        connection.close()
    if table is None:
        raise unreadable(source)
    frame = framed(table)
    assert isinstance(frame, pd.DataFrame)  # as tables of Arrow are
    return frame
