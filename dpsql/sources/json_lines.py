"""Files with one JSON object a line, as columns of text. A line's cells depend only on its bytes and the declared
columns.

Only the byte 0x0A ends a line. A line that is not a JSON object, such as an empty one, is a row of NULLs. A column's
cell is the text of the member with its name: the content of a string, or a number or truth value as written. It is NULL
for a missing member, null, objects, arrays, and text that is not Unicode. The last of several members of one name
counts. No bytes cause an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from dpsql.errors import InvalidSchema
from dpsql.sources.files import BROKEN, broken, opened

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BATCH = 1 << 16
_WORDS = {True: "true", False: "false"}


def read_json_lines(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a file in columns of pandas' `str` with these names. Raises InvalidSchema for a file that
    cannot be read, never for a row; the exception is not chained."""
    read = _read(path, columns)
    if isinstance(read, InvalidSchema):
        raise read  # outside of an except block, so that no other exception is attached
    return read


def names_in(path: Path) -> list[str]:
    """Return the names of members in any line that are valid as column names, sorted. For the owner only: a name may
    occur in a single line and reveal it. Raises InvalidSchema for a file that cannot be read."""
    try:
        with opened(path) as file:
            names = {name for batch in _batches(file) for line in batch for name in _object(line)}
    except BROKEN as error:
        refusal = broken(path, error)
    else:
        return sorted(name for name in names if name.strip() and name.isprintable())
    raise refusal


def see_odd_lines(path: Path, columns: Sequence[str], see: Callable[[int, str | None, bool], None]) -> int:
    """Report each line that is not a JSON object, and each named member that is not a valid cell: by the line (from 1),
    the member's name (None for a line) and whether the line is empty. Returns the number of lines. For the owner only.
    Raises InvalidSchema for a file that cannot be read."""
    lines = 0
    try:
        with opened(path) as file:
            for line in (line for batch in _batches(file) for line in batch):
                lines += 1
                members = _object_or_none(line)
                if members is None:
                    see(lines, None, not line.strip())
                    continue
                for name in columns:
                    if members.get(name) is not None and _cell(members[name]) is None:
                        see(lines, name, False)
    except BROKEN as error:
        refusal = broken(path, error)
    else:
        return lines
    raise refusal


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame | InvalidSchema:
    try:
        with opened(path) as file:
            frames = [_frame(batch, columns) for batch in _batches(file)] or [_frame([], columns)]
    except BROKEN as error:
        return broken(path, error)
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def _batches(file: BinaryIO) -> Iterator[list[bytes]]:
    lines, first = [], True
    for line in file:  # binary files end lines only at 0x0A
        lines.append(line.removeprefix(_BYTE_ORDER_MARK) if first else line)
        first = False
        if len(lines) == _BATCH:
            yield lines
            lines = []
    if lines:
        yield lines


def _frame(lines: list[bytes], columns: Sequence[str]) -> pd.DataFrame:
    objects = [_object(line) for line in lines]
    return pd.DataFrame({name: pd.Series([_cell(each.get(name)) for each in objects], dtype="str") for name in columns})


def _object(line: bytes) -> dict[str, Any]:
    """Return the members of a line by name; empty if it is not an object."""
    return _object_or_none(line) or {}


def _object_or_none(line: bytes) -> dict[str, Any] | None:
    try:
        found = _decode(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


_decode = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=lambda _word: None, strict=False).decode


def _cell(value: object) -> str | None:
    if isinstance(value, bool):
        return _WORDS[value]
    if not isinstance(value, str):
        return None
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, or bytes that were not UTF-8
        return None
    return value
