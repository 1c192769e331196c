"""Products, shares, different values and grids: the integers of plain Python, and the statistics of NumPy."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import SHARE_STEPS, ExactTable, LatticeProduct, LatticeShare
from dpsql.executors.pandas import executor as engine
from dpsql.executors.pandas import groups
from dpsql.executors.pandas.sums import accumulators, points
from dpsql.plan.expressions import Call, Expr
from dpsql.release.release import Release
from dpsql.schema.columns import TableSchema
from dpsql.session import prepare
from tests.core.checks import B, Shape, U, calibrated, run_exactly, series
from tests.executors.pandas import reference

SEED = 7_071_947
INF, NAN = float("inf"), float("nan")
SHAPE = Shape(
    {"x": "float64", "y": "float64", "p": "int64", "n": "Int64", "b": "bool", "w": "float64", "g": "str", "s": "str"},
    {
        "bounds": {"x": (-1, 3), "y": (-1, 3), "p": (20, 30), "n": (-4, 5), "w": (-1e9, 1e12)},
        "nullable": {"x": False}, "keys": {"g": ["a", None, "c"]},
    },
)  # fmt: skip


def rows_at_random(count: int, seed: int = SEED) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    odd = [-1.0, 3.0, 1.0, 0.1, INF, -INF, 1e300, -7.5]
    return [
        (
            float(rng.choice([rng.uniform(-1, 3), rng.choice(odd)])),
            float(rng.choice([rng.uniform(-2, 4), rng.choice(odd), NAN])),
            int(rng.choice([20, 25, 30, 99, -7, rng.integers(20, 31)])),
            [None, -4, 5, 0, 3, -99, 2**40][rng.integers(7)],
            bool(rng.integers(2)),
            float(rng.choice([NAN, 0.0, -0.0, 1e12, -1e9, rng.uniform(-1e9, 1e12)])),
            ["a", None, "c", "zz"][rng.integers(4)],
            ["u", "v", "", None, 5][rng.integers(5)],
        )
        for _ in range(count)
    ]


QUERIES = (
    "SELECT VAR_POP(x), VAR_POP(y), VAR_POP(p), VAR_POP(n), VAR_POP(b), VAR_POP(w) FROM t",
    "SELECT CORR(x, p) FROM t", "SELECT CORR(y, n), AVG(y) FROM t", "SELECT REGR_SLOPE(w, b) FROM t",
    "SELECT COVAR_POP(p, n), COVAR_POP(b, x), COVAR_SAMP(y, w) FROM t",
    "SELECT CORR(p, n), CORR(n, p), CORR(b, y), REGR_R2(x, w) FROM t",
    "SELECT g, CORR(x, y), COUNT(x) FROM t GROUP BY g", "SELECT s, CORR(x, p) FROM t GROUP BY s",
    "SELECT s, VAR_POP(p), COVAR_POP(n, p), COUNT(DISTINCT n) FROM t WHERE b GROUP BY s",
    "SELECT COUNT(DISTINCT x), COUNT(DISTINCT n), COUNT(DISTINCT s), COUNT(DISTINCT w), COUNT(DISTINCT b) FROM t",
    "SELECT g, COUNT(DISTINCT s), COUNT(DISTINCT y) FILTER (WHERE x > 0) FROM t GROUP BY g",
    "SELECT n, COUNT(DISTINCT g) FROM t GROUP BY n",
    "SELECT MEDIAN(p), MEDIAN(x), MODE(g), MODE(n), MIN(n), MAX(w) FROM t",
    "SELECT g, MEDIAN(p), MODE(g), APPROX_TOP_K(n, 2) FROM t GROUP BY g",
    "SELECT s, MEDIAN(n) FILTER (WHERE b), COUNT(*), MAX(y) FROM t WHERE x >= 0 GROUP BY s",
    "SELECT VAR_POP(x * n), CORR(CASE WHEN b THEN x END, n + p) FROM t",
)  # fmt: skip


def released(sql: str, **how: Any) -> tuple[Release, TableSchema]:
    schema = SHAPE.schema()
    delta = {"delta": 1e-6} if "GROUP BY s" in sql or "GROUP BY n" in sql else {}
    return calibrated(schema, sql, U, **{**delta, **how}), schema


def grids_of(table: ExactTable) -> list[dict[tuple[Any, int], int]]:
    """Exact grids by group and point, in the form of the reference."""
    keys = [
        [cell if present else None for cell, present in zip(key.values.tolist(), key.where_valid(), strict=True)]
        for key in table.keys
    ]
    cells = list(zip(*keys, strict=True)) if keys else [()] * table.groups
    return [
        {
            (cells[group], point): count
            for group, point, count in zip(*(each.tolist() for each in (grid.groups, grid.points, grid.counts)),
                                           strict=True)
        }
        for grid in table.grids
    ]  # fmt: skip


def named(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Rows as the reference reads them: clipped to what is declared, NULL for NaN."""
    bounds = SHAPE.declared["bounds"]

    def held(name: str, cell: Any) -> Any:
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return None
        if name == "s":
            return str(cell)  # the text of a whole number is its digits
        if name in bounds:
            lower, upper = bounds[name]
            return min(max(cell, type(cell)(lower)), type(cell)(upper))
        return cell

    return [{name: held(name, cell) for name, cell in zip(SHAPE.dtypes, row, strict=True)} for row in rows]


