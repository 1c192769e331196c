"""Choosing the groups that are shown: the four inequalities of differential privacy in exact arithmetic, the optimal
chances against the paper's formulas in decimals, thresholds for units in several groups, and draws.

Draws come from the operating system and have no seed: a binomial test fails at p < 1e-9.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsql.core.loss import PrivacyLoss
from dpsql.core.mechanisms import samplers
from dpsql.core.mechanisms.noise import CubeLaplace, DiscreteGaussian, Noise
from dpsql.core.selection import truncated_geometric as geometric
from dpsql.core.selection.threshold import show_probability, threshold
from dpsql.core.selection.truncated_geometric import TruncatedGeometric
from dpsql.errors import InvalidPrivacyParameter
from tests.core.own_groups import per_group_delta

DIGITS = 400
FLOOR = 1e-9
DELTAS = [Fraction(text) for text in ("1e-100", "1e-9", "1e-6", "1/300", "1/3", "0.9", "0.999999999")]
EPSILONS = [Fraction(text) for text in ("1e-9", "1e-3", "0.01", "0.1", "1/3", "1", "7", "50", "1e9")]


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def feasible(epsilon: Fraction, delta: Fraction, most: int) -> bool:
    """Whether a table for one group's share has not many more than `most` steps."""
    return 2 * geometric._fewest_steps(float(epsilon), float(delta)) < most


def grid(most: int) -> list[tuple[Fraction, Fraction, int, int]]:
    """Epsilon, delta, groups, least; with tables of `most` steps or so."""
    cases = itertools.product(EPSILONS, DELTAS, (1, 3, 1000), (1, 5))
    return [case for case in cases if feasible(case[0] / case[2], case[1] / case[2], most)]


# Differential privacy of a bit, exactly


def broken(chances: Sequence[int], bits: int, epsilon: Fraction, delta: Fraction) -> list[str]:
    """What keeps the probabilities chances[n] / 2^bits of showing n units from being (epsilon, delta)-DP, all exact.

    e^epsilon is bounded from below by a rational of some 400 digits, or by 2^3000 where it is greater still.
    """
    with localcontext() as context:
        context.prec = DIGITS
        power = decimal(min(epsilon, Fraction(2079))).exp()  # e^2079 < 2^3000
        growth = Fraction(power * (1 - Decimal(10) ** (5 - DIGITS)))
    up, down, one = growth.numerator, growth.denominator, 1 << bits
    d_up, d_down = delta.numerator, delta.denominator

    def within(left: int, right: int) -> bool:
        """left <= growth * right + delta, for multiples of 2^-bits."""
        return left * down * d_down <= up * right * d_down + d_up * down * one

    found = []
    if chances[0] != 0:
        found.append("a group of no units is shown")
    if not all(0 <= p <= one for p in chances):
        found.append("no probability")
    for n, (p, r) in enumerate(itertools.pairwise(chances), start=1):
        four = (within(r, p), within(p, r), within(one - r, one - p), within(one - p, one - r))
        found += [f"inequality {i} at {n}" for i, holds in enumerate(four, start=1) if not holds]
    return found


def chances_of(choice: TruncatedGeometric) -> tuple[list[int], int]:
    """The probabilities for 0, ..., certain + 1 units, by the public method, over one power of 2."""
    found = [choice.probability(n) for n in range(choice.certain + 2)]
    bits = max(p.denominator for p in found).bit_length() - 1
    return [p.numerator << (bits - p.denominator.bit_length() + 1) for p in found], bits


def test_every_choice_is_private_never_decreases_and_ends_at_one():
    cases = grid(400)
    assert len(cases) > 100
    for epsilon, delta, groups, least in cases:
        choice = TruncatedGeometric(epsilon, delta, groups, least)
        chances, bits = chances_of(choice)
        assert broken(chances, bits, epsilon / groups, delta / groups) == [], choice
        assert chances == sorted(chances)
        assert set(chances[:least]) == {0}
        assert chances[least] > 0
        assert chances[choice.certain - 1] < chances[choice.certain] == chances[-1] == 1 << bits


