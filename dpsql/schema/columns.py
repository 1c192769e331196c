"""The declared facts of columns and tables: types, bounds, keys, nullability. The data owner's word, never read from
the data.

A `TableSchema` says everything about every column and is all that the language and the analysis know of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from enum import StrEnum
from functools import cached_property

from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import EVERYTHING, Interval
from dpsql.schema.units import Limits, Unit, UnitWord

Key = str | int | float | bool | None
MOST_KEYS = 1_000_000
EARLIER = "(earlier)"
"""What stands in a plan in the place of a table's name where an earlier release of the statement shows a value: no
table has this name, which is no word."""

_NUMERIC = frozenset(["integer", "real"])
_TEMPORAL = frozenset(["date", "timestamp"])
_ORDERED_NUMBERS = _NUMERIC | _TEMPORAL
_DISCRETE = frozenset(["integer", "boolean", "date", "timestamp"])


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
        return self._value_ in _NUMERIC

    @property
    def temporal(self) -> bool:
        return self._value_ in _TEMPORAL

    @property
    def ordered_number(self) -> bool:
        """Compared as a number is, so that ranges say something of its values."""
        return self._value_ in _ORDERED_NUMBERS

    @property
    def discrete(self) -> bool:
        """Held as whole numbers."""
        return self._value_ in _DISCRETE


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """One column: its type, whether it can be NULL, the clip bounds and the list of group keys if declared. Those of
    dates and timestamps are the numbers that these are held as."""

    name: str
    type: Type
    nullable: bool = True
    bounds: Interval | None = None
    keys: tuple[Key, ...] | None = None
    storage: str = ""
    """The source's own name for the type ("int64", "datetime64[us]"), for messages."""
    auto: bool = False
    """A query that needs bounds may choose some, privately and at a part of its cost: between `bounds`, if declared."""


@dataclass(frozen=True)
class TableSchema:
    """One table. Each row is a privacy unit of its own, unless a unit is declared or the table is public.

    unit_word: the unit as declared, `unit`: what it means, None until `link` has followed its path; limits: how much of
    one unit may count; unique: keys that no two rows share; max_matches: columns of a public table, each with the most
    rows that have one value in it; rows: how many rows a public table has; partition: a column whose values part the
    rows; version: a name for the data as they are; people: about how many it is of, as everybody may know, for warnings
    alone. Columns are in their stored spelling.
    """

    name: str
    columns: tuple[ColumnSchema, ...]
    unit_word: UnitWord | None = None
    unit: Unit | None = None
    limits: Limits = field(default_factory=Limits)
    public: bool = False
    unique: tuple[tuple[str, ...], ...] = ()
    max_matches: tuple[tuple[str, int], ...] = ()
    rows: int | None = None
    partition: str | None = None
    version: str | None = None
    people: int | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and not self.public:
            raise ValueError(f"the number of rows of {self.name} is private")

    @property
    def is_constant(self) -> bool:
        """Whether its rows stand in the text of a query."""
        return False

    @cached_property
    def by_name(self) -> Mapping[str, ColumnSchema]:
        """Columns by folded name: names match without regard to case."""
        return {column.name.casefold(): column for column in self.columns}

    @cached_property
    def fingerprint(self) -> str:
        """All declared facts as text; two schemas with the same fingerprint analyse alike."""
        return repr([getattr(self, each.name) for each in fields(self)])


def value_range(column: ColumnSchema) -> Interval:
    """Where the column's values lie by declaration; everything, for a column of numbers without bounds."""
    if column.type is Type.BOOLEAN:
        return Interval(0, 1)
    if column.bounds is not None:
        return column.bounds
    if column.type is Type.DATE:
        return DAYS
    return MICROSECONDS if column.type is Type.TIMESTAMP else EVERYTHING