def check_integers(sql: str, rows: list[tuple[Any, ...]], **how: Any) -> None:
    """The executor's integers and grids are those of the reference."""
    made, schema = released(sql, **how)
    exact = run_exactly(made, schema, SHAPE.frame(rows))
    plain = named(rows)
    assert reference.found(exact) == reference.execute(made.exact, plain), sql
    assert grids_of(exact) == reference.grids(made.exact, plain), sql


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("strategy", ["auto", "split"])
def test_integers_are_those_of_plain_python(sql: str, strategy: str):
    for count in (0, 1, 2, 120):
        check_integers(sql, rows_at_random(count), strategy=strategy)


@pytest.mark.parametrize("sql", QUERIES)
def test_blocks_change_nothing(sql: str):
    made, schema = released(sql)
    frame = SHAPE.frame(rows_at_random(50))
    whole = run_exactly(made, schema, frame)
    for block in (1, 7, 49, 50, 51):
        with mock.patch.object(engine, "BLOCK", block), mock.patch.object(groups, "BLOCK", block):
            found = run_exactly(made, schema, frame)
        assert reference.found(found) == reference.found(whole), sql
        assert grids_of(found) == grids_of(whole), sql


@pytest.mark.parametrize("sql", [sql for sql in QUERIES if "MEDIAN" in sql])
def test_grids_of_many_points_are_counted_the_same(sql: str):
    """By sorting, where a table of all points would be too large."""
    made, schema = released(sql)
    frame = SHAPE.frame(rows_at_random(80))
    dense = grids_of(run_exactly(made, schema, frame))
    with mock.patch.object(points, "_MOST_DENSE", 0):
        sparse = grids_of(run_exactly(made, schema, frame))
    assert sparse == dense


# Shares


def _shares(sql: str) -> tuple[Release, TableSchema, list[LatticeShare]]:
    made, schema = released(sql)
    parts = [part for part in made.exact.parts if isinstance(part, LatticeShare)]
    assert len(parts) == len(made.exact.parts)
    return made, schema, parts


@pytest.mark.parametrize(
    ("sql", "many"),
    [
        ("SELECT CORR(x, p) FROM t", 9), ("SELECT REGR_SLOPE(x, p) FROM t", 6), ("SELECT REGR_SLOPE(p, x) FROM t", 6),
        ("SELECT CORR(x, w) FROM t WHERE w IS NOT NULL", 9),
    ],
)  # fmt: skip
def test_every_row_is_divided_to_the_last_step(sql: str, many: int):
    """All shares of a row are at least 0 and add up to SHARE_STEPS, wherever its values lie."""
    made, schema, parts = _shares(sql)
    assert len(parts) == many
    rng = np.random.default_rng(SEED)
    ends = [-1.0, 3.0, math.nextafter(-1, 3), math.nextafter(3, -1), 1.0, 1 / 3, 0.1, INF, -INF]
    rows = [(x, x, p, 1, True, w, "a", "u")
            for x in (*ends, *rng.uniform(-1, 3, 40).tolist()) for p in (20, 21, 30, 99)
            for w in (0.0, 1e12, 7e11 / 3)]  # fmt: skip
    for row in rows[:: 2 if many == 9 else 3]:
        found = run_exactly(made, schema, SHAPE.frame([row])).parts[:, 0].tolist()
        assert min(found) >= 0
        assert sum(found) == SHARE_STEPS, f"{row}: {found}"
    together = run_exactly(made, schema, SHAPE.frame(rows)).parts[:, 0].tolist()
    assert sum(together) == SHARE_STEPS * len(rows)


