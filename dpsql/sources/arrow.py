"""Arrow and Polars tables as frames, column by column, with their own types.

Columns are taken without looking at cells. One-shot sources, such as readers of batches and lazy queries, are run when
the table is opened, and their result is the table: the query itself is the owner's responsibility.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

import pandas as pd

from dpsql.errors import InvalidSchema


def framed(source: object) -> object:
    """Return an Arrow or Polars table as a DataFrame, and any other source unchanged. Raises InvalidSchema if a table
    cannot be converted to Arrow."""
    for library, frame_of in (("polars", _of_polars), ("pyarrow", _of_arrow)):
        module = sys.modules.get(library)  # objects of a library exist only if it is loaded
        found = None if module is None else frame_of(module, source)
        if found is not None:
            return found
    return source


def _of_polars(polars: Any, source: object) -> pd.DataFrame | None:
    if isinstance(source, polars.LazyFrame):
        source = run(source.collect, "a LazyFrame")
    if not isinstance(source, polars.DataFrame):
        return None
    arrow, empty = needs_arrow("a Polars frame"), source.clear()
    strange = [name for name in source.columns if not _has_type(empty.get_column(name))]
    if strange:
        raise InvalidSchema(
            f'column "{strange[0]}" has a type that Arrow has not: {source.schema[strange[0]]}.',
            hint="Leave it out, or cast it.",
        )
    return _of_arrow(arrow, source.to_arrow())


def _has_type(column: Any) -> bool:
    """Return whether Arrow has the type of a column without rows."""
    try:
        column.to_arrow()
    except Exception:  # noqa: BLE001 - any error of Polars
        return False
    return True


def needs_arrow(what: str) -> Any:
    """Return the library pyarrow. Raises InvalidSchema, which names `what` needs it, if it is not installed."""
    try:
        import pyarrow  # type: ignore[import-untyped]
    except ImportError:
        raise InvalidSchema(f"{what} is read by way of pyarrow.", hint="pip install pyarrow") from None
    return pyarrow


def _of_arrow(arrow: Any, source: Any) -> pd.DataFrame | None:
    if isinstance(source, arrow.RecordBatchReader):
        source = _read(source)
    if isinstance(source, arrow.RecordBatch):
        source = arrow.Table.from_batches([source])
    if not isinstance(source, arrow.Table):
        return None
    plain = [_plain(arrow, column) for column in source.columns]
    columns = {place: pd.Series(pd.arrays.ArrowExtensionArray(column)) for place, column in enumerate(plain)}
    frame = pd.DataFrame(columns, index=pd.RangeIndex(source.num_rows))
    frame.columns = pd.Index(source.column_names, dtype=object)
    return frame


def _plain(arrow: Any, column: Any) -> Any:
    """Convert the cells to a representation of Arrow that pandas reads."""
    kind = column.type
    if kind == arrow.string_view():
        return column.cast(arrow.large_string())
    if isinstance(kind, arrow.Bool8Type):
        return column.cast(arrow.bool_())
    if isinstance(kind, arrow.RunEndEncodedType):
        from pyarrow.compute import run_end_decode  # type: ignore[import-untyped]

        return arrow.chunked_array([run_end_decode(chunk) for chunk in column.chunks], type=kind.value_type)
    return column


_were_read: weakref.WeakSet[Any] = weakref.WeakSet()
"""Consumed readers of batches: a reader yields its rows only once."""


def _read(reader: Any) -> Any:
    if reader in _were_read:
        raise InvalidSchema(
            "a RecordBatchReader gives its rows once, and a table was made of this one.",
            hint="Hand that Table over, or what read_all() of a new reader gives.",
        )
    _were_read.add(reader)
    return run(reader.read_all, "a RecordBatchReader")


def run(program: Callable[[], Any], name: str) -> Any:
    """Return the result of an owner's program. Its error messages may quote cells and are not passed on. Raises
    InvalidSchema."""
    try:
        return program()
    except Exception as error:  # noqa: BLE001 - libraries have their own exceptions
        failed = type(error).__name__
    raise InvalidSchema(f"{name} cannot be read ({failed}).", hint="It is run once, when the table is opened: run it.")
