"""Keys over one column: the groups are the combinations that its values lead to, whatever rows there are, and no row
that was in a group is left out."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.session import prepare
from dpsql.sql.bind import correlated_column_keys as keys_of_columns
from dpsql.sql.bind import private_select as private
from dpsql.testing import insecure_exact
from tests.executors.contract import difference
from tests.lies import Patch, assert_caught

KEY = bytes(range(32))
START, END = date(2020, 3, 5), date(2021, 2, 3)
FIRST, LAST = datetime(2020, 3, 5, 11, 30), datetime(2021, 2, 3, 17, 45, 59)
EXPRESSIONS = {
    "x": ["x", "x // 3", "x > 4", "COALESCE(x, -1)", "x * x % 3", "x IS NULL",
          "CASE WHEN x < 2 THEN 'few' ELSE 'many' END"],
    "d": ["YEAR(d)", "MONTH(d)", "DATE_TRUNC('month', d)", "d > DATE '2020-12-24'", "QUARTER(d)", "d IS NULL"],
    "w": ["YEAR(w)", "MONTH(w)", "DATE_TRUNC('quarter', w)", "STRFTIME(w, '%Y-%m')", "DAYOFWEEK(w)", "HOUR(w)",
          "w IS NULL", "CAST(w AS DATE) > DATE '2020-12-24'", "w >= TIMESTAMP '2020-07-01 12:00:00'", "ISOYEAR(w)",
          "EXTRACT(week FROM w)", "YEAR(w + INTERVAL 6 MONTH)", "MONTH(w - INTERVAL 5 HOUR)", "HOUR(w) < 12",
          "DATE_DIFF('month', DATE '2020-01-01', w)", "LEFT(CAST(w AS VARCHAR), 7)", "COALESCE(YEAR(w), 0)",
          "CASE WHEN MONTH(w) IN (12, 1, 2) THEN 'winter' ELSE 'other' END", "MONTHNAME(w)", "LAST_DAY(w)"],
    "s": ["s", "UPPER(s)", "LENGTH(s)", "s = 'a'", "COALESCE(s, 'none')", "s IS NULL"],
    "n": ["n", "n = 'a'", "n IS NULL", "COALESCE(n, 'none')"],
    "b": ["b", "NOT b", "b IS NULL"],
}  # fmt: skip
CONDITIONS = [
    "",
    "",
    " WHERE x > 2",
    " WHERE d < DATE '2020-06-01' AND x < 6",
    " WHERE s <> 'a'",
    " WHERE b OR x = 1",
    " WHERE w >= TIMESTAMP '2020-08-15 06:00:00'",
    " WHERE YEAR(w) = 2020",
]


def frame(rows: int = 400) -> pd.DataFrame:
    """With NULLs, values outside of bounds, and texts that are not listed."""
    rng = np.random.default_rng(3)
    days = pd.date_range("2019-12-30", "2021-04-02").to_series()
    texts = np.array(["a", "bb", "c", "zz", None], dtype=object)
    return pd.DataFrame(
        {
            "x": pd.array(rng.integers(-3, 12, rows), dtype="Int64").to_numpy(object),
            "d": days.sample(rows, replace=True, random_state=1).where(rng.random(rows) > 0.1).to_numpy(),
            "s": texts[rng.integers(0, 5, rows)],
            "n": texts[rng.integers(0, 5, rows)],
            "b": pd.array(rng.choice([True, False], rows), dtype="boolean"),
            "u": pd.to_datetime(rng.integers(0, 1_900_000_000, rows), unit="s"),
            "w": pd.Series(pd.to_datetime(rng.integers(1_577_664_000, 1_617_408_000, rows), unit="s")).where(
                rng.random(rows) > 0.1
            ),
        }
    ).assign(x=lambda held: pd.array(np.where(rng.random(rows) < 0.1, None, held["x"]), dtype="Int64"))


def session(held: pd.DataFrame, engine: str = "pandas") -> dpsql.Session:
    table = dpsql.Table(
        held,
        bounds={"x": (0, 7), "d": (START, END), "w": (FIRST, LAST)},
        keys={"s": ["a", "bb", "c"], "n": ["a", "bb", None]},
        types={"d": "date"},
    )
    return dpsql.Session({"t": table}, budget=dpsql.Budget(10**6), engine=engine)


def question(seed: int) -> str:
    draw = random.Random(seed)
    keys: list[str] = []
    for column in draw.sample(list(EXPRESSIONS), draw.choice([1, 1, 2])):
        keys += draw.sample(EXPRESSIONS[column], draw.choice([2, 2, 3]))
    draw.shuffle(keys)
    by = ", ".join(keys)
    return f"SELECT {by}, COUNT(*), SUM(x) FROM t{draw.choice(CONDITIONS)} GROUP BY {by}"


def parts_of(held: dpsql.Session, sql: str) -> dict[Any, Any]:
    return dict(insecure_exact(held, sql, KEY, epsilon=1, delta=1e-6).parts)


def check_nobody_is_lost(sqls: Iterator[str]) -> int:
    """Beside all combinations: the groups that are gone had no row, and the others have the same."""
    held, fewer = session(frame()), 0
    for sql in sqls:
        ours = parts_of(held, sql)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(private.PrivateSelect, "_together", lambda _self, keys, *_others: keys)
            prepare._cache.clear()
            every = parts_of(session(frame()), sql)
        prepare._cache.clear()
        gone = every.keys() - ours.keys()
        assert not any(cell for group in gone for cell in every[group]), (sql, gone)
        assert all(every.get(group, (0, 0)) == ours[group] for group in ours), sql  # of too many those with rows alone
        fewer += bool(gone)
    return fewer


def test_nobody_is_lost():
    assert check_nobody_is_lost(question(seed) for seed in range(40)) > 12


@pytest.mark.slow
def test_nobody_is_lost_in_many_questions():
    assert check_nobody_is_lost(question(seed) for seed in range(100, 1_100)) > 300


@pytest.mark.parametrize("seed", range(12))
def test_engines_have_equal_integers(seed: int):
    assert not difference(session(frame()), session(frame(), "duckdb"), question(seed))


GROUPS = {
    "SELECT YEAR(d) AS y, MONTH(d) AS m, COUNT(*) FROM t GROUP BY y, m":
        [*((2020, month) for month in range(3, 13)), (2021, 1), (2021, 2), (None, None)],
    "SELECT YEAR(w) AS y, MONTH(w) AS m, COUNT(*) FROM t GROUP BY y, m":
        [*((2020, month) for month in range(3, 13)), (2021, 1), (2021, 2), (None, None)],
    "SELECT YEAR(w) AS y, MONTH(w) AS m, COUNT(*) FROM t WHERE w < TIMESTAMP '2020-06-01 00:00:01' GROUP BY y, m":
        [(2020, 3), (2020, 4), (2020, 5), (2020, 6)],
    "SELECT YEAR(w) AS y, HOUR(w) AS h, COUNT(*) FROM t WHERE w < TIMESTAMP '2020-03-05 14:00:00' GROUP BY y, h":
        [(2020, 11), (2020, 12), (2020, 13)],
    "SELECT STRFTIME(w, '%G-%V') AS y, w >= '2020-12-31' AS late, COUNT(*) FROM t "
    "WHERE w >= '2020-12-28' AND w < '2021-01-11' GROUP BY y, late":
        [("2020-53", False), ("2020-53", True), ("2021-01", True)],
    "SELECT y, m, COUNT(*) FROM (SELECT YEAR(w) AS y, MONTH(w) AS m FROM t WHERE x > 1 UNION ALL "
    "SELECT YEAR(d), MONTH(d) FROM t) GROUP BY y, m":
        [*((2020, month) for month in range(3, 13)), (2021, 1), (2021, 2), (None, None)],
    "SELECT MONTH(u) AS m, QUARTER(u) AS q, COUNT(*) FROM t GROUP BY m, q":  # nothing is declared of u
        [*((month, (month + 2) // 3) for month in range(1, 13)), (None, None)],
    "SELECT YEAR(w) AS y, MONTH(w) AS m, COUNT(*) FROM t GROUP BY y, m HAVING COUNT(*) > -10000 AND m < 4":
        [(2020, 3), (2021, 1), (2021, 2)],
    "SELECT x // 3 AS t, x > 4 AS many, COUNT(*) FROM t WHERE x IS NOT NULL GROUP BY t, many":
        [(0, False), (1, False), (1, True), (2, True)],
    "SELECT s, CASE WHEN s IN ('a', 'c') THEN 'one' ELSE 'two' END AS w, COUNT(*) FROM t GROUP BY 1, 2":
        [("a", "one"), ("bb", "two"), ("c", "one")],
    "SELECT LENGTH(s) AS l, s = 'a' AS a, COUNT(*) FROM t WHERE s IS NOT NULL GROUP BY l, a":  # of others too
        [(1, False), (1, True), (2, False), (2, True)],
    "SELECT n, n = 'a' AS a, COUNT(*) FROM t GROUP BY n, a":
        [(n, a) for n in ("a", "bb", None) for a in (False, True, None)],
}  # fmt: skip


def _plain(cell: Any) -> Any:
    return None if pd.isna(cell) else cell


@pytest.mark.parametrize("sql", GROUPS)
def test_groups_are_what_the_column_leads_to(sql: str):
    """And the same whoever is there."""
    for held in (frame(), frame().iloc[:0], frame().iloc[:1]):
        found = [tuple(map(_plain, row[:2])) for row in session(held).query(sql, epsilon=1)]
        assert sorted(found, key=str) == sorted(GROUPS[sql], key=str)


def test_groups_inside_people_keep_the_combinations():
    """Months of the rows of each person, and a window a year back over them."""
    table = dpsql.Table(
        frame().assign(pid=range(400)),
        unit="pid",
        max_rows=1,
        bounds={"w": ("2020-03-05 00:00:00", "2022-02-03 00:00:00")},
    )
    inside = "(SELECT pid, YEAR(w) AS y, MONTH(w) AS m, COUNT(*) AS n FROM t WHERE w IS NOT NULL GROUP BY pid, y, m)"
    sql = (
        f"SELECT y, m, SUM(n) AS n, LAG(SUM(n), 12) OVER (ORDER BY y, m) AS before FROM {inside} AS q "
        "WHERE y IS NOT NULL AND m IS NOT NULL GROUP BY y, m ORDER BY y, m"
    )
    rows = [*dpsql.Session({"t": table}, budget=dpsql.Budget(10)).query(sql.replace("SUM(n)", "COUNT(*)"), epsilon=1)]
    months = [(2020 + month // 12, month % 12 + 1) for month in range(2, 26)]
    assert [tuple(row[:2]) for row in rows] == months
    assert [row[3] for row in rows[12:]] == [row[2] for row in rows[:-12]]


def test_combinations_of_a_long_range_are_those_of_its_minutes():
    """Of periods each once: twelve years of minutes are too many to go through."""
    held = session(frame())
    sql = (
        "SELECT YEAR(z) AS y, QUARTER(z) AS q, MINUTE(z) AS m, COUNT(*) FROM t "
        "WHERE z BETWEEN '2010-05-01 00:00:00' AND '2022-02-01 00:29:59' GROUP BY y, q, m"
    )
    found = {tuple(row[:3]) for row in held.query(sql.replace("z", "u"), epsilon=1)}
    quarters = [(year, quarter) for year in range(2010, 2023) for quarter in range(1, 5)][1:49]
    assert found == {(*quarter, minute) for quarter in quarters for minute in range(60)}


def test_too_many_combinations_of_all_values_are_few_together():
    sql = "SELECT d, YEAR(d), MONTH(d), DAY(d), COUNT(*) FROM t WHERE d < '2020-06-01' GROUP BY 1, 2, 3, 4"
    assert len([*session(frame()).query(sql, epsilon=1)]) == (date(2020, 5, 31) - START).days + 1


def _listed_for_all(patch: Patch) -> None:
    """A list of keys is taken for all that a column holds."""
    patch.setattr(keys_of_columns, "_values_of", lambda column, _exprs, _keys, domains: domains.of(column))


def _every_seventh_instant(patch: Patch) -> None:
    """Some pieces of time are left out."""
    honest = keys_of_columns.sample_instants

    def fewer(*args: Any) -> Any:
        found = honest(*args)
        return found if found is None else found[::7]

    patch.setattr(keys_of_columns, "sample_instants", fewer)


def test_instants_that_are_left_out_are_caught():
    assert_caught(
        _every_seventh_instant, lambda: check_nobody_is_lost(question(seed) for seed in range(20)), honest=False
    )


def test_a_list_that_is_not_all_is_caught():
    assert_caught(_listed_for_all, lambda: check_nobody_is_lost(question(seed) for seed in range(20)), honest=False)
