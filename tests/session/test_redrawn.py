"""Intervals of SQL over answers: which columns have them, that they cover what they say, and where none is shown."""

from __future__ import annotations

import pickle
from collections import Counter
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.answer.computed_result import StagedResult
from dpsql.answer.multi_step import MultiStepResult
from dpsql.answer.result import Result
from dpsql.plan.aggregates import AGGREGATES, Aggregation
from dpsql.plan.expressions import Slot
from dpsql.release.output import redraws
from dpsql.schema.columns import Type
from dpsql.sql.boundary.noise_of_outputs import Outputs
from tests.lies import Patch, assert_caught

ROWS = 6_000
SHAPES = np.random.default_rng(5)
PEOPLE = pd.DataFrame(
    {
        "city": SHAPES.choice(["bonn", "oslo", "rome", "wien"], ROWS, p=[0.4, 0.3, 0.2, 0.1]),
        "month": SHAPES.integers(1, 7, ROWS),
        "pay": SHAPES.uniform(0, 100, ROWS).round(2),
        "old": SHAPES.random(ROWS) < 0.3,
    }
)
CITIES = pd.DataFrame({"city": ["bonn", "oslo", "rome", "wien"], "size": [3, 1, 2, 4]})
TABLES: dict[str, Any] = {
    "people": dpsql.Table(
        PEOPLE,
        bounds={"pay": (0, 100)},
        keys={"city": ["bonn", "oslo", "rome", "wien"], "month": list(range(1, 7)), "old": [False, True]},
    ),
    "cities": dpsql.Table(CITIES, public=True),
}
BY_CITY = "(SELECT city, COUNT(*) AS n, AVG(pay) AS pay, SUM(pay) AS total FROM people GROUP BY city)"
BY_MONTH = "(SELECT month, COUNT(*) AS n FROM people GROUP BY month)"
BY_BOTH = "(SELECT city, month, COUNT(*) AS n FROM people GROUP BY city, month)"

COVERED = (
    "SELECT city, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS x FROM people GROUP BY city",
    "SELECT (SELECT AVG(pay) FROM people WHERE old) - (SELECT AVG(pay) FROM people WHERE NOT old) AS x",
    f"SELECT a.city, a.total / b.n AS x FROM {BY_CITY} a JOIN {BY_CITY} b USING (city)",
    (
        f"SELECT a.month, a.n, ROUND(100.0 * (a.n - b.n) / b.n, 2) AS x FROM {BY_MONTH} a JOIN {BY_MONTH} b "
        "ON a.month = b.month + 1"
    ),
    f"SELECT month, SUM(n) OVER (ORDER BY month) AS x, n - LAG(n) OVER (ORDER BY month) AS y FROM {BY_MONTH}",
    f"SELECT month, AVG(n) OVER (ORDER BY month ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM {BY_MONTH}",
    f"WITH a AS {BY_CITY} SELECT SUM(pay * n) / SUM(n) AS x FROM a CROSS JOIN cities WHERE size = 1",
    (
        f"SELECT c.size, COALESCE(SUM(a.n), 0) / 10 AS x FROM cities c LEFT JOIN {BY_CITY} a ON a.city = c.city "
        "AND c.size < 4 GROUP BY c.size"
    ),
    f"SELECT 'all' AS city, SUM(n) AS x FROM {BY_CITY} UNION ALL SELECT city, n FROM {BY_CITY}",
    (
        f"SELECT city, CASE WHEN city = 'bonn' THEN n - 5 ELSE 2 * n END AS x "
        f"FROM {BY_CITY} a JOIN cities USING (city) WHERE city <> 'rome'"
    ),
    f"SELECT city, n / (SELECT SUM(size) FROM cities) AS x, -total AS y FROM {BY_CITY} a",
    (
        "SELECT city, COUNT(*) / (SELECT COUNT(*) FROM people) AS x, AVG(pay) - (SELECT AVG(pay) FROM people) AS y "
        "FROM people GROUP BY city"
    ),
    "SELECT month, COUNT(*) / (SELECT COUNT(*) FROM people) AS x FROM people GROUP BY month",
    f"SELECT AVG(n) AS x, SUM(total) / SUM(n) AS y FROM {BY_CITY}",
    f"SELECT month, SUM(n) AS x FROM {BY_BOTH} GROUP BY month",
)


