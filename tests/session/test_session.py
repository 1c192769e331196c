"""Budgets: charged before rows are read, never overdrawn, never copied."""

import copy
import os
import pickle
import threading
import traceback
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.ledger.filters import SpentBudget
from dpsql.errors import (
    BudgetExceeded,
    InvalidArgument,
    InvalidPrivacyParameter,
    InvalidSchema,
    LedgerError,
)
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.release.release import Release

FRAME = pd.DataFrame({"age": [20, 30, 40], "sex": ["F", "M", "F"]})
COUNT = "SELECT COUNT(*) FROM t"


def session(epsilon: object = 1, delta: object = 0, **more: object) -> dpsql.Session:
    return dpsql.Session({"t": FRAME}, budget=dpsql.Budget(epsilon, delta), **more)


def test_budget_is_spent_to_the_last_digit() -> None:
    asker = session(0.3)
    for _ in range(3):
        asker.query(COUNT, epsilon=0.1, fresh=True)
    assert asker.spent == SpentBudget(Fraction(3, 10), rho=Fraction(3, 200))
    assert asker.remaining.epsilon == 0
    with pytest.raises(BudgetExceeded, match=r"costs epsilon 0.1 but 0 is left \(spent 0.3 of 0.3 in 3 queries\)"):
        asker.query(COUNT, epsilon=0.1, fresh=True)
    assert len(asker.ledger()) == 3


def test_refusal_says_what_still_fits() -> None:
    asker = session(1)
    asker.query(COUNT, epsilon=0.6)
    with pytest.raises(BudgetExceeded, match="Run it with epsilon=0.4"):
        asker.query(COUNT, epsilon=0.5)
    asker.query(COUNT, epsilon=0.4)


def test_delta_is_a_budget_of_its_own() -> None:
    asker = session(10, 1e-6, accountant="basic")
    sql = "SELECT sex, COUNT(*) FROM t GROUP BY sex"
    asker.query(COUNT, epsilon=1, delta=1e-6)
    assert asker.spent.delta == 0, "delta is not charged where it is not used"
    asker.query(sql, epsilon=1, delta=1e-6)
    with pytest.raises(BudgetExceeded, match="costs delta 1e-06 but 0 is left"):
        asker.query(sql, epsilon=1, delta=1e-6, fresh=True)


def test_charge_comes_before_the_run_and_stays_when_the_run_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    asker = session()
    seen: list[Fraction] = []

    def fail(*_: object) -> None:
        seen.append(asker.spent.epsilon)
        raise ValueError("could not convert 'Jane Roe' to float")

    monkeypatch.setattr(PandasExecutor, "execute", fail)
    with pytest.raises(dpsql.errors.InternalError, match="the run failed") as failure:
        asker.query(COUNT, epsilon=0.5)
    assert "Jane" not in "".join(traceback.format_exception(failure.value))
    assert failure.value.__context__ is None, "the original words could be read from there"
    assert seen == [Fraction(1, 2)]
    assert asker.spent.epsilon == Fraction(1, 2)


def test_refused_queries_cost_nothing() -> None:
    asker = session(auto_bounds=False)
    for sql in ("SELECT age FROM t", "SELECT", "SELECT SUM(age) FROM t", "SELECT sex, COUNT(*) FROM t GROUP BY sex"):
        with pytest.raises(dpsql.errors.QueryRefused):
            asker.query(sql, epsilon=0.5)
    assert asker.spent.epsilon == 0


def test_threads_cannot_overdraw() -> None:
    asker = session(1)
    outcomes: list[bool] = []

    def work() -> None:
        for _ in range(10):
            try:
                asker.query(COUNT, epsilon=Fraction(1, 25), fresh=True)
                outcomes.append(True)
            except BudgetExceeded:
                outcomes.append(False)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(outcomes) == 25
    assert asker.spent.epsilon == 1


def test_no_copies() -> None:
    asker = session()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LedgerError):
            attempt(asker)
        with pytest.raises(LedgerError):
            attempt(asker._ledger)


