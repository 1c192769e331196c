"""The word `content`, otherwise spelled, is no name for data: a file that changed would be given its old answers."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.core.ledger.file import open_ledger
from dpsql.errors import InvalidSchema
from dpsql.schema.declaration import Declaration

FRAME = pd.DataFrame({"age": [1, 2, 3]})


def in_a_table(word: Any) -> object:
    return dpsql.Table(FRAME, version=word)


def declared(word: Any) -> object:
    return dpsql.declare(FRAME, version=word)


def declaration(word: Any) -> object:
    return Declaration.of(version=word)


@pytest.mark.parametrize("word", ["Content", "CONTENT", "cOnTeNt", " content", "content\n"])
@pytest.mark.parametrize("way", [in_a_table, declared, declaration])
def test_content_is_no_version(way: Any, word: str):
    with pytest.raises(InvalidSchema, match="old answers") as caught:
        way(word)
    assert 'Write version="content" for a version that is taken from the files' in caught.value.hint
    assert 'version="2026-11"' in caught.value.hint


@pytest.mark.parametrize("word", [" content", "CONTENT"])
def test_content_is_no_version_in_a_file(tmp_path: Path, word: str):
    (tmp_path / "people.csv").write_text("age\n1\n")
    path = tmp_path / "owner.toml"
    path.write_text(f'[budget]\nepsilon = 1\n[tables.people]\npath = "people.csv"\nversion = "{word}"\n')
    with pytest.raises(InvalidSchema, match="old answers"):
        dpsql.Schema.from_toml(path)


@pytest.mark.parametrize("word", ["content", "contents", "content-1", "1", 1, "the content"])
def test_other_words_are_names(word: Any):
    in_a_table(word)


GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.ledger")), ids=lambda file: file.stem)
def test_ledgers_of_every_format_have_a_secret_and_are_otherwise_as_before(tmp_path: Path, file: Path):
    copy = Path(shutil.copy(file, tmp_path / "a.ledger"))
    keys = set()
    for _ in range(2):
        with closing(open_ledger(copy, owner=True)) as ledger:
            lines = ledger.to_json()
            keys.add(ledger.content_key)
            assert ledger.to_json() == lines
    assert len(keys) == 1
    assert keys.pop().hex() not in lines
    if file.stem == "format2_secret":
        with closing(open_ledger(file, owner=True)) as ledger:
            assert ledger.content_key.hex() == "12504fba397334bc44e5cb42b52e638130e5ddd716306d1f083fb4b57ecd5664"
