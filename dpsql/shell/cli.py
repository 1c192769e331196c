"""Entry point of the command line: a subcommand, or statements and a prompt."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from dpsql.errors import DPSQLError
from dpsql.shell.exits import Exit, tell
from dpsql.shell.output.streams import OutputFailed, finish_output, let_go_of_output, ready_output, say
from dpsql.shell.owner.words import run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the `dpsql` command; `argv` without the program's name. Returns the exit code."""
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
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        code = run_command(argv)
        if code is not None:
            return code
        from dpsql.shell import batch  # loads the engine, which most subcommands do not need

        return batch.run(argv)
    except SystemExit:  # --help or --version was printed
        return Exit.OK
    except DPSQLError as error:
        tell(error)
        return Exit.USAGE
