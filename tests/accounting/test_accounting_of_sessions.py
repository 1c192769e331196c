"""compare and group privacy where the engine, or large numbers, meet them."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest

import dpsql
from dpsql.accounting import ApproxDP, Concentrated, Gaussian, Laplace, Pure, compare, delta_of, group_privacy, pld
from dpsql.errors import BudgetExceeded, InvalidArgument

FRAME = pd.DataFrame({"state": ["WA", "OR"] * 50})
COUNT = "SELECT COUNT(*) FROM people"


def parted(neighbours: str = "unbounded", budget: float = 5) -> dpsql.Session:
    table = dpsql.Table(FRAME, partition="state")
    return dpsql.Session({"people": table}, budget=dpsql.Budget(budget, 1e-5), neighbours=neighbours)


def test_parts_count_by_the_one_that_costs_most():
    held = parted()
    held.query(f"{COUNT} WHERE state = 'WA'", epsilon=1)
    held.query(f"{COUNT} WHERE state = 'OR'", epsilon=1)
    held.query(f"{COUNT} WHERE state = 'OR'", epsilon=0.5)
    found = compare(held, 1e-6)["epsilon"]
    assert found["basic"] == pytest.approx(1.5)
    assert math.isnan(found["kov"]), "the epsilons of one part differ"
    assert compare(held.ledger(), 1e-6)["epsilon"]["basic"] == pytest.approx(2.5), "entries alone tell of no relation"
    assert compare(parted("bounded"), 1e-6)["epsilon"].eq(0).all()


def test_a_question_about_two_parts_costs_a_person_who_moves_once():
    held = parted("bounded", budget=1)
    held.query(f"{COUNT} WHERE state IN ('WA', 'OR')", epsilon=0.6)
    assert held.spent.epsilon == Fraction(6, 10)
    held.query(f"{COUNT} WHERE state = 'WA'", epsilon=0.2)
    held.query(f"{COUNT} WHERE state = 'OR'", epsilon=0.2)
    assert held.remaining.epsilon == 0


@pytest.mark.parametrize(
    ("event", "size"),
    [
        (Gaussian(1), 100),
        (Gaussian(5), 1000),
        (Pure(0.1, count=10_000), 100),
        (Laplace(10, count=10_000), 100),
        (Laplace(1), 10**7),
    ],
)
def test_no_rule_of_group_privacy_is_below_the_exact_one(event: object, size: int):
    found = group_privacy(event, size, 1e-5)["epsilon"]
    assert (found.dropna() >= found["exact"] * (1 - 1e-9)).all()


def test_group_privacy_of_what_is_known_by_its_zcdp_alone():
    found = group_privacy(Concentrated(0.5), 100, 1e-5)["epsilon"]
    exact = group_privacy(Gaussian(1), 100, 1e-5)["epsilon"]["exact"]  # one such step
    assert (found.dropna() >= exact * (1 - 1e-9)).all()


def test_a_delta_that_grows_beyond_all_bounds_is_one():
    assert ApproxDP(700, Fraction(1, 10**303)).group(2).delta == 1
    assert ApproxDP(10**6, Fraction(1, 10**303)).group(5).delta == 1
    assert ApproxDP(10**6, 0).group(5).delta == 0


def test_scales_far_apart():
    assert pld([Laplace(1e-7), Pure(1)], 1e-5) <= 1e7 + 1
    assert delta_of([Laplace(1e-7)], 1) == pytest.approx(1)
    alone = delta_of([Laplace(1), Pure(1e-4)], 0)
    assert alone <= delta_of([Laplace(1), Pure(1e-4), Gaussian(1e30)], 0) <= alone * (1 + 1e-6)


def test_the_schemas_ledger_is_the_ledger(tmp_path: Path):
    schema = dpsql.Schema.from_dict({"budget": {"epsilon": 1, "ledger": "spent.db"}}, tmp_path)
    tables = {"people": FRAME}
    with dpsql.Session(tables, schema=schema) as held:
        held.query(COUNT, epsilon=1)
    with pytest.raises(InvalidArgument, match="another ledger"):
        dpsql.Session(tables, schema=schema, ledger=tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
    assert dpsql.Session(tables, schema=schema, ledger=tmp_path / "spent.db").remaining.epsilon == 0


class Elusive(str):
    """A name that is no other, itself included."""

    __hash__ = str.__hash__

    def __eq__(self, _other: object) -> bool:
        return False

    def __ne__(self, _other: object) -> bool:
        return True


def test_a_name_that_equals_nothing_has_its_share_all_the_same():
    budget = dpsql.Budget(10, analysts={"*": dpsql.Budget(1)})
    held = dpsql.Session({"people": FRAME}, budget=budget, analyst=Elusive("ann"))
    held.query(COUNT, epsilon=0.9)
    with pytest.raises(BudgetExceeded, match='left for analyst "ann"'):
        held.query(COUNT, epsilon=0.9, fresh=True)
