"""Marginals that add up, against a dense regression, brute force over shares, and draws.

The oracle builds the design matrix of all measured cells and solves the weighted normal equations by its pseudoinverse;
nothing of it is in the code under test. Random cases come from fixed seeds, so nothing here can fail by chance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from dpsql.accuracy import hierarchies
from dpsql.accuracy.hierarchies import GroupingSet, allocation, consistent, variances_of
from tests.accuracy.grouping_sets import cube_sets, rollup_sets

SEED = 20_240_229
POWER = {"laplace": 2, "gaussian": 1}

Sets = Sequence[GroupingSet]


def marginal(table: NDArray[Any], grouping: GroupingSet, keys: int) -> NDArray[Any]:
    """Sums of the last `keys` axes over those not in the set."""
    front = table.ndim - keys
    return table.sum(axis=tuple(front + key for key in range(keys) if key not in grouping))


def design(grouping: GroupingSet, sizes: Sequence[int]) -> NDArray[np.float64]:
    """The matrix that takes the finest table, flat, to a marginal, flat."""
    made = np.ones((1, 1))
    for key, size in enumerate(sizes):
        made = np.kron(made, np.eye(size) if key in grouping else np.ones((1, size)))
    return made


def hierarchy(rng: np.random.Generator) -> tuple[list[int], list[GroupingSet], list[GroupingSet]]:
    """Sizes, measured sets, and wanted sets that these determine."""
    keys = int(rng.integers(1, 4))
    sizes = [int(size) for size in rng.integers(1, 5, keys)]
    every = cube_sets(keys)
    measured = [every[place] for place in rng.permutation(len(every))[: rng.integers(1, len(every) + 1)]]
    within = [each for each in every if any(set(each) <= set(some) for some in measured)]
    wanted = [within[place] for place in rng.permutation(len(within))[: rng.integers(1, len(within) + 1)]]
    return sizes, measured, wanted


def shape(grouping: GroupingSet, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sizes[key] for key in grouping)


# The sets


def test_rollup_and_cube_are_those_of_sql():
    assert rollup_sets(3) == ((0, 1, 2), (0, 1), (0,), ())
    assert cube_sets(2) == ((0, 1), (0,), (1,), ())
    assert rollup_sets(0) == cube_sets(0) == ((),)
    assert len(set(cube_sets(5))) == 32


# Estimates


@pytest.mark.parametrize("case", range(60))
def test_estimates_and_variances_are_those_of_the_dense_regression(case: int):
    rng = np.random.default_rng([SEED, case])
    sizes, measured, wanted = hierarchy(rng)
    variances = {each: float(np.exp(rng.uniform(-3, 3))) for each in measured}
    noisy = {each: rng.normal(0, 10, (2, *shape(each, sizes))) for each in measured}
    rows = np.vstack([design(each, sizes) / math.sqrt(variances[each]) for each in measured])
    seen = np.hstack([noisy[each].reshape(2, -1) / math.sqrt(variances[each]) for each in measured])
    finest = np.linalg.lstsq(rows, seen.T, rcond=None)[0]
    covariance = np.linalg.pinv(rows.T @ rows)
    found = consistent(noisy, variances, wanted)
    stated = variances_of(variances, sizes, wanted)
    assert list(found) == list(stated) == wanted
    for each in wanted:
        of = design(each, sizes)
        assert found[each].shape == (2, *shape(each, sizes))
        np.testing.assert_allclose(found[each].reshape(2, -1).T, of @ finest, rtol=0, atol=1e-9)
        np.testing.assert_allclose(np.diag(of @ covariance @ of.T), stated[each], rtol=1e-9)


def test_all_marginals_add_up():
    rng = np.random.default_rng(SEED)
    sizes = (7, 1, 5, 3)
    measured = [(0, 1, 2, 3), (0, 2), (1, 3), (3,), ()]
    noisy = {each: rng.integers(0, 10**9, shape(each, sizes)) for each in measured}
    found = consistent(noisy, {each: 1 + len(each) for each in measured}, cube_sets(4))
    for each in cube_sets(4):
        np.testing.assert_allclose(found[each], marginal(found[0, 1, 2, 3], each, 4), rtol=0, atol=1e-4)


def test_exact_tables_come_back_and_one_set_is_only_summed():
    rng = np.random.default_rng(SEED)
    table = rng.integers(-1000, 1000, (4, 3, 2))
    truth = {each: marginal(table, each, 3) for each in cube_sets(3)}
    estimates = consistent(truth, {each: 0.5 + len(each) for each in truth}, list(truth))
    alone = consistent({(0, 1, 2): table}, {(0, 1, 2): 3.0}, list(truth))
    for each, expected in truth.items():
        np.testing.assert_allclose(estimates[each], expected, atol=1e-9)
        np.testing.assert_allclose(alone[each], expected, atol=1e-9)


def test_a_set_without_noise_is_kept_as_it_is():
    rng = np.random.default_rng(SEED)
    noisy = {(0, 1): rng.normal(0, 9, (4, 3)), (1,): rng.normal(0, 9, 3), (): np.array(17.0)}
    variances = {(0, 1): 2.0, (1,): 5.0, (): 0.0}
    found = consistent(noisy, variances, [(0, 1), (1,), ()])
    assert float(found[()]) == pytest.approx(17, abs=1e-9)
    assert found[0, 1].sum() == pytest.approx(17, abs=1e-9)
    stated = variances_of(variances, (4, 3), [(1,), ()])
    assert stated[()] < 1e-12
    # Of a (1,) alone and sums of (0, 1) the mean has 5 * 8 / 13; the part along the constant, a third, is known.
    assert stated[1,] == pytest.approx(40 / 13 * 2 / 3)
    assert variances_of({(0,): 0.0, (): 0.0}, (3,), [(0,), ()]) == {(0,): 0.0, (): 0.0}


def test_variances_are_those_of_draws():
    rng = np.random.default_rng(SEED)
    sizes, runs = (5, 3, 2), 20_000
    scales = {(0, 1, 2): 3.0, (0, 1): 1.0, (0,): 4.0, (1, 2): 2.0, (): 0.5}
    variances = {each: 2 * scale**2 for each, scale in scales.items()}
    noise = {each: rng.laplace(0, scale, (runs, *shape(each, sizes))) for each, scale in scales.items()}
    stated = variances_of(variances, sizes, cube_sets(3))
    for each, off in consistent(noise, variances, cube_sets(3)).items():
        squares = (off.reshape(runs, -1) ** 2).mean(axis=1)
        error = squares.std() / math.sqrt(runs)
        assert abs(squares.mean() - stated[each]) < 5 * error, each
        assert error < 0.02 * stated[each]  # so that the line above says something


def test_no_estimate_is_worse_than_its_own_noise_and_more_noise_never_helps():
    rng = np.random.default_rng(SEED)
    for _ in range(50):
        sizes, measured, wanted = hierarchy(rng)
        variances = {each: float(np.exp(rng.uniform(-3, 3))) for each in measured}
        before = variances_of(variances, sizes, wanted)
        assert all(before[each] <= variances[each] * (1 + 1e-12) for each in wanted if each in variances)
        louder = measured[int(rng.integers(len(measured)))]
        after = variances_of(variances | {louder: variances[louder] * 2}, sizes, wanted)
        assert all(before[each] <= after[each] * (1 + 1e-12) for each in wanted)
        assert after[louder] > before[louder] if louder in wanted else True


@pytest.mark.parametrize(
    ("noisy", "variances", "wanted", "says"),
    [
        ({(0,): (3,)}, {(0,): 1}, [(0, 1)], "measured"),
        ({(0,): (3,), (1,): (2,)}, {(0,): 1, (1,): 1}, [(0, 1)], r"no measured set has all keys of \(0, 1\)"),
        ({(): ()}, {(): 1}, [(0,)], "measured"),
        ({(1, 0): (3, 2)}, {(1, 0): 1}, [(0,)], "ascending"),
        ({(0, 1): (3, 2)}, {(0, 1): 1}, [(1, 0)], "ascending"),
        ({(0, 1): (3, 2), (0,): (2,)}, {(0, 1): 1, (0,): 1}, [()], "does not fit"),
        ({(0, 1): (5, 3, 2), (0,): (3,)}, {(0, 1): 1, (0,): 1}, [()], "does not fit"),
        ({(0, 1): (3,)}, {(0, 1): 1}, [()], "does not fit"),
        ({(0,): (3,)}, {}, [()], "variance"),
        ({(0,): (3,)}, {(0,): math.nan}, [()], "variance"),
        ({(0,): (3,)}, {(0,): math.inf}, [()], "variance"),
        ({(0,): (3,)}, {(0,): -1}, [()], "variance"),
    ],
)
def test_what_does_not_fit_is_refused(
    noisy: Mapping[GroupingSet, tuple[int, ...]], variances: Mapping[GroupingSet, float], wanted: Sets, says: str
):
    with pytest.raises(ValueError, match=says):
        consistent({each: np.zeros(size) for each, size in noisy.items()}, variances, wanted)


def test_a_key_of_one_value_needs_no_set_of_its_own():
    found = variances_of({(0,): 2.0, (1,): 8.0}, (3, 1), [(0,), (1,)])
    assert found[1,] == pytest.approx(1 / (1 / 8 + 1 / 6))
    both = consistent({(0,): np.arange(3), (1,): np.array([5])}, {(0,): 2.0, (1,): 8.0}, [(0, 1), ()])
    np.testing.assert_allclose(both[0, 1].sum(), both[()])
    with pytest.raises(ValueError, match="no measured set has all keys"):
        variances_of({(0,): 2.0}, (3, 2), [(1,)])


# Shares of the budget


def worth(shares: Mapping[GroupingSet, Any], sizes: Sequence[int], wanted: Iterable[GroupingSet], law: str) -> float:
    """The geometric mean of the wanted variances, for a budget that gives the whole one the variance 1."""
    variances = {each: 1 / float(share) ** POWER[law] for each, share in shares.items() if share}
    return math.exp(np.mean(np.log(list(variances_of(variances, sizes, wanted).values()))))


CASES: list[tuple[tuple[int, ...], Sets]] = [
    ((51, 16, 2), rollup_sets(3)),
    ((16, 2), cube_sets(2)),
    ((51, 16, 2), cube_sets(3)),
    ((3, 4, 5), cube_sets(3)),
    ((2, 2, 2), cube_sets(3)),
    ((16, 16), cube_sets(2)),
    ((100, 50), rollup_sets(2)),
    ((1, 7), cube_sets(2)),
    ((9, 30, 2, 9), cube_sets(4)),
    ((4, 5, 6), [(0, 1), (1, 2), (0, 2)]),
    ((2, 2), [(0,), (1,)]),
    ((40, 30), [(0,), (1,)]),
    ((6, 5, 4), [(0, 1, 2), ()]),
    ((), [()]),
    ((2,) * 12, [(key,) for key in range(12)]),
    ((12,) * 6, [(key,) for key in range(6)] + [tuple(range(6))]),
]


@pytest.mark.parametrize("law", POWER)
@pytest.mark.parametrize(("sizes", "wanted"), CASES)
def test_shares_are_one_in_all_and_at_least_as_good_as_the_plain_ones(sizes: tuple[int, ...], wanted: Sets, law: Any):
    found = allocation(sizes, wanted, law)
    assert sum(found.values()) == 1
    assert all(isinstance(share, Fraction) and share > 0 for share in found.values())
    assert all(share.denominator <= max(1000, len(wanted)) for share in found.values())
    finest = tuple(sorted({key for each in wanted for key in each}))
    best = worth(found, sizes, wanted, law) * (1 - 1e-8)
    assert best <= worth(dict.fromkeys(wanted, Fraction(1, len(wanted))), sizes, wanted, law)
    assert best <= worth({finest: 1}, sizes, wanted, law)
    assert found == allocation(sizes, wanted, law)


@pytest.mark.parametrize("law", POWER)
@pytest.mark.parametrize("size", [2, 3, 5, 8, 13, 40, 1000])
def test_one_key_and_its_total_have_the_best_thousandths(size: int, law: Any):
    wanted = rollup_sets(1)
    found = worth(allocation((size,), wanted, law), (size,), wanted, law)
    every = [{(0,): Fraction(n, 1000), (): Fraction(1000 - n, 1000)} for n in range(1, 1001)]
    assert found <= min(worth(shares, (size,), wanted, law) for shares in every) * (1 + 1e-6)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("guard", [0, 0.5])
@pytest.mark.parametrize("law", POWER)
@pytest.mark.parametrize("sizes", [(16, 2), (4, 4), (30, 12)])
def test_no_shares_in_thirtieths_are_better(sizes: tuple[int, int], law: Any, guard: float):
    wanted = cube_sets(2)

    def value(shares: Mapping[GroupingSet, Any]) -> float:
        variances = {each: 1 / float(share) ** POWER[law] for each, share in shares.items() if share}
        stated = np.array(list(variances_of(variances, sizes, wanted).values()))
        return float(np.mean(np.log(stated) + guard * stated / len(wanted) ** POWER[law]))

    cuts = itertools.combinations(range(1, 33), 3)
    counts = ((32 - c + 1, c - b - 1, b - a - 1, a - 1) for a, b, c in cuts)  # 30 in four parts, the first not 0
    every = [dict(zip(wanted, (n / 30 for n in parts), strict=True)) for parts in counts if parts[0]]
    assert all(sum(shares.values()) == pytest.approx(1) for shares in every[::100])
    assert value(allocation(sizes, wanted, law, guard=guard)) <= min(value(shares) for shares in every) + 1e-6


@pytest.mark.parametrize(("sizes", "wanted"), CASES[:6])
def test_gaussian_shares_are_those_of_a_general_optimiser(sizes: tuple[int, ...], wanted: Sets):
    def value(logs: NDArray[np.float64]) -> float:
        shares = np.exp(logs) / np.exp(logs).sum()
        return math.log(worth(dict(zip(wanted, shares, strict=True)), sizes, wanted, "gaussian"))

    found = worth(allocation(sizes, wanted, "gaussian"), sizes, wanted, "gaussian")
    best = optimize.minimize(value, np.zeros(len(wanted)), method="BFGS")
    assert abs(math.log(found) - best.fun) < 2e-4  # the rounding to thousandths


def test_laplace_shares_are_best_among_all_choices_of_sets():
    """Every subset of the sets to choose from, each with shares found by a general optimiser from equal ones."""
    sizes, wanted = (51, 16, 2), rollup_sets(3)

    def value(logs: NDArray[np.float64], some: Sets) -> float:
        shares = np.exp(logs) / np.exp(logs).sum()
        return math.log(worth(dict(zip(some, shares, strict=True)), sizes, wanted, "laplace"))

    found = math.log(worth(allocation(sizes, wanted, "laplace"), sizes, wanted, "laplace"))
    for length in range(4):
        for more in itertools.combinations(wanted[1:], length):
            some = [wanted[0], *more]
            best = optimize.minimize(value, np.zeros(len(some)), args=(some,), method="BFGS").fun
            assert found < best + 1e-5, some


@pytest.mark.parametrize(
    ("sizes", "wanted"), [((51, 16, 2), rollup_sets(3)), ((51, 16, 2, 10), rollup_sets(4)), ((51, 16), cube_sets(2))]
)
def test_a_guard_keeps_every_set_near_an_equal_share(sizes: tuple[int, ...], wanted: Sets):
    def worst(shares: Mapping[GroupingSet, Fraction]) -> float:
        variances = {each: 1 / float(share) ** 2 for each, share in shares.items()}
        return max(variances_of(variances, sizes, wanted).values()) / len(wanted) ** 2

    free, guarded = allocation(sizes, wanted, "laplace"), allocation(sizes, wanted, "laplace", guard=0.5)
    assert worst(guarded) < min(1.05, worst(free))
    assert worth(guarded, sizes, wanted, "laplace") < 1.05 * worth(free, sizes, wanted, "laplace")


@pytest.mark.parametrize("guard", [0, 2])
@pytest.mark.parametrize("law", POWER)
def test_sets_whose_noise_is_larger_at_the_same_share(law: Any, guard: float):
    """Gaussian noise for units with rows in several cells: they move the total more than the cells. By brute force."""
    wanted, size = rollup_sets(1), 30

    def value(shares: Mapping[GroupingSet, Any], total: float) -> float:
        whole = {(0,): 1.0, (): total}
        variances = {each: whole[each] / float(share) ** POWER[law] for each, share in shares.items() if share}
        found = variances_of(variances, (size,), wanted)
        return sum(math.log(v) + guard * v / (2 ** POWER[law] * whole[each]) for each, v in found.items()) / 2

    every = [{(0,): Fraction(n, 200), (): Fraction(200 - n, 200)} for n in range(1, 201)]
    for total in (0.01, 0.5, 4.0, 16.0, 100.0):
        found = allocation((size,), wanted, law, guard=guard, whole=lambda each, v=total: 1.0 if each else v)
        assert value(found, total) <= min(value(shares, total) for shares in every) + 1e-6
    assert allocation((size,), wanted, law, whole=lambda each: 1.0 if each else 1e9) == {(0,): 1}


def test_a_union_is_measured_where_it_is_worth_it():
    assert allocation((2, 2), [(0,), (1,)], "laplace") == {(0, 1): 1}
    assert allocation((2, 2), [(0,), (1,)], "gaussian") == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
    narrow = allocation((2, 2), [(0,), (1,)], "laplace", measurable=[(0,), (1,)])
    assert narrow == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
    assert set(allocation((90, 80), [(0,), (1,)], "laplace")) == {(0,), (1,)}


def test_a_total_of_many_cells_gets_a_share_and_one_of_few_does_not():
    assert allocation((2,), rollup_sets(1), "laplace") == {(0,): 1}
    shares = [allocation((size,), rollup_sets(1), "laplace").get((), Fraction(0)) for size in (2, 6, 20, 200, 2000)]
    assert shares == sorted(shares)
    assert shares[-1] > Fraction(2, 5)


@pytest.mark.parametrize("law", POWER)
def test_shares_do_not_depend_on_how_floats_are_rounded(monkeypatch: pytest.MonkeyPatch, law: Any):
    cases = [((16, 16), cube_sets(2)), ((8, 8, 8), cube_sets(3)), ((9, 9, 9, 9), cube_sets(4)), *CASES[:5]]
    expected = [allocation(sizes, wanted, law) for sizes, wanted in cases]
    exact, rng = hierarchies._Descent._inverse, np.random.default_rng(SEED)

    def rounded_otherwise(descent: Any, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        found = exact(descent, shares)
        return found * (1 + 1e-14 * rng.standard_normal(found.shape))

    monkeypatch.setattr(hierarchies._Descent, "_inverse", rounded_otherwise)
    for _ in range(5):
        assert [allocation(sizes, wanted, law) for sizes, wanted in cases] == expected


@pytest.mark.parametrize(
    ("sizes", "wanted", "how", "says"),
    [
        ((3, 2), [(0, 1)], {"measurable": [(0,), (1,)]}, "no measured set has all keys"),
        ((3, 2), [(1, 0)], {}, "ascending"),
        ((3, 2), [(0, 2)], {}, "have values"),
        ((3, 0), [(0, 1)], {}, "have values"),
        ((3,), [(0,)], {"measurable": []}, "no measured set has all keys"),
        ((3,), [()], {"measurable": []}, "no measured set has all keys"),
        ((3,), [], {}, "at least one"),
        ((3,), [(0,)], {"guard": -1}, "at least 0"),
        ((3,), [(0,)], {"guard": math.nan}, "at least 0"),
    ],
)
def test_shares_of_what_cannot_be_answered_are_refused(sizes: Any, wanted: Any, how: Any, says: str):
    with pytest.raises(ValueError, match=says):
        allocation(sizes, wanted, "laplace", **how)
