"""Answers and errors as text for a terminal."""

from __future__ import annotations

import re

from dpsql.errors import DPSQLError

_MECHANISM = re.compile(r", mechanism='\w+'(?=, reuse)")
"""What only Python can say: of a query that is asked for less, the mechanism that was chosen."""


def error_text(error: DPSQLError, epsilon_hint: str) -> str:
    """An error as `ClassName: message`, with `epsilon_hint` below where the query lacks an epsilon: how this very
    front end takes one."""
    lacks_epsilon = error.message.startswith("epsilon is missing")
    text = f"{type(error).__name__}: {_MECHANISM.sub('', str(error))}"
    return f"{text}\n  {epsilon_hint}" if lacks_epsilon else text


def printable(text: str) -> str:
    """The text with control characters as escapes: a name cannot draw on the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
