"""Laplace or Gaussian noise: the choice beside what is drawn; and what sessions say they still admit."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.accounting import gaussian_delta
from dpsql.core.exact import ExactTable
from dpsql.core.loss import Allowance
from dpsql.core.mechanisms.coordinate_classes import law_of
from dpsql.core.mechanisms.gaussian_curve import gaussian_rho
from dpsql.core.mechanisms.noise import GaussianNoise
from dpsql.core.mechanisms.staircase import Staircase
from dpsql.core.unit import Neighbours
from dpsql.errors import BudgetExceeded, DPSQLError
from dpsql.plan.expressions import Vector
from dpsql.release.laws import crossover
from dpsql.release.release import Release
from dpsql.session import prepare
from tests.core.checks import B, U, of_copies
from tests.core.unit_checks import CLAUSE, World
from tests.measured import by_chance, height_of
from tests.seeding import seed

F = Fraction
DRAWS = 2_000
SQUARE = 1.02

GROUPS = {"unit": "u", "max_groups": 40, "max_rows_per_group": 1}

# Random queries


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here fails by chance."""
    seed(monkeypatch, 1)


@dataclass(frozen=True)
class Case:
    """A query, what is declared of its table, and what it may cost."""

    sql: str
    declared: dict[str, Any]
    relation: str
    how: dict[str, Any]

    @property
    def world(self) -> World:
        columns = {"u": "int64", "k": "Int64", "x": "int64", "v": "float64", "n": "Float64"}
        return World({"t": columns}, {"t": {"bounds": {"x": (0, 10), "v": (-1, 3), "n": (5, 6)}, **self.declared}}, {})

    def made(self, mechanism: str) -> Release:
        prepare._cache.clear()
        how = dict(self.how)
        terms = prepare.Terms.of(how.pop("epsilon", None), how.pop("delta", None), how.pop("rho", None))
        relation = Neighbours.of(self.relation)
        return prepare.prepare(self.sql, self.world.catalog, relation, terms, mechanism=mechanism, **how).releases[0]


AGGREGATES = ["COUNT(*)", "SUM(x)", "SUM(v)", "AVG(v)", "AVG(x)", "COUNT(n)", "SUM(n)", "AVG(n)"]


def random_case(rng: random.Random) -> Case:
    declared: dict[str, Any] = {}
    if rng.random() < 0.7:
        declared = {
            "unit": "u",
            "max_groups": rng.choice([1, 2, 5, 12, 20, 60]),
            "max_rows_per_group": rng.choice([1, 1, 2]),
        }
        if rng.random() < 0.3:
            declared["max_rows"] = rng.choice([1, 4, 30])
    outputs = ", ".join(rng.sample(AGGREGATES, rng.choice([1, 1, 2, 3, 5])))
    by = rng.choice(["", "k", "k"])
    if by and rng.random() < 0.6:
        declared["keys"] = {"k": list(range(rng.choice([2, 10, 100])))}
    sql = f"SELECT {'k, ' if by else ''}{outputs} FROM t{rng.choice(['', ' WHERE v > 0'])}{' GROUP BY k' if by else ''}"
    how = {"epsilon": rng.choice([0.05, 0.3, 1, 2, 6]), "delta": rng.choice([1e-9, 1e-6, 1e-5, 1e-3])}
    return Case(sql, declared, rng.choice([U, U, B]), how)


CASES = [random_case(random.Random(seed)) for seed in range(200)]


def standard_errors(made: Release, draws: int) -> list[float]:
    """Of each aggregation, by many releases of an empty group, nothing hidden; an average's is that of its sum."""
    draws -= draws % math.prod(len(key.values or (0,)) for key in made.exact.keys)
    nothing = np.zeros((len(made.exact.parts), draws), dtype=np.int64)
    table = ExactTable(tuple(Vector(np.arange(draws)) for _ in made.exact.keys), nothing, draws)
    values = of_copies(replace(made, measurements=made.shares)).privatise(table).values
    found = []
    for each in made.estimates:
        noise = np.zeros(draws)
        if each.sum is not None:
            noise = noise + values[each.sum]
        if each.count is not None and not each.kind.averages:
            noise = noise + values[each.count] * (1 if each.kind.counts else each.centre)
        found.append(float(np.sqrt((noise**2).mean())))
    return found


def expected_errors(made: Release) -> list[float]:
    """The same by the variances of the laws, which other tests enumerate."""
    found = []
    for each in made.estimates:
        factors = {}
        if each.sum is not None:
            factors[each.sum] = 1.0
        if each.count is not None and not each.kind.averages:
            factors[each.count] = 1.0 if each.kind.counts else each.centre
        worth: dict[int, float] = {}
        for feature, factor in factors.items():
            for place, weight in made.lattice.weights(feature):
                worth[place] = worth.get(place, 0.0) + factor * weight * made.coordinates[place].unit
        shares = {place: made.share_of(place) for place in worth}
        noisy = [
            each**2 * law_of(share.noise, share.places, place).spread
            for place, each in worth.items()
            if (share := shares[place]) is not None
        ]
        found.append(math.sqrt(sum(noisy)))
    return found


