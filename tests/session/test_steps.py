"""Statements of several steps: the same answers as DuckDB's over the tables themselves, where noise is switched to
nothing; one charge, shares, replay, and nothing paid for what is refused."""

import pickle
import random
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.answer.multi_step import MultiStepExplanation, MultiStepResult
from dpsql.core.exact import ExactTable
from dpsql.errors import (
    BudgetExceeded,
    DPSQLError,
    InternalError,
    InvalidArgument,
    InvalidParameter,
    InvalidPrivacyParameter,
    PostprocessFailed,
    RawColumn,
    SQLSyntaxError,
    UnknownColumn,
    UnknownTable,
    UnsupportedSQL,
)
from dpsql.release.dry_run import quiet
from dpsql.release.release import Release, ReleasedValues
from dpsql.session.multi_step import queries as program_questions
from dpsql.session.run import run
from dpsql.testing import insecure_exact

ROWS = 400
DRAW = random.Random(7)
PEOPLE = pd.DataFrame(
    {
        "sex": [DRAW.choice("FM") for _ in range(ROWS)],
        "city": [DRAW.choice(["rome", "oslo", "bonn"]) for _ in range(ROWS)],
        "age": [DRAW.randint(20, 24) for _ in range(ROWS)],
        "pay": [DRAW.randint(0, 100) for _ in range(ROWS)],
    }
)
ORDERS = pd.DataFrame(
    {
        "customer": [each % 90 for each in range(300)],
        "month": [DRAW.randint(1, 4) for _ in range(300)],
        "total": [DRAW.randint(0, 50) for _ in range(300)],
    }
)
CITIES = pd.DataFrame({"city": ["rome", "oslo", "bonn"], "country": ["IT", "NO", "DE"], "size": [3, 1, 2]})
FRAMES = {"people": PEOPLE, "orders": ORDERS, "cities": CITIES}


def tables(version: str | None = "1") -> dict[str, dpsql.Table]:
    return {
        "people": dpsql.Table(
            PEOPLE,
            keys={"sex": ["F", "M"], "city": ["bonn", "oslo", "rome"]},
            bounds={"age": (20, 24), "pay": (0, 100)},
            version=version,
        ),
        "orders": dpsql.Table(
            ORDERS, unit="customer", max_rows=20, bounds={"total": (0, 50), "month": (1, 4)}, version=version
        ),
        "cities": dpsql.Table(CITIES, public=True, unique=["city"]),
    }


def session(**how: Any) -> dpsql.Session:
    return dpsql.Session(tables(how.pop("version", "1")), budget=dpsql.Budget(how.pop("epsilon", 100)), **how)


