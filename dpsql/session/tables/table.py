"""Table and declare: a DataFrame with its owner's declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import pandas as pd

from dpsql.errors import InvalidArgument, InvalidSchema
from dpsql.executors.base import Engine, engine_of, public_frame
from dpsql.executors.pandas.engine import PANDAS
from dpsql.schema.argument_names import checked_methods, checked_names
from dpsql.schema.column_declarations import plain
from dpsql.schema.declaration import Declaration, resolve
from dpsql.schema.frozen import dataclass
from dpsql.sources.arrow import framed
from dpsql.sources.frames import with_categories

if TYPE_CHECKING:
    import os

    from dpsql.schema.argument_types import ArrowExport, BoundWords, KeyWords, NumberBounds, UniqueWords

REMEMBERED = "dpsql"
"""The key of a frame's `.attrs` under which `declare` writes."""
_WORDS = ("bounds", "keys", "types", "cells")


@checked_methods
@dataclass(frozen=True, init=False, eq=False)
class Table:
    """A DataFrame, or a table of pyarrow or Polars, and what its owner declares of it.

    bounds: column -> (lower, upper), values outside are clipped; keys: column -> list of group values, made public, or
    an earlier answer with a column of that name, or "categories" for the list of its dtype; types: column -> "integer",
    "real", "decimal" (read as real),
    "boolean", "text", "date" or "timestamp"; nullable: column -> False. Bounds and keys of dates are dates or ISO text.

    Words about texts, each column -> what it says: format: a format of dates, "%d/%m/%Y", or a list of them; decimal,
    thousands: the signs in numbers; true, false, null: the words for them.

    unit: the column that tells whose row it is, or a path "o_custkey -> customer.c_custkey" to the unit of another
    table (names with spaces, dots or arrows in double quotes); without it each row is one person's. max_rows,
    max_groups, max_rows_per_group: how much of one unit may count. public: True where no row is anybody's. unique:
    columns, and lists of columns, in which no two rows are alike. max_matches: column of a public table -> the most
    rows that have one value in it. partition: a column; queries with WHERE partition = 'a' and WHERE partition = 'b'
    cost each person only one of them. version: a name for the data as they are, under which a ledger's answers are
    given again at no cost. people: about how many people the table is of, as everybody may know: an answer with a delta
    above 1 / people warns. No row is read, but of a RecordBatchReader and a LazyFrame, which can be read once and are
    read now.

    In place of a DataFrame the path of a file, or a pattern of several: Parquet and, with the name of one of its tables
    as `table`, a database of DuckDB are read where they lie; text is read now. delimiter, quote: one sign each; header:
    the columns' names of a file whose first line is a row; skip: how many lines stand above the header; encoding: that
    of the file; multiline: whether a quoted cell may hold line ends. A relation of DuckDB, a connection with the name
    of a table or view of it as `table`, and a pyarrow Dataset are run now, once; a Dataset that is a list of whole
    Parquet files is read where they lie. A DataFrame of Spark is read by Spark. Raises InvalidSchema.
    """

    frame: Any = field(repr=False)
    """A DataFrame, or a source that another engine reads."""
    declaration: Declaration
    origin: Any = field(default=None, repr=False)
    """The files that it is of, where it is of files: a `StoredFiles` or, where rows were read of them once, an
    `Origin`."""

    def __init__(
        self,
        frame: object,
        *,
        bounds: BoundWords | None = None,
        keys: KeyWords | None = None,
        types: Mapping[str, str] | None = None,
        nullable: Mapping[str, bool] | None = None,
        unit: str | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
        public: bool | None = None,
        unique: UniqueWords | None = None,
        max_matches: Mapping[str, int] | None = None,
        partition: str | None = None,
        version: str | int | None = None,
        people: int | None = None,
        format: Mapping[str, str | Sequence[str]] | None = None,  # noqa: A002 - the word of an owner's file
        decimal: Mapping[str, str] | None = None,
        thousands: Mapping[str, str] | None = None,
        true: Mapping[str, str | Sequence[str]] | None = None,
        false: Mapping[str, str | Sequence[str]] | None = None,
        null: Mapping[str, str | Sequence[str]] | None = None,
        table: str | None = None,
        delimiter: str | None = None,
        quote: str | None = None,
        header: Sequence[str] | None = None,
        skip: int | None = None,
        encoding: str | Mapping[str, str] | None = None,
        multiline: bool | None = None,
    ) -> None:
        cells = _given(format=format, decimal=decimal, thousands=thousands, true=true, false=false, null=null)
        cells |= {"encoding": encoding} if isinstance(encoding, Mapping) else {}
        words = _given(unit=unit, max_rows=max_rows, max_groups=max_groups, max_rows_per_group=max_rows_per_group,
            public=public, unique=unique, max_matches=max_matches, partition=partition, version=version, people=people,
        )  # fmt: skip
        text = {
            "delimiter": delimiter, "quote": quote, "header": header, "skip": skip, "multiline": multiline,
            "encoding": None if "encoding" in cells else encoding,
        }  # fmt: skip
        declared = Declaration.of(bounds, with_categories(keys, frame), types, nullable, cells, **words)
        engine, frame, declared, origin = _opened(frame, declared, table, text)
        self._set(frame, declared.over(_remembered(frame)), origin)
        self._check(engine)

    def _check(self, engine: Engine) -> None:
        """Raises InvalidSchema where columns are not as declared."""
        engine = PANDAS if self.declaration.table.public else engine
        resolve("the table", engine.columns(self.frame), self.declaration)

    @classmethod
    def of(cls, frame: Any, declaration: Declaration, origin: Any = None) -> Table:
        """A table from a declaration that is validated already."""
        table = cls.__new__(cls)
        table._set(frame, declaration.over(_remembered(frame)), origin)
        return table

    @property
    def can_drop_rows(self) -> bool:
        """As of `TableSchema`."""
        return self.origin is not None and bool(self.origin.can_drop_rows)

    def _set(self, frame: Any, declaration: Declaration, origin: Any) -> None:
        if declaration.formats and (origin is None or origin is frame):  # of no text file
            declaration.check_without_bytes()
        if declaration.table.public:
            if frame is origin:  # read now, so its files may change afterwards
                from dpsql.session.tables.paths import origin_of  # as above

                origin = origin_of(frame)
            frame = public_frame(frame)
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "declaration", declaration)
        object.__setattr__(self, "origin", origin)


