"""Accumulators of parts over units, and of counts of distinct values; they gather rows before adding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import (
    AllUnits,
    CountDistinct,
    CountUnits,
    LatticeSum,
    Part,
    UnitMean,
    UnitTotal,
    UnitWeights,
    expressions_of,
)
from dpsql.executors.pandas.columns.declared_columns import lattice_steps
from dpsql.executors.pandas.relations import Relation
from dpsql.executors.pandas.sums.accumulators import Accumulator, Block
from dpsql.executors.pandas.sums.partials import DistinctPairs
from dpsql.executors.pandas.sums.points import DistinctPart
from dpsql.executors.pandas.units.bounding import distinct_pairs
from dpsql.executors.pandas.units.kept_rows import UnitRows
from dpsql.executors.pandas.units.unit_totals import unit_means, unit_totals, unit_weights
from dpsql.plan.expressions import Expr, Vector

_LARGEST_SUM = 2**62


class DistinctTotal(Accumulator):
    """Accumulator of a CountDistinct."""

    def __init__(self, part: DistinctPart) -> None:
        self.part = part

    def add(self, block: Block, _read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        self.part.add(block.start, block.stop, block.all_codes())

    def values(self) -> NDArray[Any]:
        return self.part.values()

    def different(self, groups: NDArray[Any]) -> DistinctPairs:
        return self.part.different(groups)


class UnitSum(Accumulator):
    """Accumulator of a part over units, one number per unit and group: gathers rows by block and sums them at the
    end."""

    def __init__(
        self, part: CountUnits | UnitWeights | UnitTotal | UnitMean | AllUnits, chosen: UnitRows, cells: int
    ) -> None:
        self.part = part
        self.chosen = chosen
        self.cells = cells
        self.found: list[tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]] = []

    def add(self, block: Block, read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        groups = self.chosen.groups[block.start : block.stop]
        vector = next((read[expr] for expr in expressions_of(self.part)), None)
        kept = groups < self.cells
        if vector is not None and vector.valid is not None:
            kept = kept & vector.valid
        steps = np.ones(len(groups), dtype=np.int64)
        of = self.part.of if isinstance(self.part, UnitTotal | UnitMean) else None
        if isinstance(of, LatticeSum) and vector is not None:
            steps = lattice_steps(of, vector)
        units = self.chosen.units[block.start : block.stop]
        whole = bool(kept.all())
        self.found.append((units, groups, steps) if whole else (units[kept], groups[kept], steps[kept]))

    def values(self) -> NDArray[Any]:
        empty = np.zeros(0, dtype=np.int64)
        columns = zip(*self.found, strict=True) if self.found else ([empty], [empty], [empty])
        units, groups, steps = (np.concatenate(list(each)) for each in columns)
        units, groups = units.astype(np.int64, copy=False), groups.astype(np.int64, copy=False)
        by = groups if self.cells > 1 else None
        if isinstance(self.part, AllUnits):
            return np.full(self.cells, distinct_pairs(units, None, 1)[0])
        if isinstance(self.part, CountUnits):
            return distinct_pairs(units, by, self.cells)
        if isinstance(self.part, UnitWeights):
            return unit_weights(units, by, self.cells, self.part.scale)
        run = unit_totals if isinstance(self.part, UnitTotal) else unit_means
        return run(units, by, self.cells, steps, least=self.part.least, most=self.part.most)


class PairCount(Accumulator):
    """Accumulator of a CountUnits of all rows, from the pairs of units and groups found for other parts."""

    def __init__(self, chosen: UnitRows, cells: int) -> None:
        self.chosen, self.cells = chosen, cells

    def add(self, block: Block, read: Mapping[Expr, Vector], seen: NDArray[np.int64]) -> None:
        """Do nothing: the pair of each row is already known."""

    def values(self) -> NDArray[Any]:
        pairs = self.chosen.pairs()
        present = np.flatnonzero((pairs.rows > 0) & (pairs.groups < self.cells))
        by = pairs.groups[present] if self.cells > 1 else None
        return distinct_pairs(pairs.units[present], by, self.cells)


class PairSum(Accumulator):
    """Accumulator of a UnitTotal or UnitMean of values, from the pairs of units and groups. No sum exceeds 2^62: the
    number of rows of a pair is small enough for the size of a step."""

    def __init__(self, part: UnitTotal | UnitMean, of: LatticeSum, chosen: UnitRows, cells: int) -> None:
        self.part, self.of, self.cells = part, of, cells
        self.pairs = chosen.pairs()
        self.sums = np.zeros(len(self.pairs.rows), dtype=np.int64)
        self.missing: NDArray[np.int64] | None = None

    def add(self, block: Block, read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        vector, codes = read[self.of.value], self.pairs.codes[block.start : block.stop]
        steps = lattice_steps(self.of, vector)
        if vector.valid is not None:
            steps = steps * vector.valid
            if self.missing is None:
                self.missing = np.zeros_like(self.sums)
            np.add.at(self.missing, codes, (~vector.valid).astype(np.int64))
        np.add.at(self.sums, codes, steps)

    def values(self) -> NDArray[Any]:
        pairs = self.pairs
        rows = pairs.rows if self.missing is None else pairs.rows - self.missing
        present = np.flatnonzero((rows > 0) & (pairs.groups < self.cells))
        pair = (pairs.units[present], pairs.groups[present], self.cells, self.sums[present])
        least, most = self.part.least, self.part.most
        if isinstance(self.part, UnitTotal):
            return unit_totals(*pair, least=least, most=most)
        return unit_means(*pair, least=least, most=most, counts=rows[present])


def _summed_by_pairs(part: Part, chosen: UnitRows) -> LatticeSum | None:
    """Return the values that a part sums inside units, if each unit's sum fits 64 bits, otherwise None."""
    if not isinstance(part, UnitTotal | UnitMean) or not isinstance(part.of, LatticeSum):
        return None
    largest = max(abs(part.of.least), abs(part.of.most))
    return part.of if largest * int(chosen.pairs().rows.max(initial=0)) <= _LARGEST_SUM else None


def unit_sum_of(part: Part, cells: int, rows: Relation, chosen: UnitRows | None) -> Accumulator:
    """Return the accumulator of a part over units; `chosen` are the kept rows."""
    if isinstance(part, CountDistinct):
        return DistinctTotal(DistinctPart(part, cells, rows))
    assert chosen is not None  # parts over units need them
    assert isinstance(part, CountUnits | UnitWeights | UnitTotal | UnitMean | AllUnits)  # others have their own
    if chosen.by_pairs and isinstance(part, CountUnits) and part.present is None:
        return PairCount(chosen, cells)
    of = _summed_by_pairs(part, chosen)
    if of is not None:
        assert isinstance(part, UnitTotal | UnitMean)  # the only summed parts
        return PairSum(part, of, chosen, cells)
    return UnitSum(part, chosen, cells)
