"""Noise intervals cover the exact clipped answer: at least at their level, hardly more, at every size of table.

10,000 releases each, from a fixed seed; limits are five standard errors wide (a right interval is called wrong by one
seed in a million). The slow test has a million of each, so that half a point shows.
Answers on a fine lattice are covered at the level + 0.5 points at most; whole numbers by the narrowest whole interval.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsql.accuracy.widths import half_width
from dpsql.release.intervals.intervals import interval
from dpsql.release.output.select import finish
from dpsql.release.release import ReleasedValues
from tests.core.checks import B, Shape, U, calibrated, of_copies, run_exactly, stacked
from tests.seeding import seed

DRAWS = 10_000
SHAPE = Shape(
    {"x": "float64", "p": "int64", "n": "float64", "g": "str"},
    {"bounds": {"x": (-1, 3), "p": (20, 30), "n": (0, 1000)}, "keys": {"g": ["a"]}, "nullable": {"x": False}},
)


@pytest.fixture(autouse=True)
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 19)


def table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(rows)
    n = rng.uniform(0, 1000, rows)
    n[::7] = np.nan
    return pd.DataFrame({
        "x": rng.beta(2, 8, rows) * 4 - 1,
        "p": rng.integers(20, 31, rows),
        "n": n,
        "g": np.array(["a"] * rows, dtype=object),
    })  # fmt: skip


def exactly(frame: pd.DataFrame, aggregate: str) -> float:
    """pandas' own answer; its missing values are left out, as NULL is."""
    kind, column = aggregate[:-1].split("(")
    if column == "*":
        return float(len(frame))
    return float(frame[column].agg({"COUNT": "count", "SUM": "sum", "AVG": "mean"}[kind]))


def covered(
    sql: str, aggregates: list[str], relation: str, rows: int, level: float, draws: int = DRAWS, **options: Any
) -> dict[str, Any]:
    """The share of covered answers, and how wide the intervals are, by aggregate."""
    schema, frame = SHAPE.schema(), table(rows)
    made = calibrated(schema, sql, relation, **options)
    released = of_copies(made).privatise(stacked(run_exactly(made, schema, frame), draws))
    released = ReleasedValues((), released.values)
    found = {}
    for output, aggregate in zip(made.query.finish.outputs, aggregates, strict=True):
        low, high = interval(made, released, output.expr, level)  # type: ignore[misc]
        exact = exactly(frame, aggregate)
        near = 1e-6 * max(1.0, abs(exact))  # values are rounded to a grid of 2^30 steps
        found[aggregate] = float(np.mean((low - near <= exact) & (exact <= high + near))), float(np.mean(high - low))
    return found


LISTS = [
    ["COUNT(*)"], ["SUM(x)"], ["AVG(x)"], ["SUM(p)"], ["AVG(p)"], ["AVG(n)"], ["COUNT(*)", "SUM(x)"],
    ["COUNT(*)", "AVG(x)", "SUM(p)"], ["AVG(n)", "SUM(n)", "COUNT(n)", "AVG(p)"],
]  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize("rows", [20, 100, 1000])
@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("aggregates", LISTS, ids=" ".join)
@pytest.mark.parametrize("strategy", ["auto", "split"])
def test_intervals_cover_at_their_level(aggregates: list[str], relation: str, rows: int, strategy: str):
    if strategy == "split" and len(aggregates) == 1 and not aggregates[0].startswith("AVG"):
        return  # one coordinate: the same law
    found = covered(f"SELECT {', '.join(aggregates)} FROM t", aggregates, relation, rows, 0.95, strategy=strategy)
    _judge(found, 0.95)


@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("aggregates", [["COUNT(*)", "AVG(x)", "SUM(p)"], ["AVG(n)"]], ids=" ".join)
def test_intervals_by_group_and_under_filters(aggregates: list[str], relation: str):
    for sql in (
        f"SELECT {', '.join(aggregates)} FROM t GROUP BY g",
        f"SELECT {', '.join(aggregates)} FROM t WHERE p > 0",
    ):
        _judge(covered(sql, aggregates, relation, 100, 0.95), 0.95)


@pytest.mark.parametrize("relation", [U, B])
def test_intervals_of_gaussian_noise(relation: str):
    aggregates = ["COUNT(*)", "AVG(x)", "SUM(p)"]
    sql = f"SELECT {', '.join(aggregates)} FROM t WHERE p > 0"
    found = covered(sql, aggregates, relation, 1000, 0.95, delta=1e-6, mechanism="gaussian")
    _judge(found, 0.95)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_other_levels(level: float):
    aggregates = ["COUNT(*)", "AVG(x)", "SUM(p)"]
    _judge(covered(f"SELECT {', '.join(aggregates)} FROM t", aggregates, U, 100, level), level)


@pytest.mark.slow
@pytest.mark.parametrize("rows", [20, 100, 1000])
@pytest.mark.parametrize("relation", [U, B])
@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(x)", "AVG(x)", "SUM(p)", "AVG(p)", "SUM(n)", "AVG(n)"])
def test_a_million_intervals_cover_at_their_level(aggregate: str, relation: str, rows: int):
    million = 1_000_000
    _judge(covered(f"SELECT {aggregate} FROM t", [aggregate], relation, rows, 0.95, million), 0.95, million)


