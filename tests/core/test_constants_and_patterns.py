"""Tables of constants multiply a row by no more than is said, and a pattern tells of a row by its own cell alone: with
lies about both."""

from __future__ import annotations

from typing import Any

import pandas as pd

import dpsql
from dpsql.answer.explain import Explanation
from dpsql.core.sensitivity.stability import stability
from dpsql.executors.regular import Re2Pattern
from dpsql.plan import constants
from dpsql.session import prepare
from dpsql.testing import insecure_exact
from tests.lies import Patch, assert_caught
from tests.plan.test_regular import _ours

KEY = bytes(32)
ROWS = [0, 1, 2, 3, None]
QUERIES = [
    "SELECT COUNT(*) FROM t JOIN (VALUES (1), (3), (5), (2)) AS v(k) ON t.x % 2 = v.k % 2",
    "SELECT COUNT(*) FROM t JOIN (VALUES (1), (1), (2)) AS v(k) ON t.x = v.k",
    "SELECT COUNT(*) FROM t LEFT JOIN (VALUES (1), (1), (2)) AS v(k) ON t.x = v.k",
    "SELECT COUNT(*) FROM t CROSS JOIN generate_series(1, 4) AS s",
    "SELECT COUNT(*) FROM t, UNNEST([3, 3, 3]) AS u(j) WHERE t.x = u.j",
]


def opened(cells: list[Any], engine: str) -> dpsql.Session:
    data = pd.DataFrame({"x": pd.array(cells, dtype="Int64")})
    table = dpsql.Table(data, bounds={"x": (0, 9)}, nullable={"x": True})
    return dpsql.Session({"t": table}, budget=dpsql.Budget(9), engine=engine)


def count(cells: list[Any], sql: str, engine: str) -> int:
    return insecure_exact(opened(cells, engine), sql, KEY, epsilon=1).parts[()][0]


def check_constants() -> None:
    """What each row adds, beside what the plan says that one can."""
    prepare._cache.clear()
    for engine in ("pandas", "duckdb"):
        for sql in QUERIES:
            told = opened(ROWS, engine).explain(sql, epsilon=1)
            assert isinstance(told, Explanation)
            most = stability(told._release.query.plan.input).rows
            every = count(ROWS, sql, engine)
            alone = [every - count(ROWS[:place] + ROWS[place + 1 :], sql, engine) for place in range(len(ROWS))]
            assert most is not None
            assert max(alone) <= most, f"{sql}: {alone} of {most}"


def test_a_table_of_constants_multiplies_by_no_more_than_is_said():
    check_constants()


TEXTS = ["a", "b", "ba", None, "", "7", "a7", "x", "b"]


def check_patterns() -> None:
    """What a pattern says of a cell, whichever stand beside it and in whatever order."""
    for name in ("regexp_matches", "regexp_full_match"):
        for pattern in ("a", "^b", "[0-9]+"):
            together = _ours(name, TEXTS, pattern)
            assert together == _ours(name, TEXTS[::-1], pattern)[::-1], (name, pattern)
            assert together == [_ours(name, [text], pattern)[0] for text in TEXTS], (name, pattern)


def test_a_pattern_tells_of_its_own_cell():
    check_patterns()


def take_fewer_rows_for_alike(patch: Patch) -> None:
    honest = constants.most_alike

    def most_alike(*args: Any) -> int | None:
        most = honest(*args)
        return None if most is None else max(1, most - 1)

    patch.setattr(constants, "most_alike", most_alike)


def remember_the_last_text(patch: Patch) -> None:
    """A pattern that was found in one cell is found in the next."""
    honest, seen = Re2Pattern.found, [False]

    def found(self: Re2Pattern, text: str) -> bool:
        before, seen[0] = seen[0], honest(self, text)
        return before or seen[0]

    patch.setattr(Re2Pattern, "found", found)


def test_lies_are_caught():
    assert_caught(take_fewer_rows_for_alike, check_constants, honest=False)
    assert_caught(remember_the_last_text, check_patterns, honest=False)
