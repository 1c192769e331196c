"""A released value asked about again: what it costs, what is refused, and values that no one expects."""

import math
import random
import threading
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.answer.multi_step import MultiStepExplanation, MultiStepResult
from dpsql.errors import (
    DPSQLError,
    InternalError,
    MissingBounds,
    PostprocessFailed,
    QueryRefused,
    SQLSyntaxError,
    TypeMismatch,
    UnknownColumn,
    UnknownGroups,
    UnsupportedSQL,
)
from dpsql.executors.base import ENGINES, executor_of
from dpsql.plan.domains import cells_of
from dpsql.plan.expressions import Vector
from dpsql.plan.prior_releases import value_column
from dpsql.postprocess.frames import Frame
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import Type
from dpsql.schema.intervals import Interval
from dpsql.session.multi_step import prior_releases as earlier
from dpsql.session.multi_step import queries as program_questions
from dpsql.session.multi_step.prior_releases import PriorReleases, seen
from dpsql.session.prepare import prepare
from dpsql.session.prepared_query import PreparedQuery
from dpsql.session.run import run
from tests.session import earlier_worlds
from tests.session.earlier_worlds import Met, ask
from tests.session.test_steps import PEOPLE, session, tables, without_noise  # noqa: F401 - a fixture

ABOVE = "SELECT COUNT(*) AS n FROM people WHERE pay > (SELECT AVG(pay) FROM people)"
TOP = "SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2"
OF_THE_TOP = f"SELECT city, sex, COUNT(*) AS m FROM people JOIN ({TOP}) top USING (city) GROUP BY city, sex"


# What it costs.


def test_both_releases_are_charged_in_one_entry_before_the_first_is_drawn():
    asked = session()
    result = asked.query(ABOVE, epsilon=1)
    assert isinstance(result, MultiStepResult)
    (entry,) = asked.ledger()
    assert (entry.label, entry.cost.epsilon) == (ABOVE, 1)
    assert [each.loss.epsilon for each in result.answers] == [Fraction(1, 2)] * 2
    again = asked.query(ABOVE, epsilon=1)
    assert again.replayed
    assert [*again] == [*result]
    assert asked.spent.epsilon == 1
    asked.query(ABOVE, epsilon=1, fresh=True)
    assert asked.spent.epsilon == 2


def test_what_is_known_of_earlier_releases_is_read_and_not_paid_again():
    asked = session()
    assert asked.quote(ABOVE, epsilon=1).cost.epsilon == 1
    asked.query("SELECT AVG(pay) AS a FROM people", epsilon=0.5)
    assert asked.quote(ABOVE, epsilon=1).cost.epsilon == Fraction(1, 2)
    assert "1 of 2 answered before" in asked.query(ABOVE, epsilon=1).footer
    assert asked.spent.epsilon == 1
    assert asked.quote(ABOVE, epsilon=1).cost.free
    other = asked.query(ABOVE.replace("COUNT(*)", "SUM(age)"), epsilon=1)
    assert "1 of 2 answered before" in other.footer
    costs = [each.cost.epsilon for each in session().quotes([ABOVE, ABOVE, "SELECT COUNT(*) FROM people"], epsilon=1)]
    assert costs == [1, 0, 1]


def test_a_constant_of_the_same_value_is_another_question(without_noise: None):  # noqa: F811
    """A literal narrows what is known of rows, and what is shown does not: their keys differ."""
    asked = session()
    value = asked.query("SELECT AVG(pay) AS a FROM people", epsilon=0.5).item()
    asked.query(ABOVE, epsilon=1)
    spent = asked.spent.epsilon
    result = asked.query("SELECT COUNT(*) AS n FROM people WHERE pay > :v", epsilon=0.5, params={"v": value})
    assert not result.replayed
    assert asked.spent.epsilon == spent + Fraction(1, 2)


def test_another_value_is_another_question():
    asked = session()
    first = asked.query(ABOVE, epsilon=1, fresh=True)
    second = asked.query(ABOVE, epsilon=1, fresh=True)
    values = [each.answers[0].item() for each in (first, second) if isinstance(each, MultiStepResult)]
    assert values[0] != values[1]
    assert asked.spent.epsilon == 2


