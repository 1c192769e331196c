"""Row limits below joins: where they stand, what they cost, that people stay apart, and lies about them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core import row_limits
from dpsql.core.stability import DECLARED, stability
from dpsql.errors import InternalError
from dpsql.executors.pandas import database
from dpsql.executors.pandas import row_limits as pandas_limits
from dpsql.plan.nodes import Filter, RowLimit, nodes_of
from dpsql.session import prepare
from dpsql.testing import insecure_exact
from tests.core.test_stability_rules import PEOPLE, PUBLIC, ROWS, VISITS
from tests.core.unit_checks import KEYS, R1, R2, Question, people_stay_apart
from tests.lies import Check, Lie, Patch, assert_caught

ENGINES, TERMS = ("pandas", "duckdb"), {"epsilon": 1, "delta": 1e-6}
MOST, FAN_OUT, ROWS_OF_ONE = 5, 10_000, 300
PAIRS = "SELECT COUNT(*) AS n, SUM(a.y) AS s FROM v AS a JOIN v AS b ON a.pid = b.pid"
CROSSED = f"{PAIRS} CROSS JOIN pub"
OF_EACH = "SELECT n, COUNT(*) FROM (SELECT a.pid, COUNT(*) AS n FROM v a JOIN v b ON a.pid = b.pid GROUP BY a.pid)"
OF_EACH += " WHERE n BETWEEN 1 AND 1000 GROUP BY n"


def session(rows: int, *, engine: str = "pandas", most: int = MOST, **more: Any) -> dpsql.Session:
    """Person 0 with so many rows beside ten people with one."""
    prepare._cache.clear()
    people = np.concatenate([np.zeros(rows, dtype=np.int64), np.arange(1, 11)])
    v = pd.DataFrame({"pid": people, "y": np.arange(len(people)) % 997, "k": np.arange(len(people)) % 3})
    pub = pd.DataFrame({"j": np.arange(FAN_OUT), "k": np.arange(FAN_OUT) % 3})
    tables = {
        "v": dpsql.Table(v, unit="pid", max_rows=most, bounds={"y": (0, 1000), "k": (0, 2)}, **more),
        "pub": dpsql.Table(pub, public=True, unique=["j"]),
    }
    return dpsql.Session(tables, budget=dpsql.Budget(10**7, 0.5), engine=engine)


def test_a_limit_stands_on_both_sides_of_the_lowest_join_above_the_conditions_of_its_side():
    plan = session(1).explain(f"{CROSSED} WHERE a.y > 3 AND b.k = 1 AND a.y < b.y", epsilon=1).plan
    assert [line.strip() for line in str(plan).splitlines()[2:]] == [
        "cross join (at most 10000 each)",
        "filter a.y < b.y",
        "join on a.pid = b.pid",
        "at most 5 rows of each privacy unit",
        "filter a.y > 3",
        "scan v as a",
        "at most 5 rows of each privacy unit",
        "filter b.k = 1",
        "scan v as b",
        "scan public pub",
    ]


def limits_in(sql: str, **more: Any) -> list[int]:
    release = session(1, **more).explain(sql, **TERMS).release
    return [node.most for node in nodes_of(release.query.plan.input) if isinstance(node, RowLimit)]


CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = {})"


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT COUNT(*) FROM v", []),
        ("SELECT COUNT(*) FROM v WHERE pid IN (SELECT pid FROM v AS b)", []),
        ("SELECT COUNT(*) FROM v JOIN pub ON v.y = pub.j", []),
        ("SELECT COUNT(*) FROM v CROSS JOIN pub", [5]),
        (CROSSED, [5, 5]),
        (f"{PAIRS} JOIN v AS c ON c.pid = a.pid", [5, 5, 5]),
        (PAIRS.replace("SELECT", CLAUSE.format(9)), [9, 9]),
        (PAIRS.replace("SELECT", CLAUSE.format(2)), [5, 5]),
        (OF_EACH, [5, 5]),
        ("SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM v b WHERE b.pid = v.pid AND b.y < v.y)", [5, 5]),
        (
            "SELECT COUNT(*) FROM (SELECT pid FROM v UNION ALL SELECT pid FROM v) AS a JOIN v AS b USING (pid)",
            [10, 5],
        ),
        ("SELECT COUNT(*) FROM (SELECT pid FROM v GROUP BY pid) AS a JOIN v AS b ON a.pid = b.pid", []),
    ],
)
def test_only_what_multiplies_rows_is_limited_and_never_below_what_is_declared(sql: str, most: list[int]):
    assert limits_in(sql) == most


def test_a_self_join_keeps_the_same_rows_on_both_sides():
    """So that a join on more than the unit finds the partners of the rows that were kept."""
    sql = "SELECT COUNT(*) AS n FROM v AS a JOIN v AS b ON a.pid = b.pid AND a.y = b.y WHERE b.k >= 0"
    for engine in ENGINES:
        found = session(ROWS_OF_ONE, engine=engine).query(sql, epsilon=10**5).df["n"].tolist()
        assert found == [MOST + 10]


def test_rules_of_stability():
    assert stability(RowLimit(VISITS, 3, ())).by_unit == {DECLARED: 3}
    assert stability(RowLimit(PEOPLE, 3, ())).expected == 1
    assert stability(RowLimit(RowLimit(VISITS, 2, ()), 3, ())).rows == 2
    assert not stability(RowLimit(VISITS, 3, ())).every_row
    for source in (ROWS, PUBLIC):
        with pytest.raises(InternalError, match="not of a declared unit"):
            stability(RowLimit(source, 3, ()))


# Work


@contextmanager
def counted() -> Iterator[list[int]]:
    """How many rows joins make, pandas' joins one after the other."""
    rows: list[int] = []
    honest = database.multiplied

    def multiplied(*args: Any) -> Any:
        made = honest(*args)
        rows.append(made.rows)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "multiplied", multiplied)
        yield rows


