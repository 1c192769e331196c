"""Headers of common files: refused with words that read them, wherever these are typed."""

from __future__ import annotations

import re
import shlex
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpsql
from dpsql.errors import InvalidArgument, InvalidSchema
from dpsql.owner import check, init, suggest_schema
from dpsql.schema.encodings import encoding_named
from dpsql.schema.text_format import TextFormat
from dpsql.session.owner_file import Schema
from dpsql.shell.cli import main
from dpsql.sources.text_files import header_of, read_text

BODY = "1,20,Köln\n2,30,Bonn\n"
COMMON = {
    "pandas index": (b",age,city\n" + BODY.encode(), ["column1", "age", "city"]),
    "a name twice": (b"age,Age,city\n" + BODY.encode(), ["age", "Age_2", "city"]),
    "a made-up name that is taken": (b"column2,,city\n" + BODY.encode(), ["column2", "column2_2", "city"]),
    "a delimiter at the end": (b"id,age,city,\n1,20,x,\n2,30,y,\n", ["id", "age", "city", "column4"]),
    "semicolons": ("id;age;city\n" + BODY.replace(",", ";")).encode(),
    "tabs": ("id\tage\tcity\n" + BODY.replace(",", "\t")).encode(),
    "bars and quotes": ('"id"|"age"|"city"\n' + BODY.replace(",", "|")).encode(),
    "Excel": ("sep=;\r\nid;age;city\r\n" + BODY.replace(",", ";")).encode(),
    "Excel with tabs": ('"sep=\t"\r\nid\tage\tcity\r\n' + BODY.replace(",", "\t")).encode(),
    "an empty line above": ("\nid,age,city\n" + BODY).encode(),
    "two empty rows of a sheet": (",,\n,,\nid,age,city\n" + BODY).encode(),
    "Latin-1": ("id,größe,city\n" + BODY).encode("latin-1"),
    "UTF-16 with a mark": ("id,age,city\n" + BODY).encode("utf-16"),
    "UTF-16 without a mark": ("id,age,city\n" + BODY).encode("utf-16-le"),
    "UTF-16 of the other order": ("id,age,city\n" + BODY).encode("utf-16-be"),
    "UTF-16 and tabs": ("id\tage\tcity\r\n" + BODY.replace(",", "\t")).encode("utf-16"),
    "UTF-32": ("id,age,city\n" + BODY).encode("utf-32"),
}
"""Files of two rows; the names that stand there unless the words name them."""
common = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def content_and_names(name: str) -> tuple[bytes, list[str]]:
    case: Any = COMMON[name]
    if isinstance(case, tuple):
        return case
    return case, ["id", "größe" if name == "Latin-1" else "age", "city"]


def refusal_of(file: Path, words: dict[str, Any]) -> InvalidSchema:
    with pytest.raises(InvalidSchema) as refused:
        dpsql.Table(file, **words)
    return refused.value


def words_typed(hint: str) -> dict[str, Any]:
    """The arguments of the call that a hint writes, as Python reads them."""
    call = re.search(r'^Write dpsql\.Table\("[^"]*", (.*)\)\.$', hint, re.MULTILINE)
    assert call is not None, hint
    return dict(eval(f"dict({call[1]})"))


def read_by_advice(file: Path) -> tuple[dict[str, Any], dpsql.Table]:
    """The words that refusals advise, one after another, and the table that they read."""
    words: dict[str, Any] = {}
    for _ in range(4):
        try:
            return words, dpsql.Table(file, **words)
        except InvalidSchema as refusal:
            words |= words_typed(refusal.hint)
    raise AssertionError(words)


