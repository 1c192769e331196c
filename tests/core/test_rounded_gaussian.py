"""The normal law rounded to integers: its sampler, its exact (epsilon, delta), its tails, and what it is worth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpsql
from dpsql.accounting.gaussian_curve import delta_of
from dpsql.accuracy.truncated import tail_of
from dpsql.accuracy.widths import half_width, half_widths
from dpsql.core.conversion import rho_for
from dpsql.core.cost import Cost
from dpsql.core.loss import Allowance, PrivacyLoss
from dpsql.core.mechanisms import gaussian_curve as curve
from dpsql.core.mechanisms import rounded_gaussian as sampler
from dpsql.core.mechanisms import samplers
from dpsql.core.mechanisms.gaussian_curve import delta_above, gaussian_rho
from dpsql.core.mechanisms.grants import Grant, grant
from dpsql.core.mechanisms.noise import DiscreteGaussian, Reach, RoundedGaussian
from dpsql.core.mechanisms.rounded_gaussian import rounded_gaussian
from dpsql.core.payment import assert_paid
from dpsql.core.selection.threshold import threshold
from dpsql.errors import InternalError
from tests.core.exact_words import decided_exactly
from tests.core.test_samplers import FLOOR, SIZES, p_of_distribution, p_of_values

F = Fraction
PAIRS = [
    (F(1), F(1, 10**6)),
    (F(1, 10), F(1, 10**9)),
    (F(5), F(1, 10**6)),
    (F(30), F(1, 100)),
    (F(1, 1000), F(1, 10**5)),
]
WIDE = [*PAIRS, (F(1, 10**9), F(1, 10**100)), (F(10**4), F(9, 10)), (F(1), F(1, 10**100)), (F(1, 10**9), F(1, 2))]


def law(variance: Fraction) -> tuple[int, Any]:
    """The least value and the probabilities from there on."""
    sigma = math.sqrt(variance)
    x = np.arange(-math.ceil(9 * sigma) - 2, math.ceil(9 * sigma) + 3)
    positive = np.abs(x)  # tails are exact on the right
    below = norm.sf((positive - 0.5) / sigma) - norm.sf((positive + 0.5) / sigma)
    return int(x[0]), np.where(x == 0, 1 - 2 * norm.sf(0.5 / sigma), below)


# The sampler


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("variance", [F(1, 100), F(1, 4), F(1), F(10), F(10**6), F(2, 3) * 10**6])
def test_draws_have_the_rounded_law(variance: Fraction, size: int) -> None:
    draws = rounded_gaussian(variance, size)
    assert draws.dtype == np.int64
    if variance < F(1, 10):
        assert np.count_nonzero(draws) <= 20  # probability 6e-7 each
    else:
        assert p_of_values(draws, *law(variance)) > FLOOR
        noise = RoundedGaussian(variance, 1)
        error = 8 * math.sqrt(2 / size) * noise.spread
        assert abs(float((draws.astype(float) ** 2).mean()) - noise.spread) < error
        assert abs(float(draws.mean())) < 8 * math.sqrt(noise.spread / size)


@pytest.mark.parametrize("bits", [18, 31, 40, 46, 50, 53])
def test_large_variances(bits: int) -> None:
    sigma = 2**bits
    draws = rounded_gaussian(F(sigma**2), 300_000)
    assert draws.dtype == np.int64
    edges = np.ceil(norm.ppf(np.arange(1, 400) / 400) * sigma).astype(np.int64)
    assert p_of_distribution(draws, lambda e: norm.sf((e - 0.5) / sigma), edges) > FLOOR
    assert p_of_values(draws % 64, 0, np.full(64, 1 / 64)) > FLOOR
    assert p_of_values((draws >> (bits - 12)) % 64, 0, np.full(64, 1 / 64)) > FLOOR


def test_past_62_bits_the_law_stays() -> None:
    draws = rounded_gaussian(F(2**123), 20_000)
    assert draws.dtype == object
    assert all(type(k) is int for k in draws)
    assert p_of_values((draws % 64).astype(np.int64), 0, np.full(64, 1 / 64)) > FLOOR
    over = (draws / math.sqrt(2**123)).astype(float)
    assert p_of_distribution(over, norm.sf, np.linspace(-2, 2, 50)) > FLOOR


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Floats and 64 bits decide nothing."""
    words = decided_exactly(monkeypatch)
    monkeypatch.setattr(sampler, "_MOST", -1)
    lows, _highs = sampler._table()
    monkeypatch.setattr(sampler, "_table", lambda: (np.zeros_like(lows), np.full(1, 2**64 - 1, np.uint64)))
    yield words
    assert len(words) >= 3 * 4_000  # k, x and the u that accepts, of each


