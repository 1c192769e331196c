"""Notes on answers in microseconds: aggregates of differences of timestamps.

DuckDB's AVG(b - a) is an INTERVAL. Here it is a number, and the answer states its unit.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Call, Column, Expr
from dpsql.plan.nodes import PerUnit, Source, Union, Windows, nodes_of
from dpsql.plan.query import Query

_KEEPING = {
    "add": slice(None), "subtract": slice(None), "negate": slice(None), "abs": slice(None), "coalesce": slice(None),
    "nullif": slice(1), "least": slice(None), "greatest": slice(None), "clamp": slice(1),
}  # fmt: skip
"""The arguments, by function, whose unit is also the unit of the function's value."""


def unit_note(query: Query) -> str:
    """Return a sentence that names the aggregates in microseconds; empty if there are none."""
    made = _made_of(query.plan.input)
    names = [str(each) for each in query.plan.aggregations if _in_microseconds(each, made)]
    if not names:
        return ""
    is_are = "is" if len(names) == 1 else "are"
    return (
        f"{', '.join(names)} {is_are} in microseconds, as one timestamp less another is. "
        "EXTRACT(epoch FROM b - a) is in seconds, DATE_SUB('day', a, b) in whole days."
    )


def _in_microseconds(each: Aggregation, made: Mapping[Column, tuple[Expr, ...]]) -> bool:
    """Return whether an aggregate has the unit of its argument, and the argument is a difference of timestamps."""
    kind = each.kind
    keeps = kind.chosen or kind.averages or kind.is_deviation or (kind.linear and not kind.counts)
    return keeps and each.argument is not None and not kind.pairs and _is_duration(each.argument, made)


def _is_duration(expr: Expr, made: Mapping[Column, tuple[Expr, ...]]) -> bool:
    """Return whether an expression is a difference of two timestamps, in microseconds."""
    if isinstance(expr, Column):
        return any(_is_duration(below, made) for below in made.get(expr, ()))
    if not isinstance(expr, Call):
        return False
    name = expr.function.name
    arms = (*expr.args[1::2], expr.args[-1]) if name == "case" else expr.args[_KEEPING.get(name, slice(0))]
    return name == "microseconds_between" or any(_is_duration(arm, made) for arm in arms)


def _made_of(source: Source) -> dict[Column, tuple[Expr, ...]]:
    """Return the columns that sub-queries make, with the expressions whose unit they share."""
    columns: dict[Column, tuple[Expr, ...]] = {}
    for node in nodes_of(source):
        if isinstance(node, PerUnit):
            columns.update({column: (key,) for column, key in zip(node.columns, node.keys, strict=False)})
            aggregates = zip(node.columns[len(node.keys) :], node.aggregations, strict=True)
            columns.update(
                {c: each.arguments[:1] for c, each in aggregates if not (each.kind.counts or each.kind.distinct)}
            )
        if isinstance(node, Union):
            branches = zip(*(branch.outputs for branch in node.branches), strict=True)
            columns.update(zip(node.columns, branches, strict=True))
        if isinstance(node, Windows):
            calls = zip(node.columns, node.calls, strict=True)
            columns.update({column: tuple(call.copies) for column, call in calls if call.copies})
    return columns
