"""Argument parser whose errors are DPSQLErrors."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn, Self

from dpsql.errors import InvalidArgument, did_you_mean


class Parser(argparse.ArgumentParser):
    """A parser that raises InvalidArgument."""

    @classmethod
    def of(cls, prog: str, description: str, epilog: str = "") -> Self:
        """Return a parser that keeps the line breaks of its texts."""
        form = argparse.RawDescriptionHelpFormatter
        return cls(prog=prog, description=description, epilog=epilog, formatter_class=form, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise InvalidArgument(f"{message}.", hint=f"{self.prog} --help lists the options.")

    def refuse(self, unknown: str) -> NoReturn:
        """Raise InvalidArgument for an unknown option."""
        near = did_you_mean(unknown.partition("=")[0], self._option_string_actions)
        raise InvalidArgument(f'no option "{unknown}".{near}', hint=f"{self.prog} --help lists the options.")


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def options_of(parser: Parser, argv: Sequence[str]) -> Any:
    """Return the parsed arguments. Raises InvalidArgument; prints and raises SystemExit for --help."""
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.refuse(unknown[0])
    return arguments
