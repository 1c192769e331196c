"""Tables in files as tables of an instance: their columns, and cells as values of declared types."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb.cells import cell_text, identity_text, type_of
from dpsql.executors.duckdb.databases import check_table
from dpsql.executors.duckdb.dialect import DUCKDB_SQL, quoted
from dpsql.executors.duckdb.instance import lock, opened
from dpsql.executors.duckdb.pool import Pool
from dpsql.executors.sql.dialect import Lacking
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.declaration import Stored
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

_PLACE = "file_index"
"""DuckDB's name for which of its files a row is of; a column of that name hides it."""


def columns_of(source: StoredFiles) -> list[Stored]:
    """Names and types, from what files say of themselves; no row is read. Raises InvalidSchema."""
    listed = isinstance(source, ParquetFiles | PartedFiles)
    each = [ParquetFiles((file,)) for file in source.files] if listed else [source]
    described: list[list[tuple[str, str]]] = []
    connection = opened(files=True)
    try:
        reach(connection, (source,))
        lock(connection)
        if isinstance(source, DatabaseTable):
            check_table(connection, source, 0)
        for one in each:
            rows = connection.execute(f"DESCRIBE SELECT * FROM {rows_of(one, 0)}").fetchall()
            described.append([(row[0], row[1]) for row in rows])
    except InvalidSchema:
        raise
    except Exception:  # noqa: BLE001 - its words could quote what a file holds
        described = described[: len(each) - 1]
    finally:
        connection.close()
    if len(described) < len(each):
        raise unreadable(each[len(described)])
    other = next((place for place, columns in enumerate(described) if columns != described[0]), None)
    if other is not None:
        raise InvalidSchema(
            f"{each[other]} has other columns than {each[0]}.",
            hint="Files of one table have the same columns in the same order, of the same types.",
        )
    return [Stored(name, type_of(kind), True, kind) for name, kind in described[0]]


def reach(connection: duckdb.DuckDBPyConnection, sources: tuple[StoredFiles, ...]) -> None:
    """Let an instance read the files of these sources, and nothing else from here on; databases are attached, to be
    read only."""
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
    """A file's name as a pattern that no other has."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in str(file))


def rows_of(source: StoredFiles, number: int) -> str:
    """What stands after FROM for the source of that number: exactly these files, with no column made of their names."""
    if isinstance(source, DatabaseTable):
        names = [part.replace('"', '""') for part in source.table.split(".")]
        return ".".join([f"database{number}", *(f'"{name}"' for name in (["main"] if len(names) == 1 else []) + names)])
    listed = ", ".join(quoted(_literally(file)) for file in source.files)
    return f"read_parquet([{listed}], hive_partitioning = false, union_by_name = false)"


class FileStore:
    """A table in files under a schema. Raises InvalidSchema for a declared type that its cells cannot be read as."""

    def __init__(self, source: StoredFiles, schema: TableSchema) -> None:
        self.source = source
        self.schema = schema
        self.pool = Pool()
        self.seen: dict[tuple[str, object], int] = {}
        """What was seen of its rows, for files with these stamps."""
        for column in schema.columns:
            if cell_text(column.name, column.storage, column.type) is None:
                raise InvalidSchema(
                    f'"{column.name}" is stored as {column.storage}, and cannot be read as {column.type}.',
                    hint="Leave the type out, or write the file with that type.",
                )
        self.parts = part_values(source, schema) if isinstance(source, PartedFiles) else None
        if self.parts is not None and _PLACE in schema.by_name:
            raise InvalidSchema(
                f'a column is named "{schema.by_name[_PLACE].name}": which part a row is of could not be told.',
                hint="Rename it.",
            )
        self._checked = self.stamps()

    def stamps(self) -> object:
        return stamps_of(files_in(self.source))

    def check(self) -> None:
        """As of `Store`."""
        stamps = self.stamps()
        if stamps == self._checked:
            return
        columns = [(each.name, each.storage) for each in columns_of(self.source)]
        if columns != [(each.name, each.storage) for each in self.schema.columns]:
            raise InvalidSchema(
                f"{self.source} has other columns than when it was opened.", hint="Open it again: a new session."
            )
        self._checked = stamps


class FileTable:
    """The columns of a stored table that one statement reads, by names of their own (as of `StoredTable`)."""

    enforced = False

    def __init__(self, store: FileStore, number: int) -> None:
        self.store = store
        self.number = number
        self.name = f"stored{number}"
        self._prefix = f"f{number}_"
        self._columns: dict[tuple[str, str], str] = {}
        """Names by texts and marks: a column that is a value and tells units apart is two, of which the latter may be
        made a text."""

    def rows(self) -> str:
        return self.name

    def cell(self, column: ColumnSchema) -> str:
        text = cell_text(column.name, column.storage, column.type)
        assert text is not None  # as the store saw
        return self._named(text)

    def identity(self, name: str) -> str:
        column = self.store.schema.by_name[name.casefold()]
        return self._named(identity_text(column.name, column.storage, column.type), "u")

    def kind(self, name: str) -> Type:
        return self.store.schema.by_name[name.casefold()].type

    def row(self) -> str:
        """Where the row stands: of a Parquet file which file and which row, of a database's table the row."""
        own = {name.casefold() for name in self.store.schema.by_name}
        if own & {"rowid", _PLACE, "file_row_number"}:
            raise Lacking("rows as units of their own beside a column that is named rowid or as parts of a file are")
        in_file = not isinstance(self.store.source, DatabaseTable)
        place = f"{_PLACE} * CAST(1099511627776 AS BIGINT) + file_row_number" if in_file else "rowid"
        return self._named(f"({place}) * 4096 + {self.number}", "row")

    def _named(self, text: str, mark: str = "") -> str:
        return self._columns.setdefault((text, mark), f"{self._prefix}{len(self._columns)}{mark}")

    def view(self, number: int, *, as_texts: bool) -> str:
        """The SELECT that the rows are, over the source of that number."""
        listed = [
            f"CAST({text} AS VARCHAR) AS {name}" if as_texts and mark == "u" else f"{text} AS {name}"
            for (text, mark), name in self._columns.items()
        ]
        return (
            f"SELECT {', '.join(listed) or '1 AS nothing'} FROM {rows_of(self.store.source, number)}{self._somebodys()}"
        )

    def _somebodys(self) -> str:
        """Which rows are somebody's: where files are parts, those with the value of their own file."""
        source, parts = self.store.source, self.store.parts
        if parts is None or not isinstance(source, PartedFiles):
            return ""
        column = self.store.schema.by_name[source.column.casefold()]
        values = ", ".join(DUCKDB_SQL.literal(value, column.type) for value in parts)
        cell = cell_text(column.name, column.storage, column.type)
        return f" WHERE {cell} = list_extract([{values}], CAST({_PLACE} AS BIGINT) + 1)"

    def whole_identities(self) -> bool:
        """Whether what tells its units apart are whole numbers of 64 bits."""
        texts = [text for text, mark in self._columns if mark == "u"]
        return all(text.startswith("CAST(") and text.endswith("AS BIGINT)") for text in texts)