def mean_log(errors: list[float]) -> float:
    seen = [math.log(each) for each in errors if each > 0]
    return sum(seen) / len(seen) if seen else 0.0


def even_chance(made: Release) -> float:
    """Of how many rows a group is shown as likely as not; 1 where all are shown."""
    return height_of(made) / made.lattice.one_row if made.hides else 1.0


def is_gaussian(made: Release) -> bool:
    return any(isinstance(share.noise, GaussianNoise) for share in made.shares)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("case", CASES, ids=lambda each: f"{each.sql} {each.how}")
def test_the_choice_has_the_smaller_error(case: Case):
    auto, named = case.made("auto"), {law: case.made(law) for law in ("laplace", "gaussian")}
    errors = {law: mean_log(expected_errors(made)) for law, made in named.items()}
    if auto.choice is None:
        assert not auto.shares
        return
    chosen, other = auto.choice.chosen, auto.choice.other
    worth = {law: errors[law] * len(made.estimates) + math.log(even_chance(made)) for law, made in named.items()}
    assert worth[chosen] <= worth[other] + 1e-9
    if auto.hides and height_of(named[other]):
        hides = even_chance(named[other]) / even_chance(named[chosen])
        assert auto.choice.hides == pytest.approx(hides, rel=1e-9)
    assert auto.choice.wider == pytest.approx(math.exp(errors[other] - mean_log(expected_errors(auto))), rel=1e-9)
    assert is_gaussian(auto) == (chosen == "gaussian")
    if any(isinstance(share.noise, Staircase) for share in auto.shares):  # better still, which neither name asks for
        assert mean_log(expected_errors(auto)) < errors[chosen]
        return
    same = named[chosen]
    assert (auto.cost, height_of(auto), auto.events) == (same.cost, height_of(same), same.events)
    assert [share.noise for share in auto.shares] == [share.noise for share in same.shares]
    assert auto.exact == same.exact
    if chosen == "laplace" and not auto.hides:
        assert auto.cost.delta == 0
    assert auto.cost.within(case.made("gaussian").cost.pair or auto.cost.pair)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("case", CASES[::8], ids=lambda each: f"{each.sql} {each.how}")
def test_what_is_said_of_the_laws_is_what_is_drawn(case: Case):
    named = {law: case.made(law) for law in ("laplace", "gaussian")}
    choice = case.made("auto").choice
    if choice is None:
        return
    drawn = {law: mean_log(standard_errors(made, DRAWS)) for law, made in named.items()}
    assert math.exp(drawn[choice.other] - drawn[choice.chosen]) == pytest.approx(choice.wider, rel=0.2)


@pytest.mark.thinned(4)
@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda each: f"{each.sql} {each.how}")
def test_neither_named_law_is_better_by_two_percent(case: Case):
    """Measured closely."""
    made = case.made("auto")
    if made.choice is not None:
        drawn = {law: mean_log(standard_errors(case.made(law), 60_000)) for law in ("laplace", "gaussian")}
        assert drawn[made.choice.chosen] <= drawn[made.choice.other] + math.log(SQUARE) + 0.025


@pytest.mark.parametrize("epsilon", [1e5, 1e6, 1e9])
def test_noise_that_underflows_is_the_smallest(epsilon: float):
    """A variance that is 0 as a float is no noise that is left out of the comparison."""
    made = Case("SELECT COUNT(*) FROM t", {"unit": "u", "max_rows": 1000}, U, {"epsilon": epsilon, "delta": 1e-6}).made(
        "auto"
    )
    assert not is_gaussian(made)


def test_an_average_in_the_middle_has_the_error_of_its_sum():
    """Through whole releases, of a table of many rows."""
    declared = {**GROUPS, "max_groups": 30, "keys": {"k": list(range(30))}}
    case = Case("SELECT k, AVG(v), COUNT(*) FROM t GROUP BY k", declared, U, {"epsilon": 1, "delta": 1e-5})
    choice = case.made("auto").choice
    assert choice is not None
    errors = {}
    for law in ("laplace", "gaussian"):
        made = of_copies(case.made(law))
        (average, count) = made.estimates
        groups = DRAWS // 30 * 30  # whole copies
        exact = np.zeros((len(made.exact.parts), groups), dtype=np.int64)
        table = ExactTable((Vector(np.arange(groups)),), exact, groups)
        values = made.privatise(table).values
        assert average.sum is not None
        assert count.count is not None
        rows = 20_000
        means = values[average.sum] / (rows + values[count.count])
        errors[law] = math.log(float(means.std())) + math.log(float(values[count.count].std()))
    gap = (errors[choice.other] - errors[choice.chosen]) / 2
    assert math.exp(gap) == pytest.approx(choice.wider, rel=0.15)


