"""Files of one JSON object a line, as columns of text. What a line gives is a function of its own bytes and the
declared columns.

Only the byte 0x0A ends a line. A line that is no JSON object is a row of NULLs; so is an empty one. A column's cell is
the text of the member that has its name: of a string what it says, of a number or a truth value as it is written; NULL
where there is none, for null, for objects and arrays, and for text that is not Unicode. Of members of one name the last
counts. No bytes are an error.
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
    """The rows of a file in columns of pandas' `str` with these names. Raises InvalidSchema for a file that cannot be
    read, never for a row; its errors carry no other error."""
    read = _read(path, columns)
    if isinstance(read, InvalidSchema):
        raise read  # here, where no other error is being handled that it would carry along
    return read


def names_in(path: Path) -> list[str]:
    """The names of members that any line has, in alphabetical order; those left out that no column can have. For an
    owner's eyes: a name that one line alone has tells of that line. Raises InvalidSchema for a file that cannot be
    read."""
    try:
        with opened(path) as file:
            names = {name for batch in _batches(file) for line in batch for name in _object(line)}
    except BROKEN as error:
        refusal = broken(path, error)
    else:
        return sorted(name for name in names if name.strip() and name.isprintable())
    raise refusal


def see_odd_lines(path: Path, columns: Sequence[str], see: Callable[[int, str | None, bool], None]) -> int:
    """Show each line that is no JSON object, and each member of these names that no cell can be: by the line (from 1),
    the member's name (None for a line) and whether the line is empty. Returns how many lines there are. For an owner's
    eyes. Raises InvalidSchema for a file that cannot be read."""
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
    for line in file:  # binary files end lines at 0x0A alone
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
    """What a line says, by name; nothing where it is no object."""
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
    except UnicodeEncodeError:  # half of a pair of surrogates, or bytes that were not UTF-8
        return None
    return value