@pytest.mark.parametrize(("epsilon", "delta"), [("1/200", "1e-100"), ("1e-3", "1e-9"), ("1e-9", "1/20000")])
def test_long_tables_are_private(epsilon: str, delta: str):
    table = geometric._table(Fraction(epsilon), Fraction(delta), 1)
    chances = walk(table.step)
    assert len(chances) > 10_000
    for part in range(0, len(chances), max(1, len(chances) // 40)):  # windows of the whole, its beginning and end
        window = [0, *chances[part : part + 50]] if part == 0 else chances[part : part + 50]
        found = broken(window, table.step.bits, Fraction(epsilon), Fraction(delta))
        assert [each for each in found if part == 0 or "no units" not in each] == []
    assert chances[-1] == 1 << table.step.bits
    for n in (0, 1, 1023, 1024, 1025, 2048, len(chances) - 2, len(chances) - 1):
        assert table.numerator(n) == chances[n]
        assert int(table.firsts[n]) == min(chances[n] >> (table.step.bits - 64), 2**64 - 1)


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 7, 14])
def test_every_chance_is_found_from_the_ones_that_are_kept(stride: int, monkeypatch: pytest.MonkeyPatch):
    """Also the last, 1 at 28 units, where a mark falls on it."""
    monkeypatch.setattr(geometric, "_STRIDE", stride)
    table = geometric._table.__wrapped__(Fraction(1), Fraction(1, 10**6), 1)
    assert table.last == 28
    assert [table.numerator(n) for n in range(29)] == walk(table.step)


def test_the_rational_power_is_below_e_to_the_x_and_close():
    with localcontext() as context:
        context.prec = DIGITS
        for x in [*EPSILONS[:-1], Fraction(0), Fraction(1, 10**30), Fraction(400), Fraction(2), Fraction(10**6, 9999)]:
            truth = decimal(x).exp() * 2**128
            found = geometric._exp_below(x, 128)
            assert 2**128 <= found <= truth * (1 + Decimal(10) ** (5 - DIGITS))
            assert found >= truth * (1 - Decimal(2) ** -120) - 1


# Planted lies


def walk(step: geometric._Recursion, after: Callable[[int], int] | None = None, most: int = 200_000) -> list[int]:
    """pi(0), pi(1), ... up to 1, in units of 2^-bits."""
    after, chances = after or step.after, [0]
    while chances[-1] < 1 << step.bits and len(chances) < most:
        chances.append(after(chances[-1]))
    return chances


def rounded_up(step: geometric._Recursion, delta: Fraction) -> Callable[[int], int]:
    """The step with each operation rounded the other way."""

    def after(p: int) -> int:
        one, d = 1 << step.bits, math.ceil(delta * 2**step.bits)
        first = -(-p * step.growth >> 128) + d
        second = one - ((one - p - d) << 128) // step.growth
        return min(first, second, one)

    return after


