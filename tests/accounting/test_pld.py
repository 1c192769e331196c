"""The distribution of the privacy loss against exact formulas, quadrature and another library."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import time
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from dpsql.accounting import (
    ApproximateStep,
    Concentrated,
    Gaussian,
    Laplace,
    Pure,
    delta_of,
    gaussian_delta,
    kov,
    loss_laws,
    pld,
)
from dpsql.accounting.loss_laws import LossLaw

DELTAS = [1e-3, 1e-5, 1e-8, 1e-12]


def responses_delta(epsilons, e, rho=0.0):
    """Exact but for floats: every pattern of lies of randomised responses, each with one Gaussian of this rho."""
    found = []
    for lies in product([False, True], repeat=len(epsilons)):
        loss = math.fsum(-eps if lie else eps for eps, lie in zip(epsilons, lies, strict=True))
        mass = math.prod(1 / (1 + math.exp(eps if lie else -eps)) for eps, lie in zip(epsilons, lies, strict=True))
        if rho:
            mu = math.sqrt(2 * rho)
            a, b = (e - loss) / mu - mu / 2, (e - loss) / mu + mu / 2
            found.append(mass * (special.ndtr(-a) - math.exp(e - loss + special.log_ndtr(-b))))
        else:
            found.append(mass * max(0.0, -math.expm1(e - loss)))
    return math.fsum(found)


def laplace_delta(epsilon, e, tail):
    """One Laplace loss L and an independent loss of which `tail(e)` is the delta: E[tail(e - L)] by quadrature."""
    ends = tail(e - epsilon) / 2 + tail(e + epsilon) * math.exp(-epsilon) / 2
    inner, _ = integrate.quad(
        lambda x: tail(e - x) * math.exp((x - epsilon) / 2) / 4, -epsilon, epsilon, epsabs=0, epsrel=1e-11, limit=500
    )
    return ends + inner


def gaussian_tail(rho):
    mu = math.sqrt(2 * rho)
    return lambda e: special.ndtr(mu / 2 - e / mu) - math.exp(e + special.log_ndtr(-mu / 2 - e / mu))


def response_tail(epsilon):
    def tail(e):
        return sum(
            p * max(0.0, -math.expm1(e - x))
            for x, p in ((epsilon, 1 / (1 + math.exp(-epsilon))), (-epsilon, 1 / (1 + math.exp(epsilon))))
        )

    return tail


def root(curve, delta, most):
    return optimize.brentq(lambda e: curve(e) - delta, 0, most, xtol=1e-13) if curve(0) > delta else 0.0


def close(found, truth, part=1e-3):
    assert truth * (1 - 1e-9) <= found <= truth * (1 + part), (found, truth, found / truth - 1)


def test_published_values():
    assert pld([Gaussian(200, count=100)], 1e-5) == pytest.approx(0.1600, abs=5e-5)
    assert pld([Laplace(20, count=100)], 1e-5) == pytest.approx(1.948, abs=5e-4)


@pytest.mark.parametrize("delta", [0.3, *DELTAS])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 100.0])
def test_one_laplace(epsilon, delta):
    close(pld([Laplace(Fraction(1) / Fraction(str(epsilon)))], delta), max(0.0, epsilon + 2 * math.log1p(-delta)))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("delta", [0.3, *DELTAS])
@pytest.mark.parametrize(
    "epsilons", [(0.1, 0.2, 0.7), (1.0, 1.0, 0.37, 2.1), tuple(0.05 + 0.013 * i for i in range(12)), (3.0, 0.01)]
)
@pytest.mark.parametrize("rho", [0.0, 0.02, 2.0])
def test_unequal_responses_and_a_gaussian(epsilons, delta, rho):
    events = [Pure(epsilon) for epsilon in epsilons] + (
        [Gaussian(Fraction(str(1 / math.sqrt(2 * rho))))] if rho else []
    )
    exact_rho = float(events[-1].rho) if rho else 0.0
    truth = root(lambda e: responses_delta(epsilons, e, exact_rho), delta, sum(epsilons) + 20 * math.sqrt(rho) + rho)
    close(pld(events, delta), truth)


@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_a_laplace_beside_another_law(epsilon, delta):
    noise = Laplace(Fraction(1) / Fraction(str(epsilon)))
    tail = gaussian_tail(0.5)
    close(pld([noise, Gaussian(1)], delta), root(lambda e: laplace_delta(epsilon, e, tail), delta, 12 + epsilon))
    tail = response_tail(0.7)
    close(pld([noise, Pure(0.7)], delta), root(lambda e: laplace_delta(epsilon, e, tail), delta, 0.7 + epsilon))


@pytest.mark.parametrize("count", [2, 3, 10, 1000, 10**5])
def test_equal_responses_by_transform_equal_the_binomial(count):
    """A Laplace step of no weight keeps the binomial formula from being used."""
    for delta in (1e-3, 1e-9):
        exact = kov([Pure(0.01, count=count)], delta)
        close(pld([Pure(0.01, count=count), Laplace(10**12)], delta), exact)


def test_many_gaussians_beside_a_laplace_of_no_weight():
    for sigma, delta in ((1, 1e-5), (30, 1e-3), (0.1, 1e-10)):
        close(pld([Gaussian(sigma), Laplace(10**12)], delta), pld([Gaussian(sigma)], delta))


def test_own_deltas_are_infinite_losses():
    truth = root(lambda e: responses_delta((1.0, 1.0, 0.3), e), 1 - (1 - 1e-5) / (1 - 1e-6) ** 2, 2.3)
    close(pld([ApproximateStep(1, 1e-6, count=2), Pure(0.3)], 1e-5), truth)
    assert pld([ApproximateStep(1, 1e-6)], 1e-6) == 1
    assert pld([ApproximateStep(1, 1e-6), Pure(0.5)], 1e-6) == 1.5
    assert math.isnan(pld([ApproximateStep(1, 1e-6), Gaussian(1)], 1e-6))
    assert math.isnan(pld([ApproximateStep(1, 1e-6, count=2)], 1e-6))


def random_events(rng, size=4):
    def one():
        kind, count = rng.choice(["laplace", "gaussian", "pure", "approx"]), rng.choice([1, 1, 3, 10, 100])
        weight = round(math.exp(rng.uniform(-4, 0.7)) / math.sqrt(count), 3) + 0.001
        match kind:
            case "laplace":
                return Laplace(1 / Fraction(str(weight)), count=count)
            case "gaussian":
                return Gaussian(round(1 / weight, 4), count=count)
            case "pure":
                return Pure(weight, count=count)
        return ApproximateStep(weight, 1e-15, count=count)

    return [one() for _ in range(rng.randint(1, size))]


def other_library(events, h, pessimistic):
    """The same composition by dp_accounting: connected dots for an upper bound, floors for a lower one."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as other

    options = {"pessimistic_estimate": pessimistic, "value_discretization_interval": h}
    found = None
    for event in events:
        match event:
            case Laplace():
                one = other.from_laplace_mechanism(float(1 / event.epsilon), use_connect_dots=pessimistic, **options)
            case Gaussian():
                one = other.from_gaussian_mechanism(float(event.sigma), use_connect_dots=pessimistic, **options)
            case Pure() | ApproximateStep():
                lie = 2 / (1 + math.exp(event.epsilon))
                one = other.from_randomized_response(lie, 2, **options)
        one = one.self_compose(event.count) if event.count > 1 else one
        found = one if found is None else found.compose(one)
    return found


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(25))
def test_random_ledgers_against_another_library(seed):
    rng = random.Random(seed)
    events, delta = random_events(rng), rng.choice([1e-3, 1e-5, 1e-7, 1e-9])
    found = pld(events, delta)
    optimistic = other_library(events, 1e-4, False).get_epsilon_for_delta(delta)
    upper = other_library(events, 1e-3 if any(isinstance(e, Pure | ApproximateStep) for e in events) else 1e-4, True)
    assert found >= optimistic * (1 - 1e-9)
    assert found <= upper.get_epsilon_for_delta(delta) * 1.003 + 1e-6


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(40))
def test_delta_of_is_the_inverse(seed):
    rng = random.Random(seed)
    events, delta = random_events(rng), rng.choice(DELTAS)
    epsilon = pld(events, delta)
    if epsilon > 0:
        assert delta_of(events, epsilon * 1.001) <= delta
        assert delta_of(events, epsilon * 0.99) >= delta


