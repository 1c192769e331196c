"""Clipped totals and means of units: exact integers, against Python's own."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsql.executors.pandas.units.unit_totals import unit_means, unit_totals

Row = tuple[int, int, int]
"""Unit, group, step."""
LARGEST = 2**45 - 1


def by_pair(rows: list[Row]) -> dict[tuple[int, int], list[int]]:
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for unit, group, step in rows:
        found[unit, group].append(step)
    return found


def slow(rows: list[Row], cells: int, least: int, most: int, *, mean: bool) -> list[int]:
    totals = [0] * cells
    for (_, group), steps in by_pair(rows).items():
        number = round(Fraction(sum(steps), len(steps))) if mean else sum(steps)
        totals[group] += max(least, min(most, number))
    return totals


def arrays(rows: list[Row]) -> tuple[Any, Any, Any]:
    columns = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    return columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy()


def fast(rows: list[Row], cells: int, least: int, most: int, *, mean: bool) -> list[int]:
    units, groups, steps = arrays(rows)
    found = (unit_means if mean else unit_totals)(units, groups, cells, steps, least=least, most=most)
    assert found.shape == (cells,)
    return found.tolist()


STEPS = st.one_of(st.integers(-4, 4), st.integers(-LARGEST, LARGEST), st.sampled_from([LARGEST, -LARGEST, 2**32, -1]))
ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), STEPS), max_size=40)
ENDS = st.one_of(st.integers(-9, 9), st.integers(-(2**46), 2**46), st.integers(-(2**80), 2**80))
LIMITS = st.lists(ENDS, min_size=2, max_size=2).map(sorted)
MEAN = pytest.mark.parametrize("mean", [False, True])


@MEAN
@given(ROWS, LIMITS)
def test_against_plain_python(mean: bool, rows: list[Row], limits: list[int]):
    assert fast(rows, 5, *limits, mean=mean) == slow(rows, 5, *limits, mean=mean)


@MEAN
@pytest.mark.parametrize("limits", [(2**70, 2**80), (-(2**80), -(2**70)), (-(2**80), 3), (-3, 2**80), (0, 2**63)])
def test_limits_beyond_64_bits(mean: bool, limits: tuple[int, int]):
    rows = [(0, 0, 5), (0, 0, 2), (1, 0, -7), (2, 1, LARGEST)]
    assert fast(rows, 3, *limits, mean=mean) == slow(rows, 3, *limits, mean=mean)


@MEAN
@given(ROWS, LIMITS)
def test_one_group(mean: bool, rows: list[Row], limits: list[int]):
    together = [(unit, 0, step) for unit, _, step in rows]
    units, _, steps = arrays(together)
    function = unit_means if mean else unit_totals
    found = function(units, None, 1, steps, least=limits[0], most=limits[1])
    assert found.tolist() == slow(together, 1, *limits, mean=mean) == fast(together, 1, *limits, mean=mean)


@MEAN
@given(ROWS, LIMITS, st.randoms(use_true_random=False))
def test_any_order_of_rows(mean: bool, rows: list[Row], limits: list[int], random: Any):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert fast(rows, 4, *limits, mean=mean) == fast(shuffled, 4, *limits, mean=mean)


@MEAN
@given(ROWS, LIMITS)
def test_a_unit_moves_its_groups_by_no_more_than_the_limits(mean: bool, rows: list[Row], limits: list[int]):
    rest = [row for row in rows if row[0] != 0]
    groups = {row[1] for row in rows if row[0] == 0}
    pairs = zip(fast(rows, 4, *limits, mean=mean), fast(rest, 4, *limits, mean=mean), strict=True)
    moved = [after - before for after, before in pairs]
    for group, number in enumerate(moved):
        assert limits[0] <= number <= limits[1] if group in groups else number == 0


@pytest.mark.parametrize(
    ("steps", "mean"),
    [
        ([5, 0], 2),
        ([7, 0], 4),
        ([-5, 0], -2),
        ([-7, 0], -4),
        ([-1, 0], 0),
        ([1, 0], 0),
        ([-3, 0], -2),
        ([1, 1, 0], 1),
        ([-1, -1, 0], -1),
        ([1, 0, 0], 0),
        ([-1, 0, 0], 0),
        ([LARGEST, LARGEST - 1], 2**45 - 2),
        ([-LARGEST, 1 - LARGEST], 2 - 2**45),
        ([2**44 + 2**32, 2**32 + 1], 2**43 + 2**32),
    ],
)
def test_means_round_half_to_even(steps: list[int], mean: int):
    rows = [(0, 0, step) for step in steps]
    assert fast(rows, 1, -(2**46), 2**46, mean=True) == [mean]
    assert round(Fraction(sum(steps), len(steps))) == mean


@MEAN
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("limit", [1, 2**40, 2**62, 2**62 + 1, 2**90])
def test_one_unit_whose_sum_passes_64_bits(mean: bool, sign: int, limit: int):
    rows = 600_000  # the sum, in 64 bits, would have the other sign
    units, groups = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
    steps = np.full(rows, sign * LARGEST)
    steps[::3] = sign * 5
    exact = sum(steps.tolist())
    number = round(Fraction(exact, rows)) if mean else exact
    for each in (None, groups):
        found = (unit_means if mean else unit_totals)(units, each, 1, steps, least=-limit, most=limit)
        assert found.tolist() == [max(-limit, min(limit, number))]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_group_whose_result_passes_64_bits(sign: int):
    rows = 2_000_000
    units, groups = np.arange(rows) // 2, np.arange(rows) // 2 % 3
    steps = np.full(rows, sign * LARGEST)
    found = unit_totals(units, groups, 3, steps, least=-(2**46), most=2**46)
    assert found.dtype == object
    assert found.tolist() == [sign * 2 * LARGEST * number for number in (333_334, 333_333, 333_333)]
    assert all(type(each) is int for each in found)
    small = unit_totals(units, groups, 3, steps, least=-(2**40), most=2**40)
    assert small.tolist() == [sign * 2**40 * number for number in (333_334, 333_333, 333_333)]
    assert small.dtype == np.int64


@MEAN
@pytest.mark.parametrize("scale", [1, 10**4, 10**9, 2**50])
def test_codes_far_apart(mean: bool, scale: int):
    drawn = np.random.default_rng(1)
    rows = [
        tuple(each) for each in np.column_stack([drawn.integers(0, size, 3_000) for size in (200, 90, 1_000)]).tolist()
    ]
    far = [(unit * scale, group, step) for unit, group, step in rows]
    assert fast(far, 90, 10, 1_500, mean=mean) == slow(rows, 90, 10, 1_500, mean=mean)


@MEAN
def test_no_rows(mean: bool):
    assert fast([], 3, 1, 2, mean=mean) == [0, 0, 0]
    nothing = np.zeros(0, dtype=np.int64)
    function = unit_means if mean else unit_totals
    assert function(nothing, None, 1, nothing, least=1, most=2).tolist() == [0]
    assert function(nothing, nothing, 0, nothing, least=1, most=2).tolist() == []


def test_what_units_do_not_have_adds_nothing():
    """Though zero is outside the limits."""
    rows = [(0, 1, 5), (7, 3, 1)]
    assert fast(rows, 4, 2, 3, mean=False) == [0, 3, 0, 2]
