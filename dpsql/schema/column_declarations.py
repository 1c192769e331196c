"""Validation of column declarations: bounds, lists of keys, flags, whole numbers. Raises InvalidSchema.

Values of Python, NumPy or pandas, of any subclass, become plain Python values.
"""

from __future__ import annotations

import math
import numbers
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from dpsql.errors import InvalidSchema, as_written
from dpsql.schema.calendar import (
    MICROSECONDS,
    MICROSECONDS_A_DAY,
    day_number,
    microsecond_number,
    read_date,
    read_timestamp,
)
from dpsql.schema.intervals import INT128, Number

Word = str | int | float | bool | date | None
"""A declared value. A `datetime` is a date too; for a column of dates, so is ISO text."""
Pair = tuple[Number | date, Number | date]
"""Two numbers, or two dates."""
Within = tuple[str, Number, Number]
"""The word "auto" and two numbers, between which bounds are chosen."""
LARGEST_BOUND = 2**62
"""Larger bounds are refused: integers up to it are summed without overflow checks."""

_PLAIN = (str, bytes, numbers.Number, date, time, timedelta, np.generic, type(None))
_ATTOSECONDS = {
    "W": 604_800 * 10**18, "D": 86_400 * 10**18, "h": 3_600 * 10**18, "m": 60 * 10**18, "s": 10**18, "ms": 10**15,
    "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 1000, "as": 1,
}  # fmt: skip
EXAMPLES = {"bounds": "(0, 120)", "keys": '["a", "b"]', "types": '"integer"', "nullable": "False", "max_matches": "3",
    "format": '"%d/%m/%Y"', "decimal": '","', "thousands": '"."', "true": '["Ja"]', "false": '["Nein"]',
    "null": '["NA"]', "encoding": '"latin-1"'}  # fmt: skip


def items_of(word: str, facts: object) -> list[tuple[str, object]]:
    """Return the columns of `bounds`, `keys` and the like, with their declarations."""
    if facts is None:
        return []
    if not isinstance(facts, Mapping):
        raise InvalidSchema(
            f"{word} must map columns to their {word}, got {type(facts).__name__}.",
            hint=f'Write {word}={{"age": {EXAMPLES[word]}}}.',
        )
    for name in facts:
        if not isinstance(name, str):
            raise InvalidSchema(f"{word} names columns by text, got {as_written(name)}.")
    return list(facts.items())


@contextmanager
def about(table: str) -> Iterator[None]:
    """Add the table's name to errors raised inside."""
    try:
        yield
    except InvalidSchema as error:
        if re.search(rf"(?<!\w){re.escape(table)}(?!\w)", error.message):
            raise
        raise InvalidSchema(f"{table}: {error.message}", hint=error.hint, about=error.about) from None


AUTO = "auto"
"""Bounds that queries choose privately when they need them."""


def bounds_of(name: str, pair: object) -> Pair | Within | str:
    """Return a lower and an upper bound: two numbers, or two dates; or the word "auto", alone or with two numbers."""
    if isinstance(pair, str) and pair == AUTO:
        return AUTO
    if isinstance(pair, tuple | list) and len(pair) == 3 and isinstance(pair[0], str) and pair[0] == AUTO:
        lower, upper = _pair(name, pair[1:])
        if isinstance(lower, date) or isinstance(upper, date):
            raise InvalidSchema(f"{name}: bounds are chosen between numbers, got {shown_pair((lower, upper))}.")
        return AUTO, lower, upper
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidSchema(f'{name}: bounds are a pair (lower, upper) or "auto", got {briefly(pair)}.')
    return _pair(name, pair)


def _pair(name: str, pair: Sequence[object]) -> Pair:
    """Return a lower and an upper bound from a sequence of two."""
    lower, upper = (_bound(name, each) for each in pair)
    low, high = shown(lower), shown(upper)
    if isinstance(lower, date) != isinstance(upper, date):
        raise InvalidSchema(f"{name}: bounds are two numbers or two dates, got {low} and {high}.")
    ends = [moment(each) if isinstance(each, date) else each for each in (lower, upper)]
    if ends[0] > ends[1]:
        raise InvalidSchema(f"{name}: lower bound {low} is above upper bound {high}. Did you mean ({high}, {low})?")
    if ends[0] == ends[1]:
        raise InvalidSchema(
            f"{name}: lower and upper bound are both {low}, which would turn every value into {low}.",
            hint="Give a range that the values can lie in.",
        )
    return lower, upper


