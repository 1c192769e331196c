"""Syntax errors for empty parts that sqlglot accepts: the list of a SELECT, a row of VALUES."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import Token, TokenType

from dpsql.sql.syntax.nodes import OwnWords

_NO_LIST = 'Write what it selects, such as SELECT COUNT(*). A name that is the word itself stands in quotes: "select".'
_NO_LIST_BEGINS = frozenset({TokenType.WITH, TokenType.COLON})
"""Tokens after SELECT that are the error themselves."""


class CompleteParser(DuckDBParser):
    """DuckDB's parser with errors for an empty SELECT list and an empty row."""

    _own_error: ParseError | None
    """The last error from dpsql's rules. sqlglot drops errors raised while it tries a table after a comma."""

    def reset(self) -> None:
        super().reset()
        self._own_error = None

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        try:
            return super().parse(raw_tokens, sql)
        except ParseError as error:
            if self._own_error is not None and _place(self._own_error) >= _place(error):
                raise self._own_error from None
            raise

    def raise_error(self, message: str, *args: Any, **options: Any) -> None:
        try:
            super().raise_error(message, *args, **options)
        except ParseError as error:
            self._own_error = error if isinstance(message, OwnWords) else self._own_error
            raise

    def _warn_unsupported(self) -> None:
        # Such a statement is refused, and sqlglot's warning would log the analyst's text.
        return

    def _parse_projections(self) -> Any:
        # sqlglot accepts a SELECT without a list, and no later rule expects one.
        last = self._prev
        projections, exclude = super()._parse_projections()
        if not projections and self._prev.token_type is not TokenType.COMMA:
            if self._curr is not None and self._curr.token_type in _NO_LIST_BEGINS:
                self.raise_error("Invalid expression / Unexpected token")
            self.raise_error(OwnWords("a SELECT has nothing to select", _NO_LIST), last)
        return projections, exclude

    def _parse_value(self, *args: Any, **options: Any) -> exp.Tuple | None:
        row = super()._parse_value(*args, **options)
        if row is not None and not row.expressions:
            self.raise_error(OwnWords("a list in parentheses is empty", "Write values in it, such as (1, 'a')."))
        return row


def _place(error: ParseError) -> tuple[int, int]:
    """Return the line and column of an error."""
    details = error.errors[0]
    return details["line"], details["col"]
