"""Public groups of which there are none: conditions that leave no value of a key, and public tables without rows.

An ordinary question: it is planned, charged and answered with no groups (of ROLLUP and the like with the levels that
have some), or refused with its reason, and never fails.
"""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pytest

import dpsql
from dpsql.errors import InternalError, QueryRefused, UnsupportedSQL

PEOPLE = pd.DataFrame(
    {
        "i": [1, 2, 3] * 20,
        "x": [float(each) for each in range(60)],
        "r": ["a", "b", "c"] * 20,
        "b": [True, False] * 30,
        "d": pd.to_datetime(["2020-01-01", "2020-02-01"] * 30),
    }
)
NAMES = pd.DataFrame({"k": [1, 2, 3], "name": ["a", "b", "c"], "n": [1, 2, 3]})
AGGREGATES = (
    "COUNT(*)",
    "SUM(x), COUNT(x)",
    "AVG(x)",
    "MEDIAN(x)",
    "QUANTILE(x, 0.9), QUANTILE(x, 0.1), MEDIAN(i)",
    "MIN(x), MAX(i)",
    "MODE(b), COUNT(*)",
    "APPROX_TOP_K(r, 2)",
    "COUNT(DISTINCT b)",
    "VAR_POP(x), STDDEV_SAMP(i)",
    "CORR(x, i), REGR_SLOPE(x, i)",
    "MEDIAN(d)",
    "COUNT(*) FILTER (WHERE x > 3), COUNT_IF(b)",
)
FROMS = (
    ("people JOIN p ON i = k WHERE name = 'none' GROUP BY {}", "name"),
    ("people JOIN p ON i = k WHERE n > 10 GROUP BY {}", "r, name"),
    ("people JOIN p ON i = k WHERE n > 10 GROUP BY {}", "UPPER(name), b"),
    ("people JOIN e ON i = k GROUP BY {}", "name"),
    ("people CROSS JOIN e GROUP BY {}", "e.n, r"),
    ("people WHERE r = 'zzz' GROUP BY {}", "r"),
)
SETS = ("{}", "CUBE ({})", "ROLLUP ({})", "GROUPING SETS (({}), ())")
HOW: tuple[dict[str, Any], ...] = (
    {"epsilon": 1},
    {"epsilon": 1, "delta": 1e-6},
    {"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"},
    {"epsilon": 1, "strategy": "split"},
    {"rho": 0.1},
    {"epsilon": 1, "neighbours": "bounded"},
    {"epsilon": 1, "unit": "i", "max_rows": 30},
    {"epsilon": 1, "bounds": "auto"},
)
ENDS = ("", " HAVING COUNT(*) > 3", " ORDER BY 1 DESC LIMIT 2", " HAVING COUNT(*) < 3")
QUESTIONS = [
    (f"SELECT {aggregates} FROM {text.format(sets.format(keys))}{end}", how)
    for (aggregates, (text, keys), sets), how, end in zip(
        itertools.product(AGGREGATES, FROMS, SETS), itertools.cycle(HOW), itertools.cycle(ENDS[:3] * 3 + ENDS[3:]),
        strict=False,
    )
]  # fmt: skip


def tables(**said: Any) -> dict[str, dpsql.Table]:
    facts: dict[str, Any] = {"bounds": {"x": (0, 60), "i": (1, 3)}, "keys": {"r": ["a", "b", "c"]}}
    return {
        "people": dpsql.Table(PEOPLE, **{**facts, **said}),
        "p": dpsql.Table(NAMES, public=True, unique=["k"]),
        "e": dpsql.Table(NAMES.iloc[:0], public=True, unique=["k"]),
    }


def asked(sql: str, how: dict[str, Any]) -> dpsql.Result:
    words = {word: value for word, value in how.items() if word in ("unit", "max_rows", "bounds")}
    said = {word: value for word, value in how.items() if word not in words}
    found = dpsql.query(tables(**words), sql, **said)
    assert isinstance(found, dpsql.Result)
    return found


def is_plain(sql: str) -> bool:
    return not any(word in sql for word in ("CUBE", "ROLLUP", "SETS"))


REASONS = ("does not add up", "there are none, by the conditions")


