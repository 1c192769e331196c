"""Errors of SQLite or the system about a ledger's file, as LedgerErrors with a hint."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dpsql.core.ledger.store import RESTORE
from dpsql.errors import LedgerError

PATIENCE = 60.0
"""Seconds to wait for another process that writes."""

_Said = Callable[[Path], tuple[str, str]]
_REASONS: dict[str, _Said] = {
    "SQLITE_FULL": lambda file: (f"the disk of the ledger {file} is full", "Make room, then ask again."),
    "SQLITE_IOERR": lambda file: (
        f"the ledger {file} could not be read or written",
        "Look at the disk (is it full?) and at its file system, then ask again.",
    ),
    "SQLITE_READONLY": lambda file: (
        f"the ledger {file} cannot be written",
        "Its folder must be writable too, for the journal. Change the permissions or name another file.",
    ),
    "SQLITE_CANTOPEN": lambda file: (
        f"the ledger {file} cannot be opened",
        "Its folder must be there and be writable. Change the permissions or name another file.",
    ),
    "SQLITE_PERM": lambda file: (f"the ledger {file} cannot be opened", "Change the permissions or name another file."),
    "SQLITE_BUSY": lambda file: (
        f"another process has held the ledger {file} for {PATIENCE:.0f} seconds",
        "Wait, or see which program holds it.",
    ),
    "SQLITE_CORRUPT": lambda file: (f"the ledger {file} is damaged", RESTORE),
    "SQLITE_NOTADB": lambda file: (
        f"{file} is not a ledger of dpsql, or is damaged",
        f"Name another file, or one that does not exist yet.\n{RESTORE}",
    ),
}


def read_only(file: Path) -> LedgerError:
    """Return the error for a ledger that may be read but not written."""
    what, todo = _REASONS["SQLITE_READONLY"](file)
    return LedgerError(f"{what}. No answer was given.", hint=todo)


@contextmanager
def told(file: Path) -> Iterator[None]:
    """Raise errors of SQLite or the system about a file as a LedgerError."""
    try:
        yield
    except UnicodeDecodeError:
        raise LedgerError(f"the ledger {file} is damaged. No answer was given.", hint=RESTORE) from None
    except sqlite3.ProgrammingError as error:
        if "closed" not in str(error):
            raise
        raise LedgerError("this session is closed.", hint="Open a new one on the same ledger.") from None
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        kind = next((word for word in _REASONS if name.startswith(word)), None)
        if kind is None:
            what, todo = f"the ledger {file} failed ({error})", RESTORE
        else:
            what, todo = _REASONS[kind](file)
        raise LedgerError(f"{what}. No answer was given.", hint=todo) from None
    except OSError as error:
        raise LedgerError(
            f"the ledger {file} cannot be made ({error.strerror}). No answer was given.",
            hint="Its folder must be there and be writable. Name another file.",
        ) from None
