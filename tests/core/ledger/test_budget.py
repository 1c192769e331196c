"""Ways round the budget: odd numbers, threads, forks, copies, failures. The checks themselves stand in checks.py."""

from __future__ import annotations

import threading
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpsql
from dpsql.core.cost import Cost
from dpsql.core.ledger.filters import SpentBudget
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.text import Rules
from dpsql.core.loss import PrivacyLoss
from dpsql.errors import BudgetExceeded, DPSQLError, InvalidPrivacyParameter, LedgerError
from tests.core import checks

COUNT = "SELECT COUNT(*) FROM t"


def session(epsilon: Any = 1, delta: Any = 0, **options: Any) -> dpsql.Session:
    return dpsql.Session({"t": pd.DataFrame({"x": [1, 2, 3]})}, budget=dpsql.Budget(epsilon, delta), **options)


class Forgetful(float):
    """A float that says another number each time it is asked, and prints as a small one."""

    def __new__(cls, *said: float) -> Forgetful:
        made = super().__new__(cls, said[0])
        made.said = list(said)  # type: ignore[attr-defined]
        return made

    def __float__(self) -> float:
        said: list[float] = self.said  # type: ignore[attr-defined]
        return said.pop(0) if len(said) > 1 else said[0]

    def __repr__(self) -> str:
        return "0.001"

    __str__ = __repr__


@pytest.mark.parametrize(
    ("epsilon", "charged"),
    [
        (0.1, Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        (Fraction(1, 3), Fraction(1, 3)),
        (np.int64(1), Fraction(1)),
        (np.longdouble("0.5"), Fraction(1, 2)),
        (1, Fraction(1)),
        (1e-9, Fraction(1, 10**9)),
    ],
)
def test_what_is_asked_for_is_charged_exactly(epsilon: Any, charged: Fraction):
    held = session(1)
    held.query(COUNT, epsilon=epsilon)
    assert held.spent == SpentBudget(charged, rho=charged**2 / 2)


def test_single_precision_is_charged_as_the_number_that_it_is():
    held = session(1)
    held.query(COUNT, epsilon=np.float32(0.1))
    assert held.spent.epsilon >= Fraction(1, 10)


BAD = [
    0, -1, -0.0, -1e-9, float("nan"), float("inf"), -float("inf"), np.float64("nan"), Decimal("NaN"),
    Decimal("Infinity"), Decimal(-1), "1", b"1", True, np.bool_(True), 1 + 0j, [1], {1}, np.array(1.0), np.array([1.0]),
    pd.NA, pd.NaT,
    object(), 10**10, 1e-10, Decimal("1e400"), Decimal("1e-400"), Fraction(-1, 3), pd.Series([1.0]),
]  # fmt: skip


@pytest.mark.parametrize("epsilon", BAD, ids=lambda each: type(each).__name__)
def test_what_is_no_epsilon_is_refused_and_costs_nothing(epsilon: Any):
    held = session(1)
    with pytest.raises(InvalidPrivacyParameter):
        held.query(COUNT, epsilon=epsilon)
    with pytest.raises(InvalidPrivacyParameter):
        dpsql.Budget(epsilon)
    with pytest.raises(InvalidPrivacyParameter):
        dpsql.query(pd.DataFrame({"x": [1]}), COUNT, epsilon=epsilon)
    assert held.spent == SpentBudget(Fraction(0))
    assert held.ledger() == ()


@pytest.mark.parametrize("epsilon", [Decimal("sNaN"), 10**5000], ids=["sNaN", "10**5000"])
def test_odd_numbers_are_refused_by_name(epsilon: Any):
    with pytest.raises(InvalidPrivacyParameter):
        dpsql.Budget(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.0, 2, float("nan"), "0", True, Decimal("NaN"), 1e-200, None, [0]])
def test_what_is_no_delta_is_refused(delta: Any):
    with pytest.raises(InvalidPrivacyParameter):
        dpsql.Budget(1, delta)


def test_a_number_is_read_once():
    """The noise and the ledger have the same fraction, whatever the object says the second time."""
    held = session(10)
    try:
        held.query(COUNT, epsilon=Forgetful(5.0, 1e-9, 3.0, 1e-9))
    except DPSQLError:
        assert held.spent.epsilon == 0
        return
    (entry,) = held.ledger()
    result = held.query(COUNT, epsilon=1)
    assert entry.loss.epsilon + 1 == held.spent.epsilon
    assert result.loss.epsilon == 1


