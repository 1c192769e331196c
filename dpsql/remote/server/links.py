"""Where answers that were paid for are, by the ids of their links, over restarts of the server.

The ledger knows keys and answers; what it does not know is what was asked, with parameters, and under which id. That is
kept in a file of its own beside it, its owner's alone. It is a convenience: nothing that is paid for goes by it, what
cannot be kept or read is a link that is not there, and each is held against the ledger before it is followed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from dpsql.owner.access import access_file
from dpsql.session.owner_file import Schema

MOST, LONGEST = 50_000, 8_192
"""Links that are kept, and characters of what was asked: beyond, a link lasts as long as the server."""
_TABLE = "CREATE TABLE IF NOT EXISTS links (id TEXT PRIMARY KEY, analyst TEXT, key TEXT UNIQUE, terms TEXT)"


class Link(NamedTuple):
    """The hash of the key under which something was paid for, and what it was, as JSON."""

    key: str
    terms: str


def file_of(schema: Schema) -> Path:
    """Beside the ledger. Raises InvalidSchema."""
    file = access_file(schema)
    return file.with_name(file.name.removesuffix(".access") + ".links")


class Links:
    """One file of links, used by threads in turn."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        with suppress(OSError, sqlite3.Error):
            self._connection = _opened(file)

    def keep(self, name: str, analyst: str, link: Link) -> None:
        """Remember what was paid for, whose it is, and its id."""
        row = (name, analyst, link.key, link.terms)
        with self._lock, suppress(sqlite3.Error):
            if self._connection is not None and len(link.terms) <= LONGEST:
                with self._connection as writing:
                    writing.execute("INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?)", row)
                    writing.execute("DELETE FROM links WHERE rowid <= (SELECT MAX(rowid) FROM links) - ?", (MOST,))

    def find(self, analyst: str, name: str) -> Link | None:
        """That of an analyst by its id; another's is as if it were not there."""
        rows = self._rows("SELECT key, terms FROM links WHERE id = ? AND analyst = ?", name, analyst)
        return Link(*rows[0]) if rows else None

    def name(self, key: str) -> str:
        """The id of what was asked under a key; "" where it is not known."""
        rows = self._rows("SELECT id, '' FROM links WHERE key = ?", key)
        return rows[0][0] if rows else ""

    def of(self, analyst: str) -> dict[str, str]:
        """The ids of all that an analyst has asked, by keys."""
        return dict(self._rows("SELECT key, id FROM links WHERE analyst = ?", analyst))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _rows(self, sql: str, *values: str) -> list[tuple[str, str]]:
        with self._lock, suppress(sqlite3.Error):
            if self._connection is not None:
                return [(str(first), str(second)) for first, second in self._connection.execute(sql, values)]
        return []


def _opened(file: Path) -> sqlite3.Connection:
    """0600, and anew where it is not what is written here. Raises OSError, sqlite3.Error."""
    for again in (True, False):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
        file.chmod(0o600)
        connection = sqlite3.connect(file, check_same_thread=False)
        try:
            # what is lost with the machine's power is a link, and no answer waits for the disk because of one
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(
                "PRAGMA journal_mode = PERSIST"
            )  # the folder is not changed while a ledger is synced in it
            connection.execute(_TABLE)
            connection.execute("SELECT id, analyst, key, terms FROM links LIMIT 1").fetchall()
        except sqlite3.DatabaseError:
            connection.close()
            if not again:
                raise
            file.unlink()
        else:
            return connection
    raise AssertionError("one of the two has returned")
