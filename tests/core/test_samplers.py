"""The samplers against laws computed on their own: closed forms, sums over the support, decimals.

A chi-square test fails at p < 1e-9, so that a right sampler raises a false alarm less than once in a
million runs: the law of chi-square, in cells that expect a hundred, is at worst some fifty times too
small so far out. No seed is needed.
"""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2, norm

from dpsql.core.mechanisms import samplers
from tests.core.exact_words import decided_exactly

Array = npt.NDArray[Any]
FLOOR = 1e-9
SIZES = [10**6, pytest.param(10**7, marks=pytest.mark.slow)]
DIGITS = Context(prec=150, Emin=-(10**9), Emax=10**9)


# Chi-square


def p_value(observed: Array, probabilities: Array) -> float:
    """Of Pearson's test, for counts of cells that make up the whole space.

    Neighbours are merged until they expect a hundred, and a 2000th of all.
    """
    total = observed.sum()
    least = max(100, total / 2000)
    starts, mass = [0], 0.0
    for i, expected in enumerate((probabilities * total).tolist()):
        mass += expected
        if mass >= least:
            starts.append(i + 1)
            mass = 0.0
    starts.pop()  # the rest joins the last full group
    counts = np.add.reduceat(observed, starts)
    expectations = np.add.reduceat(probabilities, starts) * total
    assert counts.size >= 2
    assert math.isclose(expectations.sum(), total, rel_tol=1e-9)
    return float(chi2.sf(((counts - expectations) ** 2 / expectations).sum(), counts.size - 1))


def p_of_values(draws: Array, low: int, probabilities: Array) -> float:
    """The p-value of draws against the probabilities of low, low + 1, ...; the rest in one cell."""
    inside = draws[(draws >= low) & (draws < low + len(probabilities))]
    counts = np.bincount(inside - low, minlength=len(probabilities))
    counts = np.append(counts, len(draws) - len(inside))
    return p_value(counts, np.append(probabilities, max(1 - probabilities.sum(), 0)))


def p_of_distribution(draws: Array, survival: Callable[[Array], Array], edges: Array) -> float:
    """The p-value of draws cut at edges, where survival(e) = P(draw >= e)."""
    above = np.concatenate([[1.0], survival(edges), [0.0]])
    cell = np.searchsorted(edges, draws, side="right")
    return p_value(np.bincount(cell, minlength=len(edges) + 1), -np.diff(above))


def laplace_law(scale: Fraction) -> tuple[int, Array]:
    reach = math.ceil(40 * scale) + 1
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / float(scale))
    return -reach, weights / weights.sum()


def gaussian_law(variance: Fraction) -> tuple[int, Array]:
    reach = math.ceil(9 * math.sqrt(variance)) + 1
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(variance)))
    return -reach, weights / weights.sum()


def norm_law(scale: Fraction, dimension: int) -> Array:
    """Of max_i |x_i|: the number of points of each norm, times a^norm."""
    norms = np.arange(math.ceil((60 + 8 * dimension) * scale) + 4)
    shell = (2.0 * norms + 1) ** dimension - np.maximum(2.0 * norms - 1, 0) ** dimension
    shell[0] = 1
    weights = shell * np.exp(-norms / float(scale))
    return weights / weights.sum()


def coordinate_law(scale: Fraction, dimension: int) -> tuple[int, Array]:
    """Of one coordinate v: points of norm |v| with the others anywhere, and points of greater norms."""
    norms = np.arange(math.ceil((60 + 8 * dimension) * scale) + 4)
    face = (2.0 * norms + 1) ** (dimension - 1)
    ring = (face - np.append(0, face[:-1])) * np.exp(-norms / float(scale))
    beyond = np.append(np.cumsum(ring[::-1])[::-1][1:], 0)
    half = face * np.exp(-norms / float(scale)) + beyond
    weights = np.append(half[:0:-1], half)
    return 1 - len(norms), weights / weights.sum()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1000, 2**16 + 1])
