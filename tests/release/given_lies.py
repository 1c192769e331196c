"""Lies planted in intervals of rows that noisy values chose, each beside a check that it fails.

A lie is a monkeypatch of dpsql; its check passes on the honest engine. `test_given_lies` runs them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpsql.accuracy import truncated
from dpsql.release.intervals import conditions as noise_conditions
from dpsql.release.intervals import intervals as noise_intervals
from dpsql.release.intervals import shown_conditions as noise_given
from dpsql.release.intervals.shown_conditions import ShownCondition
from tests.lies import Check, Lie, Patch
from tests.release import test_coins_of_thresholds as coins
from tests.release import test_intervals_of_chosen_rows as chosen
from tests.release import test_intervals_of_shown_groups as shown


def forget_that_the_group_was_shown(patch: Patch) -> None:
    """Intervals over all draws, as if hidden groups were seen too."""
    patch.setattr(noise_intervals, "threshold_of", lambda _release: ShownCondition())


def take_the_window_from_the_wrong_side(patch: Patch) -> None:
    """As if groups below the threshold were the ones shown."""
    honest = truncated.interval_within

    def turned(tail: Any, y: Any, low: float, high: float, level: float, **more: Any) -> Any:
        assert math.isinf(high)
        return honest(tail, y, -math.inf, float(np.max(y, initial=low)), level, **more)

    patch.setattr(truncated, "interval_within", turned)


def miss_twice_as_often(patch: Patch) -> None:
    """All of what may be missed on either side."""
    honest = truncated.interval_within
    patch.setattr(
        truncated,
        "interval_within",
        lambda tail, y, low, high, level, **more: honest(tail, y, low, high, 2 * level - 1, **more),
    )


def forget_the_coin_in_having(patch: Patch) -> None:
    """A condition beside the threshold makes the coin's weight that of a full step."""
    honest = noise_given.Window.within
    patch.setattr(noise_given.Window, "within", lambda self, other: replace(honest(self, other), edge=1.0))


def take_the_coin_for_certain(patch: Patch) -> None:
    """As if all that is a step short of the threshold were shown."""
    honest = truncated.interval_within
    patch.setattr(truncated, "interval_within", lambda *args, **more: honest(*args, **{**more, "edge": 1.0}))


def raise_no_level(patch: Patch) -> None:
    """What has noise in common with the count keeps its plain interval."""

    def plain(_release: Any, released: Any, _windows: Any, level: float) -> Any:
        yield np.arange(released.groups), level

    patch.setattr(noise_intervals, "raised_levels", plain)


def believe_the_count_that_is_shown(patch: Patch) -> None:
    """The chance of being shown at the noisy count, not at the least one it may stand for."""
    honest = truncated.chance_within

    def of_shown(tail: Any, low: float, high: float, lower: Any, upper: Any, **more: Any) -> Any:
        middle = np.maximum(low, (lower + upper) / 2)
        return honest(tail, low, high, middle, middle, **more)

    patch.setattr(truncated, "chance_within", of_shown)


def forget_having(patch: Patch) -> None:
    """As if groups that did not pass were seen too."""
    patch.setattr(ShownCondition, "further", lambda self, *_conditions: self)


def drop_the_union_bound(patch: Patch) -> None:
    """The first of many rows are taken for rows like others."""
    patch.setattr(ShownCondition, "level", lambda _self, _release, _coordinates, level: level)


def drop_the_other_end_of_a_window(patch: Patch) -> None:
    """Of BETWEEN the second half."""
    honest = noise_given.Window.within
    patch.setattr(
        noise_given.Window, "within", lambda self, other: replace(honest(self, other), low=self.low, high=self.high)
    )


def end_windows_a_step_too_early(patch: Patch) -> None:
    """Equal values are taken for larger ones."""
    honest = noise_conditions._switch

    def early(*args: Any) -> Any:
        found = honest(*args)
        return None if found is None else (found[0] - 1, found[1])

    patch.setattr(noise_conditions, "_switch", early)


def read_every_condition_as_fine(patch: Patch) -> None:
    """No line is shown."""
    patch.setattr(ShownCondition, "overlooks", lambda *_: False)


def having_coverage() -> None:
    for sql in chosen.ONE_VALUE[:3]:
        chosen.test_a_value_that_was_compared_holds_given_that_its_row_is_shown(sql, "laplace", 1)


def between_coverage() -> None:
    chosen.test_a_value_that_was_compared_holds_given_that_its_row_is_shown(chosen.ONE_VALUE[4], "laplace", 1)


def window_ends() -> None:
    chosen.test_windows_end_where_the_condition_does("COUNT(*) >= 20")


def ranked_coverage() -> None:
    chosen.test_rows_that_were_ranked_hold_all_at_once(chosen.RANKED[0])


def lines() -> None:
    chosen.test_a_line_says_what_intervals_do_not_know(*chosen.UNREAD[1])


def count_levels() -> None:
    shown.test_the_first_values_above_a_threshold()


def count_ends() -> None:
    shown.test_the_ends_are_the_exact_ones(1)


def count_coverage() -> None:
    shown.test_counts_hold_given_that_they_are_shown_whatever_they_are(0, "laplace", 1)


def coins_in_having() -> None:
    for words in coins.HAVING:
        coins.test_conditions_beside_a_threshold_know_of_the_coin(words, 0.5)


def joint_coverage() -> None:
    shown.test_what_has_noise_in_common_with_the_count_holds_too(0)


LIES: list[tuple[Lie, Check]] = [
    (forget_that_the_group_was_shown, count_coverage),
    (forget_that_the_group_was_shown, joint_coverage),
    (take_the_window_from_the_wrong_side, count_coverage),
    (take_the_coin_for_certain, count_ends),
    (take_the_coin_for_certain, coins_in_having),
    (forget_the_coin_in_having, coins_in_having),
    (miss_twice_as_often, count_coverage),
    (miss_twice_as_often, count_levels),
    (raise_no_level, joint_coverage),
    (believe_the_count_that_is_shown, joint_coverage),
    (forget_having, having_coverage),
    (take_the_window_from_the_wrong_side, having_coverage),
    (drop_the_other_end_of_a_window, between_coverage),
    (end_windows_a_step_too_early, window_ends),
    (drop_the_union_bound, ranked_coverage),
    (read_every_condition_as_fine, lines),
]
