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
from dpsql.core import samplers
from dpsql.core.cost import Cost
from dpsql.plan.expressions import Column, Fact
from dpsql.release import auto_bounds
from dpsql.release.auto_bounds import Search, candidates
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval

DRAWS = 150
Data = Callable[[np.random.Generator], Any]


@pytest.fixture(autouse=True)
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.random.default_rng(14)
    monkeypatch.setattr(samplers, "_random_words", lambda n: words.integers(0, 2**64, n, dtype=np.uint64))


def search_of(
    *, epsilon: Fraction, mechanism: str = "permute_and_flip", rows: int = 1, bounded: bool = False
) -> Search:
    column = Column("x", Type.REAL, Fact())
    return Search.of(
        column, epsilon, rows, bounded=bounded, mechanism=mechanism, worth=Fraction(7, 10), cost=Cost.of(epsilon)
    )


def counts_of(search: Search, values: Any) -> Any:
    """Rows between the edges: those up to the first, then up to each next."""
    edges = np.array(search.grid.of.edges)  # type: ignore[union-attr]
    return np.bincount(np.searchsorted(edges, values, side="left"), minlength=search.grid.points)


def slowly_thinning(rng: np.random.Generator) -> Any:
    """As many rows in each half octave as the penalty for it: the best score is the same everywhere."""
    bounds, _ = candidates(whole=False)
    each = round(0.7 / 0.3)
    return np.repeat(np.array(bounds[2:]), each) * 0.999


DATA: dict[str, Data] = {
    "lognormal": lambda rng: rng.lognormal(0, 2, 1000),
    "pareto": lambda rng: rng.pareto(1.1, 2000) + 1,
    "two sides": lambda rng: rng.standard_cauchy(500) * 50,
    "constant": lambda _rng: np.full(300, 7.0),
    "few": lambda rng: rng.lognormal(8, 1, 20),
    "empty": lambda _rng: np.zeros(0),
    "slowly thinning": slowly_thinning,
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("mechanism", ["permute_and_flip", "exponential"])
def test_no_more_rows_are_clipped_than_is_said(name: str, mechanism: str):
    values = DATA[name](np.random.default_rng(3))
    search = search_of(epsilon=Fraction(3, 10), mechanism=mechanism)
    counts = counts_of(search, values)
    missed = 0
    for _ in range(DRAWS):
        drawn = search.choose(counts)
        below, above = search.clipped_at_most(drawn)
        missed += (values < float(drawn.lower)).sum() > below or (values > float(drawn.upper)).sum() > above
    assert missed / DRAWS <= 0.05 + 5 * (0.05 * 0.95 / DRAWS) ** 0.5


def test_what_is_said_follows_from_the_penalty():
    """Worked by hand: 7/10 of a row for each half octave up to 2^62, divided by epsilon, and the logarithm."""
    search = search_of(epsilon=Fraction(3, 10))
    bounds, steps = candidates(whole=False)
    below, above = search.clipped_at_most(Interval(0, 64.0))
    chance = math.log((len(bounds) - 1) / 0.025) / 0.3
    assert above == math.floor(2.333 * (2 * (62 - 6)) + chance)
    assert below == math.floor(2.333 * steps[-1] + chance)
    assert search.clipped_at_most(Interval(-(2.0**62), 2.0**62)) == (0, 0)
    assert search.clipped_at_most(Interval(0, 2.0**-32))[1] == below  # a drawn 0 is shown as that
    twice = search_of(epsilon=Fraction(3, 10), rows=3, bounded=True).clipped_at_most(Interval(0, 64.0))
    assert twice[1] == pytest.approx(6 * above, abs=6)


def test_it_could_hardly_say_less():
    """Where rows thin out as slowly as the penalty allows, some draws leave out most of what is said."""
    values = slowly_thinning(np.random.default_rng(0))
    search = search_of(epsilon=Fraction(3, 10))
    counts = counts_of(search, values)
    shares = []
    for _ in range(100):
        drawn = search.choose(counts)
        shares.append((values > float(drawn.upper)).sum() / max(1, search.clipped_at_most(drawn)[1]))
    assert max(shares) > 0.6


def test_the_answer_says_whose_interval_it_is():
    frame = pd.DataFrame({"x": np.random.default_rng(1).pareto(1.1, 3000)})
    result = dpsql.query(dpsql.declare(frame, bounds={"x": "auto"}), "SELECT SUM(x) AS s FROM frame", epsilon=1)
    (note,) = [each for each in result.notes if each.startswith("bounds chosen privately")]
    (told,) = result.explanation.to_dict()["bounds"]
    limits = told["clipped_at_most"]
    assert f"intervals are of the clipped values; at most {limits['above']:,} rows lie above" in note
    assert limits["confidence"] == 0.95
    lower, upper = result.bounds["x"]
    assert (frame["x"] > upper).sum() <= limits["above"]
    assert lower <= 0 < upper


def _forget_the_penalty(patch: pytest.MonkeyPatch) -> None:
    honest = auto_bounds.candidates
    flat = lambda *, whole: (honest(whole=whole)[0], (0,) * len(honest(whole=whole)[0]))  # noqa: E731
    told = Search.clipped_at_most

    def clipped(self: Search, drawn: Interval) -> tuple[int, int]:
        with patch.context() as inner:
            inner.setattr(auto_bounds, "candidates", flat)
            return told(self, drawn)

    patch.setattr(Search, "clipped_at_most", clipped)


def test_a_bound_without_the_penalty_is_caught(monkeypatch: pytest.MonkeyPatch):
    _forget_the_penalty(monkeypatch)
    with pytest.raises(AssertionError):
        test_no_more_rows_are_clipped_than_is_said("slowly thinning", "permute_and_flip")