# What it depends on


def test_no_row_has_a_say():
    """The same choice of an empty table, a full one, and one whose rows are odd."""
    full = pd.DataFrame({"u": range(60), "k": [1, 2, 3] * 20, "x": [9] * 60})
    frames = [full, full.iloc[:0], full.assign(x=10**6), full.assign(u=1)]
    for sql in ("SELECT COUNT(*) FROM t", "SELECT k, SUM(x) FROM t GROUP BY k", "SELECT k, AVG(x) FROM t GROUP BY k"):
        for groups in (1, 3, 40):
            said = []
            for frame in frames:
                prepare._cache.clear()
                table = dpsql.Table(frame, bounds={"x": (0, 10)}, unit="u", max_groups=groups, max_rows_per_group=1)
                held = dpsql.Session({"t": table}, budget=dpsql.Budget(9, 1e-3))
                explained = held.explain(sql, epsilon=1, delta=1e-5)
                said.append((explained.to_dict(), str(explained)))
            assert all(each == said[0] for each in said)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("case", CASES[::4], ids=lambda each: f"{each.sql} {each.how}")
def test_without_delta_noise_is_laplace(case: Case):
    pure = replace(case, how={**case.how, "delta": 0})
    try:
        made = pure.made("auto")
    except DPSQLError:
        assert "GROUP BY" in case.sql
        return
    assert made.choice is None
    assert not is_gaussian(made)
    assert made.cost.delta == 0


@pytest.mark.thinned(4)
@pytest.mark.parametrize("case", CASES[::4], ids=lambda each: f"{each.sql} {each.how}")
def test_by_rho_noise_is_gaussian(case: Case):
    made = replace(case, how={"rho": 0.02, "delta": case.how["delta"]}).made("auto")
    if made.shares:
        assert made.choice is not None
        together = any(share.reach.across for share in made.shares)  # one draw for all groups may have less
        assert made.choice.chosen == "gaussian" or together
        assert made.choice.crossover == 0.5


@pytest.mark.parametrize("rho", [0.001, 0.1, 0.5, 1, 2, 4, 8, 20])
def test_by_rho_the_gaussian_law_is_narrower_however_large_rho_is(rho: float):
    made = {law: Case("SELECT COUNT(*) FROM t", {}, U, {"rho": rho}).made(law) for law in ("laplace", "gaussian")}
    assert made["gaussian"].shares[0].noise.spread <= made["laplace"].shares[0].noise.spread


# The crossover


@pytest.mark.parametrize(("epsilon", "delta", "cells"), [(1, 1e-5, 7.0), (1, 1e-6, 8.9), (1, 1e-9, 15.1)])
def test_the_crossover_is_a_little_above_that_of_continuous_noise(epsilon: float, delta: float, cells: float):
    """The tight conversion of rho gives away a little of what the analytic curve of one continuous Gaussian gives."""
    found = crossover(Allowance(F(epsilon)), F(repr(delta)))
    analytic = gaussian_epsilon_crossover(epsilon, delta)
    assert analytic == pytest.approx(cells, abs=0.06)
    assert analytic * (1 - 1e-9) < found < 1.2 * analytic  # exact tails: the same but for rounding


def gaussian_epsilon_crossover(epsilon: float, delta: float) -> float:
    """The k with (k / epsilon)^2 2 = k sigma^2, sigma that of one count by the analytic curve."""
    low, high = 0.1, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, epsilon) > delta else (low, middle)
    return epsilon**2 * high**2 / 2


def counts_in(groups: int, epsilon: float, delta: float, *, listed: bool = True) -> Case:
    """A count by group, of which a person has one row in each of so many; too many groups for one draw for all."""
    keys = {"keys": {"k": list(range(200))}} if listed else {}
    declared = {"unit": "u", "max_groups": groups, "max_rows_per_group": 1, **keys}
    return Case("SELECT k, COUNT(*) FROM t GROUP BY k", declared, U, {"epsilon": epsilon, "delta": delta})


