"""Python objects as values of a declared type: the rules by class, for cells read by `object_cells`."""

from __future__ import annotations

import math
from bisect import bisect_right
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from dpsql.executors.pandas.columns.object_cells import Moment, Plain, plain_cell, text_of
from dpsql.schema.calendar import MICROSECONDS, MICROSECONDS_A_DAY, day_number
from dpsql.schema.columns import Key, Type
from dpsql.schema.intervals import INT64, Interval
from dpsql.schema.text_values import ReadText

_NUMBERS = (int, float, Decimal, Fraction)  # bool is an int


def value_of_object(
    cell: object, kind: Type, read_text: ReadText, zone: str | None = None, *, clips: bool = False
) -> Key:
    """Return the value of a cell; None if it is NULL or has no value of the type (clips: see `read_cells`)."""
    try:
        return _read(plain_cell(cell), kind, read_text, zone, clips=clips)
    except Exception:  # noqa: BLE001 - a number that its type cannot hold
        return None


def _read(value: Plain, kind: Type, read_text: ReadText, zone: str | None, *, clips: bool) -> Key:
    if kind is Type.TEXT:
        text = text_of(value)
        return None if text is None else read_text(text)
    if isinstance(value, str):
        return read_text(value)
    if kind.temporal:
        microseconds = _microseconds(value, zone)
        if microseconds is None:
            return None
        held = _held(microseconds, MICROSECONDS)
        return held // MICROSECONDS_A_DAY if kind is Type.DATE else held
    if not isinstance(value, _NUMBERS):
        return None
    if kind is Type.BOOLEAN:
        return truth_of(value)
    return _integer(value, clips=clips) if kind is Type.INTEGER else _real(value)


def truth_of(value: Any) -> bool | None:
    """Return 0 and 1 as booleans, None for other numbers."""
    return bool(value) if value in (0, 1) else None


def _microseconds(value: Plain, zone: str | None) -> int | None:
    """Return the midnight of a date; for a time with a zone, the clock time in `zone` (None: UTC)."""
    if isinstance(value, Moment):
        shown = int(value.nanoseconds // 1_000)
        return on_clock(shown, zone) if value.zoned else shown
    return day_number(value) * MICROSECONDS_A_DAY if isinstance(value, date) else None


def on_clock(instant: int, zone: str | None) -> int:
    """Return the clock time of a zone at an instant, in microseconds (None: UTC)."""
    if zone is None:
        return instant
    from dpsql.schema.zones import offsets_of  # most columns hold no instants

    table = offsets_of(zone)
    return instant + table.offsets[bisect_right(table.instants, instant)]


def _integer(number: Any, *, clips: bool) -> int | None:
    """Convert to INTEGER, if whole. A Decimal is clipped first, since its integer could have a million digits."""
    if isinstance(number, Decimal):
        whole = number == number.to_integral_value()
    elif isinstance(number, float):
        whole = number.is_integer()
    else:
        whole = not isinstance(number, Fraction) or number.denominator == 1
    return _held(number, INT64) if whole and (clips or number in INT64) else None


def _real(number: Any) -> float:
    """Return the nearest float; beyond the floats an infinity, which is clipped later."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _held(value: Any, limits: Interval) -> int:
    return int(max(limits.lower, min(limits.upper, value)))
