"""The declared facts of tables: types, bounds, keys, nullability. The data owner's word, never read from the data.

A `Declaration` is what the owner writes, for some columns; `resolve` joins it with the column names and storage types
of a source into a `TableSchema`, which says everything about every column and is all that the language and the
analysis know of a table.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from dpsql.calendar import DAYS, MICROSECONDS
from dpsql.errors import InvalidSchema, did_you_mean
from dpsql.intervals import EVERYTHING, Interval, Number

Key = str | int | float | bool | None
MOST_KEYS = 1_000_000
LARGEST_BOUND = 2**62
"""Bounds beyond this are refused: integers up to it are summed without a thought of overflow."""


class Type(StrEnum):
    """The types of the language. OTHER is stored in a table but has no operations here, save COUNT and IS NULL.

    A DATE is a number of days, a TIMESTAMP of microseconds, since 1970-01-01 (dpsql.calendar).
    """

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    OTHER = "other"

    @property
    def numeric(self) -> bool:
        return self in (Type.INTEGER, Type.REAL)

    @property
    def temporal(self) -> bool:
        return self in (Type.DATE, Type.TIMESTAMP)

    @property
    def discrete(self) -> bool:
        """Held as whole numbers."""
        return self in (Type.INTEGER, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """One column: its type, whether it can be NULL, the clip bounds and the list of group keys if declared."""

    name: str
    type: Type
    nullable: bool = True
    bounds: Interval | None = None
    keys: tuple[Key, ...] | None = None
    storage: str = ""
    """The source's own name for the type ("int64", "datetime64[us]"), for messages."""


@dataclass(frozen=True)
class TableSchema:
    """One table whose rows are one privacy unit each."""

    name: str
    columns: tuple[ColumnSchema, ...]

    @cached_property
    def by_name(self) -> Mapping[str, ColumnSchema]:
        """Columns by folded name: names match without regard to case."""
        return {column.name.casefold(): column for column in self.columns}

    @cached_property
    def fingerprint(self) -> str:
        """All declared facts as text; two schemas with the same fingerprint analyse alike."""
        return repr((self.name, self.columns))


@dataclass(frozen=True)
class Declaration:
    """The owner's words about one table, column by column; validated when made.

    bounds: column -> (lower, upper); keys: column -> list of values; types: column -> "integer", "real", "boolean"
    or "text"; nullable: column -> False where the owner says that no cell is NULL (one that is nevertheless becomes
    the column's lower bound, first key, or the type's zero). Raises InvalidSchema.
    """

    bounds: Mapping[str, tuple[Number, Number]] = field(default_factory=dict)
    keys: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)
    nullable: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(
        cls, bounds: object = None, keys: object = None, types: object = None, nullable: object = None
    ) -> Declaration:
        """A declaration from what a caller wrote, every word of it checked."""
        return cls(
            {name: _bounds(name, pair) for name, pair in _items("bounds", bounds)},
            {name: _keys(name, listed) for name, listed in _items("keys", keys)},
            {name: _type(name, word) for name, word in _items("types", types)},
            {name: _flag(name, word) for name, word in _items("nullable", nullable)},
        )

    def over(self, other: Declaration) -> Declaration:
        """Both declarations together; where both speak of a column's same fact, this one holds."""
        return Declaration(
            {**other.bounds, **self.bounds},
            {**other.keys, **self.keys},
            {**other.types, **self.types},
            {**other.nullable, **self.nullable},
        )

    @property
    def columns(self) -> list[str]:
        """Every column that something is said of, in the order it is first named."""
        return list(dict.fromkeys([*self.bounds, *self.keys, *self.types, *self.nullable]))


@dataclass(frozen=True, slots=True)
class Stored:
    """What a source says of a column without looking at a row: its name, type and whether it can hold NULL."""

    name: str
    type: Type
    nullable: bool
    storage: str


