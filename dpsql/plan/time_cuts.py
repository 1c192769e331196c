"""Timestamps cut to a unit inside expressions: by DATE_TRUNC, or by the first characters of a timestamp as text."""

from __future__ import annotations

from dpsql.plan.expressions import Call, Expr, Literal, call, call_of
from dpsql.plan.functions import FUNCTIONS

_UNIT_OF_LENGTH = {4: "year", 7: "month", 10: "day", 13: "hour", 16: "minute", 19: "second"}
"""Characters of YYYY-MM-DD HH:MM:SS -> the unit that they determine."""


def time_cuts(expr: Expr) -> set[Expr] | None:
    """Return the times cut to a unit that an expression reads; None if it reads anything else."""
    if isinstance(expr, Literal):
        return set()
    if not isinstance(expr, Call):
        return None
    if expr.function.name.startswith("trunc_"):
        return {expr}
    inside = [time_cuts(arg) for arg in expr.args]
    found = [each for each in inside if each is not None]
    return set().union(*found) if len(found) == len(inside) else None


def unit_of_text(expr: Call) -> str | None:
    """Return the unit determined by the first characters of a timestamp as text: LEFT(CAST(ts AS TEXT), 7) changes
    every month. None for any other expression."""
    ends = [arg.value for arg in expr.args[1:] if isinstance(arg, Literal) and isinstance(arg.value, int)]
    written = expr.args[0] if len(ends) + 1 == len(expr.args) else None
    if not isinstance(written, Call) or written.function.name != "timestamp_to_text":
        return None
    if expr.function.name == "left":
        last = ends[0]
    elif expr.function.name == "substring" and len(ends) == 2 and ends[0] > 0:
        last = sum(ends) - 1
    else:
        return None
    return next((unit for length, unit in _UNIT_OF_LENGTH.items() if 0 < last <= length), None)


def cut_of_text(expr: Call) -> Call | None:
    """Return the same characters of the timestamp cut to the unit that they determine; None for any other
    expression."""
    unit = unit_of_text(expr)
    written = expr.args[0] if unit is not None else None
    if not isinstance(written, Call):
        return None
    cut = call(FUNCTIONS[f"trunc_{unit}"], *written.args)
    if cut is None:
        return None
    return call_of(expr.function, (call_of(written.function, (cut,), written.type), *expr.args[1:]), expr.type)
