"""The rule by which bytes of a text file are split into a record's fields."""

from __future__ import annotations

import re
from typing import Any

from dpsql.schema.encodings import UTF_8


def record_at(data: bytes, start: int, delimiter: bytes, quote: bytes, most: int | None = None) -> tuple[Any, int]:
    """Return the fields (bytes) of the record that begins at `start`, or None if it is malformed, and its end: at a
    line end or the end of the data. Only one field beyond `most` is kept.

    Quoted fields may contain line ends, if the data have more than one line. A malformed record ends with the line that
    violates the rule."""
    fields: list[bytes] = []
    at = start
    line = _line_end(data, at)
    while True:
        at = _after_spaces(data, at)
        if quote and data.startswith(quote, at):
            closing = _closing(data, at + 1, quote)
            if closing < 0:
                return None, len(data)
            field = data[at + 1 : closing].replace(quote + quote, quote)
            at = closing + 1
            line = line if line >= at else _line_end(data, at)
            at = _after_spaces(data, at)
            if at != line and not data.startswith(delimiter, at):
                return None, line
        else:
            found = data.find(delimiter, at, line)
            stop = line if found < 0 else found
            field, at = data[at:stop], stop
        if most is None or len(fields) <= most:
            fields.append(field)
        if at == line:
            return fields, line
        at += 1


_spaces = re.compile(b" *")


def _after_spaces(data: bytes, start: int) -> int:
    found = _spaces.match(data, start)
    return found.end() if found else start


def _line_end(data: bytes, start: int) -> int:
    found = data.find(b"\n", start)
    return len(data) if found < 0 else found


def _closing(data: bytes, start: int, quote: bytes) -> int:
    """Return the position of the quote that closes a field; -1 if there is none."""
    at = data.find(quote, start)
    while at >= 0 and data.startswith(quote, at + 1):
        at = data.find(quote, at + 2)
    return at


def cell_of(field: bytes, encoding: str = UTF_8) -> str | None:
    """Return the text of a field; None for an empty one and for bytes that are invalid in the encoding."""
    try:
        return field.decode(encoding) or None
    except UnicodeDecodeError:
        return None
