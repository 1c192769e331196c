"""Text files: a line changes only its own row, whatever bytes it holds and however it is read."""

from __future__ import annotations

import csv
import io
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpsql
from dpsql.errors import DPSQLError, InvalidArgument, InvalidSchema
from dpsql.schema.declaration import Declaration
from dpsql.schema.text_format import TextFormat
from dpsql.session.owner_file import Schema
from dpsql.sources import files, frames, text_files
from dpsql.sources.text_files import read_text

Rows = list[list[str | None]]
COMMA = TextFormat()
FORMATS = (
    COMMA,
    TextFormat(delimiter="\t"),
    TextFormat(delimiter=";", quote="'"),
    TextFormat(quote=""),
    TextFormat(delimiter="|", quote=""),
    TextFormat(delimiter="\x01"),
)
PIECES = (
    *(b'"', b'""', b"'", b",", b",", b";", b"|", b"\t", b" ", b"  ", b"\r", b"\0", b"\x01", b"\x1a", b"\x0b", b"\x0c"),
    *(b"a", b"1", b"NA", b"nan", b"#", b"\\", b"\xff", b"\xe2", b"\xed\xa0\x80", b"\xc0\x80", b"\xef\xbb\xbf"),
    *("é".encode(), "\u2028".encode(), "\x85".encode(), "\U0001f600".encode()),
    *(b'"a"', b'"x,y"', b'"x""y"', b"a,b", b'1,"2"', b"1, 2", b"'a;b'", b"a\tb", b"a|b", b"a\x01b"),
)
lines = st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join), max_size=8)
common = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def nothing_plain(_block: bytes, _data: Any, _starts: Any, ends: Any, _grammar: Any) -> Any:
    return np.zeros(len(ends), dtype=bool)


def nothing_parsed(*_asked: Any) -> None:
    return None


def rows(folder: Path, content: bytes, form: TextFormat = COMMA, name: str = "t.csv") -> Rows:
    file = folder / name
    file.write_bytes(content)
    return cells(read_text(file, form))


def cells(frame: pd.DataFrame) -> Rows:
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.to_numpy(dtype=object)]


def said_by(line: bytes, form: TextFormat, width: int) -> list[str | None]:
    """What a line gives, byte by byte from the rule's own words."""
    delimiter, quote = (form.delimiter or ",").encode(), form.quote.encode()
    line = line.removesuffix(b"\r")
    fields, rest = [], line
    while True:
        rest, field = rest.lstrip(b" "), b""
        if quote and rest[:1] == quote:
            rest = rest[1:]
            while rest and (rest[:1] != quote or rest[1:2] == quote):
                step = 2 if rest[:1] == quote else 1
                field, rest = field + rest[:1], rest[step:]
            if not rest:
                return [None] * width
            rest = rest[1:].lstrip(b" ")
            if rest and rest[:1] != delimiter:
                return [None] * width
        else:
            while rest and rest[:1] != delimiter:
                field, rest = field + rest[:1], rest[1:]
        fields.append(field)
        if not rest:
            break
        rest = rest[1:]
    return [text_or_null(field) for field in fields] if len(fields) == width else [None] * width


def text_or_null(field: bytes) -> str | None:
    try:
        return field.decode() or None
    except UnicodeDecodeError:
        return None


def header(form: TextFormat, width: int) -> bytes:
    return (form.delimiter or ",").encode().join(b"abcdef"[i : i + 1] for i in range(width))


def check_each_line_is_its_own_row(folder: Path, content: list[bytes], form: TextFormat, width: int) -> None:
    """The rows of a file are those of its lines, each alone in a file with the header."""
    first = header(form, width)
    found = rows(folder, b"\n".join([first, *content, b""]), form)
    assert found == [said_by(line, form, width) for line in content]
    alone = [rows(folder, b"\n".join([first, line, b""]), form) for line in content]
    assert found == [row for each in alone for row in each]


