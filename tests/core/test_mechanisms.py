"""The noise laws against their own definitions: calibration, exact probabilities, tails, quantiles and conversions.

Draws come from the operating system and have no seed: statistical limits are at least six standard errors wide. Random
parameters come from a fixed seed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsql.accuracy import pairs, widths
from dpsql.accuracy.widths import half_width, half_widths
from dpsql.core.conversion import delta_of_rho, rho_for
from dpsql.core.cost import Cost
from dpsql.core.loss import PrivacyLoss
from dpsql.core.mechanisms import tails
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian, Noise, Reach, SplitLaplace
from dpsql.core.selection.threshold import show_probability, threshold

SEED = 20_240_229
EPSILONS = [Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(7), Fraction(10**6), Fraction(1, 10**9)]
EPSILONS += [Fraction(7, 10**6), Fraction(10**9), Fraction(1234567891, 10**10), Fraction(1, 3**20)]


def reaches() -> list[Reach]:
    rng = random.Random(SEED)
    found = [Reach(1, Fraction(1), 1), Reach(3, Fraction(9), 1), Reach(2**45 - 1, Fraction(2**90), 2)]
    for _ in range(40):
        steps = rng.randrange(1, 2 ** rng.randrange(1, 46))
        dimension = rng.randrange(1, 9)
        found.append(Reach(steps, Fraction(dimension * steps * steps * rng.randrange(1, 3)), dimension))
    return found


# Calibration


@pytest.mark.parametrize("law", [CubeLaplace, SplitLaplace])
def test_laplace_scales_are_rounded_up_and_hardly(law: Any):
    for reach, epsilon in itertools.product(reaches(), EPSILONS):
        noise = law.calibrate(reach, epsilon)
        wanted = Fraction(reach.cube_sensitivity * (reach.dimension if law is SplitLaplace else 1)) / epsilon
        assert noise.exact_scale >= wanted
        finest = max(wanted, Fraction(1)) / 2**58
        assert noise.exact_scale - wanted <= max(finest, 1 if wanted > 2**58 else 0), (reach, epsilon)
        assert noise.loss(reach).epsilon <= epsilon
        assert noise.loss(reach).delta == 0


def test_the_scale_is_exact_where_the_samplers_take_it():
    noise = CubeLaplace.calibrate(Reach(3, Fraction(9), 1), Fraction(1, 3))
    assert noise.exact_scale == 9
    assert noise.loss(Reach(3, Fraction(9), 1)) == Cost.of(Fraction(1, 3))


def test_a_larger_reach_costs_more_than_the_law_was_calibrated_to():
    noise = CubeLaplace.calibrate(Reach(10, Fraction(100), 2), Fraction(1, 3))
    assert noise.loss(Reach(11, Fraction(121), 2)).epsilon > Fraction(1, 3)
    gaussian = DiscreteGaussian.calibrate(Reach(10, Fraction(100), 1), PrivacyLoss(Fraction(1), Fraction(1, 10**6)))
    with pytest.raises(ValueError, match="too small"):
        gaussian.loss(Reach(11, Fraction(121), 1))


@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 10**100), Fraction(1, 2), Fraction(1, 10**12)])
def test_gaussian_variance_suffices_for_its_rho(delta: Fraction):
    for reach, epsilon in itertools.product(reaches()[:12], EPSILONS[:5]):
        loss = PrivacyLoss(epsilon, delta)
        noise = DiscreteGaussian.calibrate(reach, loss)
        assert Fraction(reach.l2_squared) / (2 * noise.variance) <= rho_for(epsilon, delta)
        assert noise.variance <= Fraction(reach.l2_squared) / (2 * rho_for(epsilon, delta)) + Fraction(1, 2**20)
        assert noise.loss(reach) == Cost(epsilon, delta, rho_for(epsilon, delta))


# The discrete K-norm law is pure differential privacy: every probability, by its definition


def probabilities(scale: Fraction, dimension: int, radius: int) -> Any:
    """P(x) = a^max|x_i| / C for all x with max|x_i| <= radius, as an array of `dimension` axes; C by shells:
    (2m + 1)^d - (2m - 1)^d points at a distance of m."""
    a = math.exp(-1 / scale)
    shell = [1.0 if m == 0 else float((2 * m + 1) ** dimension - (2 * m - 1) ** dimension) for m in range(4000)]
    total = math.fsum(count * a**m for m, count in enumerate(shell))
    axes = np.meshgrid(*[np.arange(-radius, radius + 1)] * dimension, indexing="ij")
    return a ** np.max(np.abs(axes), axis=0) / total


@pytest.mark.parametrize(("dimension", "radius"), [(1, 60), (2, 30), (3, 12)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_k_norm_noise_is_private_for_every_shift_and_outcome(
    dimension: int, radius: int, epsilon: Fraction, steps: int
):
    noise = CubeLaplace.calibrate(Reach(steps, Fraction(steps * steps * dimension), dimension), epsilon)
    law = probabilities(noise.exact_scale, dimension, radius)
    inside = (slice(steps, -steps),) * dimension
    worst = 0.0
    for shift in itertools.product(range(-steps, steps + 1), repeat=dimension):
        shifted = np.roll(law, shift, axis=tuple(range(dimension)))
        worst = max(worst, float((law[inside] / shifted[inside]).max()))
    assert worst <= math.exp(epsilon) * (1 + 1e-9)
    assert worst >= math.exp(epsilon) * (1 - 1e-9)  # and no more noise than needed


@pytest.mark.parametrize(("dimension", "scale"), [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1)])
def test_probabilities_of_small_outcomes_are_what_is_drawn(dimension: int, scale: int):
    law = probabilities(Fraction(scale), dimension, 2)
    draws = CubeLaplace(Fraction(scale), dimension).draw(200_000)
    for place, p in np.ndenumerate(law):
        x = np.array(place) - 2
        seen = int((draws == x[:, None]).all(axis=0).sum())
        assert abs(seen - 200_000 * p) <= 6.5 * math.sqrt(200_000 * p * (1 - p)) + 1, x


# Tails


def exact_upper_tail(scale: Fraction, dimension: int, t: int) -> Decimal:
    """P(X >= t) by plain summation over the radius r, in 50 digits."""
    with localcontext() as context:
        context.prec = 50
        a = (-1 / (Decimal(scale.numerator) / Decimal(scale.denominator))).exp()
        total = tail = Decimal(0)
        weight, r = Decimal(1), 0
        while r < t + 10 or weight * (2 * r + 1) ** dimension > tail * Decimal(10) ** -30:
            total += weight * (2 * r + 1) ** dimension
            if r >= t:
                tail += weight * (2 * r + 1) ** dimension * Decimal(r - t + 1) / Decimal(2 * r + 1)
            weight *= a
            r += 1
        return tail / total


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@pytest.mark.parametrize("scale", [Fraction(1, 20), Fraction(1, 2), Fraction(1), Fraction(10, 3), Fraction(25)])
def test_upper_tail_is_the_sum_of_probabilities(scale: Fraction, dimension: int):
    for t in (1, 2, 3, 7, 20, 60):
        exact = exact_upper_tail(scale, dimension, t)
        computed = tails.cube_upper_tail(scale, dimension, t)
        assert exact <= computed <= exact * (1 + Decimal("1e-15")), t


def test_upper_tail_in_dimension_one_is_the_closed_form():
    for epsilon in (0.1, 1.0, 3.0):
        a = math.exp(-epsilon)
        computed = float(tails.cube_upper_tail(Fraction(1) / Fraction(repr(epsilon)), 1, 9))
        assert computed == pytest.approx(a**9 / (1 + a), rel=1e-12)


def test_upper_tail_keeps_its_digits_at_the_largest_scales():
    """P(X >= t) of the continuous law at t = 40 scales, for a scale of 2^60: what rounding up may add is 1e-15."""
    for dimension in (1, 2, 4):
        scale = Fraction(2**60)
        computed = float(tails.cube_upper_tail(scale, dimension, 40 * 2**60))
        continuous = pairs.cube_pair_tail(dimension)(0.0, 40.0) / 2
        assert computed == pytest.approx(continuous, rel=1e-9)


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_upper_tail_against_draws(dimension: int):
    noise = CubeLaplace(Fraction(7), dimension)
    draws = noise.draw(300_000)[0]
    for t in (1, 5, 15, 30, 60):
        p = float(noise.upper_tail(t))
        assert abs((draws >= t).mean() - p) <= 6.5 * math.sqrt(p * (1 - p) / 300_000) + 1e-9


def gaussian(variance: Fraction, dimension: int = 1) -> DiscreteGaussian:
    return DiscreteGaussian(variance, dimension, PrivacyLoss(Fraction(1), Fraction(1, 10**6)))


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(17, 2), Fraction(900)])
def test_gaussian_tail_bounds_the_discrete_tail(variance: Fraction):
    x = np.arange(-800, 801)
    weights = np.exp(-(x**2) / (2 * float(variance)))
    weights /= weights.sum()
    for t in (1, 2, 3, 5, 10, 40, 100):
        exact = float(weights[x >= t].sum())
        bound = float(gaussian(variance).upper_tail(t))
        assert exact <= bound * (1 + 1e-12) + 1e-300
        if variance > 100:
            assert bound <= 1.5 * exact + 1e-15 or t > 3 * math.sqrt(variance)  # one step away at most


# Thresholds


LAWS: list[tuple[str, Noise]] = [
    ("laplace, fine", CubeLaplace(Fraction(2**20), 2)),
    ("laplace, whole", CubeLaplace(Fraction(1), 1)),
    ("laplace, coarse", CubeLaplace(Fraction(1, 4), 1)),
    ("laplace, eps .1", CubeLaplace(Fraction(10), 1)),
    ("k-norm", CubeLaplace(Fraction(100), 4)),
    ("split", SplitLaplace(Fraction(30), 3)),
    ("gaussian", gaussian(Fraction(400))),
]


@pytest.mark.parametrize(("name", "noise"), LAWS, ids=[name for name, _ in LAWS])
@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 10**100), Fraction(1, 2 * 10**9)])
def test_threshold_never_exceeds_delta_and_is_the_least(name: str, noise: Noise, delta: Fraction):
    for most_of_a_unit in (1, 5, 2**20):
        tau = threshold(noise, most_of_a_unit, delta)
        goal = Decimal(delta.numerator) / Decimal(delta.denominator)
        above = tau - most_of_a_unit  # a group that one unit makes is shown when the noise reaches this
        assert noise.upper_tail(above) <= goal
        finest = max(1, above >> 19)
        assert above == 1 or noise.upper_tail(max(1, above - finest)) > goal


def test_threshold_of_whole_counts_against_the_closed_form():
    """P(1 + X >= tau) = a^(tau - 1) / (1 + a) <= delta; the continuous formula is one too small at epsilon 1."""
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        a = math.exp(-epsilon)
        tau = threshold(CubeLaplace(1 / Fraction(repr(epsilon)), 1), 1, Fraction(1, 10**6))
        assert a ** (tau - 1) / (1 + a) <= 1e-6 < a ** (tau - 2) / (1 + a)


@pytest.mark.parametrize(("name", "noise"), LAWS[:6], ids=[name for name, _ in LAWS[:6]])
def test_chance_of_being_shown_against_draws(name: str, noise: Noise):
    tau = threshold(noise, 3, Fraction(1, 1000))
    draws = noise.draw(200_000)[0]
    for count in (3, tau // 2, tau - 1, tau, tau + 1, tau + tau // 3):
        p = show_probability(noise, count, tau)
        assert abs((count + draws >= tau).mean() - p) <= 6.5 * math.sqrt(p * (1 - p) / 200_000) + 1e-6


# Half-widths: coverage is at least the level, and hardly more

COVERAGE: list[tuple[str, Noise]] = [
    ("laplace", CubeLaplace(Fraction(2**20), 1)),
    *((f"k-norm {d}", CubeLaplace(Fraction(2**20), d)) for d in range(2, 6)),
    ("split 2", SplitLaplace(Fraction(2**20), 2)),
    ("split 4", SplitLaplace(Fraction(2**20), 4)),
    ("gaussian", gaussian(Fraction(2**40), 3)),
]
DRAWS = 200_000


def assert_covers(inside: Any, level: float, *, most: float = 0.005):
    covered, error = float(np.mean(inside)), 6.5 * math.sqrt(level * (1 - level) / np.size(inside))
    assert level - error <= covered <= level + most + error, (covered, level)


@pytest.mark.parametrize(("name", "noise"), COVERAGE, ids=[name for name, _ in COVERAGE])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_half_width_covers_one_coordinate(name: str, noise: Noise, level: float):
    draws = noise.draw(DRAWS)
    width = half_width(noise, level)
    for coordinate in draws:
        assert_covers(np.abs(coordinate) <= width, level)


@pytest.mark.parametrize(("name", "noise"), COVERAGE[1:], ids=[name for name, _ in COVERAGE[1:]])
def test_half_widths_cover_two_coordinates(name: str, noise: Noise):
    draws = noise.draw(DRAWS).astype(np.float64)
    factors = [(1.0, 0.0), (1.0, 1e-4), (1.0, 0.3), (1.0, -0.8), (1.0, 1.0), (0.02, 5.0), (0.0, 2.0), (0.0, 0.0)]
    for first, second in factors:
        width = float(half_widths(noise, np.array([[first], [second]]), 0.95)[0])
        error = np.abs(first * draws[0] + second * draws[1])
        if first or second:
            assert_covers(error <= width, 0.95)
        else:
            assert width == 0


def narrowest(weights: Any, level: float) -> int:
    """The least t with P(|X| <= t) >= level, for probabilities on -m..m."""
    middle = len(weights) // 2
    inside = [weights[middle - t : middle + t + 1].sum() for t in range(middle + 1)]
    return next(t for t, p in enumerate(inside) if p >= level * (1 - 1e-12))


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.95, 0.99, 0.9999])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(40)])
def test_half_width_on_integers_is_the_narrowest(epsilon: Fraction, level: float):
    x = np.arange(-1200, 1201)
    laplace = np.exp(-np.abs(x) * float(epsilon))
    assert half_width(CubeLaplace(1 / epsilon, 1), level) == narrowest(laplace / laplace.sum(), level)
    assert half_width(SplitLaplace(1 / epsilon, 3), level) == narrowest(laplace / laplace.sum(), level)
    normal = np.exp(-(x**2) * float(epsilon) / 2)
    assert half_width(gaussian(1 / epsilon), level) == narrowest(normal / normal.sum(), level)


def test_a_laplace_at_epsilon_one_jumps_from_92_to_97_percent():
    a = math.exp(-1)
    inside = [1 - 2 * a ** (t + 1) / (1 + a) for t in (2, 3)]
    assert [round(100 * p, 1) for p in inside] == [92.7, 97.3]
    assert half_width(CubeLaplace(Fraction(1), 1), 0.95) == 3


# Quantiles of sums


def pair_tail_by_quadrature(dimension: int, ratio: float, t: float) -> float:
    """P(|X + ratio Y| > t) of the continuous K-norm law: R is Gamma(d + 1), X and Y uniform on [-R, R]."""
    r = np.linspace(0, 60 + 8 * dimension, 400_001)[1:]
    density = stats.gamma.pdf(r, dimension + 1)
    x = t / r
    b = max(ratio, 1e-12)
    near = (1 + b - x) ** 2 / (4 * b)  # the two ends of a trapezoid
    flat = np.where(x <= 1 - b, 1 - x, near)
    return float(np.trapezoid(density * np.where(x >= 1 + b, 0, flat), r))


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_pair_tail_against_quadrature(dimension: int):
    for ratio, t in itertools.product((0.01, 0.3, 0.7, 1.0), (0.5, 2.0, 6.0)):
        computed = pairs.cube_pair_tail(dimension)(ratio, t)
        assert computed == pytest.approx(pair_tail_by_quadrature(dimension, ratio, t), rel=1e-4, abs=1e-9)


def test_laplace_pair_tail_against_its_formula():
    for b, t in itertools.product((0.2, 0.5, 0.9), (0.5, 3.0)):
        exact = (math.exp(-t) - b * b * math.exp(-t / b)) / (1 - b * b)
        assert pairs.laplace_pair_tail(b, t) == pytest.approx(exact, rel=1e-12)
    assert pairs.laplace_pair_tail(1.0, 3.0) == pytest.approx(2.5 * math.exp(-3), rel=1e-12)
    assert pairs.laplace_pair_tail(1 - 2e-6, 3.0) == pytest.approx(2.5 * math.exp(-3), rel=1e-5)


@pytest.mark.parametrize(("law", "dimension"), [("cube", 2), ("cube", 3), ("cube", 5), ("cube", 8), ("laplace", 2)])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("made", [pairs.quantile_table, widths._table])
def test_interpolated_quantiles_are_never_too_small_and_close(made: Any, law: str, dimension: int, level: float):
    table = made(law, dimension, level)
    tail: Callable[[float, float], float]
    tail = pairs.cube_pair_tail(dimension) if law == "cube" else pairs.laplace_pair_tail
    ratios = np.concatenate([np.random.default_rng(SEED).uniform(0, 1, 25), [0, 1e-9, 1e-4, 0.0078, 0.99999, 1]])
    for ratio in ratios.tolist():
        exact = pairs.solve(lambda t, r=ratio: tail(r, t), 1 - level)  # type: ignore[misc]
        found = float(pairs.quantiles(np.array([ratio]), table)[0])
        assert exact <= found <= exact * (1 + 3e-4), ratio


# Conversion


def rho_by_grid(epsilon: float, delta: float) -> float:
    """The largest rho whose conversion stays within delta, by bisection over a dense grid of alpha."""
    alphas = 1 + np.logspace(-8, 12, 200_001)

    def delta_of(rho: float) -> float:
        log = (alphas - 1) * (alphas * rho - epsilon) + alphas * np.log1p(-1 / alphas) - np.log(alphas - 1)
        return float(np.exp(log.min()))

    low, high = 0.0, epsilon + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) <= delta else (low, middle)
    return low


def test_rho_of_one_and_a_millionth():
    assert float(rho_for(Fraction(1), Fraction(1, 10**6))) == pytest.approx(0.02436, abs=5e-6)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-5), (0.01, 1e-9), (5.0, 1e-6), (30.0, 1e-12), (1.0, 0.3), (1e-5, 1e-8)]
)
def test_rho_against_a_dense_grid(epsilon: float, delta: float):
    found = rho_for(Fraction(repr(epsilon)), Fraction(repr(delta)))
    assert float(found) <= rho_by_grid(epsilon, delta) * (1 + 1e-6)
    assert float(found) >= rho_by_grid(epsilon, delta) * (1 - 1e-4)
    assert delta_of_rho(float(found), epsilon) <= delta


def exact_gaussian_delta(epsilon: float, mu: float) -> float:
    """The tight delta of a continuous Gaussian with sensitivity / sigma = mu (Balle, Wang 2018)."""
    normal = stats.norm.cdf
    return float(normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-5), (3.0, 1e-9)])
def test_the_converted_gaussian_is_at_least_as_noisy_as_the_analytic_one(epsilon: float, delta: float):
    rho = float(rho_for(Fraction(repr(epsilon)), Fraction(repr(delta))))
    exact = exact_gaussian_delta(epsilon, math.sqrt(2 * rho))
    assert exact <= delta
    assert exact >= delta / 20


def test_discrete_gaussian_keeps_its_epsilon_and_delta_by_enumeration():
    """sum over x of max(0, P(x) - e^eps P(x - s)) <= delta, for a sensitivity of 1..3 steps."""
    for steps, epsilon, delta in ((1, 1.0, 1e-3), (3, 0.5, 1e-4), (2, 2.0, 1e-5)):
        loss = PrivacyLoss(Fraction(repr(epsilon)), Fraction(repr(delta)))
        noise = DiscreteGaussian.calibrate(Reach(steps, Fraction(steps * steps), 1), loss)
        x = np.arange(-4000, 4001)
        p = np.exp(-(x.astype(float) ** 2) / (2 * float(noise.variance)))
        p /= p.sum()
        for shift in range(1, steps + 1):
            excess = p - math.exp(epsilon) * np.roll(p, shift)
            assert np.clip(excess, 0, None).sum() <= delta
