"""Conditions on people's rows that look in an answer, texts and lists made of answers, functions and parameters of
other engines: compared with DuckDB."""

from __future__ import annotations

import json
import math
import random
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError, UnsupportedSQL
from tests.sql.oracle import matched

_RANDOM = random.Random(5)
_ROWS = 300
PEOPLE = pd.DataFrame(
    {
        "age": [20 + k % 60 for k in range(_ROWS)],
        "job": [_RANDOM.choice("abc") for _ in range(_ROWS)],
        "n": [_RANDOM.randint(0, 9) for _ in range(_ROWS)],
        "at": [datetime(2024, 1, 1) + timedelta(hours=31 * k) for k in range(_ROWS)],
    }
).astype({"at": "datetime64[us]"})
DECLARED: dict[str, Any] = {"bounds": {"age": (20, 79), "n": (0, 9)}, "keys": {"job": ["a", "b", "c"]}}
COUNTS = "(SELECT job, COUNT(*) AS n FROM people GROUP BY job)"
AGES = "(SELECT age AS k, COUNT(*) AS n FROM people GROUP BY age)"


def asked(sql: str, **words: Any) -> list[tuple[Any, ...]]:
    frame = dpsql.query({"people": PEOPLE}, sql, epsilon=1e9, **DECLARED, **words).df
    return [tuple(None if pd.isna(cell) else cell for cell in row) for row in frame.to_numpy(object)]


def expected(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("people", PEOPLE)
        return connection.sql(sql).fetchall()


CONDITIONS = (
    "(job, age) IN (SELECT job, 30 FROM {counts} q WHERE n > 90)",
    "(job, n) IN (SELECT job, n // 30 FROM {counts} q)",
    "age > 60 OR (job, age) IN (SELECT job, 30 FROM {counts} q)",
    *(f"age {sign} {word} (SELECT AVG(age) + 0.01 FROM people GROUP BY job)"
      for sign in ("<", "<=", ">", ">=") for word in ("ALL", "ANY")),
    "NOT age > ALL (SELECT AVG(age) FROM people GROUP BY job)",
    "age > ALL (SELECT n FROM {counts} q WHERE n > 1000)",
    "age > ANY (SELECT n FROM {counts} q WHERE n > 1000)",
    "n * 11 = ANY (SELECT n FROM {counts} q)",
    "n * 11 <> ALL (SELECT n FROM {counts} q)",
    "EXISTS (SELECT 1 FROM {counts} q WHERE n > 90 AND q.job = p.job)",
    "NOT EXISTS (SELECT 1 FROM {counts} q WHERE n > 90 AND q.job = p.job)",
    "EXISTS (SELECT 1 FROM {counts} q WHERE q.n > p.age * 2 AND q.job = p.job)",
    "EXISTS (SELECT 1 FROM {counts} q WHERE n > 90)",
    "MAKE_TIMESTAMP(2024, n + 1, 1, 0, 0, 0) > p.at",
    "MAKE_TIMESTAMP(2024, n + 1, 1, 0, 30, 1.5) > p.at",
)  # fmt: skip


@pytest.mark.parametrize("condition", CONDITIONS)
def test_rows_are_compared_with_an_answer(condition: str) -> None:
    sql = f"SELECT COUNT(*) FROM people p WHERE {condition.format(counts=COUNTS)}"
    assert matched(asked(sql), expected(sql), 1e-3) == ([], [])


def test_a_list_is_null_or_false_by_where_it_stands() -> None:
    inside = f"(job, age) IN (SELECT job, 30 FROM {COUNTS} q WHERE n > 90)"
    for condition in (f"NOT {inside}", f"{inside} OR NOT ({inside})", f"({inside}) IS NULL"):
        with pytest.raises(UnsupportedSQL, match="IN of several columns"):
            asked(f"SELECT COUNT(*) FROM people WHERE {condition}")


def test_quantifiers_pay_for_their_query_once() -> None:
    session = dpsql.Session({"people": dpsql.Table(PEOPLE, **DECLARED)}, budget=dpsql.Budget(10))
    session.query("SELECT COUNT(*) FROM people WHERE age > ALL (SELECT AVG(age) FROM people GROUP BY job)", epsilon=1)
    assert session.spent.epsilon == pytest.approx(1)


SHOWN = (
    f"SELECT job, BAR(n, 0, 200, 20) AS b FROM {COUNTS} q",
    "SELECT job, BAR(COUNT(*), 0, 200) AS b, COUNT(*) AS n FROM people GROUP BY job",
    f"SELECT job, PRINTF('%s has %5d (%%)', job, n) AS b FROM {COUNTS} q",
    "SELECT job, PRINTF('%d people', COUNT(*)) AS b FROM people GROUP BY job",
    f"SELECT job, FORMAT('{{:>8}} {{}}', job, n) AS b FROM {COUNTS} q",
    f"SELECT LIST_SUM(LIST_TRANSFORM(LIST(n), lambda x: x * 2 + 1)) AS s FROM {AGES} q",
    "SELECT MEAN(age) AS m, job FROM people GROUP BY job",
    "SELECT AVG(SIN(age)) AS s, AVG(COS(age)) AS c FROM people",
    "SELECT AVG(LENGTH(CAST(age AS TEXT))) AS a, SUM(LENGTH(n::VARCHAR)) AS s FROM people",
)


@pytest.mark.parametrize("sql", SHOWN)
def test_texts_and_numbers_are_duckdbs(sql: str) -> None:
    assert matched(asked(sql), expected(sql), 1e-3) == ([], [])


def test_a_place_of_a_number_takes_any_number() -> None:
    assert asked(f"SELECT PRINTF('%.1f', n) AS b FROM {COUNTS} q WHERE job = 'a'") == [
        (f"{(PEOPLE.job == 'a').sum():.1f}",)
    ]
    assert asked(f"SELECT PRINTF('%d', job) AS b FROM {COUNTS} q WHERE job = 'a'") == [(None,)]


NESTED = (
    f"SELECT LIST(n ORDER BY n) AS l FROM {COUNTS} q",
    f"SELECT ARRAY_AGG(job ORDER BY job) AS l FROM {COUNTS} q",
    f"SELECT {{'a': n, 'b': [job, NULL]}} AS l FROM {COUNTS} q ORDER BY job",
    f"SELECT [n * 1.5, n / 0] AS l FROM {COUNTS} q ORDER BY job",
    f"SELECT HISTOGRAM(n // 50) AS l FROM {COUNTS} q",
    f"SELECT LIST_TRANSFORM(LIST(n ORDER BY k), lambda x: x + 1) AS l FROM {AGES} q",
)


def _nearly(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return all(_nearly(ours[str(key)], value) for key, value in theirs.items()) and len(ours) == len(theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_nearly, ours, theirs))
    if theirs is None or (not isinstance(theirs, str) and not math.isfinite(theirs)):
        return ours is None
    return ours == theirs if isinstance(theirs, str) else math.isclose(ours, float(theirs), abs_tol=1e-3)


@pytest.mark.parametrize("sql", NESTED)
def test_lists_structures_and_maps_are_shown_as_json(sql: str) -> None:
    ours, theirs = asked(sql), expected(sql)
    assert len(ours) == len(theirs)
    assert all(_nearly(json.loads(one), other) for (one,), (other,) in zip(ours, theirs, strict=True))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("FORMAT('{:>100000000}', n)", "constant format with simple places"),
        ("PRINTF('%*d', n, n)", "constant format with simple places"),
        ("PRINTF('%100000000d', n)", "constant format with simple places"),
        ("PRINTF(job, n)", "constant format with simple places"),
        ("PRINTF('%d', job, n)", "PRINTF has 1 places and 2 values"),
        ("FORMAT('{1} {0}', job, n)", "takes its values in their order"),
        ("BAR(n, 0, 10, n)", "BAR takes a constant width"),
        ("BAR(n, 0, 10, 100000)", "BAR takes a constant width"),
        ("LIST_TRANSFORM(LIST(n), lambda x: REPEAT('a', x))", "REPEAT makes texts of a constant size"),
    ],
)
def test_texts_whose_size_or_failure_only_values_decide_are_refused(call: str, message: str) -> None:
    with pytest.raises(UnsupportedSQL, match=message):
        asked(f"SELECT {call} AS b FROM {COUNTS} q" + (" GROUP BY job" if "LIST" in call else ""))


