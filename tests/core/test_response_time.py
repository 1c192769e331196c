"""The delay of an answer: its exact law, the points at which answers are seen, and what it costs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dpsql.core import response_time
from dpsql.core.response_time import LEAST_REACH, ResponseTime
from tests.lies import Patch, assert_caught

LAWS = (
    ResponseTime(Fraction(1, 100), Fraction(1, 10**9)),
    ResponseTime(Fraction(1, 2), Fraction(1, 10**6)),
    ResponseTime(Fraction(3), Fraction(1, 10**3)),
)


def chance_by(law: ResponseTime, reach: int, room: int) -> float:
    """P[delay <= room] for room >= 0, by the tails of the discrete Laplace law."""
    step = float(1 / law.scale(reach))
    at = room - law.shift(reach)
    tail = math.exp(-step * (abs(at) + (at >= 0))) / (1 + math.exp(-step))
    return tail if at < 0 else 1 - tail


def check_points_of_neighbours() -> None:
    """Runs that end around a grid point, tuned to it to the microsecond, and their neighbours: every set of points."""
    for law in LAWS:
        epsilon, delta = float(law.epsilon), float(law.delta)
        for reach in (50, 400, 20_000):
            shift, point = law.shift(reach), 4 * law.shift(reach) + 10**6
            for run in (point - each for each in (0, 1, reach, shift - reach, shift, shift + 5 * reach, 2 * shift)):
                one = chance_by(law, reach, point - run)
                other = chance_by(law, reach, point - run - reach) if point - run >= reach else 0.0
                for first, second in ((one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one)):
                    assert first <= math.exp(epsilon) * second + delta * (1 + 1e-6) + 1e-12


def test_points_of_neighbours_are_as_likely():
    check_points_of_neighbours()


def forget_the_shift(patch: Patch) -> None:
    patch.setattr(ResponseTime, "shift", lambda _self, _reach: 0)


def halve_the_shift(patch: Patch) -> None:
    honest = ResponseTime.shift
    patch.setattr(ResponseTime, "shift", lambda self, reach: honest(self, reach) // 2)


def forget_the_reach(patch: Patch) -> None:
    patch.setattr(ResponseTime, "scale", lambda self, _reach: Fraction(LEAST_REACH + 1) / self.epsilon)


@pytest.mark.parametrize("lie", [forget_the_shift, halve_the_shift, forget_the_reach])
def test_a_delay_that_hides_less_is_caught(lie):
    assert_caught(lie, check_points_of_neighbours, honest=False)


def test_the_drawn_delay_has_the_law(monkeypatch: pytest.MonkeyPatch):
    law = LAWS[1]
    drawn = np.array([law.draw(400) for _ in range(4_000)])
    assert drawn.min() >= 0
    for room in np.quantile(drawn, [0.05, 0.3, 0.5, 0.7, 0.95]).astype(int):
        expected = chance_by(law, 400, int(room))
        assert abs((drawn <= room).mean() - expected) < 4 * math.sqrt(expected * (1 - expected) / len(drawn))
    monkeypatch.setattr(response_time, "discrete_laplace", lambda _scale, _size: np.array([-(10**9)]))
    assert law.draw(400) == 0


def test_ordinary_questions_are_seen_at_the_first_point():
    """A run of 40 ms whose unit moves it by as little as can be measured, with the default of a server."""
    law = LAWS[0]
    assert chance_by(law, LEAST_REACH, 250_000 - 40_000) > 0.95


def test_what_it_costs():
    law = LAWS[0]
    assert (law.cost.epsilon, law.cost.delta) == (law.epsilon, law.delta)
    assert (law.event.epsilon, law.event.delta) == (law.epsilon, law.delta)
