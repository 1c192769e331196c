"""Quantiles and extremes where the declared range is far wider than the values: what is chosen, from which public
points, and how rows are counted at them."""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.mechanisms import quantile_runs as runs
from dpsql.executors.pandas.sums import points
from dpsql.release.bounds.points import Points, RoundPoints
from dpsql.schema.columns import Type
from tests.core import checks
from tests.core.test_statistics_neighbours import calibrated_by

VALUES = np.round(np.random.default_rng(7_041).lognormal(3, 1, 2_000), 2)
"""A median of 20, and 600 at most."""
LEVEL = 1 - 1e-7
Ends = tuple[Any, Any]


def answered(values: Any, bounds: Ends, call: str, **more: Any) -> dpsql.Result:
    frame = pd.DataFrame({"x": values})
    return dpsql.query(frame, f"SELECT {call} FROM t", **{"epsilon": 1, "bounds": {"x": bounds}, **more})


def rows_off(values: Any, answer: Any, target: float) -> float:
    """How far the ranks of an answer are from the one asked for."""
    held = np.sort(values)
    below, upto = np.searchsorted(held, answer, "left"), np.searchsorted(held, answer, "right")
    return max(below - target, target - upto, 0)


def expected(values: Any, bounds: Ends) -> float:
    """The RMSE of the median's rank, by the law of the runs that it is drawn by."""
    seen: list[tuple[Any, float, Any]] = []

    def choose(gaps: Any, rate: Fraction, lengths: Any = None) -> Any:
        seen.append((gaps[0], float(rate), lengths[0]))
        return ((gaps == 0) & (lengths > 0)).argmax(axis=1)

    with mock.patch.object(runs, "exponential", choose):
        best = rows_off(values, answered(values, bounds, "MEDIAN(x)").item(), len(values) / 2)
    gaps, rate, lengths = seen[-1]
    weights = lengths * np.exp(-rate * gaps)
    off = gaps / 4 + best  # gaps are in quarters of rows
    return math.sqrt(float((weights * off**2).sum() / weights.sum()))


# How good the answers are


@pytest.mark.parametrize("high", [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9])
def test_a_median_is_as_good_whatever_the_declared_range(high: float):
    best = expected(VALUES, (0.0, float(VALUES.max())))
    for values, bounds in (
        (VALUES, (0.0, high)),
        (-VALUES, (-high, 0.0)),
        (VALUES, (-high, high)),
        (VALUES - 20, (-high, high)),
        (VALUES + 100, (100.0, high)),
        (VALUES, (-1.0, high)),
    ):
        assert expected(values, bounds) < best + 2, bounds


@pytest.mark.parametrize("high", [10**6, 10**9, 10**12])
def test_a_median_of_integers_is_as_good(high: int):
    fine, coarse = np.rint(VALUES * 1_000).astype(np.int64), np.rint(VALUES).astype(np.int64)
    best = expected(VALUES, (0.0, float(VALUES.max())))
    for values, bounds in ((fine, (0, high)), (-fine, (-high, 0)), (fine, (-high, high)), (coarse, (0, high))):
        assert expected(values, bounds) < best + 2, bounds
    answer = answered(coarse, (0, high), "MEDIAN(x)").item()
    assert isinstance(answer, int)
    assert rows_off(coarse, answer, 1_000) <= 40


@pytest.mark.parametrize("bounds", [(0.0, 1e3), (0.0, 1e7), (-1e9, 1e9), (0, 10**12)])
def test_answers_are_within_the_rows_that_are_promised(bounds: Ends):
    """Each of 6 draws fails with 1e-7 at most, but for what rows of one point share."""
    values = VALUES if isinstance(bounds[0], float) else np.rint(VALUES * 1_000).astype(np.int64)
    for call, target in (("MEDIAN(x)", 1_000), ("QUANTILE(x, 0.05)", 100), ("QUANTILE(x, 0.9)", 1_800)):
        result = answered(values, bounds, call)
        (draw,) = result.explanation._release.draws
        assert rows_off(values, result.item(), target) <= draw.rows_off(LEVEL) + 5, call
    for call, place in (("MIN(x)", 0), ("MAX(x)", 2_000)):
        result = answered(values, bounds, call)
        (draw,) = result.explanation._release.draws
        off = draw.rank if place == 0 else -draw.rank
        assert rows_off(values, result.item(), place + off) <= draw.rows_off(LEVEL) + 5, call
    found = next(iter(answered(values, bounds, "QUANTILE(x, 0.25), MEDIAN(x), QUANTILE(x, 0.75)")))
    assert list(found) == sorted(found)
    assert all(rows_off(values, each, at) < 100 for each, at in zip(found, (500, 1_000, 1_500), strict=True))


