"""Sums of columns that may hold NULLs, centred beside the count of all rows."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.release.expected_error import error_variance
from dpsql.release.release import Release
from dpsql.schema.declaration import resolve
from dpsql.sources.frames import stored_columns
from tests.core.checks import U, calibrated
from tests.seeding import seed

ROWS = 400
DRAW = np.random.default_rng(8)
FRAME = pd.DataFrame(
    {
        "pay": np.where(DRAW.random(ROWS) < 0.3, np.nan, DRAW.uniform(0, 100, ROWS)),
        "age": np.where(DRAW.random(ROWS) < 0.1, np.nan, DRAW.integers(17, 91, ROWS)),
        "off": np.where(DRAW.random(ROWS) < 0.1, np.nan, DRAW.uniform(-30, 10, ROWS)),
        "n": pd.array([None if each % 7 == 0 else each % 5 for each in range(ROWS)], dtype="Int64"),
        "g": DRAW.integers(0, 3, ROWS),
    }
)
BOUNDS: dict[str, tuple[float, float]] = {"pay": (0, 100), "age": (17, 90), "off": (-30, 10), "n": (0, 4)}
TABLE = dpsql.Table(FRAME, bounds=BOUNDS, keys={"g": [0, 1, 2]}, nullable={"g": False})

SCHEMA = resolve("t", stored_columns(FRAME), TABLE.declaration)


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here fails by chance."""
    seed(monkeypatch, 1)


def made(sql: str, relation: str = U, **how: Any) -> Release:
    return calibrated(SCHEMA, sql, relation, **how)


def errors(release: Release) -> list[float]:
    """The standard error of each aggregate at the reference table."""
    spread = {place: share.noise.spread for share in release.shares for place in share.places}
    return [math.sqrt(error_variance(each, release.lattice, spread)) for each in release.estimates]


def test_a_sum_beside_the_count_of_all_has_half_the_noise() -> None:
    """Of the three coordinates of the cube the sum has half a range, around the middle of it as often as there are
    rows: (50^2 + 50^2) 20 / 3 in place of 100^2 20 / 3."""
    one = (3 + 1) * (3 + 2) / 3
    found = errors(made("SELECT COUNT(*), AVG(COALESCE(age, 20)), SUM(pay) FROM t"))
    assert found[2] == pytest.approx(math.sqrt(2 * one) * 50, rel=1e-3)
    both = errors(made("SELECT COUNT(*), AVG(age), SUM(pay) FROM t"))
    assert both[2] == pytest.approx(math.sqrt(2 * (4 + 1) * (4 + 2) / 3) * 50, rel=1e-3)


def test_several_sums_are_worth_a_count_that_nobody_asks_for() -> None:
    alone = errors(made("SELECT SUM(pay) FROM t"))
    assert alone[0] == pytest.approx(math.sqrt(2) * 100, rel=1e-3)
    both = errors(made("SELECT SUM(pay), SUM(2 * pay + 1) FROM t"))
    raw = math.sqrt((2 + 1) * (2 + 2) / 3) * 100
    assert both[0] == pytest.approx(math.sqrt(2 * (3 + 1) * (3 + 2) / 3) * 50, rel=1e-3)
    assert both[0] < raw


def test_a_range_without_0_is_widened_to_it() -> None:
    """A row adds 300 to 310, or nothing: 155 either way of 155. Around 305 the noise of another count would come in 305
    times."""
    sums = made("SELECT COUNT(*), SUM(pay / 10 + 300) FROM t")
    assert [str(each.name) for each in sums.coordinates] == ["count", "sum(COALESCE((pay / 10) + 300, 0.0) - 155)"]
    assert errors(sums)[1] == pytest.approx(math.sqrt(2 * 4) * 155, rel=1e-3)


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
@pytest.mark.parametrize(
    "asked", ["SUM(pay)", "SUM(off)", "SUM(n)", "SUM(age)", "SUM(pay > 50)", "SUM(pay) / COUNT(*)"]
)
def test_what_is_released_is_the_sum(asked: str, neighbours: str) -> None:
    """At a large epsilon, where noise is small: a NULL adds nothing to the answer, however it is centred."""
    for tail in ("", " GROUP BY g"):
        sql = f"SELECT COUNT(*), {asked} FROM t{tail}"
        answer = dpsql.query(TABLE, sql, epsilon=10**6, neighbours=neighbours).to_pandas().to_numpy()
        frames = [FRAME] if not tail else [FRAME[FRAME["g"] == each] for each in range(3)]
        column = "n" if "(n)" in asked else asked[4:7]
        for row, frame in zip(answer, frames, strict=True):
            values = (frame[column] > 50).astype(float) if ">" in asked else frame[column].astype(float)
            truth = float(np.nansum(values)) / (len(frame) if "/" in asked else 1)
            assert float(row[-1]) == pytest.approx(truth, abs=0.05), sql


@pytest.mark.parametrize("sql", ["SELECT COUNT(*), SUM(pay) FROM t", "SELECT COUNT(*), SUM(off), SUM(n) FROM t"])
def test_intervals_hold_as_often_as_they_say(sql: str) -> None:
    truths = [ROWS, *(float(FRAME[name].astype(float).sum()) for name in BOUNDS if f"({name})" in sql)]
    runs, inside = 600, np.zeros(len(truths))
    for _ in range(runs):
        answer = dpsql.query(TABLE, sql, epsilon=1)
        ends = answer.intervals(0.95)
        for place, truth in enumerate(truths):
            low, high = float(ends.iloc[0, 2 * place]), float(ends.iloc[0, 2 * place + 1])
            inside[place] += low - 1e-9 <= truth <= high + 1e-9
    assert (abs(inside / runs - 0.95) < 4 * math.sqrt(0.95 * 0.05 / runs) + 0.01).all(), inside / runs


def test_the_text_says_what_is_summed() -> None:
    names = [str(each.name) for each in made("SELECT COUNT(*), SUM(pay) FROM t").coordinates]
    assert names == ["count", "sum(COALESCE(pay, 0.0) - 50)"]
    assert made("SELECT COUNT(*), SUM(n) FROM t").estimates[1].exact_centre == Fraction(2)
