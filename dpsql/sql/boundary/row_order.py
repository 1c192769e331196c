"""Decide whether rows of post-processing SQL are ordered already. Others are sorted by all columns."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.plan.query_plan import ReleasePlan
from dpsql.sql.boundary.noise_of_statements import Listed
from dpsql.sql.names.select_list import only_filters

_MAKES_ROWS = (exp.UDTF, exp.Explode, exp.Anonymous)


def in_order(tree: exp.Expr, releases: Sequence[ReleasePlan], commons: Sequence[Listed]) -> bool:
    """Return whether a query orders its rows, has at most one, or keeps the order of an inner query."""
    return tree.args.get("order") is not None or _is_one_row(tree) or _keeps_order(tree, releases, commons)


def _is_one_row(tree: exp.Expr) -> bool:
    return (
        isinstance(tree, exp.Select)
        and tree.args.get("from_") is None
        and not any(isinstance(node, _MAKES_ROWS) for item in tree.expressions for node in item.walk())
    )


def _keeps_order(tree: exp.Expr, releases: Sequence[ReleasePlan], listed: Sequence[Listed]) -> bool:
    """Return whether only projections and filters stand above an order."""
    while isinstance(tree, exp.Select) and only_filters(tree):
        source = tree.args["from_"].this
        if isinstance(source, exp.Table):
            named = [each for each in releases if each.relation == source.name]
            commons = [query for name, query, _ in listed if name == source.name]
            if commons and commons[0].args.get("order") is None:
                tree = commons[0]
                continue
            return bool(commons) or (bool(named) and bool(named[0].query.finish.order))
        if not isinstance(source, exp.Subquery):
            return False
        tree = source.this
        if tree.args.get("order") is not None:
            return True
    return False