@common
@given(lines, st.sampled_from(FORMATS), st.integers(1, 3))
def test_the_rows_of_a_file_are_those_of_its_lines(
    tmp_path: Path, content: list[bytes], form: TextFormat, width: int
) -> None:
    check_each_line_is_its_own_row(tmp_path, content, form, width)


@common
@given(lines, st.sampled_from(FORMATS), st.integers(1, 3), st.integers(1, 40), st.booleans())
def test_neither_the_way_of_reading_nor_the_blocks_show(
    tmp_path: Path, content: list[bytes], form: TextFormat, width: int, block: int, last: bool
) -> None:
    """All by the parser's rules, all singly, and cut at any place: the same rows."""
    whole = b"\n".join([header(form, width), *content]) + b"\n" * (last or not (content and content[-1]))
    expected = rows(tmp_path, whole, form)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_BLOCK", block)
        assert rows(tmp_path, whole, form) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_plain", nothing_plain)
        assert rows(tmp_path, whole, form) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "_parsed", nothing_parsed)
        assert rows(tmp_path, whole, form) == expected
    ended = b"".join(line.removesuffix(b"\r") + b"\r\n" for line in [header(form, width), *content])
    assert rows(tmp_path, ended, form) == [said_by(line.removesuffix(b"\r") + b"\r", form, width) for line in content]


@pytest.mark.parametrize("delimiter", [*",aN1.+^$|#", "\\", '"', "\t", "\x0b", "\x1f", "\x7f"])
@pytest.mark.parametrize("quote", ["", '"', "'", "a", "#", "$", "\\", "\t", "\x01"])
def test_any_character_is_a_delimiter_or_a_quote(tmp_path: Path, delimiter: str, quote: str) -> None:
    """Also one that means something elsewhere, in patterns and to parsers."""
    if delimiter == quote:
        return
    form = TextFormat(delimiter=delimiter, quote=quote, header=("x", "y"))
    d, q = delimiter.encode(), quote.encode()
    quoted = [q + b"x" + d + b"y" + q + d + b"z", b"x" + d + q + b"y" + q + q + b"z" + q, q + b"x" + d + b"y"]
    content = [b"x" + d + b"y", b"x", *quoted, b"x y" + d + q, d, q, b"1.5" + d + b"NA"]
    found = rows(tmp_path, b"\n".join([*content, b""]), form)
    assert found == [said_by(line, form, 2) for line in content]


def test_the_parser_is_given_what_is_written_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes, doubled quotes, spaces and letters beyond ASCII are no reason for the slow way."""
    singly: list[bytes] = []
    honest = text_files._record
    monkeypatch.setattr(text_files, "_record", lambda data, *rest: (singly.append(data), honest(data, *rest))[1])
    body = b'1, 2\n"a","b"\n"x,y","say ""no"""\n"",\n\xc3\xa9,"\xe2\x80\xa8"\r\n a, "b"\n'
    assert rows(tmp_path, b"a,b\n" + body)[:2] == [["1", "2"], ["a", "b"]]
    assert singly == [b"a,b", b' a, "b"']


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b"1,2", ["1", "2"]),
        (b"", [None, None]),
        (b"1", [None, None]),
        (b"1,2,3", [None, None]),
        (b"1,", ["1", None]),
        (b'1,""', ["1", None]),
        (b"NA,nan", ["NA", "nan"]),
        (b" 1 ,  2", ["1 ", "2"]),
        (b'"1,2', [None, None]),
        (b'1,"2', [None, None]),
        (b'"1"2,3', [None, None]),
        (b'"1" , "2"  ', ["1", "2"]),
        (b'5" pipe,6', ['5" pipe', "6"]),
        (b'"say ""no""",2', ['say "no"', "2"]),
        (b"\xff,2", [None, "2"]),
        (b'"\xff,2",3', [None, "3"]),
        (b"\xef\xbb\xbf1,2", ["\ufeff1", "2"]),
        (b"a\0b,\x01", ["a\0b", "\x01"]),
        (b"a\rb,\xe2\x80\xa8", ["a\rb", "\u2028"]),
        (b"1,2\r", ["1", "2"]),
        (b"," * 100_000, [None, None]),
        (b"x" * 300_000 + b",2", ["x" * 300_000, "2"]),
        (b'"' + b'""' * 300_000 + b'",2', ['"' * 300_000, "2"]),
        (b" " * 300_000 + b",2", [None, "2"]),
    ],
)
def test_what_a_line_gives(tmp_path: Path, line: bytes, row: list[str | None]) -> None:
    """Between two others, as the last one, and with and without its line end."""
    for content, at in (
        (b"a,b\n3,4\n" + line + b"\n5,6\n", 1),
        (b"\xef\xbb\xbfa,b\r\n" + line.removesuffix(b"\r") + b"\r\n3,4\r\n", 0),
        (b"a,b\n3,4\n" + line + b"\n", 1),
    ):
        found = rows(tmp_path, content)
        assert found[at] == row
        assert len(found) == content.count(b"\n") - 1
        others = [each for i, each in enumerate(found) if i != at]
        assert others in ([["3", "4"], ["5", "6"]], [["3", "4"]])
    if line:
        assert rows(tmp_path, b"a,b\n3,4\n" + line)[1:] == [row]


