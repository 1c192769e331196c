"""Sums of noisy coordinates that are held against a bound: their tails, and intervals given that they passed."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

from dpsql.accuracy import linear_combinations, pairs
from dpsql.accuracy.truncated_sums import FINE, tail_of_sum
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian, SplitLaplace
from dpsql.release.intervals.conditions import conditions, of_having
from dpsql.release.intervals.intervals import interval
from dpsql.release.intervals.shown_conditions import Window
from tests.measured import height_of
from tests.release.given_shown import released_of
from tests.release.test_intervals_of_chosen_rows import GAUSSIAN, HIDDEN, made_by, of_groups, shown

SCALE = Fraction(2**30)
T = np.array([0.0, 0.01, 0.3, 1, 2.5, 7, 20, 45])


@pytest.mark.parametrize("ratio", [1 / 200, 0.1, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("dimension", [2, 3, 6])
def test_tails_of_pairs_are_those_of_the_table(dimension: int, ratio: float):
    for noise, tail in (
        (CubeLaplace(SCALE, dimension), pairs.cube_pair_tail(dimension)),
        (SplitLaplace(SCALE, dimension), pairs.laplace_pair_tail),
    ):
        found = tail_of_sum(noise, (ratio, 1.0))
        assert found is not None
        law, step = found
        assert step == pytest.approx(float(SCALE) / FINE)
        wanted = np.log([tail(ratio, t) / 2 for t in T.tolist()])
        for end in law.log_above(T * FINE):
            assert end == pytest.approx(wanted, rel=1e-6, abs=2e-5)
        low, high = law.log_above(-T[1:] * FINE)
        assert np.exp(low) == pytest.approx(1 - np.exp(wanted[1:]), abs=1e-5)
        assert (low <= high).all()


@pytest.mark.parametrize(
    ("dimension", "weights"),
    [(3, (1.0, 0.5, 0.25)), (3, (1.0, 1.0, 1.0)), (4, (1.0, 0.99, 0.004)), (6, (1.0, 0.01, 0.01)), (5, (1.0,) * 5)],
)
def test_tails_of_more_than_two_on_the_cube_are_those_of_the_line(dimension: int, weights: tuple[float, ...]):
    """Where the chance is so much, and by draws."""
    found = tail_of_sum(CubeLaplace(SCALE, dimension), weights)
    assert found is not None
    law, step = found
    slack = step * law.slack  # type: ignore[attr-defined]
    assert slack == pytest.approx(sum(weights))
    for level in (0.1, 0.5, 0.95, 1 - 1e-6, 1 - 1e-9):
        t = linear_combinations.half_widths("cube", dimension, np.array([weights]).T, level) * FINE
        low, high = law.log_above(t)
        assert np.exp(low) == pytest.approx((1 - level) / 2, rel=3e-3)
        assert np.exp(high) == pytest.approx((1 - level) / 2, rel=3e-3)
    words = np.random.default_rng(dimension)
    draws = words.gamma(dimension + 1.0, size=100_000) * words.uniform(-1, 1, (dimension, 100_000))
    sums = np.array(weights) @ draws[: len(weights)]
    for t in (0.0, 0.5, 3.0, 9.0):
        chance = float(np.exp(law.log_above(np.array([t * FINE]))[0][0]))
        assert np.mean(sums > t) == pytest.approx(chance, abs=5 * (chance * (1 - chance) / 100_000) ** 0.5 + 1e-5)
    far = law.log_above(np.array([1e2, 1e3, 1e4, 1e5]) * FINE)[0]
    assert (np.diff(far) < 0).all()
    assert np.isfinite(far).all()


@pytest.mark.parametrize("terms", [3, 4, 12, 40])
def test_tails_of_equal_terms_of_independent_noise_are_those_of_two_gamma_variables(terms: int):
    """By quadrature over one of the two, and by draws."""
    found = tail_of_sum(SplitLaplace(SCALE, terms), (2.0,) * terms)
    assert found is not None
    law, step = found
    assert step == pytest.approx(2 * float(SCALE) / FINE)
    for t in (0.0, 0.3, 2.5, 7.0, 20.0, 60.0):
        ends = (0, terms + 60 * terms**0.5)
        wanted, _ = quad(lambda y, t=t: gamma.pdf(y, terms) * gamma.sf(t + y, terms), *ends, epsabs=0, limit=500)
        for end in law.log_above(np.array([t * FINE])):
            assert float(end[0]) == pytest.approx(np.log(wanted), rel=1e-6, abs=2e-4)
    words = np.random.default_rng(terms)
    sums = words.laplace(size=(100_000, terms)).sum(axis=1)
    for t in (0.0, 2.5, 7.0):
        chance = float(np.exp(law.log_above(np.array([t * FINE]))[0][0]))
        assert np.mean(sums > t) == pytest.approx(chance, abs=5 * (chance * (1 - chance) / 100_000) ** 0.5)


def test_sums_of_normal_laws_are_normal():
    law, step = tail_of_sum(DiscreteGaussian(SCALE**2, 3), (3.0, 4.0, 12.0))  # type: ignore[misc]
    t = np.array([13.0]) * float(SCALE) / step
    assert float(np.exp(law.log_above(t)[0][0])) == pytest.approx(0.15865525, rel=1e-5)


def test_what_is_not_known_is_not_guessed():
    assert tail_of_sum(SplitLaplace(SCALE, 3), (1.0, 1.0, 0.5)) is None
    assert tail_of_sum(CubeLaplace(SCALE, 3), (1.0, 1.0, 1e-9)) is None
    assert tail_of_sum(CubeLaplace(SCALE, 4), (1.0, 0.01, 0.01, 0.01)) is None
    assert tail_of_sum(SplitLaplace(SCALE, 2), (1.0, 1e-9)) is None
    assert tail_of_sum(object(), (1.0, 1.0)) is None


JOINT: list[tuple[str, dict[str, Any]]] = [
    ("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > 900", {}),
    ("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) BETWEEN 700 AND 900", {}),
    ("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g HAVING 500 > SUM(x) - COUNT(*)", {"strategy": "split"}),
    ("SELECT g, COUNT(*) AS n, AVG(x) AS a, SUM(x) AS s FROM t GROUP BY g HAVING -2 * SUM(x) < -900", {"epsilon": 3}),
    (
        "SELECT g, COUNT(*) AS n, AVG(x) AS a, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > 2000",
        GAUSSIAN,
    ),
    ("SELECT g, s FROM (SELECT g, COUNT(*) AS n, SUM(k) AS s FROM t GROUP BY g) WHERE s >= 90", {}),
    ("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > 2000", HIDDEN),
    ("SELECT g, AVG(x) AS a, AVG(k) AS b FROM t GROUP BY g HAVING SUM(x) + SUM(k) > 900", {}),
    ("SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g HAVING AVG(x) > 62", {}),
    ("SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g HAVING 50 >= AVG(x) AND COUNT(*) > 7", {}),
    ("SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g HAVING AVG(x) BETWEEN 42 AND 58", {"strategy": "split"}),
    ("SELECT g, n, a FROM (SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g) WHERE a < 70", GAUSSIAN),
    ("SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g HAVING AVG(x) > 55", HIDDEN),
    ("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > 62 * COUNT(*)", {}),
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("case", range(len(JOINT)))
def test_sums_that_were_compared_hold_given_that_the_row_is_shown(case: int):
    sql, options = JOINT[case]
    made = made_by(sql, **options)
    (share,) = made.shares
    words = np.random.default_rng(case)
    draws = 30_000
    d = len(share.places)
    for n, mean in ((3, 60), (10, 60), (16, 45), (24, 80), (40, 50)):
        if isinstance(share.noise, CubeLaplace):
            noise = words.gamma(d + 1.0, size=draws) * words.uniform(-1, 1, (d, draws))
        elif isinstance(share.noise, SplitLaplace):
            noise = words.laplace(size=(d, draws))
        else:
            noise = words.normal(size=(d, draws))
        total = {"x": n * mean, "k": n * mean / 10}
        exact = np.array([_exact(str(each.name), n, total) / each.unit for each in made.coordinates])
        steps = np.repeat(np.rint(exact)[:, None], draws, axis=1)
        steps[list(share.places)] += np.rint(noise * share.noise.scale)
        released = of_groups(made, steps)
        keep = np.arange(released.groups)
        if height_of(made):
            keep = np.flatnonzero(steps[made.lattice.selection] >= height_of(made))
        answer = shown(made, released.at(keep))
        assert not answer.given.unread
        if len(answer) < 100:
            continue
        truth = {"n": n, "s": total["k" if "(k)" in sql else "x"], "a": mean, "b": mean / 10}
        for name, expr in zip(answer.names, answer.exprs, strict=True):
            if name == "g":
                continue
            assert expr is not None
            low, high = interval(made, released.at(keep).at(answer.groups), expr, 0.95, answer.given)  # type: ignore[misc]
            near = 1e-4 * (1 + abs(truth[name]))
            share_held = np.mean((low - near <= truth[name]) & (truth[name] <= high + near))
            assert share_held >= 0.95 - 5 * (0.95 * 0.05 / len(answer)) ** 0.5, (name, n, share_held, len(answer))


def _exact(name: str, n: int, total: dict[str, float]) -> float:
    """A coordinate of n rows, by its name."""
    if "sum" not in name:
        return n
    centre = float(name.rpartition(" - ")[2].rstrip(")")) if " - " in name else 0.0
    return total["k" if "(k" in name else "x"] - centre * n


def test_far_from_the_bound_nothing_changes():
    """As wide as without a condition, but for what the line and the lattice differ by."""
    made = made_by("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > 900")
    (window,) = conditions(made, made.query.finish.having, *of_having(made))
    assert isinstance(window, Window)
    steps = np.array([[500 / made.coordinates[0].unit], [0.0]])
    released = released_of(made, steps)
    plain = interval(made, released, made.query.finish.outputs[2].expr, 0.95)
    answer = shown(made, of_groups(made, steps))
    found = interval(made, released, made.query.finish.outputs[2].expr, 0.95, answer.given)
    assert plain is not None
    assert found is not None
    assert found[1] - found[0] == pytest.approx(plain[1] - plain[0], rel=0.005)
    assert found[1] + found[0] == pytest.approx(plain[1] + plain[0], rel=0.005)
