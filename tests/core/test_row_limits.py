"""Row limits below joins: their places, their work, people who stay apart, and lies about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core import row_limits
from dpsql.core.row_limits import SMALL_JOIN, without_row_limits
from dpsql.core.sensitivity.stability import DECLARED, stability
from dpsql.errors import InternalError
from dpsql.executors.pandas import database
from dpsql.executors.pandas import row_limits as pandas_limits
from dpsql.executors.pandas.joins import pairing
from dpsql.plan.nodes import Filter, Join, RowLimit, nodes_of
from dpsql.session import prepare
from dpsql.testing import insecure_exact
from tests.core.test_stability_rules import PEOPLE, PUBLIC, ROWS, VISITS
from tests.core.unit_checks import KEYS, R1, R2, Question, people_stay_apart
from tests.lies import Check, Lie, Patch, assert_caught

ENGINES, TERMS = ("pandas", "duckdb"), {"epsilon": 1, "delta": 1e-6}
MOST, FAN_OUT, ROWS_OF_ONE = 5, 10_000, 300
PAIRS = "SELECT COUNT(*) AS n, SUM(a.y) AS s FROM v AS a JOIN v AS b ON a.pid = b.pid"
CROSSED = f"{PAIRS} CROSS JOIN pub"
PLAIN = "SELECT COUNT(*) AS n, AVG(y + j) FROM v CROSS JOIN pub"


def session(rows: int, *, engine: str = "pandas", max_rows: int | None = MOST) -> dpsql.Session:
    """Person 0 with so many rows next to ten people with one."""
    prepare._cache.clear()
    people = np.concatenate([np.zeros(rows, dtype=np.int64), np.arange(1, 11)])
    v = pd.DataFrame({"pid": people, "y": np.arange(len(people)) % 997, "k": np.arange(len(people)) % 3})
    pub = pd.DataFrame({"j": np.arange(FAN_OUT), "k": np.arange(FAN_OUT) % 3})
    tables = {
        "v": dpsql.Table(v, unit="pid", max_rows=max_rows, bounds={"y": (0, 1000), "k": (0, 2)}),
        "pub": dpsql.Table(pub, public=True, unique=["j"]),
        "twice": dpsql.Table(pub, public=True, max_matches={"j": 2}),
        "many": dpsql.Table(pub.head(50), public=True, max_matches={"k": 50}),
    }
    return dpsql.Session(tables, budget=dpsql.Budget(10**7, 0.5), engine=engine)


def test_a_limit_stands_below_a_cross_join_above_the_conditions_of_its_rows():
    plan = session(1).explain(f"{CROSSED} WHERE a.y > 3 AND a.y < b.y AND a.y < pub.j", epsilon=1).plan
    assert [line.strip() for line in str(plan).splitlines()[2:]] == [
        "filter a.y < pub.j",
        "cross join (at most 10000 each)",
        "at most 25 rows of each privacy unit",
        "filter a.y < b.y",
        "join on a.pid = b.pid",
        "at most 256 rows of each privacy unit",
        "filter a.y > 3",
        "scan v as a",
        "at most 256 rows of each privacy unit",
        "scan v as b",
        "scan public pub",
    ]


def limits_in(sql: str, max_rows: int | None = MOST) -> list[int]:
    release = session(1, max_rows=max_rows).explain(sql, **TERMS)._release
    return [node.most for node in nodes_of(release.query.plan.input) if isinstance(node, RowLimit)]


CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = {})"
BY_PERSON = "SELECT pid, COUNT(*) AS n FROM v CROSS JOIN pub GROUP BY pid"
NUMBERED = "SELECT v.pid, ROW_NUMBER() OVER (PARTITION BY v.pid ORDER BY j) AS n FROM v CROSS JOIN pub"


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        (PLAIN, [5]),
        (CROSSED, [25, 256, 256]),
        ("SELECT COUNT(*) FROM v JOIN pub ON v.y < pub.j", [5]),
        ("SELECT COUNT(*) FROM v LEFT JOIN (VALUES (1), (2)) AS c(x) ON TRUE", [5]),
        (f"{PAIRS} JOIN v AS c ON c.pid = a.pid CROSS JOIN pub", [125, 40, 40, 40]),
        (f"{PLAIN} CROSS JOIN (VALUES (1)) AS c(x)", [5]),
        (PLAIN.replace("SELECT", CLAUSE.format(9)), [9]),
        (PLAIN.replace("SELECT", CLAUSE.format(2)), [5]),
        (f"SELECT COUNT(*) FROM ({BY_PERSON}) AS q CROSS JOIN (VALUES (1), (2)) AS c(x)", [6]),
        ("SELECT COUNT(*) FROM (SELECT pid FROM v UNION ALL SELECT pid FROM v) CROSS JOIN (VALUES (1), (2))", [10]),
        ("SELECT COUNT(*) FROM (SELECT pid FROM v UNION ALL SELECT pid FROM v CROSS JOIN (VALUES (1), (2)))", [5]),
        ("SELECT COUNT(*) FROM v CROSS JOIN pub WHERE pid IN (SELECT pid FROM v AS b WHERE b.y < 3)", [5]),
    ],
)
def test_what_a_join_without_keys_multiplies_is_limited_and_never_below_what_is_declared(sql: str, most: list[int]):
    assert limits_in(sql) == most


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        (PAIRS, [256, 256]),
        (f"{PAIRS} AND a.y < b.y", [256, 256]),
        (PAIRS.replace("SELECT", CLAUSE.format(999)), [999, 999]),
        (f"{PAIRS} JOIN v AS c ON c.pid = a.pid", [40, 40, 40]),
        (f"{PAIRS} JOIN many ON a.k = many.k", [36, 36]),
        ("SELECT COUNT(*) FROM v JOIN many ON v.k = many.k", [1310]),
        ("SELECT COUNT(*) FROM v WHERE pid IN (SELECT pid FROM v AS b CROSS JOIN pub WHERE b.y < j)", [6]),
        ("SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM v b WHERE b.pid = v.pid AND b.y < v.y)", [256, 256]),
        ("SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM pub WHERE j < v.y)", [6]),
        (f"SELECT n, COUNT(*) FROM ({BY_PERSON}) WHERE n BETWEEN 1 AND 1000 GROUP BY n", [6]),
        (f"SELECT COUNT(*) FROM ({NUMBERED}) WHERE n = 1", [6]),
        ("SELECT COUNT(*) FROM (SELECT pid, j FROM v CROSS JOIN pub) AS a JOIN v AS b ON a.pid = b.pid", [5, 5]),
        (f"SELECT COUNT(*) FROM ({BY_PERSON}) AS a JOIN ({BY_PERSON}) AS b ON a.pid = b.pid", [6, 6]),
    ],
)
def test_other_joins_are_limited_where_a_unit_makes_many_rows(sql: str, most: list[int]):
    """Row limits below joins by equal values, counts and windows within a person, and EXISTS."""
    assert limits_in(sql) == most


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM v",
        "SELECT COUNT(*) FROM v JOIN pub ON v.y = pub.j",
        "SELECT COUNT(*) FROM v JOIN twice ON v.y = twice.j AND v.k < twice.k",
        "SELECT COUNT(*) FROM v CROSS JOIN (VALUES (1)) AS c(x)",
        "SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM v b WHERE b.pid = v.pid AND b.y = v.y)",
        "SELECT COUNT(*) FROM v WHERE y IN (SELECT j FROM pub)",
        "SELECT n, COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM v GROUP BY pid) WHERE n BETWEEN 1 AND 9 GROUP BY n",
    ],
)
def test_nothing_is_limited_elsewhere(sql: str):
    assert limits_in(sql) == []


def test_a_table_without_a_declared_limit_is_not_limited():
    """The text alone would drop rows of people who keep to every limit that there is."""
    assert limits_in(PLAIN.replace("SELECT", CLAUSE.format(2)), max_rows=None) == []


@pytest.mark.parametrize(
    "sql",
    [
        PAIRS,
        BY_PERSON,
        f"{CROSSED} WHERE a.y > 3 AND a.k = j",
        "SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM v b WHERE b.pid = v.pid AND b.y < v.y)",
    ],
)
def test_a_plan_without_its_row_limits_has_none(sql: str):
    release = session(1).explain(sql.replace(BY_PERSON, f"SELECT COUNT(*) FROM ({BY_PERSON})"), **TERMS)._release
    left = without_row_limits(release.query.plan.input)
    assert not any(isinstance(node, RowLimit) for node in nodes_of(left))


def counted_of_one(sql: str, rows: int, engine: str) -> int:
    return int(session(rows, engine=engine).query(sql, epsilon=10**5).df["n"][0])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_person_of_too_many_rows_keeps_all_pairs_of_equal_values(engine: str):
    """30 rows on each side: with 5 of them, nearly no pair would be left."""
    equal = f"{PAIRS} AND a.y = b.y WHERE a.pid = 0"
    assert counted_of_one(equal.replace(", SUM(a.y) AS s", ""), 30, engine) == MOST


@pytest.mark.parametrize("engine", ENGINES)
def test_a_person_who_keeps_to_the_declared_rows_loses_none(engine: str):
    sql = CROSSED.replace(", SUM(a.y) AS s", "").replace("SELECT", CLAUSE.format(25))
    assert counted_of_one(f"{sql} WHERE a.pid = 0 AND pub.j = 7", MOST, engine) == MOST**2


def test_rules_of_stability():
    assert stability(RowLimit(VISITS, 3, ())).by_unit == {DECLARED: 3}
    assert stability(RowLimit(PEOPLE, 3, ())).expected == 1
    assert stability(RowLimit(RowLimit(VISITS, 2, ()), 3, ())).rows == 2
    assert not stability(RowLimit(VISITS, 3, ())).every_row
    for source in (ROWS, PUBLIC):
        with pytest.raises(InternalError, match="not of a declared unit"):
            stability(RowLimit(source, 3, ()))


# Work: rows are counted, and not seconds.


@contextmanager
def counted() -> Iterator[list[int]]:
    """The rows that pandas' joins make, join by join; a huge number for more than are held at once."""
    rows: list[int] = []
    honest = database.multiplied

    def multiplied(*args: Any) -> Any:
        try:
            made = honest(*args)
        except pairing.TooManyRows:
            rows.append(1 << 40)
            raise
        rows.append(made.rows)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "multiplied", multiplied)
        yield rows