def failure(sql: str, how: dict[str, Any]) -> str:
    """What is wrong with the answer to a question; empty where nothing is."""
    try:
        found = asked(sql, how)
    except QueryRefused as refused:
        return "" if any(reason in refused.message for reason in REASONS) else f"{sql}: {refused}"
    if is_plain(sql) and len(found):
        return f"{sql}: {len(found)} groups"
    sizes = {len(found.to_pandas(intervals=True)), len(found.intervals(simultaneous=True)), len(found)}
    shown = (str(found), found._repr_html_(), str(found.explanation), found.explanation.to_dict())
    return "" if len(sizes) == 1 and all(shown) else f"{sql}: {sizes}"


@pytest.mark.parametrize("part", range(8))
def test_no_groups_are_an_answer_or_a_refusal(part: int):
    assert not [wrong for sql, how in QUESTIONS[part::8] if (wrong := failure(sql, how))]


@pytest.mark.parametrize("how", HOW)
def test_a_cube_has_the_levels_that_have_groups(how: dict[str, Any]):
    words = "people JOIN p ON i = k WHERE n > 10 GROUP BY CUBE (b, name)"
    if how.get("bounds") != "auto":
        found = asked(f"SELECT b, name, COUNT(*), GROUPING(name), AVG(x) FROM {words}", how)
        assert [row[:2] for row in found] == [(False, None), (True, None), (None, None)]
        assert {row[3] for row in found} == {1}


def test_a_total_of_no_groups_is_about_zero():
    ((name, total),) = asked(
        "SELECT name, COUNT(*) FROM people JOIN p ON i = k WHERE name = 'none' GROUP BY ROLLUP (name)",
        {"epsilon": 1e6},
    )
    assert name is None
    assert abs(total) < 1e-3


@pytest.mark.parametrize(
    "words",
    [
        "people JOIN p ON i = k WHERE name = 'none' GROUP BY GROUPING SETS ((name))",
        "people JOIN p ON i = k WHERE n > 10 GROUP BY GROUPING SETS ((b, name), (name))",
        "people JOIN e ON i = k GROUP BY GROUPING SETS ((name), (name, r))",
    ],
)
def test_levels_that_all_have_no_groups_are_refused(words: str):
    held = dpsql.Session(tables(), budget=dpsql.Budget(10))
    with pytest.raises(UnsupportedSQL, match="no value of name is possible here"):
        held.query(f"SELECT COUNT(*) FROM {words}", epsilon=1)
    assert not held.ledger()


@pytest.mark.parametrize("word", ["MODE(name)", "APPROX_TOP_K(name, 2)"])
@pytest.mark.parametrize("words", ["people JOIN p ON i = k WHERE n > 10", "people JOIN e ON i = k"])
def test_nothing_to_choose_among_is_refused(word: str, words: str):
    with pytest.raises(UnsupportedSQL, match="there are none, by the conditions"):
        asked(f"SELECT {word} FROM {words}", {"epsilon": 1})


@pytest.mark.parametrize("error", [5, 50])
@pytest.mark.parametrize("words", ["COUNT(*)", "SUM(x)"])
def test_a_goal_is_reached_by_no_groups_too(error: float, words: str):
    sql = f"SELECT {words} FROM people JOIN p ON i = k WHERE name = 'none' GROUP BY "
    assert len(asked(f"{sql} name", {"error": error})) == 0
    assert len(asked(f"{sql} ROLLUP (name)", {"error": error})) == 1


def test_the_same_answer_again_and_at_a_price():
    held = dpsql.Session(tables(), budget=dpsql.Budget(10))
    sql = "SELECT name, COUNT(*), MEDIAN(x) FROM people JOIN p ON i = k WHERE name = 'none' GROUP BY name"
    first, again = held.query(sql, epsilon=1), held.query(sql, epsilon=1)
    assert isinstance(again, dpsql.Result)
    assert list(first) == list(again) == []
    assert again.replayed
    assert len(held.ledger()) == 1
    assert held.remaining_queries(sql, epsilon=1) == 9


def test_a_public_table_without_rows_by_itself():
    for sql in ("SELECT name, COUNT(*) FROM e GROUP BY name", "SELECT DISTINCT name FROM e", "SELECT MAX(n) FROM e"):
        try:
            found = asked(sql, {"epsilon": 1})
        except InternalError:
            raise
        except QueryRefused:
            continue
        assert str(found)
