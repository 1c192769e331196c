"""The command line: run statements one after the other, or open a prompt."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

from dpsql.answer.result import Result
from dpsql.errors import BudgetExceeded, DPSQLError, InvalidArgument
from dpsql.shell.arguments import parse
from dpsql.shell.asker import Asker
from dpsql.shell.opening import open_session
from dpsql.shell.prompt import Prompt
from dpsql.shell.show import error_text
from dpsql.shell.statements import statements
from dpsql.shell.streams import OutputFailed, finish_output, let_go_of_output, ready_output, say, text_of
from dpsql.version import __version__

_EPSILON_HINT = "Here: --epsilon 1 on the command line, for each query."


class Exit(IntEnum):
    """What the process tells its caller."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    BUDGET = 3
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def main(argv: Sequence[str] | None = None) -> int:
    """The `dpsql` command; `argv` without the program's name. Returns the exit code."""
    try:
        ready_output()
        code = _run(argv)
        finish_output()
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        let_go_of_output()
        code = Exit.PIPE_CLOSED
    except OutputFailed as failure:
        with contextlib.suppress(OutputFailed, BrokenPipeError):
            say(str(failure), sys.stderr)
        let_go_of_output()
        code = Exit.USAGE
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = parse(argv, __version__)
        opening = arguments.opening
        asked = _asked(arguments.inputs)
        session, notes = open_session(opening)
    except SystemExit:  # --help or --version: it is printed
        return Exit.OK
    except DPSQLError as error:
        say(error_text(error, _EPSILON_HINT), sys.stderr)
        return Exit.USAGE
    for note in notes:
        say(f"note: {note}", sys.stderr)
    if asked is None:
        return Prompt(Asker(session, arguments.epsilon, arguments.delta, arguments.rho), __version__).run()
    return run_batch(Asker(session, arguments.epsilon, None, arguments.rho), asked, fresh=arguments.fresh)


def run_batch(asker: Asker, asked: Sequence[str], *, fresh: bool = False) -> int:
    """Answer each statement in turn, up to the first error. fresh: draw anew what was answered before."""
    for number, sql in enumerate(asked, start=1):
        try:
            _show(asker, sql, fresh=fresh)
        except DPSQLError as error:
            say(error_text(error, _EPSILON_HINT), sys.stderr)
            if len(asked) > 1:
                say(f"Stopped at statement {number} of {len(asked)}.", sys.stderr)
            return Exit.BUDGET if isinstance(error, BudgetExceeded) else Exit.REFUSED
    return Exit.OK


def _show(asker: Asker, sql: str, *, fresh: bool) -> None:
    """The table to standard output, what it cost and what to be aware of to standard error."""
    answer = asker.ask(sql, fresh=fresh)
    table, below = (answer.table_text(), "\n".join(answer.notes)) if isinstance(answer, Result) else (str(answer), "")
    say(table)
    if below:
        say(below, sys.stderr)


def _asked(inputs: Sequence[str | Path]) -> list[str] | None:
    """The statements of all inputs, standard input where there are none; None if that is a person at a terminal."""
    if not inputs and sys.stdin is not None and sys.stdin.isatty():
        return None
    texts = [text_of(each) for each in inputs or [Path("-")]]
    asked = [statement for text in texts for statement in statements(text)]
    if not asked:
        raise InvalidArgument("there is no statement to run.", hint="Give it as -c SQL, -f FILE or on standard input.")
    return asked
