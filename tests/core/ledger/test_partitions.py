"""Queries about different parts of a declared partition cost once, and cover every row whose answers they tell."""

import itertools
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.ledger.budget import Budget
from dpsql.errors import BudgetExceeded
from tests.core.ledger import checks
from tests.core.ledger.checks import Asked, check_parts

BIG = 2**53


@dataclass(frozen=True)
class Kind:
    """A partition's column: dtype, cells that it may hold, and constants that it is compared with."""

    name: str
    dtype: Any
    cells: tuple[Any, ...]
    constants: tuple[str, ...]
    params: tuple[Any, ...]
    declared: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name


DAYS = [date(2020, 1, 1), date(2020, 1, 2), None]
KINDS = (
    Kind(
        "integer", "Int64", (0, 1, 2, 3, BIG, BIG + 1, -BIG - 1, None),
        ("0", "1", "2", "2.0", "0.5", "-0.0", "1e0", f"{BIG}", f"{BIG + 1}", f"{BIG}.0", "NULL", "3"),
        (0, 1, 2.0, 1.5, BIG, BIG + 1, float(BIG), None, -0.0),
    ),
    Kind(
        "bounded integer", "int64", (0, 1, 2, 3, 9, -5),
        ("0", "1", "2", "2.0", "0.5", "3", "9", "-5", "NULL"), (0, 3, 3.0, 9, None),
        (("bounds", {"c": (1, 3)}), ("nullable", {"c": False})),
    ),
    Kind(
        "real", "float64", (0.0, -0.0, 0.1, 1.0, 1e300, float(BIG), float("inf"), float("nan"), 0.30000000000000004),
        ("0", "0.0", "-0.0", "0.1", "1", "1.0", "1e300", f"{BIG}", f"{BIG + 1}", f"{BIG}.0", "0.1 + 0.2", "NULL"),
        (0, 0.0, -0.0, 0.1, 1, 1e300, BIG + 1, 0.1 + 0.2, None),
    ),
    Kind(
        "text", object, ("a", "A", "a ", "", "é", "e\u0301", "number:1", "\ud800", None),
        ("'a'", "'A'", "'a '", "''", "'é'", "'e\u0301'", "'number:1'", "'\ud800'", "NULL", "UPPER('a')"),
        ("a", "A", "", "e\u0301", None), (("types", {"c": "text"}),),
    ),
    Kind("boolean", "boolean", (True, False, None), ("TRUE", "FALSE", "NULL", "(1 = 1)"), (True, False, None)),
    Kind(
        "date", object, tuple(DAYS),
        ("DATE '2020-01-01'", "'2020-01-02'", "DATE '2020-01-02'", "TIMESTAMP '2020-01-01 00:00:00'", "NULL",
         "TIMESTAMP '2020-01-01 12:00:00'"),
        (date(2020, 1, 1), None), (("types", {"c": "date"}),),
    ),
    Kind(
        "timestamp", "datetime64[us]", (datetime(2020, 1, 1), datetime(2020, 1, 1, 12), datetime(2020, 1, 2), None),
        ("DATE '2020-01-01'", "TIMESTAMP '2020-01-01 00:00:00'", "TIMESTAMP '2020-01-01 12:00:00'", "NULL"),
        (datetime(2020, 1, 1, 12), date(2020, 1, 1), None),
    ),
)  # fmt: skip


def tables(kind: Kind) -> Callable[[Sequence[Any]], dict[str, Any]]:
    public = pd.DataFrame({"k": checks_series(kind.cells, kind.dtype), "w": range(len(kind.cells))})
    twice = pd.concat([public, public], ignore_index=True)
    types = dict(kind.declared).get("types", {})
    public_types = {"types": {"k": types["c"]}} if types else {}

    def make(rows: Sequence[Any]) -> dict[str, Any]:
        frame = pd.DataFrame(
            {
                "c": checks_series([row[0] for row in rows], kind.dtype),
                "x": np.array([row[1] for row in rows], dtype="int64"),
                "g": checks_series([row[2] for row in rows], "str"),
            }
        )
        words = {"bounds": {"x": (0, 5)}, "keys": {"g": ["p", "q"]}, "partition": "c"}
        for word, said in kind.declared:
            words[word] = {**words.get(word, {}), **said}
        return {
            "t": dpsql.Table(frame, **words),
            "pub": dpsql.Table(public, public=True, max_matches={"k": 4}, **public_types),
            "two": dpsql.Table(twice, public=True, max_matches={"k": 4}, **public_types),
        }

    return make


