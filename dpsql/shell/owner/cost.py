"""dpsql cost: the cost of a file of queries."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from dpsql.errors import InvalidArgument
from dpsql.owner.costs import cost
from dpsql.session.advice import Place, error_text
from dpsql.shell.arguments import parse
from dpsql.shell.batch import asked_of
from dpsql.shell.output.streams import say
from dpsql.shell.session_setup import open_session
from dpsql.version import __version__

_DESCRIPTION = """\
Say what the ledger would charge for a batch, one query after another. FILE.sql holds the
queries; -c and -f do too. Repeats, and answers that the ledger keeps, are free. Nothing is
asked and nothing is spent."""

_EPILOG = """\
example:
  dpsql cost report.sql --schema adult.toml --epsilon 0.5

dpsql --help tells more of these options.

exit codes:
  0 the budget suffices     1 a query is refused     2 command line, schema or files
  3 more than is left"""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand."""
    arguments = parse(argv, __version__, "dpsql cost", _DESCRIPTION, _EPILOG)
    asked = asked_of(arguments.inputs)
    if asked is None:
        raise InvalidArgument("the cost of what?", hint="Name a file: dpsql cost report.sql --schema adult.toml.")
    session, _ = open_session(replace(arguments.opening, look=True))
    with session:
        bill = cost(session, asked, epsilon=arguments.epsilon, delta=arguments.delta, rho=arguments.rho)
    say(str(bill))
    if bill.refused is not None:
        say(error_text(bill.refused, Place.COMMAND_LINE), sys.stderr)
        say(f"Refused: statement {len(bill.queries) + 1} of {len(asked)}.", sys.stderr)
        return 1
    return 0 if bill.admitted else 3