def keys_of(name: str, listed: object, most: int) -> tuple[Word, ...]:
    """Return a list of different keys, at most `most`; or those in the column of that name of an earlier answer."""
    if not hasattr(listed, "ndim") and getattr(getattr(listed, "df", None), "ndim", None) == 2:
        listed = _released(name, listed)
    if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Iterable):
        raise InvalidSchema(f"{name}: keys are a list of values, got {briefly(listed)}.")
    if getattr(listed, "ndim", 1) != 1:  # a DataFrame would iterate over its columns' names
        raise InvalidSchema(
            f"{name}: keys are one list of values, got a {type(listed).__name__} of rows and columns.",
            hint=f'Write the values that "{name}" can have: keys={{"{name}": ["a", "b"]}}.',
        )
    keys = tuple(_key(name, each) for each in _without_nan(listed))
    if not keys:
        raise InvalidSchema(f"{name}: the list of keys is empty.")
    if len(keys) > most:
        raise InvalidSchema(f"{name}: more than {most:,} keys.")
    if len(set(keys)) < len(keys):
        raise InvalidSchema(f"{name}: a key is listed twice.")
    return keys


def _released(name: str, answer: Any) -> list[Any]:
    """Return the distinct values of a column of an answer, in order, with None last if it has NULLs. An answer is
    anything with a frame `.df`, such as a Result."""
    frame = answer.df
    same = [each for each in frame.columns if isinstance(each, str) and each.casefold() == name.casefold()]
    if len(same) != 1:
        columns = ", ".join(f'"{each}"' for each in frame.columns)
        raise InvalidSchema(
            f'{name}: an answer given for its keys has one column "{name}"; this has {columns or "none"}.',
            hint=f"Select it by that name: SELECT {name}, COUNT(*) ... GROUP BY {name}.",
        )
    column = frame[same[0]]
    return [*dict.fromkeys(column.dropna()), *([None] if column.isna().any() else [])]


def _without_nan(listed: Iterable[Any]) -> Iterable[Any]:
    """Return the values of a Series or an Index with None for NULL; the values of any other list unchanged."""
    if not hasattr(listed, "isna"):
        return listed
    return [None if null else each for each, null in zip(listed, listed.isna(), strict=True)]


