"""Warnings that cost nothing: bounds that do not fit, noise that hides, and rows that may be several of one person."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.errors import InvalidSchema
from dpsql.session.unit_hints import units_that_may_be_missing
from tests.seeding import seed

BOUNDS = {"old": (0, 90), "gain": (0, 100_000), "z": (0, 100), "few": (0, 1), "middle": (0, 90)}
KEYS = {"k": ["a", "b"]}
UPPER, LOWER, SPREAD, HIDDEN = "their upper bound", "their lower bound", "standard deviations apart", "noise hides"
DROWNED = "larger than some sums"


@pytest.fixture(autouse=True)
def _same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    seed(monkeypatch, 8)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rows = np.arange(4000)
    return pd.DataFrame(
        {
            "old": 89 + rows % 2,
            "gain": rows % 50,
            "z": 49.5 + rows % 2,
            "few": np.ones(4000, dtype=int),
            "middle": 30 + rows % 30,
            "k": ["a", "b"] * 2000,
        }
    )


def warned(frame: pd.DataFrame, sql: str, epsilon: float = 1.0) -> str:
    return " ".join(dpsql.query(frame, sql, epsilon=epsilon, bounds=BOUNDS, keys=KEYS).warnings)


@pytest.mark.parametrize(
    ("sql", "epsilon", "words"),
    [
        ("SELECT AVG(old) FROM t", 1, [UPPER]),
        ("SELECT k, AVG(old) AS a FROM t GROUP BY k", 1, ["in some groups", UPPER]),
        ("SELECT SUM(old), COUNT(*) FROM t", 1, [UPPER]),
        ("SELECT AVG(CLAMP(middle, 0, 20)) FROM t", 1, [UPPER, "CLAMP(middle, 0, 20)"]),
        ("SELECT AVG(gain) FROM t", 1, [LOWER]),
        ("SELECT AVG(z), STDDEV(z) FROM t", 20, [SPREAD]),
        ("SELECT AVG(middle) FROM t WHERE gain < 4", 0.03, [HIDDEN]),
        ("SELECT SUM(middle) FROM t WHERE middle > 89", 0.01, [DROWNED]),
    ],
)
def test_what_is_warned_of(sql: str, epsilon: float, words: list[str], frame: pd.DataFrame):
    text = warned(frame, sql, epsilon)
    assert all(word in text for word in words), text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(middle) FROM t",
        "SELECT AVG(few) FROM t",  # of 0 and 1 nothing can lie beyond
        "SELECT AVG(CASE WHEN old > 0 THEN 1 ELSE 0 END) FROM t",
        "SELECT SUM(middle), COUNT(*) FROM t",
        "SELECT AVG(old) FROM t WHERE old >= 89",  # the condition says so, and nothing is clipped
        "SELECT COUNT(*) FROM t",
        "SELECT k, COUNT(*), AVG(middle) FROM t GROUP BY k",
    ],
)
def test_what_is_not(sql: str, frame: pd.DataFrame):
    assert warned(frame, sql) == ""


def test_a_replay_warns_again(frame: pd.DataFrame):
    session = dpsql.Session({"t": dpsql.Table(frame, bounds=BOUNDS)}, budget=dpsql.Budget(3))
    first, again = (session.query("SELECT AVG(old) FROM t", epsilon=1) for _ in range(2))
    assert isinstance(first, dpsql.Result)
    assert isinstance(again, dpsql.Result)
    assert again.replayed
    assert again.warnings == first.warnings
    assert UPPER in first.warnings[0]


def test_only_shown_groups_are_warned_of(frame: pd.DataFrame):
    mixed = frame.assign(old=np.where(frame["k"] == "a", 90, 40))
    assert UPPER in warned(mixed, "SELECT k, AVG(old) AS a FROM t GROUP BY k")
    assert UPPER not in warned(mixed, "SELECT k, AVG(old) AS a FROM t GROUP BY k HAVING AVG(old) < 60")


def test_a_row_that_may_be_one_of_several_is_told_once_a_session():
    frame = pd.DataFrame({"customer_id": [1, 1, 2] * 100, "x": [1] * 300})
    session = dpsql.Session({"orders": frame}, budget=dpsql.Budget(3))
    texts = [session.query(f"SELECT COUNT(*) FROM orders WHERE x > {n}", epsilon=1).warnings for n in range(2)]
    assert ["customer_id" in " ".join(each) for each in texts] == [True, False]
    session.add("visits", frame)
    assert "each row of visits" in " ".join(session.query("SELECT COUNT(*) FROM visits", epsilon=0.5).warnings)
    assert "customer_id" in " ".join(dpsql.query(frame, "SELECT COUNT(*) FROM t", epsilon=1).warnings)


@pytest.mark.parametrize(
    ("name", "told"),
    [("customer_id", True), ("customer id", True), ("userId", True), ("USER_ID", True), ("id", False), ("paid", False)],
)
def test_names_that_say_somebody(name: str, told: bool):
    def tables(**words: object) -> tuple[str, ...]:
        table = dpsql.Table(pd.DataFrame({name: [1], "n": [2]}), **words)
        return units_that_may_be_missing(dpsql.Session({"t": table}, budget=dpsql.Budget(1)).catalog.tables.values())

    assert bool(tables()) is told
    assert tables(unique=[name]) == ()
    assert tables(unit=name, max_rows=2) == ()
    assert tables(public=True) == ()


FEW, ABOVE_ONE_ROW = "fewer than 30 people", "above 1 divided by"


def test_few_people_are_warned_of_and_many_and_none_are_not(frame: pd.DataFrame):
    few = frame.assign(k=np.where(np.arange(4000) < 12, "a", "b"))
    assert f"some groups probably have {FEW}" in warned(few, "SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    assert f"the answer probably covers {FEW}" in warned(few, "SELECT COUNT(*) AS n FROM t WHERE k = 'a'")
    assert FEW not in warned(frame, "SELECT k, COUNT(*) AS n FROM t GROUP BY k")
    assert FEW not in warned(frame, "SELECT COUNT(*) AS n FROM t WHERE middle > 89")  # of nobody, for all that is known
    hidden = dpsql.query(few, "SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING n > 100", epsilon=1, keys=KEYS)
    assert FEW not in " ".join(hidden.warnings)  # nothing is said of a group that is not shown


def test_a_delta_above_one_divided_by_the_declared_people_is_warned_of(frame: pd.DataFrame):
    def of(people: int | None, delta: float) -> str:
        table = dpsql.Table(frame, people=people)
        session = dpsql.Session({"t": table}, budget=dpsql.Budget(3, 0.5), accountant="basic")
        sql = "SELECT COUNT(*) AS n FROM t"
        return " ".join(session.query(sql, epsilon=1, delta=delta, mechanism="gaussian").warnings)

    assert f"delta 0.0005 is {ABOVE_ONE_ROW} the 4,000 people of the table" in of(4000, 0.0005)
    assert "delta" not in of(4000, 0.0002)
    assert "delta" not in of(None, 0.0005)
    assert "delta above 1/1000" in of(None, 0.005)
    assert "delta above 1/1000" in of(100, 0.005)
    assert ABOVE_ONE_ROW in of(100, 0.05)


def test_people_are_a_whole_number_of_a_table_of_people(frame: pd.DataFrame):
    for word in (0, -1, 1.5, True, "many", 10**20):
        with pytest.raises(InvalidSchema, match="people must be a whole number"):
            dpsql.Table(frame, people=word)
    with pytest.raises(InvalidSchema, match="declared public, so it is of no people"):
        dpsql.Table(frame, people=3, public=True)
    schema = dpsql.Schema.from_dict({"tables": {"t": {"people": 4000}}})
    assert schema.tables["t"].declaration.table.people == 4000


def test_people_change_no_key_of_a_question(frame: pd.DataFrame, tmp_path):
    ledger, sql = tmp_path / "spent.ledger", "SELECT COUNT(*) AS n FROM t"
    answers = []
    for people in (None, 4000, 5):
        table = dpsql.Table(frame, version="1", people=people)
        with dpsql.Session({"t": table}, budget=dpsql.Budget(3), ledger=ledger) as session:
            answers.append(session.query(sql, epsilon=1))
    assert [each.replayed for each in answers] == [False, True, True]
