"""The words of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from dpsql.errors import InvalidArgument, did_you_mean
from dpsql.shell.opening import Opening

_DESCRIPTION = """\
Ask private questions about tables: answers carry noise, and what they tell about one
person is counted against a budget. Without -c, -f or SQL on standard input, a prompt."""

_EPILOG = """\
examples:
  dpsql adult.csv --schema adult.toml --epsilon 1 -c "SELECT COUNT(*) AS n FROM adult"
  dpsql people.csv --budget 3 --epsilon 0.5 < questions.sql

Answers go to standard output; their cost, notes and errors to standard error.
The first error stops the run.

exit codes:
  0 all answered     1 a query was refused     2 command line, schema or files
  3 the budget does not suffice     130 Ctrl-C     141 the reader of the output went away"""


class Arguments(argparse.Namespace):
    """What the command line says. `inputs` are -c texts and -f files, in their order."""

    files: list[Path]
    schema: Path | None
    inputs: list[str | Path]
    epsilon: float | None
    delta: float | None
    budget: float | None
    budget_delta: float | None
    rho: float | None
    ledger: Path | None
    accountant: str | None
    analyst: str | None
    anchor: str | None
    fresh: bool

    @property
    def opening(self) -> Opening:
        return Opening(
            self.files,
            self.schema,
            self.budget,
            self.budget_delta,
            self.epsilon,
            self.delta,
            self.ledger,
            self.accountant,
            self.analyst,
            self.anchor,
        )


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are errors like any other here."""

    def error(self, message: str) -> NoReturn:
        raise InvalidArgument(f"{message}.", hint="dpsql --help lists the options.")

    def refuse(self, unknown: str) -> NoReturn:
        """Refuse a word that is no option."""
        near = did_you_mean(unknown.partition("=")[0], self._option_string_actions)
        raise InvalidArgument(f'no option "{unknown}".{near}', hint="dpsql --help lists the options.")


def parse(argv: Sequence[str] | None, version: str) -> Arguments:
    """Read the command line. Raises InvalidArgument; prints and raises SystemExit for --help and --version."""
    parser = _Parser(
        prog="dpsql",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="a CSV file with a header: adult.csv is the table adult")
    add("--schema", type=Path, metavar="TOML", help="the owner's file: budget, types, bounds and keys")
    inputs = {"action": "append", "dest": "inputs", "default": []}
    add("-c", metavar="SQL", help="run this; may be repeated, and hold several statements", **inputs)  # type: ignore[arg-type]
    add("-f", metavar="FILE", type=Path, help="run what this file holds; - is standard input", **inputs)  # type: ignore[arg-type]
    add("--epsilon", type=_number, metavar="X", help="what each query spends")
    add("--delta", type=_number, metavar="X", help="what each query may spend of delta (default: 0)")
    add("--budget", type=_number, metavar="EPSILON", help="what all answers may spend (default: the schema's)")
    add("--budget-delta", type=_number, metavar="DELTA", help="the same for delta")
    add("--rho", type=_number, metavar="X", help="what each query spends, in place of --epsilon")
    add("--fresh", action="store_true", help="draw anew, and pay, what was answered before")
    add("--ledger", type=Path, metavar="FILE", help="where what is spent is kept; made if it is not there")
    add("--accountant", metavar="WORD", help="how costs add up: auto (default), basic or zcdp")
    add("--analyst", metavar="NAME", help="whose queries these are, for budgets with shares")
    add("--anchor", metavar="TEXT", help="an earlier state of the ledger, which must be in it")
    add("--version", action="version", version=f"dpsql {version}")
    arguments, unknown = parser.parse_known_intermixed_args(argv, Arguments())
    if unknown:
        parser.refuse(unknown[0])
    return arguments


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
