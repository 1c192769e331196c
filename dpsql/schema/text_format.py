"""Declared format of a text file: delimiter, quote, header, encoding. Nothing is guessed from rows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from dpsql.errors import InvalidSchema
from dpsql.schema.column_declarations import briefly
from dpsql.schema.encodings import UTF_8, encoding_named
from dpsql.schema.frozen import dataclass

TEXT_WORDS = ("delimiter", "quote", "header", "skip", "encoding", "multiline")
"""Names of the settings in an owner's file."""
TEXT_ENDINGS = (".csv", ".tsv", ".txt")
LINES_ENDINGS = (".jsonl", ".ndjson")
"""Endings of files with one JSON object per line."""
PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zst", ".zip")
"""Endings of compressed files, after the others."""
_TAKEN = frozenset("\0\n\r ")
_MOST_SKIPPED = 10_000
_ALIKE = "{}: delimiter and quote are one character."
_NO_QUOTES = 'Write quote = "" for a file without quotes.'


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Format of a text file's records.

    delimiter: one ASCII character, None for the default by file name (a tab for .tsv, otherwise a comma); quote: one
    ASCII character, "" for none; header: column names of a file whose first line is a row, None if the first line names
    them; multiline: whether quoted cells may contain line ends; skip: number of lines above the header, or above the
    first row; encoding: that of the whole file, as spelled by `encoding_named`.
    """

    delimiter: str | None = None
    quote: str = '"'
    header: tuple[str, ...] | None = None
    multiline: bool = False
    skip: int = 0
    encoding: str = UTF_8

    def __post_init__(self) -> None:
        signs = [each for each in (self.delimiter, self.quote) if each]
        if len(set(signs)) < len(signs) or not all(_is_sign(each) for each in signs):
            raise ValueError(f"not a format of text files: {self}")

    @classmethod
    def of(cls, where: str, words: Mapping[str, Any]) -> TextFormat:
        """Return the format declared for one table in an owner's file. Raises InvalidSchema."""
        delimiter, quote = words.get("delimiter"), words.get("quote", '"')
        if delimiter is not None:
            _check_sign(where, "delimiter", delimiter)
        if quote != "":
            _check_sign(where, "quote", quote)
        if delimiter == quote:
            raise InvalidSchema(_ALIKE.format(where), hint=_NO_QUOTES)
        multiline = words.get("multiline", False)
        if not isinstance(multiline, bool):
            raise InvalidSchema(f"{where} multiline must be true or false, got {briefly(multiline)}.")
        header, skip = _header(where, words.get("header", True)), _skip(where, words.get("skip", 0))
        return cls(delimiter, quote, header, multiline, skip, _encoding(where, words.get("encoding", UTF_8)))

    def signs_of(self, path: Path) -> tuple[bytes, bytes]:
        """Return the file's delimiter and quote, one byte each. Raises InvalidSchema if they are equal."""
        endings = [each.casefold() for each in path.suffixes]
        delimiter = self.delimiter or ("\t" if ".tsv" in endings[-2:] else ",")
        if delimiter == self.quote:
            raise InvalidSchema(_ALIKE.format(path.name), hint=_NO_QUOTES)
        return delimiter.encode("ascii"), self.quote.encode("ascii")

    @property
    def words(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults, as arguments of `of`."""
        said = {
            each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name) != each.default
        }
        return {word: list(said[word]) if word == "header" else said[word] for word in TEXT_WORDS if word in said}


def words_in_python(words: Mapping[str, Any]) -> str:
    """Format settings as arguments of `dpsql.Table`."""
    return ", ".join(
        f"{word}={value if isinstance(value, bool) else json_text(value)}" for word, value in words.items()
    )


def words_in_toml(words: Mapping[str, Any]) -> str:
    """Format settings as lines of an owner's file."""
    return "\n".join(f"{word} = {json_text(value)}" for word, value in words.items())


def words_in_shell(words: Mapping[str, Any]) -> str:
    """Format settings as options of a command."""
    options = []
    for word, value in words.items():
        if value is True:
            options.append(f"--{word}")
            continue
        text = ",".join(map(_listed, value)) if isinstance(value, list) else str(value).replace("\t", "\\t")
        options.append(f"--{word} {shlex.quote(text)}")
    return " ".join(options)


def json_text(value: object) -> str:
    """Return a value as written in JSON, which TOML and Python can read."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _listed(name: str) -> str:
    """Return a name for a comma-separated list of names."""
    return '"' + name.replace('"', '""') + '"' if set(name) & set('",\n') or name != name.strip() else name


def _is_sign(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text not in _TAKEN


def _check_sign(where: str, word: str, sign: object) -> None:
    if not isinstance(sign, str) or not _is_sign(sign):
        raise InvalidSchema(
            f"{where} {word} must be one ASCII character, no space and no line end, got {briefly(sign)}.",
            hint='Write delimiter = ";", or quote = "" for a file without quotes.',
        )


def _header(where: str, names: object) -> tuple[str, ...] | None:
    if names is True:
        return None
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise InvalidSchema(
            f"{where} header must be true, or the list of the columns' names, got {briefly(names)}.",
            hint='Of a file without a header name the columns: header = ["name", "age"].',
        )
    return tuple(names)


def _skip(where: str, lines: object) -> int:
    if isinstance(lines, int) and not isinstance(lines, bool) and 0 <= lines <= _MOST_SKIPPED:
        return lines
    raise InvalidSchema(
        f"{where} skip must be a whole number from 0 to {_MOST_SKIPPED:,}, got {briefly(lines)}.",
        hint="Write how many lines stand above the header: skip = 2.",
    )


def _encoding(where: str, word: object) -> str:
    encoding = encoding_named(word) if isinstance(word, str) else None
    if encoding is None:
        raise InvalidSchema(
            f"{where} encoding must name an encoding in which each line is read by itself, got {briefly(word)}.",
            hint='Write encoding = "latin-1", "cp1252", "utf-16" or another of docs/text-files.md. A file in an '
            "encoding that is not there is converted first: iconv -f ENCODING -t UTF-8 FILE.",
        )
    return encoding
