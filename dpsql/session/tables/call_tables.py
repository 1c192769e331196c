"""Tables of one call: its frames and their declarations, resolved once for the same arguments about the same columns.

Repeated queries repeat their bounds, keys and limits, and checking these takes a third of the time not spent on rows.
Schemas are cached by the arguments and by the names and types of stored columns, never by a row or a mutable object.
Arguments of any but Python's plain types are checked each time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import pandas as pd

from dpsql.errors import InvalidArgument
from dpsql.schema.columns import TableSchema
from dpsql.schema.declaration import Declaration
from dpsql.session.tables.public_tables import resolved
from dpsql.session.tables.table import REMEMBERED, Table, as_table
from dpsql.sources.frames import stored_columns

Words = Mapping[str, Any]
Described = tuple[dict[str, Any], dict[str, TableSchema]]
"""Sources by name as written, and their schemas by folded name."""
_MOST_REMEMBERED = 32
_lock = threading.Lock()
_known: OrderedDict[object, dict[str, TableSchema]] = OrderedDict()


def described(data: object, words: Words) -> Described:
    """Return the tables named by `data`, with the declarations of the call and of the tables.

    Raises InvalidArgument, InvalidSchema. No private row is read.
    """
    if not isinstance(data, pd.DataFrame):
        return _described(data, words)
    key = _key(data, words)
    with _lock:
        tables = None if key is None else _known.get(key)
        if tables is not None:
            _known.move_to_end(key)
    if tables is not None:
        return {"df": data}, tables
    frames, tables = _described(data, words)
    if key is not None:
        with _lock:
            _known[key] = tables
            while len(_known) > _MOST_REMEMBERED:
                _known.popitem(last=False)
    return frames, tables


def _described(data: object, words: Words) -> Described:
    sources = _sources(data, Declaration.of(**words))
    return {name: source.frame for name, source in sources.items()}, resolved(sources)


def _key(frame: pd.DataFrame, words: Words) -> object:
    """Return everything that determines the frame's schema; None if it includes types that are not plain."""
    said = [_plain(words), _plain(frame.attrs.get(REMEMBERED))]
    return None if None in said else (*said, tuple(stored_columns(frame)))


_PLAIN = (str, int, bool, float, date, datetime, type(None))


_DEEPEST = 4


def _plain(word: object, depth: int = 0) -> object:
    """Return the argument with its types, since 1, 1.0 and True are equal; None if it is not plain or nested too
    deeply."""
    kind = type(word)
    if kind in _PLAIN:
        return kind, repr(word)  # distinguishes 0.0 from -0.0, and equal times in different zones
    if depth == _DEEPEST:
        return None
    if kind is dict:
        parts = [_plain(each, depth + 1) for pair in word.items() for each in pair]  # type: ignore[attr-defined]
    elif kind in (list, tuple):
        parts = [_plain(each, depth + 1) for each in word]  # type: ignore[attr-defined]
    else:
        return None
    return None if None in parts else (kind, *parts)


def _sources(data: object, declared: Declaration) -> dict[str, Table]:
    if isinstance(data, Mapping):
        tables = {name: as_table(source) for name, source in data.items()}
        if not tables or not all(isinstance(name, str) and name for name in tables):
            raise InvalidArgument('data must map names to DataFrames, such as {"people": df}.')
    else:
        tables = {"df": as_table(data)}
    if len({name.casefold() for name in tables}) < len(tables):
        raise InvalidArgument("two tables have the same name; names match without regard to case.")
    if declared != Declaration() and len(tables) > 1:
        raise InvalidArgument(
            "bounds, keys, types, unit and limits are for one table; there are several.",
            hint='Declare each: {"people": dpsql.Table(df, bounds=...), ...}.',
        )
    return {
        name: Table.of(table.frame, declared.over(table.declaration), table.origin) for name, table in tables.items()
    }