@pytest.mark.thinned(3)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 3])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-4])
def test_from_the_crossover_on_the_gaussian_law_is_chosen(epsilon: float, delta: float):
    said = counts_in(1, epsilon, delta).made("auto").choice
    assert said is not None
    assert said.crossover == pytest.approx(epsilon**2 / (4 * float(gaussian_rho(F(repr(epsilon)), F(repr(delta))))))
    for groups in range(1, 60):
        choice = counts_in(groups, epsilon, delta).made("auto").choice
        assert choice is not None
        assert choice.crossover == said.crossover
        if abs(groups / said.crossover - 1) > 0.01 + (epsilon / groups) ** 2 / 10:
            assert choice.chosen == ("gaussian" if groups > said.crossover else "laplace"), groups
            ratio, step = math.sqrt(said.crossover / groups), epsilon / groups
            if step <= 1:  # else the lattice is coarse beside the noise
                assert choice.wider == pytest.approx(max(ratio, 1 / ratio), rel=0.001 + step**2 / 10)


def test_the_crossover_of_hidden_groups_is_that_of_the_noises_delta():
    """Of the noise alone; where groups are hidden the threshold weighs as much, and Gaussian tails are the thinner."""
    for epsilon, delta in ((1, 1e-9), (1, 1e-6), (0.5, 1e-4)):
        for groups in range(1, 40):
            choice = counts_in(groups, epsilon, delta, listed=False).made("auto").choice
            assert choice is not None
            assert choice.hides is not None
            if abs(groups / choice.crossover - 1) > 0.01:
                by_noise = "gaussian" if groups > choice.crossover else "laplace"
                assert (choice.wider > 1) == (choice.chosen == by_noise)
                assert choice.wider * choice.hides > 1
                if by_noise == "gaussian":
                    assert choice.chosen == by_noise


@pytest.mark.parametrize("asked", ["COUNT(*)", "COUNT(DISTINCT u)"])
def test_people_in_eight_unknown_groups_each_are_counted_with_gaussian_noise(asked: str):
    """Whose threshold is half as high, though Laplace noise would be a little narrower."""
    declared = {"unit": "u", "max_groups": 8, "max_rows_per_group": 1}
    case = Case(f"SELECT k, {asked} FROM t GROUP BY k", declared, U, {"epsilon": 1, "delta": 1e-6})
    choice = case.made("auto").choice
    assert choice is not None
    assert choice.hides is not None
    assert (choice.chosen, round(choice.wider, 1), round(choice.hides, 1)) == ("gaussian", 0.9, 1.9)
    assert even_chance(case.made("laplace")) == pytest.approx(choice.hides * even_chance(case.made("gaussian")))
    assert is_gaussian(case.made("auto"))