def test_uniform_below(bound: int, size: int):
    draws = samplers.uniform_below(bound, size)
    assert draws.dtype == np.int64
    assert draws.shape == (size,)
    assert draws.min() >= 0
    assert draws.max() < bound
    if bound > 1:
        assert p_of_values(draws, 0, np.full(bound, 1 / bound)) > FLOOR


@pytest.mark.parametrize("bound", [3 * 2**60, 2**62 - 1, 2**62])
def test_uniform_below_large_bounds(bound: int):
    """Where many words are rejected; the high cells and the low bits are uniform."""
    draws = samplers.uniform_below(bound, 10**6)
    edges = np.array([bound * i // 97 for i in range(1, 97)])
    assert p_of_distribution(draws, lambda e: 1 - e / bound, edges) > FLOOR
    assert p_of_values(draws % 64, 0, np.full(64, 1 / 64)) > FLOOR


def test_uniform_below_takes_each_element_its_own_bound():
    bounds = np.tile(np.array([1, 2, 5, 7, 2**40, 2**62]), (50_000, 1))
    draws = samplers.uniform_below(bounds)
    assert draws.shape == bounds.shape
    assert (draws >= 0).all()
    assert (draws < bounds).all()
    for column in (1, 2, 3):
        bound = int(bounds[0, column])
        assert p_of_values(draws[:, column], 0, np.full(bound, 1 / bound)) > FLOOR


def test_uniform_below_redraws_what_lies_in_the_incomplete_block(script: Callable[..., None]):
    bound = 2**62 - 1  # 2^64 = 4 bound + 4: the words from 4 bound on are rejected
    script([4 * bound - 1, 4 * bound, 7], [2**64 - 1], [bound + 5])
    assert samplers.uniform_below(np.full(3, bound)).tolist() == [bound - 1, 5, 7]


def test_uniform_below_python_of_wide_bounds():
    bound = 3 * 2**80
    draws = [samplers._uniform_below_python(bound) for _ in range(30_000)]
    assert max(draws) < bound
    thirds = np.array([d // 2**80 for d in draws])
    assert p_of_values(thirds, 0, np.full(3, 1 / 3)) > FLOOR
    assert p_of_values(np.array([d % 16 for d in draws]), 0, np.full(16, 1 / 16)) > FLOOR


def test_uniform_below_many_bounds():
    n, d = np.array([0, 1, 1, 2, 10**17, 5]), np.array([1, 3, 1000, 2, 3 * 10**17, 8])
    draws = samplers.uniform_below(np.tile(d, (200_000, 1))) < n
    for column, (numerator, denominator) in enumerate(zip(n, d, strict=True)):
        heads = int(draws[:, column].sum())
        if 0 < numerator < denominator:
            p = numerator / denominator
            assert p_value(np.array([heads, 200_000 - heads]), np.array([p, 1 - p])) > FLOOR
        else:
            assert heads == 200_000 * numerator // denominator


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(17, 3)])
def test_bernoulli_exp(x: Fraction):
    draws = samplers.bernoulli_exp(np.full(10**6, float(x)), lambda _: x)
    heads, p = int(draws.sum()), math.exp(-x)
    if p > 1 - 1e-5:  # no chi-square so near to certainty: at 1e-6, 40 failures happen once in 1e38
        assert 10**6 - heads <= (40 if x else 0)
    else:
        assert p_value(np.array([heads, 10**6 - heads]), np.array([p, 1 - p])) > FLOOR


SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(1000)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", SCALES)
def test_geometric(scale: Fraction, size: int):
    draws = samplers.geometric(scale, size)
    assert draws.dtype == np.int64
    reach = np.arange(math.ceil(40 * scale) + 1)
    assert p_of_values(draws, 0, -np.expm1(-1 / float(scale)) * np.exp(-reach / float(scale))) > FLOOR


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace(scale: Fraction, size: int):
    draws = samplers.discrete_laplace(scale, size)
    assert draws.dtype == np.int64
    assert p_of_values(draws, *laplace_law(scale)) > FLOOR


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("variance", [Fraction(1, 100), Fraction(1, 4), Fraction(1), Fraction(10), Fraction(10**6)])
def test_discrete_gaussian(variance: Fraction, size: int):
    draws = samplers.discrete_gaussian(variance, size)
    assert draws.dtype == np.int64
    if variance < Fraction(1, 10):
        assert np.count_nonzero(draws) == 0  # probability 2 exp(-50)
    else:
        assert p_of_values(draws, *gaussian_law(variance)) > FLOOR


@pytest.mark.parametrize("scale", [Fraction(2**17), Fraction(10**6, 3), Fraction(2**40), Fraction(2**57 - 1, 2**9)])
def test_large_scales(scale: Fraction):
    """Cells of near equal probability, and the low bits, which are as good as uniform."""
    geometric = samplers.geometric(scale, 10**6)
    edges = np.array([math.ceil(-float(scale) * math.log(1 - i / 500)) for i in range(1, 500)])
    assert p_of_distribution(geometric, lambda e: np.exp(-e / float(scale)), edges) > FLOOR
    laplace = samplers.discrete_laplace(scale, 10**6)
    half = -1 / np.expm1(-1 / float(scale)) / (-1 / np.expm1(-1 / float(scale)) * 2 - 1)  # P(x >= 0)
    assert p_of_values(np.sign(laplace), -1, np.array([1 - half, 2 * half - 1, 1 - half])) > FLOOR
    assert p_of_distribution(np.abs(laplace), lambda e: np.exp(-e / float(scale)), edges) > FLOOR
    for draws in (geometric, laplace):
        low = np.exp(-np.arange(64) / float(scale)) if draws is geometric else np.ones(64)
        assert p_of_values(draws % 64, 0, low / low.sum()) > FLOOR


@pytest.mark.parametrize("sigma", [2**18, 2**40, 2**48])
def test_discrete_gaussian_of_large_variance(sigma: int):
    draws = samplers.discrete_gaussian(Fraction(sigma**2), 10**6)
    assert draws.dtype == np.int64
    edges = np.ceil(norm.ppf(np.arange(1, 500) / 500) * sigma).astype(np.int64)
    assert p_of_distribution(draws, lambda e: norm.sf((e - 0.5) / sigma), edges) > FLOOR
    assert p_of_values(draws % 64, 0, np.full(64, 1 / 64)) > FLOOR


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(2)])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_cube_laplace_joint_cells(dimension: int, scale: Fraction, size: int):
    draws = samplers.cube_laplace(scale, dimension, size)
    assert draws.shape == (dimension, size)
    assert draws.dtype == np.int64
    reach, side = 12, 25
    axes = np.meshgrid(*[np.arange(-reach, reach + 1)] * dimension, indexing="ij")
    norms = np.max(np.abs(axes), axis=0).ravel()
    shells = np.bincount(norms)
    law = norm_law(scale, dimension)
    inside = draws[:, np.abs(draws).max(axis=0) <= reach]
    cells = np.ravel_multi_index(tuple(inside + reach), (side,) * dimension)
    counts = np.append(np.bincount(cells, minlength=side**dimension), size - inside.shape[1])
    probabilities = law[norms] / shells[norms]
    assert p_value(counts, np.append(probabilities, 1 - probabilities.sum())) > FLOOR


