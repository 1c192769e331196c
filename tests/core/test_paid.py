"""A plan that is put together wrongly is refused before it is charged, whatever part of it is wrong.

Each lie changes something outside `core/`: what is summed, what is measured, how far it is said to go, for how many
rows and groups, with which noise, for which charge. They are told of every kind of design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.cost import Cost
from dpsql.core.exact import CellPart, CountRows, GridCounts, LatticeProduct, LatticeSum, UnitTotal
from dpsql.core.mechanisms.group_vectors import reach_across
from dpsql.core.mechanisms.noise import CubeLaplace, Reach
from dpsql.core.unit import ContributionBound
from dpsql.errors import InternalError
from dpsql.plan.expressions import Fact, Literal
from dpsql.release import calibrate, choices, plan
from dpsql.release.bounds import auto_bounds
from dpsql.release.choices import EXACT, Draw
from dpsql.release.levels import estimates as levels
from dpsql.release.selection import hidden_groups as hidden
from dpsql.release.selection.groups import PUBLIC, Selection
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval
from dpsql.session import prepare
from tests.lies import Patch

Lie = Callable[[Patch], None]
ROWS = 8
FRAME = pd.DataFrame(
    {
        "pid": [1, 1, 2, 2, 3, 3, 4, 4],
        "x": [0, 1, 2, 3, 4, 5, 6, 7],
        "y": [0.5] * ROWS,
        "z": [0.5, np.nan] * (ROWS // 2),
        "a": [1.5] * ROWS,
        "k": list("abababab"),
        "h": list("pqpqpqpq"),
    }
)
FACTS: dict[str, Any] = {"bounds": {"x": (0, 9), "y": (0, 1), "z": (0, 1), "a": "auto"}, "keys": {"k": ["a", "b"]}}
PEOPLE: dict[str, Any] = {"unit": "pid", "max_rows": 3, "max_groups": 2}
BY_CHANCE = "WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = TRUNCATED_GEOMETRIC)"
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "a count": ("SELECT COUNT(*) FROM t", {}),
    "plain sums": ("SELECT SUM(x), SUM(y) FROM t", {}),
    "centred sums": ("SELECT k, AVG(x), AVG(y), COUNT(*) FROM t GROUP BY k", {}),
    "squares": ("SELECT VAR_POP(x), COUNT(*) FROM t", {}),
    "shares": ("SELECT CORR(x, y) FROM t", {}),
    "shares in cells": ("SELECT CORR(x, z), AVG(z), COUNT(*) FROM t", {}),
    "squares in cells": ("SELECT VAR_POP(x) FILTER (WHERE y > 1), VAR_POP(x) FILTER (WHERE y <= 1) FROM t", {}),
    "counts beside counts": ("SELECT COUNT(*), COUNT_IF(x > 2), COUNT_IF(x > 3) FROM t", {}),
    "counts of values": ("SELECT COUNT(DISTINCT x), COUNT(*) FROM t", {}),
    "people": ("SELECT k, COUNT(DISTINCT pid), SUM(x), COUNT(*) FROM t GROUP BY k", {}),
    "totals": ("SELECT SUM(x, contribution_bounds_per_group => (0, 12)) FROM t", {}),
    "means": ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_groups_contributed = 2) k, AVG(x) FROM t GROUP BY k", {}),
    "own epsilons": ("SELECT COUNT(*, epsilon => 0.1), SUM(x) FROM t", {}),
    "Gaussian": ("SELECT k, COUNT(*), AVG(x) FROM t GROUP BY k", {"delta": 1e-6, "mechanism": "gaussian"}),
    "levels": ("SELECT k, COUNT(*), SUM(x) FROM t GROUP BY ROLLUP(k)", {}),
    "Gaussian levels": ("SELECT k, SUM(x) FROM t GROUP BY ROLLUP(k)", {"delta": 1e-6, "mechanism": "gaussian"}),
    "split": ("SELECT COUNT(*), SUM(x) FROM t", {"strategy": "split"}),
    "a threshold": ("SELECT h, COUNT(*), SUM(x) FROM t GROUP BY h", {"delta": 1e-6}),
    "a Gaussian threshold": ("SELECT h, COUNT(*) FROM t GROUP BY h", {"delta": 1e-6, "mechanism": "gaussian"}),
    "a chance": (
        f"SELECT {BY_CHANCE} h, MEDIAN(x) FROM t GROUP BY h",
        {"delta": 1e-6},
    ),
    "ranks": ("SELECT MEDIAN(x), QUANTILE(x, 0.9), MIN(x) FROM t", {}),
    "a mode": ("SELECT MODE(k) FROM t", {}),
    "the top": ("SELECT APPROX_TOP_K(k, 2) FROM t", {}),
    "bounds": ("SELECT SUM(a), COUNT(*) FROM t", {}),
}
CHOSEN = ("ranks", "a mode", "the top")
NOISY = tuple(name for name in ASKED if name not in (*CHOSEN, "a chance"))


def session() -> dpsql.Session:
    return dpsql.Session({"t": dpsql.Table(FRAME, **FACTS, **PEOPLE)}, budget=dpsql.Budget(10, 1e-3))


@contextmanager
def told(lie: Lie) -> Iterator[None]:
    prepare._cache.clear()
    try:
        with pytest.MonkeyPatch.context() as patch:
            lie(patch)
            yield
    finally:
        prepare._cache.clear()


def assert_refused(lie: Lie, name: str) -> None:
    """The honest query is answered, the lie is refused and costs nothing."""
    sql, terms = ASKED[name]
    honest = session()
    honest.query(sql, epsilon=1, **terms)
    asked = session()
    with told(lie), pytest.raises(InternalError):
        asked.query(sql, epsilon=1, **terms)
    assert asked.spent.epsilon == 0
    assert asked.spent.delta == 0


# What is summed and what is measured


def released(change: Callable[[Any], dict[str, Any]]) -> Lie:
    """Of a release that is made, something else than was priced."""

    def lie(patch: Patch) -> None:
        honest = calibrate.Release

        def made(*args: Any, **more: Any) -> Any:
            found = honest(*args, **more)
            return replace(found, **change(found))

        patch.setattr(calibrate, "Release", made)

    return lie


def _finer(release: Any) -> dict[str, Any]:
    coordinates = tuple(each.times(2) for each in release.lattice.coordinates)
    return {"lattice": replace(release.lattice, coordinates=coordinates)}


def _wider(part: Any) -> Any:
    """The same part with values twice as far out, or with another's rows."""
    if isinstance(part, LatticeSum):
        return replace(part, least=2 * part.least, most=2 * part.most + 1)
    if isinstance(part, LatticeProduct):
        return replace(part, most=part.most * 2, whole=False)
    if isinstance(part, UnitTotal):
        return replace(part, most=2 * part.most)
    if isinstance(part, CellPart):
        return replace(part, of=_wider(part.of))
    return part


