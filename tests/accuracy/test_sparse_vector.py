"""AboveThreshold: draws against the law, the law against sums of its own, and the law against neighbours."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

from tests.accuracy import sparse_vector
from tests.accuracy.sparse_vector import first_below, first_below_law, threshold_noise
from tests.core.test_samplers import FLOOR, p_value

F = Fraction
Array = npt.NDArray[Any]
DRAWS = 10_000


@pytest.mark.parametrize(
    ("counts", "threshold", "how"),
    [
        ([9, 7, 4, 2, 0], 4, {"epsilon": F(1), "sensitivity": 1, "monotone": True}),
        ([9, 7, 4, 2, 0], 4, {"epsilon": F(1), "sensitivity": 2, "monotone": False, "split": F(1, 4)}),
        ([5, 5, 5], -20, {"epsilon": F(1, 2), "sensitivity": 1, "monotone": True}),
        ([3], 3, {"epsilon": F(2), "sensitivity": 3, "monotone": False}),
    ],
)
def test_draws_follow_the_law(counts: list[int], threshold: int, how: dict[str, Any]):
    array = np.array(counts)
    answers = [first_below(array, threshold, **how) for _ in range(DRAWS)]
    observed = np.bincount(answers, minlength=len(counts) + 1)
    assert len(observed) == len(counts) + 1
    assert p_value(observed, first_below_law(array, threshold, **how)) > FLOOR


def slow_law(counts: list[int], threshold: int, first: Fraction, second: Fraction) -> list[Any]:
    """Probabilities in 40 digits, term by term, for scales of the threshold's and of a query's noise."""
    with mpmath.workdps(40):
        a, b = (mpmath.exp(-mpmath.mpf(s.denominator) / s.numerator) for s in (first, second))

        def at_most(t: int) -> Any:
            return 1 - b ** (t + 1) / (1 + b) if t >= 0 else b**-t / (1 + b)

        answers = [mpmath.mpf(0)] * (len(counts) + 1)
        for z in range(-1000, 1001):
            reached = (1 - a) / (1 + a) * a ** abs(z)
            for i, count in enumerate(counts):
                answers[i] += reached * at_most(threshold + z - count)
                reached *= 1 - at_most(threshold + z - count)
            answers[-1] += reached
        return answers


@pytest.mark.parametrize("seed", range(8))
def test_the_law_is_the_sum_over_the_thresholds_noise(seed: int):
    pick = random.Random(seed)
    counts = sorted((pick.randrange(30) for _ in range(pick.randrange(1, 5))), reverse=True)
    epsilon, share, threshold = F(pick.randrange(1, 5), 2), F(pick.randrange(1, 6), 6), pick.randrange(20)
    steps, monotone = 1 + seed % 3, bool(seed % 2)
    law = first_below_law(np.array(counts), threshold, epsilon, sensitivity=steps, monotone=monotone, split=share)
    of_query = (1 if monotone else 2) * steps / (epsilon * (1 - share))
    for mine, theirs in zip(
        law.tolist(), slow_law(counts, threshold, steps / (epsilon * share), of_query), strict=True
    ):
        assert math.isclose(mine, float(theirs), rel_tol=1e-9)


# Privacy


def tables() -> Iterator[tuple[Array, int]]:
    """Counts that fall, at thresholds from far below to far above."""
    pick = random.Random(8)
    for _ in range(40):
        top = pick.choice((1, 4, 30))
        counts = sorted((pick.randrange(top + 1) for _ in range(pick.randrange(1, 6))), reverse=True)
        yield np.array(counts), pick.randrange(-25, 45)


def neighbours(counts: Array, sensitivity: int, monotone: bool) -> Iterator[Array]:
    """All the same way or each either way; the extreme ones, and some between."""
    pick = random.Random(int(counts.sum()))
    least = 0 if monotone else -sensitivity
    for i in range(len(counts) + 1):
        yield counts + np.where(np.arange(len(counts)) < i, sensitivity, least)
        yield counts + np.where(np.arange(len(counts)) < i, least, sensitivity)
    for i in range(len(counts)):
        yield counts + np.where(np.arange(len(counts)) == i, least, sensitivity)
        yield counts + np.array([pick.randint(least, sensitivity) for _ in counts])


def largest_loss(real: tuple[int, bool], claimed: tuple[int, bool], split: Fraction | None = None) -> float:
    """Over tables and neighbours of the real sensitivity and direction, with noise for those claimed; epsilon is 1."""
    sensitivity, monotone = claimed
    losses = []
    for counts, threshold in tables():
        law = first_below_law(counts, threshold, F(1), sensitivity=sensitivity, monotone=monotone, split=split)
        for other in neighbours(counts, *real):
            same = first_below_law(other, threshold, F(1), sensitivity=sensitivity, monotone=monotone, split=split)
            losses.append(np.abs(np.log(law / same)).max())
    return float(max(losses))


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("split", [None, F(1, 3)])
def test_neighbours_are_within_epsilon(sensitivity: int, monotone: bool, split: Fraction | None):
    change = (sensitivity, monotone)
    assert 0.85 < largest_loss(change, change, split) <= 1 + 1e-9


def test_a_sensitivity_halved_is_caught():
    assert largest_loss((2, True), (1, True)) > 1.5
    assert largest_loss((2, False), (1, False)) > 1.5


def test_changed_rows_need_twice_the_noise_of_queries():
    assert largest_loss((1, False), (1, True)) > 1.3


def test_halved_noise_is_caught(monkeypatch: pytest.MonkeyPatch):
    """Of the queries, and of the threshold."""

    def halved(which: int) -> Any:
        def noises(*change: Any) -> Any:
            laws = list(threshold_noise(*change))
            laws[which] = replace(laws[which], exact_scale=laws[which].exact_scale / 2)
            return laws

        return noises

    for which in (0, 1):
        monkeypatch.setattr(sparse_vector, "threshold_noise", halved(which))
        assert largest_loss((1, True), (1, True)) > 1.2


# Noise


def test_noise_of_each_kind():
    """Epsilon 1 and Delta 3: scales of 6 and 6; of 39 / 5 and 39 / 4 where counts move either way."""
    laws = [threshold_noise(F(1), 3, monotone, None) for monotone in (True, False)]
    assert [law.exact_scale for law in laws[0]] == [6, 6]
    assert [law.exact_scale for law in laws[1]] == [F(39, 5), F(39, 4)]


@pytest.mark.parametrize("monotone", [True, False])
def test_the_split_has_the_least_variance(monotone: bool):
    def variance(split: Fraction | None) -> float:
        return sum(law.scale**2 for law in threshold_noise(F(1), 1, monotone, split))

    others = [variance(F(i, 100)) for i in range(1, 100)]
    assert variance(None) <= min(others) * 1.001


def test_a_clear_answer_is_found():
    counts = np.array([10**9, 10**8, 10**7, 5, 0])
    assert first_below(counts, 10**6, F(1), sensitivity=1, monotone=True) == 3
    assert first_below(counts[:3], 10**6, F(1), sensitivity=1, monotone=True) == 3
    assert first_below(counts[:0], 10**6, F(1), sensitivity=1, monotone=True) == 0
    assert first_below(counts.astype(object) * 10**30, 10**20, F(1), sensitivity=1, monotone=True) == 4


@pytest.mark.parametrize(
    ("counts", "epsilon", "sensitivity", "split"),
    [
        ([1], F(0), 1, None),
        ([1], F(1), 0, None),
        ([1], F(1), 1, F(1)),
        ([1], F(1), 1, F(0)),
        ([[1]], F(1), 1, None),
        ([0.5], F(1), 1, None),
    ],
)
def test_refused_arguments(counts: Any, epsilon: Fraction, sensitivity: int, split: Fraction | None):
    with pytest.raises(ValueError):
        first_below(np.array(counts), 1, epsilon, sensitivity=sensitivity, monotone=True, split=split)
