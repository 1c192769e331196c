"""Python objects and texts, cell by cell, as values of a declared type.

Nothing here fails on a cell, whatever its class does: one that cannot be read, or does not fit, is NULL.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from dpsql.plan.expressions import DTYPES, Array, Vector
from dpsql.schema.calendar import MICROSECONDS, MICROSECONDS_A_DAY, read_date, read_timestamp
from dpsql.schema.columns import Key, Type
from dpsql.schema.intervals import Interval
from dpsql.schema.words import microseconds_of, moment

LARGEST_INTEGER = 2**62
INTEGERS = Interval(-LARGEST_INTEGER, LARGEST_INTEGER)
LONGEST_NUMBER = 40
TRUTHS = {"true": True, "t": True, "false": False, "f": False}


def read_cells(cells: Iterable[object], kind: Type, fill: Key) -> Vector:
    """Objects as values of the type, `fill` in the cells that are NULL. Text is read as in a CSV file."""
    read = [_read_safely(cell, kind) for cell in cells]
    valid = np.array([cell is not None for cell in read], dtype=bool)
    values: Array = np.array([fill if cell is None else cell for cell in read], dtype=DTYPES[kind])
    return Vector(values, None if valid.all() else valid)


def is_text(cell: object) -> bool:
    """Whether a cell is text: a str, or of a subclass; its class is not asked."""
    return issubclass(type(cell), str)


def _read_safely(cell: object, kind: Type) -> Key:
    try:
        return _read(cell, kind)
    except Exception:  # noqa: BLE001 - a cell that cannot be read does not fit
        return None


def _read(cell: Any, kind: Type) -> Key:
    if kind is Type.DATE or kind is Type.TIMESTAMP:
        microseconds = _microseconds(cell, kind)
        if microseconds is None:
            return None
        held = _held(microseconds, MICROSECONDS)
        return held // MICROSECONDS_A_DAY if kind is Type.DATE else held
    if kind is Type.BOOLEAN:
        if isinstance(cell, str):
            return TRUTHS.get(cell.strip().casefold())
        return bool(cell) if isinstance(cell, bool | np.bool_) else None
    if isinstance(cell, bool | np.bool_ | np.timedelta64 | np.complexfloating):
        return None
    if not isinstance(cell, str | int | float | np.number | Decimal):
        return None
    return _integer(cell) if kind is Type.INTEGER else _real(cell)


def _microseconds(cell: Any, kind: Type) -> int | None:
    """Of a date its midnight; of a time with a zone what its wall clock shows."""
    if isinstance(cell, str):
        if kind is Type.TIMESTAMP:
            return read_timestamp(cell)
        days = read_date(cell)
        return None if days is None else days * MICROSECONDS_A_DAY
    if isinstance(cell, np.datetime64):
        return None if np.isnat(cell) else microseconds_of(cell)
    if not isinstance(cell, date) or not isinstance(cell.year, int):  # NaT, which says that it is a datetime
        return None
    if not 1 <= cell.year <= 9999:  # pandas has years that Python has not
        return int(MICROSECONDS.lower if cell.year < 1 else MICROSECONDS.upper)
    if not isinstance(cell, datetime):
        return moment(date(cell.year, cell.month, cell.day))
    return moment(datetime(cell.year, cell.month, cell.day, cell.hour, cell.minute, cell.second, cell.microsecond))


def _integer(cell: Any) -> int | None:
    """A fraction, an infinity or a text that is no integer does not fit."""
    if isinstance(cell, str):
        return _held(int(cell), INTEGERS) if len(cell) <= LONGEST_NUMBER else None
    if isinstance(cell, int | np.integer):
        return _held(int(cell), INTEGERS)
    if isinstance(cell, Decimal):  # held before it becomes an integer, which could have a million digits
        whole = cell.is_finite() and cell == cell.to_integral_value()
        return _held(cell, INTEGERS) if whole else None
    number = float(cell)
    return _held(number, INTEGERS) if number.is_integer() else None


def _real(cell: Any) -> float | None:
    """The nearest float: of a number beyond them an infinity, which is clipped."""
    try:
        number = float(cell)
    except OverflowError:
        number = math.inf if cell > 0 else -math.inf
    return None if math.isnan(number) else number


def _held(value: Any, limits: Interval) -> int:
    return int(max(limits.lower, min(limits.upper, value)))
