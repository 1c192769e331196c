"""Intervals of correlations cover at their level wherever noise stands to the variances, and are hardly wider than the
answers spread.

Sums are made of the moments of a table, which may be of any size, and of noise as queries have it: nine independent
shares of each row, or as many Gaussians.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpsql.accuracy.linear_combinations import half_widths
from dpsql.accuracy.statistics import correlation_interval

Floats = Any
LEVEL = 0.95
ONES, LINE, SQUARE = (np.array(each, dtype=float) for each in ((1, 1, 1), (-1, 0, 1), (1, -1, 1)))
"""1, u and u^2 in the shares of a column."""
PRODUCTS = ((ONES, ONES), (LINE, ONES), (SQUARE, ONES), (ONES, LINE), (ONES, SQUARE), (LINE, LINE))
WEIGHTS = np.stack([np.outer(*each).ravel() for each in PRODUCTS])
"""n, s, q, t, r and p in the shares of both."""
SPREAD = 3 * math.sqrt(2)
"""The standard deviation of the noise of a variance times n, in its scale."""


class Table:
    """Moments of a table: n epsilon is such that the variances of its columns are so many times their noise."""

    def __init__(self, signals: tuple[float, float], rho: float, means: tuple[float, float], size: float) -> None:
        self.rho = rho
        ends = [1 - mean * mean for mean in means]
        (a, b), self.rows = (
            signals,
            SPREAD * size * max(signal / end for signal, end in zip(signals, ends, strict=True)),
        )
        x, y = (math.sqrt(SPREAD * each / self.rows) for each in (a, b))
        m, o = means
        shared = rho * x * y + m * o
        self.moments = self.rows * np.array([1, m, x * x + m * m, o, y * y + o * o, shared])

    def drawn(self, law: str, runs: int, seed: int = 0) -> Floats:
        draw = np.random.default_rng([seed, runs])
        noise = draw.laplace(0, 1, (9, runs)) if law == "laplace" else draw.normal(0, math.sqrt(2), (9, runs))
        return self.moments[:, None] + WEIGHTS @ noise


def width(law: str) -> Any:
    scale = 1.0 if law == "laplace" else math.sqrt(2)

    def of(weights: Floats, level: float) -> Floats:
        by_share = WEIGHTS.T @ weights
        return scale * half_widths(law, 9, np.where(np.abs(by_share) < 1e-12, 0, by_share), level)

    return of


def answers(moments: Floats) -> Floats:
    n, s, q, t, r, p = moments
    both = np.maximum(q - s * s / n, 0) * np.maximum(r - t * t / n, 0)
    return np.clip(np.where(both > 0, p - s * t / n, 0) / np.sqrt(np.where(both > 0, both, 1)), -1, 1)


def covered(table: Table, law: str, runs: int, level: float = LEVEL) -> float:
    low, high = correlation_interval(*table.drawn(law, runs), width=width(law), level=level)
    assert (low <= high).all()
    return float(np.mean((low - 1e-9 <= table.rho) & (table.rho <= high + 1e-9)))


SIGNALS = [(1, 1), (2, 2), (1, 30), (2, 8), (3, 3), (4.2, 4.2), (3, 60), (6, 6), (8, 3), (10, 40), (15, 15), (40, 40)]


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("signals", SIGNALS, ids=str)
def test_the_level_holds_however_much_noise_hides(signals: tuple[float, float], law: str) -> None:
    draw = np.random.default_rng([int(10 * each) for each in signals])
    runs, short = 1_200, {}
    for rho in (0.0, 0.8, -0.6, 1.0, -1.0):
        means = (0.0, 0.0) if rho == 0.8 else tuple(draw.uniform(-0.8, 0.8, 2).tolist())
        table = Table(signals, rho, means, float(draw.uniform(1, 4)))
        share = covered(table, law, runs)
        if share < LEVEL - 0.005 - 3 * math.sqrt(LEVEL * (1 - LEVEL) / runs):
            short[rho, means] = share
    assert not short


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_other_levels_hold_too(level: float) -> None:
    for signals in ((4.2, 4.2), (8, 30)):
        share = covered(Table(signals, 0.8, (0.1, -0.3), 3.0), "laplace", 2_000, level)
        assert share >= level - 0.005 - 3 * math.sqrt(level * (1 - level) / 2_000)


@pytest.mark.parametrize(("epsilon", "most"), [(0.1, 1.13), (0.3, 1.08), (1, 1.05)])
def test_widths_are_those_of_the_noise(epsilon: float, most: float) -> None:
    """2,000 rows with the deviation .3 of half their range: the median width in spans that hold 95 % of the answers."""
    signal = 2_000 * epsilon * 0.09 / SPREAD
    table = Table((signal, signal), 0.8, (0.0, 0.0), 1 / 0.09)
    assert table.rows == pytest.approx(2_000 * epsilon)
    low, high = correlation_interval(*table.drawn("laplace", 1_000), width=width("laplace"), level=LEVEL)
    span = float(np.subtract(*np.quantile(answers(table.drawn("laplace", 100_000, 1)), [0.975, 0.025])))
    assert 0.95 <= float(np.median(high - low)) / span <= most


def test_a_column_that_noise_hides_tells_nothing() -> None:
    table = Table((0.1, 50), 0.8, (0.0, 0.0), 2.0)
    low, high = correlation_interval(*table.drawn("laplace", 500), width=width("laplace"), level=LEVEL)
    assert np.mean((low == -1) & (high == 1)) > 0.95
