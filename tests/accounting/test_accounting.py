"""The accountants: published values, exact formulas with many digits, another library, order, bad input, lies."""

from __future__ import annotations

import dataclasses
import math
import random
import time
import types
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from dpsql import accounting
from dpsql.accounting import (
    ApproximateStep,
    Concentrated,
    Gaussian,
    Laplace,
    Pure,
    accountants,
    advanced,
    basic,
    classic_gaussian_sigma,
    compare,
    gaussian_delta,
    gaussian_epsilon,
    kov,
    pld,
    rdp,
    rdp_at,
    renyi,
    responses,
    zcdp,
    zcdp_classic,
)
from dpsql.accounting import gaussian_curve as gaussian
from dpsql.core import rounding
from dpsql.core.events import Steps
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter

NAMES = ["basic", "advanced", "kov", "zcdp_classic", "zcdp", "rdp", "pld"]
GAUSSIANS = [Gaussian(200, count=100)]
LAPLACES = [Laplace(20, count=100)]
D = 1e-5


# Published values


def test_a_hundred_gaussians():
    found = compare(GAUSSIANS, D)["epsilon"]
    assert found["basic"] == pytest.approx(1.882, abs=1e-3)
    assert found["advanced"] == pytest.approx(1.009, abs=1e-3)
    assert math.isnan(found["kov"])
    assert found["zcdp_classic"] == pytest.approx(0.2412, abs=1e-4)
    assert found["zcdp"] == pytest.approx(0.1775, abs=1e-4)
    assert 0.1774 < found["rdp"] < 0.1816
    assert found["pld"] == pytest.approx(0.1600, abs=1e-4)
    assert rdp_at(GAUSSIANS, D, 60, conversion="classic") == pytest.approx(0.2701, abs=1e-4)
    assert found["rdp"] <= rdp_at(GAUSSIANS, D, 60) < rdp_at(GAUSSIANS, D, 60, conversion="classic")


def test_a_hundred_laplaces():
    found = compare(LAPLACES, D)["epsilon"]
    assert found["basic"] == 5
    assert found["advanced"] == pytest.approx(2.656, abs=1e-3)
    assert found["kov"] == pytest.approx(1.968, abs=1e-3)
    assert found["zcdp"] == pytest.approx(2.166, abs=1e-3)
    assert found["pld"] == pytest.approx(1.948, abs=1e-3)
    assert found["rdp"] < found["zcdp"]


def test_zcdp_for_a_budget():
    """rho for (1, 1e-6) is .02436 by the tight conversion, .01747 by the classic one."""
    assert zcdp([Concentrated(0.02436)], 1e-6) == pytest.approx(1, abs=2e-4)
    assert zcdp_classic([Concentrated(0.01747)], 1e-6) == pytest.approx(1, abs=5e-4)


# The table and what it takes


def test_the_table():
    found = compare(GAUSSIANS, D)
    assert list(found.index) == NAMES
    assert found.index.name == "accountant"
    assert list(found.columns) == ["epsilon"]
    assert found["epsilon"].dtype == np.float64
    for name in NAMES:
        assert getattr(accounting, name)(LAPLACES, D) == compare(LAPLACES, D).loc[name, "epsilon"]


def test_where_events_come_from():
    entry = types.SimpleNamespace(events=(Pure(0.1), Pure(0.2)))
    whole = [Pure(0.1), Pure(0.2), Gaussian(20)]
    for source in (
        whole,
        tuple(whole),
        iter(whole),
        [entry, Gaussian(20)],
        types.SimpleNamespace(ledger=lambda: [entry, Gaussian(20)]),
        types.SimpleNamespace(ledger=[entry, Gaussian(20)]),
        types.SimpleNamespace(events=whole),
    ):
        assert compare(source, D).equals(compare(whole, D))
    assert basic(Pure(0.1), 0) == 0.1
    for bad in (None, 1, "events", [1], [None], ["a"], [types.SimpleNamespace(events=(1,))], [[Pure(1)]]):
        with pytest.raises(InvalidArgument, match="event"):
            compare(bad, D)


