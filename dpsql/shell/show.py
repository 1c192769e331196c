"""Texts for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control characters as escapes: a name cannot draw on the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
