"""Outputs that are whole numbers for all released values: counts, sums of whole numbers, and values computed from them.

This follows from the text only. In DuckDB's SQL, they have DuckDB's integer types.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet

from dpsql.plan.expressions import Call, Column, Expr, Literal, Slot, walk
from dpsql.schema.columns import Type

_CLOSED = frozenset(
    {
        "add", "subtract", "multiply", "negate", "abs", "sign", "int_divide", "modulo", "case", "coalesce", "nullif",
        "least", "greatest", "clamp", "to_double", "to_float", "to_decimal",
    }
)  # fmt: skip
"""Functions whose value is a whole number if their arguments are."""
_ROUNDING = frozenset(
    {"floor", "ceil", "trunc", "round"}
    | {f"to_{sign}{size}" for sign in ("", "u") for size in ("tinyint", "smallint", "integer", "bigint")}
)
"""Functions whose value is always a whole number."""
_LARGEST = 2.0**53
"""Real constants of at least this size stand for ranges of numbers."""
_REAL = frozenset({"to_double", "to_float", "to_decimal"})


def whole_type(expr: Expr, whole: AbstractSet[Slot] = frozenset()) -> Type | None:
    """Return INTEGER for an expression that is a whole number for all released values, and REAL if the text has a cast
    to a real number or a real constant; None for any other, or if its own type suffices. whole: the aggregates that are
    shown as whole numbers."""
    if isinstance(expr, Literal) or expr.type not in (Type.INTEGER, Type.REAL):
        return None
    if expr.type is Type.INTEGER and not any(isinstance(part, Slot) and part in whole for part in walk(expr)):
        return None
    return _whole_type(expr, whole)


def _whole_type(expr: Expr, whole: AbstractSet[Slot]) -> Type | None:
    if isinstance(expr, Slot | Column):
        return Type.INTEGER if expr.type is Type.INTEGER or expr in whole else None
    if isinstance(expr, Literal):
        return _type_of_constant(expr)
    if not isinstance(expr, Call):
        return None
    name, args = expr.function.name, expr.args
    if name in _ROUNDING:
        return Type.INTEGER if len(args) == 1 or _is_digits_of_whole(args[1]) else None
    if name not in _CLOSED:
        return None
    values = {"case": (*args[1::2], args[-1]), "nullif": args[:1], "to_decimal": args[:1]}.get(name, args)
    types = {_whole_type(each, whole) for each in values}
    if None in types:
        return None
    return Type.REAL if name in _REAL or Type.REAL in types else Type.INTEGER


def _type_of_constant(constant: Literal) -> Type | None:
    """Return the constant's type. NULL has any type."""
    if constant.value is None or constant.type is Type.INTEGER:
        return Type.INTEGER
    value = float(constant.value) if constant.type is Type.REAL else math.nan
    return Type.REAL if value.is_integer() and abs(value) < _LARGEST else None


def _is_digits_of_whole(digits: Expr) -> bool:
    return isinstance(digits, Literal) and isinstance(digits.value, int) and digits.value <= 0