def test_no_steps_cost_nothing():
    for delta in (0, 1e-5):
        assert (compare([], delta)["epsilon"] == 0).all()
    assert rdp_at([], 0, 2) == 0


@pytest.mark.parametrize("delta", [1, 1.5, -1e-9, math.nan, math.inf, "1e-5", None, True])
def test_bad_deltas(delta):
    with pytest.raises(InvalidPrivacyParameter, match="delta"):
        compare(GAUSSIANS, delta)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1", None, True, 1e60, Decimal("NaN")])
def test_bad_events(bad):
    for make in (Laplace, Gaussian, Pure, Concentrated, lambda x: Laplace(1, x), lambda x: Gaussian(1, x)):
        with pytest.raises(InvalidPrivacyParameter):
            make(bad)
    for make in (
        lambda x: ApproximateStep(x or -1, 0.1),
        lambda x: ApproximateStep(1, x),
    ):  # an epsilon of 0 is an own delta alone
        with pytest.raises(InvalidPrivacyParameter):
            make(bad)
    with pytest.raises(InvalidPrivacyParameter):
        ApproximateStep(1, 1)
    for count in (0, -1, 1.0, math.nan, True, "1", 10**9 + 1):
        with pytest.raises(InvalidPrivacyParameter):
            Pure(1, count=count)
    assert Pure(1, count=np.int64(3)).count == 3
    for alpha in (1, 0, -2, math.nan, True):
        with pytest.raises(InvalidPrivacyParameter):
            rdp_at(GAUSSIANS, D, alpha)
    with pytest.raises(InvalidArgument):
        rdp_at(GAUSSIANS, D, 2, conversion="tigth")


def test_events_hold_fractions_and_are_frozen():
    assert Laplace(20, 2).epsilon == Pure(0.1).epsilon == Fraction(1, 10)
    assert Gaussian(10, 3).rho == Fraction(9, 200)
    assert Gaussian(0.1) == Gaussian(Decimal("0.1")) == Gaussian(Fraction(1, 10))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Pure(1).epsilon = Fraction(1, 2)
    assert dataclasses.replace(Pure(1), count=3) == Pure(1, 3)
    for event in (Laplace(1), Gaussian(1), Pure(1), ApproximateStep(1, 0.1), Concentrated(1)):
        assert not hasattr(event, "__dict__")


# Sums


def test_pure_epsilons_add_exactly():
    assert basic([Pure(0.1)] * 3, 0) == 0.3
    assert basic([Pure(0.1, count=10)], 0) == 1.0
    assert basic([Laplace(3, count=3)], 0) == 1.0
    third = basic([Laplace(3)], 0)
    assert Fraction(repr(third)) >= Fraction(1, 3)
    assert third == math.nextafter(1 / 3, 1) or third == 1 / 3


def test_sums_of_many_unequal_fractions_are_quick_and_upward():
    numbers = [Fraction(1, 10**9 + 7 * i) for i in range(5000)]
    start = time.perf_counter()
    found = rounding.total(numbers)
    assert time.perf_counter() - start < 1
    exact = math.fsum(map(float, numbers))
    assert abs(float(found) / exact - 1) < 1e-14
    small = [Fraction(1, 10**30 + i) for i in range(40)]
    assert sum(small) <= rounding.total(small) <= sum(small) * (1 + Fraction(1, 2**200))


