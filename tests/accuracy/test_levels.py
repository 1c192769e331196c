"""Noise of least-squares estimates: what it is made of, against the estimates of unit tables; how far it reaches,
against convolutions of binned laws, other modules' single terms, normal limits, and many draws.

Cases and draws come from fixed seeds: nothing here fails by chance.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaincc
from scipy.stats import norm

from dpsql.accuracy import linear_combinations
from dpsql.accuracy.generating_functions import CubeCombination, LaplaceCombination
from dpsql.accuracy.hierarchies import GroupingSet, consistent, variances_of
from dpsql.accuracy.levels import _Sum, half_widths, mixture
from tests.accuracy.grouping_sets import cube_sets, rollup_sets

SEED = 20_240_229
WIDEST = 1.0015
"""More than that is not needed anywhere but for weights below 1/256."""
LEVELS = [0.05, 0.5, 0.8, 0.95, 0.999, 1 - 1e-6]

Floats = NDArray[np.float64]
Terms = Sequence[tuple[float, int]]


def shape(grouping: GroupingSet, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sizes[key] for key in grouping)


def noise_terms(
    scales: Mapping[GroupingSet, float], sizes: Sequence[int], wanted: GroupingSet
) -> list[tuple[float, int]]:
    """Factors and copies of the noise of one cell, for noise of these scales."""
    cells = mixture({each: scale**2 for each, scale in scales.items()}, sizes, wanted)
    return [(weight * scales[measured], copies) for measured, weight, copies in cells]


# What the noise is made of


def hierarchy(rng: np.random.Generator) -> tuple[list[int], dict[GroupingSet, float], list[GroupingSet]]:
    """Sizes, variances of measured sets, and wanted sets that these determine."""
    sizes = [int(size) for size in rng.integers(1, 5, int(rng.integers(1, 4)))]
    every = cube_sets(len(sizes))
    measured = [every[place] for place in rng.permutation(len(every))[: rng.integers(1, len(every) + 1)]]
    variances = {each: float(np.exp(rng.uniform(-3, 3))) for each in measured}
    return sizes, variances, [each for each in every if any(set(each) <= set(some) for some in measured)]


@pytest.mark.parametrize("case", range(40))
def test_weights_are_those_that_estimates_give_to_unit_tables(case: int) -> None:
    rng = np.random.default_rng([SEED, case])
    sizes, variances, wanted = hierarchy(rng)
    zeros = {each: np.zeros(shape(each, sizes)) for each in variances}
    seen: dict[tuple[GroupingSet, GroupingSet], list[Floats]] = {}
    for measured, table in zeros.items():
        for cell in np.ndindex(table.shape):
            unit = table.copy()
            unit[cell] = 1
            for each, answers in consistent(zeros | {measured: unit}, variances, wanted).items():
                seen.setdefault((each, measured), []).append(answers.ravel())
    stated = variances_of(variances, sizes, wanted)
    for each in wanted:
        cells = mixture(variances, sizes, each)
        assert sum(w * w * variances[measured] * n for measured, w, n in cells) == pytest.approx(stated[each])
        for measured in variances:
            copies = [w for some, w, n in cells if some == measured for _ in range(n)]
            for weights in np.stack(seen[each, measured], axis=1):  # those of one cell of the estimate
                np.testing.assert_allclose(np.sort(weights), np.sort(copies), rtol=1e-9, atol=1e-12)


def test_alike_cells_are_one_entry() -> None:
    cells = mixture({(0, 1): 2.0, (1,): 3.0, (): 5.0}, (1_000, 300), (1,))
    assert Counter(each.measured for each in cells) == {(0, 1): 2, (1,): 2, (): 1}
    assert sorted(each.copies for each in cells) == [1, 1, 299, 1_000, 299_000]
    # Shares of the cell's own sum from the sets that see it, and of the others', add up to 1 and 0.
    assert cells[0].measured == (0, 1)
    own = sum(w * n / (1_000 if measured == (0, 1) else 1) for measured, w, n in cells if n in {1, 1_000})
    assert own == pytest.approx(1)


def test_a_set_without_noise_decides_alone() -> None:
    cells = mixture({(0,): 4.0, (): 0.0}, (10,), ())
    assert [each.weight for each in cells if each.measured == ()] == [pytest.approx(1)]
    assert all(abs(each.weight) < 1e-12 for each in cells if each.measured == (0,))


@pytest.mark.parametrize(
    ("variances", "sizes", "wanted", "says"),
    [
        ({(0,): 1.0}, (3,), (0, 1), "measured"),
        ({(0,): 1.0, (1,): 1.0}, (3, 2), (0, 1), "no measured set has all keys"),
        ({(0,): -1.0}, (3,), (), "variance"),
        ({(0, 1): 1.0}, (3, 2), (1, 0), "ascending"),
        ({(0,): 1.0}, (0,), (), "have values"),
    ],
)
def test_what_has_no_estimate_is_refused(variances: Any, sizes: Any, wanted: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        mixture(variances, sizes, wanted)


# Against convolutions


def cell_tail(law: str, dimension: int, weights: Floats, t: Floats) -> Floats:
    """P(<w, X> > t), t > 0, for the cube by the incomplete gamma functions of the tail given R; for one Laplace
    coordinate it is half of exp(-t)."""
    if law == "laplace":
        return np.exp(-t / weights[0]) / 2
    k, total = len(weights), np.zeros_like(t)
    for signs in itertools.product((1, -1), repeat=k):
        reach = float(np.dot(signs, weights))
        for j in range(k + 1) if reach > 0 else ():
            share = math.comb(k, j) * reach ** (k - j) / math.perm(dimension, j)
            total += math.prod(signs) * share * (-t) ** j * gammaincc(dimension + 1 - j, t / reach)
    return total / (2**k * math.factorial(k) * weights.prod())


def convolved_widths(terms: Terms, law: str, dimension: int, weights: Floats, levels: Sequence[float]) -> Floats:
    """Half-widths of a sum of cells, each rounded to a grid of a million points: the relative error is some 1e-6."""
    points = 2**20
    weights = np.abs(weights)
    if law == "laplace":  # independent coordinates are cells of their own
        terms = [(factor * weight, copies) for factor, copies in terms for weight in weights.tolist()]
        weights, dimension = np.ones(1), 1
    spread = (dimension + 1) * (dimension + 2) / 3 * (weights**2).sum()
    deviation = math.sqrt(sum(factor**2 * copies for factor, copies in terms) * spread)
    step = (60 * deviation + 120 * max(abs(factor) for factor, _ in terms) * weights.sum()) / points
    places = np.arange(points // 2 + 1)
    spectrum = np.ones(points // 2 + 1)
    for factor, copies in terms:
        above = cell_tail(law, dimension, weights * abs(factor), (places + 0.5) * step)
        one = np.concatenate([[1 - 2 * above[0]], above[:-1] - above[1:]])
        spectrum = spectrum * np.fft.rfft(np.concatenate([one, one[-2:0:-1]])).real ** copies
    found = np.fft.irfft(spectrum, points)[: points // 2]
    outside = 2 * np.cumsum(found[::-1])[::-1]  # P(|N| > (i - 1/2) step)
    return np.array([np.interp(level - 1, -outside, (np.arange(len(outside)) - 0.5) * step) for level in levels])


CONVOLVED: list[tuple[str, int, list[float], Terms]] = [
    ("laplace", 1, [1.0], [(1.0, 2)]),
    ("laplace", 1, [3.0], [(1.0, 1), (0.5, 1), (0.01, 5), (0.003, 40)]),
    ("laplace", 3, [1.0, -0.4, 0.1], [(2.0, 1), (-0.3, 3)]),
    ("laplace", 2, [1.0, 1.0], [(1.0, 1), (0.02, 10_000)]),
    ("cube", 1, [1.0], [(1.0, 1), (0.9, 1)]),
    ("cube", 2, [1.0, 1.0], [(1.0, 2)]),
    ("cube", 2, [1.0, -0.02], [(1.0, 1), (0.2, 9)]),
    ("cube", 3, [0.5, 1.0, 0.5], [(1.0, 1), (0.99, 1), (0.001, 3)]),
    ("cube", 3, [1.0, 0.1, 0.01], [(1.0, 1), (0.05, 50), (0.04, 1_000)]),
    ("cube", 8, [1.0], [(1.0, 1), (0.6, 2)]),
    ("cube", 20, [1.0, 0.9, 0.8], [(1.0, 1), (0.1, 30), (0.0001, 10**6)]),
    ("cube", 20, [1.0, 0.3], [(0.7, 200)]),
]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("law", "dimension", "weights", "terms"), CONVOLVED)
def test_widths_are_those_of_convolutions(law: str, dimension: int, weights: list[float], terms: Terms) -> None:
    exact = convolved_widths(terms, law, dimension, np.array(weights), LEVELS)
    column = np.array(weights)[:, None]
    found = [float(half_widths(terms, law, dimension, column, level)[0]) for level in LEVELS]
    assert np.all(found >= exact * (1 - 2e-6))
    assert np.all(found <= exact * WIDEST)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("case", range(12))
def test_random_sums_against_convolutions(case: int) -> None:
    rng = np.random.default_rng([SEED, case])
    dimension = int(rng.integers(1, 21 if case % 2 else 4))
    k, count = min(dimension, case % 3 + 1), int(rng.integers(2, 8))
    weights = rng.uniform(-1, 1, k) * 10 ** rng.uniform(-1.5, 0, k)
    copies = (10 ** rng.uniform(0, 3.5, count) * (rng.random(count) < 0.6) + 1).astype(int).tolist()
    terms = list(zip((10 ** rng.uniform(-3, 0, count)).tolist(), copies, strict=True))
    exact = convolved_widths(terms, "cube", dimension, weights, [0.3, 0.95, 0.9999])
    for level, width in zip([0.3, 0.95, 0.9999], exact.tolist(), strict=True):
        (found,) = half_widths(terms, "cube", dimension, weights[:, None], level)
        assert width * (1 - 2e-6) <= found <= width * WIDEST


@pytest.mark.parametrize("dimension", [3, 20])
def test_tiny_weights_cost_little_width(dimension: int) -> None:
    """They are rounded up, but to no more than 0.3 % of the width."""
    terms = [(1.0, 1), (0.3, 4)]
    for level in LEVELS:
        alone = half_widths(terms, "cube", dimension, np.array([[1.0]]), level)
        (exact,) = convolved_widths(terms, "cube", dimension, np.array([1.0]), [level])
        joined = half_widths(terms, "cube", dimension, np.array([[1.0], [1e-9], [1e-7]]), level)
        assert exact * (1 - 2e-6) <= alone <= joined * (1 + 1e-3)
        assert joined <= exact * 1.003


# Against the other modules


@pytest.mark.parametrize("law", ["cube", "laplace", "gaussian"])
def test_one_copy_is_a_linear_combination(law: str) -> None:
    weights = np.random.default_rng(SEED).normal(size=(3, 40))
    for terms in ([(2.5, 1)], [(-2.5, 1), (0.0, 7), (9.0, 0)]):
        for level in (0.01, 0.95, 1 - 1e-9):
            expected = 2.5 * linear_combinations.half_widths(law, 5, weights, level)
            np.testing.assert_allclose(half_widths(terms, law, 5, weights, level), expected, rtol=1e-14)


@pytest.mark.parametrize("level", [0.05, 0.8, 0.95, 0.999, 1 - 1e-9])
def test_laplace_copies_are_more_coordinates(level: float) -> None:
    rng = np.random.default_rng(SEED)
    weights = rng.normal(size=(3, 50)) * 10 ** rng.uniform(-3, 0, (3, 50))
    for terms in ([(1.0, 2)], [(1.0, 1), (0.3, 3), (0.01, 2)], [(1.0, 1), (1e-6, 4)]):
        spelled = np.concatenate([factor * weights for factor, copies in terms for _ in range(copies)])
        exact = linear_combinations.half_widths("laplace", len(spelled), spelled, level)
        ratio = half_widths(terms, "laplace", 3, weights, level) / exact
        assert np.all(ratio > 1 - 1.3e-4)  # by so much may those of `linear_combinations` be wider than exact
        assert np.all(ratio < WIDEST)


def test_gaussian_copies_add_their_variances() -> None:
    weights = np.array([[3.0, 0.0], [-4.0, 1.0]])
    found = half_widths([(1.0, 4), (-2.0, 3)], "gaussian", 2, weights, 0.95)
    np.testing.assert_allclose(found, np.array([5.0, 1.0]) * 4 * norm.isf(0.025), rtol=1e-10)


@pytest.mark.parametrize(
    ("law", "dimension", "variance"), [("laplace", 3, 2.0), ("cube", 3, 20 / 3), ("cube", 20, 154)]
)
@pytest.mark.parametrize("copies", [10**5, 10**7])
def test_many_copies_are_nearly_normal(law: str, dimension: int, variance: float, copies: int) -> None:
    weights = np.random.default_rng(SEED).normal(size=(3, 30))
    for level in (0.05, 0.8, 0.95, 0.999, 1 - 1e-6):
        normal = norm.isf((1 - level) / 2) * np.sqrt((weights**2).sum(axis=0) * variance * copies)
        ratio = half_widths([(0.5, copies)], law, dimension, weights, level) / (normal / 2)
        assert np.all(ratio > 1 - 1e-4)  # kurtosis below 6 / copies
        assert np.all(ratio < WIDEST)


# Draws, through the estimates themselves

EQUAL = {"ROLLUP": rollup_sets(2), "CUBE": cube_sets(2)}
UNEVEN = [0.55, 0.3, 0.1, 0.05]


def draws(rng: np.random.Generator, law: str, dimension: int, size: tuple[int, ...]) -> Floats:
    match law:
        case "cube":
            return rng.gamma(dimension + 1, size=size) * rng.uniform(-1, 1, (dimension, *size))
        case "laplace":
            return rng.laplace(size=(dimension, *size))
        case _:
            return rng.standard_normal((dimension, *size))


@pytest.mark.parametrize("shares", ["equal", "uneven"])
@pytest.mark.parametrize("grouping", EQUAL)
@pytest.mark.parametrize(("law", "dimension"), [("cube", 3), ("laplace", 2), ("gaussian", 2)])
def test_coverage_of_estimates(law: str, dimension: int, grouping: str, shares: str) -> None:
    """For one cell of every set and three combinations. 5.5 standard errors for each of some 400 shares."""
    rng, runs, sizes, sets = np.random.default_rng(SEED), 40_000, (4, 3), EQUAL[grouping]
    parts = [1 / len(sets)] * len(sets) if shares == "equal" else UNEVEN[: len(sets)]
    scales = {each: 1 / part for each, part in zip(sets, parts, strict=True)}
    noisy = {each: scale * draws(rng, law, dimension, (runs, *shape(each, sizes))) for each, scale in scales.items()}
    estimates = consistent(noisy, {each: scale**2 for each, scale in scales.items()}, sets)
    weights = np.array([[1.0, 1.0, 0.2], [0.0, -1.0, 1.0], [0.0, 0.5, -0.7]])[:dimension]
    for each in sets:
        cells = estimates[each].reshape(dimension, runs, -1)[..., int(rng.integers(math.prod(shape(each, sizes))))]
        off = np.abs(weights.T @ cells)
        for level in (0.8, 0.95, 0.999):
            widths = half_widths(noise_terms(scales, sizes, each), law, dimension, weights, level)
            error = math.sqrt(level * (1 - level) / runs)
            np.testing.assert_allclose((off <= widths[:, None]).mean(axis=1), level, atol=5.5 * error + 1e-4)


def test_more_weights_than_are_summed_are_put_together_to_the_safe_side() -> None:
    """5 standard errors below the level for each of 12 shares."""
    rng, runs, sizes, sets, dimension = np.random.default_rng(SEED), 40_000, (2,), rollup_sets(1), 6
    scales = dict.fromkeys(sets, 1.0)
    noisy = {each: draws(rng, "cube", dimension, (runs, *shape(each, sizes))) for each in sets}
    estimates = consistent(noisy, scales, sets)
    weights = np.column_stack([np.ones(6), 0.6 ** np.arange(6), rng.normal(size=6)])
    for each in sets:
        off = np.abs(weights.T @ estimates[each].reshape(dimension, runs, -1)[..., 0])
        for level in (0.8, 0.95):
            widths = half_widths(noise_terms(scales, sizes, each), "cube", dimension, weights, level)
            shares = (off <= widths[:, None]).mean(axis=1)
            assert np.all(shares >= level - 5 * math.sqrt(level * (1 - level) / runs))
            assert np.all(shares <= 1 - 0.15 * (1 - level))


# A norm of the weights


@pytest.mark.parametrize(("law", "dimension", "k"), [("cube", 3, 3), ("cube", 9, 2), ("laplace", 5, 5)])
def test_linear_interpolation_between_weights_errs_to_the_safe_side(law: str, dimension: int, k: int) -> None:
    rng = np.random.default_rng(SEED)
    start, stop = rng.uniform(0.05, 1, (k, 200)), rng.uniform(-1, 1, (k, 200))
    stop = np.copysign(np.maximum(np.abs(stop), 0.05), stop)
    terms = [(1.0, 1), (0.4, 3), (0.1, 20)]
    ends = [half_widths(terms, law, dimension, each, 0.95) for each in (start, stop)]
    for share in (0.1, 0.5, 0.8):
        inside = half_widths(terms, law, dimension, start * (1 - share) + stop * share, 0.95)
        assert np.all(inside <= (ends[0] * (1 - share) + ends[1] * share) * WIDEST)
    np.testing.assert_allclose(half_widths(terms, law, dimension, -1e5 * start, 0.95), 1e5 * ends[0], rtol=1e-12)


# The formulas inside


def exact_moments(dimension: int, weights: Sequence[float], s: complex) -> Any:
    """E (1 - s <w, U>)^-(d + 1) as the repeated difference of an integral, in 80 digits."""
    d, k = dimension, len(weights)
    with mpmath.workdps(80):
        s, w = mpmath.mpc(s), [mpmath.mpf(each) for each in weights]
        total = mpmath.mpf(0)
        for signs in itertools.product((1, -1), repeat=k):
            total += math.prod(signs) * (1 - s * mpmath.fdot(signs, w)) ** -(d + 1 - k)
        return total / (mpmath.fprod(w) * (2 * s) ** k * math.perm(d, k))


@pytest.mark.parametrize("dimension", [1, 2, 3, 20])
def test_generating_functions_in_many_digits(dimension: int) -> None:
    """Errors times the most copies with which they matter, (7 / x)^2 at x = |s| reach (d + 1), are below 1e-6."""
    for k in range(1, min(dimension, 3) + 1):
        for weights in ([1, 1, 1], [1, 1 / 256, 1 / 256], [1, 0.5, 1 / 256], [1, 1, 1 / 256]):
            law = CubeCombination.of(dimension, np.array(weights[:k], dtype=np.float64)[:, None])
            for x in (1e-6, 1e-3, 0.1, 0.499, 0.501, 1, 3, 30):
                for s in x / (law.reach[0] * (dimension + 1)) * np.exp(1j * np.array([0, 0.6, 1.4, 1.57])):
                    if s.real * law.reach[0] < 0.97:
                        found = complex(law.moments(np.array([[s]]))[0, 0])
                        top = exact_moments(dimension, weights[:k], s.real).real
                        error = abs(found - complex(exact_moments(dimension, weights[:k], s))) / float(top)
                        assert error < 1e-15 * 20 + 1e-7 * (x / 7) ** 2


@pytest.mark.parametrize("law", ["cube", "laplace"])
def test_what_is_left_out_is_bounded(law: str) -> None:
    """The integral of |M(s) / s| from a height on, by Simpson's rule on a fine grid up to far beyond it."""
    rng = np.random.default_rng(SEED)
    for terms in ([(1.0, 1)], [(0.5, 2), (1.0, 1)], [(0.01, 1_000), (1.0, 1)], [(1.0, 500)], [(0.001, 1), (1.0, 3)]):
        for dimension, k in ((1, 1), (3, 3), (12, 2)):
            weights = -np.sort(-rng.uniform(0.1, 1, (k, 1)), axis=0)
            weights /= weights[0]
            one = CubeCombination.of(dimension, weights) if law == "cube" else LaplaceCombination(weights)
            noise = _Sum(one, terms)
            deviation = math.sqrt(float(one.variance[0]) * sum(factor**2 * copies for factor, copies in terms))
            for c in (0.3, 0.8):
                slope = c / (deviation / 3 + float(one.reach[0]))
                y = np.geomspace(0.01 / deviation, 1e5 / deviation, 100_001)
                size = np.abs(noise.moments(slope + 1j * y[:, None])[:, 0] / (slope + 1j * y))
                rest = np.concatenate([np.cumsum(((size * y)[1:] + (size * y)[:-1])[::-1])[::-1], [0.0]]) / 2
                rest *= math.log(y[1] / y[0])
                heights = np.arange(0, 80_000, 1_000)
                bounds = np.exp(noise.log_rest(slope + 1j * y[heights, None])[:, 0])
                assert np.all(rest[heights] <= bounds * (1 + 1e-6))


