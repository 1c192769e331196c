"""dpsql.accuracy: the exact distances against other software, many digits, all data and draws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import dpsql
from dpsql.accuracy import Bound, choice, epsilon_for, exponential, gaussian, laplace, laplace_sum, permute_and_flip
from dpsql.core.mechanisms.samplers import discrete_laplace
from dpsql.errors import DPSQLError, InvalidArgument, InvalidPrivacyParameter
from tests.seeding import seed

F = Fraction
WORST = {"exponential": exponential, "permute_and_flip": permute_and_flip}


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here fails by chance."""
    seed(monkeypatch, 1)


def tail(scale: Fraction, t: int) -> mpmath.mpf:
    """P(|X| > t) of the discrete Laplace law, to 200 digits."""
    with mpmath.workdps(200):
        a = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)
        return 2 * a ** (t + 1) / (1 + a)


# Laplace and Gaussian


@pytest.mark.parametrize("k", [1, 2, 16, 10**6])
@pytest.mark.parametrize("beta", [0.001, 0.05, 0.5, 0.99])
@pytest.mark.parametrize("scale", [0.3, 1, 250])
def test_continuous_quantiles(k: int, beta: float, scale: float) -> None:
    share = -math.expm1(math.log1p(-beta) / k)
    found = laplace(scale, k=k, beta=beta)
    assert found.exact == pytest.approx(stats.laplace.isf(share / 2, scale=scale), rel=1e-9)
    assert found.paper == pytest.approx(scale * math.log(k / beta))
    assert found.exact <= found.paper * (1 + 1e-12)
    found = gaussian(scale, k=k, beta=beta)
    assert found.exact == pytest.approx(stats.norm.isf(share / 2, scale=scale), rel=1e-9)
    assert found.paper == pytest.approx(scale * math.sqrt(2 * math.log(2 * k / beta)))
    assert found.exact < found.paper


def test_far_tails() -> None:
    assert laplace(1, k=10**9, beta=1e-90).exact == pytest.approx(math.log(1e99))
    with mpmath.workdps(30):
        z = mpmath.findroot(lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2))) - mpmath.log("1e-90"), 20)
    assert gaussian(1, beta=1e-90).exact == pytest.approx(float(z), rel=1e-12)
    assert laplace(1, beta=1 - 1e-12).exact == pytest.approx(1e-12, rel=1e-3)


def test_the_scale_is_sensitivity_by_epsilon() -> None:
    assert laplace(epsilon=0.1, sensitivity=3, k=5) == laplace(30, k=5)
    assert laplace(Decimal("0.1")) == laplace(F(1, 10)) == laplace(0.1)


@pytest.mark.parametrize("k", [1, 3, 1000])
@pytest.mark.parametrize("beta", [F(1, 1000), F(1, 20), F(1, 2), F(19, 20)])
@pytest.mark.parametrize("scale", [F(1, 100), F(1, 3), F(1), F(27, 10), F(1000), F(10**12, 7)])
def test_least_whole_distance(scale: Fraction, k: int, beta: Fraction) -> None:
    found = laplace(scale, k=k, beta=beta, discrete=True)
    t = int(found.exact)
    assert t == found.exact <= math.ceil(found.paper)
    with mpmath.workdps(200):
        level = mpmath.mpf((1 - beta).numerator) / (1 - beta).denominator
        assert (1 - tail(scale, t)) ** k >= level
        assert t == 0 or (1 - tail(scale, t - 1)) ** k < level


@pytest.mark.parametrize("t", [0, 1, 7, 300])
@pytest.mark.parametrize("digits", [40, 60, 120])
def test_whole_distances_are_decided_exactly(t: int, digits: int) -> None:
    """A beta that misses the tail by less than any float, to either side."""
    scale = F(13, 3)
    with mpmath.workdps(200):
        below = F(int(mpmath.floor(tail(scale, t) * mpmath.mpf(10) ** digits)), 10**digits)
    assert laplace(scale, beta=below, discrete=True).exact == t + 1
    assert laplace(scale, beta=below + F(1, 10**digits), discrete=True).exact == t