def checks_series(cells: Sequence[Any], dtype: Any) -> pd.Series:
    from tests.core.checks import series

    return series(list(cells), dtype)


SHAPES = (
    "SELECT COUNT(*) FROM t WHERE {p}",
    "SELECT COUNT(*), SUM(x) FROM t WHERE {p}",
    "SELECT g, COUNT(*), AVG(x) FROM t WHERE {p} GROUP BY g",
    "SELECT c, COUNT(*) FROM t WHERE {p} GROUP BY c",
    "SELECT COUNT(c) FROM t WHERE {p}",
    "SELECT COUNT(*) FROM (SELECT c, x FROM t WHERE {p}) WHERE {q}",
    "SELECT COUNT(*) FROM (SELECT c AS d, x AS c, x FROM t WHERE {p}) WHERE x > 1",
    "SELECT COUNT(*) FROM t JOIN two ON c = k WHERE {p}",
    "SELECT COUNT(*) FROM t, pub WHERE c = k AND {p}",
    "SELECT COUNT(*) FROM t LEFT JOIN two ON c = k AND w > 1 WHERE {p}",
    "SELECT COUNT(*) FROM t LEFT JOIN two ON c = k AND {p}",
    "SELECT COUNT(*) FROM two RIGHT JOIN t ON c = k WHERE {p} AND w IS NULL",
    "SELECT COUNT(*) FROM t WHERE c IN (SELECT k FROM pub WHERE w > 1) AND {p}",
    "SELECT COUNT(*) FROM t WHERE c IN (SELECT k FROM pub WHERE w > 1) OR {p}",
    "SELECT COUNT(*) FROM (SELECT c FROM t WHERE {p} UNION ALL SELECT c FROM t WHERE {q}) WHERE {p}",
    "SELECT SUM(CASE WHEN {p} THEN x ELSE 0 END) FROM t WHERE {q}",
    "SELECT COUNT(*) FILTER (WHERE {p}) FROM t",
    "WITH v AS (SELECT * FROM t WHERE {p}) SELECT COUNT(*) FROM v WHERE {q}",
)  # fmt: skip


def predicate(chance: random.Random, kind: Kind, params: dict[str, Any], depth: int = 2) -> str:
    """A condition, mostly about the partition's column."""
    if depth and chance.random() < 0.5:
        word = chance.choice(["AND", "OR"])
        arms = [predicate(chance, kind, params, depth - 1) for _ in range(chance.choice([2, 2, 3]))]
        return f"({f' {word} '.join(arms)})"

    def constant() -> str:
        if chance.random() < 0.25:
            name = f"p{len(params)}"
            params[name] = chance.choice(kind.params)
            return f":{name}"
        return chance.choice(kind.constants)

    one, listed = constant(), ", ".join(constant() for _ in range(chance.choice([1, 2, 3])))
    return chance.choice(
        [f"c = {one}"] * 6
        + [f"{one} = c"] * 2
        + [f"c IN ({listed})"] * 5
        + [f"NOT (c <> {one})", f"c <> {one}", f"c >= {one}", f"NOT c = {one}", f"c NOT IN ({listed})", "c IS NULL"]
        + [
            f"c IS NOT DISTINCT FROM {one}",
            f"c BETWEEN {one} AND {one}",
            f"(c = {one}) = TRUE",
            f"(c = {one}) IS NOT FALSE",
        ]
        + [f"COALESCE(c, {one}) = {one}", f"CASE WHEN c = {one} THEN TRUE END", "x > 2", "x = 1", "TRUE", "g = 'p'"]
        + ["c = c", f"x = {one}", f"NULLIF(c, {one}) IS NULL"]
    )


