"""A command of the prompt: a word after a dot."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from dpsql.errors import InvalidArgument
from dpsql.schema.frozen import dataclass
from dpsql.shell.shell import Shell


class Quit(Exception):
    """The user has had enough."""


@dataclass(frozen=True)
class ReadFile(Exception):
    """The user wants what a file holds to be run."""

    path: Path


@dataclass(frozen=True)
class Command:
    """A command: how it is written, what it is for, and what it does: `run` gives the text to show, "" for none.
    `elsewhere`: what does the same outside the prompt."""

    name: str
    argument: str
    purpose: str
    run: Callable[[Shell, str], str]
    elsewhere: str = ""
    choices: tuple[str, ...] = ()


def number(text: str, name: str, check: Callable[[object], Fraction]) -> float:
    """The number that a user typed. Raises InvalidArgument, and what `check` raises."""
    try:
        value = float(text)
    except ValueError:
        raise InvalidArgument(f"{name} must be a number, got {text!r}.") from None
    check(value)
    return value


ON_OFF = ("on", "off")


def switched(argument: str, word: str, *, now: bool) -> bool:
    """What `on` or `off` asks for; without a word it stays. Raises InvalidArgument."""
    if argument and argument not in ON_OFF:
        raise InvalidArgument(f"{word} is on or off, got {argument!r}.")
    return now if not argument else argument == "on"


def on_off(*, on: bool) -> str:
    """`on` or `off`."""
    return "on" if on else "off"
