"""Python objects and texts as exact values, cell by cell (see dpsql.executors.pandas.columns.exact_values).

Expressions read cells as 64 bits: clipped, rounded, to microseconds. Here numbers and moments stay exact, and the
declared type only decides which cells fit. A text is parsed by its type.

No cell raises, whatever its class does: one that cannot be read, or does not fit, is None.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import date
from decimal import Decimal
from fractions import Fraction

from dpsql.executors.pandas.columns.exact_values import Instant
from dpsql.executors.pandas.columns.object_cells import (
    MOST_DIGITS,
    NANOSECONDS_A_DAY,
    Moment,
    Plain,
    plain_cell,
    text_of,
)
from dpsql.executors.pandas.columns.object_values import on_clock, truth_of
from dpsql.schema.calendar import DAYS, MICROSECONDS_A_DAY, day_number
from dpsql.schema.columns import Type
from dpsql.schema.text_values import ReadText


def exact_cell(cell: object, kind: Type, read_text: ReadText, zone: str | None = None) -> Hashable:
    """Return the cell as a value of the type, or None: whole days for dates, whole nanoseconds for times."""
    try:
        return _exact(plain_cell(cell), kind, read_text, zone)
    except Exception:  # noqa: BLE001 - a number that its type cannot hold
        return None


def _exact(value: Plain, kind: Type, read_text: ReadText, zone: str | None) -> Hashable:
    if kind is Type.TEXT:
        text = text_of(value)
        return None if text is None else read_text(text)
    if isinstance(value, str):
        read = read_text(value)
        return 1_000 * read if kind is Type.TIMESTAMP and isinstance(read, int) else read
    if kind.temporal:
        return _exact_moment(value, kind, zone)
    number = _exact_number(value)
    if number is None or kind is Type.REAL:
        return number
    if kind is Type.BOOLEAN:
        return truth_of(number)
    return _exact_integer(number)


def _exact_moment(value: Plain, kind: Type, zone: str | None) -> Hashable:
    """Return a wall clock's moment as nanoseconds, one of a time zone as an Instant. Both readings of a repeated hour
    are two values, and the same instant in two zones is one. Days lie in the years 1 to 9999."""
    if isinstance(value, Moment):
        if kind is Type.TIMESTAMP:
            return Instant(value.nanoseconds) if value.zoned else value.nanoseconds
        shown = int(value.nanoseconds // 1_000)
        days = (on_clock(shown, zone) if value.zoned else shown) // MICROSECONDS_A_DAY
    elif isinstance(value, date):
        days = day_number(value)
    else:
        return None
    if kind is Type.TIMESTAMP:
        return days * NANOSECONDS_A_DAY
    return days if days in DAYS else None


def _exact_number(value: Plain) -> int | float | Decimal | Fraction | None:
    if isinstance(value, Decimal):
        whole = value.adjusted() < MOST_DIGITS and value == value.to_integral_value()
        return int(value) if whole else value
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, int | float | Fraction) else None


def _exact_integer(number: int | float | Decimal | Fraction) -> Hashable:
    if isinstance(number, float):
        return int(number) if number.is_integer() else None
    if isinstance(number, Decimal):
        return number if number == number.to_integral_value() else None
    return number if isinstance(number, int) or number.denominator == 1 else None
