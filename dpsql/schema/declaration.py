"""Declarations of one table, and their combination with a source's columns.

A `Declaration` holds what the owner writes, for some columns and the table as a whole; `resolve` combines it with the
column names and storage types of a source into a `TableSchema`. `link` follows units that lead to other tables. No row
is read here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import date
from fractions import Fraction
from itertools import chain

from dpsql.errors import InvalidSchema, did_you_mean
from dpsql.schema.calendar import MICROSECONDS_A_DAY
from dpsql.schema.column_declarations import (
    AUTO,
    Pair,
    Within,
    Word,
    bounds_of,
    briefly,
    flag_of,
    items_of,
    keys_of,
    moment,
    shown,
    shown_pair,
)
from dpsql.schema.columns import MOST_KEYS, CellFormat, ColumnSchema, Key, TableSchema, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import INT128, Interval
from dpsql.schema.stored_types import UUID_WORD, check_readable
from dpsql.schema.table_declarations import TableWords
from dpsql.schema.units import Unit, followed


@dataclass(frozen=True)
class Declaration:
    """The owner's declarations of one table, by column and as a whole (`table`); validated when made.

    bounds: column -> (lower, upper), numbers or dates, or "auto", or ("auto", lower, upper) for bounds chosen between
    two numbers; keys: column -> list of values; types: column -> "integer", "real" (or "decimal", which is read as
    real), "boolean", "text" (or "uuid", for 16 bytes too), "date" or "timestamp"; nullable: column -> False if no cell
    is NULL (a NULL nevertheless becomes the column's first key, lower bound, or the type's zero). Dates are `date`,
    `datetime`, pandas' or NumPy's, or ISO text. Raises InvalidSchema.
    """

    bounds: Mapping[str, Pair | Within | str] = field(default_factory=dict)
    keys: Mapping[str, tuple[Word, ...]] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)
    nullable: Mapping[str, bool] = field(default_factory=dict)
    table: TableWords = field(default_factory=TableWords)
    auto: bool = False
    """True if queries choose undeclared bounds of all numeric columns when they need them."""
    formats: Mapping[str, CellFormat] = field(default_factory=dict)
    """column -> format of its texts."""
    uuids: frozenset[str] = frozenset()
    """Columns whose declared type is "uuid": 16 bytes become the text of that UUID, texts are unchanged."""

    @property
    def named(self) -> tuple[str, ...]:
        """All columns named, also in the table's declarations, each once, as first spelled."""
        spelled: dict[str, str] = {}
        for name in chain(self.types, self.bounds, self.keys, self.nullable, self.formats, self.table.columns):
            spelled.setdefault(name.casefold(), name)
        return tuple(spelled.values())

    @classmethod
    def of(
        cls,
        bounds: object = None,
        keys: object = None,
        types: object = None,
        nullable: object = None,
        cells: Mapping[str, object] | None = None,
        **table: object,
    ) -> Declaration:
        """Return a validated declaration from a caller's arguments. `cells`: settings of CELL_WORDS, each by column;
        `table`: arguments of TableWords.of."""
        auto = isinstance(bounds, str) and bounds == AUTO
        return cls(
            {name: bounds_of(name, pair) for name, pair in items_of("bounds", None if auto else bounds)},
            {name: keys_of(name, listed, MOST_KEYS) for name, listed in items_of("keys", keys)},
            {name: _type(name, word) for name, word in items_of("types", types)},
            {name: flag_of(name, word) for name, word in items_of("nullable", nullable)},
            TableWords.of(**table),
            auto,
            _formats(cells) if cells else {},
            frozenset(name for name, word in items_of("types", types) if word == UUID_WORD),
        )

    def over(self, other: Declaration) -> Declaration:
        """Combine both declarations; this one wins for the same fact of a column."""
        return Declaration(
            {**other.bounds, **self.bounds},
            {**other.keys, **self.keys},
            {**other.types, **self.types},
            {**other.nullable, **self.nullable},
            self.table.over(other.table),
            self.auto or other.auto,
            {**other.formats, **{name: _over(each, other.formats.get(name)) for name, each in self.formats.items()}},
            self.uuids | {name for name in other.uuids if name not in self.types},
        )

    def check_without_bytes(self) -> None:
        """Raise InvalidSchema for an encoding of a column whose source is no text file."""
        name = next((name for name, form in self.formats.items() if form.encoding), None)
        if name is not None:
            raise InvalidSchema(
                f"{name}: encoding is of text files, whose cells are bytes.", hint="Leave encoding out."
            )

    @property
    def columns(self) -> list[str]:
        """All columns with declarations, in the order in which they are first named."""
        return list(dict.fromkeys([*self.bounds, *self.keys, *self.types, *self.nullable, *self.formats]))


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A source's description of a column, without reading a row: its name, type and whether it can hold NULL."""

    name: str
    type: Type
    nullable: bool
    storage: str
    wide: int = 0
    """As in `stored_types.width_of`."""


