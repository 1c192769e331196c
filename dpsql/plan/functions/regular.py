"""Regular expressions, of which time grows in proportion to a text.

Whatever matches is registered from above (`register`): this room knows NumPy alone. The pattern is a constant of the
query, checked when it is bound (`sql.regular`); a kernel gives NULL for one that is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dpsql.plan.expressions import Fact, Function
from dpsql.plan.functions.by_cell import by_cell
from dpsql.plan.functions.rules import any_nullable, boolean_fact
from dpsql.plan.functions.text import MOST_CHARACTERS, typed
from dpsql.schema.columns import Type
from dpsql.schema.remembered import remembered

MOST_PATTERNS = 256
"""Patterns that are kept ready at a time."""


class Pattern(Protocol):
    """A pattern that is ready to be looked for. A text that is no Unicode (a lone surrogate) matches nothing."""

    @property
    def groups(self) -> int:
        """How many groups it captures."""

    def found(self, text: str) -> bool:
        """Whether it stands anywhere in a text."""

    def whole(self, text: str) -> bool:
        """Whether it is all of a text."""

    def extracted(self, text: str, group: int) -> str:
        """A group of its first place in a text, 0 for all of it; empty where there is none."""

    def replaced(self, text: str, new: str, *, every: bool) -> str | None:
        """The text with its first place, or every one, replaced; None where the replacement is none, or too long."""


_makers: list[Callable[[str], Pattern]] = []


def register(maker: Callable[[str], Pattern]) -> None:
    """Say what makes a pattern of a text. It raises ValueError for a text that is none."""
    _makers[:] = [maker]


def pattern_of(text: str) -> Pattern | None:
    """The pattern that a text is; None where it is none, or nothing that matches is there."""
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
    ready = pattern_of(pattern) if len(text) <= MOST_CHARACTERS else None
    return None if ready is None else ready.replaced(text, new, every=every)


MOST_GROUPS = 9
"""As DuckDB counts them."""


def _no_longer(facts: Sequence[Fact]) -> Fact:
    return Fact(nullable=any_nullable(facts), most=facts[0].most)


def _unless_too_long(_facts: Sequence[Fact]) -> Fact:
    return Fact(nullable=True)


def _replace_sql(flags: str) -> str:
    short = f"list_filter([{{0}}], lambda s: length(s) <= {MOST_CHARACTERS})[1]"
    made = f"regexp_replace({short}, {{1}}, {{2}}{flags})"
    return f"list_filter([{made}], lambda s: length(s) <= {MOST_CHARACTERS})[1]"


_TWO = typed(Type.BOOLEAN, Type.TEXT, Type.TEXT)
_TEXTS = typed(Type.TEXT, Type.TEXT, Type.TEXT, Type.TEXT)
_PATTERN = "a text and a pattern"

FUNCTIONS = (
    Function("regexp_matches", (2, 2), _TWO, boolean_fact, by_cell(_found), "REGEXP_MATCHES({args})", _PATTERN,
             "regexp_matches({0}, {1})"),
    Function("regexp_full_match", (2, 2), _TWO, boolean_fact, by_cell(_whole), "{0} SIMILAR TO {1}", _PATTERN,
             "regexp_full_match({0}, {1})"),
    Function("regexp_extract", (2, 3), typed(Type.TEXT, Type.TEXT, Type.TEXT, Type.INTEGER), _no_longer,
             by_cell(_extracted), "REGEXP_EXTRACT({args})", "a text, a pattern and a group's number",
             lambda kinds, _result: "regexp_extract({0}, {1}, CAST({2} AS INTEGER))" if len(kinds) == 3 else (
                 "regexp_extract({0}, {1})")),
    Function("regexp_replace", (3, 3), _TEXTS, _unless_too_long, by_cell(_first), "REGEXP_REPLACE({args})",
             "a text, a pattern and a text", _replace_sql("")),
    Function("regexp_replace_all", (3, 3), _TEXTS, _unless_too_long, by_cell(_every), "REGEXP_REPLACE({args}, 'g')",
             "a text, a pattern and a text", _replace_sql(", 'g'")),
)  # fmt: skip
