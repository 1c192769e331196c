"""Lies about cells, each beside a check that it fails."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.core.mechanisms import coordinate_classes as classes
from dpsql.core.sensitivity import extreme_points as vertices
from dpsql.core.sensitivity import norms as reach
from dpsql.executors.pandas.sums import alternatives
from tests.core import test_cells as cells
from tests.core import test_reach as small
from tests.core.test_reach import B, U
from tests.executors.pandas import test_alternatives as sums
from tests.lies import Check, Lie, Patch


def believe_that_alternatives_exclude_each_other(patch: Patch) -> None:
    """A row is in every cell whose alternative is TRUE."""

    def add(self: Any, block: Any, read: Any, _seen: Any) -> None:
        each = read[self.part.alternatives[self.part.number - 1]]
        true = each.values.astype(bool) & each.where_valid()
        codes = None if block.codes is None else np.where(true, block.codes, block.cells)
        kept = true if block.kept is None else block.kept & true
        rows = alternatives.Block(block.start, block.stop, kept, codes, block.cells)
        self.of.add(rows, read, rows.counts(None))

    patch.setattr(alternatives.CellSum, "add", add)


def take_the_last_alternative(patch: Patch) -> None:
    """The sums of a cell are of other rows than the plan says."""
    honest = alternatives.CellNumbers.of

    def of(self: Any, given: Any, block: Any, read: Any) -> Any:
        turned = honest(self, given[::-1], block, read)
        return np.where(turned > 0, len(given) + 1 - turned, 0)

    patch.setattr(alternatives.CellNumbers, "of", of)


def count_the_largest_class_alone(patch: Patch) -> None:
    """Of a row that moves several classes."""

    def over(sizes: Any, _classes: Any) -> int:
        return max((size for _, size in sizes), default=0)

    patch.setattr(vertices, "_over_classes", over)


def take_the_first_cell_for_all(patch: Patch) -> None:
    honest = reach._alternatives
    patch.setattr(reach, "_alternatives", lambda found: honest(found[:1]))


def forget_that_a_row_may_be_in_no_cell(patch: Patch) -> None:
    """Cells that are too many to go through are taken as independent, but each is sure to have the row."""
    patch.setattr(reach, "MOST_PATTERNS", 1)
    patch.setattr(reach, "_alternatives", lambda found: (block for blocks in found for block in blocks))


def take_cells_of_other_alternatives_for_one_block(patch: Patch) -> None:
    """That a row is in a cell of one list of alternatives says nothing of another list."""
    honest = reach._cell_of
    numbers: dict[Any, int] = {}

    def cell_of(part: Any) -> Any:
        found, number, of = honest(part)
        return (("one",), numbers.setdefault((found, number), len(numbers)), of) if found else (found, number, of)

    patch.setattr(reach, "_cell_of", cell_of)


def give_half_a_row_to_shares(patch: Patch) -> None:
    patch.setattr(reach, "SHARE_STEPS", reach.SHARE_STEPS // 2)


def halve_the_noise_of_classes(patch: Patch) -> None:
    honest = classes.ClassLaplace.calibrate.__func__  # type: ignore[attr-defined]

    def calibrate(cls: Any, found: Any, epsilon: Fraction) -> Any:
        made = honest(cls, found, epsilon)
        return cls(made.exact_scale / 2, made.classes, made.epsilon)

    patch.setattr(classes.ClassLaplace, "calibrate", classmethod(calibrate))


def reaches() -> None:
    """Of every case, under both relations, with groups and without."""
    small._forget()
    try:
        for case in cells.CASES.values():
            for bound in cells.BOUNDS[:2]:
                for neighbours, grouped in ((U, True), (U, False), (B, False)):
                    cells.assert_no_further(case, bound, neighbours, grouped=grouped)
    finally:
        small._forget()


def scales() -> None:
    cells.test_its_scale_is_what_the_reach_asks_for()


LIES: list[tuple[Lie, Check]] = [
    (believe_that_alternatives_exclude_each_other, sums.check_sums),
    (believe_that_alternatives_exclude_each_other, sums.test_a_row_is_in_no_two_cells),
    (take_the_last_alternative, sums.check_sums),
    (count_the_largest_class_alone, reaches),
    (take_the_first_cell_for_all, reaches),
    (forget_that_a_row_may_be_in_no_cell, reaches),
    (take_cells_of_other_alternatives_for_one_block, reaches),
    (give_half_a_row_to_shares, reaches),
    (halve_the_noise_of_classes, scales),
]