@pytest.mark.parametrize(
    ("scale", "dimension"),
    [
        (Fraction(50), 2),
        (Fraction(1000), 3),
        (Fraction(1, 5), 3),
        (Fraction(1, 3), 6),
        (Fraction(1, 2), 20),
        (Fraction(10), 20),
    ],
)
def test_cube_laplace_norm_and_coordinates(scale: Fraction, dimension: int):
    draws = samplers.cube_laplace(scale, dimension, 10**6 // dimension)
    norms = np.abs(draws).max(axis=0)
    assert p_of_values(norms, 0, norm_law(scale, dimension)) > FLOOR
    for coordinate in (draws[0], draws[-1]):
        assert p_of_values(coordinate, *coordinate_law(scale, dimension)) > FLOOR


def test_cube_laplace_of_large_scale():
    """The norm over the scale is near a gamma variable of shape 3, and a point uniform on its cube."""
    draws = samplers.cube_laplace(Fraction(2**48), 3, 200_000) / 2.0**48
    norms = np.abs(draws).max(axis=0)
    edges = np.linspace(0.5, 9, 100)
    assert p_of_distribution(norms, lambda e: np.exp(-e) * (1 + e + e**2 / 2), edges) > FLOOR
    assert p_of_values(np.abs(draws).argmax(axis=0), 0, np.full(3, 1 / 3)) > FLOOR
    octant = (draws > 0).T @ np.array([1, 2, 4])
    assert p_of_values(octant, 0, np.full(8, 1 / 8)) > FLOOR


# Planted lies


def test_too_little_noise_is_found():
    scale = Fraction(7, 2)
    short = scale * Fraction(95, 100)
    assert p_of_values(samplers.discrete_laplace(short, 10**6), *laplace_law(scale)) < FLOOR
    geometric = np.exp(-np.arange(200) / float(scale)) * -np.expm1(-1 / float(scale))
    assert p_of_values(samplers.geometric(short, 10**6), 0, geometric) < FLOOR
    variance = Fraction(10)
    draws = samplers.discrete_gaussian(variance * Fraction(95, 100) ** 2, 10**6)
    assert p_of_values(draws, *gaussian_law(variance)) < FLOOR
    norms = np.abs(samplers.cube_laplace(short, 3, 10**6)).max(axis=0)
    assert p_of_values(norms, 0, norm_law(scale, 3)) < FLOOR


def test_a_wrong_lowest_bit_is_found():
    scale = Fraction(1000)
    draws = samplers.discrete_laplace(scale, 10**6)
    assert p_of_values(draws % 64, 0, np.full(64, 1 / 64)) > FLOOR
    assert p_of_values((draws & ~1) % 64, 0, np.full(64, 1 / 64)) < FLOOR


# The exact decisions


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets the next calls for words return the lists given, one a call, and no call go beyond."""

    def play(*answers: list[int]) -> None:
        left = iter(answers)

        def words(n: int) -> npt.NDArray[np.uint64]:
            answer = next(left)
            assert len(answer) == n
            return np.array(answer, np.uint64)

        monkeypatch.setattr(samplers, "random_words", words)

    return play


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Floats decide nothing."""
    return decided_exactly(monkeypatch)


EXPONENTS = [
    Fraction(0),
    Fraction(1, 10**30),
    Fraction(1, 10**6),
    Fraction(1, 3),
    Fraction(1),
    Fraction(2**62 - 1, 2**62),
    Fraction(355, 113),
    Fraction(40),
    Fraction(87654321, 1234567),
    Fraction(200),
    Fraction(2000),
    Fraction(10**30),
]


def exp_of(x: Fraction) -> Decimal:
    """exp(-x) to 150 digits."""
    return DIGITS.exp(DIGITS.divide(Decimal(-x.numerator), Decimal(x.denominator)))


def word_of(x: Fraction, bits: int = 64) -> int:
    """The first bits of exp(-x), as an integer."""
    return int(DIGITS.multiply(exp_of(x), Decimal(2**bits)))


@pytest.mark.parametrize("x", EXPONENTS)
@pytest.mark.parametrize("precision", [8, 72, 136, 400])
def test_exp_bracket_encloses_tightly(x: Fraction, precision: int):
    low, high = samplers.exp_bracket(x, precision)
    truth = DIGITS.multiply(exp_of(x), Decimal(2**precision))
    assert Decimal(low) <= truth <= Decimal(high)
    assert high - low <= 2


@pytest.mark.parametrize("x", [x for x in EXPONENTS if 0 < x <= 40])
@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize("step", [-2, -1, 0, 1, 2])
def test_uniform_next_to_the_threshold(x: Fraction, words: int, step: int, script: Callable[..., None]):
    """u agrees with exp(-x) in the first words but for a step in the last bit, then goes on with 0101..."""
    bits = 64 * words
    prefix = min(word_of(x, bits) + step, 2**bits - 1)
    more = 0x5555_5555_5555_5555
    chunks = [prefix >> (bits - 64 * (i + 1)) & (2**64 - 1) for i in range(words)] + [more] * 3
    script(*[[chunk] for chunk in chunks[1:]])
    got = samplers.LazyUniform(chunks[0]).below(partial(samplers.exp_bracket, x))
    assert got is (Decimal(3 * prefix + 1) < DIGITS.multiply(exp_of(x), Decimal(3 * 2**bits)))


def test_a_lazy_uniform_keeps_its_bits_from_one_comparison_to_the_next(script: Callable[..., None]):
    """The bits drawn to compare with exp(-1) stay: one script for two comparisons."""
    threshold = word_of(Fraction(1))
    script([0])
    u = samplers.LazyUniform(threshold)
    assert u.below(partial(samplers.exp_bracket, Fraction(1)))
    assert u.below(partial(samplers.exp_bracket, Fraction(1)))
    assert not u.below(partial(samplers.exp_bracket, Fraction(1001, 1000)))


def test_bernoulli_exp_asks_for_the_rational_only_inside_the_margin(script: Callable[..., None]):
    x = Fraction(1)
    threshold = word_of(x)
    asked: list[int] = []

    def exact(i: int) -> Fraction:
        asked.append(i)
        return x

    script([0, threshold - 1, threshold + 1, 2**64 - 1, threshold + 2**25, threshold - 2**25])
    got = samplers.bernoulli_exp(np.ones(6), exact)
    assert got.tolist() == [True, True, False, False, False, True]
    assert asked == [1, 2]


def test_geometric_next_to_a_boundary(script: Callable[..., None]):
    """Words on both sides of exp(-k / scale), where floats cannot tell k - 1 from k, and the end words."""
    scale = Fraction(1000)
    boundaries = [word_of(k / scale) for k in (1, 700, 9000)]
    words = [b + step for b in boundaries for step in (-1, 1)]
    script([*words, 2**64 - 1, 2**43])
    tiny = math.floor(1000 * 21 * math.log(2))
    assert samplers.geometric(scale, 8).tolist() == [1, 0, 700, 699, 9000, 8999, 0, tiny]


def test_geometric_of_the_word_zero(script: Callable[..., None]):
    """64 zero bits and then 2^63: u = 2^-65 + ..., of which k is floor(1000 * 65 log 2)."""
    script([0], [2**63], [1])
    assert samplers.geometric(Fraction(1000), 1).tolist() == [math.floor(65_000 * math.log(2))]


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 2), Fraction(2**18)])
def test_exact_geometric(scale: Fraction, decisions: list[int]):
    draws = samplers.geometric(scale, 4000)
    assert len(decisions) >= (4000 if scale > 1 else 3900)  # at small scales k = 0 may be beyond doubt
    edges = np.unique([math.ceil(-float(scale) * math.log(1 - i / 20)) for i in range(1, 20)])
    assert p_of_distribution(draws, lambda e: np.exp(-e / float(scale)), edges) > FLOOR


