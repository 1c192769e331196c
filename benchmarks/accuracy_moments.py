"""Errors of VAR, STDDEV, COVAR, CORR and REGR_SLOPE beside theory and other ways, all at the same total epsilon.

A row has the features 1, u, v, 2 u^2 - 1, 2 v^2 - 1 and u v, with u and v from -1 to 1 between the ends of two ranges.
Every way ends in noisy sums of these, from which a statistic follows. The ways differ in the noise:

- `cube`: K-norm noise on the cube of the features that a statistic needs, d of them: variance (d + 1)(d + 2) / 3;
- `shares`: the row is divided into products of Bernstein's polynomials of u and v, of degree 1, or 2 where a square is
  needed; each of their sums has Laplace noise for the whole epsilon: variance 2, and features are combinations of them;
- `split`: the features with Laplace noise, an equal share of epsilon each: variance 2 d^2;
- `naive`: the same for the sums of 1, y, x, y^2, x^2 and x y themselves, y and x from 0 to 1, which are not centred.

Theory is to first order: a statistic's slopes in the features, in closed form, weighted by the variances. Where the
true variance is no larger than its error, answers that are held at 0 or above are better than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from errors import EPSILON, Floats, errors, rmse
from measure import Row

import dpsql

ROWS = 2_000
WIDTH = 100.0
MEANS = (0.05, 0.3, 0.5, 0.9)
SEED = 20_261
POLYNOMIALS = {0: [[1]], 1: [[1, 1], [-1, 1]], 2: [[1, 1, 1], [-1, 0, 1], [1, -3, 1]]}
"""1, u and 2 u^2 - 1 in Bernstein's polynomials of each degree."""
UNCENTRED = np.array(
    [
        [1, 0, 0, 0, 0, 0],
        [-1, 2, 0, 0, 0, 0],
        [-1, 0, 2, 0, 0, 0],
        [1, -8, 0, 8, 0, 0],
        [1, 0, -8, 0, 8, 0],
        [1, -2, -2, 0, 0, 4],
    ]
)
"""The features in terms of 1, y, x, y^2, x^2 and x y, for u = 2 y - 1 and v = 2 x - 1."""
SQUARES = {(0, 0): 0, (1, 0): 1, (0, 1): 2, (2, 0): 3, (0, 2): 4, (1, 1): 5}
"""The place of each feature by its powers of u and v."""


def features(u: Floats, v: Floats) -> Floats:
    """Their sums, shape (6,)."""
    rows = [np.ones(len(u)), u, v, 2 * u**2 - 1, 2 * v**2 - 1, u * v]
    return np.array([row.sum() for row in rows])


@dataclass(frozen=True)
class Statistic:
    """What it is called, which features it needs, its value for features of shape (6, ...), its slopes at features
    (6,), and how much larger it is in the units of the column."""

    word: str
    needs: tuple[int, ...]
    value: Callable[[Floats], Floats]
    slopes: Callable[[Floats], Floats]
    scale: float

    @property
    def degrees(self) -> tuple[int, int]:
        """Of the polynomials: 2 where a square is needed, 0 where the column is not."""
        return 2 if 3 in self.needs else 1, 2 if 4 in self.needs else 1 if 2 in self.needs else 0

    def weights(self) -> Floats:
        """The features in terms of the shares, shape (6, shares)."""
        first, second = (POLYNOMIALS[degree] for degree in self.degrees)
        found = np.zeros((6, len(first[0]) * len(second[0])))
        for (i, j), place in SQUARES.items():
            if place in self.needs and i < len(first) and j < len(second):
                found[place] = np.outer(first[i], second[j]).reshape(-1)
        return found

    def theory(self, exact: Floats) -> dict[str, float]:
        """The standard error of every way."""
        d, slope = len(self.needs), self.slopes(exact)[list(self.needs)]
        shared = self.slopes(exact) @ self.weights()
        naive = self.slopes(exact) @ UNCENTRED
        squares = {
            "cube": (d + 1) * (d + 2) / 3 * (slope @ slope),
            "shares": 2 * (shared @ shared),
            "split": 2 * d * d * (slope @ slope),
            "naive": 2 * d * d * (naive @ naive),
        }
        return {way: self.scale * math.sqrt(square) / EPSILON for way, square in squares.items()}

    def simulated(self, exact: Floats, way: str, runs: int) -> Floats:
        """Errors of shape (runs, 1)."""
        draw, d = np.random.default_rng([SEED, *way.encode(), *self.word.encode()]), len(self.needs)
        noise = np.zeros((runs, 6))
        if way == "cube":
            radius = draw.gamma(d + 1, 1 / EPSILON, (runs, 1))
            noise[:, self.needs] = radius * draw.uniform(-1, 1, (runs, d))
        elif way == "shares":
            weights = self.weights()
            noise = draw.laplace(0, 1 / EPSILON, (runs, weights.shape[1])) @ weights.T
        elif way == "naive":
            noise[:, self.needs] = draw.laplace(0, d / EPSILON, (runs, d))
            noise = noise @ UNCENTRED.T
        else:
            raise ValueError(way)
        off = self.value((exact + noise).T) - self.value(exact)
        return np.asarray(self.scale * off[:, None])


