"""Colours for terminals; none with NO_COLOR, on a dumb terminal, or for other outputs."""

from __future__ import annotations

import os
from typing import TextIO


def has_colours(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal that may be coloured (https://no-color.org)."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "") in ("", "dumb")
    return not plain and stream is not None and stream.isatty()


def dim(text: str, stream: TextIO) -> str:
    """Dim each line."""
    if not text or not has_colours(stream):
        return text
    return "\n".join(f"\x1b[2m{line}\x1b[0m" for line in text.split("\n"))


def alarming(text: str, stream: TextIO) -> str:
    """Colour the text before the first colon in red."""
    head, colon, rest = text.partition(":")
    return f"\x1b[1;31m{head}\x1b[0m{colon}{rest}" if colon and has_colours(stream) else text