def test_explain_says_what_was_compared():
    frame = pd.DataFrame({"u": [1], "k": [1], "x": [1]})
    table = dpsql.Table(frame, bounds={"x": (0, 10)}, unit="u", max_groups=30, max_rows_per_group=1)
    held = dpsql.Session({"t": table}, budget=dpsql.Budget(3, 1e-3))
    explained = held.explain("SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, delta=1e-5)
    choice = explained.to_dict()["choice"]
    assert choice["chosen"] == "gaussian"
    assert f"Gaussian; Laplace noise would be {choice['wider']:.3g} times as wide" in str(explained)
    assert explained.to_dict()["delta"] == pytest.approx(1e-5)


# Words in the text


@pytest.mark.parametrize(
    ("strategy", "mechanism", "gaussian", "compared"),
    [
        ("LAPLACE_THRESHOLD", "auto", False, False),
        ("LAPLACE_THRESHOLD", "laplace", False, False),
        ("GAUSSIAN_THRESHOLD", "auto", True, False),
        ("GAUSSIAN_THRESHOLD", "gaussian", True, False),
        ("TRUNCATED_GEOMETRIC", "auto", True, True),
        ("TRUNCATED_GEOMETRIC", "laplace", False, False),
        ("TRUNCATED_GEOMETRIC", "gaussian", True, False),
    ],
)
def test_a_strategy_in_the_text_is_obeyed(strategy: str, mechanism: str, gaussian: bool, compared: bool):
    sql = f"{CLAUSE} (group_selection_strategy = {strategy}) k, COUNT(*) FROM t GROUP BY k"
    made = Case(sql, GROUPS, U, {"epsilon": 1, "delta": 1e-5}).made(mechanism)
    assert is_gaussian(made) == gaussian
    assert (made.choice is not None) == compared
    assert bool(by_chance(made)) == (strategy == "TRUNCATED_GEOMETRIC")


def test_public_groups_in_the_text_are_compared():
    sql = f"{CLAUSE} (group_selection_strategy = PUBLIC_GROUPS) k, COUNT(*) FROM t GROUP BY k"
    made = Case(sql, {**GROUPS, "keys": {"k": [1, 2]}}, U, {"epsilon": 1, "delta": 1e-5}).made("auto")
    assert made.choice is not None
    assert not made.hides


def test_split_stays_laplace_unless_named():
    how = {"epsilon": 1, "delta": 1e-5, "strategy": "split"}
    case = Case("SELECT COUNT(*), AVG(x) FROM t", {**GROUPS, "max_rows": 40}, U, how)
    assert not is_gaussian(case.made("auto"))
    assert is_gaussian(case.made("gaussian"))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("case", CASES[::5], ids=str)
def test_auto_answers_whatever_laplace_answers(case: Case):
    """At usual sizes."""
    for epsilon, delta in ((1e-9, 1e-9), (1e6, 1e-3), (1e-5, 1e-30)):
        extreme = replace(case, how={"epsilon": epsilon, "delta": delta})
        try:
            extreme.made("laplace")
        except DPSQLError:
            continue
        extreme.made("auto")


def test_auto_answers_whatever_laplace_answers_also_where_gaussian_noise_is_too_large():
    case = Case("SELECT COUNT(*) FROM t", {"unit": "u", "max_rows": 10**6}, U, {"epsilon": 1e-8, "delta": 1e-50})
    case.made("laplace")
    assert not is_gaussian(case.made("auto"))


# Sessions: how many are admitted

ACCOUNTANTS = ["basic", "zcdp", "auto"]
FRAME = pd.DataFrame({"u": list(range(50)) * 4, "k": [1, 2] * 100, "x": [1, 2, 3, 4] * 50, "c": ["p", "q"] * 100})


def session(budget: dpsql.Budget, accountant: str = "auto", **more: Any) -> dpsql.Session:
    said = {name: more.pop(name) for name in ("partition", "keys", "unit", "max_rows") if name in more}
    table = dpsql.Table(FRAME, bounds={"x": (0, 10)}, **said)
    return dpsql.Session({"t": table}, budget=budget, accountant=accountant, **more)


def asked_until_refused(held: dpsql.Session, sql: str, **how: Any) -> int:
    count = 0
    while True:
        try:
            held.query(sql, fresh=True, **how)
        except BudgetExceeded:
            return count
        count += 1


COUNT = "SELECT COUNT(*) FROM t"


def test_small_queries_are_worth_adding_up_in_rho():
    admitted = {}
    for accountant in ACCOUNTANTS:
        held = session(dpsql.Budget(1, 1e-5), accountant)
        admitted[accountant] = held.remaining_queries(COUNT, epsilon=0.01)
        assert asked_until_refused(held, COUNT, epsilon=0.01) == admitted[accountant]
    assert admitted["basic"] == 100
    assert admitted["zcdp"] > 500
    assert admitted["auto"] == max(admitted.values())


def test_three_tenths_are_three_times_a_tenth_and_hundreds_of_small_ones():
    assert asked_until_refused(session(dpsql.Budget(0.3, 1e-5)), COUNT, epsilon=0.1) == 3
    assert asked_until_refused(session(dpsql.Budget(0.3, 1e-5), "zcdp"), COUNT, epsilon=0.1) == 0
    assert session(dpsql.Budget(0.3, 1e-5)).remaining_queries(COUNT, epsilon=0.001) > 3000
    held = session(dpsql.Budget(1, 1e-5))
    assert asked_until_refused(held, COUNT, epsilon=0.1) == 10, "to the last digit of basic"
    held = session(dpsql.Budget(1, 1e-5))
    for _ in range(3):
        held.query(COUNT, epsilon=0.1, fresh=True)
    assert asked_until_refused(held, COUNT, epsilon=0.01) > 200, "large ones first, then more than basic's 70"


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "pure": (COUNT, {"epsilon": 0.17}),
    "rho": (COUNT, {"rho": 0.0019}),
    "pure by rho": (COUNT, {"rho": 0.0019, "mechanism": "laplace"}),
    "gaussian": (COUNT, {"epsilon": 0.13, "delta": 3e-7, "mechanism": "gaussian"}),
    "threshold": ("SELECT c, COUNT(*) FROM t GROUP BY c", {"epsilon": 0.07, "delta": 4e-7}),
    "gaussian threshold": ("SELECT c, COUNT(*) FROM t GROUP BY c", {"rho": 0.001, "delta": 4e-7}),
    "groups": ("SELECT c FROM t GROUP BY c", {"epsilon": 0.2, "delta": 1e-7}),
    "part": ("SELECT COUNT(*) FROM t WHERE c = 'p'", {"epsilon": 0.11}),
    "split": ("SELECT COUNT(*), AVG(x) FROM t", {"epsilon": 0.1, "strategy": "split"}),
}


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("analyst", [None, "ann"])
def test_remaining_queries_are_those_that_are_admitted(kind: str, accountant: str, analyst: str | None):
    sql, how = KINDS[kind]
    share = {"ann": dpsql.Budget(0.6, 4e-6), "*": dpsql.Budget(0.5, 1e-6)}
    budget = dpsql.Budget(1, 1e-5, analysts=share if analyst else None)
    held = session(budget, accountant, analyst=analyst, partition="c" if kind == "part" else None)
    if accountant == "basic" and "rho" in how and how.get("mechanism") != "laplace":
        assert held.remaining_queries(sql, **how) == 0
    elif accountant != "zcdp":
        assert held.remaining_queries(sql, **how) > 0
    for other_sql, other in (KINDS["pure"], KINDS["threshold"]):
        if held.remaining_queries(other_sql, **other):
            held.query(other_sql, **other)
    before = held.remaining_queries(sql, **how)
    assert asked_until_refused(held, sql, **how) == before
    assert held.remaining_queries(sql, **how) == 0


