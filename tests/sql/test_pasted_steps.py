"""What other engines' texts bring along of several values or several steps: MAD, lists of quantiles and their parts,
UNION BY NAME, PIVOT with an order, and our words over answers. Each as in DuckDB over the same rows."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.answer.multi_step import MultiStepResult
from dpsql.core.loss import as_epsilon
from dpsql.errors import DPSQLError
from tests.sql.oracle import matched

EPSILON = 1e9
FIRST = date(2024, 1, 1)


def frames() -> dict[str, pd.DataFrame]:
    """Groups of 41 and 21 rows, of which no quantile below lies between two."""
    shapes = np.random.default_rng(5)
    rows = [(each, "a" if each < 41 else "b", int(shapes.integers(0, 100)), each % 7) for each in range(62)]
    people = pd.DataFrame(rows, columns=["id", "g", "x", "k"])
    people["r"] = people["x"] / 4
    people["d"] = [pd.Timestamp(FIRST + timedelta(days=int(3 * each))) for each in people["x"]]
    visits = pd.DataFrame({"who": [each % 62 for each in range(180)], "paid": shapes.integers(0, 50, 180)})
    visits["day"] = [pd.Timestamp(FIRST + timedelta(days=int(each))) for each in shapes.integers(0, 300, 180)]
    calls = pd.DataFrame({"paid": shapes.integers(0, 50, 90), "who": [each % 62 for each in range(90)]})
    labels = pd.DataFrame({"k": range(7), "name": list("tuvwxyz"), "kind": list("ababaab")})
    return {"people": people, "visits": visits, "calls": calls, "labels": labels}


FRAMES = frames()


def tables() -> dict[str, Any]:
    year = (FIRST, date(2024, 12, 31))
    return {
        "people": dpsql.Table(
            FRAMES["people"],
            bounds={"x": (0, 100), "k": (0, 6), "r": (0, 25), "d": year},
            keys={"g": ["a", "b"]},
            nullable=dict.fromkeys(("g", "x", "k", "r", "d"), False),
            types={"d": "date"},
            unit="id",
            max_rows=1,
        ),
        "visits": dpsql.Table(
            FRAMES["visits"], bounds={"paid": (0, 50), "day": year}, types={"day": "date"}, unit="who", max_rows=9
        ),
        "calls": dpsql.Table(FRAMES["calls"], bounds={"paid": (0, 50)}, unit="who", max_rows=9),
        "labels": dpsql.Table(FRAMES["labels"], public=True, unique=["k"]),
    }


@pytest.fixture(scope="module")
def oracle() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    for name, frame in FRAMES.items():
        connection.register(f"raw_{name}", frame)
        days = [each for each in ("d", "day") if each in frame.columns]
        changed = ", ".join(f"CAST({each} AS DATE) AS {each}" for each in days)
        star = f"* REPLACE ({changed})" if changed else "*"
        connection.execute(f"CREATE TABLE {name} AS SELECT {star} FROM raw_{name}")
    return connection


def asked(sql: str, **options: Any) -> Any:
    session = dpsql.Session(tables(), budget=dpsql.Budget(epsilon=EPSILON, delta=0.5))
    return session.query(sql, **{"epsilon": EPSILON, "delta": 0.1, **options})


def check(sql: str, theirs: str, oracle: duckdb.DuckDBPyConnection) -> None:
    rows = oracle.execute(theirs).fetchall()
    assert rows
    assert matched(asked(sql), rows, 1e-3) == ([], [])


MADS = (
    "SELECT MAD(x) FROM people WHERE id > 0",
    "SELECT COUNT(*) AS n, MAD(x) AS m, MAD(r) AS s FROM people WHERE g = 'a'",
    "SELECT g, MAD(x) FROM people GROUP BY g",
    "SELECT g AS h, COUNT(*), MAD(x) FILTER (WHERE id > 1) AS m FROM people GROUP BY h ORDER BY m DESC",
    "SELECT g, MEDIAN(x) AS middle, MAD(x) AS m FROM people GROUP BY 1 HAVING MAD(x) > 1",
    "WITH later AS (SELECT * FROM people WHERE id > 9) SELECT g, MAD(x) FROM later GROUP BY g",
    "SELECT * FROM (SELECT g, MAD(x) AS m FROM people GROUP BY g) WHERE m > 1",
    "SELECT g, m, RANK() OVER (ORDER BY g) AS place FROM (SELECT g, MAD(x) AS m FROM people GROUP BY g)",
    "SELECT g, COUNT(*) / SUM(COUNT(*)) OVER () AS share, MAD(x) AS m FROM people GROUP BY g",
    "SELECT MAD(n) FROM (SELECT k, COUNT(*) AS n FROM people GROUP BY k)",
)


@pytest.mark.parametrize("sql", MADS)
def test_a_mad_is_duckdbs(sql: str, oracle: duckdb.DuckDBPyConnection):
    check(sql, sql, oracle)


def test_a_mad_is_two_releases_for_what_the_call_says():
    session = dpsql.Session(tables(), budget=dpsql.Budget(epsilon=10))
    answer = session.query("SELECT g, MAD(x) AS m FROM people GROUP BY g", epsilon=1)
    assert isinstance(answer, MultiStepResult)
    assert len(answer.answers) == 2
    assert session.spent.epsilon == as_epsilon(1)
    assert "MEDIAN" in str(session.explain("SELECT MAD(x) FROM people", epsilon=1))


def test_the_median_is_held_to_the_range_that_it_was_drawn_from():
    """So far from it no value can be as from what lies outside: the second release knows no more of it."""
    text = str(asked("EXPLAIN PRIVACY SELECT MAD(x) FROM people WHERE x < 50"))
    assert "CLAMP(" in text
    assert ", 0, 49)" in text


def said() -> list[tuple[str, str]]:
    """The texts of pasted_steps.sql, each with DuckDB's."""
    pairs: list[tuple[str, str]] = []
    for line in (Path(__file__).parent / "pasted_steps.sql").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            pairs[-1] = (pairs[-1][0], line[2:])
        elif not line.startswith("#"):
            pairs.append((line, line))
    return pairs


