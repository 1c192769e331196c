"""The keyed hash of rows' contributions (`dpsql.executors.keyed_hash`) over columns; it selects the kept rows of a
privacy unit.

Values are hashed, never positions or dictionary codes, which change when other rows are added or removed. The
polynomials of several columns can be joined, so those of units and groups are computed once each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.executors.keyed_hash import (
    LIMB,
    NULL_LIMB,
    PRIME,
    REAL_ENDS,
    REAL_LIMIT,
    REAL_WINDOW,
    REAL_WINDOWS,
    UNIT_LIMBS,
    Form,
    HashKey,
    Lane,
    Limbs,
)
from dpsql.executors.pandas.columns.exact_values import canonical_texts, integers_of
from dpsql.plan.expressions import Array, Vector
from dpsql.schema.frozen import dataclass

Hashes = NDArray[np.uint64]
Words = NDArray[np.uint64]

_BLOCK = 32_768
_LOW = np.uint64((1 << LIMB) - 1)
_PRIME = np.uint64(PRIME)
_BITS = 31
_UNIT = 2.0**LIMB

hash_key = lru_cache(maxsize=4)(HashKey.of)


@dataclass(frozen=True, repr=False)
class HashedRows:
    """Polynomials of `limbs` limbs for each row: `lanes` of shape (2, rows), below p."""

    lanes: Words
    limbs: int

    def __len__(self) -> int:
        return int(self.lanes.shape[1])

    def at(self, places: NDArray[Any]) -> HashedRows:
        return HashedRows(self.lanes[:, places], self.limbs)


def hash_vector(key: HashKey, vector: Vector, limbs: Limbs) -> HashedRows:
    """Return the polynomial of each cell. All NULLs have the same one, whatever their cells hold; -0.0 equals 0.0."""
    lanes = np.empty((len(key.lanes), len(vector)), dtype=np.uint64)
    for rows in _pieces(len(vector)):
        lanes[:, rows] = _polynomials(key, list(_limbs(key, vector.at(rows), limbs)))
    return HashedRows(lanes, limbs.count)


def hash_coded(key: HashKey, codes: NDArray[np.int32 | np.int64], dictionary: Vector, limbs: Limbs) -> HashedRows:
    """As `hash_vector` of `dictionary.at(codes)`, but hash only entries that occur. The code -1 is the dictionary's
    last slot, which is NULL."""
    entries = _occurring(codes, len(dictionary))
    return _gathered(hash_vector(key, dictionary.at(entries), limbs), entries, codes, len(dictionary))


def hash_units(key: HashKey, codes: NDArray[np.int32 | np.int64], values: Array) -> HashedRows:
    """Return the polynomial of the unit of each code, for units other than text; only units that occur are hashed. It
    depends only on the value, whatever its array, so that rows of other units do not change it: on the limbs of a whole
    number of 64 bits, or else on those of the value's text."""
    entries = _occurring(codes, len(values))
    integers = integers_of(values[entries])
    whole = hash_vector(key, integers, UNIT_LIMBS)
    others = ~integers.where_valid()
    texts = np.full(len(entries), "", dtype=object)
    texts[others] = canonical_texts(values[entries][others])
    written = hash_vector(key, Vector(texts, others), Limbs(Form.TEXT))
    return _gathered(_joined(key, whole, written), entries, codes, len(values))


def combine(key: HashKey, columns: Sequence[HashedRows]) -> HashedRows:
    """Join the polynomials of several columns (at least one) of one length, in order, continuing the first one."""
    combined = columns[0]
    for each in columns[1:]:
        combined = _joined(key, combined, each)
    return combined


def started(key: HashKey, rows: int) -> HashedRows:
    """Return the initial polynomial of each row."""
    return HashedRows(np.stack([np.full(rows, lane.start, dtype=np.uint64) for lane in key.lanes]), 0)


def numbers_of(hashed: HashedRows, lanes: Sequence[Lane]) -> Hashes:
    """Return the final hash of each polynomial: a number below 2^62, shape (rows,)."""
    numbers = np.empty(len(hashed), dtype=np.uint64)
    for rows in _pieces(len(hashed)):
        first, second = (_cubic(words[rows], lane) for words, lane in zip(hashed.lanes, lanes, strict=True))
        numbers[rows] = (first << np.uint64(_BITS)) + second
    return numbers


def _pieces(size: int) -> Iterator[slice]:
    """Return blocks of rows, so that only results are as long as all rows."""
    return (slice(start, min(start + _BLOCK, size)) for start in range(0, size, _BLOCK))


def _occurring(codes: NDArray[np.int32 | np.int64], size: int) -> NDArray[np.int64]:
    occurs = np.zeros(size, dtype=bool)
    occurs[codes] = True
    return np.flatnonzero(occurs)


