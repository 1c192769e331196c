"""Execution of a command line: its statements one after another, or a prompt."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dpsql.core.loss import as_epsilon
from dpsql.errors import BudgetExceeded, ConfirmationRequired, DPSQLError, InvalidArgument, did_you_mean
from dpsql.remote.client import RemoteSession, connect
from dpsql.session.parameter_values import parameter
from dpsql.session.session import Session
from dpsql.shell.arguments import Arguments, parse
from dpsql.shell.demo import DEMO, demo_arguments
from dpsql.shell.exits import Exit, tell
from dpsql.shell.output.modes import BOX, CSV, PARQUET
from dpsql.shell.output.progress import waiting
from dpsql.shell.output.streams import say, text_of
from dpsql.shell.prompt.asker import Asker
from dpsql.shell.prompt.commands import not_here
from dpsql.shell.prompt.consent import BATCH_HINT, PROMPT_HINT, Consent, asked_on_a_line
from dpsql.shell.prompt.prompt import Prompt
from dpsql.shell.session_setup import SessionSetup, open_session
from dpsql.shell.shell import MOST_ROWS, Shell
from dpsql.shell.statements import names_asked_for, statements
from dpsql.version import __version__


def run(argv: Sequence[str]) -> int:
    """Open the session and run statements or the prompt. Raises DPSQLError before the first one, SystemExit for
    --help."""
    arguments = demo_arguments(argv[1:]) if argv[:1] == [DEMO] else parse(argv, __version__)
    opening = arguments.opening if arguments.connect is None else None
    asked = asked_of(arguments.inputs)
    if opening is not None and asked is not None and arguments.dry_run:
        opening = replace(opening, look=True)  # nothing is paid: no ledger is created or needs to be writable
    session, notes, seconds = opened(arguments, opening)
    shell = shell_for(arguments, session, asked)
    for note in notes:
        say(f"note: {note}", sys.stderr)
    shell.loading = seconds
    with session if isinstance(session, RemoteSession) else contextlib.nullcontext():
        if asked is None:
            return Prompt(shell, __version__).run()
        return run_batch(shell, asked, fresh=arguments.fresh)


def opened(arguments: Arguments, opening: SessionSetup | None) -> tuple[Session | RemoteSession, list[str], float]:
    """Return the session, notes about it, and the seconds that loading took. Raises DPSQLError."""
    if opening is None:
        return connect(arguments.connect or "", token_file=arguments.token_file), [], 0.0
    with waiting("loading the tables") as loading:
        session, notes = open_session(opening)
    return session, notes, loading.seconds


def shell_for(arguments: Arguments, session: Session | RemoteSession, asked: Sequence[str] | None) -> Shell:
    """Return the shell configured by the command line. Raises InvalidArgument, before anything is paid for."""
    if arguments.error is not None:
        as_epsilon(arguments.error, "--error")
    if arguments.mechanism not in ("auto", "laplace", "gaussian"):
        raise InvalidArgument(f'no mechanism "{arguments.mechanism}".', hint="There are auto, laplace and gaussian.")
    params = dict(map(parameter, arguments.params))
    delta = arguments.delta if asked is None else None
    ask, hint = (asked_on_a_line(input), PROMPT_HINT) if asked is None else (None, BATCH_HINT)
    most = arguments.max_epsilon if arguments.connect is not None else None  # local sessions check it themselves
    consent = Consent(arguments.yes, arguments.yes_up_to, most, ask=ask, hint=hint)
    price = (arguments.epsilon, delta, arguments.rho)
    asker = Asker(session, *price, arguments.mechanism, arguments.error, params, consent, arguments.dialect)
    shell = Shell(asker, BOX if sys.stdout.isatty() else CSV, dry_run=arguments.dry_run)
    if asked is None:
        shell.interactive, shell.most_rows = sys.stdout.isatty(), MOST_ROWS
    else:
        _check_names(params, asked)
    if arguments.mode is not None:
        shell.set_mode(arguments.mode)
    if shell.mode == PARQUET and asked is not None and len(asked) > 1:
        raise InvalidArgument(f"a Parquet file holds one answer, and there are {len(asked)} statements.")
    if arguments.output is not None:
        shell.write_to(arguments.output)
    return shell


def _check_names(params: Mapping[str, object], asked: Sequence[str]) -> None:
    """Refuse a parameter that no statement uses: probably a typing error."""
    names = frozenset[str]().union(*map(names_asked_for, asked))
    for name in params:
        if name not in names:
            raise InvalidArgument(f"no statement has :{name}.{did_you_mean(name, names)}", hint="Leave --param out.")


def run_batch(shell: Shell, asked: Sequence[str], *, fresh: bool = False) -> int:
    """Answer each statement in turn, up to the first error. fresh: redraw cached answers."""
    try:
        for number, sql in enumerate(asked, start=1):
            try:
                shell.answer(sql, fresh=fresh)
            except DPSQLError as error:
                tell(error)
                if len(asked) > 1:
                    say(f"Stopped at statement {number} of {len(asked)}.", sys.stderr)
                return code_of(error)
    finally:
        shell.close()
    return Exit.OK


def code_of(error: DPSQLError) -> Exit:
    """Return the exit code of a refused statement."""
    if isinstance(error, BudgetExceeded):
        return Exit.BUDGET
    return Exit.UNCONFIRMED if isinstance(error, ConfirmationRequired) else Exit.REFUSED


def asked_of(inputs: Sequence[str | Path]) -> list[str] | None:
    """Return the statements of all inputs, or of standard input without any; None if that is a terminal."""
    if not inputs and sys.stdin is not None and sys.stdin.isatty():
        return None
    texts = [text_of(each) for each in inputs or [Path("-")]]
    asked = [statement for text in texts for statement in statements(text)]
    if not asked:
        raise InvalidArgument("there is no statement to run.", hint="Give it as -c SQL, -f FILE or on standard input.")
    for statement in asked:
        refusal = not_here(statement)
        if refusal is not None:
            raise refusal
    return asked
