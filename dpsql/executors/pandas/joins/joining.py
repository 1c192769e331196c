"""Joins as look-ups of codes: the row of the other side with the same key. No row of any table is copied.

Equality is SQL's, and exact: NULL equals nothing, -0.0 equals 0.0, and an integer equals a real number only if the two
are the same number (2**53 + 1 is not 2.0**53). No value raises an error.

Every key becomes whole numbers that are equal just where the cells are. If those of the right side lie close together,
one table of positions has a slot for each; otherwise pandas' hash table finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.executors.pandas.columns.encoding import Codes, EncodedColumn
from dpsql.executors.pandas.columns.exact_values import numbered
from dpsql.executors.pandas.sums.ranking import Numbers, combine, dense_ranks, shifted, span, stable_order
from dpsql.plan.expressions import Array, Bools, Vector
from dpsql.schema.frozen import dataclass

Positions = NDArray[np.signedinteger[Any]]
"""int32, or int64 above 2**31 rows."""
BLOCK = 65_536
_FEW = 1_000_000
"""Tables of this many slots are always allocated, even for few rows."""


@dataclass(frozen=True, repr=False)
class KeyColumn:
    """One column of a join key on one side: a cell for each row or, with codes, for each distinct value.

    values: numbers, booleans, days, microseconds or texts, or privacy unit keys (see `exact_values`); never NaN; a
    dictionary may hold the same value twice. codes: for each row the index of its value; -1 is NULL.
    """

    values: Vector
    codes: Codes | None = None

    def __len__(self) -> int:
        return len(self.values if self.codes is None else self.codes)


def key_of(encoded: EncodedColumn) -> KeyColumn:
    """Return an encoded column as a join key. If the column is declared NOT NULL, the code -1 is the default in the
    dictionary's last slot, and equals whatever the default equals."""
    dictionary, codes = encoded.dictionary, encoded.codes
    if encoded.nulls and dictionary.where_valid()[-1]:
        codes = np.where(codes < 0, np.int32(len(dictionary) - 1), codes)
    return KeyColumn(dictionary, codes)


def match_codes(left: Sequence[KeyColumn], right: Sequence[KeyColumn]) -> tuple[Numbers, Numbers]:
    """Return keys of one or more columns as codes for each row. Two codes of the right side, or of both sides, are
    equal just if all columns are. A code is -1 if any column is NULL, and may be -1 for a left row that equals no right
    one. Codes lie in 0 .. LARGEST - 1, not necessarily close together."""
    both = [_both_sides(key, other) for key, other in zip(left, right, strict=True)]
    masks = [column.valid for column in both if column.valid is not None]
    rows, valid = len(left[0]), np.logical_and.reduce(masks) if masks else None
    columns = [shifted(column) for column in both]
    codes = _told_by_one(columns, rows, valid) if len(columns) > 1 else None
    if codes is None:
        codes, size = columns[0]
        for column in columns[1:]:
            codes, size = combine(codes, size, *column)
    if valid is not None:
        codes = np.where(valid, codes, -1)
    return codes[:rows], codes[rows:]


def _told_by_one(columns: Sequence[tuple[Numbers, int]], rows: int, valid: Bools | None) -> Numbers | None:
    """Return the codes of one column if it determines whole keys, otherwise None. It does if no two right rows, those
    from `rows` on, agree in it and differ in another column.

    A table holds the cells of the other columns for each code. A left row whose other cells differ from the table
    equals no right row, and gets -1. This is also correct for a code of no right row, whatever the table holds for it.
    """
    codes, size = max(columns, key=lambda column: column[1])
    if size > 4 * len(codes) + _FEW:
        return None
    right = codes[rows:] if valid is None else codes[rows:][valid[rows:]]
    alike = np.ones(rows, dtype=bool)
    for other, _ in columns:
        if other is codes:
            continue
        told = np.zeros(size, dtype=other.dtype)
        cells = other[rows:] if valid is None else other[rows:][valid[rows:]]
        told[right] = cells
        if (told[right] != cells).any():
            return None
        alike &= told[codes[:rows]] == other[:rows]
    return np.concatenate([np.where(alike, codes[:rows], -1), codes[rows:]])