@pytest.mark.thinned(4)
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
@pytest.mark.parametrize("seed", range(4))
def test_they_are_so_after_anything(accountant: str, neighbours: str, seed: int):
    """Random queries about parts and about everything, by both laws and in both coins; then one until it is refused."""
    rng = random.Random(seed)
    which = ["= 'p'", "= 'q'", "IN ('p', 'q')", "IN ('q', 'r')"]
    texts = [f"SELECT SUM(x) FROM t WHERE c {each}" for each in which]
    texts += ["SELECT SUM(x) FROM t", "SELECT k, SUM(x) FROM t GROUP BY k"]
    for _ in range(4):
        shares = {"ann": dpsql.Budget(rng.choice([0.5, 0.95]), 4e-6)}
        budget = dpsql.Budget(1, 1e-5, analysts=rng.choice([None, shares]))
        held = session(
            budget, accountant, analyst="ann" if budget.analysts else None, partition="c", keys={"c": ["p", "q", "r"]},
            neighbours=neighbours,
        )  # fmt: skip
        for _ in range(rng.randint(0, 12)):
            sql, how = rng.choice(texts), coin(rng)
            if held.remaining_queries(sql, **how):
                held.query(sql, fresh=True, **how)
        sql, how = rng.choice(texts), coin(rng)
        said = held.remaining_queries(sql, **how)
        assert asked_until_refused(held, sql, **how) == said


def coin(rng: random.Random) -> dict[str, Any]:
    delta = rng.choice([3e-8, 6e-7])
    mechanism = rng.choice(["auto", "laplace", "gaussian"])
    paid = rng.choice([{"epsilon": rng.choice([0.03, 0.06, 0.2])}, {"rho": rng.choice([0.0006, 0.004])}])
    return {"delta": delta, "mechanism": mechanism, **paid}


# Refusals


def advice(held: dpsql.Session, sql: str, **how: Any) -> tuple[str, str, str] | None:
    """What a refusal says: which word, what fits, and whole; None where the query is admitted."""
    try:
        held.query(sql, fresh=True, **how)
    except BudgetExceeded as error:
        text = str(error)
        found = re.search(r"Run it with (\w+)=([^,\s]+)", text)  # its width may stand behind it
        return (found[1], found[2].rstrip("."), text) if found else ("", "", text)
    return None


def check_advice_fits(held: dpsql.Session, sql: str, **how: Any) -> str | None:
    """What it says fits does fit: the same query with that number. And nothing was charged by the refusal."""
    entries = len(held.ledger())
    said = advice(held, sql, **how)
    if said is None:
        return None
    assert len(held.ledger()) == entries
    word, number, text = said
    also = re.search(r"Its delta is too much as well: ([0-9.e+-]+) is left", text)
    if word:
        less = {**how, **({"delta": float(also[1])} if also else {}), word: float(number)}
        if word == "epsilon":
            less.pop("rho", None)
        law = re.search(r"""Run it with .*mechanism=["'](\w+)""", text)
        if law:
            less["mechanism"] = law[1]
        held.query(sql, fresh=True, **less)
    return text


@pytest.mark.thinned(4)
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("seed", range(8))
def test_what_a_refusal_says_fits_does_fit(accountant: str, seed: int):
    rng = random.Random(seed)
    rounds = 0
    for _ in range(6):
        held = session(dpsql.Budget(1, 1e-5), accountant)
        for _ in range(rng.randint(0, 5)):
            asked = rng.choice([
                {"epsilon": rng.choice([0.01, 0.05, 0.3])},
                {"rho": rng.choice([0.001, 0.01])},
                {"epsilon": 0.2, "delta": 1e-6, "mechanism": "gaussian"},
            ])  # fmt: skip
            if held.remaining_queries(COUNT, **asked):
                held.query(COUNT, fresh=True, **asked)
        how: dict[str, Any] = rng.choice([
            {"epsilon": rng.choice([1, 0.9, 5])},
            {"rho": rng.choice([0.04, 3])},
            {"epsilon": 0.02, "delta": 3e-5, "mechanism": "gaussian"},
            {"epsilon": 2, "delta": 1e-7, "mechanism": "gaussian"},
        ])  # fmt: skip
        if how.get("delta") == 3e-5 and held.remaining.epsilon < 0.02:
            continue  # both numbers are too large: another test
        if check_advice_fits(held, COUNT, **how) is not None:
            rounds += 1
    assert rounds