def resolve(
    table: str,
    stored: Iterable[StoredColumn],
    declared: Declaration,
    *,
    rows: int | None = None,
    can_drop_rows: bool = False,
) -> TableSchema:
    """Return the schema of a table from its stored columns and the declaration; a unit that is a path is left for
    `link`. Only public tables keep the number of rows. can_drop_rows: as in `TableSchema`. Raises InvalidSchema."""
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
    unknown = [name for name in declared.columns if name.casefold() not in folded]
    if unknown:
        near = did_you_mean(unknown[0], folded.values())
        raise InvalidSchema(f'declared column "{unknown[0]}" is not in {table}.{near}')
    facts = _by_stored_name(declared, folded)
    resolved = TableSchema(table, tuple(_resolve_column(column, facts) for column in columns))
    words = declared.table.resolved(table, resolved.by_name)
    if any(column.type is Type.OBJECT for column in resolved.columns):
        from dpsql.schema.object_columns import check_words  # few tables have columns of Python objects

        check_words(resolved, words)
    return replace(
        resolved,
        columns=_with_unit_keys(resolved.columns, words),
        unit_word=words.unit,
        unit=Unit(words.unit.column, owner=words.unit.column) if words.unit and not words.unit.table else None,
        limits=words.limits,
        public=words.public is True,
        unique=words.unique,
        max_matches=words.max_matches,
        rows=rows if words.public else None,
        partition=words.partition,
        version=words.version,
        people=words.people,
        can_drop_rows=can_drop_rows,
        rows_are_units=words.rows_are_units,
    )


def link(tables: Mapping[str, TableSchema]) -> dict[str, TableSchema]:
    """Return the tables, by folded name, with every unit resolved: to a column of its own table, or through look-ups in
    others. Raises InvalidSchema if a path does not lead to a unit."""
    return {name: replace(table, unit=followed(name, tables)) for name, table in tables.items()}


def _by_stored_name(declared: Declaration, folded: Mapping[str, str]) -> Declaration:
    names = Counter(folded[name.casefold()] for name in declared.columns)
    for name, times in names.items():
        if times > 1:
            raise InvalidSchema(f'column "{name}" is declared twice, in different case.')
    return Declaration(
        {folded[name.casefold()]: fact for name, fact in declared.bounds.items()},
        {folded[name.casefold()]: fact for name, fact in declared.keys.items()},
        {folded[name.casefold()]: fact for name, fact in declared.types.items()},
        {folded[name.casefold()]: fact for name, fact in declared.nullable.items()},
        auto=declared.auto,
        formats={folded[name.casefold()]: form for name, form in declared.formats.items()},
        uuids=frozenset(folded[name.casefold()] for name in declared.uuids),
    )


def _resolve_column(stored: StoredColumn, declared: Declaration) -> ColumnSchema:
    name = stored.name
    kind, wide = _read_as(stored, declared)
    check_readable(name, stored.storage, stored.type, kind, uuid=name in declared.uuids)
    nullable = declared.nullable.get(name, stored.nullable or _makes_nulls(stored, kind, wide, declared))
    bounds = declared.bounds.get(name)
    if kind is Type.OBJECT:
        from dpsql.schema.object_columns import check_facts  # few columns hold Python objects

        check_facts(name, [word for word in ("bounds", "keys") if name in getattr(declared, word)])
    chosen = bounds is not None and AUTO in (bounds, bounds[0])
    auto = chosen or (bounds is None and declared.auto and kind.numeric)
    if chosen and not kind.numeric:
        raise InvalidSchema(f'{name}: bounds are chosen for numbers, but "{name}" is {kind} ({stored.storage}).')
    pair = _pair(bounds)
    clip = None if pair is None else _clip(stored, kind, pair)
    values = _values(name, kind, declared, pair, clip, wide=bool(wide)) if name in declared.keys else None
    form = _cell_format(stored, kind, declared.formats[name]) if name in declared.formats else None
    return ColumnSchema(name, kind, nullable, clip, values, stored.storage, auto, form, _zone(stored, kind), wide)


def _zone(stored: StoredColumn, kind: Type) -> str | None:
    if not kind.temporal or "," not in stored.storage:  # most stored types have no time zone
        return None
    from dpsql.schema.zones import zone_by_storage

    return zone_by_storage(stored.storage)


def _read_as(stored: StoredColumn, declared: Declaration) -> tuple[Type, int]:
    """Return the type of a column, and its width if read as digits: if it can have whole numbers of more than 64 bits,
    without declared bounds (to which they are clipped) or type."""
    if stored.wide and stored.name not in declared.types and stored.name not in declared.bounds:
        return Type.TEXT, stored.wide
    return declared.types.get(stored.name, stored.type), 0


