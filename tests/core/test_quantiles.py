"""Quantiles on a grid: scores against sorted rows, spreads against every row added or changed, and the privacy of the
recursion against the laws of its own draws."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dpsql.accuracy.choices import Law, exponential_law, permute_and_flip_law
from dpsql.core.mechanisms import quantiles as ranks
from dpsql.core.mechanisms.exponential import Chooser, exponential, permute_and_flip
from dpsql.core.mechanisms.quantiles import (
    Tree,
    extreme_rank,
    fixed_rank_spread,
    quantiles,
    rank_gaps,
    rank_gaps_at,
    rank_spread,
    rows_off,
)
from dpsql.errors import InternalError
from dpsql.release.design.ranks import tree_of
from tests.core.test_samplers import FLOOR, p_value

F = Fraction
Array = npt.NDArray[Any]
QS = (F(0), F(1, 10), F(1, 3), F(1, 2), F(3, 4), F(99, 100), F(1))
SHARP = F(10**9)  # an epsilon at which only gaps of 0 are chosen


def random_tables(number: int, grid: int, most: int, seed: int = 1) -> Array:
    """Shape (number, grid), many of the counts 0."""
    pick = random.Random(seed)
    return np.array([[max(0, pick.randrange(-most, most + 1)) for _ in range(grid)] for _ in range(number)])


def distance(counts: Array, place: int, target: Fraction) -> Fraction:
    """From the ranks of a place to the target, rank by rank."""
    below = int(counts[:place].sum())
    between = range(below, below + int(counts[place]) + 1)
    low, high = between[0], between[-1]
    return min(abs(r - target) for r in {*map(F, (low, high)), min(max(target, F(low)), F(high))})


# Scores


@pytest.mark.parametrize("q", QS)
def test_rank_gaps_are_distances_of_ranks(q: Fraction):
    tables = random_tables(60, 5, 4)
    gaps = rank_gaps(tables, q)
    for counts, row in zip(tables, gaps, strict=True):
        expected = [distance(counts, place, q * int(counts.sum())) * q.denominator for place in range(5)]
        assert row.tolist() == expected
    assert (gaps.min(axis=1) == 0).all()


@pytest.mark.parametrize("rank", [0, 1, 3, 100])
@pytest.mark.parametrize("from_top", [False, True])
def test_rank_gaps_at_a_fixed_rank(rank: int, from_top: bool):
    tables = random_tables(60, 5, 4)
    for counts, row in zip(tables, rank_gaps_at(tables, rank, from_top), strict=True):
        n = int(counts.sum())
        expected = [distance(counts, place, F(n - rank if from_top else rank)) for place in range(5)]
        assert row.tolist() == [each - min(expected) for each in expected]


@pytest.mark.parametrize("from_top", [False, True])
def test_with_few_rows_an_extreme_is_beyond_the_last(from_top: bool):
    gaps = rank_gaps_at(np.array([[0, 0, 2, 1, 0, 0]]), 50, from_top)
    assert np.flatnonzero(gaps[0] == 0).tolist() == ([0, 1, 2] if from_top else [3, 4, 5])


def test_a_group_without_rows_has_no_preference():
    assert not rank_gaps(np.zeros((2, 4), int), F(1, 3)).any()
    assert not rank_gaps_at(np.zeros((2, 4), int), 3, True).any()


@pytest.mark.parametrize("big", [10**15, 10**25])
def test_counts_of_any_size(big: int):
    counts = np.array([[1, 0, 2, 1]], dtype=object) * big
    q = F(123_457, 1_000_003)
    small = rank_gaps(np.array([[1, 0, 2, 1]]), q)
    assert rank_gaps(counts, q).tolist() == (small.astype(object) * big).tolist()
    chosen = quantiles(counts, [q, F(1, 2)], F(1), rows=1, bounded=False, chooser=exponential)
    assert chosen.tolist() == [[0, 2]]


@pytest.mark.parametrize("counts", [np.array([[1, -1]]), np.array([[0.5, 1]]), np.array([1, 2]), np.zeros((1, 0), int)])
def test_refused_counts(counts: Array):
    with pytest.raises(ValueError, match="counts"):
        rank_gaps(counts, F(1, 2))
    with pytest.raises(ValueError, match="counts"):
        quantiles(counts, [F(1, 4), F(1, 2)], F(1), rows=1, bounded=False, chooser=exponential)


def test_refused_parameters():
    counts = np.array([[1, 2]])
    for q in (F(-1, 2), F(3, 2)):
        with pytest.raises(ValueError, match="between 0 and 1"):
            rank_gaps(counts, q)
    with pytest.raises(ValueError, match="at least 0"):
        rank_gaps_at(counts, -1, False)
    for qs in ([], [F(1, 2), F(1, 2)], [F(1, 2), F(1, 4)], [F(1, 2), F(2)]):
        with pytest.raises(ValueError, match="ascending"):
            quantiles(counts, qs, F(1), rows=1, bounded=False, chooser=exponential)
    for epsilon, rows in ((F(0), 1), (F(1), 0)):
        with pytest.raises(ValueError, match="positive"):
            quantiles(counts, [F(1, 2)], epsilon, rows=rows, bounded=False, chooser=exponential)


# Spreads, by all neighbours of all small tables


def small_tables() -> Array:
    """All tables of a grid of 4 with counts 0, 1 and 4."""
    return np.array(list(product((0, 1, 4), repeat=4)))


def added(tables: Array) -> Iterator[Array]:
    yield from (tables + row for row in np.eye(tables.shape[1], dtype=int))


def changed(tables: Array) -> Iterator[Array]:
    """One row moved, with the tables it cannot be taken from left as they are."""
    unit = np.eye(tables.shape[1], dtype=int)
    for i, j in product(range(tables.shape[1]), repeat=2):
        yield tables + (unit[j] - unit[i]) * (tables[:, i : i + 1] > 0)


def largest_spread(gaps: Callable[[Array], Array], others: Iterator[Array], tables: Array) -> Fraction:
    """Of differences of gaps, in their units; a spread does not depend on what the best score is."""
    here = gaps(tables)
    return F(max(int(np.ptp(gaps(other) - here, axis=1).max()) for other in others))


@pytest.mark.parametrize("q", QS)
def test_rank_spread_of_a_row_added(q: Fraction):
    """The bound holds and, on tables of up to 16 rows, is met but for very high quantiles."""
    tables = small_tables()
    found = largest_spread(lambda each: rank_gaps(each, q), added(tables), tables) / q.denominator
    assert found <= rank_spread(q, bounded=False)
    assert q == F(99, 100) or found == rank_spread(q, bounded=False)


@pytest.mark.parametrize("q", QS)
def test_rank_spread_of_a_row_changed_in_its_group(q: Fraction):
    tables = small_tables()
    found = largest_spread(lambda each: rank_gaps(each, q), changed(tables), tables) / q.denominator
    assert found <= rank_spread(q, bounded=True, one_group=True)
    assert q == F(99, 100) or found == rank_spread(q, bounded=True, one_group=True)


@pytest.mark.parametrize("q", QS)
def test_rank_spread_of_a_row_that_changes_its_group(q: Fraction):
    """It is added to one and taken from another, or moves within one."""
    assert rank_spread(q, bounded=True) == 2 * rank_spread(q, bounded=False)
    assert rank_spread(q, bounded=True) >= rank_spread(q, bounded=True, one_group=True)


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("from_top", [False, True])
def test_fixed_rank_spread(rank: int, from_top: bool):
    tables = small_tables()
    gaps = lambda each: rank_gaps_at(each, rank, from_top)  # noqa: E731
    assert largest_spread(gaps, added(tables), tables) == fixed_rank_spread(bounded=False)
    assert largest_spread(gaps, changed(tables), tables) == fixed_rank_spread(bounded=True, one_group=True)
    assert fixed_rank_spread(bounded=True) == 2 * fixed_rank_spread(bounded=False)


def largest_loss(law: Law, q: Fraction, spread: Fraction, neighbours: Callable[[Array], Iterator[Array]]) -> float:
    """Of one quantile drawn with the rate of epsilon 1 for this spread."""
    tables = random_tables(20, 4, 6, seed=2)
    rate = 1 / spread / q.denominator
    losses = []
    for other in neighbours(tables):
        for first, second in zip(rank_gaps(tables, q), rank_gaps(other, q), strict=True):
            losses.append(np.abs(np.log(law(first, rate) / law(second, rate))).max())
    return float(max(losses))


@pytest.mark.parametrize("law", [exponential_law, permute_and_flip_law])
@pytest.mark.parametrize("q", [F(0), F(1, 2), F(3, 4), F(1)])
def test_one_quantile_is_within_epsilon(law: Law, q: Fraction):
    """And beyond it with the spread halved, which is to forget the 2 of 2 Delta."""
    for bounded, neighbours in ((False, added), (True, changed)):
        spread = rank_spread(q, bounded, one_group=True)
        assert largest_loss(law, q, spread, neighbours) <= 1 + 1e-9
        assert largest_loss(law, q, spread / 2, neighbours) > 1


@pytest.mark.parametrize(
    ("q", "wrong", "neighbours"),
    [
        (F(3, 4), F(1, 2), added),  # Delta = 1 - q
        (F(9, 10), F(1), added),  # Delta = 1/2, which is that of the median
        (F(1, 2), F(1), changed),  # that of a row added
    ],
)
def test_a_wrong_sensitivity_is_caught(q: Fraction, wrong: Fraction, neighbours: Callable[[Array], Iterator[Array]]):
    assert max(largest_loss(law, q, wrong, neighbours) for law in (exponential_law, permute_and_flip_law)) > 1.05


# Extremes


@pytest.mark.parametrize("grid", [2, 10, 65_536])
@pytest.mark.parametrize("rate", [F(1, 100), F(1, 2), F(3)])
def test_extreme_rank_is_the_least_safe_one(grid: int, rate: Fraction):
    """On the worst data, all rows at one end: the exponential mechanism meets 5 %, permute-and-flip does better."""
    rank = extreme_rank(grid, rate)

    def beyond(law: Law, rank: int) -> float:
        counts = np.zeros((1, grid), int)
        counts[0, -1] = rank
        return float(law(rank_gaps_at(counts, rank, from_top=False)[0], rate)[:-1].sum())

    assert beyond(permute_and_flip_law, rank) <= beyond(exponential_law, rank) <= 0.05
    assert rank == 0 or beyond(exponential_law, rank - 1) > 0.05


def test_extreme_rank_of_a_single_place():
    assert extreme_rank(1, F(1)) == 0


# The recursion


@dataclass
class Paired:
    """A chooser for groups in pairs, tables of neighbours: it sends both down the same path, towards the places where
    their probabilities differ most, and sums the log ratios. Some steps are random, so that every place is met. With a
    route, it takes those places (counted from the first that the part has) instead."""

    law: Law
    pick: np.random.Generator
    losses: Array
    route: list[int] = field(default_factory=list)

    def __call__(self, gaps: Array, rate: Fraction, allowed: Any = None) -> Array:
        chosen: list[int] = []
        step = self.route.pop(0) if self.route else None
        for pair in range(len(self.losses)):
            here = allowed[2 * pair]
            assert (here == allowed[2 * pair + 1]).all()
            first, second = (self.law(row[here], rate) for row in gaps[2 * pair : 2 * pair + 2])
            ratios = np.log(first / second) * (-1) ** pair
            towards = ratios.argmax() if self.pick.random() < 0.8 else self.pick.integers(len(ratios))
            place = towards if step is None else step
            self.losses[pair] += ratios[place]
            chosen += [np.flatnonzero(here)[place]] * 2
        return np.array(chosen)


def path_loss(qs: list[Fraction], pairs: list[tuple[Array, Array]], law: Law, paths: int = 6, **how: Any) -> float:
    """The largest log ratio met, epsilon being 1."""
    chooser = Paired(law, np.random.default_rng(7), np.zeros(paths * len(pairs)))
    tables = np.array([table for pair in pairs for _ in range(paths) for table in pair])
    places = quantiles(tables, qs, F(1), chooser=chooser, **how)
    assert (places[0::2] == places[1::2]).all()
    return float(chooser.losses.max())


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """One batch, and pieces so few that laws are quick and cuts often meet."""
    monkeypatch.setattr(ranks, "_FEWEST_PIECES", 2)
    monkeypatch.setattr(ranks, "_MOST_PIECES", 2)
    monkeypatch.setattr(ranks, "_BATCH", 2**40)


def spikes() -> Iterator[Array]:
    """Tables of 24 places, where one score can outweigh all others: a few places hold all rows."""
    pick = random.Random(3)
    for most in (2, 4, 8, 8):
        counts = np.zeros(24, int)
        for place in pick.choices(range(24), k=3):
            counts[place] = pick.randrange(1, most + 1)
        yield counts
    yield np.array([0] * 23 + [5])
    yield np.array([0, 5] + [0] * 22)


def pairs_added(rows: int = 1) -> list[tuple[Array, Array]]:
    unit = np.eye(24, dtype=int)[[0, 1, 2, 9, 16, 22, 23]]
    return [(counts, counts + rows * row) for counts in spikes() for row in unit]


def pairs_changed() -> list[tuple[Array, Array]]:
    unit = np.eye(24, dtype=int)
    return [
        (counts, counts - unit[i] + unit[j])
        for counts in spikes()
        for i in np.flatnonzero(counts)[:2]
        for j in (0, 2, 11, 23)
        if i != j
    ]


MEDIAN = [F(1, 2)]
THREE = [F(1, 4), F(1, 2), F(3, 4)]
SKEW = [F(0), F(1, 2), F(9, 10)]
TAIL = [F(1, 2), F(9, 10), F(99, 100), F(999, 1000)]


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("qs", [MEDIAN, THREE, SKEW])
@pytest.mark.parametrize("law", [exponential_law, permute_and_flip_law])
def test_the_recursion_is_within_epsilon(qs: list[Fraction], law: Law):
    """For a row added; for the rows of a unit; for a row changed."""
    assert 0.5 < path_loss(qs, pairs_added(), law, rows=1, bounded=False) <= 1 + 1e-9
    assert 0.5 < path_loss(qs, pairs_added(2), law, rows=2, bounded=False) <= 1 + 1e-9
    assert 0.3 < path_loss(qs, pairs_changed(), law, rows=1, bounded=True) <= 1 + 1e-9
    assert 0.3 < path_loss(qs, pairs_changed(), law, rows=1, bounded=True, one_group=True) <= 1 + 1e-9


def tree_of_places(order: dict[tuple[int, int], int], first: int, last: int, part: Fraction) -> Tree | None:
    """All levels with as much, the middle one first where the order is silent."""
    if first == last:
        return None
    place = order.get((first, last), (first + last) // 2)
    return Tree(place, part, tree_of_places(order, first, place, part), tree_of_places(order, place + 1, last, part))


UNEVEN = [
    tree_of_places({(0, 4): 0}, 0, 4, F(1, 3)),
    tree_of_places({(0, 4): 1}, 0, 4, F(1, 3)),
    tree_of_places({(0, 4): 0, (1, 4): 1, (2, 4): 2}, 0, 4, F(1, 4)),
    Tree(1, F(1, 5), Tree(0, F(4, 5)), Tree(2, F(1, 10), None, Tree(3, F(7, 10)))),
    Tree(2, F(1, 2), Tree(0, F(1, 8), None, Tree(1, F(3, 8))), Tree(3, F(1, 2))),
    *(tree_of(tuple(TAIL), False, False, by_rho) for by_rho in (False, True)),
]


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("tree", UNEVEN, ids=str)
def test_any_tree_that_is_worth_all_is_within_epsilon(tree: Tree):
    """Draws that do not follow each other have what is left each, as rows are on one side of a cut."""
    assert tree.along(1) <= 1
    most = path_loss(TAIL, pairs_added(), exponential_law, rows=1, bounded=False, tree=tree)
    assert 0.3 < most <= 1 + 1e-9
    assert path_loss(TAIL, pairs_changed(), exponential_law, rows=1, bounded=True, tree=tree) <= 1 + 1e-9


@pytest.mark.usefixtures("coarse")
def test_parts_that_follow_each_other_and_are_worth_too_much_are_caught(monkeypatch: pytest.MonkeyPatch):
    """Each of two levels with all of epsilon."""
    monkeypatch.setattr(ranks, "whole_tree", lambda _qs, tree: tree)
    tree = Tree(1, F(1), Tree(0, F(1)), Tree(2, F(1)))
    assert path_loss(THREE, pairs_added(), exponential_law, rows=1, bounded=False, tree=tree) > 1.2


def test_a_tree_of_more_than_epsilon_is_refused():
    counts = np.ones((1, 50), int)
    more = Tree(1, F(1, 5), Tree(0, F(4, 5)), Tree(2, F(1, 10), None, Tree(3, F(701, 1000))))
    of_others = (Tree(0, F(1)), Tree(1, F(1, 2), Tree(0, F(1, 2)), Tree(3, F(1, 4), None, Tree(2, F(1, 4)))))
    for tree in (more, *of_others):
        with pytest.raises(InternalError):
            quantiles(counts, TAIL, F(1), rows=1, bounded=False, chooser=exponential, tree=tree)
        with pytest.raises(InternalError):
            rows_off(50, TAIL, F(1), rows=1, bounded=False, beta=F(1, 20), tree=tree)
    with pytest.raises(ValueError, match="part"):
        Tree(0, F(0))


@pytest.mark.parametrize("tree", UNEVEN, ids=str)
def test_what_a_tree_is_worth_is_that_of_its_dearest_way(tree: Tree):
    def ways(of: Tree) -> Iterator[list[Fraction]]:
        below = [each for each in (of.below, of.above) if each]
        yield from ([of.part, *way] for each in below for way in ways(each))
        if not below:
            yield [of.part]

    assert tree.along(1) == max(sum(way) for way in ways(tree))
    assert tree.along(2) == max(sum(part**2 for part in way) for way in ways(tree))


@pytest.mark.parametrize(
    "qs", [TAIL, [F(k, 8) for k in range(1, 8)], [F(0), F(1, 100), F(1, 50), F(1, 2), F(1)]], ids=str
)
@pytest.mark.parametrize(("bounded", "one_group"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("by_rho", [False, True])
def test_the_tree_that_is_chosen_has_the_least_squares_of_all(
    qs: list[Fraction], bounded: bool, one_group: bool, by_rho: bool
):
    """Beside all trees of as many levels that have as much, with errors carried from draw to draw as they come; and
    its parts beside others near by, that cost no more."""

    def squares(tree: Tree | None, first: int, last: int, off: dict[int, Any]) -> float:
        """`off`: how far the ends are off, by whose draw; a rank aimed at lies between them."""
        if tree is None:
            return 0.0
        place = tree.place
        low, high = (qs[first - 1] if first else F(0)), (qs[last] if last < len(qs) else F(1))
        inside = (qs[place] - low) / (high - low)
        own = float(1 - inside) * off[first - 1] + float(inside) * off[last]
        own[place] = float(rank_spread(inside, bounded, one_group and last - first == len(qs)) / tree.part)
        known = {**off, place: own}
        inner = squares(tree.below, first, place, known) + squares(tree.above, place + 1, last, known)
        return float(own @ own) + inner

    def trees(first: int, last: int, levels: int) -> Iterator[Tree | None]:
        if first == last:
            yield None
        for place in range(first, last) if levels else ():
            for left, right in product(trees(first, place, levels - 1), trees(place + 1, last, levels - 1)):
                yield Tree(place, F(1, len(qs).bit_length()), left, right)

    def near(tree: Tree) -> Iterator[Tree]:
        """One part changed by a hundredth."""
        for by in (F(99, 100), F(101, 100)):
            yield replace(tree, part=tree.part * by)
        yield from (replace(tree, below=each) for each in (near(tree.below) if tree.below else ()))
        yield from (replace(tree, above=each) for each in (near(tree.above) if tree.above else ()))

    def worth(tree: Tree) -> float:
        """Of all, had it the same cost as another."""
        return squares(tree, 0, len(qs), ends) * float(tree.along(2) if by_rho else tree.along(1) ** 2)

    def evenly(tree: Tree | None) -> Tree | None:
        below, above = (None if tree is None else evenly(each) for each in (tree and tree.below, tree and tree.above))
        return tree and Tree(tree.place, F(1, len(qs).bit_length()), below, above)

    ends = {-1: np.zeros(len(qs)), len(qs): np.zeros(len(qs))}
    chosen = tree_of(tuple(qs), bounded, one_group, by_rho)
    every = [squares(each, 0, len(qs), ends) for each in trees(0, len(qs), len(qs).bit_length())]
    assert squares(evenly(chosen), 0, len(qs), ends) <= min(every) * (1 + 1e-9)
    assert worth(chosen) <= min(map(worth, near(chosen))) * (1 + 1e-4)
    even = evenly(chosen)
    assert even is not None
    assert worth(chosen) < worth(even)
    if qs is TAIL and not bounded:
        assert chosen.place == 1


@pytest.mark.parametrize("many", [1, 2, 3, 31, 32, 33, 200])
@pytest.mark.parametrize("by_rho", [False, True])
def test_many_quantiles_have_a_tree_that_is_worth_all_of_epsilon(many: int, by_rho: bool):
    tree = tree_of(tuple(F(k, many + 1) for k in range(1, many + 1)), False, False, by_rho)
    assert tree.places == tuple(range(many))
    assert 0.999 < tree.along(1) <= 1
    assert many > 1 or tree.part == 1


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("qs", [MEDIAN, THREE])
def test_lies_about_the_recursion_are_caught(qs: list[Fraction], monkeypatch: pytest.MonkeyPatch):
    """Three rows of a unit declared as one; a row changed taken for a row added; a spread halved."""
    law = exponential_law
    assert path_loss(qs, pairs_added(3), law, rows=1, bounded=False) > 1.2
    assert path_loss(MEDIAN, pairs_changed(), law, rows=1, bounded=False) > 1.2
    monkeypatch.setattr(ranks, "rank_spread", lambda *change: rank_spread(*change) / 2)
    assert path_loss(qs, pairs_added(), law, rows=1, bounded=False) > 1.2


def test_a_row_that_changes_its_part_is_caught(monkeypatch: pytest.MonkeyPatch):
    """Even in one group: from 0 to just beyond the median it leaves one part and enters the other. It moves the
    minimum of the one and the maximum of the other, and were it taken to stay in its part, would cost too much."""
    monkeypatch.setattr(ranks, "_FEWEST_PIECES", 1)
    monkeypatch.setattr(ranks, "_MOST_PIECES", 1)
    median = 200
    before = np.zeros(2200, int)
    before[[0, -1]] = 1, 3
    after = before.copy()
    after[[0, median + 1]] = 0, 1

    def loss() -> float:
        chooser = Paired(exponential_law, np.random.default_rng(7), np.zeros(1), [median, 0, 0])
        qs = [F(0), F(1, 2), F(1)]
        quantiles(np.array([before, after]), qs, F(1), rows=1, bounded=True, one_group=True, chooser=chooser)
        return float(np.abs(chooser.losses).max())

    assert 0.5 < loss() <= 1
    monkeypatch.setattr(ranks, "rank_spread", lambda q, *_: rank_spread(q, bounded=True, one_group=True))
    assert loss() > 1.1


def test_rows_on_both_sides_of_a_cut_are_caught(monkeypatch: pytest.MonkeyPatch):
    """Were the piece at a cut whole in both parts, its rows would count twice in the next level."""
    monkeypatch.setattr(ranks, "_FEWEST_PIECES", 1)
    monkeypatch.setattr(ranks, "_MOST_PIECES", 1)
    half = [0] * 100 + [5] + [0] * 5
    pairs = [(np.array([*half, added, *half[::-1]]), np.array([*half, 1 - added, *half[::-1]])) for added in (0, 1)]
    assert path_loss(THREE, pairs, exponential_law, rows=1, bounded=False) < 0.8

    def overlapping(self: Any, tree: Tree | None, part: Any, _one_group: bool = False) -> None:
        if tree is None:
            return
        q = self.qs[tree.place]
        inside = (q - part.q_low) / (part.q_high - part.q_low)
        piece = self._draw(part, inside, self.share * tree.part / rank_spread(inside, False))
        self.places[:, tree.place] = piece
        overlapping(self, tree.below, ranks.Part(part.low, 2 * piece + 2, part.q_low, q))
        overlapping(self, tree.above, ranks.Part(2 * piece, part.high, q, part.q_high))

    monkeypatch.setattr(ranks.Recursion, "fill", overlapping)
    assert path_loss(THREE, pairs, exponential_law, rows=1, bounded=False) > 1.05


@pytest.mark.parametrize("chooser", [exponential, permute_and_flip])
@pytest.mark.parametrize(("rows", "bounded", "one_group"), [(1, False, False), (3, True, False), (1, True, True)])
def test_one_quantile_has_the_law_of_its_gaps(chooser: Chooser, rows: int, bounded: bool, one_group: bool):
    law = exponential_law if chooser is exponential else permute_and_flip_law
    counts, q, epsilon = np.array([3, 0, 5, 9, 0, 7]), F(2, 3), F(1, 2)
    how = {"rows": rows, "bounded": bounded, "one_group": one_group}
    chosen = quantiles(np.tile(counts, (200_000, 1)), [q], epsilon, chooser=chooser, **how)
    rate = epsilon / rows / rank_spread(q, bounded, one_group) / q.denominator
    expected = law(rank_gaps(counts[np.newaxis], q)[0], rate)
    assert p_value(np.bincount(chosen[:, 0], minlength=6), expected) > FLOOR


@pytest.mark.parametrize("chooser", [exponential, permute_and_flip])
def test_quantiles_of_no_rows_are_uniform(chooser: Chooser):
    """The middle one on the grid; the others on what it leaves, and never out of order."""
    chosen = quantiles(np.zeros((10_000, 5), int), THREE, F(1), rows=1, bounded=False, chooser=chooser)
    assert p_value(np.bincount(chosen[:, 1], minlength=5), np.full(5, 0.2)) > FLOOR
    assert (np.diff(chosen, axis=1) >= 0).all()
    assert set(np.unique(chosen)) == set(range(5))


@pytest.mark.parametrize("chooser", [exponential, permute_and_flip])
@pytest.mark.parametrize("grid", [1, 7, 300])
def test_quantiles_with_much_epsilon_are_right(chooser: Chooser, grid: int):
    """To half a piece of the rows that share the place of a quantile drawn before, and in every batch."""
    tables = random_tables(40, grid, 50, seed=grid) + np.eye(40, grid, dtype=int)
    qs = [F(1, 20), F(1, 4), F(1, 3), F(1, 2), F(3, 4), F(19, 20), F(1)]
    chosen = quantiles(tables, qs, SHARP, rows=1, bounded=False, chooser=chooser)
    assert (np.diff(chosen, axis=1) >= 0).all()
    for counts, places in zip(tables, chosen, strict=True):
        slack = 3 * F(int(counts.max()), 2 * ranks._FEWEST_PIECES)
        for q, place in zip(qs, places.tolist(), strict=True):
            assert distance(counts, place, q * int(counts.sum())) <= slack


@pytest.mark.parametrize("chooser", [exponential, permute_and_flip])
def test_many_equal_rows(chooser: Chooser):
    """Nine tenths of the rows are 0: so are the quantiles below .9, whatever the middle one was."""
    counts = np.zeros((20, 100), int)
    counts[:, 0], counts[:, 50] = 9000, 1000
    qs = [F(1, 4), F(1, 2), F(3, 4), F(17, 20), F(19, 20)]
    chosen = quantiles(counts, qs, F(10), rows=1, bounded=False, chooser=chooser)
    assert (chosen == [0, 0, 0, 0, 50]).all()


def test_batches_are_drawn_apart(monkeypatch: pytest.MonkeyPatch):
    tables = random_tables(30, 6, 20, seed=9) + 1
    together = quantiles(tables, THREE, SHARP, rows=1, bounded=False, chooser=permute_and_flip)
    assert together.shape == (30, 3)
    sizes = []

    def counted(gaps: Array, rate: Fraction, allowed: Any = None) -> Array:
        sizes.append(len(gaps))
        return permute_and_flip(gaps, rate, allowed)

    monkeypatch.setattr(ranks, "_BATCH", 7 * 6 * 64)
    apart = quantiles(tables, THREE, SHARP, rows=1, bounded=False, chooser=counted)
    assert sizes == [7] * 12 + [2] * 3
    errors = [distance(c, p, F(1, 2) * int(c.sum())) for c, p in zip(tables, apart[:, 1].tolist(), strict=True)]
    assert max(errors) == 0


def test_no_groups():
    assert quantiles(np.zeros((0, 4), int), THREE, F(1), rows=1, bounded=False, chooser=exponential).shape == (0, 3)


# How far off


@pytest.mark.parametrize("chooser", [permute_and_flip, exponential])
@pytest.mark.parametrize(
    ("counts", "qs", "epsilon"),
    [
        ([2000, *[0] * 59, 2000], [F(9, 20), F(1, 2), F(11, 20)], F(1, 10)),
        ([*[0] * 10, 1500, *[0] * 9, 1500, *[0] * 9, 1500, *[0] * 9], [F(9, 20), F(1, 2), F(11, 20)], F(3, 100)),
        ([*[0] * 30, 4000, *[0] * 30], [F(k, 50) for k in range(1, 16)], F(1, 10)),
        ([100] * 40, [F(1, 10), F(1, 4), F(1, 2), F(3, 4), F(9, 10)], F(1)),
        ([100] * 40, [F(1, 3)], F(1)),
    ],
)
def test_ranks_are_as_close_as_is_said(counts: list[int], qs: list[F], epsilon: F, chooser: Any) -> None:
    """At 95 %, but for half of a piece: off by more in at most 5 % of 1,000 draws, and 5 standard errors."""
    runs = 1_000
    off = rows_off(len(counts), qs, epsilon, rows=1, bounded=False, beta=F(1, 20))
    off += max(counts) // (2 * ranks.pieces_of(len(counts))) * (len(qs) > 1)
    places = quantiles(np.tile(counts, (runs, 1)), qs, epsilon, rows=1, bounded=False, chooser=chooser)
    upto = np.cumsum(counts)
    targets = np.array([float(q) for q in qs]) * sum(counts)
    gaps = np.maximum(np.maximum((upto - counts)[places] - targets, targets - upto[places]), 0)
    assert np.all((gaps > off).mean(axis=0) <= 0.05 + 5 * (0.05 * 0.95 / runs) ** 0.5)
    assert off < sum(counts)


def test_one_quantile_is_off_by_the_rank_of_an_extreme_one() -> None:
    for q in (F(1, 2), F(1, 10)):
        rate = F(1) / rank_spread(q, bounded=False)
        assert rows_off(100, [q], F(1), rows=1, bounded=False, beta=F(1, 20)) == extreme_rank(100, rate)