def made_by_joins(rows: int, sql: str) -> int:
    with counted() as made:
        session(rows).query(sql, **TERMS)
    return max(made)


def check_work() -> None:
    """However many rows a person has, a join without keys makes as many as of one who keeps to the declared number.
    50 rows make 2,500 pairs, near the most that are made below 10,000 public rows."""
    for rows in (50, ROWS_OF_ONE):
        assert made_by_joins(rows, CROSSED) <= made_by_joins(MOST, CROSSED) == (MOST**2 + 10) * FAN_OUT
        assert made_by_joins(rows, PLAIN) == made_by_joins(MOST, PLAIN) == (MOST + 10) * FAN_OUT


def test_many_rows_of_a_person_make_no_more_rows_in_joins_than_the_declared_number():
    check_work()


JOINED = (
    PAIRS,
    f"{PAIRS} AND a.k = b.k",
    f"{PAIRS} JOIN v AS c ON c.pid = a.pid",
    f"SELECT COUNT(*) FROM ({BY_PERSON}) WHERE n > 5",
    f"SELECT COUNT(*) FROM ({PAIRS.replace('SELECT', 'SELECT a.pid,')} GROUP BY a.pid) WHERE n > 5",
    f"SELECT COUNT(*) FROM ({NUMBERED}) WHERE n = 1",
    "SELECT COUNT(*) FROM v WHERE pid IN (SELECT pid FROM v AS b CROSS JOIN pub WHERE b.y < j)",
)