def _makes_nulls(stored: StoredColumn, kind: Type, wide: int, declared: Declaration) -> bool:
    """Return whether a cell that is not NULL can be read as NULL."""
    if wide:
        return False
    beyond = stored.wide != 0 and kind is Type.INTEGER and stored.name not in declared.bounds
    return beyond or kind != stored.type


def _with_unit_keys(columns: tuple[ColumnSchema, ...], words: TableWords) -> tuple[ColumnSchema, ...]:
    """Mark columns that identify units or lead to them."""
    keys = {name for key in words.unique for name in key} | ({words.unit.column} if words.unit else set())
    return tuple(
        replace(each, nearest=True) if each.name in keys and each.type is Type.INTEGER else each for each in columns
    )


def _values(
    name: str, kind: Type, declared: Declaration, bounds: Pair | None, clip: Interval | None, *, wide: bool
) -> tuple[Key, ...]:
    """Return the declared keys as values; wide: as digits. Raises InvalidSchema for a key that does not fit, or is
    outside the bounds."""
    from dpsql.schema.declared_keys import check_inside, key_values  # few queries have declared keys

    keys = declared.keys[name]
    if wide:
        return tuple(None if each is None else str(each) for each in key_values(name, Type.INTEGER, keys, INT128))
    values = key_values(name, kind, keys)
    if bounds is not None and clip is not None:
        check_inside(name, zip(keys, values, strict=True), bounds, clip)
    return values


def _cell_format(stored: StoredColumn, kind: Type, form: CellFormat) -> CellFormat | None:
    """Return the format of a column's texts. Raises InvalidSchema if it has no texts, or if settings are for another
    type."""
    if form == CellFormat():
        return None
    if stored.type not in (Type.TEXT, Type.OBJECT):
        word = next(iter(form.words))
        raise InvalidSchema(
            f'{stored.name}: {word} is for text, and "{stored.name}" is stored as {stored.storage}.',
            hint=f"Leave {word} out.",
        )
    from dpsql.schema.cell_format import check_type  # few columns have their own format

    check_type(stored.name, form, kind)
    return form


def _formats(cells: Mapping[str, object]) -> dict[str, CellFormat]:
    from dpsql.schema.cell_format import formats_of  # as above

    return formats_of(cells)


def _over(form: CellFormat, other: CellFormat | None) -> CellFormat:
    return form if other is None else form.over(other)


def _pair(bounds: Pair | Within | str | None) -> Pair | None:
    """Return the numbers or dates of bounds, if any."""
    if bounds is None or isinstance(bounds, str):
        return None
    return (bounds[-2], bounds[-1])


def _clip(stored: StoredColumn, kind: Type, bounds: Pair) -> Interval:
    if not (kind.temporal if isinstance(bounds[0], date) else kind.numeric):
        raise _bounds_of_another_type(stored, kind, bounds)
    lower, upper = (moment(each) if isinstance(each, date) else each for each in bounds)
    if kind is Type.REAL:
        return Interval(float(lower), float(upper))
    unit = MICROSECONDS_A_DAY if kind is Type.DATE else 1
    least, most = math.ceil(Fraction(lower) / unit), math.floor(Fraction(upper) / unit)
    if least >= most:
        between = " and ".join(shown(each) for each in bounds)
        raise InvalidSchema(f"{stored.name}: fewer than two {kind}s lie between {between}.")
    return Interval(least, most)


def _bounds_of_another_type(stored: StoredColumn, kind: Type, bounds: Pair) -> InvalidSchema:
    name = stored.name
    if kind.temporal:
        return InvalidSchema(
            f'{name}: "{name}" is {kind}, so its bounds are dates, got {shown_pair(bounds)}.',
            hint=f'Write them as dates or ISO text: bounds={{"{name}": ("2000-01-01", "2030-12-31")}}.',
        )
    what, word = ("dates", "date") if isinstance(bounds[0], date) else ("numbers", "real")
    readable = kind is Type.TEXT or (kind is Type.BOOLEAN and word == "real")
    return InvalidSchema(
        f'{name}: bounds are for {what}, but "{name}" is {kind} ({stored.storage}).',
        hint=f'If it holds {what}, say so: types={{"{name}": "{word}"}}.' if readable else "",
    )


def _type(name: str, word: object) -> Type:
    if isinstance(word, str) and word in _TYPE_WORDS:
        return _TYPE_WORDS[word]
    *first, last = (f'"{each}"' for each in _TYPE_WORDS)
    raise InvalidSchema(f"{name}: type must be {', '.join(first)} or {last}, got {briefly(word)}.")


_TYPE_WORDS: Mapping[str, Type] = {
    "integer": Type.INTEGER,
    "real": Type.REAL,
    "decimal": Type.REAL,
    "boolean": Type.BOOLEAN,
    "text": Type.TEXT,
    UUID_WORD: Type.TEXT,
    "date": Type.DATE,
    "timestamp": Type.TIMESTAMP,
}
