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
"""Key of a frame's `.attrs` under which `declare` writes."""
_WORDS = ("bounds", "keys", "types", "cells")


@checked_methods
@dataclass(frozen=True, init=False, eq=False)
class Table:
    """A DataFrame, pyarrow or Polars table, or file, with its owner's declarations.

    Parameters
    ----------
    frame : DataFrame, path or other source
        A path names one file, or several by a pattern. Parquet and, with `table`, a DuckDB database are read in place
        with each query; text is read now. A DuckDB relation, a connection with the name of its table or view as
        `table`, and a pyarrow Dataset are run now, once; a Dataset that lists whole Parquet files is read in place.
        Spark reads a Spark DataFrame. No other row is read now, except from a RecordBatchReader and a LazyFrame, which
        can be read only once.
    bounds : mapping of column to (lower, upper), optional
        Values outside are clipped. Bounds and keys of dates are dates or ISO text.
    keys : mapping of column to list, optional
        Public group values; or an earlier answer with a column of that name; or "categories" for those of its dtype.
    types : mapping of column to str, optional
        "integer", "real", "decimal" (read as real), "boolean", "text", "date" or "timestamp".
    nullable : mapping of column to bool, optional
    unit : str, optional
        Column that identifies the privacy unit, or a path "o_custkey -> customer.c_custkey" to the unit of another
        table (names with spaces, dots or arrows in double quotes). None: each row is a different person.
    max_rows, max_groups, max_rows_per_group : int, optional
        Contribution bounds of one unit.
    public : bool, optional
        True if no row belongs to any person.
    unique : columns and lists of columns, optional
        Columns without duplicate rows.
    max_matches : mapping of column to int, optional
        Most rows with the same value, for columns of a public table.
    partition : str, optional
        Column for parallel composition: queries with WHERE partition = 'a' and WHERE partition = 'b' cost each person
        only one of them.
    version : str or int, optional
        Name of the current data, under which a ledger repeats answers at no cost.
    people : int, optional
        Publicly known, approximate number of people. An answer with a delta above 1 / people warns.
    format : mapping of column to str or list, optional
        Format of dates, such as "%d/%m/%Y", or a list of formats.
    decimal, thousands : mapping of column to str, optional
        Signs in numbers.
    true, false, null : mapping of column to str or list, optional
        Texts for these values.
    table : str, optional
        Table of the database at `frame`.
    delimiter, quote : str, optional
        One character each, of a text file.
    header : list of str, optional
        Column names, for a file whose first line is a row.
    skip : int, optional
        Number of lines above the header.
    encoding : str, optional
        Encoding of the file.
    multiline : bool, optional
        Whether quoted cells may contain line ends.

    Raises
    ------
    InvalidSchema
    """

    frame: Any = field(repr=False)
    """A DataFrame, or a source that another engine reads."""
    declaration: Declaration
    origin: Any = field(default=None, repr=False)
    """Files of the source, if any: a `StoredFiles`, or an `Origin` if rows were read from them once."""

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
        """Raise InvalidSchema unless columns are as declared."""
        engine = PANDAS if self.declaration.table.public else engine
        resolve("the table", engine.columns(self.frame), self.declaration)

    @classmethod
    def of(cls, frame: Any, declaration: Declaration, origin: Any = None) -> Table:
        """Return a table from a validated declaration."""
        table = cls.__new__(cls)
        table._set(frame, declaration.over(_remembered(frame)), origin)
        return table

    @property
    def can_drop_rows(self) -> bool:
        """As in `TableSchema`."""
        return self.origin is not None and bool(self.origin.can_drop_rows)

    def _set(self, frame: Any, declaration: Declaration, origin: Any) -> None:
        if declaration.formats and (origin is None or origin is frame):  # not from a text file
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
    """Store declarations with a frame.

    Parameters
    ----------
    frame : DataFrame or other source
        Other arguments as for `Table`.

    Returns
    -------
    DataFrame or Table
        The frame with declarations in `.attrs`; a `Table` if arguments other than bounds, keys, types and text formats
        are given, or for other sources. Memory is shared with the frame.

    Raises
    ------
    InvalidSchema

    Notes
    -----
    `.attrs` survives merges and samples, where bounds, keys and types stay sound (each is enforced cell by cell). Facts
    such as nullability or the unit hold for this table only, so a Table holds them.
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
    """Return the arguments that are not None."""
    return {word: facts for word, facts in words.items() if facts is not None}


def _plain_words(declared: Declaration) -> dict[str, object]:
    """Return a declaration's bounds, keys, types and cell formats as JSON values."""
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
    """Return engine, source, declaration and files of a source. For a path, the declaration includes the types by which
    it was read. text: text file settings. Raises InvalidArgument, InvalidSchema."""
    origin: Any = None
    form_words = {
        word: list(each) if isinstance(each, tuple) else each for word, each in text.items() if each is not None
    }
    if isinstance(source, str | Path):
        from dpsql.schema.text_format import TextFormat  # as below
        from dpsql.session.tables.paths import table_at  # frames need no file reader

        form = TextFormat.of(Path(source).name, form_words) if form_words else None
        source, declared, origin = table_at(Path(source), declared, form, table)
    elif form_words:
        raise InvalidArgument(
            f"{next(iter(form_words))}= is of text files.", hint='Table("people.csv", delimiter=";").'
        )
    elif _is_external(source) or table is not None:
        from dpsql.sources.external import as_files, brought  # frames need no library of external sources

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


def _is_external(source: object) -> bool:
    """Return whether the source is run once. Decided by the module of its class, so that no library is loaded."""
    return any(kind.__module__.startswith(_PROGRAMS) for kind in type(source).__mro__)


def as_table(source: object) -> Table:
    """Return a Table from a Table or any source. Raises InvalidArgument, InvalidSchema."""
    if isinstance(source, Table):
        return source
    _, frame, declared, origin = _opened(source, Declaration(), None, {})
    return Table.of(frame, declared, origin)


def _remembered(frame: object) -> Declaration:
    """Return what `declare` wrote into `.attrs`, for columns that still exist."""
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