def whole_of(word: str, value: object, most: int, hint: str) -> int:
    """Return a whole number from 1 to `most`, for the setting `word`."""
    value = _python(value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
        return int(value)
    got = "one of many digits" if isinstance(value, int) and abs(value) > LARGEST_BOUND else briefly(value)
    raise InvalidSchema(f"{word} must be a whole number from 1 to {most:,}, got {got}.", hint=hint)


def flag_of(name: str, word: object) -> bool:
    """Return whether a column can hold NULL."""
    if isinstance(word, bool):
        return word
    raise InvalidSchema(f"{name}: nullable must be True or False, got {briefly(word)}.")


def unique_of(listed: object) -> tuple[tuple[str, ...], ...]:
    """Return columns, and lists of columns that form a key."""
    if not isinstance(listed, list | tuple):
        raise InvalidSchema(f"unique must be a list of columns, got {briefly(listed)}.", hint=_UNIQUE_HINT)
    keys = tuple(_columns_of(each) for each in listed)
    for key, times in Counter(frozenset(name.casefold() for name in key) for key in keys).items():
        if times > 1:
            raise InvalidSchema(f"unique lists {' and '.join(sorted(key))} twice.")
    return keys


def _columns_of(key: object) -> tuple[str, ...]:
    names = (key,) if isinstance(key, str) else key
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidSchema(f"unique lists columns, or lists of columns, got {briefly(key)}.", hint=_UNIQUE_HINT)
    if len({name.casefold() for name in names}) < len(names):
        raise InvalidSchema(f"unique names a column twice in one key, {briefly(key)}.")
    return tuple(str.__str__(name) for name in names)


_UNIQUE_HINT = 'Write unique=["code"], and for a key of two columns unique=[["country", "year"]].'

_TOKEN = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<arrow>->)|(?P<dot>\.)|(?P<bare>(?:(?!->)[^\s".])+))\s*')


def names_and_signs(text: str) -> list[tuple[str, str]]:
    """Return the tokens of a path, `orders.key -> "my table".id`: "n" and a name, or one of the signs "." and ">" and
    "". An unclosed double quote is the sign "?", and the last."""
    tokens: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:  # the pattern fails only there
            return [*tokens, ("?", "")]
        place = match.end()
        sign = {"arrow": ">", "dot": "."}.get(str(match.lastgroup), "n")
        name = match["bare"] if match["quoted"] is None else match["quoted"].replace('""', '"')
        tokens.append((sign, name or ""))
    return tokens


def moment(value: date) -> int:
    """Return the microseconds of a timestamp, or of a date at midnight."""
    return microsecond_number(value) if isinstance(value, datetime) else day_number(value) * MICROSECONDS_A_DAY


def microseconds_of(value: np.datetime64) -> int:
    """Return the microseconds of NumPy's timestamp, of any unit, rounded down; outside the years 1 to 9999, a number
    beyond MICROSECONDS on the same side. NaT has none."""
    unit, count = np.datetime_data(value.dtype)
    ticks = int(value.astype(np.int64)) * count  # Python's integers, since NumPy's conversions overflow
    if unit not in ("Y", "M"):
        return ticks * _ATTOSECONDS[unit] // 10**12
    months = ticks * (12 if unit == "Y" else 1)
    year = 1970 + months // 12
    inside = min(max(year, 1), 9999)
    first = day_number(date(inside, months % 12 + 1, 1))
    return (first + (year - inside) * 366) * MICROSECONDS_A_DAY


def plain(value: Word) -> str | int | float | bool | None:
    """Return the value as stored in JSON: dates and timestamps as ISO text."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value.isoformat() if isinstance(value, date) else value


def shown(value: Word) -> str:
    """Return the value as written in Python, dates as ISO text."""
    return repr(plain(value)) if isinstance(value, str | date) else str(value)


def shown_pair(bounds: Pair) -> str:
    """Return bounds as written in Python."""
    return f"({shown(bounds[0])}, {shown(bounds[1])})"


def _bound(name: str, value: object) -> Number | date:
    value = _python(value)
    if isinstance(value, str):
        return _date_of_text(name, value)
    if isinstance(value, date):
        return _plain_date(name, "bound", value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSchema(f"{name}: a bound must be a number or a date, got {briefly(value)}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidSchema(f"{name}: a bound must be a finite number, got {value}.")
    if abs(value) > LARGEST_BOUND:
        raise InvalidSchema(f"{name}: bounds must lie within +/-2^62.")
    return int(value) if isinstance(value, int) else float(value)


def _date_of_text(name: str, text: str) -> date:
    days, microseconds = read_date(text), read_timestamp(text)
    if microseconds is None:
        raise InvalidSchema(
            f"{name}: a bound must be a number or a date, got {text!r}.",
            hint='Dates are written "2020-01-31" or "2020-01-31 10:00:00", without a time zone.',
        )
    found: datetime = np.datetime64(microseconds, "us").item()
    return found.date() if days is not None else found


def _key(name: str, key: object) -> Word:
    key = _python(key)
    if key is None or isinstance(key, bool):
        return key
    if isinstance(key, str):
        if any("\ud800" <= sign <= "\udfff" for sign in str.__str__(key)):  # no format of an answer can show it
            raise InvalidSchema(f"{name}: a key holds half of a character (a lone surrogate).")
        return str.__str__(key)
    if isinstance(key, date):
        return _plain_date(name, "key", key)
    if not isinstance(key, int | float):
        raise InvalidSchema(f"{name}: a key must be text, a number, a boolean, a date or None, got {briefly(key)}.")
    if isinstance(key, float) and not math.isfinite(key):
        raise InvalidSchema(f"{name}: a key must be finite, got {key}. For NULL write None.")
    if key not in INT128:
        raise InvalidSchema(f"{name}: keys must lie between -2^127 and 2^128 - 1.")
    return int(key) if isinstance(key, int) else float(key)


def _python(value: Any) -> Any:
    """Return Python's value for NumPy's. Values without one, or with a misleading one, are unchanged: NaT would be
    None, a duration a number."""
    if isinstance(value, np.datetime64):
        inside = not np.isnat(value) and microseconds_of(value) in MICROSECONDS
        unit = "D" if np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D") else "us"
        return value.astype(f"datetime64[{unit}]").item() if inside else value
    if isinstance(value, np.generic) and not isinstance(value, str | float | np.timedelta64):
        return value.item()
    return value


def briefly(value: object) -> str:
    """Return the text of a plain value, or of a few; for anything else only its class: it could contain private
    data."""
    several = isinstance(value, tuple | list | set) and len(value) <= 5 and all(isinstance(v, _PLAIN) for v in value)
    return repr(value) if several or isinstance(value, _PLAIN) else f"a {type(value).__name__}"


def _plain_date(name: str, what: str, value: date) -> date:
    """Return a plain date or datetime, to the microsecond."""
    if not isinstance(value.year, int):  # NaT is a datetime too
        raise InvalidSchema(f"{name}: a {what} must be a value, got NaT.{' For NULL write None.' * (what == 'key')}")
    try:
        if not isinstance(value, datetime):
            return date(value.year, value.month, value.day)
        if value.tzinfo is None:
            parts = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
            return datetime(*parts)
    except ValueError:  # pandas has years that Python lacks
        raise InvalidSchema(f"{name}: a {what} must lie in the years 1 to 9999.") from None
    raise InvalidSchema(
        f"{name}: a {what} has no time zone, got {value}.",
        hint="Write what clocks of the session's timezone show then; that is UTC where none is named.",
    )