def ask(sql: str, **options: Any) -> Result:
    return dpsql.query(TABLES, sql, epsilon=options.pop("epsilon", 1), **options)


@cache
def truth(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("people", PEOPLE)
        connection.register("cities", CITIES)
        return connection.execute(sql).fetchall()


def covers(sql: str, level: float = 0.95) -> list[bool]:
    """Whether each cell of x and y holds the true value."""
    answer = ask(sql)
    names = answer.df.columns
    keys = [name for name in names if name in ("city", "month", "size")]
    exact = {tuple(map(str, row[: len(keys)])): dict(zip(names, row, strict=True)) for row in truth(sql)}
    shown = answer.to_pandas(intervals=True, level=level)
    hits = []
    for row in shown.to_dict("records"):
        true = exact[tuple(str(row[key]) for key in keys)]
        for name in {"x", "y"} & set(names):
            if true[name] is not None:
                assert np.isfinite(row[f"{name}_low"]), (sql, row)
                hits.append(bool(row[f"{name}_low"] - 1e-9 <= float(true[name]) <= row[f"{name}_high"] + 1e-9))
    return hits


def check_coverage(times: int, least: float) -> None:
    for sql in COVERED:
        hits = [hit for _ in range(times) for hit in covers(sql)]
        assert np.mean(hits) >= least, (sql, np.mean(hits))


def test_intervals_cover() -> None:
    """In a few statements each. Of six cells that are covered with 0.95 each, three or fewer are so once in 10,000."""
    check_coverage(times=6, least=0.6)


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say() -> None:
    """2,000 cells of each kind; those with the interval of one released value are covered more often."""
    for sql in COVERED:
        own = ask(sql)._bounds(0.95).keys() - ask(sql)._simulated(0.95)
        hits: list[bool] = []
        while len(hits) < 2_000:
            hits += covers(sql)
        assert 0.93 <= np.mean(hits) <= (0.985 if {"x", "y"} & own else 0.97), (sql, np.mean(hits))


def test_ends_of_whole_numbers_are_shared_out() -> None:
    """Draws of a law of which .02 or .06 is left out on each side: .96 is held, or .88, and .95 by turns."""
    law, chances = np.arange(-3, 4), np.array([0.02, 0.04, 0.24, 0.4, 0.24, 0.04, 0.02])
    draws = np.repeat(law, (chances * 400).astype(int)).astype(np.float64)
    low, high = redraws.ends(np.tile(draws[:, None], 4_000), 0.95, redraws.Uniforms(b"ends"))
    assert set(np.unique(low)) == {-2.0, -1.0}
    assert set(np.unique(high)) == {1.0, 2.0}
    held = sum(chance * ((low <= value) & (value <= high)) for value, chance in zip(law, chances, strict=True))
    assert abs(np.mean(held) - 0.95) < 0.003
    continuous = np.linspace(0, 1, 401)[:, None]
    low, high = redraws.ends(continuous, 0.95, redraws.Uniforms(b"ends"))
    assert 0.02 < low[0] < 0.03
    assert 0.97 < high[0] < 0.98
    same = np.full((400, 1), 7.0)
    assert [each.tolist() for each in redraws.ends(same, 0.5, redraws.Uniforms(b"ends"))] == [[7.0], [7.0]]


def test_words_that_noise_chose_stand_beside_intervals() -> None:
    label = "IF(n > 1500, 'big', 'small') AS s"
    answer = ask(f"SELECT city, {label}, n / SUM(n) OVER () AS x FROM {BY_CITY} JOIN cities USING (city)")
    assert answer._simulated(0.95) == {"x"}
    assert "no interval for s" in answer.to_text()
    plain = ask("SELECT city, HISTOGRAM(month) AS h, COUNT(*) AS n FROM people GROUP BY city").to_text()
    assert "\nh: no interval" in plain


def widened(patch: Patch) -> None:
    """Ends that always hold the level, as they were."""
    patch.setattr(redraws, "_end", lambda ordered, level, _: ordered[int((len(ordered) + 1) * (1 - level) / 2) - 1])


def test_wide_ends_are_caught() -> None:
    assert_caught(widened, test_ends_of_whole_numbers_are_shared_out)


def half_the_noise(patch: Patch) -> None:
    honest = redraws._noise
    patch.setattr(redraws, "_noise", lambda *args: honest(*args) / 2)


def test_too_little_noise_is_caught() -> None:
    assert_caught(half_the_noise, lambda: check_coverage(times=30, least=0.8), honest=False)


KINDS = {
    f"SELECT city, n, 2 * n + 1 AS t, ROUND(n / 7.0, 1) AS r, GREATEST(n, 0) AS g "
    f"FROM {BY_CITY} a JOIN cities USING (city)":
        {"n": "own", "t": "own", "r": "own", "g": "own"},
    "SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r, MAX(COUNT(*)) OVER () AS m, "
    "COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM people GROUP BY city": {"n": "own", "s": "anew"},
    f"SELECT ABS(a.n - b.n) AS d, a.n * b.n AS p, a.n - b.n AS e FROM {BY_CITY} a, {BY_CITY} b "
    "WHERE a.city = 'bonn' AND b.city = 'oslo'": {"p": "anew", "e": "anew"},
    f"SELECT * FROM (SELECT city, n, RANK() OVER (ORDER BY n) AS r FROM {BY_CITY}) WHERE r < 3": {},
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city QUALIFY COUNT(*) > AVG(COUNT(*)) OVER ()": {},
    f"SELECT city, n, size FROM {BY_CITY} JOIN cities USING (city) ORDER BY n LIMIT 2": {},
    f"SELECT city, a.n, b.n AS m FROM {BY_CITY} a JOIN {BY_CITY} b USING (city) ORDER BY city LIMIT 2":
        {"n": "own", "m": "own"},
    f"SELECT n % 10 AS k, COUNT(*) AS c, SUM(n) AS s FROM {BY_CITY} JOIN cities USING (city) GROUP BY n % 10": {},
    f"SELECT STDDEV(n) AS s, MEDIAN(n) AS m, SUM(n) / 4 AS a, COUNT(*) AS c FROM {BY_CITY} x": {"a": "anew"},
    f"SELECT month, n, LAG(n) OVER (ORDER BY n) AS l, ROW_NUMBER() OVER (ORDER BY n) AS r FROM {BY_MONTH}":
        {"n": "own"},
    f"SELECT x.n / (y.n - z.n) AS q FROM {BY_CITY} x, {BY_CITY} y, {BY_CITY} z WHERE x.city = 'bonn' "
    "AND y.city = 'oslo' AND z.city = 'oslo'": {},
    f"SELECT AVG(n) AS a, MAX(n) AS m, COUNT(*) AS c FROM {BY_CITY}": {"a": "anew"},
    f"SELECT city, n, n * 2 AS t, total / n AS q, total / (n - n) AS z FROM {BY_CITY}":
        {"n": "own", "t": "own", "q": "anew"},
    f"SELECT AVG(n) AS a FROM (SELECT n FROM {BY_CITY} ORDER BY n LIMIT 3)": {},
    f"SELECT AVG(n) AS a FROM (SELECT n FROM {BY_CITY} WHERE n > 1000)": {},
}  # fmt: skip


@pytest.mark.parametrize("sql", KINDS)
def test_which_columns_have_intervals(sql: str) -> None:
    """Those of a monotone function of one released value are its own; of smooth ones of several, of noise drawn anew;
    ranks, extremes, choices by values with noise and quotients by what may be 0 have none."""
    answer = ask(sql)
    bounds, anew = answer._bounds(0.95), answer._simulated(0.95)
    assert {name: "anew" if name in anew else "own" for name in bounds} == KINDS[sql]
    heads = Counter(head for head in answer._text_cells().heads if head.endswith("%"))
    assert heads == Counter({"95 %": len(bounds) - len(anew), "~95 %": len(anew)}) - Counter()


OUTPUTS = {
    "2 * COUNT(*) - SUM(pay) / 10": True, "ROUND(COALESCE(SUM(pay), 0) / 7)": True, "AVG(pay)": True,
    "VAR_POP(pay)": True,
    "CAST(COUNT(*) AS DOUBLE)": True, "COUNT(DISTINCT month)": True,
    "MEDIAN(pay)": False, "MODE(month)": False, "MIN(pay)": False, "MAX(pay) + COUNT(*)": False,
    "QUANTILE(pay, 0.9)": False, "SQRT(COUNT(*))": False,
    "SKEWNESS(pay)": False, "CASE WHEN COUNT(*) > 1500 THEN 1 ELSE 0 END": False, "ABS(COUNT(*) - 1500)": False,
    "GREATEST(COUNT(*), 0)": False, "COUNT(*) * AVG(pay)": False, "1.0 / COUNT(*)": False, "SUM(pay) / COUNT(*)": False,
    "COALESCE(AVG(pay), 0)": False, "NULLIF(COUNT(*), 3)": False,
}  # fmt: skip
"""What a release computes itself, and whether a sum of it over groups has an interval."""


@pytest.mark.parametrize("expr", OUTPUTS)
def test_what_was_drawn_among_points_or_chosen_by_noise_is_not_drawn_anew(expr: str) -> None:
    """Noise of sums is; a value that was drawn among points would stay as it is, and seem to be exact."""
    answer = ask(f"SELECT SUM(x) AS s FROM (SELECT city, {expr} AS x FROM people GROUP BY city)")
    assert set(answer._bounds(0.95)) == ({"s"} if OUTPUTS[expr] else set())


@pytest.mark.parametrize("name", sorted(name for name, each in AGGREGATES.items() if each.without_interval))
def test_no_aggregate_without_an_interval_gives_one_to_what_is_made_of_it(name: str) -> None:
    aggregation = Aggregation(AGGREGATES[name], None)
    noisy, key = Slot(1, "x", Type.REAL), Slot(0, "k", Type.REAL)
    outputs = Outputs(1, (aggregation, Aggregation(AGGREGATES["COUNT"], None)))
    assert outputs.smooth(key)
    assert outputs.smooth(Slot(2, "n", Type.REAL))
    assert not outputs.smooth(noisy)
    assert not outputs.smooth(Slot(3, "y", Type.REAL))


def test_ends_are_those_of_the_released_value() -> None:
    answer = ask(f"SELECT city, n, 2 * n + 1 AS t, -n AS m FROM {BY_CITY} a JOIN cities USING (city)")
    assert isinstance(answer, MultiStepResult)
    (own,) = {id(each): each for each in answer.answers}.values()
    low, high = own._bounds(0.95)["n"]
    bounds = answer._bounds(0.95)
    assert bounds["n"][0].tolist() == low.tolist()
    assert bounds["t"][1].tolist() == (2 * high + 1).tolist()
    assert bounds["m"][0].tolist() == (-high).tolist()


def test_groups_that_chance_showed_have_their_own_intervals_alone() -> None:
    """Noise drawn anew would show others."""
    table = dpsql.Table(PEOPLE, bounds={"pay": (0, 100)})
    sql = "SELECT city, COUNT(*) AS n, COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM people GROUP BY city"
    answer = dpsql.query({"people": table}, sql, epsilon=1, delta=1e-6)
    assert answer._bounds(0.95).keys() == {"n"}


def test_a_replay_says_the_same() -> None:
    session = dpsql.Session(TABLES, budget=dpsql.Budget(epsilon=3))
    first, again = (session.query(COVERED[0], epsilon=1) for _ in range(2))
    assert again.replayed
    assert first.to_text().split("\n")[:-1] == again.to_text().split("\n")[:-1]


def test_levels() -> None:
    answer = ask(COVERED[0])
    low, wide = (answer._bounds(level)["x"] for level in (0.5, 0.99))
    assert (low[0] > wide[0]).all()
    assert (low[1] < wide[1]).all()
    assert not answer._bounds(0.95, simultaneous=True)
    assert "~ marks simulated intervals" in answer.to_text()


def test_a_group_that_chance_left_out_is_not_said_to_be_0() -> None:
    """An outer join, or a sub-query, that puts 0 in the place of a hidden group knows nothing of it."""
    table = dpsql.Table(PEOPLE, bounds={"pay": (0, 100)})
    cities = dpsql.Table(CITIES, public=True, unique=["city"])
    of = "(SELECT city, COUNT(*) AS n FROM people GROUP BY city)"
    for sql in (
        f"SELECT c.city, COALESCE(a.n, 0) AS x FROM cities c LEFT JOIN {of} a ON a.city = c.city",
        f"SELECT c.city, COALESCE(a.n, 0) AS x FROM {of} a RIGHT JOIN cities c ON a.city = c.city",
        f"SELECT c.city, CASE WHEN a.city IS NULL THEN 0 ELSE a.n END AS x FROM cities c LEFT JOIN {of} a USING (city)",
        f"SELECT COALESCE((SELECT n FROM {of} WHERE city = 'nowhere'), 0) AS x, size FROM cities WHERE size = 1",
    ):
        answer = dpsql.query({"people": table, "cities": cities}, sql, epsilon=1, delta=1e-6)
        assert "x" not in answer._bounds(0.95), sql


def test_what_stands_for_a_value_that_noise_took_away_has_no_interval() -> None:
    """AVG of a group without rows is NULL for its noise alone, and 0 in its place is no answer."""
    few = {"people": dpsql.Table(PEOPLE, keys={"city": ["bonn", "nowhere"]}, bounds={"pay": (0, 100)})}
    sql = (
        "SELECT a.city, COALESCE(a.pay, 0) AS x, b.n AS n "
        "FROM (SELECT city, VARIANCE(pay) AS pay FROM people GROUP BY city) a "
        "JOIN (SELECT city, COUNT(*) AS n FROM people GROUP BY city) b USING (city)"
    )
    missing = 0
    for _ in range(20):
        answer = dpsql.query(few, sql, epsilon=1)
        gone = bool(answer.answers[0].df["pay"].isna().any())
        missing += gone
        assert not gone or "x" not in answer._bounds(0.95)
        assert "n" in answer._bounds(0.95)
    assert missing


def test_a_key_that_is_no_place_is_no_failure() -> None:
    assert len(ask(f"SELECT SUM(n) AS s FROM (SELECT n FROM {BY_CITY} a JOIN cities USING (city)) GROUP BY 1.5"))


def test_selects_over_an_answer_that_run_here_have_intervals_too() -> None:
    """Of what they compute; what they pass on has its own, given that its row was chosen, as before."""
    answer = ask(f"SELECT city, n, total / n AS q FROM {BY_CITY} WHERE n > 1000")
    assert answer._bounds(0.95).keys() == {"n"}  # noise drawn anew would choose others
    answer = ask(COVERED[-2])
    assert isinstance(answer, StagedResult)
    assert answer._bounds(0.95).keys() == {"x", "y"}
    assert not answer._bounds(0.95, simultaneous=True)
    assert "~ marks simulated intervals" in answer.to_text()
    again = pickle.loads(pickle.dumps(answer))
    assert again.to_text() == answer.to_text()
