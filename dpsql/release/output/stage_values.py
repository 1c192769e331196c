"""Expressions over an answer's rows. Released integers may exceed the range of integer arithmetic. Such a number is
passed on and compared with constants unchanged; anything else computed from it is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from dpsql.plan.evaluation import evaluate
from dpsql.plan.expressions import Bools, Call, Column, Expr, Literal, Slot, Vector
from dpsql.plan.functions.rules import INTEGERS
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval

At = Callable[[Column | Slot], Vector]
"""Returns the values of a column of the rows, or of a group's key or aggregate."""

_WITH_CONSTANTS = ("lt", "le", "gt", "ge", "eq", "ne", "distinct", "not_distinct", "in")


def value(expr: Expr, at: At, size: int) -> Vector:
    """Return an expression's values. A single column is returned as shown, however large its numbers are."""
    if isinstance(expr, Column | Slot):
        return at(expr)
    vector = evaluate(expr, lambda leaf: held(at(leaf), limits_of(leaf)), size)
    lost = [_beyond(at(leaf), limits_of(leaf)) for leaf in _computed_with(expr)]
    if not any(each.any() for each in lost):
        return vector
    return Vector(vector.values, vector.where_valid() & ~np.logical_or.reduce(lost))


def too_large(expr: Expr, at: At) -> frozenset[str]:
    """Return the columns with integers too large for the expressions computed from them."""
    leaves = () if isinstance(expr, Column | Slot) else _computed_with(expr)
    return frozenset(leaf.name for leaf in leaves if _beyond(at(leaf), limits_of(leaf)).any())


def limits_of(leaf: Column | Slot) -> Interval:
    """Return the range in which integers are computed with."""
    return leaf.fact.range if isinstance(leaf, Column) and leaf.type is Type.INTEGER else INTEGERS


def held(vector: Vector, limits: Interval) -> Vector:
    """Clamp integers to limits, in 64 bits; leave other values unchanged."""
    if not _whole(vector):
        return vector
    lower, upper = int(limits.lower), int(limits.upper)
    if vector.values.dtype == np.int64:
        return Vector(np.clip(vector.values, lower, upper), vector.valid)
    return Vector(np.array([max(lower, min(upper, cell)) for cell in vector.values], dtype=np.int64), vector.valid)


def _beyond(vector: Vector, limits: Interval) -> Bools:
    if not _whole(vector):
        return np.zeros(len(vector), dtype=bool)
    outside = (vector.values < int(limits.lower)) | (vector.values > int(limits.upper))
    return np.asarray(outside, dtype=bool) & vector.where_valid()


def _whole(vector: Vector) -> bool:
    values = vector.values
    return values.dtype == np.int64 or (values.dtype == object and all(type(cell) is int for cell in values))


def _computed_with(expr: Expr) -> Iterator[Column | Slot]:
    """Yield the columns whose exact values matter. Other columns, after clamping, still compare the same with a
    constant within the limits, and are NULL for the same rows."""
    if isinstance(expr, Column | Slot):
        yield expr
    elif isinstance(expr, Call) and not _compares(expr):
        for arg in expr.args:
            yield from _computed_with(arg)


def _compares(expr: Call) -> bool:
    leaves = [arg for arg in expr.args if isinstance(arg, Column | Slot)]
    if expr.function.name == "is_null":
        return len(leaves) == 1
    if expr.function.name not in _WITH_CONSTANTS or len(leaves) != 1:
        return False
    limits, others = limits_of(leaves[0]), [arg for arg in expr.args if arg is not leaves[0]]
    return all(isinstance(arg, Literal) and _between(arg, limits) for arg in others)


def _between(constant: Literal, limits: Interval) -> bool:
    value = constant.value
    return value is None or (isinstance(value, int | float) and limits.lower < value < limits.upper)
