"""x > ALL (SELECT ...) and x > ANY (SELECT ...) over answers, as comparisons with the largest or smallest value.

    x > ALL (Q)    x > MAX(Q), TRUE where Q has no row, NULL rather than TRUE where Q holds NULL
    x > ANY (Q)    x > MIN(Q), FALSE where Q has no row, NULL rather than FALSE where Q holds NULL
    x = ANY (Q)    x IN (Q)
    x <> ALL (Q)   x NOT IN (Q)

Each part is one value of Q. Equal sub-queries are one release, so Q is paid for once.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.sql.names.statement_names import unwritten

_RISING = (exp.GT, exp.GTE)
_FALLING = (exp.LT, exp.LTE)


def has_quantifier(tree: exp.Expr) -> bool:
    """Return whether ALL or ANY stands in a text."""
    return tree.find(exp.All, exp.Any) is not None


def without_quantifiers(tree: exp.Query, sql: str, is_answer: Callable[[exp.Select], bool]) -> exp.Query:
    """Replace ALL (SELECT ...) and ANY (SELECT ...) over answers with values. Other queries stay."""
    column = unwritten(sql, "v")
    kinds = (*_RISING, *_FALLING, exp.EQ, exp.NEQ)
    for node in [each for each in tree.find_all(*kinds) if isinstance(each.expression, exp.All | exp.Any)]:
        query = node.expression.this
        query = query.this if isinstance(query, exp.Subquery) else query
        if isinstance(query, exp.Select) and len(query.expressions) == 1 and is_answer(query):
            node.replace(_compared(node, query, column))
    return tree


def _compared(node: exp.Expr, query: exp.Select, column: str) -> exp.Expr:
    """Return one quantified comparison, by values of the query."""
    every = isinstance(node.expression, exp.All)
    if isinstance(node, exp.EQ | exp.NEQ):
        if every != isinstance(node, exp.NEQ):
            return node
        found = exp.In(this=node.this.copy(), query=exp.Subquery(this=query.copy()))
        return exp.Paren(this=exp.Not(this=found)) if every else found
    largest = isinstance(node, _RISING) == every
    value = exp.column(column, quoted=True)

    def of(item: exp.Expr) -> exp.Expr:
        alias = exp.TableAlias(this=exp.to_identifier("q"), columns=[exp.to_identifier(column, quoted=True)])
        source = exp.Subquery(this=query.copy(), alias=alias)
        return exp.Subquery(this=exp.Select(expressions=[item], from_=exp.From(this=source)))

    rows, there = exp.Count(this=exp.Star()), exp.Count(this=value.copy())
    end = exp.Max(this=value.copy()) if largest else exp.Min(this=value.copy())
    compared = type(node)(this=node.this.copy(), expression=of(end))
    lost = exp.If(this=exp.GT(this=rows.copy(), expression=there), true=exp.Null())
    otherwise = exp.Boolean(this=every)
    unknown = of(exp.Case(ifs=[lost], default=otherwise))
    empty = of(exp.EQ(this=rows.copy(), expression=exp.Literal.number(0)))
    if every:
        return exp.Paren(this=exp.Or(this=exp.And(this=compared, expression=unknown), expression=empty))
    either = exp.Paren(this=exp.Or(this=compared, expression=unknown))
    return exp.Paren(this=exp.And(this=either, expression=exp.Not(this=empty)))
