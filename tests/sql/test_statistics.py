"""Statistics, chosen values and numbers of different values against DuckDB, with the noise out of the way.

At epsilon 1e9 a noisy sum is off by some 1e-9 of what one row can change, and a value that fits best is chosen. A
quantile at q of n rows is right wherever q n rows lie at it or on either side: at the value that DuckDB's
QUANTILE_DISC counts to from below, at the one that it counts to from above, or between both. Reals and times of wide
ranges are met to within a step of the public points that they are chosen from.
"""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, InvalidPrivacyParameter, InvalidSchema, MissingBounds, UnknownGroups
from tests.sql import join_queries
from tests.sql.oracle import Row, matched, same, same_rows
from tests.sql.people import BOUNDS, KEYS, LARGEST_EPSILON, TYPES, ask, duck, frame

TOLERANCE = 2e-4
"""A quotient of sums over some rows of 60, of squares up to 10^4, with noise of 1e-9 of what each can be."""
MOST_POINTS = 65_536


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return frame()


@pytest.fixture(scope="module")
def oracle(people: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    return duck(people)


# Variances, covariances and the like.

SPREADS = ("VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV", "STDDEV_SAMP", "STDDEV_POP")
PAIRS = ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2")
ONE = ["i", "j", "n", "r", "i * 2 - 5", "ABS(i)", "-n", "i / 4", "CASE WHEN b THEN i ELSE -i END", "COALESCE(n, 0)",
    "LEAST(GREATEST(u, -20), 20)", "i + 1000", "CASE WHEN i > 0 THEN r END", "NULLIF(j, 2)", "b::INT",
    "j * n"]  # fmt: skip
TWO = ["i, j", "i, n", "r, n", "n, r", "i, i", "i, -i", "2 * i + 3, i", "j, CASE WHEN b THEN n END", "i * j, r",
    "LEAST(GREATEST(u, -20), 20), i", "COALESCE(n, 7), r", "i + 1000, r - 500"]  # fmt: skip
WHERE = ["", " WHERE b", " WHERE i BETWEEN -5 AND 12", " WHERE n IS NOT NULL AND r > 0", " WHERE nb IS NULL"]


def of_one_group(
    sql: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection, tolerance: float = TOLERANCE, **options: Any
) -> None:
    theirs = [tuple(None if _is_nan(cell) else cell for cell in row) for row in oracle.execute(sql).fetchall()]
    ours = list(ask(people, sql, **options))
    assert same_rows(ours, theirs, tolerance), f"{sql}: {ours} is not {theirs}"


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("argument", ONE)
def test_spread(argument: str, where: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    listed = ", ".join(f"{name}({argument})" for name in SPREADS)
    of_one_group(f"SELECT {listed}, COUNT(*) FROM t{where}", people, oracle)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("arguments", TWO)
def test_pair(arguments: str, where: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    of_one_group(f"SELECT {', '.join(f'{name}({arguments})' for name in PAIRS)} FROM t{where}", people, oracle)


ALONE = """
    SELECT VAR_POP(i) FILTER (WHERE b), STDDEV(n) FILTER (WHERE i > 3), VAR_SAMP(r) FILTER (WHERE nb) FROM t
    SELECT CORR(i, n) FILTER (WHERE b), REGR_SLOPE(r, n) FILTER (WHERE NOT b), COVAR_POP(n, r) FILTER (WHERE nb) FROM t
    SELECT STDDEV_POP(i) / AVG(i + 100), SQRT(VAR_POP(n)), ROUND(CORR(i, j), 4), VAR_POP(i) > 50 FROM t
    SELECT REGR_INTERCEPT(r, n) + REGR_SLOPE(r, n) * 10, COVAR_POP(i, n) / VAR_POP(n), POWER(CORR(n, r), 2) FROM t
    SELECT VAR_POP(i) - (AVG(i * i) - AVG(i) * AVG(i)), SUM(i), AVG(r), COUNT(n), CORR(r, n) FROM t
    SELECT VAR_POP(i) AS v, STDDEV_POP(i) AS s FROM t HAVING VAR_POP(i) > 1.5 ORDER BY s
    SELECT VAR_POP(i + 0 * j), VAR_POP(7), VAR_SAMP(i - i), COVAR_POP(i, 7), COVAR_SAMP(7, 8) FROM t
    SELECT VAR_POP(x), CORR(x, y) FROM (SELECT i * 2 AS x, n - 1 AS y FROM t WHERE j > 1) AS q
    WITH q AS (SELECT r AS x, n AS y FROM t) SELECT STDDEV(x), REGR_R2(x, y) FROM q WHERE y < 60
    SELECT VAR_POP(i::DOUBLE), VAR_SAMP((i > 3)::INT), CORR(b::INT, (i > 3)::INT) FROM t
"""


@pytest.mark.parametrize("sql", [line.strip() for line in ALONE.strip().splitlines()])
def test_statistics_in_queries(sql: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    of_one_group(sql, people, oracle)


def test_booleans_are_0_and_1(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    theirs = oracle.execute(
        "SELECT VAR_POP(b::INT), STDDEV(nb::INT), CORR(b::INT, nb::INT), COVAR_POP(i, b::INT) FROM t"
    )
    ours = ask(people, "SELECT VAR_POP(b), STDDEV(nb), CORR(b, nb), COVAR_POP(i, b) FROM t")
    assert same_rows(list(ours), theirs.fetchall(), TOLERANCE)


def test_of_constants(people: pd.DataFrame):
    """What does not vary has no correlation; R2 is 1 where y alone does not, as in DuckDB."""
    ((corr, slope, flat, r2, none),) = ask(
        people, "SELECT CORR(1, i), REGR_SLOPE(i, 5), REGR_SLOPE(5, i), REGR_R2(5, i), REGR_R2(i, 5) FROM t"
    )
    assert (corr, slope, none) == (None, None, None)
    assert flat == pytest.approx(0, abs=1e-6)
    assert r2 == 1
    ((var, of_null, pair),) = ask(people, "SELECT VAR_POP(3), VAR_POP(NULL), CORR(NULL, i) FROM t")
    assert (var, of_null, pair) == (0, None, None)


NUMBERS = "VAR_POP(i), VAR_SAMP(i), STDDEV(i), COVAR_POP(i, n), COVAR_SAMP(i, n), CORR(i, n), REGR_SLOPE(i, n)"


def test_of_no_rows_all_are_null(people: pd.DataFrame):
    for where in ("FALSE", "i > 19 AND i < 20"):
        assert list(ask(people, f"SELECT {NUMBERS} FROM t WHERE {where}")) == [(None,) * 7]
    assert list(ask(people.iloc[:0], f"SELECT {NUMBERS} FROM t")) == [(None,) * 7]


def test_of_equal_rows_nothing_varies():
    data = pd.DataFrame({"x": [4] * 3, "y": [1.0] * 3})
    sql = "SELECT VAR_POP(x), VAR_SAMP(y), COVAR_SAMP(x, y) FROM t"
    found = dpsql.query(data, sql, epsilon=1e9, bounds={"x": (0, 9), "y": (0, 9)})
    assert next(iter(found)) == (pytest.approx(0, abs=1e-5),) * 3


def test_var_samp_is_null_below_two_rows():
    """By the noisy count, which is within 1e-6 of the exact one here."""
    for rows, known in ((1, [False]), (3, [True])):
        data = pd.DataFrame({"x": range(rows)})
        sql = "SELECT VAR_SAMP(x), STDDEV(x), COVAR_SAMP(x, 2 * x) FROM t"
        row = next(iter(dpsql.query(data, sql, epsilon=1e9, bounds={"x": (0, 9)})))
        assert {cell is not None for cell in row} == set(known)


GROUPED = """
    SELECT b, VAR_POP(i), STDDEV_POP(n), COUNT(*) FROM t GROUP BY b
    SELECT b, CORR(i, n), REGR_SLOPE(r, n), REGR_INTERCEPT(r, n), REGR_R2(r, n) FROM t GROUP BY b
    SELECT nb, COVAR_POP(i, j), STDDEV_POP(r), AVG(r) FROM t GROUP BY nb
    SELECT i > 3 AS k, VAR_POP(r), CORR(n, r) FROM t GROUP BY k
    SELECT b, nb, VAR_POP(i), SUM(i) FROM t GROUP BY b, nb
    SELECT j > 2 AS k, STDDEV_POP(i) FILTER (WHERE b), COVAR_POP(i, r) FILTER (WHERE n > 5) FROM t GROUP BY k
    SELECT CASE WHEN i > 10 THEN 'high' WHEN i > 0 THEN 'low' ELSE 'none' END AS k, VAR_POP(n) FROM t GROUP BY k
    SELECT b, VAR_POP(i) AS v FROM t GROUP BY b HAVING VAR_POP(i) > 1.5
"""


@pytest.mark.parametrize("sql", [line.strip() for line in GROUPED.strip().splitlines()])
def test_statistics_by_group(sql: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    theirs = oracle.execute(sql).fetchall()
    assert matched(ask(people, sql), theirs, TOLERANCE) == ([], [])


def test_statistics_of_unknown_groups(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    sql = "SELECT o, VAR_POP(i), COVAR_POP(i, j) FROM t GROUP BY o"
    theirs = oracle.execute(f"{sql} HAVING COUNT(*) >= 2").fetchall()
    assert matched(ask(people, sql, delta=1e-9), theirs, TOLERANCE) == ([], [])


@pytest.mark.parametrize("options", [{"neighbours": "bounded"}, {"strategy": "split"}, {"mechanism": "gaussian"}])
def test_statistics_under_other_terms(options: dict[str, Any], people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    more = {"delta": 1e-9, "tolerance": 0.02} if "mechanism" in options else {}
    sql = "SELECT VAR_POP(i), STDDEV(n), CORR(i, n), REGR_SLOPE(r, n) FROM t"
    of_one_group(sql, people, oracle, **more, **options)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(12))
def test_other_tables(seed: int):
    """Tables of few and of many rows, some of them all but empty."""
    people = frame(rows=(2, 3, 5, 17, 200, 1_000)[seed % 6], seed=100 + seed)
    oracle = duck(people)
    sql = "SELECT VAR_POP(i), COVAR_POP(i, j), STDDEV_POP(j), COUNT(DISTINCT x), COUNT(DISTINCT w) FROM t"
    of_one_group(sql, people, oracle)
    for argument in ("i", "n", "j"):
        for q in (0.1, 0.5, 0.75):
            is_quantile(f"{argument}", q, people, oracle)


# Quantiles.


def grid_step(argument: str) -> float:
    """How far the even half of the points of one group are from each other; 0 where each value is one."""
    wide = {"r": 12.5, "r * 2": 25, "LEAST(GREATEST(u, -20), 20)": 40, "i / 4": 7.5, "CASE WHEN i > 0 THEN r END": 12.5}
    return wide.get(argument, 0) / (MOST_POINTS // 2 - 3)


def neighbours(
    argument: str, q: float, oracle: duckdb.DuckDBPyConnection, where: str = "", keys: str = ""
) -> dict[Row, tuple[Any, Any]]:
    """Group -> DuckDB's quantiles just below and just above: two where q of the rows is a whole number of them."""
    one = keys + ", " if keys else ""
    ends = ", ".join(f"QUANTILE_DISC({argument}, {end})" for end in (q - 1e-9, q + 1e-9))
    group = f" GROUP BY {keys}" if keys else ""
    rows = oracle.execute(f"SELECT {one}{ends} FROM t{where}{group}").fetchall()
    return {row[:-2]: row[-2:] for row in rows}


def is_quantile(
    argument: str, q: float, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection, where: str = "", call: str = ""
) -> None:
    ((low, high),) = neighbours(argument, q, oracle, where).values()
    sql = f"SELECT {call or f'QUANTILE({argument}, {q!r})'} FROM t{where}"
    found = ask(people, sql).item()
    if low is None:
        return  # of no rows: any value of the range
    step = grid_step(argument) * (1 + 1e-9)
    assert low - step <= found <= high + step, f"{sql}: {found} is not within {low} and {high}"


QUANTILES = (0.01, 0.1, 0.25, 1 / 3, 0.5, 0.75, 0.9, 0.99)
RANKED = ["i", "j", "n", "r", "i * 2 - 5", "-n", "i / 4", "CASE WHEN b THEN i ELSE -i END", "COALESCE(n, 0)", "r * 2",
    "LEAST(GREATEST(u, -20), 20)", "CASE WHEN i > 0 THEN r END", "NULLIF(j, 2)"]  # fmt: skip


@pytest.mark.thinned(2)
@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("argument", RANKED)
def test_quantile(argument: str, q: float, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    is_quantile(argument, q, people, oracle)
    is_quantile(argument, q, people, oracle, " WHERE b")


SPELLINGS = [
    "QUANTILE({x}, {q})",
    "QUANTILE_CONT({x}, {q})",
    "QUANTILE_DISC({x}, {q})",
    "PERCENTILE_CONT({x}, {q})",
    "PERCENTILE_DISC({x}, {q})",
    "PERCENTILE_CONT({q}) WITHIN GROUP (ORDER BY {x})",
    "PERCENTILE_DISC({q}) WITHIN GROUP (ORDER BY {x} ASC)",
    "PERCENTILE_CONT(1 - {q}) WITHIN GROUP (ORDER BY {x} DESC)",
    "PERCENTILE_DISC({q}) WITHIN GROUP (ORDER BY {x} NULLS FIRST)",
    "QUANTILE({x}, {q}, epsilon => 1e8)",
    "PERCENTILE_CONT({q}, epsilon => 1e8) WITHIN GROUP (ORDER BY {x})",
]


@pytest.mark.parametrize("q", [0.1, 0.25, 0.5, 0.625])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_a_quantile(spelling: str, q: float, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    for argument in ("i", "r"):
        is_quantile(argument, q, people, oracle, call=spelling.format(x=argument, q=q))


def test_median_is_the_quantile_at_a_half(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    for argument in RANKED:
        is_quantile(argument, 0.5, people, oracle, call=f"MEDIAN({argument})")
    is_quantile("i", 0.5, people, oracle, " WHERE b", call="MEDIAN(i) FILTER (WHERE b)")
    one = ask(people, "SELECT MEDIAN(i), QUANTILE(i, 0.5), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY i) FROM t")
    assert len(one.explanation._release.draws) == 1, "one quantile is one draw, however it is called"
    assert len(set(next(iter(one)))) == 1


def test_a_quantile_can_be_a_parameter_or_an_expression(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    ((low, high),) = neighbours("n", 0.75, oracle).values()
    assert low <= ask(people, "SELECT QUANTILE(n, :q) FROM t", params={"q": 0.75}).item() <= high
    assert low <= ask(people, "SELECT QUANTILE(n, 3 / 4) FROM t").item() <= high


def test_several_quantiles_do_not_cross(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    qs = (0.05, 0.2, 0.4, 0.6, 0.8, 0.95)
    for argument in ("i", "n"):
        result = ask(people, f"SELECT {', '.join(f'QUANTILE({argument}, {q})' for q in qs)} FROM t")
        found = next(iter(result))
        assert list(found) == sorted(found)
        assert len(result.explanation._release.draws) == 1
        for q, value in zip(qs, found, strict=True):
            ((low, high),) = neighbours(argument, q, oracle).values()
            assert low - 1 <= value <= high + 1, "a part is cut inside of a point"


@pytest.mark.parametrize("keys", ["b", "nb", "j", "b, nb"])
def test_quantiles_by_group(keys: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    for q in (0.2, 0.5, 0.9):
        for argument in ("i", "n"):
            expected = neighbours(argument, q, oracle, keys=keys)
            rows = {
                row[:-1]: row[-1]
                for row in ask(people, f"SELECT {keys}, QUANTILE({argument}, {q}) FROM t GROUP BY {keys}")
            }
            assert set(expected) <= set(rows)
            for group, (low, high) in expected.items():
                assert low is None or low <= rows[group] <= high


def test_quantiles_of_unknown_groups(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    expected = neighbours("i", 0.5, oracle, keys="o")
    sizes = {row[:1]: row[1] for row in oracle.execute("SELECT o, COUNT(*) FROM t GROUP BY o").fetchall()}
    rows = {row[:-1]: row[-1] for row in ask(people, "SELECT o, MEDIAN(i) FROM t GROUP BY o", delta=1e-9)}
    assert set(rows) == {group for group, size in sizes.items() if size >= 2}
    assert all(expected[group][0] <= value <= expected[group][1] for group, value in rows.items())


def test_the_quantile_at_0_or_1_has_no_row_beyond_it(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    ((least, most),) = oracle.execute("SELECT MIN(j + 2), MAX(j + 2) FROM t").fetchall()
    ((low, high),) = ask(people, "SELECT QUANTILE(CLAMP(j + 2, -50, 50), 0), QUANTILE(CLAMP(j + 2, -50, 50), 1) FROM t")
    assert -50 <= low <= least
    assert most <= high <= 50


def test_quantiles_of_booleans_and_times(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    for argument, step in (("b", None), ("nb", None), ("d", timedelta(0)), ("w", timedelta(hours=1))):
        for q in (0.3, 0.5, 0.8):
            ((low, high),) = neighbours(argument, q, oracle).values()
            found = ask(people, f"SELECT QUANTILE({argument}, {q}) FROM t").item()
            assert type(found) is type(low)
            assert (low <= found <= high) if step is None else (low - step <= found <= high + step)
    assert isinstance(ask(people, "SELECT MEDIAN(d) FROM t").item(), date)
    assert ask(people, "SELECT MEDIAN(i > 3) FROM t").item() is True


def test_without_rows_a_chosen_value_is_any_of_the_range(people: pd.DataFrame):
    for data, where in ((people.iloc[:0], ""), (people, " WHERE FALSE"), (people, " WHERE i > 19 AND i < 20")):
        row = next(iter(ask(data, f"SELECT MEDIAN(i), MIN(j), MAX(n), MODE(s), MIN(d), COUNT(*) FROM t{where}")))
        low, high = (-10, 20) if "19" not in where and "FALSE" not in where else (-math.inf, math.inf)
        assert low <= row[0] <= high
        assert 0 <= row[1] <= 5
        assert 0 <= row[2] <= 100
        assert row[3] in ("a", "b", "zz")
        assert BOUNDS["d"][0] <= row[4] <= BOUNDS["d"][1]
        assert row[5] == 0


def test_of_one_row_a_quantile_is_its_value():
    for value in (-3, 0, 7):
        data = pd.DataFrame({"x": [value]})
        sql = "SELECT MEDIAN(x), QUANTILE(x, 0.1), QUANTILE(x, 0.9) FROM t"
        for call in ("MEDIAN(x)", "QUANTILE(x, 0.1)", "QUANTILE(x, 0.9)", "QUANTILE(x + 1, 0.3) - 1"):
            found = dpsql.query(data, f"SELECT {call} FROM t", epsilon=1e9, bounds={"x": (-9, 9)}).item()
            assert found == value, sql


def test_where_all_rows_are_equal_every_quantile_is_their_value(people: pd.DataFrame):
    data = people.assign(i=5)
    row = next(iter(ask(data, "SELECT MEDIAN(i), QUANTILE(i, 0.1), QUANTILE(i, 0.99), MIN(i), MAX(i), MODE(i) FROM t")))
    assert row == (5,) * 6
    assert ask(people, "SELECT MEDIAN(7) FROM t").item() == 7
    assert ask(people, "SELECT MEDIAN(2.5) FROM t").item() == 2.5


# Extremes: at this epsilon the rank of MIN and MAX is 1.


@pytest.mark.thinned(4)
@pytest.mark.parametrize("where", ["", " WHERE b", " WHERE n > 5"])
@pytest.mark.parametrize("argument", [*RANKED, "d", "w", "d + 5", "i - 500"])
def test_extremes(argument: str, where: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    values = sorted(
        row[0] for row in oracle.execute(f"SELECT {argument} FROM t{where}").fetchall() if row[0] is not None
    )
    ((low, high),) = ask(people, f"SELECT MIN({argument}), MAX({argument}) FROM t{where}")
    step: Any = grid_step(argument) * (1 + 1e-9)
    if isinstance(values[0], datetime | date):
        step = timedelta(hours=1) if argument == "w" else timedelta(0)
    assert values[0] - step <= low <= values[1] + step
    assert values[-2] - step <= high <= values[-1] + step


def test_extremes_lie_inside(people: pd.DataFrame):
    """With little epsilon the rank that is asked for grows: the answer is hardly ever beyond all rows."""
    data = pd.DataFrame({"x": np.arange(2_000) // 2 + 100})
    rows = [
        next(iter(dpsql.query(data, "SELECT MIN(x), MAX(x) FROM t", epsilon=1, bounds={"x": (0, 2_000)})))
        for _ in range(40)
    ]
    inside = sum(low >= 100 and high <= 1_099 for low, high in rows)
    assert inside >= 30  # each end is beyond with a chance of 5 %: 36 of 40 are expected, below 30 is 4 sigma
    assert all(low <= 250 and high >= 950 for low, high in rows)
    assert ask(people, "SELECT MAX(j) - MIN(j) FROM t").item() <= 5


def test_extremes_by_group(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    values: dict[Any, list[Any]] = {}
    for key, value in oracle.execute("SELECT nb, i FROM t").fetchall():
        values.setdefault(key, []).append(value)
    for key, low, high in ask(people, "SELECT nb, MIN(i), MAX(i) FROM t GROUP BY nb"):
        ordered = sorted(values[key])
        assert ordered[0] <= low <= ordered[1]
        assert ordered[-2] <= high <= ordered[-1]


# Most frequent values.


def test_mode(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    for argument, where in [("s", " WHERE s <> 'c'"), ("c", " WHERE c <> 'green'"), ("j", ""), ("b", ""), ("nb", ""),
                            ("i > 3", ""), ("j % 3", ""), ("n", ""),
                            ("CASE WHEN i > 3 THEN 'big' ELSE 'small' END", ""),
                            ("EXTRACT(month FROM d)", ""), ("i", "")]:  # fmt: skip
        best = best_of(argument, oracle, where)
        for call in (
            f"MODE({argument})",
            f"MODE() WITHIN GROUP (ORDER BY {argument})",
            f"MODE({argument}, epsilon => 1e8)",
        ):
            assert ask(people, f"SELECT {call} FROM t").item() in best, call


def best_of(argument: str, oracle: duckdb.DuckDBPyConnection, where: str) -> set[Any]:
    """All values of the largest number of rows."""
    rows = oracle.execute(f"SELECT {argument}, COUNT({argument}) FROM t{where} GROUP BY 1").fetchall()
    most = max(count for _, count in rows)
    return {value for value, count in rows if count == most and value is not None}


def test_mode_with_filter_and_by_group(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    assert ask(people, "SELECT MODE(j) FILTER (WHERE b) FROM t").item() in best_of("j", oracle, " WHERE b")
    for key, value, count in ask(people, "SELECT b, MODE(j), COUNT(*) FROM t GROUP BY b"):
        assert value in best_of("j", oracle, f" WHERE b = {key}")
        assert count > 0
    for key, value in ask(people, "SELECT o, MODE(nb) FROM t GROUP BY o", delta=1e-9):
        where = " WHERE o IS NULL" if key is None else " WHERE o = '" + key.replace("'", "''") + "'"
        best = best_of("nb", oracle, where)
        assert value in best or not best


def test_top_k(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    """A JSON list, the most frequent first; of equally frequent ones any may come first."""
    for argument, most in (("j", 6), ("n", 4), ("i > 3", 2), ("d", 5)):
        rows = oracle.execute(f"SELECT {argument}, COUNT({argument}) FROM t GROUP BY 1").fetchall()
        counts = {str(value) if isinstance(value, date) else value: count for value, count in rows if count}
        for k in range(1, most + 1):
            found = json.loads(ask(people, f"SELECT APPROX_TOP_K({argument}, {k}) FROM t").item())
            assert [counts.get(value, 0) for value in found] == sorted(counts.values(), reverse=True)[:k]
            assert len(set(found)) == len(found)
    assert json.loads(ask(people, "SELECT APPROX_TOP_K(nb, 9) FROM t").item()) in ([True, False], [False, True])
    assert len(json.loads(ask(people, "SELECT APPROX_TOP_K(b) FROM t").item())) == 1


def test_a_declared_value_that_never_occurs_is_last():
    data = pd.DataFrame({"s": ["a", "é\"'", "a", "zz", None, "not listed"]})
    options: dict[str, Any] = {"epsilon": 1e9, "keys": {"s": ["a", "b", "é\"'", "zz"]}}
    found = dpsql.query(data, "SELECT APPROX_TOP_K(s, 4), MODE(s) FROM t", **options)
    text, mode = next(iter(found))
    assert json.loads(text)[0] == mode == "a"
    assert json.loads(text)[3] == "b"
    assert "é" in text


# Numbers of different values.

DISTINCT = ["i", "j", "r", "u", "n", "b", "nb", "d", "e", "w", "v", "x", "o", "i > 3", "i % 7", "UPPER(x)", "r * 2",
    "EXTRACT(month FROM d)", "CASE WHEN b THEN x END", "COALESCE(x, '?')", "i / 3", "CAST(n AS TEXT)", "x || o",
    "1"]  # fmt: skip


@pytest.mark.thinned(2)
@pytest.mark.parametrize("where", ["", " WHERE b", " WHERE n > 5 OR nb"])
@pytest.mark.parametrize("argument", DISTINCT)
def test_distinct(argument: str, where: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    of_one_group(f"SELECT COUNT(DISTINCT {argument}), COUNT(*) FROM t{where}", people, oracle)
    if not where:
        of_one_group(f"SELECT b, COUNT(DISTINCT {argument}) FROM t GROUP BY b ORDER BY b", people, oracle)
        exact = oracle.execute(f"SELECT COUNT(DISTINCT {argument}) FROM t").fetchall()
        assert list(ask(people, f"SELECT APPROX_COUNT_DISTINCT({argument}) FROM t")) == exact


DISTINCT_QUERIES = """
    SELECT COUNT(DISTINCT x) FILTER (WHERE b), COUNT(DISTINCT i) FILTER (WHERE nb IS NULL) FROM t
    SELECT COUNT(DISTINCT x) / COUNT(x), COUNT(DISTINCT i) > 3.5, 100 * COUNT(DISTINCT j) FROM t
    SELECT COUNT(DISTINCT x), COUNT(DISTINCT o), SUM(i), AVG(r), VAR_POP(n) FROM t
    SELECT COUNT(DISTINCT y) FROM (SELECT i * i AS y FROM t WHERE j > 1) AS q
    SELECT COUNT(DISTINCT NULL), COUNT(DISTINCT NULLIF(j, j)) FROM t
    SELECT COUNT(DISTINCT x) FROM t HAVING COUNT(DISTINCT x) > 1.5
    SELECT COUNT(DISTINCT x) FROM t WHERE FALSE
"""


@pytest.mark.parametrize("sql", [line.strip() for line in DISTINCT_QUERIES.strip().splitlines()])
def test_distinct_in_queries(sql: str, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    of_one_group(sql, people, oracle)


def test_distinct_reals():
    """-0.0 is 0.0, NaN is NULL, and infinities are two values."""
    data = pd.DataFrame({"x": [0.0, -0.0, np.nan, 1.5, np.inf, np.inf, -np.inf, 1.5, np.nan]})
    assert dpsql.query(data, "SELECT COUNT(DISTINCT x) FROM t", epsilon=1e9).item() == 4
    assert dpsql.query(data, "SELECT COUNT(DISTINCT x) FROM t", epsilon=1e9, bounds={"x": (0, 9)}).item() == 3
    assert dpsql.query(data.iloc[:0], "SELECT COUNT(DISTINCT x) FROM t", epsilon=1e9).item() == 0
    whole = pd.DataFrame({"x": [2**53, 2**53 + 1, 2**62 - 1, 2**62, -1]})
    assert dpsql.query(whole, "SELECT COUNT(DISTINCT x) FROM t", epsilon=1e9).item() == 5


def test_distinct_by_unknown_group(people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    sql = "SELECT o, COUNT(DISTINCT i), COUNT(*) FROM t GROUP BY o"
    theirs = oracle.execute(f"{sql} HAVING COUNT(*) >= 2").fetchall()
    assert matched(ask(people, sql, delta=1e-9), theirs, TOLERANCE) == ([], [])


# Several tables, and people with several rows.

JOINED = """
    SELECT COUNT(DISTINCT o_date), COUNT(DISTINCT o_orderkey), COUNT(DISTINCT o_custkey) FROM orders
    SELECT COUNT(DISTINCT i_orderkey), COUNT(DISTINCT i_qty) FROM items
    SELECT COUNT(DISTINCT CASE WHEN o_total > 50 THEN o_custkey END) FROM orders
    SELECT COUNT(DISTINCT n_name), COUNT(*) FROM customer JOIN nation ON c_nation = n_key
    SELECT COUNT(DISTINCT o_year), COUNT(DISTINCT c_nation) FROM orders JOIN customer ON o_custkey = c_custkey
    SELECT COUNT(DISTINCT i_qty) FROM items JOIN orders ON i_orderkey = o_orderkey WHERE o_total > 20
    SELECT COUNT(DISTINCT y) FROM (SELECT o_custkey, o_year AS y FROM orders UNION ALL SELECT o_custkey, 1 FROM orders)
    SELECT COUNT(DISTINCT n) FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey)
    SELECT VAR_POP(o_total), STDDEV(o_total), COVAR_POP(o_total, o_year), COUNT(*) FROM orders
    SELECT VAR_POP(o_total), CORR(o_total, c_nation) FROM orders JOIN customer ON o_custkey = c_custkey
"""
JOINED_QUERIES = [line.strip() for line in JOINED.strip().splitlines()]


@pytest.fixture(scope="module")
def shop() -> tuple[dict[str, dpsql.Table], duckdb.DuckDBPyConnection]:
    return join_queries.tables(), join_queries.duck()


@pytest.mark.parametrize("sql", JOINED_QUERIES)
def test_joined(sql: str, shop: tuple[dict[str, dpsql.Table], duckdb.DuckDBPyConnection]):
    data, oracle = shop
    expected = oracle.execute(sql).fetchall()
    assert matched(dpsql.query(data, sql, epsilon=LARGEST_EPSILON), expected, 0.06) == ([], [])


def test_of_several_rows_of_a_person_those_that_count():
    data = {
        "t": dpsql.Table(
            pd.DataFrame({"pid": [1] * 9 + [2], "x": [*range(9), 9]}), unit="pid", max_rows=4, bounds={"x": (0, 9)}
        )
    }
    assert dpsql.query(data, "SELECT COUNT(DISTINCT x) FROM t", epsilon=1e9).item() == 5
    assert dpsql.query(data, "SELECT COUNT(DISTINCT pid) FROM t", epsilon=1e9).item() == 2
    release = dpsql.query(data, "SELECT MEDIAN(x) FROM t", epsilon=1e9).explanation._release
    assert release.draws[0].rows == 4


def test_public_tables_alone_are_exact():
    """Free, whatever the epsilon."""
    table = pd.DataFrame({"x": [3, 1, 2, 2], "s": ["a", "b", "b", "c"]})
    sql = "SELECT COUNT(DISTINCT s), VAR_POP(x), CORR(x, 2 * x) FROM t"
    result = dpsql.query({"t": dpsql.Table(table, public=True)}, sql, epsilon=0.001)
    assert same_rows(result, [(3, 0.5, 1.0)], 1e-6)
    assert result.loss.epsilon == 0


def test_chosen_values_of_public_tables_are_exact():
    """Free, whatever the epsilon."""
    data = {"t": dpsql.Table(pd.DataFrame({"x": [3, 1, 2, 2]}), public=True)}
    result = dpsql.query(data, "SELECT MIN(x), MAX(x), MEDIAN(x), MODE(x) FROM t", epsilon=0.001)
    assert list(result) == [(1, 3, 2, 2)]
    assert result.loss.epsilon == 0


# What is exact elsewhere: answers, public values, one person's rows.


def test_of_an_answer_they_are_the_databases(people: pd.DataFrame):
    answer = "(SELECT j, COUNT(*) AS k FROM t GROUP BY j)"
    assert same(ask(people, f"SELECT COUNT(DISTINCT j), MIN(j), MAX(j) FROM {answer}").df.iloc[0, 0], 6)
    for call in ("MEDIAN(k)", "VAR_POP(k)", "CORR(k, j)", "MODE(k)", "QUANTILE_CONT(k, 0.5)"):
        answered = ask(people, f"SELECT {call} AS v FROM {answer}")
        shown = answered.answers[0].df
        expected = duckdb.sql(f"SELECT {call.replace('j', shown.columns[0])} FROM shown").fetchall()[0]
        assert answered.df["v"].iloc[0] == pytest.approx(expected[0])
    with pytest.raises(DPSQLError, match="APPROX_TOP_K"):
        ask(people, f"SELECT APPROX_TOP_K(j, 2) FROM {answer}")


# Epsilon.


def test_all_sums_are_one_part_and_each_family_of_draws_one(people: pd.DataFrame):
    sql = "SELECT COUNT(*), SUM(i), VAR_POP(n), MEDIAN(i), QUANTILE(i, 0.9), MEDIAN(j), MAX(i), MODE(s) FROM t"
    release = ask(people, sql, epsilon=1).explanation._release
    assert [float(share.epsilon) for share in release.shares] == [0.2]
    assert [float(draw.epsilon) for draw in release.draws] == [0.2] * 4
    assert float(release.cost.epsilon) == 1


def test_an_own_epsilon_is_apart(people: pd.DataFrame):
    release = ask(people, "SELECT COUNT(*), MEDIAN(i, epsilon => 0.25), MAX(i) FROM t", epsilon=1).explanation._release
    assert sorted(float(draw.epsilon) for draw in release.draws) == [0.25, 0.375]
    assert [float(share.epsilon) for share in release.shares] == [0.375]
    session = dpsql.Session({"t": dpsql.Table(people, bounds=BOUNDS, keys=KEYS, types=TYPES)}, budget=dpsql.Budget(1))
    session.query("SELECT MEDIAN(i, epsilon => 0.25), VAR_POP(j, epsilon => 0.5) FROM t", epsilon=1)
    assert session.spent.epsilon == 0.75
    with pytest.raises(InvalidPrivacyParameter, match="leave nothing"):
        ask(people, "SELECT MEDIAN(i, epsilon => 1), MAX(i) FROM t", epsilon=1)


# Bounds that a query chooses.


def test_chosen_bounds_hold_all_but_few_rows():
    data = pd.DataFrame({"x": np.linspace(-40.0, 90.0, 4_000), "y": np.arange(4_000) % 7})
    for sql, exact in (
        ("SELECT SUM(x) FROM t", 100_000),
        ("SELECT AVG(x) FROM t", 25),
        ("SELECT VAR_POP(x) FROM t", data["x"].var(ddof=0)),
        ("SELECT CORR(x, y) FROM t", data["x"].corr(data["y"])),
        ("SELECT MEDIAN(x) FROM t", 25),
        ("SELECT SUM(x * 2) FROM t", 200_000),
        ("SELECT MAX(y) FROM t", 6),
    ):
        result = dpsql.query(data, sql, epsilon=1e6, bounds="auto")
        assert result.item() == pytest.approx(exact, rel=0.02, abs=0.05), sql
        assert len(result.explanation._release.bounds) == len(set("xy") & set(sql))
    said = dpsql.query(data, "SELECT SUM(x), SUM(y) FROM t", epsilon=1e6, bounds={"x": "auto", "y": (0, 6)})
    assert said.df.iloc[0, 1] == data["y"].sum()


def test_bounds_that_the_text_gives_are_not_chosen():
    data = pd.DataFrame({"x": [1.0, 2.0, 30.0]})
    for sql, exact in (
        ("SELECT SUM(CLAMP(x, 0, 10)) FROM t", 13),
        ("SELECT SUM(x) FROM t WHERE x BETWEEN 0 AND 10", 3),
        ("SELECT SUM(x, contribution_bounds_per_row => (0, 10)) FROM t", 13),
        ("SELECT COUNT(x) FROM t", 3),
        ("SELECT COUNT(DISTINCT x) FROM t", 3),
    ):
        result = dpsql.query(data, sql, epsilon=1e9, bounds="auto")
        assert result.item() == pytest.approx(exact, abs=1e-6)
        assert not result.explanation._release.provisional


def test_bounds_of_units():
    frame = pd.DataFrame({"pid": np.arange(3_000) // 3, "x": np.full(3_000, 5.0)})
    table = dpsql.Table(frame, unit="pid", max_rows=3, bounds={"x": "auto"})
    assert dpsql.query({"t": table}, "SELECT SUM(x) FROM t", epsilon=1e6).item() == pytest.approx(15_000, rel=0.01)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"s": "auto"}, 'chosen for numbers, but "s" is text'),
        ({"b": "auto"}, 'chosen for numbers, but "b" is boolean'),
        ({"d": "auto"}, 'chosen for numbers, but "d" is timestamp'),
        ({"nobody": "auto"}, "nobody"),
        ({"u": "AUTO"}, '"auto"'),
        ("AUTO", "must map columns"),
    ],
)
def test_bounds_that_cannot_be_chosen(bounds: Any, words: str, people: pd.DataFrame):
    with pytest.raises(InvalidSchema, match=words):
        dpsql.query(people, "SELECT COUNT(*) FROM t", epsilon=1, bounds=bounds)


def test_auto_is_of_sums_and_not_of_groups(people: pd.DataFrame):
    with pytest.raises(UnknownGroups):
        dpsql.query(people, "SELECT FLOOR(u), COUNT(*) FROM t GROUP BY FLOOR(u)", epsilon=1, bounds={"u": "auto"})
    with pytest.raises(UnknownGroups, match="has no public list"):
        dpsql.query(people, "SELECT MODE(u) FROM t", epsilon=1, bounds={"u": "auto"})
    with pytest.raises(MissingBounds, match='"r"'):
        dpsql.query(people, "SELECT CORR(u, r) FROM t", epsilon=1, bounds={"u": "auto"}, auto_bounds=False)


# What is said where there are no bounds.


def refused(sql: str, **facts: Any) -> MissingBounds:
    frame = pd.DataFrame({"u": [1, 2], "i": [1, 50], "x": [1.5, 2.5], "s": ["a", "b"]})
    with pytest.raises(MissingBounds) as refusal:
        dpsql.query({"t": dpsql.Table(frame, **facts)}, sql, epsilon=1, auto_bounds=False)
    return refusal.value


@pytest.mark.parametrize(
    ("aggregate", "why", "instead"),
    [
        ("SUM(x)", "can change the sum;", "SUM(CLAMP(x, 0, 100))"),
        ("AVG(x)", "can change the sum;", "AVG(CLAMP(x, 0, 100))"),
        ("VAR_POP(x)", "can change the sums that it is made of;", "VAR_POP(CLAMP(x, 0, 100))"),
        ("CORR(i, x)", "can change the sums that it is made of;", "CORR(CLAMP(i, 0, 100), x)"),
        ("MEDIAN(x)", "drawn from a grid over the range of the values", "MEDIAN(CLAMP(x, 0, 100))"),
        ("QUANTILE(x, 0.9)", "drawn from a grid over the range of the values", "QUANTILE(CLAMP(x, 0, 100), 0.9)"),
        ("MIN(x)", "drawn from a grid over the range of the values", "MIN(CLAMP(x, 0, 100))"),
        ("MAX(CAST(s AS DOUBLE))", "drawn from a grid", "MAX(CLAMP(CAST(s AS DOUBLE), 0, 100))"),
    ],
)
def test_bounds_are_asked_for_with_the_reason_that_holds(aggregate: str, why: str, instead: str):
    hint = refused(f"SELECT {aggregate} FROM t").hint
    assert why in hint
    assert instead in hint
    dpsql.query(pd.DataFrame({"i": [1], "x": [1.5], "s": ["a"]}), f"SELECT {instead} FROM t", epsilon=1, bounds="auto")


@pytest.mark.parametrize("facts", [{}, {"bounds": "auto"}])
def test_no_bounds_of_a_column_bound_a_quotient(facts: dict[str, Any]):
    refusal = refused("SELECT SUM(1.0 / (i - 50)) FROM t", **facts)
    assert refusal.message == "SUM(1.0 / (i - 50)) has no bounds: 1.0 / (i - 50) can be as large as numbers go."
    assert refusal.hint.endswith("for example SUM(CLAMP(1.0 / (i - 50), 0, 100)).")


def test_a_column_is_shown_without_the_bounds_that_it_may_be_given():
    refusal = refused("SELECT SUM(EXP(x)) FROM t", bounds="auto")
    assert refusal.message == 'SUM(EXP(x)) needs bounds for column "x".'
    assert "or write SUM(EXP(CLAMP(x, 0, 100)))." in refusal.hint


def test_chosen_bounds_do_not_reach_what_a_subquery_computes():
    sql, words = (
        "SELECT SUM(m) FROM (SELECT u, MAX(x) AS m FROM t GROUP BY u)",
        'bounds="auto" is for columns of tables',
    )
    unit = {"unit": "u", "max_rows": 3}
    assert words in refused(sql, **unit, bounds={"x": "auto"}).hint
    assert words not in refused(sql, **unit).hint


@pytest.mark.parametrize(
    ("sql", "why", "hint"),
    [
        ("MODE(x)", "it has no public list of values", 'List them: keys={"x": [...]}.'),
        (
            "MODE(i)",
            "more than 10,000",
            'Ask for fewer, for example of FLOOR(i / 100), or list those that matter: keys={"i"',
        ),
        ("APPROX_TOP_K(i + 1, 2)", "more than 10,000", "for example of FLOOR((i + 1) / 100)"),
        ("MODE(k * 1000 + j)", "more than 10,000", "Ask for fewer, for example of FLOOR(((k * 1000) + j) / 100)."),
        ("MODE(UPPER(s))", "more than 10,000", "Ask for fewer."),
    ],
)
def test_too_many_values_to_choose_among_are_said_to_be_so(sql: str, why: str, hint: str):
    data = pd.DataFrame({"x": [1.5], "i": [7], "j": [3], "k": [4], "s": ["n1"]})
    bounds = {"i": (0, 600_000), "j": (0, 999), "k": (0, 100), "x": (0, 1)}
    table = dpsql.Table(data, bounds=bounds, keys={"s": [f"n{place}" for place in range(10_001)]})
    with pytest.raises(UnknownGroups) as refusal:
        dpsql.query({"t": table}, f"SELECT {sql} FROM t", epsilon=1)
    assert why in refusal.value.message
    assert hint in refusal.value.hint
    assert dpsql.query({"t": table}, "SELECT MODE(FLOOR(i / 100)) FROM t", epsilon=1e6).item() == 0
