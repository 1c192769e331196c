"""Joins as lookups of codes: which row of the other side has the same key. No row of any table is copied.

Equality is SQL's, and exact: NULL equals nothing, -0.0 equals 0.0, and an integer equals a real number only where the
two are the same number (2**53 + 1 is not 2.0**53). Nothing here fails on a value.

Every key becomes whole numbers that are the same where the cells are equal. Where those of the right side lie close
together, one table of positions has a slot for each; else pandas' hash table finds them. Orders are by radix sort, in
digits of 16 bits, for which NumPy's stable sort is one: it takes the same time on every processor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.executors.pandas.encoding import Codes, Encoded
from dpsql.executors.pandas.exact_values import numbered
from dpsql.plan.expressions import Array, Bools, Vector
from dpsql.schema.frozen import dataclass

Numbers = NDArray[np.int64]
Positions = NDArray[np.signedinteger[Any]]
"""int32, or int64 above 2**31 rows."""
BLOCK = 65_536
LARGEST = 2**62
"""Codes of combinations stay below it."""
_DIGIT = 16


@dataclass(frozen=True, repr=False)
class KeyColumn:
    """One column of a join key on one side: a cell for each row or, with codes, for each distinct value.

    values: numbers, booleans, days, microseconds or texts, or what tells units apart (see `exact_values`);
    NaN nowhere; a dictionary may hold the same value twice.
    codes: for each row the index of its value; -1 is NULL.
    """

    values: Vector
    codes: Codes | None = None

    def __len__(self) -> int:
        return len(self.values if self.codes is None else self.codes)


def key_of(encoded: Encoded) -> KeyColumn:
    """An encoded column as a join key. Where its owner declared that there is no NULL, the code -1 is the default that
    stands in the dictionary's last slot, and equals what that equals."""
    dictionary, codes = encoded.dictionary, encoded.codes
    if encoded.nulls and dictionary.where_valid()[-1]:
        codes = np.where(codes < 0, np.int32(len(dictionary) - 1), codes)
    return KeyColumn(dictionary, codes)


def match_codes(left: Sequence[KeyColumn], right: Sequence[KeyColumn]) -> tuple[Numbers, Numbers]:
    """Keys of one or more columns as codes for each row: two codes, on either side, are equal just where all columns
    are; -1 where any is NULL. Codes lie in 0 .. LARGEST - 1, and not close together."""
    both = [_both_sides(key, other) for key, other in zip(left, right, strict=True)]
    codes, size = shifted(both[0])
    for column in both[1:]:
        codes, size = combine(codes, size, *shifted(column))
    masks = [column.valid for column in both if column.valid is not None]
    if masks:
        codes = np.where(np.logical_and.reduce(masks), codes, -1)
    rows = len(left[0])
    return codes[:rows], codes[rows:]


