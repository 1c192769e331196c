"""Declared keys as values of a column's type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from dpsql.errors import InvalidSchema
from dpsql.schema.calendar import MICROSECONDS_A_DAY, read_timestamp
from dpsql.schema.column_declarations import Pair, Word, moment, shown, shown_pair
from dpsql.schema.columns import Key, Type
from dpsql.schema.intervals import INT64, Interval

_KEY_TYPES: Mapping[Type, tuple[type, ...]] = {
    Type.TEXT: (str,),
    Type.INTEGER: (int,),
    Type.REAL: (int, float),
    Type.BOOLEAN: (bool,),
    Type.DATE: (),
    Type.TIMESTAMP: (),
    Type.OTHER: (),
    Type.OBJECT: (),
}


def key_values(name: str, kind: Type, keys: tuple[Word, ...], integers: Interval = INT64) -> tuple[Key, ...]:
    """Return the keys as values of the column's type. Raises InvalidSchema for a key that does not fit."""
    values = tuple(_key_value(name, kind, key) for key in keys)
    if any(isinstance(each, int | float) and each not in integers for each in values):
        ends = "-2^63 and 2^63 - 1" if integers is INT64 else "-2^127 and 2^128 - 1"
        raise InvalidSchema(f"{name}: keys must lie between {ends}.")
    if len(set(values)) < len(values):
        raise InvalidSchema(f"{name}: a key is listed twice.")
    return values


def _key_value(name: str, kind: Type, key: Word) -> Key:
    """Return the key as a value of the column's type."""
    if key is None:
        return None
    kind_is_boolean = kind is Type.BOOLEAN  # True is an int in Python, not here
    if kind.temporal and isinstance(key, str | date):
        microseconds = read_timestamp(key) if isinstance(key, str) else moment(key)
        if microseconds is not None and kind is Type.TIMESTAMP:
            return microseconds
        if microseconds is not None and microseconds % MICROSECONDS_A_DAY == 0:
            return microseconds // MICROSECONDS_A_DAY
    elif not isinstance(key, date) and isinstance(key, _KEY_TYPES[kind]) and isinstance(key, bool) == kind_is_boolean:
        return key
    raise InvalidSchema(f'{name}: key {shown(key)} does not fit "{name}", which is {kind}.')


def check_inside(name: str, keys: Iterable[tuple[Word, Key]], bounds: Pair, clip: Interval) -> None:
    """Raise InvalidSchema if a key, given with its value, is outside the bounds."""
    for key, value in keys:
        if isinstance(value, int | float) and value not in clip:
            raise InvalidSchema(f"{name}: key {shown(key)} lies outside the bounds {shown_pair(bounds)}.")
