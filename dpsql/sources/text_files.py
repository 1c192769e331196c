"""Text files as columns of text. What a line gives is a function of its own bytes, the owner's words and the header.

So that one person's line moves nobody else's row. Only the byte 0x0A ends a record, and one 0x0D at a record's end is
dropped. A field loses the spaces that it begins with. It is quoted if the quote is then its first byte: two quotes
inside stand for one, and after the closing one only spaces may stand before the delimiter or the record's end. A record
that breaks this, or has another number of fields than the header, is a row of NULLs; so is an empty line. An empty
field is NULL, and so is one that is not UTF-8. No bytes are an error.

`_record` is that rule. Blocks of lines go to pandas' parser, save for those lines that it could read otherwise: which
ones is asked of each line's own bytes (`_plain`), and they are read singly. Both ways give the same cells, so neither
shows.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsql.errors import InvalidSchema
from dpsql.schema.frozen import dataclass
from dpsql.schema.text_format import TextFormat
from dpsql.sources.files import BROKEN, broken, opened

_BLOCK = 1 << 22
"""Bytes that are read at once: the parser and its flags need some times as much, and fit a cache."""
_LONGEST_HEADER = 1 << 24
_Read = TypeVar("_Read")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LF, _CR, _TAB, _SPACE, _NUL = 10, 13, 9, 32, 0

Bytes = npt.NDArray[np.uint8]
Lines = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Cells = list[str | None]


@dataclass(frozen=True, slots=True)
class _Grammar:
    """What a record is made of: the delimiter and the quote, one byte each (no quote: none), and how many fields."""

    delimiter: bytes
    quote: bytes
    width: int
    multiline: bool


def read_text(path: Path, form: TextFormat) -> pd.DataFrame:
    """The rows of a text file in columns of pandas' `str`, NULL for what is empty or cannot be read.

    Raises InvalidSchema for a file that cannot be opened and a header that names no columns; never for a row. Its
    errors carry no other error, which could hold bytes of the file.
    """
    return _read(path, lambda file: _frame(path, file, form))


def header_of(path: Path, form: TextFormat) -> list[str]:
    """The names of a text file's columns, as `read_text` takes them; no row is kept. Raises InvalidSchema."""
    mark = _BYTE_ORDER_MARK
    return _read(path, lambda file: _header(path, file.readline(_LONGEST_HEADER).removeprefix(mark), form)[0])


def _read(path: Path, read: Callable[[BinaryIO], _Read]) -> _Read:
    error: InvalidSchema
    try:
        with opened(path) as file:
            return read(file)
    except InvalidSchema as refusal:
        refusal.__cause__ = refusal.__context__ = None
        error = refusal
    except BROKEN as failure:
        error = broken(path, failure)
    raise error  # here, where no other error is being handled that it would carry along


def _header(path: Path, front: bytes, form: TextFormat) -> tuple[list[str], bytes]:
    """The names of the columns, and what follows the header in the front of a file."""
    if form.header is None:
        line, _, front = front.partition(b"\n")
        names = _names(path, line.removesuffix(b"\r"), *form.signs_of(path))
    else:
        names = list(form.header)
    _check_header(path, names)
    return names, front


def _frame(path: Path, file: BinaryIO, form: TextFormat) -> pd.DataFrame:
    delimiter, quote = form.signs_of(path)
    blocks = _blocks(file, None if form.multiline else _BLOCK)
    names, first = _header(path, next(blocks, b""), form)
    grammar = _Grammar(delimiter, quote, len(names), form.multiline)
    frames = [_rows(first, grammar), *(_rows(block, grammar) for block in blocks)]
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    frame.columns = pd.Index(names, dtype="str")
    return frame


def _blocks(file: BinaryIO, size: int | None) -> Iterator[bytes]:
    """The file's lines, some at a time, each with its line end; a last one that has none gets it. No size: all at
    once. A byte order mark in front is of none of them."""
    front = file.read(len(_BYTE_ORDER_MARK))
    pieces = [] if front == _BYTE_ORDER_MARK else [front]
    while chunk := file.read(-1 if size is None else size):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join([*pieces, chunk[:cut]])
            pieces = []
        pieces.append(chunk[cut:])
    last = b"".join(pieces)
    if last:
        yield last if last.endswith(b"\n") else last + b"\n"


