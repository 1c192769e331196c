"""Queries over several tables against DuckDB: with limits that cut nothing and next to no noise both give one answer.

DPSQL_STREAM=20000 asks that many random queries instead of the default; DPSQL_STREAM_SEED=n begins at another seed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import (
    AmbiguousColumn,
    DPSQLError,
    MissingBounds,
    RawColumn,
    SQLSyntaxError,
    TypeMismatch,
    UnknownColumn,
    UnknownGroups,
    UnknownTable,
    UnsupportedSQL,
)
from tests.sql.join_queries import (
    BY_HOUSE,
    COLUMNS,
    GROUPED,
    MOST,
    PUBLIC,
    UNKNOWN,
    Joins,
    duck,
    one_row,
    queries,
    tables,
)
from tests.sql.oracle import Row, matched

STREAM = int(os.environ.get("DPSQL_STREAM", "300"))
FIRST_SEED = int(os.environ.get("DPSQL_STREAM_SEED", "0"))
PER_TEST = 50
LARGEST_EPSILON = 1e9
DELTA = 1e-9
NOISE = 0.06
"""Sums have noise of scale MOST * 100 / 1e9 or some times that, and what is added up lies on quarters."""


def ask(data: Mapping[str, dpsql.Table], sql: str, **options: Any) -> list[Row]:
    """The answer over the tables that the text names, and those that paths lead to."""
    named = {"customer", "orders", *re.findall(r"\w+", sql.lower())}
    read = {name: table for name, table in data.items() if len(data) < len(COLUMNS) or name in named}
    return list(dpsql.query(read, sql, epsilon=LARGEST_EPSILON, auto_bounds=False, **options))


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("sql", "theirs"), one_row())
def test_one_row(sql: str, theirs: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    expected = oracle.execute(theirs).fetchall()
    ours = ask(people, sql)
    assert matched(ours, expected, NOISE) == ([], []), f"{ours} is not {expected}"


def by_group(ours: list[Row], expected: list[Row], keys: int) -> None:
    """DuckDB's groups, and others whose count, behind the keys, is 0."""
    unmet, missing = matched(ours, expected, NOISE)
    assert not missing, f"{missing} are not in {ours}"
    assert all(row[keys] == 0 for row in unmet), f"{unmet} are not in {expected}"


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("keys", "shown", "sql"), queries(GROUPED))
def test_by_group(keys: str, shown: str, sql: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    ours = ask(people, sql)
    by_group(ours, oracle.execute(sql).fetchall(), int(keys))
    assert len(ours) == int(shown)


@pytest.mark.parametrize(("keys", "sql"), queries(UNKNOWN))
def test_groups_of_one_person_stay_hidden(
    keys: str, sql: str, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection
):
    expected = [row for row in oracle.execute(sql).fetchall() if row[int(keys)] > 1]
    ours = ask(people, sql, delta=DELTA)
    assert expected
    assert matched(ours, expected) == ([], [])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("first", range(0, STREAM, PER_TEST))
def test_random_queries(first: int, people: dict[str, dpsql.Table], oracle: duckdb.DuckDBPyConnection):
    asked = 0
    for seed in range(FIRST_SEED + first, FIRST_SEED + min(first + PER_TEST, STREAM)):
        query = Joins(seed).query()
        (size,) = oracle.execute(query.size).fetchone() or (0,)
        if size > MOST:
            continue
        expected = oracle.execute(query.sql).fetchall()
        try:
            by_group(ask(people, query.sql), expected, query.keys)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {query.sql}\n{error}") from error
        asked += 1
    assert asked > PER_TEST // 2


# The same rows in other dtypes, with their types declared.


def objects(data: pd.DataFrame) -> pd.DataFrame:
    """Cells as Python's objects."""
    stored = data.astype(object)
    return stored.where(stored.notna(), None)


def nullable(data: pd.DataFrame) -> pd.DataFrame:
    """pandas' own nullable dtypes."""
    return data.convert_dtypes()


def categorical(data: pd.DataFrame) -> pd.DataFrame:
    """Categories, in no order and some never used where they are texts."""
    stored = data.astype("category")
    for name in stored.columns[[each.categories.dtype == "str" for each in stored.dtypes]]:
        listed = ["never", *stored[name].cat.categories[::-1]]
        stored[name] = stored[name].cat.set_categories(listed)
    return stored


def narrow(data: pd.DataFrame) -> pd.DataFrame:
    """Small numbers, and times in seconds."""
    small = {"int64": "int16", "Int64": "Int32", "float64": "float32", "datetime64[us]": "datetime64[s]"}
    return data.astype({name: small.get(str(dtype), dtype) for name, dtype in data.dtypes.items()})


def arrow(data: pd.DataFrame) -> pd.DataFrame:
    """Arrow's dtypes, dates as dates."""
    pa = pytest.importorskip("pyarrow")
    kinds = {name: kind for columns in COLUMNS.values() for name, kind in columns.items()}
    days = {name: pd.ArrowDtype(pa.date32()) for name in data.columns if kinds[name] == "DATE"}
    return data.convert_dtypes(dtype_backend="pyarrow").astype(days)


STORED: list[Callable[[pd.DataFrame], pd.DataFrame]] = [objects, nullable, categorical, narrow, arrow]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("number", range(len(STORED)))
def test_other_dtypes_give_the_same_answers(number: int, oracle: duckdb.DuckDBPyConnection):
    data = tables(STORED[number])
    for sql, theirs in one_row()[number :: len(STORED) + 2]:
        expected = oracle.execute(theirs).fetchall()
        assert matched(ask(data, sql), expected, NOISE) == ([], []), sql
    for keys, _, sql in queries(GROUPED)[number::3]:
        by_group(ask(data, sql), oracle.execute(sql).fetchall(), int(keys))


# Tables without rows.


def zeros(answer: list[Row]) -> list[Row]:
    """SUM over no rows is 0, and NULL in DuckDB."""
    return [tuple(0 if cell is None else cell for cell in row) for row in answer]


NONE = {"people": set(COLUMNS) - set(PUBLIC), "public": set(PUBLIC), "all": set(COLUMNS)}


@pytest.mark.thinned(2)
@pytest.mark.parametrize(("number", "without"), list(enumerate(NONE)))
def test_tables_without_rows(number: int, without: str):
    data, oracle = tables(without=NONE[without]), duck(without=NONE[without])
    answered = 0
    for sql, theirs in one_row()[number::4]:
        with suppress(MissingBounds):  # of a public table without rows, which says none
            ours = ask(data, sql)
            assert matched(zeros(ours), zeros(oracle.execute(theirs).fetchall()), NOISE) == ([], []), sql
            answered += 1
    assert answered > 80


def test_people_without_rows_are_in_no_group(people: dict[str, dpsql.Table]):
    data = tables(without=NONE["people"])
    for keys, _, sql in queries(GROUPED)[::2]:
        if "HAVING" not in sql and "FROM nation GROUP" not in sql:
            ours = ask(data, sql)
            assert [row[: int(keys)] for row in ours] == [row[: int(keys)] for row in ask(people, sql)], sql
            assert all(row[int(keys)] == 0 for row in ours), sql


# Other units: the house of a customer, and each row.


def test_units_at_the_end_of_longer_paths():
    data, oracle = tables(by="house"), duck(by="house")
    for sql, *_ in queries(BY_HOUSE):
        expected = oracle.execute(sql).fetchall()
        assert matched(ask(data, sql), expected, NOISE) == ([], []), sql


def test_rows_as_units_and_public_tables():
    data, oracle = tables(by="row"), duck(by="row")
    private = set(COLUMNS) - set(PUBLIC)
    asked = 0
    for sql, theirs in one_row():
        read = [word for word in re.findall(r"\w+", sql.lower()) if word in private]
        if len(read) == 1 and not re.search("DISTINCT|GROUP BY|WITH", sql):
            expected = oracle.execute(theirs).fetchall()
            assert matched(zeros(ask(data, sql)), zeros(expected), NOISE) == ([], []), sql
            asked += 1
    assert asked > 100


# What the oracle cannot say.


def test_bounds_clip_the_keys_of_a_join():
    data = {
        "t": dpsql.Table(
            pd.DataFrame({"pid": [1, 2, 3], "k": [0, 2, 9]}), unit="pid", max_rows=1, bounds={"k": (1, 3)}
        ),
        "p": dpsql.Table(pd.DataFrame({"key": [0, 1, 2, 3], "w": [10, 1, 2, 3]}), public=True, unique=["key"]),
    }
    assert ask(data, "SELECT COUNT(*), SUM(w) FROM t JOIN p ON k = key") == [(3, 6)]
    assert ask(data, "SELECT COUNT(*) FROM t WHERE k IN (SELECT key FROM p WHERE w = 3)") == [(1,)]
    assert ask(data, "SELECT w, COUNT(*) FROM t JOIN p ON k = key GROUP BY w") == [(1, 1), (2, 1), (3, 1), (10, 0)]


def test_numbers_of_different_types_are_equal_where_they_are_the_same_number():
    keys = [2**53, 2**53 + 1, -1, 0, 7, None]
    reals = [2.0**53, -1.0, -0.0, 7.5, np.nan, np.inf]
    data = {
        "t": dpsql.Table(pd.DataFrame({"pid": pd.array(keys, dtype="Int64")}), unit="pid", max_rows=1),
        "r": dpsql.Table(pd.DataFrame({"pid": reals}), unit="pid", max_rows=1),
        "p": dpsql.Table(pd.DataFrame({"key": reals}), public=True, unique=["key"]),
    }
    assert ask(data, "SELECT COUNT(*) FROM t JOIN p ON pid = key") == [(3,)]
    assert ask(data, "SELECT COUNT(*) FROM t JOIN r ON t.pid = r.pid") == [(3,)]
    assert ask(data, "SELECT COUNT(*) FROM t WHERE pid IN (SELECT pid FROM r)") == [(3,)]


def test_null_is_in_no_list_of_people_even_an_empty_one(people: dict[str, dpsql.Table]):
    """In SQL NULL NOT IN (nothing) is true: but whether other people are in the list must not decide."""
    joined = "SELECT COUNT(*) FROM customer LEFT JOIN orders ON c_custkey = o_custkey"
    ((found,),) = ask(people, f"{joined} WHERE o_custkey IS NOT NULL")
    assert ask(people, f"{joined} WHERE o_custkey NOT IN (SELECT x_custkey FROM nobody)") == [(found,)]
    assert ask(people, f"{joined} WHERE c_custkey NOT IN (SELECT x_custkey FROM nobody)") == ask(people, joined)


def test_a_limit_holds_for_joined_rows():
    data = {
        "a": dpsql.Table(pd.DataFrame({"pid": [1] * 9 + [2], "x": range(10)}), unit="pid", max_rows=4),
        "b": dpsql.Table(pd.DataFrame({"pid": [1, 1, 1, 2]}), unit="pid", max_rows=2),
    }
    assert ask(data, "SELECT COUNT(*) FROM a") == [(5,)]
    assert ask(data, "SELECT COUNT(*) FROM a JOIN b ON a.pid = b.pid") == [(5,)]
    assert ask(data, "SELECT COUNT(*) FROM (SELECT pid FROM b UNION ALL SELECT pid FROM b)") == [(4,)]
    assert ask(data, "SELECT SUM(CLAMP(n, 0, 99)) FROM (SELECT pid, COUNT(*) AS n FROM a GROUP BY pid)") == [(10,)]


def test_the_largest_limit_is_enough_where_one_table_has_none():
    data = {
        "a": dpsql.Table(pd.DataFrame({"pid": [1, 1, 2]}), unit="pid"),
        "b": dpsql.Table(pd.DataFrame({"pid": [1, 2]}), unit="pid", max_rows=5),
    }
    assert ask(data, "SELECT COUNT(*) FROM a JOIN b ON a.pid = b.pid") == [(3,)]
    assert ask(data, "SELECT COUNT(DISTINCT pid) FROM a") == [(2,)]
    with pytest.raises(MissingBounds, match="max_rows"):
        ask(data, "SELECT COUNT(*) FROM a JOIN a AS c ON a.pid = c.pid")


# Refused: the class, words of the message (what to write instead, mostly), the query.

REFUSED: list[tuple[type[DPSQLError], str, str]] = [
    # Rows of different people.
    (UnsupportedSQL, "orders.o_custkey = customer.c_custkey", "orders JOIN customer ON o_total = c_nation"),
    (UnsupportedSQL, "orders.o_custkey = customer.c_custkey", "orders, customer"),
    (UnsupportedSQL, "orders.o_custkey = customer.c_custkey", "orders CROSS JOIN customer"),
    (UnsupportedSQL, "customer.c_custkey = orders.o_custkey", "customer JOIN orders"),
    (UnsupportedSQL, "orders.o_custkey = customer.c_custkey", "orders JOIN customer ON o_custkey > c_custkey"),
    (UnsupportedSQL, "orders.o_custkey = customer.c_custkey", "orders JOIN customer ON o_custkey + 1 = c_custkey"),
    (UnsupportedSQL, "orders.o_custkey = customer.c_custkey", "orders, customer WHERE o_custkey = c_custkey OR c_vip"),
    (UnsupportedSQL, "customer.c_custkey = visits.v_custkey", "customer, visits WHERE c_custkey = 3 AND v_custkey = 3"),
    (UnsupportedSQL, "a.o_custkey = b.o_custkey", "orders a, orders b WHERE a.o_date = b.o_date"),
    (UnsupportedSQL, "orders.o_orderkey = items.i_orderkey", "orders JOIN items ON o_code = i_code"),
    (UnsupportedSQL, "items.i_orderkey = orders.o_orderkey", "items JOIN visits ON i_code = v_code"),
    (UnsupportedSQL, "a.i_orderkey = b.i_orderkey", "items a JOIN items b ON a.i_prod = b.i_prod"),
    (UnsupportedSQL, "items.i_orderkey = orders.o_orderkey", "customer JOIN items ON c_custkey = i_orderkey"),
    (UnsupportedSQL, "items.i_orderkey = orders.o_orderkey", "customer, orders, items WHERE c_custkey = o_custkey"),
    (UnsupportedSQL, "customer.c_custkey = orders.o_custkey", "customer LEFT JOIN orders ON c_nation = o_year"),
    (UnsupportedSQL, "would bring rows of different people together", "customer JOIN logins ON c_name = who"),
    (UnsupportedSQL, "o_custkey = visits.v_custkey", "orders WHERE o_total IN (SELECT v_spent FROM visits)"),
    (UnsupportedSQL, "o_custkey = visits.v_custkey", "orders WHERE EXISTS (SELECT 1 FROM visits)"),
    (UnsupportedSQL, "o_custkey = visits.v_custkey", "orders WHERE EXISTS (SELECT 1 FROM visits WHERE v_day = o_date)"),
    (UnsupportedSQL, "nothing says which of them", "nation WHERE n_key IN (SELECT c_nation FROM customer)"),
    (UnsupportedSQL, "nothing says which", "nation WHERE EXISTS (SELECT 1 FROM customer WHERE c_nation = n_key)"),
    # Joins that multiply, and kinds of joins.
    (UnsupportedSQL, 'unique=["g_code"] on it', "orders JOIN gaps ON o_code = g_code"),
    (UnsupportedSQL, 'max_matches={"g_code": 3}', "orders LEFT JOIN gaps ON o_code = g_code"),
    (UnsupportedSQL, "rates", "customer JOIN rates ON c_nation = r_nation"),
    (UnsupportedSQL, "prod that is declared unique", "items JOIN prod ON i_prod = p_id + 1"),
    (UnsupportedSQL, "days that is declared unique", "visits, days WHERE v_at = d_day"),
    (UnsupportedSQL, "conditions on one side", "customer LEFT JOIN nation ON c_nation < n_key"),
    (UnsupportedSQL, "conditions on one side", "customer LEFT JOIN nation ON c_nation = n_key AND c_balance > n_key"),
    (SQLSyntaxError, "ON a.key = b.key", "customer LEFT JOIN nation"),
    (SQLSyntaxError, "CROSS JOIN has no ON", "customer CROSS JOIN nation ON c_nation = n_key"),
    (UnsupportedSQL, "depends on everybody", "customer FULL JOIN nation ON c_nation = n_key"),
    (UnsupportedSQL, "depends on everybody", "nation FULL OUTER JOIN customer ON c_nation = n_key"),
    (UnsupportedSQL, "customer.c_custkey = orders.o_custkey", "customer FULL JOIN orders ON c_nation = o_year"),
    (
        UnsupportedSQL,
        "conditions on one side",
        "customer FULL JOIN visits ON c_custkey = v_custkey AND c_since < v_day",
    ),
    (SQLSyntaxError, "ON a.key = b.key", "customer FULL JOIN orders"),
    (
        UnsupportedSQL,
        "could multiply rows",  # a left row that ON leaves without a match has the key of a right one
        (
            "customer JOIN (SELECT COALESCE(n_key, k) AS u FROM nation FULL JOIN (SELECT DISTINCT r_nation AS k FROM "
            "rates) b ON n_key = k AND n_big) q ON c_nation = u"
        ),
    ),
    (
        UnsupportedSQL,
        "could multiply rows",  # a right row stands beside each left one that it matches
        (
            "customer JOIN (SELECT k AS u FROM rates FULL JOIN (SELECT n_key AS k FROM nation) b ON r_nation = k) q ON "
            "c_nation = u"
        ),
    ),
    (
        UnsupportedSQL,
        "different people",
        "customer c FULL JOIN notes n USING (c_custkey) JOIN orders ON o_custkey = COALESCE(n.stars, c.c_nation)",
    ),
    (
        UnsupportedSQL,
        "FULL JOINs",
        " FULL JOIN ".join(["notes", *(f"notes AS n{k} USING (c_custkey)" for k in range(4))]),
    ),
    (
        UnsupportedSQL,
        "visits.v_custkey = notes.c_custkey",
        "visits, notes FULL JOIN orders ON v_custkey = o_custkey WHERE c_custkey = v_custkey",
    ),
    (UnsupportedSQL, "NATURAL JOIN is not supported", "customer NATURAL JOIN notes"),
    (UnsupportedSQL, "SEMI JOIN wants an ON", "customer SEMI JOIN orders"),
    (
        UnsupportedSQL,
        "ANTI JOIN b ON a.key = b.key, or NOT EXISTS (SELECT",
        "orders ANTI JOIN customer ON EXISTS (SELECT 1)",
    ),
    (AmbiguousColumn, "both sides of ANTI JOIN", "customer ANTI JOIN customer AS c ON c_custkey = c.c_custkey"),
    (UnsupportedSQL, "ASOF JOIN is not supported", "customer ASOF JOIN orders ON c_custkey = o_custkey"),
    (UnsupportedSQL, "POSITIONAL JOIN is not supported", "customer POSITIONAL JOIN orders"),
    (UnsupportedSQL, "LATERAL", "customer, LATERAL (SELECT * FROM orders WHERE o_custkey = c_custkey) AS o"),
    (UnknownColumn, '"c_custkey"', "customer, (SELECT * FROM orders WHERE o_custkey = c_custkey) AS o"),
    (UnsupportedSQL, "keeps public rows", "nation LEFT JOIN customer ON c_nation = n_key AND n_key > 1"),
    (UnsupportedSQL, "keeps public rows", "customer RIGHT JOIN nation ON TRUE"),
    (UnsupportedSQL, "no match", "nation LEFT JOIN customer ON c_nation = n_key WHERE c_custkey IS NULL"),
    (
        UnsupportedSQL,
        "WHERE",
        "orders JOIN customer ON o_custkey = c_custkey AND c_nation IN (SELECT n_key FROM nation)",
    ),
    (SQLSyntaxError, "USING names no column", "customer JOIN orders USING ()"),
    (SQLSyntaxError, "an aggregate cannot stand", "customer JOIN orders ON COUNT(*) = 1"),
    (TypeMismatch, "ON wants a condition", "orders JOIN customer ON o_custkey"),
    (TypeMismatch, "orders.o_custkey (integer), customer.c_name (text)", "orders JOIN customer ON o_custkey = c_name"),
    (TypeMismatch, "CAST(... AS DATE)", "orders JOIN days ON o_code = d_day"),
    (TypeMismatch, "o_code (text), n_key (integer)", "orders WHERE o_code IN (SELECT n_key FROM nation)"),
    # Names.
    (UnknownTable, "which reads o and c", "orders o JOIN customer c ON o.o_custkey = cc.c_custkey"),
    (UnknownTable, "which reads o and c", "orders o JOIN customer c ON orders.o_custkey = c.c_custkey"),
    (UnknownTable, 'Did you mean "customer"?', "orders o JOIN customers c ON o.o_custkey = c.c_custkey"),
    (UnknownColumn, 'Did you mean "c_custkey"?', "orders o JOIN customer c ON o.o_custkey = c.custkey"),
    (UnknownColumn, '"c_custkey" in orders', "customer JOIN orders USING (c_custkey)"),
    (AmbiguousColumn, "a.c_custkey or b.c_custkey", "customer a JOIN notes b ON c_custkey = b.c_custkey"),
    (AmbiguousColumn, "a.c_city or b.c_city", "customer a JOIN notes b USING (c_custkey) WHERE c_city = 'Ada'"),
    (AmbiguousColumn, 'named "c_custkey"', "customer JOIN customer ON c_custkey = c_custkey"),
    (AmbiguousColumn, "an alias", "customer a JOIN customer a ON a.c_custkey = a.c_custkey"),
    (
        AmbiguousColumn,
        "Name them apart with AS",
        "(SELECT * FROM customer a JOIN notes b ON a.c_custkey = b.c_custkey) q WHERE c_custkey > 3",
    ),
    # Unions.
    (UnsupportedSQL, "UNION ALL", "(SELECT o_custkey FROM orders UNION SELECT c_custkey FROM customer)"),
    (UnsupportedSQL, "INTERSECT", "(SELECT o_custkey FROM orders INTERSECT SELECT c_custkey FROM customer)"),
    (UnsupportedSQL, "EXCEPT", "(SELECT o_custkey FROM orders EXCEPT SELECT c_custkey FROM customer)"),
    (UnsupportedSQL, "BY NAME", "(SELECT * FROM orders UNION ALL BY NAME SELECT c_custkey FROM customer)"),
    (
        SQLSyntaxError,
        "2 and 1 columns",
        "(SELECT o_custkey, o_year FROM orders UNION ALL SELECT c_custkey FROM customer)",
    ),
    (TypeMismatch, '"o_code"', "(SELECT o_custkey, o_code FROM orders UNION ALL SELECT c_custkey, 1 FROM customer)"),
    (TypeMismatch, "date and timestamp", "(SELECT v_day FROM visits UNION ALL SELECT v_at FROM visits)"),
    (TypeMismatch, "one type", "(SELECT o_total FROM orders UNION ALL SELECT l_cost FROM letters)"),
    (TypeMismatch, "one type", "(SELECT o_total FROM orders UNION ALL SELECT seconds FROM logins)"),
    (UnsupportedSQL, "nation is public", "(SELECT o_custkey FROM orders UNION ALL SELECT n_key FROM nation)"),
    # Sub-queries.
    (UnsupportedSQL, "beside", "customer WHERE c_nation = (SELECT MAX(n_key) FROM nation WHERE n_big = c_vip)"),
    (UnsupportedSQL, "one aggregate", "orders WHERE o_code = (SELECT t_code FROM tags WHERE t_weight = 3)"),
    (
        UnsupportedSQL,
        "c_custkey is a column of the row",
        "customer WHERE 2 < (SELECT COUNT(*) FROM orders WHERE o_custkey = c_custkey)",
    ),
    (UnsupportedSQL, "one aggregate", "customer WHERE c_custkey IN (1, (SELECT n_key FROM nation))"),
    (UnsupportedSQL, "IN (...)", "orders WHERE o_custkey = ANY (SELECT c_custkey FROM customer)"),
    (SQLSyntaxError, "1 values with 2 columns", "orders WHERE o_year IN (SELECT r_year, r_nation FROM rates)"),
    (SQLSyntaxError, "1 values with 3 columns", "orders WHERE o_year IN (SELECT * FROM rates)"),
    (UnsupportedSQL, "LIMIT", "customer WHERE c_nation IN (SELECT n_key FROM nation ORDER BY n_key LIMIT 3)"),
    (UnsupportedSQL, "one SELECT", "customer WHERE c_nation IN (SELECT 1 FROM nation UNION ALL SELECT 2 FROM nation)"),
    (UnsupportedSQL, "is not stable", "(SELECT * FROM orders LIMIT 10) o JOIN customer ON o_custkey = c_custkey"),
    (UnsupportedSQL, "is not stable", "(SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey LIMIT 3)"),
    (SQLSyntaxError, "GROUP BY: o_total", "(SELECT o_custkey, o_total FROM orders GROUP BY o_custkey)"),
    (TypeMismatch, '"o_code" is text', "(SELECT o_custkey, SUM(o_code) AS n FROM orders GROUP BY o_custkey)"),
]

REFUSED_WHOLE: list[tuple[type[DPSQLError], str, str]] = [
    (UnsupportedSQL, "AVG(CLAMP(n", "SELECT o_custkey, COUNT(*) FROM orders GROUP BY o_custkey"),
    (UnsupportedSQL, "each person first", "SELECT o_custkey, o_prio, COUNT(*) FROM orders GROUP BY 1, 2"),
    (UnsupportedSQL, "each person first", "SELECT o_orderkey, COUNT(*) FROM orders GROUP BY o_orderkey"),
    (UnsupportedSQL, "each person first", "SELECT i_orderkey, SUM(i_qty) FROM items GROUP BY i_orderkey"),
    (UnsupportedSQL, "each person first", "SELECT DISTINCT o_custkey FROM orders"),
    (
        UnsupportedSQL,
        "each person first",
        "SELECT c_custkey, COUNT(*) FROM customer JOIN orders ON c_custkey = o_custkey GROUP BY c_custkey",
    ),
    (
        MissingBounds,
        "AVG(CLAMP(n, 0, 100))",
        "SELECT AVG(n) FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey)",
    ),
    (
        UnknownGroups,
        "n BETWEEN 0 AND 20",
        "SELECT n, COUNT(*) FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey) GROUP BY n",
    ),
    (
        UnknownGroups,
        'keys={"c_name": [...]}',
        "SELECT c_name, COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey GROUP BY c_name",
    ),
    (RawColumn, "COUNT(*)", "SELECT * FROM orders JOIN customer ON o_custkey = c_custkey"),
    (RawColumn, "o.*", "SELECT o.* FROM orders o JOIN customer ON o_custkey = c_custkey"),
    (
        RawColumn,
        "GROUP BY customer.c_name",
        "SELECT c_name, COUNT(*) FROM orders JOIN customer ON o_custkey = c_custkey GROUP BY c_city",
    ),
    (TypeMismatch, "customer.c_name", "SELECT SUM(c_name) FROM orders JOIN customer ON o_custkey = c_custkey"),
    (
        SQLSyntaxError,
        'named "a"',
        "WITH a AS (SELECT * FROM orders), a AS (SELECT * FROM notes) SELECT COUNT(*) FROM a",
    ),
    (UnknownTable, '"b"', "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM customer) SELECT COUNT(*) FROM a"),
    (
        UnsupportedSQL,
        "recursive",
        "WITH RECURSIVE a AS (SELECT o_custkey FROM orders UNION ALL SELECT o_custkey FROM a) SELECT COUNT(*) FROM a",
    ),
]


@pytest.fixture(scope="module")
def sessions() -> list[dpsql.Session]:
    """The tables, and the same without the rows of people."""
    data = [tables(), tables(without=NONE["people"])]
    return [dpsql.Session(each, budget=dpsql.Budget(epsilon=100)) for each in data]


@pytest.mark.parametrize(
    ("kind", "words", "sql"),
    [*((kind, words, f"SELECT COUNT(*) FROM {sql}") for kind, words, sql in REFUSED), *REFUSED_WHOLE],
)
def test_refusals(kind: type[DPSQLError], words: str, sql: str, sessions: list[dpsql.Session]):
    texts = []
    for session in sessions:
        before = session.spent
        with pytest.raises(DPSQLError) as caught:
            session.query(sql, epsilon=0.5)
        assert type(caught.value) is kind, caught.value
        assert session.spent == before
        texts.append(str(caught.value))
    assert words in texts[0]
    assert texts[0] == texts[1]


def test_a_missing_limit_says_what_to_write():
    frame = pd.DataFrame({"pid": [1, 2], "x": [1, 2]})
    for data in (frame, frame.iloc[:0]):
        session = dpsql.Session({"t": dpsql.Table(data, unit="pid")}, budget=dpsql.Budget(epsilon=1))
        with pytest.raises(MissingBounds, match="max_rows=20") as caught:
            session.query("SELECT COUNT(*) FROM t", epsilon=0.5)
        assert "max_rows_contributed = 20" in str(caught.value)
        assert not session.ledger()


def test_tables_of_row_units_are_not_joined():
    frame = pd.DataFrame({"pid": [1, 2]})
    session = dpsql.Session({"a": frame, "b": frame}, budget=dpsql.Budget(epsilon=1))
    for sql in (
        "SELECT COUNT(*) FROM a JOIN b ON a.pid = b.pid",
        "SELECT COUNT(*) FROM a, b",
        "SELECT COUNT(*) FROM a WHERE pid IN (SELECT pid FROM b)",
        "SELECT COUNT(*) FROM a LEFT JOIN b ON a.pid = b.pid",
    ):
        with pytest.raises(UnsupportedSQL, match='unit="person_id"'):
            session.query(sql, epsilon=0.5)
    assert not session.ledger()