@pytest.mark.parametrize("name", COMMON)
def test_the_advice_of_a_refusal_reads_the_file(name: str, tmp_path: Path) -> None:
    content, names = content_and_names(name)
    file = tmp_path / "people.csv"
    file.write_bytes(content)
    refusal_of(file, {})
    words, table = read_by_advice(file)
    assert list(table.frame.columns) == names
    assert table.frame.notna().to_numpy()[:, :3].all()
    assert len(table.frame) == 2
    tables = {"people": dpsql.Table(file, **words)}
    for engine in ("pandas", "duckdb"):
        sql = f'SELECT COUNT(*) AS n, COUNT("{names[0]}") AS a, COUNT("{names[2]}") AS c FROM people'
        assert list(dpsql.query(tables, sql, epsilon=1e8, engine=engine)) == [(2, 2, 2)]


@pytest.mark.parametrize("name", COMMON)
def test_the_advice_is_typed_at_the_command_line_and_in_the_owners_file(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content, names = content_and_names(name)
    (tmp_path / "people.csv").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    asked = ["--budget", "1e9", "--epsilon", "1e8", "--yes", "-c", f'SELECT COUNT("{names[0]}") AS n FROM people']
    options: list[str] = []
    lines: list[str] = []
    for _ in range(4):
        if main(["people.csv", *options, *asked]) == 0:
            break
        told = capsys.readouterr().err
        pass_line = re.search(r"^  Pass (--.*)$", told, re.MULTILINE)
        assert pass_line is not None, told
        options += shlex.split(pass_line[1])
        rest = told[pass_line.end() :].split("In an owner's file write:\n")[1]
        lines += [line.strip() for line in rest.splitlines() if re.match(r"  \w+ = ", line)]
    assert capsys.readouterr().out.splitlines()[1].startswith("2,")
    said = {word: value for line in lines for word, value in tomllib.loads(line).items()}
    frame = read_text(tmp_path / "people.csv", TextFormat.of("t", said))
    assert list(frame.columns) == names
    assert len(frame) == 2


@pytest.mark.parametrize("name", COMMON)
def test_init_writes_the_words_to_be_checked(name: str, tmp_path: Path) -> None:
    content, names = content_and_names(name)
    (tmp_path / "people.csv").write_bytes(content)
    target = init([tmp_path / "people.csv"])
    assert "# check: read from the first line" in target.read_text()
    assert list(tomllib.loads(target.read_text())["tables"]["people"]["columns"]) == names
    assert check(target) == ()
    session = dpsql.Session(schema=Schema.from_toml(target), budget=dpsql.Budget(1e9))
    assert session.query("SELECT COUNT(*) AS n FROM people", epsilon=1e8).item() == 2


def test_check_shows_the_words_as_toml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.csv").write_text("a;b\n1;2\n")
    (tmp_path / "p.toml").write_text('[tables.p]\npath = "p.csv"\nunit = "row"\n')
    assert main(["check", str(tmp_path / "p.toml")]) == 2
    assert '  delimiter = ";"\n' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (b"a;b\n1;2\n", {"delimiter": ","}, None),
        (b'"a;b"\n1\n', {}, None),
        (b"a\n1\n", {}, None),
        (b"a,b;c\n1,2\n", {}, None),
        (b"a,b\n1,2\n", {"skip": 5}, "is empty after the 5 that are skipped"),
        (b"a,b\r1,2\r", {}, "0x0D"),
        (b'"a\nb",c\n1,2\n', {}, "multiline = true"),
        (b"a,\xff\n", {"encoding": "cp1252"}, None),
        (b"a,\x81\n", {"encoding": "cp1252"}, "is not text in CP1252"),
        (b"a,b\n", {"encoding": "utf-16"}, "no byte order mark"),
        (b"a,b\n1,2\n", {"header": ["x", ""]}, "column 2 has no name"),
        (b"a,b\n1,2\n", {"header": ["x", "X"]}, "two columns are named"),
    ],
)
def test_what_is_refused_and_what_is_not(
    content: bytes, words: dict[str, Any], message: str | None, tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_bytes(content)
    if message is None:
        dpsql.Table(tmp_path / "p.csv", **words)
    else:
        assert message in str(refusal_of(tmp_path / "p.csv", words))


def test_a_header_of_several_lines_is_read(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b'title\r\n"a\r\nb",c\r\n"1\r\n2",3\r\n')
    form = TextFormat(multiline=True, skip=1)
    assert header_of(tmp_path / "p.csv", form) == ["a\nb", "c"]
    assert read_text(tmp_path / "p.csv", form).to_numpy().tolist() == [["1\n2", "3"]]
    (tmp_path / "q.csv").write_bytes(b'"a\nb",c,c\n1,2,3\n')
    words = words_typed(refusal_of(tmp_path / "q.csv", {"multiline": True}).hint)
    assert words == {"header": ["a\nb", "c", "c_2"], "skip": 2}
    assert len(dpsql.Table(tmp_path / "q.csv", multiline=True, **words).frame) == 1


def test_lines_above_the_header_are_left_out(tmp_path: Path) -> None:
    for above in ("", "Report\n", "a\n\nb\n", '"\n', "x\r\n"):
        for first in (b"", b"\xef\xbb\xbf"):
            (tmp_path / "p.csv").write_bytes(first + (above + "a,b\n1,2\n").encode())
            form = TextFormat(skip=above.count("\n"))
            assert header_of(tmp_path / "p.csv", form) == ["a", "b"]
            assert read_text(tmp_path / "p.csv", form).to_numpy().tolist() == [["1", "2"]]
    (tmp_path / "p.csv").write_bytes(b"x\n1,2\n3,4")
    form = TextFormat(skip=1, header=("a", "b"))
    assert read_text(tmp_path / "p.csv", form).to_numpy().tolist() == [["1", "2"], ["3", "4"]]


def test_archives_of_one_file_are_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.csv.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/", "")
        archive.writestr("folder/p.csv", "a,b\n" + "1,2\n" * 1000)
        archive.writestr("__MACOSX/p.csv", "x")
    frame = dpsql.Table(tmp_path / "p.csv.zip").frame
    assert (list(frame.columns), len(frame)) == (["a", "b"], 1000)
    pd.DataFrame({"a": [1]}).to_csv(tmp_path / "q.csv.zip", index=False)
    assert len(dpsql.Table(tmp_path / "q.csv.zip").frame) == 1
    with zipfile.ZipFile(tmp_path / "two.csv.zip", "w") as archive:
        archive.writestr("a.csv", "a\n")
        archive.writestr("b.csv", "a\n")
    (tmp_path / "bad.csv.zip").write_bytes(b"PK no archive")
    (tmp_path / "p.csv.zip").rename(tmp_path / "p.zip")
    for name, message in (
        ("two.csv.zip", "holds 2 files"),
        ("bad.csv.zip", "cannot be read"),
        ("p.zip", r"p\.csv\.zip"),
    ):
        with pytest.raises(InvalidSchema) as refused:
            dpsql.Table(tmp_path / name)
        assert re.search(message, str(refused.value))
        assert refused.value.__context__ is None


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "koi8-r", "gb18030", "shift_jis", "euc_kr", "utf-16-le"])
@common
@given(content=st.lists(st.binary(max_size=8), max_size=6))
def test_in_every_encoding_a_line_changes_only_its_own_row(encoding: str, tmp_path: Path, content: list[bytes]) -> None:
    unit = 2 if "16" in encoding else 1
    ended = "\n".encode(encoding)
    lines = [line[: len(line) // unit * unit] for line in content]
    lines = [b"".join(each for each in _units(line, unit) if each != ended) for line in lines]
    form = TextFormat(encoding=encoding)

    def rows(body: list[bytes]) -> list[list[str | None]]:
        (tmp_path / "t.csv").write_bytes("a,b\n".encode(encoding) + b"".join(line + ended for line in body))
        frame = read_text(tmp_path / "t.csv", form)
        return [[None if pd.isna(cell) else cell for cell in row] for row in frame.to_numpy(dtype=object)]

    assert rows(lines) == [row for line in lines for row in rows([line])]


def _units(line: bytes, unit: int) -> list[bytes]:
    return [line[at : at + unit] for at in range(0, len(line), unit)]


def test_cells_that_an_encoding_does_not_have_are_null(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n\x81,1\n\xe4,2\n\xc3\xa9,3\n")
    frame = read_text(tmp_path / "t.csv", TextFormat(encoding="cp1252"))
    assert [None if pd.isna(cell) else cell for cell in frame["a"]] == [None, "ä", "Ã©"]
    frame = read_text(tmp_path / "t.csv", TextFormat(encoding="euc_kr"))
    assert frame["b"].tolist() == ["1", "2", "3"]
    assert pd.isna(frame["a"][0])


def test_only_encodings_without_a_state_between_lines_are_known() -> None:
    assert [encoding_named(word) for word in ("ISO-8859-1", "windows-1252", "UTF8", "UTF_16_LE", "Shift-JIS")] == [
        *("latin-1", "cp1252", "utf-8", "utf-16-le", "shift_jis")
    ]
    for word in ("iso2022_jp", "utf-7", "hz", "cp037", "base64", "rot13", "nothing", "", "a\0", "é"):
        assert encoding_named(word) is None
        with pytest.raises(InvalidSchema, match="encoding must name"):
            Schema.from_dict({"tables": {"t": {"encoding": word}}})
    for skip in (-1, True, 1.0, "2", 10_001):
        with pytest.raises(InvalidSchema, match="skip must be a whole number"):
            Schema.from_dict({"tables": {"t": {"skip": skip}}})


def test_options_of_the_command_line_take_the_place_of_the_owners_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_bytes("x\nn|'ä|b'\n".encode("latin-1"))
    toml = '[budget]\nepsilon = 1e9\n[tables.p]\npath = "p.csv"\ndelimiter = ";"\nskip = 7\n'
    (tmp_path / "p.toml").write_text(toml)
    words = ["--delimiter", "|", "--quote", "'", "--header", 'a,"b,c"', "--skip", "1", "--encoding", "latin-1"]
    asked = ["--schema", "p.toml", "--no-ledger", "--epsilon", "1e8", "--yes", "-c", 'SELECT COUNT("b,c") AS n FROM p']
    assert main(["p.csv", *words, *asked]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("1,")
    assert main(["--schema", "p.toml", "--skip", "1", "-c", "SELECT 1"]) == 2
    assert "--skip is of files of the command line" in capsys.readouterr().err
    assert main(["init", "p.csv", *words]) == 2  # p.toml stays
    assert main(["init", "p.csv", "-o", "q.toml", *words]) == 0
    assert list(tomllib.loads((tmp_path / "q.toml").read_text())["tables"]["p"]["columns"]) == ["a", "b,c"]


def test_words_about_text_are_checked_where_a_file_is_begun(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("a;b\n1;2\n")
    assert 'delimiter = ";"\n' in suggest_schema(tmp_path / "p.csv", delimiter=";")
    with pytest.raises(InvalidArgument, match='there is no argument "delimeter". Did you mean "delimiter"'):
        suggest_schema(tmp_path / "p.csv", delimeter=";")
    with pytest.raises(InvalidArgument, match="skip= is of text files"):
        suggest_schema(pd.DataFrame({"a": [1]}), skip=1)


def test_the_version_of_content_follows_the_words(tmp_path: Path) -> None:
    """The same bytes are other rows under another `skip`."""
    (tmp_path / "p.csv").write_text("a\n1\n2\n3\n")
    answers = []
    for skip in (0, 0, 2):
        table = dpsql.Table(tmp_path / "p.csv", version="content", skip=skip, header=["a"])
        with dpsql.Session({"p": table}, budget=dpsql.Budget(1e9), ledger=tmp_path / "p.ledger") as session:
            answers.append(session.query("SELECT COUNT(*) AS n FROM p", epsilon=1e8).item())
    assert answers == [4, 4, 2]