@pytest.mark.parametrize(("sql", "theirs"), said())
def test_it_is_what_it_says(sql: str, theirs: str, oracle: duckdb.DuckDBPyConnection):
    check(sql, theirs, oracle)


LISTS = (
    "QUANTILE_DISC(x, [0.3, 0.9])",
    "PERCENTILE(x, array(0.3, 0.9))",
    "PERCENTILE_DISC(ARRAY[0.3, 0.9]) WITHIN GROUP (ORDER BY x)",
    "PERCENTILE_DISC([0.7, 0.1]) WITHIN GROUP (ORDER BY x DESC)",
)


@pytest.mark.parametrize("call", LISTS)
def test_several_quantiles_are_a_list(call: str, oracle: duckdb.DuckDBPyConnection):
    (row,) = asked(f"SELECT {call} AS q, COUNT(*) AS n FROM people")
    assert json.loads(row[0]) == oracle.execute("SELECT QUANTILE_DISC(x, [0.3, 0.9]) FROM people").fetchall()[0][0]
    (row,) = asked(f"SELECT {call} FILTER (WHERE g = 'a') AS q FROM people") if "WITHIN" not in call else (row,)
    (times,) = asked("SELECT QUANTILE_DISC(d, [0.3, 0.9]) AS q FROM people")
    assert json.loads(times[0]) == [
        str(each) for each in oracle.execute("SELECT QUANTILE_DISC(d, [0.3, 0.9]) FROM people").fetchall()[0][0]
    ]


MONTHS = "(SELECT DATE_TRUNC('month', day) AS m, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > 1)"
OVER_ANSWERS = (
    ("TO_CHAR(m, 'YYYY-MM')", "STRFTIME(m, '%Y-%m')"),
    ("TO_CHAR(m, 'DD Mon YYYY, Dy')", "STRFTIME(m, '%d %b %Y, %a')"),
    ("TO_CHAR(m, 'FMMonth IW %')", "STRFTIME(m, '%B %V %%')"),
    ("FORMAT_DATE('%Y-%m', m)", "STRFTIME(m, '%Y-%m')"),
    ("TIME_BUCKET(INTERVAL '3 months', m)", "TIME_BUCKET(INTERVAL '3 months', m)"),
    ("WIDTH_BUCKET(n, 10, 20, 5)", "CASE WHEN n < 10 THEN 0 WHEN n >= 20 THEN 6 ELSE (n - 10) // 2 + 1 END"),
    ("CLAMP(n, 10, 20)", "LEAST(GREATEST(n, 10), 20)"),
    ("CLAMP(NULLIF(n, n), 10, 20)", "CAST(NULL AS BIGINT)"),
    ("CLAMP(n, NULL, 20)", "CAST(NULL AS BIGINT)"),
)


