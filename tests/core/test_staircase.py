"""The staircase law: private for one integer and every shift, drawn exactly, refused for what is more than one integer.

Draws come from the operating system and have no seed: a test fails at p < 1e-9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from scipy import stats

import dpsql
from dpsql.accuracy.widths import half_width, half_widths
from dpsql.core import payment as paid
from dpsql.core.cost import Cost
from dpsql.core.mechanisms import samplers, staircase
from dpsql.core.mechanisms.grants import Grant
from dpsql.core.mechanisms.noise import CubeLaplace, Reach
from dpsql.core.mechanisms.staircase import Staircase
from dpsql.core.sensitivity import norms as reach
from dpsql.errors import InternalError
from dpsql.release import calibrate
from dpsql.release.intervals.intervals import interval
from dpsql.release.release import Release
from tests.core.checks import B, Shape, U, calibrated, each_group_by_itself
from tests.core.unit_checks import Question, people_stay_apart
from tests.lies import Check, Lie, Patch, assert_caught
from tests.release.given_shown import released_of

F = Fraction
FLOOR = 1e-9
LAWS = [
    Staircase(F(1), 1, 1),
    Staircase(F(1, 4), 5, 1),
    Staircase(F(1, 3), 7, 7),
    Staircase(F(2, 5), 12, 4),
    Staircase(F(3), 3, 2),
]
ids = pytest.mark.parametrize


def one(width: int) -> Reach:
    return Reach(width, F(width**2), 1, width, 1)


def stairs_down(noise: Staircase, x: int) -> int:
    """How often the stairs fall on the way from 0 to x: counted."""
    return sum(1 for m in range(1, abs(x) + 1) if m >= noise.inner and (m - noise.inner) % noise.width == 0)


def law(noise: Staircase, far: int) -> tuple[Any, Any]:
    """Whole numbers and their probabilities, of which those further out are next to nothing."""
    x = np.arange(-far, far + 1)
    chance = np.array([math.exp(-stairs_down(noise, k) / noise.exact_scale) for k in x.tolist()])
    return x, chance / chance.sum()


# Privacy


@ids("noise", LAWS, ids=str)
def test_no_shift_within_the_reach_moves_more_than_one_stair(noise: Staircase):
    down = {x: stairs_down(noise, x) for x in range(-6 * noise.width, 6 * noise.width + 1)}
    for shift in range(-noise.width, noise.width + 1):
        assert max(abs(down[x] - down[x + shift]) for x in down if x + shift in down) <= 1
    assert noise.loss(one(noise.width)) == Cost.of(1 / noise.exact_scale)


@ids("noise", LAWS, ids=str)
def test_a_larger_reach_costs_each_stair_that_it_can_go_down(noise: Staircase):
    down = {x: stairs_down(noise, x) for x in range(-9 * noise.width, 9 * noise.width + 1)}
    for width in (noise.width + 1, 2 * noise.width, 2 * noise.width + 1):
        most = max(abs(down[x] - down[x + width]) for x in down if x + width in down)
        assert noise.loss(one(width)).epsilon == most / noise.exact_scale


def test_several_integers_are_refused():
    """Two groups that move by half a stair each may both go down one: twice the epsilon."""
    noise = Staircase.calibrate(one(4), F(3))
    down = [stairs_down(noise, x) for x in range(-20, 21)]
    together = 2 * max(abs(down[i] - down[i + 2]) for i in range(len(down) - 2))
    assert together / noise.exact_scale > F(3)
    for more in (Reach(4, F(8), 1, 4, 2), Reach(4, F(32), 2, 4, 1), Reach(4, F(16), 1, 4), Reach(0, F(0), 0, 0, 1)):
        with pytest.raises(ValueError, match="one coordinate that a unit moves in one group"):
            noise.loss(more)
        with pytest.raises(ValueError, match="one coordinate that a unit moves in one group"):
            Staircase.calibrate(more, F(3))


@ids("epsilon", [F(1, 10), F(2), F(10), F(300), F(10**9), F(1234567891, 10**10), F(7, 3**40)], ids=str)
@ids("width", [1, 3, 1000, 2**20 + 1, 2**61])
def test_a_calibrated_law_costs_at_most_its_epsilon(width: int, epsilon: Fraction):
    noise = Staircase.calibrate(one(width), epsilon)
    assert (noise.width, noise.loss(one(width))) == (width, Cost.of(epsilon))
    assert 1 / noise.exact_scale <= epsilon
    assert 1 / noise.exact_scale >= epsilon * (1 - F(1, 2**50))
    assert noise.draw(3).shape == (1, 3)
    if width / epsilon < 2**60:
        assert Grant(epsilon).pure(Staircase, one(width)).cost == Cost.of(epsilon)


# The law


@ids("noise", LAWS, ids=str)
def test_draws_follow_the_law(noise: Staircase):
    x, chance = law(noise, 60 * noise.width)
    drawn = noise.draw(200_000)[0]
    values, counts = np.unique(drawn, return_counts=True)
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    likely = chance * len(drawn) >= 20
    expected = np.append(chance[likely], 1 - chance[likely].sum()) * len(drawn)
    found = np.array([seen.get(k, 0) for k in x[likely].tolist()])
    found = np.append(found, len(drawn) - found.sum())
    keep = expected > 1
    statistic = float(((found - expected)[keep] ** 2 / expected[keep]).sum())
    assert stats.chi2.sf(statistic, keep.sum() - 1) > FLOOR


@ids(("width", "inner", "scale"), [(5, 1, F(1, 4)), (2**61, 1, F(1, 40)), (9, 9, F(1)), (7, 3, F(10**6))])
def test_which_part_of_a_stair_is_decided_exactly(
    width: int, inner: int, scale: Fraction, monkeypatch: pytest.MonkeyPatch
):
    """Words just below c and above it, and the word of c itself with what comes after it."""
    with localcontext() as context:
        context.prec = 120
        a = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        bits = int(inner / (inner + a * (width - inner)) * 2**128)
    word, rest = divmod(bits, 2**64)
    words = [each for each in (0, word - 1, word + 1, 2**64 - 1) if 0 <= each < 2**64 and each != word]
    left = [words]

    def scripted(n: int) -> npt.NDArray[np.uint64]:
        found = left.pop(0)
        assert len(found) == n
        return np.array(found, np.uint64)

    monkeypatch.setattr(samplers, "random_words", scripted)
    assert samplers._on_inner(scale, width, inner, len(words)).tolist() == [each < word for each in words]
    if word < 2**64:
        for after, inside in ((rest - 1, True), (rest + 1, False)):
            if 0 <= after < 2**64:
                left.extend([[word], [after]])
                assert samplers._on_inner(scale, width, inner, 1).tolist() == [inside]
    assert not left


@ids("noise", LAWS, ids=str)
def test_tails_and_variance_are_sums_of_probabilities(noise: Staircase):
    x, chance = law(noise, 80 * noise.width)
    for t in (1, noise.inner, noise.inner + 1, noise.width, 2 * noise.width + 1, 5 * noise.width):
        assert float(noise.upper_tail(t)) == pytest.approx(float(chance[x >= t].sum()), rel=1e-9, abs=1e-13)
    assert noise.spread == pytest.approx(float((x.astype(float) ** 2 * chance).sum()), rel=1e-9)


@ids("epsilon", [1, 2.5, 4, 10, 16])
def test_the_variance_is_the_least_that_theory_has(epsilon: float):
    """On a fine lattice that of theorem 7; on a coarse one the least of all stairs, but for a percent."""
    b, width = math.exp(-epsilon), 10**7
    least = (2 ** (-2 / 3) * (b * (1 + b)) ** (2 / 3) + b) / (1 - b) ** 2
    assert Staircase.calibrate(one(width), F(epsilon)).spread / width**2 == pytest.approx(least, rel=1e-4)
    for coarse in (1, 2, 3, 7, 40):
        noise = Staircase.calibrate(one(coarse), F(epsilon))
        best = min(Staircase(noise.exact_scale, coarse, inner).spread for inner in range(1, coarse + 1))
        assert noise.spread <= 1.01 * best
        assert noise.spread <= CubeLaplace.calibrate(one(coarse), F(epsilon)).spread * (1 + 1e-9)


@ids("level", [0.01, 0.3, 0.5, 0.9, 0.95, 0.99, 1 - 1e-6, 1 - 1e-12])
@ids("noise", LAWS, ids=str)
def test_half_widths_are_the_least_that_hold(noise: Staircase, level: float):
    x, chance = law(noise, 160 * noise.width)
    found = half_width(noise, level)
    outside = float(chance[np.abs(x) > found].sum())
    assert outside <= (1 - level) * (1 + 1e-9)
    assert found == 0 or float(chance[np.abs(x) > found - 1].sum()) > (1 - level) * (1 - 1e-9)
    assert half_widths(noise, np.array([[2.0, -3.0]]), level).tolist() == [2 * found, 3 * found]


# In queries

SHAPE = Shape(
    {"u": "int64", "x": "float64", "y": "float64", "e": "int64", "g": "str"},
    {
        "bounds": {"x": (0, 100), "y": (-10, 10), "e": (-3, 3)},
        "nullable": {"x": False, "y": False, "e": False},
        "keys": {"g": ["a", "b"]},
    },
)
BY_STAIRS: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    ("SELECT SUM(x) FROM t", U, {}, {}),
    ("SELECT SUM(x) FROM t", B, {}, {}),
    ("SELECT SUM(e) FROM t", U, {}, {}),
    ("SELECT g, SUM(y) FROM t GROUP BY g", U, {}, {}),
    ("SELECT SUM(x) FROM t", U, {"unit": "u", "max_rows": 3}, {}),
    ("SELECT COUNT(*) FROM t", U, {"unit": "u", "max_rows": 4}, {}),
    ("SELECT g, COUNT(*) FROM t GROUP BY g", U, {"unit": "u", "max_groups": 1, "max_rows_per_group": 4}, {}),
    ("SELECT SUM(x) FROM t", U, {}, {"epsilon": 2.5}),
]
NOT_BY_STAIRS: list[tuple[str, Any, dict[str, Any], dict[str, Any]]] = [
    ("SELECT SUM(x) FROM t", U, {}, {"epsilon": 1}),
    ("SELECT SUM(x) FROM t", U, {}, {"mechanism": "laplace"}),
    ("SELECT COUNT(*) FROM t", U, {}, {}),
    ("SELECT AVG(x) FROM t", U, {}, {}),
    ("SELECT SUM(x), SUM(y) FROM t", U, {}, {}),
    ("SELECT g, SUM(y) FROM t GROUP BY g", B, {}, {}),
    ("SELECT g, SUM(x) FROM t GROUP BY g HAVING SUM(x) > 20", U, {}, {}),
    ("SELECT s FROM (SELECT g, SUM(x) AS s FROM t GROUP BY g) WHERE s > 20", U, {}, {}),
    ("SELECT g, COUNT(*) FROM t GROUP BY g", U, {"unit": "u", "max_groups": 2, "max_rows_per_group": 4}, {}),
    ("SELECT g, SUM(x) FROM t GROUP BY g", U, {"unit": "u", "max_rows": 2, "max_groups": 2}, {}),
    (
        "SELECT g, COUNT(*) FROM t GROUP BY g",
        U,
        {"unit": "u", "max_groups": 1, "max_rows_per_group": 4, "keys": {}},
        {"delta": 1e-6},
    ),
    ("SELECT g, SUM(x) FROM t GROUP BY ROLLUP (g)", U, {}, {}),
]


def made_by(sql: str, relation: Any, declared: dict[str, Any], how: dict[str, Any]) -> Release:
    return calibrated(SHAPE.schema(**declared), sql, relation, **{"epsilon": 10, **how})


@ids("case", BY_STAIRS, ids=str)
def test_one_integer_has_stairs_where_they_are_much_better(case: Any):
    made = made_by(*case)
    (share,) = made.shares
    assert isinstance(share.noise, Staircase)
    assert share.cost == Cost.of(made.allowed.pure)
    assert share.noise.spread < 0.8 * CubeLaplace.calibrate(share.reach, made.allowed.pure).spread


@ids("case", NOT_BY_STAIRS, ids=str)
def test_what_is_more_or_conditions_read_has_none(case: Any):
    made = made_by(*case)
    assert not any(isinstance(share.noise, Staircase) for share in made.shares)


@ids("level", [0.5, 0.95, 0.999])
@ids("case", BY_STAIRS, ids=str)
def test_intervals_hold_by_the_exact_law(case: Any, level: float):
    """Weighted by every value that noise can have; on fine lattices every 2^-16th of a stair."""
    made = made_by(*case)
    (share,) = made.shares
    noise, ((place, coordinate),) = share.noise, [each for each in enumerate(made.coordinates) if each[1].noisy]
    step = max(1, noise.width // 2**16)  # type: ignore[attr-defined]
    x = np.arange(-4 * noise.width // step, 4 * noise.width // step + 1) * step  # type: ignore[attr-defined]
    down = np.floor((np.abs(x) + noise.width - noise.inner) / noise.width)  # type: ignore[attr-defined]
    chance = np.exp(-down / float(noise.exact_scale))  # type: ignore[attr-defined]
    chance /= chance.sum()
    exact = 40.0
    steps = np.zeros((len(made.coordinates), len(x)))
    steps[place] = x + round(exact / coordinate.unit)
    ends = interval(made, released_of(made, steps), made.query.finish.outputs[-1].expr, level)
    assert ends is not None
    low, high = ends
    held = float(chance[(low - 1e-9 <= exact) & (exact <= high + 1e-9)].sum())
    assert held >= level - (1e-3 if step > 1 else 1e-9)
    if step > 1:
        assert held <= level + 1e-3


def test_answers_and_explanations_name_the_law():
    frame = pd.DataFrame({"x": np.linspace(0, 100, 1000)})
    told = dpsql.Session({"t": dpsql.Table(frame, bounds={"x": (0, 100)})}, budget=dpsql.Budget(100))
    text = str(told.explain("SELECT SUM(x) FROM t", epsilon=10))
    assert "staircase" in text
    (release,) = told.explain("SELECT SUM(x) FROM t", epsilon=10).to_dict()["releases"]
    assert (release["mechanism"], release["scale"]) == ("staircase", pytest.approx(10))
    off = [float(told.query("SELECT SUM(x) AS s FROM t", epsilon=10, fresh=True).item()) - 50_000 for _ in range(8)]
    assert max(map(abs, off)) < 250
    again = [told.query("SELECT SUM(x) AS s FROM t", epsilon=2.5).item() for _ in range(2)]
    assert again[0] == again[1]


# Planted lies


def take_several_groups_for_one(patch: Patch) -> None:
    """A unit in several groups has stairs all the same."""
    honest = reach.reach_of
    for module in (calibrate, paid):
        patch.setattr(module, "reach_of", lambda *args: replace(honest(*args), groups=1))


def forget_to_ask_for_one_integer(patch: Patch) -> None:
    """Stairs for whatever has one coordinate."""
    patch.setattr(staircase, "suits", lambda reach: reach.dimension == 1)
    patch.setattr(calibrate, "suits", lambda reach: reach.dimension == 1)


def make_stairs_a_step_too_narrow(patch: Patch) -> None:
    honest = Staircase.calibrate.__func__  # type: ignore[attr-defined]

    def narrower(cls: type[Staircase], reach: Reach, epsilon: Fraction) -> Staircase:
        made = honest(cls, reach, epsilon)
        return cls(made.exact_scale, made.width - 1, min(made.inner, made.width - 1), epsilon)

    patch.setattr(Staircase, "calibrate", classmethod(narrower))


def draw_inner_stairs_too_often(patch: Patch) -> None:
    honest = samplers._on_inner
    patch.setattr(samplers, "_on_inner", lambda scale, *args: honest(scale * F(9, 10), *args))


def draw_stairs_of_their_own_place(patch: Patch) -> None:
    """All places of a stair alike, whichever part they are of."""
    patch.setattr(samplers, "_on_inner", lambda _scale, width, inner, n: samplers.uniform_below(width, n) < inner)


def grouped_stairs() -> None:
    """All neighbours of two groups, exactly: how far stairs go down for what a person adds."""
    for how in ({"max_groups": 2, "max_rows_per_group": 2}, {"max_groups": 1, "max_rows_per_group": 2}):
        with each_group_by_itself():
            made = made_by("SELECT g, COUNT(*) FROM t GROUP BY g", U, {"unit": "u", **how}, {})
        noise = made.shares[0].noise
        most = how["max_rows_per_group"]
        moves = [(a, b) for a in range(most + 1) for b in range(most + 1) if how["max_groups"] == 2 or not a * b]
        for move in moves:
            worst = sum(_worst(noise, each) for each in move)
            assert worst <= 10 * (1 + 1e-12), (move, worst)


def _worst(noise: Any, moved: int) -> float:
    if isinstance(noise, Staircase):
        down = [stairs_down(noise, x) for x in range(-30, 31)]
        return float(max(abs(down[i] - down[i + moved]) for i in range(len(down) - moved)) / noise.exact_scale)
    return moved / noise.scale


GROUPED = Question("SELECT k, COUNT(*) FROM e GROUP BY k", {"max_groups": 2, "max_rows_per_group": 2}, {"epsilon": 20})


def drawn_stairs() -> None:
    test_draws_follow_the_law(LAWS[1])


def sums() -> None:
    calibrated(SHAPE.schema(), "SELECT SUM(e) FROM t", U, epsilon=10)


LIES: list[tuple[Lie, Check, type[BaseException]]] = [
    (take_several_groups_for_one, grouped_stairs, AssertionError),
    (take_several_groups_for_one, people_stay_apart(GROUPED), AssertionError),
    (forget_to_ask_for_one_integer, grouped_stairs, AssertionError),
    (make_stairs_a_step_too_narrow, sums, InternalError),
    (draw_inner_stairs_too_often, drawn_stairs, AssertionError),
    (draw_stairs_of_their_own_place, drawn_stairs, AssertionError),
]


@ids(("lie", "check", "by"), LIES, ids=lambda each: each.__name__)
def test_each_lie_is_caught(lie: Lie, check: Callable[[], None], by: type[BaseException]):
    assert_caught(lie, check, by=by)


def test_a_release_with_stairs_for_several_groups_is_refused():
    """Seen once more before it is charged."""
    limits = {"unit": "u", "max_groups": 2, "max_rows_per_group": 2}
    with each_group_by_itself():
        made = made_by("SELECT g, COUNT(*) FROM t GROUP BY g", U, limits, {})
    (share,) = made.shares
    lie = Staircase.calibrate(one(2), F(10))
    vector = paid.NoisyVector(share.places, lie, Cost.of(F(10)))
    asked = paid.PaidRequest(made.exact, made.analysis, tuple(each.terms for each in made.coordinates))
    with pytest.raises(InternalError, match="smaller than its charge"):
        paid._assert_noise(asked, vector)