def test_own_deltas_come_off_first():
    assert basic([ApproximateStep(0.5, 1e-6, count=2)], 2e-6) == 1
    assert math.isnan(basic([ApproximateStep(0.5, 1e-6, count=2)], 1.99e-6))
    events = [ApproximateStep(0.5, 1e-6, count=4), Gaussian(2)]
    assert basic(events, 1e-5) == pytest.approx(2 + gaussian_epsilon(2, 6e-6), rel=1e-9)
    assert math.isnan(basic(events, 4e-6))
    own = [ApproximateStep(0.05, 5e-8, count=100)]
    for account in (advanced, zcdp, zcdp_classic, rdp):
        assert account(own, 1e-5) == pytest.approx(account(LAPLACES if account is not rdp else [Pure(0.05, 100)], 5e-6))
    # 1 - (1 - delta)/prod(1 - own delta), Kairouz, Oh, Viswanath 2015, theorem 3.3
    left = 1 - (1 - Fraction(1, 10**5)) / (1 - Fraction(5, 10**8)) ** 100
    assert kov(own, 1e-5) == pytest.approx(kov([Pure(0.05, count=100)], float(left)), rel=1e-9)


def test_steps_that_have_a_delta_alone():
    alone = [ApproximateStep(0, 1e-6, count=4)]
    assert (compare(alone, D)["epsilon"] == 0).all()
    assert (compare(alone, 4e-6)["epsilon"] == 0).all()
    assert rdp_at(alone, D, 3) == 0
    assert compare(alone, 3.9e-6)["epsilon"].isna().all()
    assert kov([*alone, Pure(0.1, count=5)], D) == pytest.approx(kov([Pure(0.1, count=5)], 6e-6), rel=1e-5)
    assert accounting.delta_of(alone, 0) == pytest.approx(1 - (1 - 1e-6) ** 4, rel=1e-9)
    assert pld([*alone, Gaussian(1)], D) == pytest.approx(gaussian_epsilon(1, 6e-6), rel=1e-5)
    assert zcdp([*alone, Gaussian(1)], D) == pytest.approx(zcdp([Gaussian(1)], 6e-6), rel=1e-9)


def test_concentrated_steps():
    alone = [Concentrated(0.01, count=4)]
    assert basic(alone, 1e-5) == pytest.approx(4 * zcdp([Concentrated(0.01)], 2.5e-6), rel=1e-9)
    assert zcdp(alone, D) == pytest.approx(rdp(alone, D)) == pytest.approx(zcdp([Gaussian(10, count=8)], D))
    assert math.isnan(pld(alone, D))
    assert math.isnan(kov(alone, D))
    assert advanced(alone, D) > zcdp(alone, D)


def test_without_delta_only_pure_epsilons_hold():
    found = compare([Pure(0.25, count=2)], 0)["epsilon"]
    assert found[["basic", "kov", "rdp", "pld"]].tolist() == [0.5] * 4
    assert found[["advanced", "zcdp_classic", "zcdp"]].isna().all()
    for events in (GAUSSIANS, [Concentrated(1)], [Pure(1), Gaussian(1)], [ApproximateStep(1, 1e-9)]):
        assert compare(events, 0)["epsilon"].isna().all()
    assert rdp_at([Pure(0.25, count=2)], 0, math.inf) == 0.5
    assert math.isnan(rdp_at([Pure(0.25, count=2)], 0, 50))
    assert math.isnan(rdp_at(GAUSSIANS, D, math.inf))


def test_advanced_of_unequal_steps():
    """sqrt(2 ln(1/slack) sum eps^2) + sum eps (e^eps - 1); with Gaussians half of delta is the slack."""
    events = [Pure(0.1, count=3), Laplace(5), ApproximateStep(0.3, 1e-6)]
    epsilons = [0.1, 0.1, 0.1, 0.2, 0.3]
    drift = sum(e * math.expm1(e) for e in epsilons)
    spread = math.sqrt(-2 * math.log(1e-5 - 1e-6) * sum(e * e for e in epsilons))
    assert advanced(events, D) == pytest.approx(spread + drift, rel=1e-9)
    epsilons += [gaussian_epsilon(50, 4.5e-6 / 2)] * 2
    drift = sum(e * math.expm1(e) for e in epsilons)
    spread = math.sqrt(-2 * math.log(4.5e-6) * sum(e * e for e in epsilons))
    assert advanced([*events, Gaussian(50, count=2)], D) == pytest.approx(spread + drift, rel=1e-9)
    assert math.isnan(advanced([Pure(1000)], D))


