"""Dates and timestamps as integers: days and microseconds since 1970-01-01, in the years 1 to 9999.

Text is read as DuckDB reads it (ISO 8601, single digits allowed), without time zones.
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from dpsql.intervals import Interval

_EPOCH = date(1970, 1, 1)
_START = datetime(1970, 1, 1)  # noqa: DTZ001 - timestamps here have no zone
_MICROSECOND = timedelta(microseconds=1)

MICROSECONDS_A_SECOND = 1_000_000
MICROSECONDS_A_DAY = 86_400 * MICROSECONDS_A_SECOND
DAYS = Interval((date.min - _EPOCH).days, (date.max - _EPOCH).days)
"""Every date there is here."""
MICROSECONDS = Interval(int(DAYS.lower) * MICROSECONDS_A_DAY, (int(DAYS.upper) + 1) * MICROSECONDS_A_DAY - 1)
"""Every timestamp there is here."""

_DATE = re.compile(r"\s*([0-9]{1,4})([-/])([0-9]{1,2})\2([0-9]{1,2})\s*")
_TIMESTAMP = re.compile(
    r"\s*([0-9]{1,4})([-/])([0-9]{1,2})\2([0-9]{1,2})"
    r"(?:[ T]+([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6})[0-9]*)?)?)?\s*"
)


def day_number(value: date) -> int:
    """Days since 1970-01-01 of a date."""
    return (date(value.year, value.month, value.day) - _EPOCH).days


def microsecond_number(value: datetime) -> int:
    """Microseconds since 1970-01-01 00:00 of a timestamp, by its wall clock whatever its zone."""
    return (value.replace(tzinfo=None) - _START) // _MICROSECOND


def date_of(days: int) -> date:
    """The date of a day number within DAYS."""
    return _EPOCH + timedelta(days=days)


def timestamp_of(microseconds: int) -> datetime:
    """The timestamp of a number within MICROSECONDS."""
    return _START + microseconds * _MICROSECOND


def read_date(text: str) -> int | None:
    """The day number of a written date, None for anything else."""
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    try:
        return day_number(date(int(found[1]), int(found[3]), int(found[4])))
    except ValueError:
        return None


def read_timestamp(text: str) -> int | None:
    """The microseconds of a written date, with or without a time of day; None for anything else."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return None
    hour, minute, second = (int(part or 0) for part in found.group(5, 6, 7))
    fraction = int((found[8] or "0").ljust(6, "0"))
    try:
        parts = (int(found[1]), int(found[3]), int(found[4]), hour, minute, second, fraction)
        return microsecond_number(datetime(*parts))  # noqa: DTZ001
    except ValueError:
        return None


def show_date(days: int) -> str:
    """YYYY-MM-DD."""
    return date_of(days).isoformat()


def show_timestamp(microseconds: int) -> str:
    """YYYY-MM-DD HH:MM:SS, with the fraction of a second where there is one, without trailing zeros."""
    text = timestamp_of(microseconds).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text
