"""The stores of a ledger's lines: here in memory, in `file` on disk."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import DPSQLError

RESTORE = (
    "Keep the file as it is, and ask who could write to it. With a copy that is newer than the last answer, put that\n"
    "in its place; else open a new ledger with what is surely left of the budget."
)
LATER = "A later version of dpsql wrote it: use that version. The file is as it was."

UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError, DPSQLError)
"""Errors that reading an edited text may raise."""


Lines = Generator[tuple[int, str, str], None, None]
"""Lines as a store yields them: number, text, hash."""


class Store(Protocol):
    """A store of a ledger's lines, in order: (number from 1, text, hash). All methods raise LedgerError."""

    def begin(self) -> None:
        """Lock out other writers; later writes count only after `commit`."""

    def since(self, number: int) -> Lines:
        """Yield the lines from that number on; close the generator unless all are read."""

    def append(self, number: int, text: str, digest: str) -> None:
        """Write a line."""

    def keep(self, number: int, payload: bytes) -> None:
        """Write the answer of the line of this number."""

    def payload(self, number: int) -> bytes | None:
        """Return the answer kept with that line."""

    def secret(self) -> bytes:
        """Return 32 random bytes, the same for the life of the store; in no line, and shown nowhere."""

    def commit(self) -> None:
        """Make the writes durable, and let others in."""

    def abandon(self) -> None:
        """Discard the writes since `begin`, and let others in."""

    def close(self) -> None:
        """Close files."""


class MemoryStore:
    """Lines in a list, for one process."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, str, str]] = []
        self._payloads: dict[int, bytes] = {}
        self._committed = 0
        self._secret = fresh_key()

    def begin(self) -> None:
        self._committed = len(self._lines)

    def since(self, number: int) -> Lines:
        yield from self._lines[max(0, number - 1) :]

    def append(self, number: int, text: str, digest: str) -> None:
        self._lines.append((number, text, digest))

    def keep(self, number: int, payload: bytes) -> None:
        self._payloads[number] = payload

    def payload(self, number: int) -> bytes | None:
        return self._payloads.get(number)

    def secret(self) -> bytes:
        return self._secret

    def commit(self) -> None:
        self._committed = len(self._lines)

    def abandon(self) -> None:
        for number, _, _ in self._lines[self._committed :]:
            self._payloads.pop(number, None)
        del self._lines[self._committed :]

    def close(self) -> None:
        pass
