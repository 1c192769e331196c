"""LIKE and ILIKE.

A pattern is split at its % into pieces of fixed length, which are searched from left to right, each at its first place
after the previous one. There is no backtracking, so time grows at most as the length of the text times that of the
pattern. Backtracking would take exponential time on patterns such as '%a%a%a%a%b'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import methodcaller
from typing import NamedTuple

from dpsql.plan.expressions import Fact, Function, Vector
from dpsql.plan.functions.cellwise import by_cell, is_constant
from dpsql.plan.functions.letters import lower
from dpsql.plan.functions.rules import any_nullable
from dpsql.plan.functions.text import once, typed
from dpsql.plan.work import SEARCHED, folded, matched
from dpsql.schema.columns import Type
from dpsql.schema.intervals import BOOLEAN

MOST_PATTERNS = 1024
"""Cache size for patterns that differ from row to row."""

Test = Callable[[str], bool]


class _Piece(NamedTuple):
    """A part of a pattern without %: its length, and a search for its first place within [start, end), -1 if none."""

    size: int
    find: Callable[[str, int, int], int]


def matcher(pattern: str, escape: str = "") -> Test | None:
    """Return the test of a pattern; None if the pattern ends in its escape character, or that is invalid.

    An escape character is ASCII and not % (with which DuckDB's answers contradict each other); empty for none.
    """
    if not fits_as_escape(escape):
        return None
    pieces = cut(pattern, escape)
    if pieces is None:
        return None
    if all(None not in piece for piece in pieces):
        match ["".join(filter(None, piece)) for piece in pieces]:
            case [whole]:
                return partial(str.__eq__, whole)
            case [start, ""]:
                return methodcaller("startswith", start)
            case ["", end]:
                return methodcaller("endswith", end)
            case ["", middle, ""]:
                return methodcaller("__contains__", middle)
            case _:
                pass
    if len(pieces) == 1:
        return partial(_is_whole, _piece(pieces[0]))
    first, *middles, last = map(_piece, pieces)
    test = partial(_holds_in_order, first, middles, last)
    literal = max(map(_longest_literal, pieces), key=len)
    return (lambda text: literal in text and test(text)) if literal else test


def fits_as_escape(sign: str) -> bool:
    """Return whether a text is an escape character, or empty."""
    return len(sign) <= 1 and sign.isascii() and sign != "%"


def cut(pattern: str, escape: str) -> list[list[str | None]] | None:
    """Return the characters between the %, None for each _; None for a pattern that ends in its escape character."""
    pieces: list[list[str | None]] = [[]]
    signs = iter(pattern)
    for sign in signs:
        if sign == escape:
            literal = next(signs, None)
            if literal is None:
                return None
            pieces[-1].append(literal)
        elif sign != "%":
            pieces[-1].append(None if sign == "_" else sign)
        elif len(pieces) == 1 or pieces[-1]:  # several % in a row are equivalent to one
            pieces.append([])
    return pieces


def _piece(signs: list[str | None]) -> _Piece:
    if None not in signs:
        literal = "".join(filter(None, signs))
        return _Piece(len(signs), lambda text, start, end: text.find(literal, start, end))
    # A regular expression without repetition does not backtrack.
    search = re.compile("".join("." if sign is None else re.escape(sign) for sign in signs), re.DOTALL).search

    def find(text: str, start: int, end: int) -> int:
        found = search(text, start, end)
        return found.start() if found else -1

    return _Piece(len(signs), find)


def _longest_literal(signs: list[str | None]) -> str:
    """Return the longest literal in a piece: its absence quickly excludes a match."""
    return max("".join("\0" if sign is None else sign for sign in signs).split("\0"), key=len)


def _is_whole(piece: _Piece, text: str) -> bool:
    return len(text) == piece.size and piece.find(text, 0, piece.size) == 0


def _holds_in_order(first: _Piece, middles: list[_Piece], last: _Piece, text: str) -> bool:
    place, end = first.size, len(text) - last.size
    if place > end or first.find(text, 0, place) < 0 or last.find(text, end, len(text)) < 0:
        return False
    for piece in middles:
        at = piece.find(text, place, end)
        if at < 0:
            return False
        place = at + piece.size
    return True


def _like(_kind: Type, vectors: Sequence[Vector]) -> Vector:
    texts, *pattern = vectors
    if len(texts) and all(is_constant(each) and each.where_valid()[0] for each in pattern):
        test = matcher(*(each.values[0] for each in pattern))
        if test is not None:
            return by_cell(test)(Type.BOOLEAN, [texts])
    test_of = lru_cache(MOST_PATTERNS)(matcher)

    def like(text: str, *how: str) -> bool | None:
        test = test_of(*how)
        return None if test is None else test(text)

    return by_cell(like)(Type.BOOLEAN, vectors)


def _ilike(kind: Type, vectors: Sequence[Vector]) -> Vector:
    lowered = by_cell(lower)
    plain = [lowered(Type.TEXT, [each]) for each in vectors[:2]]
    escapes = [by_cell(lower_escape)(Type.TEXT, [each]) for each in vectors[2:]]
    return _like(kind, [*plain, *escapes])


def lower_escape(escape: str) -> str:
    """Lower only ASCII: other characters must not become an escape character."""
    return lower(escape) if escape.isascii() else escape


def _like_fact(facts: Sequence[Fact]) -> Fact:
    """Return the fact of LIKE: a pattern with an escape character can be malformed, which gives NULL."""
    return Fact(BOOLEAN, any_nullable(facts) or len(facts) == 3)


def _like_sql(operator: str, escaping: str, fold: str) -> Callable[[Sequence[Type], Type], str]:
    pattern, escape = fold.format("s['p']"), fold.format("s['e']")
    with_escape = once(
        "CASE WHEN strlen(s['e']) <= 1 AND s['e'] <> '%'"
        f" AND (length({pattern}) - length(rtrim({pattern}, {escape}))) % 2 = 0"
        f" THEN {escaping}(s['x'], s['p'], s['e']) END",
        x="{0}", p="{1}", e="{2}",
    )  # fmt: skip
    return lambda kinds, _result: with_escape if len(kinds) == 3 else f"{{0}} {operator} {{1}}"


_TEXTS = typed(Type.BOOLEAN, Type.TEXT, Type.TEXT, Type.TEXT)
_WANTS = "a text, a pattern and, if any, an escape character"

FUNCTIONS = (
    Function("like", (2, 3), _TEXTS, _like_fact, _like, "{0} LIKE ({rest})", _WANTS,
             _like_sql("LIKE", "like_escape", "{}"), work=matched, reads=SEARCHED),
    Function("ilike", (2, 3), _TEXTS, _like_fact, _ilike, "{0} ILIKE ({rest})", _WANTS,
             _like_sql("ILIKE", "ilike_escape", "lower({})"), work=folded(matched), reads=SEARCHED),
)  # fmt: skip
