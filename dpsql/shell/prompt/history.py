"""History of the prompt: whole statements, readable by their user only."""

from __future__ import annotations

import io
import json
import os
import stat
from pathlib import Path

VARIABLE = "DPSQL_HISTORY"
"""Environment variable with the path of the file; if empty, nothing is stored."""
MOST = 10_000


class History:
    """Statements in the order in which they were typed, in a file that others cannot read, or in none.

    A file with wider permissions is restricted when it is opened. `note`: why nothing is stored, "" if it is.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.note = ""
        self.statements: list[str] = []
        if path is None:
            return
        try:
            self.statements = self._load(path)
        except OSError as error:
            self.note = f"no history is kept: {path} cannot be written ({error.strerror}). {VARIABLE}= turns it off."
            self._path = None

    @classmethod
    def of_user(cls) -> History:
        """Open the file named in the environment, or the one in the user's state folder."""
        word = os.environ.get(VARIABLE)
        if word is not None:
            return cls(Path(word).expanduser() if word else None)
        home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        return cls(Path(home).expanduser() / "dpsql" / "history")

    def add(self, statement: str) -> None:
        """Store a statement, except for blank ones and immediate repetitions."""
        text = statement.strip()
        if not text or self.statements[-1:] == [text]:
            return
        self.statements.append(text)
        if self._path is None:
            return
        try:
            with _opened(self._path) as file:
                os.write(file.fileno(), f"{json.dumps(text)}\n".encode())  # one write: lines of two prompts do not mix
        except OSError:
            self._path = None

    @staticmethod
    def _load(path: Path) -> list[str]:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(path) as file:
            file.seek(0)
            lines = file.read().decode(errors="replace").split("\n")
        kept = [text for line in lines if (text := _read(line)) is not None]
        if len(kept) > 2 * MOST:
            new = path.with_name(f"{path.name}.{os.getpid()}")
            with _opened(new) as file:
                file.write("".join(f"{json.dumps(text)}\n" for text in kept[-MOST:]).encode())
            new.replace(path)
        return kept[-MOST:]


def _opened(path: Path) -> io.FileIO:
    """Open the file for appending, restricted to its user; symbolic links are refused."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
    file = io.FileIO(number, "r+")
    if stat.S_IMODE(os.fstat(number).st_mode) & 0o077:
        os.fchmod(number, 0o600)
    return file


def _read(line: str) -> str | None:
    """Return the statement of a line; None if the line was not written here."""
    try:
        text = json.loads(line)
    except ValueError:
        return None
    return text if isinstance(text, str) else None
