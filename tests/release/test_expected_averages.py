"""What `explain` expects of an average holds wherever in its range the mean is."""

from __future__ import annotations

import numpy as np
import pytest

import dpsql
from dpsql.release.intervals.averages import average_at_worst
from tests.core.checks import B, Shape, U, calibrated
from tests.release.given_shown import released_of
from tests.seeding import seed

SHAPE = Shape({"x": "float64", "y": "float64"}, {"bounds": {"x": (0, 100), "y": (-1, 1)}, "nullable": {"x": False}})


@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("rows", [100, 1000])
@pytest.mark.parametrize("asked", ["AVG(x)", "AVG(y)", "AVG(x), COUNT(*), SUM(y)"])
def test_averages_are_off_by_no_more_at_worst(asked: str, rows: int, relation: str, monkeypatch: pytest.MonkeyPatch):
    seed(monkeypatch, 8)
    made = calibrated(SHAPE.schema(), f"SELECT {asked} FROM t", relation)
    (estimate, *_) = made.estimates
    worst = average_at_worst(made, estimate, rows, 0.95)
    share, draws = made.shares[0], 20_000
    centre, reach = estimate.centre, float(estimate.range.upper) - estimate.centre
    for mean in (-1.0, 0.0, 0.5, 0.9, 1.0):
        exact = np.zeros(len(made.coordinates))
        assert estimate.sum is not None
        assert estimate.count is not None
        exact[estimate.count] = rows / made.coordinates[estimate.count].unit
        exact[estimate.sum] = rows * mean * reach / made.coordinates[estimate.sum].unit
        noise = np.zeros((len(exact), draws))
        noise[list(share.places)] = share.noise.draw(draws)
        values = released_of(made, exact[:, None] + noise).values
        found = np.clip(centre + values[estimate.sum] / values[estimate.count], centre - reach, centre + reach)
        off = np.abs(found - centre - mean * reach)
        assert np.mean(off <= worst) >= 0.95 - 5 * (0.95 * 0.05 / draws) ** 0.5, mean
        if relation == U and rows == 1000 and mean == 0.9:
            assert np.quantile(off, 0.95) > 0.85 * worst  # and it is no looser than need be


def test_explain_has_a_line_for_it():
    made = calibrated(SHAPE.schema(), "SELECT AVG(x) AS a, COUNT(*) AS n FROM t", U)
    text = str(dpsql.Explanation(made))
    lines = text.splitlines()
    middle, worst = (next(line for line in lines if line.startswith(start)) for start in ("  a ", "  a, at worst "))
    first, second = (float(line.split("±")[2].split()[0]) for line in (middle, worst))
    assert first < second < 3 * first
