"""No word is dropped in silence: what the parser understood, written out again, holds every word of the text.

The parser skips some words that it has no use for (`FROM t *`, `LIMIT 2 ONLY`, a dangling AS). Comparing the words of
the text with those of the tree finds them all; a word that is merely written otherwise is in `_SYNONYMS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import Token, TokenType

from dpsql.errors import Span, SQLSyntaxError
from dpsql.sql.parse import Statement

_DIALECT = DuckDB()
_FILLING = frozenset(["(", ")", ",", ";", "ASC", "ALL", "NULLS", "FIRST", "LAST"])
"""Brackets and commas follow the words; the others may say what holds anyway."""
_SPELLINGS = frozenset(["!=", "==", "@", "+", "MOD", "IFNULL", "NVL", "CEILING", "ISNULL", "NOTNULL", "UNKNOWN"])
"""These come out as <>, =, ABS, +x as x, %, COALESCE, CEIL and IS [NOT] NULL."""
_SYNONYMS = _FILLING | _SPELLINGS


def check_words(statement: Statement) -> None:
    """Refuse a statement of which the tree does not hold every word. Raises SQLSyntaxError."""
    for token, after in zip_longest(statement.tokens, statement.tokens[1:]):
        if token.token_type is TokenType.IN and (after is None or after.token_type is not TokenType.L_PAREN):
            place = Span(statement.sql, token.start, token.end)
            raise SQLSyntaxError("IN wants a list of values in parentheses.", span=place)
    try:
        again = statement.select.sql(dialect=_DIALECT, comments=False)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise SQLSyntaxError("the text cannot be understood as a query.") from None
    written = _words(_DIALECT.tokenize(again))
    missing = _words(statement.tokens) - written
    for token in reversed(statement.tokens):
        word = token.text.upper()
        if missing[word] and word not in _SYNONYMS and token.token_type is not TokenType.STRING:
            raise SQLSyntaxError(f"{word} has no meaning here.", span=Span(statement.sql, token.start, token.end))
    if any(word not in _SYNONYMS for word in missing):
        raise SQLSyntaxError("a part of the text has no meaning where it stands.")


def _words(tokens: Iterable[Token]) -> Counter[str]:
    """The words, each as often as it stands; a number that begins with its point is one word, 0.5."""
    found: Counter[str] = Counter()
    before: Token | None = None
    for token in tokens:
        word = token.text.upper()
        if before is not None and before.end + 1 == token.start and token.token_type is TokenType.NUMBER:
            found["."] -= 1
            word = f"0.{word}"
        found[word] += 1
        before = token if token.token_type is TokenType.DOT else None
    return found
