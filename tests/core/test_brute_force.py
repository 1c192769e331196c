"""Neighbours of random tables under random queries, beside the laws that were drawn and what was charged for them.

Types at their limits, units of every storage, both relations, limits, joins, unions, sub-queries, public tables,
levels, unknown groups, choices and searches; what a measurement is worth follows here from integers and scales alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from dpsql.core.exact import CountDistinct, CountRows
from dpsql.core.sensitivity import norms as reach
from dpsql.executors.pandas.units import kept_rows
from dpsql.release.bounds.auto_bounds import Search
from dpsql.release.choices import Draw
from dpsql.session import prepare
from tests.core.brute_force import Met, ask
from tests.lies import Patch

SEED = 23_11_2026
KINDS = {"Levels", "Draw", "Searches", "ShownGroups", "Share discrete_gaussian", "Share discrete_laplace"}


def ask_at_random(first: int, worlds: int) -> Met:
    met = Met()
    for seed in range(first, first + worlds):
        try:
            ask(random.Random(seed), met)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    return met


@pytest.mark.parametrize("part", range(4))
def test_neighbours_are_worth_what_is_charged(part: int) -> None:
    met = ask_at_random(SEED + 100 * part, 4)
    assert met.refused < 0.7 * met.asked
    assert met.pairs > 10


@pytest.mark.parametrize("seed", [23115032, 23114546, 23113236])
def test_worlds_that_once_failed(seed: int) -> None:
    """A range of one value in unknown groups; choices that are charged an eighth, also where epsilon is paid."""
    assert ask_at_random(seed, 1).asked


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10, 40))
def test_many_neighbours_are_worth_what_is_charged(part: int) -> None:
    met = ask_at_random(SEED + 100 * part, 40)
    assert met.kinds.keys() >= KINDS


# Rules of core/ and of the executor that are broken: in a few dozen worlds at most some neighbours tell.


def halve_what_a_row_adds(patch: Patch) -> None:
    honest = reach._adds
    patch.setattr(reach, "_adds", lambda part: (tuple(each // 2 for each in honest(part)[0]), honest(part)[1]))


def forget_that_rows_come_many_at_once(patch: Patch) -> None:
    honest = reach._groups
    patch.setattr(reach, "_groups", lambda *args: [(times, min(rows, 1)) for times, rows in honest(*args)])


def count_no_values_of_others(patch: Patch) -> None:
    """COUNT(DISTINCT) as if nobody brought a new one."""
    honest = reach._adds
    patch.setattr(
        reach, "_adds", lambda part: ((0, 0), honest(part)[1]) if isinstance(part, CountDistinct) else honest(part)
    )


def keep_all_rows(patch: Patch) -> None:
    patch.setattr(kept_rows, "keep_rows", lambda *_args: None)


def keep_all_groups(patch: Patch) -> None:
    patch.setattr(kept_rows, "keep_groups", lambda *_args: None)


def call_every_count_public(patch: Patch) -> None:
    honest = reach._adds
    patch.setattr(reach, "_adds", lambda part: ((0,), ()) if isinstance(part, CountRows) else honest(part))


def draw_at_twice_the_rate(patch: Patch) -> None:
    honest: Any = Draw.rate
    patch.setattr(Draw, "rate", property(lambda draw: 2 * honest.fget(draw)))


def count_one_row_of_a_unit(patch: Patch) -> None:
    """In choices and in searches."""
    for room in (Search, Draw):
        honest = room.__init__

        def init(self: Any, *args: Any, honest: Any = honest, **more: Any) -> None:
            honest(self, *args, **more)
            object.__setattr__(self, "rows", 1)

        patch.setattr(room, "__init__", init)
    patch.setattr("dpsql.core.payment._assert_drawn", lambda *_args: None)


LIES: dict[Callable[[Patch], None], int] = {  # and a world, the first of a few, in which each is told
    halve_what_a_row_adds: 0,
    forget_that_rows_come_many_at_once: 4,
    count_no_values_of_others: 7,
    keep_all_rows: 4,
    keep_all_groups: 4,
    call_every_count_public: 0,
    draw_at_twice_the_rate: 2,
    count_one_row_of_a_unit: 17,
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_random_neighbours_tell_lies(lie: Callable[[Patch], None]) -> None:
    for room in (reach._across, reach._within):
        room.cache_clear()
    prepare._cache.clear()
    try:
        with pytest.MonkeyPatch.context() as patch:
            lie(patch)
            with pytest.raises(AssertionError):
                ask_at_random(SEED + LIES[lie], 30)
    finally:
        prepare._cache.clear()
        for room in (reach._across, reach._within):
            room.cache_clear()
