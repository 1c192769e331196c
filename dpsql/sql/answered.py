"""The answer of a query as rows that another SELECT may read: the names and types of its columns."""

from __future__ import annotations

from dpsql.plan.aggregates import CHOSEN, AggregateKind
from dpsql.plan.expressions import Column, Expr, Fact, Slot, between_integers
from dpsql.plan.query import Query
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval
from dpsql.sql.scopes import Answered, Scope


def unread(query: Query) -> Answered:
    """The outermost answer, whose columns no SELECT reads."""
    return Answered(Scope("", "", ()), query)


def answered(query: Query, name: str) -> Answered:
    """The answer of a query as rows that another SELECT may read."""
    finish = query.stages[-1].finish if query.stages else query.finish
    outputs = tuple(
        (output.name, Column(output.name, kind, shown_fact(kind)))
        for output in finish.outputs
        for kind in [shown_type(query, output.expr)]
    )
    return Answered(Scope(name, name, outputs), query)


LARGEST_SHOWN = 2**60


def shown_fact(kind: Type) -> Fact:
    """What is known of a column of an answer; whole numbers are held within +/-2^60, so that sums of two still fit."""
    ranges = {Type.INTEGER: Interval(-LARGEST_SHOWN, LARGEST_SHOWN), Type.DATE: DAYS, Type.TIMESTAMP: MICROSECONDS}
    return between_integers(Fact(ranges.get(kind, EVERYTHING)), kind)


def shown_type(query: Query, expr: Expr) -> Type:
    """The type of an output as it is shown: COUNT and sums of whole numbers are integers again."""
    if query.stages or not isinstance(expr, Slot) or expr.index < len(query.plan.keys) or query.plan.sets:
        return expr.type
    aggregation = query.plan.aggregations[expr.index - len(query.plan.keys)]
    argument = aggregation.argument
    whole = argument is not None and argument.type in (Type.INTEGER, Type.BOOLEAN)
    counted = aggregation.kind in (AggregateKind.COUNT, AggregateKind.DISTINCT)
    if aggregation.kind in CHOSEN:
        return expr.type
    return Type.INTEGER if counted or (whole and aggregation.kind is AggregateKind.SUM) else expr.type