def test_what_dies_between_two_releases_stays_charged_and_what_was_drawn_is_kept(monkeypatch: pytest.MonkeyPatch):
    asked = session()
    calls: list[Release] = []

    def once(release: Release, *others: Any) -> ReleasedValues:
        calls.append(release)
        if len(calls) == 2:
            raise InternalError("out of memory")
        return run(release, *others)

    with monkeypatch.context() as patched:
        patched.setattr(program_questions, "run", once)
        with pytest.raises(InternalError):
            asked.query(ABOVE, epsilon=1)
    assert asked.spent.epsilon == 1
    kept = asked.query("SELECT AVG(pay) AS a FROM people", epsilon=0.5)
    assert kept.replayed
    result = asked.query(ABOVE, epsilon=1)
    assert isinstance(result, MultiStepResult)
    assert result.answers[0].item() == kept.item()
    assert asked.spent.epsilon == Fraction(3, 2)


def test_a_ledger_keeps_them_for_later_sessions(tmp_path: Path):
    with session(ledger=tmp_path / "ledger") as first:
        given = [*first.query(OF_THE_TOP, epsilon=1)]
    with dpsql.Session(tables(), ledger=tmp_path / "ledger") as second:
        again = second.query(OF_THE_TOP, epsilon=1)
        assert again.replayed
        assert [*again] == given
        assert second.spent.epsilon == 1


