"""Tables in files as tables of an instance: their columns, and cells as values of declared types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb.cells import cell_of, identity_text, type_of
from dpsql.executors.duckdb.databases import check_table
from dpsql.executors.duckdb.dialect import DUCKDB_SQL, quoted
from dpsql.executors.duckdb.instance import lock, opened
from dpsql.executors.duckdb.parquet_types import is_unsafe, marked, plain, unsafe_types
from dpsql.executors.duckdb.pool import Pool
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.declaration import StoredColumn
from dpsql.schema.stored_types import width_of
from dpsql.sources.part_values import part_values
from dpsql.sources.stored import (
    DatabaseTable,
    ParquetFiles,
    PartedFiles,
    SourceClosed,
    StoredFiles,
    files_in,
    stamps_of,
    unreadable,
)

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

_PLACE, _ROW = "file_index", "file_row_number"
"""DuckDB's columns for a row's file and its number in the file; a column of the same name hides them."""
PLACE_OF_ROW = f"{_PLACE} * CAST(1099511627776 AS BIGINT) + {_ROW}"


def columns_of(source: StoredFiles) -> list[StoredColumn]:
    """Return names and types from the files' metadata; no row is read. Raises InvalidSchema."""
    connection = opened(files=True)
    refusal: InvalidSchema
    try:
        reach(connection, (source,))
        lock(connection)
        return [_stored(name, kind) for name, kind in attached_columns(connection, source, 0)]
    except InvalidSchema as error:
        refusal = error
    except Exception:  # noqa: BLE001 - its words could quote what a file holds
        refusal = unreadable(source)
    finally:
        connection.close()
    refusal.__cause__ = refusal.__context__ = None
    raise refusal


def _stored(name: str, kind: str) -> StoredColumn:
    read = type_of(kind)
    return StoredColumn(name, read, True, kind, width_of(plain(kind)) if read.numeric else 0)


def attached_columns(connection: duckdb.DuckDBPyConnection, source: StoredFiles, number: int) -> list[tuple[str, str]]:
    """Return names and types of the columns of source `number`, which all of its files share. Raises InvalidSchema."""
    listed = isinstance(source, ParquetFiles | PartedFiles)
    each = [ParquetFiles((file,)) for file in source.files] if listed else [source]
    if isinstance(source, DatabaseTable):
        check_table(connection, source, number)
    described = [_described(connection, one, number) for one in each]
    other = next((place for place, columns in enumerate(described) if columns != described[0]), None)
    if other is not None:
        raise InvalidSchema(
            f"{each[other]} has other columns than {each[0]}.",
            hint="Files of one table have the same columns in the same order, of the same types.",
        )
    return described[0]


def _described(connection: duckdb.DuckDBPyConnection, source: StoredFiles, number: int) -> list[tuple[str, str]]:
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {rows_of(source, number)}").fetchall()
        in_files = isinstance(source, ParquetFiles)
        unsafe = unsafe_types(connection, quoted(_literally(source.files[0]))) if in_files else [None] * len(rows)
    except Exception:  # noqa: BLE001 - its words could quote what a file holds
        rows, unsafe = None, []
    if rows is None:
        raise unreadable(source)
    return [(row[0], marked(row[1], kind)) for row, kind in zip(rows, unsafe, strict=True)]


def holds_text(column: ColumnSchema) -> bool:
    """Return whether a column of Parquet files is text, which may have invalid bytes."""
    return not column.type.opaque and plain(column.storage) == "VARCHAR"


def reach(connection: duckdb.DuckDBPyConnection, sources: tuple[StoredFiles, ...]) -> None:
    """Allow an instance to read the files of these sources and nothing else; databases are attached read-only."""
    allowed = [name for source in sources for file in source.files for name in (str(file), _literally(file))]
    allowed += [f"{source.file}.wal" for source in sources if isinstance(source, DatabaseTable)]
    connection.execute(f"SET allowed_paths = [{', '.join(map(quoted, allowed))}]")
    connection.execute("SET enable_external_access = false")
    for number, source in enumerate(sources):
        if isinstance(source, DatabaseTable):
            try:
                connection.execute(f"ATTACH {quoted(str(source.file))} AS database{number} (TYPE duckdb, READ_ONLY)")
            except Exception:  # noqa: BLE001 - its words could quote what a file holds
                raise SourceClosed(source) from None