def test_exact_laplace(decisions: list[int]):
    draws = samplers.discrete_laplace(Fraction(7, 2), 5000)
    assert len(decisions) >= 5000
    assert p_of_values(draws, *laplace_law(Fraction(7, 2))) > FLOOR


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(10)])
def test_exact_gaussian(variance: Fraction, decisions: list[int]):
    draws = samplers.discrete_gaussian(variance, 4000)
    assert len(decisions) >= 8000  # a proposal and its acceptance
    assert p_of_values(draws, *gaussian_law(variance)) > FLOOR


def test_exact_bernoulli_exp(decisions: list[int]):
    x = np.arange(8)[np.arange(16_000) % 8] / 4
    draws = samplers.bernoulli_exp(x, lambda i: Fraction(i % 8, 4))
    assert len(decisions) == 16_000
    for k in range(8):
        heads, p = int(draws[k::8].sum()), math.exp(-k / 4)
        assert heads == 2000 if k == 0 else p_value(np.array([heads, 2000 - heads]), np.array([p, 1 - p])) > FLOOR


@pytest.mark.parametrize(("scale", "dimension"), [(Fraction(2), 3), (Fraction(1, 2), 5)])
def test_exact_cube(scale: Fraction, dimension: int, decisions: list[int], monkeypatch: pytest.MonkeyPatch):
    tight = samplers._eulerian_brackets

    def vague(scale: Fraction, dimension: int, precision: int) -> list[tuple[int, int]]:
        return [(0, 2**64)] * dimension if precision == 64 else tight(scale, dimension, precision)

    monkeypatch.setattr(samplers, "_eulerian_brackets", vague)
    draws = samplers.cube_laplace(scale, dimension, 3000)
    assert len(decisions) >= 3000 * (dimension + 1)
    assert p_of_values(np.abs(draws).max(axis=0), 0, norm_law(scale, dimension)) > FLOOR


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(1, 3), Fraction(5), Fraction(2**40)])
@pytest.mark.parametrize("dimension", [2, 3, 7, 40])
def test_eulerian_brackets_against_the_series(scale: Fraction, dimension: int):
    """The weights of j are the coefficients of (1-z)^(d+1) sum_r (2r+1)^d z^r, times a^j."""
    signs = [(-1) ** i * math.comb(dimension + 1, i) for i in range(dimension + 1)]
    numbers = [sum(signs[i] * (2 * (j - i) + 1) ** dimension for i in range(j + 1)) for j in range(dimension + 1)]
    assert sum(numbers) == 2**dimension * math.factorial(dimension)
    with localcontext(DIGITS):
        weights = [b * exp_of(j / scale) for j, b in enumerate(numbers)]
        for m in range(dimension):
            truth = sum(weights[: m + 1]) / sum(weights)
            for precision in (64, 136):
                low, high = samplers._eulerian_brackets(scale, dimension, precision)[m]
                slack = Decimal(2) ** (precision - 440)  # of the decimals
                assert low <= truth * 2**precision + slack
                assert truth * 2**precision - slack <= high
                assert high - low <= 2