def test_rows_with_a_null_are_in_no_share():
    made, schema, _ = _shares("SELECT CORR(y, n) FROM t")
    for row in ((0.0, NAN, 25, 1, True, 0.0, "a", "u"), (0.0, 1.0, 25, None, True, 0.0, "a", "u")):
        assert not run_exactly(made, schema, SHAPE.frame([row])).parts.any()


# Products


def test_products_of_integers_are_exact():
    made, schema = released("SELECT COVAR_POP(p, n) FROM t WHERE n IS NOT NULL", strategy="split")
    (part,) = [each for each in made.exact.parts if isinstance(each, LatticeProduct)]
    assert part.whole
    assert part.most == 10 * 9
    rows = [(0.0, 0.0, p, n, True, 0.0, "a", "u") for p in range(20, 31) for n in range(-4, 6)]
    place = made.exact.parts.index(part)
    for row in rows[::7]:
        found = run_exactly(made, schema, SHAPE.frame([row])).parts[place, 0]
        assert found == (2 * (row[2] - 20) - 10) * (2 * (row[3] + 4) - 9)


def test_products_of_reals_are_within_two_and_a_half_steps():
    """Half a step for each factor, twice as long from -1 to 1, and half a step for the product."""
    made, schema = released("SELECT COVAR_POP(x, w) FROM t WHERE w IS NOT NULL", strategy="split")
    (part,) = [each for each in made.exact.parts if isinstance(each, LatticeProduct)]
    place, rng = made.exact.parts.index(part), np.random.default_rng(SEED)
    for x, w in zip(rng.uniform(-1, 3, 30).tolist(), rng.uniform(-1e9, 1e12, 30).tolist(), strict=True):
        found = int(run_exactly(made, schema, SHAPE.frame([(x, x, 20, 1, True, w, "a", "u")])).parts[place, 0])
        u = (Fraction(x) + 1) / 2 - 1
        v = 2 * (Fraction(w) + 10**9) / (10**12 + 10**9) - 1
        assert abs(found - u * v * part.most) <= Fraction(5, 2) + Fraction(part.most, 2**50)


def test_sums_of_squares_pass_64_bits():
    """Python's integers take over, with the same sums."""
    made, schema = released("SELECT VAR_POP(x), CORR(x, p) FROM t", epsilon=1000)
    frame = SHAPE.frame([(-1.0, 0.0, 30, 1, True, 0.0, "a", "u")] * 64)
    exact = run_exactly(made, schema, frame)
    with mock.patch.object(accumulators, "_LARGEST_ACCUMULATED", 2**45):
        narrow = run_exactly(made, schema, frame)
    assert [int(each) for each in narrow.parts[:, 0]] == [int(each) for each in exact.parts[:, 0]]


# The answers

HUGE = 10**7


