"""Accumulators: for each part of a plan a total per group, summed block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import (
    LARGEST_STEP_COUNT,
    CountRows,
    LatticeProduct,
    LatticeShare,
    LatticeSum,
    Part,
)
from dpsql.executors.pandas.columns.declared_columns import lattice_steps
from dpsql.executors.pandas.groups import Codes
from dpsql.executors.pandas.sums.moments import LARGEST_MOMENT, Division, moment_steps
from dpsql.executors.pandas.sums.partials import DistinctPairs
from dpsql.plan.expressions import Bools, Expr, Vector
from dpsql.schema.frozen import dataclass

_LARGEST_ACCUMULATED = 2**62
_HALF = 32


@dataclass(frozen=True, repr=False)
class Block:
    """Rows start..stop: `kept` marks those that pass the filters (None: all), `codes` their groups (None: one group).

    A row that is not kept has the code `cells`.
    """

    start: int
    stop: int
    kept: Bools | None
    codes: Codes | None
    cells: int

    def counts(self, valid: Bools | None) -> NDArray[np.int64]:
        """Count the kept, valid rows of each group."""
        if self.codes is None:
            mask = both(self.kept, valid)
            found = self.stop - self.start if mask is None else int(np.count_nonzero(mask))
            return np.array([found], dtype=np.int64)
        codes = self.codes if valid is None else np.where(valid, self.codes, self.cells)
        return np.bincount(codes, minlength=self.cells + 1)[: self.cells]

    def all_codes(self) -> NDArray[np.int64]:
        """Return the group of every row, `cells` for dropped rows."""
        if self.codes is not None:
            return self.codes
        everywhere = np.zeros(self.stop - self.start, dtype=np.int64)
        return everywhere if self.kept is None else everywhere + ~self.kept

    def add_to(self, total: NDArray[np.int64], steps: NDArray[np.int64]) -> None:
        """Add the kept rows' integers to the groups' totals, which have an extra last cell."""
        if self.codes is not None:
            np.add.at(total, self.codes, steps)
        else:
            total[0] += (steps if self.kept is None else steps * self.kept).sum()


def both(a: Bools | None, b: Bools | None) -> Bools | None:
    """Return where both hold; None is everywhere."""
    if a is None or b is None:
        return a if b is None else b
    return a & b


class Accumulator:
    """Accumulator of one part. `read`: its expressions' values in the block; `seen`: the block's rows in each group."""

    def add(self, block: Block, read: Mapping[Expr, Vector], seen: NDArray[np.int64]) -> None:
        """Add a block."""
        raise NotImplementedError

    def values(self) -> NDArray[Any]:
        """Return the total of each group."""
        raise NotImplementedError

    def different(self, _groups: NDArray[Any]) -> DistinctPairs | None:
        """Return the values of a distinct count in these groups, to be merged with others."""
        return None


class RowCount(Accumulator):
    """Accumulator of a CountRows."""

    def __init__(self, part: CountRows, cells: int) -> None:
        self.part = part
        self.total: NDArray[np.int64] = np.zeros(cells, dtype=np.int64)

    def add(self, block: Block, read: Mapping[Expr, Vector], seen: NDArray[np.int64]) -> None:
        present = self.part.present
        valid = None if present is None else read[present].valid
        self.total += seen if valid is None else block.counts(valid)

    def values(self) -> NDArray[Any]:
        return self.total


class Sum(Accumulator):
    """Accumulator of a LatticeSum. int64 partial sums are moved to Python integers before they could exceed 2^62. Large
    numbers, of which few would exceed it, are summed in two halves."""

    def __init__(self, part: LatticeSum, cells: int) -> None:
        self.part = part
        self.partial: NDArray[np.int64] = np.zeros(cells + 1, dtype=np.int64)
        self.moved: NDArray[Any] | None = None
        largest = max(1, abs(part.least), abs(part.most))
        wide = largest >= LARGEST_STEP_COUNT
        self.high = Sum(_high_half(part), cells) if wide else None
        self.room = _LARGEST_ACCUMULATED // (2**_HALF if wide else largest)
        self.rows = 0

    def add(self, block: Block, read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        vector = read[self.part.value]
        self.add_steps(block, lattice_steps(self.part, vector), vector.valid)

    def add_steps(self, block: Block, steps: NDArray[np.int64], valid: Bools | None) -> None:
        if valid is not None:
            steps = steps * valid
        if self.high is not None:
            self.high.add_steps(block, steps >> _HALF, None)
            steps = steps & (2**_HALF - 1)
        if self.rows + len(steps) > self.room:
            self.moved = self.partial.astype(object) + (0 if self.moved is None else self.moved)
            self.partial[:] = 0
            self.rows = 0
        self.rows += len(steps)
        block.add_to(self.partial, steps)

    def values(self) -> NDArray[Any]:
        total = self.partial if self.moved is None else self.partial.astype(object) + self.moved
        if self.high is not None:
            return np.asarray(total[:-1].astype(object) + self.high.values().astype(object) * 2**_HALF, dtype=object)
        return total[:-1]


def _high_half(part: LatticeSum) -> LatticeSum:
    """Return the high half of whole numbers too large for one sum: floor(q / 2^32), without the remainder."""
    least, most = part.least >> _HALF, part.most >> _HALF
    return replace(part, lower=least, upper=most, least=least, most=most)


class MomentSum(Accumulator):
    """Accumulator of products of values, or shares of rows: each below 2^45, like those of a sum."""

    def __init__(self, part: LatticeProduct | LatticeShare, cells: int, division: Division) -> None:
        self.part = part
        self.division = division
        first, second = part.first, part.second
        self.sum = Sum(replace(first, least=-LARGEST_MOMENT, most=LARGEST_MOMENT), cells)
        self.exprs = (first.value, second.value)

    def add(self, block: Block, read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        first, second = (read[expr] for expr in self.exprs)
        valid = both(first.valid, second.valid)
        if isinstance(self.part, LatticeProduct):
            self.sum.add_steps(block, moment_steps(self.part, first, second), valid)
        else:
            self.sum.add_steps(block, self.division.steps(self.part, first, second, block.start), valid)

    def values(self) -> NDArray[Any]:
        return self.sum.values()


def accumulator_of(part: Part, cells: int, division: Division) -> Accumulator | None:
    """Return the accumulator of a part; None for parts over units and distinct values (see `unit_sums`)."""
    if isinstance(part, LatticeSum):
        return Sum(part, cells)
    if isinstance(part, CountRows):
        return RowCount(part, cells)
    if isinstance(part, LatticeProduct | LatticeShare):
        return MomentSum(part, cells, division)
    return None