def resolve(table: str, stored: Iterable[Stored], said: Declaration) -> TableSchema:
    """The schema of a table from its stored columns and the owner's word. Raises InvalidSchema."""
    columns = list(stored)
    folded: dict[str, str] = {}
    for column in columns:
        other = folded.get(column.name.casefold())
        if other is not None:
            raise InvalidSchema(
                f'two columns of {table} are named "{other}" and "{column.name}".',
                hint="Names match without regard to case; rename one of them.",
            )
        folded[column.name.casefold()] = column.name
    unknown = [name for name in said.columns if name.casefold() not in folded]
    if unknown:
        near = did_you_mean(unknown[0], folded.values())
        raise InvalidSchema(f'declared column "{unknown[0]}" is not in {table}.{near}')
    facts = _by_stored_name(said, folded)
    return TableSchema(table, tuple(_resolve_column(column, facts) for column in columns))


def _by_stored_name(said: Declaration, folded: Mapping[str, str]) -> Declaration:
    names = Counter(folded[name.casefold()] for name in said.columns)
    for name, times in names.items():
        if times > 1:
            raise InvalidSchema(f'column "{name}" is declared twice, in different case.')
    return Declaration(
        {folded[name.casefold()]: fact for name, fact in said.bounds.items()},
        {folded[name.casefold()]: fact for name, fact in said.keys.items()},
        {folded[name.casefold()]: fact for name, fact in said.types.items()},
        {folded[name.casefold()]: fact for name, fact in said.nullable.items()},
    )


def _resolve_column(stored: Stored, said: Declaration) -> ColumnSchema:
    name = stored.name
    kind = said.types.get(name, stored.type)
    if stored.type is Type.OTHER and kind is not Type.OTHER:
        raise InvalidSchema(f"{name}: a column stored as {stored.storage} cannot be read as {kind}.")
    if kind is Type.TEXT and stored.type is not Type.TEXT:
        raise InvalidSchema(f"{name}: a column stored as {stored.storage} is not text.", hint=f"It is {stored.type}.")
    nullable = said.nullable.get(name, stored.nullable or kind != stored.type)
    bounds = said.bounds.get(name)
    keys = said.keys.get(name)
    if bounds is not None and not kind.numeric:
        raise InvalidSchema(
            f'{name}: bounds are for numbers, but "{name}" is {kind} ({stored.storage}).',
            hint=f'If it holds numbers, say so: types={{"{name}": "real"}}.',
        )
    if keys is not None:
        keys = _check_keys(name, kind, keys, bounds)
    clip = None if bounds is None else _clip(name, kind, bounds)
    return ColumnSchema(name, kind, nullable, clip, keys, stored.storage)


def _clip(name: str, kind: Type, bounds: tuple[Number, Number]) -> Interval:
    if kind is Type.REAL:
        return Interval(float(bounds[0]), float(bounds[1]))
    lower, upper = math.ceil(bounds[0]), math.floor(bounds[1])
    if lower >= upper:
        raise InvalidSchema(f"{name}: fewer than two integers lie between {bounds[0]} and {bounds[1]}.")
    return Interval(lower, upper)


_KEY_TYPES: Mapping[Type, tuple[type, ...]] = {
    Type.TEXT: (str,),
    Type.INTEGER: (int,),
    Type.REAL: (int, float),
    Type.BOOLEAN: (bool,),
    Type.OTHER: (),
}


def _check_keys(name: str, kind: Type, keys: tuple[Key, ...], bounds: tuple[Number, Number] | None) -> tuple[Key, ...]:
    for key in keys:
        fits = key is None or (
            isinstance(key, _KEY_TYPES[kind]) and (kind is Type.BOOLEAN or not isinstance(key, bool))
        )
        if not fits:
            raise InvalidSchema(f'{name}: key {key!r} does not fit "{name}", which is {kind}.')
        if bounds is not None and isinstance(key, int | float) and key not in Interval(*bounds):
            raise InvalidSchema(f"{name}: key {key!r} lies outside the bounds {bounds}.")
    return keys


