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
from dpsql.schema.units import Limits, Unit, WrittenUnit

Key = str | int | float | bool | None
MOST_KEYS = 1_000_000
UTC = "UTC"
"""The time zone in which instants are shown where nothing is said."""
EARLIER = "(earlier)"
"""What stands in a plan in the place of a table's name where an earlier release of the statement shows a value: no
table has this name, which is no word."""

_NUMERIC = frozenset(["integer", "real"])
_TEMPORAL = frozenset(["date", "timestamp"])
_ORDERED_NUMBERS = _NUMERIC | _TEMPORAL
_DISCRETE = frozenset(["integer", "boolean", "date", "timestamp"])


class Type(StrEnum):
    """The types of the language. OTHER is stored in a table but has no operations here, save COUNT and IS NULL. OBJECT
    is a column of Python objects without a declared type, which no query reads.

    A DATE is a number of days, a TIMESTAMP of microseconds, since 1970-01-01 (dpsql.calendar).
    """

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"
    OTHER = "other"
    OBJECT = "object"

    @property
    def numeric(self) -> bool:
        return self._value_ in _NUMERIC

    @property
    def opaque(self) -> bool:
        """Whether values of the type have no operations."""
        return self is Type.OTHER or self is Type.OBJECT

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
class CellFormat:
    """How the texts of a column are written, where that differs from `dpsql.schema.text_values`; made and checked by
    `dpsql.schema.cell_format`.

    format: formats of dates, with directives of strptime; the first that reads a text counts. decimal: the sign before
    a fraction, if not a point. thousands: the sign between groups of three digits, if any. true, false: the words for
    them, in place of the standard ones. null: texts that are NULL. Words are compared letter by letter, without the
    space around them. encoding: that of the column's bytes in a text file.
    """

    format: tuple[str, ...] = ()
    decimal: str = ""
    thousands: str = ""
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    null: tuple[str, ...] = ()
    encoding: str = ""

    @property
    def words(self) -> dict[str, str | list[str]]:
        """The declared words, as an owner's file writes them."""
        found = {word: getattr(self, word) for word in CELL_WORDS}
        return {word: list(value) if isinstance(value, tuple) else value for word, value in found.items() if value}

    def over(self, other: CellFormat) -> CellFormat:
        """Both together; where both declare the same word, this one holds."""
        return CellFormat(*(getattr(self, word) or getattr(other, word) for word in CELL_WORDS))


CELL_WORDS = tuple(each.name for each in fields(CellFormat))
"""The words about cells, as an owner's file writes them."""


@dataclass(frozen=True, slots=True, repr=False)
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
    cell_format: CellFormat | None = None
    """How its texts are written, if not in the standard way."""
    zone: str | None = None
    """The time zone in which instants are shown; None: UTC, or a column that holds none."""
    wide: int = 0
    """Of whole numbers that may have more than 64 bits (`stored_types.width_of`), 0 of other columns. Such a number is
    read as the text of its digits. It follows from storage and the declaration, so neither names of parts nor keys of
    queries hold it."""

    nearest: bool = False
    """Whether an integer of more than 64 bits is the nearest INTEGER, not NULL: of a column of privacy unit keys,
    which are compared by themselves. It follows from the declaration of the unit."""

    @property
    def clips(self) -> bool:
        """Whether numbers of more than 64 bits are the nearest INTEGER."""
        return self.nearest or self.auto or self.bounds is not None

    @property
    def identity(self) -> Type:
        """The type by which privacy unit keys are compared."""
        return Type.INTEGER if self.wide else self.type

    def __repr__(self) -> str:
        """All fields, but no later ones that say nothing: names of parts in ledgers are made of this text, and those of
        columns without a zone and a format stay what they were."""
        later = ("cell_format", "zone")
        named = [each.name for each in fields(self) if each.name not in ("wide", "nearest")]
        shown = [name for name in named if name not in later or getattr(self, name) is not None]
        return f"ColumnSchema({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


@dataclass(frozen=True)
class TableSchema:
    """One table. Each row is a privacy unit of its own, unless a unit is declared or the table is public.

    unit_word: the unit as declared, `unit`: what it means, None until `link` has followed its path; limits: how much of
    one unit may count; unique: keys that no two rows share; max_matches: columns of a public table, each with the most
    rows that have one value in it; rows: how many rows a public table has; partition: a column whose values part the
    rows; version: a name for the data as they are; people: about how many it is of, as everybody may know, for warnings
    alone; rows_are_units: whether the owner has said that each row is a unit;
    can_drop_rows: whether a scan can drop a stored row because of its cells. Columns are in their stored
    spelling.
    """

    name: str
    columns: tuple[ColumnSchema, ...]
    unit_word: WrittenUnit | None = None
    unit: Unit | None = None
    limits: Limits = field(default_factory=Limits)
    public: bool = False
    unique: tuple[tuple[str, ...], ...] = ()
    max_matches: tuple[tuple[str, int], ...] = ()
    rows: int | None = None
    partition: str | None = None
    version: str | None = None
    people: int | None = None
    can_drop_rows: bool = False
    rows_are_units: bool = False

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
        wide = [column.name for column in self.columns if column.wide]  # which `repr` leaves out
        return repr([*(getattr(self, each.name) for each in fields(self)), *wide])


def value_range(column: ColumnSchema) -> Interval:
    """Where the column's values lie by declaration; everything, for a column of numbers without bounds."""
    if column.type is Type.BOOLEAN:
        return Interval(0, 1)
    if column.bounds is not None:
        return column.bounds
    if column.type is Type.DATE:
        return DAYS
    return MICROSECONDS if column.type is Type.TIMESTAMP else EVERYTHING
