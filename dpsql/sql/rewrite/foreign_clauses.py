"""Rewrite clauses of other engines in dpsql's language: GROUP BY ALL as its keys, `= ANY([...])` as IN, SEMI JOIN as
EXISTS, FETCH FIRST as LIMIT, parenthesized tables as the tables.

Each rule rewrites the parser's tree before binding and keeps its meaning for all rows, so the result is bound by the
ordinary rules. Clauses that no rule recognizes stay, and the allow-list refuses them by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.names.select_list import aggregate_in, is_star, items_of
from dpsql.sql.names.table_names import check_names, semi_joins, with_qualified_tables
from dpsql.sql.rewrite.parentheses import is_joined, opened
from dpsql.sql.syntax.foreign_syntax import FOREIGN
from dpsql.sql.syntax.nodes import NamedArguments, PrivacyClause
from dpsql.sql.syntax.parameter_constants import with_constants_given
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import Statement, span_of

_CONSTANTS = frozenset({exp.Values, exp.Unnest, exp.Explode, exp.GenerateSeries, exp.GenerateDateArray})
_ONE = exp.Literal.number(1)


def plainly(statement: Statement, catalog: Catalog) -> Statement:
    """Return the statement in dpsql's language. Raises UnsupportedSQL."""
    tells = ((_TELLS.get(type(node)), node) for node in statement.select.walk())
    joins_public = _joins_public(statement, catalog)
    if not joins_public and not any(tell is not None and tell(node) for tell, node in tells):
        return statement
    check_names(statement)
    statement = opened(in_own_functions(statement))
    select = statement.select.copy()
    for kind, rewrite in _REWRITES.items():
        for node in list(select.find_all(kind)):
            instead = rewrite(statement, node)
            if instead is not None and instead is not node:
                node.replace(instead)
    if joins_public or select.find(exp.AnyValue) is not None:
        from dpsql.sql.rewrite.determined_aggregates import with_fixed_values  # imported only when needed

        with_fixed_values(statement, select, catalog)
    return replace(statement, select=select)


def _joins_public(statement: Statement, catalog: Catalog) -> bool:
    """Return whether a text may group a join by the key of a public table."""
    keyed = any(schema.public and schema.unique for schema in catalog.tables.values())
    return keyed and statement.select.find(exp.Join) is not None and statement.select.find(exp.Group) is not None


def settled(statement: Statement, catalog: Catalog, params: Params, used: set[str]) -> tuple[Statement, Catalog]:
    """Return the statement in dpsql's language, with evaluated options and constant tables, and the catalog with these
    tables.

    used: receives parameter names. Raises a QueryRefused.
    """
    statement = with_qualified_tables(statement, catalog)
    statement = replace(statement, select=with_constants_given(statement.select, params, used))
    statement = plainly(statement, catalog)
    if next(statement.select.find_all(PrivacyClause, NamedArguments), None) is not None:
        from dpsql.sql.syntax.option_numbers import with_numbers  # imported only when needed

        statement = with_numbers(statement, params, used)
    if not holds_constants(statement.select):
        return statement, catalog
    from dpsql.sql.bind.constant_relations import with_constants  # imported only when needed

    return with_constants(statement, catalog, params, used)


def is_foreign(node: exp.Expr) -> bool:
    """Return whether a call belongs to another engine."""
    return type(node) is exp.Anonymous and str(node.this).upper() in FOREIGN


def in_own_functions(statement: Statement) -> Statement:
    """Rewrite other engines' functions in dpsql's language."""
    if not any(is_foreign(node) for node in statement.select.walk()):
        return statement
    from dpsql.sql.rewrite.foreign_functions import read, share_in  # imported only when needed

    select = statement.select.copy()
    for window in list(select.find_all(exp.Window)):
        share = share_in(window)
        if share is not None:
            window.replace(share)
    for node in reversed(list(select.find_all(exp.Anonymous))):  # inner nodes first
        instead = read(node) if is_foreign(node) else None
        if instead is not None:
            node.replace(instead)
    return replace(statement, select=select)


def with_calendars(statement: Statement, catalog: Catalog, params: Params, used: set[str]) -> tuple[Statement, Catalog]:
    """Move the time series of a multi-step statement into tables: DuckDB's lists have no known size."""
    if not holds_constants(statement.select):
        return statement, catalog
    from dpsql.sql.bind.constant_relations import with_constants  # imported only when needed

    return with_constants(statement, catalog, params, used, only_times=True)


def holds_constants(select: exp.Query) -> bool:
    """Return whether a text may hold constant tables (`constant_relations`)."""
    return any(type(node) in _CONSTANTS or _has_no_from(node) for node in select.walk())


