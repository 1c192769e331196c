"""Quantiles by runs of candidates of equal score: against the law over all candidates one by one, on small ranges."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

import dpsql
from dpsql.core.cost import Cost
from dpsql.core.mechanisms import exponential as choosing
from dpsql.core.mechanisms import quantile_runs as runs
from dpsql.core.mechanisms import quantiles as ranks
from dpsql.core.mechanisms import samplers
from dpsql.core.mechanisms.exponential import ChoiceSequence, exponential
from dpsql.core.mechanisms.quantile_runs import (
    CountedRows,
    RoundNumbers,
    Runs,
    best_among,
    powers_of_ten,
    quantiles_among,
)
from tests.core.test_exponential import fits

F = Fraction
Array = npt.NDArray[Any]
DRAWS = 60_000
EVEN = RoundNumbers(0, 11, (1,), decades=False)
TENS = RoundNumbers(-12, 23, (1, 10), decades=True)
TIMES = RoundNumbers(-7, 20, (1, 6, 12), decades=False)
NUMBERS = [
    EVEN, TENS, TIMES, RoundNumbers(3, 9, (1,), decades=True), RoundNumbers(-50, -7, (1, 10), decades=True),
    RoundNumbers(-130, 1_000, (1, 10, 100), decades=True), RoundNumbers(5, 5, (1,), decades=False),
]  # fmt: skip
TABLES: tuple[dict[int, int], ...] = ({}, {3: 1}, {0: 4, 5: 1}, {3: 2, 4: 1, 9: 3}, {5: 30}, {0: 1, 11: 1})


def weight(of: RoundNumbers, value: int) -> int:
    """How many times a value stands, by the documented rule."""
    if value == 0 and of.decades:
        return 9 * of.strides[-1]
    round_by = sum(stride for stride in of.strides if value % stride == 0)
    shorter = len(of.strides) - min(len(of.strides), len(str(abs(value))))
    return round_by * (10**shorter * [8, 3, 2, *[1] * 20][shorter] if of.decades else 1)


def counted(*tables: dict[int, int]) -> CountedRows:
    cells = [(group, value, rows) for group, table in enumerate(tables) for value, rows in sorted(table.items())]
    groups, values, counts = np.array(cells, dtype=np.int64).reshape(-1, 3).T
    return CountedRows(groups, values, counts)


def runs_of(of: RoundNumbers, table: dict[int, int], pieces: int, groups: int, denominator: int = 1) -> Runs:
    (values, counts) = (list(table), list(table.values()))
    shape = (groups, 1)
    return Runs.of(of, np.tile([*values, of.most + 1], shape), np.tile([*counts, 0], shape), pieces, denominator)


# Candidates


@pytest.mark.parametrize("of", NUMBERS, ids=str)
def test_each_value_stands_as_often_as_it_is_round(of: RoundNumbers):
    values = np.arange(of.least, of.most + 1)
    found = of.upto(values) - of.upto(values - 1)
    assert found.tolist() == [weight(of, value) for value in values.tolist()]
    assert of.total == found.sum() <= (of.odds * found.min())
    places = of.upto(np.array([of.least - 1])) + np.arange(of.total)[:: max(1, of.total // 5_000)]
    assert (of.at(places) == np.repeat(values, found)[:: max(1, of.total // 5_000)]).all()


@pytest.mark.parametrize(
    ("least", "most"), [(0, 10**14), (-(10**14), 10**14), (-7, 3), (1, 10**9), (10**13, 10**14), (-(10**14), 0)]
)
def test_ranges_of_any_size(least: int, most: int):
    of = RoundNumbers(least, most, powers_of_ten(least, most), decades=True)
    some = np.unique(np.random.default_rng(5).integers(least, most + 1, 1_000))
    some = np.unique([*some.tolist(), least, most])
    ends = of.upto(some)
    assert (np.diff(ends) > 0).all()
    assert (of.at(ends - 1) == some).all()
    assert (of.at(of.upto(some - 1)) == some).all()
    assert 16 * of.total < 2**62


@pytest.mark.parametrize(
    "wrong",
    [(3, 2, (1,), False), (0, 9, (2,), False), (0, 9, (1, 1), False), (0, 99, (1,), True), (0, 2**60, (1, 10), False),
     (-(10**15), 10**15, powers_of_ten(-(10**15), 10**15), True)],
)  # fmt: skip
def test_refused_candidates(wrong: Any):
    with pytest.raises(ValueError, match="candidates"):
        RoundNumbers(*wrong)


# The law over runs is that over all candidates


def gaps_of_pieces(of: RoundNumbers, table: dict[int, int], pieces: int, low: int, high: int, q: Fraction) -> Array:
    """(weight, gap in rows) of each piece that a part has something of, one by one; others have weight 0."""
    rows = np.array([table.get(value, 0) for value in range(of.least, of.most + 1)])
    halves = np.repeat(rows, 2 * pieces) * F(1, 2 * pieces)
    inside = halves * ((np.arange(len(halves)) >= low) & (np.arange(len(halves)) < high))
    edges = [F(0), *itertools.accumulate(inside)]
    target, found = q * edges[-1], []
    for piece in range(len(rows) * pieces):
        below, upto = edges[2 * piece], edges[2 * piece + 2]
        usable = low < 2 * piece + 2 and 2 * piece < high
        gap = max(below - target, target - upto, F(0))
        found.append((weight(of, of.least + piece // pieces) if usable else 0, gap))
    return np.array(found, dtype=object)


def law_of_pieces(of: RoundNumbers, table: dict[int, int], pieces: int, part: Any, q: Fraction, rate: Fraction) -> Any:
    cells = gaps_of_pieces(of, table, pieces, *part, q)
    weights = np.array([float(many) * math.exp(-float(rate * gap)) for many, gap in cells])
    return weights / weights.sum()


@pytest.mark.thinned(4)
@pytest.mark.parametrize("of", [EVEN, TENS, TIMES], ids=str)
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize(
    ("pieces", "part", "q"),
    [(1, None, F(1, 2)), (1, None, F(0)), (1, None, F(9, 10)), (3, None, F(1, 4)), (2, (5, 27), F(1, 2)),
     (2, (9, 11), F(1, 3)), (3, (0, 33), F(1))],
)  # fmt: skip
def test_a_draw_follows_the_law_over_all_pieces(
    of: RoundNumbers, table: dict[int, int], pieces: int, part: Any, q: Fraction
):
    every = 2 * pieces * (of.most - of.least + 1)
    low, high = part or (0, every)
    law = law_of_pieces(of, table, pieces, (low, high), q, F(2, 3))
    groups = DRAWS // 4
    drawn = runs_of(of, table, pieces, groups, q.denominator).draw(
        np.full(groups, low), np.full(groups, high), q, F(2, 3) / (2 * pieces * q.denominator), None
    )
    assert fits(np.bincount(drawn, minlength=every // 2), law)


def test_lies_about_runs_are_caught(monkeypatch: pytest.MonkeyPatch):
    """Runs that weigh as one candidate, the first candidate of each, and pieces that are all kept."""
    case = (EVEN, {3: 2, 4: 1, 9: 3}, 3, None, F(1, 4))
    lies = {
        "exponential": lambda gaps, rate, lengths: exponential(gaps, rate, lengths > 0),
        "uniform_below": lambda lengths: lengths * 0,
        "_coins": lambda gaps, _: gaps >= 0,
    }
    test_a_draw_follows_the_law_over_all_pieces(*case)
    for name, lie in lies.items():
        with monkeypatch.context() as patch:
            patch.setattr(runs, name, lie)
            with pytest.raises(AssertionError):
                test_a_draw_follows_the_law_over_all_pieces(*case)


@pytest.mark.parametrize("qs", [[F(1, 2)], [F(1, 4), F(2, 3)], [F(0), F(1, 2), F(9, 10)]])
def test_quantiles_are_those_of_the_grid_with_all_places(qs: list[Fraction], monkeypatch: pytest.MonkeyPatch):
    """Where each value stands once: the same law as `quantiles` by the exponential mechanism."""
    for table in TABLES:
        dense = np.array([[table.get(value, 0) for value in range(12)]] * DRAWS)
        monkeypatch.setattr(ranks, "pieces_of", lambda _: 2)
        monkeypatch.setattr(runs, "pieces_of", lambda _: 2)
        how: dict[str, Any] = {"rows": 1, "bounded": False}
        plain = ranks.quantiles(dense, qs, F(2), chooser=exponential, **how)
        among = quantiles_among(EVEN, counted(*[table] * DRAWS), DRAWS, qs, F(2), **how)
        assert (np.diff(among, axis=1) >= 0).all()
        names = 12 ** np.arange(len(qs))
        one, other = (np.bincount(found @ names, minlength=12 ** len(qs)) for found in (plain, among))
        both = one + other
        known = both >= 20
        chi = ((one - other)[known] ** 2 / both[known]).sum()
        assert chi < known.sum() + 8 * math.sqrt(2 * known.sum()) + 10, table


def test_groups_are_drawn_each_from_its_own_rows():
    """Groups of few and of many different values, in no order, and of none."""
    tables: list[dict[int, int]] = [
        dict.fromkeys(range(start, start + many), 10000)
        for start, many in ((900, 80), (3, 1), (0, 0), (500, 7), (-100, 200), (40, 1), (7, 3))
    ]
    of = RoundNumbers(-130, 1_000, (1, 10, 100), decades=True)
    found = quantiles_among(of, counted(*tables), 7, [F(1, 10), F(1, 2)], F(10), rows=1, bounded=False)
    best = best_among(of, counted(*tables), 7, [F(1, 10), F(1, 2)])
    for table, drawn, exact in zip(tables, found.tolist(), best.tolist(), strict=True):
        values = sorted(table)
        if values:
            assert drawn[1] == exact[1] == values[(len(values) - 1) // 2] or abs(drawn[1] - exact[1]) == 1
            assert abs(drawn[0] - exact[0]) <= 1
            assert exact[0] == values[max(0, math.ceil(len(values) / 10) - 1)]
        else:
            assert exact == [of.least, of.least]
            assert all(of.least <= each <= of.most for each in drawn)


def test_integers_decide_as_floats_do(monkeypatch: pytest.MonkeyPatch):
    """With lengths from one candidate to 2^50: the same random words give the same places."""
    pick = np.random.default_rng(1)
    gaps = pick.integers(0, 40, (300, 30))
    lengths = 2 ** pick.integers(0, 50, gaps.shape) * (pick.random(gaps.shape) < 0.8)
    gaps[np.arange(300), lengths.argmax(axis=1)] = 0
    words = samplers.random_words(300)
    monkeypatch.setattr(choosing, "random_words", lambda n: words[:n])
    by_floats = exponential(gaps, F(1, 7), lengths)
    assert (np.take_along_axis(lengths, by_floats[:, None], axis=1) > 0).all()
    monkeypatch.setattr(choosing, "_MARGIN", 2.0)
    assert (exponential(gaps, F(1, 7), lengths) == by_floats).all()


def test_brackets_enclose_cumulative_probabilities_of_lengths():
    gaps, lengths, rate = [4, 0, 90, 1], [10**15, 1, 10**18, 7], F(3, 10)
    law = choosing._ExactLaw(gaps, rate, lengths)
    weights = [many * math.exp(-0.3 * gap) for gap, many in zip(gaps, lengths, strict=True)]
    for place in range(4):
        low, high = (F(end, 2**200) for end in law.bracket(place, 200))
        assert 0 <= high - low < F(8, 2**200)
        assert math.isclose(low, sum(weights[: place + 1]) / sum(weights), rel_tol=1e-12)


# Neighbours


def neighbours() -> Iterator[tuple[bool, dict[int, int], dict[int, int]]]:
    """(changed rather than added, one table, another) of a few rows."""
    for table in TABLES:
        for value in (-12, -1, 0, 3, 4, 10, 23):
            more = {**table, value: table.get(value, 0) + 1}
            yield False, table, more
            for held in table:
                yield True, table, {**more, held: more[held] - 1}


@pytest.mark.parametrize("q", [F(0), F(1, 2), F(3, 4), F(1)])
def test_one_quantile_is_within_epsilon_of_its_neighbours(q: Fraction):
    """By the law over all candidates, at the rate of the engine; and beyond it at twice the rate."""
    most = 0.0
    for changed, one, other in neighbours():
        rate = 1 / ranks.rank_spread(q, changed, one_group=True)
        part = (0, 2 * (TENS.most - TENS.least + 1))
        first, second = (law_of_pieces(TENS, table, 1, part, q, rate) for table in (one, other))
        most = max(most, float(np.abs(np.log(first / second)).max()))
    assert 0.4 < most <= 1 + 1e-9


@pytest.mark.parametrize("changed", [False, True])
def test_two_quantiles_are_within_epsilon_of_their_neighbours(changed: bool):
    """All ways through: a piece, cut in its middle, and one of the part below it, values standing as often as they are
    round."""
    of, pieces, qs = RoundNumbers(-2, 10, (1, 5), decades=False), 2, (F(1, 4), F(1, 2))
    every = 2 * pieces * (of.most - of.least + 1)

    def law(table: dict[int, int]) -> Array:
        rate = F(1, 2) / ranks.rank_spread(qs[1], changed, one_group=True)
        ways = np.log(law_of_pieces(of, table, pieces, (0, every), qs[1], rate))
        inside = F(1, 2) / ranks.rank_spread(F(1, 2), changed)
        with np.errstate(divide="ignore"):
            below = [
                np.log(law_of_pieces(of, table, pieces, (0, 2 * piece + 1), F(1, 2), inside))
                for piece in range(len(ways))
            ]
        return np.stack([way + rest for way, rest in zip(ways, below, strict=True)])

    most = 0.0
    for by_change, one, other in neighbours():
        if by_change == changed and all(of.least <= value <= of.most for value in (*one, *other)):
            first, second = law(one), law(other)
            assert (np.isneginf(first) == np.isneginf(second)).all()
            held = ~np.isneginf(first)
            most = max(most, float(np.abs(first[held] - second[held]).max()))
    assert 0.3 < most <= 1 + 1e-9


def test_a_choice_paid_by_epsilon_costs_it_whatever_chooses():
    """And as rho what its mechanism is worth."""
    assert ChoiceSequence("exponential", F(1), pure=True).loss == Cost(F(1), rho=F(1, 8))
    assert ChoiceSequence("permute_and_flip", F(1)).loss == Cost.of(F(1)) == Cost(F(1), rho=F(1, 2))
    assert ChoiceSequence("exponential", F(1)).loss.epsilon is None


# Answers


def rank_off(values: Any, answer: Any, q: float) -> float:
    held = np.sort(values)
    below, upto = np.searchsorted(held, answer, "left"), np.searchsorted(held, answer, "right")
    return float(max(below - q * len(held), q * len(held) - upto, 0))


PICK = np.random.default_rng(16)
DAY = 86_400
START = 5_000 * DAY
WIDE: list[tuple[str, Any, tuple[Any, Any]]] = [
    ("seconds", START + PICK.integers(0, DAY, 10_000), (0, 30 * 365 * DAY)),
    ("normal", PICK.normal(1e6, 10, 10_000), (0, 10**9)),
    ("normal", PICK.normal(-1e6, 10, 10_000), (-(10**9), 10**9)),
    ("ages", PICK.integers(17, 91, 10_000) * 1.0, (0, 1e6)),
    ("prices", np.round(PICK.lognormal(3, 1, 10_000), 2), (0, 1e12)),
    ("far", PICK.integers(0, 100, 10_000) * 10**9, (-(10**18), 10**18)),
    ("small", PICK.normal(0, 1e-9, 10_000), (-1.0, 1.0)),
    (
        "times",
        pd.Timestamp("2019-03-02") + pd.to_timedelta(PICK.integers(0, DAY * 10**6, 10_000), "us"),
        ("2000-01-01", "2030-01-01"),
    ),
]


@pytest.mark.parametrize(("name", "values", "bounds"), WIDE, ids=[name for name, *_ in WIDE])
def test_quantiles_of_what_lies_in_a_small_part_of_its_range(name: str, values: Any, bounds: tuple[Any, Any]):
    frame = pd.DataFrame({"x": values, "g": np.arange(10_000) % 2 == 0})
    tables = {"t": dpsql.Table(frame, bounds={"x": bounds})}
    offs = []
    for _ in range(5):
        answer = dpsql.query(tables, "SELECT MEDIAN(x) FROM t", epsilon=1).item()
        offs.append(rank_off(values, pd.Timestamp(answer) if name == "times" else answer, 0.5))
    assert np.mean(offs) <= 15, offs
    sql = "SELECT g, QUANTILE(x, 0.25) AS a, MEDIAN(x) AS b, QUANTILE(x, 0.75) AS c FROM t GROUP BY g"
    found = dpsql.query(tables, sql, epsilon=4)
    assert len(found) == 2
    assert (found.df.a <= found.df.b).all()
    assert (found.df.b <= found.df.c).all()


def test_rows_without_a_value_count_for_nothing_and_groups_without_rows_have_any():
    frame = pd.DataFrame({"x": [5.25, None, float("nan")] * 2_000, "k": ["a", "b", "c"] * 2_000})
    found = dpsql.query(
        frame, "SELECT k, MEDIAN(x) AS m FROM t GROUP BY k", epsilon=1, bounds={"x": (0, 1e9)}, keys={"k": list("abcd")}
    ).df.set_index("k")["m"]
    assert found["a"] == 5.25
    assert found.between(0, 1e9).all()


@pytest.mark.parametrize("how", ["LAPLACE_THRESHOLD", "TRUNCATED_GEOMETRIC"])
@pytest.mark.parametrize("keys", [["z", "m", "a"], ["a", "m", "z"], ["m", "z", "a"]])
def test_groups_that_are_hidden_keep_their_own_rows_in_whatever_order_they_come(how: str, keys: list[str]):
    """Groups are shown in the order of their keys, and rows are counted in that in which they came."""
    middles = {"a": 1_000.0, "m": 200_000.0, "z": 3_000_000.0}
    spread = np.random.default_rng(3).normal(0, 5, 2_000)
    frame = pd.DataFrame({"k": np.repeat(keys, 2_000), "x": np.concatenate([middles[key] + spread for key in keys])})
    frame = pd.concat([pd.DataFrame({"k": ["few"], "x": [7.0]}), frame], ignore_index=True)
    sql = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (group_selection_strategy = {how}) k, MEDIAN(x), QUANTILE(x, 0.9)"
    found = dpsql.query(frame, f"{sql} FROM t GROUP BY k", epsilon=20, delta=1e-9, bounds={"x": (0, 1e9)})
    rows = list(found.df.itertuples(index=False))
    assert [row[0] for row in rows] == sorted(keys)
    for key, median, upper in rows:
        assert abs(median - middles[key]) < 3
        assert abs(upper - middles[key] - 6.4) < 3


def test_public_tables_have_the_right_value():
    frame = pd.DataFrame({"x": [3.5, 1e6, 2.25], "n": [10**12, 7, 8], "k": ["a", "a", "b"]})
    session = dpsql.Session(
        {"t": dpsql.Table(frame, public=True, bounds={"x": (0, 1e9), "n": (0, 10**13)})}, budget=dpsql.Budget(1)
    )
    found = session.query("SELECT MEDIAN(x) AS x, MEDIAN(n) AS n, QUANTILE(x, 0.9) AS q FROM t", epsilon=1).df
    assert found.iloc[0].tolist() == [3.5, 8, 1e6]


def test_the_charge_of_a_draw_among_runs():
    frame = pd.DataFrame({"x": np.arange(100.0), "u": np.arange(100) // 2})
    for how, paid in (({"epsilon": 1}, (F(1), 0.125)), ({"rho": 0.1}, (None, 0.1))):
        for declared in ({}, {"unit": "u", "max_rows": 2}):
            result = dpsql.query(frame, "SELECT MEDIAN(x) FROM t", bounds={"x": (0, 1e9)}, **declared, **how)
            (draw,) = result.explanation._release.draws
            assert draw.mechanism == "exponential"
            assert (draw.cost.epsilon, float(draw.cost.rho)) == (paid[0], pytest.approx(paid[1]))
            assert draw.rows == (2 if declared else 1)
            assert "by exponential" in str(result.explanation)