# Optimal composition of equal steps


def exact_delta(k, epsilon, e):
    """The formula of theorem 3.3, with 60 digits, at any e >= 0."""
    with mp.workdps(60):
        eps, e = mpf(str(epsilon)), mpf(e)
        terms = (
            mp.binomial(k, lies) * (mp.exp((k - lies) * eps) - mp.exp(e + lies * eps))
            for lies in range(k + 1)
            if (k - 2 * lies) * eps > e
        )
        return mp.fsum(terms) / (1 + mp.exp(eps)) ** k


@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-6, 1e-12, 1e-60])
@pytest.mark.parametrize(
    ("k", "epsilon"), [(1, 1.0), (2, 0.3), (7, 2.0), (30, 0.1), (400, 0.05), (3, 20.0), (50, 1e-6)]
)
def test_kov_is_the_root_of_the_formula(k, epsilon, delta):
    found = kov([Pure(epsilon, count=k)], delta)
    assert exact_delta(k, epsilon, str(found)) <= delta
    if found > 0:
        assert exact_delta(k, epsilon, found * (1 - 1e-6)) > delta * (1 - 1e-9)
    if delta < exact_delta(k, epsilon, 0):
        assert found > 0


@pytest.mark.parametrize(("k", "epsilon"), [(1, 1.0), (40, 0.5), (3000, 0.02), (10**6, 1e-3), (500, 30.0)])
def test_log_probabilities(k, epsilon):
    rng = np.random.default_rng(1)
    mean = k / (1 + math.exp(epsilon))
    lies = np.unique(np.clip(rng.normal(mean, 6 * math.sqrt(mean) + 1, 30).astype(int), 0, k))
    with mp.workdps(60):
        p = 1 / (1 + mp.exp(mpf(epsilon)))
        exact = [mp.log(mp.binomial(k, int(n))) + int(n) * mp.log(p) + (k - int(n)) * mp.log1p(-p) for n in lies]
        errors = [float(a - b) for a, b in zip(responses.log_binomial(lies, k, epsilon), exact, strict=True)]
    assert max(errors) - min(errors) < 1e-14 * (1 + math.sqrt(k))  # what is common to all is normed away
    assert max(map(abs, errors)) < 1e-14 * (1 + math.sqrt(k)) + 2e-16 * k


def test_kov_of_very_many():
    start = time.perf_counter()
    found = kov([Pure(0.01, count=10**5)], D)
    assert time.perf_counter() - start < 1
    assert pld([Laplace(100, count=10**5)], D) < found < rdp([Pure(0.01, count=10**5)], D)
    assert 0 < kov([Pure(1e-5, count=10**9)], D) < math.inf


def test_kov_needs_one_epsilon():
    assert math.isnan(kov([Pure(0.1), Pure(0.2)], D))
    assert math.isnan(kov([Pure(0.1), Gaussian(20)], D))
    assert kov([Pure(0.1), Laplace(10), ApproximateStep(0.1, 1e-30)], D) == pytest.approx(kov([Pure(0.1, count=3)], D))


# Gaussians


def exact_gaussian_delta(mu, epsilon):
    with mp.workdps(50):
        mu, epsilon = mpf(mu), mpf(epsilon)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("mu", ["1e-9", "1e-4", "0.01", "0.3", "0.5", "0.51", "1", "3", "10", "100"])
def test_the_curve_of_a_gaussian(mu):
    sigma = 1 / Fraction(mu)
    with mp.workdps(50):
        exact_mu = mpf(Fraction(mu).numerator) / Fraction(mu).denominator
    for delta in (0.9, 0.3, 1e-2, 1e-5, 1e-12, 1e-50, 1e-100):
        epsilon = gaussian_epsilon(sigma, delta)
        assert exact_gaussian_delta(exact_mu, epsilon) <= delta
        if epsilon > 0:
            assert exact_gaussian_delta(exact_mu, epsilon * (1 - 1e-9)) > delta * (1 - 1e-7)
        found, exact = gaussian_delta(sigma, epsilon), exact_gaussian_delta(exact_mu, epsilon)
        assert exact <= found <= exact * (1 + 1e-9) + mpf(5e-324)
    assert (
        exact_gaussian_delta(exact_mu, 0) <= gaussian_delta(sigma, 0) <= exact_gaussian_delta(exact_mu, 0) * (1 + 1e-9)
    )


