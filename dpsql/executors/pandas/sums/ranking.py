"""Numbers as codes that lie close together, as codes of combinations, and in order.

Orders are found by sorting numbers that hold code and place, several times quicker than places by their codes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Array, Vector

Numbers = NDArray[np.int64]
LARGEST = 2**62
"""Codes of combinations stay below it."""
_BLOCK = 65_536
"""Tables of so many slots are made however few the rows are."""


def whole_numbers(values: Array) -> Numbers:
    """Numbers or booleans as int64, one for each value: reals by their bits, 0.0 standing for -0.0."""
    if values.dtype.kind == "f":
        return np.add(values, 0.0, dtype=np.float64).view(np.int64)
    return values.astype(np.int64, copy=False)


def span(numbers: Numbers) -> tuple[int, int]:
    """The least number, and how many there are from it to the largest."""
    low = int(numbers.min())
    return low, int(numbers.max()) - low + 1


def shifted(vector: Vector) -> tuple[Numbers, int]:
    """Numbers as codes 0 .. size - 1 with size <= LARGEST, the same where the numbers are; NULL has any of them."""
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
    low, size = span(numbers)
    codes = numbers - low  # modulo 2**64, as which `stable_order` reads it
    if size > 4 * len(numbers) + _BLOCK:
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
    of their places.

    Digit by digit, lowest first, each of as many bits as 64 have room for beside a place: digit and place are one
    number, all of which differ, so that any way of sorting them is stable.
    """
    words = codes.astype(np.int64, copy=False).view(np.uint64)
    order: Numbers = np.arange(len(codes))
    if (words[1:] >= words[:-1]).all():
        return order
    bits = len(codes).bit_length()
    positions = order.view(np.uint64)
    for shift in range(0, (size - 1).bit_length(), 64 - bits):
        packed = (words[order] if shift else words) >> shift
        packed <<= bits  # what is above the digit falls out
        packed |= positions
        packed.sort()
        packed &= (1 << bits) - 1
        places = packed.view(np.int64)
        order = order[places] if shift else places
    return order
