"""Exit codes, and errors on standard error."""

from __future__ import annotations

import sys
from enum import IntEnum

from dpsql.errors import DPSQLError
from dpsql.session.advice import Place, error_text
from dpsql.shell.output.colours import alarming
from dpsql.shell.output.streams import say


class Exit(IntEnum):
    """Exit codes of the process."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    BUDGET = 3
    UNCONFIRMED = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141


def tell(error: DPSQLError) -> None:
    say(alarming(error_text(error, Place.COMMAND_LINE), sys.stderr), sys.stderr)