def _gathered(
    hashed: HashedRows, entries: NDArray[np.int64], codes: NDArray[np.int32 | np.int64], size: int
) -> HashedRows:
    """Gather the polynomials of entries by code. Both lanes are packed into one number, read once per row."""
    table = np.zeros(size, dtype=np.uint64)
    table[entries] = hashed.lanes[0] << np.uint64(_BITS) | hashed.lanes[1]
    lanes = np.empty((2, len(codes)), dtype=np.uint64)
    for rows in _pieces(len(codes)):
        both = table[codes[rows]]
        np.right_shift(both, np.uint64(_BITS), out=lanes[0, rows])
        np.bitwise_and(both, _PRIME, out=lanes[1, rows])
    return HashedRows(lanes, hashed.limbs)


def _joined(key: HashKey, first: HashedRows, second: HashedRows) -> HashedRows:
    """Return h k^n + g, with n the limbs of g."""
    lanes = np.empty_like(first.lanes)
    for place, lane in enumerate(key.lanes):
        factor = np.uint64(pow(lane.factor, second.limbs, PRIME))
        for rows in _pieces(len(first)):
            lanes[place, rows] = _held(_folded(first.lanes[place, rows] * factor + second.lanes[place, rows]))
    return HashedRows(lanes, first.limbs + second.limbs)


def _polynomials(key: HashKey, limbs: Sequence[Words]) -> Words:
    """Return h k + v for each limb v, starting from 0."""
    lanes = []
    for lane in key.lanes:
        words = np.zeros(len(limbs[0]), dtype=np.uint64)
        factor = np.uint64(lane.factor)
        for limb in limbs:
            words *= factor
            words += limb
            words = _folded(words)
        lanes.append(_held(words))
    return np.stack(lanes)


def _folded(words: Words) -> Words:
    """Reduce words below 2^64 modulo p to words up to 2^31 + 3, using 2^31 = 1."""
    high = words >> np.uint64(_BITS)
    words = words & _PRIME
    words += high
    np.right_shift(words, np.uint64(_BITS), out=high)
    words &= _PRIME
    words += high
    return words


def _held(words: Words) -> Words:
    """Return the remainder of words below 2 p: subtracting p wraps for a smaller word, so the minimum is right."""
    return np.asarray(np.minimum(words, words - _PRIME))


def _cubic(words: Words, lane: Lane) -> Words:
    x = _held(_folded(words + np.uint64(lane.shift)))
    square = _held(_folded(x * x))
    return _held(_folded(square * x + x * np.uint64(lane.linear) + np.uint64(lane.constant)))


def _limbs(key: HashKey, vector: Vector, limbs: Limbs) -> Iterable[Words]:
    """Return the limbs of each cell."""
    if limbs.form is Form.PRESENCE:
        columns = [np.zeros(len(vector), dtype=np.uint64)]
    elif limbs.form is Form.TEXT:
        columns = _limbs_of_texts(key, vector)
    elif limbs.form is Form.REAL:
        columns = _limbs_of_reals(vector.values.astype(np.float64, copy=False))
    else:
        words = vector.values.astype(np.int64, copy=False).view(np.uint64) - np.uint64(limbs.offset % 2**64)
        columns = [(words >> np.uint64(LIMB * place)) & _LOW for place in range(limbs.count)]
    if vector.valid is None:
        return columns
    return [np.where(vector.valid, each, np.uint64(0 if place else NULL_LIMB)) for place, each in enumerate(columns)]


def _limbs_of_reals(values: NDArray[np.float64]) -> list[Words]:
    reals = np.where(np.isnan(values), 0.0, values)
    sizes = np.abs(reals)
    windows = np.searchsorted(_WINDOW_ENDS, sizes, side="right")
    windows[sizes == 0] = -REAL_WINDOWS[0]
    scaled = np.minimum(np.ldexp(sizes, -REAL_WINDOW * (windows + REAL_WINDOWS[0])), REAL_LIMIT)
    windows[reals < 0] += len(REAL_WINDOWS)
    floor = np.floor(scaled)
    whole = floor.astype(np.uint64)
    rest = (scaled - floor) * _UNIT
    high = np.floor(rest)
    low = np.floor((rest - high) * _UNIT)
    limbs = [whole & _LOW, whole >> np.uint64(LIMB), high.astype(np.uint64), low.astype(np.uint64)]
    return [windows.astype(np.uint64), *limbs]


_WINDOW_ENDS = np.array(REAL_ENDS)


def _limbs_of_texts(key: HashKey, vector: Vector) -> list[Words]:
    keyed = hashlib.md5(key.text.encode(), usedforsecurity=False)

    def digest(text: str) -> bytes:
        state = keyed.copy()  # faster than a new one for each text
        state.update(text.encode("utf-8", "surrogatepass"))
        return state.digest()[8:]

    words = np.zeros(len(vector), dtype=np.uint64)
    present = np.flatnonzero(vector.where_valid())
    words[present] = np.frombuffer(b"".join(map(digest, vector.values[present])), dtype="<u8")
    return [words & _LOW, (words >> np.uint64(LIMB)) & _LOW]
