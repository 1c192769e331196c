"""Half-widths of linear combinations against closed forms in many digits, the tails of pairs, and many draws."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import product
from math import comb, factorial
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from dpsql.accuracy import pairs
from dpsql.accuracy.linear_combinations import fewer, half_widths

LEVELS = [0.05, 0.5, 0.9, 0.95, 0.999, 1 - 1e-6, 1 - 1e-9]
FINE = 1 + 1.2e-4  # where no weight is rounded up
COARSE = 1 + 1e-3


def exact_laplace_tail(weights: list[float], t: float) -> Any:
    """Partial fractions of the product of 1 / (1 - w^2 s^2): the residue of each pole times exp(-t / w). Equal weights
    are told apart in the 40th digit, which moves the tail no more than that."""
    with mpmath.workdps(1000):
        exact = [mpmath.mpf(w) * (1 + i * mpmath.mpf(10) ** -40) for i, w in enumerate(weights)]
        squares = [w * w for w in exact]
        total = mpmath.mpf(0)
        for i, w in enumerate(exact):
            shares = [squares[i] / (squares[i] - square) for j, square in enumerate(squares) if j != i]
            total += mpmath.fprod(shares) * mpmath.exp(-mpmath.mpf(t) / w)
        return total


def exact_cube_tail(dimension: int, weights: list[float], t: float) -> Any:
    """E P(|sum w_i U_i| > t / R), R Gamma(d + 1): over R by incomplete gamma functions, term by term."""
    d, k = dimension, len(weights)
    with mpmath.workdps(200):
        w = [mpmath.mpf(each) for each in weights]
        t = mpmath.mpf(t)
        total = mpmath.mpf(0)
        for signs in product((1, -1), repeat=k):
            c = mpmath.fdot(signs, w)
            if c <= 0:
                continue
            powers = (
                comb(k, j) * c ** (k - j) * (-t) ** j * mpmath.gammainc(d + 1 - j, t / c) / factorial(d)
                for j in range(k + 1)
            )
            total += mpmath.fprod(signs) * mpmath.fsum(powers)
        return 2 * total / (2**k * factorial(k) * mpmath.fprod(w))


def check_width(t: float, level: float, tail: Callable[[float], Any], factor: float) -> None:
    """t is no narrower than exact, and t / factor is narrower."""
    assert tail(t) <= 1 - mpmath.mpf(level)
    assert tail(t / factor) > 1 - mpmath.mpf(level)


# Closed forms


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "weights",
    [
        [1.0],
        [1.0, 1.0],
        [1.0, 0.7, 0.7, 0.0001],
        [2.0] * 9,
        [1.0, 1 + 1e-9, 1 - 1e-9, 1 + 1e-15, 1.0],
        [1e6, 1.0, 1.0, 2.0, 3.0],
        [1.0, *[1e-7] * 8],
        [0.3, 0.35, 0.9, 1.1, 0.2, 0.31, 0.05, 0.6, 0.7],
        [1.0] * 20,
    ],
)
def test_laplace_widths_are_those_of_partial_fractions(weights: list[float], level: float) -> None:
    (t,) = half_widths("laplace", len(weights), np.array(weights)[:, None], level)
    check_width(t, level, lambda x: exact_laplace_tail(weights, x), FINE)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("dimension", "weights", "factor"),
    [
        (1, [3.0], FINE),
        (2, [1.0, 1.0], FINE),
        (3, [1.0, 0.4, 0.01], FINE),
        (3, [1.0, 1.0, 2.0], FINE),  # one sum of signs is 0
        (6, [1.0] * 6, FINE),
        (20, [1.0, 0.9, 0.5, 0.3, 0.2, 0.1], FINE),
        (6, [1.0, 0.004, 0.004, 0.004, 0.004, 0.004], FINE),  # where most cancels
        (20, [1.0, 0.004, 0.004, 0.004, 0.004, 0.004], FINE),
        (6, [1.0, *[1e-9] * 5], COARSE),
        (20, [1.0, *[1e-9] * 5], COARSE),
        (20, [1e8, 1e8, 1.0, 1.0, 1.0, 1.0], COARSE),
        (12, [1.0, 0.5, 0.002, 0.001], COARSE),
    ],
)
def test_cube_widths_are_those_of_incomplete_gammas(
    dimension: int, weights: list[float], factor: float, level: float
) -> None:
    (t,) = half_widths("cube", dimension, np.array(weights)[:, None], level)
    check_width(t, level, lambda x: exact_cube_tail(dimension, weights, x), factor)


@pytest.mark.parametrize("level", LEVELS)
def test_pairs_have_the_tails_of_pairs(level: float) -> None:
    ratios = np.array([0.0, 0.001, 0.01, 0.3, 0.5, 0.99, 1.0])
    weights = np.stack([np.ones_like(ratios), ratios])
    widths = half_widths("laplace", 2, weights, level)
    for ratio, t in zip(ratios.tolist(), widths.tolist(), strict=True):
        exact = pairs.solve(lambda x, r=ratio: pairs.laplace_pair_tail(r, x), 1 - level)
        assert exact <= t <= exact * FINE
    for dimension in (2, 7, 20):
        widths = half_widths("cube", dimension, weights, level)
        tail = pairs.cube_pair_tail(dimension)
        for ratio, t in zip(ratios.tolist(), widths.tolist(), strict=True):
            exact = pairs.solve(lambda x, r=ratio: tail(r, x), 1 - level)  # noqa: B023 - called at once
            assert exact <= t <= exact * COARSE
        assert widths[0] == pytest.approx(pairs.cube_quantile(dimension, level), rel=2e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_gaussian_widths_are_normal_quantiles(level: float) -> None:
    weights = np.array([[3.0, 0.0, 1.0], [-4.0, 2.0, 1e-9]])
    exact = np.array([5.0, 2.0, 1.0]) * norm.isf((1 - level) / 2)
    widths = half_widths("gaussian", 2, weights, level)
    assert np.all(widths >= exact * (1 - 1e-15))
    np.testing.assert_allclose(widths, exact, rtol=1e-10)


# Draws


@pytest.mark.parametrize(
    ("law", "dimension", "k"),
    [("cube", 3, 3), ("cube", 6, 6), ("cube", 12, 4), ("laplace", 3, 3), ("laplace", 9, 9), ("gaussian", 4, 4)],
)
def test_shares_of_a_million_draws(law: str, dimension: int, k: int) -> None:
    """5.5 standard errors for each of 48 shares: a false alarm once in half a million runs."""
    rng, draws = np.random.default_rng(), 10**6
    match law:
        case "cube":
            noise = rng.gamma(dimension + 1, size=draws) * rng.uniform(-1, 1, (k, draws))
        case "laplace":
            noise = rng.laplace(size=(k, draws))
        case _:
            noise = rng.standard_normal((k, draws))
    weights = np.column_stack([np.ones(k), rng.normal(size=k), 100 * (np.arange(k) == 0) + 1.0, 0.7 ** np.arange(k)])
    size = np.abs(weights.T @ noise)
    for level in (0.5, 0.95):
        shares = (size <= half_widths(law, dimension, weights, level)[:, None]).mean(axis=1)
        np.testing.assert_allclose(shares, level, atol=5.5 * (level * (1 - level) / draws) ** 0.5 + 1e-4)


# A norm of the weights


@pytest.mark.parametrize("level", [0.1, 0.95, 0.9999])
@pytest.mark.parametrize(("law", "dimension", "k"), [("cube", 3, 3), ("cube", 9, 6), ("laplace", 5, 5)])
def test_linear_interpolation_between_weights_errs_to_the_safe_side(
    law: str, dimension: int, k: int, level: float
) -> None:
    """The width is convex along every line, up to the accuracy of the widths, and of degree 1."""
    rng = np.random.default_rng(1)
    start, stop = rng.uniform(0.05, 1, (k, 300)), rng.uniform(-1, 1, (k, 300))
    stop = np.copysign(np.maximum(np.abs(stop), 0.05), stop)
    ends = half_widths(law, dimension, start, level), half_widths(law, dimension, stop, level)
    for share in (0.1, 0.5, 0.8):
        inside = half_widths(law, dimension, start * (1 - share) + stop * share, level)
        assert np.all(inside <= (ends[0] * (1 - share) + ends[1] * share) * COARSE)
    # Most are narrower by far more than the accuracy: the bound above is not met for want of it.
    assert np.mean(inside < (ends[0] * (1 - share) + ends[1] * share) / COARSE) > 0.9
    np.testing.assert_allclose(half_widths(law, dimension, -1e5 * start, level), 1e5 * ends[0], rtol=1e-4)


# Shapes and refusals


@pytest.mark.parametrize(("law", "dimension"), [("cube", 6), ("laplace", 6), ("gaussian", 6)])
def test_zeros_drop_out_and_order_and_signs_do_not_matter(law: str, dimension: int) -> None:
    weights = np.array([[1.0, 0.0, -2.0, 0.0, 0.5, 0.0, 0.0], [0.5, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0]]).T
    widths = half_widths(law, dimension, weights, 0.95)
    np.testing.assert_allclose(widths[0], half_widths(law, dimension, np.array([[1.0], [2.0], [0.5]]), 0.95)[0])
    np.testing.assert_allclose(widths[1], half_widths(law, dimension, np.array([[1.0], [2.0], [0.5]]), 0.95)[0])
    assert half_widths(law, dimension, np.zeros((3, 2)), 0.95).tolist() == [0.0, 0.0]
    assert half_widths(law, dimension, np.zeros((3, 0)), 0.95).shape == (0,)
    assert half_widths(law, dimension, np.zeros((0, 2)), 0.95).tolist() == [0.0, 0.0]


def test_many_vectors_have_the_widths_of_each_alone() -> None:
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(3, 3_000)) * rng.integers(0, 2, (3, 3_000))
    for law in ("cube", "laplace"):
        together = half_widths(law, 4, weights, 0.95)
        some = range(0, 3_000, 300)
        alone = [half_widths(law, 4, weights[:, [i]], 0.95)[0] for i in some]
        np.testing.assert_allclose(together[list(some)], alone, rtol=1e-4)


def test_a_thousand_vectors_take_milliseconds() -> None:
    weights = np.random.default_rng(3).normal(size=(3, 1_000))
    for law in ("cube", "laplace"):
        times = []
        for _ in range(10):
            start = time.perf_counter()
            half_widths(law, 3, weights, 0.95)
            times.append(time.perf_counter() - start)
        assert min(times) < 0.05


@pytest.mark.parametrize(
    ("law", "dimension", "weights", "level", "message"),
    [
        ("cube", 3, np.ones((3, 1)), 1.0, "level"),
        ("cube", 3, np.ones((3, 1)), 0.0, "level"),
        ("cube", 3, np.ones((3, 1)), np.nan, "level"),
        ("cube", 2, np.ones((3, 1)), 0.9, "more weights"),
        ("cauchy", 3, np.ones((3, 1)), 0.9, "unknown law"),
        ("laplace", 3, np.array([[np.nan]]), 0.9, "finite"),
        ("gaussian", 3, np.array([[np.inf]]), 0.9, "finite"),
        ("laplace", 3, np.ones(3), 0.9, "shape"),
    ],
)
def test_what_has_no_width_is_refused(law: str, dimension: int, weights: Any, level: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        half_widths(law, dimension, weights, level)


# More weights than are summed


def test_more_weights_than_are_summed_are_put_together_to_the_safe_side() -> None:
    """4.9 standard errors below the level for each of 8 shares: a false alarm once in a quarter of a million runs."""
    k, draws = 9, 10**6
    rng = np.random.default_rng()
    noise = rng.gamma(k + 1, size=draws) * rng.uniform(-1, 1, (k, draws))
    weights = np.column_stack([np.ones(k), 0.7 ** np.arange(k), rng.normal(size=k), rng.normal(size=k)])
    size = np.abs(weights.T @ noise)
    for level in (0.5, 0.95):
        shares = (size <= half_widths("cube", k, weights, level)[:, None]).mean(axis=1)
        assert np.all(shares >= level - 4.9 * (level * (1 - level) / draws) ** 0.5)
        assert np.all(shares <= 1 - 0.25 * (1 - level))  # of nine equal ones, three pairs and three are left


def test_the_smallest_weights_are_put_together() -> None:
    weights = np.array([[8.0, 1.0], [4.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
    np.testing.assert_array_equal(fewer(weights, 4, 4), weights)
    np.testing.assert_array_equal(fewer(weights, 4, 3), [[8, 2], [4, 1], [3, 1]])
    np.testing.assert_array_equal(fewer(weights, 4, 2), [[8, 2], [7, 2]])
    with pytest.raises(ValueError, match="more weights"):
        fewer(weights, 3, 2)