def test_gaussians_at_the_ends_of_floats():
    assert gaussian_epsilon(1e50, 1e-5) == 0
    assert gaussian_epsilon(1e-50, 1e-5) == pytest.approx(5e99)
    assert 0 < gaussian_delta(1, 1e6) < 1e-300
    assert gaussian_delta(1e-50, 0) == 1
    assert gaussian_epsilon(1, 1e-5, 2) == gaussian_epsilon(Fraction(1, 2), 1e-5)
    for bad in (0, 1, -1, math.nan):
        with pytest.raises(InvalidPrivacyParameter):
            gaussian_epsilon(1, bad)
    for bad in (-1, math.nan, "1"):
        with pytest.raises(InvalidPrivacyParameter):
            gaussian_delta(1, bad)


def test_the_classic_calibration():
    assert classic_gaussian_sigma(0.5, 1e-5, 3) == pytest.approx(6 * math.sqrt(2 * math.log(1.25e5)), rel=1e-9)
    assert gaussian_epsilon(classic_gaussian_sigma(1, 1e-5), 1e-5) < 1
    for bad in ((1.01, 1e-5), (0, 1e-5), (1, 0), (1, 1)):
        with pytest.raises(InvalidPrivacyParameter):
            classic_gaussian_sigma(*bad)


# Renyi curves and their conversion


def exact_laplace_divergence(epsilon, alpha):
    """Mironov 2017, proposition 6."""
    with mp.workdps(50):
        eps, a = mpf(epsilon), mpf(alpha)
        return mp.log(a / (2 * a - 1) * mp.exp((a - 1) * eps) + (a - 1) / (2 * a - 1) * mp.exp(-a * eps)) / (a - 1)


def exact_response_divergence(epsilon, alpha):
    with mp.workdps(500):
        eps, a = mpf(epsilon), mpf(alpha)
        p = mp.exp(eps) / (1 + mp.exp(eps))
        return mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-6, 2e-5, 1e-3, 0.1, 1.0, 10.0, 500.0])
def test_curves_are_the_published_ones(epsilon):
    s = np.array([2.0**-20, 2.0**-6, 0.5, 1.0, 3.0, 64.0, 2.0**14, 2.0**30])
    for curve, exact in ((renyi.laplace, exact_laplace_divergence), (renyi.response, exact_response_divergence)):
        for found, each in zip(curve(np.array([epsilon]), s), s, strict=True):
            truth = exact(epsilon, 1 + each)
            assert truth * (1 - 1e-15) <= found <= truth * (1 + mpf(3e-5)), (curve.__name__, epsilon, each)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_rdp_against_another_library(delta):
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.rdp import RdpAccountant

    rng = random.Random(delta)
    orders = [1 + 1.01**n for n in range(-500, 1200)]
    for _ in range(8):
        events, theirs = [], RdpAccountant(orders)
        for _ in range(rng.randint(1, 4)):
            count, weight = rng.randint(1, 1000), rng.choice([0.01, 0.05, 0.2])
            if rng.random() < 0.5:
                events.append(Gaussian(Fraction(1) / Fraction(str(weight)), count=count))
                theirs.compose(dp.GaussianDpEvent(1 / weight), count)
            else:
                events.append(Laplace(Fraction(1) / Fraction(str(weight)), count=count))
                theirs.compose(dp.LaplaceDpEvent(1 / weight), count)
        truth = theirs.get_epsilon(delta)
        assert truth * 0.999 <= rdp(events, delta) <= truth * (1 + 1e-9)


