"""Which rows of a privacy unit are counted where it has more than its limits allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import Edges, ExactPlan, LatticeSum, LeadingDigits, UnitMean, UnitTotal, of_units
from dpsql.executors.keyed_hash import HashInput, HashKey, contributed, limbs_of_key
from dpsql.executors.pandas.columns.declared_columns import lattice_steps
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.groups import Groups
from dpsql.executors.pandas.hashing import HashedRows, combine, hash_key, hash_vector, numbers_of
from dpsql.executors.pandas.relations import Relation
from dpsql.executors.pandas.units.bounding import keep_groups, keep_rows
from dpsql.executors.pandas.units.unit_totals import UnitPairs
from dpsql.plan.domains import cells_of, vector_of
from dpsql.plan.expressions import Vector
from dpsql.plan.query import GroupKey
from dpsql.schema.frozen import dataclass

Numbers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, repr=False)
class UnitRows:
    """For every row its unit, its group where all rows of a unit in so many groups count (`groups`), and where rows are
    limited as well (`rows`). Rows that are left out have the group `cells`."""

    units: NDArray[Any]
    groups: Numbers
    rows: Numbers
    by_pairs: bool = False
    """Whether some part adds values up inside units."""
    found: dict[str, UnitPairs] = field(default_factory=dict)

    def pairs(self) -> UnitPairs:
        """The pairs of units and groups, found once for all parts of a plan."""
        if "pairs" not in self.found:
            self.found["pairs"] = UnitPairs.of(self.units, self.groups)
        return self.found["pairs"]


def choose_rows(plan: ExactPlan, rows: Relation, codes: Numbers, groups: Groups | None, key: bytes) -> UnitRows:
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
        kept = keep_groups(_at(units, places), _at(codes, places), limit, ask, rows.units.count)
        if kept is not None:
            by_group = codes.copy()
            by_group[places[~kept]] = cells
            places = places[kept]
    by_row = by_group
    if plan.limits is not None and (plan.grids or not all(map(of_units, plan.parts))):
        ask = RowHashes(plan, rows, codes, groups, key, places)
        by = _at(codes, places) if groups is not None else None
        limits = plan.limits
        if limits.groups >= cells:  # nobody is in more groups than there are
            limits = replace(limits, groups=limits.rows)
        kept = keep_rows(_at(units, places), by, limits, ask, rows.units.count)
        if kept is not None:
            by_row = by_group.copy()
            by_row[places[~kept]] = cells
    counted = by_group if any(map(of_units, plan.parts)) else by_row
    by_pairs = any(isinstance(part, UnitTotal | UnitMean) for part in plan.parts)
    return UnitRows(units, counted, by_row, by_pairs)


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
        return numbers_of(self._begun(self.places[asked]), self._key.of_groups)

    def of_rows(self, asked: Numbers) -> Hashes:
        """The hashes of (unit, group, what the row contributes)."""
        places = self.places[asked]
        own, chosen = self._begun(places), self.rows.at(places)
        for each in contributed(self.plan):  # one after the other: of no more columns at once than of one
            own = combine(self._key, [own, hash_vector(self._key, self._cells(each, chosen), each.limbs)])
        return numbers_of(own, self._key.lanes)

    def __call__(self, asked: Numbers) -> Sequence[Hashes]:
        """Both, of rows and of groups; whichever is read is computed."""
        return _RowAndGroupHashes(self, asked)

    @property
    def _key(self) -> HashKey:
        return hash_key(self.key)

    def _begun(self, places: Numbers) -> HashedRows:
        """The polynomials of (unit, group)."""
        assert self.rows.units is not None  # as the caller of this module saw
        unit = self.rows.units.hashes(self._key, places)
        if self.groups is None:
            return unit
        return combine(self._key, [unit, self._of_groups(self.groups, self.codes[places])])

    def _cells(self, reading: HashInput, rows: Relation) -> Vector:
        """What rows contribute of one reading."""
        of = reading.of
        if isinstance(of, LatticeSum):
            vector = evaluated(of.value, rows)
            return Vector(lattice_steps(of, vector), vector.valid)
        if isinstance(of, GroupKey | Edges | LeadingDigits):
            from dpsql.executors.pandas.sums.points import places_of  # loaded with the first grid

            places = places_of(of, rows)
            return Vector(places, places >= 0)
        return evaluated(of, rows)

    def _of_groups(self, groups: Groups, codes: Numbers) -> HashedRows:
        occurs = np.zeros(groups.cells, dtype=bool)
        occurs[codes] = True
        distinct = np.flatnonzero(occurs)
        columns = [
            hash_vector(self._key, _named(key, cells), limbs_of_key(key))
            for key, cells in zip(self.plan.keys, groups.values(distinct), strict=True)
        ]
        hashed = combine(self._key, columns)
        table = np.zeros((len(hashed.lanes), groups.cells), dtype=np.uint64)
        table[:, distinct] = hashed.lanes
        return HashedRows(table[:, codes], hashed.limbs)


class _RowAndGroupHashes(Sequence[Hashes]):
    """The hashes of some rows, and those of their groups."""

    def __init__(self, hashes: RowHashes, asked: Numbers) -> None:
        self._of = (hashes.of_rows, hashes.of_groups)
        self._asked = asked

    def __len__(self) -> int:
        return len(self._of)

    def __getitem__(self, place: Any) -> Any:
        return self._of[place](self._asked)


def _named(key: GroupKey, cells: Vector) -> Vector:
    """A key of groups as it is hashed: by its place in a public list, else by its value."""
    if key.values is None:
        return cells
    kind = key.expr.type
    place = {value: number for number, value in enumerate(cells_of(vector_of(key.values, kind), kind))}
    found = [place[cell] for cell in cells_of(cells, kind)]
    return Vector(np.array(found, dtype=np.int64))
