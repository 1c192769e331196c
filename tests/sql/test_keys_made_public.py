"""Keys over people's columns that an equality, or a list of public rows or of constants, makes public: the groups are
the public ones, whatever people's rows hold, and the answers are DuckDB's."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import UnknownGroups
from dpsql.plan.expressions import Call, Expr
from dpsql.plan.nodes import Join, Source
from dpsql.sql.bind import public_keys
from tests.executors.contract import difference, session
from tests.lies import Patch, assert_caught

REGIONS = pd.DataFrame(
    {
        "region": ["n", "s", "e", "q", None],
        "zone": ["A", "A", "B", "C", "D"],
        "k": [1, 2, 3, 4, 5],
        "r": [0.0, 1, 2, 3, 4],
    }
)
ANSWERED: dict[str, list[Any]] = {
    "SELECT region, COUNT(*) FROM orders JOIN regions USING (region) GROUP BY region": ["e", "n", "q", "s"],
    "SELECT o.region, COUNT(*) FROM orders o, regions r WHERE r.region = o.region AND zone = 'A' GROUP BY 1": [
        "n", "s"],
    "SELECT UPPER(o.region) AS u, COUNT(*) FROM orders o, regions r WHERE o.region = r.region GROUP BY u": [
        "E", "N", "Q", "S"],
    "SELECT o.k, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k AND o.region = r.region GROUP BY o.k": [
        1, 2, 3, 4, 5],
    "SELECT o.b, COUNT(*) FROM orders o JOIN regions r USING (region) WHERE o.b = o.region GROUP BY o.b": [
        "e", "n", "q", "s"],
    "SELECT x, COUNT(*) FROM (SELECT region AS x FROM orders), regions WHERE x = region GROUP BY x": [
        "e", "n", "q", "s"],
    "SELECT region, COUNT(*) FROM orders WHERE region IN (SELECT region FROM regions WHERE k < 3) GROUP BY region": [
        "n", "s"],
    "SELECT region, COUNT(*) FROM orders o WHERE EXISTS (FROM regions r WHERE r.region = o.region) GROUP BY 1": [
        "e", "n", "q", "s"],
    "SELECT region, COUNT(*) FROM orders o WHERE EXISTS (FROM regions r WHERE r.region = o.region AND r.k = o.k) GROUP "
    "BY 1": ["e", "n", "q", "s"],
    "SELECT LOWER(o.region || '!'), COUNT(*) FROM orders o JOIN regions r ON o.region || '!' = r.region GROUP BY 1": [
        "e", "n", "q", "s"],
    "SELECT b, COUNT(*) FROM orders JOIN (VALUES ('n'), ('w')) AS v(c) ON b = c GROUP BY b": ["n", "w"],
    "SELECT region, COUNT(*) FROM orders WHERE region IN ('n', 'q', NULL) GROUP BY region": ["n", "q"],
    "SELECT b, COUNT(*) FROM orders WHERE 's' = b AND k > 2 GROUP BY b": ["s"],
    "SELECT region, COUNT(*) FROM orders WHERE region = 'n' OR region IN ('s', 'zz') GROUP BY region": ["n", "s", "zz"],
    "SELECT k, COUNT(*) FROM orders WHERE k IN (1, 2) AND k IN (2, 1000000000) GROUP BY k": [2],
    "SELECT UPPER(b) AS u, COUNT(*) FROM orders WHERE UPPER(b) IN ('N', 'W') GROUP BY u": ["N", "W"],
    "SELECT x, COUNT(*) FROM (SELECT region AS x, k FROM orders WHERE region IN ('e', 'n')) WHERE k < 5 GROUP BY x": [
        "e", "n"],
    "SELECT o.b, COUNT(*) FROM orders o LEFT JOIN regions r ON o.region = r.region WHERE b IN ('n') GROUP BY o.b": [
        "n"],
}  # fmt: skip
REFUSED = [
    "SELECT o.region, COUNT(*) FROM orders o LEFT JOIN regions r ON o.region = r.region GROUP BY o.region",
    "SELECT o.region, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k GROUP BY o.region",
    "SELECT o.region, COUNT(*) FROM orders o JOIN regions r ON o.region < r.region GROUP BY o.region",
    "SELECT o.k, COUNT(*) FROM orders o JOIN regions r ON o.k = r.r GROUP BY o.k",
    "SELECT region, COUNT(*) FROM orders WHERE region NOT IN (SELECT region FROM regions WHERE k < 4) GROUP BY region",
    "SELECT b, COUNT(*) FROM orders o WHERE NOT EXISTS (FROM regions r WHERE r.region = b AND r.k = o.k) GROUP BY 1",
    "SELECT b, COUNT(*) FROM orders o WHERE EXISTS (FROM orders r WHERE r.pid = o.pid AND r.region = b) GROUP BY 1",
    "SELECT b, COUNT(*) FROM orders o WHERE EXISTS (FROM regions r WHERE r.region = b AND r.k < o.k) GROUP BY 1",
    "SELECT region, COUNT(*) FROM orders WHERE region IN (SELECT region FROM regions) OR k > 2 GROUP BY region",
    "SELECT o.region, COUNT(*) FROM orders o JOIN regions r ON o.region = r.region OR o.k = r.k GROUP BY o.region",
    "SELECT region, COUNT(*) FROM orders WHERE region IN ('n', 's') OR k > 2 GROUP BY region",
    "SELECT region, COUNT(*) FROM orders WHERE region NOT IN ('n', 's') GROUP BY region",
    "SELECT region, COUNT(*) FROM orders WHERE region <> 'n' AND b = 's' GROUP BY region",
    "SELECT region, COUNT(*) FROM orders WHERE region IN ('n', b) GROUP BY region",
    "SELECT region, COUNT(*) FROM orders WHERE UPPER(region) = 'N' GROUP BY region",
    "SELECT region, COUNT(*) FILTER (WHERE region = 'n') FROM orders GROUP BY region",
]


def orders(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    regions = pd.Series(rng.choice(["n", "s", "e", "w", "zz"], rows), dtype="str")
    return pd.DataFrame(
        {
            "pid": rng.integers(0, 50, rows),
            "region": regions.where(rng.random(rows) > 0.1),
            "b": pd.Series(rng.choice(["n", "s"], rows), dtype="str"),
            "k": rng.integers(0, 9, rows),
        }
    )


def tables(frame: pd.DataFrame) -> dict[str, dpsql.Table]:
    said: dict[str, Any] = {"unique": ["region", "k"], "max_matches": {"r": 1}}
    return {
        "orders": dpsql.Table(frame, unit="pid", max_rows=30),
        "regions": dpsql.Table(REGIONS, public=True, **said),
    }


def check_answers() -> None:
    frame = orders()
    held = session(tables(frame), "pandas")
    with duckdb.connect() as connection:
        connection.register("orders", frame)
        connection.register("regions", REGIONS)
        for sql, groups in ANSWERED.items():
            found = [*held.query(sql, epsilon=1e6)]
            assert [row[0] for row in found] == groups, sql
            assert {row for row in found if row[1]} == {*connection.execute(sql).fetchall()}, sql


def test_answers_are_those_of_duckdb():
    check_answers()


def test_groups_are_the_same_whoever_is_there():
    """Of no people, of one, and of people with other values."""
    frame = orders()
    other = frame.assign(region="q", b="w", k=100)
    for sql, groups in ANSWERED.items():
        for each in (frame.iloc[:0], frame.iloc[:1], other):
            assert [row[0] for row in dpsql.query(tables(each), sql, epsilon=1)] == groups, sql


def test_what_makes_no_key_public_is_refused():
    held = session(tables(orders(3)), "pandas")
    for sql in REFUSED:
        with pytest.raises(UnknownGroups):
            held.query(sql, epsilon=1)


def test_engines_have_equal_integers():
    ours, other = (session(tables(orders()), engine) for engine in ("pandas", "duckdb"))
    for sql in [*[*ANSWERED][:8:2], *[*ANSWERED][-7:-3]]:
        assert not difference(ours, other, sql), sql


def test_a_lie_about_outer_joins_is_caught():
    """That what an outer join compares holds of every row."""

    def believe_outer_joins(patch: Patch) -> None:
        honest = public_keys.public_parts

        def parts(source: Source) -> Any:
            from dataclasses import replace

            return honest(replace(source, outer=False) if isinstance(source, Join) else source)

        patch.setattr(public_keys, "public_parts", parts)

    assert_caught(believe_outer_joins, test_what_makes_no_key_public_is_refused, by=pytest.fail.Exception)


def test_an_option_of_group_selection_keeps_groups_private():
    held = session(tables(orders()), "pandas")
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS (min_privacy_units_per_group = 5, delta = 1e-6)"
    sql = f"SELECT {options} region, COUNT(*) FROM orders WHERE region IN {{}} GROUP BY 1"
    assert [row[0] for row in held.query(sql.format("('n', 'none')"), epsilon=100)] == ["n"]


def test_a_lie_about_or_is_caught():
    """That one side of an OR lists all values."""

    def read_one_side(patch: Patch) -> None:
        honest = public_keys._constants_equal_to

        def constants(expr: Expr, term: Expr) -> set[Any] | None:
            return honest(expr, term.args[0] if isinstance(term, Call) and term.function.name == "or" else term)

        patch.setattr(public_keys, "_constants_equal_to", constants)

    assert_caught(read_one_side, check_answers)
