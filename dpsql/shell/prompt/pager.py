"""Paging of long answers at a terminal."""

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
    """Shows a text, with a pager if it exceeds the terminal: DPSQL_PAGER, PAGER, or less. An empty variable disables
    it."""

    on: bool = True

    def show(self, table: str, below: str = "") -> None:
        """Show a table and the lines below it on standard output. Only the width of the table matters: other lines may
        be folded."""
        text = f"{table}\n{below}" if below else table
        words = self._command() if self.on and sys.stdout.isatty() and not _fits(table, text) else []
        if not words:
            say(text)
            return
        try:
            # Leaving the pager early is no error; Ctrl-C belongs to the pager while it runs.
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
