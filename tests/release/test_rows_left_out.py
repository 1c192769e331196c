"""How many rows bounds that a query chose itself clip: no more than is said, with the probability that is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.cost import Cost
from dpsql.core.exact import Grid, LeadingDigits
from dpsql.plan.expressions import Column, Fact
from dpsql.release.bounds import candidates as bound_candidates
from dpsql.release.bounds.auto_bounds import Search
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval
from tests.seeding import seed

DRAWS = 150
Data = Callable[[np.random.Generator], Any]


@pytest.fixture(autouse=True)
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 14)


def search_of(*, epsilon: Fraction, rows: int = 1, bounded: bool = False, within: Interval | None = None) -> Search:
    column = Column("x", Type.REAL, Fact() if within is None else Fact(within))
    worth, cost = Fraction(3, 4), Cost.of(epsilon)
    return Search.of(column, epsilon, rows, bounded=bounded, mechanism="exponential", worth=worth, cost=cost)


def counts_of(search: Search, values: Any) -> Grid:
    """Rows at their places."""
    of = search.grid.of
    assert isinstance(of, LeadingDigits)
    if search.intervals.outer is not None:
        values = np.clip(values, float(search.intervals.outer.lower), float(search.intervals.outer.upper))
    points, counts = np.unique(of.places(np.asarray(values, dtype=np.float64)), return_counts=True)
    return Grid(np.zeros(len(points), dtype=np.int64), points, counts)


def slowly_thinning(_rng: np.random.Generator) -> Any:
    """As many rows in each half octave as the penalty for it: the best score is the same everywhere."""
    return np.repeat(2.0 ** (np.arange(-8, 124) / 2), np.resize([2, 3], 132)) * 0.999


DATA: dict[str, Data] = {
    "lognormal": lambda rng: rng.lognormal(0, 2, 1000),
    "pareto": lambda rng: rng.pareto(1.1, 2000) + 1,
    "two sides": lambda rng: rng.standard_cauchy(500) * 50,
    "constant": lambda _rng: np.full(300, 7.0),
    "few": lambda rng: rng.lognormal(8, 1, 20),
    "empty": lambda _rng: np.zeros(0),
    "slowly thinning": slowly_thinning,
}


WITHIN = (None, Interval(0.0, 1e5), Interval(-3.0, 40.0))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("within", WITHIN, ids=str)
def test_no_more_rows_are_clipped_than_is_said(name: str, within: Interval | None):
    """Those beyond the declared range, which are clipped by it, are not counted."""
    values = DATA[name](np.random.default_rng(3))
    if within is not None:
        values = np.clip(values, within.lower, within.upper)
    search = search_of(epsilon=Fraction(3, 10), within=within)
    counts = counts_of(search, values)
    missed = 0
    for _ in range(DRAWS):
        drawn = search.choose(counts)
        below, above = search.clipped_at_most(drawn)
        missed += (values < float(drawn.lower)).sum() > below or (values > float(drawn.upper)).sum() > above
    assert missed / DRAWS <= 0.05 + 5 * (0.05 * 0.95 / DRAWS) ** 0.5


def test_what_is_said_follows_from_the_penalty():
    """Worked by hand: the widest stands 17 + 2 * 62 half octaves up, and 2 more as it is on both sides, at 3/4 of a
    row each, divided by epsilon; and the logarithm of what all weigh together, for 1 in 20."""
    search = search_of(epsilon=Fraction(3, 10))
    most = math.floor((0.75 * (17 + 124 + 2) + math.log(search.intervals.weight(0.75) / 0.05)) / 0.3) + 1
    assert search.intervals.weight(0.75) == pytest.approx(2.44, abs=0.01)
    assert search.clipped_at_most(Interval(0, 64.0)) == (most, most)
    assert search.clipped_at_most(Interval(-(2.0**62), 2.0**62)) == (0, 0)
    twice = search_of(epsilon=Fraction(3, 10), rows=3, bounded=True).clipped_at_most(Interval(0, 64.0))
    assert twice[1] == pytest.approx(6 * most, abs=6)


def test_it_could_hardly_say_less():
    """Where rows thin out as slowly as the penalty allows, some draws leave out nearly half of what is said."""
    values = slowly_thinning(np.random.default_rng(0))
    search = search_of(epsilon=Fraction(3, 10))
    counts = counts_of(search, values)
    shares = []
    for _ in range(100):
        drawn = search.choose(counts)
        shares.append((values > float(drawn.upper)).sum() / max(1, search.clipped_at_most(drawn)[1]))
    assert max(shares) > 0.4


def test_the_explanation_says_how_many_rows_are_clipped():
    frame = pd.DataFrame({"x": np.random.default_rng(1).pareto(1.1, 3000)})
    result = dpsql.query(dpsql.declare(frame, bounds={"x": "auto"}), "SELECT SUM(x) AS s FROM frame", epsilon=1)
    note = " ".join(str(result.explanation).split())
    (told,) = result.explanation.to_dict()["bounds"]
    limits = told["clipped_at_most"]
    assert f"at most {limits['above']:,} rows lie above" in note
    assert limits["confidence"] == 0.95
    lower, upper = result.bounds["x"]
    assert (frame["x"] > upper).sum() <= limits["above"]
    assert lower < upper


def _forget_the_penalty(patch: pytest.MonkeyPatch) -> None:
    told = Search.clipped_at_most

    def flat(of: Any, worth: float) -> Any:
        named, free = bound_candidates._penalties(of, worth)
        return 0 * named, free

    def clipped(self: Search, drawn: Interval) -> tuple[int, int]:
        with patch.context() as inner:
            inner.setattr(bound_candidates.Intervals, "penalties", flat)
            return told(self, drawn)

    patch.setattr(Search, "clipped_at_most", clipped)


def test_a_bound_without_the_penalty_is_caught(monkeypatch: pytest.MonkeyPatch):
    _forget_the_penalty(monkeypatch)
    with pytest.raises(AssertionError):
        test_no_more_rows_are_clipped_than_is_said("slowly thinning", None)
