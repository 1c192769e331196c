"""Texts as they are shown, on a terminal or a page."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with control characters as escapes, line ends among them: a name or a key cannot draw."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