def lookup(left: Sequence[KeyColumn], right: Sequence[KeyColumn], order: Array | None = None) -> Positions:
    """For each left row return the position of the right row with the equal key, -1 if there is none.

    Of several such rows the one with the least rank in `order`, an array over the right rows, is taken, and of ties the
    first; without an order, the first.
    """
    if len(left) > 1:
        codes_left, codes_right = match_codes(left, right)
        return _positions(Vector(codes_left), Vector(codes_right, codes_right >= 0), order)
    key, other = left[0], right[0]
    cells, other_cells = _numbers(key.values, other.values)
    found = _positions(cells, _over_rows(other_cells, other), order)
    return found if key.codes is None else _with_none(found)[key.codes]


def matched(codes_left: Numbers, codes_right: Numbers) -> Bools:
    """Mark the left rows whose code any right row has; -1 matches nothing."""
    return _occur(codes_left, codes_right[codes_right >= 0] if codes_right.min(initial=0) < 0 else codes_right)


def _occur(numbers: Numbers, among: Numbers) -> Bools:
    """Mark the numbers that occur in `among`."""
    if not len(among):
        return np.zeros(len(numbers), dtype=bool)
    low, size = span(among)
    if size <= 4 * (len(numbers) + len(among)) + _FEW:
        marks = np.zeros(size + 1, dtype=bool)
        marks[among - low] = True
        return np.asarray(_of_slots(marks, numbers, low))
    if len(numbers) >= len(among):
        return np.asarray(pd.Index(pd.unique(among)).get_indexer(pd.Index(numbers)) >= 0)
    places, distinct = pd.factorize(numbers)  # a table of the smaller side
    marks = np.zeros(len(distinct) + 1, dtype=bool)
    marks[pd.Index(distinct).get_indexer(pd.Index(among))] = True
    marks[-1] = False
    return marks[places]


class Runs:
    """The right rows that match each left row: those with the same code; -1 matches nothing.

    The right rows are laid out in runs, one for each code, in row order; every left row takes its whole run. `pairs`:
    the number of right rows that match each left row.
    """

    def __init__(self, codes_left: Numbers, codes_right: Numbers) -> None:
        kept = np.flatnonzero(matched(codes_right, codes_left))
        codes = codes_right[kept]
        runs, firsts = dense_ranks(codes)
        self._laid_out = kept[stable_order(runs, len(firsts))]
        lengths = np.bincount(runs, minlength=len(firsts))
        run = _positions(Vector(codes_left), Vector(codes[firsts]), None)
        self.pairs: Numbers = np.append(lengths, 0)[run]  # the run -1 is the last, which is empty
        self._starts = np.append(np.cumsum(lengths) - lengths, 0)[run]

    def expand(self, start: int, stop: int) -> tuple[Numbers, Numbers]:
        """Return the positions of all pairs of the left rows start..stop: by left row, then right row."""
        pairs, starts = self.pairs[start:stop], self._starts[start:stop]
        ends = np.cumsum(pairs)
        left_rows = np.repeat(np.arange(start, stop), pairs)
        return left_rows, self._laid_out[np.arange(len(left_rows)) + np.repeat(starts - (ends - pairs), pairs)]


def _numbers(left: Vector, right: Vector) -> tuple[Vector, Vector]:
    """Return cells of both sides as int64, the same just where the cells are equal; NULL stays NULL. Those of texts lie
    close together on the right side."""
    objects = [side.values for side in (left, right) if side.values.dtype == object]
    if len(objects) == 1 and all(isinstance(cell, str) for cell in objects[0]):  # a text equals no number
        return _nulls(len(left)), _nulls(len(right))
    others, cells = numbered([right.values, left.values])
    return Vector(cells, left.valid), Vector(others, right.valid)


def _nulls(size: int) -> Vector:
    return Vector(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool))


