"""Levels of large whole numbers: estimates are exact to the last digit, add up, and keep their intervals."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpsql
from dpsql.accuracy.hierarchies import consistent
from dpsql.release import release
from tests.accuracy.grouping_sets import cube_sets
from tests.lies import assert_caught

NEAR = 2**60
ROWS = 3_000


def session(**more: Any) -> dpsql.Session:
    frame = pd.DataFrame({"x": NEAR - np.arange(ROWS), "g": np.arange(ROWS) % 3, "h": np.arange(ROWS) % 2})
    table = dpsql.Table(frame, bounds={"x": (0, NEAR)}, keys={"g": [0, 1, 2], "h": [0, 1]}, version="1")
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1e9), **more)


CUBE = "SELECT g, h, SUM(x) AS s FROM t GROUP BY CUBE (g, h)"


def check_levels_of_large_sums_add_up() -> None:
    """To half a unit for each cell that is rounded; doubles of 2^60 are 256 apart, of 2^70 262,144."""
    found = {(g, h): s for g, h, s in session().query(CUBE, epsilon=100)}
    assert all(type(each) is int for each in found.values())
    for g in (0, 1, 2):
        assert abs(found[g, 0] + found[g, 1] - found[g, None]) <= 2
    for h in (0, 1):
        assert abs(sum(found[g, h] for g in (0, 1, 2)) - found[None, h]) <= 2
    assert abs(sum(found[g, None] for g in (0, 1, 2)) - found[None, None]) <= 2


def test_levels_of_large_sums_add_up() -> None:
    check_levels_of_large_sums_add_up()


def test_intervals_lie_about_what_is_shown_and_hold() -> None:
    exact = {
        (g, h): sum(NEAR - i for i in range(ROWS) if g in (None, i % 3) and h in (None, i % 2))
        for g in (0, 1, 2, None)
        for h in (0, 1, None)
    }
    own, held = session(), []
    for _ in range(40):
        result = own.query(CUBE, epsilon=100, fresh=True)
        ends = result.intervals()
        for (g, h, s), low, high in zip(result, ends["s_low"].tolist(), ends["s_high"].tolist(), strict=True):
            assert high - s == s - low
            held.append(low <= exact[g, h] <= high)
    assert np.mean(held) >= 0.9, "95 % are expected, of 480 that are not independent"


def test_small_sums_are_whole_and_add_up() -> None:
    frame = pd.DataFrame({"x": np.ones(ROWS, dtype=np.int64), "g": np.arange(ROWS) % 3})
    result: Any = dpsql.query(
        frame,
        "SELECT g, SUM(x) AS s FROM t GROUP BY ROLLUP (g)",
        epsilon=1,
        bounds={"x": (0, 9)},
        keys={"g": [0, 1, 2]},
    )
    assert not result._released.integers
    assert result.df["s"].dtype == np.int64
    assert sum(result.df["s"][:3]) == result.df["s"][3]


def test_they_are_kept_and_replayed(tmp_path: Path) -> None:
    first, second = (session(ledger=tmp_path / "l").query(CUBE, epsilon=100) for _ in range(2))
    assert second.replayed
    assert list(first) == list(second)
    assert first.to_text().splitlines()[:-1] == second.to_text().splitlines()[:-1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(2, 3), min_size=1, max_size=3),
    st.lists(st.floats(1e-6, 1e6), min_size=8, max_size=8),
    st.randoms(use_true_random=False),
)
def test_tables_that_add_up_are_their_own_estimates(sizes: list[int], variances: list[float], words: Any) -> None:
    """To the last digit, whatever the weights; noisy ones add up afterwards."""
    keys = tuple(range(len(sizes)))
    finest = np.array([words.randrange(-(2**90), 2**90) for _ in range(int(np.prod(sizes)))], dtype=object)
    cells = finest.reshape(sizes)
    sets = cube_sets(len(sizes))
    exact = {each: np.asarray(cells.sum(axis=tuple(k for k in keys if k not in each)), dtype=object) for each in sets}
    weights = dict(zip(sets, variances, strict=False))
    found = consistent(exact, weights, sets, exactly=True)
    assert all((found[each] == exact[each]).all() for each in sets)
    noisy = {each: np.asarray(exact[each] + words.randrange(-99, 99), dtype=object) for each in sets}
    found = consistent(noisy, weights, sets, exactly=True)
    assert all(isinstance(cell, Fraction) for each in sets for cell in np.ravel(found[each]))
    for each in sets:
        gone = tuple(k for k in keys if k not in each)
        assert (found[keys].sum(axis=gone) == found[each]).all()


def through_doubles(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(release, "are_large", lambda *_: False)


def test_the_lie_is_caught() -> None:
    assert_caught(through_doubles, check_levels_of_large_sums_add_up, honest=False)
