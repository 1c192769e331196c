"""Index of private rows among the rows of public tables that contain several keys together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.query import Axis, GroupKey
from dpsql.schema.frozen import dataclass

Codes = NDArray[np.int64]
_ROOM = 2**62
_MOST_DIRECT = 1 << 21
"""Numbers below this limit are looked up in a table; larger ones by binary search."""


@dataclass(frozen=True, repr=False)
class KeyCombination:
    """Consecutive keys after the previous step's result, combined by `sizes` into one number. `known`: the numbers of
    the public rows, in ascending order."""

    keys: tuple[int, ...]
    sizes: tuple[int, ...]
    known: Codes

    def numbers(self, before: Codes | None, codes: Sequence[Codes]) -> Codes:
        """Return one number for each row; it matches no combination if a code is -1."""
        for key, size in zip(self.keys, self.sizes, strict=True):
            before = codes[key] if before is None else before * size + codes[key]
        assert before is not None  # there is a key
        return before

    def places(self, numbers: Codes) -> Codes:
        """Return the index of each number in `known`; -1 if it is missing."""
        most = int(self.known[-1]) + 1 if len(self.known) else 0
        if most <= _MOST_DIRECT:
            table = np.full(most + 1, -1, dtype=np.int64)
            table[self.known] = np.arange(len(self.known))
            return table[np.where((numbers < 0) | (numbers >= most), most, numbers)]
        at = np.minimum(np.searchsorted(self.known, numbers), len(self.known) - 1)
        return np.where(self.known[at] == numbers, at, -1)


class PublicKeyRows:
    """The public rows of an axis of several keys. `steps`: the look-ups that find a row; more than one only if the
    combined numbers of all keys would exceed 64 bits."""

    def __init__(self, axis: Axis, keys: Sequence[GroupKey]) -> None:
        own = [keys[place] for place in axis.keys]
        self.columns = [np.array(key.together.places, dtype=np.int64) for key in own if key.together is not None]
        self.steps = tuple(_steps(self.columns, [max(1, len(key.values or ())) for key in own]))
        self._row = np.zeros(axis.cells, dtype=np.int64)
        self._row[self._found(self.columns)] = np.arange(axis.cells)

    def _found(self, codes: Sequence[Codes]) -> Codes:
        numbers: Codes | None = None
        for step in self.steps:
            lost = None if numbers is None else numbers < 0
            numbers = step.places(step.numbers(numbers, codes))
            numbers = numbers if lost is None else np.where(lost, -1, numbers)
        assert numbers is not None  # an axis has at least one key
        return numbers

    def __call__(self, codes: Sequence[Codes]) -> Codes:
        """Return the row of each combination of codes, one array per key; -1 if there is none or a code is -1."""
        numbers = self._found(codes)
        outside = np.logical_or.reduce([numbers < 0, *(each < 0 for each in codes)])
        if not len(self._row):
            return np.full(len(numbers), -1, dtype=np.int64)
        return np.where(outside, -1, self._row[np.where(outside, 0, numbers)])


def _steps(columns: Sequence[Codes], sizes: Sequence[int]) -> list[KeyCombination]:
    steps: list[KeyCombination] = []
    before: Codes | None = None
    first = 0
    while first < len(columns):
        last, room = first, 1 if before is None else len(before) + 1
        while last < len(columns) and (last == first or room * sizes[last] < _ROOM):
            room *= sizes[last]
            last += 1
        step = KeyCombination(tuple(range(first, last)), tuple(sizes[first:last]), np.zeros(0, dtype=np.int64))
        known, before = np.unique(step.numbers(before, columns), return_inverse=True)
        before = before.astype(np.int64)
        steps.append(KeyCombination(step.keys, step.sizes, known))
        first = last
    return steps
