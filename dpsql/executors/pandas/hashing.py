"""Keyed hashes of values, the same on every machine: by them it is decided which rows of a privacy unit are kept.

Privacy never depends on how good a hash is. A hash of a row's own values is a function of that row and of the key,
whatever function it is, so what is chosen of one unit says nothing of another. Only fairness, that every row of a unit
is as likely to be kept as any other, rests on the mixing. That is also why values are hashed and never their positions
or dictionary codes: those move when other rows come or go.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsql.executors.pandas.exact_values import words_of
from dpsql.plan.expressions import Array, Vector
from dpsql.schema.columns import Type

Key = bytes
"""32 bytes, drawn afresh for each query."""
Hashes = NDArray[np.uint64]

_MINUS_ZERO = np.uint64(1 << 63)
_ROUNDS = 2
_ODD = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9], dtype=np.uint64)
"""Odd numbers with bits in disorder, from SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""


def hash_vector(key: Key, salt: int, vector: Vector, kind: Type) -> Hashes:
    """The hash of each cell, shape (len(vector),); columns are told apart by `salt`, from 0 to 2^128 - 1.

    Cells of one type with equal values have equal hashes (-0.0 equals 0.0), and of numbers and times no two different
    ones do. All NULLs have one hash, whatever stands in their cells. Of OTHER, which has no operations, only presence
    counts.
    """
    start, null, present, *odd = _words(key, salt)
    if kind is Type.TEXT:
        hashes = _hash_texts(key, salt, vector)
    elif kind is Type.OTHER:
        hashes = np.full(len(vector), present)
    else:
        hashes = _bits(vector.values, kind) ^ start
        _mix(hashes, [factor | np.uint64(1) for factor in odd])
    return hashes if vector.valid is None else np.where(vector.valid, hashes, null)


def hash_coded(key: Key, salt: int, codes: NDArray[np.int32 | np.int64], dictionary: Vector, kind: Type) -> Hashes:
    """`hash_vector` of `dictionary.at(codes)`, shape (len(codes),); only entries that occur are hashed. The code -1 is
    the dictionary's last slot, which is NULL."""
    occurs = np.zeros(len(dictionary), dtype=bool)
    occurs[codes] = True
    entries = np.flatnonzero(occurs)
    table = np.zeros(len(dictionary), dtype=np.uint64)
    table[entries] = hash_vector(key, salt, dictionary.at(entries), kind)
    return table[codes]


def hash_units(key: Key, salt: int, codes: NDArray[np.int32 | np.int64], values: Array) -> Hashes:
    """The hash of the unit of each code, shape (len(codes),); only units that occur are hashed. It is that of the value
    alone, whatever array it stands in, so that rows of other units do not change it."""
    occurs = np.zeros(len(values), dtype=bool)
    occurs[codes] = True
    entries = np.flatnonzero(occurs)
    table = np.zeros(len(values), dtype=np.uint64)
    table[entries] = _hash_exactly(key, salt, values[entries])
    return table[codes]


def _hash_exactly(key: Key, salt: int, values: Array) -> Hashes:
    words, kinds = words_of(values)
    start, _null, _present, *odd = _words(key, salt)
    hashes: Hashes = words.view(np.uint64) ^ start
    if kinds.any():
        hashes ^= kinds * _ODD[0]
    _mix(hashes, [factor | np.uint64(1) for factor in odd])
    return hashes


def combine(hashes: Sequence[Hashes]) -> Hashes:
    """One hash of several columns' hashes, at least one, all of one length; their order matters. That of a single
    column is its own."""
    combined = hashes[0]
    for each in hashes[1:]:
        combined = combined * _ODD[0]
        combined += each
        _mix(combined, _ODD[1:])
    return combined


def _mix(words: Hashes, factors: Iterable[np.uint64]) -> None:
    """Mixes the bits of each word, in place and one to one: neither an odd factor nor the shift loses anything.

    The shift comes first, for sums times a factor keep their order but for where it starts: of units with the same
    values the same rows would be kept too often.
    """
    high = np.empty_like(words)
    words ^= np.right_shift(words, 32, out=high)
    for factor in factors:
        words *= factor
        words ^= np.right_shift(words, 32, out=high)


def _words(key: Key, salt: int) -> Hashes:
    """What the key makes of a column: where its hashes start, those of NULL and of a present OTHER, and factors."""
    size = 8 * (3 + _ROUNDS)
    made = hashlib.blake2b(b"words", digest_size=size, key=key, salt=salt.to_bytes(16, "little")).digest()
    return np.frombuffer(made, dtype="<u8").astype(np.uint64)


def _bits(values: Array, kind: Type) -> Hashes:
    if kind is not Type.REAL:
        return values.astype(np.int64, copy=False).view(np.uint64)
    bits = values.astype(np.float64, copy=False).view(np.uint64)
    return np.where(bits == _MINUS_ZERO, np.uint64(0), bits)


def _hash_texts(key: Key, salt: int, vector: Vector) -> Hashes:
    # A copy of the state after the key is quicker than a new hash for each text.
    keyed = hashlib.blake2b(digest_size=8, key=key, salt=salt.to_bytes(16, "little"))

    def digest(text: str) -> bytes:
        state = keyed.copy()
        state.update(text.encode("utf-8", "surrogatepass"))
        return state.digest()

    hashes = np.zeros(len(vector), dtype=np.uint64)
    present = np.flatnonzero(vector.where_valid())
    hashes[present] = np.frombuffer(b"".join(map(digest, vector.values[present])), dtype="<u8")
    return hashes