# The margins


def test_the_margin_of_exp_is_honest():
    """Whole arrays, as the samplers have it: NumPy's vector kernels and its scalar ones may differ."""
    small = np.concatenate([[0.0, 5e-324, 1e-300, 1e-20], 2.0 ** np.arange(-60, 0)])
    x = np.concatenate([small, np.linspace(0, 50, 4001), np.arange(1, 45) * math.log(2)])
    x = np.concatenate([x, np.linspace(700, 760, 301), [1e3, 1e10, 1e300, np.finfo(float).max]])
    with localcontext(prec=40):
        truth = [(-Decimal(each)).exp() for each in x.tolist()]
        worst = max(abs(Decimal(got) - t) for got, t in zip(np.exp(-x).tolist(), truth, strict=True))
    assert worst < Decimal(2) ** -50 < Decimal(samplers._MARGIN) / 8


def test_the_margin_of_log_is_honest():
    """-log of the float of a word against that of the least and greatest uniform with these bits."""
    offsets = [0, 1, 2**9 + 1, 2**20, 2**43]
    words = [2**e + o for e in range(44, 64) for o in offsets] + [2**64 - 1 - o for o in offsets]
    words += [i * 2**64 // 1999 for i in range(1, 1999)]
    logs = -np.log(np.array(words, np.uint64) * 2.0**-64)
    with localcontext(prec=40):
        full = 64 * Decimal(2).ln()
        for got, word in zip(logs.tolist(), words, strict=True):
            high, low = full - Decimal(word).ln(), full - Decimal(word + 1).ln()
            assert max(abs(Decimal(got) - high), abs(Decimal(got) - low)) < Decimal(samplers._MARGIN) / 8


@pytest.mark.parametrize(
    "draw",
    [
        *(
            partial(samplers.discrete_gaussian, v)
            for v in [
                Fraction(1, 10**40),
                Fraction(1, 100),
                Fraction(1, 3),
                Fraction(10),
                Fraction(10**6 + 1, 7),
                Fraction(2**96 - 1),
                Fraction(3, 7) * 2**96,
            ]
        ),
        *(partial(samplers.geometric, s) for s in [Fraction(10**6, 3), Fraction(2**62 - 1)]),
    ],
)
def test_float_exponents_keep_to_the_contract(draw: Callable[[int], Array], monkeypatch: pytest.MonkeyPatch):
    """exp(-x) |x - exact| <= 2^-49 for every exponent that the samplers hand to bernoulli_exp."""
    seen = 0
    true_one = samplers.bernoulli_exp

    def spy(x: npt.NDArray[np.float64], exact: Callable[[int], Fraction]) -> npt.NDArray[np.bool_]:
        nonlocal seen
        for i, each in enumerate(x.tolist()):
            assert math.exp(-each) * abs(Fraction(each) - exact(i)) <= Fraction(1, 2**49)
            seen += 1
        return true_one(x, exact)

    monkeypatch.setattr(samplers, "bernoulli_exp", spy)
    draw(1000)
    assert seen >= 1000


# Large and small scales


@pytest.mark.parametrize("bits", [40, 48])
def test_the_mean_magnitude_is_the_scale(bits: int):
    """Six standard errors: E|x| = scale, and the deviation of |x| is the scale as well."""
    laplace = samplers.discrete_laplace(Fraction(2**bits), 10**6)
    assert laplace.dtype == np.int64
    assert abs(np.abs(laplace / 2.0**bits).mean() - 1) < 6e-3
    gaussian = samplers.discrete_gaussian(Fraction(2 ** (2 * bits)), 10**6)
    assert abs(np.abs(gaussian / 2.0**bits).mean() - math.sqrt(2 / math.pi)) < 6e-3


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(1, 2**20), Fraction(1, 2**2000)])
def test_tiny_scales_give_zeros(scale: Fraction):
    assert not samplers.geometric(scale, 10**5).any()
    assert not samplers.discrete_laplace(scale, 10**5).any()
    assert not samplers.discrete_gaussian(scale, 10**5).any()
    assert not samplers.cube_laplace(scale, 10, 10**4).any()


