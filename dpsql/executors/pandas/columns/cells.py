"""Python objects and texts as values of a declared type, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dpsql.plan.expressions import DTYPES, Array, Vector
from dpsql.schema.columns import Key, Type
from dpsql.schema.text_values import ReadText

LARGEST_INTEGER = 2**62
"""Sums are clipped to it."""


def read_cells(
    cells: Iterable[object], kind: Type, fill: Key, read_text: ReadText, zone: str | None = None, *, clips: bool = False
) -> Vector:
    """Convert objects to values of the type, with `fill` in NULL cells. No cell raises. clips: whether a number beyond
    64 bits becomes the nearest INTEGER, as with declared bounds, instead of NULL."""
    read = [_read(cell, kind, read_text, zone, clips=clips) for cell in cells]
    valid = np.array([cell is not None for cell in read], dtype=bool)
    values: Array = np.array([fill if cell is None else cell for cell in read], dtype=DTYPES[kind])
    return Vector(values, None if valid.all() else valid)


def is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates, which are not characters; a cell with one is NULL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read(cell: object, kind: Type, read_text: ReadText, zone: str | None, *, clips: bool) -> Key:
    if kind is Type.TEXT and type(cell) is str:  # as most cells are
        return read_text(cell) if is_unicode(cell) else None
    from dpsql.executors.pandas.columns.object_values import value_of_object  # most columns hold no objects

    return value_of_object(cell, kind, read_text, zone, clips=clips)
