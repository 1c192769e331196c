"""The command line: run statements one after the other, or open a prompt."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path

from dpsql.errors import BudgetExceeded, DPSQLError, InvalidArgument
from dpsql.result import Result
from dpsql.shell.arguments import parse
from dpsql.shell.asker import Asker
from dpsql.shell.opening import open_session
from dpsql.shell.prompt import Prompt
from dpsql.shell.show import error_text, parts_of
from dpsql.shell.statements import statements
from dpsql.shell.streams import let_go_of_output, ready_output, text_of

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
    """The `dpsql` command; `argv` without the program's name. Returns the exit code and raises nothing."""
    try:
        ready_output()
        code = _run(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        code = Exit.INTERRUPTED
    except BrokenPipeError:
        let_go_of_output()
        code = Exit.PIPE_CLOSED
    except OSError as error:  # files are read with care, so this is the output: a disk is full
        let_go_of_output()
        with contextlib.suppress(OSError):
            print(f"The output cannot be written: {error.strerror}.", file=sys.stderr)
        code = Exit.USAGE
    return code


def _run(argv: Sequence[str] | None) -> int:
    try:
        said = parse(argv, version())
        opening = said.opening
        asked = _asked(said.inputs)
        session, notes = open_session(opening)
    except SystemExit:  # --help or --version: it is printed
        return Exit.OK
    except DPSQLError as error:
        print(error_text(error, _EPSILON_HINT), file=sys.stderr)
        return Exit.USAGE
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if asked is None:
        return Prompt(Asker(session, said.epsilon, said.delta), version()).run()
    return run_batch(Asker(session), asked)


def version() -> str:
    """The package's version."""
    return str(sys.modules["dpsql"].__version__)


def run_batch(asker: Asker, asked: Sequence[str]) -> int:
    """Answer each statement in turn, up to the first error."""
    for number, sql in enumerate(asked, start=1):
        try:
            _show(asker, sql)
        except DPSQLError as error:
            print(error_text(error, _EPSILON_HINT), file=sys.stderr)
            if len(asked) > 1:
                print(f"Stopped at statement {number} of {len(asked)}.", file=sys.stderr)
            return Exit.BUDGET if isinstance(error, BudgetExceeded) else Exit.REFUSED
    return Exit.OK


def _show(asker: Asker, sql: str) -> None:
    """The answer to standard output, at once: a reader who is gone must stop the spending."""
    answer = asker.ask(sql)
    table, below = parts_of(answer) if isinstance(answer, Result) else (str(answer), "")
    print(table, flush=True)
    if below:
        print(below, file=sys.stderr, flush=True)


def _asked(inputs: Sequence[str | Path]) -> list[str] | None:
    """The statements of all inputs, standard input where there are none; None if that is a person at a terminal."""
    if not inputs and sys.stdin is not None and sys.stdin.isatty():
        return None
    texts = [text_of(each) for each in inputs or [Path("-")]]
    asked = [statement for text in texts for statement in statements(text)]
    if not asked:
        raise InvalidArgument("there is no statement to run.", hint="Give it as -c SQL, -f FILE or on standard input.")
    return asked