def questions(chance: random.Random, kind: Kind, count: int) -> list[Asked]:
    found = []
    for number in range(count):
        params: dict[str, Any] = {}
        sql = chance.choice(SHAPES).replace("{p}", predicate(chance, kind, params))
        sql = sql.replace("{q}", predicate(chance, kind, params))
        used = {name: value for name, value in params.items() if re.search(f":{name}\\b", sql)}
        found.append(Asked(sql, Fraction(2**number), used))  # no two sets of queries cost the same
    return found


def rows_of(chance: random.Random, kind: Kind, most: int) -> list[Any]:
    return [(chance.choice(kind.cells), chance.randrange(6), chance.choice("pq")) for _ in range(most)]


def _random_sets(kind: Kind, seeds: range, *, bounded: bool) -> int:
    confined = 0
    for seed in seeds:
        chance = random.Random(seed)
        make = tables(kind)
        asked = questions(chance, kind, 14)
        rows = [(cell, chance.randrange(6), chance.choice("pq")) for cell in kind.cells] + rows_of(chance, kind, 3)
        if bounded:
            others = rows_of(chance, kind, 3)
            confined += check_parts(make, rows[:6], asked, others=others, moves=True)
        else:
            confined += check_parts(make, rows, asked)
    return confined


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_parts_cover_every_row(kind: Kind):
    assert _random_sets(kind, range(2), bounded=False) > 2


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_parts_cover_every_change_of_a_row(kind: Kind):
    assert _random_sets(kind, range(100, 102), bounded=True) > 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_parts_cover_every_row_of_many(kind: Kind):
    _random_sets(kind, range(1000, 1300), bounded=False)
    _random_sets(kind, range(2000, 2060), bounded=True)


def check_constants(kind: Kind) -> None:
    """Every two constants, alone and listed together, each as a query of its own."""
    asked = [f"c = {one}" for one in kind.constants] + [f"{one} = c" for one in kind.constants]
    asked += [f"c IN ({one}, {other})" for one, other in itertools.combinations(kind.constants, 2)]
    asked += [f"c = {one} OR c = {other}" for one, other in itertools.combinations(kind.constants, 2)]
    rows = [(cell, 1, "p") for cell in kind.cells]
    queries = [Asked(f"SELECT COUNT(*) FROM t WHERE {each}", Fraction(2**i)) for i, each in enumerate(asked)]
    assert check_parts(tables(kind), rows, queries)


DIRECT = (
    "c = 1",
    "c = 2",
    "x = 1",
    "x = 2 AND g = 'p'",
    "g = 'p' OR c = 1",
    "c = 1 OR x = 2",
    "NOT c = 1",
    "c <> 1 AND c <> 2",
    "c = x",
)
DIRECT_SHAPES = (
    "SELECT COUNT(*) FROM t WHERE {p}",
    "SELECT COUNT(*) FILTER (WHERE {p}) FROM t",
    "SELECT COUNT(*) FROM t LEFT JOIN two ON c = k AND {p}",
    "SELECT COUNT(*) FROM t JOIN two ON c = k WHERE {p} AND w = 1",
    "SELECT COUNT(*) FROM (SELECT c, x, g FROM t WHERE c = 1 UNION ALL SELECT c, x, g FROM t WHERE {p})",
    "SELECT COUNT(*) FROM (SELECT x AS c, c AS x, g FROM t) WHERE {p}",
)


def check_places(*, bounded: bool = False) -> None:
    """Conditions on other columns, and in places where they do not hold for every row."""
    texts = [shape.replace("{p}", each) for shape in DIRECT_SHAPES for each in DIRECT]
    asked = [Asked(text, Fraction(i + 1)) for i, text in enumerate(texts)]
    rows = [(1, 1, "p"), (1, 2, "q"), (2, 1, "q"), (2, 2, "p"), (3, 3, "p"), (None, 1, "p")]
    others = [(1, 2, "p"), (2, 1, "p"), (None, 0, "q")] if bounded else []
    assert check_parts(tables(KINDS[0]), rows, asked, others=others, moves=bounded)