def made_by_joins(rows: int, sql: str) -> int:
    with counted() as made:
        session(rows).query(sql, **TERMS)
    return sum(made)


def check_work() -> None:
    """A person of 300 rows makes no more rows in joins than one who keeps to the declared number."""
    for sql in (CROSSED, PAIRS, "SELECT COUNT(*), AVG(y + j) FROM v CROSS JOIN pub"):
        assert made_by_joins(ROWS_OF_ONE, sql) == made_by_joins(MOST, sql)
    assert made_by_joins(ROWS_OF_ONE, PAIRS) <= MOST**2 + 10 + 1  # the dry run has a row


def test_many_rows_of_a_person_make_no_more_rows_in_joins_than_the_declared_number():
    check_work()


@pytest.mark.parametrize("engine", ENGINES)
def test_many_rows_of_a_person_take_little_time(engine: str):
    """57 rows make as many pairs as engines make of one person beside 10,000 public rows: 33 million rows."""
    for rows in (57, ROWS_OF_ONE, 3_000):
        one, other = session(rows, engine=engine), session(1, engine=engine)
        times = []
        for each in (one, other):
            each.query(CROSSED, epsilon=1)  # what is loaded on first use
            start = time.process_time()
            each.query(CROSSED, epsilon=1, fresh=True)
            times.append(time.process_time() - start)
        assert times[0] < times[1] + 1


def test_each_person_has_at_most_so_many_pairs_on_every_engine():
    for key in KEYS:
        found = [insecure_exact(session(ROWS_OF_ONE, engine=each), OF_EACH, key, **TERMS) for each in ENGINES]
        assert found[0] == found[1]
        assert {group: parts[0] for group, parts in found[0].parts.items() if parts[0]} == {(1,): 10, (MOST**2,): 1}


# Neighbours: people of up to four rows beside limits of one and two.

