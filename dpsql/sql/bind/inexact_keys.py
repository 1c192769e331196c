"""Group keys whose last bits depend on a math library.

Exponentials, logarithms, cube roots and powers are accurate to one unit in the last place. Real keys computed from them
form groups of one row each, or other groups on another machine.

Powers with an integer exponent are allowed as keys, like their base. Their last bits are NumPy's (its x ** 2 is not
always x * x), so another machine may show another last digit. But a power depends only on the cells of its row
(`row_local`), so rows with equal cells share a group. Keys are refused here because they would be useless: no privacy
proof depends on the refusal.

A function that rounds, compares or counts removes the last bits, except for a value at its boundary, which may fall on
either side.
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
"""The arguments that can be the result, where not all can."""

Made = Mapping[Column, tuple[Expr, ...]]


def inexact_in(expr: Expr, made: Made) -> Call | None:
    """Return the function that leaves inexact last bits in an expression, if any. `made`: the expressions behind the
    query's own columns."""
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
    """Return whether a power's exponent is an integer column or constant."""
    if expr.function.name != "power":
        return False
    exponent = unfiltered(expr.args[1])
    known = exponent.range.lower if exponent.range.lower == exponent.range.upper else None
    return exponent.whole or (known is not None and float(known).is_integer())


def made_of(source: Source) -> dict[Column, tuple[Expr, ...]]:
    """Return the expressions that a source's computed columns copy, or aggregate within a unit."""
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
