"""Noise intervals of second moments, pairs and different values cover the exact clipped answer at their level.

Each release is prepared once and drawn many times. The intervals of moments are conservative (a union bound over the
nuisance parameters), so they are held to their level from below, and, where tables are large, to hardly more than twice
the width of the noise that they cover.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsql.core.mechanisms.noise import CubeLaplace, RoundedGaussian, SharedLaplace, SplitLaplace
from dpsql.release.intervals.intervals import interval
from dpsql.release.release import Release, ReleasedValues
from tests.core.checks import B, Shape, U, calibrated, run_exactly, stacked
from tests.seeding import seed

LEVEL = 0.95
DRAWS = 2_400
SHAPE = Shape(
    {"x": "float64", "y": "float64", "p": "int64", "n": "float64", "b": "bool"},
    {"bounds": {"x": (0, 10), "y": (0, 10), "p": (0, 20), "n": (-5, 5)}, "nullable": {"x": False, "y": False}},
)


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here fails by chance."""
    seed(monkeypatch, 1)


def table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(rows)
    x = rng.beta(2, 2, rows) * 10
    n = rng.normal(0, 2, rows).clip(-5, 5)
    n[::6] = np.nan
    return pd.DataFrame({
        "x": x, "y": (x / 2 + rng.uniform(0, 5, rows)).clip(0, 10), "p": rng.integers(0, 21, rows), "n": n,
        "b": rng.random(rows) < 0.3,
    })  # fmt: skip


def exactly(frame: pd.DataFrame, asked: str) -> float:
    """NumPy's own answer."""
    kind, arguments = asked[:-1].split("(")
    names = arguments.removeprefix("DISTINCT ").split(", ")
    if "DISTINCT" in arguments:
        return float(frame[names[0]].nunique())
    if arguments == "*":
        return float(len(frame))
    rows = frame.dropna(subset=names)
    first, second = (rows[name].to_numpy(dtype=float) for name in (names[0], names[-1]))
    means = {
        "COUNT": lambda: len(first), "SUM": first.sum, "AVG": first.mean, "VAR_POP": first.var,
        "VAR_SAMP": lambda: first.var(ddof=1), "STDDEV_POP": first.std, "STDDEV": lambda: first.std(ddof=1),
        "COVAR_POP": lambda: np.cov(first, second, ddof=0)[0, 1], "COVAR_SAMP": lambda: np.cov(first, second)[0, 1],
        "CORR": lambda: np.corrcoef(first, second)[0, 1],
        "REGR_SLOPE": lambda: np.cov(first, second)[0, 1] / second.var(ddof=1),
    }  # fmt: skip
    return float(means[kind]())


def released_of(sql: str, relation: str, rows: int, **how: Any) -> tuple[Release, ReleasedValues]:
    """Many releases of one table, side by side as if they were groups."""
    schema = SHAPE.schema()
    made = calibrated(schema, sql, relation, **how)
    drawn = made.privatise(stacked(run_exactly(made, schema, table(rows)), DRAWS))
    return made, ReleasedValues((), drawn.values)


def covered(asked: list[str], relation: str, rows: int, level: float = LEVEL, **how: Any) -> dict[str, Any]:
    """The share of covered answers, and the mean width, by aggregate."""
    made, released = released_of(f"SELECT {', '.join(asked)} FROM t", relation, rows, **how)
    frame, found = table(rows), {}
    for output, each in zip(made.query.finish.outputs, asked, strict=True):
        bounds = interval(made, released, output.expr, level)
        assert bounds is not None, each
        low, high = bounds
        assert (low <= high).all()
        assert np.isfinite(high - low).all() or each.startswith("REGR"), each
        exact = exactly(frame, each)
        near = 1e-6 * max(1.0, abs(exact))  # values are rounded to a grid of 2^30 steps
        found[each] = float(np.mean((low - near <= exact) & (exact <= high + near))), float(np.mean(high - low))
    return found


def judge(found: dict[str, Any], level: float = LEVEL) -> None:
    slack = 5 * math.sqrt(level * (1 - level) / DRAWS)
    for each, (share, width) in found.items():
        assert width == 0 or share >= level - slack, f"{each}: {share} of the releases, width {width}"


