"""The allow-list: every node of a statement, and every argument that a node carries, is known to a rule or refused.

A clause that nobody reads cannot slip through: what is not in `ALLOWED` raises UnsupportedSQL at its place.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp
from sqlglot.tokens import TokenType

from dpsql.errors import Span, UnsupportedSQL
from dpsql.sql.parse import Statement, span_of

_BINARY = frozenset({"this", "expression"})
_UNARY = frozenset({"this"})

ALLOWED: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset({"expressions", "from_", "where", "group", "having", "order", "limit", "offset"}),
    exp.From: _UNARY,
    exp.Table: frozenset({"this", "alias"}),
    exp.TableAlias: _UNARY,
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Column: frozenset({"this", "table"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Where: _UNARY,
    exp.Group: frozenset({"expressions"}),
    exp.Having: _UNARY,
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Star: frozenset(),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _UNARY,
    exp.Null: frozenset(),
    exp.Paren: _UNARY,
    exp.And: _BINARY,
    exp.Or: _BINARY,
    exp.Not: _UNARY,
    exp.EQ: _BINARY,
    exp.NEQ: _BINARY,
    exp.LT: _BINARY,
    exp.LTE: _BINARY,
    exp.GT: _BINARY,
    exp.GTE: _BINARY,
    exp.Is: _BINARY,
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Add: _BINARY,
    exp.Sub: _BINARY,
    exp.Mul: _BINARY,
    exp.Div: _BINARY,  # its `typed` and `safe` are false in this dialect: true division
    exp.IntDiv: _BINARY,
    exp.Mod: _BINARY,
    exp.Neg: _UNARY,
    exp.Abs: _UNARY,
    exp.Floor: _UNARY,
    exp.Ceil: _UNARY,
    exp.Round: frozenset({"this", "decimals"}),
    exp.Least: frozenset({"this", "expressions", "ignore_nulls"}),  # ignore_nulls is how it works here anyway
    exp.Greatest: frozenset({"this", "expressions", "ignore_nulls"}),
    exp.Coalesce: frozenset({"this", "expressions"}),
    exp.Nullif: _BINARY,
    exp.Anonymous: frozenset({"this", "expressions"}),  # CLAMP; any other name is refused by the binder
    exp.Count: frozenset({"this", "big_int"}),  # big_int: COUNT is 64 bits wide, as everything here
    exp.Sum: _UNARY,
    exp.Avg: _UNARY,
}

_NAMED: Mapping[type[exp.Expr], str] = {
    exp.Window: "window functions (... OVER ...) have no private version here.",
    exp.Join: "joins are not supported: a query reads one table.",
    exp.Subquery: "sub-queries are not supported.",
    exp.Exists: "sub-queries (EXISTS) are not supported.",
    exp.With: "WITH (common table expressions) is not supported.",
    exp.Distinct: "DISTINCT is not supported. For the values of a column, GROUP BY it.",
    exp.Case: "CASE is not supported.",
    exp.If: "IF is not supported.",
    exp.Cast: "CAST is not supported.",
    exp.TryCast: "TRY_CAST is not supported.",
    exp.Like: "LIKE is not supported.",
    exp.ILike: "ILIKE is not supported.",
    exp.Filter: "FILTER (WHERE ...) is not supported. Put the condition into WHERE.",
    exp.TableSample: "TABLESAMPLE below an aggregate is not stable: one person could decide who else is sampled.",
    exp.Placeholder: "parameters (:name) are not supported.",
    exp.Parameter: "parameters are not supported.",
    exp.Rollup: "ROLLUP is not supported.",
    exp.Cube: "CUBE is not supported.",
    exp.GroupingSets: "GROUPING SETS are not supported.",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM is not supported.",
    exp.NullSafeNEQ: "IS DISTINCT FROM is not supported.",
    exp.DPipe: "|| is not supported.",
    exp.SimilarTo: "SIMILAR TO is not supported.",
    exp.RegexpLike: "regular expressions (~) are not supported.",
    exp.RegexpFullMatch: "regular expressions (~) are not supported.",
    exp.Date: "DATE literals are not supported.",
    exp.Lock: "FOR UPDATE and the like are not supported.",
    exp.Unnest: "UNNEST is not supported.",
    exp.Explode: "UNNEST is not supported.",
    exp.Rand: "RANDOM() is not supported: an answer depends on the data and the noise alone.",
}

_CLAUSES: Mapping[tuple[type[exp.Expr], str], str] = {
    (exp.Select, "distinct"): "SELECT DISTINCT is not supported. For the values of a column, GROUP BY it.",
    (exp.Select, "joins"): "joins are not supported: a query reads one table.",
    (exp.Select, "with_"): "WITH (common table expressions) is not supported.",
    (exp.Select, "qualify"): "QUALIFY (window functions) has no private version here.",
    (exp.Select, "sample"): "TABLESAMPLE below an aggregate is not stable.",
    (exp.Group, "all"): "GROUP BY ALL is not supported. Name the columns.",
    (exp.Group, "rollup"): "ROLLUP is not supported.",
    (exp.Group, "cube"): "CUBE is not supported.",
    (exp.Group, "grouping_sets"): "GROUPING SETS are not supported.",
    (exp.Table, "db"): "a table is named by one word, without a database.",
    (exp.In, "query"): "IN (SELECT ...) is not supported.",
    (exp.Count, "expressions"): "COUNT takes one argument.",
    (exp.Table, "sample"): "TABLESAMPLE below an aggregate is not stable: one person could decide who else is sampled.",
    (exp.Select, "locks"): "FOR UPDATE and the like are not supported.",
}


def check(statement: Statement) -> None:
    """Refuse the statement if it holds a node or an argument that no rule reads. Raises UnsupportedSQL."""
    sql = statement.sql
    for node in statement.select.walk():
        allowed = ALLOWED.get(type(node))
        if allowed is None:
            text = _NAMED.get(type(node)) or f"{_title(node)} is not supported."
            raise UnsupportedSQL(text, span=_word(statement, node) or span_of(sql, node))
        for argument, value in node.args.items():
            if value is None or value is False or value == [] or argument in allowed:
                continue
            text = _CLAUSES.get((type(node), argument)) or (
                f"{argument.strip('_').replace('_', ' ').upper()} is not supported in {_title(node)}."
            )
            place = _word(statement, value) or _token(statement, argument.strip("_"))
            raise UnsupportedSQL(text, span=place or _span_of_argument(sql, node, value))


_WORDS: Mapping[type[exp.Expr], str] = {
    exp.Window: "OVER",
    exp.Case: "CASE",
    exp.Cast: "CAST",
    exp.TryCast: "TRY_CAST",
    exp.Distinct: "DISTINCT",
    exp.TableSample: "TABLESAMPLE",
    exp.With: "WITH",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
    exp.Exists: "EXISTS",
    exp.Filter: "FILTER",
    exp.Lock: "FOR",
    exp.Placeholder: ":",
}


def _word(statement: Statement, value: object) -> Span | None:
    """The keyword of a node that has no place of its own, where the text first has it."""
    node = value[0] if isinstance(value, list) and value else value
    word = _WORDS.get(type(node)) if isinstance(node, exp.Expr) else None
    return _token(statement, word) if word else None


def _token(statement: Statement, word: str) -> Span | None:
    for token in statement.tokens:
        if token.text.upper() == word.upper() and token.token_type is not TokenType.STRING:
            return Span(statement.sql, token.start, token.end)
    return None


def _span_of_argument(sql: str, node: exp.Expr, value: object) -> Span | None:
    parts = value if isinstance(value, list) else [value]
    for part in parts:
        if isinstance(part, exp.Expr) and (span := span_of(sql, part)):
            return span
    return span_of(sql, node)


def _title(node: exp.Expr) -> str:
    return node.sql_name() + "()" if isinstance(node, exp.Func) else type(node).__name__.upper()
