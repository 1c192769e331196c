"""Command-line options for the format of text files, named as the settings of the schema file."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from typing import Any

from dpsql.schema.text_format import TEXT_WORDS

_Add = Callable[..., object]


def add_text_words(add: _Add) -> None:
    """Add the options for the format of text files on the command line; the schema file has settings for its own."""
    add("--delimiter", type=_sign, metavar="SIGN", help="the character between fields (default: a comma; \\t is a tab)")
    add("--quote", type=_sign, metavar="SIGN", help="the character around fields (default: a double quote; '': none)")
    add("--header", type=_names, metavar="NAMES", help="the names of columns, as name,age, where no line has them")
    add("--skip", type=int, metavar="N", help="how many lines stand above the header")
    add("--encoding", metavar="NAME", help="the encoding of the file, such as latin-1 or utf-16 (default: utf-8)")
    add("--multiline", action="store_true", default=None, help="quoted fields may hold line ends")


def text_words(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the format options of a command line."""
    values = {word: getattr(arguments, word) for word in TEXT_WORDS}
    return {word: value for word, value in values.items() if value is not None}


def _sign(text: str) -> str:
    return "\t" if text == "\\t" else text


def _names(text: str) -> list[str]:
    """Split names at commas; double quotes protect commas within names."""
    return next(csv.reader([text], skipinitialspace=True), [""])
