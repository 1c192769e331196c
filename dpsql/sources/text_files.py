"""Text files as columns of text. A line's cells depend only on its own bytes, the owner's settings and the header.

Hence one person's line affects no other row. Only the byte 0x0A ends a record, and one 0x0D at a record's end is
dropped. Leading spaces of a field are dropped. A field is quoted if its first byte is then the quote: two quotes inside
stand for one, and after the closing one only spaces may precede the delimiter or the record's end. A record that
violates this, or has another number of fields than the header, is a row of NULLs; so is an empty line. An empty field
is NULL, as is one that is not UTF-8; files in other encodings are converted first. No bytes cause an error.

`record_at` implements this rule. Blocks of lines go to pandas' parser, except for lines that it might read differently:
`_plain` recognizes these by their own bytes, and they are read singly. Both ways give the same cells, so the choice is
unobservable.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsql.errors import InvalidSchema
from dpsql.schema.encodings import UTF_8
from dpsql.schema.frozen import dataclass
from dpsql.schema.text_format import TextFormat
from dpsql.sources.files import BROKEN, broken, opened
from dpsql.sources.text_headers import HeaderProblem, header_line, problem_of_header, problem_of_names
from dpsql.sources.text_records import cell_of, record_at
from dpsql.sources.transcoding import in_utf_8

_BLOCK = 1 << 22
"""Bytes read at once: the parser and its flags need a multiple of this, and should fit a cache."""
_LONGEST_HEADER = 1 << 24
_LEAST_MORE = 1 << 16
_Read = TypeVar("_Read")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LF, _CR, _TAB, _SPACE, _NUL = 10, 13, 9, 32, 0

Bytes = npt.NDArray[np.uint8]
Lines = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Cells = list[str | None]
_record, _cell = record_at, cell_of


@dataclass(frozen=True, slots=True)
class Grammar:
    """Structure of a record: the delimiter and the quote, one byte each (empty: no quote), and the number of fields.
    encodings: of fields, by place, that differ from the file's."""

    delimiter: bytes
    quote: bytes
    width: int
    multiline: bool
    encodings: Mapping[int, str]


