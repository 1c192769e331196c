"""dpsql rehearse: the shell over synthetic rows of a schema file."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from dpsql.core.ledger.budget import Budget
from dpsql.errors import InvalidArgument
from dpsql.owner.rehearsal import HEADING, rehearse
from dpsql.shell.arguments import parse
from dpsql.shell.batch import asked_of, run_batch, shell_for
from dpsql.shell.output.streams import say
from dpsql.shell.prompt.prompt import Prompt
from dpsql.version import __version__

_DESCRIPTION = """\
Answer queries over made-up rows of an owner's file, at no cost: write a report first, and
pay for it when it is right. FILE is the schema (adult.toml), or --schema names it. The data
are not read, the ledger is not touched. Every answer is headed MADE-UP ROWS, whatever its
format: in machine formats, a column of that name."""

_EPILOG = """\
example:
  dpsql rehearse adult.toml report.sql --epsilon 1 --mode csv

dpsql --help tells more of these options; those of ledgers and budgets have no meaning here."""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand."""
    arguments = parse(argv, __version__, "dpsql rehearse", _DESCRIPTION, _EPILOG)
    named = [file for file in arguments.files if file.suffix.lower() == ".toml"]
    schema = arguments.schema or (named.pop(0) if named else None)
    if schema is None or named:
        raise InvalidArgument("one owner's file is rehearsed.", hint="Write dpsql rehearse adult.toml.")
    asked = asked_of(arguments.inputs)
    budget = None if arguments.budget is None else Budget(arguments.budget, arguments.budget_delta or 0)
    with rehearse(schema, budget=budget, epsilon=arguments.epsilon, delta=arguments.delta) as session:
        arguments.yes = True  # nothing is spent
        shell = shell_for(arguments, session, asked)
        shell.unpaid = f"{HEADING}: nothing is spent"
        say(f"note: {HEADING}: the rows follow from {schema.name} alone; nothing is spent.", sys.stderr)
        if asked is None:
            return Prompt(shell, __version__).run()
        return run_batch(shell, asked, fresh=arguments.fresh)