def test_a_file_of_no_rows_has_columns_of_text(tmp_path: Path) -> None:
    for content in (b"a,b", b"a,b\n", b"a,b\r\n", b"\xef\xbb\xbfa,b\n"):
        (tmp_path / "t.csv").write_bytes(content)
        frame = read_text(tmp_path / "t.csv", COMMA)
        assert (list(frame.columns), len(frame)) == (["a", "b"], 0)
        assert frame.dtypes.tolist() == ["str", "str"]
    assert rows(tmp_path, b"a\n\n\n") == [[None], [None]]
    assert rows(tmp_path, b"a\n1\r\r\n2\r\n3\r") == [["1\r"], ["2"], ["3"]]


def test_columns_are_text_whatever_lines_hold(tmp_path: Path) -> None:
    for body in (b"", b"1\n", b"\n", b"\xff\n", b"1\n\n\xff\nx\n"):
        (tmp_path / "t.csv").write_bytes(b"a\n" + body)
        frame = read_text(tmp_path / "t.csv", COMMA)
        assert frame.dtypes.tolist() == ["str"]
        assert frame.index.equals(pd.RangeIndex(len(frame)))


def test_well_written_files_give_what_other_readers_do(sample: Path) -> None:
    with (sample / "adult.csv").open(encoding="utf-8", newline="") as file:
        names, *expected = csv.reader(file)
    frame = read_text(sample / "adult.csv", COMMA)
    assert list(frame.columns) == names
    assert cells(frame) == [[cell or None for cell in row] for row in expected]


def test_text_is_read_without_arrow_too(tmp_path: Path) -> None:
    body = [b"1,2", b"", b'"3', b"\xff,x\0", "é,y".encode()]
    with pd.option_context("mode.string_storage", "python"):
        check_each_line_is_its_own_row(tmp_path, body, COMMA, 2)


# The owner's words.


def test_delimiters_and_quotes_are_the_owners(tmp_path: Path) -> None:
    assert rows(tmp_path, b"a;b\n1,5;'x;y'\n", TextFormat(delimiter=";", quote="'")) == [["1,5", "x;y"]]
    assert rows(tmp_path, b'a,b\n"1,2\n', TextFormat(quote="")) == [['"1', "2"]]
    assert rows(tmp_path, b"a\tb\n1,5\t 2\n", name="t.tsv") == [["1,5", "2"]]
    assert rows(tmp_path, b"a,b\n1,2\n", TextFormat(delimiter=","), name="t.tsv") == [["1", "2"]]


