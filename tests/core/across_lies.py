"""Lies about noise for all groups together, each beside a check that it fails."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpsql.core.mechanisms import group_vectors as across
from dpsql.executors.pandas.units import large_units, unit_sums
from tests.core import across_questions, unit_checks
from tests.core import test_across as small
from tests.core.across_questions import AROUND, FOLLOWING, check_around, check_following, check_rows_of_two
from tests.lies import Check, Lie, Patch


def forget_the_people(patch: Patch) -> None:
    """That a coordinate moves in groups that a unit is not in, too."""
    honest = across.ends_of
    patch.setattr(across, "_of_all", lambda _parts, _terms: True)
    patch.setattr(across, "AllUnits", type("Nothing", (), {}))
    patch.setattr(across, "ends_of", lambda parts, terms, analysis: honest(*_without(parts, terms), analysis))


def _without(parts: Any, coordinates: Any) -> Any:
    known = {place for place, part in enumerate(parts) if isinstance(part, small.AllUnits)}
    return parts, [[each for each in terms if each[0] not in known] for terms in coordinates]


def count_one_row_of_a_unit(patch: Patch) -> None:
    honest = across.ends_of

    def ends_of(parts: Any, terms: Any, analysis: Any) -> Any:
        rows = replace(analysis.bounds.rows, rows=1, per_group=1)
        return honest(parts, terms, replace(analysis, bounds=replace(analysis.bounds, rows=rows)))

    patch.setattr(across, "ends_of", ends_of)


def let_nobody_change(patch: Patch) -> None:
    """Under bounded neighbours too only one row would come or go."""
    honest = across.reach_across

    def reach_across(plan: Any, terms: Any, analysis: Any) -> Any:
        return honest(plan, terms, replace(analysis, neighbours=small.U))

    patch.setattr(small, "reach_across", reach_across)


def let_one_follow_though_rows_may_be_in_neither(patch: Patch) -> None:
    patch.setattr(across, "_holds_all", lambda _key, _analysis: True)


def let_one_follow_though_the_number_of_rows_is_private(patch: Patch) -> None:
    honest = across.stability
    patch.setattr(across, "stability", lambda source: replace(honest(source), every_row=True))


def let_one_follow_where_rows_come_and_go(patch: Patch) -> None:
    patch.setattr(across, "Neighbours", type("Any", (), {"BOUNDED": small.U}))


def let_sums_follow(patch: Patch) -> None:
    """As if values went with the rows."""
    honest = across._kind
    patch.setattr(across, "_kind", lambda parts, *, sure: across.EITHER if sure else honest(parts, sure=sure))


def draw_once_for_all_groups(patch: Patch) -> None:
    """Differences of groups would have no noise."""
    honest = across.GroupVectorLaplace.draw

    def draw(self: Any, cells: int) -> Any:
        drawn = honest(self, cells)
        return np.repeat(drawn[:, :1], cells, axis=1)

    patch.setattr(across.GroupVectorLaplace, "draw", draw)


def halve_the_noise_of_all_groups(patch: Patch) -> None:
    honest = across.GroupVectorLaplace.calibrate.__func__  # type: ignore[attr-defined]

    def calibrate(cls: Any, found: Any, epsilon: Fraction) -> Any:
        made = honest(cls, found, epsilon)
        return replace(made, exact_scale=made.exact_scale / 2)

    patch.setattr(across.GroupVectorLaplace, "calibrate", classmethod(calibrate))


def count_people_by_group(patch: Patch) -> None:
    """A person in several groups is several."""
    honest = unit_sums.UnitSum.values

    def values(self: Any) -> Any:
        found = honest(self)
        if not isinstance(self.part, small.AllUnits):
            return found
        rows = [np.concatenate(each) for each in zip(*self.found, strict=True)] if self.found else [np.zeros(0)] * 3
        pairs = len(set(zip(rows[0].tolist(), rows[1].tolist(), strict=True)))
        return np.full(self.cells, pairs)

    patch.setattr(unit_sums.UnitSum, "values", values)


def count_a_large_unit_where_it_is(patch: Patch) -> None:
    """In its own groups alone, when it is run block by block."""
    patch.setattr(large_units, "AllUnits", type("Nothing", (), {}))
    honest = large_units._sums_of
    patch.setattr(large_units, "_sums_of", lambda part: honest(_as_count(part)))
    one = large_units._one_number
    patch.setattr(large_units, "_one_number", lambda part, *rest: one(_as_count(part), *rest))


def _as_count(part: Any) -> Any:
    return small.CountUnits(None) if isinstance(part, small.AllUnits) else part


def reaches() -> None:
    """Of every case, under both relations."""
    for name in small.CASES:
        for neighbours in (small.U, small.B):
            small.test_no_unit_moves_any_group_further_and_some_do_as_far(name, neighbours)


def keys() -> None:
    for key in small.UNSURE:
        small.test_it_does_not_where_a_row_may_be_in_neither(key)


def around() -> None:
    unit_checks.executors_of.cache_clear()
    for asked in AROUND[:3]:
        check_around(asked)


def following() -> None:
    for sql in FOLLOWING:
        check_following(sql)


def large_ones() -> None:
    unit_checks.executors_of.cache_clear()
    across_questions.check_blocks()


LIES: list[tuple[Lie, Check]] = [
    (forget_the_people, reaches),
    (count_one_row_of_a_unit, reaches),
    (let_nobody_change, reaches),
    (let_one_follow_though_rows_may_be_in_neither, keys),
    (let_one_follow_though_rows_may_be_in_neither, check_rows_of_two),
    (let_one_follow_though_the_number_of_rows_is_private, small.test_it_does_not_where_the_number_of_rows_is_private),
    (let_one_follow_though_the_number_of_rows_is_private, check_rows_of_two),
    (let_one_follow_where_rows_come_and_go, small.test_it_does_not_where_the_number_of_rows_is_private),
    (let_sums_follow, following),
    (draw_once_for_all_groups, small.test_each_group_has_a_draw_of_its_own),
    (halve_the_noise_of_all_groups, small.test_its_scale_is_one_for_all),
    (count_people_by_group, around),
    (count_a_large_unit_where_it_is, large_ones),
]
