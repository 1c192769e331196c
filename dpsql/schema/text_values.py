"""Read a text as a value of a type.

The same rules apply to cells of a text column with a declared type, `CAST(x AS type)`, and the types that `dpsql init`
recognises. SQL engines use the same patterns (`dpsql.plan.functions.text_casts`). The rules are those of DuckDB's
TRY_CAST, with the differences that `docs/text-files.md` lists. Every function here is total: a text without a value of
the type gives None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from dpsql.schema.calendar import MICROSECONDS, MICROSECONDS_A_DAY, microsecond_number
from dpsql.schema.columns import Key, Type
from dpsql.schema.intervals import INT64, Interval

ReadText = Callable[[str], Key]
"""Reads a text as a value of one type; None if it has none."""
MOST_READ = 256
"""Maximum length of a number, date or boolean, since reading longer texts takes long."""
BLANKS = " \t\n\v\f\r"
"""Removed around every text before it is read."""
PLAIN_FORM = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_EXPONENT = r"(?:[eE][+-]?[0-9]{1,3})?"
FLOAT_FORM = PLAIN_FORM + _EXPONENT + r"|[+-]?(?i:inf|infinity)"
INTEGER_FORM = r"[+-]?(?:0*[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})" + _EXPONENT  # DuckDB reads no longer ones
_YEAR = r"(?:[0-9]{0,3}[1-9]|[0-9]{0,2}[1-9]0|[0-9]?[1-9]00|[1-9]000)"  # 1 to 9999
_DAY = _YEAR + r"(?:" + "|".join(rf"{sign}[0-9]{{1,2}}{sign}" for sign in ("-", "/", " ", r"\\")) + ")[0-9]{1,2}"
_CLOCK = r"(?:[01]?[0-9]|2[0-3]):[0-5]?[0-9](?::[0-5]?[0-9](?:\.[0-9]*)?)?|24:00(?::00(?:\.0*)?)?"
_OFFSET = r" ?[+-](?:0[0-9]|1[0-5])(?::?[0-5][0-9])?| ?Z| (?i:UTC)"
MOMENT_FORM = rf"{_DAY}(?:(?:[ \t\n\v\f\r]+|T)(?:{_CLOCK})(?:{_OFFSET})?)?"
TRUE_WORDS = ("true", "t", "1", "yes", "y")
FALSE_WORDS = ("false", "f", "0", "no", "n")
EXACT_INTEGERS = Interval(-(10**31), 10**31)
"""Range of integers in privacy unit keys."""

_integer = re.compile(INTEGER_FORM)
_float = re.compile(FLOAT_FORM)
_moment = re.compile(rf"({_DAY})(?:(?:[ \t\n\v\f\r]+|T)({_CLOCK})({_OFFSET})?)?")
_TRUTHS = {**dict.fromkeys(TRUE_WORDS, True), **dict.fromkeys(FALSE_WORDS, False)}


def read_integer(text: str, limits: Interval = INT64) -> int | None:
    """Return a whole number within limits. Halves are rounded away from zero."""
    bare = text.strip(BLANKS)
    if _integer.fullmatch(bare) is None:
        return None
    whole = Decimal(bare).to_integral_value(ROUND_HALF_UP)
    return int(whole) if limits.lower <= whole <= limits.upper else None


def read_real(text: str) -> float | None:
    """Return the nearest double; infinity if written, or if the number is beyond the largest double."""
    bare = text.strip(BLANKS)
    return None if _float.fullmatch(bare) is None else float(bare)


def read_boolean(text: str) -> bool | None:
    """Return the value of one of TRUE_WORDS or FALSE_WORDS, in upper or lower case."""
    bare = text.strip(BLANKS)
    return _TRUTHS.get(bare.lower()) if bare.isascii() else None


def read_moment(text: str) -> int | None:
    """Return microseconds since 1970 of a date with or without a time of day. A time with an offset is converted to
    UTC."""
    match = _moment.fullmatch(text.strip(BLANKS))
    if match is None:
        return None
    midnight = _microseconds_of_day(match[1])
    if midnight is None:
        return None
    moment = midnight + _microseconds_of_clock(match[2] or "") - _microseconds_of_offset(match[3] or "")
    return moment if moment in MICROSECONDS else None


def read_day(text: str) -> int | None:
    """Return days since 1970 of a date. With a time of day, the date is the written one, whatever its offset."""
    match = _moment.fullmatch(text.strip(BLANKS))
    midnight = None if match is None else _microseconds_of_day(match[1])
    return None if midnight is None else midnight // MICROSECONDS_A_DAY


def unless_long(read: ReadText) -> ReadText:
    """Restrict to texts that are not longer than MOST_READ."""
    return lambda text: read(text) if len(text) <= MOST_READ else None


READERS: Mapping[Type, Callable[[str], Key]] = {
    Type.INTEGER: unless_long(read_integer),
    Type.REAL: unless_long(read_real),
    Type.BOOLEAN: unless_long(read_boolean),
    Type.TEXT: lambda text: text,
    Type.DATE: unless_long(read_day),
    Type.TIMESTAMP: unless_long(read_moment),
}
"""Days and microseconds since 1970 for dates and timestamps."""
EXACT_READERS: Mapping[Type, Callable[[str], Key]] = {
    **READERS,
    Type.INTEGER: unless_long(lambda text: read_integer(text, EXACT_INTEGERS)),
}
"""The same for privacy unit keys, which distinguish larger whole numbers."""


def _microseconds_of_day(written: str) -> int | None:
    year, month, day = map(int, re.split(r"[-/ \\]", written))
    try:
        return microsecond_number(datetime(year, month, day))  # a wall clock has no zone here
    except ValueError:
        return None


def _microseconds_of_clock(written: str) -> int:
    """Return the microseconds of "h:m", "h:m:s" or "h:m:s.fraction". Digits beyond microseconds are cut off."""
    clock, _, fraction = written.partition(".")
    hours, minutes, seconds = [*(int(part) for part in clock.split(":") if part), 0, 0, 0][:3]
    return ((hours * 60 + minutes) * 60 + seconds) * 10**6 + int(fraction[:6].ljust(6, "0"))


def _microseconds_of_offset(written: str) -> int:
    digits = re.sub("[^0-9]", "", written)
    if not digits:
        return 0
    east = timedelta(hours=int(digits[:2]), minutes=int(digits[2:] or 0)) // timedelta(microseconds=1)
    return -east if "-" in written else east
