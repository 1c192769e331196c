"""Long answers at a terminal, a page at a time."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass

from dpsql.shell.output.streams import say


@dataclass
class Pager:
    """Shows a text, by a program where it is higher or wider than the terminal: DPSQL_PAGER, PAGER, or less. An empty
    variable turns it off."""

    on: bool = True

    def show(self, table: str, below: str = "") -> None:
        """A table, and the lines below it, to standard output. Only the table has to be looked at whole: other lines
        may be broken."""
        text = f"{table}\n{below}" if below else table
        words = self._command() if self.on and sys.stdout.isatty() and not _fits(table, text) else []
        if not words:
            say(text)
            return
        try:
            # What leaves the pager early is no error; Ctrl-C belongs to it while it runs.
            subprocess.run(words, input=f"{text}\n", text=True, encoding="utf-8", check=False)
        except (OSError, KeyboardInterrupt):
            say(text)

    @staticmethod
    def _command() -> list[str]:
        for name in ("DPSQL_PAGER", "PAGER"):
            if name in os.environ:
                words = shlex.split(os.environ[name])
                return words if words and shutil.which(words[0]) else []
        return ["less", "-SRFX"] if shutil.which("less") else []


def _fits(table: str, text: str) -> bool:
    size = shutil.get_terminal_size()
    return text.count("\n") + 2 < size.lines and max(map(len, table.split("\n"))) <= size.columns