def check_work_of_pairs() -> None:
    """Joins of equal values, and joins in sub-queries by person, make no more rows of a person than SMALL_JOIN."""
    for sql in JOINED:
        assert made_by_joins(2_000, sql) - made_by_joins(0, sql) <= SMALL_JOIN, sql


def test_many_rows_of_a_person_make_no_more_pairs_than_take_little_time():
    check_work_of_pairs()


def test_rows_are_compared_with_no_more_rows_than_take_little_time():
    """A person of 2,000 rows has 256 of them looked at in EXISTS, whose condition is computed for pairs."""
    seen: list[int] = []
    honest = pairing._any_pair

    def any_pair(condition: Any, rows: Any, inner: Any, runs: Any) -> Any:
        seen.append(int(runs.pairs.sum()))
        return honest(condition, rows, inner, runs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairing, "_any_pair", any_pair)
        exists = "SELECT COUNT(*) FROM v WHERE EXISTS (SELECT 1 FROM {})"
        session(2_000).query(exists.format("v b WHERE b.pid = v.pid AND b.y < v.y - 500"), **TERMS)
        assert 10 < max(seen) <= SMALL_JOIN + 10
        seen.clear()
        session(2_000).query(exists.format("pub WHERE j < v.y - 500"), **TERMS)
        assert 10 < max(seen) <= SMALL_JOIN + 10 * FAN_OUT


