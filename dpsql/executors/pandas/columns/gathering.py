"""Cells of a column at given places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.executors.pandas.columns.blocks import Reader
from dpsql.executors.pandas.columns.encoding import EncodedColumn
from dpsql.plan.expressions import DTYPES, Array, Vector, blank
from dpsql.schema.columns import Type

Places = NDArray[np.signedinteger[Any]]
_WINDOW = 65_536


def some_of(read: Reader, places: Places) -> Reader:
    """Return the reader of the rows at ascending places (at least one); the column is read in windows."""

    def some(start: int, stop: int) -> Vector:
        wanted = places[start:stop]
        edges = [*range(int(wanted[0]), int(wanted[-1]) + 1, _WINDOW), int(wanted[-1]) + 1] if len(wanted) else [0, 0]
        cuts = np.searchsorted(wanted, edges)
        blocks = [
            read(first, last).at(wanted[begin:end] - first)
            for first, last, begin, end in zip(edges, edges[1:], cuts, cuts[1:], strict=False)
            if begin < end or not len(wanted)
        ]
        return one_after_the_other(blocks)

    return some


def one_after_the_other(blocks: Sequence[Vector]) -> Vector:
    """Concatenate one block or more."""
    if len(blocks) == 1:
        return blocks[0]
    values = np.concatenate([block.values for block in blocks])
    if all(block.valid is None for block in blocks):
        return Vector(values)
    return Vector(values, np.concatenate([block.where_valid() for block in blocks]))


def gathered(whole: Vector, places: Places, *, missing: bool) -> Vector:
    if not missing:
        return whole.at(places)
    present = places >= 0
    if len(whole) == 0:
        return Vector(np.zeros(len(places), dtype=whole.values.dtype), present)
    found = whole.at(places)
    return Vector(found.values, present if found.valid is None else found.valid & present)


def gathered_codes(encoded: EncodedColumn, places: Places) -> EncodedColumn:
    if places.min(initial=0) >= 0:
        return EncodedColumn(encoded.codes[places], encoded.dictionary, encoded.nulls)
    # Missing rows are NULL, even in a column declared NOT NULL, whose own -1 is a value.
    dictionary = encoded.dictionary
    codes = np.where(encoded.codes < 0, np.int32(len(dictionary) - 1), encoded.codes).astype(np.int32)
    return EncodedColumn(np.append(codes, np.int32(-1))[places], with_null(dictionary, Type.TEXT), nulls=True)


def with_null(values: Vector, kind: Type) -> Vector:
    """Append a NULL to the values."""
    last: Array = np.empty(1, dtype=DTYPES[kind])
    last[0] = blank(kind)
    return Vector(np.concatenate([values.values, last]), np.append(values.where_valid(), False))
