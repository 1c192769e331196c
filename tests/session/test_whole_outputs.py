"""Columns of SQL over answers are whole numbers where their text says so, and add up as they are shown."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from pandas.api.types import is_float_dtype, is_integer_dtype

import dpsql
from dpsql.plan.expressions import Vector
from dpsql.release.output.whole_numbers import around_shown

ROWS = 2_000


def people(rows: int = ROWS) -> dpsql.Table:
    frame = pd.DataFrame({"g": ["a", "b"] * (rows // 2), "h": ["u", "v", "w", "w"] * (rows // 4)})
    frame["x"] = pd.array([1, 2, None, 4] * (rows // 4), dtype="Int64")
    frame["w"] = np.arange(rows) / max(rows, 1)
    keys = {"g": ["a", "b"], "h": ["u", "v", "w"]}
    return dpsql.Table(frame, keys=keys, bounds={"x": (0, 5), "w": (0, 1)})


def ask(sql: str, table: dpsql.Table, epsilon: float = 1.5) -> Any:
    return dpsql.query({"t": table}, sql, epsilon=epsilon)


BY_G = "(SELECT g, COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s FROM t GROUP BY g)"
WHOLE = {
    "windows": (
        ("SELECT g, COUNT(*) AS n, SUM(x) AS s, SUM(COUNT(*)) OVER () AS y, SUM(SUM(x)) OVER () AS z, "
        "COUNT(*) - SUM(COUNT(*)) OVER () AS r FROM t GROUP BY g"),
        {"y": lambda df: df.n.sum(), "z": lambda df: df.s.sum(), "r": lambda df: df.n - df.n.sum()},
    ),
    "rows before": (
        ("SELECT h, COUNT(*) AS n, LAG(COUNT(*), 1, 0) OVER (ORDER BY h) AS y, "
        "COUNT(*) - FIRST_VALUE(COUNT(*)) OVER (ORDER BY h) AS z FROM t GROUP BY h"),
        {"y": lambda df: df.n.shift(1, fill_value=0), "z": lambda df: df.n - df.n.iloc[0]},
    ),
    "windows over differences": (
        ("SELECT g, COUNT(*) - COUNT(x) AS m, MAX(COUNT(*) - COUNT(x)) OVER () AS y, "
        "SUM(2 * COUNT(*) - 2 * COUNT(x)) OVER () AS z FROM t GROUP BY g"),
        {"y": lambda df: df.m.max(), "z": lambda df: 2 * df.m.sum()},
    ),
    "levels": (
        "SELECT g, h, COUNT(*) AS n, SUM(COUNT(*)) OVER (PARTITION BY g) AS y FROM t GROUP BY ROLLUP (g, h)",
        {},
    ),
    "scalar sub-queries": ("SELECT COUNT(*) - (SELECT COUNT(x) FROM t) AS y FROM t", {}),
    "scalar sub-queries beside groups": (
        ("SELECT g, COUNT(*) - (SELECT COUNT(x) FROM t) AS y, COALESCE(COUNT(x), 0) + (SELECT SUM(x) FROM t) AS z "
        "FROM t GROUP BY g"),
        {},
    ),
    "SELECTs over an answer": (
        f"SELECT SUM(n) AS n, SUM(c) AS c, SUM(n) * 2 AS y, SUM(n) - SUM(c) AS z, -MAX(n) - 1 AS v FROM {BY_G} AS q",
        {"y": lambda df: 2 * df.n, "z": lambda df: df.n - df.c},
    ),
    "CTEs": (
        (f"WITH q AS {BY_G} SELECT g, n, c, s, n - c AS y, GREATEST(n - c, 0) AS z, SUM(n - c) OVER () AS r, "
        "CASE WHEN n > c THEN n ELSE c END AS v FROM q"),
        {"y": lambda df: df.n - df.c, "z": lambda df: (df.n - df.c).clip(0), "r": lambda df: (df.n - df.c).sum(),
         "v": lambda df: np.maximum(df.n, df.c)},
    ),
    "UNION ALL": (
        "SELECT g, COUNT(*) - COUNT(x) AS y FROM t GROUP BY g UNION ALL SELECT 'all', 2 * COUNT(*) FROM t",
        {},
    ),
    "joined answers": (f"SELECT a.n - b.c AS y, a.n, b.c FROM {BY_G} AS a JOIN {BY_G} AS b USING (g)",
                       {"y": lambda df: df.n - df.c}),
    "QUALIFY": ("SELECT g, 3 * COUNT(*) AS y FROM t GROUP BY g QUALIFY SUM(COUNT(*)) OVER () > 10", {}),
    "rounded": (
        ("SELECT g, FLOOR(COUNT(*) / 3) AS y, CEIL(AVG(x)) AS z, ROUND(SUM(x) / 7) AS r, ROUND(AVG(w), 0) AS v "
        "FROM t GROUP BY g"),
        {},
    ),
    "rounded over windows": (
        ("SELECT g, ROUND(100 * COUNT(*) / SUM(COUNT(*)) OVER ()) AS y, FLOOR(AVG(COUNT(*)) OVER ()) AS z, "
        "TRUNC(SUM(w) / 2) + (SELECT COUNT(*) FROM t) AS r FROM t GROUP BY g"),
        {},
    ),
    "rounded over an answer": (f"SELECT FLOOR(AVG(n)) AS y, ROUND(SUM(s) / SUM(c)) AS z FROM {BY_G} AS q", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_columns_are_whole_and_computed_of_what_is_shown(name: str) -> None:
    sql, meanings = WHOLE[name]
    result = ask(sql, people())
    df = result.df
    numbers = [column for column in df if column not in ("g", "h")]
    assert all(is_integer_dtype(df[column]) for column in numbers), df.dtypes
    for column, meaning in meanings.items():
        assert (df[column] == meaning(df)).all(), column
    ends = result.intervals()
    for column in numbers:
        if f"{column}_low" in ends:
            low, high = ends[f"{column}_low"].to_numpy(float), ends[f"{column}_high"].to_numpy(float)
            assert all(np.isinf(low) | (low == np.rint(low)))
            assert all(np.isinf(high) | (high == np.rint(high)))
            assert ((low <= df[column]) & (df[column] <= high)).all()


@pytest.mark.parametrize("name", WHOLE)
def test_types_follow_from_the_text(name: str) -> None:
    sql, _ = WHOLE[name]
    few, many = ask(sql, people(4), 0.2).df, ask(sql, people()).df
    kinds = [[str(kind).casefold() for kind in df.dtypes] for df in (few, many)]
    assert kinds[0] == kinds[1]


def test_windows_over_levels_are_sums_of_the_rows_shown() -> None:
    df = ask(WHOLE["levels"][0], people()).df
    for group in ("a", "b"):
        rows = df[df.g == group]
        assert rows.y.nunique() == 1
        assert rows.y.iloc[0] == rows.n.sum() == 2 * rows[rows.h.isna()].n.iloc[0]


def test_averages_and_quotients_are_real() -> None:
    sql = (
        "SELECT g, AVG(COUNT(*)) OVER () AS a, COUNT(*) / SUM(COUNT(*)) OVER () AS b, 1.5 * COUNT(*) AS c, "
        "SUM(w) - (SELECT COUNT(*) FROM t) AS d, 1.0 * COUNT(*) AS e, MEDIAN(COUNT(*)) OVER () AS f, "
        "ROUND(AVG(x), 1) AS r FROM t GROUP BY g"
    )
    df = ask(sql, people()).df
    assert all(is_float_dtype(df[column]) for column in "abcdefr")
    assert (df.e == np.rint(df.e)).all()  # a real number by the text, and still a count


def test_what_is_no_number_is_no_whole_number() -> None:
    sql = "SELECT FLOOR(EXP(COUNT(*) * 1000)) AS a, CEIL(EXP(COUNT(*) * 1000) * (SELECT COUNT(*) FROM t)) AS b FROM t"
    df = ask(sql, people()).df
    assert df.a.isna().all()
    assert df.b.isna().all()


def test_sums_beyond_64_bits_in_expressions() -> None:
    large = 2**61
    table = dpsql.Table(
        pd.DataFrame({"g": ["a", "b"] * 500, "x": [large] * 1_000}), keys={"g": ["a", "b"]}, bounds={"x": (0, large)}
    )
    sql = "SELECT g, SUM(x) AS s, SUM(SUM(x)) OVER () AS y, SUM(x) // SUM(COUNT(*)) OVER () AS z FROM t GROUP BY g"
    with pytest.raises(dpsql.errors.PostprocessFailed):  # a column of its own is of 64 bits
        ask(sql, table, 1_000)
    df = ask(sql.replace("SUM(x) AS s, ", ""), table, 1_000).df
    assert df.y.iloc[0] == pytest.approx(1_000 * large, rel=1e-2)
    assert df.z.iloc[0] == pytest.approx(large / 2, rel=1e-2)


def test_reports_of_levels_are_whole() -> None:
    df = ask("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) g, COUNT(*, report_format => 'JSON') AS r FROM t "
             "GROUP BY ROLLUP (g)", people()).df  # fmt: skip
    values = [json.loads(cell)["result"]["value"] for cell in df.r]
    assert all(isinstance(each, int) for each in values)
    assert values[0] + values[1] == values[2]


@pytest.mark.parametrize("seed", range(3))
def test_moved_ends_hold_every_whole_number_that_the_old_ones_hold(seed: int) -> None:
    """The proof in `around_shown`, tried: the interval of a whole number keeps its level when that is rounded."""
    drawn = np.random.default_rng(seed)
    value = drawn.normal(0, 50, 20_000).round(drawn.integers(0, 3))
    below, above = drawn.exponential(4, 20_000).round(1), drawn.exponential(4, 20_000).round(1)
    shown = np.floor(value + 0.5 + drawn.uniform(-0.9, 0.9, len(value)) * (drawn.random(len(value)) < 0.3))  # levels
    low, high = around_shown((value - below, value + above), Vector(shown))
    assert (low == np.rint(low)).all()
    assert (high == np.rint(high)).all()
    assert ((low <= shown) & (shown <= high)).all()
    for step in range(-30, 31):
        truth = np.rint(value) + step
        held = (value - below <= truth) & (truth <= value + above)
        assert (~held | ((low <= truth) & (truth <= high))).all()


@pytest.mark.parametrize("sql", [
    "SELECT g, SUM(COUNT(*) - COUNT(x)) OVER () AS y FROM t GROUP BY g",
    "SELECT COUNT(*) - (SELECT COUNT(x) FROM t) AS y FROM t",
    "WITH q AS (SELECT h, COUNT(*) AS n FROM t GROUP BY h) SELECT SUM(n) AS y FROM q",
])  # fmt: skip
def test_intervals_of_whole_numbers_cover(sql: str) -> None:
    session = dpsql.Session({"t": people()}, budget=dpsql.Budget(10**9))
    truth = session.query(sql, epsilon=10**6).df.y.to_numpy()
    held = []
    for _ in range(60):
        ends = session.query(sql, epsilon=0.4, fresh=True).intervals()
        held += list((ends.y_low.to_numpy(float) <= truth) & (truth <= ends.y_high.to_numpy(float)))
    assert np.mean(held) > 0.88, "95 % are expected, of 60 to 120"


@pytest.mark.parametrize(
    "constant", ["UPPER(NULL)", "NULL", "CASE WHEN 1 > 2 THEN 'a' END", "SQRT(NULL)", "2.0", "'a'"]
)
def test_a_constant_beside_a_count_is_shown_as_it_is(constant: str):
    frame = dpsql.query(pd.DataFrame({"a": [1]}), f"SELECT COUNT(*) AS n, {constant} AS c FROM t", epsilon=1).df
    ((shown,),) = duckdb.sql(f"SELECT {constant} AS c").fetchall()
    assert frame.c[0] == shown or (shown is None and frame.c.isna()[0])
