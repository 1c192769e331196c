"""Lies planted in joins that make more rows than are held at once, each beside a check that it fails.

A lie is a monkeypatch of dpsql; its check passes on the honest engine. `test_large_joins` runs them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpsql.core import row_limits
from dpsql.executors.pandas import blockwise
from dpsql.executors.pandas import unit_chunks as slices
from dpsql.executors.pandas.joins import pairing
from dpsql.executors.pandas.sums import partials
from dpsql.executors.pandas.units import large_units
from tests.core import unit_checks
from tests.core.slice_checks import OF_FANNED, check_alike, check_limits_of_pairs
from tests.core.unit_checks import G22, R2, R3, R4G3C2, Question
from tests.lies import Check, Lie, Patch


def keep_the_first_rows(patch: Patch) -> None:
    """Whatever their hashes are."""
    patch.setattr(large_units._Block, "hashes", lambda _self, places: np.arange(len(places), dtype=np.uint64))


def let_positions_into_the_hash(patch: Patch) -> None:
    honest, odd = large_units._Block.hashes, np.uint64(0x9E3779B97F4A7C15)
    patch.setattr(
        large_units._Block, "hashes", lambda self, places: honest(self, places) ^ (places.astype(np.uint64) * odd)
    )


def limit_each_block_by_itself(patch: Patch) -> None:
    honest = large_units._LeastHashes._least

    def least(self: Any, hashes: Any, groups: Any) -> Any:
        return np.arange(len(hashes)) if len(hashes) == len(self.blocks) else honest(self, hashes, groups)

    patch.setattr(large_units._LeastHashes, "_least", least)


def forget_the_blocks_before(patch: Patch) -> None:
    honest = large_units._LeastHashes.add

    def add(self: Any, number: int, block: Any, places: Any) -> None:
        self.__init__(self.limits, grouped=self.grouped)
        honest(self, number, block, places)

    patch.setattr(large_units._LeastHashes, "add", add)


def choose_groups_in_each_block(patch: Patch) -> None:
    def inside(self: Any, groups: Any) -> Any:
        if groups is None:
            return self.places
        least = {name for name, _ in self.least_groups(len(groups))}
        present = np.unique(self.codes[self.places])
        wanted = [name in least for name in self.names(present)]
        return self.places[np.isin(self.codes[self.places], present[np.array(wanted, dtype=bool)])]

    patch.setattr(large_units._Block, "inside", inside)


def forget_the_limit_of_a_group(patch: Patch) -> None:
    patch.setattr(large_units, "_LeastHashes", lambda limits, grouped: _chosen(limits, grouped=grouped and False))


_chosen = large_units._LeastHashes


def clip_each_block_by_itself(patch: Patch) -> None:
    """The parts of a unit, for each block and then added up."""

    def add_to(self: Any, totals: Any) -> None:
        for rows in self.blocks():
            totals.add(self.work.run(self.plan, rows, self.work.predicates).partial())

    patch.setattr(large_units._LargeUnit, "add_to", add_to)


def count_different_values_in_each_part(patch: Patch) -> None:
    def add(self: Any, groups: Any, values: Any) -> None:
        cells = [(len(self._numbers), cell) for cell in partials.cells_of(values, self._kind)]
        numbers = [
            self._numbers.setdefault((place, cell, at), len(self._numbers)) for at, (place, cell) in enumerate(cells)
        ]
        self._pairs = np.concatenate([self._pairs, np.column_stack([groups, np.array(numbers, dtype=np.int64)])])

    patch.setattr(partials._Values, "add", add)


def tear_units_between_slices(patch: Patch) -> None:
    """Every row alone: a unit with its limits in each."""
    honest = slices._by_unit

    def by_row(database: Any, source: Any) -> Any:
        made, count = honest(database, source)
        if len(made) > 1:
            return made, count
        rows = len(made[0].order)
        return [slices._Rows(made[0].scan, made[0].rows, made[0].order, np.arange(rows + 1))], rows

    patch.setattr(slices, "_by_unit", by_row)


def count_the_pairs_of_each_block(patch: Patch) -> None:
    """Of a person with too many, those of a block are few enough."""

    def within(database: Any, node: Any, right: Any, most: int) -> bool:
        for left in blockwise.blocks(database, node.left, most):
            meeting = pairing.PairingJoin.of(node, left if node.outer else left.settled(), right)
            return int(meeting.runs.pairs.sum()) <= pairing.most_pairs(database.fan_out(node))
        return True

    patch.setattr(blockwise, "_within", within)


def without_row_limits(check: Check) -> Check:
    """The check for plans without row limits, below which all rows of a unit are held at once."""

    def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_limits, "limit_join_inputs", lambda plan, _options: plan)
            unit_checks.executors_of.cache_clear()
            check()

    return run


def limit_the_pairs_of_all_people(patch: Patch) -> None:
    """One person's pairs push out everybody's."""

    def leave_out(left: Any, pairs: Any, most: int) -> None:
        if left.units is not None and int(pairs.sum()) > max(most, left.rows):
            pairs[:] = 0

    patch.setattr(pairing, "leave_out_heavy_units", leave_out)


def leave_out_a_person_only_in_blocks(patch: Patch) -> None:
    """The limit that is for rows held whole, for the rows that come in pieces as well."""
    honest = blockwise._joined

    def joined(database: Any, node: Any, most: int) -> Any:
        if len(list(honest(database, node, most))) <= 1:
            yield from honest(database, node, most)

    patch.setattr(blockwise, "_joined", joined)


def alike(sql: str, limits: dict[str, int], *, apart: bool = True) -> Check:
    def check() -> None:
        unit_checks.executors_of.cache_clear()
        check_alike(Question(f"SELECT {sql}", limits), (1, 2, 5), databases=5, apart=apart)

    return check


def limited(sql: str, limits: dict[str, int], pairs: int = 3) -> Check:
    return lambda: check_limits_of_pairs(Question(f"SELECT {sql}", limits), pairs, fanned_out=1 << 20, databases=5)


BY_TAG = f"tag, COUNT(*), AVG(y * w) {OF_FANNED} GROUP BY tag"
OF_PAIRS = "COUNT(*), AVG(a.y) FROM e AS a JOIN e AS b ON a.pid = b.pid"
AFTER_A_FAN_OUT = "COUNT(*), AVG(e.y) FROM e JOIN tags ON tags.k = e.k JOIN e AS b ON e.pid = b.pid"
LIES: list[tuple[Lie, Check]] = [
    (keep_the_first_rows, alike(f"AVG(y * w) {OF_FANNED}", R3)),
    (let_positions_into_the_hash, alike(f"AVG(y * w) {OF_FANNED}", R3)),
    (limit_each_block_by_itself, alike(f"COUNT(*), AVG(y) {OF_FANNED}", R3)),
    (forget_the_blocks_before, alike(f"COUNT(*), AVG(y) {OF_FANNED}", R3)),
    (choose_groups_in_each_block, alike(BY_TAG, G22)),
    (forget_the_limit_of_a_group, alike(BY_TAG, R4G3C2)),
    (clip_each_block_by_itself, alike(f"COUNT(*) {OF_FANNED}", R2)),
    (count_different_values_in_each_part, alike(f"COUNT(DISTINCT y) {OF_FANNED}", R3)),
    (tear_units_between_slices, alike(f"COUNT(*), AVG(y) {OF_FANNED}", R2, apart=False)),
    (leave_out_a_person_only_in_blocks, alike(BY_TAG, R3)),
    (limit_the_pairs_of_all_people, limited(OF_PAIRS, R3)),
    (count_the_pairs_of_each_block, without_row_limits(limited(AFTER_A_FAN_OUT, R3, pairs=6))),
]  # fmt: skip