def test_delta_of_closed_forms():
    for epsilon in (0.0, 0.3, 0.9):
        assert delta_of([Pure(1)], epsilon) == pytest.approx((math.e - math.exp(epsilon)) / (1 + math.e), rel=1e-9)
        exact = -math.expm1((epsilon - 1) / 2)
        assert exact <= delta_of([Laplace(1)], epsilon) <= exact * (1 + 1e-3)
        assert delta_of([Gaussian(2, count=4)], epsilon) == pytest.approx(gaussian_delta(1, epsilon), rel=1e-9)
    assert delta_of([Pure(1), Laplace(1)], 2) == 0
    assert delta_of([ApproximateStep(1, 0.25)], 1) == pytest.approx(0.25, rel=1e-9)
    assert delta_of([], 0) == 0
    for steps in ([Gaussian(1), Pure(1)], [Gaussian(1), Laplace(1)], [Gaussian(1)]):
        assert 0 < delta_of(steps, 10**4) < 1e-300
    assert math.isnan(delta_of([Concentrated(1)], 1))


@pytest.mark.parametrize("seed", range(10))
def test_more_noise_fewer_steps_and_more_delta_cost_less(seed):
    rng = random.Random(100 + seed)
    events = random_events(rng)
    costs = [pld(events, delta) for delta in DELTAS]
    assert costs == sorted(costs)
    assert pld(events[:-1], 1e-5) <= pld(events, 1e-5) * (1 + 1e-3)