def _items(word: str, facts: object) -> list[tuple[str, object]]:
    if facts is None:
        return []
    if not isinstance(facts, Mapping):
        raise InvalidSchema(
            f"{word} must map columns to their {word}, got {type(facts).__name__}.",
            hint=f'Write {word}={{"age": {_EXAMPLES[word]}}}.',
        )
    for name in facts:
        if not isinstance(name, str):
            raise InvalidSchema(f"{word} names columns by text, got {name!r}.")
    return list(facts.items())


_EXAMPLES = {"bounds": "(0, 120)", "keys": '["a", "b"]', "types": '"integer"', "nullable": "False"}


def _bounds(name: str, pair: object) -> tuple[Number, Number]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidSchema(f"{name}: bounds are a pair (lower, upper), got {pair!r}.")
    lower, upper = (_bound(name, each) for each in pair)
    if lower > upper:
        raise InvalidSchema(
            f"{name}: lower bound {lower} is above upper bound {upper}. Did you mean ({upper}, {lower})?"
        )
    if lower == upper:
        raise InvalidSchema(
            f"{name}: lower and upper bound are both {lower}, which would turn every value into {lower}.",
            hint="Give a range that the values can lie in.",
        )
    return lower, upper


def _bound(name: str, value: object) -> Number:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidSchema(f"{name}: a bound must be a number, got {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidSchema(f"{name}: a bound must be a finite number, got {value}.")
    if abs(value) > LARGEST_BOUND:
        raise InvalidSchema(f"{name}: bounds must lie within +/-2^62.")
    return int(value) if isinstance(value, int) else float(value)


def _keys(name: str, listed: object) -> tuple[Key, ...]:
    if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Iterable):
        raise InvalidSchema(f"{name}: keys are a list of values, got {listed!r}.")
    keys = tuple(_plain_key(name, each) for each in listed)
    if not keys:
        raise InvalidSchema(f"{name}: the list of keys is empty.")
    if len(keys) > MOST_KEYS:
        raise InvalidSchema(f"{name}: more than {MOST_KEYS:,} keys.")
    if len(set(keys)) < len(keys):
        raise InvalidSchema(f"{name}: a key is listed twice.")
    return keys


def _plain_key(name: str, key: object) -> Key:
    """A key as one of Python's own values, whatever subclass it came as."""
    if isinstance(key, np.generic) and not isinstance(key, str | float):
        key = key.item()
    if key is None or isinstance(key, bool):
        return key
    if isinstance(key, str):
        return str.__str__(key)
    if not isinstance(key, int | float):
        raise InvalidSchema(f"{name}: a key must be text, a number, a boolean or None, got {key!r}.")
    if isinstance(key, float) and not math.isfinite(key):
        raise InvalidSchema(f"{name}: a key must be finite, got {key}. For NULL write None.")
    if abs(key) > LARGEST_BOUND:
        raise InvalidSchema(f"{name}: keys must lie within +/-2^62.")
    return int(key) if isinstance(key, int) else float(key)


def _type(name: str, word: object) -> Type:
    if isinstance(word, str) and word in list(Type) and word != Type.OTHER:
        return Type(word)
    raise InvalidSchema(f'{name}: type must be "integer", "real", "boolean" or "text", got {word!r}.')


def _flag(name: str, word: object) -> bool:
    if isinstance(word, bool):
        return word
    raise InvalidSchema(f"{name}: nullable must be True or False, got {word!r}.")


def value_range(column: ColumnSchema) -> Interval:
    """Where the column's values lie by declaration; everything, for a column of numbers without bounds."""
    if column.type is Type.BOOLEAN:
        return Interval(0, 1)
    if column.bounds is not None:
        return column.bounds
    if column.type is Type.DATE:
        return DAYS
    return MICROSECONDS if column.type is Type.TIMESTAMP else EVERYTHING