def _over_rows(cells: Vector, key: KeyColumn) -> Vector:
    """Expand the numbers of a key's cells, or of its dictionary, to rows."""
    if key.codes is None:
        return cells
    values = np.append(cells.values, 0)[key.codes]
    if cells.valid is None:
        absent = key.codes < 0
        return Vector(values, ~absent if absent.any() else None)
    valid = np.append(cells.valid, False)[key.codes]
    return Vector(values, None if valid.all() else valid)


def _both_sides(key: KeyColumn, other: KeyColumn) -> Vector:
    """Return the numbers of one key column for each left row and then for each right row."""
    cells, other_cells = _numbers(key.values, other.values)
    left, right = _over_rows(cells, key), _over_rows(other_cells, other)
    values = np.concatenate([left.values, right.values])
    if left.valid is None and right.valid is None:
        return Vector(values)
    return Vector(values, np.concatenate([left.where_valid(), right.where_valid()]))


def _positions(left: Vector, right: Vector, order: Array | None) -> Positions:
    """For each left number return the position of the equal right one, -1 if there is none; NULL equals nothing."""
    keys: Numbers = right.values
    rows: Positions = np.arange(len(keys), dtype=np.int32 if len(keys) <= 2**31 else np.int64)
    if right.valid is not None:
        rows, keys = rows[right.valid], keys[right.valid]
    if len(keys) == 0:
        return np.full(len(left), -1, dtype=rows.dtype)
    is_dense = span(keys)[1] <= 4 * len(right) + _FEW  # the table is small compared to the rows
    positions: Positions = (_by_table if is_dense else _by_hash)(left.values, keys, rows, order)
    if left.valid is not None:
        np.copyto(positions, -1, where=~left.valid)
    return positions


def _by_table(left: Numbers, keys: Numbers, rows: Positions, order: Array | None) -> Positions:
    """Find positions through a table with a slot for each number from the lowest key on, and one for all others."""
    low, size = span(keys)
    table = np.full(size + 1, -1, dtype=rows.dtype)
    slots = keys - low
    table[slots[::-1]] = rows[::-1]  # of several assignments to one slot the last wins: the first row
    if order is not None and np.count_nonzero(table >= 0) < len(keys):
        last = np.argsort(order[rows], kind="stable")[::-1]
        table[slots[last]] = rows[last]
    positions: Positions = _of_slots(table, left, low)
    return positions


def _of_slots(table: Any, numbers: Numbers, low: int) -> Any:
    """Look numbers up in a table, whose last slot is for numbers outside it.

    A number x is in a table of `size` numbers from `low` on just if (x - low) mod 2**64 < size: it is x - low if x >=
    low, and if x < low it is 2**64 - (low - x) >= 2**63 - low, which is at least size since low + size - 1 < 2**63.
    """
    entries = np.empty(len(numbers), dtype=table.dtype)
    for start in range(0, len(numbers), BLOCK):
        places = np.subtract(numbers[start : start + BLOCK], low, dtype=np.int64).view(np.uint64)
        np.minimum(places, np.uint64(len(table) - 1), out=places)
        np.take(table, places.view(np.int64), out=entries[start : start + BLOCK], mode="clip")
    return entries


def _by_hash(left: Numbers, keys: Numbers, rows: Positions, order: Array | None) -> Positions:
    if 2 * len(left) < len(keys):  # a table of only the keys that the left side has
        asked_for = _occur(keys, left)
        keys, rows = keys[asked_for], rows[asked_for]
    index = pd.Index(keys)
    if not index.is_unique:
        if order is not None:
            ranked = np.argsort(order[rows], kind="stable")
            keys, rows = keys[ranked], rows[ranked]
        first = ~pd.Index(keys).duplicated()
        rows, index = rows[first], pd.Index(keys[first])
    return _with_none(rows)[index.get_indexer(pd.Index(left))]


def _with_none(positions: Positions) -> Positions:
    """Append a slot for "no row", which the index -1 finds."""
    longer = np.full(len(positions) + 1, -1, dtype=positions.dtype)
    longer[:-1] = positions
    return longer
