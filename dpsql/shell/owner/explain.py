"""dpsql explain: the steps of queries and their costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dpsql.errors import InvalidArgument
from dpsql.shell.arguments import parse
from dpsql.shell.batch import asked_of, run_batch, shell_for
from dpsql.shell.session_setup import open_session
from dpsql.version import __version__

_DESCRIPTION = """\
Explain each query: what is protected, what is added to what, how far off answers may be,
what is spent. Free; where there is no ledger yet, none is made."""

_EPILOG = """\
example:
  dpsql explain --schema adult.toml --epsilon 1 -c "SELECT AVG(age) AS age FROM adult"

dpsql --help tells more of these options.

exit codes:
  0 all explained     1 a query was refused     2 command line, schema or files"""


def run(argv: Sequence[str]) -> int:
    """Run the subcommand."""
    arguments = parse(argv, __version__, "dpsql explain", _DESCRIPTION, _EPILOG)
    asked = asked_of(arguments.inputs)
    if asked is None:
        raise InvalidArgument("explain what?", hint="Give a query as -c SQL, -f FILE or on standard input.")
    arguments.dry_run = True
    session, _ = open_session(replace(arguments.opening, look=True))
    with session:
        return run_batch(shell_for(arguments, session, asked), asked)
