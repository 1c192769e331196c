"""Instances that wait for the next statement over the same files.

To open one takes longer than many a statement. One that waits holds what an instance holds by itself (threads, memory
that it has not given back, what Parquet files say of themselves) and nothing of a statement: views and frames are taken
out of it before. It is used again only over the same sources whose files' device, inode, size and times are the same.
Databases have none that wait: they would be open meanwhile, and nobody could write to them.
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
"""The sources that an instance may read, the stamps of their files, and what it may use of the machine."""
_MOST = 2


class Pool:
    """Instances of one table's statements, at most two of which wait."""

    def __init__(self) -> None:
        self._idle: list[tuple[Key, duckdb.DuckDBPyConnection]] = []
        self._lock = threading.Lock()
        _pools.add(self)

    @contextmanager
    def instance(
        self, key: Key, new: Callable[[], duckdb.DuckDBPyConnection], *, waits: bool
    ) -> Iterator[duckdb.DuckDBPyConnection]:
        """A locked instance for these sources, a new one where none waits. waits: whether it does so afterwards.
        Whoever brings frames takes them out of it again; where anything fails it is closed."""
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
        """One that waits for this; those of files that have changed are closed."""
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
        """Have an instance wait, which has nothing of a statement in it any more."""
        with self._lock:
            self._idle.append((key, connection))
            surplus = self._idle[:-_MOST]
            del self._idle[:-_MOST]
        for _, other in surplus:
            other.close()

    def close(self) -> None:
        """Close those that wait."""
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