if TYPE_CHECKING:
    Source = pd.DataFrame | Table | ArrowExport | str | os.PathLike[str]


@overload
def declare(
    frame: pd.DataFrame,
    *,
    bounds: NumberBounds | None = ...,
    keys: KeyWords | None = ...,
    types: Mapping[str, str] | None = ...,
    format: Mapping[str, str | Sequence[str]] | None = ...,
    decimal: Mapping[str, str] | None = ...,
    thousands: Mapping[str, str] | None = ...,
    true: Mapping[str, str | Sequence[str]] | None = ...,
    false: Mapping[str, str | Sequence[str]] | None = ...,
    null: Mapping[str, str | Sequence[str]] | None = ...,
) -> pd.DataFrame: ...
@overload
def declare(
    frame: object,
    *,
    bounds: BoundWords | None = ...,
    keys: KeyWords | None = ...,
    types: Mapping[str, str] | None = ...,
    nullable: Mapping[str, bool] | None = ...,
    unit: str | None = ...,
    max_rows: int | None = ...,
    max_groups: int | None = ...,
    max_rows_per_group: int | None = ...,
    public: bool | None = ...,
    unique: UniqueWords | None = ...,
    max_matches: Mapping[str, int] | None = ...,
    partition: str | None = ...,
    version: str | int | None = ...,
    people: int | None = ...,
    format: Mapping[str, str | Sequence[str]] | None = ...,
    decimal: Mapping[str, str] | None = ...,
    thousands: Mapping[str, str] | None = ...,
    true: Mapping[str, str | Sequence[str]] | None = ...,
    false: Mapping[str, str | Sequence[str]] | None = ...,
    null: Mapping[str, str | Sequence[str]] | None = ...,
) -> pd.DataFrame | Table: ...
@checked_names
def declare(
    frame: object,
    *,
    bounds: BoundWords | None = None,
    keys: KeyWords | None = None,
    types: Mapping[str, str] | None = None,
    nullable: Mapping[str, bool] | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    max_groups: int | None = None,
    max_rows_per_group: int | None = None,
    public: bool | None = None,
    unique: UniqueWords | None = None,
    max_matches: Mapping[str, int] | None = None,
    partition: str | None = None,
    version: str | int | None = None,
    people: int | None = None,
    format: Mapping[str, str | Sequence[str]] | None = None,  # noqa: A002 - the word of an owner's file
    decimal: Mapping[str, str] | None = None,
    thousands: Mapping[str, str] | None = None,
    true: Mapping[str, str | Sequence[str]] | None = None,
    false: Mapping[str, str | Sequence[str]] | None = None,
    null: Mapping[str, str | Sequence[str]] | None = None,
) -> pd.DataFrame | Table:
    """The frame with declarations remembered in `.attrs`, or a `Table` when any word but bounds, keys, types and those
    about texts is given. The words are those of `Table`.

    `.attrs` survives merges and samples, where bounds, keys and types stay sound (each is enforced cell by cell); a
    fact like nullability or the unit belongs to this very table, so it is kept with a Table. Memory is shared with the
    frame. Raises InvalidSchema.
    """
    of_this_table: dict[str, Any] = {
        "nullable": nullable, "unit": unit, "max_rows": max_rows, "max_groups": max_groups,
        "max_rows_per_group": max_rows_per_group, "public": public, "unique": unique, "max_matches": max_matches,
        "partition": partition, "version": version, "people": people,
    }  # fmt: skip
    cells = _given(format=format, decimal=decimal, thousands=thousands, true=true, false=false, null=null)
    table = Table(frame, bounds=bounds, keys=keys, types=types, **of_this_table, **cells)
    bare = all(word is None for word in of_this_table.values()) and not table.declaration.auto
    if not bare or not isinstance(frame, pd.DataFrame):  # other sources have no `.attrs`
        return table
    copy = frame.copy(deep=False)
    copy.attrs[REMEMBERED] = _plain_words(table.declaration)
    return copy