def test_a_file_without_a_header_has_the_names_that_the_owner_lists(tmp_path: Path) -> None:
    form = TextFormat(header=("a", "b"))
    assert rows(tmp_path, b"\xef\xbb\xbf1,2\n\n3,4", form) == [["1", "2"], [None, None], ["3", "4"]]
    for none in (b"", b"\xef\xbb\xbf"):
        assert rows(tmp_path, none, form) == []
    assert rows(tmp_path, b"\xef\xbb\xbf\n", form) == [[None, None]]
    assert rows(tmp_path, b",\n", form) == [[None, None]]  # as short as the mark, and ended already


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'1,"x\ny"\n2,z\n', [["1", "x\ny"], ["2", "z"]]),
        (b'1,"x\r\ny"\r\n2,z\r\n', [["1", "x\ny"], ["2", "z"]]),
        (b'1,"x\n\n,""\n"\n2,z', [["1", 'x\n\n,"\n'], ["2", "z"]]),
        (b'1,2\n3,"x\n4,5\n', [["1", "2"], [None, None]]),
        (b'1,"x\n3,"4\n5,6\n', [[None, None], ["5", "6"]]),
        (b'1,"x\n"3,4\n5,6\n', [[None, None], ["5", "6"]]),
        (b'1,"x\ny",2\n5,6\n', [[None, None], ["5", "6"]]),
        (b'1,"\xff\ny"\n\xff,6\n', [["1", None], [None, "6"]]),
        (b'\n1,"\0\n"\n', [[None, None], ["1", "\0\n"]]),
    ],
)
def test_cells_of_several_lines_are_read_where_the_owner_says_so(tmp_path: Path, body: bytes, found: Rows) -> None:
    assert rows(tmp_path, b"a,b\n" + body, TextFormat(multiline=True)) == found
    assert len(rows(tmp_path, b"a,b\n" + body)) == body.rstrip(b"\n").count(b"\n") + 1


@common
@given(st.binary(max_size=60), lines, st.integers(1, 3))
def test_no_bytes_are_an_error_with_several_lines_either(
    tmp_path: Path, content: bytes, more: list[bytes], width: int
) -> None:
    form = TextFormat(multiline=True)
    for body in (content, b"\n".join(more)):
        found = rows(tmp_path, header(form, width) + b"\n" + body, form)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text_files, "_plain", nothing_plain)
            assert rows(tmp_path, header(form, width) + b"\n" + body, form) == found
        if b'"' not in body:
            assert found == rows(tmp_path, header(form, width) + b"\n" + body)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"delimiter": ",,"}, "delimiter must be one ASCII character"),
        ({"delimiter": ""}, "delimiter must be one ASCII character"),
        ({"delimiter": " "}, "delimiter must be one ASCII character"),
        ({"delimiter": "\n"}, "delimiter must be one ASCII character"),
        ({"delimiter": "é"}, "delimiter must be one ASCII character"),
        ({"delimiter": 1}, "delimiter must be one ASCII character"),
        ({"quote": "\0"}, "quote must be one ASCII character"),
        ({"quote": True}, "quote must be one ASCII character"),
        ({"quote": ";", "delimiter": ";"}, "delimiter and quote are one character"),
        ({"header": False}, "header must be true, or the list"),
        ({"header": []}, "header must be true, or the list"),
        ({"header": ["a", 1]}, "header must be true, or the list"),
        ({"header": "a"}, "header must be true, or the list"),
        ({"multiline": 1}, "multiline must be true or false"),
        ({"multilin": True}, 'unknown setting "multilin". Did you mean "multiline"'),
    ],
)
def test_words_that_mean_nothing_are_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchema, match=message):
        Schema.from_dict({"tables": {"t": words}})


