"""Python objects as plain values.

A column of objects can hold any class. `plain_cell` looks up the class in Python's type tree, and then reads a cell
through methods of Python's, NumPy's and pandas' classes; it never calls a method of the cell's class. So a cell cannot
raise, and cannot change another row.
"""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from dpsql.schema.calendar import day_number, first_day, microsecond_number, show_date, show_timestamp
from dpsql.schema.frozen import dataclass

NANOSECONDS_A_DAY = 86_400 * 10**9
MOST_DIGITS = 400
"""Most digits of a decimal that has a text, or is compared as a whole number."""
_ATTOSECONDS = {"as": 1, "fs": 10**3, "ps": 10**6, "ns": 10**9, "us": 10**12, "ms": 10**15, "s": 10**18}
_SECONDS = {"m": 60, "h": 3_600, "D": 86_400, "W": 604_800}
_ZONES = ("pytz", "dateutil.", "psycopg2.")
"""Other modules with time zone classes."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time in nanoseconds since 1970: of a wall clock or, if zoned, of UTC."""

    nanoseconds: int | Fraction
    zoned: bool = False


Plain = str | bool | int | float | Fraction | Decimal | date | time | Moment | UUID | None


def plain_cell(cell: Any) -> Plain:
    """Return the value of a cell, of exactly one of these classes; None for NULL and other classes. Bytes are UTF-8."""
    if cell is None:
        return None
    kind = type(cell)
    value: Plain
    try:
        if kind is bytes or kind is bytearray or kind is memoryview:
            return bytes(cell).decode()
        read = _EXACT.get(id(kind)) or next((read for known, read in _BASES if issubclass(kind, known)), None)
        value = None if read is None else read(cell)
    except Exception:  # noqa: BLE001 - a cell that cannot be read is NULL
        return None
    return value


def text_of(value: Plain) -> str | None:
    """Return the text of a plain value, as written by CAST(x AS TEXT)."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        small = value.is_finite() and len(value.as_tuple().digits) + abs(value.adjusted()) <= MOST_DIGITS
        return format(value, "f") if small else None
    if isinstance(value, Moment):
        return show_timestamp(int(value.nanoseconds // 1_000))  # raises beyond the calendar
    if isinstance(value, date):
        return show_date(day_number(value))
    if isinstance(value, time):
        return value.replace(tzinfo=None).isoformat() if value.tzinfo is None else None
    return None if value is None else str(float(value) if isinstance(value, Fraction) else value)


def _text(cell: Any) -> str | None:
    text = str.__str__(cell)
    text.encode()  # raises for a lone surrogate, which is not a character
    return text


def _float(cell: Any) -> float | None:
    number = float.__float__(cell)
    return None if math.isnan(number) else number


def _numpy_float(cell: Any) -> float | Fraction | None:
    if not np.isfinite(cell) or cell.dtype.itemsize <= 8:
        return _float(float(cell))
    return _fraction(*cell.as_integer_ratio())


def _decimal(cell: Any) -> Decimal | float | None:
    """Return an instance of Python's own class, even for a subclass."""
    number = Decimal(cell)
    if number.is_finite():
        return number
    return None if number.is_nan() else float(number)


def _fraction(numerator: int, denominator: int) -> int | Fraction:
    found = Fraction(numerator, denominator)
    return found.numerator if found.denominator == 1 else found


def _datetime(cell: Any) -> Moment | None:
    """Read the parts by Python's own descriptors, and the offset only of known time zones."""
    parts = [getattr(datetime, each).__get__(cell) for each in ("year", "month", "day", "hour", "minute", "second")]
    own = datetime(*parts).replace(microsecond=datetime.microsecond.__get__(cell), fold=datetime.fold.__get__(cell))
    zone = datetime.tzinfo.__get__(cell)
    if zone is None:
        return Moment(1_000 * microsecond_number(own))
    if not _is_zone(zone):
        return None
    offset = own.replace(tzinfo=zone).utcoffset()
    if offset is None:
        return Moment(1_000 * microsecond_number(own))
    return Moment(1_000 * (microsecond_number(own) - offset // timedelta(microseconds=1)), zoned=True)


def _is_zone(zone: tzinfo) -> bool:
    return type(zone) is timezone or type(zone) is ZoneInfo or (str(type(zone).__module__).startswith(_ZONES))


def _timestamp(cell: Any) -> Moment | None:
    """Read pandas' class, which has nanoseconds, years beyond Python's, and UTC in `asm8`."""
    moment = _numpy_moment(cell.asm8)
    return None if moment is None else Moment(moment.nanoseconds, cell.tzinfo is not None)


def _numpy_moment(moment: Any) -> Moment | None:
    """Read NumPy's timestamp, of any unit."""
    unit, count = np.datetime_data(moment.dtype)
    if np.isnat(moment):
        return None
    ticks = int(moment.astype(np.int64)) * count
    if unit in _ATTOSECONDS:
        return Moment(_fraction(ticks * _ATTOSECONDS[unit], 10**9))
    if unit in _SECONDS:
        return Moment(ticks * _SECONDS[unit] * 10**9)
    months: Any = 12 * 1970 + ticks * (12 if unit == "Y" else 1)  # Python's integers, since NumPy's overflow
    return Moment(int(first_day(months)) * NANOSECONDS_A_DAY)


def _date(cell: Any) -> date:
    return date(*(getattr(date, each).__get__(cell) for each in ("year", "month", "day")))


def _itself(cell: Any) -> Any:
    return cell


_BASES: tuple[tuple[type, Any], ...] = (
    (str, _text),
    (int, int.__int__),
    (float, _float),
    (Decimal, _decimal),
    (datetime, _datetime),
    (date, _date),
    (bytes, bytes.decode),
)
"""Readers of classes and their subclasses."""
_NUMPY = {
    **{each: int for each in np.sctypeDict.values() if issubclass(each, np.integer)},
    **{each: _numpy_float for each in np.sctypeDict.values() if issubclass(each, np.floating)},
    np.bool_: bool,
    np.datetime64: _numpy_moment,
}
_NO_VALUE = (type(pd.NaT), np.timedelta64)  # subclasses of other classes listed here
_EXACT: dict[int, Any] = {
    id(kind): read
    for kind, read in {
        **dict(_BASES),
        **_NUMPY,
        **dict.fromkeys(_NO_VALUE, lambda _cell: None),
        **dict.fromkeys((bool, time, UUID), _itself),
        pd.Timestamp: _timestamp,
    }.items()
}
"""Readers of exactly these classes, by id: a class could claim to equal another."""
