"""Keys under which an answer was given again, so that nothing was charged: the ledger, which tells of charges, has no
line of them. A file beside it has, so that such a key too finds its answer after a restart, and nothing else may be
asked under it.

It holds hashes, as the ledger does, and is no part of what is promised of a budget: a line that is missing costs its
analyst what a new question does. So it is written without waiting for the disk.
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
"""The newest that are kept."""


class FreeKey(NamedTuple):
    """What was asked under a key, as a hash; and the name of the run of the server that answered it."""

    body: str
    run: str


class FreeKeys:
    """The keys of a file, which is made where there is none. Raises InvalidArgument for one that cannot be read."""

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
        """What was given again under the key."""
        with self._lock:
            return self._known.get(key)

    def enter(self, key: str, body: str, run: str) -> None:
        """Remember it. Where it cannot be written, this server alone does."""
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
            except (OSError, ValueError):  # ValueError: the file could not be put in order, and is closed
                pass

    def close(self) -> None:
        with self._lock:
            self._written.close()

    def _put_in_order(self) -> None:
        """A file of the newest, and of nothing else."""
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        put_in_place(self._file, b"".join(_line(*each) for each in self._known.items()))
        self._lines = len(self._known)
        self._written = self._file.open("ab", buffering=0)

    def _remember(self, line: bytes) -> None:
        """A line; one that was cut off by the machine's end says nothing."""
        try:
            key, body, run = json.loads(line)
        except (ValueError, TypeError):
            return
        if all(isinstance(each, str) for each in (key, body, run)):
            self._known[key] = FreeKey(body, run)


def _line(key: str, free: FreeKey) -> bytes:
    return json.dumps([key, *free]).encode("ascii") + b"\n"
