"""Averages of groups of few rows, or of none: an estimate inside the bounds, and an interval that holds if there are
rows, whatever rows are shown for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.plan.expressions import Vector
from dpsql.release.intervals.conditions import conditions, of_having
from dpsql.release.intervals.intervals import interval
from dpsql.release.intervals.shown_conditions import ShownCases, ShownCondition
from dpsql.release.output.select import finish, slot_vectors
from dpsql.release.output.stages import run_stages
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.numbers import SOME_ROWS
from tests.core.checks import B, Shape, U, calibrated, run_exactly, stacked
from tests.release.given_shown import released_of
from tests.seeding import seed

SHAPE = Shape(
    {"x": "float64", "y": "float64", "g": "str"}, {"bounds": {"x": (0, 100), "y": (0, 9)}, "keys": {"g": ["a"]}}
)
DRAWS = 4_000
LEVEL = 0.95
LEAST = LEVEL - 5 * (LEVEL * (1 - LEVEL) / DRAWS) ** 0.5
ROWS = [1, 2, 5, 10, 100]


@pytest.fixture(autouse=True)
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 16)


def drawn(
    sql: str, rows: int, mean: float, *, draws: int = DRAWS, relation: str = U, **options: object
) -> tuple[Release, ReleasedValues]:
    """Releases of a group of so many values near a mean, one beside the other."""
    values = np.clip(mean + np.random.default_rng(rows).uniform(-5, 5, rows), 0, 100)
    if rows:
        values = values - values.mean() + mean
    frame = pd.DataFrame({"x": values, "y": 4.0, "g": ["a"] * rows})
    made = calibrated(SHAPE.schema(), sql, relation, **options)
    released = made.privatise(stacked(run_exactly(made, SHAPE.schema(), frame), draws))
    return made, ReleasedValues(released.keys[1:], released.values)


@pytest.mark.parametrize("rows", [0, *ROWS])
@pytest.mark.parametrize("epsilon", [0.1, 1])
@pytest.mark.parametrize("relation", [U, B])
def test_an_average_is_inside_its_bounds_and_its_interval_and_that_holds(rows: int, epsilon: float, relation: str):
    for mean in (5.0, 50.0, 93.0):
        made, released = drawn(
            "SELECT g, AVG(x) AS a FROM t GROUP BY g", rows, mean, relation=relation, epsilon=epsilon
        )
        average = slot_vectors(made, released)[1]
        low, high = interval(made, released, made.query.finish.outputs[1].expr, LEVEL)  # type: ignore[misc]
        assert average.where_valid().all()
        assert ((average.values >= 0) & (average.values <= 100)).all()
        assert ((low <= average.values) & (average.values <= high)).all()
        assert ((low >= 0) & (high <= 100)).all()
        if rows:
            assert np.mean((low <= mean + 1e-4) & (mean - 1e-4 <= high)) >= LEAST


def test_of_a_count_below_1_it_is_the_middle():
    """The middle is nearer to means that lie anywhere than what the sums say is, at every size."""
    for rows in (1, 2, 5):
        off: dict[str, list[float]] = {"middle": [], "sums": []}
        for mean in np.linspace(5, 95, 10):
            made, released = drawn("SELECT g, AVG(x) AS a FROM t GROUP BY g", rows, float(mean), draws=400, epsilon=0.1)
            (each,), shown = made.estimates, slot_vectors(made, released)[1].values
            few = released.values[each.count] < SOME_ROWS
            assert (shown[few] == 50).all()
            off["middle"] += ((50 - mean) ** 2 * np.ones(few.sum())).tolist()
            off["sums"] += ((np.clip(50 + released.values[each.sum], 0, 100) - mean) ** 2)[few].tolist()
        assert np.mean(off["middle"]) < 0.5 * np.mean(off["sums"])


def test_what_is_known_to_be_empty_is_null():
    """The number of rows is public under bounded neighbours; and at an epsilon so large its noise is nothing."""
    shape = Shape({"x": "float64"}, {"bounds": {"x": (0, 100)}, "nullable": {"x": False}})
    for relation, epsilon in ((B, 1), (U, 1e6)):
        made = calibrated(shape.schema(), "SELECT AVG(x) AS a FROM t", relation, epsilon=epsilon)
        for rows, valid in ((0, False), (3, True)):
            frame = pd.DataFrame({"x": np.full(rows, 7.0)})
            released = made.privatise(run_exactly(made, shape.schema(), frame))
            assert slot_vectors(made, released)[0].where_valid().all() == valid


CHOSEN = [
    "SELECT g, AVG(x) AS a, COUNT(*) AS n, SUM(y) AS s FROM t GROUP BY g HAVING AVG(x) > 30",
    "SELECT g, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY g HAVING 70 >= AVG(x)",
    "SELECT g, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY g HAVING AVG(x) BETWEEN 20 AND 50",
    "SELECT g, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY g HAVING AVG(x) = 50",
    "SELECT g, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY g HAVING AVG(x) > 30 AND AVG(y) < 8",
    "SELECT g, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY g HAVING AVG(x) > 70",
    "SELECT g, a, n FROM (SELECT g, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY g) WHERE a < 60",
    "SELECT g, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY g HAVING AVG(x) > 30 AND COUNT(*) < 6",
]


def missed(
    sql: str, rows: int, mean: float, epsilon: float, mechanism: str = "laplace"
) -> dict[str, tuple[float, int]]:
    """How often intervals of shown rows hold, and of how many rows."""
    more = {"delta": 1e-6, "mechanism": mechanism} if mechanism == "gaussian" else {}
    made, released = drawn(sql, rows, mean, draws=4 * DRAWS, epsilon=epsilon, **more)
    answer = run_stages(made, finish(made, released))
    assert not answer.given.unread
    truth = {"a": mean, "n": rows, "s": 4.0 * rows}
    found = {}
    for name, expr in list(zip(answer.names, answer.exprs, strict=True))[1:]:
        bounds = interval(made, released.at(answer.groups), expr, LEVEL, answer.given)  # type: ignore[arg-type]
        assert bounds is not None
        held = (bounds[0] <= truth[name] + 1e-4) & (truth[name] - 1e-4 <= bounds[1])
        found[name] = float(np.mean(held)) if len(answer) else 1.0, len(answer)
    return found


@pytest.mark.thinned(12)
@pytest.mark.parametrize("sql", CHOSEN)
@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_intervals_hold_given_what_a_condition_on_an_average_chose(sql: str, epsilon: float):
    for mechanism in ("laplace", "gaussian"):
        for rows, mean in ((1, 20.0), (3, 40.0), (10, 75.0)):
            for name, (held, shown) in missed(sql, rows, mean, epsilon, mechanism).items():
                if shown >= 200:
                    assert held >= LEVEL - 5 * (LEVEL * (1 - LEVEL) / shown) ** 0.5, (
                        name,
                        rows,
                        mechanism,
                        held,
                        shown,
                    )


def test_without_the_ways_they_do_not(monkeypatch: pytest.MonkeyPatch):
    """A planted lie: rows with a count below 1/2 are read as if they had been chosen like all others."""
    sql = "SELECT g, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY g HAVING AVG(x) < 60"
    held, shown = missed(sql, 6, 96.0, 1)["n"]
    assert held >= LEVEL - 5 * (LEVEL * (1 - LEVEL) / shown) ** 0.5
    monkeypatch.setattr(
        ShownCondition, "of_rows", lambda _given, released: [(np.arange(released.groups), ShownCondition())]
    )
    assert shown > 200
    lied = missed(sql, 6, 96.0, 1)["n"][0]
    assert lied < 0.9


def test_rows_pass_in_two_ways_where_the_middle_does():
    for words, ways in (("> 30", 1), (">= 50", 1), ("> 50", 0), ("< 50", 0), ("<= 50", 1), ("< 70", 1), ("> 70", 0)):
        made = calibrated(SHAPE.schema(), f"SELECT g, AVG(x) FROM t GROUP BY g HAVING AVG(x) {words}", U, epsilon=1)
        found = list(conditions(made, made.query.finish.having, *of_having(made)))
        assert sum(isinstance(each, ShownCases) for each in found) == ways, words
        steps = np.random.default_rng(3).integers(-40, 40, (len(made.coordinates), 500))
        scale = np.array([[max(1, round(1 / each.unit))] for each in made.coordinates])
        released = released_of(made, steps * scale)
        shown = np.zeros(500, dtype=bool)
        shown[finish(made, ReleasedValues((names(500),), released.values)).groups] = True
        (each,) = made.estimates
        few = released.values[each.count] < SOME_ROWS
        middle = few & (released.values[each.count] >= -20)  # far below, it is NULL
        assert shown[middle].all() == bool(ways)
        assert not ways or not shown[released.values[each.count] < -25].any()


def names(size: int) -> Vector:
    return Vector(np.array([f"{i}" for i in range(size)], dtype=object))


def test_the_line_below_says_what_is_not_known():
    frame = pd.DataFrame({"g": ["a"] * 5_000, "x": 50.0})
    many = dpsql.Table(frame, bounds={"x": (0, 100)}, keys={"g": ["a"]})
    few = dpsql.Table(frame[:2], bounds={"x": (0, 100)}, keys={"g": ["a", "b"]})
    grouped, whole = "SELECT g, AVG(x) AS mean FROM t GROUP BY g", "SELECT AVG(x) AS mean FROM t"
    assert (
        "mean: some groups may be empty. If so, their averages are meaningless."
        in dpsql.query({"t": few}, grouped, epsilon=0.1).to_text()
    )
    assert (
        "mean: there may be no rows. If so, it is meaningless."
        in dpsql.query({"t": few}, whole, epsilon=0.01).to_text()
    )
    for sql in (grouped, whole):
        assert "meaningless" not in dpsql.query({"t": many}, sql, epsilon=1).to_text()