@pytest.mark.parametrize(("ours", "theirs"), OVER_ANSWERS)
def test_our_words_over_answers(ours: str, theirs: str, oracle: duckdb.DuckDBPyConnection):
    """Beside a window, which DuckDB computes."""
    text = "SELECT {} AS k, n, SUM(n) OVER (ORDER BY m) AS s FROM " + MONTHS
    check(text.format(ours), text.format(theirs), oracle)


ORDERED = (
    "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY n)",
    "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY n DESC)",
    "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY n DESC)",
    "PERCENTILE_DISC(0.0) WITHIN GROUP (ORDER BY n DESC)",
    "PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY n)",
)


@pytest.mark.parametrize("call", ORDERED)
def test_within_group_over_answers(call: str, oracle: duckdb.DuckDBPyConnection):
    check(f"SELECT {call} AS q FROM {MONTHS}", f"SELECT {call} AS q FROM {MONTHS}", oracle)


def test_listagg_over_answers(oracle: duckdb.DuckDBPyConnection):
    text = f"SELECT {{}} AS q FROM {MONTHS}"
    ours, theirs = "LISTAGG(n, ', ') WITHIN GROUP (ORDER BY m DESC)", "STRING_AGG(n, ', ' ORDER BY m DESC)"
    check(text.format(ours), text.format(theirs), oracle)


def test_nothing_is_left_out_of_what_duckdb_is_given(capfd: pytest.CaptureFixture[str]):
    """A format that STRFTIME has no code for is refused: its printer would leave it out, with a line on the screen."""
    with pytest.raises(DPSQLError) as caught:
        asked(f"SELECT TO_CHAR(m, 'MONTH') AS k, SUM(n) OVER () AS s FROM {MONTHS}")
    assert "STRFTIME" in str(caught.value)
    asked(f"SELECT TO_CHAR(m, 'YYYY') AS k, n FROM {MONTHS}")
    assert capfd.readouterr().err == ""


FIRSTS = "(SELECT who, MIN(DATE_TRUNC('month', day)) AS c FROM visits GROUP BY who)"
ACTIVE = "(SELECT DISTINCT who, DATE_TRUNC('month', day) AS m FROM visits)"
BESIDE = """(SELECT who, DATE_TRUNC('month', day) AS m, MIN(DATE_TRUNC('month', day)) OVER (PARTITION BY who) AS c
    FROM visits)"""
COHORTS = (
    f"SELECT c, COUNT(*) AS n FROM {FIRSTS} GROUP BY c",
    f"SELECT c, COUNT(*) AS n FROM {FIRSTS} WHERE c >= '2024-04-01' GROUP BY c",
    f"SELECT c, m, COUNT(*) AS n FROM {ACTIVE} AS a JOIN {FIRSTS} AS f USING (who) WHERE m >= c GROUP BY c, m",
    f"""SELECT c, DATE_DIFF('month', c, m) AS k, COUNT(DISTINCT who) AS n FROM {BESIDE}
    WHERE c < '2024-03-01' AND DATE_DIFF('month', c, m) BETWEEN 0 AND 3 GROUP BY c, k""",
)


@pytest.mark.parametrize("sql", COHORTS)
def test_cohorts_are_public_months(sql: str, oracle: duckdb.DuckDBPyConnection):
    """The first month of a person is one of the months that there are: no group is hidden, and none is shown that the
    conditions leave out."""
    ours, theirs = list(asked(sql, delta=0.0)), oracle.execute(sql).fetchall()
    unmet, missing = matched(ours, theirs)
    assert missing == []
    assert all(row[-1] == 0 for row in unmet)
    assert "2024-04-01" not in sql or all(str(row[0]) >= "2024-04-01" for row in ours)
    assert "BETWEEN" not in sql or {row[1] for row in ours} == {0, 1, 2, 3}


