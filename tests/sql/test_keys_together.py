"""Keys of one public table: the groups are the rows that it has, not all combinations of their values, whatever
people's rows hold; and the answers are DuckDB's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.exact import AllUnits, CountRows, CountUnits, ExactPlan
from dpsql.core.sensitivity import contribution_bounds as contribution
from dpsql.executors import correlated_keys as rows_together
from dpsql.executors.base import executor_of
from dpsql.executors.pandas import executor as pandas
from dpsql.executors.sql import groups as sql_groups
from dpsql.plan.query import CorrelatedKey, axes_of
from dpsql.release.levels import estimates as levels
from dpsql.session import prepare
from dpsql.session.tables.constant_tables import constant_tables
from dpsql.sql.bind import correlated_keys as keys_together
from dpsql.testing import _integers
from tests.executors.contract import difference, session
from tests.lies import Check, Lie, Patch, assert_caught
from tests.sql.join_queries import queries

REGIONS = pd.DataFrame(
    {
        "region": ["n", "s", "e", "q", "x", None],
        "zone": ["A", "A", "B", "C", None, "A"],
        "k": [1, 2, 3, 4, 5, 6],
        "nation": [1, 1, 2, 2, 3, 3],
    }
)
NATIONS = pd.DataFrame({"nation": [1, 2, 3, 9], "name": ["N", "M", "L", "Z"], "big": [True, False, True, False]})
ASKED = """
    SELECT r.region, r.zone, COUNT(*) FROM orders JOIN regions r USING (region) GROUP BY r.region, r.zone | SELECT
        r.region, r.zone FROM regions r;
    SELECT o.region, r.zone, COUNT(*) FROM orders o JOIN regions r ON o.region = r.region GROUP BY 1, 2 | SELECT
        r.region, r.zone FROM regions r WHERE r.region IS NOT NULL;
    SELECT o.k, r.region, r.zone, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k GROUP BY 1, 2, 3 | SELECT r.k,
        r.region, r.zone FROM regions r;
    SELECT r.zone, o.v, r.region, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k GROUP BY 1, 2, 3 | SELECT
        DISTINCT r.zone, v, r.region FROM regions r, (VALUES (FALSE), (TRUE)) AS t(v);
    SELECT r.region, n.name, n.big, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k JOIN nations n ON r.nation =
        n.nation GROUP BY 1, 2, 3 | SELECT r.region, n.name, n.big FROM regions r JOIN nations n ON r.nation =
        n.nation;
    SELECT r.region, n.name, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k JOIN nations n ON o.k = n.nation
        GROUP BY 1, 2 | SELECT r.region, n.name FROM regions r JOIN nations n ON r.k = n.nation;
    SELECT r.region, r.zone, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k AND (r.zone = 'A' OR r.k > 4 AND
        o.v) WHERE r.region IS NOT NULL GROUP BY 1, 2 | SELECT r.region, r.zone FROM regions r WHERE (r.zone = 'A'
        OR r.k > 4) AND r.region IS NOT NULL;
    SELECT UPPER(r.region) AS u, COALESCE(r.zone, 'none') AS z, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k
        GROUP BY u, z | SELECT UPPER(r.region), COALESCE(r.zone, 'none') FROM regions r;
    SELECT r.zone, r.nation, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k GROUP BY 1, 2 | SELECT DISTINCT
        r.zone, r.nation FROM regions r;
    SELECT r.region, r.zone, n.name, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k JOIN nations n ON o.m =
        n.nation GROUP BY 1, 2, 3 | SELECT r.region, r.zone, n.name FROM regions r, nations n;
    SELECT v.z, region, COUNT(*) FROM orders JOIN (VALUES ('n', 'a'), ('s', 'b'), ('w', 'a')) AS v(x, z) ON region =
        v.x GROUP BY 1, 2 | SELECT z, x FROM (VALUES ('n', 'a'), ('s', 'b'), ('w', 'a')) AS v(x, z);
    WITH v AS (SELECT 1 AS k, 'one' AS w UNION ALL SELECT 2, 'two') SELECT v.k, w, COUNT(*) FROM orders JOIN v USING
        (k) GROUP BY 1, 2 | SELECT * FROM (VALUES (1, 'one'), (2, 'two')) AS v(k, w);
    SELECT c.k, c.half, COUNT(*) FROM orders o JOIN (SELECT k, k // 2 AS half FROM generate_series(0, 5) AS g(k)) c
        ON o.k = c.k GROUP BY 1, 2 | SELECT k, k // 2 FROM generate_series(0, 5) AS g(k);
    SELECT r.region, r.zone, COUNT(*) FROM regions r LEFT JOIN orders o ON o.k = r.k GROUP BY 1, 2 | SELECT
        r.region, r.zone FROM regions r;
    SELECT region, zone, COUNT(*) FROM (SELECT r.region, r.zone, o.v FROM orders o JOIN regions r ON o.k = r.k)
        WHERE v GROUP BY 1, 2 | SELECT r.region, r.zone FROM regions r;
    SELECT r.region, r.zone, COUNT(*) FROM orders o LEFT JOIN regions r ON o.k = r.k GROUP BY 1, 2 | SELECT
        r.region, r.zone FROM regions r UNION ALL SELECT NULL, NULL;
    SELECT COALESCE(r.region, 'none') AS g, r.zone, COUNT(*) FROM orders o LEFT JOIN regions r ON o.k = r.k WHERE
        r.zone = 'A' OR r.zone IS NULL GROUP BY 1, 2 | SELECT COALESCE(r.region, 'none'), r.zone FROM regions r
        WHERE zone = 'A' OR zone IS NULL UNION SELECT 'none', NULL;
    SELECT r.region, r.zone, COUNT(*) FROM orders o LEFT JOIN regions r ON o.k = r.k AND r.k > 3 WHERE r.zone IS NOT
        NULL GROUP BY 1, 2 | SELECT r.region, r.zone FROM regions r WHERE k > 3 AND zone IS NOT NULL;
    SELECT r.region, here, COUNT(*) FROM orders o LEFT JOIN (SELECT k, region, k > 2 AS here FROM regions) r ON o.k
        = r.k GROUP BY 1, 2 | SELECT r.region, k > 2 FROM regions r UNION ALL SELECT NULL, NULL;
    SELECT r.region, n.name, n.big, COUNT(*) FROM orders o JOIN regions r ON o.k = r.k LEFT JOIN nations n ON
        r.nation = n.nation AND n.big GROUP BY 1, 2, 3 | SELECT r.region, n.name, n.big FROM regions r LEFT JOIN
        nations n ON r.nation = n.nation AND n.big;
    SELECT r.region, n.name, COUNT(*) FROM orders o LEFT JOIN regions r ON o.k = r.k LEFT JOIN nations n ON r.nation
        = n.nation GROUP BY 1, 2 | SELECT r.region, n.name FROM regions r JOIN nations n ON r.nation = n.nation
        UNION ALL SELECT NULL, NULL;
    SELECT r.region, r.zone, n.name, n.big, COUNT(*) FROM orders o LEFT JOIN regions r ON o.k = r.k LEFT JOIN
        nations n ON o.m = n.nation GROUP BY 1, 2, 3, 4 | SELECT * FROM (SELECT r.region, r.zone FROM regions r
        UNION ALL SELECT NULL, NULL), (SELECT name, big FROM nations UNION ALL SELECT NULL, NULL);
    SELECT r.region, n.name, COUNT(*) FROM orders o LEFT JOIN regions r ON o.k = r.k LEFT JOIN nations n ON
        COALESCE(r.nation, 9) = n.nation GROUP BY 1, 2 | SELECT * FROM (SELECT DISTINCT r.region FROM regions r),
        (SELECT name FROM nations UNION ALL SELECT NULL);
    SELECT x.nation, x.c, COUNT(*) FROM orders o JOIN (SELECT nation, COUNT(*) AS c FROM regions GROUP BY nation) x
        ON o.m = x.nation GROUP BY 1, 2 | SELECT nation, COUNT(*) FROM regions GROUP BY nation;
    SELECT x.region, x.zone, COUNT(*) FROM orders o RIGHT JOIN (SELECT DISTINCT region, zone FROM regions WHERE k <
        5) x ON o.region = x.region AND o.zo = x.zone GROUP BY 1, 2 | SELECT r.region, r.zone FROM regions r WHERE k
        < 5;
    SELECT q.k, q.region, q.big, COUNT(*) FROM orders o JOIN (SELECT k, region, big FROM regions FULL JOIN (SELECT
        nation AS k, big FROM nations) n USING (k)) q ON o.k = q.k GROUP BY 1, 2, 3 | SELECT k, region, big FROM
        regions FULL JOIN (SELECT nation AS k, big FROM nations) n USING (k);
    SELECT q.region, q.name, COUNT(*) FROM orders o JOIN (SELECT k, region, name FROM regions LEFT JOIN nations
        USING (nation)) q ON o.k = q.k GROUP BY 1, 2 | SELECT r.region, n.name FROM regions r JOIN nations n ON
        r.nation = n.nation;
    SELECT region, zone, w, COUNT(*) FROM (SELECT pid, r.region, r.zone, o.v AS w, COUNT(*) AS c FROM orders o JOIN
        regions r ON o.k = r.k WHERE r.k > 1 GROUP BY pid, r.region, r.zone, w) WHERE zone = 'A' AND c > 0 GROUP BY
        1, 2, 3 | SELECT r.region, r.zone, v FROM regions r, (VALUES (FALSE), (TRUE)) AS t(v) WHERE k > 1 AND zone =
        'A';
    SELECT o.region, o.k, COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM regions r WHERE r.region = o.region AND
        r.k = o.k AND zone = 'A') GROUP BY 1, 2 | SELECT region, k FROM regions WHERE zone = 'A' AND region IS NOT NULL;
    SELECT o.k, o.v, o.region, COUNT(*) FROM orders o SEMI JOIN regions r ON r.region = o.region AND r.k = o.k GROUP BY
        1, 2, 3 | SELECT k, v, region FROM regions, (VALUES (FALSE), (TRUE)) AS t(v) WHERE region IS NOT NULL;
    SELECT DISTINCT r.region, r.zone FROM orders o JOIN regions r ON o.k = r.k | SELECT r.region, r.zone FROM
        regions r;
"""
"""What is asked, and the rows of public tables that are its groups."""
ANSWERED = {each[0]: each[1] for each in queries(ASKED)}
COUNTED = [sql for sql in ANSWERED if "COUNT" in sql]


def orders(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    regions = pd.Series(rng.choice(["n", "s", "e", "w", "zz"], rows), dtype="str")
    return pd.DataFrame(
        {
            "pid": rng.integers(0, 50, rows),
            "region": regions.where(rng.random(rows) > 0.1),
            "k": rng.integers(0, 9, rows),
            "m": rng.integers(0, 4, rows),
            "v": rng.random(rows) > 0.5,
            "zo": pd.Series(rng.choice(["A", "B", "E"], rows), dtype="str"),
        }
    )


def tables(frame: pd.DataFrame, **limits: int) -> dict[str, dpsql.Table]:
    return {
        "orders": dpsql.Table(frame, unit="pid", nullable={"v": False}, **(limits or {"max_rows": 30})),
        "regions": dpsql.Table(REGIONS, public=True, unique=["k", "region"]),
        "nations": dpsql.Table(NATIONS, public=True, unique=["nation"]),
    }


def oracle(frame: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, each in (("orders", frame), ("regions", REGIONS), ("nations", NATIONS)):
        connection.register(name, each)
    return connection


def check_answers() -> None:
    frame = orders()
    held = session(tables(frame), "pandas")
    with oracle(frame) as connection:
        for sql, rows in ANSWERED.items():
            found = [*held.query(sql, epsilon=1e6)]
            groups = connection.execute(rows).fetchall()
            assert len(groups) == len(found), sql
            counted = sql in COUNTED
            assert {row[:-1] if counted else row for row in found} == {*groups}, sql
            if counted and "regions r LEFT JOIN orders" not in sql and " RIGHT JOIN " not in sql:
                assert {row for row in found if row[-1]} == {*connection.execute(sql).fetchall()}, sql


def test_groups_are_rows_of_public_tables_and_answers_are_those_of_duckdb():
    check_answers()


def groups_of(frame: pd.DataFrame, sql: str) -> list[tuple[Any, ...]]:
    return [row[: -1 if sql in COUNTED else None] for row in dpsql.query(tables(frame), sql, epsilon=1)]


def check_groups_are_the_same(few: int = 4) -> None:
    frame = orders()
    other = frame.assign(region="q", k=100, v=True)
    for sql in [*ANSWERED][:: len(ANSWERED) // few]:
        expected = groups_of(frame, sql)
        for each in (frame.iloc[:0], frame.iloc[:1], other):
            assert groups_of(each, sql) == expected, sql


def test_groups_are_the_same_whoever_is_there():
    """Of no people, of one, and of people with other values."""
    check_groups_are_the_same(len(ANSWERED))


def test_engines_have_equal_integers():
    for limits in ({"max_rows": 30}, {"max_groups": 2, "max_rows_per_group": 2}):
        ours, other = (session(tables(orders(), **limits), engine) for engine in ("pandas", "duckdb"))
        for sql in COUNTED[:: 2 if "max_rows" in limits else 5]:
            assert not difference(ours, other, sql), sql


# Rows of no group: a grid that is made shorter than what joins allow.


SHORT = COUNTED[2]


def _shortened(plan: ExactPlan, kept: slice) -> ExactPlan:
    """The plan with some of its public rows alone, and with parts that count units."""
    keys = [replace(key, together=replace(key.together, places=key.together.places[kept])) for key in plan.keys]  # type: ignore[type-var]
    return replace(plan, keys=tuple(keys), parts=(CountRows(None), CountUnits(None), AllUnits()))


def _executed(held: dpsql.Session, kept: slice, **more: Any) -> Mapping[Any, Any]:
    plan = _shortened(replace(held.explain(SHORT, epsilon=1)._release.exact, **more), kept)
    stores = {**held._stores, **constant_tables([plan.source], held._stores)}
    return _integers(plan, executor_of(stores, held._engine).execute(plan, bytes(32))).parts


def check_rows_outside() -> None:
    for limits in ({"max_rows": 30}, {"max_groups": 1, "max_rows_per_group": 30}):
        held = [session(tables(orders(), **limits), engine) for engine in ("pandas", "duckdb")]
        for kept in (slice(None), slice(1, None, 2), slice(0)):
            ours, other = (_executed(each, kept) for each in held)
            assert ours == other
            assert len(ours) == len([*range(len(REGIONS))][kept])
        hidden = [_executed(each, slice(1, None, 2), every_cell=False) for each in held]
        assert hidden[0] == hidden[1]


def test_a_row_outside_is_in_no_group_on_any_engine():
    check_rows_outside()
    whole = orders().query("1 <= k <= 6")
    part = _executed(session(tables(orders()), "pandas"), slice(1, None, 2))
    assert {rows for rows, _, _ in part.values()} == {len(whole.query(f"k == {k}")) for k in (2, 4, 6)}
    assert {everybody for _, _, everybody in part.values()} == {whole.query("k % 2 == 0")["pid"].nunique()}


def test_engines_have_equal_integers_where_rows_are_units():
    """An engine may look groups up after rows are counted by stored cells."""
    held = {**tables(orders()), "orders": dpsql.Table(orders(), nullable={"v": False})}
    ours, other = session(held, "pandas"), session(held, "duckdb")
    for sql in COUNTED[1::6]:
        assert not difference(ours, other, sql), sql


def test_rows_are_found_in_several_steps_too(monkeypatch: pytest.MonkeyPatch):
    """As where numbers of all keys together would not go into 64 bits."""
    expected = _executed(session(tables(orders()), "pandas"), slice(None))
    monkeypatch.setattr(rows_together, "_ROOM", 20)
    for engine in ("pandas", "duckdb"):
        assert _executed(session(tables(orders()), engine), slice(None)) == expected


# What is refused, and how many there may be.


def wide(rows: int) -> dict[str, dpsql.Table]:
    """A table whose columns have so many values each, and as many rows."""
    places = range(rows)
    frame = pd.DataFrame({"k": places, "name": [f"name {n}" for n in places], "code": [f"c{n}" for n in places]})
    own = pd.DataFrame({"pid": [1, 2, 3, 3], "k": [0, 1, 2, rows + 5], "v": [True] * 4})
    return {
        "people": dpsql.Table(own, unit="pid", max_rows=2),
        "codes": dpsql.Table(frame, public=True, unique=["k"]),
    }


def test_a_wide_table_has_as_many_groups_as_rows():
    """Of all combinations there would be 2.7e10."""
    sql = "SELECT k, name, code, COUNT(*) AS n FROM people JOIN codes USING (k) GROUP BY k, name, code"
    answer = dpsql.query(wide(3_000), sql, epsilon=1e6)
    assert len(answer) == 3_000
    assert sum(answer.df["n"]) == 3
    sql = "SELECT name, code, p.{} AS h, COUNT(*) AS n FROM people p JOIN codes USING (k) GROUP BY name, code, h"
    assert len(dpsql.query(wide(3_000), sql.format("k > 1"), epsilon=1)) == 3_000  # it follows from the row
    assert len(dpsql.query(wide(3_000), sql.format("v"), epsilon=1)) >= 6_000  # and NULL


def test_how_many_rows_and_which_values():
    """A group for each row, with the least lists that have all of their values."""
    release = session(tables(orders(3)), "pandas").explain(COUNTED[6], epsilon=1)._release
    keys = release.query.plan.keys
    assert [key.values for key in keys] == [("n", "s", "x"), ("A", None)]
    assert [key.together for key in keys] == [CorrelatedKey(0, (0, 1, 2)), CorrelatedKey(0, (0, 0, 1))]
    assert release.query.plan.public_cells == 3
    assert str(release.query.plan) == (
        "aggregate COUNT(*) by r.region (3 public, 3 together), r.zone (2 public, 3 together)"
    )


def test_grouping_sets_have_all_combinations():
    """Their levels are of sums over each key by itself."""
    sql = (
        "SELECT r.region, r.zone, COUNT(*) FROM orders JOIN regions r USING (region) GROUP BY ROLLUP (r.region, r.zone)"
    )
    answer = [*dpsql.query(tables(orders()), sql, epsilon=1)]
    assert len(answer) == 6 * 4 + 6 + 1


def test_tables_that_make_too_many_rows_are_not_joined_for_their_keys(monkeypatch: pytest.MonkeyPatch):
    """Keys of each of them stand together still."""
    sql = COUNTED[4]
    assert len(groups_of(orders(), sql)) == len(REGIONS)
    monkeypatch.setattr(contribution, "MOST_PUBLIC_ROWS", 1)
    prepare._cache.clear()
    assert len(groups_of(orders(), sql)) == len(REGIONS) * len(NATIONS)
    prepare._cache.clear()


@pytest.mark.parametrize("neighbours", ["unbounded", "bounded"])
def test_groups_and_their_total_are_two_releases(neighbours: str):
    """Of one relation whose rows are units, which else become one of two grouping sets."""
    held = {**tables(orders()), "orders": dpsql.Table(orders())}
    joined = "FROM orders o JOIN regions r ON o.k = r.k"
    sql = f"SELECT r.region, r.zone, COUNT(*) - (SELECT COUNT(*) {joined}) AS n {joined} GROUP BY 1, 2"
    answer = dpsql.query(held, sql, epsilon=1e6, neighbours=neighbours)
    assert len(answer) == len(REGIONS)
    whole = len(orders().query("1 <= k <= 6"))
    assert sum(answer.df["n"]) == whole - len(REGIONS) * whole


def test_words_that_do_not_fit_together_are_refused():
    key = session(tables(orders(3)), "pandas").explain(COUNTED[6], epsilon=1)._release.query.plan
    one, other = key.keys
    with pytest.raises(ValueError, match="none of the key's"):
        replace(one, together=CorrelatedKey(0, (0, 3)))
    with pytest.raises(ValueError, match="equally many"):
        axes_of((one, replace(other, together=CorrelatedKey(0, (0,)))))
    with pytest.raises(ValueError, match="grouping sets"):
        levels._sizes(key.keys)


# Lies.


def show_those_that_occur(patch: Patch) -> None:
    """The grid is read from people's rows."""
    honest = pandas.PandasExecutor.execute

    def execute(self: Any, exact: ExactPlan, *key: Any) -> Any:
        occurring = any(each.together for each in exact.keys)
        return honest(self, replace(exact, every_cell=exact.every_cell and not occurring), *key)

    patch.setattr(pandas.PandasExecutor, "execute", execute)


def hold_no_row_out(patch: Patch) -> None:
    """An engine that asks of each key alone whether its value is listed."""
    patch.setattr(sql_groups, "_held_together", lambda _rows_together, own, rows, _writer, _lists: (rows, own[0]))


def let_nothing_stand_beside_no_match(patch: Patch) -> None:
    """That an outer join leaves the rows of its right side, and no NULLs."""
    honest = keys_together._Tables._rows_or_none

    def rows(self: Any, *asked: Any) -> Any:
        return tuple(row for row in honest(self, *asked) or () if any(cell is not None for cell in row))

    patch.setattr(keys_together._Tables, "_rows_or_none", rows)


@pytest.mark.parametrize(
    ("lie", "check"),
    [
        (show_those_that_occur, check_groups_are_the_same),
        (hold_no_row_out, check_rows_outside),
        (let_nothing_stand_beside_no_match, check_answers),
    ],
)
def test_lies_are_caught(lie: Lie, check: Check):
    assert_caught(lie, check)
