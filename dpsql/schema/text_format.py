"""What an owner says of how a text file is written: delimiter, quote, header. Nothing of it is guessed from rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsql.errors import InvalidSchema
from dpsql.schema.frozen import dataclass
from dpsql.schema.words import briefly

TEXT_WORDS = ("delimiter", "quote", "header", "multiline")
"""The names of the words, as an owner's file writes them."""
TEXT_ENDINGS = (".csv", ".tsv", ".txt")
LINES_ENDINGS = (".jsonl", ".ndjson")
"""Of files of one JSON object a line."""
PACKED_ENDINGS = (".gz", ".bz2", ".xz", ".zst")
"""Behind one of these endings."""
_TAKEN = frozenset("\0\n\r ")
_ALIKE = "{}: delimiter and quote are one character."
_NO_QUOTES = 'Write quote = "" for a file without quotes.'


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How the records of a text file are written.

    delimiter: one ASCII character, None for the one that goes with the file's name (a tab for .tsv, else a comma);
    quote: one ASCII character, "" for none; header: the columns' names of a file whose first line is a row already,
    None where the first line names them; multiline: whether a quoted cell may hold line ends.
    """

    delimiter: str | None = None
    quote: str = '"'
    header: tuple[str, ...] | None = None
    multiline: bool = False

    def __post_init__(self) -> None:
        signs = [each for each in (self.delimiter, self.quote) if each]
        if len(set(signs)) < len(signs) or not all(_is_sign(each) for each in signs):
            raise ValueError(f"not a format of text files: {self}")

    @classmethod
    def of(cls, where: str, words: Mapping[str, Any]) -> TextFormat:
        """What an owner's file says of one table. Raises InvalidSchema."""
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
        return cls(delimiter, quote, _header(where, words.get("header", True)), multiline)

    def signs_of(self, path: Path) -> tuple[bytes, bytes]:
        """The delimiter and the quote of the file, each a byte. Raises InvalidSchema where they are one."""
        endings = [each.casefold() for each in path.suffixes]
        delimiter = self.delimiter or ("\t" if ".tsv" in endings[-2:] else ",")
        if delimiter == self.quote:
            raise InvalidSchema(_ALIKE.format(path.name), hint=_NO_QUOTES)
        return delimiter.encode("ascii"), self.quote.encode("ascii")


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
