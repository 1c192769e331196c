"""Regular expressions, with time proportional to the text's length.

A higher layer registers the matcher (`register`): this package only knows NumPy. The pattern is a constant of the
query, checked during binding (`sql.bind.regular_expressions`); a kernel gives NULL for an invalid one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from dpsql.plan.expressions import Fact, Function
from dpsql.plan.functions.cellwise import by_cell
from dpsql.plan.functions.pattern_states import KNOWN_STATE, NEW_STATE, most_states
from dpsql.plan.functions.rules import any_nullable, boolean_fact
from dpsql.plan.functions.text import MOST_CHARACTERS, typed
from dpsql.plan.work import CELL, Size, characters, first_length
from dpsql.schema.columns import Type
from dpsql.schema.memoization import remembered

MOST_PATTERNS = 256
"""Cache size for compiled patterns."""


class Pattern(Protocol):
    """A compiled pattern. A text that is not valid Unicode (a lone surrogate) matches nothing."""

    @property
    def groups(self) -> int:
        """Number of capture groups."""

    @property
    def size(self) -> int:
        """Number of instructions of its program: each may run at each character of a text."""

    def found(self, text: str) -> bool:
        """Return whether it occurs in a text."""

    def whole(self, text: str) -> bool:
        """Return whether it matches a whole text."""

    def extracted(self, text: str, group: int) -> str:
        """Return a group of its first match in a text, 0 for the whole match; empty if there is none."""

    def replaced(self, text: str, new: str, *, every: bool) -> str | None:
        """Return the text with its first match, or every match, replaced; None if the replacement is invalid, or the
        result too long."""


_makers: list[Callable[[str], Pattern]] = []


def register(maker: Callable[[str], Pattern]) -> None:
    """Register a compiler of patterns. It raises ValueError for an invalid text."""
    _makers[:] = [maker]


def pattern_of(text: str) -> Pattern | None:
    """Return the compiled pattern; None if it is invalid, or no compiler is registered."""
    return _ready(text) if _makers else None


@remembered(MOST_PATTERNS)
def _ready(text: str) -> Pattern | None:
    try:
        return _makers[0](text)
    except ValueError:
        return None


def _found(text: str, pattern: str) -> bool | None:
    ready = pattern_of(pattern)
    return None if ready is None else ready.found(text)


def _whole(text: str, pattern: str) -> bool | None:
    ready = pattern_of(pattern)
    return None if ready is None else ready.whole(text)


def _extracted(text: str, pattern: str, group: int = 0) -> str | None:
    ready = pattern_of(pattern)
    return None if ready is None or not 0 <= group <= MOST_GROUPS else ready.extracted(text, group)


def _first(text: str, pattern: str, new: str) -> str | None:
    return _replaced(text, pattern, new, every=False)


def _every(text: str, pattern: str, new: str) -> str | None:
    return _replaced(text, pattern, new, every=True)


def _replaced(text: str, pattern: str, new: str, *, every: bool) -> str | None:
    ready = pattern_of(pattern) if len(text) <= (MOST_REPLACED if every else MOST_CHARACTERS) else None
    return None if ready is None else ready.replaced(text, new, every=every)


_STEP = 16
"""Work of one instruction at one character in a search for a group."""
_COPY = 12
"""Work per character of a replacement, which is built before it is measured."""
_MATCH = 6_000
MOST_REPLACED = 2_048
"""Maximum length of texts for REGEXP_REPLACE of every match: Python is called for each match."""
_CLASS = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\\[QE]|\\.", re.DOTALL)
_REPEATED = re.compile(r"[*+]|\{\d+,\}")
_ONE_CLASS = re.compile(r"(?:\(\?[is]+\))?(?:\(?[x.](?:[*+]|\{\d+,\})?\)?|\^x[*+]|x[*+]\$|\^x[*+]\|x[*+]\$)")
_PLAIN = r"[^\\\[\](){}|?*+.^$]"
_ENCLOSED = re.compile(rf"{_PLAIN}*\[\^([^\\\[\]-]+)\][*+]({_PLAIN}){_PLAIN}*")


def _steps(sizes: Sequence[Size]) -> float:
    """Return the work of one search: new states of the automaton, and cached ones."""
    text, program = sizes[0].characters + 1, _program(sizes[1])
    return KNOWN_STATE * text + NEW_STATE * program * min(text, most_states(str(sizes[1].constant or ""), program))


def _program(pattern: Size) -> int:
    ready = pattern_of(pattern.constant) if isinstance(pattern.constant, str) else None
    return 1 if ready is None else ready.size


def _searching(sizes: Sequence[Size]) -> float:
    return CELL + _MATCH + _steps(sizes)


def _taking(sizes: Sequence[Size]) -> float:
    """Return the work of finding groups: RE2 needs a second search, and a third one without a cache of states."""
    groups = _STEP * (sizes[0].characters + 1) * _program(sizes[1])
    return CELL + _MATCH + 2 * _steps(sizes) + groups + 20 * characters(sizes)


def _replacing_one(sizes: Sequence[Size]) -> float:
    return _taking(sizes) + _COPY * _one_replaced(sizes)


def _replacing_all(sizes: Sequence[Size]) -> float:
    """Return the work of a search for each character; each reads to the end of the text unless the pattern limits
    it."""
    text, new, program = sizes[0].characters, sizes[2].characters, _program(sizes[1])
    pattern = str(sizes[1].constant or "")
    read = min(text, _reach(pattern, program))
    states = NEW_STATE * program * min(most_states(pattern, program), (text + 1) * (read + 1))
    searches = (text + 1) * (_MATCH + 20 * new + 2 * _STEP * program * read)
    return CELL + searches + 2 * states + _COPY * _one_replaced(sizes)


def _reach(pattern: str, program: int) -> float:
    """Return the maximum number of characters that a search reads beyond the end of a match, as far as known here.

    A search continues while a longer match is possible. Without `*` and `+`, no match is longer than the program. One
    repeated class of characters ends at the first character outside it, and a pattern such as <[^>]*> at its last
    character. A pattern anchored to an end of the text only matches there.
    """
    if r"\Q" in pattern:
        return math.inf
    enclosed = _ENCLOSED.fullmatch(pattern)
    if enclosed is not None and enclosed[2] in enclosed[1]:
        return 1
    bare = _CLASS.sub("x", pattern)
    if _ONE_CLASS.fullmatch(bare):
        return 1
    return math.inf if _REPEATED.search(bare) else program


MOST_GROUPS = 9
"""DuckDB's maximum."""


