"""Statistics that are made of others: DuckDB's numbers where there is no noise, and intervals that hold where there
is."""

from __future__ import annotations

import json
import math

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError
from dpsql.testing import insecure_exact
from tests.sql.people import BOUNDS, KEYS, LARGEST_EPSILON, TYPES, ask, duck, frame


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return frame(80)


@pytest.fixture(scope="module")
def duckdbs(rows: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    return duck(rows)


ALIKE = [
    "SELECT SKEWNESS(i), KURTOSIS(i), KURTOSIS_POP(i), SKEWNESS(n), KURTOSIS(r) FROM t",
    "SELECT b, SKEWNESS(n), KURTOSIS(n), KURTOSIS_POP(r) FROM t GROUP BY b ORDER BY b",
    "SELECT SKEWNESS(i) FILTER (WHERE b AND j > 1), KURTOSIS(i * j) FILTER (WHERE i > 0) FROM t",
    "SELECT SKEWNESS(i), KURTOSIS(i), KURTOSIS_POP(i) FROM t WHERE i = 3",
    "SELECT GEOMEAN(ABS(i) + 1), GEOMETRIC_MEAN(j + 1) FROM t",
    "SELECT b, GEOMEAN(j + 1) AS g FROM t GROUP BY b HAVING g > 0 ORDER BY b",
]


def _close(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float) and not math.isnan(other):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4)
    empty = other is None or (isinstance(other, float) and math.isnan(other))
    return one == other or (empty and (one is None or one != one))  # noqa: PLR0124 - NaN


def test_the_answer_is_duckdbs(rows: pd.DataFrame, duckdbs: duckdb.DuckDBPyConnection):
    for sql in ALIKE:
        ours, theirs = list(ask({"t": rows}, sql)), duckdbs.execute(sql).fetchall()
        assert len(ours) == len(theirs)
        pairs = [pair for one, other in zip(ours, theirs, strict=True) for pair in zip(one, other, strict=True)]
        assert all(_close(one, other) for one, other in pairs), (sql, ours, theirs)


def test_a_histogram_counts_every_public_value(rows: pd.DataFrame):
    sql = "SELECT HISTOGRAM(s) AS s, HISTOGRAM(b) FILTER (WHERE j > 2) AS b, HISTOGRAM(j) AS j FROM t"
    s, b, j = (json.loads(cell) for cell in next(iter(ask({"t": rows}, sql))))
    assert s == {"a": sum(rows["s"] == "a"), "b": sum(rows["s"] == "b"), "zz": 0}
    assert b == {"false": sum(~rows["b"] & (rows["j"] > 2)), "true": sum(rows["b"] & (rows["j"] > 2))}
    assert j == {str(each): sum(rows["j"] == each) for each in range(6)}


def test_approximate_quantiles_are_quantiles_that_do_not_cross(rows: pd.DataFrame):
    cells = next(
        iter(ask({"t": rows}, "SELECT APPROX_QUANTILES(i, 4), APPROX_QUANTILES(d, 2), QUANTILE(i, 0.5) FROM t"))
    )
    numbers, days = json.loads(cells[0]), json.loads(cells[1])
    assert numbers == sorted(numbers)
    assert days == sorted(days)
    assert (len(numbers), len(days), numbers[2]) == (5, 3, cells[2])
    assert all(pd.Timestamp("2020-01-25") <= pd.Timestamp(day) <= pd.Timestamp("2020-03-05") for day in days)


def test_engines_are_handed_the_same_integers(rows: pd.DataFrame):
    table = dpsql.Table(rows, bounds=BOUNDS, keys=KEYS, types=TYPES)
    both = [dpsql.Session({"t": table}, budget=dpsql.Budget(1e9), engine=name) for name in ("pandas", "duckdb")]
    for sql in (*ALIKE[:3], "SELECT HISTOGRAM(s), HISTOGRAM(j) FROM t"):
        one, other = (insecure_exact(each, sql, bytes(32), epsilon=1) for each in both)
        assert one.parts == other.parts, sql


def test_they_cost_no_more_than_a_count_and_their_intervals_hold(rows: pd.DataFrame):
    many = pd.concat([rows] * 40, ignore_index=True)
    session = dpsql.Session({"t": dpsql.Table(many, bounds=BOUNDS)}, budget=dpsql.Budget(100))
    sql = "SELECT SKEWNESS(i) AS s, KURTOSIS(i) AS k, GEOMEAN(j + 1) AS g FROM t"
    exact = next(iter(dpsql.query({"t": dpsql.Table(many, bounds=BOUNDS)}, sql, epsilon=LARGEST_EPSILON)))
    inside = [0, 0, 0]
    for _ in range(25):
        ends = session.query(sql, epsilon=1, fresh=True).intervals()
        for place, name in enumerate("skg"):
            low, high = ends[f"{name}_low"][0], ends[f"{name}_high"][0]
            assert low < high
            inside[place] += low <= exact[place] <= high
    assert session.spent.epsilon == 25
    assert min(inside) >= 20  # at 95 % below that once in 10^4 times


REFUSED = [
    ("SELECT SKEWNESS(u) FROM t", "needs bounds"),
    ("SELECT KURTOSIS(s) FROM t", "wants numbers"),
    ("SELECT SKEWNESS(DISTINCT i) FROM t", "takes 1 argument"),
    ("SELECT SKEWNESS(i, contribution_bounds_per_row => (0, 1)) FROM t", "named arguments"),
    ("SELECT SUM(GEOMEAN(i)) FROM t", "inside another"),
    ("SELECT GEOMEAN(u) FROM t", "bounds"),
    ("SELECT HISTOGRAM(x) FROM t", "public list"),
    ("SELECT HISTOGRAM(d) FROM t", "public list"),
    ("SELECT HISTOGRAM(i * 7 + j) FROM t", "at most 99"),
    ("SELECT APPROX_QUANTILES(i, 0) FROM t", "from 1 to 50"),
    ("SELECT APPROX_QUANTILES(i, j) FROM t", "from 1 to 50"),
    ("SELECT APPROX_QUANTILES(s, 2) FROM t", "numbers or times"),
    ("SELECT MAD(s) FROM t", "it is text"),
    ("SELECT PRODUCT(i) FROM t", "EXP(SUM(LN"),
    ("SELECT i FROM t WHERE SKEWNESS(i) > 1", "HAVING"),
]


def test_what_they_are_not_of_is_refused(rows: pd.DataFrame):
    for sql, words in REFUSED:
        with pytest.raises(DPSQLError) as caught:
            ask({"t": rows}, sql)
        assert words in str(caught.value), (sql, str(caught.value))
