"""Measurements: one way out of exact integers, and what each of them is granted."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpsql.core.cost import FREE, Cost
from dpsql.core.events import ApproximateStep, Concentrated, Pure
from dpsql.core.exact import ExactTable
from dpsql.core.loss import Allowance
from dpsql.core.measurement import (
    ALL_SHOWN,
    Exact,
    GroupsByChance,
    GroupsByThreshold,
    MeasuredValues,
    Share,
    costs_of,
)
from dpsql.core.mechanisms import grants
from dpsql.core.mechanisms.gaussian_curve import gaussian_rho
from dpsql.core.mechanisms.grants import Grant, grant
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian, Reach, SplitLaplace
from dpsql.core.selection.threshold import threshold
from dpsql.core.selection.truncated_geometric import TruncatedGeometric
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.plan.expressions import Vector
from dpsql.release.release import Release
from tests.core.checks import Shape, Silence, calibrated, silenced

F = Fraction
ONE = F(1)
DELTA = F(1, 10**6)
REACH = Reach(3, F(9), 1)


# Grants


def test_an_epsilon_pays_for_pure_noise():
    paid = grant(Allowance(F(1, 3)), F(1, 7)).pure(CubeLaplace, REACH)
    assert (paid.law, paid.cost, paid.event) == (CubeLaplace(F(21), 1), Cost.of(F(1, 7)), Pure(F(1, 7)))


def test_an_epsilon_and_a_delta_pay_for_gaussian_noise():
    paid = grant(Allowance(ONE, DELTA), F(1, 2), DELTA).gaussian(REACH)
    rho = gaussian_rho(F(1, 2), DELTA)
    assert paid.cost == Cost(F(1, 2), DELTA, rho)
    assert paid.event == Concentrated(rho)
    assert paid.law.loss(REACH) == paid.cost


def test_a_rho_pays_for_either():
    """All of it to the last digit; a part of it by the square of its epsilon."""
    allowed = Allowance(None, F(0), F(1, 3))
    assert grant(allowed).gaussian(REACH).cost == Cost(None, rho=F(1, 3))
    part = grant(allowed, F(1, 2))
    assert part.gaussian(REACH).cost == Cost(None, rho=F(1, 8))
    assert part.pure(SplitLaplace, REACH).cost == Cost.of(F(1, 2))
    assert isinstance(part.counts(REACH).law, DiscreteGaussian)
    assert isinstance(grant(Allowance(ONE)).counts(REACH).law, CubeLaplace)


@pytest.mark.parametrize("whole", [Grant(F(2, 3)), Grant(F(2, 3), rho=F(2, 9))])
def test_parts_come_to_no_more_than_the_whole(whole: Grant):
    shares = [F(1, 3), F(1, 2), F(1, 6)]
    parts = [whole.part(share) for share in shares]
    if whole.rho is None:
        assert sum(part.epsilon for part in parts) == whole.epsilon
    else:
        assert sum(part.rho or 0 for part in parts) == whole.rho
        assert all(part.epsilon**2 / 2 <= (part.rho or 0) for part in parts)


@pytest.mark.parametrize("draws", [1, 2, 5])
@pytest.mark.parametrize("granted", [Grant(F(1, 3)), Grant(F(1, 3), rho=F(1, 18))])
def test_choices_are_worth_what_they_are_granted(granted: Grant, draws: int):
    paid = granted.choice(draws)
    assert paid.law.loss.join(paid.cost) == paid.cost
    if granted.rho is None:
        assert (paid.law.mechanism, paid.cost, paid.event) == ("permute_and_flip", Cost.of(F(1, 3)), Pure(F(1, 3)))
    else:
        assert (paid.law.mechanism, paid.cost) == ("exponential", Cost(None, rho=F(1, 18)))
        assert paid.law.loss.rho >= paid.cost.rho * (1 - F(1, 2**50))


@pytest.mark.parametrize("law", [CubeLaplace, SplitLaplace])
def test_noise_that_is_worth_more_is_refused(law: Any, monkeypatch: pytest.MonkeyPatch):
    honest = law.calibrate
    monkeypatch.setattr(law, "calibrate", staticmethod(lambda reach, epsilon: honest(reach, epsilon * F(101, 100))))
    with pytest.raises(ValueError, match="too small for the guarantee"):
        Grant(ONE).pure(law, REACH)


def test_a_choice_that_is_worth_more_is_refused(monkeypatch: pytest.MonkeyPatch):
    honest = grants.root_below
    monkeypatch.setattr(grants, "root_below", lambda square: honest(square) * F(101, 100))
    with pytest.raises(ValueError, match="too small for the guarantee"):
        Grant(ONE, rho=F(1, 2)).choice()


# Selections


def test_a_threshold_that_is_too_low_is_refused():
    noise = CubeLaplace(F(2), 1)
    height = threshold(noise, 2, DELTA / 3)
    assert GroupsByThreshold(height, 0, 1, 2, 3, noise, DELTA).cost == Cost.of(F(0), DELTA)
    for lie in ({"height": height - 1}, {"most_of_a_unit": 3}, {"groups": 30}, {"delta": DELTA / 2}):
        with pytest.raises(ValueError, match="too low for its delta"):
            replace(GroupsByThreshold(height, 0, 1, 2, 3, noise, DELTA), **lie)


def test_what_measurements_cost_adds_up():
    share = Share(REACH, CubeLaplace(F(3), 1), (0,), ONE, Pure(ONE))
    by_chance = GroupsByChance(TruncatedGeometric(F(1, 2), DELTA), 0)
    assert costs_of((ALL_SHOWN,)) == (FREE, ())
    cost, events = costs_of((by_chance, share))
    assert cost == Cost.of(F(1, 2), DELTA) + Cost.of(ONE)
    assert events == (ApproximateStep(F(1, 2), DELTA), Pure(ONE))


# The way out


SHAPE = Shape({"p": "int64"}, {"bounds": {"p": (0, 9)}})


def exact_of(steps: list[list[int]]) -> Exact:
    table = np.array(steps, dtype=np.int64)
    return Exact(ExactTable((Vector(np.arange(table.shape[1])),), table, table.shape[1]), table, ())


def test_nothing_is_found_without_a_measurement():
    """What neighbours have in common is; a coordinate that has noise to come is not there before."""
    exact = exact_of([[5, 7, 9], [1, 2, 3]])
    found = MeasuredValues.common(exact, [0])
    assert found.steps.tolist() == [[0, 0, 0], [1, 2, 3]]
    assert exact.steps.tolist() == [[5, 7, 9], [1, 2, 3]]
    silent: Any = Silence(1)
    share = Share(REACH, silent, (0,), ONE, Pure(ONE))
    assert share.run(exact, found).steps.tolist() == exact.steps.tolist()


def test_large_noise_is_added_as_whole_numbers():
    class Large:
        def draw(self, cells: int) -> Any:
            return np.array([[2**70] * cells], dtype=object)

    law: Any = Large()
    exact = exact_of([[5, 7]])
    share = Share(REACH, law, (0,), ONE, Pure(ONE))
    assert share.run(exact, MeasuredValues.common(exact, [0])).steps.tolist() == [[2**70 + 5, 2**70 + 7]]


def test_selections_leave_groups_in_the_order_of_their_keys():
    table = ExactTable((Vector(np.array([30, 10, 20])),), np.array([[9, 9, 1]]), 3)
    exact = Exact(table, table.parts, ())
    noise = CubeLaplace(F(1, 100), 1)
    chosen = GroupsByThreshold(5, 0, 1, 1, 1, noise, F(1, 2))
    found = chosen.run(exact, replace(MeasuredValues.common(exact, ()), steps=exact.steps))
    assert found.shown.tolist() == [1, 0]
    assert found.keys[0].values.tolist() == [10, 30]
    assert found.steps.tolist() == [[9, 9]]


def without_a_measurement(made: Release) -> Release:
    """Its first noise is forgotten."""
    return replace(made, measurements=tuple(each for each in made.measurements if each is not made.shares[0]))


def test_a_release_without_its_noise_tells_nothing():
    made = calibrated(SHAPE.schema(), "SELECT COUNT(*), SUM(p) FROM t", "unbounded")
    exact = ExactTable((), np.array([[1000]] * len(made.exact.parts)), 1)
    assert silenced(made).privatise(exact).values.any()
    assert not without_a_measurement(made).privatise(exact).values.any()


def test_a_search_for_bounds_is_a_measurement():
    shape = Shape({"x": "float64"}, {"bounds": {"x": "auto"}})
    made = calibrated(shape.schema(), "SELECT SUM(x) FROM t", "unbounded", epsilon=10**6)
    assert costs_of([made.searches]) == (made.searches.cost, made.searches.events)
    assert made.measurements[0] is made.searches
    assert costs_of(made.measurements) == (made.cost, made.events)
    assert made.searches.reach == (1,)
    stores = {"t": ColumnStore(shape.frame([(3.0,)] * 1000), shape.schema())}
    (held,) = made.choose_bounds(PandasExecutor(stores).execute)
    assert 3 <= held.upper <= 8
