"""The text that rules translate, and their refusals."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.schema.frozen import dataclass
from dpsql.sql.dialects.kinds import Kind, Kinds
from dpsql.sql.dialects.names import Habits
from dpsql.sql.syntax.parse import span_of

_CALL = re.compile(r"(\w+)\s*\(\s*(?:DISTINCT\s+)?\Z", re.IGNORECASE)
TIMES = {Kind.DAY, Kind.MOMENT}


@dataclass(frozen=True)
class DialectText:
    """A text being translated: the user's words, the dialect's habits, the kinds of expressions."""

    sql: str
    habits: Habits
    kinds: Kinds

    def refused(self, node: exp.Expr, message: str, hint: str = "") -> UnsupportedSQL:
        """Return the refusal of a node of the user's text."""
        return UnsupportedSQL(message, span=span_of(self.sql, node), hint=hint)

    def unread(self, node: exp.Expr) -> UnsupportedSQL:
        """Return the refusal of a node without a rule, by the user's word for it."""
        place = span_of(self.sql, node)
        before = None if place is None else _CALL.search(self.sql, 0, place.start)
        shown = "" if place is None else self.sql[place.start : place.end + 1]
        if shown.isidentifier() and isinstance(node, exp.Func):
            word = shown
        elif before is not None and isinstance(node, exp.Func):
            word = before[1]
        else:
            word = node.sql_name() if isinstance(node, exp.Func) else type(node).__name__.upper()
        return self.refused(
            node,
            f"{word[:40]} is not read from {self.habits.name}.",
            "Without a dialect, write what DuckDB has for it.",
        )

    def uncertain(self, node: exp.Expr, word: str, hint: str) -> UnsupportedSQL:
        """Return the refusal of a word that other engines read differently."""
        return self.refused(node, f"{word} of {self.habits.name} has no counterpart here that means the same.", hint)


Rule = Callable[[exp.Expr, DialectText], exp.Expr | None]
"""Function from a node to its replacement, or None to keep it; raises UnsupportedSQL."""


def called(name: str, *args: exp.Expr) -> exp.Anonymous:
    """Return a call of one of dpsql's own functions."""
    return exp.Anonymous(this=name, expressions=list(args))


def number(value: int) -> exp.Expr:
    """Return an integer constant."""
    return exp.Literal.number(value)