# Shapes, speed and refusals


@pytest.mark.parametrize("law", ["cube", "laplace", "gaussian"])
def test_zeros_drop_out_and_order_and_signs_do_not_matter(law: str) -> None:
    weights = np.array([[1.0, 0.0, -2.0, 0.0], [0.0, 2.0, 0.0, 1.0]]).T
    terms = [(1.0, 1), (-0.5, 2), (0.25, 3)]
    widths = half_widths(terms, law, 4, weights, 0.95)
    np.testing.assert_allclose(widths[0], half_widths(terms[::-1], law, 4, np.array([[2.0], [1.0]]), 0.95)[0])
    np.testing.assert_allclose(widths[1], widths[0])
    assert half_widths(terms, law, 4, np.zeros((3, 2)), 0.95).tolist() == [0.0, 0.0]
    assert half_widths(terms, law, 4, np.zeros((3, 0)), 0.95).shape == (0,)
    assert half_widths([], law, 4, np.ones((2, 2)), 0.95).tolist() == [0.0, 0.0]
    assert half_widths([(0.0, 5), (1.0, 0)], law, 4, np.ones((2, 2)), 0.95).tolist() == [0.0, 0.0]
    with_dust = half_widths([*terms, (1e-200, 2), (1e-17, 10**6)], law, 4, weights, 0.95)
    np.testing.assert_allclose(with_dust, widths, rtol=WIDEST - 1)