def _means(f: Floats) -> Floats:
    return np.asarray(f / np.maximum(f[0], 1))


def _spread(f: Floats, second: bool = False) -> Floats:
    """The variance of u or v, from 0 to 1."""
    means = _means(f)
    return np.asarray(np.clip((means[3 + second] + 1) / 2 - means[1 + second] ** 2, 0, 1))


def _spread_slopes(f: Floats, second: bool = False) -> Floats:
    mean, square = _means(f)[1 + second], _means(f)[3 + second]
    found = np.zeros(6)
    found[[0, 1 + second, 3 + second]] = 2 * mean**2 - square / 2, -2 * mean, 0.5
    return np.asarray(found / f[0])


def _shared(f: Floats) -> Floats:
    """The covariance, from -1 to 1."""
    means = _means(f)
    return np.asarray(np.clip(means[5] - means[1] * means[2], -1, 1))


def _shared_slopes(f: Floats) -> Floats:
    _, u, v, _, _, p = _means(f)
    return np.asarray(np.array([2 * u * v - p, -v, -u, 0, 0, 1]) / f[0])


def _correlation(f: Floats) -> Floats:
    return np.asarray(np.clip(_shared(f) / np.sqrt(np.maximum(_spread(f) * _spread(f, True), 1e-12)), -1, 1))


def _correlation_slopes(f: Floats) -> Floats:
    relative = _shared_slopes(f) / _shared(f)
    for second in (False, True):
        relative = relative - _spread_slopes(f, second) / (2 * _spread(f, second))
    return np.asarray(_correlation(f) * relative)


def _slope(f: Floats) -> Floats:
    return np.asarray(_shared(f) / np.maximum(_spread(f, True), 1e-12))


def _slope_slopes(f: Floats) -> Floats:
    return np.asarray((_shared_slopes(f) - _slope(f) * _spread_slopes(f, True)) / _spread(f, True))


SQUARED = (WIDTH / 2) ** 2
VARIANCE = Statistic("VAR_POP", (0, 1, 3), _spread, _spread_slopes, SQUARED)
DEVIATION = Statistic(
    "STDDEV",
    (0, 1, 3),
    lambda f: np.sqrt(_spread(f)),
    lambda f: _spread_slopes(f) / (2 * np.sqrt(_spread(f))),
    WIDTH / 2,
)
PAIRS = (
    Statistic("COVAR_POP", (0, 1, 2, 5), _shared, _shared_slopes, SQUARED),
    Statistic("REGR_SLOPE", (0, 1, 2, 4, 5), _slope, _slope_slopes, 1.0),
    Statistic("CORR", (0, 1, 2, 3, 4, 5), _correlation, _correlation_slopes, 1.0),
)


def _table(**columns: Floats) -> dpsql.Table:
    bounds = dict.fromkeys(columns, (0, WIDTH))
    return dpsql.Table(pd.DataFrame(columns), bounds=bounds, nullable=dict.fromkeys(columns, False))


def _evenly(mean: float) -> Floats:
    """Values spread evenly around a mean, as far as the range allows, from 0 to WIDTH."""
    return np.asarray(WIDTH * np.linspace(max(0, 2 * mean - 1), min(1, 2 * mean), ROWS))


