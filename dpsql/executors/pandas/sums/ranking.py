"""Numbers as dense codes, as codes of combinations, and in order.

Orders are found by sorting numbers that combine code and place, several times faster than sorting places by their
codes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Array, Vector

Numbers = NDArray[np.int64]
LARGEST = 2**62
"""Upper limit of the codes of combinations."""
_BLOCK = 65_536
"""Tables of this many slots are always allocated, even for few rows."""


def whole_numbers(values: Array) -> Numbers:
    """Return numbers or booleans as int64, one for each value: reals by their bits, with 0.0 for -0.0."""
    if values.dtype.kind == "f":
        return np.add(values, 0.0, dtype=np.float64).view(np.int64)
    return values.astype(np.int64, copy=False)


def span(numbers: Numbers) -> tuple[int, int]:
    """Return the least number, and the size of the range up to the largest."""
    low = int(numbers.min())
    return low, int(numbers.max()) - low + 1


def shifted(vector: Vector) -> tuple[Numbers, int]:
    """Return numbers as codes 0 .. size - 1 with size <= LARGEST, equal just if numbers are; NULL's is arbitrary."""
    values = vector.values if vector.valid is None else vector.values[vector.valid]
    if len(values) == 0:
        return np.zeros(len(vector), dtype=np.int64), 1
    low, size = span(values)
    codes = vector.values if vector.valid is None else np.where(vector.valid, vector.values, low)
    if size <= LARGEST:
        return codes - low, size
    ranks, firsts = dense_ranks(codes)
    return ranks, len(firsts)


def combine(codes: Numbers, size: int, other: Numbers, width: int) -> tuple[Numbers, int]:
    """Return codes of the pairs of two columns of codes in 0 .. size - 1 and 0 .. width - 1, in ascending order of the
    pairs, and their upper limit: at most LARGEST.

    If the product is larger, the codes are made dense first. Then both sizes are at most the number of rows, which is
    below 2**31.
    """
    if size * width > LARGEST:
        codes, firsts = dense_ranks(codes)
        size = len(firsts)
    if size * width > LARGEST:
        other, firsts = dense_ranks(other)
        width = len(firsts)
    return codes.astype(np.int64, copy=False) * width + other, size * width


def dense_ranks(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Return each number's rank 0, 1, ... among the distinct ones, ascending; and the first place of each of these."""
    if len(numbers) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    low, size = span(numbers)
    codes = numbers - low  # modulo 2**64, as `stable_order` reads it
    if size > 4 * len(numbers) + _BLOCK:
        return _ranks_by_order(codes, size)
    seen = np.zeros(size, dtype=bool)
    seen[codes] = True
    distinct = np.flatnonzero(seen)
    table = np.empty(size, dtype=np.int32 if size <= 2**31 else np.int64)
    table[distinct] = np.arange(len(distinct))
    ranks = table[codes].astype(np.int64)
    firsts = np.empty(len(distinct), dtype=np.int64)
    firsts[ranks[::-1]] = np.arange(len(ranks) - 1, -1, -1)  # the last assignment wins: the first place
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
    """Return the places of codes in 0 .. size - 1, at most 2**64 and read as unsigned, in ascending order; ties in
    order of places.

    Sorts digit by digit, lowest first. A digit has the bits that 64 leave next to a place. Digit and place form one
    number, and all of these differ, so that any sort is stable.
    """
    words = codes.astype(np.int64, copy=False).view(np.uint64)
    order: Numbers = np.arange(len(codes))
    if (words[1:] >= words[:-1]).all():
        return order
    bits = len(codes).bit_length()
    positions = order.view(np.uint64)
    for shift in range(0, (size - 1).bit_length(), 64 - bits):
        packed = (words[order] if shift else words) >> shift
        packed <<= bits  # bits above the digit are shifted out
        packed |= positions
        packed.sort()
        packed &= (1 << bits) - 1
        places = packed.view(np.int64)
        order = order[places] if shift else places
    return order
