"""Intervals of variance, covariance, slope and correlation cover the exact statistic at their level, for noise of the
cube and for independent Laplace noise on Bernstein parts, at every size; for many rows they are hardly wider than what
the linear approximation (the delta method) at the exact moments would give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpsql.accuracy.linear_combinations import half_widths
from dpsql.accuracy.statistics import (
    _squares,
    correlation_interval,
    covariance_interval,
    slope_interval,
    variance_interval,
)

Floats = Any
LEVEL = 0.95
SCALE = 2.0


def least_covered(runs: int) -> float:
    return LEVEL - 3 * math.sqrt(LEVEL * (1 - LEVEL) / runs)


def moments(u: Floats, v: Floats) -> Floats:
    """n, s, q, t, r, p."""
    return np.array([len(u), u.sum(), (u * u).sum(), v.sum(), (v * v).sum(), (u * v).sum()])


@dataclass(frozen=True)
class Statistic:
    """A statistic with the places of its moments, its exact value and the weights whose combination of the exact
    moments is its first-order error (per row)."""

    interval: Callable[..., tuple[Floats, Floats]]
    places: list[int]
    exact: Callable[[Floats, Floats], float]
    weights: Callable[[Floats, Floats], list[float]]
    reach: tuple[float, float]


def variance(u: Floats, _: Floats) -> float:
    return float(np.var(u))


def sample_variance(u: Floats, _: Floats) -> float:
    return float(np.var(u, ddof=1))


def covariance(u: Floats, v: Floats) -> float:
    return float(np.mean((u - u.mean()) * (v - v.mean())))


def slope(u: Floats, v: Floats) -> float:
    return float(np.polyfit(u, v, 1)[0])


def correlation(u: Floats, v: Floats) -> float:
    return float(np.corrcoef(u, v)[0, 1])


def variance_weights(u: Floats, _: Floats) -> list[float]:
    return [u.mean() ** 2 - np.var(u), -2 * u.mean(), 1]


def covariance_weights(u: Floats, v: Floats) -> list[float]:
    return [u.mean() * v.mean() - covariance(u, v), -v.mean(), -u.mean(), 1]


def slope_weights(u: Floats, v: Floats) -> list[float]:
    m, o, b = u.mean(), v.mean(), slope(u, v)
    return list(np.array([m * o - b * m * m, -o + 2 * b * m, -b, -m, 1]) / np.var(u))


def correlation_weights(u: Floats, v: Floats) -> list[float]:
    m, o, half, k = u.mean(), v.mean(), correlation(u, v) / 2, u.std() / v.std()
    of_n = m * o - half * (m * m / k + o * o * k)
    row = [of_n, -o + 2 * half * m / k, -half / k, -m + 2 * half * o * k, -half * k, 1]
    return list(np.array(row) / (u.std() * v.std()))


STATISTICS = {
    "variance": Statistic(
        partial(variance_interval, sample=False),
        [0, 1, 2],
        variance,
        variance_weights,
        (0, 1),
    ),
    "sample variance": Statistic(
        partial(variance_interval, sample=True),
        [0, 1, 2],
        sample_variance,
        variance_weights,
        (0, 2),
    ),
    "covariance": Statistic(
        partial(covariance_interval, sample=False),
        [0, 1, 3, 5],
        covariance,
        covariance_weights,
        (-1, 1),
    ),
    "sample covariance": Statistic(
        partial(covariance_interval, sample=True),
        [0, 1, 3, 5],
        lambda u, v: float(np.cov(u, v)[0, 1]),
        covariance_weights,
        (-2, 2),
    ),
    "slope": Statistic(slope_interval, [0, 1, 2, 3, 5], slope, slope_weights, (-np.inf, np.inf)),
    "correlation": Statistic(correlation_interval, [0, 1, 2, 3, 4, 5], correlation, correlation_weights, (-1, 1)),
}


@dataclass(frozen=True)
class Noise:
    """The moments are `parts` (moments, coordinates) times coordinates with noise of a law of scale SCALE."""

    law: str
    parts: Floats

    @classmethod
    def of(cls, law: str, places: list[int]) -> Noise:
        if law == "cube":
            return cls(law, np.eye(len(places)))
        # Coefficients of 1, u, u^2 in the three Bernstein polynomials of degree 2 on [-1, 1], and their products.
        power = np.array([[1, 1, 1], [-1, 0, 1], [1, -1, 1]], dtype=float)
        if max(places) <= 2:
            return cls(law, power[places])
        degrees = [(0, 0), (1, 0), (2, 0), (0, 1), (0, 2), (1, 1)]
        return cls(law, np.array([np.outer(power[a], power[b]).ravel() for a, b in (degrees[i] for i in places)]))

    @property
    def coordinates(self) -> int:
        return int(self.parts.shape[1])

    def draw(self, rng: np.random.Generator, runs: int) -> Floats:
        shape = self.coordinates, runs
        if self.law == "cube":
            return SCALE * rng.gamma(shape[0] + 1, size=runs) * rng.uniform(-1, 1, shape)
        return SCALE * self.parts @ rng.laplace(size=shape)

    def width(self, weights: Floats, level: float) -> Floats:
        return half_widths(self.law, self.coordinates, SCALE * self.parts.T @ weights, level)


def rows(n: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(n)
    u = np.clip(rng.normal(0.2, 0.5, n), -1, 1)
    return u, np.clip(0.6 * u + rng.normal(-0.1, 0.3, n), -1, 1)


def intervals(statistic: Statistic, law: str, u: Floats, v: Floats, runs: int) -> tuple[Floats, Floats, Noise]:
    noise = Noise.of(law, statistic.places)
    noisy = moments(u, v)[statistic.places, None] + noise.draw(np.random.default_rng(len(u)), runs)
    return *statistic.interval(*noisy, width=noise.width, level=LEVEL), noise


@pytest.mark.thinned(4)
@pytest.mark.parametrize("n", [20, 100, 1000, 20000])
@pytest.mark.parametrize("law", ["cube", "laplace"])
@pytest.mark.parametrize("name", STATISTICS)
def test_the_exact_statistic_is_covered(name: str, law: str, n: int) -> None:
    statistic, (u, v) = STATISTICS[name], rows(n)
    runs = 1_000 if (name, law) == ("correlation", "laplace") else 2_000
    lower, upper, noise = intervals(statistic, law, u, v, runs)
    exact = statistic.exact(u, v)
    assert np.mean((lower <= exact) & (exact <= upper)) >= least_covered(runs)
    assert np.all((lower >= statistic.reach[0]) & (lower < upper) & (upper <= statistic.reach[1]))
    if n >= 1000:
        linear = noise.width(np.array(statistic.weights(u, v))[:, None], LEVEL)[0] / n
        assert 1 <= np.mean(upper - lower) / (2 * linear) < (1.25 if n == 1000 else 1.05)


FIXED = np.random.default_rng(5).uniform(-1, 1, 400)
HARD = {
    "one value": (np.full(400, 0.3), FIXED),
    "a line": (FIXED, 0.1 - 0.5 * FIXED),
    "an outlier": (np.append(np.full(399, -1.0), 1.0), np.append(np.full(399, 1.0), -1.0)),
    "both ends": (np.array([-1.0, 1.0] * 15), np.array([1.0, -1.0, 1.0] * 10)),
    "two rows": (np.array([-1.0, 1.0]), np.array([-1.0, 1.0])),
}


@pytest.mark.parametrize(
    ("name", "data"),
    [(n, d) for n in STATISTICS for d in HARD if not (d == "one value" and n in {"slope", "correlation"})],
)
def test_hard_cases_are_covered(name: str, data: str) -> None:
    u, v = HARD[data]
    statistic = STATISTICS[name]
    lower, upper, _ = intervals(statistic, "cube", u, v, 1_000)
    exact = statistic.exact(u, v)
    near = 1e-12  # the oracle's rounding
    assert np.mean((lower <= exact + near) & (exact - near <= upper)) >= least_covered(1_000)


@pytest.mark.parametrize("name", STATISTICS)
def test_without_rows_to_speak_of_the_whole_range_is_possible(name: str) -> None:
    statistic = STATISTICS[name]
    noise = Noise.of("cube", statistic.places)
    for n in (-1.0, 0.0, 1.0):
        noisy = np.zeros((len(statistic.places), 3))
        noisy[0] = n
        lower, upper = statistic.interval(*noisy, width=noise.width, level=LEVEL)
        assert lower.tolist() == [statistic.reach[0]] * 3
        assert upper.tolist() == [statistic.reach[1]] * 3


def no_width(weights: Floats, _: float) -> Floats:
    return np.zeros(weights.shape[1])


@pytest.mark.parametrize("name", STATISTICS)
def test_without_noise_the_statistic_is_exact(name: str) -> None:
    statistic = STATISTICS[name]
    for n in (2, 30, 5000):
        u, v = rows(n)
        lower, upper = statistic.interval(*moments(u, v)[statistic.places, None], width=no_width, level=LEVEL)
        exact = statistic.exact(u, v)
        assert lower[0] - 1e-13 <= exact <= upper[0] + 1e-13
        assert upper[0] - lower[0] < 1e-9


@pytest.mark.parametrize("name", STATISTICS)
def test_groups_do_not_touch_each_other(name: str) -> None:
    """Groups of all sizes together, more than are worked on at a time, have the intervals of each alone."""
    statistic = STATISTICS[name]
    noise = Noise.of("cube", statistic.places)
    rng = np.random.default_rng(6)
    exact = np.stack([moments(*rows(n))[statistic.places] for n in (1, 50, 300, 5000)], axis=1)
    noisy = np.tile(exact, 150) + noise.draw(rng, 600)
    together = np.array(statistic.interval(*noisy, width=noise.width, level=LEVEL))
    for i in (0, 1, 2, 3, 510, 511, 512, 513, 599):
        alone = np.array(statistic.interval(*noisy[:, [i]], width=noise.width, level=LEVEL))[:, 0]
        np.testing.assert_allclose(together[:, i], alone, rtol=1e-3, atol=1e-4)
    empty = statistic.interval(*noisy[:, :0], width=noise.width, level=LEVEL)
    assert [end.shape for end in empty] == [(0,), (0,)]


def test_a_slope_is_bounded_once_the_variance_is_clear_of_0() -> None:
    noise = Noise.of("cube", STATISTICS["slope"].places)
    noisy = np.array([[400.0] * 3, [0.0] * 3, [12.0, 20.0, 20.0], [0.0] * 3, [120.0, 120.0, -120.0]])
    lower, upper = slope_interval(*noisy, noise.width, LEVEL)
    assert (lower[0], upper[0]) == (-np.inf, np.inf)
    assert 1 < lower[1] < 120 / 20 < upper[1] < np.inf
    np.testing.assert_allclose((lower[2], upper[2]), (-upper[1], -lower[1]), rtol=1e-3)


@pytest.mark.parametrize("name", ["variance", "sample variance"])
def test_noise_of_the_mean_counts_even_where_it_is_the_larger_part(name: str) -> None:
    """A mean of 0.15, with noise of about that size: where the noisy mean is near 0, so is the weight of s, and to take
    it for the exact one would give intervals that are much too narrow."""
    statistic, runs = STATISTICS[name], 2_000
    rng = np.random.default_rng(8)
    u = np.repeat([-0.35, 0.65], 200)
    noise = Noise("laplace", np.diag([0, 20, 0.3]))
    noisy = moments(u, u)[statistic.places, None] + noise.draw(rng, runs)
    lower, upper = statistic.interval(*noisy, width=noise.width, level=LEVEL)
    exact = statistic.exact(u, u)
    assert np.mean((lower <= exact) & (exact <= upper)) >= least_covered(runs)


def test_a_higher_level_is_wider() -> None:
    u, v = rows(2000)
    for statistic in STATISTICS.values():
        noise = Noise.of("laplace", statistic.places)
        sizes = [
            np.subtract(*statistic.interval(*moments(u, v)[statistic.places, None], width=noise.width, level=level))
            for level in (0.99, 0.95, 0.5)
        ]
        assert sizes[0] < sizes[1] < sizes[2] < 0


def test_curves_lie_within_the_triangles_of_their_arcs() -> None:
    """The corners of each arc and the crossing of the tangents at its ends: what is above the tangents and below the
    chord holds the curve."""
    means = np.linspace(-0.7, 0.9, 1001)
    corners = [((a + b) / 2, a * b) for a, b in _squares((np.array(-0.7), np.array(0.9)))]
    held = np.zeros(len(means), dtype=bool)
    for start in range(0, len(corners) - 2, 2):
        held |= _within((means, means**2), [np.array(point) for point in corners[start : start + 3]])
    assert held.all()
    assert len(corners) == 5


def _within(curve: tuple[Any, Any], triangle: list[Any]) -> Any:
    sides = []
    for one, other in ((0, 1), (1, 2), (2, 0)):
        along = triangle[other] - triangle[one]
        sides.append(along[0] * (curve[1] - triangle[one][1]) - along[1] * (curve[0] - triangle[one][0]))
    return np.all(np.array(sides) >= -1e-9, axis=0) | np.all(np.array(sides) <= 1e-9, axis=0)
