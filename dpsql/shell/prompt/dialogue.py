"""Lines from a user or a file: statements up to a semicolon, and commands that begin with a dot."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dpsql.errors import DPSQLError, InvalidArgument
from dpsql.session.advice import Place, error_text
from dpsql.shell.output.colours import alarming
from dpsql.shell.output.streams import FileFailed, say, text_of
from dpsql.shell.prompt.command import ReadFile
from dpsql.shell.prompt.commands import command_of, run_command
from dpsql.shell.shell import Shell
from dpsql.shell.statements import split

_DEEPEST = 8
LEAVES = (".quit", ".exit")


class Dialogue:
    """Takes lines, answers statements, runs commands. Errors are shown and do not end it.

    `typed` is the statement without semicolon so far. Raises Quit, KeyboardInterrupt, and BrokenPipeError.
    """

    def __init__(self, shell: Shell, depth: int = 0) -> None:
        self._shell = shell
        self._depth = depth
        self.typed = ""

    def take(self, text: str) -> bool:
        """Process lines of commands and of statements or parts of them. Returns whether there was no error; after one,
        the lines that were typed with it are dropped."""
        return all(self._line(line) for line in text.split("\n"))

    def finish(self) -> bool:
        """Process the end of a file: its last statement needs no semicolon."""
        rest, self.typed = self.typed, ""
        return not rest or self._show(partial(self._shell.answer, rest.rstrip()))

    def forget(self) -> None:
        """Drop the incomplete statement."""
        self.typed = ""

    def is_whole(self, text: str) -> bool:
        """Return whether the text is complete: a command, a text that ends its statements, or a word that leaves, on
        its own line, even within an open quote."""
        if not self.typed and command_of(text.split("\n", 1)[0]) is not None:
            return True
        return not split(text).rest or _leaves(text.rsplit("\n", 1)[-1])

    def _line(self, line: str) -> bool:
        if not self.typed or _leaves(line):
            command = command_of(line)
            if command is not None:
                return self._show(partial(self._command, *command))
        pieces = split(f"{self.typed}\n{line}" if self.typed else line)
        self.typed = pieces.rest
        for sql in pieces.finished:
            if not self._show(partial(self._shell.answer, sql)):
                self.typed = ""  # statements after an error on the same line may depend on its answer
                return False
        return True

    def _command(self, word: str, argument: str) -> None:
        try:
            text = run_command(self._shell, word, argument)
        except ReadFile as asked:
            self._read(asked.path)
            return
        if text:
            say(text)

    def _read(self, path: Path) -> None:
        """Run a file up to its first error. Raises InvalidArgument."""
        if self._depth >= _DEEPEST:
            raise InvalidArgument(f"{path} is read by a file that is read by a file, {_DEEPEST} times over.")
        inner = Dialogue(self._shell, self._depth + 1)
        for number, line in enumerate(text_of(path).split("\n"), start=1):
            if not inner.take(line):
                raise InvalidArgument(f"stopped at line {number} of {path}.")
        if not inner.finish():
            raise InvalidArgument(f"stopped at the end of {path}.")

    def _show(self, ask: Callable[[], None]) -> bool:
        """Run a function or show its error; return whether there was none."""
        try:
            ask()
        except DPSQLError as error:
            say(alarming(error_text(error, Place.PROMPT), sys.stderr), sys.stderr)
            return False
        except FileFailed as failure:
            say(alarming(f"FileFailed: {failure}", sys.stderr), sys.stderr)
            self._shell.write_to(None)
            return False
        return True


def _leaves(line: str) -> bool:
    return line.strip() in LEAVES