def check_answers_of_statistics() -> None:
    """At an enormous epsilon the answers are those of the clipped table, by NumPy and by `statistics`."""
    rng = np.random.default_rng(SEED)
    size = 90
    x, y = rng.uniform(0, 4, size), rng.uniform(-5, 5, size)
    x[::5], y[::7] = np.nan, np.nan
    k = rng.integers(0, 6, size)
    frame = pd.DataFrame({"x": x, "y": y, "k": k, "g": series(list("ab" * (size // 2)), "str")})
    facts: dict[str, Any] = {"bounds": {"x": (0, 3), "y": (-5, 4), "k": (0, 5)}, "keys": {"g": ["a", "b"]}}
    held = frame.assign(x=frame["x"].clip(0, 3), y=frame["y"].clip(-5, 4))
    for where, chosen in (
        ("", held),
        (" WHERE k > 1", held[held["k"] > 1]),
        (" WHERE g = 'a'", held[held["g"] == "a"]),
    ):
        both = chosen.dropna(subset=["x", "y"])
        u, v = both["x"].to_numpy(), both["y"].to_numpy()
        slope, cut = np.polyfit(u, v, 1)
        expected = {
            "VAR_POP(x)": chosen["x"].var(ddof=0), "VAR_SAMP(x)": chosen["x"].var(), "STDDEV(y)": chosen["y"].std(),
            "STDDEV_POP(k)": chosen["k"].std(ddof=0), "COVAR_POP(y, x)": np.cov(u, v, ddof=0)[0, 1],
            "COVAR_SAMP(x, y)": np.cov(u, v)[0, 1], "CORR(x, y)": np.corrcoef(u, v)[0, 1],
            "REGR_SLOPE(y, x)": slope, "REGR_INTERCEPT(y, x)": cut, "REGR_R2(y, x)": np.corrcoef(u, v)[0, 1] ** 2,
            "COUNT(DISTINCT k)": chosen["k"].nunique(), "COUNT(DISTINCT x)": chosen["x"].nunique(),
            "COUNT(DISTINCT k) FILTER (WHERE x > 1)": chosen["k"][chosen["x"] > 1].nunique(),
            "MIN(k)": None, "MAX(k)": None,
        }  # fmt: skip
        modes = statistics.multimode(chosen["k"].tolist())
        for asked, value in expected.items():
            if value is None:
                continue
            prepare._cache.clear()
            for strategy in ("auto", "split"):
                sql = f"SELECT {asked} FROM t{where}"
                found = dpsql.query(frame, sql, epsilon=HUGE, strategy=strategy, **facts).item()
                assert abs(found - value) < 1e-3 * max(1, abs(value)), f"{sql}: {found}, not {value}"
        assert dpsql.query(frame, f"SELECT MODE(k) FROM t{where}", epsilon=HUGE, **facts).item() in modes
        for q, asked in ((0.5, "MEDIAN(k)"), (0.2, "QUANTILE_CONT(k, 0.2)"), (0.9, "QUANTILE_DISC(k, 0.9)")):
            found = dpsql.query(frame, f"SELECT {asked} FROM t{where}", epsilon=HUGE, **facts).item()
            below, upto = (chosen["k"] < found).sum(), (chosen["k"] <= found).sum()
            assert below <= q * len(chosen) <= upto, f"{asked}{where}: {found}"
        for asked, ordered in (("MIN(k)", sorted(chosen["k"])), ("MAX(k)", sorted(chosen["k"], reverse=True))):
            found = dpsql.query(frame, f"SELECT {asked} FROM t{where}", epsilon=HUGE, **facts).item()
            assert found in ordered[:2], f"{asked}{where}: {found}"
    rows = list(dpsql.query(frame, "SELECT g, CORR(x, y), COUNT(DISTINCT k) FROM t GROUP BY g", epsilon=HUGE, **facts))
    for row, (name, chosen) in zip(rows, held.groupby("g"), strict=True):
        both = chosen.dropna(subset=["x", "y"])
        assert row[0] == name
        assert abs(row[1] - np.corrcoef(both["x"], both["y"])[0, 1]) < 1e-3
        assert row[2] == chosen["k"].nunique()


def test_answers_are_those_of_numpy():
    check_answers_of_statistics()


@pytest.mark.parametrize("relation", [U, B])
def test_statistics_of_too_few_rows_are_null_or_within_their_range(relation: str):
    for cells in ([], [1.0], [1.0, 1.0]):
        frame = pd.DataFrame({"x": pd.Series(cells, dtype="float64")})
        for asked in ("VAR_SAMP(x)", "STDDEV_POP(x)", "CORR(x, x * x)", "REGR_R2(x, -x)", "COVAR_SAMP(x, 2 - x)"):
            found = dpsql.query(frame, f"SELECT {asked} FROM t", epsilon=1, bounds={"x": (0, 2)}, neighbours=relation)
            value = found.item()
            assert value is None or (math.isfinite(value) and abs(value) <= 100), asked


def test_an_expression_beside_itself_is_one_column():
    """CORR(x, x) squares one lattice; it is no pair of shares."""
    made, _ = released("SELECT CORR(x, x) FROM t")
    assert not any(isinstance(part, LatticeShare) for part in made.exact.parts)
    (square,) = {part for part in made.exact.parts if isinstance(part, LatticeProduct)}
    assert square.first == square.second
    assert isinstance(square.first.value, Expr)
    assert not isinstance(square.first.value, Call)
    assert B != U
