"""Regular expressions by RE2, whose time is linear in the length of the text: with other matchers one cell could block
a run indefinitely. DuckDB uses the same library, so engines agree cell by cell.
"""

from __future__ import annotations

from collections.abc import Sequence

import re2

from dpsql.plan.functions.text import MOST_CHARACTERS

_ANYWHERE = re2._re2.RE2.Anchor.UNANCHORED
MOST_MEMORY = 1 << 20
"""Most bytes for a compiled pattern and its caches during a match."""


_MOST_BYTES = 4 * MOST_CHARACTERS


def _options() -> re2.Options:
    options = re2.Options()
    options.max_mem = MOST_MEMORY
    options.log_errors = False
    return options


class Re2Pattern:
    """A pattern of RE2, over the bytes of texts. Raises ValueError for an invalid pattern."""

    def __init__(self, text: str) -> None:
        try:
            self._pattern = re2.compile(text.encode(), _options())
        except (re2.error, UnicodeEncodeError) as error:
            raise ValueError(_words(error)) from None

    @property
    def groups(self) -> int:
        """See `Pattern`."""
        found: int = self._pattern.groups
        return found

    @property
    def size(self) -> int:
        """See `Pattern`."""
        found: int = self._pattern.programsize
        return found

    def found(self, text: str) -> bool:
        """See `Pattern`."""
        cell = _bytes(text)
        return cell is not None and self._pattern.search(cell) is not None

    def whole(self, text: str) -> bool:
        """See `Pattern`."""
        cell = _bytes(text)
        return cell is not None and self._pattern.fullmatch(cell) is not None

    def extracted(self, text: str, group: int) -> str:
        """See `Pattern`."""
        cell = _bytes(text)
        match = None if cell is None or group > self.groups else self._pattern.search(cell)
        part: bytes | None = None if match is None else match.group(group)
        return "" if part is None else part.decode()

    def replaced(self, text: str, new: str, *, every: bool) -> str | None:
        """See `Pattern`. Empty matches and ends of matches follow RE2's own replacement; its Python module differs."""
        cell, parts = _bytes(text), rewritten(new)
        if cell is None or parts is None or any(isinstance(each, int) and each > self.groups for each in parts):
            return None
        pieces: list[bytes] = []
        place, last = 0, -1
        room = _MOST_BYTES
        while place <= len(cell) and room >= 0:
            spans = self._pattern._regexp.Match(_ANYWHERE, cell, place, len(cell))
            start, end = spans[0]
            if start < 0:
                break
            piece = cell[place:start]
            if start == end == last:  # an empty match right after a match
                after = place + _width(cell[place : place + 1])
                piece, place = cell[place:after], after
            else:
                piece += b"".join(each if isinstance(each, bytes) else cell[slice(*spans[each])] for each in parts)
                place = last = end
            pieces.append(piece)
            room -= len(piece)
            if not every:
                break
        return _short(b"".join(pieces) + cell[place:]) if room >= 0 else None


def rewritten(new: str) -> Sequence[bytes | int] | None:
    r"""Split a replacement into texts and group numbers (\1); return None if it has an invalid backslash."""
    parts: list[bytes | int] = []
    signs = iter(new)
    try:
        for sign in signs:
            after = next(signs, "") if sign == "\\" else sign
            if sign == "\\" and after.isascii() and after.isdigit():
                parts.append(int(after))
            elif sign == "\\" and after != "\\":
                return None
            else:
                parts.append(after.encode())
    except UnicodeEncodeError:
        return None
    return parts


def _bytes(text: str) -> bytes | None:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _short(found: bytes) -> str | None:
    text = found.decode()
    return text if len(text) <= MOST_CHARACTERS else None


def _width(lead: bytes) -> int:
    """Return the bytes of a character, given the first of them; 1 at the end."""
    return 1 + sum(lead >= first for first in (b"\xc0", b"\xe0", b"\xf0"))


def _words(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