def test_the_best_order_is_the_best():
    for events in (GAUSSIANS, LAPLACES, [Pure(2, count=3)], [Laplace(1), Gaussian(3)], [Pure(1e-3, count=10**6)]):
        for delta in (0.1, 1e-5, 1e-30):
            found = rdp(events, delta)
            tried = [rdp_at(events, delta, 1 + 2.0 ** (n / 4)) for n in range(-40, 120)]
            assert found <= min(tried) * (1 + 1e-12)


def test_conversions_by_hand():
    alpha = 12.0
    events = [Gaussian(200, count=10_000)]
    classic = alpha * 0.125 - math.log(D) / 11
    assert rdp_at(events, D, alpha, conversion="classic") == pytest.approx(classic, rel=1e-9)
    tight = alpha * 0.125 + math.log1p(-1 / alpha) - math.log(D * alpha) / 11
    assert rdp_at(events, D, alpha) == pytest.approx(tight, rel=1e-9)


# Between the accountants


def random_ledger(rng):
    events = []
    for _ in range(rng.randint(1, 6)):
        count = rng.choice([1, 2, 10, 100, 1000])
        weight = Fraction(str(round(math.exp(rng.uniform(-5, 1)) / math.sqrt(count), 5) + 1e-5))
        kind = rng.randrange(4)
        events.append(
            (
                Laplace(1 / weight, 1, count),
                Gaussian(1 / weight, 1, count),
                Pure(weight, count),
                ApproximateStep(weight, 1e-16, count),
            )[kind]
        )
    return events


@pytest.mark.parametrize("seed", range(60))
def test_tighter_accountants_and_smaller_ledgers_cost_less(seed):
    rng = random.Random(seed)
    events, delta = random_ledger(rng), 10 ** rng.uniform(-11.9, -2)
    found = compare(events, delta)["epsilon"]
    assert found["pld"] <= found["rdp"] * (1 + 1e-9)
    assert found["rdp"] <= found["zcdp"] * (1 + 1e-9)
    assert found["zcdp"] <= found["zcdp_classic"]
    if not math.isnan(found["kov"]):
        assert found["pld"] <= found["kov"] * (1 + 1e-9) <= found["basic"] * (1 + 1e-8)
    assert np.isfinite(found.drop(["kov", "advanced"])).all()
    assert not np.isinf(found).any()
    fewer = compare(events[:-1], delta)["epsilon"]
    looser = compare(events, delta * 2)["epsilon"]
    for name in NAMES:
        if name != "kov":
            assert not fewer[name] > found[name] * (1 + 1e-3), name
            assert not looser[name] > found[name] * (1 + 1e-3), name


@pytest.mark.parametrize("delta", [0, 1e-100, 1e-12, 1e-5, 0.5, 0.999])
@pytest.mark.parametrize(
    "events",
    [
        [Pure(1e-9)],
        [Pure(1e-9, count=10**6), Gaussian(1e9, count=10**6)],
        [Pure(1000, count=10**6)],
        [Laplace(0.001), Gaussian(0.001), ApproximateStep(1000, 0.1)],
        [Concentrated(1e-18), Concentrated(1e6, count=10**6)],
        [Pure(1e50, count=10**9), Gaussian(1e-50, 1e50, count=10**9), Laplace(1e-50, 1e50)],
        [Pure(1e-50), Gaussian(1e50, 1e-50), Laplace(1e50, 1e-50)],
    ],
    ids=repr,
)
def test_extremes_end_in_numbers_without_warnings(events, delta):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare(events, delta)["epsilon"]
    assert not np.isinf(found).any()
    assert not (found < 0).any()
    known = found.drop(["kov", "pld", "advanced"])
    assert (
        delta in {0, 1e-100, 1e-12, 1e-5} or known.notna().all() or any(isinstance(e, ApproximateStep) for e in events)
    )