LIES: dict[str, Callable[[geometric._Recursion, Fraction], list[int]]] = {
    "delta twice too large": lambda step, _: walk(replace(step, delta=2 * step.delta)),
    "delta a last bit too large": lambda step, _: walk(replace(step, delta=step.delta + 1)),
    "growth too large by 1 %": lambda step, _: walk(replace(step, growth=step.growth * 101 // 100)),
    "rounded up": lambda step, delta: walk(step, rounded_up(step, delta)),
    "without the second term": lambda step, _: walk(
        step, lambda p: min((p * step.growth >> 128) + step.delta, 1 << step.bits)
    ),
    "cut off below 5 units": lambda step, _: [0] * 5 + walk(step)[5:],
    "shown without units": lambda step, _: walk(step)[1:],
    "a dip": lambda step, _: (found := walk(step))[:-1] + found[1:],
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1", "1e-6"), ("0.1", "1e-9"), ("1/3", "1e-100"), ("2", "1/300"), ("1/7", "1/3000001")]
)
def test_a_lie_is_caught(lie: str, epsilon: str, delta: str):
    e, d = Fraction(epsilon), Fraction(delta)
    step = geometric._Recursion.of(e, d)
    assert broken(walk(step), step.bits, e, d) == []
    assert broken(LIES[lie](step, d), step.bits, e, d) != []


def test_a_share_that_is_not_taken_is_caught():
    """The whole epsilon and delta in each of three groups."""
    chances, bits = chances_of(TruncatedGeometric(Fraction(1), Fraction(1, 10**6)))
    assert broken(chances, bits, Fraction(1, 3), Fraction(1, 3 * 10**6)) != []


# Optimality


def real_recursion(epsilon: Fraction, delta: Fraction) -> list[Decimal]:
    """The paper's theorem 1 in 250 digits: 1 - pi becomes as small as delta."""
    with localcontext() as context:
        context.prec = 250
        growth, d = decimal(epsilon).exp(), decimal(delta)
        chances = [Decimal(0)]
        while chances[-1] < 1:
            p = chances[-1]
            chances.append(min(growth * p + d, 1 - (1 - p - d) / growth, Decimal(1)))
        return chances


def closed_form(epsilon: Fraction, delta: Fraction, n: int) -> Decimal:
    """The paper's closed form with its two crossovers, in 60 digits."""
    with localcontext() as context:
        context.prec = 60
        e, d = decimal(epsilon), decimal(delta)
        growth = e.exp()

        def rising(m: int) -> Decimal:
            return ((m * e).exp() - 1) / (growth - 1) * d

        first = 1 + math.floor(((growth + 2 * d - 1) / ((growth + 1) * d)).ln() / e)
        second = first + math.floor((1 + (growth - 1) / d * (1 - rising(first))).ln() / e)
        if n <= first:
            return rising(n)
        if n > second:
            return Decimal(1)
        fall = ((first - n) * e).exp()
        return (1 - fall) * (1 + d / (growth - 1)) + fall * rising(first)


def test_chances_are_the_optimal_ones():
    cases = [case for case in grid(1200) if case[0] <= 50]
    assert len(cases) > 100
    for epsilon, delta, groups, least in cases:
        choice = TruncatedGeometric(epsilon, delta, groups, least)
        optimal = real_recursion(epsilon / groups, delta / groups)
        for n in {*range(min(30, len(optimal))), *range(0, len(optimal), 37), len(optimal) - 2}:
            chance = choice.probability(n + least - 1)
            assert optimal[n] * (1 - Decimal("1e-12")) <= decimal(chance) <= optimal[n] * (1 + Decimal("1e-27"))
            with localcontext() as context:
                context.prec = 250
                hidden, least_hidden = decimal(1 - chance), 1 - optimal[n]
                assert least_hidden * (1 - Decimal("1e-100")) <= hidden + Decimal("1e-240")
                assert hidden - least_hidden <= (least_hidden + decimal(delta / groups)) * Decimal("1e-12")
        assert choice.certain - (least - 1) - (len(optimal) - 1) in (0, 1)  # 1 - 2^-bits may take a step more


def test_chances_follow_the_closed_form():
    for epsilon, delta, groups, _ in grid(1200):
        if epsilon <= 50 and delta < Fraction(9, 10):
            choice = TruncatedGeometric(epsilon, delta, groups)
            for n in {*range(1, min(30, choice.certain)), *range(1, choice.certain, 41), choice.certain + 1}:
                expected = closed_form(epsilon / groups, delta / groups, n)
                assert abs(decimal(choice.probability(n)) - expected) <= expected * Decimal("1e-12"), (choice, n)


@pytest.mark.parametrize(("epsilon", "factor"), [("1", 1.58), ("1/2", 2.54), ("1/10", 10.5)])
@pytest.mark.parametrize("delta", ["1e-5", "1e-9"])
def test_gain_over_a_laplace_threshold_of_the_same_epsilon_and_delta(epsilon: str, delta: str, factor: float):
    """1 / (1 - e^-epsilon) at best over fine noise, more over whole noise, and a greater chance at every size."""
    choice = TruncatedGeometric(Fraction(epsilon), Fraction(delta))
    sizes = range(1, choice.certain + 1)
    for one_unit in (1, 2**20):
        noise = CubeLaplace(one_unit / Fraction(epsilon), 1)
        tau = threshold(noise, one_unit, Fraction(delta))
        gains = [float(choice.probability(n)) / show_probability(noise, n * one_unit, tau) for n in sizes]
        assert min(gains) >= 1 - 1e-9
        if one_unit > 1:
            assert max(gains) == pytest.approx(factor, abs=0.02)
            assert max(gains) == pytest.approx(1 / (1 - math.exp(-Fraction(epsilon))), rel=2e-3)
        else:
            assert max(gains) >= factor


# Draws


@pytest.mark.parametrize(
    "choice",
    [
        TruncatedGeometric(Fraction(1), Fraction(1, 100)),
        TruncatedGeometric(Fraction(1), Fraction(1, 100), groups=3, least=4),
        TruncatedGeometric(Fraction(1, 10), Fraction(1, 10**6)),
        TruncatedGeometric(Fraction(5), Fraction(1, 10**100)),
    ],
    ids=str,
)
def test_draws_follow_their_chances(choice: TruncatedGeometric):
    sizes = sorted({*range(choice.least + 3), *np.linspace(0, choice.certain + 1, 12).astype(int).tolist()})
    runs = 100_000
    shown = choice.draw(np.tile(np.array(sizes, np.int64), runs))
    assert shown.dtype == np.bool_
    for n, seen in zip(sizes, shown.reshape(runs, -1).sum(axis=0).tolist(), strict=True):
        p = float(choice.probability(n))
        if p in (0, 1):
            assert seen == runs * p
        else:
            assert stats.binom.cdf(seen, runs, p) > FLOOR, (n, seen, p)
            assert stats.binom.sf(seen - 1, runs, p) > FLOOR, (n, seen, p)


def test_groups_are_drawn_independently():
    choice = TruncatedGeometric(Fraction(1), Fraction(1, 100))
    n = next(n for n in range(100) if choice.probability(n) > Fraction(1, 3))
    p = float(choice.probability(n))
    pairs = choice.draw(np.full(200_000, n)).reshape(-1, 2)
    both = int(pairs.all(axis=1).sum())
    assert stats.binom.cdf(both, 100_000, p * p) > FLOOR
    assert stats.binom.sf(both - 1, 100_000, p * p) > FLOOR
    assert (choice.draw(np.full(1000, n)) != choice.draw(np.full(1000, n))).any()


def test_counts_far_outside_the_table():
    choice = TruncatedGeometric(Fraction(1), Fraction(1, 10), least=2**62)
    counts = np.array([0, 0, -1, -(2**63), 2**62 - 1, 2**62 + 1000, 2**63 - 1])
    assert choice.draw(counts).tolist() == [False] * 5 + [True] * 2
    assert TruncatedGeometric(Fraction(1), Fraction(1, 10)).draw(counts).tolist() == [False] * 4 + [True] * 3
    assert choice.draw(np.empty(0, np.int64)).shape == (0,)
    assert TruncatedGeometric(Fraction(1), Fraction(1, 10)).draw(np.array([0, 100], np.int8)).tolist() == [False, True]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets the next calls for words return the lists given, one a call, and no call go beyond."""

    def play(*answers: list[int]) -> None:
        left = list(answers)

        def words(n: int) -> Any:
            answer = left.pop(0)
            assert len(answer) == n
            return np.array(answer, np.uint64)

        monkeypatch.setattr(samplers, "random_words", words)

    return play


def words_of(u: int, bits: int) -> list[int]:
    return [u >> (bits - 64 * (i + 1)) & (2**64 - 1) for i in range(bits // 64)]


@pytest.mark.parametrize("delta", ["1/3", "1e-6", "1e-100"])
def test_a_tie_is_decided_by_further_bits(delta: str, script: Callable[..., None]):
    """u beside pi(n) at its last bit, and equal to it: shown only if below."""
    choice = TruncatedGeometric(Fraction(1), Fraction(delta))
    for n in {*range(1, min(20, choice.certain)), *range(20, choice.certain, 13), choice.certain - 1}:
        p = choice.probability(n)
        bits = -(-p.denominator.bit_length() // 64) * 64
        exact = p.numerator * 2**bits // p.denominator
        for step in (-1, 0, 1):
            first, *more = words_of(exact + step, bits)
            if exact + step < 0 or first != exact >> (bits - 64):
                continue
            # A word more for each 64 bits, as long as those before were the same; then words that must not count.
            script([first], *[[word] for word in more], [0], [2**64 - 1])
            assert choice.draw(np.array([n])).tolist() == [step < 0], (n, step)


def test_most_draws_ask_for_one_word(script: Callable[..., None]):
    """The words next to the first 64 bits of pi(n) decide at once, whatever the later bits."""
    choice = TruncatedGeometric(Fraction(1), Fraction(1, 10**6))
    first = math.floor(choice.probability(14) * 2**64)
    script([first - 1, first + 1, 0, 2**64 - 1])
    assert choice.draw(np.full(4, 14)).tolist() == [True, False, True, False]


def test_extreme_words_show_nothing_without_units_and_everything_that_is_certain(script: Callable[..., None]):
    choice = TruncatedGeometric(Fraction(1), Fraction(1, 10**100))  # pi(1) is far below 2^-64
    sizes = np.array([0, 0, choice.certain, choice.certain, 1])
    zeros, ones = [0], [2**64 - 1]
    script([0, 2**64 - 1, 0, 2**64 - 1, 1], *[zeros] * 10)
    assert choice.draw(sizes).tolist() == [False, False, True, True, False]
    script([0], *[zeros] * 10)
    assert choice.draw(np.array([1])).tolist() == [True]
    script([0], *[ones] * 10)
    assert choice.draw(np.array([1])).tolist() == [False]


def test_bernoulli_dyadic_against_its_fractions():
    runs = 100_000
    for bits in (64, 65, 100, 700):
        numerators = [0, 1, 2**bits // 3, 2**bits * 9 // 10, 2**bits - 1, 2**bits]
        firsts = np.array([min(c >> (bits - 64), 2**64 - 1) for c in numerators], np.uint64)
        draws = samplers.bernoulli_dyadic(
            np.tile(firsts, runs), lambda i, all_of=numerators: all_of[i % len(all_of)], bits
        ).reshape(runs, -1)
        assert draws.dtype == np.bool_
        seen = draws.sum(axis=0).tolist()
        assert [seen[0], seen[1], seen[4], seen[5]] == [0, 0, runs, runs]
        for column, p in ((2, 1 / 3), (3, 0.9)):
            assert FLOOR < stats.binom.cdf(seen[column], runs, p) < 1 - FLOOR
    assert samplers.bernoulli_dyadic(np.empty(0, np.uint64), int, 64).shape == (0,)


@pytest.mark.parametrize("bits", [64, 72, 73, 128, 130])
def test_bernoulli_dyadic_next_to_its_boundary(bits: int, script: Callable[..., None]):
    wide = 192
    for numerator in (0, 1, 2**bits // 3, 2**bits - 1, 2**bits, 2 ** (bits - 64), 2 ** (bits - 1)):
        first = min(numerator >> (bits - 64), 2**64 - 1)
        for step in (-1, 0, 1):
            u = (numerator << (wide - bits)) + step
            if 0 <= u < 2**wide:
                word, *more = words_of(u, wide)
                script([word], *[[each] for each in more], [0])
                drawn = samplers.bernoulli_dyadic(np.array([first], np.uint64), lambda _, c=numerator: c, bits)
                assert drawn.tolist() == [step < 0]


# Parameters


def test_what_a_choice_costs():
    assert TruncatedGeometric(Fraction(1, 3), Fraction(1, 10**6), 7, 5).loss == PrivacyLoss(
        Fraction(1, 3), Fraction(1, 10**6)
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "groups", "least", "error", "words"),
    [
        (0, Fraction(1, 10), 1, 1, TypeError, "fractions"),
        (Fraction(1), 1e-6, 1, 1, TypeError, "fractions"),
        (Fraction(0), Fraction(1, 10), 1, 1, InvalidPrivacyParameter, "epsilon for choosing groups must be"),
        (Fraction(-1), Fraction(1, 10), 1, 1, InvalidPrivacyParameter, "> 0"),
        (Fraction(1), Fraction(0), 1, 1, InvalidPrivacyParameter, "Add delta=1e-6"),
        (Fraction(1), Fraction(1), 1, 1, InvalidPrivacyParameter, "delta for choosing groups must be above 0"),
        (Fraction(1), Fraction(-1, 2), 1, 1, InvalidPrivacyParameter, "delta"),
        (Fraction(1), Fraction(1, 10), 0, 1, ValueError, "groups must be at least 1"),
        (Fraction(1), Fraction(1, 10), 1, 0, ValueError, "least from 1"),
        (Fraction(1), Fraction(1, 10), 1, 2**62 + 1, ValueError, "least from 1"),
        (Fraction(1), Fraction(1, 10**6), 10**9, 1, InvalidPrivacyParameter, "too small"),
        (Fraction(1, 10**400), Fraction(1, 10**400), 1, 1, InvalidPrivacyParameter, "too small"),
    ],
)
def test_bad_parameters_are_refused(epsilon: Any, delta: Any, groups: int, least: int, error: Any, words: str):
    with pytest.raises(error, match=re.escape(words)):
        TruncatedGeometric(epsilon, delta, groups, least)


def test_too_small_an_epsilon_is_told_one_that_is_enough(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(geometric, "LARGEST_TABLE", 20_000)
    with pytest.raises(InvalidPrivacyParameter) as caught:
        TruncatedGeometric(Fraction(1, 10**6), Fraction(1, 10**9))
    assert "epsilon 1e-06 for choosing groups is too small" in caught.value.message
    enough = re.search(r"Write an epsilon of (\S+) or more", caught.value.hint)
    assert enough is not None
    assert 5_000 < TruncatedGeometric(Fraction(enough[1]), Fraction(1, 10**9)).certain <= 20_000


def test_a_table_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch):
    """As many steps as allowed, and one step fewer allowed."""
    case = Fraction(1, 2), Fraction(1, 10**7)
    steps = TruncatedGeometric(*case).certain
    for limit in (steps, steps - 1, steps // 3):
        geometric._table.cache_clear()
        monkeypatch.setattr(geometric, "LARGEST_TABLE", limit)
        if limit == steps:
            assert TruncatedGeometric(*case).certain == steps
        else:
            with pytest.raises(InvalidPrivacyParameter, match="too small"):
                TruncatedGeometric(*case)
    geometric._table.cache_clear()


@pytest.mark.parametrize("counts", [np.array([1.0, 2.0]), np.array([True]), np.array([1], np.uint64)])
def test_counts_must_be_signed_integers(counts: Any):
    with pytest.raises(TypeError, match="signed integers"):
        TruncatedGeometric(Fraction(1), Fraction(1, 10)).draw(counts)


def test_the_quick_bound_never_refuses_what_has_a_table():
    for epsilon, delta, groups, _ in grid(1200):
        steps = TruncatedGeometric(epsilon, delta, groups).certain
        fewest = geometric._fewest_steps(float(epsilon / groups), float(delta / groups))
        assert fewest <= steps <= 2 * fewest + 3


# Thresholds for a unit in several groups


def chance_of_any(p: Decimal, groups: int) -> Decimal:
    """1 - (1 - p)^groups."""
    return 1 - ((1 - p).ln() * groups).exp()


@pytest.mark.parametrize("groups", [1, 2, 3, 7, 1000, 10**9, 2 * 10**9])
@pytest.mark.parametrize("delta", DELTAS)
def test_the_delta_of_a_group_is_the_largest_that_is_safe(delta: Fraction, groups: int):
    share = per_group_delta(delta, groups)
    assert share >= delta / groups
    assert share.denominator.bit_length() < 1000
    with localcontext() as context:
        context.prec = DIGITS
        tiny = Decimal(10) ** (20 - DIGITS)
        assert chance_of_any(decimal(share), groups) <= decimal(delta) * (1 + tiny)
        if delta < Fraction(95, 100):
            assert chance_of_any(decimal(share) * (1 + Decimal("1e-12")), groups) > decimal(delta)


def test_the_delta_of_a_group_in_exact_fractions():
    for delta, groups in itertools.product(DELTAS, (1, 2, 5, 40)):
        assert 1 - (1 - per_group_delta(delta, groups)) ** groups <= delta
    assert per_group_delta(Fraction(1, 10**6), 1) == Fraction(1, 10**6)
    assert per_group_delta(Fraction(0), 5) == 0


def test_a_delta_of_a_group_that_is_too_large_is_found():
    assert 1 - (1 - per_group_delta(Fraction(1, 3), 5) * Fraction(1001, 1000)) ** 5 > Fraction(1, 3)


@pytest.mark.parametrize("bad", [(Fraction(-1, 10), 1), (Fraction(1), 2), (Fraction(1, 10), 0), (Fraction(1, 10), -3)])
def test_bad_deltas_of_groups_are_refused(bad: tuple[Fraction, int]):
    with pytest.raises(ValueError, match="delta of a group"):
        per_group_delta(*bad)


@pytest.mark.parametrize("of_first", range(5))
@pytest.mark.parametrize("delta", ["1e-6", "1/10", "3/4"])
def test_own_groups_of_both_tables_cost_delta_in_all(of_first: int, delta: str):
    """Four own groups, some in the first table and the others in the second, and a common one that is a coin as
    uneven as epsilon allows: the largest P(A in O) - e^epsilon P(B in O) over all sets of outputs O, both ways."""
    groups, d = 4, Fraction(delta)
    share = per_group_delta(d, groups)
    growth = Fraction(3)  # e^epsilon

    def outputs(own: range, coin: Fraction) -> dict[tuple[bool, ...], Fraction]:
        law = {}
        for shown in itertools.product((False, True), repeat=groups):
            p = math.prod(
                (share if bit else 1 - share) if i in own else Fraction(not bit) for i, bit in enumerate(shown)
            )
            law[*shown, True], law[*shown, False] = p * coin, p * (1 - coin)
        return law

    def excess(a: dict[tuple[bool, ...], Fraction], b: dict[tuple[bool, ...], Fraction]) -> Fraction:
        return sum((max(Fraction(0), p - growth * b[output]) for output, p in a.items()), Fraction(0))

    first, second = range(of_first), range(of_first, groups)
    for coins in ((Fraction(1, 4), Fraction(3, 4)), (Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 2), Fraction(1, 2))):
        a, b = outputs(first, coins[0]), outputs(second, coins[1])
        assert max(excess(a, b), excess(b, a)) <= d
        if of_first == groups:  # all in one table: nothing is left over
            assert excess(a, b) >= d * (1 - Fraction(1, 10**9))


def laplace_tail(scale: Fraction, dimension: int, t: int) -> Decimal:
    """P(X >= t) of a coordinate by plain summation: weight (2r + 1)^d a^r of a radius r, r - t + 1 of 2r + 1 places."""
    a = (-1 / decimal(scale)).exp()
    total = tail = Decimal(0)
    weight, r = Decimal(1), 0
    while r < t + 20 or weight * (2 * r + 1) ** dimension > tail * Decimal(10) ** -30:
        total += weight * (2 * r + 1) ** dimension
        if r >= t:
            tail += weight * (r - t + 1) * (2 * r + 1) ** (dimension - 1)
        weight *= a
        r += 1
    return tail / total


def gaussian_tail(variance: Fraction, t: int) -> Decimal:
    """P(X >= t) by plain summation."""
    reach = t + 40 * math.ceil(math.sqrt(variance))
    weights = [(-x * x / (2 * decimal(variance))).exp() for x in range(reach)]
    return sum(weights[t:], Decimal(0)) / (2 * sum(weights, Decimal(0)) - 1)


def gaussian(variance: int) -> DiscreteGaussian:
    return DiscreteGaussian(Fraction(variance), 1, PrivacyLoss(Fraction(1), Fraction(1, 10**6)))


@pytest.mark.parametrize("groups", [1, 3, 100])
@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 100), Fraction(3, 10)])
@pytest.mark.parametrize(
    ("noise", "one_unit"),
    [
        (CubeLaplace(Fraction(1), 1), 1),
        (CubeLaplace(Fraction(1, 4), 1), 1),
        (CubeLaplace(Fraction(10), 1), 3),
        (CubeLaplace(Fraction(7), 4), 1),
        (gaussian(2), 1),
        (gaussian(60), 2),
    ],
    ids=str,
)
def test_own_groups_are_shown_with_delta_at_most_in_all(noise: Noise, one_unit: int, delta: Fraction, groups: int):
    tau = threshold(noise, one_unit, per_group_delta(delta, groups))
    assert tau <= threshold(noise, one_unit, delta / groups)
    with localcontext() as context:
        context.prec = 60

        def any_shown(tau: int) -> Decimal:
            """The chance that one of the unit's own groups, each of count one_unit, reaches tau."""
            t = tau - one_unit
            if isinstance(noise, CubeLaplace):
                return chance_of_any(laplace_tail(noise.exact_scale, noise.dimension, t), groups)
            assert isinstance(noise, DiscreteGaussian)
            return chance_of_any(gaussian_tail(noise.variance, t), groups)

        assert any_shown(tau) <= decimal(delta) * (1 + Decimal("1e-50"))
        # One step less would be too much, two for the Gaussian's bound; at one_unit + 1 the search begins.
        lower = tau - (1 if isinstance(noise, CubeLaplace) else 2)
        assert lower <= one_unit or any_shown(lower) > decimal(delta)
