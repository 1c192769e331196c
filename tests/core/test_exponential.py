"""Private selection: the samplers against the laws, the laws against sums over all orders, and both against neighbours.

A chi-square test fails at p < 1e-9 (see `test_sampling`), so no seed is needed for the samplers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.accuracy.choices import (
    Law,
    expected_gap,
    exponential_excess,
    exponential_law,
    gap_exceeded,
    permute_and_flip_excess,
    permute_and_flip_law,
    success_probability,
    textbook_gap,
    worst_gap,
)
from dpsql.core.mechanisms import exponential as choosing
from dpsql.core.mechanisms import samplers
from dpsql.core.mechanisms.exponential import Chooser, exponential, gaps_of, permute_and_flip, top_k
from tests.core.test_samplers import FLOOR, p_value

F = Fraction
Array = npt.NDArray[Any]
Excess = Callable[[int, Fraction, int], float]
DRAWS = 200_000
MECHANISMS = [
    pytest.param(permute_and_flip, permute_and_flip_law, id="permute_and_flip"),
    pytest.param(exponential, exponential_law, id="exponential"),
]
EXCESSES = [
    pytest.param(permute_and_flip_excess, permute_and_flip_law, id="permute_and_flip"),
    pytest.param(exponential_excess, exponential_law, id="exponential"),
]
GAPS = [
    ([0], F(1)),
    ([0, 0, 0], F(3)),
    ([3, 0, 1, 1, 7], F(1, 2)),
    ([0, 10**6, 2, 10**9], F(1, 3)),
    ([5, 4, 3, 2, 1, 0], F(1, 10)),
    (list(range(40)), F(1, 20)),
]


def drawn(chooser: Chooser, gaps: Array, rate: Fraction, draws: int = DRAWS) -> Array:
    """How often each candidate is chosen."""
    return np.bincount(chooser(np.tile(gaps, (draws, 1)), rate), minlength=len(gaps))


def fits(observed: Array, law: Array) -> bool:
    """Whether the chi-square test accepts; with one likely cell only, whether the rest is as rare as it should be."""
    possible = law * observed.sum() >= 100
    if possible.sum() < 2:
        expected = float(law[~possible].sum() * observed.sum())
        return bool(abs(observed[~possible].sum() - expected) <= 10 + 10 * math.sqrt(expected))
    return p_value(observed, law) > FLOOR


# Samplers


@pytest.mark.parametrize(("gaps", "rate"), GAPS)
@pytest.mark.parametrize(("chooser", "law"), MECHANISMS)
def test_draws_follow_the_law(chooser: Chooser, law: Law, gaps: list[int], rate: Fraction):
    array = np.array(gaps)
    assert fits(drawn(chooser, array, rate), law(array, rate))


@pytest.mark.parametrize(("chooser", "law"), MECHANISMS)
def test_draws_where_integers_decide(chooser: Chooser, law: Law, monkeypatch: pytest.MonkeyPatch):
    """With the margins as wide as the floats nothing is left to them."""
    monkeypatch.setattr(samplers, "_MARGIN", 2.0)
    monkeypatch.setattr(choosing, "_MARGIN", 2.0)
    gaps = np.array([2, 0, 3, 0, 9, 1])
    observed = drawn(chooser, gaps, F(2, 5), 8_000)
    assert fits(observed, law(gaps, F(2, 5)))


def test_floats_and_integers_agree(monkeypatch: pytest.MonkeyPatch):
    """The same random words give the same places, by floats and by integers."""
    groups, candidates = 300, 30
    gaps = np.random.default_rng(1).integers(0, 40, (groups, candidates))
    gaps[np.arange(groups), np.arange(groups) % candidates] = 0
    allowed = (np.random.default_rng(2).random(gaps.shape) < 0.6) | (gaps == 0)
    words = samplers.random_words(groups)
    monkeypatch.setattr(choosing, "random_words", lambda n: words[:n])
    by_floats = exponential(gaps, F(1, 7), allowed)
    monkeypatch.setattr(choosing, "_MARGIN", 2.0)
    assert (exponential(gaps, F(1, 7), allowed) == by_floats).all()


def test_exact_law_brackets_enclose_the_cumulative_probabilities():
    """At each precision, and closer the higher it is; against decimals of floats at the lowest."""
    gaps, rate = [4, 0, 1, 90, 1, 2000], F(3, 10)
    law = choosing._ExactLaw(gaps, rate)
    cumulative = np.cumsum(exponential_law(np.array(gaps), rate))
    for place in range(len(gaps)):
        finest = [F(end, 2**400) for end in law.bracket(place, 400)]
        for precision in (72, 136, 200):
            low, high = (F(end, 2**precision) for end in law.bracket(place, precision))
            assert low <= finest[0] <= finest[1] <= high
            assert high - low < F(8, 2**precision)
        assert math.isclose(finest[0], cumulative[place], rel_tol=1e-12)


@pytest.mark.parametrize(("chooser", "law"), MECHANISMS)
def test_only_allowed_candidates_are_chosen(chooser: Chooser, law: Law):
    gaps = np.array([0, 0, 1, 2, 0, 5])
    allowed = np.array([False, True, True, False, False, True])
    places = chooser(np.tile(gaps, (DRAWS, 1)), F(1, 2), np.tile(allowed, (DRAWS, 1)))
    observed = np.bincount(places, minlength=6)
    assert not observed[~allowed].any()
    assert fits(observed[allowed], law(gaps[allowed], F(1, 2)))


@pytest.mark.parametrize(("chooser", "law"), MECHANISMS)
def test_groups_are_drawn_each_by_its_own_gaps(chooser: Chooser, law: Law):
    """In turns, over several batches."""
    kinds = np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [9, 9, 0, 9, 9]])
    places = chooser(np.tile(kinds, (DRAWS // 2, 1)), F(1, 2))
    for i, kind in enumerate(kinds):
        assert fits(np.bincount(places[i::3], minlength=5), law(kind, F(1, 2)))
    pairs = places[0::3] * 5 + places[1::3]
    assert fits(np.bincount(pairs, minlength=25), np.outer(law(kinds[0], F(1, 2)), law(kinds[1], F(1, 2))).reshape(-1))


@pytest.mark.parametrize(("chooser", "law"), MECHANISMS)
@pytest.mark.parametrize(
    ("gaps", "rate", "like"),
    [
        ([0, 10**30, 2 * 10**30], F(1, 10**30), [0, 1, 2]),
        ([0, 2**61, 2**62], F(1, 2**61), [0, 1, 2]),
        ([0, 1, 2], F(1, 10**400), [0, 0, 0]),
        ([0, 0, 1], F(10**400), [0, 0, 10**6]),
        ([0, 10**400, 0], F(1, 10**3), [0, 10**6, 0]),
    ],
)
def test_numbers_of_any_size(chooser: Chooser, law: Law, gaps: list[int], rate: Fraction, like: list[int]):
    array = np.array(gaps, dtype=object if max(gaps) > 2**62 else np.int64)
    assert fits(drawn(chooser, array, rate, 20_000), law(np.array(like), F(1)))


@pytest.mark.parametrize("chooser", [permute_and_flip, exponential])
def test_no_groups(chooser: Chooser):
    assert chooser(np.zeros((0, 3), np.int64), F(1)).shape == (0,)


@pytest.mark.parametrize("chooser", [permute_and_flip, exponential])
@pytest.mark.parametrize(
    ("gaps", "rate", "allowed"),
    [
        ([[1, 2]], F(1), None),
        ([[0, -1]], F(1), None),
        ([[0, 1], [1, 1]], F(1), None),
        ([[0, 1]], F(0), None),
        ([[0, 1]], F(-1), None),
        ([[0.0, 1.0]], F(1), None),
        ([0, 1], F(1), None),
        ([[]], F(1), None),
        ([[0, 1]], F(1), [[False, True]]),
    ],
)
def test_refused_arguments(chooser: Chooser, gaps: Any, rate: Fraction, allowed: Any):
    with pytest.raises(ValueError):
        chooser(np.array(gaps), rate, None if allowed is None else np.array(allowed))


def test_gaps_of_large_counts():
    counts = np.array([[-(2**62), 2**62, 0], [1, 2, 3]])
    assert gaps_of(counts).tolist() == [[2**63, 0, 2**62], [2, 1, 0]]
    assert gaps_of(np.array([[5, 3], [0, 4]])).tolist() == [[0, 2], [4, 0]]


# Several of the best


@pytest.mark.parametrize(("chooser", "law"), MECHANISMS)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_top_k_follows_the_law_of_peeling(chooser: Chooser, law: Law, k: int):
    counts, rate = [7, 4, 6, 6], F(1, 3)
    chosen = top_k(np.tile(counts, (DRAWS // 2, 1)), k, rate, chooser)
    assert chosen.shape == (DRAWS // 2, k)
    orders = list(permutations(range(4), k))
    probabilities = np.array([peeling_probability(law, counts, rate, order) for order in orders])
    assert math.isclose(probabilities.sum(), 1)
    codes = {sum(place * 4**i for i, place in enumerate(order)): n for n, order in enumerate(orders)}
    observed = np.zeros(len(orders), int)
    for code, times in zip(*np.unique(chosen @ 4 ** np.arange(k), return_counts=True), strict=True):
        observed[codes[int(code)]] += times
    assert fits(observed, probabilities)


def peeling_probability(law: Law, counts: list[int], rate: Fraction, order: tuple[int, ...]) -> float:
    left, probability = list(range(len(counts))), 1.0
    for place in order:
        scores = np.array([counts[i] for i in left])
        probability *= law(scores.max() - scores, rate)[left.index(place)]
        left.remove(place)
    return probability


@pytest.mark.parametrize("law", [permute_and_flip_law, exponential_law])
def test_top_k_costs_k_draws(law: Law):
    """Every order in which 1, 2 or 3 of 4 can be chosen, for a row added; each draw is of epsilon 1."""
    pick = random.Random(9)
    for k in (1, 2, 3):
        losses = []
        for _ in range(6):
            counts = [pick.choice((0, 1, 3, 9)) for _ in range(4)]
            other = [count + (i == 0) for i, count in enumerate(counts)]
            for order in permutations(range(4), k):
                ratio = peeling_probability(law, counts, F(1), order) / peeling_probability(law, other, F(1), order)
                losses.append(abs(math.log(ratio)))
        assert 0.3 * k < max(losses) <= k * (1 + 1e-12)


@pytest.mark.parametrize("k", [0, 3])
def test_top_k_refuses(k: int):
    with pytest.raises(ValueError, match="between 1 and the number"):
        top_k(np.array([[1, 2]]), k, F(1), exponential)


# Laws


@pytest.mark.parametrize("seed", range(20))
def test_permute_and_flip_law_is_the_mean_over_all_orders(seed: int):
    pick = random.Random(seed)
    gaps = [0, *(pick.randrange(6) for _ in range(pick.randrange(6)))]
    pick.shuffle(gaps)
    rate = F(pick.randrange(1, 20), 8)
    p = [math.exp(-gap * float(rate)) for gap in gaps]
    sums = [0.0] * len(gaps)
    for order in permutations(range(len(gaps))):
        reached = 1.0
        for i in order:
            sums[i] += reached * p[i]
            reached *= 1 - p[i]
    expected = np.array(sums) / math.factorial(len(gaps))
    assert np.allclose(permute_and_flip_law(np.array(gaps), rate), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("candidates", "most"), [(70, 3), (300, 30), (900, 0), (2000, 200)])
def test_permute_and_flip_law_of_many(candidates: int, most: int):
    """Against the law of the number of other successes, one candidate after the other."""
    gaps = np.random.default_rng(candidates).integers(0, most + 1, candidates)
    gaps[7] = 0
    law = permute_and_flip_law(gaps, F(1, 10))
    assert math.isclose(law.sum(), 1, rel_tol=1e-11)
    p = np.exp(-gaps / 10)
    for i in (0, 7, candidates - 1):
        successes = np.array([1.0])
        for q in np.delete(p, i):
            successes = np.append(successes * (1 - q), 0) + np.append(0, successes * q)
        assert math.isclose(law[i], p[i] * (successes / np.arange(1, candidates + 1)).sum(), rel_tol=1e-9)


@pytest.mark.parametrize("law", [permute_and_flip_law, exponential_law])
def test_laws_refuse(law: Law):
    for gaps, rate in (([1, 2], F(1)), ([0, 1], F(0)), ([[0]], F(1)), ([], F(1))):
        with pytest.raises(ValueError, match="minimum 0"):
            law(np.array(gaps, dtype=int), rate)


# Privacy: laws of neighbours


@dataclass(frozen=True)
class Setting:
    """A mechanism and how a neighbour differs; `rate` is what it claims for epsilon 1."""

    law: Law
    bounded: bool
    rate: Fraction


def tables() -> Iterator[Array]:
    pick = random.Random(5)
    for candidates in (2, 3, 4, 5, 9):
        for _ in range(15):
            yield np.array([pick.choice((0, 1, 2, 3, 4, 9, 20)) for _ in range(candidates)])


def neighbours(counts: Array, bounded: bool) -> Iterator[Array]:
    """A row added to one candidate; or moved from one to another."""
    unit = np.eye(len(counts), dtype=int)
    for i, row in enumerate(unit):
        if not bounded:
            yield counts + row
        elif counts[i]:
            yield from (counts - row + other for j, other in enumerate(unit) if j != i)


def pairs(setting: Setting) -> Iterator[tuple[Array, Array]]:
    """Laws of neighbours, either way round; the scores are twice the counts, so that Delta is 2."""
    for counts in tables():
        here = setting.law(2 * (counts.max() - counts), setting.rate)
        for other in neighbours(counts, setting.bounded):
            there = setting.law(2 * (other.max() - other), setting.rate)
            yield here, there
            yield there, here


def largest_loss(setting: Setting) -> float:
    return max(float(np.log(first / second).max()) for first, second in pairs(setting))


def largest_rho(setting: Setting) -> float:
    """The largest Renyi divergence of order a, divided by a."""
    orders = np.array([1.001, 1.5, 2, 4, 16, 100])
    return max(
        float(np.log((first * (first / second) ** (a - 1)).sum()) / (a - 1) / a)
        for first, second in pairs(setting)
        for a in orders
    )


SETTINGS = [
    pytest.param(
        Setting(law, bounded, F(1, 4) if bounded else F(1, 2)), id=f"{name}-{'changed' if bounded else 'added'}"
    )
    for name, law in (("permute_and_flip", permute_and_flip_law), ("exponential", exponential_law))
    for bounded in (False, True)
]


@pytest.mark.parametrize("setting", SETTINGS)
def test_neighbours_are_within_epsilon(setting: Setting):
    """And not far below it, so that the check has teeth."""
    assert 0.8 < largest_loss(setting) <= 1 + 1e-12


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_rate_doubled_is_caught(setting: Setting):
    """Which is also a sensitivity halved, and the monotone rate for changed rows."""
    assert largest_loss(Setting(setting.law, setting.bounded, 2 * setting.rate)) > 1.5


@pytest.mark.parametrize("bounded", [False, True])
def test_bounded_range_of_the_exponential_mechanism(bounded: bool):
    rate = F(1, 4) if bounded else F(1, 2)
    assert 0.11 < largest_rho(Setting(exponential_law, bounded, rate)) <= 1 / 8 + 1e-12
    assert largest_rho(Setting(exponential_law, bounded, 2 * rate)) > 1 / 8


def test_permute_and_flip_is_within_half_epsilon_squared_but_not_an_eighth():
    """Why the smaller cost is not claimed for it."""
    losses = [
        largest_rho(Setting(permute_and_flip_law, bounded, rate)) for bounded, rate in ((0, F(1, 2)), (1, F(1, 4)))
    ]
    assert 1 / 8 < max(losses) <= 1 / 2


# Accuracy


@pytest.mark.parametrize(
    ("rate", "by_exponential", "by_permute_and_flip"),
    [(F(44, 100), 0.36, 0.43), (F(85, 100), 0.57, 0.68), (F(226, 100), 0.90, 0.94)],
)
def test_success_with_ten_candidates(rate: Fraction, by_exponential: float, by_permute_and_flip: float):
    """Gaps 0 to 9: permute-and-flip finds the best more often."""
    gaps = np.arange(10)
    assert round(success_probability(gaps, exponential_law(gaps, rate)), 2) == by_exponential
    assert round(success_probability(gaps, permute_and_flip_law(gaps, rate)), 2) == by_permute_and_flip


def test_accuracy_of_one_choice():
    gaps, law = np.array([4, 0, 1, 0, 2]), np.array([0.05, 0.4, 0.2, 0.25, 0.1])
    assert math.isclose(success_probability(gaps, law), 0.65)
    assert math.isclose(expected_gap(gaps, law), 0.6)
    assert [gap_exceeded(gaps, law, beta) for beta in (0.01, 0.06, 0.16, 0.36)] == [4, 2, 1, 0]


@pytest.mark.parametrize("law", [permute_and_flip_law, exponential_law])
def test_gap_exceeded_is_the_least(law: Law):
    pick = np.random.default_rng(3)
    for _ in range(50):
        gaps = pick.integers(0, 30, 12)
        gaps -= gaps.min()
        probabilities = law(gaps, F(1, 5))
        for beta in (0.5, 0.1, 0.01):
            t = gap_exceeded(gaps, probabilities, beta)
            assert probabilities[gaps > t].sum() <= beta
            assert t == 0 or probabilities[gaps > t - 1].sum() > beta


@pytest.mark.parametrize(("excess", "law"), EXCESSES)
def test_no_data_exceed_the_worst_case(excess: Excess, law: Law):
    pick = np.random.default_rng(4)
    for _ in range(200):
        candidates, rate = int(pick.integers(1, 9)), F(int(pick.integers(1, 20)), 10)
        gaps = pick.integers(0, 8, candidates)
        gaps -= gaps.min()
        probabilities = law(gaps, rate)
        for t in range(8):
            assert probabilities[gaps > t].sum() <= excess(candidates, rate, t) * (1 + 1e-12)


@pytest.mark.parametrize(("excess", "law"), EXCESSES)
@pytest.mark.parametrize("candidates", [2, 3, 10, 60, 1000])
@pytest.mark.parametrize("t", [0, 1, 5, 40])
def test_the_worst_data_reach_the_worst_case(excess: Excess, law: Law, candidates: int, t: int):
    gaps = np.array([0] + [t + 1] * (candidates - 1))
    probabilities = law(gaps, F(1, 2))
    assert math.isclose(probabilities[1:].sum(), excess(candidates, F(1, 2), t), rel_tol=1e-9)


@pytest.mark.parametrize(("excess", "law"), EXCESSES)
@pytest.mark.parametrize("candidates", [1, 2, 10, 65_536])
@pytest.mark.parametrize("beta", [0.5, 0.05, 1e-9])
def test_worst_gap_is_the_least_and_below_the_textbook_bound(excess: Excess, law: Law, candidates: int, beta: float):
    for rate in (F(1, 100), F(1, 2), F(5)):
        t = worst_gap(excess, candidates, rate, beta)
        assert excess(candidates, rate, t) <= beta
        assert t == 0 or excess(candidates, rate, t - 1) > beta
        assert t <= textbook_gap(candidates, rate, beta)


def test_permute_and_flip_is_never_worse():
    """Of any gap, given the data and in the worst case (McKenna, Sheldon 2020)."""
    pick = np.random.default_rng(6)
    for _ in range(200):
        gaps, rate = pick.integers(0, 12, int(pick.integers(2, 12))), F(int(pick.integers(1, 30)), 20)
        gaps -= gaps.min()
        better, worse = permute_and_flip_law(gaps, rate), exponential_law(gaps, rate)
        assert expected_gap(gaps, better) <= expected_gap(gaps, worse) + 1e-12
        for t in range(12):
            assert better[gaps > t].sum() <= worse[gaps > t].sum() + 1e-12
            assert permute_and_flip_excess(len(gaps), rate, t) <= exponential_excess(len(gaps), rate, t) + 1e-12


def test_worst_gap_refuses():
    for candidates, rate, beta in ((0, F(1), 0.1), (2, F(0), 0.1), (2, F(1), 0.0)):
        with pytest.raises(ValueError, match="positive"):
            worst_gap(exponential_excess, candidates, rate, beta)