@pytest.mark.parametrize("bounded", [False, True])
def test_conditions_in_every_place(bounded: bool):
    check_places(bounded=bounded)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_constants_of_every_type(kind: Kind):
    check_constants(kind)


def _asked(path: Path | None = None, **more: Any) -> dpsql.Session:
    words: dict[str, Any] = {"budget": Budget(1), "ledger": path, "accountant": "basic"}
    return dpsql.Session({"people": checks.table(partition="city")}, **{**words, **more})


def test_two_parts_cost_once():
    with _asked() as asked:
        for city in "abc":
            asked.query(f"SELECT COUNT(*) FROM people WHERE city = '{city}'", epsilon=0.6)
        assert asked.spent.epsilon == Fraction(6, 10)
        asked.query("SELECT COUNT(*) FROM people WHERE city IN ('d', 'e') AND age > 3", epsilon=1)
        assert asked.spent.epsilon == 1
        asked.query("SELECT AVG(age) FROM people WHERE city = 'a'", epsilon=0.4)
        for sql in ("SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people WHERE city = 'a'"):
            with pytest.raises(BudgetExceeded):
                asked.query(sql, epsilon=0.1)
        asked.query("SELECT COUNT(*) FROM people WHERE city = 'b'", epsilon=0.4)
        assert asked.spent.epsilon == 1


def test_a_changed_row_can_be_in_two_parts():
    with _asked(neighbours="bounded") as asked:
        for city in "abc":
            asked.query(f"SELECT COUNT(*) FROM people WHERE city = '{city}'", epsilon=0.5)
        assert asked.spent.epsilon == 1
        with pytest.raises(BudgetExceeded):
            asked.query("SELECT COUNT(*) FROM people WHERE city = 'a'", epsilon=0.1)


def test_parts_in_a_later_session(tmp_path: Path):
    path = tmp_path / "a.ledger"
    for city in "ab":
        with _asked(path) as asked:
            asked.query(f"SELECT COUNT(*) FROM people WHERE city = '{city}'", epsilon=0.7)
            assert asked.spent.epsilon == Fraction(7, 10)
    with _asked(path) as asked, pytest.raises(BudgetExceeded):
        asked.query("SELECT COUNT(*) FROM people WHERE city = 'b'", epsilon=0.4)


@pytest.mark.parametrize(
    "more",
    [
        {"version": None},
        {"version": "2"},
        {"keys": {"city": ["b", "a"]}},
        {"nullable": {"city": False}},
        {"name": "folk"},
    ],
)
def test_parts_of_other_data_add_up(tmp_path: Path, more: dict[str, Any]):
    """The same words about a table that may hold other rows, or hold them in other parts."""
    path = tmp_path / "a.ledger"
    with _asked(path) as asked:
        asked.query("SELECT COUNT(*) FROM people WHERE city = 'a'", epsilon=0.6)
    name = more.pop("name", "people")
    made = dpsql.Session(
        {name: checks.table(partition="city", **more)}, budget=Budget(1), ledger=path, accountant="basic"
    )
    with made as asked, pytest.raises(BudgetExceeded):
        asked.query(f"SELECT COUNT(*) FROM {name} WHERE city = 'b'", epsilon=0.6)


@pytest.mark.parametrize("condition", ["c = 99999999999999999999", "c IN (1, 99999999999999999999)"])
def test_a_part_that_no_cell_can_be(condition: str):
    made = dpsql.Table(pd.DataFrame({"c": [1, 2]}), partition="c")
    with dpsql.Session({"t": made}, budget=Budget(10, 1e-6)) as asked:
        asked.query(f"SELECT c, COUNT(*) FROM t WHERE {condition} GROUP BY c", epsilon=1, delta=1e-9)