def test_past_62_bits_geometric_turns_to_python_integers(script: Callable[..., None]):
    """u = exp(-9): k = 9 * 2^59 in exact arithmetic, which int64 results do not reach."""
    scale = Fraction(2**59)
    word = word_of(Fraction(9)) - 1
    offset = 2**42 + 12345  # of B = 2^43
    script([word, word], [offset, 3], [0, 0])
    draws = samplers.geometric(scale, 2)
    assert draws.dtype == object
    assert draws.tolist() == [9 * 2**59 + offset, 9 * 2**59 + 3]
    assert all(type(k) is int for k in draws)


def test_past_62_bits_the_laws_stay():
    scale = Fraction(2**62)
    edges = np.array([-math.log(1 - i / 50) for i in range(1, 50)])
    laplace = samplers.discrete_laplace(scale, 20_000)
    gaussian = samplers.discrete_gaussian(Fraction(2**123), 20_000)
    cube = samplers.cube_laplace(scale, 3, 10_000)
    for draws in (laplace, gaussian, cube):
        assert draws.dtype == object
        assert all(type(k) is int for k in draws.flat)
        assert max(abs(draws.ravel())) > 2**63
        assert p_of_values((draws.ravel() % 64).astype(np.int64), 0, np.full(64, 1 / 64)) > FLOOR
    over = (np.abs(laplace) / 2**62).astype(float)
    assert p_of_distribution(over, lambda e: np.exp(-e), edges) > FLOOR
    over = (gaussian / math.sqrt(2**123)).astype(float)
    assert p_of_distribution(over, norm.sf, np.linspace(-2, 2, 50)) > FLOOR
    over = (np.abs(cube).max(axis=0) / 2**62).astype(float)
    assert p_of_distribution(over, lambda e: np.exp(-e) * (1 + e + e**2 / 2), np.linspace(1, 6, 40)) > FLOOR