def _judge(found: dict[str, Any], level: float, draws: int = DRAWS):
    slack = 5 * math.sqrt(level * (1 - level) / draws)
    for aggregate, (share, width) in found.items():
        whole = aggregate.startswith("COUNT") or aggregate == "SUM(p)"
        if width == 0:
            assert share == 1  # public
        else:
            assert share >= level - slack, (aggregate, share)
            assert whole or share <= level + 0.005 + slack, (aggregate, share, width)


def test_counts_get_the_narrowest_whole_interval():
    made = calibrated(SHAPE.schema(), "SELECT COUNT(*) FROM t", U)
    found = covered("SELECT COUNT(*) FROM t", ["COUNT(*)"], U, 100, 0.95)["COUNT(*)"]
    assert found[1] == 6  # +/- 3 at epsilon 1: 97.3 %, where +/- 2 has 92.7 %
    assert abs(found[0] - 0.973) < 5 * math.sqrt(0.973 * 0.027 / DRAWS)
    assert made.noise is not None
    assert half_width(made.noise, 0.95) == 3


@pytest.mark.parametrize("value", [24, 25])
def test_whole_sums_with_noise_in_half_steps_are_covered(value: int):
    """With a public number of rows p - 25 is summed, in steps of a half, where an average is of the same sum; alone, a
    sum is taken as it is, in steps of 1. At this epsilon the half-width is 5.5.
    What is off by that is rounded to an even number, and then 5 off where the sum is odd, and 6 where it is even."""
    schema, frame = SHAPE.schema(), table(21).assign(p=value)
    made = calibrated(schema, "SELECT SUM(p), AVG(p) FROM t", B, epsilon=5.196, mechanism="laplace")
    assert made.noise is not None
    assert half_width(made.noise, 0.95) * made.coordinates[-1].unit == 5.5
    released = ReleasedValues(
        (), of_copies(made).privatise(stacked(run_exactly(made, schema, frame), 4 * DRAWS)).values
    )
    low, high = interval(made, released, made.query.finish.outputs[0].expr, 0.95)  # type: ignore[misc]
    exact = 21 * value
    assert np.mean((low <= exact) & (exact <= high)) >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / (4 * DRAWS))


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
@pytest.mark.parametrize("relation", [U, B])
def test_averages_of_very_few_rows_are_covered_too(rows: int, relation: str):
    """The set of means can be empty or split near a count of 0; its hull, or the whole range, is given."""
    schema, frame = SHAPE.schema(), table(rows)
    made = calibrated(schema, "SELECT AVG(x) FROM t", relation)
    released = ReleasedValues((), of_copies(made).privatise(stacked(run_exactly(made, schema, frame), DRAWS)).values)
    low, high = interval(made, released, made.query.finish.outputs[0].expr, 0.95)  # type: ignore[misc]
    assert np.isfinite(low).all()
    assert np.isfinite(high).all()
    assert ((low >= -1 - 1e-9) & (high <= 3 + 1e-9) & (low <= high)).all()
    if rows:
        share = np.mean((low <= frame["x"].mean()) & (frame["x"].mean() <= high))
        assert share >= 0.95 - 5 * math.sqrt(0.95 * 0.05 / DRAWS)


def test_simultaneous_intervals_hold_together():
    """Every cell of a column at once, over 16 groups: what `intervals(simultaneous=True)` uses."""
    schema = SHAPE.schema()
    made = calibrated(schema, "SELECT AVG(x), COUNT(*) FROM t", U)
    released = ReleasedValues(
        (), of_copies(made).privatise(stacked(run_exactly(made, schema, table(100)), 16 * 2000)).values
    )
    exact = {0: table(100)["x"].mean(), 1: 100}
    for index, output in enumerate(made.query.finish.outputs):
        low, high = interval(made, released, output.expr, 0.95 ** (1 / 16))  # type: ignore[misc]
        all_hold = ((low <= exact[index]) & (exact[index] <= high)).reshape(16, 2000).all(axis=0)
        assert abs(all_hold.mean() - 0.95) <= 5 * math.sqrt(0.95 * 0.05 / 2000) + (0.05 if index else 0.005)


def test_the_interval_holds_the_shown_answer():
    """The point shown, rounded or clipped, lies in its own interval (where it is a number)."""
    schema, frame = SHAPE.schema(), table(100)
    made = calibrated(schema, "SELECT AVG(x) AS m, SUM(p) AS s, COUNT(*) AS c FROM t", U)
    released = of_copies(made).privatise(stacked(run_exactly(made, schema, frame), 2000))
    released = ReleasedValues((), released.values)
    answer = finish(made, released)
    for output, vector in zip(made.query.finish.outputs, answer.vectors, strict=True):
        low, high = interval(made, released, output.expr, 0.95)  # type: ignore[misc]
        inside = (low - 1e-9 <= vector.values) & (vector.values <= high + 1e-9)
        assert inside[vector.where_valid()].mean() > 0.999


def test_intervals_of_groups_that_are_shown():
    """A reader sees the intervals of shown groups only; a small group is shown when its noise is large."""
    schema = SHAPE.schema(keys={})
    made = calibrated(schema, "SELECT g, COUNT(*) FROM t GROUP BY g", U, delta=1e-6)
    released = of_copies(made).privatise(stacked(run_exactly(made, schema, table(12)), 100_000))
    low, high = interval(made, released, made.query.finish.outputs[1].expr, 0.95)  # type: ignore[misc]
    assert released.groups > 500
    assert np.mean((low <= 12) & (high >= 12)) >= 0.95