def read_text(path: Path, form: TextFormat, encodings: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Return the rows of a text file in columns of pandas' `str`, with NULL for empty or unreadable cells. encodings:
    of columns, by folded name, that differ from the file's.

    Raises InvalidSchema for a file that cannot be opened and a header that names no columns, never for a row. The
    exception is not chained, since another one could contain bytes of the file.
    """
    return read_open(path, form, lambda file: _frame(path, file, form, encodings or {}))


def header_of(path: Path, form: TextFormat) -> list[str]:
    """Return the column names of a text file, as in `read_text`, without reading rows. Raises InvalidSchema."""
    return read_open(path, form, lambda file: _header(path, _front_with_header(path, file, form), form)[0])


def problem_at(path: Path, form: TextFormat) -> HeaderProblem | None:
    """Return the problem of a file's header under a format; None if it names the columns. Raises InvalidSchema for a
    file that cannot be opened."""
    return read_open(path, form, lambda file: _names(path, _front_with_header(path, file, form), form)[2])


def mended_format(path: Path, form: TextFormat) -> TextFormat:
    """Return the format with all settings that the header shows to be missing, as refusals advise; the caller must have
    the owner check them. Raises InvalidSchema if a header must be repaired by hand."""
    problem = problem_at(path, form)
    while problem is not None and problem.form is not None:
        form = problem.form
        problem = problem_at(path, form)
    if problem is not None:
        raise problem.refusal(path, form)
    return form


def read_open(path: Path, form: TextFormat, read: Callable[[BinaryIO], _Read]) -> _Read:
    """Apply a function to a file's bytes in UTF-8. Raises InvalidSchema, not chained."""
    error: InvalidSchema
    try:
        with opened(path) as file:
            return read(in_utf_8(path, file, form.encoding))
    except InvalidSchema as refusal:
        refusal.__cause__ = refusal.__context__ = None
        error = refusal
    except BROKEN as failure:
        error = broken(path, failure)
    raise error  # outside of an except block, so that no other exception is attached


def _header(path: Path, front: bytes, form: TextFormat) -> tuple[list[str], bytes]:
    """Return the column names, and the bytes after the header in the front of a file. Raises InvalidSchema."""
    names, rest, problem = _names(path, front, form)
    if problem is not None:
        raise problem.refusal(path, form)
    return names, rest


def _names(path: Path, front: bytes, form: TextFormat) -> tuple[list[str], bytes, HeaderProblem | None]:
    """Return names and rest as `_header`, with the problem of the header."""
    if form.header is not None:
        return list(form.header), front, problem_of_names(form.header, None)
    signs = form.signs_of(path)
    line, rest = header_line(front, form, signs)
    fields, _ = _record(line, 0, *signs)
    names = [_cell(field, UTF_8) or "" for field in fields or ()]
    return names, rest, problem_of_header(line, fields, form, signs, last=not rest)


def _front_with_header(path: Path, file: BinaryIO, form: TextFormat) -> bytes:
    """Return the front of a file with its header, and one more byte if there is one."""
    front = _after_skipped(file, form.skip)
    front += b"" if b"\n" in front else file.readline(_LONGEST_HEADER)
    signs = form.signs_of(path)
    while form.multiline and len(front) < _LONGEST_HEADER and record_at(front, 0, *signs)[1] == len(front):
        more = file.read(max(len(front), _LEAST_MORE))
        if not more:
            break
        front += more
    return front + file.read(1)


@dataclass(frozen=True, slots=True)
class Body:
    """The part of a file after the header: blocks of whole lines, at least one, with the column names, and the number
    of their first line (from 1)."""

    names: list[str]
    grammar: Grammar
    blocks: Iterator[bytes]
    first_line: int


def body_of(path: Path, file: BinaryIO, form: TextFormat, encodings: Mapping[str, str]) -> Body:
    """Return the lines after the header of an open file. encodings: as in `read_text`. Raises InvalidSchema."""
    delimiter, quote = form.signs_of(path)
    blocks = _blocks(file, None if form.multiline else _BLOCK, _after_skipped(file, form.skip))
    front = next(blocks, b"")
    names, first = _header(path, front, form)
    line = 1 + form.skip + front.count(b"\n") - first.count(b"\n")
    by_place = {place: encodings[name.casefold()] for place, name in enumerate(names) if name.casefold() in encodings}
    grammar = Grammar(delimiter, quote, len(names), form.multiline, by_place)
    return Body(names, grammar, chain([first], blocks), line)


def _frame(path: Path, file: BinaryIO, form: TextFormat, encodings: Mapping[str, str]) -> pd.DataFrame:
    body = body_of(path, file, form, encodings)
    frames = [_rows(block, body.grammar) for block in body.blocks]
    frame = frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
    frame.columns = pd.Index(body.names, dtype="str")
    return frame


def _after_skipped(file: BinaryIO, lines: int) -> bytes:
    """Skip a byte order mark and a number of lines; return the bytes that were read beyond."""
    front = file.read(len(_BYTE_ORDER_MARK))
    front = b"" if front == _BYTE_ORDER_MARK else front
    for _ in range(lines):
        while b"\n" not in front:
            more = file.readline(_BLOCK)
            if not more:
                return b""
            front = more
        front = front.partition(b"\n")[2]
    return front


def _blocks(file: BinaryIO, size: int | None, front: bytes) -> Iterator[bytes]:
    """Yield blocks of whole lines from a front and the rest of the file; a last line without line end gets one. No
    size: all at once."""
    pieces = [front]
    while chunk := file.read(-1 if size is None else size):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield b"".join([*pieces, chunk[:cut]])
            pieces = []
        pieces.append(chunk[cut:])
    last = b"".join(pieces)
    if last:
        yield last if last.endswith(b"\n") else last + b"\n"


def _cells(fields: list[bytes] | None, grammar: Grammar) -> Cells:
    if not fields or len(fields) != grammar.width:
        return [None] * grammar.width
    return [_cell(field, grammar.encodings.get(place, UTF_8)) for place, field in enumerate(fields)]


def _rows(block: bytes, grammar: Grammar) -> pd.DataFrame:
    """Return the rows of whole lines."""
    block, starts, ends, plain = lines_in(block, grammar)
    odd = _odd_rows(block, starts, ends, plain, grammar)
    fast = _parsed(_lines(block, starts, ends, plain), int(plain.sum()), grammar)
    if fast is None:  # the parser found other lines than it was given: read each singly
        plain[:] = False
        odd, fast = _odd_rows(block, starts, ends, plain, grammar), _columns([], grammar.width)
    if not odd:
        return fast
    places = np.concatenate([np.flatnonzero(plain), np.fromiter(odd, dtype=np.int64)])
    both = pd.concat([fast, _columns(list(odd.values()), grammar.width)], ignore_index=True)
    return both.take(np.argsort(places)).reset_index(drop=True)


def rows_of(block: bytes, grammar: Grammar) -> pd.DataFrame:
    """Return the rows of whole lines, in numbered columns."""
    return _rows(block, grammar)


def lines_in(block: bytes, grammar: Grammar) -> tuple[bytes, Lines, Lines, Flags]:
    """Split a block into lines ended by 0x0A: return its bytes, where lines begin and end, and which of them the parser
    reads as `record_at` does."""
    block = block.replace(b"\r\n", b"\n") if b"\r" in block else block
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == _LF)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1] + 1])[: len(ends)]
    return block, starts, ends, _plain(block, data, starts, ends, grammar)