def test_no_character_is_delimiter_and_quote(tmp_path: Path) -> None:
    """The delimiter that goes with the name of the file is not known when its words are read."""
    for name, quote in (("t.tsv", "\t"), ("t.csv", ",")):
        with pytest.raises(InvalidSchema, match="delimiter and quote are one character"):
            rows(tmp_path, b"a\n", TextFormat(quote=quote), name=name)


def test_a_table_says_how_its_file_is_written(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(b"x;'a;b\r\nc'\n")
    said: dict[str, Any] = {"delimiter": ";", "quote": "'", "header": ("n", "s"), "multiline": True}
    assert dpsql.Table(file, **said).frame.to_numpy(dtype=object).tolist() == [["x", "a;b\nc"]]
    with pytest.raises(InvalidSchema, match=r"people\.csv delimiter must be one ASCII character"):
        dpsql.Table(file, delimiter=";;")
    with pytest.raises(InvalidArgument, match="quote= is of text files"):
        dpsql.Table(pd.DataFrame({"x": [1]}), quote="'")
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InvalidSchema, match=r"a\.parquet is no text file"):
        dpsql.Table(tmp_path / "a.parquet", delimiter=";")
    owners = f'[tables.a]\npath = "{tmp_path}/a.parquet"\nmultiline = true\n'
    (tmp_path / "o.toml").write_text(owners, encoding="utf-8")
    with pytest.raises(InvalidSchema, match=r"a\.parquet is no text file"):
        dpsql.Session(schema=Schema.from_toml(tmp_path / "o.toml"), budget=dpsql.Budget(1))