def _names(path: Path, line: bytes, delimiter: bytes, quote: bytes) -> list[str]:
    fields, _ = _record(line, 0, delimiter, quote)
    if fields is None:
        raise InvalidSchema(
            f"{path.name}: a quote in its first line, the header, is not closed.",
            hint='Names stand in quotes, or without any: "first name",age',
        )
    names = [_cell(field) if field else "" for field in fields]
    wrong = "has bytes 0x00" if b"\0" in line else "is not text in UTF-8" if None in names else ""  # as UTF-16 has
    if wrong:
        raise InvalidSchema(f"{path.name} {wrong}: its first line, the header.")
    return [] if names == [""] else [name for name in names if name is not None]


def _check_header(path: Path, names: list[str]) -> None:
    if not names:
        raise InvalidSchema(f"{path.name} is empty: a CSV file begins with the names of its columns.")
    if not all(names):
        raise InvalidSchema(f"{path.name}: column {names.index('') + 1} has no name.")
    twice = [name for name, times in Counter(name.casefold() for name in names).items() if times > 1]
    if twice:
        raise InvalidSchema(f'{path.name}: two columns are named "{twice[0]}".', hint="Rename one of them.")


def _record(data: bytes, start: int, delimiter: bytes, quote: bytes, most: int | None = None) -> tuple[Any, int]:
    """The fields (bytes) of the record that begins at `start`, or None if it is malformed, and where it ends: at a line
    end or that of the data. Of fields beyond `most` only one is kept.

    A quoted field reaches over line ends, where the data have any in it: one line alone has none. A malformed record
    ends with the line that breaks the rule."""
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
    """Where the quote stands that closes a field, -1 if none does."""
    at = data.find(quote, start)
    while at >= 0 and data.startswith(quote, at + 1):
        at = data.find(quote, at + 2)
    return at


def _cell(field: bytes) -> str | None:
    try:
        return field.decode("utf-8") or None
    except UnicodeDecodeError:
        return None


def _cells(fields: list[bytes] | None, width: int) -> Cells:
    return [_cell(field) for field in fields] if fields and len(fields) == width else [None] * width


def _rows(block: bytes, grammar: _Grammar) -> pd.DataFrame:
    """The rows of whole lines."""
    block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == _LF)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1] + 1])[: len(ends)]
    plain = _plain(block, data, starts, ends, grammar)
    odd = _odd_rows(block, starts, ends, plain, grammar)
    fast = _parsed(_lines(block, starts, ends, plain), int(plain.sum()), grammar)
    if fast is None:  # the parser did not see the lines that it was given: then each is read singly
        plain[:] = False
        odd, fast = _odd_rows(block, starts, ends, plain, grammar), _columns([], grammar.width)
    if not odd:
        return fast
    places = np.concatenate([np.flatnonzero(plain), np.fromiter(odd, dtype=np.int64)])
    both = pd.concat([fast, _columns(list(odd.values()), grammar.width)], ignore_index=True)
    return both.take(np.argsort(places)).reset_index(drop=True)


def _odd_rows(block: bytes, starts: Lines, ends: Lines, plain: Flags, grammar: _Grammar) -> dict[int, Cells]:
    """The rows of lines that are not plain, by line. Of several lines that are one record the first has the row, and
    none is plain any more."""
    rows: dict[int, Cells] = {}
    width, signs = grammar.width, (grammar.delimiter, grammar.quote, grammar.width)
    next_line = 0
    for line in np.flatnonzero(~plain).tolist():
        if line < next_line:
            continue
        if grammar.multiline:
            fields, end = _record(block, starts[line], *signs)
            next_line = int(np.searchsorted(ends, end)) + 1
            plain[line:next_line] = False
        else:
            fields, _ = _record(block[starts[line] : ends[line]], 0, *signs)
        rows[line] = _cells(fields, width)
    return rows


