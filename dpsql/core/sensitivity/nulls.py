"""Expressions that are NULL in the same rows, so that a row adds nothing to any part of them at the same time."""

from __future__ import annotations

from dpsql.core.sensitivity.row_contributions import Analysis
from dpsql.plan.expressions import Call, Expr, Literal
from dpsql.plan.facts import fact


def nulls(expr: Expr, analysis: Analysis) -> frozenset[Expr]:
    """Return the expressions of which one is NULL in a row exactly if `expr` is; empty if `expr` is never NULL.

    CASE WHEN y IS NOT NULL THEN x END is NULL exactly if x or y is: a pair of values reads both this way. Any other
    expression stands for itself. Nullability is looked up only where it matters: for such pairs, and if rows are sure
    to be there. Otherwise a NULL is like an absent row, except in the counts of all rows."""
    guarded = _guarded(expr)
    if guarded is not None:
        return _nulls_of(guarded[0], analysis) | _nulls_of(guarded[1], analysis)
    return _nulls_of(expr, analysis) if analysis.public_count else frozenset((expr,))


def _nulls_of(expr: Expr, analysis: Analysis) -> frozenset[Expr]:
    guarded = _guarded(expr)
    if guarded is not None:
        return _nulls_of(guarded[0], analysis) | _nulls_of(guarded[1], analysis)
    return frozenset((expr,)) if fact(expr, analysis.known).nullable else frozenset()


def _guarded(expr: Expr) -> tuple[Expr, Expr] | None:
    """Return x and y of CASE WHEN NOT (y IS NULL) THEN x ELSE NULL END; None for other expressions."""
    if not (isinstance(expr, Call) and expr.function.name == "case" and len(expr.args) == 3):
        return None
    condition, value, other = expr.args
    if not (isinstance(other, Literal) and other.value is None and isinstance(condition, Call)):
        return None
    inner = condition.args[0] if condition.function.name == "not" else None
    if isinstance(inner, Call) and inner.function.name == "is_null":
        return value, inner.args[0]
    return None