def test_two_threads_that_ask_at_once_pay_once():
    asked = session()
    given: list[Any] = []
    threads = [threading.Thread(target=lambda: given.append([*asked.query(OF_THE_TOP, epsilon=1)])) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert given == [given[0]] * 4
    assert asked.spent.epsilon == 1


def test_what_fails_on_shown_values_keeps_the_paid_answers():
    asked = session()
    value = "(SELECT n FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) q WHERE n > -1e9)"
    with pytest.raises(PostprocessFailed, match="gave several rows") as caught:
        asked.query(f"SELECT COUNT(*) AS n FROM people WHERE pay > {value}", epsilon=1)
    assert len(caught.value.answers) == 1
    assert asked.spent.epsilon == 1
    with pytest.raises(PostprocessFailed):  # before anything is charged, since all that it reads is known
        asked.query(f"SELECT COUNT(*) AS n FROM people WHERE pay > {value}", epsilon=1)
    assert asked.spent.epsilon == 1


def test_the_plan_says_what_is_put_in():
    asked = session()
    explained = asked.query(f"EXPLAIN PRIVACY {ABOVE}", epsilon=1)
    assert isinstance(explained, MultiStepExplanation)
    text = str(explained)
    assert "Given      (SELECT AVG(pay) FROM people), as shown by release 1" in text
    assert "pay > (SELECT AVG(pay) FROM people)" in text
    assert explained.to_dict()["steps"][1]["given"] == ["(SELECT AVG(pay) FROM people)"]
    assert "at most 4 public groups, all shown" in str(asked.explain(OF_THE_TOP, epsilon=1))
    result = asked.query(ABOVE, epsilon=1)
    assert "release 2 is given (SELECT AVG(pay) FROM people) as shown, and its intervals are too" in result.notes
    assert str(asked.explain(ABOVE, epsilon=1)).splitlines()[:-1] == text.splitlines()[:-1], "no value narrows a plan"


def test_without_a_session_and_under_any_name():
    result = dpsql.query(
        PEOPLE, "SELECT COUNT(*) AS n FROM t WHERE pay > (SELECT AVG(pay) FROM t)", epsilon=1, bounds={"pay": (0, 100)}
    )
    assert "spent epsilon 1" in result.footer
    by_rho = dpsql.Session(tables(), budget=dpsql.Budget(10, 1e-6), accountant="zcdp")
    assert by_rho.query(ABOVE, rho=0.5).loss.rho <= Fraction(1, 2)


def test_hidden_groups_share_delta_too():
    people = {"people": dpsql.Table(PEOPLE, bounds={"pay": (0, 100)})}
    asked = dpsql.Session(people, budget=dpsql.Budget(100, 1e-3))
    result = asked.query(OF_THE_TOP, epsilon=4, delta=1e-5)
    assert isinstance(result, MultiStepResult)
    (entry,) = asked.ledger()
    assert [each.loss.delta for each in result.answers] == [Fraction(1, 200_000)] * 2
    assert entry.cost.delta == Fraction(1, 100_000)
    cities = {row[0] for row in result.answers[0]}
    assert len(cities) == 2
    assert {row[0] for row in result} == cities
    listed = (
        "SELECT city, COUNT(*) AS n FROM people WHERE city IN (SELECT city FROM people GROUP BY city) GROUP BY city"
    )
    assert len([*asked.query(listed, epsilon=4, delta=1e-5)]) == 3


SEARCHED: list[tuple[str, float, float]] = [
    (ABOVE, float((PEOPLE["pay"] > PEOPLE["pay"].mean()).sum()), 20.0),
    ("SELECT AVG(pay) AS a FROM people WHERE pay > (SELECT AVG(pay) FROM people)", 75.6, 8.0),
]


def test_bounds_are_searched_for_either_release():
    """Those of a later release over the rows that it is left with by what was shown; all in one charge."""
    searched = dpsql.Table(PEOPLE, keys={"sex": ["F", "M"]}, bounds={"pay": "auto"}, types={"pay": "integer"})
    asked = dpsql.Session({"people": searched}, budget=dpsql.Budget(1_000))
    for number, (sql, expected, off) in enumerate(SEARCHED, start=1):
        result = asked.query(sql, epsilon=50 * number)
        assert isinstance(result, MultiStepResult)
        ((value,),) = result
        assert abs(value - expected) < off
        assert "pay" in result.bounds
        spent = asked.spent.epsilon
        assert [*asked.query(sql, epsilon=50 * number)] == [*result]
        assert asked.spent.epsilon == spent
    assert [entry.cost.epsilon for entry in asked.ledger()] == [50, 100]


# What is refused.

MODE, MEAN = "(SELECT MODE(sex) FROM people)", "(SELECT AVG(pay) FROM people)"
REFUSED: list[tuple[type[DPSQLError], str, str]] = [
    (UnsupportedSQL, "a pattern is a constant", f"SELECT COUNT(*) FROM people WHERE sex LIKE {MODE}"),
    (SQLSyntaxError, "LIMIT takes", f"SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT {MEAN}"),
    (SQLSyntaxError, "a quantile is", f"SELECT QUANTILE(pay, {MEAN}) FROM people"),
    (SQLSyntaxError, "unit of time", f"SELECT DATE_TRUNC({MODE}, DATE '2020-01-01'), COUNT(*) FROM people GROUP BY 1"),
    (SQLSyntaxError, "pair of numbers", f"SELECT AVG(pay, contribution_bounds_per_group => (0, {MEAN})) FROM people"),
    (MissingBounds, f"needs bounds for {MEAN}", f"SELECT SUM(pay - {MEAN}) FROM people"),
    (MissingBounds, "needs bounds", f"SELECT SUM(top.n) FROM people JOIN ({TOP}) top USING (city)"),
    (
        UnsupportedSQL,
        "people.city is a column of the row",
        "SELECT COUNT(*) FROM people WHERE pay > (SELECT AVG(pay) FROM people p WHERE p.city = people.city)",
    ),
    (
        UnsupportedSQL,
        "month is a column of the row",
        "SELECT COUNT(*) FROM orders WHERE total > (SELECT AVG(pay) FROM people WHERE age = month)",
    ),
    (UnknownColumn, "income", "SELECT COUNT(*) FROM people WHERE pay > (SELECT AVG(income) FROM people)"),
    (UnsupportedSQL, "one row", "SELECT COUNT(*) FROM people WHERE pay > (SELECT AVG(pay) FROM people GROUP BY sex)"),
    (UnsupportedSQL, "ROLLUP", f"SELECT city, COUNT(*) FROM people JOIN ({TOP}) t USING (city) GROUP BY ROLLUP (city)"),
    (TypeMismatch, "", f"SELECT COUNT(*) FROM people WHERE age IN (SELECT city FROM ({TOP}) q)"),
    (TypeMismatch, "", f"SELECT COUNT(*) FROM people WHERE city > {MEAN}"),
    (UnsupportedSQL, "two columns", f"SELECT COUNT(*) FROM people WHERE (age, pay) IN (SELECT n, n FROM ({TOP}) q)"),
    (UnsupportedSQL, "SLEEP_MS", "SELECT COUNT(*) FROM people WHERE pay > (SELECT SLEEP_MS(COUNT(*)) FROM people)"),
]


def test_what_is_refused_is_free():
    asked = session()
    for kind, words, sql in REFUSED:
        with pytest.raises(kind) as caught:
            asked.query(sql, epsilon=1)
        assert words in caught.value.message, sql
    assert asked.spent.epsilon == 0
    hidden = dpsql.Session({"people": dpsql.Table(PEOPLE)}, budget=dpsql.Budget(9, 1e-3))
    join = "SELECT COUNT(*) FROM people JOIN (SELECT city, COUNT(*) AS n FROM people GROUP BY city) q USING (city)"
    with pytest.raises(UnsupportedSQL, match="nothing says how many rows this answer has") as unbounded:
        hidden.query(join, epsilon=1, delta=1e-6)
    assert "LIMIT 5" in unbounded.value.hint
    with pytest.raises(UnknownGroups):
        hidden.query(OF_THE_TOP, epsilon=1)
    assert hidden.spent.epsilon == 0


# Values that nobody expects, put in by hand.


def planned(sql: str, asked: dpsql.Session | None = None) -> tuple[PreparedQuery, Release]:
    prepared = (asked or session())._prepare(sql, (1.0, None, None, None, None), params=None)
    assert prepared.postprocess is not None
    return prepared, prepared.releases[-1]


def cells(kind: Type, values: list[Any]) -> Vector:
    return earlier_worlds._vector(values, kind)


def counted(sql: str, frame: Frame, engine: str = "pandas") -> dict[tuple[Any, ...], int]:
    """The exact counts of a statement's last release, with this frame in the place of what it reads."""
    asked = dpsql.Session(tables(), budget=dpsql.Budget(9), engine=engine)
    prepared, made = planned(sql, asked)
    put_in = put(prepared, made, frame)
    plan = put_in.plan(made.exact)
    exact = executor_of({**asked._stores, **put_in.stores}, ENGINES[engine]).execute(plan)
    columns = [cells_of(vector, key.expr.type) for vector, key in zip(exact.keys, plan.keys, strict=True)]
    groups = list(zip(*columns, strict=True)) if columns else [()]
    return {group: int(each) for group, each in zip(groups, exact.parts[0], strict=True) if each}


def put(prepared: PreparedQuery, made: Release, frame: Frame) -> PriorReleases:
    plan = made.query.plan
    return seen(prepared.postprocess.firsts[-1].inputs, [frame], plan.input, plan.keys, {})


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_odd_values_mean_what_sql_says(engine: str):
    pay = PEOPLE["pay"]
    odd: list[tuple[Any, int]] = [
        (None, 0), (math.nan, 0), (-math.inf, len(pay)), (math.inf, 0), (1e308, 0), (50.0, int((pay > 50).sum())),
    ]  # fmt: skip
    for value, expected in odd:
        frame = Frame(("value",), (Type.REAL,), (cells(Type.REAL, [value]),))
        assert sum(counted(ABOVE, frame, engine).values()) == expected, value
    whole = "SELECT COUNT(*) AS n FROM people WHERE pay > (SELECT COUNT(*) FROM people)"
    for number, expected in [(2**63, 0), (-(2**63) - 1, 0), (-(2**63), len(pay)), (10**30, 0), (-1, len(pay))]:
        frame = Frame(("value",), (Type.INTEGER,), (cells(Type.INTEGER, [number]),))
        assert sum(counted(whole, frame, engine).values()) == expected, number


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_tables_are_cut_to_what_was_planned(engine: str):
    """More rows than LIMIT says, doubles in what a plain GROUP BY tells apart, NULLs, and values of no row."""
    sizes = PEOPLE["city"].value_counts()
    sql = f"SELECT city, COUNT(*) AS m FROM people JOIN ({TOP}) top USING (city) GROUP BY city"

    def top(*cities: str | None) -> Frame:
        vectors = (cells(Type.TEXT, list(cities)), cells(Type.INTEGER, [1] * len(cities)))
        return Frame(("city", "n"), (Type.TEXT, Type.INTEGER), vectors)

    assert counted(sql, top("rome", "rome", "oslo"), engine) == {("rome",): sizes["rome"]}
    assert counted(sql, top("rome", "oslo", "bonn"), engine) == {(each,): sizes[each] for each in ("rome", "oslo")}
    assert counted(sql, top(None, "bonn"), engine) == {("bonn",): sizes["bonn"]}
    assert counted(sql, top("paris", None), engine) == {}
    assert counted(sql, top(), engine) == {}


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_numbers_that_are_one_as_doubles_meet_a_row_once(engine: str):
    people = pd.DataFrame({"r": [2.0**53, 2.0**53, 1.0]})
    table = {"t": dpsql.Table(people, bounds={"r": (0, 2.0**60)})}
    asked = dpsql.Session(table, budget=dpsql.Budget(9), engine=engine)
    grouped = "SELECT CAST(r AS INTEGER) AS k, COUNT(*) AS n FROM t GROUP BY 1 ORDER BY n DESC LIMIT 3"
    sql = f"SELECT COUNT(*) AS m FROM t JOIN ({grouped}) q ON t.r = q.k"
    prepared = asked._prepare(sql, (1.0, 1e-6, None, None, None), params=None)
    assert prepared.postprocess is not None
    made = prepared.releases[-1]
    numbers = cells(Type.INTEGER, [2**53, 2**53 + 1, 1])
    put_in = put(prepared, made, Frame(("k", "n"), (Type.INTEGER, Type.INTEGER), (numbers, numbers)))
    exact = executor_of({**asked._stores, **put_in.stores}, ENGINES[engine]).execute(put_in.plan(made.exact))
    assert exact.parts[0].tolist() == [3]
    assert len(put_in.stores) == 1


@pytest.mark.parametrize("engine", ["pandas", "duckdb"])
def test_a_row_meets_those_that_conditions_leave(engine: str):
    """One row by a key and a constant, of several with the key; and none more than one, whatever is shown."""
    whole = "SELECT city, sex, COUNT(*) AS n FROM people GROUP BY city, sex"
    sql = f"SELECT COUNT(*) AS m FROM people JOIN ({whole}) q ON people.city = q.city AND q.sex = 'M'"
    rome = int((PEOPLE["city"] == "rome").sum())
    kinds = (Type.TEXT, Type.TEXT, Type.INTEGER)
    for sexes, met in ((["F", "M"], 1), (["F", "M", "F", "M", "M"], 1), (["F", None], 0)):
        size = len(sexes)
        shown = (cells(Type.TEXT, ["rome"] * size), cells(Type.TEXT, sexes), cells(Type.INTEGER, [1] * size))
        frame = Frame(("city", "sex", "n"), kinds, shown)
        assert counted(sql, frame, engine) == ({(): rome} if met else {})
        outer = sql.replace("JOIN", "LEFT JOIN") + " WHERE q.n IS NOT NULL"
        assert counted(outer, frame, engine) == ({(): rome} if met else {})


def test_tables_are_joined_and_grouped_by_values_that_come_after_them(without_noise: None):  # noqa: F811
    asked = session()
    many = "(SELECT COUNT(*) FROM people)"
    cities = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
    size = len(PEOPLE)
    joined = f"SELECT city, CAST(n AS INTEGER) * 0 + 22 AS age FROM ({cities}) z ORDER BY n LIMIT 2"
    sql = f"SELECT COUNT(*) AS m FROM people p JOIN ({joined}) q ON p.city = q.city AND p.age = q.age + {many} - {size}"
    few = PEOPLE["city"].value_counts().nsmallest(2).index
    assert asked.query(sql, epsilon=1).item() == int((PEOPLE["city"].isin(few) & (PEOPLE["age"] == 22)).sum())
    grouped = f"SELECT q.n - {many} AS g, COUNT(*) AS m FROM people JOIN ({cities}) q USING (city) GROUP BY g"
    sizes = PEOPLE["city"].value_counts()
    expected = {count - size: int(sizes[sizes == count].sum()) for count in sizes.tolist()}
    assert {g: m for g, m in asked.query(grouped, epsilon=1) if m} == expected


def test_groups_that_were_planned_and_are_not_there_are_left_out():
    prepared, made = planned(OF_THE_TOP)
    vectors = (cells(Type.TEXT, ["value 1", None]), cells(Type.INTEGER, [3, 4]))
    put_in = put(prepared, made, Frame(("city", "n"), (Type.TEXT, Type.INTEGER), vectors))
    keys = put_in.plan(made.exact).keys
    assert [len(key.values or ()) for key in keys] == [2, 2], "as many as were planned"
    assert len(set(keys[0].values or ())) == 2
    cities = ["value 1", "value 1", *(keys[0].values or ())[1:] * 2]
    released = ReleasedValues((cells(Type.TEXT, cities), cells(Type.TEXT, [*"FMFM"])), np.arange(4.0)[None, :])
    assert [*put_in.kept(released).keys[0].values] == ["value 1", "value 1"]


def test_two_keys_of_one_answer_stand_together_as_its_rows_do(without_noise: None):  # noqa: F811
    asked = session()
    sql = f"SELECT top.city, top.n, COUNT(*) AS m FROM people JOIN ({TOP}) top USING (city) GROUP BY top.city, top.n"
    rows = [*asked.query(sql, epsilon=1)]
    assert len(rows) == 2
    assert all(n == m for _, n, m in rows)


# Neighbours, and lies.


def test_random_neighbours_of_later_releases():
    met = Met()
    for seed in range(6):
        ask(random.Random(seed), met)
    assert met.pairs > 300
    assert met.refused < met.statements / 4


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_neighbours_of_later_releases(part: int):
    met = Met()
    for seed in range(1_000 * part + 100, 1_000 * part + 125):
        ask(random.Random(seed), met, values=5, pairs=9)
    assert met.pairs > 4_000


def test_neighbours_tell_of_a_table_that_is_not_cut(monkeypatch: pytest.MonkeyPatch):
    """A row meets as many rows as come, and not as many as were planned."""
    honest = earlier._frame_of
    monkeypatch.setattr(earlier_worlds.Statements, "statement", earlier_worlds.Statements.multiplied)
    monkeypatch.setattr(earlier, "_frame_of", lambda frame, table: honest(frame, replace(table, rows=None)))
    monkeypatch.setattr(earlier, "_as_joined", lambda store, *_others: store)

    def asked() -> None:
        for seed in range(20):
            ask(random.Random(seed), Met())

    with pytest.raises(AssertionError):
        asked()


def test_a_fact_that_a_value_narrows_is_seen(monkeypatch: pytest.MonkeyPatch, without_noise: None):  # noqa: F811
    """As if what is shown were known when the plan is made: then sums are held to what the plan took it for."""
    sql = "SELECT SUM(CLAMP((SELECT AVG(pay) FROM people), 0, 100)) AS s, COUNT(*) AS n FROM people"

    def holds() -> bool:
        ((total, rows),) = session().query(sql, epsilon=1)
        return bool(abs(total / rows - PEOPLE["pay"].mean()) < 0.1)

    assert holds()

    def narrowed(name: str, kind: Type, written: str) -> Any:
        column = value_column(name, kind, written)
        return replace(column, fact=replace(column.fact, range=Interval(0, 10), nullable=False))

    monkeypatch.setattr("dpsql.sql.boundary.release_inputs.value_column", narrowed)
    prepare.__globals__["_cache"].clear()
    assert not holds()
    prepare.__globals__["_cache"].clear()


def test_no_refusal_is_an_error_of_ours():
    """Statements of every form over a table of no row: an answer, or a refusal that names its place."""
    rng = random.Random(3)
    answered = 0
    for _ in range(2):
        world = earlier_worlds.World.random(rng)
        asked, statements = world.session(), earlier_worlds.Statements(rng, world)
        for _ in range(8):
            with suppress(QueryRefused):  # an InternalError is none
                asked.query(statements.statement(), epsilon=1, delta=1e-6 if world.hidden else None)
                answered += 1
    assert answered > 8
