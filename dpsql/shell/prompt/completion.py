"""Completion: names of the schema, SQL keywords, and the prompt's commands. Never data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path

from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.session.vocabulary import KEYWORDS, as_identifier, words
from dpsql.shell.prompt.command import Command
from dpsql.shell.statements import open_quote, split

_NAME = r'(?:"((?:[^"]|"")+)"|([^\W\d][\w$-]*))'
_TABLES_FOLLOW = re.compile(r"\b(?:from|join|describe|desc)\s+$", re.IGNORECASE)
_TABLE_AND_ALIAS = re.compile(rf"\b(?:from|join)\s+{_NAME}(?:\s+(?:as\s+)?([^\W\d]\w*))?", re.IGNORECASE)
_OWNER = re.compile(rf"{_NAME}\.$")
_WORD = re.compile(r"[\w$][\w$-]*$")
_LAST_WORD = re.compile(r"[^\W\d][\w$]*$")
_PATHS = (".read", ".once", ".output")
_SQL = (".explain", ".fresh")
_TABLES = (".schema", ".bounds", ".keys")
_MOST = 200


@dataclass(frozen=True)
class Candidate:
    """A text to replace the last `length` characters, and its kind."""

    text: str
    length: int
    kind: str


class Completer:
    """Candidates for the text being typed, from declared facts and keywords only."""

    def __init__(self, tables: Iterable[TableSchema], commands: Iterable[Command]) -> None:
        self._columns = {table.name: [column.name for column in table.columns] for table in tables}
        self._commands = {each.name: each for each in commands}

    def get_ready(self) -> None:
        """Load the keywords in advance, which takes a tenth of a second."""
        _ = self._words

    def candidates(self, before: str, after: str = "") -> list[Candidate]:
        """Return the candidates at the cursor, best first; `before` and `after` are the text around it."""
        return list(self._all(before, after))[:_MOST]

    def _all(self, before: str, after: str) -> Iterator[Candidate]:
        line = before.lstrip()
        if line.startswith("."):
            word, space, rest = line.partition(" ")
            if not space:
                yield from _starting(word, self._commands, "command")
                return
            if word not in _SQL:
                yield from self._arguments(word, rest)
                return
            before = rest
        statement = split(before).rest
        opened = open_quote(before)
        if opened == '"':
            typed = statement.rpartition('"')[2]
            yield from self._names(statement[: -len(typed) - 1], after, typed, len(typed) + 1)
        elif not opened and open_quote(f"{before}'"):  # a quote that opens nothing is in a comment
            yield from self._open(statement, after)

    def _arguments(self, word: str, typed: str) -> Iterator[Candidate]:
        command = self._commands.get(word)
        if word in _TABLES:
            yield from _starting(typed, self._columns, "table")
        elif word in _PATHS:
            yield from _paths(typed)
        elif command is not None:
            yield from _starting(typed, command.choices, "word")

    def _open(self, statement: str, after: str) -> Iterator[Candidate]:
        """Yield candidates outside quotes: names may contain hyphens, which are minus signs unless quoted."""
        match = _WORD.search(statement)
        typed = match[0] if match else ""
        names = list(self._names(statement[: len(statement) - len(typed)], after, typed, len(typed)))
        if "-" in typed and not names:
            match = _LAST_WORD.search(statement)
            typed = match[0] if match else ""
            names = list(self._names(statement[: len(statement) - len(typed)], after, typed, len(typed)))
        yield from names
        ahead = statement[: len(statement) - len(typed)]
        if typed and not ahead.endswith(".") and not _TABLES_FOLLOW.search(ahead):
            yield from _starting(typed, self._words, "word", like=typed)

    @cached_property
    def _words(self) -> list[str]:
        return words()

    def _names(self, ahead: str, after: str, typed: str, length: int) -> Iterator[Candidate]:
        """Yield tables after FROM and JOIN, columns of one table after its name and a dot, otherwise the columns of all
        tables that the text mentions."""
        if _TABLES_FOLLOW.search(ahead):
            yield from _named(typed, self._columns, length, "table")
            return
        mentioned = self._mentioned(f"{ahead} {after}")
        owner = _OWNER.search(ahead)
        if owner:
            tables = [mentioned.get((owner[1] or owner[2]).casefold(), "")]
        else:
            tables = list(dict.fromkeys(mentioned.values())) or list(self._columns)
        columns = dict.fromkeys(column for table in tables for column in self._columns.get(table, ()))
        yield from _named(typed, columns, length, "column")
        if not owner:
            yield from _named(typed, tables, length, "table")

    def _mentioned(self, text: str) -> dict[str, str]:
        """Return the tables after FROM and JOIN, by their names and aliases."""
        known = {name.casefold(): name for name in self._columns}
        tables = {}
        for quoted, bare, alias in _TABLE_AND_ALIAS.findall(text):
            name = known.get((quoted or bare).casefold())
            if name is not None:
                tables[name.casefold()] = name
                if alias and alias.upper() not in KEYWORDS:
                    tables[alias.casefold()] = name
        return tables


def _named(typed: str, names: Iterable[str], length: int, kind: str) -> Iterator[Candidate]:
    """Yield names with this prefix, quoted where SQL requires it."""
    folded = typed.casefold()
    for name in names:
        if name.casefold().startswith(folded):
            yield Candidate(as_identifier(name), length, kind)


def _starting(typed: str, words: Iterable[str], kind: str, like: str = "") -> Iterator[Candidate]:
    """Yield words with this prefix, in lower case if `like` is."""
    folded, small = typed.casefold(), like.islower()
    for word in words:
        if word.casefold().startswith(folded):
            yield Candidate(word.lower() if small else word, len(typed), kind)


def _paths(typed: str) -> Iterator[Candidate]:
    folder = Path(typed if typed.endswith("/") else str(Path(typed).parent)).expanduser()
    start = "" if typed.endswith("/") else Path(typed).name
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(start) and (start or not entry.name.startswith(".")):
            yield Candidate(entry.name + ("/" if entry.is_dir() else ""), len(start), "file")