@pytest.mark.thinned(4)
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("seed", range(8))
def test_it_fits_also_with_parts_shares_and_hidden_groups(accountant: str, seed: int):
    """The whole, the share of an analyst and the part that is asked: whichever is the tightest."""
    rng = random.Random(seed)
    texts = [COUNT, f"{COUNT} WHERE c = 'p'", f"{COUNT} WHERE c IN ('p', 'q')", "SELECT AVG(x), COUNT(*) FROM t"]
    texts += ["SELECT k, COUNT(*) FROM t GROUP BY k", "SELECT k FROM t GROUP BY k"]
    rounds = 0
    for _ in range(5):
        shares = {"ann": dpsql.Budget(rng.choice([0.5, 0.95]), 4e-6), "*": dpsql.Budget(0.5, 1e-6)}
        budget = dpsql.Budget(1, 1e-5, analysts=rng.choice([None, shares]))
        neighbours = rng.choice(["unbounded", "bounded"])
        held = session(
            budget, accountant, analyst="ann" if budget.analysts else None, partition="c", keys={"c": ["p", "q", "r"]},
            neighbours=neighbours,
        )  # fmt: skip
        for _ in range(rng.randint(0, 6)):
            sql = rng.choice(texts)
            how = {"epsilon": rng.choice([0.01, 0.06, 0.2]), "delta": rng.choice([1e-7, 6e-7])}
            if held.remaining_queries(sql, **how):
                held.query(sql, fresh=True, **how)
        sql = rng.choice(texts)
        how = {"delta": 1e-8, **rng.choice([{"epsilon": rng.choice([0.6, 3])}, {"rho": 0.2}])}
        if held.explain(sql, **how).left is None and held.remaining.delta >= F(1, 10**8):
            rounds += check_advice_fits(held, sql, **how) is not None
    assert rounds


def test_it_fits_also_where_a_unit_moves_between_two_parts_that_are_asked():
    held = session(dpsql.Budget(1), partition="c", keys={"c": ["p", "q", "r"]}, neighbours="bounded")
    held.query(f"{COUNT} WHERE c = 'p'", epsilon=0.25)
    check_advice_fits(held, f"{COUNT} WHERE c IN ('p', 'q')", epsilon=3)


def test_what_fits_is_said_of_the_law_that_is_then_chosen():
    keys = {"k": list(range(20))}
    table = dpsql.Table(FRAME, keys=keys, unit="u", max_groups=10, max_rows_per_group=1)
    held = dpsql.Session({"t": table}, budget=dpsql.Budget(3, 1e-6), accountant="basic")
    held.query(COUNT, epsilon=2.8, delta=6e-7, mechanism="gaussian")
    check_advice_fits(held, "SELECT k, COUNT(*) FROM t GROUP BY k", epsilon=1, delta=1e-6)


def test_refusals_name_what_is_missing():
    held = session(dpsql.Budget(1, 1e-5), "basic")
    held.query(COUNT, epsilon=0.75)
    text = check_advice_fits(held, COUNT, epsilon=0.5)
    assert text is not None
    assert "costs epsilon 0.5 but 0.25 is left (spent 0.75 of 1 in 1 query)" in text
    held = session(dpsql.Budget(1, 1e-5))
    text = check_advice_fits(held, COUNT, epsilon=0.5, delta=1e-5, mechanism="gaussian")
    assert text is not None
    assert "costs delta 1e-05 but 5e-06 is left" in text
    assert "kept to convert rho to epsilon" in text
    text = check_advice_fits(session(dpsql.Budget(1, 1e-5), "zcdp"), COUNT, rho=0.5)
    assert text is not None
    assert "costs rho 0.5 but" in text
    shares = {"ann": dpsql.Budget(0.25)}
    text = check_advice_fits(session(dpsql.Budget(1, analysts=shares), analyst="ann"), COUNT, epsilon=0.5)
    assert text is not None
    assert 'but 0.25 is left for analyst "ann" (spent 0 of 0.25 in 0 queries)' in text


def test_a_refusal_of_gaussian_noise_compares_what_was_too_much():
    held = session(dpsql.Budget(1, 1e-5), "zcdp")
    assert held.remaining.rho is not None
    held.query(COUNT, rho=held.remaining.rho * F(10**9 - 1, 10**9))
    text = check_advice_fits(held, COUNT, epsilon=1e-6, delta=1e-5, mechanism="gaussian")
    assert text is not None
    assert "epsilon 1e-06 but 7" not in text


