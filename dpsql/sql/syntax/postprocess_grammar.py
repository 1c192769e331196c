"""The grammar of post-processing SQL: additions to the grammar of private SELECTs.

DuckDB parses the result, and its tree is checked against lists by name (`dpsql.postprocess`). This module accounts for
the words of the text, so that none is skipped and refusals have a position.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.sql.syntax.allow_list import check_nodes, check_words
from dpsql.sql.syntax.grammar import RULES, Rule
from dpsql.sql.syntax.parse import Statement, span_of
from dpsql.sql.syntax.refusals import NAMED

FREE = frozenset({"(", ")", ",", ";", "+", "ALL", "[", "]", "{", "}", ":", "ORDER BY"})


def _rule(words: str = "") -> Rule:
    return Rule(None, tuple(word.replace("_", " ") for word in words.split()))


_ADDED: Mapping[type[exp.Expr], Rule] = {
    exp.Select: _rule("SELECT"),
    exp.Window: _rule("OVER PARTITION_BY"),
    exp.WindowSpec: _rule(),
    exp.Qualify: _rule("QUALIFY"),
    exp.Union: _rule("UNION DISTINCT BY NAME"),
    exp.Intersect: _rule("INTERSECT DISTINCT"),
    exp.Except: _rule("EXCEPT DISTINCT"),
    exp.Subquery: _rule(),
    exp.Distinct: _rule("DISTINCT ON"),
    exp.Join: Rule(
        frozenset(["this", "on", "using", "side", "kind", "method"]),
        ("JOIN", "INNER", "LEFT", "RIGHT", "OUTER", "CROSS", "ON", "USING", "FULL", "NATURAL", "SEMI", "ANTI", "ASOF"),
    ),
    exp.Values: _rule("VALUES"),
    exp.Unnest: _rule("UNNEST"),
    exp.Array: _rule("ARRAY"),
    exp.Bracket: _rule(),
    exp.Slice: _rule(),
    exp.Struct: _rule(),
    exp.PropertyEQ: _rule(":="),
    exp.Dot: _rule("."),
    exp.Lambda: _rule("LAMBDA ->"),
    exp.Columns: _rule("COLUMNS"),
    exp.Star: _rule("* EXCLUDE EXCEPT REPLACE RENAME"),
    exp.Any: _rule("ANY SOME"),
    exp.All: _rule(),
    exp.IgnoreNulls: _rule("IGNORE NULLS"),
    exp.RespectNulls: _rule("RESPECT NULLS"),
    exp.Group: _rule("GROUP_BY"),
    exp.Order: _rule("ORDER_BY"),
    exp.BitwiseAnd: _rule("&"),
    exp.BitwiseOr: _rule("|"),
    exp.BitwiseLeftShift: _rule("<<"),
    exp.BitwiseRightShift: _rule(">>"),
    exp.BitwiseNot: _rule("~"),
    exp.SimilarTo: _rule("SIMILAR_TO"),
    exp.GroupConcat: _rule("WITHIN GROUP"),
    exp.Glob: _rule("GLOB"),
    exp.RegexpLike: _rule("~"),
    exp.Tuple: _rule("ROW"),
    exp.IntervalSpan: _rule("TO"),
    exp.Var: _rule(),
    exp.DateAdd: _rule(),
    exp.DataType: _rule(),
}
_CALLED = Rule(None)
_REFUSED = frozenset(
    kind for kind, text in NAMED.items() if issubclass(kind, exp.Func) and ("clock" in text or "RANDOM" in text)
)


def rule_of(kind: type[exp.Expr]) -> Rule | None:
    """Return the rule of a node in post-processing SQL. Calls may have any name; DuckDB's list decides on them."""
    rule = _ADDED.get(kind) or RULES.get(kind)
    if rule is None and issubclass(kind, exp.Func) and kind not in _REFUSED:
        return _CALLED
    return rule


def check_separated(statement: Statement) -> None:
    """Refuse a multi-step statement with a node or word that no rule reads. Raises UnsupportedSQL, SQLSyntaxError."""
    words = check_nodes(statement, statement.select, rule_of)
    check_words(statement, words, FREE)


def check_qualified(select: exp.Select, sql: str) -> None:
    """Refuse a QUALIFY without a window function. Raises UnsupportedSQL."""
    qualify = select.args.get("qualify")
    if qualify is not None and not any(each.find(exp.Window) for each in (qualify, *select.expressions)):
        raise UnsupportedSQL(
            "QUALIFY is about window functions, and there is none in it or in the SELECT list.",
            span=span_of(sql, qualify),
            hint="Write HAVING for conditions on aggregates, and WHERE for those on columns of an answer.",
        )
