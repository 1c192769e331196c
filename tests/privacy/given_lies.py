"""Lies planted in intervals of rows that noisy values chose, each beside a check that it fails.

A lie is a monkeypatch of dpsql; its check passes on the honest engine. `test_given_lies` runs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpsql import noise_given, noise_intervals
from dpsql.noise_given import Given
from tests.privacy import test_intervals_of_shown_groups as shown

Patch = pytest.MonkeyPatch
Lie = Callable[[Patch], None]
Check = Callable[[], None]


def forget_that_the_group_was_shown(patch: Patch) -> None:
    """Intervals over all draws, as if hidden groups were seen too."""
    patch.setattr(noise_intervals, "threshold_of", lambda _release: Given())


def take_the_window_from_the_wrong_side(patch: Patch) -> None:
    """As if groups below the threshold were the ones shown."""
    honest = noise_given.interval_within

    def turned(tail: Any, y: Any, low: float, high: float, level: float, **more: Any) -> Any:
        assert math.isinf(high)
        return honest(tail, y, -math.inf, max(low, float(np.max(y))), level, **more)

    patch.setattr(noise_given, "interval_within", turned)


def miss_twice_as_often(patch: Patch) -> None:
    """All of what may be missed on either side."""
    honest = noise_given.interval_within
    patch.setattr(
        noise_given,
        "interval_within",
        lambda tail, y, low, high, level, **more: honest(tail, y, low, high, 2 * level - 1, **more),
    )


def raise_no_level(patch: Patch) -> None:
    """What has noise in common with the count keeps its plain interval."""

    def plain(_window: Any, _noisy: Any, groups: int, level: float) -> Any:
        yield np.arange(groups), level

    patch.setattr(noise_intervals, "raised_levels", plain)


def believe_the_count_that_is_shown(patch: Patch) -> None:
    """The chance of being shown at the noisy count, not at the least one it may stand for."""
    honest = noise_given.chance_within

    def of_shown(tail: Any, low: float, high: float, lower: Any, upper: Any) -> Any:
        middle = np.maximum(low, (lower + upper) / 2)
        return honest(tail, low, high, middle, middle)

    patch.setattr(noise_given, "chance_within", of_shown)


def count_levels() -> None:
    shown.test_the_first_values_above_a_threshold()


def count_coverage() -> None:
    shown.test_counts_hold_given_that_they_are_shown_whatever_they_are(0, "laplace", 1)


def joint_coverage() -> None:
    shown.test_what_has_noise_in_common_with_the_count_holds_too(0)


LIES: list[tuple[Lie, Check]] = [
    (forget_that_the_group_was_shown, count_coverage),
    (forget_that_the_group_was_shown, joint_coverage),
    (take_the_window_from_the_wrong_side, count_coverage),
    (miss_twice_as_often, count_coverage),
    (miss_twice_as_often, count_levels),
    (raise_no_level, joint_coverage),
    (believe_the_count_that_is_shown, joint_coverage),
]