def test_scales_beyond_floats_of_exp() -> None:
    assert laplace(1e-50, beta=1e-55, discrete=True).exact == 0, "ln(1 - beta) has the digits, not the scale"
    assert laplace(1e40, k=10, discrete=True).exact == pytest.approx(laplace(1e40, k=10).exact)


@pytest.mark.parametrize(("k", "scale"), [(1, F(1)), (16, F(10)), (100, F(5, 2))])
def test_drawn_noise_is_within_as_often_as_stated(k: int, scale: Fraction) -> None:
    runs, beta = 20_000, 0.05
    largest = np.abs(discrete_laplace(scale, runs * k).reshape(runs, k)).max(axis=1)
    t = laplace(scale, k=k, beta=beta, discrete=True).exact
    for distance, law in ((t, True), (t - 1, False)):
        chance = 1 - float((1 - tail(scale, int(distance))) ** k)
        assert (chance <= beta) is law
        assert abs((largest > distance).mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / runs)


@pytest.mark.parametrize("epsilon", [0.013, 0.1, 1, 2.5])
def test_what_the_engine_states(epsilon: float) -> None:
    sql = "EXPLAIN PRIVACY SELECT COUNT(*) AS n FROM t"
    told = dpsql.query(pd.DataFrame({"x": [1]}), sql, epsilon=epsilon).to_dict()
    assert told["columns"][0]["interval_95"] == laplace(epsilon=epsilon, discrete=True).exact


# Sums of two noises


@pytest.mark.parametrize("t", [0.001, 0.5, 3, 40])
@pytest.mark.parametrize("b", [1e-9, 0.01, 0.4, 0.999, 1 - 1e-9, 1, 1 + 1e-13, 5])
def test_laplace_sum_to_many_digits(b: float, t: float) -> None:
    with mpmath.workdps(60):
        x, y, z = mpmath.mpf(1), mpmath.mpf(repr(b)), mpmath.mpf(repr(t))
        if x == y:
            expected = (1 + z / 2) * mpmath.exp(-z)
        else:
            expected = (x**2 * mpmath.exp(-z / x) - y**2 * mpmath.exp(-z / y)) / (x**2 - y**2)
    for pair in ((1, b), (b, 1), (-1, b), (b, -1)):
        assert laplace_sum(*pair, t) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("a", "b", "t"), [(2, 1, 3), (1, 1, 0.7), (0.3, 5, 4)])
def test_laplace_sum_by_integration(a: float, b: float, t: float) -> None:
    """Over a X = c, the chance that b Y takes c beyond t to either side."""

    def beyond(c: float) -> float:
        side = stats.laplace.sf(t - c, scale=b) + stats.laplace.cdf(-t - c, scale=b)
        return float(stats.laplace.pdf(c, scale=a) * side)

    parts = itertools.pairwise([-60 * a - t, -t, 0, t, 60 * a + t])
    expected = sum(integrate.quad(beyond, *part, epsabs=1e-13)[0] for part in parts)
    assert laplace_sum(a, b, t) == pytest.approx(expected, rel=1e-8)


def test_laplace_sum_of_one_and_at_zero() -> None:
    assert laplace_sum(3, 0, 6) == laplace_sum(0, -3, 6) == math.exp(-2)
    assert laplace_sum(1, 2, 0) == 1


# Epsilon for an error


@pytest.mark.parametrize("k", [1, 16])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize(("error", "sensitivity"), [(0, 1), (10, 1), (10.9, 1), (1000, 73), (F(10**6), F(1, 3))])
def test_epsilon_is_the_least(error: float, sensitivity: float, confidence: float, k: int) -> None:
    epsilon = epsilon_for(error, confidence, sensitivity, k)
    digits = Decimal(epsilon.numerator) / Decimal(epsilon.denominator)
    assert F(digits) == epsilon, "a short decimal"
    assert len(digits.normalize().as_tuple().digits) <= 12
    last = F(10) ** (digits.adjusted() - 11)
    beta = 1 - F(str(confidence))
    reach = [laplace(F(sensitivity) / each, k=k, beta=beta, discrete=True).exact for each in (epsilon, epsilon - last)]
    assert reach[0] <= error < reach[1]


