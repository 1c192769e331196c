"""Counts by group of distinct values and of grid points."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import CountDistinct, Edges, Grid, GridCounts, LatticeSum, LeadingDigits
from dpsql.executors.pandas.columns.declared_columns import lattice_steps
from dpsql.executors.pandas.evaluation import evaluator
from dpsql.executors.pandas.groups import Codes, key_codes
from dpsql.executors.pandas.relations import Relation
from dpsql.executors.pandas.sums.partials import DistinctPairs
from dpsql.executors.pandas.units.bounding import distinct_pairs
from dpsql.plan.query import GroupKey

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.int64]
Key: TypeAlias = Callable[[Floats], Numbers]
"""Buckets 0..n-1 of values, monotonic in the value."""

_FEW_EDGES = 1_000
_FEW_VALUES = 1 << 14
"""For fewer values, building the tables takes longer than searching."""
_BUCKETS = 4
"""Even buckets per edge."""
_SHIFT = 41
"""Dropped low bits of a float: 2^11 buckets per octave remain."""
_MOST = 1 << 20


class Places:
    """Counter of the edges less than each value. Tables over buckets give a first guess; if the value does not lie
    between the two edges of the guess, another method is used."""

    def __init__(self, edges: Floats) -> None:
        self._edges = edges
        self._above, self._below = np.append(edges, np.inf), np.append(-np.inf, edges)

    @cached_property
    def _tables(self) -> list[tuple[Key, Numbers]]:
        """Keys, and the number of edges in earlier buckets, all of which are less than a value."""
        edges = self._edges
        if len(edges) < _FEW_EDGES or not -np.inf < edges[0] < edges[-1] < np.inf:
            return []
        made = filter(None, (_even(edges), _geometric(edges)))
        return [(key, np.searchsorted(key(edges), np.arange(size))) for key, size in made]

    def of(self, values: Floats) -> Numbers:
        """Count the edges less than each value; all are less than NaN."""
        places, left = np.zeros(len(values), dtype=np.int64), None
        for key, start in self._tables if len(values) >= _FEW_VALUES else ():
            some = values if left is None else values[left]
            at = start[key(some)]
            at += self._above[at] < some
            wrong = np.flatnonzero(~((self._below[at] < some) & (some <= self._above[at])))
            if left is None:
                places, left = at, wrong
            else:
                places[left] = at
                left = left[wrong]
        if left is None:
            return np.searchsorted(self._edges, values)
        places[left] = np.searchsorted(self._edges, values[left])
        return places


def _even(edges: Floats) -> tuple[Key, int] | None:
    """Return buckets of equal width."""
    first, size = edges[0], _BUCKETS * len(edges)
    with np.errstate(over="ignore", divide="ignore"):
        scale = size / (edges[-1] - first)
    if not 0 < scale < np.inf:
        return None

    def key(values: Floats) -> Numbers:
        with np.errstate(over="ignore", invalid="ignore"):
            places: Any = (values - first) * scale
        np.minimum(np.fmax(places, 0, out=places), size - 1, out=places)
        return np.asarray(places.astype(np.int64))

    return key, size


def _geometric(edges: Floats) -> tuple[Key, int] | None:
    """Return buckets by the leading bits of a value's distance from the densest edges."""
    gaps = np.diff(edges)
    closest = np.flatnonzero(gaps == gaps.min())
    middle = edges[closest[len(closest) // 2]]
    with np.errstate(over="ignore"):
        away = np.abs(edges - middle)
    least, most = (int(each.view(np.int64)) >> _SHIFT for each in (away[away > 0].min(), away.max()))
    reach = most - least + 1
    if 2 * reach + 1 > _MOST:
        return None

    def key(values: Floats) -> Numbers:
        with np.errstate(over="ignore", invalid="ignore"):
            away = values - middle
        bits = np.abs(away).view(np.int64) >> _SHIFT
        bits -= least - 1
        np.minimum(np.maximum(bits, 0, out=bits), reach, out=bits)
        return np.asarray(np.where(away < 0, reach - bits, reach + bits))

    return key, 2 * reach + 1


_MOST_DENSE = 1 << 20
_LARGEST = 1 << 62


class DistinctPart:
    """The number of distinct values in each of `cells` groups. An additional row adds at most one to one group."""

    def __init__(self, part: CountDistinct, cells: int, rows: Relation) -> None:
        codes = key_codes(GroupKey(part.value, None), rows)
        self._read, self._null, self._cells_of = codes.read, ~codes.values.where_valid(), codes.values
        self._cells = cells
        self._found: list[tuple[Codes, Codes]] = []

    def add(self, start: int, stop: int, groups: Codes) -> None:
        """Add rows start..stop; those without a group have the code `cells`."""
        codes = self._read(start, stop)
        kept = (groups < self._cells) & (codes >= 0)
        kept &= ~self._null[codes]
        self._found.append((codes[kept], groups[kept]))

    def values(self) -> NDArray[np.int64]:
        codes, groups = self._all()
        return distinct_pairs(codes, groups if self._cells > 1 else None, self._cells)

    def different(self, shown: Codes) -> DistinctPairs:
        """Return the distinct (group, value) in the groups `shown` (ascending), renumbered in their order."""
        codes, groups = self._all()
        size = max(1, len(self._cells_of))
        pairs = np.unique(groups * size + codes)
        return DistinctPairs(np.searchsorted(shown, pairs // size), self._cells_of.at(pairs % size))

    def _all(self) -> tuple[Codes, Codes]:
        empty = np.zeros(0, dtype=np.int64)
        codes, groups = zip(*self._found, strict=True) if self._found else ((), ())
        return np.concatenate([empty, *codes]), np.concatenate([empty, *groups])


class GridPart:
    """The number of rows of each group at each point of a grid."""

    def __init__(self, part: GridCounts, cells: int, rows: Relation) -> None:
        self._points, self._cells = part.points, cells
        self._read = _reader(part, rows)
        self._dense: NDArray[np.int64] | None = None
        if (cells + 1) * part.points <= _MOST_DENSE:
            self._dense = np.zeros((cells + 1) * part.points, dtype=np.int64)
        self._found: list[tuple[Codes, Codes]] = []

    def add(self, start: int, stop: int, groups: Codes) -> None:
        """Add rows start..stop; those without a group have the code `cells`."""
        points = self._read(start, stop)
        kept = (points >= 0) & (groups < self._cells)
        if self._dense is not None:
            self._dense += np.bincount((groups * self._points + points)[kept], minlength=len(self._dense))
        else:
            self._found.append((groups[kept], points[kept]))

    def table(self, shown: Codes) -> Grid:
        """Return the counts of the groups `shown` (ascending), renumbered in their order."""
        if self._dense is not None:
            places = np.flatnonzero(self._dense)
            groups, points, counts = places // self._points, places % self._points, self._dense[places]
        else:
            groups, points, counts = self._counted()
        number = np.full(self._cells + 1, -1, dtype=np.int64)
        number[shown] = np.arange(len(shown))
        kept = number[groups] >= 0
        return Grid(number[groups[kept]], points[kept], counts[kept].astype(np.int64))

    def _counted(self) -> tuple[Codes, Codes, Codes]:
        """Return each group and point with rows, in order, and the row count; a combined code may exceed 64 bits."""
        none = np.zeros(0, dtype=np.int64)
        found = zip(*self._found, strict=True) if self._found else ((), ())
        groups, points = (np.concatenate([none, *each]) for each in found)
        if self._cells * self._points < _LARGEST:
            pairs, counts = np.unique(groups * self._points + points, return_counts=True)
            return pairs // self._points, pairs % self._points, counts
        names, places = np.unique(points, return_inverse=True)
        pairs, counts = np.unique(groups * max(1, len(names)) + places, return_counts=True)
        return pairs // max(1, len(names)), names[pairs % max(1, len(names))], counts


def _reader(part: GridCounts, rows: Relation) -> Callable[[int, int], Codes]:
    """Return a reader of the points of rows, -1 for those without one."""
    of = part.of
    if isinstance(of, GroupKey):
        return key_codes(of, rows).read
    read = evaluator(of.value, rows)
    places = Places(np.array(of.edges if isinstance(of, Edges) else (), dtype=np.float64))

    def points(start: int, stop: int) -> Codes:
        vector = read(start, stop)
        values: Any = vector.values
        if isinstance(of, LatticeSum):
            steps = lattice_steps(of, vector) - of.least
        elif isinstance(of, LeadingDigits):
            steps = of.places(values.astype(np.float64))
        else:
            steps = places.of(values.astype(np.float64))
        return steps if vector.valid is None else np.where(vector.valid, steps, -1)

    return points


def places_of(of: GroupKey | Edges | LeadingDigits, rows: Relation) -> Codes:
    """Return the point of each row on a grid of public places, -1 for none."""
    if isinstance(of, LeadingDigits):
        size = 2 * of.middle
    else:
        size = len(of.edges) + 1 if isinstance(of, Edges) else len(of.values or ())
    return np.asarray(_reader(GridCounts(of, size), rows)(0, rows.rows), dtype=np.int64)