@pytest.mark.parametrize("sign", ["$", ":"])
def test_parameters_have_a_colon_or_a_dollar_sign(sign: str) -> None:
    words = {"lo": 30, "hi": 50}
    asked_for = f"age BETWEEN {sign}lo AND {sign}hi"
    exact = expected("SELECT COUNT(*) FROM people WHERE age BETWEEN 30 AND 50")
    assert asked(f"SELECT COUNT(*) FROM people WHERE {asked_for}", params=words) == exact
    over = f"SELECT SUM(n) FROM (SELECT job, COUNT(*) AS n FROM people WHERE {asked_for} GROUP BY job) q"
    assert asked(over, params=words)[0][0] == exact[0][0]
    unbounded = f"SELECT AVG(CLAMP(age, {sign}lo, {sign}hi)) AS a FROM people"
    answer = dpsql.query({"people": PEOPLE}, unbounded, epsilon=1e9, params=words).df
    assert abs(answer["a"][0] - PEOPLE.age.clip(30, 50).mean()) < 1e-3


def test_iqr_is_the_third_quartile_less_the_first() -> None:
    (found,), (exact,) = (
        asked("SELECT IQR(age) AS i FROM people")[0],
        expected("SELECT QUANTILE_CONT(age, 0.75) - QUANTILE_CONT(age, 0.25) FROM people")[0],
    )
    assert abs(found - exact) <= 2


def test_query_takes_nullable() -> None:
    grouped = "SELECT age // 10 AS d, COUNT(*) AS n FROM people GROUP BY d"
    frame = PEOPLE.astype({"age": "Int64"})
    known = {"bounds": {"age": (20, 79)}}
    both = [
        dpsql.query({"people": frame}, grouped, epsilon=1e9, nullable={"age": held}, **known).df
        for held in (True, False)
    ]
    assert [len(each) for each in both] == [7, 6]


def test_a_list_that_names_no_table_is_refused_by_its_own_names() -> None:
    with pytest.raises(DPSQLError, match='no column "nope" in q'):
        asked(f"SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM {COUNTS} q WHERE q.nope = p.job)")
