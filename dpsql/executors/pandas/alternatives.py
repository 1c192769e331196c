"""Sums over cells: of the alternatives of a plan each row has the first that is TRUE, and no other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpsql.core.exact import InCell
from dpsql.executors.pandas.accumulators import Accumulator, Block, both
from dpsql.plan.expressions import Expr, Vector

Numbers = NDArray[np.int64]


class CellNumbers:
    """The cell of each row of a block, kept for the parts that are of the same alternatives."""

    def __init__(self) -> None:
        self._found: dict[tuple[Expr, ...], Numbers] = {}
        self._start = -1

    def of(self, alternatives: tuple[Expr, ...], block: Block, read: Mapping[Expr, Vector]) -> Numbers:
        """The number of the first alternative that is TRUE, 0 where none is: one number a row, so that no row is in two
        cells whatever the alternatives say."""
        if block.start != self._start:
            self._found.clear()
            self._start = block.start
        if alternatives not in self._found:
            numbers = np.zeros(block.stop - block.start, dtype=np.int64)
            for number in range(len(alternatives), 0, -1):
                each = read[alternatives[number - 1]]
                numbers[both(each.values.astype(bool, copy=False), each.valid)] = number
            self._found[alternatives] = numbers
        return self._found[alternatives]


class CellSum(Accumulator):
    """Accumulates an InCell: its part, over the rows of the cell."""

    def __init__(self, part: InCell, of: Accumulator, numbers: CellNumbers) -> None:
        self.part = part
        self.of = of
        self.numbers = numbers

    def add(self, block: Block, read: Mapping[Expr, Vector], _seen: NDArray[np.int64]) -> None:
        inside = self.numbers.of(self.part.alternatives, block, read) == self.part.number
        codes = None if block.codes is None else np.where(inside, block.codes, block.cells)
        rows = Block(block.start, block.stop, both(block.kept, inside), codes, block.cells)
        self.of.add(rows, read, rows.counts(None))

    def values(self) -> NDArray[np.int64]:
        return self.of.values()
