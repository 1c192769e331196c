"""Check of a schema file against the column names and types of its data files. Rows of text are read until each column
has a cell that fits its type: in a correct file, a part of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpsql.errors import DPSQLError, InvalidSchema, did_you_mean
from dpsql.executors.base import engine_of
from dpsql.owner.cell_checks import unreadable_columns
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.declaration import Declaration, StoredColumn, link, resolve
from dpsql.schema.table_declarations import TableWords
from dpsql.schema.text_format import LINES_ENDINGS, TEXT_ENDINGS
from dpsql.session.owner_file import Schema, TableEntry
from dpsql.sources.files import files_of, kind_of
from dpsql.sources.frames import with_types_of_text
from dpsql.sources.stored import stored_files
from dpsql.sources.text_files import header_of

Place = tuple[str, ...]


def mistakes_of_headers(schema: Schema, content: Mapping[str, Any]) -> Iterator[tuple[Place, DPSQLError]]:
    """Yield, by the place of the setting: unreadable files, missing columns, facts that do not fit, and unit paths that
    lead nowhere. Tables without a path are skipped: a session supplies them."""
    resolved: dict[str, TableSchema] = {}
    complete = True
    for name, entry in schema.tables.items():
        if entry.path is None:
            complete = False
            continue
        where = ("tables", name)
        try:
            stored = list(columns_at(entry))
        except DPSQLError as error:
            yield (*where, "path"), error
            complete = False
            continue
        as_read = with_types_of_text(entry.declaration) if is_lines(entry) else entry.declaration
        wrong = dict(_of_table(name, stored, as_read, content["tables"][name]))
        yield from (((*where, *place), refusal) for place, refusal in wrong.items())
        if wrong:
            complete = False
        else:
            resolved[name.casefold()] = resolve(name, stored, as_read, rows=_rows(entry.declaration))
            yield from _unreadable(name, entry, resolved[name.casefold()])
    if complete:
        yield from _of_paths(resolved, {name.casefold(): name for name in schema.tables})


def is_lines(entry: TableEntry) -> bool:
    """Return whether a table consists of text files or JSON lines."""
    return entry.path is not None and kind_of(entry.path) in (*TEXT_ENDINGS, *LINES_ENDINGS)


def _unreadable(name: str, entry: TableEntry, schema: TableSchema) -> Iterator[tuple[Place, DPSQLError]]:
    """Yield columns without a readable cell, and declared types that an engine cannot read stored columns as."""
    assert entry.path is not None
    try:
        source = stored_files(entry.path, entry.table)
        engine = None if source is None else engine_of(source)
        if engine is not None:
            engine.store(source, schema)
        elif is_lines(entry):
            for column, error in unreadable_columns(entry, schema):
                yield ("tables", name, *(("columns", column) if column else ("path",))), error
    except DPSQLError as error:
        yield ("tables", name, "path"), error


def columns_at(entry: TableEntry) -> Iterable[StoredColumn]:
    """Return the columns of a table's file by its header, or with its stored types. Raises InvalidSchema."""
    assert entry.path is not None
    source = stored_files(entry.path, entry.table)
    engine = None if source is None else engine_of(source)
    if engine is not None:
        return engine.columns(source)
    files = files_of(entry.path)
    as_declared = kind_of(files[0]) in LINES_ENDINGS
    names = list(entry.declaration.named) if as_declared else _same_header(files, entry)
    return [StoredColumn(name, Type.TEXT, True, "str") for name in names]


def _same_header(files: tuple[Path, ...], entry: TableEntry) -> list[str]:
    first, *others = [header_of(file, entry.text) for file in files]
    for file, names in zip(files[1:], others, strict=True):
        if names != first:
            raise InvalidSchema(f"{file.name} has other columns than {files[0].name}.")
    return first


def _rows(declared: Declaration) -> int | None:
    return 0 if declared.table.public else None


def _of_table(
    name: str, stored: list[StoredColumn], declared: Declaration, written: Mapping[str, Any]
) -> Iterator[tuple[Place, DPSQLError]]:
    known = {column.name.casefold(): column.name for column in stored}
    columns = written.get("columns", {})
    unknown = [column for column in columns if column.casefold() not in known]
    for column in unknown:
        near = did_you_mean(column, known.values())
        yield ("columns", column), InvalidSchema(f'column "{column}" is not in the file.{near}')
    plain = replace(declared, table=TableWords())
    for column in columns:
        error = None if column in unknown else _refused(name, stored, _about(plain, column))
        if error is not None:
            yield ("columns", column), error
    for word, part in _words_apart(declared.table):
        error = _refused(name, stored, Declaration(table=part))
        if error is not None:
            yield (word,), error


def _about(declared: Declaration, column: str) -> Declaration:
    """Return the declared facts of a single column."""
    said = {fact: _only(column, getattr(declared, fact)) for fact in ("bounds", "keys", "types", "nullable")}
    return Declaration(**said)


def _only(column: str, facts: Mapping[str, Any]) -> Any:
    return {name: fact for name, fact in facts.items() if name == column}


def _words_apart(words: TableWords) -> Iterator[tuple[str, TableWords]]:
    """Yield the settings that name columns, each with the settings that it requires."""
    if words.is_unit_decided:
        yield "unit", TableWords(unit=words.unit, rows_are_units=words.rows_are_units)
    for key in words.unique:
        yield "unique", TableWords(unique=(key,))
    if words.max_matches:
        yield "max_matches", TableWords(public=True, max_matches=words.max_matches)
    if words.partition is not None:
        yield "partition", TableWords(partition=words.partition)


def _refused(name: str, stored: list[StoredColumn], declared: Declaration) -> DPSQLError | None:
    try:
        resolve(name, stored, declared, rows=_rows(declared))
    except DPSQLError as error:
        return error
    return None


def _of_paths(resolved: dict[str, TableSchema], spelled: Mapping[str, str]) -> Iterator[tuple[Place, DPSQLError]]:
    """Yield errors of units in other tables; each table is linked with only the tables on its path."""
    for name, table in resolved.items():
        if table.unit_word is None or not table.unit_word.table:
            continue
        try:
            link(_reached(resolved, name))
        except DPSQLError as error:
            yield ("tables", spelled[name], "unit"), error


def _reached(resolved: Mapping[str, TableSchema], name: str) -> dict[str, TableSchema]:
    """Return a table and the tables on its unit path."""
    reached: dict[str, TableSchema] = {}
    while name in resolved and name not in reached:
        reached[name] = resolved[name]
        word = resolved[name].unit_word
        name = word.table.casefold() if word is not None and word.table else ""
    return reached
