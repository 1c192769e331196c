"""Types for a bare NULL: it takes one that the enclosing function accepts."""

from __future__ import annotations

import itertools

from dpsql.plan.expressions import Expr, Function, Literal, call
from dpsql.schema.columns import Type


def is_null(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is None


def typed_nulls(function: Function, args: list[Expr]) -> list[Expr]:
    """Return the arguments with a type for each bare NULL: one that the function accepts, preferably another
    argument's."""
    places = [place for place, arg in enumerate(args) if is_null(arg)]
    if not places:
        return args
    if function.name == "case":
        return _typed_arms(args)
    known = [arg.type for arg in reversed(args) if not is_null(arg)]
    kinds = list(dict.fromkeys([*known, Type.INTEGER, Type.BOOLEAN, Type.TEXT, Type.TIMESTAMP, Type.DATE]))
    trials = [(kind,) * len(places) for kind in kinds]
    if 1 < len(places) <= _MOST_TRIED:
        trials += list(itertools.product(kinds, repeat=len(places)))
    for trial in trials:
        typed = list(args)
        for place, kind in zip(places, trial, strict=True):
            typed[place] = Literal(None, kind)
        if call(function, *typed) is not None:
            return typed
    return [Literal(None, kinds[0]) if is_null(arg) else arg for arg in args]


_MOST_TRIED = 3


def _typed_arms(args: list[Expr]) -> list[Expr]:
    """Type the NULLs of a CASE: conditions are booleans, and values have the type of the other values."""
    values = [*args[1::2], args[-1]]
    kind = next((value.type for value in reversed(values) if not is_null(value)), Type.INTEGER)
    return [
        arg if not is_null(arg) else Literal(None, Type.BOOLEAN if place % 2 == 0 and place < len(args) - 1 else kind)
        for place, arg in enumerate(args)
    ]