def test_answers_have_no_more_digits_than_tell_points_apart():
    for high, digits in ((1e3, 10), (1e5, 8), (1e7, 6)):
        answer = answered(VALUES, (0, high), "MEDIAN(x)").item()
        assert len(repr(answer).partition(".")[2]) <= digits, answer


@pytest.mark.parametrize(
    ("values", "bounds", "words"),
    [
        ([1.5], (0, 9), "of the best candidate's (95 %)"),
        ([1], (0, 10**6), "rank error at most"),
        ([1], (0, 9), "rank error at most"),
        ([1], (0, 65_535), "rank error at most"),
        ([1], (0, 65_536), "rank error at most"),
        ([1], (0, 10**18), "of the best candidate's (95 %)"),
    ],
)
def test_explain_says_whether_all_values_are_points(values: list[Any], bounds: Ends, words: str):
    result = answered(values, bounds, "MEDIAN(x)")
    assert any(words in note for note in result.notes)
    assert "one of " in str(result.explanation)


# Points


GRIDS = [
    Points(0, 1e7, 65_536, False),
    Points(0.0, 1.0, 65_536, False),
    Points(-5.0, 1e9, 65_536, False),
    Points(-1e9, -3.5, 4_096, False),
    Points(100, 1e6, 256, False),
    Points(-1e308, 1.7e308, 65_536, False),
    Points(0, 1e-320, 256, False),
    Points(1.0, math.nextafter(1.0, 2), 256, False),
    Points(2.5, 2.5, 65_536, False),
    Points(-1.0, -0.0, 256, False),
    Points(-0.0, 1.0, 256, False),
    Points(-0.0, 0, 256, False),
    Points(0, 65_536, 65_536, True),
    Points(0, 10**12, 65_536, True),
    Points(-300, 300, 256, True),
    Points(-(2**63), 2**63 - 1, 65_536, True),
    Points(2**60 + 1, 2**60 + 10**6, 65_536, True),
]
"""Wide and narrow, of one sign and of both, at the limits of floats and of integers."""


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_points_ascend_from_end_to_end_and_each_lies_at_itself(grid: Points):
    points, edges = grid.values, np.array(grid.edges)
    assert 1 <= len(points) <= grid.most
    assert (points[0], points[-1]) == (grid.lower, grid.upper)
    assert (points[:-1] < points[1:]).all()
    assert points.dtype == (np.int64 if grid.whole else np.float64)
    assert grid.lower > 0 or grid.upper < 0 or 0 in points
    assert not np.signbit(points[points == 0].astype(float)).any()
    assert len(edges) == len(points) - 1
    assert (edges[:-1] < edges[1:]).all()
    assert np.searchsorted(edges, points.astype(float)).tolist() == list(range(len(points)))


@pytest.mark.parametrize("grid", [grid for grid in GRIDS if grid.upper - grid.lower < 2**50], ids=str)
def test_a_value_lies_at_the_nearest_point(grid: Points):
    rng = np.random.default_rng(15)
    points = grid.values.astype(float)
    some = rng.choice(points, 200) * rng.uniform(0.9, 1.1, 200)
    for value in np.clip(some, grid.lower, grid.upper).tolist():
        place = bisect_left(grid.edges, value)
        nearest = np.abs(points - value).min()
        assert abs(points[place] - value) <= nearest * (1 + 1e-9) + 2e-16 * abs(value)


def test_half_of_the_points_are_even_and_the_others_reach_far_down():
    for low, high in ((0.0, 1e7), (-1e7, 1e7), (-1e7, 0.0)):
        points = Points(low, high, 65_536, False).values
        assert np.diff(points).max() <= 2.2 * (high - low) / 65_536 * (1 + 1e-9)
        for end in (low, high):
            side = np.abs(points[np.sign(points) == np.sign(end)])
            for octave in range(5, 40) if end else ():
                inside = ((side >= (high - low) * 2.0**-octave) & (side < (high - low) * 2.0 ** (1 - octave))).sum()
                assert inside >= 400, (low, high, end, octave)


def test_points_of_few_are_few():
    """What many groups have."""
    frame = pd.DataFrame({"k": range(2_000), "x": 1.5})
    keys = {"k": list(range(8_000))}
    made = dpsql.query(frame, "SELECT k, MAX(x) FROM t GROUP BY k", epsilon=1, bounds={"x": (0, 1e6)}, keys=keys)
    (draw,) = made.explanation._release.draws
    assert 400 < draw.points <= 2**22 // 8_000


# Rows at points


SHAPE = checks.Shape({"x": "float64", "i": "Int64"}, {"bounds": {"x": (-1e3, 1e9), "i": (-(10**12), 10**12)}})
ROWS: tuple[checks.Row, ...] = (
    (20.5, 7),
    (-3.25, -(10**11)),
    (-math.inf, None),
    (math.nan, 2**62),
    (math.inf, -(2**62)),
    (5e-324, 0),
)
SQL = "SELECT MAX(x), MIN(i), MEDIAN(x), QUANTILE(i, 0.25) FROM t"


