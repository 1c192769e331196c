"""docs/text-files.md, the owner's page on text files, says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from dpsql.schema.text_format import TEXT_WORDS, TextFormat
from dpsql.session.owner_file import Schema
from dpsql.sources.text_files import read_text

PAGE = (Path(__file__).parent.parent.parent / "docs" / "text-files.md").read_text(encoding="utf-8")
CELL = r"\| (?:`([^`]*)`|(NULL)) "
ROWS = re.findall(f"^\\| `([^`]*)` {CELL}{CELL}\\|$", PAGE, re.MULTILINE)


def test_the_page_has_its_examples() -> None:
    assert len(ROWS) >= 12


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_lines_of_the_page_give_the_cells_beside_them(tmp_path: Path, row: tuple[str, ...]) -> None:
    line, *cells = row
    (tmp_path / "t.csv").write_text(f"name,age\n{line}\n", encoding="utf-8")
    (found,) = read_text(tmp_path / "t.csv", TextFormat()).to_numpy(dtype=object).tolist()
    expected = [None if null else text for text, null in zip(cells[::2], cells[1::2], strict=True)]
    assert [None if pd.isna(cell) else cell for cell in found] == expected


def test_the_page_has_each_word() -> None:
    said = re.search("```toml\n(.*?)```", PAGE, re.DOTALL)
    assert said is not None
    table = re.findall("^\\| `([a-z]+)` \\|", PAGE.partition("## How a text is read")[0], re.MULTILINE)
    assert tuple(table) == TEXT_WORDS
    assert all(f"\n{word} = " in said[1] for word in TEXT_WORDS)


def test_the_owners_file_of_the_page_is_read(tmp_path: Path) -> None:
    said = re.search("```toml\n(.*?)```", PAGE, re.DOTALL)
    assert said is not None
    (tmp_path / "o.toml").write_text(said[1], encoding="utf-8")
    entry = Schema.from_toml(tmp_path / "o.toml").tables["people"]
    assert entry.text == TextFormat(";", "'", ("name", "age"), multiline=True)
    assert entry.path == tmp_path / "people.txt"
