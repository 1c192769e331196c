"""Foreign syntax in the parser: calls with their own nodes, CONVERT, TOP, [names]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.parsers.duckdb import DuckDBParser
from sqlglot.tokens import TokenType

from dpsql.sql.syntax.nodes import OwnWords

_FUNCTIONS = """
APPROX_PERCENTILE COUNT_BIG DATE DATEADD DATEDIFF DATENAME DATEPART DATETIME DATETIME_TRUNC DATETRUNC DATE_ADD
DATE_DIFF DATE_FORMAT DATE_PART DATE_SUB DATE_TRUNC DECODE DIV DIV0 EOMONTH FORMAT IFF IQR ISNULL MAKE_TIMESTAMP MEAN
NULLIFZERO NVL2 PERCENTILE PERCENTILE_APPROX RATIO_TO_REPORT SAFE_DIVIDE STATS_MODE TIMESTAMP TIMESTAMP_TRUNC TO_DATE
TRUNC ZEROIFNULL
"""
FOREIGN = frozenset(_FUNCTIONS.split())
"""Functions of other engines that `foreign_functions` reads; most texts have none."""


def _call(name: str) -> Callable[[list[Any]], exp.Expr]:
    """Build a call as DuckDB does, or keep another engine's call as written."""

    def build(args: list[Any]) -> exp.Expr:
        from dpsql.sql.rewrite.foreign_functions import is_read  # imported only when needed

        made: exp.Expr
        made = exp.Anonymous(this=name, expressions=args) if is_read(name, args) else DuckDBParser.FUNCTIONS[name](args)
        return made

    return build


FUNC_TOKENS = frozenset({*DuckDBParser.FUNC_TOKENS, TokenType.DIV})
"""Tokens that may name a call, including DIV(a, b)."""
FUNCTIONS: Mapping[str, Callable[[list[Any]], exp.Expr]] = {
    name: _call(name) for name in FOREIGN & DuckDBParser.FUNCTIONS.keys()
}
"""Builders of functions known to the parser."""


def _cast_to_first(parser: Any, kind: type[exp.Expr]) -> exp.Expr:
    """Parse CONVERT(date, x), with the type first; DuckDB has none."""
    to = parser._parse_types()
    if to is None or not parser._match(TokenType.COMMA):
        parser.raise_error(OwnWords("CONVERT takes a type and a value: write CAST(x AS DATE)"))
    made: exp.Expr = parser.expression(kind(this=parser._parse_assignment(), to=to))
    if parser._curr and parser._curr.token_type is TokenType.COMMA:
        parser.raise_error(OwnWords("CONVERT takes no style: write STRFTIME(d, '%Y-%m-%d'), or CAST(x AS DATE)"))
    return made


FUNCTION_PARSERS: Mapping[str, Callable[[Any], exp.Expr]] = {
    "CONVERT": lambda parser: _cast_to_first(parser, exp.Cast),
    "TRY_CONVERT": lambda parser: _cast_to_first(parser, exp.TryCast),
}


def with_order(parser: Any, pivot: Any) -> Any:
    """Parse PIVOT t ON x IN (...) ORDER BY k LIMIT 3: the pivot with these clauses."""
    parsers = {"order": parser._parse_order, "limit": parser._parse_limit, "offset": parser._parse_offset}
    for clause, parse in parsers.items():
        if isinstance(found := parse(), exp.Expr):
            pivot.set(clause, found)
    return pivot


def refuse_top(parser: Any) -> None:
    """Refuse SELECT TOP 10 n, where no column has that name."""
    number, after = parser._next, parser._tokens[parser._index + 2 : parser._index + 3]
    if number and number.token_type is TokenType.NUMBER and after and after[0].token_type not in _AFTER_NAME:
        parser.raise_error(OwnWords(f"TOP is not understood: write LIMIT {number.text} at the end"), parser._curr)


_AFTER_NAME = frozenset({TokenType.COMMA, TokenType.FROM, TokenType.ALIAS})
