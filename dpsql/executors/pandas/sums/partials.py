"""Sums of exact answers over parts of the rows.

Rows are divided so that each part's integers add up: every row and every privacy unit is in one division, or, for the
rows of one unit, all parts are of kinds that add up over rows. Distinct values are merged and counted at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import CountDistinct, ExactPlan, ExactTable, Grid
from dpsql.plan.domains import cells_of, vector_of
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import Key, Type
from dpsql.schema.frozen import dataclass

Numbers = NDArray[np.int64]
Cell = tuple[type, Key]
GroupName = tuple[Cell, ...]
"""A group by the values of its keys, and their types, since True == 1 == 1.0."""
_ROOM = 2**62


@dataclass(frozen=True, repr=False)
class DistinctPairs:
    """For each distinct (group, value) the index of the group in a table, and the value."""

    groups: Numbers
    values: Vector


@dataclass(frozen=True, repr=False)
class Partial:
    """The exact answer over some of the rows; the distinct values of each CountDistinct, by the part's index."""

    table: ExactTable
    different: dict[int, DistinctPairs]


class Totals:
    """The sum of exact answers to one plan."""

    def __init__(self, plan: ExactPlan) -> None:
        self.plan = plan
        self._every = plan.every_cell or not plan.keys
        self._keys: tuple[Vector, ...] | None = None
        self._names: dict[GroupName, int] = {}
        self._groups = 0
        self._parts: list[NDArray[Any]] = [np.zeros(0, dtype=np.int64) for _ in plan.parts]
        self._grids = [_Counts() for _ in plan.grids]
        kinds = {i: part.value.type for i, part in enumerate(plan.parts) if isinstance(part, CountDistinct)}
        self._different = {place: _Values(kind) for place, kind in kinds.items()}

    def add(self, partial: Partial, parts: Sequence[int] | None = None, *, grids: bool = True) -> None:
        """Add an answer to the whole plan, or only to some of its `parts` and, if `grids`, to all grids."""
        table = partial.table
        places = self._places(table)
        for row, part in enumerate(range(len(self._parts)) if parts is None else parts):
            if part in self._different:
                different = partial.different[row]
                self._different[part].add(places[different.groups], different.values)
            else:
                self._parts[part] = _added(self._parts[part], places, table.parts[row], self._groups)
        for mine, theirs in zip(self._grids, table.grids, strict=True) if grids else ():
            mine.add(places[theirs.groups], theirs.points, theirs.counts)

    def _places(self, table: ExactTable) -> Numbers:
        """Return the indices of a table's groups in the sum."""
        if self._every:
            self._keys, self._groups = table.keys, table.groups
            return np.arange(table.groups)
        names = names_of(self.plan, table.keys)
        places = np.array([self._names.setdefault(name, len(self._names)) for name in names], dtype=np.int64)
        self._groups = len(self._names)
        return places

    def table(self) -> ExactTable:
        """Return the sum; at least one answer was added."""
        groups = self._groups
        for place, values in self._different.items():
            self._parts[place] = values.counts(groups)
        parts = [_added(part, np.zeros(0, np.int64), np.zeros(0, np.int64), groups) for part in self._parts]
        return ExactTable(self._key_vectors(), stack(parts, groups), groups, tuple(each.grid() for each in self._grids))

    def _key_vectors(self) -> tuple[Vector, ...]:
        if self._every:
            assert self._keys is not None  # an answer was added
            return self._keys
        columns = zip(*self._names, strict=True) if self._names else [()] * len(self.plan.keys)
        return tuple(
            vector_of([cell for _, cell in column], key.expr.type)
            for column, key in zip(columns, self.plan.keys, strict=True)
        )


def names_of(plan: ExactPlan, keys: Sequence[Vector]) -> list[GroupName]:
    """Return the names of groups by their keys."""
    columns = [cells_of(vector, key.expr.type) for vector, key in zip(keys, plan.keys, strict=True)]
    return [tuple((type(cell), cell) for cell in cells) for cells in zip(*columns, strict=True)]


def stack(parts: list[NDArray[Any]], groups: int) -> NDArray[Any]:
    if not parts:
        return np.zeros((0, groups), dtype=np.int64)
    if any(part.dtype == object for part in parts):
        return np.stack([part.astype(object) for part in parts])
    return np.stack(parts)


def _added(total: NDArray[Any], places: Numbers, more: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the total, extended to `size`, with `more` added at distinct places; in Python's integers if needed."""
    reach = sum(max(int(each.max(initial=0)), -int(each.min(initial=0))) for each in (total, more))
    dtype: Any = np.int64 if reach < _ROOM and object not in (total.dtype, more.dtype) else object
    longer = np.zeros(size, dtype=dtype)
    longer[: len(total)] = total
    longer[places] += more.astype(dtype, copy=False)
    return longer


class _Counts:
    """Counts by group and point."""

    def __init__(self) -> None:
        self._groups = self._points = self._counts = np.zeros(0, dtype=np.int64)

    def add(self, groups: Numbers, points: Numbers, counts: Numbers) -> None:
        groups, points = np.concatenate([self._groups, groups]), np.concatenate([self._points, points])
        order = np.lexsort((points, groups))
        groups, points, counts = groups[order], points[order], np.concatenate([self._counts, counts])[order]
        first = np.ones(len(groups), dtype=bool)
        first[1:] = (groups[1:] != groups[:-1]) | (points[1:] != points[:-1])
        starts = np.flatnonzero(first)
        self._groups, self._points = groups[starts], points[starts]
        self._counts = np.add.reduceat(counts, starts) if len(starts) else counts

    def grid(self) -> Grid:
        return Grid(self._groups, self._points, self._counts)


class _Values:
    """Distinct values by group."""

    def __init__(self, kind: Type) -> None:
        self._kind = kind
        self._numbers: dict[Cell, int] = {}
        self._pairs = np.zeros((0, 2), dtype=np.int64)

    def add(self, groups: Numbers, values: Vector) -> None:
        cells = [(type(cell), cell) for cell in cells_of(values, self._kind)]
        numbers = [self._numbers.setdefault(cell, len(self._numbers)) for cell in cells]
        pairs = np.column_stack([groups, np.array(numbers, dtype=np.int64)])
        self._pairs = np.unique(np.concatenate([self._pairs, pairs]), axis=0)

    def counts(self, groups: int) -> Numbers:
        return np.bincount(self._pairs[:, 0], minlength=groups)
