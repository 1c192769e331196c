"""Idle instances for further statements over the same files.

Opening one takes longer than many a statement. An idle instance holds its own state (threads, unreturned memory,
Parquet metadata) and nothing of a statement: views and frames are removed first. It is reused only over the same
sources, whose files have the same device, inode, size and times. Databases have no idle instances: they would stay
open, and nobody could write to them.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

Key = tuple[object, object, object]
"""The sources that an instance may read, the stamps of their files, and its resources."""
_MOST = 2


class Pool:
    """Instances of one table's statements, at most two of them idle."""

    def __init__(self) -> None:
        self._idle: list[tuple[Key, duckdb.DuckDBPyConnection]] = []
        self._lock = threading.Lock()
        _pools.add(self)

    @contextmanager
    def instance(
        self, key: Key, new: Callable[[], duckdb.DuckDBPyConnection], *, waits: bool
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """Yield a locked instance for these sources, a new one if none is idle. waits: whether to keep it afterwards.
        Callers remove the frames that they register; after an error it is closed."""
        connection = self.take(key) or new()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if waits:
            self.give(key, connection)
        else:
            connection.close()

    def take(self, key: Key) -> duckdb.DuckDBPyConnection | None:
        """Take an idle instance for this key, and close those of changed files."""
        taken, stale, others = None, [], []
        with self._lock:
            for each, connection in self._idle:
                if each == key and taken is None:
                    taken = connection
                elif each[0] == key[0] and each[1] != key[1]:
                    stale.append(connection)
                else:
                    others.append((each, connection))
            self._idle = others
        for connection in stale:
            connection.close()
        return taken

    def give(self, key: Key, connection: duckdb.DuckDBPyConnection) -> None:
        """Keep an instance, from which everything of a statement was removed."""
        with self._lock:
            self._idle.append((key, connection))
            surplus = self._idle[:-_MOST]
            del self._idle[:-_MOST]
        for _, other in surplus:
            other.close()

    def close(self) -> None:
        """Close the idle instances."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all)  # a fork has no threads, and would wait for those of an instance
