"""Tie-breakers for window orders: all values of a row that the query reads.

Rows equal in all these values are interchangeable for the query, so their order does not matter: the windows of a unit
are functions of the multiset of its rows' values. That holds only for the whole query, so ties are added last.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dpsql.errors import UnsupportedSQL
from dpsql.plan.expressions import Column, Expr, call, columns
from dpsql.plan.functions import FUNCTIONS
from dpsql.plan.nodes import Join, Mark, Scan, Source, Union, Windows, exprs_of, nodes_of
from dpsql.plan.query import Query
from dpsql.sql.bind.private_rows import columns_of
from dpsql.sql.names.scopes import StatementState
from dpsql.sql.syntax.parse import span_of

Name = tuple[str, str]


def with_ties(query: Query, select: exp.Select, whole: StatementState) -> Query:
    """Return the query of a SELECT with tie-breakers for its windows. Raises UnsupportedSQL if a window is not read."""
    _check_read(select, whole)
    source = query.plan.input
    if not any(isinstance(node, Windows) for node in nodes_of(source)):
        return query
    plan = query.plan
    exprs = [key.expr for key in plan.keys] + [expr for each in plan.aggregations for expr in each.arguments]
    exprs += [expr for node in nodes_of(source) for expr in exprs_of(node)]
    read = {(column.table, column.name) for expr in exprs for column in columns(expr)}
    return replace(query, plan=replace(plan, input=_tied(source, read)))


def _check_read(select: exp.Select, whole: StatementState) -> None:
    """Check that QUALIFY and WINDOW stand only in SELECTs that keep private rows; no rule reads them elsewhere. Raises
    UnsupportedSQL."""
    for each in select.find_all(exp.Select):
        for clause in ("qualify", "windows"):
            if each.args.get(clause) and id(each) not in whole.windowed:
                node = each.args[clause] if clause == "qualify" else each.args[clause][0]
                raise UnsupportedSQL(
                    f"{'QUALIFY' if clause == 'qualify' else 'WINDOW'} stands in a sub-query of people's rows without "
                    "aggregates, or over an answer.",
                    span=span_of(whole.sql, node),
                )


def _tied(source: Source, read: set[Name]) -> Source:
    if isinstance(source, Scan):
        return source
    if isinstance(source, Join):
        return replace(source, left=_tied(source.left, read), right=_tied(source.right, read))
    if isinstance(source, Mark):
        return replace(source, input=_tied(source.input, read), inner=_tied(source.inner, read))
    if isinstance(source, Union):
        branches = tuple(replace(each, input=_tied(each.input, read)) for each in source.branches)
        return replace(source, branches=branches)
    below = _tied(source.input, read)
    if not isinstance(source, Windows):
        return replace(source, input=below)
    known = [column for column in columns_of(source.input) if (column.table, column.name) in read]
    return replace(source, input=below, ties=tuple(dict.fromkeys(_compared(column) for column in known)))


def _compared(column: Column) -> Expr:
    """Return the expression that separates rows by a column: for an opaque value, whether it is NULL."""
    if not column.type.opaque:
        return column
    made = call(FUNCTIONS["is_null"], column)
    assert made is not None  # anything may be NULL
    return made