QUESTIONS = (
    "SELECT COUNT(*), SUM(a.y), AVG(b.y) FROM e AS a JOIN e AS b ON a.pid = b.pid WHERE a.k > 0",
    "SELECT COUNT(*), SUM(e.y) FROM e JOIN e AS b ON e.pid = b.pid AND e.k = b.k CROSS JOIN pub",
    "SELECT tag, COUNT(*), SUM(e.y) FROM e JOIN tags ON e.k = tags.k GROUP BY tag",
    "SELECT COUNT(*), COUNT(b.y) FROM p LEFT JOIN e AS b ON p.pid = b.pid AND b.y > 0",
    "SELECT COUNT(*) FROM e WHERE EXISTS (SELECT 1 FROM e AS b WHERE b.pid = e.pid AND b.y < e.y)",
    "SELECT n, COUNT(*) FROM (SELECT a.pid, COUNT(*) AS n FROM e a JOIN e b USING (pid) GROUP BY a.pid) GROUP BY n",
    "SELECT COUNT(*) FROM (SELECT pid, y FROM e UNION ALL SELECT pid, x FROM p) AS a JOIN e ON a.pid = e.pid",
)  # fmt: skip


@pytest.mark.parametrize("limits", [R1, R2], ids=str)
@pytest.mark.parametrize("sql", QUESTIONS)
def test_people_beyond_their_limits_stay_apart(sql: str, limits: dict[str, int]):
    people_stay_apart(Question(sql, limits))()


# Lies


def keep_one_row_more(patch: Patch) -> None:
    honest = pandas_limits.limited
    patch.setattr(
        pandas_limits, "limited", lambda node, rows, key: honest(replace(node, most=node.most + 1), rows, key)
    )


def keep_all_rows(patch: Patch) -> None:
    patch.setattr(pandas_limits, "limited", lambda _node, rows, _key: rows)


def limit_everybody_together(patch: Patch) -> None:
    """The first rows of the table stay, whoever has them."""
    patch.setattr(pandas_limits, "limited", lambda node, rows, _key: rows.at(np.arange(min(rows.rows, 2 * node.most))))


def keep_the_first_rows(patch: Patch) -> None:
    patch.setattr(pandas_limits, "numbers_of", lambda hashed, _lanes: np.arange(len(hashed), dtype=np.uint64))


def limit_above_the_join(patch: Patch) -> None:
    """As contribution bounds do: all pairs are made."""
    honest = row_limits.limit_join_inputs

    def above(plan: Any, options: Any) -> Any:
        limited = honest(plan, options)
        first = next((node for node in nodes_of(limited.input) if isinstance(node, RowLimit)), None)
        return plan if first is None else replace(plan, input=RowLimit(plan.input, first.most, ()))

    patch.setattr(row_limits, "limit_join_inputs", above)


def limit_before_conditions(patch: Patch) -> None:
    """Rows that do not count take the place of rows that do."""
    honest = row_limits._Limiter._limit

    def limit(self: Any, side: Any) -> Any:
        made, terms = side, []
        while isinstance(made, Filter):
            terms.append(made.predicate)
            made = made.input
        return row_limits._filtered(honest(self, made), terms)

    patch.setattr(row_limits._Limiter, "_limit", limit)


def check_conditions_first() -> None:
    """Every row that a person has below the condition is kept, where these are no more than the limit."""
    sql = "SELECT COUNT(*) AS n FROM v CROSS JOIN pub WHERE v.pid = 0 AND v.y < 4 AND pub.j = 0"
    assert session(ROWS_OF_ONE, most=4).query(sql, epsilon=10**5).df["n"].tolist() == [4]


def test_conditions_on_one_side_come_before_its_limit():
    check_conditions_first()


LIES: list[tuple[Lie, Check]] = [
    (keep_one_row_more, check_work),
    (keep_all_rows, check_work),
    (limit_above_the_join, check_work),
    (limit_before_conditions, check_conditions_first),
    (limit_everybody_together, people_stay_apart(Question(QUESTIONS[0], R1))),
    (keep_the_first_rows, people_stay_apart(Question(QUESTIONS[0], R1))),
]


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_a_lie_about_row_limits_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check)
