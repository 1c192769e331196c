"""Versions of files: from their content (`version = "content"`), or named by an owner.

A content version is computed when a session opens (an HMAC with the ledger's own key) and stands for the rows in every
question, so that answers are repeated exactly if the files are the same. Files with either kind of version are
compared, before and after each query, with their state when the session opened, by device, inode, size and times. If
they differ, nothing is released.

A table whose files are parts, each with one value of a column, has a version for each value; a question has those that
it can reach. Proof that no replay depends on rows: the reached values follow from the text, declared facts and the
names of files only (`_reached`). Rows of other values do not change the exact integers: a predicate directly above the
scan is TRUE for none of them, and rows whose file has another value are nobody's. So equal keys mean equal bytes of
everything that the answer depends on; a new key is paid for as usual.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from dpsql.core.ledger.ledger import Ledger
from dpsql.errors import InternalError, InvalidSchema
from dpsql.plan.domains import vector_of
from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Call, Expr, columns, conjuncts, walk
from dpsql.plan.nodes import Filter, Scan, Source, inputs_of, scans_of
from dpsql.plan.row_local import INEXACT
from dpsql.release.release import Release
from dpsql.schema.columns import ColumnSchema, Key, TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.schema.table_declarations import BY_PARTS, CONTENT
from dpsql.session.tables.table import Table
from dpsql.sources.content import content_of
from dpsql.sources.part_values import part_values
from dpsql.sources.stored import DatabaseTable, Origin, PartedFiles, StoredFiles, files_in, stamps_of
from dpsql.sql.names.catalog import Catalog


@dataclass(frozen=True)
class Content:
    """Files of a table when its version was computed. parts: the values of a partitioned table's column with their
    versions. settled: the rows were read then, so that files may change."""

    origin: Origin
    version: str
    column: str = ""
    parts: tuple[tuple[Key, str], ...] = ()
    settled: bool = False
    source: StoredFiles | None = None
    """Source that reads the files with each query."""

    @property
    def changed(self) -> str:
        """Name of a changed file; "" if none has changed."""
        for file, stamp in zip(self.origin.files, self.origin.stamps, strict=True):
            try:
                same = stamps_of((file,)) == (stamp,)
            except InvalidSchema:  # the file is gone
                same = False
            if not same:
                return file.name
        now = () if self.source is None else files_in(self.source)
        return next((file.name for file in now if file not in self.origin.files), "")  # a database's log

    @property
    def hint(self) -> str:
        """Hint for changed files."""
        if self.version == BY_PARTS or self.version.startswith(f"{CONTENT} "):
            return "Open a new session: it takes a version of the files as they are then."
        if not self.version:
            return "Start the server again: it then serves the files as they are."
        return 'A version names the files as they were: declare another, such as version="2", and open a new session.'


Contents = dict[str, Content]
"""By folded table name."""


def versioned(
    tables: Mapping[str, TableSchema], sources: Mapping[str, Table], ledger: Ledger | None, *, all_held: bool = False
) -> tuple[dict[str, TableSchema], Contents]:
    """Return the tables, with the version of their files for those of version "content". sources: by name. Without a
    ledger, only checks that there are files. all_held: whether files of tables without a version must stay unchanged
    too. Raises InvalidSchema."""
    linked, contents = dict(tables), Contents()
    for name, source in sources.items():
        schema = linked[name.casefold()]
        if schema.version != CONTENT:
            if ledger is not None and (schema.version or all_held) and isinstance(source.origin, StoredFiles):
                contents[name.casefold()] = Content(_now(source.origin), schema.version or "", source=source.origin)
            continue
        if source.origin is None:
            raise InvalidSchema(
                f'{name}: version "content" is of files, and its rows come from elsewhere.',
                hint='Name the path of the files; or name the data as they are, version="2026-11".',
            )
        if ledger is not None:
            content = _content(ledger.content_key, schema, source)
            contents[name.casefold()] = content
            linked[name.casefold()] = replace(schema, version=content.version)
    return linked, contents


def _now(source: StoredFiles) -> Origin:
    """Return the current files of a source."""
    files = files_in(source)
    return Origin(files, stamps_of(files))


def _content(key: bytes, schema: TableSchema, source: Table) -> Content:
    stored: StoredFiles | Origin = source.origin
    origin = stored if isinstance(stored, Origin) else _now(stored)
    if isinstance(stored, PartedFiles):
        column = schema.by_name[stored.column.casefold()].name
        by_value: dict[Key, list[Path]] = {}
        for file, value in zip(stored.files, part_values(stored, schema), strict=True):
            by_value.setdefault(value, []).append(file)
        parts = tuple((value, content_of(key, files)) for value, files in by_value.items())
        content = Content(origin, BY_PARTS, column, parts)
    else:
        table = stored.table if isinstance(stored, Origin | DatabaseTable) else ""
        content = Content(origin, f"content {content_of(key, origin.files, table)}")
    if content.changed:
        raise InvalidSchema(f"{content.changed} changed while it was read.", hint="Read it again: open a new session.")
    if stored is None or isinstance(stored, Origin):
        return replace(content, settled=True)
    return replace(content, source=stored)


def catalog_of(
    catalog: Catalog, sources: Mapping[str, Table], ledger: Ledger, *, all_held: bool
) -> tuple[Catalog, Contents]:
    """Return the catalog with the versions from this ledger, once there is one (see `versioned`)."""
    tables, contents = versioned(catalog.tables, sources, ledger, all_held=all_held)
    return (replace(catalog, tables=tables), contents) if contents else (catalog, contents)


def check_unchanged(release: Release, contents: Contents, *, paid: bool = False) -> None:
    """Raise InvalidSchema, or InternalError once the query is paid for, if a file that it reads has changed since its
    version was computed."""
    names = tables_read(release.query.plan.input) if contents else ()
    held = (contents[name] for name in names if name in contents and not contents[name].settled)
    found = ((each.changed, each.hint) for each in held)
    changed, hint = next((each for each in found if each[0]), ("", ""))
    if changed and paid:
        raise InternalError(
            f"{changed} changed while it was read, and nothing is released. What it cost stays spent, since rows had "
            "been read.",
            hint=hint,
        )
    if changed:
        raise InvalidSchema(f"{changed} has changed since its version was taken. Nothing was charged.", hint=hint)


def tables_read(source: Source) -> Iterator[str]:
    """Yield the folded names of scanned tables, and of those on the paths to their units."""
    for scan in scans_of(source):
        yield scan.table.name.casefold()
        yield from (step.table for step in (scan.table.unit.steps if scan.table.unit else ()))


def parts_reached(release: Release, contents: Contents) -> tuple[str, ...]:
    """Return the versions of all parts that a question can reach, for its key: by any measurement, or by the search for
    bounds."""
    parted = {name: each for name, each in contents.items() if each.column}
    versions: dict[str, dict[str, str]] = {}
    for source in [release.query.plan.input, *(plan.source for plan in release.plans)] if parted else ():
        versions |= {name: versions.get(name, {}) for name in tables_read(source) if name in parted}
        led = {step.table for scan in scans_of(source) if scan.table.unit for step in scan.table.unit.steps}
        for name in led & parted.keys():  # units are looked up in all parts
            versions[name] |= {repr(value): version for value, version in parted[name].parts}
        for scan, terms in _scans(source):
            name = scan.table.name.casefold()
            if name in parted:
                versions[name] |= _versions_of(parted[name], scan, terms)
    return tuple(f"parts of {name}: {sorted(parts.items())!r}" for name, parts in sorted(versions.items()))


def _versions_of(content: Content, scan: Scan, terms: tuple[Expr, ...]) -> dict[str, str]:
    """Return the versions of the parts that a scan reaches under these terms."""
    column = scan.table.by_name[content.column.casefold()]
    return {repr(value): version for value, version in content.parts if _reached(value, column, scan, terms)}


def _scans(source: Source) -> Iterator[tuple[Scan, tuple[Expr, ...]]]:
    """Yield every scan with the terms of the filters directly above it, which are TRUE for all rows that other nodes
    read."""
    terms: list[Expr] = []
    while isinstance(source, Filter):
        terms += conjuncts(source.predicate)
        source = source.input
    if isinstance(source, Scan):
        yield source, tuple(terms)
    for each in inputs_of(source):
        yield from _scans(each)


def _reached(value: Key, column: ColumnSchema, scan: Scan, terms: tuple[Expr, ...]) -> bool:
    """Return whether rows with this value can pass. False if a term about only this column, which every engine computes
    alike, is not TRUE for it."""
    cell = vector_of([_enforced(value, column)], column.type)
    for term in terms:
        names = {(each.table, each.name) for each in columns(term)}
        alike = not any(isinstance(each, Call) and each.function.name in INEXACT for each in walk(term))
        if names == {(scan.name, column.name)} and alike:
            passes = evaluate(term, lambda _: cell, 1)
            if not (bool(passes.values[0]) and bool(passes.where_valid()[0])):
                return False
    return True


def _enforced(value: Key, column: ColumnSchema) -> Key:
    """Return the value as scanned, clipped to declared bounds."""
    if column.bounds is None or not isinstance(value, int):
        return value
    return max(int(column.bounds.lower), min(int(column.bounds.upper), value))
