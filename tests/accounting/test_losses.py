"""Privacy losses as values, and group privacy."""

from __future__ import annotations

import dataclasses
import math
import operator
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pytest

from dpsql.accounting import (
    RDP,
    ZCDP,
    ApproxDP,
    ApproximateStep,
    Concentrated,
    Gaussian,
    Laplace,
    Pure,
    PureDP,
    basic,
    group_privacy,
    kov,
    pld,
    rdp,
    zcdp,
)
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter

RULES = ["pure", "approximate", "zcdp", "rdp_proposition_2", "rdp", "exact"]


def test_numbers_are_the_decimals_they_print_as():
    assert PureDP(0.1) + PureDP(0.1) + PureDP(0.1) == PureDP(Decimal("0.3"))
    assert ApproxDP(0.1, 1e-6) + ApproxDP(0.2, 1e-6) == ApproxDP(0.3, 2e-6)
    assert ZCDP(0.1) + ZCDP(0.2) == ZCDP(Fraction(3, 10))
    assert ApproxDP(1, 0.6) + ApproxDP(1, 0.6) == ApproxDP(2, 1)


def test_losses_are_frozen_and_check_themselves():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PureDP(1).epsilon = Fraction(2)
    for make in (PureDP, ZCDP, lambda x: ApproxDP(x, 0), lambda x: ApproxDP(0, x)):
        for bad in (-1, math.nan, math.inf, "1", None, True):
            with pytest.raises(InvalidPrivacyParameter):
                make(bad)


def test_kinds_do_not_mix():
    for a, b in ((PureDP(1), ZCDP(1)), (ApproxDP(1, 0), PureDP(1)), (RDP(lambda alpha: alpha), ZCDP(1))):
        with pytest.raises(TypeError):
            a + b
        with pytest.raises(TypeError):
            operator.le(a, b)


def test_order():
    assert PureDP(1) <= PureDP(1)
    assert not PureDP(2) <= PureDP(1)
    assert ZCDP(1) <= ZCDP(2)
    assert ApproxDP(1, 1e-6) <= ApproxDP(1, 1e-5)
    assert not ApproxDP(1, 1e-5) <= ApproxDP(2, 1e-6)
    assert not ApproxDP(2, 1e-6) <= ApproxDP(1, 1e-5)


def test_conversions():
    assert PureDP(0.5).to_zcdp() == ZCDP(0.125)
    assert PureDP(0.5).to_approx(1e-5) == ApproxDP(0.5, 1e-5)
    assert ApproxDP(1, 1e-6).to_approx(1e-5) == ApproxDP(1, 1e-5)
    with pytest.raises(InvalidPrivacyParameter, match="at least 1e-06"):
        ApproxDP(1, 1e-6).to_approx(1e-7)
    assert float(ZCDP(0.125).to_approx(1e-5).epsilon) == zcdp([Concentrated(0.125)], 1e-5)
    assert float(ZCDP(0.125).to_rdp().to_approx(1e-5).epsilon) == pytest.approx(zcdp([Concentrated(0.125)], 1e-5))
    assert float(PureDP(0.5).to_rdp().to_approx(1e-5).epsilon) == pytest.approx(rdp([Pure(0.5)], 1e-5), rel=1e-5)
    assert ZCDP(0).to_approx(1e-5) == ApproxDP(0, 1e-5)
    for loss in (ZCDP(1), RDP(lambda alpha: alpha)):
        for delta in (0, 1, math.nan, -1):
            with pytest.raises(InvalidPrivacyParameter):
                loss.to_approx(delta)


def test_curves():
    two = PureDP(1).to_rdp() + ZCDP(0.5).to_rdp()
    assert two.at(3) == pytest.approx(PureDP(1).to_rdp().at(3) + 1.5, rel=1e-9)
    assert two.at(3) >= PureDP(1).to_rdp().at(3) + 1.5
    # Randomised response: ((p^a q^(1-a) + q^a p^(1-a))^(1/(a-1)), p = e/(1 + e).
    p = math.e / (1 + math.e)
    assert PureDP(1).to_rdp().at(3) == pytest.approx(math.log(p**3 / (1 - p) ** 2 + (1 - p) ** 3 / p**2) / 2, rel=1e-9)
    for alpha in (1, 0.5, math.inf, math.nan, True):
        with pytest.raises(InvalidPrivacyParameter):
            two.at(alpha)


def test_groups_of_losses():
    assert PureDP(0.1).group(3) == PureDP(0.3)
    assert ZCDP(0.1).group(3) == ZCDP(0.9)
    grown = ApproxDP(1, 1e-6).group(3)
    assert grown.epsilon == 3
    assert float(grown.delta) == pytest.approx(1e-6 * (math.e**3 - 1) / (math.e - 1), rel=1e-9)
    assert grown.delta >= Fraction(1, 10**6) * Fraction((math.e**3 - 1) / (math.e - 1)) * (1 - Fraction(1, 10**13))
    assert ApproxDP(0, 1e-6).group(3) == ApproxDP(0, 3e-6)
    assert ApproxDP(1, 1e-6).group(1).epsilon == 1
    assert ApproxDP(10, 1e-6).group(1000) == ApproxDP(10_000, 1)
    for size in (0, -1, 1.5, True, "2"):
        for loss in (PureDP(1), ZCDP(1), ApproxDP(1, 0.1), RDP(lambda alpha: alpha)):
            with pytest.raises(InvalidPrivacyParameter):
                loss.group(size)