def both(tmp_path: Path) -> tuple[dpsql.Session, dpsql.Session]:
    shares = {"ann": dpsql.Budget(0.3), "bob": dpsql.Budget(0.8)}
    bob = session(dpsql.Budget(1, analysts=shares), ledger=tmp_path / "ledger", analyst="bob")
    ann = dpsql.Session({"t": dpsql.Table(FRAME)}, ledger=tmp_path / "ledger", analyst="ann")
    return bob, ann


def test_a_refusal_knows_share_and_whole(tmp_path: Path):
    bob, ann = both(tmp_path)
    bob.query(COUNT, epsilon=0.5)
    check_advice_fits(ann, COUNT, epsilon=0.6)


def test_a_share_counts_its_analyst_alone_and_the_whole_counts_all(tmp_path: Path):
    bob, ann = both(tmp_path)
    assert ann.remaining_queries(COUNT, epsilon=0.1) == 3
    assert asked_until_refused(bob, COUNT, epsilon=0.1) == 8
    assert ann.remaining_queries(COUNT, epsilon=0.1) == 2
    assert asked_until_refused(ann, COUNT, epsilon=0.1) == 2
    assert ann.spent.epsilon == bob.spent.epsilon == 1


def test_a_refusal_says_what_is_left_of_the_part_it_asks():
    held = session(dpsql.Budget(1), partition="c", keys={"c": ["p", "q"]})
    held.query("SELECT COUNT(*) FROM t WHERE c = 'p'", epsilon=0.9)
    held.query("SELECT COUNT(*) FROM t WHERE c = 'q'", epsilon=0.5)
    said = advice(held, "SELECT COUNT(*) FROM t WHERE c = 'q'", epsilon=0.6)
    assert said is not None
    assert said[:2] == ("epsilon", "0.5")


def test_a_refusal_for_two_reasons_fits():
    held = session(dpsql.Budget(1, 1e-6), "basic")
    held.query(COUNT, epsilon=0.6, delta=6e-7, mechanism="gaussian")
    check_advice_fits(held, COUNT, epsilon=0.6, delta=1e-6, mechanism="gaussian")


@pytest.mark.parametrize(
    "prepared",
    [
        lambda: session(dpsql.Budget(1)),
        lambda: session(dpsql.Budget(1, 1e-6), "basic"),
    ],
)
def test_rho_where_there_is_none(prepared: Callable[[], dpsql.Session]):
    with pytest.raises(BudgetExceeded, match="rho"):
        prepared().query(COUNT, rho=0.01)


def test_parts_that_are_within_different_filters_are_spent():
    """Many small queries about one part, a large one about another: no unit is in both."""
    held = session(dpsql.Budget(1, 1e-5), partition="c", keys={"c": ["p", "q", "r"]})
    for _ in range(held.remaining_queries(f"{COUNT} WHERE c = 'p'", epsilon=0.02)):
        held.query(f"{COUNT} WHERE c = 'p'", epsilon=0.02, fresh=True)
    held.query(f"{COUNT} WHERE c = 'q'", epsilon=0.9)
    assert held.spent.epsilon > 0.9
    left = held.remaining.epsilon
    assert held.remaining_queries(COUNT, epsilon=0.0001) == 0 or left >= F(1, 10**4)
    if left:
        held.query(COUNT, epsilon=left)


def test_pairs_of_parts_that_are_within_different_filters_are_spent():
    """A unit that moves can have been in any two; what is admitted is what the largest two together allow."""
    held = session(dpsql.Budget(1, 1e-5), partition="c", keys={"c": ["p", "q", "r"]}, neighbours="bounded")
    for part, epsilon, times in (("p", 0.025, 32), ("q", 0.01, 40), ("r", 0.2, 1)):
        for _ in range(times):
            if held.remaining_queries(f"{COUNT} WHERE c = '{part}'", epsilon=epsilon):
                held.query(f"{COUNT} WHERE c = '{part}'", epsilon=epsilon, fresh=True)
    assert 0.6 < held.spent.epsilon <= 1
    held.query(f"{COUNT} WHERE x > 1", epsilon=held.remaining.epsilon)


def test_what_is_left_is_what_the_next_query_may_have():
    """To the last digit that is shown, in each coin, after each of some queries."""
    for accountant in ACCOUNTANTS:
        for asked in ({"epsilon": 0.3}, {"rho": 0.004}, {"epsilon": 0.2, "delta": 1e-6, "mechanism": "gaussian"}):
            for word in ("epsilon", "rho"):
                held = session(dpsql.Budget(1, 1e-5), accountant)
                if held.remaining_queries(COUNT, **asked):
                    held.query(COUNT, **asked)
                left = getattr(held.remaining, word)
                if left:
                    assert held.remaining_queries(COUNT, **{word: left}) >= 1
                    held.query(COUNT, **{word: left}, fresh=True)
