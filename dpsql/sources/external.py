"""External sources: relations and connections of DuckDB, and datasets of Arrow.

A relation is a query that is re-executed each time, with its connection's macros, settings and views; a dataset may
filter rows, and make columns from names of folders. Therefore each is run once, when the table is opened, and its Arrow
result is the table: the program itself is the owner's responsibility. A dataset that is just a list of Parquet files is
treated as that list.
"""

from __future__ import annotations

import sys
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pandas as pd

from dpsql.errors import InvalidArgument, InvalidSchema, did_you_mean
from dpsql.sources.arrow import framed, needs_arrow, run
from dpsql.sources.stored import ExternalFrame, ParquetFiles, stamps_of


def brought(source: object, table: object = None) -> object:
    """Return the result of a relation, a dataset, or a table of a connection; any other source unchanged.

    table: the name of the connection's table or view. Raises InvalidSchema if it does not exist or the program fails,
    and InvalidArgument for a table name with another source."""
    duckdb, datasets = sys.modules.get("duckdb"), sys.modules.get("pyarrow.dataset")  # objects need a loaded library
    if duckdb is not None and isinstance(source, duckdb.DuckDBPyConnection):
        return _of_relation(_relation(source, table), f"table {table}")
    if table is not None:
        raise InvalidArgument("table= is of a database in a file.", hint='Table("shop.duckdb", table="orders").')
    if duckdb is not None and isinstance(source, duckdb.DuckDBPyRelation):
        return _of_relation(source, "a relation of DuckDB")
    if datasets is not None and isinstance(source, datasets.Dataset):
        return _files(source) or _run(source.to_table, "a dataset")
    return source


def as_files(source: object) -> ParquetFiles | None:
    """Return the source if it is a list of files."""
    return source if isinstance(source, ParquetFiles) else None


def _of_relation(relation: Any, name: str) -> ExternalFrame:
    arrow = needs_arrow("a relation of DuckDB")
    return _run(lambda: _in_utc(arrow, relation.to_arrow_table()), name)


def _in_utc(arrow: Any, table: Any) -> Any:
    """Convert times with a zone to UTC, as in files, rather than to the connection's zone, which may be the
    machine's."""
    for place, field in enumerate(table.schema):
        if arrow.types.is_timestamp(field.type) and field.type.tz is not None:
            kind = arrow.timestamp(field.type.unit, "UTC")
            table = table.set_column(place, arrow.field(field.name, kind), table.column(place).cast(kind))
    return table


def _run(program: Any, name: str) -> ExternalFrame:
    """Return the rows that a program produces."""
    frame = run(lambda: framed(program()), name)
    assert isinstance(frame, pd.DataFrame)  # as Arrow tables become
    return ExternalFrame(frame, name)


# Tables of a connection.


def _relation(connection: Any, table: object) -> Any:
    """Return all rows of a table or view of the connection, by its qualified name: DuckDB would look up an unknown bare
    name among Python's variables."""
    if not isinstance(table, str) or not table:
        raise InvalidSchema("a connection has many tables: which one?", hint='Add table="orders".')
    failed, names = "", list[tuple[str, ...]]()
    try:
        here = connection.sql("SELECT current_database(), current_schema()").fetchall()[0]
        listed = connection.sql("SELECT table_catalog, table_schema, table_name FROM information_schema.tables")
        names = [tuple(map(str, row)) for row in listed.fetchall()]
        whole = _resolved(tuple(folded(table).split(".")), names, here)
        if whole is not None:
            return connection.sql("SELECT * FROM " + ".".join('"' + part.replace('"', '""') + '"' for part in whole))
    except Exception as error:  # noqa: BLE001 - any error of DuckDB
        failed = type(error).__name__
    if failed:
        raise InvalidSchema(f"the connection cannot be asked for its tables ({failed}).", hint="Is it closed?")
    raise InvalidSchema(no_such_table(table, "the connection", [name for _, _, name in names]))


def _resolved(parts: tuple[str, ...], names: list[tuple[str, ...]], here: tuple[str, str]) -> tuple[str, ...] | None:
    """Resolve a name of one to three parts: temporary tables first, then the connection's own schema."""
    database, schema = map(folded, here)
    wanted = {
        1: [("temp", "main", *parts), (database, schema, *parts)],
        2: [("temp", *parts), (database, *parts), (parts[0], "main", parts[-1])],
        3: [parts],
    }.get(len(parts), [])
    known = {tuple(map(folded, name)): name for name in names}
    return next((known[each] for each in wanted if each in known), None)


_SMALL = {ord(letter): letter.lower() for letter in ascii_uppercase}


def folded(name: str) -> str:
    """Fold a name as DuckDB compares names: ignoring the case of A to Z, but of no other letters."""
    return name.translate(_SMALL)


def no_such_table(table: str, where: str, names: list[str]) -> str:
    """Return the message for an unknown table name."""
    return f'no table "{table}" in {where}.{did_you_mean(table, names)}'


# Datasets.


def _files(dataset: Any) -> ParquetFiles | None:
    """Return the files of a dataset that consists of their rows: whole local Parquet files, with exactly the dataset's
    columns; None for any other."""
    from pyarrow.dataset import FileSystemDataset, ParquetFileFormat  # type: ignore[import-untyped]
    from pyarrow.fs import LocalFileSystem  # type: ignore[import-untyped]

    plain = type(dataset) is FileSystemDataset and not getattr(dataset, "_scan_options", True)
    if not plain or not isinstance(dataset.format, ParquetFileFormat):
        return None
    if type(dataset.filesystem) is not LocalFileSystem:
        return None
    failed, pieces, whole = "", [], False
    try:
        pieces = list(dataset.get_fragments())
        whole = all(_is_whole_file(each, dataset.schema) for each in pieces)
    except Exception as error:  # noqa: BLE001 - any error of Arrow
        failed = type(error).__name__
    if failed:
        raise InvalidSchema(f"files of a dataset cannot be read ({failed}).", hint="They are damaged, or gone.")
    if not pieces or not whole:
        return None
    files = tuple(Path(each.path).absolute() for each in pieces)
    stamps_of(files)
    return ParquetFiles(files)


def _is_whole_file(piece: Any, schema: Any) -> bool:
    """Return whether a fragment of a dataset has all rows of its file, and no other columns."""
    alike = piece.physical_schema.equals(schema, check_metadata=False)
    everything = str(piece.partition_expression) == "true" and piece.num_row_groups == piece.metadata.num_row_groups
    return bool(alike and everything)
