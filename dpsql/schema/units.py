"""Privacy units of tables, and contribution bounds.

A unit is a column of the table, or a path that leads to another table's unit; `followed` turns the path into look-ups
once all tables are known. No row is read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, field
from enum import StrEnum
from itertools import pairwise
from typing import Protocol

from dpsql.errors import InvalidSchema, did_you_mean
from dpsql.schema.column_declarations import briefly, names_and_signs
from dpsql.schema.frozen import dataclass
from dpsql.schema.numbers import LARGEST_LIMIT

MOST_STEPS = 16
"""Maximum number of look-ups of a path."""


@dataclass(frozen=True, slots=True)
class WrittenUnit:
    """A unit as written: a column, or a path from it to the column `key` of another table. `own` is the name of the
    column's own table, if that was written too."""

    column: str
    table: str = ""
    key: str = ""
    own: str = ""

    def __post_init__(self) -> None:
        if not self.column or bool(self.table) != bool(self.key):
            raise ValueError(f"not a column, nor a path to a column: {self}")


@dataclass(frozen=True, slots=True)
class Lookup:
    """Find the row of `table` (a folded name) whose `key` equals the value so far, and continue with its `column`."""

    table: str
    key: str
    column: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A row's privacy unit: the value of `column`, followed through the look-ups."""

    column: str
    steps: tuple[Lookup, ...] = ()
    owner: str = field(default="", compare=False)
    """The column that holds the unit in the table at the end of the path, for messages."""

    def __post_init__(self) -> None:
        if len(self.steps) > MOST_STEPS:
            raise ValueError(f"a unit is at most {MOST_STEPS} look-ups away: {self}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Declared contribution bounds of one unit: rows in the whole query, groups, and rows in each group."""

    rows: int | None = None
    groups: int | None = None
    per_group: int | None = None

    def __post_init__(self) -> None:
        if not all(each is None or 1 <= each <= LARGEST_LIMIT for each in (self.rows, self.groups, self.per_group)):
            raise ValueError(f"limits must be whole numbers from 1 to {LARGEST_LIMIT}: {self}")

    def over(self, other: Limits) -> Limits:
        """Combine both; this one's limits win."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Limits(*(theirs if mine is None else mine for mine, theirs in pairs))


class Column(Protocol):
    """Required attributes of a column."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> StrEnum: ...
    @property
    def identity(self) -> StrEnum: ...
    @property
    def storage(self) -> str: ...


class UnitLink(Protocol):
    """Required attributes of a table."""

    @property
    def name(self) -> str: ...
    @property
    def by_name(self) -> Mapping[str, Column]: ...
    @property
    def unit_word(self) -> WrittenUnit | None: ...
    @property
    def public(self) -> bool: ...
    @property
    def unique(self) -> tuple[tuple[str, ...], ...]: ...


ROW = "row"
"""Declares rows as units; a column of that name is written in double quotes."""
_PATH = re.compile("(n[.])?n(>n[.]n)?")


def unit_word_of(word: object) -> WrittenUnit:
    """Parse a column's name or a path, `o_custkey -> customer.c_custkey`, optionally with the own table's name before
    it. Names with the path's signs are in double quotes. Raises InvalidSchema."""
    if not isinstance(word, str):
        raise InvalidSchema(f"unit must be the name of a column, or a path, got {briefly(word)}.", hint=_UNIT_HINT)
    text = str.__str__(word).strip()
    tokens = names_and_signs(text) if re.search('["]|[.]|->', text) else [("n", text)]  # one name may contain spaces
    shape, names = "".join(sign for sign, _name in tokens), [name for sign, name in tokens if sign == "n"]
    if not _PATH.fullmatch(shape) or not all(names):
        raise InvalidSchema(f"unit {text!r} cannot be read: {_why_no_path(shape, names)}.", hint=_UNIT_HINT)
    own = names.pop(0) if shape.startswith("n.") else ""
    column, *path = names
    table, key = path or ("", "")
    return WrittenUnit(column, table, key, own)


_UNIT_HINT = (
    'Write a column, unit="person_id", or a path to the unit of another table, unit="o_custkey -> customer.c_custkey"; '
    'or unit="row" where no person has two rows.'
    '\nNames with spaces, dots or arrows are in double quotes: "my key" -> "my table".id.'
)


def _why_no_path(shape: str, names: list[str]) -> str:
    if "?" in shape:
        return "a double quote is not closed"
    if not all(names):
        return "a name is empty"
    if shape.count(">") > 1:
        return "a path leads to one other table, and further by that table's own unit"
    if "nn" in shape:
        return "two names stand side by side"
    if re.fullmatch("(n[.])?n>n", shape):
        return f'it does not say which column of "{names[-1]}" is meant'
    return "names, dots and arrows are not in order"


def followed(name: str, tables: Mapping[str, UnitLink]) -> Unit | None:
    """Return the unit of the table of that folded name, with its path followed through the others. Raises
    InvalidSchema."""
    chain = list(_chain(name, tables))
    last = tables[chain[-1]].unit_word
    unit = None if last is None else Unit(last.column, owner=last.column)
    for here, there in reversed(list(pairwise(chain))):
        assert unit is not None  # only a chain of one table can lack a unit
        unit = _stepped(tables[here], there, tables[there], unit)
    return unit


def _chain(name: str, tables: Mapping[str, UnitLink]) -> Iterator[str]:
    """Yield folded names of the tables along a path: from this one to the one that has its unit in its own column."""
    seen: dict[str, None] = {}
    while True:
        table, seen[name] = tables[name], None
        yield name
        word = table.unit_word
        if word is not None and word.own and word.own.casefold() not in (name, table.name.casefold()):
            raise InvalidSchema(
                f'{table.name}: its unit is written as a column of "{word.own}".',
                hint=f"A unit begins at a column of its own table: write {table.name}.{word.column}, or leave the "
                "table's name out.",
            )
        if word is None or not word.table:
            return
        name = _target(table, word, tables)
        if name in seen:
            circle = [tables[each].name for each in (*list(seen)[list(seen).index(name) :], name)]
            raise InvalidSchema(
                f"the units of {' -> '.join(circle)} lead round in a circle.",
                hint='One of these tables must have its unit in a column of its own: unit="person_id".',
            )


def _target(table: UnitLink, word: WrittenUnit, tables: Mapping[str, UnitLink]) -> str:
    """Return the folded name of the table that a path leads to, which must have a unit and the key."""
    name = word.table.casefold()
    target = tables.get(name)
    if target is None:
        near = did_you_mean(word.table, [each.name for each in tables.values()])
        raise InvalidSchema(
            f'{table.name}: its unit leads to table "{word.table}", which is not here.{near}',
            hint="Add that table before this one, or together with it.",
        )
    if target.public:
        raise InvalidSchema(
            f"{table.name}: its unit leads to {target.name}, which is public and so has no units.",
            hint=f"Write the column that tells whose row it is, or leave out public of {target.name}.",
        )
    if target.unit_word is None:
        raise InvalidSchema(
            f"{table.name}: its unit leads to {target.name}, which declares no unit of its own.",
            hint=f'Declare it there, unit="{word.key}", or write a column of {table.name} alone: unit="{word.column}".',
        )
    key = target.by_name.get(word.key.casefold())
    if key is None:
        near = did_you_mean(word.key, [each.name for each in target.by_name.values()])
        raise InvalidSchema(
            f'{table.name}: its unit leads to column "{word.key}", which is not in {target.name}.{near}'
        )
    column = table.by_name[word.column.casefold()]
    kinds = {str(column.identity), str(key.identity)}
    if len(kinds) > 1 and not kinds <= {"integer", "real"}:
        raise InvalidSchema(
            f'{table.name}: "{column.name}" is {column.type} and {target.name}.{key.name} is {key.type}, so they are '
            "never equal.",
            hint=f'Declare both alike: types={{"{column.name}": ...}} or types={{"{key.name}": ...}}.',
        )
    if zones_differ([column, key]):
        zoned, plain = (column, key) if has_zone(column.storage) else (key, column)
        raise InvalidSchema(
            f'{table.name}: "{zoned.name}" has a time zone and "{plain.name}" has none, so they are never equal.',
            hint="A moment of a time zone and the time of a clock somewhere are two things: store both alike.",
        )
    return name


def zones_differ(columns: Iterable[Column]) -> bool:
    """Return whether some of these columns are stored as times with a zone and others without."""
    return len({has_zone(each.storage) for each in columns if each.type == "timestamp"} - {None}) > 1


def has_zone(storage: str) -> bool | None:
    """Return whether a column is stored as times with a zone; None if that depends on the cells."""
    if storage.startswith(("object", "category")):
        return None
    return "tz=" in storage or (storage.startswith("datetime64[") and "," in storage)


def _stepped(table: UnitLink, there: str, target: UnitLink, unit: Unit) -> Unit:
    """Return the unit of a table whose path leads to a target with this unit."""
    word = table.unit_word
    assert word is not None
    key = target.by_name[word.key.casefold()].name
    if unit == Unit(key):  # the value is the unit: no look-up is needed
        return Unit(word.column, owner=unit.owner)
    if (key,) not in target.unique:
        raise InvalidSchema(
            f"{table.name}: its unit leads through {target.name}.{key}, which is not declared unique.",
            hint=f'A row must lead to one unit. If no two rows of {target.name} have the same "{key}", declare there '
            f'unique=["{key}"].',
        )
    if len(unit.steps) == MOST_STEPS:
        raise InvalidSchema(
            f"{table.name}: its unit is more than {MOST_STEPS} tables away.",
            hint="Add a column that tells whose row it is, and declare that.",
        )
    return Unit(word.column, (Lookup(there, key, unit.column), *unit.steps), unit.owner)
