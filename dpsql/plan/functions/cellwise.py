"""Kernels that go cell by cell, for operations that NumPy lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice, repeat
from typing import Any

import numpy as np

from dpsql.plan.expressions import DTYPES, Array, Bools, Vector, blank
from dpsql.plan.functions.rules import both_valid
from dpsql.schema.columns import Type


def by_cell(operation: Callable[..., Any], strict: bool = True) -> Callable[[Type, Sequence[Vector]], Vector]:
    """Return a kernel that calls `operation` on each row of cells; if that returns None, the result is NULL.

    Strict: a row with a NULL gives NULL without a call. Otherwise `operation` gets None for NULL.
    """

    def kernel(kind: Type, vectors: Sequence[Vector]) -> Vector:
        size = len(vectors[0])
        if size > 1 and all(map(is_constant, vectors)):
            one = kernel(kind, [each.at(slice(1)) for each in vectors])
            return Vector(np.broadcast_to(one.values, size), np.broadcast_to(one.where_valid(), size))
        kept = both_valid(vectors) if strict else None
        count = size if kept is None else int(np.count_nonzero(kept))
        columns = [_cells(each, kept) if strict else _cells_and_nulls(each) for each in vectors]
        return _vector(kind, list(islice(map(operation, *columns), count)), kept, size)

    return kernel


def is_constant(vector: Vector) -> bool:
    """Return whether all cells are one stored cell."""
    return vector.values.strides == (0,) and (vector.valid is None or vector.valid.strides == (0,))


def _cells(vector: Vector, kept: Bools | None) -> Iterable[Any]:
    values = vector.values
    if values.strides == (0,) and len(values):
        return repeat(values[:1].tolist()[0])
    cells: list[Any] = (values if kept is None else values[kept]).tolist()
    return cells


def _cells_and_nulls(vector: Vector) -> Iterable[Any]:
    if vector.valid is None:
        return _cells(vector, None)
    return [cell if valid else None for cell, valid in zip(vector.values.tolist(), vector.valid.tolist(), strict=True)]


def _vector(kind: Type, results: list[Any], kept: Bools | None, size: int) -> Vector:
    """Return a block of `size` cells with the results of the kept rows, in order; None is NULL."""
    dtype = DTYPES[kind]
    if kept is None and None not in results:
        return Vector(np.fromiter(results, dtype, size))
    valid = np.zeros(size, dtype=bool)
    valid[slice(None) if kept is None else kept] = [each is not None for each in results]
    values: Array = np.full(size, blank(kind), dtype)
    values[valid] = np.fromiter((each for each in results if each is not None), dtype)
    return Vector(values, valid)