def _plain(block: bytes, data: Bytes, starts: Lines, ends: Lines, grammar: _Grammar) -> Flags:
    """Which lines pandas' parser reads as `_record` does: each by its own bytes.

    Those of as many fields as there are columns, valid UTF-8, without 0x00 (which ends its cells), 0x0D, tabs (which it
    takes for spaces) and a byte order mark in front (which it drops); quotes only where a field begins and ends, and
    doubled inside; not empty, nor of spaces alone."""
    delimiters = data == ord(grammar.delimiter)
    plain = ends > starts
    if grammar.quote and grammar.quote in block:
        inside, quoted_well = _inside_quotes(data, starts, ends, grammar)
        plain &= quoted_well
        delimiters &= ~inside
    before = np.searchsorted(np.flatnonzero(delimiters), np.append(starts, len(data)))
    plain &= np.diff(before) == grammar.width - 1
    unread = [_NUL, _CR] if grammar.delimiter == b"\t" else [_NUL, _CR, _TAB]
    for byte in unread:
        if byte in block and bytes([byte]) != grammar.delimiter:
            plain[_lines_with(data == byte, ends)] = False
    if not (block.isascii() or _is_text(block)):
        plain[_lines_with(data >= 0x80, ends)] = False
    first = data[starts]
    plain &= first != _BYTE_ORDER_MARK[0]
    return plain & (first != _SPACE) if grammar.width == 1 else plain


def _inside_quotes(data: Bytes, starts: Lines, ends: Lines, grammar: _Grammar) -> tuple[Flags, Flags]:
    """Which bytes stand inside quotes (an opening quote does), and the lines where quotes open where a field begins,
    close where it ends, or are doubled.

    An odd number of quotes before a byte of its line: inside. Two that are doubled close and open again."""
    quote, edges = ord(grammar.quote), (_LF, ord(grammar.delimiter), ord(grammar.quote))
    quotes = data == quote
    inside = (np.cumsum(quotes, dtype=np.uint8) & 1).view(bool)
    odd_before = np.concatenate([np.zeros(1, dtype=bool), inside[ends[:-1]]])[: len(ends)]
    inside ^= np.repeat(odd_before, ends - starts + 1)
    places = np.flatnonzero(quotes)
    opening = inside[places]
    beside = np.where(opening, data[places - 1], data[places + 1])  # the last byte is a line end: before the first, too
    well = ~inside[ends]
    well[np.searchsorted(ends, places[~np.isin(beside, edges)])] = False
    return inside, well


def _lines_with(flags: Flags, ends: Lines) -> Lines:
    return np.searchsorted(ends, np.flatnonzero(flags))


def _is_text(block: bytes) -> bool:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _lines(block: bytes, starts: Lines, ends: Lines, plain: Flags) -> bytes:
    """The bytes of the plain lines."""
    if plain.all():
        return block
    turns = np.flatnonzero(np.diff(plain, prepend=False, append=False))  # runs of plain lines begin and end here
    runs = zip(starts[turns[::2]].tolist(), ends[turns[1::2] - 1].tolist(), strict=True)
    return b"".join([block[start : end + 1] for start, end in runs])


def _parsed(lines: bytes, rows: int, grammar: _Grammar) -> pd.DataFrame | None:
    """Plain lines by pandas' parser; None where it finds another number of them."""
    if not rows:
        return _columns([], grammar.width)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if grammar.quote else csv.QUOTE_NONE
    try:
        frame = pd.read_csv(
            io.BytesIO(lines),
            header=None,
            names=range(grammar.width),
            dtype="str",
            sep=grammar.delimiter.decode("ascii"),
            quotechar=(grammar.quote or b'"').decode("ascii"),
            quoting=quoting,
            skipinitialspace=True,
            keep_default_na=False,
            na_values=[""],
            index_col=False,
            skip_blank_lines=False,
            lineterminator="\n",
            encoding="utf-8",
            engine="c",
            low_memory=False,
        )
    except ValueError:  # a parser's error quotes lines
        return None
    return frame if frame.shape == (rows, grammar.width) else None


def _columns(rows: Sequence[Cells], width: int) -> pd.DataFrame:
    columns = zip(*rows, strict=True) if rows else [()] * width
    return pd.DataFrame({i: pd.Series(list(cells), dtype="str") for i, cells in enumerate(columns)})