def _wider_plan(release: Any) -> dict[str, Any]:
    return {"exact": replace(release.exact, parts=tuple(map(_wider, release.exact.parts)))}


def _without_a_limit(release: Any) -> dict[str, Any]:
    limits = ContributionBound(9, 9, 9) if release.exact.keys else ContributionBound(9, 1, 9)
    return {"exact": replace(release.exact, limits=limits)}


def _without_noise(release: Any) -> dict[str, Any]:
    return {"measurements": tuple(each for each in release.measurements if isinstance(each, calibrate.ShownGroups))}


def _for_less(release: Any) -> dict[str, Any]:
    cost = release.cost
    return {"cost": Cost(cost.epsilon * Fraction(9, 10), cost.delta, cost.rho, cost.hidden)}


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("change", [_finer, _without_a_limit, _without_noise], ids=lambda each: each.__name__)
def test_what_is_released_is_what_was_priced(name: str, change: Any) -> None:
    assert_refused(released(change), name)


@pytest.mark.parametrize("name", sorted(ASKED))
def test_all_charges_are_in_the_cost(name: str) -> None:
    if name == "bounds":  # the cost of the search is added to it
        assert_refused(_search(lambda each: replace(each, cost=Cost.of(each.cost.epsilon / 2))), name)
    else:
        assert_refused(released(_for_less), name)


