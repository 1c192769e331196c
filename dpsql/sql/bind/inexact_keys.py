"""Keys whose last bits are a library's.

Exponentials, logarithms, cube roots and powers are computed to within a unit in the last place. Real numbers that come
of them are groups of one row each, or other groups on another machine.

Powers with a whole exponent are keys nevertheless, as their base is. Their last bits are NumPy's (its x ** 2
is not always x * x), so another machine may show a key with another last digit; but a power is a function of the cells
of its row alone (`row_local`), so rows of equal cells share a group. What is refused here is refused since it would be
of no use: no proof of privacy rests on it.

A function that rounds, compares or counts does away with the last bits (but for a value at its border, which may fall
on either side of it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpsql.plan.expressions import Call, Column, Expr, unfiltered
from dpsql.plan.nodes import PerUnit, Source, Windows, nodes_of
from dpsql.plan.row_local import INEXACT
from dpsql.schema.columns import Type
from dpsql.sql.bind.private_rows import origins

_ROUNDS = frozenset({"floor", "ceil", "round", "trunc", "to_decimal", "int_divide"})
_SKIPPED = {"case": slice(1, None, 2), "nullif": slice(1)}
"""Which arguments the result is one of, where it is not of all."""

Made = Mapping[Column, tuple[Expr, ...]]


def inexact_in(expr: Expr, made: Made) -> Call | None:
    """The function that leaves last bits of its own in the values of an expression, if there is one; `made`: what
    columns that the query makes are made of."""
    if isinstance(expr, Column):
        return _first(made.get(expr, ()), made)
    if not isinstance(expr, Call) or expr.type not in (Type.REAL, Type.TEXT) or expr.function.name in _ROUNDS:
        return None
    if expr.function.name in INEXACT and not _is_whole_power(expr):
        return expr
    args = expr.args[_SKIPPED.get(expr.function.name, slice(None))]
    if expr.function.name == "case":
        args = (*args, expr.args[-1])
    return _first(args, made)


def _first(exprs: Sequence[Expr], made: Made) -> Call | None:
    return next((found for each in exprs if (found := inexact_in(each, made)) is not None), None)


def _is_whole_power(expr: Call) -> bool:
    """x to a whole number: a column of whole numbers, or a constant that is one."""
    if expr.function.name != "power":
        return False
    exponent = unfiltered(expr.args[1])
    known = exponent.range.lower if exponent.range.lower == exponent.range.upper else None
    return exponent.whole or (known is not None and float(known).is_integer())


def made_of(source: Source) -> dict[Column, tuple[Expr, ...]]:
    """What the columns that nodes of a source make are copies of, or are aggregated of inside a unit."""
    exprs = origins(source)
    for each in nodes_of(source):
        if isinstance(each, PerUnit):
            aggregated = each.columns[len(each.keys) :]
            exprs.update(
                {column: aggregate.arguments for column, aggregate in zip(aggregated, each.aggregations, strict=True)}
            )
        if isinstance(each, Windows):
            made = zip(each.calls, each.columns, strict=True)
            exprs.update({c: tuple(e for e in (call.argument, call.default) if e is not None) for call, c in made})
    return exprs