def test_a_forked_child_cannot_spend() -> None:
    asker = session()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            asker.query(COUNT, epsilon=0.1)
            os.write(writer, b"answered")
        except LedgerError:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 100) == b"refused"
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("epsilon", [1, 1.0, np.float64(1), np.int64(1), Decimal(1), Fraction(1)])
def test_numbers_of_any_kind(epsilon: object) -> None:
    asker = session(epsilon)
    asker.query(COUNT, epsilon=epsilon)
    assert asker.remaining.epsilon == 0


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "1", None, 1e-30, 1e30, 1j, [1]])
def test_what_is_no_epsilon(epsilon: object) -> None:
    for attempt in (
        lambda: session(epsilon),
        lambda: session().query(COUNT, epsilon=epsilon),
        lambda: session().explain(COUNT, epsilon=epsilon),
        lambda: dpsql.query(FRAME, COUNT, epsilon=epsilon),
    ):
        with pytest.raises(InvalidPrivacyParameter, match="epsilon"):
            attempt()


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, float("nan"), True, "0"])
def test_what_is_no_delta(delta: object) -> None:
    for attempt in (lambda: session(1, delta), lambda: dpsql.query(FRAME, COUNT, epsilon=1, delta=delta)):
        with pytest.raises(InvalidPrivacyParameter, match="delta"):
            attempt()


def test_defaults_and_limit_of_a_session() -> None:
    asker = dpsql.Session({"t": FRAME}, budget=dpsql.Budget(5), epsilon=0.5, max_epsilon=1)
    asker.query(COUNT)
    assert asker.spent.epsilon == Fraction(1, 2)
    with pytest.raises(InvalidPrivacyParameter, match="above the 1 that one query may spend"):
        asker.query(COUNT, epsilon=2)


def test_a_session_needs_a_budget() -> None:
    with pytest.raises(InvalidPrivacyParameter, match="a session needs a budget"):
        dpsql.Session({"t": FRAME})
    with pytest.raises(InvalidArgument, match=r"budget must be a dpsql.Budget"):
        dpsql.Session({"t": FRAME}, budget=3)


def test_schema_can_be_tightened_not_widened() -> None:
    schema = dpsql.Schema.from_dict(
        {
            "budget": {"epsilon": 2.0},
            "neighbours": "bounded",
            "tables": {"t": {"columns": {"age": {"bounds": [0, 99]}}}},
        }
    )
    asker = dpsql.Session({"t": FRAME}, schema=schema, budget=dpsql.Budget(1))
    assert asker.budget.epsilon == 1
    assert asker.neighbours == "bounded"
    asker.query("SELECT AVG(age) FROM t", epsilon=1)
    with pytest.raises(InvalidPrivacyParameter, match="more than the schema's"):
        dpsql.Session({"t": FRAME}, schema=schema, budget=dpsql.Budget(3))
    with pytest.raises(InvalidArgument, match="contradicts the schema's 'bounded'"):
        dpsql.Session({"t": FRAME}, schema=schema, neighbours="unbounded")


