"""Declarations of a whole table: its privacy unit, contribution bounds, whether it is public.

Each setting is checked separately, then against the others, and then against the columns of the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, field, replace

from dpsql.errors import InvalidSchema, did_you_mean
from dpsql.schema.column_declarations import briefly, items_of, unique_of, whole_of
from dpsql.schema.frozen import dataclass
from dpsql.schema.numbers import LARGEST_LIMIT
from dpsql.schema.units import ROW, Column, Limits, WrittenUnit, unit_word_of

_LIMITS = {  # the words, in the order of the fields of Limits
    "max_rows": "rows of one unit",
    "max_groups": "groups that one unit is in",
    "max_rows_per_group": "rows of one unit in one group",
}


@dataclass(frozen=True, slots=True)
class TableWords:
    """The owner's declarations of one table as a whole. None and empty: undeclared.

    unique: sets of columns without duplicate rows; max_matches: columns, each with the maximum number of rows per
    value; partition: a column for parallel composition: queries about different values cost each row only one of them;
    version: name of the current data, under which answers can be replayed, or "content" for one computed from the
    files; people: publicly known, approximate number of people, for warnings only.
    """

    unit: WrittenUnit | None = None
    limits: Limits = field(default_factory=Limits)
    public: bool | None = None
    unique: tuple[tuple[str, ...], ...] = ()
    max_matches: tuple[tuple[str, int], ...] = ()
    partition: str | None = None
    version: str | None = None
    people: int | None = None
    rows_are_units: bool = False
    """`unit = "row"`: the owner has decided that each row is a unit. By default it is one too."""

    @classmethod
    def of(
        cls,
        *,
        unit: object = None,
        max_rows: object = None,
        max_groups: object = None,
        max_rows_per_group: object = None,
        public: object = None,
        unique: object = None,
        max_matches: object = None,
        partition: object = None,
        version: object = None,
        people: object = None,
    ) -> TableWords:
        """Return the declarations from a caller's arguments, each checked separately. Raises InvalidSchema."""
        limits = zip(_LIMITS, (max_rows, max_groups, max_rows_per_group), strict=True)
        if public is not None and not isinstance(public, bool):
            raise InvalidSchema(f"public must be True or False, got {briefly(public)}.")
        by_row = isinstance(unit, str) and unit.strip() == ROW
        return cls(
            None if unit is None or by_row else unit_word_of(unit),
            Limits(*(None if most is None else _limit(word, most) for word, most in limits)),
            public,
            () if unique is None else unique_of(unique),
            tuple((name, _matches(name, most)) for name, most in items_of("max_matches", max_matches)),
            None if partition is None else _partition(partition),
            None if version is None else _version(version),
            None if people is None else whole_of("people", people, LARGEST_LIMIT, _PEOPLE_HINT),
            by_row,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The table's columns that are named."""
        alone = [self.unit.column] if self.unit else []
        alone += [self.partition] if self.partition else []
        return (*alone, *(name for key in self.unique for name in key), *(name for name, _ in self.max_matches))

    def over(self, other: TableWords) -> TableWords:
        """Combine both; this one wins for the same setting. Unique keys of both are unique."""
        unit = self if self.is_unit_decided else other
        return TableWords(
            unit.unit,
            self.limits.over(other.limits),
            other.public if self.public is None else self.public,
            (*other.unique, *self.unique),
            tuple({**dict(other.max_matches), **dict(self.max_matches)}.items()),
            self.partition or other.partition,
            self.version or other.version,
            self.people or other.people,
            unit.rows_are_units,
        )

    @property
    def is_unit_decided(self) -> bool:
        """True if a unit is declared: a column, a path, or rows."""
        return self.unit is not None or self.rows_are_units

    def check(self, table: str) -> None:
        """Raise InvalidSchema if the declarations contradict each other."""
        limits = [word for word, most in zip(_LIMITS, astuple(self.limits), strict=True) if most is not None]
        if self.public and (self.is_unit_decided or limits):
            word = "unit" if self.is_unit_decided else limits[0]
            raise InvalidSchema(
                f"{table} is declared public, so it has no {word}.",
                hint=f"No row of a public table is anybody's. Leave out public if rows are people's, else {word}.",
            )
        if self.public and self.people:
            raise InvalidSchema(f"{table} is declared public, so it is of no people.", hint="Leave out people.")
        if limits and not self.unit:
            raise self._limits_without_unit(table, limits[0])
        if self.partition and (self.public or self.unit):
            raise InvalidSchema(
                f"{table}: a partition is for private tables without a unit.",
                hint="Rows of a public table cost nothing, and one person's rows may lie in several parts: leave out "
                "partition.",
            )
        if self.max_matches and not self.public:
            raise InvalidSchema(
                f"{table}: max_matches is for public tables.",
                hint="If no row of it is anybody's, write public=True too; rows of people are limited by max_rows.",
            )

    def _limits_without_unit(self, table: str, limit: str) -> InvalidSchema:
        column = 'Say which column tells whose row it is: unit="person_id".'
        if self.rows_are_units:
            return InvalidSchema(
                f'{table}: {limit} is declared with unit = "row".',
                hint=f"Each row is a unit of its own then, so nobody has several: leave out {limit}. {column}",
            )
        return InvalidSchema(f"{table}: {limit} is declared without a unit.", hint=f"Limits belong to a unit. {column}")

    def resolved(self, table: str, columns: Mapping[str, Column]) -> TableWords:
        """Return the declarations with columns (here by folded name) in their stored spelling. Raises InvalidSchema for
        a missing column, a unit whose values have no operations, and contradictions."""
        self.check(table)
        stored = _StoredColumns(table, columns)
        if self.rows_are_units and ROW in columns:
            name = columns[ROW].name
            raise InvalidSchema(
                f'{table}: unit = "row" means that each row is a unit, and the table has a column "{name}".',
                hint=f"If that column tells whose row it is, put it in double quotes: unit='\"{name}\"'. If not, "
                "rename it.",
            )
        matches = [(stored.column("max_matches", name).name, most) for name, most in self.max_matches]
        for name, times in Counter(name for name, _most in matches).items():
            if times > 1:
                raise InvalidSchema(f'max_matches: column "{name}" is declared twice, in different case.')
        unique = [tuple(stored.column("unique", name).name for name in key) for key in self.unique]
        once = {frozenset(key): key for key in unique}
        return replace(
            self,
            unit=None if self.unit is None else stored.unit(self.unit),
            unique=tuple(once.values()),
            max_matches=tuple(matches),
            partition=None if self.partition is None else stored.column("partition", self.partition).name,
        )


@dataclass(frozen=True)
class _StoredColumns:
    """The columns of a table, by folded name."""

    table: str
    columns: Mapping[str, Column]

    def column(self, word: str, name: str, own: str = "") -> Column:
        """Return the column that a setting names; `own`: the table name written before it, with a dot. Raises
        InvalidSchema."""
        if name.casefold() not in self.columns:
            near = did_you_mean(name, [each.name for each in self.columns.values()])
            hint = f"A name with a dot is in double quotes: unit='\"{own}.{name}\"'." if own else ""
            raise InvalidSchema(f'{word}: column "{name}" is not in {self.table}.{near}', hint=hint)
        return self.columns[name.casefold()]

    def unit(self, word: WrittenUnit) -> WrittenUnit:
        """Return the unit with its column in stored spelling. Raises InvalidSchema."""
        column = self.column("unit", word.column, word.own)
        if column.type == "other":
            raise InvalidSchema(
                f'unit: column "{column.name}" is stored as {column.storage}, whose values cannot be told apart here.',
                hint="A unit is a column of numbers, text, booleans, dates or timestamps. If it holds UUIDs as 16 "
                f'bytes, declare that: types={{"{column.name}": "uuid"}}.',
            )
        return replace(word, column=column.name)


TABLE_WORDS = ("unit", *_LIMITS, "public", "unique", "max_matches", "partition", "version", "people")
"""Names of the settings, as arguments of `TableWords.of` and in a file."""


_PEOPLE_HINT = "Write about how many people the table is of, as everybody may know: people=30_000."


def _limit(word: str, most: object) -> int:
    return whole_of(word, most, LARGEST_LIMIT, f"Write the most {_LIMITS[word]} that may count: {word}=4.")


def _matches(name: str, most: object) -> int:
    hint = f'Write the most rows that have one value in "{name}": max_matches={{"{name}": 3}}.'
    return whole_of(f"{name}: max_matches", most, LARGEST_LIMIT, hint)


def _partition(word: object) -> str:
    if isinstance(word, str) and word:
        return str.__str__(word)
    raise InvalidSchema(f"partition must be the name of a column, got {briefly(word)}.", hint='Write partition="day".')


def _version(word: object) -> str:
    """Return a name for the data from text or a whole number."""
    if isinstance(word, int) and not isinstance(word, bool):
        return str(int(word))
    if isinstance(word, str) and word != CONTENT and word.strip().casefold() == CONTENT:
        raise InvalidSchema(
            f"version {briefly(word)} would not follow the content of the data: it is one name for whatever they are, "
            "so a file that changed would be given its old answers.",
            hint='Write version="content" for a version that is taken from the files; or name the data as they are, '
            'version="2026-11", and name them anew when they change.',
        )
    if isinstance(word, str) and 0 < len(word) <= _LONGEST_VERSION:
        return str.__str__(word)
    raise InvalidSchema(
        f"version must be a text of at most {_LONGEST_VERSION} characters or a whole number, got {briefly(word)}.",
        hint='Name the data as they are, version="2026-11", and name them anew when they change.',
    )


_LONGEST_VERSION = 200
CONTENT = "content"
"""Version that is computed from the files when a session opens."""
BY_PARTS = "content by parts"
"""Placeholder for a version if each part of a table has its own."""
