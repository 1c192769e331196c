"""Ranges that follow from declared keys: LENGTH(sex) lies between those of the keys of sex.

A text outside the list may still be stored. Its value is clipped to the range, as a number is to declared bounds, so
that the range holds for every row.
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
    """The aggregation over arguments that are clipped to what their texts' declared keys come to."""
    if not each.kind.ranged or each.per_unit is not None or each.argument is None:
        return each
    second = None if each.second is None else _ranged(each.second, domains)
    return replace(each, argument=_ranged(each.argument, domains), second=second)


def _ranged(expr: Expr, domains: Domains) -> Expr:
    """The expression, with limits where its keys give any; else as it is written."""
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
    """The numbers that the expression comes to over declared keys of texts and what else is listed or bounded."""
    used = columns(expr)
    limited = all(column.fact.limited or column.type is Type.TEXT for column in used)
    if not limited or all(column.type is not Type.TEXT for column in used):
        return []
    if any(domains.of(column) is None for column in used):
        return []
    found = [value for value in domains.of(expr) or () if isinstance(value, int | float)]
    return found if all(map(math.isfinite, found)) else []
