"""Bounds that the private search did not find: NULL and one line, never a number inside made-up bounds.

The decision reads released values and public facts only: the same noisy values give the same decision over any rows.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.cost import Cost
from dpsql.plan.expressions import Column, Fact
from dpsql.release.bounds.auto_bounds import ChosenBounds, Search
from dpsql.release.found_bounds import Rows, _is_found, judged
from dpsql.schema.columns import Type
from dpsql.schema.intervals import EVERYTHING, Interval
from dpsql.session.cache.released_text import from_bytes, to_bytes

LINE = "NULL, since there are too few rows to choose bounds of"
AVERAGE = "SELECT AVG(x) FROM t"


def rows_of(kind: str, rows: int, seed: int = 0) -> pd.DataFrame:
    drawn = np.random.default_rng(seed)
    made: dict[str, Any] = {
        "ages": lambda: drawn.integers(18, 91, rows),
        "reals": lambda: drawn.integers(18, 91, rows) * 1.0,
        "incomes": lambda: drawn.lognormal(10, 1, rows),
        "signed": lambda: drawn.normal(20, 100, rows),
        "flags": lambda: drawn.integers(0, 2, rows),
        "rates": lambda: drawn.random(rows) / 1e6,
        "years": lambda: drawn.integers(1990, 2021, rows),
    }
    return pd.DataFrame({"x": made[kind](), "k": np.where(drawn.random(rows) < 0.5, "a", "b")})


@pytest.mark.parametrize("kind", ["ages", "reals", "incomes", "signed", "years"])
@pytest.mark.parametrize(("rows", "epsilon"), [(20, 1), (100, 0.1), (0, 1), (1, 0.1)])
def test_too_few_rows_give_null_and_say_why(kind: str, rows: int, epsilon: float) -> None:
    numbers = 0
    for seed in range(8):
        result = dpsql.query(rows_of(kind, rows, seed), AVERAGE, epsilon=epsilon)
        (line,) = [each for each in result.notes if LINE in each or "chosen privately:" in each]
        if result.df["x" if "x" in result.df else "AVG(x)"].isna().all():
            assert line.startswith(f"AVG(x): {LINE} x")
            assert 'Declare bounds={"x": (lower, upper)}, or use more rows or a larger epsilon.' in line
            low, high = result.intervals().iloc[0]
            assert (low, high) == (-np.inf, np.inf)
        else:
            numbers += 1
    assert numbers <= 1  # a search without rows draws others than the least bounds once in 30 times; most are noticed


@pytest.mark.parametrize(
    ("kind", "rows", "epsilon"),
    [("ages", 300, 1), ("reals", 400, 1), ("incomes", 1_000, 1), ("signed", 500, 1), ("flags", 600, 1),
     ("rates", 800, 1), ("years", 1_000, 1), ("ages", 5_000, 0.1)],
)  # fmt: skip
def test_enough_rows_give_numbers(kind: str, rows: int, epsilon: float) -> None:
    frame = rows_of(kind, rows)
    result = dpsql.query(frame, AVERAGE, epsilon=epsilon)
    assert LINE not in str(result)
    if kind != "rates":  # bounds of so small values are often much too wide, and the interval says so
        assert result.item() == pytest.approx(frame["x"].mean(), rel=0.9)


@pytest.mark.parametrize("how", [{"epsilon": 1}, {"rho": 0.1}], ids=str)
def test_medians_have_a_count_that_decides(how: dict[str, Any]) -> None:
    median = "SELECT MEDIAN(x) AS m FROM t"
    shown = 0
    for seed in range(12):
        result = dpsql.query(rows_of("ages", 5, seed), median, **how)
        (cell,) = result._text_cells().rows[0]
        shown += cell not in ("NULL", "unknown")
    assert shown <= 1
    result = dpsql.query(rows_of("ages", 3_000), median, **how)
    assert result.item() == pytest.approx(54, abs=8)
    assert [str(each) for each in result._release.query.plan.aggregations][1].startswith("COUNT(x")
    declared = dpsql.query(rows_of("ages", 3_000), median, bounds={"x": (0, 100)}, **how)
    assert len(declared._release.query.plan.aggregations) == 1
    both = dpsql.query(rows_of("ages", 3_000), "SELECT MEDIAN(x) AS m, COUNT(*) AS n FROM t", **how)
    assert len(both._release.query.plan.aggregations) == 2


def test_only_what_is_made_of_the_column_is_null() -> None:
    sql = "SELECT k, COUNT(*) AS n, AVG(x) AS a, SUM(x) AS s, MEDIAN(x) AS m, SUM(x) + COUNT(*) AS c FROM t GROUP BY k"
    result = dpsql.query(rows_of("ages", 30), sql, epsilon=1, keys={"k": ["a", "b"]})
    assert result.df[["a", "s", "m", "c"]].isna().all().all()
    assert result.df["n"].notna().all()
    (line,) = [each for each in result.notes if LINE in each]
    assert line.startswith("AVG(x), SUM(x), MEDIAN(x): NULL")
    assert "of the right one" not in str(result)  # MEDIAN has no rank where it is NULL
    over = dpsql.query(rows_of("ages", 30), f"SELECT MAX(a) AS top FROM ({sql})", epsilon=1, keys={"k": ["a", "b"]})
    assert over.item() is None
    having = "SELECT k, COUNT(*) FROM t GROUP BY k HAVING AVG(x) > -5"
    assert len(dpsql.query(rows_of("ages", 30), having, epsilon=1, keys={"k": ["a", "b"]})) == 0


def test_declared_bounds_are_never_null() -> None:
    for bounds in ((0, 100), ("auto", 0, 100)):
        found = dpsql.query(rows_of("ages", 60), AVERAGE, epsilon=10, bounds={"x": bounds})
        assert LINE not in str(found)


def test_two_steps_over_one_release_keep_their_own_outputs() -> None:
    text = "WITH a AS (SELECT AVG(x) AS m FROM t), b AS (SELECT AVG(x) * 2 AS k FROM t) SELECT m, k FROM a, b"
    ((first, second),) = dpsql.query(rows_of("ages", 3_000), text, epsilon=1)
    assert second == pytest.approx(2 * first)


# What decides


def test_the_decision_follows_from_what_was_released() -> None:
    """Released values that went through the bytes of a ledger decide alike, and no table is at hand then."""
    session = dpsql.Session({"t": rows_of("ages", 0)}, budget=dpsql.Budget(9))
    release = session.explain(AVERAGE, epsilon=1)._release
    for rows in (20, 400):
        released = dpsql.query(rows_of("ages", rows), AVERAGE, epsilon=1)._released
        again = from_bytes(to_bytes(released))
        assert judged(release, again).meaningless == judged(release, released).meaningless
        assert judged(release, replace(again, values=np.zeros_like(again.values))).meaningless == {0}


def bounded(low: float, high: float, **more: Any) -> ChosenBounds:
    """Bounds of a column of reals, drawn at epsilon 1."""
    column = Column("x", Type.REAL, Fact(EVERYTHING))
    cost = Cost.of(Fraction(3, 10))
    how: dict[str, Any] = {"bounded": False, "mechanism": "exponential", "worth": Fraction(3, 4), "cost": cost}
    search = Search.of(column, Fraction(3, 10), 1, **how)
    return replace(ChosenBounds.of(search, Interval(low, high), Interval(low, high)), **more)


DECIDED = [
    ((0.0, 2.0**-12), Rows(15, 25, 0), False),  # the least bounds, few rows
    ((0.0, 2.0**-12), Rows(900, 950, 100), True),  # the same, of very small values
    ((0.0, 64.0), Rows(150, 200, 40), True),
    ((0.0, 64.0), Rows(150, 200, -3), False),  # all rows are beyond them on one side
    ((0.0, 64.0), Rows(5, 20, 4), False),  # so few rows do not make up for their penalty
    ((0.0, 64.0), Rows(), True),  # a draw beside which nothing is counted
    ((1992.0, 2024.0), Rows(150, 200, 80), False),  # they may clip half of the rows on each side
    ((1992.0, 2024.0), Rows(1_000, 1_050, 500), True),
    ((-(2.0**62), 2.0**62), Rows(), True),
]


@pytest.mark.parametrize(("ends", "rows", "found"), DECIDED)
def test_what_noisy_counts_decide(ends: tuple[float, float], rows: Rows, found: bool) -> None:
    assert _is_found(bounded(*ends), rows) == found


def test_a_search_without_rows_draws_the_least_bounds() -> None:
    """The law of a search over no rows: 95 of 100 draws are lowest, all but a few in a thousand of the others free."""
    for kind, whole in ((Type.INTEGER, True), (Type.REAL, False)):
        column = Column("x", kind, Fact(EVERYTHING, whole=whole))
        cost = Cost.of(Fraction(3, 10))
        how: dict[str, Any] = {"bounded": False, "mechanism": "exponential", "worth": Fraction(3, 4), "cost": cost}
        search = Search.of(column, Fraction(3, 10), 1, **how)
        named, penalties = search.intervals.named[0], search.intervals.penalties(0.75)[0]
        weights = np.exp(-penalties)
        lowest = np.array([search.is_lowest(each) for each in named])
        assert weights[~lowest].sum() / weights.sum() < 0.01
        assert search.intervals.penalty(named[3], 0.75) == penalties[3]
        assert search.rows_needed(Interval(*((1992, 2024) if whole else (1992.0, 2024.0)))) > 50
