"""The SELECT list: its items, their names and aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.sql.bind.aggregate_calls import is_aggregate

Items = Sequence[tuple[exp.Expr, str]]
"""Expressions with their aliases, or ""."""


def items_of(select: exp.Select) -> list[tuple[exp.Expr, str]]:
    """Return the SELECT list: expressions and their aliases."""
    return [(each.this, each.alias) if isinstance(each, exp.Alias) else (each, "") for each in select.expressions]


def place_of(term: exp.Expr, items: Items) -> int | None:
    """Return the index of the item that an integer names; None for other terms, and for a number without an item."""
    if not isinstance(term, exp.Literal) or term.args.get("is_string") or not str(term.this).isdecimal():
        return None
    place = int(str(term.this)[:9])
    return place - 1 if 1 <= place <= len(items) else None


def alias_index(name: str, items: Items) -> int | None:
    """Return the index of the first item with an alias, ignoring case and quotes."""
    return next((at for at, (_, alias) in enumerate(items) if alias and alias.casefold() == name.casefold()), None)


def is_empty_set(term: exp.Expr) -> bool:
    """Return whether a term is () in GROUP BY: one group of all rows."""
    return isinstance(term, exp.Tuple) and not term.expressions


def is_star(node: exp.Expr) -> bool:
    """Return whether an item is `*` or `t.*`."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


CHANGES = ("except_", "replace", "rename")


def star_of(node: exp.Expr) -> exp.Star | None:
    """Return the star of `*` or `t.*`, which holds its modifiers, or None for other items."""
    inner = node.this if isinstance(node, exp.Column) else node
    return inner if isinstance(inner, exp.Star) else None


def changes_star(node: exp.Expr) -> bool:
    """Return whether an item is a star with EXCLUDE, REPLACE or RENAME."""
    star = star_of(node)
    return star is not None and any(star.args.get(each) for each in CHANGES)


def fresh(name: str, taken: set[str]) -> str:
    """Return the name, with _1, _2 ... appended if taken."""
    candidate, number = name, 0
    while candidate.casefold() in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate.casefold())
    return candidate


def is_aggregating(select: exp.Select) -> bool:
    """Return whether a SELECT combines rows: by groups, DISTINCT, or its own aggregate."""
    return bool(select.args.get("distinct")) or is_grouping(select)


def is_grouping(select: exp.Select) -> bool:
    """Return whether a SELECT has groups, ignoring DISTINCT: by GROUP BY, HAVING or an aggregate."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(aggregate_in(item) is not None for item in select.expressions)


_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def aggregate_in(node: exp.Expr) -> exp.Expr | None:
    """Return the first aggregate of an expression, ignoring sub-queries and windowed functions, or None."""
    walked = node.walk(prune=lambda each: isinstance(each, exp.Query))
    return next(
        (each for each in walked if (isinstance(each, exp.AggFunc) or is_aggregate(each)) and not _windowed(each)), None
    )


def _windowed(node: exp.Expr) -> bool:
    """Return whether a call stands directly before OVER."""
    while isinstance(node.parent, _AROUND) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def names_several(select: exp.Select) -> bool:
    """Return whether the text may read tables at several places."""
    common = {each.alias.casefold() for each in select.find_all(exp.CTE)}
    tables = [each for each in select.find_all(exp.Table) if each.name.casefold() not in common]
    return len(tables) > 1 or next(select.find_all(exp.Join, exp.Union), None) is not None


def only_filters(select: exp.Select) -> bool:
    """Return whether a SELECT only projects and filters the rows of its FROM."""
    others = ("joins", "group", "having", "distinct", "qualify", "windows", "order", "limit", "offset")
    if select.args.get("from_") is None or any(select.args.get(each) for each in others):
        return False
    own = select.walk(prune=lambda each: isinstance(each, exp.Query) and each is not select)
    return not any(isinstance(node, exp.AggFunc | exp.Window | exp.Unnest) for node in own)