def test_proposition_2():
    """At k = 8 it is 27/8 of the k^2 of a Gaussian."""
    curve = ZCDP(0.01).to_rdp()
    for size, c in ((1, 0), (2, 1), (3, 2), (8, 3), (9, 4)):
        assert curve.group(size).at(5) == pytest.approx(3**c * curve.at(2**c * 5), rel=1e-9)
    assert curve.group(8).at(5) / ZCDP(0.01).group(8).to_rdp().at(5) == pytest.approx(27 / 8)
    assert curve.stable(3).at(2) == pytest.approx(27 * 16 * 0.01)
    assert curve.stable(3).at(1.99) == math.inf
    with pytest.raises(InvalidPrivacyParameter):
        curve.stable(-1)


def table(event, size, delta):
    found = group_privacy(event, size, delta)
    assert list(found.index) == RULES
    assert found.index.name == "rule"
    assert list(found.columns) == ["epsilon"]
    return found["epsilon"]


@pytest.mark.parametrize(
    "event",
    [Gaussian(20), Gaussian(200, count=100), Laplace(10), Laplace(30, count=50), Pure(0.1), Pure(0.05, count=9)],
)
def test_a_group_of_one_is_one(event):
    found = table(event, 1, 1e-5)
    assert found["rdp"] == found["rdp_proposition_2"] == pytest.approx(rdp([event], 1e-5))
    assert found["zcdp"] == zcdp([event], 1e-5)
    assert found["exact"] == pld([event], 1e-5)
    assert found["approximate"] == pytest.approx(found["exact"], rel=1e-3)


def test_rules_for_a_gaussian():
    found = table(Gaussian(200, count=100), 8, 1e-5)
    assert math.isnan(found["pure"])
    assert found["exact"] == pytest.approx(pld([Gaussian(25, count=100)], 1e-5))
    assert found["zcdp"] == pytest.approx(zcdp([Gaussian(25, count=100)], 1e-5))
    assert found["rdp"] == pytest.approx(found["zcdp"])
    assert found["rdp_proposition_2"] == pytest.approx(zcdp([Concentrated(27 * 8 * 0.00125)], 1e-5), rel=1e-6)
    assert found["exact"] <= found["approximate"]
    assert found["exact"] < found["zcdp"] < found["rdp_proposition_2"]


def test_rules_for_pure_steps():
    found = table(Laplace(10, count=20), 4, 1e-5)
    assert found["pure"] == basic([Laplace(10, 4, count=20)], 0)
    assert found["exact"] == pld([Laplace(10, 4, count=20)], 1e-5)
    assert found["rdp"] == rdp([Laplace(10, 4, count=20)], 1e-5)
    assert found["exact"] < found["rdp"] < found["rdp_proposition_2"]
    found = table(Pure(0.1, count=20), 4, 1e-5)
    assert found["exact"] == kov([Pure(0.4, count=20)], 1e-5)
    found = table(Pure(0.1, count=20), 4, 0)
    assert found["pure"] == found["exact"] == found["rdp"] == found["approximate"] == 8
    assert math.isnan(found["zcdp"])
    assert math.isnan(found["rdp_proposition_2"])


def test_the_rule_for_approximate_steps_holds_at_its_epsilon():
    """(k e, d(e) (e^(ke) - 1)/(e^e - 1)) at the e that it found; d of an (epsilon, delta)-DP step by its worst case."""
    found = table(ApproximateStep(1, 1e-8), 4, 1e-5)
    assert found.drop("approximate").isna().all()
    e = found["approximate"] / 4
    worst = 1e-8 + (1 - 1e-8) * max(0.0, math.e - math.exp(e)) / (1 + math.e)
    assert worst * math.expm1(4 * e) / math.expm1(e) <= 1e-5
    assert table(ApproximateStep(1, 1e-6), 4, 1e-6).isna().all()


def test_rules_for_concentrated_steps():
    found = table(Concentrated(0.01), 3, 1e-5)
    assert found["zcdp"] == zcdp([Concentrated(0.09)], 1e-5)
    assert found[["pure", "exact"]].isna().all()
    assert found["zcdp"] <= found["approximate"] <= 1.5 * found["zcdp"]


@pytest.mark.parametrize(
    "event", [Gaussian(50), Laplace(20), Pure(0.05), ApproximateStep(0.05, 1e-9), Concentrated(1e-4)]
)
def test_larger_groups_cost_more(event):
    columns = [group_privacy(event, size, 1e-5)["epsilon"] for size in (1, 2, 5, 20)]
    for smaller, larger in pairwise(columns):
        assert (smaller.fillna(0) <= larger.fillna(0) * (1 + 1e-9)).all()


def test_bad_groups():
    for size in (0, -1, 2.0, True, None):
        with pytest.raises(InvalidPrivacyParameter):
            group_privacy(Pure(1), size, 1e-5)
    with pytest.raises(InvalidArgument, match="is no event"):
        group_privacy(1, 2, 1e-5)
    with pytest.raises(InvalidPrivacyParameter):
        group_privacy(Pure(1), 2, 1)
