"""Commands of the prompt: words that begin with a dot."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from dpsql.errors import InvalidArgument
from dpsql.schema.frozen import dataclass
from dpsql.shell.shell import Shell


class Quit(Exception):
    """Leave the prompt."""


@dataclass(frozen=True)
class ReadFile(Exception):
    """Run the content of a file."""

    path: Path


@dataclass(frozen=True)
class Command:
    """A command: its name and argument, its purpose, and `run`, which returns the text to show, "" for none.
    `elsewhere`: the equivalent outside the prompt."""

    name: str
    argument: str
    purpose: str
    run: Callable[[Shell, str], str]
    elsewhere: str = ""
    choices: tuple[str, ...] = ()


def number(text: str, name: str, check: Callable[[object], Fraction]) -> float:
    """Parse a number that a user typed. Raises InvalidArgument, and as `check`."""
    try:
        value = float(text)
    except ValueError:
        raise InvalidArgument(f"{name} must be a number, got {text!r}.") from None
    check(value)
    return value


ON_OFF = ("on", "off")


def switched(argument: str, word: str, *, now: bool) -> bool:
    """Parse `on` or `off`; without a word return the current state. Raises InvalidArgument."""
    if argument and argument not in ON_OFF:
        raise InvalidArgument(f"{word} is on or off, got {argument!r}.")
    return now if not argument else argument == "on"


def on_off(*, on: bool) -> str:
    """Return `on` or `off`."""
    return "on" if on else "off"