def test_an_owners_file_says_how_a_table_is_written(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_bytes(b"Ann;30\nBob;'4\n5'\n;\n")
    (tmp_path / "o.toml").write_text(
        '[budget]\nepsilon = 1e9\n[tables.p]\npath = "p.txt"\ndelimiter = ";"\nquote = "\'"\nmultiline = true\n'
        'header = ["name", "age"]\ncolumns.age = { type = "integer" }\n'
    )
    session = dpsql.Session({}, schema=Schema.from_toml(tmp_path / "o.toml"))
    assert list(session.query("SELECT COUNT(*), COUNT(name), COUNT(age) FROM p", epsilon=1e8)) == [(3, 2, 1)]


# One line and the others' answers.

STRAYS = (
    b'"stray,1,20',
    b'9,"stray,20',
    b"",
    b"9,9,9,9,9",
    b"9",
    b"\xff,\xfe,\xfd",
    b"\0",
    b'"',
    b"\xef\xbb\xbf",
    b"\r",
)


def check_one_line_moves_one_row(folder: Path) -> None:
    """A count and a sum of people's rows with and without one odd line, and with an ordinary one in its place."""
    people = [b"%d,u%d,10" % (i, i) for i in range(50)]

    def counted(content: list[bytes]) -> tuple[Any, ...]:
        (folder / "p.csv").write_bytes(b"\xef\xbb\xbfid,unit,pay\n" + b"".join(line + b"\n" for line in content))
        schema = {
            "budget": {"epsilon": 1e9},
            "tables": {
                "p": {
                    "path": str(folder / "p.csv"),
                    "unit": "unit",
                    "max_rows": 1,
                    "columns": {"pay": {"bounds": [0, 20]}},
                }
            },
        }
        asked = dpsql.Session({}, schema=Schema.from_dict(schema))
        (row,) = asked.query("SELECT COUNT(*), SUM(pay), COUNT(id) FROM p", epsilon=1e8)
        return tuple(map(round, row))

    assert counted(people) == (50, 500, 50)
    for at in (0, 25, 50):
        for stray in STRAYS:
            assert counted([*people[:at], stray, *people[at:]])[1] in (500, 520), stray
            assert counted([*people[:at], stray, *people[at:]])[0] in (50, 51), stray


def test_one_line_moves_one_row(tmp_path: Path) -> None:
    check_one_line_moves_one_row(tmp_path)


def test_with_row_units_a_malformed_line_is_a_row_of_nulls(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b'a,b\n1,2\n"3,4\n5\n\n6,7,8\n\xff,9\n')
    content = {"budget": {"epsilon": 1e9}, "tables": {"p": {"path": str(tmp_path / "p.csv")}}}
    session = dpsql.Session({}, schema=Schema.from_dict(content))
    assert list(session.query("SELECT COUNT(*), COUNT(a), COUNT(b) FROM p", epsilon=1e8)) == [(6, 1, 2)]


# Errors.


def carried(error: BaseException) -> list[object]:
    return [error.__cause__, error.__context__]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n1,2\n", "is empty"),
        (b"\xef\xbb\xbf\r\n", "is empty"),
        (b"a,,b\n1,2,3\n", "column 2 has no name"),
        (b'a,""\n', "column 2 has no name"),
        (b"a,A\n1,2\n", 'two columns are named "a"'),
        (b'a,"b\n1,2\n', "a quote in its first line, the header, is not closed"),
        (b'a,"b"c\n', "a quote in its first line, the header, is not closed"),
        (b"a,\xffsecret\nsecret\n", "is not text in UTF-8: its first line"),
        ("a,b\n1,2\n".encode("utf-16"), "has bytes 0x00: its first line"),
        ("a,b\n1,2\n".encode("utf-16-le"), "has bytes 0x00: its first line"),
    ],
)
def test_headers_are_checked_and_errors_carry_nothing(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.csv").write_bytes(content + b"secret,secret,secret\n" * (b"\n" in content))
    with pytest.raises(InvalidSchema, match=message) as refused:
        read_text(tmp_path / "t.csv", COMMA)
    assert carried(refused.value) == [None, None]
    assert "secret" not in "".join(traceback.format_exception(refused.value)).replace(str(content), "")


def test_files_that_are_not_there_are_told_and_errors_carry_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for name, message in (
        ("no.csv", "no file"),
        ("folder.csv", "no file"),
        ("a\0b.csv", "cannot be read .ValueError."),
    ):
        with pytest.raises(InvalidSchema, match=message) as refused:
            frames.read_table(tmp_path / name, Declaration())
        assert carried(refused.value) == [None, None]


class Torn(io.BytesIO):
    """A file whose disk fails after some bytes."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            raise OSError(5, "secret")
        return super().read(size)


def test_a_disk_that_fails_is_told_and_errors_carry_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "open", lambda *_: Torn(b"a,b\n1,secret\n"), raising=False)
    with pytest.raises(InvalidSchema, match="t.csv cannot be read") as refused:
        read_text(tmp_path / "t.csv", COMMA)
    assert carried(refused.value) == [None, None]
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("body", [b"\xff\n", b'"\n', b"1,2,3,4\n", b"\0\n", b"\n", b'"' * 1001 + b"\n"])
def test_no_line_is_an_error_of_a_session(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n" + body)
    for multiline in (False, True):
        content = {
            "budget": {"epsilon": 1e9},
            "tables": {"t": {"path": str(tmp_path / "t.csv"), "multiline": multiline}},
        }
        session = dpsql.Session({}, schema=Schema.from_dict(content))
        assert list(session.query("SELECT COUNT(*) FROM t", epsilon=1e8)) == [(1,)]


# Lies.


def universal_newlines(patch: pytest.MonkeyPatch) -> None:
    """0x0D ends a record too."""
    honest = text_files._rows
    patch.setattr(text_files, "_rows", lambda block, grammar: honest(block.replace(b"\r", b"\n"), grammar))


def swallow_lines(patch: pytest.MonkeyPatch) -> None:
    """A quote that is not closed reaches over the lines after it."""
    honest = text_files._rows
    patch.setattr(text_files, "_rows", lambda block, grammar: honest(block, replace(grammar, multiline=True)))


def drop_empty_lines(patch: pytest.MonkeyPatch) -> None:
    honest = text_files._rows

    def dropped(block: bytes, grammar: Any) -> pd.DataFrame:
        kept = [line for line in block.splitlines(keepends=True) if line.strip(b"\r\n")]
        return honest(b"".join(kept), grammar)

    patch.setattr(text_files, "_rows", dropped)


def drop_malformed_lines(patch: pytest.MonkeyPatch) -> None:
    honest = text_files._odd_rows
    patch.setattr(
        text_files,
        "_odd_rows",
        lambda *rest: {line: row for line, row in honest(*rest).items() if row != [None] * len(row)},
    )


def strict_text(patch: pytest.MonkeyPatch) -> None:
    """Bytes that are not UTF-8 stop the reading."""
    patch.setattr(text_files, "_cell", lambda field, encoding: field.decode(encoding) or None)


def replace_bad_bytes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(text_files, "_cell", lambda field, encoding: field.decode(encoding, "replace") or None)


def pad_short_lines(patch: pytest.MonkeyPatch) -> None:
    honest = text_files._cells

    def padded(fields: list[bytes] | None, grammar: Any) -> list[str | None]:
        width = grammar.width
        return honest(None if fields is None else [*fields, *[b""] * width][:width], grammar)

    patch.setattr(text_files, "_cells", padded)


def trust_the_parser(patch: pytest.MonkeyPatch) -> None:
    """Every line of as many delimiters as there should be is the parser's."""

    def plain(block: bytes, _data: Any, starts: Any, ends: Any, grammar: Any) -> Any:
        fields = [block[start:end].count(grammar.delimiter) + 1 for start, end in zip(starts, ends, strict=True)]
        return np.array(fields, dtype=np.int64) == grammar.width

    patch.setattr(text_files, "_plain", plain)


def believe_quotes(patch: pytest.MonkeyPatch) -> None:
    """Quotes in even numbers are well placed."""
    honest = text_files._inside_quotes

    def inside(data: Any, starts: Any, ends: Any, grammar: Any) -> Any:
        within, _ = honest(data, starts, ends, grammar)
        return within, ~within[ends]

    patch.setattr(text_files, "_inside_quotes", inside)


def check_rules_by_example(folder: Path) -> None:
    body = [
        b"1,2",
        b"",
        b"3",
        b"4,5,6",
        b'"7,8',
        b"\xff,9",
        b"a\rb,c",
        b"d\0e,f",
        b"\xef\xbb\xbfg,h",
        b"\ti,j",
        b'"k" l,m',
        b'"n""o,p',
    ]
    check_each_line_is_its_own_row(folder, body, COMMA, 2)
    check_each_line_is_its_own_row(folder, body[::-1], COMMA, 2)


LIES: tuple[tuple[Callable[[pytest.MonkeyPatch], None], Callable[[Path], None]], ...] = (
    (universal_newlines, check_rules_by_example),
    (swallow_lines, check_rules_by_example),
    (swallow_lines, check_one_line_moves_one_row),
    (drop_empty_lines, check_rules_by_example),
    (drop_malformed_lines, check_rules_by_example),
    (strict_text, check_rules_by_example),
    (strict_text, check_one_line_moves_one_row),
    (replace_bad_bytes, check_rules_by_example),
    (pad_short_lines, check_rules_by_example),
    (trust_the_parser, check_rules_by_example),
    (believe_quotes, check_rules_by_example),
)


@pytest.mark.parametrize("check", [check_rules_by_example, check_one_line_moves_one_row])
def test_the_checks_pass_on_the_honest_reader(tmp_path: Path, check: Callable[[Path], None]) -> None:
    check(tmp_path)


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_every_lie_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: Callable[[Any], None], check: Callable[[Path], None]
) -> None:
    lie(monkeypatch)
    with pytest.raises((AssertionError, DPSQLError)):
        check(tmp_path)
