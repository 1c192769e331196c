"""A plain prompt: statements up to a semicolon, commands that begin with a dot."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from functools import partial

from dpsql.errors import DPSQLError
from dpsql.shell.asker import Asker
from dpsql.shell.commands import Quit, command_of, run_command
from dpsql.shell.describe import banner
from dpsql.shell.show import error_text
from dpsql.shell.statements import split
from dpsql.shell.streams import say

FIRST = "dpsql> "
MORE = "   ...> "
_EPSILON_HINT = "Here: .epsilon 1 sets it for each query."


class Prompt:
    """Reads lines, answers statements, runs commands, until .quit or the end of input.

    `read` shows a prompt and gives one line; it raises EOFError at the end and KeyboardInterrupt to drop what was
    typed. An error is shown and does not end the prompt.
    """

    def __init__(self, asker: Asker, version: str, read: Callable[[str], str] = input) -> None:
        self._asker = asker
        self._version = version
        self._read = read
        self._typed = ""

    def run(self) -> int:
        """Until the end; returns the exit code 0."""
        with contextlib.suppress(ImportError):
            importlib.import_module("readline")  # gives input() line editing and a history, in memory
        say(banner(self._asker.session, self._version))
        while True:
            try:
                self._take(self._read(MORE if self._typed else FIRST))
            except Quit:
                return 0
            except EOFError:
                say("")
                return 0
            except KeyboardInterrupt:
                self._typed = ""
                say("")
            except UnicodeDecodeError:
                say("That line is not text in UTF-8.", sys.stderr)

    def _take(self, line: str) -> None:
        """One line: a command, or more of a statement."""
        command = None if self._typed else command_of(line)
        if command is not None:
            self._show(partial(run_command, self._asker, *command))
            return
        found = split(f"{self._typed}\n{line}" if self._typed else line)
        self._typed = found.rest
        for sql in found.finished:
            if not self._show(partial(self._answer, sql)):
                self._typed = ""  # what follows an error on the same line was meant to follow an answer
                return

    def _answer(self, sql: str) -> str:
        return str(self._asker.ask(sql))

    def _show(self, ask: Callable[[], str]) -> bool:
        """Print what is asked for, or the error; whether there was none."""
        try:
            say(ask())
        except DPSQLError as error:
            say(error_text(error, _EPSILON_HINT), sys.stderr)
            return False
        return True
