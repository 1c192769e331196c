"""Which rows of a privacy unit are counted where it has more than its limits allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import CountRows, ExactPlan, GridCounts, LatticeSum, of_units, readings_of
from dpsql.executors.pandas.bounding import keep_groups, keep_rows
from dpsql.executors.pandas.columns import lattice_steps
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.groups import Groups
from dpsql.executors.pandas.hashing import combine, hash_vector
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.expressions import Vector
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, repr=False)
class Chosen:
    """For every row its unit, its group where all rows of a unit in so many groups count (`groups`), and where rows are
    limited as well (`rows`). Rows that are left out have the group `cells`."""

    units: NDArray[Any]
    groups: Numbers
    rows: Numbers


def choose_rows(plan: ExactPlan, rows: Relation, codes: Numbers, groups: Groups | None, key: bytes) -> Chosen:
    """Bound what each unit contributes, by its own rows and the key alone (see `keep_rows`, `keep_groups`).

    Parts of units take every row in the groups that are kept; where there are some, rows are chosen in those groups, so
    that one unit is in no more groups than its limit by all parts together."""
    assert rows.units is not None  # who has no units has no limits either
    units = rows.units.numbers()
    cells = groups.cells if groups else 1
    places = np.flatnonzero(codes < cells)
    by_group = codes
    limit = plan.groups if any(map(of_units, plan.parts)) else None
    if groups is not None and limit is not None and limit < cells:
        ask = RowHashes(plan, rows, codes, groups, key, places)
        kept = keep_groups(_at(units, places), codes[places], limit, ask, rows.units.count)
        if kept is not None:
            by_group = codes.copy()
            by_group[places[~kept]] = cells
            places = places[kept]
    by_row = by_group
    if plan.limits is not None and (plan.grids or not all(map(of_units, plan.parts))):
        ask = RowHashes(plan, rows, codes, groups, key, places)
        by = codes[places] if groups is not None else None
        limits = plan.limits
        if limits.groups >= cells:  # nobody is in more groups than there are
            limits = replace(limits, groups=limits.rows)
        kept = keep_rows(_at(units, places), by, limits, ask, rows.units.count)
        if kept is not None:
            by_row = by_group.copy()
            by_row[places[~kept]] = cells
    counted = by_group if any(map(of_units, plan.parts)) else by_row
    return Chosen(units, counted, by_row)


def _at(units: NDArray[Any], places: Numbers) -> Numbers:
    return (units if len(places) == len(units) else units[places]).astype(np.int64, copy=False)


@dataclass(frozen=True, repr=False)
class RowHashes:
    """Keyed hashes of some of the rows at `places`: of (unit, group, what the row contributes), and of (unit, group).
    They are of values, so that neither the order of rows nor those of others play a part."""

    plan: ExactPlan
    rows: Relation
    codes: Numbers
    groups: Groups | None
    key: bytes
    places: Numbers

    def of_groups(self, asked: Numbers) -> Hashes:
        """The hashes of (unit, group)."""
        places = self.places[asked]
        assert self.rows.units is not None  # as the caller of this module saw
        hashes = [self.rows.units.hashes(self.key, 0, places)]
        if self.groups is not None:
            hashes.append(self._of_groups(self.groups, self.codes[places]))
        return combine(hashes)

    def __call__(self, asked: Numbers) -> tuple[Hashes, Hashes]:
        places = self.places[asked]
        group = self.of_groups(asked)
        hashes = [group]
        chosen = self.rows.at(places)
        parts = [
            part for part in (*self.plan.parts, *self.plan.grids) if isinstance(part, GridCounts) or not of_units(part)
        ]
        read = dict.fromkeys((each, isinstance(part, CountRows)) for part in parts for each in readings_of(part))
        for place, (each, presence) in enumerate(read):
            if isinstance(each, LatticeSum):
                vector = evaluated(each.value, chosen)
                cells, kind = Vector(lattice_steps(each, vector), vector.valid), Type.INTEGER
            else:
                cells, kind = evaluated(each, chosen), each.type
                if presence:
                    cells, kind = Vector(np.zeros(len(places), np.int64), cells.valid), Type.INTEGER
            hashes.append(hash_vector(self.key, 1 + place, cells, kind))
        return combine(hashes), group

    def _of_groups(self, groups: Groups, codes: Numbers) -> Hashes:
        occurs = np.zeros(groups.cells, dtype=bool)
        occurs[codes] = True
        distinct = np.flatnonzero(occurs)
        vectors = groups.values(distinct)
        kinds = [key.expr.type for key in self.plan.keys]
        salts = range(1_000, 1_000 + len(kinds))
        made = [hash_vector(self.key, salt, v, kind) for salt, v, kind in zip(salts, vectors, kinds, strict=True)]
        table = np.zeros(groups.cells, dtype=np.uint64)
        table[distinct] = combine(made)
        return table[codes]
