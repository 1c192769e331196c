"""Answers and errors as text for a terminal."""

from __future__ import annotations

from dpsql.errors import DPSQLError


def error_text(error: DPSQLError, epsilon_hint: str) -> str:
    """An error as `ClassName: message`, without what only Python can say, and with `epsilon_hint` below where the query
    lacks an epsilon: how this very front end takes one."""
    text = f"{type(error).__name__}: {error.told(error.about.get('hint elsewhere', error.hint))}"
    return f"{text}\n  {epsilon_hint}" if error.about.get("missing") == "epsilon" else text


def printable(text: str) -> str:
    """The text with control characters as escapes: a name cannot draw on the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
