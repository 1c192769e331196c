"""Scans of text files for their owner: malformed records, and blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd

from dpsql.schema.frozen import dataclass
from dpsql.schema.text_format import TextFormat
from dpsql.sources.text_files import Body, Grammar, body_of, lines_in, read_open, rows_of
from dpsql.sources.text_records import record_at


@dataclass(frozen=True, slots=True)
class OddRecord:
    """A record that may be malformed: its row (from 0), its first line (from 1), its number of lines, its bytes and
    fields (None for malformed quotes), and the expected structure."""

    row: int
    line: int
    lines: int
    text: bytes
    fields: list[bytes] | None
    grammar: Grammar


@dataclass(frozen=True, slots=True)
class Records:
    """Structure of a file: its column names, the line of its first row (from 1), and the number of its rows."""

    names: tuple[str, ...]
    first_line: int
    rows: int


def see_odd_records(
    path: Path, form: TextFormat, encodings: Mapping[str, str], see: Callable[[OddRecord], None]
) -> Records:
    """Report each possibly malformed record of a file, in order. All others have as many fields as columns, in their
    encoding. encodings: as in `read_text`. Raises InvalidSchema for a file that cannot be opened."""
    return read_open(path, form, lambda file: _see(body_of(path, file, form, encodings), see))


def _see(body: Body, see: Callable[[OddRecord], None]) -> Records:
    grammar, rows, line = body.grammar, 0, body.first_line
    signs = (grammar.delimiter, grammar.quote, grammar.width)
    for written in body.blocks:
        block, starts, ends, plain = lines_in(written, grammar)
        next_line, taken = 0, 0
        for odd in np.flatnonzero(~plain).tolist():
            if odd < next_line:
                continue
            if grammar.multiline:
                fields, end = record_at(block, starts[odd], *signs)
            else:
                fields, end = record_at(block[starts[odd] : ends[odd]], 0, *signs)[0], ends[odd]
            next_line = int(np.searchsorted(ends, end)) + 1
            place = (rows + odd - taken, line + odd, next_line - odd)
            see(OddRecord(*place, block[starts[odd] : end], fields, grammar))
            taken += next_line - odd - 1
        rows, line = rows + len(ends) - taken, line + len(ends)
    return Records(tuple(body.names), body.first_line, rows)


def see_blocks(path: Path, form: TextFormat, encodings: Mapping[str, str], see: Callable[[pd.DataFrame], bool]) -> None:
    """Pass the rows of a file to `see` in blocks, read as in `read_text`, until it returns True. Raises InvalidSchema
    for a file that cannot be opened."""

    def show(file: BinaryIO) -> None:
        body = body_of(path, file, form, encodings)
        for block in body.blocks:
            if see(rows_of(block, body.grammar).set_axis(pd.Index(body.names, dtype="str"), axis=1)):
                return

    read_open(path, form, show)
