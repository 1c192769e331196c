"""dpsql demo: the shell on the packaged sample, with its own ledger in the user's state folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dpsql.errors import InvalidArgument
from dpsql.shell.arguments import Arguments, parse
from dpsql.shell.statements import statements
from dpsql.version import __version__

DEMO = "demo"
"""The subcommand; a file of that name is written ./demo."""
EPSILON = 0.5
QUESTIONS = (
    "SELECT COUNT(*) AS n FROM adult WHERE age >= 40;"
    "SELECT AVG(age) AS avg_age FROM adult;"
    'SELECT sex, COUNT(*) AS n, AVG("hours-per-week") AS avg_hours FROM adult GROUP BY sex'
)
"""Statements for standard input without any."""

_DESCRIPTION = """\
Private questions about the Adult sample, 32,561 people of the 1994 census, which dpsql
brings with it: a prompt, or the statements of -c, -f and standard input; without any, three
examples. Each query spends epsilon 0.5 unless said otherwise. What is spent is kept in a
ledger in your own folder, and the same question again is free."""

_EPILOG = """\
dpsql --help tells more of these options."""


def demo_arguments(argv: Sequence[str]) -> Arguments:
    """Return the demo's arguments as those of the shell. Raises InvalidArgument."""
    arguments = parse(argv, __version__, "dpsql demo", _DESCRIPTION, _EPILOG)
    if arguments.files or arguments.schema is not None:
        raise InvalidArgument(
            "the demo has its own table, adult.", hint="Write dpsql FILE --schema TOML, without demo, for yours."
        )
    folder = sample_folder()
    arguments.files, arguments.schema = [folder / "adult.csv"], folder / "adult.toml"
    if arguments.ledger is None and not arguments.no_ledger:
        arguments.ledger = demo_ledger()
    if (arguments.epsilon, arguments.rho) == (None, None):
        arguments.epsilon = EPSILON
    if not arguments.inputs and not (sys.stdin is not None and sys.stdin.isatty()):
        text = "" if sys.stdin is None else sys.stdin.read()
        arguments.inputs = [text if statements(text) else QUESTIONS]
    return arguments


def sample_folder() -> Path:
    """Return the folder of adult.csv and adult.toml: in the package, as in a wheel, or beside it in a clone. Raises
    InvalidArgument."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / "sample", package.parent / "adult_sample"):
        if (folder / "adult.csv").is_file():
            return folder
    raise InvalidArgument("this installation lacks the sample data.", hint="Install dpsql again, from a wheel.")


def demo_ledger() -> Path:
    """Return the demo's ledger in the user's state folder, which is created. Raises InvalidArgument."""
    from platformdirs import user_state_path  # used only here

    folder = user_state_path("dpsql", appauthor=False)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument(
            f"the folder {folder} for the demo's ledger cannot be made: {error.strerror}.",
            hint="Name another place: --ledger FILE.",
        ) from None
    return folder / "demo.ledger"
