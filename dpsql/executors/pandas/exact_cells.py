"""Python objects and texts, cell by cell, as values that are told apart exactly (dpsql.executors.pandas.exact_values).

What an expression reads of a cell is held in 64 bits: clipped, rounded, by its wall clock. Here nothing is: numbers and
moments are what they are, and the declared type says only which cells fit it. A text is what its type reads: a whole
number that is written as one, and else the nearest double.

Nothing here fails on a cell, whatever its class does: one that cannot be read, or does not fit, is None.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.executors.pandas.cells import LONGEST_NUMBER, TRUTHS
from dpsql.executors.pandas.exact_values import Instant
from dpsql.schema.calendar import (
    DAYS,
    MICROSECONDS_A_DAY,
    day_number,
    first_day,
    microsecond_number,
    read_date,
    read_timestamp,
)
from dpsql.schema.columns import Type

_MOST_DIGITS = 400
"""A text is a whole number up to so many digits, more than the largest double has, and a decimal is held as one."""
_ATTOSECONDS = {"as": 1, "fs": 10**3, "ps": 10**6, "ns": 10**9, "us": 10**12, "ms": 10**15, "s": 10**18}
_SECONDS = {"m": 60, "h": 3_600, "D": 86_400, "W": 604_800}
_NANOSECONDS_A_DAY = 1_000 * MICROSECONDS_A_DAY
_MOST_MONTHS = 2**50


def exact_cell(cell: object, kind: Type) -> Hashable:
    """What the cell holds as a value of the type: a whole number of days for dates, of nanoseconds for times; None
    where it holds none."""
    try:
        return _READERS[kind](cell)
    except Exception:  # noqa: BLE001 - a cell that cannot be read does not fit
        return None


def _text(cell: Any) -> Hashable:
    text = str.__str__(cell)
    text.encode()  # a lone surrogate is no character
    return text


def _boolean(cell: Any) -> Hashable:
    if isinstance(cell, str):
        return TRUTHS.get(cell.strip().casefold())
    return bool(cell) if isinstance(cell, bool | np.bool_) else None


def _integer(cell: Any) -> Hashable:
    if isinstance(cell, str):
        return int(cell) if len(cell) <= LONGEST_NUMBER else None
    number = _number(cell)
    if number is None or isinstance(number, int):
        return number
    if isinstance(number, Decimal):
        return number if number == number.to_integral_value() else None
    if isinstance(number, float):
        return int(number) if number.is_integer() else None
    return number if number.denominator == 1 else None


def _real(cell: Any) -> Hashable:
    if not isinstance(cell, str):
        return _number(cell)
    with suppress(ValueError):  # not written as a whole number
        return int(cell) if len(cell) <= _MOST_DIGITS else _number(float(cell))
    return _number(float(cell))


def _number(cell: Any) -> int | float | Decimal | Fraction | None:
    """A number exactly, one of Python's own classes: then no class of the cell's decides what it equals."""
    if isinstance(cell, bool | np.bool_ | np.timedelta64 | np.complexfloating):
        return None
    if isinstance(cell, int | np.integer):
        return int(cell)
    if isinstance(cell, float | np.float16 | np.float32):
        return _double(float(cell))
    if isinstance(cell, np.floating):
        return _double(float(cell)) if not np.isfinite(cell) else _fraction(*cell.as_integer_ratio())
    if not isinstance(cell, Decimal):
        return None
    if not cell.is_finite():
        return None if cell.is_nan() else float(cell)
    if cell.adjusted() < _MOST_DIGITS and cell == cell.to_integral_value():
        return int(cell)
    return Decimal(cell)


def _double(number: float) -> float | None:
    return None if math.isnan(number) else number + 0.0


def _fraction(numerator: int, denominator: int) -> int | Fraction:
    found = Fraction(numerator, denominator)
    return found.numerator if found.denominator == 1 else found


def _timestamp(cell: Any) -> Hashable:
    """A moment by a wall clock as nanoseconds, one of a time zone as an Instant: both readings of a repeated hour are
    two, and the same one in two zones is one."""
    if isinstance(cell, str):
        microseconds = read_timestamp(cell)
        return None if microseconds is None else 1_000 * microseconds
    if isinstance(cell, np.datetime64):
        return _nanoseconds(cell)
    if not _is_date(cell):
        return None
    if not isinstance(cell, datetime):
        return day_number(cell) * _NANOSECONDS_A_DAY
    offset = cell.utcoffset()
    if hasattr(cell, "asm8"):  # pandas' own, of nanoseconds, and of years that Python has not; of UTC, if of a zone
        found = _nanoseconds(cell.asm8)
        return None if found is None else found if offset is None else Instant(found)
    own = datetime(cell.year, cell.month, cell.day, cell.hour, cell.minute, cell.second, cell.microsecond)
    if offset is None:
        return 1_000 * microsecond_number(own)
    return Instant(1_000 * (microsecond_number(own) - offset // timedelta(microseconds=1)))


def _date(cell: Any) -> Hashable:
    """The day that a cell shows, in the years 1 to 9999."""
    if isinstance(cell, str):
        return read_date(cell)
    if isinstance(cell, np.datetime64):
        found = _nanoseconds(cell)
        days = None if found is None else int(found // _NANOSECONDS_A_DAY)
    else:
        days = day_number(cell) if _is_date(cell) and 1 <= cell.year <= 9999 else None
    return days if days is not None and days in DAYS else None


def _is_date(cell: Any) -> bool:
    return isinstance(cell, date) and isinstance(cell.year, int)  # NaT says that it is one, and has no year


def _nanoseconds(moment: np.datetime64) -> int | Fraction | None:
    """NumPy's timestamp, of any unit."""
    unit, count = np.datetime_data(moment.dtype)
    if np.isnat(moment):
        return None
    ticks = int(moment.astype(np.int64)) * count
    if unit in _ATTOSECONDS:
        return _fraction(ticks * _ATTOSECONDS[unit], 10**9)
    if unit in _SECONDS:
        return ticks * _SECONDS[unit] * 10**9
    months = 12 * 1970 + ticks * (12 if unit == "Y" else 1)
    if abs(months) > _MOST_MONTHS:
        return None
    return int(first_day(np.array([months], dtype=np.int64))[0]) * _NANOSECONDS_A_DAY


_READERS = {
    Type.TEXT: _text,
    Type.BOOLEAN: _boolean,
    Type.INTEGER: _integer,
    Type.REAL: _real,
    Type.DATE: _date,
    Type.TIMESTAMP: _timestamp,
}
