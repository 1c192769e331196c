"""Functions of the language: one record each, found by name."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping

from dpsql.plan.expressions import Function
from dpsql.plan.functions import (
    arithmetic,
    casts,
    comparison,
    conditional,
    date_parts,
    date_units,
    dates,
    logic,
    patterns,
    real_functions,
    regular_expressions,
    rounding,
    text,
    text_casts,
)

FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for room in (
        arithmetic,
        rounding,
        real_functions,
        comparison,
        conditional,
        logic,
        casts,
        text_casts,
        dates,
        date_parts,
        date_units,
        text,
        patterns,
        regular_expressions,
    )
    for function in room.FUNCTIONS
}


def function_named(name: str) -> Function:
    """Return the record of a function. Raises KeyError."""
    return FUNCTIONS[name]


def _by_name(function: Function) -> tuple[object, tuple[str]]:
    return function_named, (function.name,)


copyreg.pickle(Function, _by_name)  # type: ignore[arg-type]  # its stub wants a callable first