def _given(**words: Any) -> dict[str, Any]:
    """The words that are not None."""
    return {word: facts for word, facts in words.items() if facts is not None}


def _plain_words(declared: Declaration) -> dict[str, object]:
    """A declaration's bounds, keys, types and formats of cells as JSON can hold them."""
    bounds = {
        name: pair if isinstance(pair, str) else [plain(each) for each in pair]
        for name, pair in declared.bounds.items()
    }
    words: dict[str, object] = {
        "bounds": bounds,
        "keys": {name: [plain(each) for each in keys] for name, keys in declared.keys.items()},
        "types": {name: str(kind) for name, kind in declared.types.items()},
    }
    formats = {name: form.words for name, form in declared.formats.items()}
    return words | ({"cells": formats} if formats else {})


def _opened(
    source: Any, declared: Declaration, table: Any, text: Mapping[str, Any]
) -> tuple[Engine, Any, Declaration, Any]:
    """A source with its engine; what lies at a path, for one, the declaration with the types by which it was read, and
    the files that it is of. text: how text is written there. Raises InvalidArgument, InvalidSchema."""
    origin: Any = None
    form_words = {
        word: list(each) if isinstance(each, tuple) else each for word, each in text.items() if each is not None
    }
    if isinstance(source, str | Path):
        from dpsql.schema.text_format import TextFormat  # as below
        from dpsql.session.tables.paths import table_at  # frames need no reader of files

        form = TextFormat.of(Path(source).name, form_words) if form_words else None
        source, declared, origin = table_at(Path(source), declared, form, table)
    elif form_words:
        raise InvalidArgument(
            f"{next(iter(form_words))}= is of text files.", hint='Table("people.csv", delimiter=";").'
        )
    elif _is_program(source) or table is not None:
        from dpsql.sources.programs import as_files, brought  # frames need no library of programs

        source = brought(source, table)
        origin = as_files(source)
    source = framed(source)
    engine = engine_of(source)
    if engine is None:
        raise InvalidArgument(f"a table is made of {_SOURCES}, got {type(source).__name__}.")
    return engine, source, declared, origin


_SOURCES = (
    "a DataFrame of pandas, Polars or Spark, a pyarrow Table or Dataset, a relation of DuckDB, a connection with "
    "table=, or the path of a file"
)
_PROGRAMS = ("duckdb", "_duckdb", "pyarrow._dataset")


def _is_program(source: object) -> bool:
    """Whether it is of a kind that is run once; by where its class comes from, so that no library is loaded."""
    return any(kind.__module__.startswith(_PROGRAMS) for kind in type(source).__mro__)


def as_table(source: object) -> Table:
    """A Table from a Table, or from anything that one is made of. Raises InvalidArgument, InvalidSchema."""
    if isinstance(source, Table):
        return source
    _, frame, declared, origin = _opened(source, Declaration(), None, {})
    return Table.of(frame, declared, origin)


def _remembered(frame: object) -> Declaration:
    """What `declare` wrote into `.attrs`, for the columns that are still there."""
    words = frame.attrs.get(REMEMBERED) if isinstance(frame, pd.DataFrame) else None
    if words is None or not isinstance(frame, pd.DataFrame):
        return Declaration()
    if not isinstance(words, dict) or not all(isinstance(words.get(word) or {}, dict) for word in _WORDS):
        raise InvalidSchema('df.attrs["dpsql"] is not what dpsql.declare writes.')
    present = {name.casefold() for name in frame.columns if isinstance(name, str)}
    kept = {
        word: {name: fact for name, fact in (words.get(word) or {}).items() if str(name).casefold() in present}
        for word in _WORDS
    }
    said = {word for facts in kept["cells"].values() for word in facts}
    cells = {word: {name: facts[word] for name, facts in kept["cells"].items() if word in facts} for word in said}
    return Declaration.of(kept["bounds"], kept["keys"], kept["types"], None, cells)
