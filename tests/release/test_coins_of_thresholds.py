"""A noisy count a step short of a threshold is shown by a coin: chances and intervals by exact sums over the noise."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.accuracy.truncated import chance_within, tail_of
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian
from dpsql.plan.expressions import Vector
from dpsql.release.intervals.intervals import interval
from dpsql.release.output.select import finish
from dpsql.release.output.stages import run_stages
from dpsql.release.release import Release, ReleasedValues
from tests.core.checks import B, Shape, U, calibrated
from tests.measured import height_of
from tests.release.given_shown import probabilities, released_of, shown_with

SHAPE = Shape({"u": "int64", "x": "float64", "g": "str"}, {"bounds": {"x": (0, 100)}, "nullable": {"x": False}})
COUNTS = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"


def made_by(sql: str, relation: Any = U, **options: Any) -> Release:
    return calibrated(SHAPE.schema(**options.pop("declared", {})), sql, relation, **{"delta": 1e-6, **options})


@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", [0.1, 1, 3, 12, 40])
def test_chances_are_those_of_the_law(epsilon: float, mechanism: str, relation: Any):
    made = made_by(COUNTS, relation, epsilon=epsilon, mechanism=mechanism)
    assert 0 < made.selection.below < 1
    x, chance = probabilities(made.shares[0].noise, int(40 * made.shares[0].noise.scale) + 60)
    chance = chance / chance.sum()
    for n in (1, 2, 5, height_of(made) - 1, height_of(made), height_of(made) + 3):
        shown = float((chance * shown_with(made, x + n)).sum())
        found = made.chance_shown(n)
        assert found is not None
        near = float(chance.max()) if mechanism == "gaussian" else 0.0  # whose tails are bounds, of a step at most
        assert abs(shown - found) <= near + 1e-9
    alone = float((chance * shown_with(made, x + 1)).sum())
    share = float(made.cost.delta) / (2 if mechanism == "gaussian" else 1) / (2 if relation is B else 1)
    assert alone <= share * (1 + 1e-9)
    if mechanism == "laplace":
        assert alone >= share * (1 - 1e-9) if epsilon < 12 else alone >= share * 0.4


HAVING = [
    "COUNT(*) >= 14",
    "COUNT(*) >= 15",
    "COUNT(*) > 15",
    "COUNT(*) < 18",
    "COUNT(*) = 14",
    "COUNT(*) BETWEEN 13 AND 16",
]


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("words", HAVING)
def test_conditions_beside_a_threshold_know_of_the_coin(words: str, level: float):
    """At a threshold of 15, one step below it, above and at both: the ends are those of the weighted law, summed."""
    made = made_by(f"{COUNTS} HAVING {words}")
    assert height_of(made) == 15
    x, chance = probabilities(made.shares[0].noise, 200)
    y = np.arange(10, 120)
    released = ReleasedValues((Vector(y.astype(str).astype(object)),), released_of(made, y[None]).values)
    answer = run_stages(made, finish(made, released))
    passed = y[answer.groups]
    weights = shown_with(made, passed)
    passed, weights = passed[weights > 0], weights[weights > 0]
    law = chance[np.searchsorted(x, passed - np.arange(1, 100)[:, None])] * weights  # of each exact count from 1 on
    law /= law.sum(axis=1, keepdims=True)
    at_most = law.cumsum(axis=1)
    half = (1 - level) / 2 * (1 - 1e-9)
    fits = (at_most >= half) & (1 - at_most + law >= half)
    low, high = interval(made, released, made.query.finish.outputs[1].expr, level, answer.given)  # type: ignore[misc]
    for place, value in enumerate(passed.tolist()):
        held = np.flatnonzero(fits[:, place]) + 1
        if len(held) and held.max() < 60:
            assert (low[value - 10], high[value - 10]) == (min(held.min(), value), max(held.max(), value)), value


@pytest.mark.parametrize("edge", [1e-9, 0.01, 0.4, 0.97])
@pytest.mark.parametrize("noise", [CubeLaplace(Fraction(2), 1), DiscreteGaussian(Fraction(7), 1)], ids=str)
def test_the_chance_of_a_window_with_a_coin(noise: Any, edge: float):
    x, chance = probabilities(noise, 400)
    chance = chance / chance.sum()
    tail = tail_of(noise)
    assert tail is not None
    for low, high in ((10.0, math.inf), (10.0, 12.0), (10.0, 10.0)):

        def exact(k: int) -> float:
            y = x + k
            return float((chance * np.where(y == low, edge, (y > low) & (y <= high))).sum())  # noqa: B023

        for first, last in ((1, 9), (5, 30), (11, 11), (1, 100)):
            found = chance_within(tail, low, high, np.array([float(first)]), np.array([float(last)]), edge=edge)
            least = min(exact(k) for k in range(first, last + 1))
            assert found[0] <= least * (1 + 1e-9)
            assert found[0] >= least * (1 - 1e-6)


def test_on_a_fine_lattice_a_step_is_worth_no_coin():
    assert made_by("SELECT g, COUNT(*), AVG(x) FROM t GROUP BY g").selection.below == 0
