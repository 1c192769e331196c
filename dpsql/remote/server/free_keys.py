"""Idempotency keys of cached answers. Such answers charge nothing, so the ledger has no line for them; a file beside it
does. The key then finds its answer after a restart, and cannot be reused for another query.

The file holds hashes, as the ledger does, and is no part of the budget guarantee: a missing line costs the analyst what
a new query costs. Hence it is written without waiting for the disk.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from dpsql.errors import InvalidArgument
from dpsql.owner.secret_files import put_in_place

MOST = 10_000
"""Number of newest keys that are kept."""


class FreeKey(NamedTuple):
    """The hash of the request under a key, and the name of the server run that answered it."""

    body: str
    run: str


class FreeKeys:
    """The keys in a file, created if missing. Raises InvalidArgument if the file cannot be read or written."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()
        self._known: OrderedDict[str, FreeKey] = OrderedDict()
        try:
            for line in file.read_bytes().splitlines() if file.exists() else ():
                self._remember(line)
            self._put_in_order()
        except OSError:
            raise InvalidArgument(f"{file.name} cannot be read or written.") from None

    def find(self, key: str) -> FreeKey | None:
        """Return the entry of a key."""
        with self._lock:
            return self._known.get(key)

    def enter(self, key: str, body: str, run: str) -> None:
        """Add a key. If the file cannot be written, only this server remembers it."""
        with self._lock:
            if key in self._known:
                return
            self._known[key] = FreeKey(body, run)
            try:
                self._written.write(_line(key, self._known[key]))
                self._lines += 1
                if self._lines >= 2 * MOST:
                    self._written.close()
                    self._put_in_order()
            except (OSError, ValueError):  # ValueError: the file could not be compacted, and is closed
                pass

    def close(self) -> None:
        with self._lock:
            self._written.close()

    def _put_in_order(self) -> None:
        """Rewrite the file with the newest keys only."""
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        put_in_place(self._file, b"".join(_line(*each) for each in self._known.items()))
        self._lines = len(self._known)
        self._written = self._file.open("ab", buffering=0)

    def _remember(self, line: bytes) -> None:
        """Read a line; ignore one that a crash truncated."""
        try:
            key, body, run = json.loads(line)
        except (ValueError, TypeError):
            return
        if all(isinstance(each, str) for each in (key, body, run)):
            self._known[key] = FreeKey(body, run)


def _line(key: str, free: FreeKey) -> bytes:
    return json.dumps([key, *free]).encode("ascii") + b"\n"