LAWS = [loss_laws.laplace(1.0), loss_laws.laplace(300.0), loss_laws.response(0.7), loss_laws.gaussian(0.5, -60.0)]


def pair_curve(law, e):
    """delta(e) of a law of losses, by its density and points."""
    found = float((law.masses * np.maximum(0, -np.expm1(e - law.points))).sum())
    if law.density is not None:
        low = max(law.low, e)
        if low < law.high:
            found += integrate.quad(
                lambda x: float(law.density(np.array(x))) * -math.expm1(e - x), low, law.high, epsabs=0, epsrel=1e-12
            )[0]
    return found


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("h", [0.01, 0.3, 2.0])
def test_the_grid_keeps_the_masses_and_dominates(law, h):
    assert dominates(law, *law.on_grid(h), h)


def dominates(law: LossLaw, places, masses, h):
    """The masses are P's, their sum under Q too, and every delta(e) is at least that of the law."""
    x = places * h
    if abs(masses.sum() + law.lost - 1) > 1e-12 or (masses < 0).any():
        return False
    middle = float((law.points * law.masses).sum())
    for e in [*np.linspace(law.low - 1, law.high, 23), middle]:
        on_grid = float((masses * np.maximum(0, -np.expm1(e - x))).sum())
        if on_grid < pair_curve(law, e) * (1 - 1e-10) - 1e-15:
            return False
    return True


@pytest.mark.parametrize("law", LAWS)
def test_lies_about_the_grid_are_caught(law):
    """All mass rounded down, and all mass kept but split evenly."""
    h = 0.3
    places, masses = law.on_grid(h)
    assert not dominates(law, places - 1, masses, h)
    assert not dominates(law, places, masses * 0.999, h)


def test_the_pair_of_a_lie_about_laplace_is_below_the_truth(monkeypatch):
    """A law without its upper point of mass, as a continuous law would have it, is caught by the closed form."""
    truth = 1 + 2 * math.log1p(-1e-3)
    honest = loss_laws.laplace

    def lie(epsilon):
        law = honest(epsilon)
        return LossLaw(law.points - 0.01, law.masses, law.low, law.high, law.smooth, law.density)

    monkeypatch.setattr(loss_laws, "laplace", lie)
    assert pld([Laplace(1)], 1e-3) < truth * (1 - 1e-3)


@pytest.mark.parametrize(
    "events",
    [
        [Pure(1000, count=1000), Laplace(Fraction(1, 1000)), Gaussian(0.1)],
        [Pure(1000 + i) for i in range(50)],
        [Pure(10**6), Laplace(10**6, count=10**6), Gaussian(1)],
        [Laplace(10**5, count=10**9), Laplace(Fraction(1, 159))],
        [Gaussian(1, count=10**6), Laplace(Fraction(1, 159))],
        [Pure(1e-9 + 1e-12 * i) for i in range(20)],
        [Laplace(1e50), Gaussian(1e50), Pure(1e-50)],
        [Laplace(1e-50), Gaussian(1e-50), Pure(1e50)],
    ],
    ids=repr,
)
@pytest.mark.parametrize("delta", [0, 1e-100, 1e-5, 0.5, 0.999])
def test_extremes_end_quickly_in_a_number(events, delta):
    start = time.perf_counter()
    found = pld(events, delta)
    assert time.perf_counter() - start < 10
    gaussians = any(isinstance(event, Gaussian) for event in events)
    assert math.isnan(found) if delta == 0 and gaussians else 0 <= found < math.inf


def test_a_million_steps():
    close(pld([Laplace(1000, count=10**6), Gaussian(10**9)], 1e-5), normal_limit(10**6, 1e-3, 1e-5), part=3e-3)


def normal_limit(count, epsilon, delta):
    """For very many tiny Laplace steps the loss is nearly normal; the mean and variance of a step are exact."""
    mean = epsilon + math.expm1(-epsilon)
    square = (
        epsilon**2 * (1 + math.exp(-epsilon)) / 2
        + integrate.quad(lambda x: x * x * math.exp((x - epsilon) / 2) / 4, -epsilon, epsilon)[0]
    )
    m, d = count * mean, math.sqrt(count * (square - mean**2))

    def curve(e):
        above = stats.norm.sf((e - m) / d)
        return above - math.exp(e - m + d * d / 2) * stats.norm.sf((e - m + d * d) / d)

    return root(curve, delta, 10 * d + m) * (1 - 1e-5)


def test_the_package_starts_without_it():
    code = "import sys, dpsql, dpsql.accounting; assert 'dpsql.accounting.loss_distribution' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