REFUSED = (
    ("SELECT MAD(d) FROM people", "MAD is of numbers"),
    ("SELECT MAD(x, 2) FROM people", "takes 1 argument"),
    ("SELECT NULLIF(who % 3, 1) AS k, MAD(paid) FROM visits GROUP BY k", "may be NULL"),
    ("SELECT g, MAD(x) FROM people GROUP BY ROLLUP (g)", "plain keys"),
    ("SELECT COUNT(*) FROM (SELECT who, MAD(paid) AS m FROM visits GROUP BY who)", "people's rows"),
    ("SELECT QUANTILE_DISC(x, [0.3, 2]) FROM people", "between 0 and 1"),
    ("SELECT QUANTILE_DISC(g, [0.3]) FROM people", "numbers or times"),
    ("SELECT QUANTILE_DISC(x, [0.3, 0.9])[3] FROM people", "from 1 to 2"),
    ("SELECT APPROX_QUANTILES(x, 4)[OFFSET(5)] FROM people", "from 1 to 5"),
    ("SELECT PERCENTILE(x, array(0.3, 0.9))[0] FROM people", "subscripts"),
    ("SELECT COUNT(g[1]) FROM people", "subscripts"),
    (
        "SELECT COUNT(*) FROM (SELECT who, QUANTILE_DISC(paid, [0.3]) AS q FROM visits GROUP BY who)",
        "one call for each",
    ),
    ("SELECT COUNT(*) FROM (SELECT * FROM visits UNION ALL BY NAME SELECT who, paid FROM calls)", "Name them"),
    ("SELECT COUNT(*) FROM (SELECT who FROM visits UNION BY NAME SELECT who FROM calls)", "UNION ALL"),
    ("SELECT WINDOW(day, '7 days'), COUNT(*) FROM visits GROUP BY 1", "TIME_BUCKET(INTERVAL"),
    ("SELECT MAX(x) KEEP (DENSE_RANK LAST ORDER BY d) FROM people", "ARG_MAX(x, y)"),
    ("SELECT STACK(2, 'a', x, 'b', k) FROM people", "UNPIVOT"),
    ("SELECT PRINTF('%d', x), COUNT(*) FROM people GROUP BY 1", "LPAD"),
    ("SELECT COUNT(*) FROM visits WHERE DATE(day, '+1 month') > '2024-03-01'", "DATE_TRUNC('month', d)"),
    ("SELECT COUNT(*) FROM visits WHERE day > DATE('now', '-30 days')", ":today"),
    ("SELECT ANY_VALUE(g) FROM people", "GROUP BY code, name"),
    ("SELECT g, ANY_VALUE(x) FROM people GROUP BY g", "GROUP BY code, name"),
    ("SELECT kind, ANY_VALUE(g) FROM people JOIN labels USING (k) GROUP BY kind", "GROUP BY code, name"),
    (
        "SELECT labels.k, COUNT(ANY_VALUE(name)) FROM people JOIN labels USING (k) GROUP BY labels.k",
        "GROUP BY code, name",
    ),
    (
        "SELECT labels.k FROM people JOIN labels USING (k) WHERE ANY_VALUE(name) = 't' GROUP BY labels.k",
        "GROUP BY code, name",
    ),
    ("SELECT INITCAP(g), COUNT(*) FROM people GROUP BY 1", "UPPER(LEFT(x, 1))"),
    ("SELECT COUNT(*) FROM people WHERE REGEXP_MATCHES(g, r'a')", "without r before it"),
    ("SELECT CONVERT(VARCHAR(7), d, 120), COUNT(*) FROM people GROUP BY 1", "no style"),
    ("SELECT NTILE(4) OVER (ORDER BY x) AS q, COUNT(*) FROM people GROUP BY 1", "WIDTH_BUCKET"),
    ("WITH RECURSIVE r(d) AS (SELECT 1) SELECT COUNT(*) FROM people, r", "generate_series"),
)


@pytest.mark.parametrize(("sql", "words"), REFUSED)
def test_a_refusal_names_the_word_and_what_to_write(sql: str, words: str):
    with pytest.raises(DPSQLError) as caught:
        asked(sql)
    assert words in str(caught.value), str(caught.value)
