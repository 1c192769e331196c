"""Inputs of an aggregation: its argument, the rows that count for it, and the middle of its range."""

from __future__ import annotations

from fractions import Fraction

from dpsql.core.exact import CountRows
from dpsql.core.sensitivity.row_contributions import MeasuredAggregation
from dpsql.plan.expressions import Expr, Literal, call
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval

GridKey = tuple[Expr, str, Interval | None]
"""Aggregations with the same key have the same contributions, and share a grid."""


def grid_key(m: MeasuredAggregation, *, second: bool = False) -> GridKey:
    """Return the key of an aggregation's first or second argument."""
    expr = m.aggregation.second if second else m.aggregation.argument
    assert expr is not None  # checked by the caller
    return expr, m.of, m.aggregation.per_unit


def argument_of(m: MeasuredAggregation) -> Expr:
    """Return the argument of an aggregation that has one."""
    assert m.aggregation.argument is not None
    return m.aggregation.argument


def count_of(m: MeasuredAggregation) -> CountRows:
    """Return the count that belongs to an aggregation: of all rows, or of rows with a non-NULL argument."""
    argument = m.aggregation.argument
    return CountRows(argument if argument is not None and m.argument.nullable else None)


def is_whole(expr: Expr) -> bool:
    """Return whether values are integers."""
    return expr.type in (Type.INTEGER, Type.BOOLEAN)


def or_zero(expr: Expr) -> Expr:
    """Return a row's contribution to the sum of an expression: its value, or 0 for NULL."""
    nothing = {Type.BOOLEAN: False, Type.INTEGER: 0}.get(expr.type, 0.0)
    found = call(FUNCTIONS["coalesce"], expr, Literal(nothing, expr.type))
    assert found is not None  # both have one type
    return found


def middle(held: Interval) -> float:
    """Return the middle of a range."""
    return float(Fraction(held.lower) + Fraction(held.upper)) / 2


def half(held: Interval) -> float:
    """Return half the width of a range."""
    return float(Fraction(held.upper) - Fraction(held.lower)) / 2
