"""Translate another dialect's text into dpsql's language, with a mapping back for error positions."""

from __future__ import annotations

import re
from functools import cached_property

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokens import Token

from dpsql.errors import Span, SQLSyntaxError, UnsupportedSQL
from dpsql.schema.frozen import dataclass
from dpsql.sql.dialects.forms import EVERYWHERE
from dpsql.sql.dialects.kinds import KIND, Kinds
from dpsql.sql.dialects.names import Habits, habits_of
from dpsql.sql.dialects.places import place_in
from dpsql.sql.dialects.reading import DialectText
from dpsql.sql.dialects.rules import READ_IN_OTHERS, RULES
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.dialect import PrivacyDialect
from dpsql.sql.syntax.parse import EXPLAIN_PRIVACY, checked_text, checked_tokens, parsed

_GOAL = re.compile(r"\bWITHIN\s+[\d.]+(?:\s+CONFIDENCE\s+[\d.]+)?[\s;]*\Z", re.IGNORECASE)
_PRIVACY = re.compile(r"\bWITH\s+DIFFERENTIAL_PRIVACY\b", re.IGNORECASE)


@dataclass(frozen=True)
class Translation:
    """A user's text and its translation."""

    sql: str
    words: tuple[Token, ...]
    written: str

    def place(self, span: Span | None) -> Span | None:
        """Return the span in the user's text for a span in the translation."""
        if span is None or span.sql != self.written:
            return span
        return place_in(self.sql, self.words, span, self._written_words)

    @cached_property
    def _written_words(self) -> list[Token]:
        return checked_tokens(self.written)


def translate(sql: object, dialect: object, catalog: Catalog) -> Translation:
    """Translate a query. Raises SQLSyntaxError, UnsupportedSQL, InvalidArgument."""
    habits = habits_of(dialect)
    text = checked_text(sql)
    if _PRIVACY.search(text):
        raise UnsupportedSQL(
            "WITH DIFFERENTIAL_PRIVACY is read without dialect= only.",
            hint="Leave it out and give epsilon= with the call, or leave dialect= out.",
        )
    explain = EXPLAIN_PRIVACY.match(text)
    before = text[: explain.end()] if explain else ""
    words, tree, after = _read(" " * len(before) + text[len(before) :], habits)
    reading = DialectText(text, habits, Kinds(tree, catalog.tables.values()))
    try:
        written = PrivacyDialect().generate(
            _in_own_words(tree, reading), unsupported_level=ErrorLevel.IMMEDIATE, comments=False
        )
    except SqlglotError:  # not writable, or partly unreadable
        raise UnsupportedSQL(f"something in the text has no counterpart here for {habits.name}.") from None
    return Translation(text, tuple(words), f"{'EXPLAIN PRIVACY ' if before else ''}{written}{after}")


def _read(text: str, habits: Habits) -> tuple[list[Token], exp.Query, str]:
    """Return the dialect's words, their tree, and the trailing dpsql syntax (WITHIN)."""
    dialect = Dialect.get_or_raise(habits.name)
    words, goal = checked_tokens(text, dialect), _GOAL.search(text)
    place = next((at for at, word in enumerate(words) if goal is not None and word.start == goal.start()), len(words))
    after = f" {text[words[place].start :]}" if words[place:] else ""
    if not words[:place]:
        raise SQLSyntaxError("the query is empty.", hint="Write, for example, SELECT COUNT(*) FROM table.")
    tree = parsed(text, words[:place], dialect)
    if not isinstance(tree, exp.Query):
        raise SQLSyntaxError(f"the text cannot be understood as a query of {habits.name}.")
    return words[:place], tree, after


def _in_own_words(tree: exp.Query, reading: DialectText) -> exp.Query:
    """Return the tree with every rule applied, innermost nodes first. Raises UnsupportedSQL."""
    for node in reversed(list(tree.walk())):
        if isinstance(node, exp.Select) and node.args.get("kind"):
            raise reading.refused(node, f"SELECT AS {node.args['kind']} is not read.")
        rule = RULES.get(type(node))
        if rule is not None:
            kind, new = reading.kinds.of(node), rule(node, reading)
            if new is not None:
                new.meta[KIND] = kind
                node.replace(new)
        elif type(node) not in EVERYWHERE and type(node) not in READ_IN_OTHERS:
            raise reading.unread(node)
    return tree