def _has_no_from(node: exp.Expr) -> bool:
    return isinstance(node, exp.Select) and node.args.get("from_") is None and node.parent is not None


def is_list_of_any(node: exp.Expr) -> bool:
    """Return whether a node is the ANY, or the list, of x = ANY([...]) and x <> ALL([...]), or the list in
    UNNEST([...])."""
    if isinstance(node, exp.Array):
        inside = node.parent if isinstance(node.parent, exp.Paren) else node
        if isinstance(inside.parent, exp.Unnest | exp.Explode):
            return True
        return inside.parent is not None and is_list_of_any(inside.parent)
    if type(node) is exp.Anonymous:
        return str(node.this).upper() == "ALL" and isinstance(node.parent, exp.NEQ) and len(node.expressions) == 1
    return isinstance(node, exp.Any) and isinstance(node.parent, exp.EQ) and _listed(node) is not None


def _listed(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the values of ANY([...]), ANY((a, b)) and ALL([...]); None for another operand."""
    inner = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return list(inner.expressions) if isinstance(inner, exp.Array | exp.Tuple) else None


def _membership(_statement: Statement, node: exp.Expr) -> exp.Expr | None:
    """Rewrite x = ANY([a, b]) as x IN (a, b), and x <> ALL([a, b]) as x NOT IN (a, b)."""
    listed = node.args.get("expression")
    if listed is None or not is_list_of_any(listed) or not (values := _listed(listed)):
        return None
    found = exp.In(this=node.this.copy(), expressions=[each.copy() for each in values])
    return found if isinstance(node, exp.EQ) else exp.Not(this=found)


def _rows_in(_statement: Statement, node: exp.Expr) -> exp.Expr | None:
    """Rewrite (a, b) IN ((1, 2), (3, 4)): some row equals it in all columns, where NULL equals NULL as in DuckDB. x IN
    UNNEST([1, 2]) and x IN (VALUES (1), (2)) become x IN (1, 2)."""
    listed = values_of_membership(node)
    if listed is not None:
        return exp.In(this=node.this.copy(), expressions=[each.copy() for each in listed])
    row, rows = node.this, node.expressions
    if not isinstance(row, exp.Tuple) or not rows or not all(isinstance(each, exp.Tuple) for each in rows):
        return None
    if any(len(each.expressions) != len(row.expressions) for each in rows):
        return None
    terms = [
        _joined(exp.And, [exp.NullSafeEQ(this=one.copy(), expression=other.copy()) for one, other in
                          zip(row.expressions, each.expressions, strict=True)])
        for each in rows
    ]  # fmt: skip
    return exp.Paren(this=_joined(exp.Or, terms))


def _joined(kind: type[exp.Connector], terms: list[exp.Expr]) -> exp.Expr:
    return reduce(lambda left, right: kind(this=left, expression=right), terms)


def _count(_statement: Statement, node: exp.Expr) -> exp.Expr | None:
    """Rewrite COUNT() as COUNT(*)."""
    if node.this is None and not node.expressions:
        node.set("this", exp.Star())
    return None


def _both_there(_statement: Statement, node: exp.Expr) -> exp.Expr:
    """Rewrite REGR_COUNT(y, x) as a count of rows without NULL in either."""
    sides = [
        exp.Not(this=exp.Is(this=node.args[side].copy(), expression=exp.Null())) for side in ("this", "expression")
    ]
    arm = exp.If(this=_joined(exp.And, list(sides)), true=_ONE.copy())
    return exp.Count(this=exp.Case(ifs=[arm]), big_int=True)


def _bucket(statement: Statement, node: exp.Expr) -> exp.Expr:
    from dpsql.sql.rewrite.width_bucket import bucket  # imported only when needed

    return bucket(statement.sql, node)


def values_of_membership(node: exp.Expr) -> list[exp.Expr] | None:
    """Return the values of x IN UNNEST([...]) and x IN (VALUES (1), (2)); None for another IN."""
    unnest = node.args.get("unnest")
    if isinstance(unnest, exp.Unnest) and len(unnest.expressions) == 1 and isinstance(unnest.expressions[0], exp.Array):
        return list(unnest.expressions[0].expressions)
    listed = node.expressions
    if len(listed) == 1 and isinstance(listed[0], exp.Values):
        rows = listed[0].expressions
        if all(isinstance(row, exp.Tuple) and len(row.expressions) == 1 for row in rows):
            return [row.expressions[0] for row in rows]
    return None


# Clauses.


def _grouped_by_all(statement: Statement, node: exp.Expr) -> exp.Expr | None:
    """Expand GROUP BY ALL to every SELECT item without aggregates that is not a constant."""
    select = node.parent
    if not node.args.get("all") or not isinstance(select, exp.Select):
        return None
    items = items_of(select)
    stars = [item for item, _ in items if is_star(item)]
    if stars:
        raise UnsupportedSQL(
            "GROUP BY ALL beside * is not supported. Name the columns.", span=span_of(statement.sql, stars[0])
        )
    aggregating: set[str] = set()
    keys: list[exp.Expr] = []
    for place, (item, alias) in enumerate(items, 1):
        names = {each.name.casefold() for each in item.find_all(exp.Column) if not each.table}
        if aggregate_in(item) is not None or names & aggregating:
            aggregating.add(alias.casefold())
        elif item.find(exp.Column) is not None:
            keys.append(exp.Literal.number(place))
    node.set("all", None)
    node.set("expressions", keys)
    if not keys:
        select.set("group", None)
    return None


def _ordered_by_all(statement: Statement, node: exp.Expr) -> exp.Expr | None:
    """Expand ORDER BY ALL to every SELECT item, in order."""
    select = node.parent
    terms = node.expressions
    if len(terms) != 1 or not _is_all(terms[0]) or not isinstance(select, exp.Select):
        return None
    if any(is_star(item) for item, _ in items_of(select)):
        raise UnsupportedSQL(
            "ORDER BY ALL beside * is not supported. Name the columns.", span=span_of(statement.sql, select)
        )
    places = range(1, len(select.expressions) + 1)
    node.set("expressions", [exp.Ordered(this=exp.Literal.number(place), **_how(terms[0])) for place in places])
    return None


def _is_all(term: exp.Expr) -> bool:
    return isinstance(term, exp.Ordered) and isinstance(term.this, exp.Var) and term.this.name.upper() == "ALL"


def _how(term: exp.Expr) -> dict[str, object]:
    return {name: term.args.get(name) for name in ("desc", "nulls_first")}


def _limit(_statement: Statement, node: exp.Expr) -> exp.Expr:
    """Rewrite FETCH FIRST n ROWS ONLY as LIMIT n, or LIMIT 1 without a number."""
    count = node.args.get("count")
    return exp.Limit(expression=_ONE.copy() if count is None else count.copy())


def _of_quantiles() -> Any:
    from dpsql.sql.rewrite import quantile_lists  # imported only when needed

    return quantile_lists


def _by_name() -> Any:
    from dpsql.sql.names import union_by_name as unions_by_name  # imported only when needed

    return unions_by_name


_REWRITES: Mapping[type[exp.Expr], Callable[[Statement, exp.Expr], exp.Expr | None]] = {
    exp.WithinGroup: lambda statement, node: _of_quantiles().ordered_list(statement, node),
    exp.Bracket: lambda statement, node: _of_quantiles().part(statement, node),
    exp.EQ: _membership,
    exp.NEQ: _membership,
    exp.In: _rows_in,
    exp.Count: _count,
    exp.RegrCount: _both_there,
    exp.WidthBucket: _bucket,
    exp.Group: _grouped_by_all,
    exp.Order: _ordered_by_all,
    exp.Fetch: _limit,
    exp.Select: semi_joins,
    exp.Union: lambda statement, node: _by_name().aligned(statement, node),
}
_TELLS: Mapping[type[exp.Expr], Callable[[exp.Expr], bool]] = {
    exp.Any: lambda _node: True,
    exp.AnyValue: lambda _node: True,
    exp.WithinGroup: lambda node: isinstance(node.this.this, exp.Array),
    exp.Bracket: lambda _node: True,
    exp.Anonymous: lambda node: str(node.this).upper() == "ALL" or is_foreign(node),
    exp.In: lambda node: isinstance(node.this, exp.Tuple) or values_of_membership(node) is not None,
    exp.Count: lambda node: node.this is None,
    exp.RegrCount: lambda _node: True,
    exp.WidthBucket: lambda _node: True,
    exp.Group: lambda node: bool(node.args.get("all")),
    exp.Ordered: lambda node: isinstance(node.this, exp.Var),
    exp.Fetch: lambda _node: True,
    exp.Subquery: is_joined,
    exp.Join: lambda node: str(node.args.get("kind") or "").upper() in ("SEMI", "ANTI"),
    exp.Table: lambda node: node.args.get("db") is not None,
    exp.Union: lambda node: bool(node.args.get("by_name")),
}
"""Tests for nodes that need rewriting; most texts have none, and keep their tree."""
