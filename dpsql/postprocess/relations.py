"""Relations of released rows in DuckDB: as registered arrays, as constants in the text, or as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpsql.postprocess.frames import Frame, Header, array_of, in_order
from dpsql.schema.columns import Type

if TYPE_CHECKING:
    import duckdb


def created(header: Header) -> str:
    columns = ", ".join(f"{quoted(name)} {header.sql_type(name, kind)}" for name, kind in header.columns)
    return f"CREATE TEMP TABLE {quoted(header.name)} ({columns})"


_READ = {Type.DATE: "DATE '1970-01-01' + {}::INTEGER", Type.TIMESTAMP: "make_timestamp({}::BIGINT)"}


def fill(connection: duckdb.DuckDBPyConnection, header: Header, frame: Frame) -> None:
    """Create a table of the frame's rows: sorted by all columns, NULL last, or in their own order."""
    if not len(frame):
        connection.execute(created(header))
        return
    arrays = {
        f"c{place}": header.array(name, kind, vector)
        for place, ((name, kind), vector) in enumerate(zip(header.columns, frame.vectors, strict=True))
    }
    items = [
        f"CAST({_READ.get(kind, '{}').format(f'c{place}')} AS {header.sql_type(name, kind)}) AS {quoted(name)}"
        for place, (name, kind) in enumerate(header.columns)
    ]
    order = "" if header.ordered or in_order(frame) else " ORDER BY ALL"
    connection.register(_HANDED, arrays)
    try:
        select = f"SELECT {', '.join(items)} FROM {_HANDED}{order}"
        connection.execute(f"CREATE TEMP TABLE {quoted(header.name)} AS {select}")
    finally:
        connection.unregister(_HANDED)


_HANDED = "__handed_in"
_PLAIN = (Type.INTEGER, Type.REAL, Type.BOOLEAN)


def as_they_are(header: Header, frame: Frame) -> bool:
    """Return whether DuckDB reads the arrays of a frame directly as its columns, in their order: then no table is
    created."""
    return _all_plain(header) and len(frame) > 1 and (header.ordered or in_order(frame))


def _all_plain(header: Header) -> bool:
    return not header.wide and all(kind in _PLAIN for _, kind in header.columns)


def in_text(sql: str, headers: Sequence[Header], frames: Mapping[str, Frame]) -> tuple[str, tuple[Header, ...]]:
    """Return the text with one-row relations inlined as CTEs of constants, and the other relations. This is faster than
    creating and reading tables."""
    said = {each.name: _constants(each, frames[each.name]) for each in headers if len(frames[each.name]) == 1}
    told = {name: constants for name, constants in said.items() if constants is not None}
    rest = tuple(each for each in headers if each.name not in told)
    if not told:
        return sql, rest
    common = ", ".join(f"{quoted(name)} AS (SELECT {constants})" for name, constants in told.items())
    own = sql.removeprefix("WITH ")
    return f"WITH {common}{', ' if own != sql else ' '}{own}", rest


def _constants(header: Header, frame: Frame) -> str | None:
    """Return a row as SQL that reproduces each cell exactly; None for a text that SQL cannot express."""
    items = []
    for (name, kind), vector in zip(header.columns, frame.vectors, strict=True):
        (cell,) = header.cells(name, kind, vector)
        if isinstance(cell, str) and "\0" in cell:
            return None
        text = (cell if isinstance(cell, str) else repr(cell)).replace("'", "''")
        value = "NULL" if cell is None else _READ.get(kind, "{}").format(f"'{text}'")
        items.append(f"CAST({value} AS {header.sql_type(name, kind)}) AS {quoted(name)}")
    return ", ".join(items)


def arrays_of(header: Header, frame: Frame) -> dict[str, Any]:
    columns = zip(header.columns, frame.vectors, strict=True)
    return {name: array_of(kind, vector) for (name, kind), vector in columns}


def quoted(name: str) -> str:
    """Quote a name for DuckDB."""
    return '"' + name.replace('"', '""') + '"'
