"""Ranges derived from declared keys: LENGTH(sex) lies between the lengths of the keys of sex.

Texts outside the list may still be stored. Their results are clipped to the range, as numbers are to declared bounds,
so the range holds for every row.
"""

from __future__ import annotations

import math
from dataclasses import replace

from dpsql.plan.aggregates import Aggregation
from dpsql.plan.domains import Domains
from dpsql.plan.expressions import Call, Expr, Literal, call, call_of, columns
from dpsql.plan.facts import fact
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.columns import Type


def within_keys(each: Aggregation, domains: Domains) -> Aggregation:
    """Return the aggregation with arguments clipped to the ranges derived from declared text keys."""
    if not each.kind.ranged or each.per_unit is not None or each.argument is None:
        return each
    second = None if each.second is None else _ranged(each.second, domains)
    return replace(each, argument=_ranged(each.argument, domains), second=second)


def _ranged(expr: Expr, domains: Domains) -> Expr:
    """Return the expression clipped to limits derived from its keys, if any; otherwise unchanged."""
    held = _clipped(expr, domains)
    return held if fact(held, domains.known).limited else expr


def _clipped(expr: Expr, domains: Domains) -> Expr:
    if not isinstance(expr, Call) or not expr.type.numeric or fact(expr, domains.known).limited:
        return expr
    values = _values(expr, domains)
    if values:
        made = call(FUNCTIONS["clamp"], expr, Literal(min(values), expr.type), Literal(max(values), expr.type))
        return expr if made is None else made
    return call_of(expr.function, tuple(_clipped(arg, domains) for arg in expr.args), expr.type)


def _values(expr: Expr, domains: Domains) -> list[int | float]:
    """Return the numeric results of an expression over declared text keys and other listed or bounded columns."""
    used = columns(expr)
    limited = all(column.fact.limited or column.type is Type.TEXT for column in used)
    if not limited or all(column.type is not Type.TEXT for column in used):
        return []
    if any(domains.of(column) is None for column in used):
        return []
    found = [value for value in domains.of(expr) or () if isinstance(value, int | float)]
    return found if all(map(math.isfinite, found)) else []