@pytest.mark.parametrize("name", ["plain sums", "centred sums", "squares", "totals", "levels", "split", "own epsilons"])
def test_the_executor_is_asked_for_the_parts_that_were_priced(name: str) -> None:
    assert_refused(released(_wider_plan), name)


# How far it is said to go


def _nearer(reach: Reach) -> Reach:
    half = (max(1, each // 2) for each in (reach.cube_sensitivity, reach.l1 or 1))
    cube, l1 = half
    less = replace(reach, cube_sensitivity=cube, l1=None if reach.l1 is None else l1, l2_squared=reach.l2_squared / 4)
    across = reach.across
    return less if across is None else replace(less, across=replace(across, largest=max(1, across.largest // 2)))


def say_less_of_reach(patch: Patch) -> None:
    for room, word in ((calibrate, "reach_of"), (calibrate, "reach_across"), (levels, "reach_of_level")):
        honest = getattr(room, word)
        patch.setattr(room, word, lambda *args, honest=honest: _nearer(honest(*args)))


def make_a_reach_by_hand(patch: Patch) -> None:
    def reach(parts: Any, terms: Any, *_rest: Any) -> Reach:
        found = object.__new__(Reach)
        said = {"cube_sensitivity": 1, "l1": 1, "l2_squared": Fraction(1), "dimension": len(terms)}
        for word, value in said.items():
            object.__setattr__(found, word, value)
        return found

    def of_all_groups(plan: Any, terms: Any, analysis: Any) -> Reach:
        found = reach_across(plan, terms, analysis).across
        assert found is not None
        return replace(reach(plan, terms), across=replace(found, largest=1))

    patch.setattr(calibrate, "reach_of", reach)
    patch.setattr(calibrate, "reach_across", of_all_groups)
    patch.setattr(levels, "reach_of_level", reach)


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("lie", [say_less_of_reach, make_a_reach_by_hand], ids=lambda each: each.__name__)
def test_a_reach_that_is_stated_is_derived_anew(name: str, lie: Lie) -> None:
    assert_refused(lie, name)


def _share(change: Callable[[Any], Any]) -> Lie:
    def lie(patch: Patch) -> None:
        honest = calibrate.Share
        patch.setattr(calibrate, "Share", lambda *args, **more: change(honest(*args, **more)))

    return lie


def test_one_draw_does_not_stand_for_two() -> None:
    """A law of one coordinate would be added to both."""
    lie = _share(lambda each: replace(each, noise=CubeLaplace(each.noise.exact_scale * 9, 1)))
    assert_refused(lie, "centred sums")


@pytest.mark.parametrize("name", ["a count", "plain sums", "people"])
def test_noise_has_the_scale_that_is_charged(name: str) -> None:
    half = lambda law: replace(law, exact_scale=law.exact_scale / 2)  # noqa: E731
    assert_refused(_share(lambda each: replace(each, noise=half(each.noise))), name)


@pytest.mark.parametrize("name", ["levels", "Gaussian levels"])
def test_the_noise_of_a_level_is_paid_by_the_level(name: str) -> None:
    def lie(patch: Patch) -> None:
        honest = levels.Level

        def level(*args: Any) -> Any:
            found = honest(*args)
            return replace(found, cost=Cost(found.cost.epsilon, rho=found.cost.rho / 2))

        patch.setattr(levels, "Level", level)

    assert_refused(lie, name)


def test_levels_have_no_smaller_epsilon_together_than_their_noise_is_worth() -> None:
    def lie(patch: Patch) -> None:
        honest = levels.PrivacyLoss
        patch.setattr(levels, "PrivacyLoss", lambda epsilon, delta: honest(epsilon / 2, delta))

    assert_refused(lie, "Gaussian levels")


# Whose rows


def _analysed(**lie: Any) -> Lie:
    def told_of(patch: Patch) -> None:
        honest = plan.analyse
        patch.setattr(plan, "analyse", lambda *args: replace(honest(*args), **lie))

    return told_of


@pytest.mark.parametrize("name", [name for name in sorted(ASKED) if "levels" not in name])  # refused before that
def test_rows_of_people_are_not_called_public(name: str) -> None:
    assert_refused(_analysed(private=False), name)


@pytest.mark.parametrize("name", [name for name in sorted(ASKED) if "GROUP BY" not in ASKED[name][0]])
def test_the_number_of_rows_is_not_called_public(name: str) -> None:
    assert_refused(_analysed(public_count=True), name)


@pytest.mark.parametrize("name", [name for name in sorted(ASKED) if "GROUP BY" in ASKED[name][0]])
def test_many_groups_are_not_called_one(name: str) -> None:
    assert_refused(_analysed(grouped=False), name)


@pytest.mark.parametrize("name", sorted(ASKED))
def test_limits_that_nothing_enforces_are_none(name: str) -> None:
    def lie(patch: Patch) -> None:
        honest = plan.analyse

        def analyse(*args: Any) -> Any:
            found = honest(*args)
            return replace(found, bounds=replace(found.bounds, enforced=False))

        patch.setattr(plan, "analyse", analyse)

    assert_refused(lie, name)


def test_nothing_is_known_but_what_filters_say() -> None:
    assert_refused(_analysed(known={Literal(1, Type.INTEGER): Fact(Interval(0, 1), nullable=False)}), "a count")


# Which groups


def test_unknown_groups_are_chosen() -> None:
    for name in ("a threshold", "a Gaussian threshold", "a chance"):
        assert_refused(
            lambda patch: patch.setattr(
                calibrate, "selection_of", lambda *_args: Selection(PUBLIC, every_cell=False, hides=False)
            ),
            name,
        )


@pytest.mark.parametrize("name", ["a threshold", "a Gaussian threshold", "a chance"])
def test_all_groups_of_a_person_count(name: str) -> None:
    assert_refused(lambda patch: patch.setattr(calibrate, "groups_of_a_unit", lambda _: 1), name)


@pytest.mark.parametrize("name", ["a threshold", "a Gaussian threshold"])
def test_all_that_a_person_adds_counts(name: str) -> None:
    def lie(patch: Patch) -> None:
        honest = hidden.change_of

        def change(*args: Any) -> Any:
            found = honest(*args)
            return replace(found, in_a_group=tuple(each // 3 for each in found.in_a_group))

        patch.setattr(hidden, "change_of", change)

    assert_refused(lie, name)


def test_groups_are_chosen_by_counts_of_people() -> None:
    def lie(patch: Patch) -> None:
        patch.setattr(hidden, "CountUnits", CountRows)

    assert_refused(lie, "a chance")


def test_a_threshold_is_on_the_noise_of_its_count() -> None:
    def lie(patch: Patch) -> None:
        honest = hidden.threshold
        patch.setattr(hidden, "threshold", lambda noise, *rest: honest(_quieter(noise), *rest))
        by = hidden.GroupsByThreshold
        patch.setattr(hidden, "GroupsByThreshold", lambda *args: by(*args[:5], _quieter(args[5]), *args[6:]))

    assert_refused(lie, "a threshold")


def _quieter(noise: Any) -> Any:
    return replace(noise, exact_scale=noise.exact_scale / 2)


# Choices


def _drawn(**lie: Any) -> Lie:
    def told_of(patch: Patch) -> None:
        honest = choices._Question.draw
        patch.setattr(
            choices._Question, "draw", lambda self, *args, **more: replace(honest(self, *args, **more), **lie)
        )

    return told_of


CHOICES: dict[str, dict[str, Any]] = {
    "one row": {"rows": 1},
    "other neighbours": {"bounded": True},
    "the best": {"mechanism": EXACT},
    "free": {"cost": Cost(Fraction(0))},
    "twice the rate": {"epsilon": Fraction(2)},
}


@pytest.mark.parametrize("name", [*CHOSEN[:2], "a chance"])
@pytest.mark.parametrize("lie", CHOICES.values(), ids=CHOICES)
def test_choices_are_for_all_rows_of_a_person(name: str, lie: dict[str, Any]) -> None:
    assert_refused(_drawn(**lie), name)


def test_choices_by_noisy_counts_are_paid_for() -> None:
    assert_refused(_drawn(rows=1), "the top")
    assert_refused(
        lambda patch: patch.setattr(choices, "reach_of_counts", lambda _: Reach(1, Fraction(1), 1, 1)), "the top"
    )


def test_choices_in_many_groups_are_not_as_in_one() -> None:
    assert_refused(_drawn(one_group=True), "a chance")


def _search(change: Callable[[Any], Any]) -> Lie:
    def lie(patch: Patch) -> None:
        honest = auto_bounds.searches_of

        def searches_of(*args: Any) -> Any:
            found = honest(*args)
            return replace(found, searches=tuple(map(change, found.searches)))

        patch.setattr(plan, "searches_of", searches_of)

    return lie


@pytest.mark.parametrize(
    "change",
    [
        lambda each: replace(each, rows=1),
        lambda each: replace(each, bounded=True),
        lambda each: replace(each, epsilon=each.epsilon * 2),
    ],
)
def test_searches_are_for_all_rows_of_a_person(change: Any) -> None:
    assert_refused(_search(change), "bounds")


def test_a_search_has_limits_too() -> None:
    def lie(patch: Patch) -> None:
        honest = auto_bounds.ExactPlan
        patch.setattr(auto_bounds, "ExactPlan", lambda *args, **more: honest(*args, **{**more, "limits": None}))

    assert_refused(lie, "bounds")


def test_what_is_planned_with_chosen_bounds_costs_no_more_than_is_left() -> None:
    """It is found out after the search has run: what was charged stays charged, and nothing more is shown."""

    def lie(patch: Patch) -> None:
        honest = plan._Plans.settled

        def settled(self: Any, *args: Any) -> Any:
            whole = replace(self, rest=replace(self.rest, epsilon=self.rest.epsilon * 2))
            return honest(whole, replace(args[0], cost=Cost.of(Fraction(9), Fraction(1, 2))), *args[1:])

        patch.setattr(plan._Plans, "settled", settled)

    asked = session()
    with told(lie), pytest.raises(InternalError):
        asked.query(ASKED["bounds"][0], epsilon=1)


def test_lies_are_told_of_what_there_is() -> None:
    """Each kind of measurement is met; weights, which people in more groups have, in lies of their own."""
    people = dpsql.Table(FRAME, **FACTS, unit="pid", max_rows=16, max_groups=16)
    weighted = dpsql.Session({"t": people}, budget=dpsql.Budget(10, 1e-3))
    kinds = {type(weighted.explain("SELECT h FROM t GROUP BY h", epsilon=1, delta=1e-6)._release.selection).__name__}
    for sql, terms in ASKED.values():
        made = session().explain(sql, epsilon=1, **terms)._release
        kinds |= {type(each).__name__ for each in made.measurements}
        kinds |= {type(each.noise).__name__ for each in made.shares}
        kinds |= {type(part).__name__ for part in made.exact.parts}
        assert all(isinstance(grid, GridCounts) for grid in made.exact.grids)
        assert all(isinstance(draw, Draw) for draw in made.draws)
    laws = {"CubeLaplace", "SplitLaplace", "SharedLaplace", "RoundedGaussian"}
    measurements = {"Share", "Levels", "Draw", "ShownGroups", "GroupsByThreshold", "GroupsByChance", "GroupsByWeights"}
    assert kinds >= measurements | laws | {"LatticeShare", "UnitTotal", "UnitMean", "CountUnits", "CountDistinct"}