def counted(table: Sequence[checks.Row]) -> list[dict[int, int]]:
    """The counts of each grid, by point."""
    schema = SHAPE.schema()
    exact = checks.run_exactly(calibrated_by(schema, SQL, checks.U), schema, SHAPE.frame(table))
    return [dict(zip(grid.points.tolist(), grid.counts.tolist(), strict=True)) for grid in exact.grids]


def test_a_row_is_at_one_point_which_depends_on_no_other_row():
    alone = [counted([row]) for row in ROWS]
    assert [[sum(grid.values()) for grid in each] for each in alone] == [
        [x, i] * 2 for x, i in ((1, 1), (1, 1), (1, 0), (0, 1), (1, 1), (1, 1))
    ]
    points = [Points(-1e3, 1e9, 65_536, False), Points(-(10**12), 10**12, 65_536, True)]
    held_at = [RoundPoints(-1e3, 1e9, Type.REAL, digits=4), RoundPoints(-(10**12), 10**12, Type.INTEGER)]
    for row, grids in zip(ROWS, alone, strict=True):
        for cell, grid, of in zip(row, grids[:2], points, strict=True):
            if grid:
                held = min(max(cell, of.lower), of.upper)
                (place,) = grid
                assert abs(of.values[place] - held) == np.abs(of.values - held).min()
        for cell, grid, by in zip(row, grids[2:], held_at, strict=True):
            for place in grid:
                held = min(max(cell, by.lower), by.upper)
                assert abs(by.read(np.array([place]))[0] - held) <= by.apart / 2 * (by.kind is Type.REAL)
    rng = random.Random(1)
    for _ in range(20):
        chosen = rng.choices(range(len(ROWS)), k=rng.randint(0, 8))
        together = counted([ROWS[each] for each in chosen])
        for place in range(4):
            total: Counter[int] = Counter()
            for each in chosen:
                total.update(alone[each][place])
            assert together[place] == dict(total)


def test_the_plan_is_the_same_whatever_the_rows():
    plans = [answered(values, (0, 1e7), "MEDIAN(x)").explanation._release for values in ([1.0], VALUES, [np.nan] * 3)]
    assert len({(plan.exact.grids, plan.draws) for plan in plans}) == 1


def hard(edges: Any) -> Any:
    """Edges and what is next to them, zeros, the smallest numbers, and no numbers."""
    least, most = np.finfo(float).smallest_subnormal, np.finfo(float).max
    odd = [0.0, -0.0, least, -least, 1e-310, -1e-310, most, -most, math.inf, -math.inf, math.nan]
    return np.concatenate([edges, np.nextafter(edges, -math.inf), np.nextafter(edges, math.inf), odd])


def placed(edges: Any, values: Any) -> Any:
    """By tables, however few the edges and values are."""
    with mock.patch.multiple(points, _FEW_EDGES=2, _FEW_VALUES=0):
        return points.Places(edges).of(values)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_places_are_those_of_a_search(grid: Points):
    rng = np.random.default_rng(99)
    edges = np.array(grid.edges)
    wide = rng.choice([-1, 1], 5_000) * 10.0 ** rng.uniform(-320, 308, 5_000)
    spread = float(grid.lower) * (1 - (part := rng.random(5_000))) + float(grid.upper) * part
    values = np.concatenate([hard(edges), wide, spread, VALUES])
    assert (placed(edges, values) == np.searchsorted(edges, values)).all()


def test_places_among_odd_edges_are_those_of_a_search():
    rng = np.random.default_rng(12)
    some = np.sort(rng.lognormal(0, 20, 3_000))
    infinite = np.concatenate([[-math.inf], some, [math.inf]])
    equal = np.repeat(some[::100], 100)
    for edges in (some, -some[::-1], infinite, equal, np.arange(2_000.0), np.zeros(2_000), some[:3], some[:0]):
        values = rng.permutation(hard(edges))
        with np.errstate(all="raise", under="ignore"):
            found = placed(edges, values)
        assert (found == np.searchsorted(edges, values)).all()


def test_a_search_is_left_for_few_values():
    """The tables find almost all of even values, and of values far below the range."""
    edges = np.array(Points(0, 1e7, 65_536, False).edges)
    found, left = points.Places(edges), []
    found.of(np.zeros(100_000))  # makes the tables
    searched = np.searchsorted

    def search(among: Any, values: Any) -> Any:
        left.append(len(values))
        return searched(among, values)

    with mock.patch.object(np, "searchsorted", search):
        found.of(np.random.default_rng(3).uniform(0, 1e7, 100_000))
        found.of(np.random.default_rng(4).lognormal(3, 1, 100_000))
    assert len(left) == 2
    assert max(left) < 10_000
