"""Selection of the rows of a privacy unit that exceeds its contribution bounds."""

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
    """The unit of every row, its group if only groups are limited (`groups`), and its group if rows are limited as well
    (`rows`). Dropped rows have the group `cells`."""

    units: NDArray[Any]
    groups: Numbers
    rows: Numbers
    by_pairs: bool = False
    """True if some part sums values inside units."""
    found: dict[str, UnitPairs] = field(default_factory=dict)

    def pairs(self) -> UnitPairs:
        """Return the pairs of units and groups, computed once for all parts of a plan."""
        if "pairs" not in self.found:
            self.found["pairs"] = UnitPairs.of(self.units, self.groups)
        return self.found["pairs"]


def choose_rows(plan: ExactPlan, rows: Relation, codes: Numbers, groups: Groups | None, key: bytes) -> UnitRows:
    """Bound the contribution of each unit, using only its own rows and the key (see `keep_rows`, `keep_groups`).

    Parts over units use every row in the kept groups. If there are such parts, rows are chosen within those groups, so
    that one unit stays within its limit of groups over all parts together."""
    assert rows.units is not None  # without units there are no limits
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
        if limits.groups >= cells:  # no unit is in more groups than exist
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
    """Keyed hashes of some of the rows at `places`: of (unit, group, contribution), and of (unit, group). They hash
    values, so neither the order of rows nor other rows matter."""

    plan: ExactPlan
    rows: Relation
    codes: Numbers
    groups: Groups | None
    key: bytes
    places: Numbers

    def of_groups(self, asked: Numbers) -> Hashes:
        """Return the hashes of (unit, group)."""
        return numbers_of(self._begun(self.places[asked]), self._key.of_groups)

    def of_rows(self, asked: Numbers) -> Hashes:
        """Return the hashes of (unit, group, contribution)."""
        places = self.places[asked]
        own, chosen = self._begun(places), self.rows.at(places)
        for each in contributed(self.plan):  # one at a time, so that only one column is in memory
            own = combine(self._key, [own, hash_vector(self._key, self._cells(each, chosen), each.limbs)])
        return numbers_of(own, self._key.lanes)

    def __call__(self, asked: Numbers) -> Sequence[Hashes]:
        """Return the hashes of rows and of groups; each is computed when it is read."""
        return _RowAndGroupHashes(self, asked)

    @property
    def _key(self) -> HashKey:
        return hash_key(self.key)

    def _begun(self, places: Numbers) -> HashedRows:
        """Return the polynomials of (unit, group)."""
        assert self.rows.units is not None  # checked by the caller of this module
        unit = self.rows.units.hashes(self._key, places)
        if self.groups is None:
            return unit
        return combine(self._key, [unit, self._of_groups(self.groups, self.codes[places])])

    def _cells(self, reading: HashInput, rows: Relation) -> Vector:
        """Return the rows' contributions of one reading."""
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
    """The hashes of some rows and of their groups, computed on access."""

    def __init__(self, hashes: RowHashes, asked: Numbers) -> None:
        self._of = (hashes.of_rows, hashes.of_groups)
        self._asked = asked

    def __len__(self) -> int:
        return len(self._of)

    def __getitem__(self, place: Any) -> Any:
        return self._of[place](self._asked)


def _named(key: GroupKey, cells: Vector) -> Vector:
    """Return a group key as it is hashed: its index in a public list, or else its value."""
    if key.values is None:
        return cells
    kind = key.expr.type
    place = {value: number for number, value in enumerate(cells_of(vector_of(key.values, kind), kind))}
    found = [place[cell] for cell in cells_of(cells, kind)]
    return Vector(np.array(found, dtype=np.int64))
