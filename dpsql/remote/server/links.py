"""Links to paid answers by id, which survive restarts of the server.

The ledger knows keys and answers, but not the text and parameters of queries or their ids. A separate file beside it,
readable only by its owner, has them. It is a convenience: no charge depends on it, a link that cannot be stored or read
is missing, and each link is checked against the ledger before it is followed.
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
"""Links that are kept, and characters of a query: beyond, a link lasts as long as the server."""
_TABLE = "CREATE TABLE IF NOT EXISTS links (id TEXT PRIMARY KEY, analyst TEXT, key TEXT UNIQUE, terms TEXT)"


class Link(NamedTuple):
    """The hash of the key under which a query was paid for, and the query as JSON."""

    key: str
    terms: str


def file_of(schema: Schema) -> Path:
    """Return the path beside the ledger. Raises InvalidSchema."""
    file = access_file(schema)
    return file.with_name(file.name.removesuffix(".access") + ".links")


class Links:
    """A file of links, shared by threads under a lock."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        with suppress(OSError, sqlite3.Error):
            self._connection = _opened(file)

    def keep(self, name: str, analyst: str, link: Link) -> None:
        """Store a paid query with its analyst and id."""
        row = (name, analyst, link.key, link.terms)
        with self._lock, suppress(sqlite3.Error):
            if self._connection is not None and len(link.terms) <= LONGEST:
                with self._connection as writing:
                    writing.execute("INSERT OR IGNORE INTO links VALUES (?, ?, ?, ?)", row)
                    writing.execute("DELETE FROM links WHERE rowid <= (SELECT MAX(rowid) FROM links) - ?", (MOST,))

    def find(self, analyst: str, name: str) -> Link | None:
        """Return an analyst's link by its id; links of other analysts are not found."""
        rows = self._rows("SELECT key, terms FROM links WHERE id = ? AND analyst = ?", name, analyst)
        return Link(*rows[0]) if rows else None

    def name(self, key: str) -> str:
        """Return the id of the query under a key; "" if unknown."""
        rows = self._rows("SELECT id, '' FROM links WHERE key = ?", key)
        return rows[0][0] if rows else ""

    def of(self, analyst: str) -> dict[str, str]:
        """Return the ids of all queries of an analyst, by key."""
        return dict(self._rows("SELECT key, id FROM links WHERE analyst = ?", analyst))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _rows(self, sql: str, *values: str) -> list[tuple[str, str]]:
        with self._lock, suppress(sqlite3.Error):
            if self._connection is not None:
                return [(str(first), str(second)) for first, second in self._connection.execute(sql, values)]
        return []


def _opened(file: Path) -> sqlite3.Connection:
    """Open the file with mode 0600; replace one of another format. Raises OSError, sqlite3.Error."""
    for again in (True, False):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
        file.chmod(0o600)
        connection = sqlite3.connect(file, check_same_thread=False)
        try:
            # a power failure may lose a link, and answers need not wait for the disk
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(
                "PRAGMA journal_mode = PERSIST"
            )  # the folder is not changed while the ledger in it is synced
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