def _no_longer(facts: Sequence[Fact]) -> Fact:
    return Fact(nullable=any_nullable(facts), most=facts[0].most)


def _unless_too_long(_facts: Sequence[Fact]) -> Fact:
    return Fact(nullable=True)


def _one_replaced(sizes: Sequence[Size]) -> int:
    """Return the length after one replacement. Each character of the replacement can be a group, which is no longer
    than the text."""
    return sizes[0].characters * (1 + str(sizes[2].constant or "").count("\\")) + sizes[2].characters


def _replace_sql(flags: str, most: int) -> str:
    short = f"list_filter([{{0}}], lambda s: length(s) <= {most})[1]"
    made = f"regexp_replace({short}, {{1}}, {{2}}{flags})"
    return f"list_filter([{made}], lambda s: length(s) <= {MOST_CHARACTERS})[1]"


_TWO = typed(Type.BOOLEAN, Type.TEXT, Type.TEXT)
_TEXTS = typed(Type.TEXT, Type.TEXT, Type.TEXT, Type.TEXT)
_PATTERN = "a text and a pattern"

FUNCTIONS = (
    Function("regexp_matches", (2, 2), _TWO, boolean_fact, by_cell(_found), "REGEXP_MATCHES({args})", _PATTERN,
             "regexp_matches({0}, {1})", work=_searching),
    Function("regexp_full_match", (2, 2), _TWO, boolean_fact, by_cell(_whole), "{0} SIMILAR TO {1}", _PATTERN,
             "regexp_full_match({0}, {1})", work=_searching),
    Function("regexp_extract", (2, 3), typed(Type.TEXT, Type.TEXT, Type.TEXT, Type.INTEGER), _no_longer,
             by_cell(_extracted), "REGEXP_EXTRACT({args})", "a text, a pattern and a group's number",
             lambda kinds, _result: "regexp_extract({0}, {1}, CAST({2} AS INTEGER))" if len(kinds) == 3 else (
                 "regexp_extract({0}, {1})"), work=_taking, length=first_length),
    Function("regexp_replace", (3, 3), _TEXTS, _unless_too_long, by_cell(_first), "REGEXP_REPLACE({args})",
             "a text, a pattern and a text", _replace_sql("", MOST_CHARACTERS), work=_replacing_one,
             length=_one_replaced),
    Function("regexp_replace_all", (3, 3), _TEXTS, _unless_too_long, by_cell(_every), "REGEXP_REPLACE({args}, 'g')",
             "a text, a pattern and a text", _replace_sql(", 'g'", MOST_REPLACED), work=_replacing_all,
             reads=(MOST_REPLACED,)),
)  # fmt: skip
