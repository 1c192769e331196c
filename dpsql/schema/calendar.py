"""Dates and timestamps as integers: days and microseconds since 1970-01-01, in the years 1 to 9999.

Text is read as in DuckDB (ISO 8601, single digits allowed), without time zones. Arrays of day numbers are split in
integer arithmetic, which neither fails nor warns on any number (numbers far outside these years give nonsense).
"""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from dpsql.schema.intervals import Interval

Integers = NDArray[np.int64]

_EPOCH = date(1970, 1, 1)
_START = datetime(1970, 1, 1)  # timestamps here have no zone
_MICROSECOND = timedelta(microseconds=1)

MICROSECONDS_A_SECOND = 1_000_000
MICROSECONDS_A_DAY = 86_400 * MICROSECONDS_A_SECOND
DAYS = Interval((date.min - _EPOCH).days, (date.max - _EPOCH).days)
"""Range of all dates."""
MICROSECONDS = Interval(int(DAYS.lower) * MICROSECONDS_A_DAY, (int(DAYS.upper) + 1) * MICROSECONDS_A_DAY - 1)
"""Range of all timestamps."""

_DATE = re.compile(r"\s*([0-9]{1,4})([-/])([0-9]{1,2})\2([0-9]{1,2})\s*")
_TIMESTAMP = re.compile(
    r"\s*([0-9]{1,4})([-/])([0-9]{1,2})\2([0-9]{1,2})"
    r"(?:[ T]+([0-9]{1,2}):([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{1,6})[0-9]*)?)?)?\s*"
)


def day_number(value: date) -> int:
    """Return a date's number of days since 1970-01-01."""
    return (date(value.year, value.month, value.day) - _EPOCH).days


def microsecond_number(value: datetime) -> int:
    """Return a timestamp's microseconds since 1970-01-01 00:00, by its wall clock in any zone."""
    return (value.replace(tzinfo=None) - _START) // _MICROSECOND


def date_of(days: int) -> date:
    """Return the date of a day number within DAYS."""
    return _EPOCH + timedelta(days=days)


def timestamp_of(microseconds: int) -> datetime:
    """Return the timestamp of a number within MICROSECONDS."""
    return _START + microseconds * _MICROSECOND


def read_date(text: str) -> int | None:
    """Return the day number of a written date, None for anything else."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    try:
        return day_number(date(int(match[1]), int(match[3]), int(match[4])))
    except ValueError:
        return None


def read_timestamp(text: str) -> int | None:
    """Return the microseconds of a written date, with or without a time of day; None for anything else."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.group(5, 6, 7))
    fraction = int((match[8] or "0").ljust(6, "0"))
    try:
        parts = (int(match[1]), int(match[3]), int(match[4]), hour, minute, second, fraction)
        return microsecond_number(datetime(*parts))
    except ValueError:
        return None


def show_date(days: int) -> str:
    """Return YYYY-MM-DD."""
    return date_of(days).isoformat()


def show_timestamp(microseconds: int) -> str:
    """Return YYYY-MM-DD HH:MM:SS, with any fraction of a second, without trailing zeros."""
    text = timestamp_of(microseconds).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def civil(days: Integers) -> tuple[Integers, Integers, Integers]:
    """Return year, month and day of day numbers, in the proleptic Gregorian calendar.

    Years begin in March, so that a leap day is the last of its year; 400 years are 146,097 days. Source: Howard
    Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013.
    """
    shifted = days + 719_468  # days since 0000-03-01
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153  # March is 0
    day = of_year - (153 * month + 2) // 5 + 1
    next_year = month >= 10
    return year + 400 * era + next_year, month + 3 - 12 * next_year, day


def month_number(days: Integers) -> Integers:
    """Return a day's month, counted from January of year 0."""
    year, month, _day = civil(days)
    return 12 * year + month - 1


def first_day(months: Integers) -> Integers:
    """Return the first day number of a month, counted from January of year 0 (Hinnant, as above)."""
    year = (months - 2) // 12  # beginning in March
    of_era = year % 400
    day = 365 * of_era + of_era // 4 - of_era // 100 + (153 * ((months - 2) % 12) + 2) // 5
    return year // 400 * 146_097 + day - 719_468
