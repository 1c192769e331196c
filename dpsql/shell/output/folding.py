"""Long lines at a terminal, broken between what they say rather than within a word."""

from __future__ import annotations

import shutil
from typing import TextIO

_NARROWEST = 20
_BETWEEN = (" · ", " | ")
"""Where a line is broken best."""


def folded(text: str, stream: TextIO | None) -> str:
    """Lines no wider than the terminal, where a stream is one; what goes on is indented. Elsewhere as they are."""
    if stream is None or not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    if width < _NARROWEST:
        return text
    return "\n".join(each for line in text.split("\n") for each in _lines(line, width))


def _lines(line: str, width: int) -> list[str]:
    """A line in pieces, each as long as may be and broken where it is broken best."""
    pieces: list[str] = []
    rest, indent = line, ""
    while len(indent) + len(rest) > width:
        head = _head(rest, width - len(indent))
        pieces.append(indent + head.rstrip())
        rest, indent = rest[len(head) :].lstrip(), "  "
    return [*pieces, indent + rest]


def _head(text: str, width: int) -> str:
    """What stands before the best break, unless that leaves most of the width empty, or before the last blank; a word
    that is longer is cut."""
    best = max(text.rfind(sign, 0, width + 2) for sign in _BETWEEN)
    blank = text.rfind(" ", 1, width + 1)
    place = best if best > width // 3 else blank
    return text[:place] if place > 0 else text[:width]