# Processes, threads, edges


def _send_draws(pipe: Connection) -> None:
    pipe.send(samplers.discrete_laplace(Fraction(2**40), 100).tolist())


def test_forked_children_draw_differently():
    samplers.discrete_laplace(Fraction(2**40), 100)  # had it a buffer, it would be full now
    fork = multiprocessing.get_context("fork")
    draws = []
    for _ in range(2):
        receive, send = fork.Pipe(duplex=False)
        child = fork.Process(target=_send_draws, args=(send,))
        child.start()
        draws.append(receive.recv())
        child.join()
    draws.append(samplers.discrete_laplace(Fraction(2**40), 100).tolist())
    assert len(set(chain.from_iterable(draws))) > 290  # 300 numbers of some 41 bits


def test_threads_draw_differently():
    with ThreadPoolExecutor(4) as pool:
        draws = list(pool.map(lambda _: samplers.cube_laplace(Fraction(2**40), 2, 500), range(8)))
    assert np.unique(np.concatenate(draws, axis=1)).size > 7990


def test_size_zero():
    one = Fraction(1)
    for empty in (
        samplers.uniform_below(5, 0),
        samplers.uniform_below(np.empty(0, np.int64)),
        samplers.geometric(one, 0),
        samplers.geometric(Fraction(2**40), 0),
        samplers.discrete_laplace(one, 0),
        samplers.discrete_gaussian(one, 0),
    ):
        assert empty.shape == (0,)
        assert empty.dtype == np.int64
    assert samplers.cube_laplace(one, 1, 0).shape == (1, 0)
    assert samplers.cube_laplace(one, 3, 0).shape == (3, 0)
    assert samplers.uniform_below(np.empty(0, np.int64)).shape == (0,)
    assert samplers.bernoulli_exp(np.empty(0), lambda _: one).shape == (0,)


