"""Orders of released groups: by expressions, then by key ascending with NULL last, so that no order of the data is
revealed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Array, Vector


def order_of(terms: Sequence[tuple[Vector, bool, bool]], keys: Sequence[Vector], size: int) -> NDArray[np.int64]:
    """Return the positions 0..size-1 sorted by terms (vector, descending, nulls first), ties by the keys."""
    by = [*terms, *((key, False, False) for key in keys)]
    columns = [column for term in by for column in _sort_columns(*term)]
    return np.lexsort(tuple(reversed(columns))) if columns else np.arange(size)


def _sort_columns(vector: Vector, descending: bool, nulls_first: bool) -> tuple[Array, Array]:
    """Return sort columns: NULLs first or last, then the values; text by code point."""
    values = vector.values
    if values.dtype == object:
        cells = values.tolist()  # Python sorts its own objects faster than NumPy, whether few or many
        ranks = {cell: rank for rank, cell in enumerate(sorted(set(cells)))}
        values = np.array([ranks[cell] for cell in cells], dtype=np.int64)
    elif values.dtype == np.bool_:
        values = values.astype(np.int64)
    valid = vector.where_valid()
    ranked = np.where(valid, -values if descending else values, 0)
    return (valid if nulls_first else ~valid), ranked