@pytest.mark.parametrize("variance", [F(1, 4), F(10), F(10**6), F(2**70, 3)])
@pytest.mark.usefixtures("decided")
def test_integers_alone_give_the_same_law(variance: Fraction) -> None:
    draws = rounded_gaussian(variance, 4_000)
    sigma = math.sqrt(variance)
    edges = np.unique(np.ceil(norm.ppf(np.arange(1, 30) / 30) * sigma).astype(np.int64))
    assert p_of_distribution(draws, lambda e: norm.sf((e - 0.5) / sigma), edges) > FLOOR


def test_quick_and_exact_decisions_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words give the same numbers, whether 64 bits decide or longer integers."""
    for variance in (F(1, 3), F(7), F(1000**2 + 1, 3), F(2**60 + 1, 7), F(2**92 - 1), F(2**105)):
        sizes = []
        for most in (14, -1):
            words = np.random.default_rng(5)
            draw = lambda n, words=words: words.integers(0, 2**64, n, dtype=np.uint64)  # noqa: E731
            k, x = np.abs(words.normal(size=3_000)).astype(np.int64), draw(3_000)
            monkeypatch.setattr(sampler, "_MOST", most)
            monkeypatch.setattr(samplers, "random_words", draw)
            sizes.append(sampler._magnitudes(variance, k, x, lambda i, x=x: samplers.LazyUniform(int(x[i]))))
        monkeypatch.undo()
        assert (sizes[0] == sizes[1]).all()


def test_a_boundary_is_decided_by_further_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """sigma = 2, k = 0 and x = 1/4 but for its last bits: 2 x + 1/2 is 1, or just below."""
    for words, size in (([2**62], 1), ([2**62 - 1, 2**64 - 1, 7], 0)):
        left = iter(words)
        monkeypatch.setattr(samplers, "random_words", lambda _, left=left: np.array([next(left)], np.uint64))
        x = samplers.LazyUniform(next(left))
        assert sampler._exactly(F(4), 0, x) == size


def test_weights_of_whole_parts_are_enclosed() -> None:
    total = math.fsum(math.exp(-k * k / 2) for k in range(40))
    for m in range(8):
        for precision in (64, 72, 136):
            low, high = sampler._sum_bracket(m, precision)
            assert 0 <= high - low <= 2
            share = math.fsum(math.exp(-k * k / 2) for k in range(m + 1)) / total
            assert low / 2**precision <= share * (1 + 1e-14)
            assert high / 2**precision >= share * (1 - 1e-14)


def test_less_noise_is_found() -> None:
    draws = rounded_gaussian(F(10) * F(95, 100) ** 2, 10**6)
    assert p_of_values(draws, *law(F(10))) < FLOOR


def test_the_law_is_told_from_the_discrete_one() -> None:
    assert p_of_values(samplers.discrete_gaussian(F(1), 10**6), *law(F(1))) < FLOOR


@pytest.mark.parametrize("variance", [F(0), F(-1), F(2**124), F(2**3000)])
def test_bad_variances_are_refused(variance: Fraction) -> None:
    with pytest.raises(ValueError, match="variance"):
        rounded_gaussian(variance, 1)


def test_sizes() -> None:
    assert rounded_gaussian(F(2), 0).shape == (0,)
    for size in (1, 16, samplers._BATCH + 1):
        assert rounded_gaussian(F(2), size).shape == (size,)
    for tiny in (F(1, 10**6), F(1, 2**2000)):
        assert not rounded_gaussian(tiny, 10**5).any()


# Its exact curve


@pytest.mark.parametrize(("epsilon", "delta"), WIDE)
def test_rho_is_the_largest_that_keeps_delta(epsilon: Fraction, delta: Fraction) -> None:
    rho = gaussian_rho(epsilon, delta)
    mu = math.sqrt(2 * rho)
    assert F(delta_above(F(mu), epsilon)) <= delta * (1 + F(1, 10**12))
    assert F(delta_above(F(mu * (1 + 1e-9)), epsilon)) > delta
    assert rho >= rho_for(epsilon, delta)


@pytest.mark.parametrize("epsilon", [F(1, 1000), F(1, 10), F(1), F(4), F(30), F(1000)])
@pytest.mark.parametrize("shift", [F(-3), F(-1, 100), F(0), F(1, 3), F(39, 10), F(41, 10), F(15)])
def test_delta_is_a_close_upper_bound(epsilon: Fraction, shift: Fraction) -> None:
    """Against the curve of accounting, which is computed in another way; a = epsilon / mu - mu / 2 is the shift."""
    mu = F(-float(shift) + math.sqrt(float(shift) ** 2 + 2 * float(epsilon)))
    above = float(delta_above(mu, epsilon))
    assert above == pytest.approx(delta_of(float(mu), float(epsilon)), rel=1e-10)


@pytest.mark.parametrize("x", ["0", "1e-9", "0.1", "5.9999999999999999", "6", "6.0000000000000001", "10", "40", "5000"])
def test_mills_ratios_are_enclosed(x: str) -> None:
    with localcontext(prec=70), mpmath.workdps(80):
        low, high = curve._mills(Decimal(x))
        place = mpmath.mpf(x)
        ratio = mpmath.erfc(place / mpmath.sqrt(2)) / 2 / mpmath.npdf(place)
        slack = Decimal(10) ** -60
        assert low * (1 - slack) <= Decimal(mpmath.nstr(ratio, 75)) <= high * (1 + slack)
        assert high - low <= high * Decimal(10) ** -40


def pmf(noise: RoundedGaussian, radius: int) -> Any:
    x = np.arange(-radius, radius + 1)
    size = np.abs(x)
    tails = norm.sf((size - 0.5) / noise.scale) - norm.sf((size + 0.5) / noise.scale)
    return np.where(x == 0, 1 - 2 * norm.sf(0.5 / noise.scale), tails)


@pytest.mark.parametrize(("epsilon", "delta"), [(F(1), F(1, 100)), (F(1, 2), F(1, 1000)), (F(2), F(1, 10**5))])
@pytest.mark.parametrize("dimension", [1, 2])
def test_the_pair_is_kept_by_enumeration(epsilon: Fraction, delta: Fraction, dimension: int) -> None:
    """sum over x of max(0, P(x) - e^epsilon P(x - v)) <= delta, for every v of a length that is paid for; nearly all of
    delta is used along an axis where sigma is wide."""
    steps, worst = 3, 0.0
    noise = RoundedGaussian.calibrate(Reach(steps, F(steps * steps), dimension), PrivacyLoss(epsilon, delta))
    radius = math.ceil(9 * noise.scale) + steps if dimension == 1 else math.ceil(6.5 * noise.scale) + steps
    one = pmf(noise, radius)
    joint = one if dimension == 1 else np.multiply.outer(one, one)
    for moved in itertools.product(range(-steps, steps + 1), repeat=dimension):
        if sum(each * each for each in moved) > steps * steps:
            continue
        shifted = np.roll(joint, moved, axis=tuple(range(dimension)))
        worst = max(worst, float(np.clip(joint - math.exp(epsilon) * shifted, 0, None).sum()))
    assert worst <= delta * F(1 + 10**-6)
    assert worst >= delta * F(8, 10)


@pytest.mark.parametrize("rho", [F(1, 20), F(1, 2), F(2)])
def test_it_is_concentrated_by_enumeration(rho: Fraction) -> None:
    noise = RoundedGaussian.of_rho(Reach(2, F(4), 1), rho)
    one = pmf(noise, math.ceil(9 * noise.scale) + 60)
    inside = slice(60, -60)
    for order in (1.1, 2.0, 4.0):
        for shift in (1, 2):
            other = np.roll(one, shift)
            moment = float((one[inside] ** order * other[inside] ** (1 - order)).sum())
            assert math.log(moment) <= order * (order - 1) * float(rho) * (1 + 1e-9)


# As a law of noise


def test_calibration_and_loss() -> None:
    reach, pair = Reach(10, F(100), 1), PrivacyLoss(F(1), F(1, 10**6))
    noise = RoundedGaussian.calibrate(reach, pair)
    rho = gaussian_rho(F(1), F(1, 10**6))
    assert noise.loss(reach) == Cost(F(1), F(1, 10**6), rho)
    assert F(100) / (2 * noise.variance) <= rho
    assert 0.93 < noise.scale / DiscreteGaussian.calibrate(reach, pair).scale < 0.94
    with pytest.raises(ValueError, match="too small"):
        noise.loss(Reach(11, F(121), 1))


@pytest.mark.parametrize("variance", [F(1, 30), F(1, 4), F(1), F(5), F(300)])
def test_tails_variance_and_widths_are_those_of_the_law(variance: Fraction) -> None:
    noise = RoundedGaussian(variance, 3)
    low, probabilities = law(variance)
    x = np.arange(low, low + len(probabilities))
    assert noise.spread == pytest.approx(float((x.astype(float) ** 2 * probabilities).sum()), rel=1e-9)
    for t in (1, 2, 5, math.ceil(4 * noise.scale)):
        exact = norm.sf((t - 0.5) / noise.scale)
        assert exact <= float(noise.upper_tail(t)) <= exact * (1 + 1e-8) + 1e-300
    tail = tail_of(noise)
    assert tail is not None
    t = np.array([-3.0, 0.0, 1.0, 2.0, 7.0])
    for bound in tail.log_above(t):
        assert bound == pytest.approx(norm.logsf((t - 0.5) / noise.scale), rel=1e-9)
    for level in (0.5, 0.9, 0.95, 0.999):
        width = half_width(noise, level)
        inside = probabilities[np.abs(x) <= width].sum()
        assert inside >= level * (1 - 1e-12)
        assert width == 0 or probabilities[np.abs(x) <= width - 1].sum() < level


def test_combinations_are_covered() -> None:
    noise, weights = RoundedGaussian(F(9), 2), np.array([[1.0, 2.0], [-1.0, 0.5]])
    draws = noise.draw(200_000).astype(float)
    for column, width in enumerate(half_widths(noise, weights, 0.95).tolist()):
        held = float((np.abs(weights[:, column] @ draws) <= width).mean())
        assert 0.948 <= held <= 0.98


def test_thresholds_are_by_the_rounded_law() -> None:
    noise = RoundedGaussian(F(49), 1)
    for delta in (F(1, 1000), F(1, 10**6)):
        tau = threshold(noise, 1, delta)
        assert norm.sf((tau - 1 - 0.5) / 7) <= delta < norm.sf((tau - 2 - 0.5) / 7)


# Which Gaussian law is bought


def test_a_pair_buys_rounded_noise_and_a_rho_the_discrete_law() -> None:
    reach, pair = Reach(1, F(1), 1), Allowance(F(1), F(1, 10**6))
    assert isinstance(grant(pair, delta=pair.delta).gaussian(reach).law, RoundedGaussian)
    by_rho = grant(Allowance(None, rho=F(1, 10))).gaussian(reach)
    assert isinstance(by_rho.law, DiscreteGaussian)
    where_rhos_add = grant(Allowance(F(1), F(1, 10**6), concentrated=True), delta=pair.delta).gaussian(reach)
    assert isinstance(where_rhos_add.law, DiscreteGaussian)
    assert where_rhos_add.cost.rho == rho_for(F(1), F(1, 10**6))


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3), F(6), F(12), F(40)])
def test_the_law_of_a_pair_is_never_the_noisier_one(epsilon: Fraction) -> None:
    for cells in (1, 3, 50):
        reach = Reach(cells, F(cells), 1)
        bought = Grant(epsilon, F(1, 10**6), normal=RoundedGaussian).gaussian(reach).law
        for kind in (RoundedGaussian, DiscreteGaussian):
            other = kind.calibrate(reach, PrivacyLoss(epsilon, F(1, 10**6)))
            assert bought.spread <= other.spread * (1 + 1e-9)


def _session(accountant: str) -> dpsql.Session:
    frame = pd.DataFrame({"k": ["a", "b"] * 20})
    table = dpsql.Table(frame, keys={"k": ["a", "b"]})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(1, 1e-6), accountant=accountant)


@pytest.mark.parametrize(("accountant", "law"), [("zcdp", DiscreteGaussian), ("auto", RoundedGaussian)])
def test_a_pair_that_is_all_of_a_budget_is_admitted(accountant: str, law: type) -> None:
    """Where rhos alone are added up the law is the one whose rho converts to the pair."""
    held = _session(accountant)
    asked: dict[str, Any] = {"epsilon": 1, "delta": 5e-7, "mechanism": "gaussian"}
    sql = "SELECT k, COUNT(*) FROM t GROUP BY k"
    assert isinstance(held.explain(sql, **asked)._release.shares[0].noise, law)
    held.query(sql, **asked)
    assert held.spent.epsilon == 1


def test_levels_of_a_pair_are_one_gaussian() -> None:
    """Their rhos come to what the exact tails allow; of discrete noise so much is refused."""
    asked: dict[str, Any] = {"epsilon": 1, "delta": 4e-7, "mechanism": "gaussian"}
    sql = "SELECT k, COUNT(*) FROM t GROUP BY ROLLUP(k)"
    made = _session("auto").explain(sql, **asked)._release
    assert {type(each.noise) for each in made.levels.measured} == {RoundedGaussian}
    assert made.cost.rho == pytest.approx(float(gaussian_rho(F(1), F(4, 10**7))), rel=1e-6)
    made.assert_paid()
    kinds = {
        each: replace(each, noise=DiscreteGaussian(each.noise.variance, each.noise.dimension, None, each.noise.rho))
        for each in made.levels.measured
    }
    levels = replace(made.levels, measured=tuple(kinds.values()))
    with pytest.raises(InternalError, match="charged less"):
        assert_paid(made.asked, (levels,), made.cost)
