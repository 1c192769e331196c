"""Refuses uses of columns whose whole numbers may be too large for their type: expressions have no exact value of them.

Such a column can be counted and tested for NULL. One that tells units apart can also be counted by its distinct values,
joined with the same column of other tables, and name the unit in GROUP BY and PARTITION BY of sub-queries: all of that
goes by units, as their source has them.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.errors import Span, TypeMismatch
from dpsql.plan.aggregates.record import AggregateFunction
from dpsql.plan.expressions import Call, Column, Expr, Literal, columns, unfiltered
from dpsql.schema.columns import Wide
from dpsql.schema.wide_columns import wide_hint

_EXACT = 2**53
"""Whole numbers up to it are doubles."""


def check_call(function: str, args: Sequence[Expr], span: Span | None) -> None:
    """Raises TypeMismatch where a function would read such numbers."""
    if function == "is_null" or not any(unfiltered(arg).wide for arg in args):
        return
    if function == "eq" and all(isinstance(arg, Column) and arg.fact.wide is Wide.UNIT for arg in args):
        return
    if (function == "case" and _only_chooses(args)) or (function == "clamp" and _is_clipped(args)):
        return
    refuse(next(arg for arg in args if unfiltered(arg).wide), span)


def _is_clipped(args: Sequence[Expr]) -> bool:
    """Whether constants clip a number: the result is the same if it was held to 64 bits, or to a double, before."""
    number, *ends = args
    close = all(isinstance(end, Literal) and unfiltered(end).range.magnitude <= _EXACT for end in ends)
    return close and isinstance(number, Column)


def _only_chooses(args: Sequence[Expr]) -> bool:
    """Whether all values of a CASE are such numbers, of one kind, or NULL."""
    values = [*args[1::2], args[-1]]
    kinds = {unfiltered(each).wide for each in values if not _is_null(each)}
    return len(kinds) == 1 and not any(unfiltered(each).wide for each in args[:-1:2])


def chooses_units(expr: Expr | None, units: Sequence[Column]) -> bool:
    """Whether an expression of such numbers is the unit wherever it is not NULL, as in CASE WHEN x > 0 THEN pid END."""
    if expr is None or unfiltered(expr).wide is not Wide.UNIT:
        return False
    if isinstance(expr, Call):
        values = [*expr.args[1::2], expr.args[-1]]
        return all(_is_null(each) or chooses_units(each, units) for each in values)
    return expr in units


def _is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def check_argument(kind: AggregateFunction, expr: Expr, span: Span | None, *, exact: bool) -> None:
    """Raises TypeMismatch where an aggregate would read such numbers. Noisy sums may: bounds are within +/-2^62, and
    what is clipped to them is the same whether it was held to 64 bits before. exact: inside a unit, without noise."""
    wide = unfiltered(expr).wide
    clips = bool(kind.moments) and not exact
    if wide and not (kind.counts or clips or (kind.distinct and wide is Wide.UNIT)):
        refuse(expr, span)


def check_key(expr: Expr, span: Span | None) -> None:
    """Raises TypeMismatch where rows would be grouped by such numbers that do not tell units apart."""
    if unfiltered(expr).wide is Wide.VALUE:
        refuse(expr, span)


def check_value(expr: Expr, span: Span | None) -> None:
    """Raises TypeMismatch for such numbers."""
    if unfiltered(expr).wide:
        refuse(expr, span)


def refuse(expr: Expr, span: Span | None) -> None:
    """Raises TypeMismatch. The advice is about the first column that is read."""
    column = next(each for each in columns(expr) if each.fact.wide)
    raise TypeMismatch(
        f"{column}: the type that it is stored as has whole numbers that cannot be read exactly, so that it can only "
        "be counted or tested for NULL.",
        span=span,
        hint=wide_hint(column.name, column.type),
    )
