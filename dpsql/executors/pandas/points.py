"""Different values and places on a grid, counted by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import CountDistinct, Edges, Grid, GridCounts, LatticeSum
from dpsql.executors.pandas.bounding import distinct_pairs
from dpsql.executors.pandas.evaluation import evaluator
from dpsql.executors.pandas.groups import Codes, key_codes
from dpsql.executors.pandas.kept_rows import lattice_steps
from dpsql.executors.pandas.partials import Different
from dpsql.executors.pandas.places import Places
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.query import GroupKey

_MOST_DENSE = 1 << 20


class DistinctPart:
    """The number of different values in each of `cells` groups. One row more adds at most one to one group."""

    def __init__(self, part: CountDistinct, cells: int, rows: Relation) -> None:
        codes = key_codes(GroupKey(part.value, None), rows)
        self._read, self._null, self._cells_of = codes.read, ~codes.values.where_valid(), codes.values
        self._cells = cells
        self._found: list[tuple[Codes, Codes]] = []

    def add(self, start: int, stop: int, groups: Codes) -> None:
        """Rows start..stop; those of no group have the code `cells`."""
        codes = self._read(start, stop)
        kept = (groups < self._cells) & (codes >= 0)
        kept &= ~self._null[codes]
        self._found.append((codes[kept], groups[kept]))

    def values(self) -> NDArray[np.int64]:
        codes, groups = self._all()
        return distinct_pairs(codes, groups if self._cells > 1 else None, self._cells)

    def different(self, shown: Codes) -> Different:
        """The different (group, value) among the groups `shown` (ascending), numbered anew in their order."""
        codes, groups = self._all()
        size = max(1, len(self._cells_of))
        pairs = np.unique(groups * size + codes)
        return Different(np.searchsorted(shown, pairs // size), self._cells_of.at(pairs % size))

    def _all(self) -> tuple[Codes, Codes]:
        empty = np.zeros(0, dtype=np.int64)
        codes, groups = zip(*self._found, strict=True) if self._found else ((), ())
        return np.concatenate([empty, *codes]), np.concatenate([empty, *groups])


class GridPart:
    """How many rows of each group lie at each point of a grid."""

    def __init__(self, part: GridCounts, cells: int, rows: Relation) -> None:
        self._points, self._cells = part.points, cells
        self._read = _reader(part, rows)
        self._dense: NDArray[np.int64] | None = None
        if (cells + 1) * part.points <= _MOST_DENSE:
            self._dense = np.zeros((cells + 1) * part.points, dtype=np.int64)
        self._found: list[Codes] = []

    def add(self, start: int, stop: int, groups: Codes) -> None:
        """Rows start..stop; those of no group have the code `cells`."""
        points = self._read(start, stop)
        places = (groups * self._points + points)[(points >= 0) & (groups < self._cells)]
        if self._dense is not None:
            self._dense += np.bincount(places, minlength=len(self._dense))
        else:
            self._found.append(places)

    def table(self, shown: Codes) -> Grid:
        """The counts of the groups `shown` (ascending), numbered anew in their order."""
        if self._dense is not None:
            places = np.flatnonzero(self._dense)
            counts = self._dense[places]
        else:
            places, counts = np.unique(np.concatenate(self._found or [np.zeros(0, dtype=np.int64)]), return_counts=True)
        groups = places // self._points
        number = np.full(self._cells + 1, -1, dtype=np.int64)
        number[shown] = np.arange(len(shown))
        kept = number[groups] >= 0
        return Grid(number[groups[kept]], (places % self._points)[kept], counts[kept].astype(np.int64))


def _reader(part: GridCounts, rows: Relation) -> Callable[[int, int], Codes]:
    """Reads the points of rows, -1 for those without one."""
    of = part.of
    if isinstance(of, GroupKey):
        return key_codes(of, rows).read
    read = evaluator(of.value, rows)
    places = Places(np.array(of.edges if isinstance(of, Edges) else (), dtype=np.float64))

    def points(start: int, stop: int) -> Codes:
        vector = read(start, stop)
        values: Any = vector.values
        steps = lattice_steps(of, vector) if isinstance(of, LatticeSum) else places.of(values.astype(np.float64))
        return steps if vector.valid is None else np.where(vector.valid, steps, -1)

    return points
