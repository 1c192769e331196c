"""The SELECT list: its items, their names, and the aggregates that may be among them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.sql.bind.aggregate_calls import is_aggregate

Items = Sequence[tuple[exp.Expr, str]]
"""Expressions and their aliases, "" where they have none."""


def items_of(select: exp.Select) -> list[tuple[exp.Expr, str]]:
    """The SELECT list: expressions and their aliases."""
    return [(each.this, each.alias) if isinstance(each, exp.Alias) else (each, "") for each in select.expressions]


def place_of(term: exp.Expr, items: Items) -> int | None:
    """The index of the item that a whole number means; None for any other term, and for a number without an item."""
    if not isinstance(term, exp.Literal) or term.args.get("is_string") or not str(term.this).isdecimal():
        return None
    place = int(str(term.this)[:9])
    return place - 1 if 1 <= place <= len(items) else None


def alias_index(name: str, items: Items) -> int | None:
    """The index of the first item with an alias; neither case nor quotes matter."""
    return next((at for at, (_, alias) in enumerate(items) if alias and alias.casefold() == name.casefold()), None)


def is_empty_set(term: exp.Expr) -> bool:
    """() in GROUP BY: one group of all rows."""
    return isinstance(term, exp.Tuple) and not term.expressions


def is_star(node: exp.Expr) -> bool:
    """`*` or `t.*`."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


CHANGES = ("except_", "replace", "rename")


def star_of(node: exp.Expr) -> exp.Star | None:
    """The star of `*` or `t.*`, which holds what is said behind it; None of another item."""
    inner = node.this if isinstance(node, exp.Column) else node
    return inner if isinstance(inner, exp.Star) else None


def changes_star(node: exp.Expr) -> bool:
    """Whether an item is a star with EXCLUDE, REPLACE or RENAME behind it."""
    star = star_of(node)
    return star is not None and any(star.args.get(each) for each in CHANGES)


def fresh(name: str, taken: set[str]) -> str:
    """The name, with _1, _2 ... after it where it is taken."""
    candidate, number = name, 0
    while candidate.casefold() in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate.casefold())
    return candidate


def is_aggregating(select: exp.Select) -> bool:
    """Whether a SELECT makes one row of many: it groups, removes doubles, or holds an aggregate of its own."""
    return bool(select.args.get("distinct")) or is_grouping(select)


def is_grouping(select: exp.Select) -> bool:
    """Whether a SELECT has groups, its DISTINCT apart: by GROUP BY or HAVING, or one since it holds an aggregate."""
    if select.args.get("group") or select.args.get("having"):
        return True
    return any(aggregate_in(item) is not None for item in select.expressions)


_AROUND = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def aggregate_in(node: exp.Expr) -> exp.Expr | None:
    """The first aggregate of an expression, those of its sub-queries and what is windowed itself apart; None if there
    is none."""
    walked = node.walk(prune=lambda each: isinstance(each, exp.Query))
    return next(
        (each for each in walked if (isinstance(each, exp.AggFunc) or is_aggregate(each)) and not _windowed(each)), None
    )


def _windowed(node: exp.Expr) -> bool:
    """Whether a call is the one that stands before OVER."""
    while isinstance(node.parent, _AROUND) and node.arg_key == "this":
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def names_several(select: exp.Select) -> bool:
    """Whether the text may read tables at more than one place."""
    common = {each.alias.casefold() for each in select.find_all(exp.CTE)}
    tables = [each for each in select.find_all(exp.Table) if each.name.casefold() not in common]
    return len(tables) > 1 or next(select.find_all(exp.Join, exp.Union), None) is not None


def only_filters(select: exp.Select) -> bool:
    """Whether a SELECT only projects and filters the rows of its FROM."""
    others = ("joins", "group", "having", "distinct", "qualify", "windows", "order", "limit", "offset")
    if select.args.get("from_") is None or any(select.args.get(each) for each in others):
        return False
    own = select.walk(prune=lambda each: isinstance(each, exp.Query) and each is not select)
    return not any(isinstance(node, exp.AggFunc | exp.Window | exp.Unnest) for node in own)
