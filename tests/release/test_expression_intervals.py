"""Intervals of arithmetic over aggregates cover the exact clipped answer: at least at their level, at every size.

Noise is drawn from a fixed seed, 4,000 releases each; limits are five standard errors wide, so that a right interval
would be called wrong by one seed in a million at most. Linear forms and quotients of one noise vector have a law of
their own and are covered hardly more often than said (quotients of fine-lattice sums: by half a point at most).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsql.release.intervals.intervals import interval
from dpsql.release.output.noise_expressions import Linear, Ratio, form_of
from dpsql.release.output.select import finish
from dpsql.release.release import Release, ReleasedValues
from tests.core.checks import B, Shape, U, calibrated, run_exactly, stacked
from tests.seeding import seed

DRAWS = 4_000
LEVELS = (0.5, 0.9, 0.95)
SHAPE = Shape(
    {"x": "float64", "y": "float64", "p": "int64", "n": "float64", "g": "str", "b": "bool"},
    {
        "bounds": {"x": (-1, 3), "y": (0, 10), "p": (20, 30), "n": (0, 40)}, "keys": {"g": ["a", "b", "c", "d"]},
        "nullable": {"x": False, "y": False, "b": False},
    },
)  # fmt: skip
GAUSSIAN = {"delta": 1e-6, "mechanism": "gaussian"}
Bounds = tuple[Any, Any]


@pytest.fixture(autouse=True)
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 6)


def table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(rows)
    n = rng.uniform(0, 40, rows)
    n[::7] = np.nan
    return pd.DataFrame({
        "x": rng.beta(2, 8, rows) * 4 - 1, "y": rng.uniform(0, 10, rows), "p": rng.integers(20, 31, rows), "n": n,
        "g": np.resize(np.array(list("abcd"), dtype=object), rows), "b": rng.random(rows) < 0.4,
    })  # fmt: skip


def released_of(sql: str, rows: int, relation: str = U, **how: Any) -> tuple[Release, ReleasedValues]:
    """Many releases of one table, side by side as if they were groups."""
    schema = SHAPE.schema()
    made = calibrated(schema, f"SELECT {sql} AS v FROM t", relation, **how)
    drawn = made.privatise(stacked(run_exactly(made, schema, table(rows)), DRAWS))
    return made, ReleasedValues((), drawn.values)


def ends_of(made: Release, released: ReleasedValues, level: float = 0.95) -> Bounds:
    found = interval(made, released, made.query.finish.outputs[0].expr, level)
    assert found is not None
    low, high = found
    assert (low <= high).all()  # also where one of them is no number
    return low, high


def share_of(ends: Bounds, exact: float) -> float:
    near = 1e-6 * max(1.0, abs(exact))  # values are rounded to a grid of 2^30 steps
    return float(np.mean((ends[0] - near <= exact) & (exact <= ends[1] + near)))


def slack(level: float, draws: int = DRAWS) -> float:
    return 5 * math.sqrt(level * (1 - level) / draws)


def judge(sql: str, exact: Callable[[pd.DataFrame], float], rows: int, tight: float, *where: str, **how: Any) -> None:
    """Coverage at every level; at most `tight` above it."""
    made, released = released_of(sql, rows, *where, **how)
    (answer,) = finish(made, released).vectors
    some = answer.where_valid()
    for level in LEVELS:
        ends = ends_of(made, released, level)
        share = share_of(ends, exact(table(rows)))
        assert level - slack(level) <= share <= level + tight + slack(level), (sql, rows, level)
        near = 1e-9 * (1 + np.abs(answer.values))
        inside = (ends[0] - near <= answer.values) & (answer.values <= ends[1] + near)
        assert inside[some].all(), f"{sql}: an answer outside its own interval"


# (SQL, NumPy's answer, how much more often than at its level it may be covered: 1 where nothing is said)
LINEAR: tuple[Any, ...] = (
    ("2 * COUNT(*) + SUM(x)", lambda t: 2 * len(t) + t.x.sum(), 0.005),
    ("SUM(x) - SUM(y)", lambda t: t.x.sum() - t.y.sum(), 0.005),
    ("(SUM(y) - 3 * SUM(x) + 1) / 8 - COUNT(n)", lambda t: (t.y.sum() - 3 * t.x.sum() + 1) / 8 - t.n.count(), 0.005),
    ("-SUM(n) * 0.25", lambda t: -t.n.sum() / 4, 0.005),
    ("7 - COUNT(*) / 4", lambda t: 7 - len(t) / 4, 0.33),  # whole numbers: 80.4 % for 50 %
)
QUOTIENTS: tuple[Any, ...] = (
    ("SUM(y) / COUNT(*)", lambda t: t.y.mean(), 0.005),
    ("100.0 * COUNT(*) FILTER (WHERE b) / COUNT(*)", lambda t: 100 * t.b.mean(), 0.01),
    ("COUNT(*) / COUNT(n)", lambda t: len(t) / t.n.count(), 0.01),
    ("SUM(x) / SUM(y)", lambda t: t.x.sum() / t.y.sum(), 0.01),
    ("(SUM(y) - SUM(x)) / (COUNT(*) + 5)", lambda t: (t.y.sum() - t.x.sum()) / (len(t) + 5), 0.01),
    ("1000 / COUNT(*)", lambda t: 1000 / len(t), 0.33),  # whole numbers
)
OTHERS: tuple[Any, ...] = (
    ("AVG(y) * 12", lambda t: 12 * t.y.mean(), 0.005),
    ("AVG(y) - AVG(x)", lambda t: t.y.mean() - t.x.mean(), 1),
    ("AVG(y) / AVG(p)", lambda t: t.y.mean() / t.p.mean(), 1),
    ("STDDEV_POP(y) / AVG(y)", lambda t: t.y.std(ddof=0) / t.y.mean(), 1),
    ("SUM(y) / COUNT(*) * 100 + 1", lambda t: 100 * t.y.mean() + 1, 0.005),
    ("SQRT(ABS(SUM(x) - SUM(y)))", lambda t: math.sqrt(abs(t.x.sum() - t.y.sum())), 1),
    ("GREATEST(COUNT(*), 50) * COUNT(n)", lambda t: max(len(t), 50) * t.n.count(), 1),
    ("COUNT(*, epsilon => 0.4) - COUNT(n)", lambda t: len(t) - t.n.count(), 1),
    ("CASE WHEN SUM(x) > 0 THEN AVG(y) ELSE 0 END", lambda t: t.y.mean() if t.x.sum() > 0 else 0, 1),
)


def cases(*asked: Sequence[Any]) -> list[Any]:
    return [pytest.param(*each, id=each[0]) for some in asked for each in some]


WAYS: tuple[tuple[str, dict[str, Any]], ...] = ((U, {}), (U, {"strategy": "split"}), (B, {}), (U, GAUSSIAN))


@pytest.mark.thinned(6)
@pytest.mark.parametrize("rows", [20, 100, 1000])
@pytest.mark.parametrize(("sql", "exact", "tight"), cases(LINEAR, QUOTIENTS, OTHERS))
def test_intervals_cover_at_their_level(sql: str, exact: Any, tight: float, rows: int):
    judge(sql, exact, rows, tight)


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("relation", "how"), WAYS[1:], ids=str)
@pytest.mark.parametrize(("sql", "exact", "tight"), cases(LINEAR, QUOTIENTS, OTHERS[:3]))
def test_intervals_cover_whatever_the_noise(sql: str, exact: Any, tight: float, relation: str, how: dict[str, Any]):
    judge(sql, exact, 100, 1, relation, **how)


def test_the_forms_that_this_file_means_are_used():
    for each, kind in ((LINEAR, Linear), (QUOTIENTS, Ratio)):
        for sql, *_ in each:
            made, _ = released_of(sql, 20)
            assert isinstance(form_of(made, made.query.finish.outputs[0].expr), kind), sql


def test_differences_are_narrower_than_the_sum_of_their_parts():
    made = calibrated(SHAPE.schema(), "SELECT SUM(x) - SUM(y), SUM(x), SUM(y) FROM t", U)
    nothing = ReleasedValues((), np.zeros((made.width, 1)))
    ends = [interval(made, nothing, each.expr, 0.95) for each in made.query.finish.outputs]
    widths = [float(high[0] - low[0]) for low, high in ends]  # type: ignore[misc]
    assert 0.5 * sum(widths[1:]) < widths[0] < 0.8 * sum(widths[1:])


def test_parts_are_covered_together():
    """One of six that is too high is enough to be wrong: at their own level they would be right in 18 % for 50 %."""
    counts = ", ".join(f"COUNT(*, epsilon => 0.1{digit})" for digit in range(6))
    judge(f"GREATEST({counts})", len, 100, 1)


@pytest.mark.parametrize("top", [1e-9, 1, 1e5, 1e17])
def test_a_quotient_is_as_close_as_an_average_whatever_its_unit(top: float):
    shape = Shape({"x": "float64"}, {"bounds": {"x": (0, top)}, "nullable": {"x": False}})
    frame = pd.DataFrame({"x": np.linspace(0, top, 1000)})
    made = calibrated(shape.schema(), "SELECT SUM(x) / COUNT(*), AVG(x) FROM t", U)
    released = made.privatise(stacked(run_exactly(made, shape.schema(), frame), 100))
    found = [interval(made, ReleasedValues((), released.values), each.expr, 0.95) for each in made.query.finish.outputs]
    quotient, average = (np.median(high - low) for low, high in found)  # type: ignore[misc]
    assert 0.99 * average <= quotient <= 1.01 * average


@pytest.mark.parametrize("sql", ["AVG(y) * 12", "SUM(y) / COUNT(*)", "SUM(x) - SUM(y)"])
def test_all_cells_of_a_grouped_column_hold_together(sql: str):
    """At the level that `intervals(simultaneous=True)` uses, over four groups of which each is drawn alone."""
    schema, frame = SHAPE.schema(), table(200)
    made = calibrated(schema, f"SELECT g, {sql} AS v FROM t GROUP BY g", U)
    drawn = made.privatise(stacked(run_exactly(made, schema, frame), DRAWS))
    released = ReleasedValues(drawn.keys[1:], drawn.values)
    for level in LEVELS:
        low, high = interval(made, released, made.query.finish.outputs[1].expr, made.for_all(level, 4))  # type: ignore[misc]
        hold = np.ones(DRAWS, dtype=bool)
        for key, own in frame.groupby("g"):
            exact = {"A": 12 * own.y.mean(), "S": own.y.mean()}[sql[0]] if "-" not in sql else (own.x - own.y).sum()
            rows = np.flatnonzero(released.keys[0].values == key)
            held = (low[rows] - 1e-6 <= exact) & (exact <= high[rows] + 1e-6)
            hold[drawn.keys[0].values[rows]] &= held
        assert level - slack(level) <= hold.mean() <= level + 0.02 + slack(level)


# Denominators near nothing


@pytest.mark.thinned(6)
@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize(("sql", "exact", "tight"), cases(QUOTIENTS[:1], QUOTIENTS[3:]))
def test_quotients_of_few_rows_are_covered_too(sql: str, exact: Any, tight: float, rows: int):
    for relation, how in WAYS:
        made, released = released_of(sql, rows, relation, **how)
        share = share_of(ends_of(made, released), exact(table(rows)))
        assert share >= 0.95 - slack(0.95), (sql, relation, how)


@pytest.mark.parametrize("sql", ["SUM(y) / COUNT(*)", "SUM(x) / SUM(y)", "COUNT(*) / COUNT(n)", "1 / SUM(x)"])
def test_a_denominator_of_nothing_leaves_the_quotient_open(sql: str):
    """Without rows the true denominator is 0: infinite ends are right, and come at least as often as the level."""
    made, released = released_of(sql, 0)
    low, high = ends_of(made, released)
    assert (np.isinf(low) == np.isinf(high)).all()
    assert np.isinf(high).mean() >= 0.95 - slack(0.95)


@pytest.mark.parametrize("sql", ["1 / (COUNT(*) - COUNT(*))", "COUNT(*) / (SUM(x) - SUM(x))", "SUM(x) / 0"])
def test_a_denominator_that_is_nothing_is_no_interval(sql: str):
    made, released = released_of(sql, 100)
    low, high = ends_of(made, released)
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()
    assert not finish(made, released).vectors[0].where_valid().any()


def test_quotients_within_other_expressions_stay_open():
    """Interval arithmetic over an unbounded part never makes a finite interval that is wrong."""
    exact = float(table(5).y.mean())
    for sql, right in (
        ("SUM(y) / COUNT(*) + COUNT(*, epsilon => 0.2)", exact + 5),
        ("SQRT(SUM(y) / COUNT(*))", math.sqrt(exact)),
        ("1 / (1 + SUM(y) / COUNT(*))", 1 / (1 + exact)),
        ("AVG(y) / (COUNT(*) - 5)", None),
    ):
        made, released = released_of(sql, 5)
        ends = ends_of(made, released)
        if right is None:
            assert np.isinf(ends[1]).mean() >= 0.95 - slack(0.95), sql
        else:
            assert share_of(ends, right) >= 0.95 - slack(0.95), sql


def test_what_has_no_interval_has_none_in_arithmetic():
    for sql in ("MEDIAN(x) + COUNT(*)", "REGR_R2(x, y) * 100", "MAX(x) - MIN(x)", "2 + 0 * REGR_INTERCEPT(y, x)"):
        made = calibrated(SHAPE.schema(), f"SELECT {sql} AS v FROM t", U)
        released = ReleasedValues((), np.ones((made.width, 1)))
        assert interval(made, released, made.query.finish.outputs[0].expr, 0.95) is None, sql


# NULL, and conditions on keys


@pytest.mark.parametrize(
    "sql", ["NULL + COUNT(*)", "1 / 0 * SUM(x)", "NULLIF(1, 1) - COUNT(*)", "CAST('a' AS INT) + COUNT(*)"]
)
def test_a_value_that_is_null_has_no_ends(sql: str):
    low, high = ends_of(*released_of(sql, 20))
    assert np.isneginf(low).all()
    assert np.isposinf(high).all()


def test_a_condition_on_keys_leaves_the_interval_of_the_value_that_it_chooses():
    schema, frame = SHAPE.schema(), table(200)
    sql = "CASE WHEN g = 'a' THEN NULL WHEN g IN ('b', 'c') THEN COUNT(*) ELSE 0 - COUNT(*) END AS v, COUNT(*) AS n"
    made = calibrated(schema, f"SELECT g, {sql} FROM t GROUP BY g", U)
    released = made.privatise(run_exactly(made, schema, frame))
    chosen, counted = (interval(made, released, each.expr, 0.95) for each in made.query.finish.outputs[1:])
    # a bare count is rounded, so its ends are up to 1 nearer
    ends = {key: (low, high) for key, low, high in zip(released.keys[0].values, *chosen, strict=True)}  # type: ignore[misc]
    counts = {key: (low, high) for key, low, high in zip(released.keys[0].values, *counted, strict=True)}  # type: ignore[misc]
    assert ends["a"] == (-math.inf, math.inf)
    assert ends["b"] == pytest.approx(counts["b"], abs=1.01)
    assert ends["c"] == pytest.approx(counts["c"], abs=1.01)
    assert ends["d"] == pytest.approx((-counts["d"][1], -counts["d"][0]), abs=1.01)
