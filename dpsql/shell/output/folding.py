"""Folding of long lines at a terminal, preferably between items rather than words."""

from __future__ import annotations

import shutil
from typing import TextIO

_NARROWEST = 20
_BETWEEN = (" · ", " | ")
"""The preferred places for a break."""


def folded(text: str, stream: TextIO | None) -> str:
    """Fold lines to the width of the terminal, with indented continuations; unchanged for other streams."""
    if stream is None or not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    if width < _NARROWEST:
        return text
    return "\n".join(each for line in text.split("\n") for each in _lines(line, width))


def _lines(line: str, width: int) -> list[str]:
    """Split a line into pieces, each as long as possible, at the best breaks."""
    pieces: list[str] = []
    rest, indent = line, ""
    while len(indent) + len(rest) > width:
        head = _head(rest, width - len(indent))
        pieces.append(indent + head.rstrip())
        rest, indent = rest[len(head) :].lstrip(), "  "
    return [*pieces, indent + rest]


def _head(text: str, width: int) -> str:
    """Return the text before the best break, unless that leaves most of the width empty, or else before the last blank;
    cut a longer word."""
    best = max(text.rfind(sign, 0, width + 2) for sign in _BETWEEN)
    blank = text.rfind(" ", 1, width + 1)
    place = best if best > width // 3 else blank
    return text[:place] if place > 0 else text[:width]
