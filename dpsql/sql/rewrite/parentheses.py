"""Parenthesized tables and joins: (a JOIN b ON x) AS q becomes (SELECT * FROM a JOIN b ON x) AS q.

Without a name, their tables keep theirs. On the left they become the same joins in sequence, and on the right so do
inner joins. Others stay in parentheses, which the binder of FROM joins first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.sql.syntax.parse import Statement


def in_parentheses(node: exp.Expr) -> bool:
    """Return whether a table or sub-query with its own joins stands in parentheses."""
    return (
        isinstance(node.parent, exp.Subquery) and node.arg_key == "this" and isinstance(node, exp.Table | exp.Subquery)
    )


def is_joined(node: exp.Expr) -> bool:
    """Return whether a node is parentheses around a table or joins, not a SELECT."""
    if not isinstance(node, exp.Subquery):
        return False
    inner = node.this
    if isinstance(inner, exp.Subquery):
        return bool(inner.args.get("alias") or inner.args.get("joins")) or is_joined(inner)
    return isinstance(inner, exp.Table)


def tables_of(node: exp.Expr) -> list[exp.Expr]:
    """Return an item of FROM, or the items in its parentheses."""
    if not is_joined(node):
        return [node]
    inner = node.this
    joins = inner.args.get("joins") or []
    return [*tables_of(inner), *(each for join in joins for each in tables_of(join.this))]


def with_inner_joins(parts: Sequence[object]) -> list[object]:
    """Return the parts of a clause, then the joins in parentheses on the right of its joins."""
    inner = [join for each in parts if isinstance(each, exp.Join) for join in _joins_of(each.this)]
    return [*parts, *inner]


def _joins_of(node: exp.Expr) -> list[exp.Join]:
    if not is_joined(node):
        return []
    joins = node.this.args.get("joins") or []
    return [*_joins_of(node.this), *(each for join in joins for each in (join, *_joins_of(join.this)))]


def opened(statement: Statement) -> Statement:
    """Return the statement with as few parentheses in FROM as possible."""
    if not any(is_joined(node) for node in statement.select.find_all(exp.Subquery)):
        return statement
    select = statement.select.copy()
    for each in list(select.find_all(exp.Select)):
        source = each.args.get("from_")
        if source is not None:
            first, joins = _one_after_the_other(source.this, each.args.get("joins") or [])
            source.set("this", first)
            each.set("joins", joins)
    return replace(statement, select=select)


def _one_after_the_other(first: exp.Expr, joins: list[exp.Join]) -> tuple[exp.Expr, list[exp.Join]]:
    table, listed = _opened(first)
    for join in joins:
        other, inside = _opened(join.this)
        listed += _right_side(join, other, inside)
    return table, listed


def _opened(node: exp.Expr) -> tuple[exp.Expr, list[exp.Join]]:
    """Return a table without its parentheses, and the joins inside them; a sub-query if they are named."""
    if not is_joined(node):
        return node, []
    inner = node.this.copy()
    joins = inner.args.get("joins") or []
    inner.set("joins", None)
    table, listed = _one_after_the_other(inner, joins)
    alias = node.args.get("alias")
    if alias is None:
        return table, listed
    if not listed and isinstance(table, exp.Table):
        table.set("alias", alias.copy())
        return table, []
    rows = exp.Select(expressions=[exp.Star()], from_=exp.From(this=table), joins=listed)
    return exp.Subquery(this=rows, alias=alias.copy()), []


def _right_side(join: exp.Join, table: exp.Expr, inside: list[exp.Join]) -> list[exp.Join]:
    """Flatten a JOIN (b JOIN c ON x) ON y: every row satisfies all conditions of inner joins, in any order."""
    every = [join, *inside]
    if inside and not all(_is_inner(each) and not each.args.get("using") for each in every):
        table.set("joins", inside)
        table = exp.Subquery(this=table)
        inside = []
    if not inside:
        if table is not join.this:
            join.set("this", table)
        return [join]
    conditions = [each.args["on"].copy() for each in every if each.args.get("on") is not None]
    joins = [exp.Join(this=each) for each in (table, *(each.this.copy() for each in inside))]
    if conditions:
        joins[-1].set("on", exp.and_(*conditions, copy=False))
    return joins


def _is_inner(join: exp.Join) -> bool:
    kind = str(join.args.get("kind") or "").upper()
    return kind in ("", "INNER", "CROSS") and not join.args.get("side") and not join.args.get("method")