WAYS: tuple[tuple[str, dict[str, Any], Any], ...] = (
    ("auto", {}, None),
    ("split", {"strategy": "split"}, SplitLaplace),
    ("gaussian", {"delta": 1e-6, "mechanism": "gaussian"}, RoundedGaussian),
)
ASKED = (
    ["VAR_POP(x)"], ["STDDEV(n)"], ["COVAR_POP(y, x)"], ["CORR(y, x)"], ["REGR_SLOPE(y, x)"],
    ["VAR_SAMP(p)", "AVG(p)", "SUM(p)", "COUNT(*)"],
    ["COUNT(DISTINCT p)", "COUNT(DISTINCT b)"],
    ["CORR(y, x)", "AVG(x)", "SUM(y)", "COUNT(*)", "VAR_POP(y)"],
    ["COVAR_SAMP(n, p)", "STDDEV_POP(b)"],
)  # fmt: skip


@pytest.mark.thinned(8)
@pytest.mark.parametrize("rows", [20, 100, 1000])
@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
@pytest.mark.parametrize(("how", "law"), [each[1:] for each in WAYS], ids=[each[0] for each in WAYS])
def test_intervals_cover_at_their_level(asked: list[str], rows: int, how: dict[str, Any], law: Any):
    if law is SplitLaplace and rows == 100:
        return  # as the others
    judge(covered(asked, U, rows, **how))


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
def test_intervals_under_bounded_neighbours(asked: list[str]):
    for rows in (20, 1000):
        judge(covered(asked, B, rows))


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_other_levels(level: float):
    for asked in (["VAR_POP(x)"], ["CORR(y, x)", "AVG(x)"], ["COUNT(DISTINCT p)"]):
        judge(covered(asked, U, 100, level), level)


def test_shares_are_what_is_measured():
    """The queries that this file means to be answered by shares are."""
    for asked in (ASKED[3], ASKED[4], ASKED[7]):
        made, _ = released_of(f"SELECT {', '.join(asked)} FROM t", U, 20)
        assert isinstance(made.noise, SharedLaplace)
    made, _ = released_of("SELECT VAR_POP(x) FROM t", U, 20)
    assert isinstance(made.noise, CubeLaplace)


@pytest.mark.parametrize(("how", "law"), [each[1:] for each in WAYS], ids=[each[0] for each in WAYS])
def test_intervals_of_large_tables_are_not_much_wider_than_the_noise(how: dict[str, Any], law: Any):
    """At 20,000 rows all is nearly linear: the interval is at most 1.7 times as wide as the central 95 % of the
    answers."""
    from dpsql.release.output.select import slot_vectors

    for asked in (["VAR_POP(x)"], ["COVAR_POP(y, x)"], ["REGR_SLOPE(y, x)"], ["CORR(y, x)"]):
        made, released = released_of(f"SELECT {asked[0]} FROM t", U, 20_000, **how)
        bounds = interval(made, released, made.query.finish.outputs[0].expr, LEVEL)
        assert bounds is not None
        (answers,) = (vector.values for vector in slot_vectors(made, released))
        low, high = np.quantile(answers, [0.025, 0.975])
        assert float(np.mean(bounds[1] - bounds[0])) <= 1.7 * (high - low), asked


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_intervals_of_very_few_rows_stay_within_the_range(rows: int):
    for asked, most in (("VAR_POP(x)", 25), ("CORR(y, x)", 1), ("COVAR_POP(y, x)", 25), ("STDDEV_POP(n)", 5)):
        made, released = released_of(f"SELECT {asked} FROM t", U, rows)
        bounds = interval(made, released, made.query.finish.outputs[0].expr, LEVEL)
        assert bounds is not None
        assert (bounds[0] <= bounds[1]).all()
        assert (bounds[0] >= (0 if asked[0] in "VS" else -most) - 1e-9).all()
        assert (bounds[1] <= most + 1e-9).all()
        if rows > 2:
            exact = exactly(table(rows), asked)
            share = np.mean((bounds[0] - 1e-6 <= exact) & (exact <= bounds[1] + 1e-6))
            assert share >= LEVEL - 5 * math.sqrt(LEVEL * (1 - LEVEL) / DRAWS)