def test_schema_file_of_the_sample_opens_a_session(sample: Path) -> None:
    asker = dpsql.Session(schema=dpsql.Schema.from_toml(sample / "adult.toml"))
    assert asker.tables == ("adult",)
    result = asker.query("SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM adult GROUP BY sex", epsilon=1)
    assert result.df["n"].tolist() == pytest.approx([10771, 21790], abs=60)
    assert asker.remaining.epsilon == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budget = 3", r"\[budget\] must be a section"),
        ("[budget]\nepsilonn = 3", 'unknown setting "epsilonn". Did you mean "epsilon"?'),
        ("[tables.t]\nunits = 'x'", 'unknown setting "units". Did you mean "unit"?'),
        ("[tables.t.columns]\nage = 3", "must be a table such as"),
        ("[tables.t.columns]\nage = {bound = [0, 1]}", 'Did you mean "bounds"?'),
        ("[tables.t.columns]\nage = {bounds = [1, 0]}", "lower bound 1 is above upper bound 0"),
        ("neighbours = 'near'", "neighbours must be 'unbounded' or 'bounded'"),
        ("[budget]\nepsilon = 1\naccountant = 'magic'", "accountant"),
        ("= 3", "is not TOML"),
    ],
)
def test_every_word_of_the_file_is_checked(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "d.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(dpsql.DPSQLError, match=message.replace("?", r"\?")):
        dpsql.Schema.from_toml(file)


def test_missing_file() -> None:
    with pytest.raises(InvalidSchema, match="no schema file"):
        dpsql.Schema.from_toml("nowhere.toml")


def test_declare_remembers_with_the_frame_and_leaves_it_alone() -> None:
    people = dpsql.declare(FRAME, bounds={"age": (0, 100)}, keys={"sex": ["F", "M"]})
    assert FRAME.attrs == {}
    assert len(dpsql.query(people, "SELECT sex, AVG(age) FROM people GROUP BY sex", epsilon=1)) == 2
    narrower = dpsql.query(people, "SELECT SUM(age) FROM people", epsilon=1, bounds={"age": (0, 10)})
    assert narrower.explanation.to_dict()["releases"][0]["sensitivity"]["l1"] == 10
    assert isinstance(dpsql.declare(FRAME, nullable={"sex": False}), dpsql.Table)


def test_a_table_is_added_once() -> None:
    asker = session()
    asker.add("u", FRAME)
    assert asker.tables == ("t", "u")
    with pytest.raises(InvalidSchema, match='a table "T" already'):
        asker.add("T", FRAME)


def test_the_name_of_the_only_frame_is_free() -> None:
    assert len(dpsql.query(FRAME, "SELECT COUNT(*) FROM whatever", epsilon=1)) == 1
    with pytest.raises(dpsql.errors.UnknownTable, match='no table "whatever"'):
        dpsql.query({"t": FRAME}, "SELECT COUNT(*) FROM whatever", epsilon=1)


def test_session_ignores_later_changes_to_the_frame() -> None:
    frame = pd.DataFrame({"k": ["a"] * 100})
    asker = dpsql.Session({"t": dpsql.Table(frame, keys={"k": ["a", "b"]})}, budget=dpsql.Budget(1e9))
    sql = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    assert asker.query(sql, epsilon=1e6).df["n"].tolist() == [100, 0]
    frame.loc[:, "k"] = "b"
    assert asker.query(sql, epsilon=1e6).df["n"].tolist() == [100, 0]


def test_the_schema_speaks_of_tables_without_regard_to_case() -> None:
    schema = dpsql.Schema.from_dict({"tables": {"people": {"columns": {"age": {"bounds": [0, 99]}}}}})
    asker = dpsql.Session({"People": FRAME}, schema=schema, budget=dpsql.Budget(1))
    assert asker.explain("SELECT SUM(age) FROM people", epsilon=1).to_dict()["releases"][0]["sensitivity"]["l1"] == 99


def test_a_decimal_of_absurd_size_is_refused_at_once() -> None:
    for text in ("1e-100000000", "1e100000000"):
        with pytest.raises(InvalidPrivacyParameter, match="reasonable size"):
            dpsql.query(FRAME, COUNT, epsilon=Decimal(text))


def test_a_failure_while_noise_is_added_does_not_speak_of_exact_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_release: object, exact: object) -> None:
        raise ValueError(f"counted {exact.parts}")

    asker = session()
    asker.explain(COUNT, epsilon=0.5)  # its plan is tried here, without a failure, and kept
    monkeypatch.setattr(Release, "privatise", fail)
    with pytest.raises(dpsql.errors.InternalError, match="the run failed") as failure:
        asker.query(COUNT, epsilon=0.5)
    assert "counted" not in "".join(traceback.format_exception(failure.value))
    assert asker.spent.epsilon == Fraction(1, 2)
