"""The interactive prompt, with line editing if available."""

from __future__ import annotations

import os
import sys
from typing import Protocol

from dpsql.core.loss import show
from dpsql.remote.client import RemoteSession
from dpsql.session.session import Session
from dpsql.shell.output.describe import banner, tables_of
from dpsql.shell.output.folding import folded
from dpsql.shell.output.streams import say
from dpsql.shell.prompt.command import Quit
from dpsql.shell.prompt.commands import COMMANDS
from dpsql.shell.prompt.completion import Completer
from dpsql.shell.prompt.dialogue import Dialogue
from dpsql.shell.prompt.history import History
from dpsql.shell.prompt.plain_reader import PlainReader
from dpsql.shell.shell import Shell
from dpsql.shell.statements import open_quote

FIRST = "dpsql> "
MORE = "   ...> "


class Reader(Protocol):
    """Shows a sign and returns one or several lines; raises EOFError at the end, and KeyboardInterrupt to drop the
    typed text. Remembers whole statements."""

    def read(self, sign: str) -> str: ...

    def remember(self, statement: str) -> None: ...


class Prompt:
    """Reads and processes lines, until .quit or the end of input."""

    def __init__(self, shell: Shell, version: str, reader: Reader | None = None) -> None:
        self._shell = shell
        self._version = version
        self._dialogue = Dialogue(shell)
        self._reader = reader_for(shell, self._dialogue) if reader is None else reader

    def run(self) -> int:
        """Run until the end; returns the exit code 0."""
        say(folded(banner(self._shell.asker.session, self._version, self._shell.unpaid), sys.stdout))
        typed: list[str] = []
        while True:
            try:
                text = self._reader.read(sign_of(self._dialogue.typed))
                typed.append(text)
                self._dialogue.take(text)
            except (Quit, EOFError) as end:
                if isinstance(end, EOFError):
                    say("")
                break
            except KeyboardInterrupt:
                self._dialogue.forget()
                say("")
            except UnicodeDecodeError:
                say("That line is not text in UTF-8.", sys.stderr)
            if not self._dialogue.typed:
                self._reader.remember("\n".join(typed))
                typed = []
        self._shell.close()
        return 0


def reader_for(shell: Shell, dialogue: Dialogue) -> Reader:
    """Return prompt_toolkit's reader if it is installed and the terminal is capable, else a plain one."""
    history = History.of_user()
    if history.note:
        say(f"note: {history.note}", sys.stderr)
    session = shell.asker.session
    words = Completer(tables_of(session), COMMANDS)
    if sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb"):
        try:
            from dpsql.shell.prompt.terminal import Terminal
        except ImportError:
            return PlainReader(history, words)
        return Terminal(history, words, dialogue.is_whole, sign_of, lambda: toolbar(session, shell.mode, shell.unpaid))
    return PlainReader(history, words)


def sign_of(typed: str) -> str:
    """Return the sign before the next line, given the text so far; in an open quote with that quote."""
    if not typed:
        return FIRST
    opened = open_quote(typed)
    return f"{'...' + opened:>6}> " if opened else MORE


def toolbar(session: Session | RemoteSession, mode: str, unpaid: str) -> str:
    """Return the line below the prompt, with the remaining budget."""
    if unpaid:
        return f"{unpaid} · mode {mode} · .help"
    left, whole = session.remaining, session.budget.loss
    delta = f" · delta {show(left.delta)} left of {show(whole.delta)}" if whole.delta else ""
    return f"epsilon {show(left.epsilon)} left of {show(whole.epsilon)}{delta} · mode {mode} · .help"