def test_the_charge_is_the_calibrated_loss_also_of_forgetful_numbers():
    for said in ((5.0, 1e-9), (1e-9, 5.0), (2.0, 2.0, 7.0)):
        frame = pd.DataFrame({"x": [1, 2, 3]})
        try:
            result = dpsql.query(frame, COUNT, epsilon=Forgetful(*said))
        except DPSQLError:
            continue
        noise = result._release.noise
        assert noise is not None
        assert noise.loss(result._release.reach).epsilon <= result.loss.epsilon


def test_wide_and_odd_words_for_strategy_and_mechanism_cost_nothing():
    held = session(10)
    for word in ("", "AUTO", None, 1, [], {}, b"auto", ("auto",)):
        for name in ("strategy", "mechanism"):
            with pytest.raises(DPSQLError):
                held.query(COUNT, epsilon=1, **{name: word})
    assert held.spent.epsilon == 0


def test_one_query_may_not_cost_more_than_the_most():
    held = session(10, max_epsilon=0.5)
    with pytest.raises(InvalidPrivacyParameter):
        held.query(COUNT, epsilon=Fraction(1, 2) + Fraction(1, 10**12))
    held.query(COUNT, epsilon=0.5)
    assert held.spent.epsilon == Fraction(1, 2)


def test_explanations_are_free_and_say_what_is_charged():
    held = session(10, 1e-6)
    for sql, options in ((COUNT, {}), ("SELECT x, COUNT(*) FROM t GROUP BY x", {"delta": 1e-7})):
        said = held.explain(sql, epsilon=1, **options).to_dict()
        before = held.spent
        result = held.query(sql, epsilon=1, **options)
        assert (said["epsilon"], said["delta"]) == (float(result.loss.epsilon), float(result.loss.delta))
        assert (held.spent.epsilon, held.spent.delta) == (before.epsilon + 1, before.delta + result.loss.delta)
    assert held.query(f"EXPLAIN PRIVACY {COUNT}", epsilon=1).to_dict()["epsilon"] == 1
    assert held.spent.epsilon == 2


def test_a_budget_is_not_widened_by_a_schema_or_by_writing_to_it():
    schema = dpsql.Schema.from_dict({"budget": {"epsilon": 1, "delta": 0}})
    frame = pd.DataFrame({"x": [1]})
    with pytest.raises(InvalidPrivacyParameter):
        dpsql.Session({"t": frame}, schema=schema, budget=dpsql.Budget(2))
    with pytest.raises(InvalidPrivacyParameter):
        dpsql.Session({"t": frame}, schema=schema, budget=dpsql.Budget(1, 1e-9))
    held = dpsql.Session({"t": frame}, schema=schema)
    for thing, name in ((held.budget, "loss"), (held.spent, "epsilon"), (held.ledger, "entries")):
        with pytest.raises((AttributeError, TypeError)):
            setattr(thing, name, PrivacyLoss(Fraction(0)))
    assert isinstance(held.ledger(), tuple)


def test_a_table_is_not_put_in_the_place_of_another():
    held = session(1)
    for name in ("t", "T"):
        with pytest.raises(DPSQLError):
            held.add(name, pd.DataFrame({"x": [9]}))


def test_a_ledger_admits_what_fits_from_any_thread():
    held = Ledger(Rules(dpsql.Budget(Fraction(50, 7))))
    admitted: list[int] = []
    start = threading.Barrier(12)

    def spend() -> None:
        start.wait()
        for _ in range(40):
            try:
                held.charge(Cost.of(Fraction(1, 7)), "one")
            except BudgetExceeded:
                continue
            admitted.append(1)

    threads = [threading.Thread(target=spend) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == len(held.entries) == 50
    assert held.spent.epsilon == Fraction(50, 7)
    assert held.remaining.epsilon == 0


def test_a_free_answer_is_refused_in_a_fork_too():
    held = session(1, neighbours="bounded")
    assert held.query(COUNT, epsilon=1).loss.epsilon == 0

    def ask() -> str:
        try:
            held.query(COUNT, epsilon=1)
        except LedgerError:
            return "refused"
        return "answered"

    assert checks.in_a_child(ask) == "refused"
