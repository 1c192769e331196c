"""Declared facts of columns and tables: types, bounds, keys, nullability. They come from the data owner, never from the
data.

A `TableSchema` describes every column, and is all that the language and the analysis know of a table.
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
"""Default time zone in which instants are shown."""
EARLIER = "(earlier)"
"""Table name in a plan for the value of a prior release. No table has this name, which is not an identifier."""

_NUMERIC = frozenset(["integer", "real"])
_TEMPORAL = frozenset(["date", "timestamp"])
_ORDERED_NUMBERS = _NUMERIC | _TEMPORAL
_DISCRETE = frozenset(["integer", "boolean", "date", "timestamp"])


class Type(StrEnum):
    """The types of the language. OTHER is stored in a table but has no operations here, except COUNT and IS NULL.
    OBJECT is a column of Python objects without a declared type, which no query reads.

    A DATE is a number of days, a TIMESTAMP of microseconds, since 1970-01-01 (dpsql.schema.calendar).
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
        """True if values of the type have no operations."""
        return self is Type.OTHER or self is Type.OBJECT

    @property
    def temporal(self) -> bool:
        return self._value_ in _TEMPORAL

    @property
    def ordered_number(self) -> bool:
        """True if values compare like numbers, so that ranges apply."""
        return self._value_ in _ORDERED_NUMBERS

    @property
    def discrete(self) -> bool:
        """True if values are stored as whole numbers."""
        return self._value_ in _DISCRETE


@dataclass(frozen=True, slots=True)
class CellFormat:
    """Format of a column's texts, if it differs from `dpsql.schema.text_values`; made and checked by
    `dpsql.schema.cell_format`.

    format: formats of dates, with directives of strptime; the first that reads a text counts. decimal: the sign before
    a fraction, if not a point. thousands: the sign between groups of three digits, if any. true, false: words replacing
    the standard ones. null: texts that are NULL. Words are compared exactly, without surrounding space. encoding: that
    of the column's bytes in a text file.
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
        """The declared settings, as in an owner's file."""
        found = {word: getattr(self, word) for word in CELL_WORDS}
        return {word: list(value) if isinstance(value, tuple) else value for word, value in found.items() if value}

    def over(self, other: CellFormat) -> CellFormat:
        """Combine both; this one's settings win."""
        return CellFormat(*(getattr(self, word) or getattr(other, word) for word in CELL_WORDS))


CELL_WORDS = tuple(each.name for each in fields(CellFormat))
"""Names of cell settings in an owner's file."""


@dataclass(frozen=True, slots=True, repr=False)
class ColumnSchema:
    """One column: its type, whether it can be NULL, and declared clip bounds and list of group keys. For dates and
    timestamps, these are stored numbers."""

    name: str
    type: Type
    nullable: bool = True
    bounds: Interval | None = None
    keys: tuple[Key, ...] | None = None
    storage: str = ""
    """The source's name for the type ("int64", "datetime64[us]"), for messages."""
    auto: bool = False
    """True if queries that need bounds may choose them privately, for a share of their cost: between `bounds`, if
    declared."""
    cell_format: CellFormat | None = None
    """Format of its texts, if not the standard one."""
    zone: str | None = None
    """Time zone in which instants are shown; None: UTC, or a column without instants."""
    wide: int = 0
    """Width of whole numbers that may exceed 64 bits (`stored_types.width_of`), 0 for other columns. Such a number is
    read as the text of its digits. It follows from storage and the declaration, so neither names of parts nor keys of
    queries include it."""

    nearest: bool = False
    """True if an integer of more than 64 bits becomes the nearest INTEGER instead of NULL, as in columns of privacy
    unit keys, which are compared separately. It follows from the declaration of the unit."""

    @property
    def clips(self) -> bool:
        """True if numbers of more than 64 bits become the nearest INTEGER."""
        return self.nearest or self.auto or self.bounds is not None

    @property
    def identity(self) -> Type:
        """Type in which privacy unit keys are compared."""
        return Type.INTEGER if self.wide else self.type

    def __repr__(self) -> str:
        """Return all fields, without unset later ones: names of parts in ledgers contain this text, and must not change
        for columns without a zone and a format."""
        later = ("cell_format", "zone")
        named = [each.name for each in fields(self) if each.name not in ("wide", "nearest")]
        shown = [name for name in named if name not in later or getattr(self, name) is not None]
        return f"ColumnSchema({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


@dataclass(frozen=True)
class TableSchema:
    """One table. Each row is a different privacy unit, unless a unit is declared or the table is public.

    unit_word: the unit as declared; `unit`: its meaning, None until `link` has followed its path; limits: contribution
    bounds of one unit; unique: keys that no two rows share; max_matches: columns of a public table, with the maximum
    number of rows per value; rows: number of rows of a public table; partition: a column for parallel composition;
    version: name of the current data; people: publicly known, approximate number of people, for warnings only;
    rows_are_units: whether the owner declared each row to be a unit; can_drop_rows: whether a scan can drop a stored
    row because of its cells. Columns are in their stored spelling.
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
        """True if its rows are constants of a query's text."""
        return False

    @cached_property
    def by_name(self) -> Mapping[str, ColumnSchema]:
        """Columns by folded name: names are case-insensitive."""
        return {column.name.casefold(): column for column in self.columns}

    @cached_property
    def fingerprint(self) -> str:
        """All declared facts as text; schemas with the same fingerprint are analysed alike."""
        wide = [column.name for column in self.columns if column.wide]  # omitted by `repr`
        return repr([*(getattr(self, each.name) for each in fields(self)), *wide])


def value_range(column: ColumnSchema) -> Interval:
    """Return the declared range of the column's values; everything, for a column of numbers without bounds."""
    if column.type is Type.BOOLEAN:
        return Interval(0, 1)
    if column.bounds is not None:
        return column.bounds
    if column.type is Type.DATE:
        return DAYS
    return MICROSECONDS if column.type is Type.TIMESTAMP else EVERYTHING
