"""Notes about small and empty groups are true: which counts they rest on, and which values they name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsql

RNG = np.random.default_rng(5)
PEOPLE = pd.DataFrame(
    {
        "job": RNG.choice(list("abcdefg"), 2_000),
        "city": RNG.choice(["x", "y"], 2_000),
        "income": RNG.random(2_000) * 100_000,
        "who": np.arange(2_000) // 2,
    }
)
FACTS = {"bounds": {"income": (0, 100_000)}, "keys": {"job": list("abcdefg"), "city": ["x", "y", "z"]}}
TABLE = dpsql.Table(PEOPLE, **FACTS)
FULL = dpsql.Table(PEOPLE, **{**FACTS, "keys": {"city": ["x", "y"]}})
FEW = "fewer than 30 people"


def notes(sql: str, table: dpsql.Table = TABLE, epsilon: float = 2.0) -> str:
    return "\n".join(dpsql.query({"p": table}, sql, epsilon=epsilon).warnings)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(DISTINCT job) AS n FROM p",
        "SELECT COUNT(DISTINCT job) AS n, COUNT(*) AS rows FROM p",
        "SELECT city, COUNT(DISTINCT job) AS n FROM p GROUP BY city",
        "SELECT COUNT(*) FILTER (WHERE income < 700) AS n, COUNT(*) AS rows FROM p",
        "SELECT COUNT_IF(income < 700) AS n FROM p",
        "SELECT COUNT(CASE WHEN income < 700 THEN 1 END) AS n FROM p",
        "SELECT COUNT(NULLIF(job, 'a')) AS n FROM p",
    ],
)
def test_a_small_count_of_other_things_is_no_small_group(sql: str) -> None:
    assert FEW not in notes(sql)


@pytest.mark.parametrize(
    ("sql", "start"),
    [
        ("SELECT COUNT(*) AS n FROM p WHERE income < 700", "the answer probably covers"),
        ("SELECT COUNT(income) AS n, AVG(income) AS a FROM p WHERE income < 700", "the answer probably covers"),
        ("SELECT city, COUNT(*) AS n FROM p WHERE income < 900 GROUP BY city", "some groups probably have"),
    ],
)
def test_a_small_count_of_rows_is_a_small_group(sql: str, start: str) -> None:
    assert f"{start} {FEW}" in notes(sql)


def test_a_small_count_of_people_is_a_small_group() -> None:
    table = dpsql.Table(PEOPLE, unit="who", max_rows=2, **FACTS)
    assert FEW in notes("SELECT COUNT(DISTINCT who) AS n FROM p WHERE income < 1200", table)


@pytest.mark.parametrize(
    "value", ["MEDIAN(income)", "MIN(income)", "MAX(income)", "QUANTILE(income, 0.9)", "MODE(job)"]
)
def test_a_chosen_value_of_an_empty_group_has_a_note(value: str) -> None:
    assert "v: some groups may have no values. If so, theirs are drawn at random." in notes(
        f"SELECT city, {value} AS v FROM p GROUP BY city"
    )
    assert "v: there may be no values. If so, it is drawn at random." in notes(
        f"SELECT {value} AS v FROM p WHERE city = 'z'"
    )


def test_a_chosen_value_over_an_answer_has_the_note() -> None:
    inner = "SELECT city, MEDIAN(income) AS m FROM p GROUP BY city"
    assert "m: some groups may have no values" in notes(f"SELECT city, m FROM ({inner}) AS t ORDER BY m")


@pytest.mark.parametrize("count", ["COUNT(*)", "COUNT(income)", "AVG(income)"])
def test_a_noisy_count_that_shows_rows_spares_the_note(count: str) -> None:
    sql = f"SELECT city, MEDIAN(income) AS m, {count} AS n FROM p GROUP BY city"
    whole = dpsql.Table(PEOPLE, **{**FACTS, "keys": {"city": ["x", "y"]}, "nullable": {"income": False}})
    assert "at random" not in notes(sql, whole)
    cities = {**FACTS, "keys": {"city": list("xyuvwz")}}  # the noise of one empty group may show rows: 1 in 40
    sparse = dpsql.Table(PEOPLE, **cities)
    assert "m: some groups may have no values. If so, theirs are drawn at random." in notes(sql, sparse)


def test_a_count_of_rows_does_not_count_values() -> None:
    sql = "SELECT city, MEDIAN(income) AS m, COUNT(*) AS n FROM p GROUP BY city"
    assert "m: some groups may have no values" in notes(sql, FULL)  # all of its values may be NULL
    assert "at random" not in notes(sql.replace("COUNT(*)", "COUNT(income)"), FULL)


def test_a_median_of_the_whole_table_has_no_note() -> None:
    assert "at random" not in notes("SELECT MEDIAN(income) AS m FROM p")


def test_the_note_on_chosen_values_is_the_same_whatever_the_rows() -> None:
    sql = "SELECT city, MEDIAN(income) AS m FROM p GROUP BY city"
    empty = dpsql.Table(PEOPLE[:0], **FACTS)
    assert notes(sql) == notes(sql, empty)
