"""The word `content` is no name for data: a file that changed would be given its old answers."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.schema.declaration import Declaration

FRAME = pd.DataFrame({"age": [1, 2, 3]})


def in_a_table(word: Any) -> object:
    return dpsql.Table(FRAME, version=word)


def declared(word: Any) -> object:
    return dpsql.declare(FRAME, version=word)


def declaration(word: Any) -> object:
    return Declaration.of(version=word)


@pytest.mark.parametrize("word", ["content", "Content", "CONTENT", "cOnTeNt", " content", "content\n"])
@pytest.mark.parametrize("way", [in_a_table, declared, declaration])
def test_content_is_no_version(way: Any, word: str):
    with pytest.raises(InvalidSchema, match="old answers") as caught:
        way(word)
    assert 'version="2026-11"' in caught.value.hint


@pytest.mark.parametrize("word", ["content", "CONTENT"])
def test_content_is_no_version_in_a_file(tmp_path: Path, word: str):
    (tmp_path / "people.csv").write_text("age\n1\n")
    path = tmp_path / "owner.toml"
    path.write_text(f'[budget]\nepsilon = 1\n[tables.people]\npath = "people.csv"\nversion = "{word}"\n')
    with pytest.raises(InvalidSchema, match="old answers"):
        dpsql.Schema.from_toml(path)


@pytest.mark.parametrize("word", ["contents", "content-1", "1", 1, "the content"])
def test_other_words_are_names(word: Any):
    in_a_table(word)
