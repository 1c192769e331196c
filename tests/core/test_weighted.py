"""Groups chosen by weights: what units add, how far neighbours are apart, which heights hold, and what is charged."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import dpsql
from dpsql.core.cost import Cost
from dpsql.core.exact import CountUnits, UnitWeights, weight_of
from dpsql.core.loss import Allowance
from dpsql.core.measurement import GroupsByChance
from dpsql.core.mechanisms.gaussian_curve import gaussian_rho
from dpsql.core.mechanisms.grants import grant
from dpsql.core.mechanisms.noise import CubeLaplace, RoundedGaussian
from dpsql.core.payment import assert_paid
from dpsql.core.selection.weighted import SCALE, GroupsByWeights
from dpsql.errors import InternalError
from dpsql.executors.base import ENGINES
from dpsql.release import calibrate
from dpsql.release.release import Release
from dpsql.session import prepare
from dpsql.testing import insecure_exact

F = Fraction
WITHOUT_JAVA = sorted(ENGINES.keys() - {"spark"})  # Spark has tests of its own, which ask what is written here
KEYS = "SELECT k FROM t GROUP BY k"


def session(frame: pd.DataFrame, neighbours: str = "unbounded", engine: str = "auto", most: int = 6) -> dpsql.Session:
    table = dpsql.Table(frame, unit="u", max_groups=most, max_rows_per_group=2)
    return dpsql.Session({"t": table}, budget=dpsql.Budget(9, 1e-3), neighbours=neighbours, engine=engine)


def visits(seed: int, people: int = 40, keys: int = 12, rows: int = 300) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    return pd.DataFrame({"u": draw.integers(0, people, rows), "k": draw.integers(0, keys, rows)})


def release(frame: pd.DataFrame, sql: str = KEYS, **how: Any) -> Release:
    return session(frame, **how).explain(sql, epsilon=1, delta=1e-6)._release


def weights_of(rows: list[tuple[int, int]], scale: int) -> dict[int, int]:
    groups: dict[int, set[int]] = defaultdict(set)
    for unit, key in rows:
        groups[unit].add(key)
    found: dict[int, int] = defaultdict(int)
    for kept in groups.values():
        for key in kept:
            found[key] += math.isqrt(scale * scale // len(kept))
    return dict(found)


# What units add


@pytest.mark.parametrize("engine", WITHOUT_JAVA)
def test_weights_are_summed_as_by_hand(engine: str) -> None:
    check_weights(engine)


def check_weights(engine: str) -> None:
    """Where nobody is in more groups than count."""
    frame = visits(3, keys=6)
    held = session(frame, engine=engine)
    made = held.explain(KEYS, epsilon=1, delta=1e-6)._release
    assert isinstance(made.selection, GroupsByWeights)
    integers = insecure_exact(held, KEYS, bytes(32), epsilon=1, delta=1e-6)
    found = {group[0]: parts[made.selection.part] for group, parts in integers.parts.items()}
    assert found == weights_of(list(zip(frame["u"], frame["k"], strict=True)), SCALE)


def test_weights_share_one_norm() -> None:
    for scale in (SCALE, 1000, 7):
        for k in (1, 2, 3, 7, 8, 100, 255):
            one = weight_of(scale, k)
            assert k * one**2 <= scale**2 < k * (one + 1) ** 2
    with pytest.raises(ValueError, match="steps"):
        UnitWeights(0)


@pytest.mark.parametrize("both", [False, True])
def test_neighbours_are_as_close_as_is_charged(*, both: bool) -> None:
    """Vectors of neighbours by hand: squares of what changes, and chances of groups that one table alone has."""
    rng, most, sides = random.Random(5), 4, 2 if both else 1
    chosen = calibrated(most, sides)
    worst = 0.0
    for _ in range(2_000):
        rest = [(unit, rng.randrange(8)) for unit in range(3) for _ in range(rng.randrange(4))]
        mine = [(9, key) for key in rng.sample(range(8), rng.randrange(1, most + 1))]
        others = [(9, key) for key in rng.sample(range(8), rng.randrange(1, most + 1))] if both else []
        one, other = (weights_of(rest + rows, chosen.scale) for rows in (mine, others))
        common = one.keys() & other.keys()
        assert sum((one[key] - other[key]) ** 2 for key in common) <= chosen.reach.l2_squared
        assert sum(abs(one[key] - other[key]) for key in common) <= chosen.reach.cube_sensitivity
        alone = [held[key] for held in (one, other) for key in held if key not in common]
        worst = max(worst, sum(float(norm.sf((chosen.height - w - 0.5) / chosen.noise.scale)) for w in alone))
    assert worst <= float(chosen.delta) * (1 + 1e-9)
    assert worst >= float(chosen.delta) * 0.5


# Heights and charges


def calibrated(each: int, sides: int, *, least: int = 1, rho: Fraction | None = None) -> GroupsByWeights:
    delta = F(1, 10**6)
    allowed = Allowance(None, delta, rho) if rho is not None else Allowance(F(1), delta)
    return GroupsByWeights.calibrate(0, (each, sides), grant(allowed, delta=delta / 2), delta / 2, least)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize("each", [1, 2, 8, 100])
def test_the_height_is_the_least_for_every_number_of_groups(each: int, sides: int) -> None:
    chosen = calibrated(each, sides)
    noise, own = chosen.noise, float(chosen.delta) / sides
    chances = [
        k * float(norm.sf((chosen.height - weight_of(SCALE, k) - 0.5) / noise.scale)) for k in range(1, each + 1)
    ]
    assert 0.98 * own <= max(chances) <= own
    with pytest.raises(ValueError, match="too low"):
        replace(chosen, height=chosen.height - math.ceil(noise.scale / 100))
    assert isinstance(noise, RoundedGaussian)
    assert F(sides * SCALE**2) / (2 * noise.variance) <= gaussian_rho(F(1), F(1, 2 * 10**6))


def test_what_it_costs() -> None:
    chosen = calibrated(8, 1)
    assert chosen.cost == Cost(F(1), F(1, 10**6), gaussian_rho(F(1), F(1, 2 * 10**6)), F(1, 2 * 10**6))
    by_rho = calibrated(8, 1, rho=F(1, 10))
    assert (by_rho.cost.epsilon, by_rho.cost.rho) == (None, F(1, 10))
    assert len(chosen.events) == 2


def test_groups_need_more_people_where_the_text_says_so() -> None:
    assert calibrated(8, 1, least=4).height == calibrated(8, 1).height + 3 * SCALE


def test_draws_show_groups_as_often_as_is_said() -> None:
    chosen = calibrated(8, 1)
    weight = weight_of(SCALE, 8)
    for units in (chosen.half - 4, chosen.half, chosen.half + 3):
        noisy = units * weight + chosen.noise.draw(40_000)[0]
        share = float((noisy >= chosen.height).mean())
        assert share == pytest.approx(chosen.chance(units), abs=0.015)


# In a question


def test_keys_alone_are_chosen_by_weights_where_people_are_in_several_groups() -> None:
    made = release(visits(1))
    assert isinstance(made.selection, GroupsByWeights)
    assert made.cost.epsilon == 1
    assert made.cost.delta == F(1, 10**6)
    assert UnitWeights(SCALE) in made.exact.parts
    assert CountUnits(None) not in made.exact.parts
    asked = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = TRUNCATED_GEOMETRIC) {KEYS[7:]}"
    assert isinstance(release(visits(1), asked).selection, GroupsByChance)
    assert isinstance(release(visits(1), most=1).selection, GroupsByChance)
    laplace = session(visits(1)).explain(KEYS, epsilon=1, delta=1e-6, mechanism="laplace")._release
    assert isinstance(laplace.selection, GroupsByChance)


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("most", [2, 3, 8, 40])
def test_the_choice_is_the_one_that_shows_smaller_groups(epsilon: float, most: int) -> None:
    frame = visits(1)
    made = session(frame, most=most).explain(KEYS, epsilon=epsilon, delta=1e-6)._release
    asked = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = TRUNCATED_GEOMETRIC) {KEYS[7:]}"
    other = session(frame, most=most).explain(asked, epsilon=epsilon, delta=1e-6)._release
    assert made.selection.half <= other.selection.half


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
@pytest.mark.parametrize("engine", WITHOUT_JAVA)
def test_answers(neighbours: str, engine: str) -> None:
    check_answers(neighbours, engine)


def check_answers(neighbours: str, engine: str) -> None:
    frame = pd.DataFrame({"u": np.repeat(np.arange(900), 3), "k": np.tile(["a", "b", "c"], 900)})
    frame.loc[len(frame)] = [901, "rare"]
    held = session(frame, neighbours, engine)
    answer = held.query(KEYS, epsilon=1, delta=1e-6)
    assert answer.df["k"].tolist() == ["a", "b", "c"]
    assert "sum of weights" in str(held.explain(KEYS, epsilon=1, delta=1e-6))
    (note,) = [each for each in answer.notes if "small groups are hidden" in each]
    assert "people in as many groups as may count is shown" in note
    assert note.endswith("; of people in fewer groups more often)")
    again = held.query(KEYS, epsilon=1, delta=1e-6)
    assert again.df.equals(answer.df)
    assert held.spent.epsilon <= 1


def test_medians_of_hidden_groups_too() -> None:
    frame = visits(1, people=4000, rows=20_000).assign(x=5)
    table = dpsql.Table(frame, unit="u", max_groups=6, max_rows_per_group=2, bounds={"x": (0, 10)})
    made = dpsql.query(table, "SELECT k, MEDIAN(x) FROM t GROUP BY k", epsilon=2, delta=1e-6)
    assert len(made.df) == 12


# Lies


def refused(change: Any) -> None:
    made = release(visits(1))
    made.assert_paid()
    selection = change(made.selection)
    with pytest.raises(InternalError):
        assert_paid(made.asked, (selection,), made.cost)


def test_other_parts_and_fewer_groups_are_refused() -> None:
    refused(lambda each: replace(each, each=each.each - 1))
    made = release(visits(1), neighbours="bounded")
    with pytest.raises(InternalError):
        assert_paid(made.asked, (replace(made.selection, sides=1),), made.cost)
    counts = replace(made, exact=replace(made.exact, parts=(CountUnits(None),)))
    with pytest.raises(InternalError):
        assert_paid(counts.asked, made.measurements, made.cost)
    finer = replace(made, exact=replace(made.exact, parts=(UnitWeights(2 * SCALE),)))
    with pytest.raises(InternalError):
        assert_paid(finer.asked, made.measurements, made.cost)


def test_less_noise_is_refused() -> None:
    refused(lambda each: replace(each, noise=CubeLaplace(F(SCALE), 1), height=200 * SCALE))
    chosen = calibrated(8, 1)
    with pytest.raises(ValueError, match="too small"):
        _ = replace(chosen, noise=replace(chosen.noise, variance=chosen.noise.variance / 2), height=99 * SCALE).cost


def test_a_weight_of_one_for_every_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lie: each group of a unit weighs as if it were the only one."""
    from dpsql.executors.pandas.units import unit_totals

    prepare._cache.clear()
    monkeypatch.setattr(unit_totals, "weight_of", lambda scale, _: scale)
    with pytest.raises(AssertionError):
        test_weights_are_summed_as_by_hand("pandas")


def test_the_plan_asks_for_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lie: rows beyond a unit's groups would count."""
    prepare._cache.clear()
    honest = calibrate.exact_plan
    monkeypatch.setattr(calibrate, "exact_plan", lambda *args: replace(honest(*args), groups=99))
    with pytest.raises(InternalError):
        release(visits(1))
    prepare._cache.clear()
