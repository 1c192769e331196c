"""The book of a ledger: lines in a store, in one chain, written and read in turn by any number of threads and, with a
file, of processes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import NoReturn

from dpsql.core.ledger import clock
from dpsql.core.ledger import text as ledger_text
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.fork import guard
from dpsql.core.ledger.lines import FORMAT, Answer, FormatChange, Line, Note, write, write_1
from dpsql.core.ledger.reading import read_line
from dpsql.core.ledger.state import LastLine, State
from dpsql.core.ledger.store import RESTORE, MemoryStore, Store
from dpsql.core.ledger.text import Rules
from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import LedgerError


class Book:
    """The lines of one ledger, and the state that they describe.

    A book cannot be copied, pickled or used in a forked child: two in memory could each spend the whole budget, and a
    file's locks do not survive a fork. Raises LedgerError if the store's lines are not those that were written.
    """

    _still = 0

    def __init__(
        self,
        rules: Rules,
        store: Store | None = None,
        *,
        analyst: str | None = None,
        owner: bool = False,
        within: Budget | None = None,
    ) -> None:
        self.rules = rules
        self.analyst = analyst
        self._store = MemoryStore() if store is None else store
        self._state = State(rules, analyst=analyst, owner=owner, within=within)
        self._next = self._state.last  # in a transaction: the last line that it has written
        self._lock = threading.RLock()
        self._process = os.getpid()
        guard(self, self._lock)
        with self._current():
            pass

    def close(self) -> None:
        """Close the file; the ledger cannot be used any more. No effect in a forked child: the parent owns it."""
        if os.getpid() == self._process:
            with self._lock:
                self._store.close()

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Read the lines of other processes first. Raises LedgerError."""
        self.check_process()
        with self._lock:
            if not self._still:
                self._catch_up()
            yield

    @contextmanager
    def at_one_moment(self) -> Iterator[None]:
        """Answer all reads inside as of one moment, looking for new lines only once. Charges and answers written inside
        are visible as usual. Do not wait for a claim inside."""
        with self._current():
            self._still += 1
            try:
                yield
            finally:
                self._still -= 1

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Run one transaction: the line appended inside is durable afterwards or, if anything fails, not there."""
        self.check_process()
        with self._lock:
            with self._transaction():
                yield
            self._read_back()

    def _read_back(self) -> None:
        """Check that the written lines are there."""
        self._catch_up()
        if self._state.last.number < self._next.number:
            raise LedgerError("the ledger lost an entry that was just written.", hint=RESTORE)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the store's transaction, after reading all lines written by others."""
        try:
            self._store.begin()
            self._catch_up()
            self._next = self._state.last
            yield
            self._store.commit()
        except BaseException:
            self._store.abandon()
            raise

    def _append(self, line: Line) -> int:
        """Write a line after the last one. The first line of format 2 in a ledger of format 1 is preceded by a
        FormatChange; a note is also valid in format 1."""
        before = self._next
        old = before.format < FORMAT and isinstance(line, Note)
        if before.format < FORMAT and not isinstance(line, Note | FormatChange):
            self._append(FormatChange(line.time, FORMAT))
            before = self._next
        number, text = before.number + 1, write_1(line) if old else write(line, fresh_key().hex())
        digest = ledger_text.next_hash(before.hash, number, text)
        self._store.append(number, text, digest)
        self._next = LastLine(number, digest, before.format if old else FORMAT)
        return number

    def _catch_up(self) -> None:
        """Read the lines written since, and check that the last line read before is unchanged."""
        last = self._state.last
        with closing(self._store.since(last.number)) as lines:
            if last.number:
                number, _, digest = next(lines, (0, "", ""))
                if (number, digest) != (last.number, last.hash):
                    raise LedgerError("the ledger was rolled back or edited while it was in use.", hint=RESTORE)
            self._state.read(lines)

    def _now(self) -> str:
        """Return the time of a new line. Raises LedgerError if the clock went backwards."""
        return clock.next_time(self._state.time)

    def check_process(self) -> None:
        """Raise LedgerError in a forked child."""
        if os.getpid() != self._process:
            raise LedgerError(
                "this session was forked: parent and child would each spend the whole budget.",
                hint="Open a session of its own in each process, on one ledger file or with a budget of its own.",
            )

    def __copy__(self) -> NoReturn:
        raise LedgerError("a ledger cannot be copied: each copy could spend the whole budget.")

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a ledger cannot be pickled: each copy could spend the whole budget.")

    def recall(self, key: str) -> bytes | None:
        """Return the last answer kept under a key, None if there is none. Raises LedgerError if it was changed."""
        with self._current():
            return self._payload(*self._state.answers.get(key, (0, "")))

    def recall_paid(self, charge: int, slot: int = 0) -> bytes | None:
        """Return the answer that a charge paid for, None if there is none. Raises LedgerError if it was changed."""
        with self._current():
            return self._payload(*self._state.paid.get((charge, slot), (0, "")))

    def answer_line(self, key: str) -> int:
        """Return the line of the last answer kept under a key, 0 if there is none."""
        with self._current():
            return self._state.answers.get(key, (0, ""))[0]

    def recall_line(self, number: int) -> bytes | None:
        """Return the answer kept with that line, None if there is none. Raises LedgerError if it was changed."""
        with self._current(), closing(self._store.since(number)) as lines:
            place, text, _ = next(lines, (0, "", ""))
            line = read_line(text) if place == number else None
            return self._payload(number, line.digest) if isinstance(line, Answer) else None

    def _payload(self, number: int, digest: str) -> bytes | None:
        """Return the answer kept with that line; None for line 0. Raises LedgerError."""
        payload = self._store.payload(number) if number else None
        if number and (payload is None or ledger_text.digest_of(payload) != digest):
            raise LedgerError("an answer that the ledger keeps was changed after it was given.", hint=RESTORE)
        return payload