def test_the_engine_keeps_the_error() -> None:
    epsilon = epsilon_for(10, 0.95)
    assert float(epsilon) == pytest.approx(0.2843485, abs=1e-7)
    for price, width in ((epsilon, 10), (epsilon - F(1, 10**9), 11)):
        told = dpsql.query(pd.DataFrame({"x": [1]}), "EXPLAIN PRIVACY SELECT COUNT(*) AS n FROM t", epsilon=price)
        assert told.to_dict()["columns"][0]["interval_95"] == width


def test_the_ends_of_epsilon() -> None:
    assert epsilon_for(10**15, 0.5) == F(1, 10**9)
    with pytest.raises(InvalidPrivacyParameter, match="no epsilon up to 1e9"):
        epsilon_for(0, 0.95, 10**12)


# Choices


def test_ten_candidates() -> None:
    """The theorem's 21.2 is near the worst there is; what halves it is that counts move the same way."""
    assert exponential(10, 0.5).paper == pytest.approx(21.19, abs=0.01)
    assert exponential(10, 0.5).exact == pytest.approx(4 * math.log(9 * 19))
    assert exponential(10, 0.5, counts=True).exact == 20
    assert exponential(10, 0.5, monotone=True).exact == pytest.approx(2 * math.log(9 * 19))
    assert exponential(10, 0.5, monotone=True, counts=True).exact == 10
    assert permute_and_flip(10, 0.5, monotone=True, counts=True).exact == 8


@pytest.mark.parametrize("mechanism", WORST)
@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize(("candidates", "epsilon", "beta"), [(2, 1, 0.05), (5, 0.2, 0.3), (40, 3, 0.01), (3, 1, 0.6)])
def test_the_worst_data(mechanism: str, counts: bool, candidates: int, epsilon: float, beta: float) -> None:
    """No data exceed the worst case, and the stated ones reach it."""
    bound = WORST[mechanism](candidates, epsilon, beta=beta, counts=counts)
    draw = np.random.default_rng(candidates)
    for spread in (0.1, 1, 10):
        for _ in range(20):
            values = np.round(draw.exponential(spread * bound.exact + 1, candidates), 0 if counts else 6)
            found = choice(values.tolist(), epsilon, beta=beta, mechanism=mechanism)
            assert found.error.exact <= bound.exact * (1 + 1e-9)
    beyond, within = (1, 0) if counts else (1e-6, -1e-6)
    for gap, law in ((bound.exact + beyond, True), (bound.exact + within, False)):
        if gap > 0:
            told = choice([gap, *[0] * (candidates - 1)], epsilon, mechanism=mechanism)
            assert (1 - told.probabilities[0] <= beta) is law
    assert bound.exact <= bound.paper


@pytest.mark.parametrize("mechanism", WORST)
def test_bounds_scale_with_sensitivity(mechanism: str) -> None:
    worst = WORST[mechanism]
    once, wide = worst(7, 0.3), worst(7, 0.3, 4)
    assert wide == Bound(pytest.approx(4 * once.paper), pytest.approx(4 * once.exact))
    assert worst(7, 0.3, monotone=True).exact == pytest.approx(once.exact / 2)
    assert worst(1, 0.3).exact == worst(4, 0.3, beta=0.75).exact == 0 < worst(4, 0.3, beta=0.74).exact


def flips(chances: list[float]) -> np.ndarray:
    """Permute-and-flip as it is told: in random order, the first whose coin comes up."""
    law = np.zeros(len(chances))
    for order in itertools.permutations(range(len(chances))):
        left = 1.0
        for place in order:
            law[place] += left * chances[place] / math.factorial(len(chances))
            left *= 1 - chances[place]
    return law


def weights(chances: list[float]) -> np.ndarray:
    return np.array(chances) / sum(chances)


