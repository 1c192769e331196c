"""Tables in files as tables of an instance: their columns, and cells as values of declared types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb.databases import check_table
from dpsql.executors.duckdb.dialect import DUCKDB_SQL, quoted
from dpsql.executors.duckdb.instance import lock, opened
from dpsql.executors.duckdb.pool import Pool
from dpsql.executors.sql.dialect import Lacking
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.declaration import Stored
from dpsql.sources.part_values import part_values
from dpsql.sources.stored import DatabaseTable, ParquetFiles, PartedFiles, StoredFiles, files_in, stamps_of

if TYPE_CHECKING:
    import duckdb

_WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT"})
_WIDE = frozenset({"HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"})
_DOUBLES = frozenset({"FLOAT", "DOUBLE"})
_TIMES = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"})
_LARGEST = 2**62
_READ_AS = {
    Type.INTEGER: "a whole number",
    Type.REAL: "a number",
    Type.BOOLEAN: "a boolean",
    Type.TEXT: "a text",
    Type.DATE: "a date",
    Type.TIMESTAMP: "a time",
}


def kind_of(stored: str) -> str:
    """The name of a stored type without its parameters."""
    return re.split(r"\(", stored)[0] if not stored.endswith("]") else "LIST"


def type_of(stored: str) -> Type:
    """The type that cells of a stored type have where none is declared."""
    kind = kind_of(stored)
    if kind in _WHOLE | _WIDE:
        return Type.INTEGER
    if kind in _DOUBLES or kind == "DECIMAL":
        return Type.REAL
    if kind in _TIMES:
        return Type.TIMESTAMP
    return {"BOOLEAN": Type.BOOLEAN, "VARCHAR": Type.TEXT, "ENUM": Type.TEXT, "DATE": Type.DATE}.get(kind, Type.OTHER)


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
        raise InvalidSchema(f"{each[len(described)]} cannot be read.", hint="It is no such file, or is damaged.")
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
            connection.execute(f"ATTACH {quoted(str(source.file))} AS database{number} (TYPE duckdb, READ_ONLY)")


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

    def stamps(self) -> object:
        return stamps_of(files_in(self.source))


class FileTable:
    """The columns of a stored table that one statement reads, by names of their own (as of `StoredTable`)."""

    enforced = False

    def __init__(self, store: FileStore, number: int) -> None:
        self.store = store
        self.number = number
        self.name = f"stored{number}"
        self._prefix = f"f{number}_"
        self._columns: dict[str, str] = {}

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
        if own & {"rowid", "file_index", "file_row_number"}:
            raise Lacking("rows as units of their own beside a column that is named rowid or as parts of a file are")
        in_file = not isinstance(self.store.source, DatabaseTable)
        place = "file_index * CAST(1099511627776 AS BIGINT) + file_row_number" if in_file else "rowid"
        return self._named(f"({place}) * 4096 + {self.number}", "row")

    def _named(self, text: str, mark: str = "") -> str:
        return self._columns.setdefault(text, f"{self._prefix}{len(self._columns)}{mark}")

    def view(self, number: int, *, as_texts: bool) -> str:
        """The SELECT that the rows are, over the source of that number."""
        listed = [
            f"CAST({text} AS VARCHAR) AS {name}" if as_texts and name.endswith("u") else f"{text} AS {name}"
            for text, name in self._columns.items()
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
        return f" WHERE {cell} = list_extract([{values}], CAST(file_index AS BIGINT) + 1)"

    def whole_identities(self) -> bool:
        """Whether what tells its units apart are whole numbers of 64 bits."""
        texts = [text for text, name in self._columns.items() if name.endswith("u")]
        return all(text.startswith("CAST(") and text.endswith("AS BIGINT)") for text in texts)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def cell_text(name: str, stored: str, wanted: Type) -> str | None:
    """A cell as a value of a type, NULL where it is none; None where cells of the stored type are never read so."""
    kind, text = kind_of(stored), _name(name)
    if wanted is Type.OTHER:
        return f"CASE WHEN {text} IS NOT NULL THEN TRUE END"
    maker = {
        Type.INTEGER: _integer,
        Type.REAL: _real,
        Type.BOOLEAN: _boolean,
        Type.TEXT: _text,
        Type.DATE: _date,
        Type.TIMESTAMP: _timestamp,
    }[wanted]
    return maker(text, kind)


def _integer(text: str, kind: str) -> str | None:
    """Numbers with a fraction are none, and those beyond +-2^62 are held to it."""
    if kind in _WHOLE or kind == "BOOLEAN":
        return f"CAST({text} AS BIGINT)"
    limited = (
        f"CASE WHEN {text} >= {_LARGEST} THEN {_LARGEST} WHEN {text} <= {-_LARGEST} THEN {-_LARGEST} "
        f"ELSE TRY_CAST({text} AS BIGINT) END"
    )
    if kind in _WIDE:
        return limited
    if kind in _DOUBLES:
        return f"CASE WHEN isfinite({text}) AND TRUNC({text}) = {text} THEN {limited} END"
    return f"CASE WHEN TRUNC({text}) = {text} THEN {limited} END" if kind == "DECIMAL" else None


def _real(text: str, kind: str) -> str | None:
    if kind in _DOUBLES:
        return f"NULLIF(CAST({text} AS DOUBLE), TRY_CAST('NaN' AS DOUBLE))"
    return f"CAST({text} AS DOUBLE)" if kind in _WHOLE | _WIDE | {"DECIMAL", "BOOLEAN"} else None


def _boolean(text: str, kind: str) -> str | None:
    if kind == "BOOLEAN":
        return text
    return f"CASE WHEN {text} = 0 THEN FALSE WHEN {text} = 1 THEN TRUE END" if _is_number(kind) else None


def _text(text: str, kind: str) -> str | None:
    return f"CAST({text} AS VARCHAR)" if kind in ("VARCHAR", "ENUM") else None


def _date(text: str, kind: str) -> str | None:
    return text if kind == "DATE" else f"TRY_CAST({text} AS DATE)" if kind in _TIMES else None


def _timestamp(text: str, kind: str) -> str | None:
    """Nanoseconds are rounded down to microseconds."""
    if kind == "TIMESTAMP_NS":
        return f"make_timestamp(epoch_ns({text}) // 1000 - CAST(epoch_ns({text}) % 1000 < 0 AS BIGINT))"
    return text if kind == "TIMESTAMP" else f"TRY_CAST({text} AS TIMESTAMP)" if kind in _TIMES | {"DATE"} else None


def _is_number(kind: str) -> bool:
    return kind in _WHOLE | _WIDE | _DOUBLES or kind == "DECIMAL"


def identity_text(name: str, stored: str, wanted: Type) -> str:
    """What tells units apart: the stored value, exactly, where it is one of the declared type; equal numbers are one,
    whatever stores them."""
    kind, text = kind_of(stored), _name(name)
    cell = cell_text(name, stored, wanted)
    assert cell is not None  # as the store saw
    if wanted is Type.TEXT:
        return cell
    if wanted is Type.BOOLEAN or (wanted is Type.DATE and kind != "DATE"):
        day = f"{cell} - DATE '1970-01-01'" if wanted is Type.DATE else cell
        return f"CAST({day} AS BIGINT)"
    if kind in _WHOLE or kind == "BOOLEAN":
        return f"CAST({text} AS BIGINT)"
    if kind == "DATE":
        return f"CAST(CASE WHEN isfinite({text}) THEN {text} - DATE '1970-01-01' END AS BIGINT)"
    if kind in _WIDE:
        exact = f"CAST({text} AS VARCHAR)"
    elif kind in _DOUBLES:
        # A fraction is no decimal of the same digits.
        fraction = f"'~' || CAST({text} AS VARCHAR)"
        whole = f"TRUNC({text}) = {text} AND ABS({text}) < 1e37"
        exact = (
            f"CASE WHEN isnan({text}) THEN NULL WHEN {whole} THEN CAST(TRY_CAST({text} AS HUGEINT) AS VARCHAR) "
            f"ELSE {fraction} END"
        )
    elif kind == "DECIMAL":
        digits = f"CAST({text} AS VARCHAR)"
        exact = f"CASE WHEN CONTAINS({digits}, '.') THEN RTRIM(RTRIM({digits}, '0'), '.') ELSE {digits} END"
    else:
        instant = "'@' || " if kind == "TIMESTAMP WITH TIME ZONE" else ""
        nanoseconds = (
            f"epoch_ns({text})"
            if kind == "TIMESTAMP_NS"
            else f"epoch_us(TRY_CAST({text} AS TIMESTAMP)) * CAST(1000 AS HUGEINT)"
        )
        exact = f"{instant}CAST(CASE WHEN isfinite({text}) THEN {nanoseconds} END AS VARCHAR)"
    return f"CASE WHEN {cell} IS NOT NULL THEN {exact} END"
