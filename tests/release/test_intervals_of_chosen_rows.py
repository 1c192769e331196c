"""Rows that HAVING, WHERE over an answer, or an order and a limit chose by noisy values: their intervals hold at their
level given that, or a line below the table says that they do not."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.plan.expressions import Vector
from dpsql.release.intervals.conditions import conditions, of_having
from dpsql.release.intervals.intervals import interval
from dpsql.release.intervals.shown_conditions import Window
from dpsql.release.output.select import finish
from dpsql.release.output.stages import run_stages
from dpsql.release.release import Release, ReleasedValues
from dpsql.session.prepared_query import PreparedQuery
from tests.core.checks import Shape, U, calibrated, run_exactly, stacked
from tests.release.given_shown import probabilities, released_of
from tests.seeding import seed

SHAPE = Shape(
    {"k": "int64", "x": "float64", "y": "float64", "g": "str", "e": "int64"},
    {
        "bounds": {"x": (0, 100), "y": (-10, 10), "k": (0, 10), "e": (-5, 7)},
        "nullable": {"x": False, "y": False},
        "keys": {"g": ["a", "b", "c"]},
    },
)


@pytest.fixture(autouse=True)
def _seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 45)


def made_by(sql: str, **options: Any) -> Release:
    return calibrated(SHAPE.schema(**options.pop("declared", {})), sql, U, **options)


def shown(made: Release, released: ReleasedValues) -> Any:
    return run_stages(made, finish(made, released))


def of_groups(made: Release, steps: Any) -> ReleasedValues:
    """Noisy coordinates with a key for each group."""
    found = released_of(made, steps)
    names = np.array([f"{i:06d}" for i in range(found.groups)], dtype=object)
    return ReleasedValues((Vector(names),), found.values)


ONE_VALUE = [
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING COUNT(*) > 10",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING 10 <= COUNT(*)",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING COUNT(*) < 6",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING NOT COUNT(*) > 6 AND g <> 'b'",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING COUNT(*) BETWEEN 8 AND 12",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING COUNT(*) = 9",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING 0.1 * COUNT(*) - 1 >= 0.3",
    "SELECT g, n FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) WHERE n > 10",
    "SELECT g, n FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) WHERE n BETWEEN 8 AND 12 AND g > 'a'",
    "SELECT g, m FROM (SELECT g, COUNT(*) AS m FROM t GROUP BY g HAVING COUNT(*) > 3) WHERE m < 9",
    "SELECT g, SUM(e) AS s FROM t GROUP BY g HAVING SUM(e) > 25",
    "SELECT g, SUM(e) AS s FROM t GROUP BY g HAVING SUM(e) <= -5",
]


@pytest.mark.thinned(6)
@pytest.mark.parametrize("epsilon", [0.5, 1, 3])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("sql", ONE_VALUE)
def test_a_value_that_was_compared_holds_given_that_its_row_is_shown(sql: str, mechanism: str, epsilon: float):
    made = made_by(sql, epsilon=epsilon, mechanism=mechanism, **({"delta": 1e-6} if mechanism == "gaussian" else {}))
    assert len(made.coordinates) == 1
    noise, unit = made.shares[0].noise, made.coordinates[0].unit
    x, chance = probabilities(noise, int(45 * noise.scale) + 40)
    level = 0.95
    for exact in [0, 1, 3, 5, 8, 9, 10, 11, 12, 14, 20, 30, *([-20, -6, 26, 60] if "SUM" in sql else [])]:
        released = of_groups(made, (x + round(exact / unit))[None])
        answer = shown(made, released)
        assert not answer.given.unread
        low, high = interval(made, released, made.query.finish.outputs[1].expr, level, answer.given)  # type: ignore[misc]
        weights = chance[answer.groups]
        held = (low[answer.groups] <= exact) & (exact <= high[answer.groups])
        if weights.sum() > 0:
            assert (weights * held).sum() / weights.sum() >= level - 1e-9, exact


@pytest.mark.parametrize(
    "words",
    [
        "COUNT(*) >= 20",
        "0.1 * COUNT(*) >= 2",
        "COUNT(*) / 3 < 7",
        "3 - COUNT(*) > 1.5",
        "-COUNT(*) * 0.7 <= 2.1",
        "1e-3 < COUNT(*)",
    ],
)
def test_windows_end_where_the_condition_does(words: str):
    """Evaluated at every whole number."""
    made = made_by(f"SELECT g, COUNT(*) FROM t GROUP BY g HAVING {words}")
    (window,) = conditions(made, made.query.finish.having, *of_having(made))
    assert isinstance(window, Window)
    steps = np.arange(-60, 60)
    answer = finish(made, of_groups(made, steps[None]))
    inside = (steps >= window.low) & (steps <= window.high)
    assert np.array_equal(np.flatnonzero(inside), np.sort(answer.groups))


GAUSSIAN = {"delta": 1e-6, "mechanism": "gaussian"}
HIDDEN: dict[str, Any] = {"delta": 1e-6, "declared": {"keys": {}}}
JOINT: list[tuple[str, dict[str, Any]]] = [
    ("SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g HAVING COUNT(*) > 12", {}),
    ("SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g HAVING COUNT(*) BETWEEN 8 AND 14", {"strategy": "split"}),
    ("SELECT g, COUNT(*) AS n, SUM(x) / COUNT(*) AS r FROM t GROUP BY g HAVING COUNT(*) < 9", GAUSSIAN),
    ("SELECT g, n, a FROM (SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g) WHERE n > 12", {}),
    ("SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g HAVING COUNT(*) > 24", HIDDEN),
]


@pytest.mark.thinned(6)
@pytest.mark.parametrize("case", range(len(JOINT)))
def test_values_beside_it_hold_too(case: int):
    sql, options = JOINT[case]
    made = made_by(sql, **options)
    rng = np.random.default_rng(case)
    for n in (6, 10, 13, 16):
        frame = pd.DataFrame({"x": rng.uniform(80, 100, n), "y": 0.0, "k": 1, "e": 0, "g": ["a"] * n})
        exact = run_exactly(made, SHAPE.schema(**options.get("declared", {})), frame)
        exact = type(exact)(tuple(k.at(np.arange(1)) for k in exact.keys), exact.parts[:, :1], 1, exact.grids)
        released = made.privatise(stacked(exact, 20_000))
        released = ReleasedValues(released.keys[1:], released.values)
        answer = shown(made, released)
        if len(answer) < 200:
            continue
        truth = {"n": n, "a": frame["x"].mean(), "s": frame["x"].sum(), "r": frame["x"].mean()}
        for output in made.query.finish.outputs[1:]:
            low, high = interval(made, released.at(answer.groups), output.expr, 0.95, answer.given)  # type: ignore[misc]
            right = truth[output.name]
            share = np.mean((low - 1e-4 <= right) & (right <= high + 1e-4))
            assert share >= 0.95 - 5 * (0.95 * 0.05 / len(answer)) ** 0.5, (output.name, n, share, len(answer))


RANKED = [
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g ORDER BY n DESC LIMIT 2",
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g ORDER BY COUNT(*) LIMIT 1 OFFSET 1",
    "SELECT g, n FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g) ORDER BY n DESC LIMIT 1",
    "SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g ORDER BY a DESC LIMIT 2",
    "SELECT DISTINCT COUNT(*) AS n FROM t GROUP BY g",
]
SIZES = 20


@pytest.mark.parametrize("sql", RANKED)
def test_rows_that_were_ranked_hold_all_at_once(sql: str):
    """Twenty groups that are all alike: the noise alone says which are first."""
    keys = [f"{i:02d}" for i in range(SIZES)]
    made = made_by(sql, declared={"keys": {"g": keys}})
    n = 30
    frame = pd.DataFrame({"x": 50.0, "y": 0.0, "k": 1, "e": 0, "g": np.repeat(keys, n)})
    exact = run_exactly(made, SHAPE.schema(keys={"g": keys}), frame)
    runs = 200 if "AVG" in sql else 600
    missed = dict.fromkeys(("n", "a"), 0)
    for _ in range(runs):
        released = made.privatise(exact)
        answer = shown(made, released)
        for name, expr in zip(answer.names, answer.exprs, strict=True):
            if name == "g":
                continue
            assert expr is not None
            low, high = interval(made, released.at(answer.groups), expr, 0.9, answer.given)  # type: ignore[misc]
            right = {"n": n, "a": 50.0}[name]
            missed[name] += not ((low <= right + 1e-4) & (right - 1e-4 <= high)).all()
    for count in missed.values():
        assert count / runs <= 0.1 + 5 * (0.1 * 0.9 / runs) ** 0.5


def test_what_was_not_chosen_by_noise_has_plain_intervals():
    plain = made_by("SELECT g, COUNT(*) AS n FROM t GROUP BY g")
    wanted = interval(plain, of_groups(plain, np.array([[4, 20, 30]])), plain.query.finish.outputs[1].expr, 0.95)
    for words in ("ORDER BY n DESC", "ORDER BY n DESC LIMIT 3", "ORDER BY g LIMIT 2", "HAVING g > 'a'", "LIMIT 1"):
        made = made_by(f"SELECT g, COUNT(*) AS n FROM t GROUP BY g {words}")
        released = of_groups(made, np.array([[4, 20, 30]]))
        found = interval(made, released, made.query.finish.outputs[1].expr, 0.95, shown(made, released).given)
        assert wanted is not None
        assert found is not None
        assert np.array_equal(wanted[0], found[0]), words
        assert np.array_equal(wanted[1], found[1]), words


UNREAD = [
    ("HAVING COUNT(*) > 10 OR COUNT(*) < 2", "n, a"),
    ("HAVING AVG(x) * AVG(x) > 900", "n, a"),
    ("HAVING SUM(x) / COUNT(*) > 30", "n, a"),
    ("HAVING COUNT(*) > AVG(x)", "n, a"),
    ("HAVING DP_INTERVAL_LOW(COUNT(*)) > 10", "n, a"),
]


@pytest.mark.parametrize(("words", "names"), UNREAD)
def test_a_line_says_what_intervals_do_not_know(words: str, names: str):
    made = made_by(f"SELECT g, COUNT(*) AS n, AVG(x) AS a FROM t GROUP BY g {words}")
    released = of_groups(
        made, np.array([[40.0, 60.0, 80.0]] * 2) / np.array([[each.unit] for each in made.coordinates])
    )
    result = PreparedQuery((made,), explain_only=False).result([released], "footer")
    assert any(f"intervals of {names} hold at their level over all groups" in note for note in result.notes)


@pytest.mark.parametrize(
    "words", ["COUNT(*) > 1e300", "COUNT(*) > -1e300", "SUM(x) < 1e18", "COUNT(*) > NULL", "1 > 2"]
)
def test_conditions_out_of_reach_are_no_windows(words: str):
    """They may say nothing, or a line; never fail."""
    made = made_by(f"SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g HAVING {words}")
    assert PreparedQuery((made,), explain_only=False).result([of_groups(made, np.zeros((2, 3)))], "footer").to_text()


def test_a_sum_around_0_is_one_coordinate():
    made = made_by("SELECT g, COUNT(*) AS n, SUM(y) AS s FROM t GROUP BY g HAVING SUM(y) < 3")
    (window,) = conditions(made, made.query.finish.having, *of_having(made))
    assert isinstance(window, Window)
    assert len(window.weights) == 1


def test_no_line_where_it_is_not_needed():
    for words in ("HAVING COUNT(*) > 10", "ORDER BY n DESC LIMIT 1", "HAVING MEDIAN(y) > 0"):
        frame = pd.DataFrame({"g": ["a"] * 30 + ["b"] * 9, "y": 1.0})
        frame = dpsql.declare(frame, bounds={"y": (-10, 10)}, keys={"g": ["a", "b"]})
        result = dpsql.query(frame, f"SELECT g, COUNT(*) AS n FROM frame GROUP BY g {words}", epsilon=3)
        assert "over all groups" not in result.to_text()


def test_what_sql_shows_is_what_is_printed():
    frame = pd.DataFrame({"g": np.repeat(["a", "b", "c", "d"], [40, 14, 13, 2])})
    frame = dpsql.declare(frame, keys={"g": ["a", "b", "c", "d"]})
    for words in ("HAVING COUNT(*) > 12", "HAVING COUNT(*) < 14", "ORDER BY n DESC LIMIT 2"):
        sql = (
            "SELECT g, COUNT(*) AS n, DP_INTERVAL_LOW(COUNT(*)) AS low, DP_INTERVAL_HIGH(COUNT(*)) AS high, "
            f"COUNT(*, report_format => 'JSON') AS j FROM frame GROUP BY g {words}"
        )
        result = dpsql.query(frame, sql, epsilon=1)
        ends = result.intervals()
        for row, low, high in zip(result, ends["n_low"], ends["n_high"], strict=True):
            told = json.loads(row[4])["result"]["noise_confidence_interval"]
            assert row[2] == told["lower_bound"] == (low if np.isfinite(low) else None)
            assert row[3] == told["upper_bound"] == (high if np.isfinite(high) else None)


def test_open_ends_are_shown_as_such():
    made = made_by("SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING COUNT(*) < 6")
    text = (
        PreparedQuery((made,), explain_only=False).result([of_groups(made, np.array([[5, 0, -9]]))], "")._table_text()
    )
    assert "≥ 3" in text