def lookup(left: Sequence[KeyColumn], right: Sequence[KeyColumn], order: Array | None = None) -> Positions:
    """For each left row the position of the right row with the equal key, -1 where there is none.

    Of several such rows that with the least rank in `order`, an array over the right rows, is taken, and of those the
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
    """Which left rows have the code of any right row; -1 is the code of none."""
    return _positions(Vector(codes_left), Vector(codes_right, codes_right >= 0), None) >= 0


class Runs:
    """The right rows that each left row meets: those with the same code, -1 being the code of none.

    The right rows are laid out run by run, one run for each code and each in order of rows; every left row takes its
    run whole. `pairs`: how many right rows each left row meets.
    """

    def __init__(self, codes_left: Numbers, codes_right: Numbers) -> None:
        kept = np.flatnonzero(codes_right >= 0)
        codes = codes_right[kept]
        runs, firsts = dense_ranks(codes)
        self._laid_out = kept[stable_order(runs, len(firsts))]
        lengths = np.bincount(runs, minlength=len(firsts))
        run = _positions(Vector(codes_left), Vector(codes[firsts]), None)
        self.pairs: Numbers = np.append(lengths, 0)[run]  # the run -1 is the last, which has no rows
        self._starts = np.append(np.cumsum(lengths) - lengths, 0)[run]

    def expand(self, start: int, stop: int) -> tuple[Numbers, Numbers]:
        """The positions of all pairs of the left rows start..stop: by left row, then right row."""
        pairs, starts = self.pairs[start:stop], self._starts[start:stop]
        ends = np.cumsum(pairs)
        left_rows = np.repeat(np.arange(start, stop), pairs)
        return left_rows, self._laid_out[np.arange(len(left_rows)) + np.repeat(starts - (ends - pairs), pairs)]


def _numbers(left: Vector, right: Vector) -> tuple[Vector, Vector]:
    """Cells of both sides as int64, the same where the cells are equal; NULL stays NULL. Those of texts lie close
    together on the right side."""
    objects = [side.values for side in (left, right) if side.values.dtype == object]
    if len(objects) == 1 and all(isinstance(cell, str) for cell in objects[0]):  # a text equals no number
        return _nulls(len(left)), _nulls(len(right))
    others, cells = numbered([right.values, left.values])
    return Vector(cells, left.valid), Vector(others, right.valid)


def _nulls(size: int) -> Vector:
    return Vector(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool))


def whole_numbers(values: Array) -> Numbers:
    """Numbers or booleans as int64, one for each value: reals by their bits, 0.0 standing for -0.0."""
    if values.dtype.kind == "f":
        return np.add(values, 0.0, dtype=np.float64).view(np.int64)
    return values.astype(np.int64, copy=False)


def _over_rows(cells: Vector, key: KeyColumn) -> Vector:
    """The numbers of a key's cells, or of its dictionary, for each row."""
    if key.codes is None:
        return cells
    values = np.append(cells.values, 0)[key.codes]
    if cells.valid is None:
        absent = key.codes < 0
        return Vector(values, ~absent if absent.any() else None)
    valid = np.append(cells.valid, False)[key.codes]
    return Vector(values, None if valid.all() else valid)


def _both_sides(key: KeyColumn, other: KeyColumn) -> Vector:
    """The numbers of one key column for each left row and then for each right row."""
    cells, other_cells = _numbers(key.values, other.values)
    left, right = _over_rows(cells, key), _over_rows(other_cells, other)
    values = np.concatenate([left.values, right.values])
    if left.valid is None and right.valid is None:
        return Vector(values)
    return Vector(values, np.concatenate([left.where_valid(), right.where_valid()]))


def _positions(left: Vector, right: Vector, order: Array | None) -> Positions:
    """For each left number the position of the equal right one, -1 where there is none; NULL equals nothing."""
    keys: Numbers = right.values
    rows: Positions = np.arange(len(keys), dtype=np.int32 if len(keys) <= 2**31 else np.int64)
    if right.valid is not None:
        rows, keys = rows[right.valid], keys[right.valid]
    if len(keys) == 0:
        return np.full(len(left), -1, dtype=rows.dtype)
    is_dense = _span(keys)[1] <= 4 * len(right) + 1_000_000  # the table is small beside the rows
    positions = (_by_table if is_dense else _by_hash)(left.values, keys, rows, order)
    if left.valid is not None:
        np.copyto(positions, -1, where=~left.valid)
    return positions


def _by_table(left: Numbers, keys: Numbers, rows: Positions, order: Array | None) -> Positions:
    """Positions through a table with a slot for each number from the lowest key on, and one for all others.

    A number x is in the table just where (x - low) mod 2**64 < size: it is x - low where x >= low, and where x < low
    it is 2**64 - (low - x) >= 2**63 - low, which is at least size since low + size - 1 < 2**63.
    """
    low, size = _span(keys)
    table = np.full(size + 1, -1, dtype=rows.dtype)
    slots = keys - low
    table[slots[::-1]] = rows[::-1]  # of several assignments to one slot the last holds: the first row's
    if order is not None and np.count_nonzero(table >= 0) < len(keys):
        last = np.argsort(order[rows], kind="stable")[::-1]
        table[slots[last]] = rows[last]
    positions = np.empty(len(left), dtype=rows.dtype)
    for start in range(0, len(left), BLOCK):
        places = np.subtract(left[start : start + BLOCK], low, dtype=np.int64).view(np.uint64)
        np.minimum(places, np.uint64(size), out=places)
        np.take(table, places.view(np.int64), out=positions[start : start + BLOCK], mode="clip")
    return positions