@pytest.mark.parametrize(("mechanism", "law"), [("exponential", weights), ("permute_and_flip", flips)])
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("utilities", [[3, 7, 7, 1], [0.25, F(1, 3), Decimal("0.1"), 0.3, -2], [10**30, 10**30 + 3]])
def test_choice(mechanism: str, law: Callable[[list[float]], np.ndarray], monotone: bool, utilities: list) -> None:
    epsilon, sensitivity, beta = F(3, 2), F(1, 2), 0.2
    gaps = [float(max(map(F, map(str, utilities))) - F(str(each))) for each in utilities]
    expected = law([math.exp(-float(epsilon / sensitivity) / (1 if monotone else 2) * gap) for gap in gaps])
    found = choice(utilities, epsilon, sensitivity, beta, mechanism=mechanism, monotone=monotone)
    assert found.probabilities == pytest.approx(expected, rel=1e-9)
    assert found.success == pytest.approx(sum(p for p, gap in zip(expected, gaps, strict=True) if not gap))
    assert found.expected == pytest.approx(np.dot(expected, gaps))
    within = [sum(p for p, gap in zip(expected, gaps, strict=True) if gap > t) <= beta for t in sorted(gaps)]
    assert found.error.exact == pytest.approx(sorted(gaps)[within.index(True)])
    assert found.error.paper == pytest.approx(2 / 3 * math.log(len(utilities) / beta))


# Arguments


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (laplace, InvalidArgument, "one of the two"),
        (lambda: laplace(1, epsilon=1), InvalidArgument, "one of the two"),
        (lambda: laplace(0), InvalidPrivacyParameter, "scale must be"),
        (lambda: laplace("1"), InvalidPrivacyParameter, "scale must be a number"),
        (lambda: laplace(epsilon=-1), InvalidPrivacyParameter, "epsilon must be"),
        (lambda: laplace(1, k=0), InvalidPrivacyParameter, "k must be a whole number"),
        (lambda: laplace(1, k=2.5), InvalidPrivacyParameter, "k must be a whole number"),
        (lambda: laplace(1, beta=0), InvalidPrivacyParameter, "beta must lie between 0 and 1"),
        (lambda: laplace(1, beta=1), InvalidPrivacyParameter, "beta must lie between 0 and 1"),
        (lambda: laplace(1, beta=math.nan), InvalidPrivacyParameter, "beta must be a finite number"),
        (lambda: gaussian(math.inf), InvalidPrivacyParameter, "sigma must be a finite number"),
        (lambda: gaussian(1, beta=-0.1), InvalidPrivacyParameter, "beta must lie"),
        (lambda: exponential(0, 1), InvalidPrivacyParameter, "candidates must be"),
        (lambda: exponential(3, 0), InvalidPrivacyParameter, "epsilon must be"),
        (lambda: permute_and_flip(3, 1, -1), InvalidPrivacyParameter, "sensitivity must be"),
        (lambda: permute_and_flip(3, 1, beta=2), InvalidPrivacyParameter, "beta must lie"),
        (lambda: choice([], 1), InvalidArgument, "nothing to choose from"),
        (lambda: choice([1, 2], 1, mechanism="exponentail"), InvalidArgument, 'Did you mean "exponential"'),
        (lambda: choice([1, 2], 1, mechanism="best"), InvalidArgument, "Write exponential or permute_and_flip"),
        (lambda: choice([1, math.inf], 1), InvalidPrivacyParameter, "utility must be a finite number"),
        (lambda: laplace_sum(0, 0, 1), InvalidPrivacyParameter, "must not be 0"),
        (lambda: laplace_sum(1, 1, -1), InvalidPrivacyParameter, "t must be at least 0"),
        (lambda: epsilon_for(-1, 0.95), InvalidPrivacyParameter, "error must be at least 0"),
        (lambda: epsilon_for(1, 1), InvalidPrivacyParameter, "confidence must lie between 0 and 1"),
        (lambda: epsilon_for(1, 0.95, 0), InvalidPrivacyParameter, "sensitivity must be"),
    ],
)
def test_refusals(call: Callable[[], object], error: type[DPSQLError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
