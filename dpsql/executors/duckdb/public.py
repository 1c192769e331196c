"""Public tables in files, as DataFrames that can be passed to any engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb.files import PLACE_OF_ROW, columns_of, reach, rows_of
from dpsql.executors.duckdb.instance import lock, opened
from dpsql.executors.duckdb.parquet_texts import odd_places, sound_rows
from dpsql.executors.duckdb.parquet_types import is_unsafe
from dpsql.schema.frozen import dataclass
from dpsql.sources.arrow import framed, needs_arrow
from dpsql.sources.stored import DatabaseTable, ExternalFrame, StoredFiles, unreadable

if TYPE_CHECKING:
    import duckdb

_ODD = "not UTF-8: "


def public_rows(source: StoredFiles | ExternalFrame, most: int) -> pd.DataFrame:
    """Return all rows. Raises InvalidSchema if there are more than `most`, or they cannot be read."""
    frame = source.frame if isinstance(source, ExternalFrame) else _read(source, most)
    if len(frame) > most:
        raise InvalidSchema(
            f"{source} is public, and has more than the {most:,} rows that a public table may have.",
            hint="Public tables are brought to the engine of the others: keep the rows that are asked about.",
        )
    return frame


@dataclass(frozen=True)
class CheckedRows:
    """Rows of files for their owner. unread: columns on which a reader can fail, whose cells are NULL here, with their
    stored types; undecoded: for text columns, the cells that are not UTF-8, also NULL."""

    frame: pd.DataFrame
    unread: dict[str, str]
    undecoded: dict[str, npt.NDArray[np.bool_]]


def rows_to_check(source: StoredFiles, most: int) -> CheckedRows:
    """Return all rows, including columns that no query can read. Raises InvalidSchema if there are more than `most`, or
    they cannot be read."""
    unread = {each.name: str(each.storage) for each in columns_of(source) if is_unsafe(str(each.storage))}
    frame = _read(source, most, tuple(unread))
    if len(frame) > most:
        raise InvalidSchema(f"{source} has more rows than the {most:,} that are checked.")
    flags = [name for name in frame.columns if str(name).startswith(_ODD)]
    undecoded = {str(name).removeprefix(_ODD): frame[name].to_numpy(dtype=bool) for name in flags}
    return CheckedRows(frame.drop(columns=flags), unread, undecoded)


def _read(source: StoredFiles, most: int, unread: tuple[str, ...] | None = None) -> pd.DataFrame:
    """Read rows. unread: columns to leave NULL if an owner checks the rows; None for a query."""
    needs_arrow("a public table in files")
    table: Any = None
    connection = opened(files=True)
    try:
        reach(connection, (source,))
        lock(connection)
        rows = _rows(connection, source, unread)
        table = connection.sql(f"SELECT * FROM {rows} LIMIT {most + 1}").to_arrow_table()
    except Exception:  # noqa: BLE001 - its words could quote what a file holds
        pass
    finally:
        connection.close()
    if table is None:
        raise unreadable(source)
    frame = framed(table)
    assert isinstance(frame, pd.DataFrame)  # Arrow tables become DataFrames
    return frame


def _rows(connection: duckdb.DuckDBPyConnection, source: StoredFiles, unread: tuple[str, ...] | None) -> str:
    """Return the text after FROM for all columns, with NULL for texts that are not UTF-8."""
    rows = rows_of(source, 0)
    if isinstance(source, DatabaseTable):
        return rows
    described = connection.execute(f"DESCRIBE SELECT * FROM {rows}").fetchall()
    nulls = [f"NULL::{kind} AS {_name(name)}" for name, kind, *_ in described if name in (unread or ())]
    texts = [name for name, kind, *_ in described if kind == "VARCHAR" and name not in (unread or ())]
    odd = {name: odd_places(connection, source, 0, name) for name in texts}
    if not odd and not nulls:
        return rows
    flags = [] if unread is None else [_flag(place, name) for place, name in enumerate(odd)]
    shown = ", ".join(["* EXCLUDE (file_index, file_row_number)", *flags])
    return f"(SELECT {shown} FROM {sound_rows(connection, source, 0, odd, nulls)})"


def _flag(place: int, name: str) -> str:
    """Return whether `sound_rows` makes a text NULL."""
    return f"{PLACE_OF_ROW} IN (SELECT place FROM odd0_{place}) AS {_name(_ODD + name)}"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
