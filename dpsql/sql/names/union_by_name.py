"""UNION ALL BY NAME of private rows as UNION ALL with one column order: the first query's columns, then others in order
of appearance, with NULL for missing ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import Span, UnsupportedSQL
from dpsql.sql.names.select_list import is_star

if TYPE_CHECKING:
    from dpsql.sql.syntax.parse import Statement


def aligned(statement: Statement, node: exp.Expr) -> exp.Expr | None:
    """Align the columns of a UNION BY NAME in place. Raises UnsupportedSQL."""
    if not isinstance(node, exp.Union) or not node.args.get("by_name"):
        return None
    node.set("by_name", None)
    sides = {side: node.args[side] for side in ("this", "expression")}
    listed = {side: _names(query, statement) for side, query in sides.items()}
    folded = {each.casefold() for each in listed["this"]}
    names = [*listed["this"], *(each for each in listed["expression"] if each.casefold() not in folded)]
    for side, query in sides.items():
        if [each.casefold() for each in listed[side]] != [each.casefold() for each in names]:
            node.set(side, _with(names, query.copy(), {each.casefold() for each in listed[side]}))
    return None


def _names(query: exp.Expr, statement: Statement) -> list[str]:
    """Return the columns of a query from its text. Raises UnsupportedSQL."""
    while isinstance(query, exp.Subquery | exp.Union):
        if isinstance(query, exp.Union) and query.args.get("by_name"):
            aligned(statement, query)
        query = query.this
    names = [each.alias_or_name for each in query.expressions] if isinstance(query, exp.Select) else []
    if not names or not all(names) or any(is_star(each) for each in query.expressions):
        place = next((each for each in statement.tokens if each.text.upper() == "UNION"), None)
        raise UnsupportedSQL(
            "UNION BY NAME of people's rows is of columns that its SELECT lists name.",
            span=None if place is None else Span(statement.sql, place.start, place.end),
            hint="Name them: SELECT a, b AS c FROM t UNION ALL BY NAME SELECT ...",
        )
    return names


def _with(names: list[str], query: exp.Expr, own: set[str]) -> exp.Select:
    items = [
        exp.column(exp.to_identifier(each, quoted=True))
        if each.casefold() in own
        else exp.alias_(exp.Null(), exp.to_identifier(each, quoted=True))
        for each in names
    ]
    inner = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
    if not inner.alias:
        inner.set("alias", exp.TableAlias(this=exp.to_identifier("__by_name")))
    return exp.Select(expressions=items, from_=exp.From(this=inner))