def check_engines_agree() -> None:
    """Of 300 rows all engines keep the same five: SUM depends on which ones these are."""
    for sql in (
        "SELECT SUM(y) FROM v CROSS JOIN twice WHERE j < 3",
        f"{PAIRS} CROSS JOIN twice WHERE a.y < b.y AND j < 3",
    ):
        _engines_agree(sql)


def _engines_agree(sql: str) -> None:
    for key in KEYS:
        found = [insecure_exact(session(30, engine=each), sql, key, **TERMS) for each in ENGINES]
        assert found[0] == found[1], sql


def test_engines_keep_the_same_rows(monkeypatch: pytest.MonkeyPatch):
    check_engines_agree()
    monkeypatch.setattr(row_limits, "SMALL_JOIN", 1)  # 30 rows are above all limits
    for sql in (
        PAIRS,
        f"{PAIRS} AND a.y = b.y",
        "SELECT SUM(n) FROM (SELECT pid, SUM(y) AS n FROM v CROSS JOIN twice WHERE j < 3 GROUP BY pid)",
        "SELECT SUM(y) FROM v WHERE EXISTS (SELECT 1 FROM v b WHERE b.pid = v.pid AND b.y < v.y)",
        "SELECT SUM(y) FROM v WHERE EXISTS (SELECT 1 FROM pub WHERE j < v.y)",
    ):
        _engines_agree(sql.replace("SUM(n)", "SUM(CLAMP(n, 0, 99999))"))


def test_a_self_join_keeps_the_same_rows_on_both_sides(monkeypatch: pytest.MonkeyPatch):
    """Five rows on each side, of 30 different ones, each of which meets itself, whichever these are."""
    monkeypatch.setattr(row_limits, "SMALL_JOIN", 1)
    sql = "SELECT COUNT(*) AS n FROM v AS a JOIN v AS b ON a.pid = b.pid AND a.y = b.y WHERE a.pid = 0"
    for engine in ENGINES:
        assert counted_of_one(sql, 30, engine) == MOST


# Neighbours: people of up to four rows beside limits of one and two.

QUESTIONS = (
    "SELECT COUNT(*), SUM(y), AVG(y * w) FROM e CROSS JOIN pub WHERE e.k > 0",
    "SELECT COUNT(*), SUM(a.y) FROM e AS a JOIN e AS b ON a.pid = b.pid CROSS JOIN pub WHERE a.y < b.y",
    "SELECT name, COUNT(*), SUM(y) FROM e JOIN pub ON e.y < pub.w GROUP BY name",
    "SELECT tag, COUNT(*), SUM(y) FROM e CROSS JOIN pub JOIN tags ON pub.k = tags.k GROUP BY tag",
    "SELECT COUNT(*), SUM(y) FROM (SELECT pid, y FROM e UNION ALL SELECT pid, x FROM p) CROSS JOIN pub WHERE y > w",
    "SELECT COUNT(*) FROM e CROSS JOIN pub WHERE EXISTS (SELECT 1 FROM e AS b WHERE b.pid = e.pid AND b.y < e.y)",
)  # fmt: skip


PAIRED = (
    "SELECT COUNT(*), SUM(a.y) FROM e AS a JOIN e AS b ON a.pid = b.pid",
    "SELECT COUNT(*), SUM(a.y) FROM e AS a JOIN e AS b ON a.pid = b.pid AND a.y = b.y",
    "SELECT COUNT(*), SUM(a.y) FROM e AS a LEFT JOIN e AS b ON a.pid = b.pid AND a.y = b.y",
    "SELECT COUNT(*) FROM (SELECT pid, COUNT(*) AS n FROM e CROSS JOIN pub GROUP BY pid) WHERE n > 2",
    "SELECT COUNT(*) FROM (SELECT a.pid, COUNT(*) AS n FROM e a JOIN e b ON a.pid = b.pid GROUP BY a.pid) WHERE n > 2",
    "SELECT COUNT(*), SUM(y) FROM e WHERE EXISTS (SELECT 1 FROM e AS b WHERE b.pid = e.pid AND b.y < e.y)",
    "SELECT COUNT(*), SUM(y) FROM e WHERE NOT EXISTS (SELECT 1 FROM pub WHERE pub.w < e.y)",
    "SELECT COUNT(*), SUM(y) FROM e WHERE pid IN (SELECT b.pid FROM e AS b CROSS JOIN pub WHERE b.y > pub.w)",
)  # fmt: skip


