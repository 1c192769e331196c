"""Intervals of what is made of cells: at their level, hardly more, whether of one cell or of several together."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsql.accuracy import widths
from dpsql.accuracy.classes import half_widths
from dpsql.core.mechanisms.coordinate_classes import ClassLaplace
from dpsql.core.mechanisms.noise import CubeLaplace
from dpsql.plan.expressions import Vector
from dpsql.release.intervals.intervals import interval
from dpsql.release.output.select import finish
from dpsql.release.output.stages import run_stages
from dpsql.release.release import ReleasedValues
from tests.core.checks import B, Shape, U, calibrated, run_exactly, stacked
from tests.seeding import seed

DRAWS = 10_000
SHAPE = Shape(
    {"p": "int64", "n": "float64", "s": "str", "b": "boolean"},
    {"bounds": {"p": (0, 100), "n": (0, 10)}, "nullable": {"p": False, "s": False}},
)


@pytest.fixture(autouse=True)
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 19)


def table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(rows)
    n = rng.uniform(0, 10, rows)
    n[::5] = np.nan
    return pd.DataFrame({
        "p": rng.integers(0, 101, rows),
        "n": n,
        "s": np.array(["m", "f"], dtype=object)[rng.integers(0, 2, rows)],
        "b": pd.array(rng.choice([True, False, None], rows), dtype="boolean"),
    })  # fmt: skip


Exact = Callable[[pd.DataFrame], float]
OUTPUTS: dict[str, Exact] = {
    "COUNT(*)": len,
    "COUNT(n)": lambda t: t["n"].count(),
    "AVG(n)": lambda t: t["n"].mean(),
    "AVG(p)": lambda t: t["p"].mean(),
    "COUNT_IF(p < 30)": lambda t: (t["p"] < 30).sum(),
    "COUNT_IF(p >= 30)": lambda t: (t["p"] >= 30).sum(),
    "COUNT_IF(p < 60)": lambda t: (t["p"] < 60).sum(),
    "AVG(p) FILTER (WHERE s = 'm')": lambda t: t["p"][t["s"] == "m"].mean(),
    "AVG(p) FILTER (WHERE s = 'f')": lambda t: t["p"][t["s"] == "f"].mean(),
    "SUM(CASE WHEN p < 30 THEN p ELSE 0 END)": lambda t: t["p"][t["p"] < 30].sum(),
    "SUM(CASE WHEN p >= 30 THEN p ELSE 0 END)": lambda t: t["p"][t["p"] >= 30].sum(),
    "SUM(p)": lambda t: t["p"].sum(),
    "COUNT_IF(b)": lambda t: (t["b"] == True).sum(),  # noqa: E712
    "AVG(b)": lambda t: t["b"].dropna().astype(float).mean(),
    "COUNT_IF(p < 30) / COUNT(*)": lambda t: (t["p"] < 30).mean(),
    "COUNT_IF(p < 60) - COUNT_IF(p < 30)": lambda t: ((t["p"] < 60) & (t["p"] >= 30)).sum(),
}
LISTS = [
    ["COUNT_IF(p < 30)", "COUNT(*)"],
    ["COUNT_IF(p < 30)", "COUNT_IF(p < 60)", "COUNT_IF(p < 60) - COUNT_IF(p < 30)"],
    ["COUNT_IF(p < 30)", "COUNT(*)", "COUNT_IF(p < 30) / COUNT(*)"],
    ["AVG(p) FILTER (WHERE s = 'm')", "AVG(p) FILTER (WHERE s = 'f')"],
    ["AVG(p) FILTER (WHERE s = 'm')", "AVG(p) FILTER (WHERE s = 'f')", "AVG(p)"],
    ["AVG(n)", "COUNT(*)", "COUNT(n)"],
    ["SUM(CASE WHEN p < 30 THEN p ELSE 0 END)", "SUM(CASE WHEN p >= 30 THEN p ELSE 0 END)"],
    ["SUM(CASE WHEN p < 30 THEN p ELSE 0 END)", "COUNT_IF(p >= 30)", "COUNT_IF(p < 30)"],
    ["COUNT_IF(b)", "AVG(b)", "COUNT(*)"],
]


def covered(outputs: list[str], rows: int, level: float, **options: Any) -> dict[str, tuple[float, float, bool]]:
    """The share of covered answers, how wide they are, and whether noise is on the integers."""
    made = calibrated(SHAPE.schema(), f"SELECT {', '.join(outputs)} FROM t", **options)
    quotients = any("/" in each for each in outputs)
    assert made.lattice.classes or quotients or options.get("epsilon", 1) < 1 or "mechanism" in options
    frame = table(rows)
    released = ReleasedValues((), made.privatise(stacked(run_exactly(made, SHAPE.schema(), frame), DRAWS)).values)
    found = {}
    whole = made.coordinates[0].unit == 1
    for output, asked in zip(made.query.finish.outputs, outputs, strict=True):
        ends = interval(made, released, output.expr, level)
        assert ends is not None
        low, high = ends
        exact = OUTPUTS[asked](frame)
        near = 1e-6 * max(1.0, abs(exact))
        integer = whole or "COUNT" in asked or "SUM" in asked
        found[asked] = (
            float(np.mean((low - near <= exact) & (exact <= high + near))),
            float(np.mean(high - low)),
            integer,
        )
    return found


@pytest.mark.parametrize("epsilon", [0.2, 1, 4])
@pytest.mark.parametrize("outputs", LISTS, ids=" ".join)
def test_intervals_of_cells_cover_at_their_level(outputs: list[str], epsilon: float) -> None:
    level = 0.95
    slack = 5 * math.sqrt(level * (1 - level) / DRAWS)
    for asked, (share, _, integer) in covered(outputs, 400, level, epsilon=epsilon).items():
        assert share >= level - slack, (asked, share)
        assert integer or share <= level + 0.005 + slack, (asked, share)


@pytest.mark.parametrize("level", [0.5, 0.999])
def test_other_levels_of_cells(level: float) -> None:
    slack = 5 * math.sqrt(level * (1 - level) / DRAWS)
    for asked, (share, _, _) in covered(LISTS[5], 400, level).items():
        assert share >= level - slack, (asked, share)


def test_under_bounded_neighbours_and_gaussian_noise() -> None:
    for options in (
        {"neighbours": B, "mechanism": "laplace"},
        {"neighbours": U, "mechanism": "gaussian", "delta": 1e-6},
    ):
        for asked, (share, _, _) in covered(LISTS[3], 400, 0.95, **options).items():
            assert share >= 0.95 - 0.011, (asked, share)


# The widths themselves


@pytest.mark.parametrize("scale", [0.1, 1, 7.5, 1000])
@pytest.mark.parametrize("many", [2, 5, 20])
def test_sums_of_counts_get_the_narrowest_whole_interval(scale: float, many: int) -> None:
    noise = ClassLaplace(Fraction(scale), tuple(range(many)))
    found = half_widths(noise, range(many), np.ones((many, 1)), 0.95)[0]
    drawn = noise.draw(200_000).sum(axis=0)
    assert np.mean(np.abs(drawn) <= found) >= 0.95 - 0.003
    if scale < 300:
        assert np.mean(np.abs(drawn) <= found - 1) < 0.95 + 0.003 or found == 0


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-6])
def test_a_class_alone_has_the_width_of_its_cube(level: float) -> None:
    noise = ClassLaplace(Fraction(2**20), (0, 0, 1))
    weights = np.array([[1.0, 0.3], [0.5, -2.0]])
    cube = widths.half_widths(CubeLaplace(Fraction(2**20), 2), weights, level)
    assert np.array_equal(half_widths(noise, [0, 1], weights, level), cube)
    both = np.concatenate([weights, np.zeros((1, 2))])
    assert np.allclose(half_widths(noise, [0, 1, 2], both, level), cube, rtol=0.01)
    assert (half_widths(noise, [0, 1, 2], both, level) >= cube * (1 - 1e-3)).all()


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_sums_over_classes_of_several_are_hardly_wider_than_drawn(level: float) -> None:
    noise = ClassLaplace(Fraction(2**20), (0, 0, 1, 1, 2))
    weights = np.array([[1.0], [0.4], [-2.0], [0.1], [1.5]])
    found = half_widths(noise, range(5), weights, level)[0]
    drawn = np.abs((noise.draw(400_000).astype(float) * weights).sum(axis=0))
    share = float(np.mean(drawn <= found))
    slack = 5 * math.sqrt(level * (1 - level) / 400_000)
    assert level - slack <= share <= level + 0.005 + slack


@pytest.mark.parametrize("having", ["COUNT(*) > 10", "COUNT(*) < 6", "COUNT_IF(p < 30) >= 4", "2 * COUNT(*) > 15"])
def test_values_of_cells_that_were_compared_hold_given_that_their_row_is_shown(having: str) -> None:
    """Over all noise of two counts, each with its chance."""
    shape = Shape({**SHAPE.dtypes, "g": "str"}, {**SHAPE.declared, "keys": {"g": ["a", "b"]}})
    sql = f"SELECT g, COUNT_IF(p < 30) AS a, COUNT(*) AS n FROM t GROUP BY g HAVING {having}"
    made = calibrated(shape.schema(), sql, U)
    assert isinstance(made.noise, ClassLaplace)
    x = np.arange(-40, 41)
    one, other = (each.ravel() for each in np.meshgrid(x, x))
    chance = np.exp(-(np.abs(one) + np.abs(other)) / made.noise.scale)
    for first, second in ((0, 0), (2, 3), (5, 5), (4, 9), (20, 1)):
        values = made.features_of(np.array([one + first, other + second], dtype=np.float64))
        names = np.array([f"{place:06d}" for place in range(len(one))], dtype=object)
        released = ReleasedValues((Vector(names),), values)
        answer = run_stages(made, finish(made, released))
        assert not answer.given.unread
        for output, exact in zip(made.query.finish.outputs[1:], (first, first + second), strict=True):
            ends = interval(made, released, output.expr, 0.95, answer.given)
            assert ends is not None
            held = (ends[0][answer.groups] <= exact) & (exact <= ends[1][answer.groups])
            weights = chance[answer.groups]
            assert (weights * held).sum() / weights.sum() >= 0.95 - 1e-9, (output.name, first, second)
