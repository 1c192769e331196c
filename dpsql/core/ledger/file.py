"""A ledger in one SQLite file: locked by transactions, durable at each commit, created atomically.

A rollback journal with synchronous=EXTRA: when a commit returns, the entry and the removal of the journal are on disk,
and a crash at any moment leaves either all of a transaction or nothing (https://www.sqlite.org/atomiccommit.html). So
an entry that a query waited for is never lost; one that was not waited for may be there and counts as spent.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from dpsql.core.ledger.anchor import check_form
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.errors import PATIENCE, read_only, told
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.lines import FORMAT, BudgetRenewal, read
from dpsql.core.ledger.store import RESTORE, UNREADABLE, Lines
from dpsql.core.ledger.text import Rules
from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, LedgerError

_TABLES = (
    "CREATE TABLE rules (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL)",
    "CREATE TABLE lines (number INTEGER PRIMARY KEY, text TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE answers (number INTEGER PRIMARY KEY, payload BLOB NOT NULL)",
)
_SECRET = "CREATE TABLE secret (one INTEGER PRIMARY KEY CHECK (one = 1), key BLOB NOT NULL)"
"""Created on first use. Separate from the lines, so that an export of lines does not contain it."""


def open_ledger(
    path: str | os.PathLike[str],
    rules: Rules | None = None,
    *,
    analyst: str | None = None,
    anchor: str | None = None,
    owner: bool = False,
    within: Budget | None = None,
) -> Ledger:
    """Return the ledger in this file; create it under these rules if there is none.

    rules: None takes those of the file. anchor: an earlier `Ledger.anchor`, whose line must still be there. within: a
    smaller budget for charges through this ledger. owner: a reader of the whole, perhaps without the right to write.
    All lines are read and their hashes checked. Raises LedgerError (a file that is damaged, was edited, has other
    rules, or cannot be written), InvalidPrivacyParameter (no rules and no file).
    """
    file = _file_of(path)
    if anchor is not None:
        check_form(anchor)
    with told(file):
        if not file.exists():
            if rules is None:
                raise InvalidPrivacyParameter(
                    f"there is no ledger {file} yet, so a budget is needed.",
                    hint="Write Session(tables, budget=dpsql.Budget(epsilon=3, delta=1e-6), ledger=...).",
                )
            if anchor is not None:
                raise LedgerError(
                    f"there is no ledger {file}, and there was one when the anchor was taken.", hint=RESTORE
                )
            _create(file, rules)
        store = FileStore(file)
    try:
        if not owner:
            _check_writable(file)
        held = store.rules
        _check_rules(file, store.current, rules)
        ledger = Ledger(held, store, analyst=analyst, owner=owner, within=within)
        _check_rules(file, replace(held, budget=ledger.budget), rules)  # from lines with checked hashes
        if anchor is not None:
            ledger.check_anchor(anchor)
    except BaseException:
        store.close()
        raise
    return ledger


def _check_rules(file: Path, own: Rules, asked: Rules | None) -> None:
    if asked is not None and asked != own:
        raise LedgerError(
            f"the ledger {file} was opened with other rules.\nIt has:  {own}\nAsked for: {asked}",
            hint="Leave the budget out to take the ledger's own, or name another file. All sessions on one file share\n"
            "one budget, accountant and neighbour relation.",
        )


def rules_of(path: str | os.PathLike[str]) -> Rules | None:
    """Return the rules of the ledger in this file, with the latest total; None if there is no file. Does not check
    hashes. Raises LedgerError."""
    file = _file_of(path)
    with told(file):
        if not file.exists():
            return None
        store = FileStore(file)
    try:
        return store.current
    finally:
        store.close()


def copied(source: Path, target: Path) -> None:
    """Copy a ledger's file, as of one moment, into an empty file by SQLite's online backup. Raises LedgerError."""
    with told(source), closing(FileStore(source)) as store, closing(_connect(target, "rw")) as copy:
        store.copy_to(copy)


class FileStore:
    """The lines of a ledger in an existing SQLite file. Raises LedgerError."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._identity = _identity(file)
        with told(file):
            self._connection = _connect(file, "rw")
        try:
            with told(file):
                self._check()
                _keep_one_file(self._connection, file)
        except BaseException:
            self._connection.close()
            raise

    @property
    def rules(self) -> Rules:
        with told(self._file):
            rows = self._connection.execute("SELECT text FROM rules").fetchall()
        try:
            ((text,),) = rows
            return Rules.read(text)
        except UNREADABLE:
            raise LedgerError(
                f"the rules of the ledger {self._file} cannot be read.",
                hint="They were edited, or written by a later version of dpsql (this one reads formats 1 to "
                f"{FORMAT}).\n{RESTORE}",
            ) from None

    @property
    def current(self) -> Rules:
        """The rules with the latest total."""
        rules = self.rules
        with told(self._file):
            newest = 'SELECT text FROM lines WHERE text LIKE \'{"kind":"renewed",%\' ORDER BY number DESC LIMIT 1'
            row = self._connection.execute(newest).fetchone()
        try:
            line = None if row is None else read(row[0])
            if isinstance(line, BudgetRenewal):
                return replace(rules, budget=rules.budget.renewed(line.epsilon, line.delta))
        except UNREADABLE:
            pass  # reported when all lines are read
        return rules

    def begin(self) -> None:
        with told(self._file):
            self._connection.execute("BEGIN IMMEDIATE")
            if self._connection.execute("PRAGMA journal_mode").fetchone() != ("delete",):
                raise LedgerError(
                    f"another program has changed how the ledger {self._file} is written.",
                    hint="Close the other program and this session, and open a new one.",
                )
            self._check_tables()
            if _identity(self._file) != self._identity:
                raise LedgerError(
                    f"the ledger {self._file} was moved away or replaced while it was in use.", hint=RESTORE
                )

    def since(self, number: int) -> Lines:
        with told(self._file):
            cursor = self._connection.execute(
                "SELECT number, text, hash FROM lines WHERE number >= ? ORDER BY number", (number,)
            )
            with closing(cursor):
                yield from cursor  # one statement, so one state of the file

    def append(self, number: int, text: str, digest: str) -> None:
        with told(self._file):
            self._insert("INSERT INTO lines VALUES (?, ?, ?)", (number, text, digest))

    def keep(self, number: int, payload: bytes) -> None:
        with told(self._file):
            self._insert("INSERT INTO answers VALUES (?, ?)", (number, payload))

    def _insert(self, sql: str, row: tuple[object, ...]) -> None:
        if self._connection.execute(sql, row).rowcount != 1:
            raise LedgerError(f"the ledger {self._file} did not take an entry.", hint=RESTORE)

    def payload(self, number: int) -> bytes | None:
        with told(self._file):
            row = self._connection.execute("SELECT payload FROM answers WHERE number = ?", (number,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], bytes) else None

    def secret(self) -> bytes:
        self.begin()
        try:
            with told(self._file):
                if self._tables() == list(_TABLES):
                    self._connection.execute(_SECRET)
                    self._insert("INSERT INTO secret VALUES (1, ?)", (fresh_key(),))
                rows = self._connection.execute("SELECT key FROM secret").fetchall()
            self.commit()
        except BaseException:
            self.abandon()
            raise
        if len(rows) != 1 or not isinstance(rows[0][0], bytes) or len(rows[0][0]) != len(fresh_key()):
            raise LedgerError(f"the secret of the ledger {self._file} cannot be read.", hint=RESTORE)
        return bytes(rows[0][0])

    def copy_to(self, connection: sqlite3.Connection) -> None:
        """Copy the whole file, as of one moment."""
        with told(self._file):
            self._connection.backup(connection)

    def commit(self) -> None:
        with told(self._file):
            self._connection.execute("COMMIT")

    def abandon(self) -> None:
        with suppress(
            sqlite3.Error
        ):  # SQLite may have rolled back already; what is left rolls back at the next opening
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()

    def _check(self) -> None:
        """Raise LedgerError if the file is damaged or is not a ledger."""
        self._check_tables()
        damage = self._connection.execute("PRAGMA integrity_check(1)").fetchall()
        if damage != [("ok",)]:
            raise LedgerError(f"the ledger {self._file} is damaged.", hint=RESTORE)

    def _check_tables(self) -> None:
        """Raise LedgerError if the tables are not a ledger's, or if triggers could discard written lines."""
        if self._tables() not in (list(_TABLES), [*_TABLES, _SECRET]):
            raise LedgerError(
                f"{self._file} is not a ledger of dpsql.", hint="Name another file, or one that does not exist yet."
            )

    def _tables(self) -> list[object]:
        return [sql for (sql,) in self._connection.execute("SELECT sql FROM sqlite_master ORDER BY rowid").fetchall()]


