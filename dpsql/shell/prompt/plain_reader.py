"""Line-by-line prompt, with readline if available: for terminals and environments without prompt_toolkit."""

from __future__ import annotations

import contextlib
from typing import Any

from dpsql.shell.prompt.completion import Completer
from dpsql.shell.prompt.history import History

_ENDS = " \t\n,;()=<>*/+|:."


class PlainReader:
    """Reads lines, with history on the arrow keys and completion on Tab."""

    def __init__(self, history: History, words: Completer) -> None:
        self._history = history
        self._words = words
        self._readline: Any = None
        self._choices: list[str] = []
        with contextlib.suppress(ImportError):
            import readline

            self._readline = readline
            self._set_up(readline)

    def read(self, sign: str) -> str:
        """Read a line after the prompt `sign`. Raises EOFError and KeyboardInterrupt."""
        return input(sign)

    def remember(self, statement: str) -> None:
        """Add a whole statement to the history file and to the arrow keys."""
        self._history.add(statement)
        if self._readline is not None and statement.strip():
            self._readline.add_history(statement.strip())

    def _set_up(self, readline: Any) -> None:
        readline.set_auto_history(False)
        readline.clear_history()
        for statement in self._history.statements:
            readline.add_history(statement)
        readline.set_completer_delims(_ENDS)
        readline.set_completer(self._complete)
        edits = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if edits else "tab: complete")

    def _complete(self, text: str, state: int) -> str | None:
        """Return the choices for readline's current word, one at a time."""
        if state == 0:
            line = self._readline.get_line_buffer()
            before, after = line[: self._readline.get_endidx()], line[self._readline.get_endidx() :]
            found = self._words.candidates(before, after)
            self._choices = [each.text for each in found if each.length == len(text)]
        return self._choices[state] if state < len(self._choices) else None
