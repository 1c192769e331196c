"""Rows that are left out of a unit are the same ones on DuckDB as on pandas, whatever tells units apart."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.executors.duckdb import dialect
from dpsql.executors.pandas.hashing import _limbs_of_reals
from dpsql.executors.sql import limits
from dpsql.executors.sql.limit_excess import Limits
from dpsql.executors.sql.rows import Names
from dpsql.testing import insecure_exact
from tests.executors.contract import TERMS, difference, differences, session, several_tables_queries
from tests.sql import join_queries

LIMITS: list[dict[str, int]] = [
    {"max_rows": 1},
    {"max_rows": 3, "max_groups": 2},
    {"max_rows": 4, "max_groups": 1, "max_rows_per_group": 2},
]
SAMPLE = 40


@cache
def limited(place: int, engine: str) -> dpsql.Session:
    return session(tables(LIMITS[place]), engine)


def tables(said: dict[str, int]) -> dict[str, dpsql.Table]:
    """The tables of people with these limits on all that have a unit and many rows of one."""
    made = {}
    for name, table in join_queries.tables().items():
        words = join_queries.FACTS[name] | said
        kinds = join_queries.COLUMNS[name].items()
        types = {
            each: join_queries._TYPES[kind] for each, kind in kinds if kind == "DATE" or each in join_queries._DECLARED
        }
        many = "max_rows" in join_queries.FACTS[name]
        made[name] = dpsql.Table(table.frame, **words, types=types) if many else table
    return made


@pytest.mark.thinned(4)
@pytest.mark.parametrize("place", range(len(LIMITS)))
def test_joins_with_limits(place: int):
    queries = random.Random(place).sample(several_tables_queries(), SAMPLE)
    assert differences(limited(place, "duckdb"), limited(place, "pandas"), queries) == []


UNITS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "integers": ([1, 2, 3, -4, 2**40], {}),
    "with NULL": ([1.0, 2.0, 3.0, None], {}),
    "unsigned": ([2**63 + 1, 2**64 - 1, 5, 0], {}),
    "reals": ([0.5, 1e300, -0.0, 2.0], {}),
    "texts": (["a", "b", "", "ä", None], {}),
    "decimals": ([Decimal("0.1"), Decimal("2.50"), Decimal(7), None], {"types": {"who": "decimal"}}),
    "truths": ([True, False], {}),
    "times": ([datetime(2020, 1, 1, 12), datetime(1969, 1, 1), None], {}),
    "zoned": (list(pd.to_datetime(["2020-01-01 12:00", "2020-01-01 13:00"], utc=True)), {}),
}
QUERIES = [
    "SELECT COUNT(*), SUM(x), AVG(r) FROM t",
    "SELECT g, COUNT(*), SUM(x) FROM t GROUP BY g",
    "SELECT u, COUNT(*), COUNT(r) FROM t GROUP BY u",
    "SELECT r, COUNT(*) FROM t GROUP BY r",
    "SELECT b, d, COUNT(*), COUNT_IF(x > 3) FROM t GROUP BY b, d",
    "SELECT g, COUNT(DISTINCT u), COUNT(DISTINCT who) FROM t GROUP BY g",
    "SELECT VAR_POP(r), CORR(r, x) FROM t",
    "SELECT MEDIAN(x) FROM t",
    "SELECT MIN(r), MODE(g) FROM t",
    "SELECT SUM(x) FILTER (WHERE g = 'a'), SUM(x) FILTER (WHERE g = 'b'), COUNT(*) FILTER (WHERE u IS NULL) FROM t",
    "SELECT WITH DIFFERENTIAL_PRIVACY g, COUNT(*), SUM(x, contribution_bounds_per_group => (0, 4)) FROM t GROUP BY g",
    "SELECT WITH DIFFERENTIAL_PRIVACY AVG(r), COUNT(u) FROM t",
]


def rows_of(values: list[Any], rows: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    picked = rng.integers(0, len(values), rows)
    return pd.DataFrame(
        {
            "who": pd.Series([values[k] for k in picked]),
            "g": pd.Series(rng.choice(["a", "b", "c"], rows), dtype="str"),
            "u": pd.Series([[None, "x", "y", "a longer text"][k] for k in rng.integers(0, 4, rows)], dtype="str"),
            "x": pd.array([None if k > 8 else int(k) for k in rng.integers(0, 10, rows)], dtype="Int64"),
            "r": np.where(rng.random(rows) < 0.1, np.nan, rng.integers(-8, 9, rows) / 4),
            "b": rng.random(rows) < 0.5,
            "d": pd.Series(pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 9, rows), "D")),
        }
    )


FACTS: dict[str, Any] = {
    "unit": "who",
    "max_rows": 5,
    "max_groups": 2,
    "max_rows_per_group": 3,
    "bounds": {"x": (0, 6), "r": (-1, 1)},
    "keys": {"g": ["a", "b"]},
}


def of_units(kind: str, engine: str, **more: Any) -> dpsql.Session:
    values, said = UNITS[kind]
    return session({"t": dpsql.Table(rows_of(values), **{**FACTS, **said, **more})}, engine)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("kind", UNITS)
def test_whatever_tells_units_apart(kind: str):
    one, other = of_units(kind, "duckdb"), of_units(kind, "pandas")
    assert differences(one, other, QUERIES) == []
    for key in (bytes(32), b"\xff" * 32, b"x" * 32):
        assert difference(one, other, QUERIES[1], key) == ""


def test_rows_are_left_out():
    sql = "SELECT COUNT(*) FROM t"
    few, many = (of_units("integers", "duckdb", max_rows=most) for most in (5, 200))
    few, many = (insecure_exact(each, sql, bytes(32), **TERMS).parts[()][0] for each in (few, many))
    assert (few, many) == (15, 15) or few < many <= 240


def test_units_in_several_tables_stored_otherwise():
    """Equal numbers are one unit: as integers, doubles and texts of them."""
    rng = np.random.default_rng(4)
    keys = np.arange(12)
    people = pd.DataFrame({"id": keys, "city": rng.choice(["a", "b"], 12)})
    who = np.where(rng.random(90) < 0.1, np.nan, rng.integers(0, 14, 90))
    visits = pd.DataFrame({"who": who, "x": rng.integers(0, 9, 90)})
    tables = {
        "people": dpsql.Table(people, unit="id", unique=["id"], keys={"city": ["a", "b"]}),
        "visits": dpsql.Table(visits, unit="who -> people.id", max_rows=3, max_groups=1, bounds={"x": (0, 9)}),
    }
    queries = [
        "SELECT COUNT(*), SUM(x) FROM visits",
        "SELECT city, COUNT(*), SUM(x) FROM visits JOIN people ON who = id GROUP BY city",
        "SELECT AVG(n) FROM (SELECT id, COUNT(*) AS n FROM people JOIN visits ON who = id GROUP BY id) q WHERE n < 9",
        "SELECT COUNT(*) FROM people WHERE id IN (SELECT who FROM visits WHERE x > 4)",
        "SELECT COUNT(*) FROM (SELECT id AS k FROM people UNION ALL SELECT who FROM visits) AS u",
    ]
    assert differences(session(tables, "duckdb"), session(tables, "pandas"), queries) == []


def test_a_key_that_is_not_unique_leads_to_the_least_unit():
    orders = pd.DataFrame({"o": [1, 1, 2, 2, 3], "who": [5, 4, 9, 10, 7]})
    items = pd.DataFrame({"o": [1, 1, 1, 2, 2, 3, 4], "x": [1, 2, 3, 4, 5, 6, 7]})
    tables = {
        "orders": dpsql.Table(orders, unit="who", unique=["o"], max_rows=2),
        "items": dpsql.Table(items, unit="o -> orders.o", max_rows=2, bounds={"x": (0, 9)}),
    }
    queries = ["SELECT COUNT(*), SUM(x) FROM items", "SELECT SUM(x) FROM items JOIN orders ON items.o = orders.o"]
    assert differences(session(tables, "duckdb"), session(tables, "pandas"), queries) == []


SOME_ABOVE: list[dict[str, int]] = [
    {"max_rows": 4, "max_groups": 4},
    {"max_rows": 6, "max_groups": 1},
    {"max_rows": 6, "max_groups": 6, "max_rows_per_group": 2},
    {"max_rows": 5, "max_groups": 2, "max_rows_per_group": 3},
]


def some_above(place: int, engine: str) -> dpsql.Session:
    """Units of every number of rows and groups around the limits: below, at and above each."""
    frame = rows_of([*range(70)], 300).assign(g=lambda rows: np.where(rows.x.fillna(0) > 3, rows.g, "a"))
    return session({"t": dpsql.Table(frame, **{**FACTS, **SOME_ABOVE[place]})}, engine)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("place", range(len(SOME_ABOVE)))
def test_units_below_their_limits_keep_all_rows(place: int):
    assert differences(some_above(place, "duckdb"), some_above(place, "pandas"), QUERIES) == []


def test_only_units_above_a_limit_are_sorted():
    """By hand: of (unit, group) 1: a a b, 2: a b c, 3: a, those with more than the limits."""
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'a'), (1, 'a'), (1, 'b'), (2, 'a'), (2, 'b')) AS t(u, k)"
    )
    connection.execute("INSERT INTO t VALUES (2, 'c'), (3, 'a')")
    for of, units in (
        (Limits(None, None, None, 2), {1, 2}),
        (Limits(None, None, None, 3), set()),
        (Limits(2, None, None, None), {2}),
        (Limits(None, 2, None, 9), {2}),
        (Limits(3, 1, None, 9), {1, 2}),
        (Limits(None, None, 1, 9), {1}),
        (Limits(3, None, 2, 3), set()),
    ):
        found = connection.execute(of.above("t", "u", ["k"], Names())).fetchall()
        assert {unit for (unit,) in found} == units, of


# Rules that would be missed: each is broken, and the integers are no longer the same.


def hash_other_limbs(patch: pytest.MonkeyPatch) -> None:
    honest = limits.limb_texts
    patch.setattr(limits, "limb_texts", lambda *given: [f"({each} + 1)" for each in honest(*given)])


def keep_the_largest_hashes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(limits._Limiter, "_order", lambda _self, first, _names: f"{first} DESC")


def keep_one_row_more(patch: pytest.MonkeyPatch) -> None:
    honest = limits._Limiter.least_rows
    patch.setattr(limits._Limiter, "least_rows", lambda self, most, by_group: honest(self, most + 1, by_group=by_group))


def keep_one_group_more(patch: pytest.MonkeyPatch) -> None:
    honest = limits._Limiter.least_groups
    patch.setattr(limits._Limiter, "least_groups", lambda self, most: honest(self, most + 1))


def leave_the_limits_out(patch: pytest.MonkeyPatch) -> None:
    from dpsql.executors.sql import compile as compiler

    honest = compiler.kept_rows
    patch.setattr(compiler, "kept_rows", lambda plan, *rest: honest(replace(plan, limits=None, groups=None), *rest))


def take_other_bytes_of_texts(patch: pytest.MonkeyPatch) -> None:
    honest = dialect.DuckDBDialect.text_limbs
    patch.setattr(dialect.DuckDBDialect, "text_limbs", lambda self, key, text: honest(self, key[::-1], text))


def take_units_one_above_for_below(patch: pytest.MonkeyPatch) -> None:
    honest = Limits.above
    patch.setattr(Limits, "above", lambda self, *rest: honest(replace(self, rows=self.rows and self.rows + 1), *rest))


def forget_the_limit_of_groups(patch: pytest.MonkeyPatch) -> None:
    honest = Limits.above
    patch.setattr(Limits, "above", lambda self, *rest: honest(replace(self, of_units=99, groups=99), *rest))


def forget_the_limit_of_rows_in_a_group(patch: pytest.MonkeyPatch) -> None:
    honest = Limits.above
    patch.setattr(Limits, "above", lambda self, *rest: honest(replace(self, per_group=None), *rest))


OF_SOME = {take_units_one_above_for_below: 0, forget_the_limit_of_groups: 1, forget_the_limit_of_rows_in_a_group: 2}
LIES = [
    hash_other_limbs,
    keep_the_largest_hashes,
    keep_one_row_more,
    keep_one_group_more,
    leave_the_limits_out,
    take_other_bytes_of_texts,
]


@pytest.mark.parametrize("lie", LIES, ids=lambda each: each.__name__)
def test_a_broken_rule_is_seen(lie: Any, monkeypatch: pytest.MonkeyPatch):
    lie(monkeypatch)
    assert differences(of_units("texts", "duckdb"), of_units("texts", "pandas"), QUERIES) != []


@pytest.mark.parametrize("lie", OF_SOME, ids=lambda each: each.__name__)
def test_a_unit_that_is_taken_for_one_below_is_seen(lie: Any, monkeypatch: pytest.MonkeyPatch):
    lie(monkeypatch)
    place = OF_SOME[lie]
    assert differences(some_above(place, "duckdb"), some_above(place, "pandas"), QUERIES) != []


EDGES = [
    math.inf,
    -math.inf,
    1e300,
    1e23,
    2.0**70,
    2.0**58,
    -(2.0**58),
    1.5,
    -0.3,
    0.0,
    0.001,
    math.nextafter(0.001, 1),
]
EDGES += [-1e-200, 5e-324, 1e-323]


def test_reals_of_every_size_are_kept_alike_as_groups():
    """No two of them share a hash, so that nothing decides between rows but the key."""
    rng = random.Random(7)
    people = pd.DataFrame({"x": rng.choices([*EDGES, None], k=400), "u": [rng.randrange(25) for _ in range(400)]})
    one, other = (
        session({"t": dpsql.Table(people, unit="u", max_rows=4, max_groups=3)}, engine)
        for engine in ("pandas", "duckdb")
    )
    for sql in ("SELECT x, COUNT(*) FROM t GROUP BY x", "SELECT COUNT(DISTINCT x), COUNT(*) FROM t"):
        assert difference(other, one, sql) == ""


def test_reals_that_differ_have_limbs_that_differ():
    rng = np.random.default_rng(3)
    words = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    reals = np.array([*EDGES, *np.nextafter(EDGES, 0), *words[~np.isnan(words)]]) + 0.0
    reals = np.unique(np.concatenate([reals, np.nextafter(reals, 0)]) + 0.0)
    limbs = np.stack(list(_limbs_of_reals(reals)))
    assert len(np.unique(limbs, axis=1).T) == len(reals)
    assert int(limbs.max()) <= 2**30
