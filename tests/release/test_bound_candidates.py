"""Candidates for bounds, listed one by one where there are few, against what is put together of them in runs."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsql.core.exact import Grid, LeadingDigits
from dpsql.core.unit import Neighbours
from dpsql.plan.expressions import Literal
from dpsql.release.bounds.candidates import LENGTHS, Intervals, WeightedCandidates, clipped
from dpsql.schema.columns import ColumnSchema, TableSchema, Type
from dpsql.schema.intervals import Interval
from dpsql.session.prepare import Terms, prepare
from dpsql.sql.names.catalog import Catalog

ROWS: tuple[tuple[float, ...], ...] = (
    (),
    (0.0,),
    (7.0, 7.0, 7.0),
    (1.0, -1.0, 2.0, -2.0, 3.0, 100.0),
    (2005.0, 1990.0, 2020.0, 2003.0, 1999.0, -4.0),
    (0.1, -0.3, 1e-9, -1e-12, 5e5, math.inf, -math.inf, 2.0**62, -(2.0**70)),
)
RANGES = (None, Interval(0, 99_999), Interval(-50, 7), Interval(1_900, 2_100))
WORTH, RATE = 0.75, Fraction(3, 10)


def lead_of(of: Intervals) -> LeadingDigits:
    return LeadingDigits(Literal(0, Type.INTEGER), of.digits)


def grid_of(of: Intervals, rows: tuple[float, ...]) -> Grid:
    held = np.array(rows) if of.outer is None else np.clip(rows, of.outer.lower, of.outer.upper)
    points, counts = np.unique(lead_of(of).places(np.asarray(held, dtype=np.float64)), return_counts=True)
    return Grid(np.zeros(len(points), dtype=np.int64), points, counts)


def cell_of(value: float, of: Intervals, scale: int) -> float:
    """Which [c u, (c + 1) u) a row lies in, by its leading digits; beyond all where these are too few."""
    size = abs(value)
    if size >= 2.0 ** (of.digits + 1 + scale):
        return math.copysign(math.inf, value)
    cell = math.floor(Fraction(size) / Fraction(2) ** scale)
    return -cell - 1 if value < 0 else cell


def listed(of: Intervals, rows: tuple[float, ...]) -> Counter[tuple[int, int, int, int]]:
    """Free candidates by scale, length, class and score: one after the other."""
    held = rows if of.outer is None else tuple(min(max(each, of.outer.lower), of.outer.upper) for each in rows)
    found: Counter[tuple[int, int, int, int]] = Counter()
    for scale in of.scales:
        cells = [cell_of(each, of, scale) for each in held]
        for length in LENGTHS:
            least, greatest = of.ends(scale, length)
            for j in range(least, greatest + 1):
                score = max(sum(cell < j for cell in cells), sum(cell >= j + length for cell in cells))
                middle = max(abs(2 * j + length), length)
                found[scale, length, (middle - 1).bit_length() - 1, score] += 1
    return found


@pytest.mark.parametrize("outer", RANGES, ids=str)
@pytest.mark.parametrize("whole", [True, False])
def test_runs_are_all_candidates(outer: Interval | None, whole: bool):
    of = Intervals(whole, outer, digits=3)
    for rows in ROWS:
        found = WeightedCandidates.all(of, lead_of(of), grid_of(of, rows), WORTH, RATE)
        named = len(of.named[0])
        kinds = map(tuple, found.kinds.T.tolist())
        assert dict(zip(kinds, found.many[named:].tolist(), strict=True)) == listed(of, rows)
        assert (found.many[:named] == 1).all()
        penalties, free = of.penalties(WORTH)
        scores = clipped(of, lead_of(of), grid_of(of, rows))
        said = [*(scores + penalties / float(RATE)).tolist()]
        said += [score + free[scale, length][far] / float(RATE) for scale, length, far, score in found.kinds.T.tolist()]
        assert np.allclose(found.gaps / 1_000, np.array(said) - min(said), atol=2e-3)


def test_named_ones_are_scored_by_the_rows_beyond_them():
    for outer in RANGES:
        of = Intervals(False, outer)
        for rows in ROWS:
            held = rows if outer is None else tuple(min(max(each, outer.lower), outer.upper) for each in rows)
            scores = clipped(of, lead_of(of), grid_of(of, rows))
            for score, each in zip(scores.tolist(), of.named[0], strict=True):
                assert score == max(sum(x < each.lower for x in held), sum(x > each.upper for x in held))


@pytest.mark.parametrize("outer", RANGES, ids=str)
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("worth", [WORTH, 16 * WORTH, 280.0])
def test_free_ones_weigh_little_together(outer: Interval | None, whole: bool, worth: float):
    """Where there are no rows. So few rows are as well off as without them."""
    of = Intervals(whole, outer)
    found = WeightedCandidates.all(of, lead_of(of), grid_of(of, ()), worth, RATE)
    named, (penalties, _) = len(of.named[0]), of.penalties(worth)
    weights = np.exp(-float(found.rate) * found.gaps) * found.many * math.exp(-penalties.min())
    assert weights[named:].sum() <= 0.1
    assert weights.sum() <= of.weight(worth) * (1 + 1e-3)


def chances(whole: bool, rows: tuple[float, ...], epsilon: int) -> tuple[WeightedCandidates, NDArray[np.float64]]:
    """The law of the search of a query that costs so much, over all candidates."""
    schema = TableSchema("t", (ColumnSchema("x", Type.INTEGER if whole else Type.REAL, nullable=False, auto=True),))
    made = prepare(
        "SELECT AVG(x) FROM t", Catalog({"t": schema}), Neighbours.UNBOUNDED, Terms.of(epsilon, None, None)
    ).releases[0]
    (search,) = made.searches.searches
    found = search.weighed(grid_of(search.intervals, rows))
    law = np.exp(-(found.gaps.astype(np.float64) * float(found.rate))) * found.many
    return found, law / law.sum()


def test_few_rows_have_the_bounds_that_they_have_without_free_intervals():
    """A hundred rows in 0..150: bounds from 0, not a few values around the median. But years are seen."""
    found, law = chances(False, tuple(1.5 * k for k in range(100)), 1)
    assert law[len(found.of.named[0]) :].sum() < 0.3
    found, law = chances(True, tuple(1990.0 + k % 31 for k in range(100)), 1)
    assert law[len(found.of.named[0]) :].sum() > 0.99


def test_nothing_is_too_wide_where_epsilon_is_large():
    """Of what clips nobody the narrowest is drawn, for it costs nothing to know it; and no row is clipped for that."""
    for rows in (
        tuple(float(k) for k in range(98)),
        (3.0,),
        (2.0**50, 1.0),
        tuple(float(k) for k in range(1990, 2021)),
    ):
        found, law = chances(True, rows, 150_000)
        for place in np.flatnonzero(law > 1e-12).tolist():
            drawn = found.drawn(place, chance=False)
            assert drawn.lower <= min(rows), (rows, str(drawn))
            assert max(rows) <= drawn.upper, (rows, str(drawn))
            assert drawn.upper - drawn.lower <= 2 * max(max(rows) - min(0.0, *rows), 2), (rows, str(drawn))


def test_a_drawn_one_is_of_its_kind():
    of = Intervals(True, digits=6)
    rows = ROWS[4]
    found = WeightedCandidates.all(of, lead_of(of), grid_of(of, rows), WORTH, RATE)
    named = len(of.named[0])
    for place in range(named, len(found.gaps), 7):
        scale, length, _, score = found.kinds[:, place - named].tolist()
        for chance in (True, False):
            held = found.drawn(place, chance=chance)
            assert held.upper - held.lower == length * 2**scale
            clipping = max(sum(x < held.lower for x in rows), sum(x > held.upper for x in rows))
            assert clipping <= score  # a value at an end may count as beyond it


def test_a_run_is_drawn_from_evenly():
    of = Intervals(True, digits=4)
    found = WeightedCandidates.all(of, lead_of(of), grid_of(of, ROWS[3]), WORTH, RATE)
    named = len(of.named[0])
    place = int(np.flatnonzero(found.many[named:] == 4)[0]) + named
    drawn = Counter(str(found.drawn(place, chance=True)) for _ in range(2_000))
    assert len(drawn) == 4
    assert min(drawn.values()) > 400


def test_huge_penalties_are_exact():
    """As many rows as no table has are worth a half octave, or a row as many as there are atoms: gaps are Python's
    integers, and the law is still of penalties and rows."""
    of = Intervals(True)
    for rate in (Fraction(1, 10**18), Fraction(10**20), Fraction(10**6), Fraction(10)):
        found = WeightedCandidates.all(of, lead_of(of), grid_of(of, ROWS[4]), WORTH, rate)
        assert (found.gaps.dtype == object) == (rate not in {10, 10**6})
        assert min(found.gaps) == 0
        likely = [place for place, gap in enumerate(found.gaps.tolist()) if gap * found.rate < 0.5]
        assert len(likely) < 20  # penalties tell them apart
