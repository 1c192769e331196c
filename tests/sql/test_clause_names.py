"""A SELECT item is the same by alias, by place, by its expression and by a qualified name, in every clause and beside
every window, QUALIFY and sub-query. Answers are compared with DuckDB's."""

from __future__ import annotations

import random
import re
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql
from dpsql.errors import RawColumn, SQLSyntaxError, UnknownColumn
from tests.sql.oracle import matched, same_rows

_RANDOM = random.Random(7)
_ROWS = 600
PEOPLE = pd.DataFrame(
    {
        "age": [20 + k % 60 for k in range(_ROWS)],
        "job": [_RANDOM.choice("abc") for _ in range(_ROWS)],
        "day": pd.to_datetime(
            [date(2024, 1, 1) + timedelta(days=k % 366) if k % 40 else None for k in range(_ROWS)]
        ).astype("datetime64[us]"),
    }
)
DECLARED: dict[str, Any] = {
    "bounds": {"age": (20, 79), "day": ("2024-01-01", "2024-12-31")},
    "keys": {"job": ["a", "b", "c"]},
}
KEYS = {
    "decade": ("{t}age // 10", "people"),
    "band": ("CASE WHEN {t}age < 40 THEN 'young' ELSE 'old' END", "people"),
    "month": ("DATE_TRUNC('MONTH', {t}day)", "people"),
    "kind": ("UPPER({t}job)", "people"),
}
"""Alias -> an expression over the table, {t} before its columns."""
EXTRAS = (
    ("SUM(COUNT(*)) OVER () AS x", "", ""),
    ("LAG(COUNT(*)) OVER (ORDER BY {key}) AS x", "", ""),
    ("SUM(COUNT(*)) OVER (ORDER BY {key} rows between unbounded preceding and current row) AS x", "", ""),
    ("RANK() OVER (PARTITION BY {key} ORDER BY COUNT(*) DESC) AS x", "", ""),
    ("RANK() OVER w AS x", "", "WINDOW w AS (ORDER BY {key} DESC)"),
    ("(SELECT COUNT(*) FROM people) AS x", "", ""),
    ("COUNT(*) * 1.0 / (SELECT COUNT(*) FROM people WHERE age > 30) AS x", "", "ORDER BY {key}"),
    ("1 AS x", "", "QUALIFY ROW_NUMBER() OVER (ORDER BY {key}) <= 2"),
    ("1 AS x", "HAVING COUNT(*) > (SELECT COUNT(*) // 100 FROM people)", "ORDER BY {key} DESC"),
    ("COUNT(*) - AVG(COUNT(*)) OVER () AS x", "HAVING COUNT(*) > 1", "ORDER BY {key} DESC"),
)


def _spellings(alias: str, *, place: bool) -> list[str]:
    bare = KEYS[alias][0]
    return [alias, bare.format(t=""), bare.format(t="p."), f"({bare.format(t='')})", *(["1"] if place else [])]


def _statements() -> list[str]:
    texts = []
    for alias, extra in product(KEYS, EXTRAS):
        item, having, rest = extra
        by_place = "ORDER BY {key}" in rest and "QUALIFY" not in rest and "WINDOW" not in rest
        for group, key in product(
            _spellings(alias, place=True), _spellings(alias, place=by_place and "{key}" not in item)
        ):
            texts.append(
                f"SELECT {KEYS[alias][0].format(t='')} AS {alias}, COUNT(*) AS n, {item.format(key=key)} FROM people p "
                f"GROUP BY {group} {having} {rest.format(key=key)}".strip()
            )
    return texts


def _asked(sql: str) -> pd.DataFrame:
    return dpsql.query({"people": PEOPLE}, sql, epsilon=1e9, **DECLARED).df


def _rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    plain = frame.astype(object).where(frame.notna(), None)
    return [tuple(getattr(cell, "item", lambda cell=cell: cell)() for cell in row) for row in plain.to_numpy()]


def _expected(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("people", PEOPLE)
        return connection.sql(sql).fetchall()


@pytest.mark.parametrize("sql", random.Random(11).sample(_statements(), 80))
def test_a_key_is_the_same_however_it_is_named(sql: str) -> None:
    ours, theirs = _rows(_asked(sql)), _expected(sql)
    if re.search(r"ORDER BY [^)]*$", sql):
        assert same_rows(ours, theirs, 1e-3)
    else:
        assert matched(ours, theirs, 1e-3) == ([], [])


@pytest.mark.parametrize("alias", KEYS)
@pytest.mark.parametrize("extra", EXTRAS, ids=str)
def test_one_more_window_changes_no_other_column(alias: str, extra: tuple[str, str, str]) -> None:
    plain = f"SELECT {KEYS[alias][0].format(t='')} AS {alias}, COUNT(*) AS n FROM people GROUP BY {alias}"
    item, having, rest = (part.format(key=alias) for part in extra)
    more = plain.replace(" FROM", f", {item} FROM") + f" {having} {rest}"
    before, after = _rows(_asked(plain)), [row[:2] for row in _rows(_asked(more))]
    assert matched(after, before, 1e-3)[0] == []
    assert "QUALIFY" in rest or len(before) == len(after)


ANSWERED = [
    text.strip() for text in (Path(__file__).parent / "clause_names.sql").read_text().split(";") if text.strip()
]


@pytest.mark.parametrize("sql", ANSWERED)
def test_aliases_and_places_mean_what_they_mean_to_duckdb(sql: str) -> None:
    assert same_rows(_rows(_asked(sql)), _expected(sql), 1e-3)


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SELECT COUNT(*) AS n FROM people WHERE n > 5", SQLSyntaxError, "an aggregate cannot stand in WHERE"),
        (
            "SELECT RANK() OVER (ORDER BY COUNT(*)) AS r, COUNT(*) FROM people GROUP BY r",
            SQLSyntaxError,
            "GROUP BY cannot",
        ),
        ("SELECT b AS b, COUNT(*) FROM people WHERE b > 1 GROUP BY 1", UnknownColumn, 'no column "b"'),
        ("SELECT a + 1 AS b, b + 1 AS a, COUNT(*) FROM people WHERE a > 1", UnknownColumn, 'no column "a"'),
        ("SELECT job, SUM(age) OVER () FROM people GROUP BY job", RawColumn, '"age" is outside'),
    ],
)
def test_names_that_mean_no_column_are_refused(sql: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        _asked(sql)
