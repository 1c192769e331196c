"""JSON lines: a line changes only its own row, whatever bytes it holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.schema.declaration import Declaration
from dpsql.session.owner_file import Schema
from dpsql.sources import json_lines
from dpsql.sources.frames import read_table
from dpsql.sources.json_lines import read_json_lines

common = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
PIECES = (
    *(b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\", b"a", b"1", b" ", b"\t", b"\r", b"\0", b"\xff", b"\xef\xbb\xbf"),
    *(b'{"a":1}', b'"a":', b'{"a":"x","b":2}', b"null", b"NaN", b'"\\ud800"', b'"\\u0000"', "é".encode(), b"1e999"),
)
lines = st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join), max_size=8)


def rows(folder: Path, content: bytes, columns: tuple[str, ...] = ("a", "b")) -> list[list[str | None]]:
    file = folder / "t.jsonl"
    file.write_bytes(content)
    found = read_json_lines(file, columns)
    assert list(found.columns) == list(columns)
    return [[None if pd.isna(cell) else str(cell) for cell in row] for row in found.to_numpy(dtype=object).tolist()]


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        (b'{"a": 1, "b": "x"}', ["1", "x"]),
        (b'{"b": -1.50, "c": 2}', [None, "-1.50"]),
        (b'{"a": true, "b": null}', ["true", None]),
        (b'{"a": {"b": 1}, "b": [1]}', [None, None]),
        (b'{"a": 1, "a": 2, "b": ""}', ["2", ""]),
        (b'{"a": NaN, "b": -Infinity}', [None, None]),
        (b'{"a": 12345678901234567890123, "b": 1e999}', ["12345678901234567890123", "1e999"]),
        (b'  {"a": "\\u00e9\\ud83d\\ude00", "b": "\\ud800"} \r', ["é😀", None]),
        (b'{"a": "\xff", "b": "y"}', [None, "y"]),
        (b'{"A": 1}', [None, None]),
        (b"[1, 2]", [None, None]),
        (b'"a"', [None, None]),
        (b'{"a": 1', [None, None]),
        (b'{"a": 1} {"a": 2}', [None, None]),
        (b"", [None, None]),
        (b"[" * 100_000, [None, None]),
        (b'{"a": ' + b"9" * 10_000 + b"}", ["9" * 10_000, None]),
        (b'\xef\xbb\xbf{"a": 1}', [None, None]),
    ],
)
def test_a_line_gives_its_own_cells(tmp_path: Path, line: bytes, cells: list[str | None]) -> None:
    other = b'{"a": "left", "b": "alone"}\n'
    assert rows(tmp_path, other + line + b"\n" + other) == [["left", "alone"], cells, ["left", "alone"]]


def test_a_byte_order_mark_in_front_and_a_last_line_without_end(tmp_path: Path) -> None:
    assert rows(tmp_path, b'\xef\xbb\xbf{"a": 1}\n{"b": 2}') == [["1", None], [None, "2"]]
    assert rows(tmp_path, b"") == []


@given(parts=lines, number=st.integers(0, 8), instead=st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join))
@common
def test_a_changed_line_changes_its_own_row_alone(
    tmp_path: Path, parts: list[bytes], number: int, instead: bytes
) -> None:
    number = min(number, len(parts))
    before, behind = parts[:number], parts[number + 1 :]
    first = b"{}\n"  # so that no line begins with the file's own mark
    one, other = (
        rows(tmp_path, first + b"".join(each + b"\n" for each in (*before, line, *behind)))
        for line in (parts[number] if number < len(parts) else b"", instead)
    )
    assert len(one) == len(other)
    place = number + 1
    assert one[:place] + one[place + 1 :] == other[:place] + other[place + 1 :]


def test_lines_are_the_same_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"".join(json.dumps({"a": number, "b": str(number)}).encode() + b"\n" for number in range(10))
    whole = rows(tmp_path, content)
    monkeypatch.setattr(json_lines, "_BATCH", 3)
    assert rows(tmp_path, content) == whole


def test_columns_are_those_that_are_declared(tmp_path: Path) -> None:
    file = tmp_path / "people.jsonl"
    people: list[dict[str, Any]] = [{"id": n, "age": n % 80, "city": "x", "secret": "not declared"} for n in range(50)]
    file.write_text("\n".join(map(json.dumps, people)), encoding="utf-8")
    declared = Declaration.of({"age": (0, 100)}, {"city": ["x", "y"]}, {"id": "integer"}, unit="id", max_rows=2)
    frame, held = read_table(file, declared)
    assert list(frame.columns) == ["age", "id", "city"]
    session = dpsql.Session({"people": dpsql.Table.of(frame, held)}, budget=dpsql.Budget(1e9))
    found = session.query("SELECT city, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY city", epsilon=1e8).df
    assert [each[:2] for each in found.to_numpy(dtype=object).tolist()] == [["x", 50], ["y", 0]]
    assert float(found.loc[0, "a"]) == pytest.approx(24.5, abs=0.01)
    with pytest.raises(InvalidSchema, match="does not name its columns"):
        read_table(file, Declaration())


def test_the_owners_file_names_json_lines(tmp_path: Path) -> None:
    (tmp_path / "t.ndjson").write_text('{"x": 3}\nnot json\n', encoding="utf-8")
    words = '[budget]\nepsilon = 1e9\n[tables.t]\npath = "t.ndjson"\n[tables.t.columns]\nx = { type = "integer" }\n'
    (tmp_path / "s.toml").write_text(words, encoding="utf-8")
    session = dpsql.Session({}, schema=Schema.from_toml(tmp_path / "s.toml"))
    found = session.query("SELECT COUNT(*) AS n, COUNT(x) AS x FROM t", epsilon=1e8).df
    assert found.to_numpy().tolist() == [[2, 1]]
    (tmp_path / "s.toml").write_text(words.replace("[tables.t.columns]", 'quote = "\'"\n[tables.t.columns]'))
    with pytest.raises(InvalidSchema, match="no delimiter, quote or header"):
        dpsql.Session({}, schema=Schema.from_toml(tmp_path / "s.toml"))


def test_errors_tell_no_bytes_of_a_file(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "none.jsonl", "no file"),
        (tmp_path, "no file"),
        (Path("\0.jsonl"), "cannot be read"),
    ):
        with pytest.raises(InvalidSchema, match=words) as found:
            read_json_lines(path, ["a"])
        assert found.value.__cause__ is None
        assert found.value.__context__ is None
