"""Every function against DuckDB: in WHERE, as a key, inside an aggregate of that key's groups, and over an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import duckdb
import pandas as pd
import pytest

import dpsql.executors.base  # noqa: F401 - it registers what makes patterns, also where this test runs alone
from dpsql.errors import UnsupportedSQL
from dpsql.plan.expressions import Call, walk
from dpsql.plan.functions import FUNCTIONS
from dpsql.schema.declaration import Declaration, resolve
from dpsql.sources.frames import stored_columns
from dpsql.sql import plan_of
from dpsql.sql.names.catalog import Catalog
from tests.plan.oracle_functions import Written, written
from tests.sql.oracle import matched, same
from tests.sql.people import BOUNDS, COLUMNS, KEYS, TYPES, ask, duck, frame

DELTA = 1e-9
NOISE = 1e-4
"""More than the sums' noise ever is."""
CONDITIONS = {
    "n": "({0}) > 1.5 OR ({0}) IS NULL",
    "t": "({0}) >= 'ab' OR ({0}) = ''",
    "b": "{0}",
    "d": "({0}) >= DATE '2020-02-10' OR ({0}) IS NULL",
    "w": "({0}) < TIMESTAMP '2020-02-10 12:00:00'",
}
AGGREGATES = {
    "n": "SUM(LEAST(GREATEST({0}, -1000), 1000))",
    "t": "SUM(LEAST(LENGTH({0}), 40))",
    "b": "COUNT_IF({0})",
    "d": "SUM(LEAST(GREATEST(YEAR({0}), 1900), 2100))",
    "w": "SUM(LEAST(GREATEST(DAYOFYEAR({0}), 1), 366))",
}
EXPRESSIONS = written()
TEXTS = [each.ours for each in EXPRESSIONS]
REFUSED_KEYS = {
    "CBRT(r)",
    "SIN(r)",
    "COS(r)",
    "TAN(r)",
    "EXP(r)",
    "LN(ABS(r) + 1)",
    "LOG2(ABS(r) + 2)",
    "LOG10(r)",
}
"""Groups by these would be one for each value of a library, to the last bit. Rounded, they are keys like others."""


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return frame()


@pytest.fixture(scope="module")
def oracle(people: pd.DataFrame) -> duckdb.DuckDBPyConnection:
    return duck(people)


def columns_of(text: str) -> list[str]:
    """The columns that a text names: words of one or two small letters outside its quotes."""
    outside = " ".join(text.split("'")[::2])
    words = "".join(sign if sign.isalnum() else " " for sign in outside).split()
    return [name for name in COLUMNS if name in words]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("each", EXPRESSIONS, ids=TEXTS)
def test_in_where(each: Written, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    asked = "SELECT COUNT(*), COALESCE(SUM(j), 0) FROM t WHERE {}"
    theirs = oracle.execute(asked.format(CONDITIONS[each.kind].format(each.theirs))).fetchall()
    ours = list(ask(people, asked.format(CONDITIONS[each.kind].format(each.ours))))
    assert same(ours[0][0], theirs[0][0]), f"{ours} is not {theirs}"
    assert same(ours[0][1], theirs[0][1]), f"{ours} is not {theirs}"


@pytest.mark.thinned(3)
@pytest.mark.parametrize("each", EXPRESSIONS, ids=TEXTS)
def test_as_a_key_and_inside_aggregates(each: Written, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    """The groups of unknown keys are shown from two rows on; public ones are all shown, empty too."""
    key = "ROUND({0}, 6)" if each.ours in REFUSED_KEYS else "{0}"
    asked = f"SELECT {key} AS k, COUNT(*), COUNT({{0}}), {AGGREGATES[each.kind]} FROM t GROUP BY k"
    theirs = oracle.execute(asked.format(each.theirs)).fetchall()
    ours = list(ask(people, asked.format(each.ours), delta=DELTA))
    unmet, missing = matched(ours, [(*row[:3], row[3] or 0) for row in theirs], NOISE)
    assert all(row[1] == 1 for row in missing), f"{missing} are not in {ours}"
    assert all(row[1:3] == (0, 0) and same(row[3], 0, NOISE) for row in unmet), f"{unmet} are not in {theirs}"


@pytest.mark.parametrize("key", sorted(REFUSED_KEYS))
def test_a_key_of_last_bits_is_refused(key: str, people: pd.DataFrame):
    assert key in TEXTS
    with pytest.raises(UnsupportedSQL, match="ROUND it"):
        ask(people, f"SELECT {key} AS k, COUNT(*) FROM t GROUP BY k", delta=DELTA)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("each", EXPRESSIONS, ids=TEXTS)
def test_over_an_answer(each: Written, people: pd.DataFrame, oracle: duckdb.DuckDBPyConnection):
    """Of keys and of a count; only groups that are shown for certain, and are there."""
    names = ", ".join(columns_of(each.ours)) or "j"
    asked = (
        "SELECT {0}, count_of + 1 FROM "
        f"(SELECT {names}, COUNT(*) AS count_of FROM t GROUP BY {names} HAVING COUNT(*) > 1.5) AS q"
    )
    theirs = oracle.execute(asked.format(each.theirs)).fetchall()
    ours = list(ask(people, asked.format(each.ours), delta=DELTA))
    assert matched(ours, theirs) == ([], []), f"{ours} is not {theirs}"


def functions_in(text: str, catalog: Catalog) -> Iterator[str]:
    query = plan_of(f"SELECT COUNT(({text}) IS NULL) FROM t", catalog)[0].query
    argument = query.plan.aggregations[0].argument
    if argument is not None:
        yield from {part.function.name for part in walk(argument) if isinstance(part, Call)}


def test_every_function_is_asked_three_times(people: pd.DataFrame):
    catalog = Catalog({"t": resolve("t", stored_columns(people), Declaration.of(BOUNDS, KEYS, TYPES))})
    asked = Counter(name for text in TEXTS for name in functions_in(text, catalog))
    elsewhere = {"pi", "of_steps"}  # a literal before it is a call; and what windows make (`test_windows`)
    assert {name: asked[name] for name in FUNCTIONS if asked[name] < 3 and name not in elsewhere} == {}


def test_the_oracle_knows_a_difference():
    rows: Iterable[tuple[Any, ...]] = [(1, "a"), (2, None)]
    assert matched(rows, [(2, None), (1, "a")]) == ([], [])
    assert matched(rows, [(1, "a"), (1, "a")]) == ([(2, None)], [(1, "a")])
    assert not same(1.0, 1.0001)
    assert same(None, None)
    assert not same(0, None)