def one_column(runs: int) -> list[Row]:
    """VAR and STDDEV, in percent of the truth: of a column spread evenly over its range, and of one with the mean .3
    and the standard deviation .16 of it."""
    bent = np.random.default_rng(SEED).beta(2.1, 4.9, ROWS) * WIDTH
    rows: list[Row] = []
    for (name, values), word in product((("uniform", _evenly(0.5)), ("beta", bent)), ("VAR_POP", "VAR_SAMP", "STDDEV")):
        exact = features(2 * values / WIDTH - 1, np.zeros(ROWS))
        truth = values.std(ddof=1) if word == "STDDEV" else values.var(ddof=int(word == "VAR_SAMP"))
        statistic = DEVIATION if word == "STDDEV" else VARIANCE
        unit, expected = float(truth) / 100, statistic.theory(exact)
        row: dict[str, object] = {"data": name, "of": word}
        for way in ("auto", "split"):
            off = errors(_table(x=values), f"SELECT {word}(x) FROM t", np.array([[truth]]), runs, strategy=way)
            row[way] = rmse(off[:, 0] / unit)
            row[f"theory {way}"] = expected["cube" if way == "auto" else way] / unit
        row |= {"shares": rmse(statistic.simulated(exact, "shares", runs) / unit)}
        row |= {"naive": rmse(statistic.simulated(exact, "naive", runs) / unit)}
        rows.append(row | {"at most": "1.6" if word == "VAR_POP" else "-"})
    return rows


def by_mean(runs: int) -> list[Row]:
    """VAR_POP at several means, in WIDTH^2 / (n epsilon); `auto` is the cube, and `shares` what it could be."""
    unit = WIDTH**2 / (ROWS * EPSILON)
    rows: list[Row] = []
    for mean in MEANS:
        values = _evenly(mean)
        exact = features(2 * values / WIDTH - 1, np.zeros(ROWS))
        off = errors(_table(x=values), "SELECT VAR_POP(x) FROM t", np.array([[values.var()]]), runs)
        expected = VARIANCE.theory(exact)
        row: dict[str, object] = {"mean": f"{mean:g}", "auto": rmse(off[:, 0] / unit)}
        row["theory auto"] = expected["cube"] / unit
        for way in ("shares", "naive"):
            row[way] = rmse(VARIANCE.simulated(exact, way, runs) / unit)
            row[f"theory {way}"] = expected[way] / unit
        rows.append(row | {"theory split": expected["split"] / unit})
    return rows


def two_columns(runs: int) -> list[Row]:
    """COVAR_POP, REGR_SLOPE and CORR of two correlated columns, in percent of the truth."""
    draw = np.random.default_rng(SEED)
    x = draw.uniform(0, WIDTH, ROWS)
    y = (x + draw.uniform(0, WIDTH, ROWS)) / 2
    exact = features(2 * y / WIDTH - 1, 2 * x / WIDTH - 1)
    covariance = float(np.cov(y, x, ddof=0)[0, 1])
    truth = {
        "COVAR_POP": covariance,
        "REGR_SLOPE": covariance / float(x.var()),
        "CORR": float(np.corrcoef(y, x)[0, 1]),
    }
    rows: list[Row] = []
    for statistic in PAIRS:
        sql, aim = f"SELECT {statistic.word}(y, x) FROM t", np.array([[truth[statistic.word]]])
        unit, expected = truth[statistic.word] / 100, statistic.theory(exact)
        row: dict[str, object] = {"of": statistic.word}
        for way in ("auto", "split"):
            off = errors(_table(y=y, x=x), sql, aim, runs, strategy=way)
            row[way] = rmse(off[:, 0] / unit)
            row[f"theory {way}"] = expected["shares" if way == "auto" else way] / unit
            if way == "auto":
                row["cube"] = rmse(statistic.simulated(exact, "cube", runs) / unit)
                row["theory cube"] = expected["cube"] / unit
        row["naive"] = rmse(statistic.simulated(exact, "naive", runs) / unit)
        rows.append(row | {"theory naive": expected["naive"] / unit})
    return rows