SMALL_JOINS = (*((sql, row_limits.SMALL_JOIN) for sql in QUESTIONS), *((sql, 1) for sql in PAIRED))
"""With 1 the limits of pairs are those that owners declare."""


@pytest.mark.parametrize("limits", [R1, R2], ids=str)
@pytest.mark.parametrize(("sql", "small_join"), SMALL_JOINS)
def test_people_beyond_their_limits_stay_apart(
    sql: str, small_join: int, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(row_limits, "SMALL_JOIN", small_join)
    people_stay_apart(Question(sql, limits))()


# Lies


def limit_only_joins_without_keys(patch: Patch) -> None:
    honest = row_limits.multiplies
    patch.setattr(
        row_limits, "multiplies", lambda node: honest(node) and isinstance(node, Join) and row_limits.is_crossed(node)
    )


def limit_one_side(patch: Patch) -> None:
    """All rows on the right side meet the rows that are left."""
    honest = row_limits._Limiter._join_of_people

    def join(self: Any, *args: Any) -> Any:
        made = honest(self, *args)
        join = next(node for node in nodes_of(made) if isinstance(node, Join))
        return replace(join, right=without_row_limits(join.right))

    patch.setattr(row_limits._Limiter, "_join_of_people", join)


def forget_public_rows(patch: Patch) -> None:
    """Each of a unit's rows below a sub-query by person meets 10,000 public ones."""
    patch.setattr(row_limits._Above, "joined", lambda self, _times: self)


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


def keep_all_rows_in_sql(patch: Patch) -> None:
    patch.setattr("dpsql.executors.sql.sources.limited", lambda _node, rows, _writer, _named, _key: rows)


def limit_above_the_join(patch: Patch) -> None:
    """As contribution bounds do: all rows are made."""
    honest = row_limits.limit_join_inputs

    def above(plan: Any, options: Any) -> Any:
        limited = honest(plan, options)
        first = next((node for node in nodes_of(limited.input) if isinstance(node, RowLimit)), None)
        return plan if first is None else replace(plan, input=RowLimit(plan.input, first.most, ()))

    patch.setattr(row_limits, "limit_join_inputs", above)


def limit_before_conditions(patch: Patch) -> None:
    """Rows that do not count take the place of rows that do."""
    honest = row_limits._Limiter._limit

    def limit(self: Any, rows: Any, least: int) -> Any:
        made, terms = rows, []
        while isinstance(made, Filter):
            terms.append(made.predicate)
            made = made.input
        return row_limits._filtered(honest(self, made, least), terms)

    patch.setattr(row_limits._Limiter, "_limit", limit)


def check_conditions_first() -> None:
    """All rows for which the condition holds are kept, where these are no more than the limit."""
    sql = "SELECT COUNT(*) AS n FROM v CROSS JOIN pub WHERE v.pid = 0 AND v.y < 4 AND pub.j = 0"
    assert counted_of_one(sql, ROWS_OF_ONE, "pandas") == 4


def test_conditions_on_the_rows_come_before_their_limit():
    check_conditions_first()


LIES: list[tuple[Lie, Check]] = [
    (keep_one_row_more, check_work),
    (keep_all_rows, check_work),
    (keep_all_rows, check_work_of_pairs),
    (limit_only_joins_without_keys, check_work_of_pairs),
    (limit_one_side, check_work_of_pairs),
    (forget_public_rows, check_work_of_pairs),
    (limit_above_the_join, check_work),
    (keep_all_rows_in_sql, check_engines_agree),
    (limit_before_conditions, check_conditions_first),
    (limit_everybody_together, people_stay_apart(Question(QUESTIONS[0], R1))),
    (keep_the_first_rows, people_stay_apart(Question(QUESTIONS[0], R1))),
]


@pytest.mark.parametrize(("lie", "check"), LIES, ids=lambda each: each.__name__)
def test_a_lie_about_row_limits_is_caught(lie: Lie, check: Check):
    assert_caught(lie, check)
