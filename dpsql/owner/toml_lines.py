"""Line numbers of the settings in a TOML file.

Neither the standard library's parser, which reads the file, nor the items of tomlkit provide line numbers. Therefore
the text is split into statements: a statement is the fewest lines that the parser accepts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Path = tuple[str, ...]
"""The names that lead to a setting: ("tables", "people", "columns", "age", "bounds")."""

_MANY = 50
_ENDS = ("]", "}", '"', "'")
"""Possible ends of the last line of many, except for comments: not every line of a long list need be tried."""


def lines_of(text: str) -> dict[Path, int]:
    """Return the line, from 1, on which each table and setting of a valid TOML text begins; the first, for a table
    named more than once."""
    lines: dict[Path, int] = {}
    section: Path = ()
    for line, statement in _statements(text):
        content = tomllib.loads(statement)
        paths = list(_paths(content))
        if statement.lstrip().startswith("["):
            section = max(paths, key=len, default=())
            paths = [section[:end] for end in range(1, len(section) + 1)]
        else:
            paths = [(*section, *path) for path in paths]
        for path in paths:
            lines.setdefault(path, line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with the line on which it begins."""
    pieces: list[str] = []
    begin = 1
    for number, line in enumerate(text.split("\n"), start=1):  # TOML knows no other line ends
        if not pieces:
            begin = number
        pieces.append(f"{line}\n")
        if len(pieces) > _MANY and not line.rstrip().endswith(_ENDS) and "#" not in line:
            continue
        statement = "".join(pieces)
        if _is_whole(statement):
            yield begin, statement
            pieces = []


def _is_whole(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _paths(content: Mapping[str, Any]) -> Iterator[Path]:
    """Yield every path of names in a content."""
    for name, value in content.items():
        yield (name,)
        if isinstance(value, Mapping):
            yield from ((name, *path) for path in _paths(value))
        elif isinstance(value, list) and value and isinstance(value[-1], Mapping):  # [[tables]]
            yield from ((name, *path) for path in _paths(value[-1]))