def test_low_levels_are_safe() -> None:
    for law, dimension in (("laplace", 1), ("cube", 6)):
        exact = convolved_widths([(1.0, 2), (0.1, 1)], law, dimension, np.ones(1), [0.001, 0.02])
        for level, width in zip([0.001, 0.02], exact.tolist(), strict=True):
            (found,) = half_widths([(1.0, 2), (0.1, 1)], law, dimension, np.ones((1, 1)), level)
            assert width * (1 - 1e-4) <= found <= width * 1.05


def test_many_vectors_have_the_widths_of_each_alone() -> None:
    rng = np.random.default_rng(SEED)
    weights = rng.normal(size=(3, 400)) * rng.integers(0, 2, (3, 400))
    for law in ("cube", "laplace"):
        together = half_widths([(1.0, 1), (0.7, 4)], law, 4, weights, 0.95)
        alone = [half_widths([(1.0, 1), (0.7, 4)], law, 4, weights[:, [i]], 0.95)[0] for i in range(0, 400, 40)]
        np.testing.assert_allclose(together[::40], alone, rtol=WIDEST - 1)


@pytest.mark.parametrize(
    ("terms", "law", "dimension", "weights", "level", "says"),
    [
        ([(1.0, 2)], "cube", 3, np.ones((3, 1)), 1.0, "level"),
        ([(1.0, 2)], "gaussian", 3, np.ones((3, 1)), 0.0, "level"),
        ([(1.0, 2)], "laplace", 3, np.ones((3, 1)), np.nan, "level"),
        ([(1.0, 2)], "cube", 2, np.ones((3, 1)), 0.9, "more weights"),
        ([(1.0, 2)], "cauchy", 3, np.ones((3, 1)), 0.9, "unknown law"),
        ([(1.0, 1)], "cauchy", 3, np.ones((3, 1)), 0.9, "unknown law"),
        ([(1.0, 2)], "laplace", 3, np.array([[np.nan]]), 0.9, "finite"),
        ([(1.0, 2)], "laplace", 3, np.ones(3), 0.9, "shape"),
        ([(np.inf, 2)], "laplace", 3, np.ones((3, 1)), 0.9, "factors"),
        ([(np.nan, 0)], "gaussian", 3, np.ones((3, 1)), 0.9, "factors"),
        ([(1.0, -1)], "cube", 3, np.ones((3, 1)), 0.9, "counts"),
    ],
)
def test_what_has_no_width_is_refused(
    terms: Any, law: str, dimension: int, weights: Any, level: float, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        half_widths(terms, law, dimension, weights, level)
