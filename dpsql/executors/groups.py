"""Group keys as integer codes: one code for each combination of key values, -1 for rows of no group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.executors.base import ExactPlan
from dpsql.executors.columns import ColumnStore
from dpsql.schema import Key, Type
from dpsql.sql.expressions import DTYPES, Vector, blank
from dpsql.sql.plan import GroupKey

Codes = NDArray[np.int64]
MOST_DIRECT_CELLS = 1 << 21
"""Up to so many combinations are counted in place; more are renumbered first."""


@dataclass(frozen=True, repr=False)
class KeyCodes:
    """One key: its values, one for each code, and a reader (start, stop) -> codes of those rows."""

    values: Vector
    read: Callable[[int, int], Codes]
    complete: bool
    """No row has the code -1."""


@dataclass(frozen=True, repr=False)
class Groups:
    """All keys together: a reader of combined codes, how many there are, and the key values of chosen codes."""

    read: Callable[[int, int], Codes]
    cells: int
    complete: bool
    values: Callable[[Codes], tuple[Vector, ...]]


def group_rows(plan: ExactPlan, store: ColumnStore) -> Groups:
    """The plan's groups over a store."""
    keys = [_key_codes(key, store) for key in plan.keys]
    cells = 1
    for key in keys:
        cells *= len(key.values)
    if plan.every_cell or cells <= MOST_DIRECT_CELLS:
        return _direct(keys, cells)
    return _renumbered(keys, store.rows)


def _direct(keys: list[KeyCodes], cells: int) -> Groups:
    sizes = [len(key.values) for key in keys]
    complete = all(key.complete for key in keys)

    def read(start: int, stop: int) -> Codes:
        return _combine([key.read(start, stop) for key in keys], sizes, complete=complete)

    def values(codes: Codes) -> tuple[Vector, ...]:
        out: list[Vector] = []
        for key in reversed(keys):
            size = max(1, len(key.values))
            out.append(key.values.at(codes % size))
            codes = codes // size
        return tuple(reversed(out))

    return Groups(read, cells, complete, values)


def _combine(codes: list[Codes], sizes: list[int], *, complete: bool) -> Codes:
    """Mixed-radix numbers of the combinations; -1 where any key has no code."""
    combined = codes[0]
    for other, size in zip(codes[1:], sizes[1:], strict=True):
        if complete:
            combined = combined * size + other
            continue
        combined = np.where((combined < 0) | (other < 0), -1, combined * size + other)
    return combined


def _renumbered(keys: list[KeyCodes], rows: int) -> Groups:
    """Codes of the combinations that occur, key by key, so that no product of sizes can overflow."""
    per_key = [key.read(0, rows) for key in keys]
    codes = per_key[0]
    chosen = np.arange(len(keys[0].values))[:, None]
    for other, key in zip(per_key[1:], keys[1:], strict=True):
        pairs = _combine([codes, other], [len(chosen), len(key.values)], complete=False)
        codes, found = pd.factorize(np.where(pairs < 0, -1, pairs))
        absent = np.flatnonzero(found == -1)
        if len(absent):  # the rows of no group are not a combination
            codes = np.where(codes == absent[0], -1, codes - (codes > absent[0]))
            found = np.delete(found, absent[0])
        chosen = np.column_stack([chosen[found // len(key.values)], found % len(key.values)])

    def values(wanted: Codes) -> tuple[Vector, ...]:
        return tuple(key.values.at(chosen[wanted, index]) for index, key in enumerate(keys))

    return Groups(lambda start, stop: codes[start:stop], len(chosen), False, values)


def _key_codes(key: GroupKey, store: ColumnStore) -> KeyCodes:
    name = key.column.name
    if key.column.type is Type.TEXT:
        return _text_codes(key, store)
    read = store.reader(name)
    if key.values is None:
        codes, values = store.numbered(name)
        return KeyCodes(values, lambda start, stop: codes[start:stop].astype(np.int64), complete=True)
    if key.declared.keys is None and key.column.type is Type.INTEGER and not key.declared.nullable:
        return _consecutive_codes(read, key.values)
    return _listed_codes(read, key.values, key.column.type)


def _consecutive_codes(read: Callable[[int, int], Vector], values: tuple[Key, ...]) -> KeyCodes:
    """Codes of a bounded integer, clipped to its bounds already: the distance to the lower one."""
    lower = values[0]
    assert isinstance(lower, int)
    return KeyCodes(_vector(list(values), Type.INTEGER), lambda a, b: read(a, b).values - lower, complete=True)


def _text_codes(key: GroupKey, store: ColumnStore) -> KeyCodes:
    encoded = store.encoded(key.column.name)
    texts = _cells(encoded.dictionary)
    wanted: list[Key] = list(dict.fromkeys(texts)) if key.values is None else list(key.values)
    place = {value: index for index, value in enumerate(wanted)}
    renumber = np.array([place.get(text, -1) for text in texts], dtype=np.int64)
    complete = bool(((renumber if encoded.nulls else renumber[:-1]) >= 0).all())
    return KeyCodes(_vector(wanted, Type.TEXT), lambda start, stop: renumber[encoded.codes[start:stop]], complete)


def _listed_codes(read: Callable[[int, int], Vector], listed: tuple[Key, ...], kind: Type) -> KeyCodes:
    """Codes by a declared or derived list of numbers or booleans."""
    present: Any = np.array([value for value in listed if value is not None], dtype=DTYPES[kind])
    order = np.argsort(present, kind="stable")
    place = np.array([index for index, value in enumerate(listed) if value is not None], dtype=np.int64)[order]
    ordered = present[order]
    null = listed.index(None) if None in listed else -1

    def codes(start: int, stop: int) -> Codes:
        block = read(start, stop)
        if len(ordered) == 0:
            found = np.full(len(block), -1, dtype=np.int64)
        else:
            at = np.minimum(np.searchsorted(ordered, block.values), len(ordered) - 1)
            found = np.where(ordered[at] == block.values, place[at], -1)
        return found if block.valid is None else np.where(block.valid, found, null)

    return KeyCodes(_vector(list(listed), kind), codes, complete=False)


def _cells(vector: Vector) -> list[Key]:
    """The cells as Python values, None for NULL."""
    valid = vector.where_valid()
    return [value if present else None for value, present in zip(vector.values, valid, strict=True)]


def _vector(cells: list[Key], kind: Type) -> Vector:
    valid = np.array([cell is not None for cell in cells], dtype=bool)
    values: Any = np.array([blank(kind) if cell is None else cell for cell in cells], dtype=DTYPES[kind])
    return Vector(values, None if valid.all() else valid)