@pytest.mark.parametrize("size", [1, 16, samplers._BATCH - 1, samplers._BATCH, samplers._BATCH + 1])
def test_every_size_is_met(size: int):
    assert samplers.geometric(Fraction(2**30), size).shape == (size,)
    assert samplers.discrete_laplace(Fraction(1, 2), size).shape == (size,)
    assert samplers.discrete_gaussian(Fraction(2), size).shape == (size,)
    assert samplers.cube_laplace(Fraction(2), 3, size).shape == (3, size)


@pytest.mark.parametrize(
    "scale", [Fraction(0), Fraction(-1), Fraction(2**62 + 1), Fraction(2**3000), Fraction(2**70, 3)]
)
@pytest.mark.parametrize("size", [0, 1])
def test_bad_scales_are_refused(scale: Fraction, size: int):
    with pytest.raises(ValueError, match="scale"):
        samplers.geometric(scale, size)
    with pytest.raises(ValueError, match="scale"):
        samplers.discrete_laplace(scale, size)
    with pytest.raises(ValueError, match="scale"):
        samplers.cube_laplace(scale, 2, size)


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1), Fraction(2**124), Fraction(2**3000)])
def test_bad_variances_are_refused(variance: Fraction):
    with pytest.raises(ValueError, match="variance"):
        samplers.discrete_gaussian(variance, 1)


@pytest.mark.parametrize("bound", [0, -1, 2**62 + 1, 2**64, 2**70, 1.5])
def test_bad_bounds_are_refused(bound: Any):
    with pytest.raises(ValueError, match="bounds"):
        samplers.uniform_below(bound, 3)
    with pytest.raises(ValueError, match="bounds"):
        samplers.uniform_below(np.array([1, bound]))


def test_other_bad_arguments_are_refused():
    with pytest.raises(ValueError, match="dimension"):
        samplers.cube_laplace(Fraction(1), 0, 1)
    for draw in (samplers.geometric, samplers.discrete_laplace, samplers.discrete_gaussian):
        with pytest.raises(ValueError, match="size"):
            draw(Fraction(1), -1)
    with pytest.raises(ValueError, match="negative"):
        samplers.uniform_below(3, -1)
    with pytest.raises(ValueError, match="non-negative"):
        samplers.bernoulli_exp(np.array([1.0, -1e-9]), lambda _: Fraction(1))
    with pytest.raises(ValueError, match="non-negative"):
        samplers.bernoulli_exp(np.array([math.nan]), lambda _: Fraction(1))
