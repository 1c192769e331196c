"""Calls that hints of refusals name: each is accepted somewhere, over columns of some type."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.errors import DPSQLError

GOLDEN = Path(__file__).parent / "refusals.golden"
COLUMNS = [
    "x",
    "y",
    "a",
    "b",
    "c",
    "d",
    "m",
    "n",
    "o",
    "s",
    "t",
    "v",
    "r",
    "w",
    "age",
    "hours",
    "day",
    "income",
    "name",
    "total",
    "city",
    "pay",
    "year",
    "born",
    "i",
    "pid",
    "h",
]
CELLS = {
    "INTEGER": [1, 2],
    "DOUBLE": [0.5, 1.5],
    "TEXT": ["a", "b"],
    "DATE": ["2024-01-01", "2024-02-01"],
    "TIMESTAMP": ["2024-01-01 10:00:00", "2024-02-01 10:00:00"],
    "BOOLEAN": [True, False],
}
PLACES = (
    "SELECT {} AS v FROM t",
    "SELECT COUNT({}) FROM t",
    "SELECT SUM(CLAMP({}, 0, 9)) FROM t",
    "SELECT COUNT(*) FROM t WHERE {}",
    "SELECT {} AS k, COUNT(*) FROM t GROUP BY k",
    "SELECT COUNT(EXTRACT(year FROM {})) FROM t",
    "SELECT COUNT(*) AS n, {} FROM t",
    "SELECT {} OVER (ORDER BY COUNT(*)) AS v FROM t GROUP BY age",
    "SELECT k, {} AS v FROM (SELECT age AS k, COUNT(*) AS n FROM t GROUP BY age) AS q",
    "SELECT {} AS v FROM (SELECT age AS x, COUNT(*) AS y FROM t GROUP BY age) AS q",
)
PARTS = {
    "PERCENTILE_CONT(0.5)": "in front of WITHIN GROUP (ORDER BY x), as the hint has it",
}
"""Pieces of longer advice, which say nothing alone."""


def hints() -> Iterator[str]:
    """What refusals say below the text that they are about."""
    for entry in GOLDEN.read_text(encoding="utf-8").split("\n#### ")[1:]:
        below = entry.split("\n")[2:]
        yield " ".join(line.strip() for line in below if line.strip("^ ") and not re.match(r"  LINE \d+:", line))


def calls(hint: str) -> Iterator[str]:
    """The calls in a hint, each up to its closing parenthesis."""
    for start in re.finditer(r"\b[A-Z][A-Z_0-9]*\(", hint):
        depth, inside = 0, False
        for place in range(start.end() - 1, len(hint)):
            inside ^= hint[place] == "'"
            depth += 0 if inside else (hint[place] == "(") - (hint[place] == ")")
            if depth == 0 and not inside:
                yield hint[start.start() : place + 1]
                break


def advice() -> list[str]:
    """Calls that can be typed as they are; `low, high` wants two numbers, and `...` whatever one likes."""
    found = {call for hint in hints() for call in calls(hint)}
    return sorted(call for call in found if "..." not in call and call not in PARTS)


@cache
def session(kind: str) -> dpsql.Session:
    """A table whose columns are all of one type, beside tables of other names in hints."""
    ends = {"INTEGER": (0, 9), "DOUBLE": (0, 9), "DATE": ("2024-01-01", "2024-12-31")}.get(kind)
    held = dict.fromkeys([*COLUMNS, "hours per week"], CELLS[kind])
    table = dpsql.Table(
        pd.DataFrame({"unit": [1, 2], **held, "flag": [True, False]}),
        unit="unit",
        max_rows=1,
        bounds=dict.fromkeys(held, ends) if ends else {},
        types=dict.fromkeys(held, kind.lower()) if kind in ("DATE", "TIMESTAMP") else {},
    )
    return dpsql.Session({"t": table}, budget=dpsql.Budget(epsilon=1e6, delta=0.1))


def is_accepted(call: str) -> bool:
    sql = re.sub(r"\b(people|codes)\.", "", call.replace("low, high", "0, 9")).replace("WHEN b THEN", "WHEN flag THEN")
    params = {"today": datetime.date(2024, 1, 1)} if ":today" in sql else None
    for place in PLACES:
        for kind in CELLS:
            try:
                session(kind).quote(place.format(sql), epsilon=1, params=params)
            except DPSQLError:
                continue
            return True
    return False


@pytest.mark.parametrize("call", advice())
def test_a_call_in_a_hint_is_accepted(call: str):
    assert is_accepted(call)


def test_there_are_many():
    assert len(advice()) > 60


def test_a_call_that_is_accepted_nowhere_is_noticed():
    assert not is_accepted("FIRST_OF(x)")
    assert not is_accepted("STDDEV(x, 0.5)")
