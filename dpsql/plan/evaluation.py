"""Evaluation of expressions over blocks of cells: the only place where kernels are called."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np

from dpsql.plan.expressions import DTYPES, Array, Call, Expr, Literal, Vector, blank
from dpsql.plan.row_local import laid_out

Shared = MutableMapping[Expr, Vector | None]


def evaluate(expr: Expr, read: Callable[[Any], Vector], size: int, shared: Shared | None = None) -> Vector:
    """Return the values of an expression over one block of `size` cells; `read` returns the block of any leaf but a
    literal. shared: calls whose values are cached for other expressions over the block.

    Only this function passes cells of rows to kernels: each argument is laid out, or is a constant of the text, the
    only array with stride 0. So evaluation is row-local (row_local.py).
    """
    if isinstance(expr, Literal):
        return constant(expr, size)
    if not isinstance(expr, Call):
        return _laid_out(read(expr))
    if shared is None or expr not in shared:
        return _laid_out(expr.function.kernel(expr.type, [evaluate(arg, read, size, shared) for arg in expr.args]))
    known = shared[expr]
    if known is None:
        known = _laid_out(expr.function.kernel(expr.type, [evaluate(arg, read, size, shared) for arg in expr.args]))
        shared[expr] = known
    return known


def _laid_out(vector: Vector) -> Vector:
    values, valid = laid_out(vector.values), None if vector.valid is None else laid_out(vector.valid)
    return vector if values is vector.values and valid is vector.valid else Vector(values, valid)


def constant(literal: Literal, size: int) -> Vector:
    """Return the literal repeated `size` times, as a view of one cell."""
    missing = literal.value is None
    cell: Array = np.array([blank(literal.type) if missing else literal.value], DTYPES[literal.type])
    valid = np.broadcast_to(np.zeros(1, dtype=bool), size) if missing else None
    return Vector(np.broadcast_to(cell, size), valid)


def folded(expr: Call) -> Call | Literal:
    """Return the value of a call of literals as a literal (functions are total and have no other input)."""
    if not all(isinstance(arg, Literal) for arg in expr.args):
        return expr
    vector = evaluate(expr, lambda column: constant(Literal(None, column.type), 1), 1)
    missing = vector.valid is not None and not vector.valid[0]
    return Literal(
        None if missing else vector.values[0].item() if vector.values.dtype != object else vector.values[0], expr.type
    )
