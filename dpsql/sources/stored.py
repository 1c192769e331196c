"""Stored tables that an engine reads itself: Parquet files, tables of DuckDB databases, and materialized external
results.

This module handles only the list of files; it reads no byte of them. The list is made when a table is opened, and
compared with the files before and after each run: files that change in between are rejected.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

import pandas as pd

from dpsql.errors import InvalidArgument, InvalidSchema
from dpsql.schema.frozen import dataclass
from dpsql.sources.files import BROKEN, broken, files_of

PARQUET_ENDINGS = (".parquet", ".pq")
DATABASE_ENDINGS = (".duckdb", ".ddb")
Stamp = tuple[int, ...]
HERE = ()
"""Stamps of rows in this process's memory, which no file can change."""


@dataclass(frozen=True)
class ParquetFiles:
    """The rows of one or more Parquet files with the same columns."""

    files: tuple[Path, ...]
    can_drop_rows: ClassVar[bool] = False
    """True if a stored row may be dropped from the table because of its cells (`TableSchema.can_drop_rows`)."""

    def __str__(self) -> str:
        return self.files[0].name if len(self.files) == 1 else f"{len(self.files)} files"


@dataclass(frozen=True)
class PartedFiles:
    """Parquet files that each hold the rows with one value of a column, given in the file's name: `values`, one for
    each file, as written. Rows with another value belong to nobody."""

    files: tuple[Path, ...]
    column: str
    values: tuple[str, ...]
    can_drop_rows: ClassVar[bool] = True

    def __str__(self) -> str:
        return self.files[0].name if len(self.files) == 1 else f"{len(self.files)} files"


@dataclass(frozen=True)
class DatabaseTable:
    """A table of a DuckDB database file."""

    file: Path
    table: str
    can_drop_rows: ClassVar[bool] = False

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.file,)

    def __str__(self) -> str:
        return f"{self.file.name}, table {self.table}"


@dataclass(frozen=True, repr=False, eq=False)
class ExternalFrame:
    """The immutable result of an owner's program: a DataFrame of Arrow columns (`external`)."""

    frame: pd.DataFrame
    name: str

    def __str__(self) -> str:
        return self.name


StoredFiles = ParquetFiles | PartedFiles | DatabaseTable


@dataclass(frozen=True)
class Origin:
    """The files from which a table was read once, and their stamps before that."""

    files: tuple[Path, ...]
    stamps: tuple[Stamp, ...]
    table: str = ""
    """The table of a database; for text files, the settings that determine rows and encoding."""
    can_drop_rows: bool = False


def unreadable(source: StoredFiles | Path) -> InvalidSchema:
    """Return the error for files that an engine cannot open, without the engine's message, which can quote contents."""
    hint = "It is no such file, or is damaged."
    if isinstance(source, DatabaseTable) or (isinstance(source, Path) and source.suffix in DATABASE_ENDINGS):
        hint = "It is no database, is damaged, or is open for writing: while it is, nobody else can read it."
    return InvalidSchema(f"{source.name if isinstance(source, Path) else source} cannot be read.", hint=hint)


class SourceChanged(Exception):
    """A table's files changed since they were opened for a query; nothing is released. has_read: whether rows may have
    been read."""

    def __init__(self, source: StoredFiles, *, has_read: bool = True) -> None:
        super().__init__(str(source))
        self.changed_files = str(source)
        self.has_read = has_read


class SourceClosed(Exception):
    """A table's files could not be opened although they exist."""

    def __init__(self, source: StoredFiles) -> None:
        super().__init__(str(source))
        self.refusal = unreadable(source)


def stored_files(path: Path, table: str | None = None) -> StoredFiles | None:
    """Return the table at a path; None for text files. Raises InvalidSchema, InvalidArgument."""
    ending = path.suffix.casefold()
    if ending in DATABASE_ENDINGS:
        if not isinstance(table, str) or not table:
            raise InvalidSchema(
                f"{path.name} is a database: which table of it?",
                hint=f'dpsql.Table("{path.name}", table="orders"); in an owner\'s file table = "orders".',
            )
        stamps_of((path,))
        return DatabaseTable(path.absolute(), table)
    if table is not None:
        raise InvalidArgument(f"table= is of databases ({', '.join(DATABASE_ENDINGS)}), and {path.name} is none.")
    if ending not in PARQUET_ENDINGS:
        return None
    parted = parted_files(path)
    if parted is not None:
        return parted
    files = files_of(path)
    stamps_of(files)
    return ParquetFiles(tuple(each.absolute() for each in files))


_PART = re.compile(r"\{([^{}]+)\}")


def has_parts(path: Path) -> bool:
    """Return whether a path names a column in braces, so that its files are parts."""
    return bool(_PART.search(str(path)))


def parted_files(path: Path) -> PartedFiles | None:
    """Return the files of a path with a column name in braces, each with the text in its place; None for a path without
    one, or if a file has that very name. Raises InvalidSchema."""
    marks = _PART.findall(str(path))
    if not marks or path.is_file():
        return None
    place, mark = next((place, part) for place, part in enumerate(path.parts) if _PART.search(part))
    before, after = _PART.split(mark)[0], _PART.split(mark)[-1]
    if len(marks) > 1 or any(sign in before + after for sign in "*?[") or "**" in str(path):
        raise InvalidSchema(
            f"{path}: one column in braces says which part a file is.",
            hint='Write path = "orders/{day}.parquet", or "orders/{day}/*.parquet".',
        )
    files = files_of(Path(*path.parts[:place], f"{before}*{after}", *path.parts[place + 1 :]))
    stamps_of(files)
    found = [each.parts[place] for each in files]
    values = tuple(part[len(before) : len(part) - len(after)] for part in found)
    return PartedFiles(tuple(each.absolute() for each in files), marks[0], values)


def stamps_of_source(source: StoredFiles) -> tuple[Stamp, ...]:
    """Return the stamps of a source's files, including a database's log, if there is one."""
    return stamps_of(files_in(source))


def files_in(source: StoredFiles) -> tuple[Path, ...]:
    """Return the files that hold a source: a database that was not closed has a log beside it."""
    if not isinstance(source, DatabaseTable):
        return source.files
    log = source.file.with_name(f"{source.file.name}.wal")
    return (source.file, log) if log.is_file() else (source.file,)


def stamps_of(files: tuple[Path, ...]) -> tuple[Stamp, ...]:
    """Return the identity of files: device, inode, size, and times of the last changes. Raises InvalidSchema if one is
    missing."""
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> Stamp:
    try:
        stat = file.stat()
    except BROKEN as error:
        raise broken(file, error) from None
    if not file.is_file():
        raise InvalidSchema(f"no file {file}.")
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns
