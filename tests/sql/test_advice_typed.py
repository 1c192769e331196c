"""Advice of refusals is typed back: what it says is accepted, and each refusal names its own cause."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.errors import (
    DPSQLError,
    InvalidArgument,
    InvalidParameter,
    MissingBounds,
    RawColumn,
    TypeMismatch,
    UnknownColumn,
    UnknownGroups,
    UnknownTable,
    UnsupportedSQL,
)

PEOPLE = pd.DataFrame(
    {
        "pid": range(60),
        "pc": [1.0, 2.0, None] * 20,
        "r": [0.5] * 60,
        "income": [float(k) for k in range(60)],
        "age": [20 + k for k in range(60)],
        "job": ["a", "b", "c"] * 20,
        "js": ['{"a":1}'] * 60,
        "langs": ["Python;SQL"] * 60,
        "born": ["2024-01-31"] * 60,
        "at": [datetime.datetime(2024, 1, 1)] * 60,
    }
).astype({"at": "datetime64[us]"})
BOUNDS = {"pc": (0, 8), "income": (0, 1000), "age": (18, 90)}
COUNTS = "(SELECT job, COUNT(*) AS n FROM people GROUP BY job)"


def asked(sql: str, **words: Any) -> pd.DataFrame:
    given = {"bounds": BOUNDS, "keys": {"job": ["a", "b", "c"]}} | words
    return dpsql.query({"people": PEOPLE}, sql, epsilon=1e6, **given).df


ADVICE: list[tuple[type[DPSQLError], str, dict[str, Any], str, str, dict[str, Any]]] = [
    (UnknownGroups, "SELECT pc AS k, COUNT(*) FROM people GROUP BY k", {}, "FLOOR(pc)",
     "SELECT FLOOR(pc) AS k, COUNT(*) FROM people GROUP BY k", {}),
    (UnknownGroups, "SELECT pc // 10 AS k, COUNT(*) FROM people GROUP BY k", {}, "FLOOR(pc)",
     "SELECT FLOOR(pc) AS k, COUNT(*) FROM people GROUP BY k", {}),
    (UnknownGroups, "SELECT income // 7 AS k, COUNT(*) FROM people GROUP BY k", {}, "FLOOR(income / 10)",
     "SELECT FLOOR(income / 10) AS k, COUNT(*) FROM people GROUP BY k", {}),
    (UnknownGroups, "SELECT age, COUNT(*) FROM people GROUP BY age", {"bounds": {"age": (0, 10**6)}}, "age // 10000",
     "SELECT age // 10000, COUNT(*) FROM people GROUP BY 1", {"bounds": {"age": (0, 10**6)}}),
    (UnsupportedSQL, "SELECT COUNT(*) FROM people WHERE js->>'a' = '1'", {},
     "REGEXP_EXTRACT(x, '\"a\": *\"?([a-z0-9]*)', 1)",
     "SELECT COUNT(*) FROM people WHERE REGEXP_EXTRACT(js, '\"a\": *\"?([a-z0-9]*)', 1) = '1'", {}),
    (UnsupportedSQL, "SELECT l, COUNT(*) FROM (SELECT UNNEST(STRING_SPLIT(langs, ';')) AS l FROM people) q GROUP BY l",
     {}, "';' || x || ';' LIKE '%;SQL;%'", "SELECT COUNT(*) FROM people WHERE ';' || langs || ';' LIKE '%;SQL;%'", {}),
    (UnknownColumn, "SELECT COUNT(*) FROM people WHERE langs = \u2018x\u2019", {}, "Write 'x' for a text",
     "SELECT COUNT(*) FROM people WHERE langs = 'x'", {}),
    (UnknownColumn, "SELECT COUNT(*) FROM people WHERE \u201cage\u201d > 3", {}, '"age" for a name',
     'SELECT COUNT(*) FROM people WHERE "age" > 3', {}),
    (TypeMismatch, "SELECT YEAR(born), COUNT(*) FROM people GROUP BY 1", {"keys": {"born": ["2024-01-31"]}},
     "CAST(born AS DATE)", "SELECT COUNT(*) FROM people WHERE YEAR(CAST(born AS DATE)) = 2024", {}),
    (TypeMismatch, "SELECT YEAR(born), COUNT(*) FROM people GROUP BY 1", {"keys": {"born": ["2024-01-31"]}},
     'types={"born": "date"}', "SELECT COUNT(*) FROM people WHERE YEAR(born) = 2024", {"types": {"born": "date"}}),
    (TypeMismatch, "SELECT COUNT(*) FROM people WHERE at > '2024-06-31'", {}, "TIMESTAMP '2024-06-30 23:59:59'",
     "SELECT COUNT(*) FROM people WHERE at > TIMESTAMP '2024-06-30 23:59:59'", {}),
    (TypeMismatch, "SELECT COUNT(*) FROM people WHERE at > 'soon'", {}, "DATE '2020-12-31'",
     "SELECT COUNT(*) FROM people WHERE at > DATE '2020-12-31'", {}),
    (InvalidParameter, "SELECT COUNT(*) FROM people WHERE age IN (:d)", {"params": {"d": [1, 2]}}, "x IN (:d1, :d2)",
     "SELECT COUNT(*) FROM people WHERE age IN (:d1, :d2)", {"params": {"d1": 1, "d2": 2}}),
    (RawColumn, "SELECT pid, COUNT(*) FROM people", {"unit": "pid", "max_rows": 1}, "COUNT(DISTINCT pid)",
     "SELECT COUNT(DISTINCT pid) FROM people", {"unit": "pid", "max_rows": 1}),
    (MissingBounds, "SELECT COUNT(*) FROM people", {"unit": "job", "keys": {}}, "max_rows=20",
     "SELECT COUNT(*) FROM people", {"unit": "job", "max_rows": 20, "keys": {}}),
    (MissingBounds, "SELECT COUNT(*) FROM people", {"unit": "job", "keys": {}}, "OPTIONS (max_rows_contributed = 20)",
     "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 20) COUNT(*) FROM people",
     {"unit": "job", "keys": {}}),
    (MissingBounds, "SELECT SUM(age) FROM people", {"bounds": {}, "auto_bounds": False}, 'bounds={"age": (0, 100)}',
     "SELECT SUM(age) FROM people", {"bounds": {"age": (0, 100)}}),
    (UnsupportedSQL, "SELECT job, (SELECT COUNT(*) FROM people x WHERE x.job = p.job) FROM people p GROUP BY job", {},
     "Ask by group, and join that", f"SELECT COUNT(*) FROM people p JOIN {COUNTS} q USING (job)", {}),
    (UnsupportedSQL,
     "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT job FROM people x WHERE x.age > p.age GROUP BY job)", {},
     "Ask by group, and join that", f"SELECT COUNT(*) FROM people p JOIN {COUNTS} q USING (job)", {}),
    (UnsupportedSQL, "SELECT pid, COUNT(*) FROM people GROUP BY pid", {"unit": "pid", "max_rows": 1},
     "SELECT AVG(CLAMP(n, 0, 20)) FROM (SELECT pid, COUNT(*) AS n FROM people GROUP BY pid)",
     "SELECT AVG(CLAMP(n, 0, 20)) FROM (SELECT pid, COUNT(*) AS n FROM people GROUP BY pid)",
     {"unit": "pid", "max_rows": 1}),
    (MissingBounds, "SELECT AVG(m) FROM (SELECT AVG(2.5 * r) OVER (PARTITION BY pid) AS m FROM people) q",
     {"unit": "pid", "max_rows": 1}, "AVG(CLAMP(2.5 * r, low, high)) OVER (...)",
     "SELECT AVG(m) FROM (SELECT AVG(CLAMP(2.5 * r, 0, 99)) OVER (PARTITION BY pid) AS m FROM people) q",
     {"unit": "pid", "max_rows": 1}),
    (UnsupportedSQL, "SELECT COUNT(*) FROM people WHERE CAST(born AS TIMESTAMPTZ) > at", {}, "CAST(x AS TIMESTAMP)",
     "SELECT COUNT(*) FROM people WHERE CAST(born AS TIMESTAMP) > at", {}),
    (UnsupportedSQL, f"SELECT PRINTF('%*d', n, n) AS b FROM {COUNTS} q", {}, "PRINTF('%s: %d', s, n)",
     f"SELECT PRINTF('%s: %d', job, n) AS b FROM {COUNTS} q", {}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "sql", "words", "advice", "typed", "typed_words"), ADVICE)
def test_advice_is_accepted_where_it_is_typed(
    kind: type[DPSQLError], sql: str, words: dict[str, Any], advice: str, typed: str, typed_words: dict[str, Any]
) -> None:
    with pytest.raises(kind) as refused:
        asked(sql, **words)
    assert advice in str(refused.value)
    assert len(asked(typed, **typed_words)) >= 1


CAUSES = [
    ("SELECT COUNT(*) INTO x FROM people", UnsupportedSQL, "INTO is not supported: an answer is returned, not stored."),
    (f"WITH a AS {COUNTS} SELECT * FROM a JOIN nosuch USING (job)", UnknownTable, 'no table "nosuch".'),
    (f"SELECT job FROM {COUNTS} q UNION SELECT job FROM nosuch", UnknownTable, "Tables: people."),
    ("SELECT job FROM nosuch UNION SELECT job FROM other", UnknownTable, 'no table "nosuch".'),
    (f"SELECT job, n, (SELECT COUNT(*) FROM people x WHERE x.job = q.job) FROM {COUNTS} q", UnsupportedSQL,
     "q.job is a column of the row that this sub-query stands beside"),
    ("SELECT AVG(job.a) FROM people", UnsupportedSQL, '"job" is a column, and its fields (job.a) are not read'),
    ("SELECT js->'a' AS a, COUNT(*) FROM people GROUP BY 1", UnsupportedSQL, "values inside JSON are not read"),
    ("SELECT COUNT(*) FROM people WHERE born > DATE '2024-13-01'", TypeMismatch, "this day or time does not exist"),
    ("SELECT SUM(age) FROM people WHERE age > :x", InvalidParameter, ":x"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "kind", "message"), CAUSES)
def test_messages_name_the_cause(sql: str, kind: type[DPSQLError], message: str) -> None:
    with pytest.raises(kind) as refused:
        asked(sql)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("eps", 1, "epsilon"),
        ("privacy_unit", "pid", "unit"),
        ("epsilonn", 1, "epsilon"),
        ("neighbors", "x", "neighbours"),
    ],
)
def test_other_names_of_arguments_are_told_apart(name: str, value: object, meant: str) -> None:
    for kind in (InvalidArgument, TypeError):
        with pytest.raises(kind, match=f'there is no argument "{name}". Did you mean "{meant}"'):
            dpsql.query(PEOPLE, "SELECT COUNT(*) FROM people", **{name: value})
    session = dpsql.Session({"people": PEOPLE}, budget=dpsql.Budget(1))
    with pytest.raises(InvalidArgument, match=f'there is no argument "{name}"'):
        session.query("SELECT COUNT(*) FROM people", **{name: value})
    with pytest.raises(InvalidArgument, match='"privacy_unit". Did you mean "unit"'):
        dpsql.Table(PEOPLE, privacy_unit="pid")


def test_a_table_of_a_schema_is_read_by_both_names() -> None:
    tables = {"s1.other": PEOPLE, "s2.other": PEOPLE.head(20)}
    for sql in ("SELECT COUNT(*) FROM s2.other", 'SELECT COUNT(*) FROM "s2.other"', "SELECT COUNT(*) FROM s2.other o"):
        assert dpsql.query(tables, sql, epsilon=1e6).df.iloc[0, 0] == 20
    over = "SELECT SUM(n) FROM (SELECT job, COUNT(*) AS n FROM s2.other GROUP BY job) q"
    assert dpsql.query(tables, over, epsilon=1e6, delta=1e-9).df.iloc[0, 0] == 20
    with pytest.raises(UnknownTable, match=r"Did you mean s1\.other\?"):
        dpsql.query(tables, "SELECT COUNT(*) FROM other", epsilon=1)


def test_a_false_uniqueness_is_only_advised_on_its_condition() -> None:
    country = pd.DataFrame({"cid": [1, 2], "country": ["Peru", "Chad"]})
    city = pd.DataFrame({"yid": range(6), "cid": [1, 2] * 3})
    tables = {
        "c": dpsql.Table(country, public=True, unique=["cid"]),
        "y": dpsql.Table(city, public=True, unique=["yid"]),
        "p": dpsql.Table(pd.DataFrame({"id": range(60), "yid": [k % 6 for k in range(60)]}), unit="id", unique=["id"]),
    }
    sql = "SELECT country, COUNT(*) AS n FROM c LEFT JOIN y ON c.cid = y.cid JOIN p ON y.yid = p.yid GROUP BY country"
    inner = dpsql.query(tables, sql.replace("LEFT JOIN", "JOIN"), epsilon=1e6).df
    assert dpsql.query(tables, sql, epsilon=1e6).df.to_numpy().tolist() == inner.to_numpy().tolist()
    tables["y"] = dpsql.Table(city, public=True)
    with pytest.raises(UnsupportedSQL, match="If each yid stands in one row of y, declare"):
        dpsql.query(tables, "SELECT COUNT(*) FROM p JOIN y ON p.yid = y.yid", epsilon=1e6)
    tables["y"] = dpsql.Table(city, public=True, max_matches={"yid": 3})
    assert dpsql.query(tables, "SELECT COUNT(*) FROM p JOIN y ON p.yid = y.yid", epsilon=1e6).df.iloc[0, 0] == 60


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("MAX(COLUMNS(*))", ["job", "n"]),
        ("MAX(COLUMNS(*)), MIN(COLUMNS(*))", ["job", "n", "job_1", "n_1"]),
        ("COLUMNS('n') + 1", ["n"]),
        ("SUM(COLUMNS('n')) AS s", ["s"]),
    ],
)
def test_columns_have_the_names_that_duckdb_gives_them(items: str, names: list[str]) -> None:
    assert list(asked(f"SELECT {items} FROM {COUNTS} q").columns) == names


PUBLIC_LISTS = (
    "UNNEST(GENERATE_ARRAY(1, 7)) AS u(k)",
    "UNNEST(GENERATE_ARRAY(1, 7)) AS k",
    "(SELECT UNNEST(GENERATE_ARRAY(1, 7)) AS k) u",
    "(SELECT k FROM UNNEST(GENERATE_ARRAY(1, 7)) AS k) u",
    "(SELECT * FROM (SELECT k FROM UNNEST(GENERATE_ARRAY(1, 7)) AS t(k)) v) u",
    "(SELECT k + 1 AS k FROM UNNEST(GENERATE_ARRAY(0, 6)) AS t(k)) u",
    "(SELECT k FROM (SELECT UNNEST(GENERATE_ARRAY(1, 9)) AS k) x WHERE k < 8) u",
    "(SELECT * FROM range(1, 8) AS t(k)) u",
    "(VALUES (1), (2), (3), (4), (5), (6), (7)) AS u(k)",
)


@pytest.mark.parametrize("listed", PUBLIC_LISTS)
def test_groups_of_an_outer_join_with_a_list_are_public(listed: str) -> None:
    frame = pd.DataFrame({"id": range(30), "n": [k % 5 for k in range(30)]})
    left = f"SELECT k, COUNT(p.id) AS c FROM {listed} LEFT JOIN people p ON p.n = k GROUP BY k ORDER BY k"
    right = f"SELECT k, COUNT(p.id) AS c FROM people p RIGHT JOIN {listed} ON p.n = k GROUP BY k ORDER BY k"
    common = f"WITH w AS (SELECT k FROM {listed}) SELECT k, COUNT(p.id) AS c FROM w LEFT JOIN people p ON p.n = k "
    for sql in (left, right, common + "GROUP BY k ORDER BY k"):
        shown = dpsql.query({"people": frame}, sql, epsilon=1e6).df
        assert shown.to_numpy().tolist() == [[k, 6 if k < 5 else 0] for k in range(1, 8)]


@pytest.mark.parametrize(
    "strategy", ["PUBLIC_GROUPS", "LAPLACE_THRESHOLD", "GAUSSIAN_THRESHOLD", "TRUNCATED_GEOMETRIC"]
)
@pytest.mark.parametrize("terms", ["", ", epsilon = 1e6, delta = 1e-6"])
def test_a_selection_strategy_without_groups_changes_nothing(strategy: str, terms: str) -> None:
    options = f"OPTIONS (group_selection_strategy = {strategy}{terms})"
    assert asked(f"SELECT WITH DIFFERENTIAL_PRIVACY {options} COUNT(*) AS n FROM people").iloc[0, 0] == 60


def test_group_by_nothing_is_one_group() -> None:
    assert asked("SELECT COUNT(*) AS n FROM people GROUP BY ()").iloc[0, 0] == 60
    with pytest.raises(RawColumn, match='"age" is outside an aggregate'):
        asked("SELECT age, COUNT(*) FROM people GROUP BY ()")