def _file_of(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidArgument(f"ledger must be the path of a file, got {text!r}.")
    return Path(os.path.realpath(text))


def _connect(file: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(os.fsencode(file))}?mode={mode}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,  # transactions are begun and ended here, by name
        check_same_thread=False,  # the ledger's own lock lets in one thread at a time
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("PRAGMA synchronous = EXTRA")
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_one_file(connection: sqlite3.Connection, file: Path) -> None:
    """Use a rollback journal, which is deleted after each commit."""
    if connection.execute("PRAGMA journal_mode = DELETE").fetchone() != ("delete",):
        raise LedgerError(f"the ledger {file} cannot have a rollback journal.", hint="Close other programs on it.")


def _create(file: Path, rules: Rules) -> None:
    """Create the file under a draft name and link it to its own when complete, unless another process was first."""
    draft = file.with_name(f".{file.name}.{fresh_key().hex()[:16]}")
    try:
        connection = _connect(draft, "rwc")
        try:
            _keep_one_file(connection, file)
            connection.execute("BEGIN IMMEDIATE")
            for table in _TABLES:
                connection.execute(table)
            connection.execute("INSERT INTO rules VALUES (1, ?)", (rules.text,))
            connection.execute("COMMIT")
        finally:
            connection.close()
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
        draft.with_name(f"{draft.name}-journal").unlink(missing_ok=True)
    _sync_folder(file.parent)


def _check_writable(file: Path) -> None:
    """Raise LedgerError early if nothing could be charged, before a query is planned. Temporary obstacles, such as
    another process that writes, are handled at the charge."""
    effective = os.access in os.supports_effective_ids
    if not all(os.access(each, os.W_OK, effective_ids=effective) for each in (file, file.parent)):
        raise read_only(file)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, if the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
