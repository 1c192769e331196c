"""The sources of one query, opened before it is charged and held until it is answered.

Each failure that needs no row occurs here: a missing, locked, unreadable or changed file, a missing spill folder, no
file descriptor left, an instance that cannot start. All of these are refused at no cost.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.errors import InvalidSchema
from dpsql.executors.duckdb.files import FileStore, attached_columns, reach
from dpsql.executors.duckdb.instance import folder_in, lock, opened
from dpsql.executors.duckdb.pool import Pool
from dpsql.executors.duckdb.tables import FrameStore
from dpsql.executors.resources import Resources
from dpsql.sources.files import BROKEN, broken
from dpsql.sources.stored import DatabaseTable, ParquetFiles, SourceClosed, StoredFiles

if TYPE_CHECKING:
    import duckdb

Stores = Mapping[str, FrameStore | FileStore]
_MOST_HELD = 64
"""Most files with a held descriptor; with more, DuckDB does not open all at once."""
_SPARE = 16
"""Descriptors besides those of the files, for a run's own use (threads, a spill file)."""


class OpenSources:
    """Stores with an instance that can read their files. Created by `open_sources`.

    stamps: the state of the files when they were opened, by folded table name."""

    def __init__(self, stores: Stores, resources: Resources, folder: str) -> None:
        self.files = {name: store for name, store in stores.items() if isinstance(store, FileStore)}
        self.stamps = {name: store.stamps() for name, store in self.files.items()}
        self.resources = resources
        self._folder = folder
        self._pool = next((store.pool for store in stores.values()), None) or Pool()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._descriptors: list[int] = []

    @property
    def sources(self) -> tuple[StoredFiles, ...]:
        """The sources that the instance may read; a source's index is its number in the instance."""
        return tuple(store.source for store in self.files.values())

    def number_of(self, store: FileStore) -> int:
        return next(place for place, each in enumerate(self.files.values()) if each is store)

    def is_same(self, name: str) -> bool:
        """Return whether the files of a table are unchanged since they were opened."""
        with suppress(InvalidSchema):  # raised if a file is missing
            return self.files[name].stamps() == self.stamps[name]
        return False

    def open(self) -> None:
        """Open everything. Raises InvalidSchema for a file that cannot be read, or has other columns than its table."""
        for store in self.files.values():
            self._open_files(store)
        self._descriptors += [os.open(os.devnull, os.O_RDONLY) for _ in range(_SPARE)]
        self._connection = self._taken() or self._new()
        for number, (name, store) in enumerate(self.files.items()):
            if store.checked != self.stamps[name]:
                store.check_columns(attached_columns(self._connection, store.source, number))
        for name, store in self.files.items():
            if not self.is_same(name):
                raise InvalidSchema(f"{store.source} changed while it was opened.", hint="Ask again.")
            store.checked = self.stamps[name]

    @contextmanager
    def instance(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield the instance for a statement; a new one after a failure."""
        self._let_go()
        connection, self._connection = self._connection or self._new(), None
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def close(self) -> None:
        """Release everything. An instance over unchanged Parquet files is kept for the next query; a database that
        stays attached could not be written to."""
        self._let_go()
        connection, self._connection = self._connection, None
        if connection is None:
            return
        waits = all(isinstance(source, ParquetFiles) for source in self.sources) and not self._folder
        if waits:
            self._pool.give(self._key, connection)
        else:
            connection.close()

    @property
    def _key(self) -> tuple[object, object, object]:
        return self.sources, tuple(self.stamps.values()), self.resources

    def _taken(self) -> duckdb.DuckDBPyConnection | None:
        return None if self._folder else self._pool.take(self._key)

    def _new(self) -> duckdb.DuckDBPyConnection:
        """Return a new locked instance that may read only these sources."""
        connection = opened(files=bool(self.files), resources=self.resources, folder=self._folder)
        try:
            if self.files:
                reach(connection, self.sources)
            lock(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_files(self, store: FileStore) -> None:
        """Check that each file can be read, and keep descriptors that a run will need. Databases are attached instead:
        closing a descriptor of one would drop this process's locks on it (POSIX)."""
        for file in () if isinstance(store.source, DatabaseTable) else store.source.files:
            try:
                descriptor = os.open(file, os.O_RDONLY)
            except BROKEN as error:
                raise _unopened(file, error) from None
            if len(self._descriptors) < _MOST_HELD:
                self._descriptors.append(descriptor)
            else:
                os.close(descriptor)

    def _let_go(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.pop())


@contextmanager
def open_sources(stores: Stores, resources: Resources) -> Iterator[OpenSources]:
    """Yield the opened sources of these stores. Raises InvalidSchema, whose message quotes no file content."""
    with ExitStack() as contexts:
        refusal: InvalidSchema
        try:
            folder = _spill_folder(contexts, resources)
            sources = OpenSources(stores, resources, folder)
            contexts.callback(sources.close)
            sources.open()
        except InvalidSchema as error:
            refusal = error.with_traceback(None)
        except SourceClosed as error:
            refusal = error.refusal
        except Exception as error:  # noqa: BLE001 - its words could quote what a file holds
            refusal = _unstarted(error)
        else:
            yield sources
            return
    refusal.__cause__ = refusal.__context__ = None
    raise refusal  # outside the handlers, so that it has no context


def _spill_folder(contexts: ExitStack, resources: Resources) -> str:
    try:
        return contexts.enter_context(folder_in(resources.spill))
    except OSError as error:
        failed = type(error).__name__
    raise InvalidSchema(
        f"no folder can be made in {resources.spill}, the folder of spill ({failed}).",
        hint=f"Make it, or let this user write to it: mkdir -p {resources.spill}",
    )


def _unopened(file: Path, error: Exception) -> InvalidSchema:
    if isinstance(error, PermissionError):
        return InvalidSchema(f"{file.name} cannot be read: this user may not.", hint=f"chmod u+r {file}")
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return InvalidSchema(
            f"{file.name} cannot be opened: this process has too many open files.", hint="ulimit -n 4096"
        )
    return broken(file, error)


def _unstarted(error: Exception) -> InvalidSchema:
    """Return the error for an instance that cannot start, or a machine without descriptors."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return InvalidSchema("this process has too many open files to start DuckDB.", hint="ulimit -n 4096")
    return InvalidSchema(
        f"DuckDB cannot open the tables of this question ({type(error).__name__}).",
        hint="See that the machine has memory, threads and file descriptors left, and ask again.",
    )