@pytest.fixture
def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is zero: what is left is the exact answer, rounded to the lattice."""
    drawn = Release.privatise

    def privatise(release: Release, table: ExactTable) -> ReleasedValues:
        return drawn(quiet(release), table)

    monkeypatch.setattr(Release, "privatise", privatise)


def by_duckdb(sql: str) -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    for name, frame in FRAMES.items():
        connection.register(name, frame)
    return [tuple(_plain(cell) for cell in row) for row in connection.execute(sql).fetchall()]


def _plain(cell: Any) -> Any:
    return float(cell) if type(cell).__name__ == "Decimal" else cell


def close(rows: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> bool:
    return len(rows) == len(others) and all(
        len(one) == len(other) and all(_alike(*cells) for cells in zip(one, other, strict=True))
        for one, other in zip(rows, others, strict=True)
    )


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return one is not None and other is not None and abs(one - other) <= 1e-5 * max(1.0, abs(other))
    return bool(one == other)


def assert_is_duckdbs(asked: dpsql.Session, sql: str) -> None:
    rows, expected = [*asked.query(sql, epsilon=1)], by_duckdb(sql)
    if "ORDER BY" not in sql.rsplit(")", maxsplit=1)[-1]:
        rows, expected = sorted(rows, key=_by_words), sorted(expected, key=_by_words)
    assert close(rows, expected), f"{sql}\n{rows}\n{expected}"


def _by_words(row: tuple[Any, ...]) -> list[tuple[bool, str]]:
    return [(cell is None, f"{cell:.4f}" if isinstance(cell, float | int) else str(cell)) for cell in row]


ASKED = (Path(__file__).parent / "steps.sql").read_text(encoding="utf-8")
QUESTIONS = [" ".join(each.split()) for each in ASKED.split("\n\n")]


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize("sql", QUESTIONS)
def test_answers_are_those_of_duckdb(sql: str):
    assert_is_duckdbs(session(), sql)


# A grammar of statements.

_KEYS = ["sex", "city", "age", "age // 2", "CASE WHEN pay > 50 THEN 'high' ELSE 'low' END"]
_AGGREGATES = ["COUNT(*)", "SUM(pay)", "AVG(pay)", "COUNT(*) FILTER (WHERE age > 21)", "AVG(age)"]


_NOT_EMPTY = " HAVING COUNT(*) > 0.5"
"""Public groups are shown where they have no rows too."""


class Grammar:
    """Random statements over releases of people."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def statement(self) -> str:
        ways = [self.beside, self.over, self.joined, self.united, self.compared, self.common]
        return self.draw.choice([*ways, self.above, self.looked_in, self.of_the_most, self.again])()

    def release(self) -> str:
        key, aggregate = self.draw.choice(_KEYS), self.draw.choice(_AGGREGATES)
        where = self.draw.choice(["", " WHERE pay < 90", " WHERE city <> 'oslo'"])
        having = self.draw.choice(["", "", " HAVING COUNT(*) > 70.5"])
        return f"SELECT {key} AS k, {aggregate} AS v FROM people{where} GROUP BY {key}{having}"

    def window(self, value: str, key: str) -> str:
        order = f"ORDER BY {value}, {key}"
        frame = self.draw.choice(["", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS UNBOUNDED PRECEDING"])
        return self.draw.choice(
            [
                f"RANK() OVER ({order})",
                f"ROW_NUMBER() OVER (ORDER BY {key})",
                f"{value} / SUM({value}) OVER ()",
                f"SUM({value}) OVER (ORDER BY {key}{frame})",
                f"{value} - LAG({value}, 1, 0) OVER (ORDER BY {key})",
                f"MAX({value}) OVER () - {value}",
                f"AVG({value}) OVER (PARTITION BY {key})",
                f"NTILE(2) OVER ({order})",
                f"FIRST_VALUE({key}) OVER ({order})",
            ]
        )

    def beside(self) -> str:
        key, aggregate = self.draw.choice(_KEYS), self.draw.choice(_AGGREGATES)
        qualify = self.draw.choice(["", f" QUALIFY ROW_NUMBER() OVER (ORDER BY {aggregate}, {key}) < 3"])
        items = ", ".join(f"{self.window(aggregate, key)} AS w{place}" for place in range(self.draw.randint(1, 2)))
        return f"SELECT {key} AS k, {aggregate} AS v, {items} FROM people GROUP BY {key}{qualify}"

    def over(self) -> str:
        condition = self.draw.choice(["", " WHERE v > 1", " WHERE k IS NOT NULL"])
        return f"SELECT k, v, {self.window('v', 'k')} AS w FROM ({self.release()}){condition}"

    def joined(self) -> str:
        kind = self.draw.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        return (
            f"SELECT l.v AS a, r.v AS b FROM ({self.release()}) l {kind} ({self.release()}) r ON l.k::TEXT = r.k::TEXT"
        )

    def united(self) -> str:
        word = self.draw.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT"])
        first, second = (f"SELECT k::TEXT AS k FROM ({self.release()})" for _ in range(2))
        return f"{first} {word} {second}"

    def compared(self) -> str:
        key, aggregate = self.draw.choice(_KEYS), self.draw.choice(_AGGREGATES)
        other = self.draw.choice(_AGGREGATES)
        return f"SELECT {key} AS k, {aggregate} - (SELECT {other} FROM people) AS d FROM people GROUP BY {key}"

    def common(self) -> str:
        asked = "SELECT k, v - (SELECT AVG(v) FROM a) AS d FROM a WHERE v < (SELECT MAX(v) FROM a)"
        return f"WITH a AS ({self.release()}) {asked}"

    # A released value asked about again.

    def value(self) -> str:
        top = "SELECT city AS k, AVG(pay) AS v FROM people GROUP BY city ORDER BY v DESC LIMIT 1"
        return self.draw.choice(
            [
                f"(SELECT {self.draw.choice(['AVG(pay)', 'COUNT(*) / 8'])} FROM people)",
                f"(SELECT MAX(v) FROM ({self.release()}) q)",
                "(SELECT AVG(pay) FROM people WHERE sex = 'F')",
                f"(SELECT v FROM ({top}) q)",
            ]
        )

    def condition(self) -> str:
        value = self.value()
        return self.draw.choice(
            [
                f"pay > {value}",
                f"NOT pay <= {value} / 2",
                f"pay + 1.5 < {value}",
                f"pay BETWEEN {value} - 20 AND {value}",
            ]
        )

    def above(self) -> str:
        key = self.draw.choice(_KEYS)
        aggregate = self.draw.choice(
            [
                "COUNT(*)",
                "AVG(age)",
                f"COUNT(*) FILTER (WHERE {self.condition()})",
                f"SUM(CASE WHEN {self.condition()} THEN age ELSE 0 END)",
                f"SUM(GREATEST(-200, LEAST(200, pay - {self.value()})))",
            ]
        )
        return f"SELECT {key} AS k, {aggregate} AS v FROM people WHERE {self.condition()} GROUP BY {key}{_NOT_EMPTY}"

    def top(self, key: str) -> str:
        aggregate = self.draw.choice(["COUNT(*)", "SUM(pay)"])
        return f"SELECT {key}, {aggregate} AS n FROM people GROUP BY {key} ORDER BY n DESC, {key} LIMIT 2"

    def looked_in(self) -> str:
        key, other = self.draw.sample(["sex", "city", "age"], 2)
        word = self.draw.choice(["IN", "IN", "NOT IN"])
        inside = self.draw.choice([self.top(key), f"SELECT {key}, COUNT(*) AS n FROM people GROUP BY {key}"])
        condition = f"{key} {word} (SELECT {key} FROM ({inside}) q WHERE n > 100)"
        return (
            f"SELECT {other}, COUNT(*) AS n, AVG(pay) AS p FROM people WHERE {condition} GROUP BY {other}{_NOT_EMPTY}"
        )

    def of_the_most(self) -> str:
        key, other = self.draw.sample(["sex", "city", "age"], 2)
        keys = self.draw.choice([f"{key}", f"{key}, {other}", f"{key}, q.n"])
        having = f" HAVING {self.draw.choice(['COUNT(*) > 0.5', 'COUNT(*) > 30.5'])}"
        return (
            f"SELECT {keys}, SUM(pay) AS s FROM people JOIN ({self.top(key)}) q USING ({key}) GROUP BY {keys}{having}"
        )

    def again(self) -> str:
        """Of CTEs, and of releases that read others themselves. The average of no rows is a number here."""
        first = f"WITH a AS (SELECT AVG(pay) AS m FROM people WHERE {self.condition()}{_NOT_EMPTY})"
        return f"{first} SELECT COUNT(*) - (SELECT m FROM a) AS d FROM people WHERE pay > (SELECT m FROM a)"


def grammar_agrees(seeds: range) -> None:
    asked = session(epsilon=10_000)
    for seed in seeds:
        assert_is_duckdbs(asked, Grammar(seed).statement())


@pytest.mark.usefixtures("without_noise")
def test_random_statements_are_those_of_duckdb():
    grammar_agrees(range(40))


@pytest.mark.slow
@pytest.mark.usefixtures("without_noise")
def test_many_random_statements_are_those_of_duckdb():
    grammar_agrees(range(1_000, 1_300))


# What it costs.


def test_one_charge_in_equal_shares():
    asked = session()
    sql = "SELECT sex, AVG(age) - (SELECT AVG(total) FROM orders) AS d FROM people GROUP BY sex"
    result = asked.query(sql, epsilon=1)
    assert isinstance(result, MultiStepResult)
    (entry,) = asked.ledger()
    assert entry.label == sql
    assert entry.cost.epsilon == 1
    assert asked.spent.epsilon == 1
    assert [each.loss.epsilon for each in result.answers] == [Fraction(1, 2)] * 2
    assert result.loss.epsilon == 1
    assert result.explanation.to_dict()["epsilon"] == 1
    assert len(result.explanation._releases) == 2


def test_the_same_again_is_free_and_the_same():
    asked = session()
    sql = "SELECT COUNT(*) - (SELECT SUM(total) FROM orders) AS d FROM people"
    first, second = asked.query(sql, epsilon=1), asked.query(sql, epsilon=1)
    assert [*first] == [*second]
    assert not first.replayed
    assert second.replayed
    assert asked.spent.epsilon == 1
    assert asked.quote(sql, epsilon=1).cost.free
    asked.query(sql, epsilon=1, fresh=True)
    assert asked.spent.epsilon == 2
    other = "SELECT COUNT(*) * 10 + (SELECT SUM(total) FROM orders) AS d FROM people"
    assert asked.query(other, epsilon=1).replayed
    plain = asked.query("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
    assert plain.replayed, "a release is the same question by itself, at its share"


def test_what_was_answered_before_is_not_paid_again():
    asked = session()
    asked.query("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
    result = asked.query("SELECT (SELECT COUNT(*) FROM people) + (SELECT COUNT(*) FROM orders) AS n", epsilon=1)
    assert asked.spent.epsilon == 1
    assert "1 of 2 answered before" in result.footer


def test_a_release_that_stands_twice_is_drawn_once():
    asked = session()
    result = asked.query("SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM people) AS n", epsilon=1)
    assert result.item() == 0
    asked.query("WITH a AS (SELECT COUNT(*) AS n FROM orders) SELECT x.n - y.n AS d FROM a x, a y", epsilon=1)
    # Other words over one plan are one release too.
    sql = "SELECT (SELECT AVG(age) FROM people) - (SELECT AVG(age) + 1 FROM people) AS n"
    assert asked.query(sql, epsilon=1).item() == pytest.approx(-1)
    assert [entry.cost.epsilon for entry in asked.ledger()] == [1, 1, 1]


def test_shares_that_releases_say_for_themselves():
    asked = session()
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = {})"
    one = f"(SELECT {clause.format(0.75)} COUNT(*) FROM people)"
    result = asked.query(f"SELECT {one} - (SELECT COUNT(*) FROM orders) AS d", epsilon=1)
    assert [each.loss.epsilon for each in result.answers] == [Fraction(3, 4), Fraction(1, 4)]
    for own in (1, 2):
        much = f"(SELECT {clause.format(own)} COUNT(*) FROM people)"
        with pytest.raises(InvalidPrivacyParameter):
            asked.query(f"SELECT {much} - (SELECT COUNT(*) FROM orders) AS d", epsilon=1)
    both = f"SELECT {one} - (SELECT {clause.format(0.5)} COUNT(*) FROM orders) AS d"
    assert asked.query(both).loss.epsilon == Fraction(5, 4)
    by_rho = dpsql.Session(tables(), budget=dpsql.Budget(10, 1e-6), accountant="zcdp")
    result = by_rho.query("SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM orders) AS d", rho=0.5)
    assert result.loss.rho <= Fraction(1, 2)
    assert by_rho.spent.rho == result.loss.rho


def test_a_budget_that_does_not_suffice_draws_nothing(monkeypatch: pytest.MonkeyPatch):
    asked = session(epsilon=1)

    def never(*_: object) -> ReleasedValues:
        raise AssertionError("drawn")

    monkeypatch.setattr(program_questions, "run", never)
    with pytest.raises(BudgetExceeded):
        asked.query("SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM orders) AS d", epsilon=1.5)
    assert asked.spent.epsilon == 0


def test_each_release_is_kept_before_the_next_is_drawn(monkeypatch: pytest.MonkeyPatch):
    """What an error leaves undrawn stays charged; what was drawn by then is given again."""
    asked = session()
    calls: list[Release] = []

    def once(release: Release, *others: Any) -> ReleasedValues:
        calls.append(release)
        if len(calls) == 2:
            raise InternalError("out of memory")
        return run(release, *others)

    sql = "SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM orders) AS d"
    with monkeypatch.context() as patched:
        patched.setattr(program_questions, "run", once)
        with pytest.raises(InternalError):
            asked.query(sql, epsilon=1)
    assert asked.spent.epsilon == 1
    asked.query(sql, epsilon=1)
    assert asked.spent.epsilon == Fraction(3, 2)


def test_a_ledger_keeps_each_of_them_for_later_sessions(tmp_path: Path):
    sql = "SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM orders) AS d"
    with session(ledger=tmp_path / "ledger") as first:
        given = first.query(sql, epsilon=1).item()
    with dpsql.Session(tables(), ledger=tmp_path / "ledger") as second:
        again = second.query(sql, epsilon=1)
        assert again.replayed
        assert again.item() == given
        assert second.spent.epsilon == 1


def test_explain_and_quote_say_the_program():
    asked = session()
    sql = "SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM orders) AS d"
    explained = asked.query(f"EXPLAIN PRIVACY {sql}", epsilon=1)
    assert isinstance(explained, MultiStepExplanation)
    text = str(explained)
    assert "2 releases, epsilon 1 together" in text
    assert text.count("epsilon 0.5") >= 2
    assert "then, free" in text
    assert asked.spent.epsilon == 0
    assert asked.quote(sql, epsilon=1).cost.epsilon == 1
    assert asked.remaining_queries(sql, epsilon=1) == 100
    assert [each.cost.epsilon for each in asked.quotes([sql, sql, "SELECT COUNT(*) FROM people"], epsilon=1)] == [
        1,
        0,
        1,
    ]


def test_without_a_session_too():
    result = dpsql.query(
        tables(), "SELECT (SELECT COUNT(*) FROM people) - (SELECT COUNT(*) FROM orders) AS d", epsilon=1
    )
    assert "spent epsilon 1" in result.footer
    assert len(result.to_csv().splitlines()) == 2
    assert "<table" in result._repr_html_()


# What is refused, and what fails.

REFUSED: list[tuple[str, type[DPSQLError]]] = [
    ("SELECT *, RANK() OVER (ORDER BY n) FROM (SELECT COUNT(*) AS n FROM people), SECRET", UnknownTable),
    ("SELECT RANK() OVER () FROM (SELECT COUNT(*) AS n FROM people) JOIN people ON TRUE", UnsupportedSQL),
    ("SELECT n FROM (SELECT COUNT(*) AS n FROM people) UNION ALL SELECT age FROM people", RawColumn),
    ("SELECT n FROM (SELECT COUNT(*) AS n FROM people) UNION ALL SELECT n FROM __answer_0", UnknownTable),
    ("SELECT age, RANK() OVER (ORDER BY COUNT(*)) FROM people GROUP BY sex", RawColumn),
    ("SELECT RANK() OVER (ORDER BY age) FROM people", UnsupportedSQL),
    ("SELECT SUM(age) OVER (PARTITION BY sex) FROM people", UnsupportedSQL),
    ("SELECT n FROM (SELECT COUNT(*) AS n FROM people) EXCEPT SELECT 1 FROM main.cities", UnsupportedSQL),
    ("SELECT n, RANDOM() OVER () FROM (SELECT COUNT(*) AS n FROM people)", UnsupportedSQL),
    ("SELECT n FROM (SELECT COUNT(*) AS n FROM people) QUALIFY CURRENT_DATE > n", UnsupportedSQL),
    ("SELECT (SELECT COUNT(*) FROM people WHERE city = c.city) AS n FROM cities c", DPSQLError),
    ("SELECT (SELECT COUNT(*) FROM people) + (SELECT COUNT(*) FROM orders) WITHIN 5", UnsupportedSQL),
    ("SELECT COUNT(*) + (SELECT MAX(income) FROM people) FROM people", DPSQLError),
    ("SELECT pay, (SELECT COUNT(*) FROM people) AS n FROM people", RawColumn),
    ("SELECT (SELECT COUNT(*) FROM people) AS n, pay FROM people", UnsupportedSQL),
    ("SELECT nope, (SELECT COUNT(*) FROM people) AS n FROM cities", UnknownColumn),
    # What is read in a window or beside an aggregate is no key of GROUP BY ALL.
    ("SELECT sex, SUM(COUNT(*)) OVER (PARTITION BY city) AS t FROM people GROUP BY ALL", RawColumn),
    ("SELECT sex, SUM(COUNT(*)) OVER () + pay AS t FROM people GROUP BY ALL", RawColumn),
    ("SELECT sex, (SELECT COUNT(*) FROM people) + pay AS t, COUNT(*) AS n FROM people GROUP BY ALL", RawColumn),
    ("SELECT RANK() OVER () AS r FROM people GROUP BY ALL", DPSQLError),
    # No text reads names of ours.
    (
        "SELECT city, RANK() OVER (ORDER BY COUNT(*)) AS r, (SELECT MAX(c0) FROM cities) FROM people GROUP BY city",
        UnknownColumn,
    ),
    (
        "SELECT city, RANK() OVER (ORDER BY COUNT(*)), (SELECT MAX(__answer_0.c0) FROM cities) FROM people GROUP BY 1",
        UnknownTable,
    ),
    ("SELECT sex, COUNT(*) AS n, MAX(COLUMNS('c.*')) OVER () FROM people GROUP BY sex", UnsupportedSQL),
    (
        "WITH f AS (SELECT * FROM people), F AS (SELECT * FROM f) SELECT COUNT(*) - (SELECT COUNT(*) FROM f) FROM f",
        SQLSyntaxError,
    ),
]


@pytest.mark.parametrize(("sql", "kind"), REFUSED)
def test_what_is_refused_is_free_and_alike_over_no_rows(sql: str, kind: type[DPSQLError]):
    asked = session()
    with pytest.raises(kind) as caught:
        asked.query(sql, epsilon=1)
    assert asked.spent.epsilon == 0
    bare = {
        name: dpsql.Table.of(each.frame.iloc[:0], each.declaration) if name != "cities" else each
        for name, each in tables().items()
    }
    with pytest.raises(kind) as again:
        dpsql.Session(bare, budget=dpsql.Budget(100)).query(sql, epsilon=1)
    assert str(again.value) == str(caught.value)


def test_a_name_that_is_no_table_is_refused():
    with pytest.raises((UnknownTable, UnsupportedSQL)):
        session().query(
            "SELECT n FROM (SELECT COUNT(*) AS n FROM people) UNION ALL SELECT 1 FROM ORDERS_FRAME", epsilon=1
        )


def test_what_fails_on_shown_values_hands_the_answers_over():
    asked = session()
    sql = "SELECT MAKE_DATE(2000, n + (SELECT COUNT(*) FROM orders), 1) AS d FROM (SELECT COUNT(*) AS n FROM people)"
    with pytest.raises(PostprocessFailed) as caught:
        asked.query(sql, epsilon=1)
    assert len(caught.value.answers) == 2
    assert asked.spent.epsilon == 1
    assert re.search(r"\d", caught.value.message) is None
    again = asked.query(
        "SELECT n + (SELECT COUNT(*) FROM orders) AS d FROM (SELECT COUNT(*) AS n FROM people)", epsilon=1
    )
    assert again.replayed


def test_a_failure_keeps_its_answers_when_it_is_pickled():
    """And a kind of failure is said in words, not by the name of a class."""
    asked = session()
    released = "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"
    sql = f"SELECT COUNT(*) - (SELECT n FROM {released} WHERE n > -1e9) AS d FROM people"
    with pytest.raises(PostprocessFailed, match="gave several rows") as caught:
        asked.query(sql, epsilon=1)
    again = pickle.loads(pickle.dumps(caught.value))
    assert [[*each] for each in again.answers] == [[*each] for each in caught.value.answers]
    assert str(again) == str(caught.value)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(age) - (SELECT COUNT(*) FROM people GROUP BY sex) AS d FROM people",
        "WITH a AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) SELECT sex, (SELECT n FROM a) AS m FROM a",
        "SELECT COUNT(*) > (SELECT n + 1 FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)) AS b FROM people",
    ],
)
def test_a_value_of_several_rows_is_refused_before_it_is_paid(sql: str):
    asked = session()
    with pytest.raises(UnsupportedSQL, match="stands for a value gives one row"):
        asked.query(sql, epsilon=1)
    assert asked.spent.epsilon == 0


@pytest.mark.usefixtures("without_noise")
@pytest.mark.parametrize(
    "more",
    ["WHERE sex = 'Male'", "ORDER BY n LIMIT 1"],
)
def test_a_value_of_rows_that_are_chosen_is_answered(more: str):
    asked = session()
    released = "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)"
    assert asked.query(f"SELECT COUNT(*) - (SELECT n FROM {released} AS a {more}) AS d FROM people", epsilon=1)


def test_a_column_may_be_called_as_what_duckdb_takes_for_a_function():
    asked = session()
    sql = 'SELECT "user", RANK() OVER (ORDER BY rowid) AS r FROM (SELECT sex AS "user", COUNT(*) AS rowid FROM people '
    assert len([*asked.query(f"{sql}GROUP BY sex)", epsilon=1)]) == 2
    with pytest.raises(UnsupportedSQL, match="USER"):
        asked.query("SELECT user, RANK() OVER (ORDER BY n) AS r FROM (SELECT COUNT(*) AS n FROM people)", epsilon=1)


def test_the_caret_is_under_the_name_that_duckdb_does_not_know():
    with pytest.raises(UnsupportedSQL) as caught:
        session().query("SELECT RANK() OVER (ORDER BY zz) AS r FROM (SELECT COUNT(*) AS n FROM people)", epsilon=1)
    place = caught.value.span
    assert place is not None
    assert place.sql[place.start : place.end + 1] == "zz"


def test_parameters_of_both_halves():
    sql = (
        "SELECT sex, COUNT(*) + :more AS n, RANK() OVER (ORDER BY sex) AS r FROM people WHERE age > :low "
        "GROUP BY sex QUALIFY r < :most"
    )
    result = session().query(sql, epsilon=1, params={"more": 1000, "low": 0, "most": 2})
    assert len(result) == 1
    assert result.df["n"][0] > 1000
    with pytest.raises(InvalidParameter):
        session().query(sql, epsilon=1, params={"more": 1000, "low": 0, "most": 2, "other": 1})


def test_windows_read_values_before_they_are_rounded():
    """A total is of what was drawn, not of what is shown of it."""
    result = session().query("SELECT AVG(pay) AS a, COUNT(*) AS n, MAX(COUNT(*)) OVER () AS m FROM people", epsilon=0.5)
    assert result.df["n"][0] == round(result.df["m"][0])


def test_rows_keep_an_inner_order_where_only_filters_follow():
    inner = "SELECT city, COUNT(*) AS n, RANK() OVER () AS r FROM people GROUP BY city ORDER BY city DESC"
    sql = f"SELECT city FROM ({inner}) WHERE n > 0"
    assert [row[0] for row in session().query(sql, epsilon=10)] == ["rome", "oslo", "bonn"]


def test_audits_are_of_one_release():
    with pytest.raises(InvalidArgument):
        insecure_exact(
            session(), "SELECT (SELECT COUNT(*) FROM people) + (SELECT COUNT(*) FROM orders) AS n", bytes(32), epsilon=1
        )


def test_duckdb_is_imported_for_such_statements_alone():
    import subprocess
    import sys

    program = (
        "import sys, pandas as pd, dpsql\n"
        "df = pd.DataFrame({'k': [1, 2]})\n"
        "dpsql.query(df, 'SELECT n + 1 AS m FROM (SELECT COUNT(*) AS n FROM t)', epsilon=1)\n"
        "assert 'duckdb' not in sys.modules\n"
        "dpsql.query(df, 'SELECT COUNT(*) + SUM(COUNT(*)) OVER () AS m FROM t', epsilon=1)\n"
        "assert 'duckdb' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_large_numbers_stay_whole():
    frame = pd.DataFrame({"x": np.full(4, 2**40)})
    data = {"t": dpsql.Table(frame, bounds={"x": (0, 2**41)})}
    result = dpsql.query(data, "SELECT SUM(x) AS s, SUM(SUM(x)) OVER () AS w FROM t", epsilon=1)
    assert isinstance(result.df["s"][0], np.integer)