def _literally(file: Path) -> str:
    """Return a file's name as a pattern that matches only this file."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(file))


def rows_of(source: StoredFiles, number: int, wrong_bytes: str = "replace") -> str:
    """Return the text after FROM for the source of that number: exactly these files, without columns made from their
    names. wrong_bytes: replacement of bytes of a Parquet text that are not UTF-8, `?` or nothing ("ignore")."""
    if isinstance(source, DatabaseTable):
        names = [part.replace('"', '""') for part in source.table.split(".")]
        return ".".join([f"database{number}", *(f'"{name}"' for name in (["main"] if len(names) == 1 else []) + names)])
    listed = ", ".join(quoted(_literally(file)) for file in source.files)
    options = f"hive_partitioning = false, union_by_name = false, utf8_validation = {quoted(wrong_bytes)}"
    return f"read_parquet([{listed}], {options})"


class FileStore:
    """A table in files under a schema. Raises InvalidSchema if a column cannot be read as its declared type."""

    def __init__(self, source: StoredFiles, schema: TableSchema) -> None:
        self.source = source
        self.schema = schema
        self.pool = Pool()
        self.seen: dict[tuple[str, object], int] = {}
        """Facts about its rows, for files with these stamps."""
        self.odd_rows: dict[str, tuple[object, pd.DataFrame]] = {}
        """For each text column: stamps of the files, and the rows whose bytes are not UTF-8 (`parquet_texts`)."""
        for column in schema.columns:
            if cell_of(column) is None:
                raise InvalidSchema(
                    f'"{column.name}" is stored as {column.storage}, and cannot be read as {column.type}.',
                    hint="Leave the type out, or write the file with that type.",
                )
        self.parts = part_values(source, schema) if isinstance(source, PartedFiles) else None
        self._check_names()
        self._check_unit()
        self.checked: object = None
        """The stamps of the files when their columns last matched the schema."""

    def _check_names(self) -> None:
        """Raise InvalidSchema if a column's name hides the position of rows and the position is needed."""
        hidden = next((name for name in (_PLACE, _ROW) if name in self.schema.by_name), None)
        in_files = not isinstance(self.source, DatabaseTable)
        if hidden and (self.parts is not None or (in_files and any(map(holds_text, self.schema.columns)))):
            raise InvalidSchema(
                f'a column is named "{self.schema.by_name[hidden].name}": where a row stands could not be told.',
                hint="Rename it.",
            )

    def _check_unit(self) -> None:
        """Raise InvalidSchema if a unit, or the key of a path to one, cannot be read safely."""
        word = self.schema.unit_word
        named = [*([word.column] if word is not None else []), *(name for key in self.schema.unique for name in key)]
        columns = [self.schema.by_name[name.casefold()] for name in named]
        column = next((each for each in columns if is_unsafe(each.storage)), None)
        if column is not None:
            raise InvalidSchema(
                f'column "{column.name}" tells people apart, and one cell can make it unreadable: it is stored as '
                f"{column.storage}.",
                hint="Write the file with timestamps of microseconds, or with text in place of times of day.",
            )

    def stamps(self) -> object:
        """See `Store`."""
        return stamps_of(files_in(self.source))

    def check_columns(self, columns: list[tuple[str, str]]) -> None:
        """Raise InvalidSchema if these current columns of the files differ from those of the schema."""
        if columns != [(each.name, each.storage) for each in self.schema.columns]:
            raise InvalidSchema(
                f"{self.source} has other columns than when it was opened.", hint="Open it again: a new session."
            )


class FileTable:
    """The columns of a stored table that one statement reads, by names of their own (see `StoredTable`). number: the
    table's number in the statement; source: the source's number in the instance."""

    enforced = False

    def __init__(self, store: FileStore, number: int, source: int) -> None:
        self.store = store
        self.number = number
        self.source = source
        self.name = f"stored{number}"
        self._prefix = f"f{number}_"
        self._columns: dict[tuple[str, str], str] = {}
        """Names by texts and marks: a column used as value and unit key is two, and the latter may be cast to text."""
        self.read: dict[str, None] = {}
        """The stored columns that the statement reads."""

    def rows(self) -> str:
        return self.name

    def cell(self, column: ColumnSchema) -> str:
        text = cell_of(column)
        assert text is not None  # checked by the store
        self.read[column.name] = None
        return self._named(text)

    def identity(self, name: str) -> str:
        column = self.store.schema.by_name[name.casefold()]
        self.read[column.name] = None
        return self._named(
            identity_text(column.name, column.storage, column.identity, column.cell_format, column.zone), "u"
        )

    def kind(self, name: str) -> Type:
        return self.store.schema.by_name[name.casefold()].identity

    def row(self) -> str:
        """Return the position of the row: file and row in Parquet files, the row in a database's table."""
        own = {name.casefold() for name in self.store.schema.by_name}
        if own & {"rowid", _PLACE, _ROW}:
            raise MissingFeature(
                "rows as units of their own beside a column that is named rowid or as parts of a file are"
            )
        in_file = not isinstance(self.store.source, DatabaseTable)
        place = PLACE_OF_ROW if in_file else "rowid"
        return self._named(f"({place}) * 4096 + {self.number}", "row")

    def _named(self, text: str, mark: str = "") -> str:
        return self._columns.setdefault((text, mark), f"{self._prefix}{len(self._columns)}{mark}")

    def view(self, rows: str, *, as_texts: bool) -> str:
        """Return the SELECT of the rows, over those of its source (`parquet_texts.relation`)."""
        listed = [
            f"CAST({text} AS VARCHAR) AS {name}" if as_texts and mark == "u" else f"{text} AS {name}"
            for (text, mark), name in self._columns.items()
        ]
        return f"SELECT {', '.join(listed) or '1 AS nothing'} FROM {rows}{self._somebodys()}"

    def columns_read(self) -> list[str]:
        """Return the stored columns that the view reads."""
        source = self.store.source
        return [*self.read, *([source.column] if isinstance(source, PartedFiles) else [])]

    def _somebodys(self) -> str:
        """Return the condition of rows with a unit: if files are parts, rows with the value of their own file."""
        source, parts = self.store.source, self.store.parts
        if parts is None or not isinstance(source, PartedFiles):
            return ""
        column = self.store.schema.by_name[source.column.casefold()]
        values = ", ".join(DUCKDB_SQL.literal(value, column.type) for value in parts)
        cell = cell_of(column)
        return f" WHERE {cell} = list_extract([{values}], CAST({_PLACE} AS BIGINT) + 1)"

    def whole_identities(self) -> bool:
        """Return whether its unit identities are whole numbers of 64 bits."""
        texts = [text for text, mark in self._columns if mark == "u"]
        return all(text.startswith("CAST(") and text.endswith("AS BIGINT)") for text in texts)