def _odd_rows(block: bytes, starts: Lines, ends: Lines, plain: Flags, grammar: Grammar) -> dict[int, Cells]:
    """Return the rows of lines that are not plain, by line. The first line of a multi-line record has its row; all its
    lines are marked as not plain."""
    rows: dict[int, Cells] = {}
    signs = grammar.delimiter, grammar.quote, grammar.width
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
        rows[line] = _cells(fields, grammar)
    return rows


def _plain(block: bytes, data: Bytes, starts: Lines, ends: Lines, grammar: Grammar) -> Flags:
    """Return which lines pandas' parser reads as `_record` does, each judged by its own bytes.

    These have as many fields as columns, and valid UTF-8, without 0x00 (which ends the parser's cells), 0x0D, tabs
    (which it takes for spaces) or a leading byte order mark (which it drops). Quotes occur only at the beginning and
    end of a field, and doubled inside. The lines are not empty, nor only spaces."""
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
    if not block.isascii() and (grammar.encodings or not _is_text(block)):
        plain[_lines_with(data >= 0x80, ends)] = False
    first = data[starts]
    plain &= first != _BYTE_ORDER_MARK[0]
    return plain & (first != _SPACE) if grammar.width == 1 else plain


def _inside_quotes(data: Bytes, starts: Lines, ends: Lines, grammar: Grammar) -> tuple[Flags, Flags]:
    """Return which bytes are inside quotes (including the opening quote), and the lines whose quotes open at the
    beginning of a field, close at its end, or are doubled.

    A byte is inside if an odd number of quotes precede it in its line. A doubled quote closes and opens again."""
    quote, edges = ord(grammar.quote), (_LF, ord(grammar.delimiter), ord(grammar.quote))
    quotes = data == quote
    inside = (np.cumsum(quotes, dtype=np.uint8) & 1).view(bool)
    odd_before = np.concatenate([np.zeros(1, dtype=bool), inside[ends[:-1]]])[: len(ends)]
    inside ^= np.repeat(odd_before, ends - starts + 1)
    places = np.flatnonzero(quotes)
    opening = inside[places]
    beside = np.where(opening, data[places - 1], data[places + 1])  # index -1 is the last byte, a line end
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
    """Return the bytes of the plain lines."""
    if plain.all():
        return block
    turns = np.flatnonzero(np.diff(plain, prepend=False, append=False))  # boundaries of runs of plain lines
    runs = zip(starts[turns[::2]].tolist(), ends[turns[1::2] - 1].tolist(), strict=True)
    return b"".join([block[start : end + 1] for start, end in runs])


def _parsed(lines: bytes, rows: int, grammar: Grammar) -> pd.DataFrame | None:
    """Parse plain lines with pandas; None if it finds another number of rows."""
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
    except ValueError:  # the parser's message would quote lines
        return None
    return frame if frame.shape == (rows, grammar.width) else None


def _columns(rows: Sequence[Cells], width: int) -> pd.DataFrame:
    columns = zip(*rows, strict=True) if rows else [()] * width
    return pd.DataFrame({i: pd.Series(list(cells), dtype="str") for i, cells in enumerate(columns)})