def test_a_thousand_unequal_entries_are_quick():
    makers = (lambda i: Laplace(20 + i), lambda i: Gaussian(50 + i), lambda i: Pure(0.01 + i * 1e-5))
    events = [makers[i % 3](i) for i in range(1000)]
    start = time.perf_counter()
    compare(events, D)
    assert time.perf_counter() - start < 4  # about .5 s; a busy machine takes longer


# Lies that must be caught: each makes an accountant claim less than the truth


def check_gaussians():
    assert basic([Gaussian(1)], D) >= 4.37717
    assert exact_gaussian_delta(1, gaussian_epsilon(1, D)) <= D


def check_zcdp():
    assert zcdp([Concentrated(0.125)], D) >= float(exact_conversion(0.125))


def check_zcdp_classic():
    assert zcdp_classic([Pure(0.5)], D) >= 0.125 + 2 * math.sqrt(0.125 * -math.log(D))


def check_responses():
    assert exact_delta(30, 0.1, kov([Pure(0.1, count=30)], D)) <= D


def check_rdp():
    alpha = 9.0
    exact = exact_laplace_divergence(0.5, alpha) * 10 + mp.log1p(-1 / mpf(alpha)) - mp.log(D * mpf(alpha)) / 8
    assert rdp_at([Laplace(2, count=10)], D, alpha) >= exact


def check_basic():
    assert basic([Pure(0.1, count=3), Pure(0.2)], 0) >= 0.5
    assert basic([ApproximateStep(0.5, 1e-6)] * 9 + [Gaussian(1)], D) >= 4.5 + gaussian_epsilon(1, 1e-6)


def check_advanced():
    truth = math.sqrt(-2 * math.log(D) * 100 * 0.05**2) + 100 * 0.05 * math.expm1(0.05)
    assert advanced(LAPLACES, D) >= truth


def exact_conversion(rho):
    """The least of the conversion over a fine grid of orders lies above its infimum by less than a part in 10^7."""
    with mp.workdps(30):
        orders = [1 + mpf(2) ** (mpf(n) / 64) for n in range(-200, 1000)]
        found = min(a * rho + mp.log1p(-1 / a) - mp.log(mpf(D) * a) / (a - 1) for a in orders)
        return found * (1 - mpf(10) ** -4)


CHECKS = [check_gaussians, check_zcdp, check_zcdp_classic, check_responses, check_rdp, check_basic, check_advanced]


@pytest.mark.parametrize("check", CHECKS)
def test_the_truth_passes(check):
    check()


LIES = {
    "gaussian_curve_low": (check_gaussians, gaussian, "log_delta", lambda honest: lambda mu, s: honest(mu, s) - 0.01),
    "half_the_delta_twice": (check_basic, accountants, "below", lambda honest: lambda x: honest(2 * x)),
    "own_delta_forgotten": (check_basic, Steps, "own_delta", lambda _: property(lambda _: Fraction(0))),
    "conversion_low": (check_rdp, renyi, "tight", lambda honest: lambda d, s, log: honest(d, s, log * 0.99)),
    "zcdp_low": (check_zcdp, accountants, "above", lambda honest: lambda x: honest(x * Fraction(99, 100))),
    "squares_forgotten": (check_zcdp_classic, Steps, "rho", lambda _: property(lambda steps: sum(steps.rhos))),
    "laplace_curve_low": (check_rdp, renyi, "laplace", lambda honest: lambda e, s: honest(e, s) * 0.999),
    "fewer_steps": (check_responses, responses, "log_binomial", lambda honest: lambda n, k, e: honest(n, k + 1, e)),
    "counts_ignored": (check_basic, Steps, "pure", lambda _: property(lambda steps: sum(steps.epsilons))),
    "drift_forgotten": (check_advanced, np, "expm1", lambda _: lambda x: 0 * x),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies_are_caught(lie, monkeypatch):
    check, place, name, twist = LIES[lie]
    monkeypatch.setattr(place, name, twist(getattr(place, name)))
    with pytest.raises(AssertionError):
        check()
