"""Lines of text files that violate their format, and cells that are not in their encoding: counts, and the first
places. For the owner only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from dpsql.schema.encodings import UTF_8
from dpsql.schema.frozen import dataclass
from dpsql.schema.text_format import LINES_ENDINGS, TEXT_ENDINGS, TextFormat
from dpsql.session.owner_file import TableEntry
from dpsql.sources.files import files_of, kind_of
from dpsql.sources.frames import encodings_of
from dpsql.sources.json_lines import see_odd_lines
from dpsql.sources.text_records import cell_of, record_at
from dpsql.sources.text_scans import OddRecord, see_odd_records

FIRST = 5
"""Number of places that are reported."""
_NO_TEXT = "an object, an array or no Unicode"
EMPTY, SHORT, LONG, OPEN, QUOTES, NO_OBJECT = (
    "empty lines",
    "lines of too few fields",
    "lines of too many fields",
    "lines in which a quoted field does not end (multiline is not declared)",
    "lines whose quotes break the rule",
    "lines that are no JSON object",
)


@dataclass(frozen=True, slots=True)
class Places:
    """A count, and the first places: lines, with the file's name if there are several."""

    count: int = 0
    first: tuple[str, ...] = ()

    def and_also(self, place: str) -> Places:
        return Places(self.count + 1, self.first if self.count >= FIRST else (*self.first, place))


@dataclass(frozen=True)
class TableLines:
    """The lines of a table's files. broken: by kind; undecoded: by column, cells that are not valid text, as described
    by `undecoded_as`; rows: their number."""

    broken: Mapping[str, Places] = field(default_factory=dict)
    undecoded: Mapping[str, Places] = field(default_factory=dict)
    undecoded_as: str = ""
    rows: int = 0
    files: tuple[_FileLines, ...] = ()

    @property
    def is_json(self) -> bool:
        return self.undecoded_as == _NO_TEXT

    @property
    def broken_rows(self) -> int:
        return sum(each.count for each in self.broken.values())

    def place_of(self, row: int) -> str:
        """Return the line of a row, from 1."""
        for file in self.files:
            if row < file.rows:
                return file.place_of(row)
            row -= file.rows
        return f"row {row + 1}"


@dataclass(frozen=True, slots=True)
class _FileLines:
    """Positions of the rows of a file. long: the rows with several lines, each with the number beyond one."""

    name: str
    first_line: int
    rows: int
    long: tuple[tuple[int, int], ...] = ()

    def place_of(self, row: int) -> str:
        beyond = sum(lines for _, lines in self.long[: bisect_left(self.long, (row, 0))])
        return _place(self.name, self.first_line + row + beyond)


def lines_of_table(entry: TableEntry, columns: tuple[str, ...]) -> TableLines:
    """Check the lines of a table of text files or JSON lines; empty for other tables. columns: those to read from JSON
    lines. Raises InvalidSchema for a file that cannot be opened."""
    if entry.path is None or kind_of(entry.path) not in (*TEXT_ENDINGS, *LINES_ENDINGS):
        return TableLines()
    broken: dict[str, Places] = {}
    undecoded: dict[str, Places] = {}
    files = files_of(entry.path)
    read: list[_FileLines] = []
    for file in files:
        name = file.name if len(files) > 1 else ""
        if kind_of(file) in LINES_ENDINGS:
            read.append(_of_json_lines(file, name, columns, broken, undecoded))
        else:
            read.append(_of_text(file, name, entry, broken, undecoded))
    is_json = kind_of(files[0]) in LINES_ENDINGS
    undecoded_as = _NO_TEXT if is_json else f"not in {entry.text.encoding.upper()}"
    return TableLines(broken, undecoded, undecoded_as, sum(each.rows for each in read), tuple(read))


def _of_text(
    file: Path, name: str, entry: TableEntry, broken: dict[str, Places], undecoded: dict[str, Places]
) -> _FileLines:
    long: list[tuple[int, int]] = []
    unnamed: dict[int, Places] = {}
    form = entry.text
    signs = form.signs_of(file)

    def see(record: OddRecord) -> None:
        place = _place(name, record.line)
        if record.lines > 1:
            long.append((record.row, record.lines - 1))
        kind = _kind_of(record, form, signs)
        if kind is not None:
            broken[kind] = broken.get(kind, Places()).and_also(place)
            return
        for at, each in enumerate(record.fields or ()):
            if each and cell_of(each, record.grammar.encodings.get(at, UTF_8)) is None:
                unnamed[at] = unnamed.get(at, Places()).and_also(place)

    records = see_odd_records(file, form, encodings_of(entry.declaration), see)
    for at, places in unnamed.items():
        before = undecoded.get(records.names[at], Places())
        undecoded[records.names[at]] = Places(before.count + places.count, (*before.first, *places.first)[:FIRST])
    return _FileLines(name, records.first_line, records.rows, tuple(long))


def _kind_of(record: OddRecord, form: TextFormat, signs: tuple[bytes, bytes]) -> str | None:
    """Return how a record violates the format; None if it does not."""
    if not record.text:
        return EMPTY
    if record.fields is None:
        closed, _ = record_at(record.text + signs[1], 0, *signs)  # would a closing quote repair it?
        return OPEN if closed is not None and not form.multiline else QUOTES
    if len(record.fields) == record.grammar.width:
        return None
    return SHORT if len(record.fields) < record.grammar.width else LONG


def _of_json_lines(
    file: Path, name: str, columns: tuple[str, ...], broken: dict[str, Places], undecoded: dict[str, Places]
) -> _FileLines:
    def see(line: int, column: str | None, is_empty: bool) -> None:
        kind = EMPTY if is_empty else NO_OBJECT
        found, key = (broken, kind) if column is None else (undecoded, column)
        found[key] = found.get(key, Places()).and_also(_place(name, line))

    return _FileLines(name, 1, see_odd_lines(file, columns, see))


def _place(file: str, line: int) -> str:
    return f"{file}:{line}" if file else str(line)
