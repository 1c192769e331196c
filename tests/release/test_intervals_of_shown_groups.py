"""Intervals hold at their level given that the group is shown: by exact sums over the noise, or by weighted draws of
the law that noise has given that the group passed its threshold, however unlikely that was."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from dpsql.plan.evaluation import evaluate
from dpsql.release.intervals.intervals import interval
from dpsql.release.output.estimate import estimate
from dpsql.release.release import Release
from tests.core.checks import Shape, U, calibrated
from tests.measured import height_of
from tests.release.given_shown import conditional_steps, exact_coverage, released_of

SHAPE = Shape(
    {"u": "int64", "x": "float64", "y": "float64", "g": "str"},
    {"bounds": {"x": (0, 100), "y": (-10, 10)}, "nullable": {"x": False, "y": False}},
)
EPSILONS = (0.1, 1, 3)


def made_by(sql: str, **options: Any) -> Release:
    declared = options.pop("declared", {})
    return calibrated(SHAPE.schema(**declared), sql, U, **{"delta": 1e-6, **options})


COUNTS = [
    ("SELECT g, COUNT(*) FROM t GROUP BY g", {}),
    ("SELECT g, COUNT(DISTINCT u) FROM t GROUP BY g", {"declared": {"unit": "u", "max_rows": 3, "max_groups": 2}}),
    ("SELECT g, COUNT(*) FROM t GROUP BY g", {"declared": {"unit": "u", "max_groups": 1, "max_rows_per_group": 2}}),
    (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 20) g, COUNT(*) FROM t GROUP BY g",
        {},
    ),
]


SHOWN = [
    pytest.param(
        case, mechanism, epsilon, marks=[pytest.mark.slow] if mechanism == "gaussian" and case in (0, 3) else []
    )
    for case in range(len(COUNTS))
    for mechanism in ("laplace", "gaussian")
    for epsilon in EPSILONS
]


@pytest.mark.parametrize(("case", "mechanism", "epsilon"), SHOWN)
def test_counts_hold_given_that_they_are_shown_whatever_they_are(case: int, mechanism: str, epsilon: float):
    sql, options = COUNTS[case]
    made = made_by(sql, epsilon=epsilon, mechanism=mechanism, **options)
    assert height_of(made)
    tau = height_of(made) / made.lattice.one_row
    near = np.unique(np.linspace(tau / 2, 1.5 * tau, 12).astype(int)).tolist()
    sizes = sorted({*range(1, 61, 1 if (mechanism, epsilon) == ("laplace", 1) else 7), *near, int(10 * tau)})
    for level in (0.5, 0.95, 0.99):
        worst = min((exact_coverage(made, n, level), n) for n in sizes)
        assert worst[0] >= level - 1e-9, (worst, level)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ends_are_the_exact_ones(epsilon: float):
    """One row more on either side would no longer fit, at each shown value."""
    made = made_by("SELECT g, COUNT(*) FROM t GROUP BY g", epsilon=epsilon)
    tau, a, below = height_of(made), float(np.exp(-epsilon)), float(made.selection.below)
    assert tau
    assert 0 < below < 1

    def above(t: int) -> float:
        return a**t / (1 + a) if t >= 0 else 1 - a ** (1 - t) / (1 + a)

    def reached(n: int) -> float:
        return below * above(tau - 1 - n) + (1 - below) * above(tau - n)

    for shown in range(tau - 1, tau + 40):
        low, high = (
            int(end[0])
            for end in interval(made, released_of(made, np.array([[shown]])), made.query.finish.outputs[1].expr, 0.95)  # type: ignore[union-attr]
        )
        sizes = range(1, shown + 200)
        fits = [
            n
            for n in sizes
            if above(shown - n) / reached(n) >= 0.025 and 1 - above(shown + 1 - n) / reached(n) >= 0.025
        ]
        assert (low, high) == (min(fits), max(fits)), shown


def test_the_first_values_above_a_threshold():
    made = made_by("SELECT g, COUNT(*) FROM t GROUP BY g")
    assert height_of(made) == 15
    low, high = interval(  # type: ignore[misc]
        made, released_of(made, np.arange(14, 21)[None]), made.query.finish.outputs[1].expr, 0.95
    )
    assert low.tolist() == [1, 1, 1, 1, 1, 16, 17]
    assert high.tolist() == [16, 18, 19, 20, 21, 22, 23]


JOINT = [
    ("SELECT g, COUNT(*), AVG(x), SUM(x) FROM t GROUP BY g", {}),
    ("SELECT g, COUNT(*), SUM(y), SUM(x) / COUNT(*), SUM(x) - 2 * SUM(y) FROM t GROUP BY g", {}),
    ("SELECT g, COUNT(*), AVG(x), VAR_POP(y) FROM t GROUP BY g", {}),
    ("SELECT g, AVG(x) FROM t GROUP BY g", {"strategy": "split"}),
    ("SELECT g, AVG(x), SUM(y) FROM t GROUP BY g", {"mechanism": "gaussian"}),
    ("SELECT g, COUNT(*), AVG(x) FROM t GROUP BY g", {"declared": {"unit": "u", "max_rows": 3, "max_groups": 2}}),
]


@pytest.mark.parametrize("case", range(len(JOINT)))
def test_what_has_noise_in_common_with_the_count_holds_too(case: int):
    _all_hold(case, 1, [2, 12], [0.9, 1.3], [0.7])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("case", range(len(JOINT)))
def test_what_has_noise_in_common_holds_at_every_size(case: int, epsilon: float):
    _all_hold(case, epsilon, range(1, 41, 6), np.linspace(0.7, 1.6, 5), [0.0, 0.8])


def _all_hold(case: int, epsilon: float, sizes: Iterable[int], of_threshold: Iterable[float], means: list[float]):
    sql, options = JOINT[case]
    made = made_by(sql, epsilon=epsilon, **options)
    words = np.random.default_rng(case)
    assert height_of(made)
    tau = height_of(made) / made.lattice.one_row
    for n, mean in itertools.product([*sizes, *(int(share * tau) for share in of_threshold)], means):
        misses_of(made, n, mean, words, 0.95)


def misses_of(made: Release, n: int, mean: float, words: np.random.Generator, level: float) -> None:
    """Every output of a group of n equal rows, `mean` of the way up all ranges, holds given that it is shown."""
    exact = exact_steps(made, n, mean)
    noise, weights = conditional_steps(made, float(height_of(made) - exact[made.lattice.selection]), words)  # type: ignore[operator]
    released = released_of(made, exact[:, None] + noise)
    truth = truths(made, exact)
    for output, right in zip(made.query.finish.outputs[1:], truth, strict=True):
        low, high = interval(made, released, output.expr, level)  # type: ignore[misc]
        near = 1e-6 * max(1, abs(right))
        held = (low - near <= right) & (right <= high + near)
        share = float((weights * held).sum() / weights.sum())
        spread = float(np.sqrt((weights**2).sum()) / weights.sum()) * (level * (1 - level)) ** 0.5
        assert share >= level - 5 * spread - 1e-9, (str(output.expr), n, mean, share)


def exact_steps(made: Release, n: int, mean: float) -> Any:
    """Coordinates of n rows that are all alike: counts n, values at a share of their ranges."""
    found = []
    for each in made.coordinates:
        name = str(each.name)
        if "sum of squares" in name:
            u = 2 * mean - 1
            found.append(round(n * (2 * u * u - 1) / each.unit))
        elif name.startswith("sum"):
            column = made.analysis.measured
            held = next(m.argument.range for m in column if m.sum is not None and str(m.aggregation.argument) in name)
            centred = float(held.upper - held.lower) * (mean - 0.5)
            value = (
                centred
                if " - " in name or " + " in name or held.lower == -held.upper
                else (float(held.lower) + mean * float(held.upper - held.lower))
            )
            found.append(round(n * value / each.unit))
        else:
            found.append(round(n / each.unit))
    return np.array(found, dtype=np.float64)


def truths(made: Release, exact: Any) -> list[float]:
    values = released_of(made, exact[:, None]).values
    slots = [None, *(estimate(each, values) for each in made.estimates)]
    return [float(evaluate(o.expr, lambda s: slots[s.index], 1).values[0]) for o in made.query.finish.outputs[1:]]  # type: ignore[arg-type, return-value]
