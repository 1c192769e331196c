"""Sources that are programs of their owner's: relations and connections of DuckDB, and datasets of Arrow.

A relation is a query that would be run anew each time, with the macros, settings and views of its connection; a dataset
may filter, and make columns of the names of folders. So each is run once, when the table is opened, and what it gives
by way of Arrow is the table: what it does before that is the owner's. A dataset that is nothing but a list of Parquet
files is that list.
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
    """What a relation, a dataset, or a table of a connection gives; any other source is itself.

    table: the name of the connection's table or view. Raises InvalidSchema where there is none, or the program fails,
    and InvalidArgument for a name that is of nothing."""
    duckdb, datasets = sys.modules.get("duckdb"), sys.modules.get("pyarrow.dataset")  # no object without its library
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
    """The source where it is a list of files."""
    return source if isinstance(source, ParquetFiles) else None


def _of_relation(relation: Any, name: str) -> ExternalFrame:
    arrow = needs_arrow("a relation of DuckDB")
    return _run(lambda: _in_utc(arrow, relation.to_arrow_table()), name)


def _in_utc(arrow: Any, table: Any) -> Any:
    """Of times with a zone the clock of UTC counts, as in files, and not that of the connection's zone, which may be
    the machine's."""
    for place, field in enumerate(table.schema):
        if arrow.types.is_timestamp(field.type) and field.type.tz is not None:
            kind = arrow.timestamp(field.type.unit, "UTC")
            table = table.set_column(place, arrow.field(field.name, kind), table.column(place).cast(kind))
    return table


def _run(program: Any, name: str) -> ExternalFrame:
    """The rows that a program gives."""
    frame = run(lambda: framed(program()), name)
    assert isinstance(frame, pd.DataFrame)  # as tables of Arrow are
    return ExternalFrame(frame, name)


# Tables of a connection.


def _relation(connection: Any, table: object) -> Any:
    """All rows of a table or view of the connection, by its whole name: a bare one that no table has would be looked up
    among Python's variables."""
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
    except Exception as error:  # noqa: BLE001 - whatever DuckDB says
        failed = type(error).__name__
    if failed:
        raise InvalidSchema(f"the connection cannot be asked for its tables ({failed}).", hint="Is it closed?")
    raise InvalidSchema(no_such_table(table, "the connection", [name for _, _, name in names]))


def _resolved(parts: tuple[str, ...], names: list[tuple[str, ...]], here: tuple[str, str]) -> tuple[str, ...] | None:
    """The table of a name of one to three parts: a temporary one first, then of the connection's own schema."""
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
    """A name as DuckDB compares names: without regard to the case of A to Z, and of no other letters."""
    return name.translate(_SMALL)


def no_such_table(table: str, where: str, names: list[str]) -> str:
    """What is said of a name that no table has."""
    return f'no table "{table}" in {where}.{did_you_mean(table, names)}'


# Datasets.


def _files(dataset: Any) -> ParquetFiles | None:
    """The files of a dataset that is nothing but their rows: whole Parquet files of this machine, each with just the
    dataset's columns; None for any other."""
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
    except Exception as error:  # noqa: BLE001 - whatever Arrow says of a file
        failed = type(error).__name__
    if failed:
        raise InvalidSchema(f"files of a dataset cannot be read ({failed}).", hint="They are damaged, or gone.")
    if not pieces or not whole:
        return None
    files = tuple(Path(each.path).absolute() for each in pieces)
    stamps_of(files)
    return ParquetFiles(files)


def _is_whole_file(piece: Any, schema: Any) -> bool:
    """Whether a piece of a dataset has all rows of its file, and no column that the file has not."""
    alike = piece.physical_schema.equals(schema, check_metadata=False)
    everything = str(piece.partition_expression) == "true" and piece.num_row_groups == piece.metadata.num_row_groups
    return bool(alike and everything)