def _by_hash(left: Numbers, keys: Numbers, rows: Positions, order: Array | None) -> Positions:
    index = pd.Index(keys)
    if not index.is_unique:
        if order is not None:
            ranked = np.argsort(order[rows], kind="stable")
            keys, rows = keys[ranked], rows[ranked]
        first = ~pd.Index(keys).duplicated()
        rows, index = rows[first], pd.Index(keys[first])
    return _with_none(rows)[index.get_indexer(pd.Index(left))]


def _with_none(positions: Positions) -> Positions:
    """Positions with one slot more, which the index -1 finds: that of no row."""
    longer = np.full(len(positions) + 1, -1, dtype=positions.dtype)
    longer[:-1] = positions
    return longer


def _span(numbers: Numbers) -> tuple[int, int]:
    """The least number, and how many there are from it to the largest."""
    low = int(numbers.min())
    return low, int(numbers.max()) - low + 1


def shifted(vector: Vector) -> tuple[Numbers, int]:
    """Numbers as codes 0 .. size - 1 with size <= LARGEST, the same where the numbers are; NULL has any of them."""
    values = vector.values if vector.valid is None else vector.values[vector.valid]
    if len(values) == 0:
        return np.zeros(len(vector), dtype=np.int64), 1
    low, size = _span(values)
    codes = vector.values if vector.valid is None else np.where(vector.valid, vector.values, low)
    if size <= LARGEST:
        return codes - low, size
    ranks, firsts = dense_ranks(codes)
    return ranks, len(firsts)


def combine(codes: Numbers, size: int, other: Numbers, width: int) -> tuple[Numbers, int]:
    """Codes of the pairs of two columns of codes in 0 .. size - 1 and 0 .. width - 1, in ascending order of the pairs,
    and how many there may be: at most LARGEST.

    Where the product is above it, the codes are made dense first. Then neither size is above the number of rows, which
    is below 2**31.
    """
    if size * width > LARGEST:
        codes, firsts = dense_ranks(codes)
        size = len(firsts)
    if size * width > LARGEST:
        other, firsts = dense_ranks(other)
        width = len(firsts)
    return codes.astype(np.int64, copy=False) * width + other, size * width


def dense_ranks(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """For each number its rank 0, 1, ... among the distinct ones, ascending; and the first place of each of them."""
    if len(numbers) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    low, size = _span(numbers)
    codes = numbers - low  # modulo 2**64, as which `stable_order` reads it
    if size > 4 * len(numbers) + BLOCK:
        return _ranks_by_order(codes, size)
    seen = np.zeros(size, dtype=bool)
    seen[codes] = True
    distinct = np.flatnonzero(seen)
    table = np.empty(size, dtype=np.int32 if size <= 2**31 else np.int64)
    table[distinct] = np.arange(len(distinct))
    ranks = table[codes].astype(np.int64)
    firsts = np.empty(len(distinct), dtype=np.int64)
    firsts[ranks[::-1]] = np.arange(len(ranks) - 1, -1, -1)  # the last assignment holds: the first place
    return ranks, firsts


def _ranks_by_order(codes: Numbers, size: int) -> tuple[Numbers, Numbers]:
    order = stable_order(codes, size)
    ordered = codes[order]
    heads = np.ones(len(codes), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=heads[1:])
    ranks = np.empty(len(codes), dtype=np.int64)
    ranks[order] = np.cumsum(heads) - 1
    return ranks, order[heads]


def stable_order(codes: Numbers, size: int) -> Numbers:
    """The places of codes in 0 .. size - 1, at most 2**64 and read as unsigned, in ascending order; equal codes in that
    of their places. A radix sort, lowest digit first."""
    order: Numbers = np.argsort(codes.astype(np.uint16), kind="stable")
    for shift in range(_DIGIT, (size - 1).bit_length(), _DIGIT):
        digits = (codes >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order
