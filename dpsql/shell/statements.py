"""Splitting of SQL text into statements at semicolons outside quotes and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dpsql.schema.frozen import dataclass

# Tokens that may contain semicolons, as DuckDB reads them. An unclosed quote extends to the end of the text.
_PIECE = re.compile(
    r"""
      (?P<blank> \s++ | --[^\r\n]*+ )
    | (?P<comment> /\* )
    | (?P<end> ; )
    | [eE]'(?: [^'\\]++ | '' | \\. )*+'?
    | '(?: [^']++ | '' )*+'?
    | "(?: [^"]++ | "" )*+"?
    | \$(?P<tag> (?: [^\W\d]\w*+ )? )\$ .*? (?: \$(?P=tag)\$ | \Z )
    | [^\W\d][\w$]*+
    | //  # an operator, and no start of a comment
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True)
class SplitStatements:
    """Statements that a semicolon ended, and the text after the last one.

    Both begin with their first word: blanks and comments before it, and statements of nothing else, are dropped.
    Finished statements have no semicolon or blanks at their end. `rest` is "" without an unfinished statement.
    """

    finished: tuple[str, ...]
    rest: str


def split(text: str) -> SplitStatements:
    """Split the text at semicolons outside '...', "...", $$...$$, -- and /* */ (which may be nested)."""
    finished: list[str] = []
    start: int | None = None  # where the current statement begins; None before its first word
    for kind, begin in _pieces(text):
        if kind == "end":
            if start is not None:
                finished.append(text[start:begin].rstrip())
            start = None
        elif kind != "blank" and start is None:
            start = begin
    return SplitStatements(tuple(finished), "" if start is None else text[start:])


def statements(text: str) -> list[str]:
    """Return every statement of the text; the last one needs no semicolon."""
    found = split(text)
    return [*found.finished, *([found.rest.rstrip()] if found.rest else [])]


_CLOSED = re.compile(
    r"""
      [eE]'(?: [^'\\]++ | '' | \\. )*+'
    | '(?: [^']++ | '' )*+'
    | "(?: [^"]++ | "" )*+"
    | \$(?P<tag> (?: [^\W\d]\w*+ )? )\$ .*? \$(?P=tag)\$
    """,
    re.VERBOSE | re.DOTALL,
)
_OPENS = re.compile(r"[eE]?'|\"|\$(?:[^\W\d]\w*)?\$")


def open_quote(text: str) -> str:
    """Return the sign of the quote or comment that the text leaves open: a quote, `/*`, or "" if nothing is open."""
    at = 0
    while match := _PIECE.match(text, at):
        piece, at = match[0], match.end()
        if match.lastgroup == "comment":
            end = _end_of_comment(text, at)
            if end is None:
                return "/*"
            at = end
        elif at == len(text) and (opened := _OPENS.match(piece)) and not _CLOSED.fullmatch(piece):
            return opened[0].lstrip("eE")
    return ""


_NAMED = re.compile(r"[^\W\d]\w*")


def names_asked_for(text: str) -> frozenset[str]:
    """Return the names used as `:name` outside quotes and comments."""
    names, at, before = set(), 0, ""
    while match := _PIECE.match(text, at):
        piece, at = match[0], match.end()
        if match.lastgroup == "comment":
            at = _end_of_comment(text, at) or len(text)
        if before == ":" and _NAMED.fullmatch(piece):
            names.add(piece)
        before = "::" if piece == ":" and before in (":", "::") else piece
    return frozenset(names)


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """Yield the kind ("blank", "end" or "word") and start of each piece. An unfinished comment is a word."""
    at = 0
    while match := _PIECE.match(text, at):
        kind, begin, at = match.lastgroup or "word", at, match.end()
        if kind == "comment":
            end = _end_of_comment(text, at)
            kind, at = ("word", len(text)) if end is None else ("blank", end)
        yield kind, begin


def _end_of_comment(text: str, at: int) -> int | None:
    """Return the end of the comment that begins just before `at`; None if it is not closed."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return None
