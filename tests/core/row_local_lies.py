"""Lies planted in row-local evaluation, each beside a check that it fails on every processor.

A lie is a monkeypatch of dpsql; its check passes on the honest engine. `test_row_local_neighbours` runs them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpsql.executors.pandas.columns import declared_columns as columns
from dpsql.plan import evaluation, row_local
from dpsql.plan.expressions import Vector
from dpsql.plan.functions import FUNCTIONS, conditional, real_functions
from dpsql.schema.columns import Type
from tests.core.row_local_checks import PATHS, check_path
from tests.executors.pandas import test_row_local
from tests.lies import Check, Lie, Patch
from tests.plan.records import Use

# How cells reach kernels


def _lay_out(patch: Patch, how: Callable[[Any], Any]) -> None:
    """In every module that lays cells out."""
    honest = evaluation.laid_out
    held = [module for name, module in sys.modules.items() if name.startswith("dpsql.") and module is not row_local]
    for module in held:
        if getattr(module, "laid_out", None) is honest:
            patch.setattr(module, "laid_out", how)


def hand_over_what_there_is(patch: Patch) -> None:
    """Blocks are read in place, however they lie."""
    _lay_out(patch, lambda values: values)


def ask_flags_in_place_of_strides(patch: Patch) -> None:
    """One cell of a reversed column is contiguous, by NumPy's flags."""
    _lay_out(patch, lambda values: np.require(values, requirements=["C", "A"]))


def forget_alignment(patch: Patch) -> None:
    def how(values: Any) -> Any:
        return values if values.strides == (values.itemsize,) else values.copy()

    _lay_out(patch, how)


def copy_where_a_cell_is_bad(patch: Patch) -> None:
    """As np.where does for a block with a NULL: all its cells are laid out because of one."""
    _lay_out(patch, lambda values: values.copy() if values.dtype.kind == "f" and np.isnan(values).any() else values)


def _of_type(patch: Patch, skipped: Callable[[Any], bool]) -> None:
    honest = evaluation.laid_out
    _lay_out(patch, lambda values: values if skipped(values) else honest(values))


def lay_out_reals_alone(patch: Patch) -> None:
    """Times and whole numbers become floats later, which lie as they should."""
    _of_type(patch, lambda values: values.dtype.kind != "f")


def lay_out_whole_blocks_alone(patch: Patch) -> None:
    """A block of one row costs nothing to read in place."""
    _of_type(patch, lambda values: len(values) == 1)


# What one cell does to others


def clip_to_one_zero(patch: Patch) -> None:
    """-0.0 becomes 0.0, where another cell of the block is outside the bounds."""
    honest = columns.clip

    def clip(values: Any, *limits: Any) -> Any:
        held = honest(values, *limits)
        return held if held is values else held + (0.0 if held.dtype.kind == "f" else 0)

    patch.setattr(columns, "clip", clip)


def drop_a_block_with_an_undefined_cell(patch: Patch) -> None:
    """Where one row has no logarithm, none of the block has."""

    honest = real_functions.and_valid
    patch.setattr(real_functions, "and_valid", lambda fits, valid: honest(fits & fits.all(), valid))


def compute_the_last_cells_otherwise(patch: Patch) -> None:
    """As a library may that has a version for eight cells together and one for those that are left."""
    honest = real_functions.elementary

    def elementary(function: Any, *operands: Any) -> Any:
        found = honest(function, *operands)
        left = len(found) // 8 * 8
        found[left:] = np.nextafter(found[left:], 7.0)
        return found

    patch.setattr(real_functions, "elementary", elementary)


def take_the_largest_for_all(patch: Patch) -> None:
    """GREATEST in a precision that the block's largest cell decides."""
    honest = conditional._merge

    def rounded(a: Any, b: Any, operation: Any) -> Any:
        found = honest(a, b, operation)
        values = found.values
        if values.dtype.kind != "f" or not len(values) or not np.abs(values).max() > 1e6:
            return found
        return Vector(values.astype(np.float32).astype(float), found.valid)

    patch.setattr(conditional, "_merge", rounded)


def check_use(name: str, *kinds: Type) -> None:
    test_row_local.check_use(Use(FUNCTIONS[name], kinds), every_case=False)


def on(path: str, layout: str) -> Check:
    return partial(check_path, PATHS[path], layout)


REVERSED, BLOCK = "stride -1", "column of a block"
GATHERED = ("a dictionary", "both sides of a join")
"""Cells that are looked up by number lie in new memory already."""
LIES: list[tuple[Lie, Check]] = [
    *((hand_over_what_there_is, on(path, REVERSED)) for path in PATHS if path not in GATHERED),
    (hand_over_what_there_is, on("a filter", BLOCK)),
    (hand_over_what_there_is, on("a filter", "stride 2")),
    (hand_over_what_there_is, on("a filter", "nullable")),
    (hand_over_what_there_is, on("averages", "odd address")),
    (hand_over_what_there_is, on("a filter", "field of records")),
    (ask_flags_in_place_of_strides, on("a filter", REVERSED)),
    (ask_flags_in_place_of_strides, on("whole numbers", BLOCK)),
    (forget_alignment, on("a filter", "odd address")),
    (copy_where_a_cell_is_bad, on("a filter", REVERSED)),
    (lay_out_reals_alone, on("a time", REVERSED)),
    (lay_out_reals_alone, on("whole numbers", REVERSED)),
    (lay_out_whole_blocks_alone, on("a filter", REVERSED)),
    (clip_to_one_zero, on("a text of a number", "contiguous")),
    (drop_a_block_with_an_undefined_cell, on("a sum", "contiguous")),
    (drop_a_block_with_an_undefined_cell, partial(check_use, "ln", Type.REAL)),
    (compute_the_last_cells_otherwise, partial(check_use, "exp", Type.REAL)),
    (compute_the_last_cells_otherwise, partial(check_use, "power", Type.REAL, Type.REAL)),
    (take_the_largest_for_all, partial(check_use, "greatest", Type.REAL, Type.REAL)),
]
