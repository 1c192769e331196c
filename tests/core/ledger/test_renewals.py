"""A new total: what is spent stays spent, the chain holds it, and all steps are within the largest."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger, rules_of
from dpsql.core.ledger.filters import Watch
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.text import Rules
from dpsql.core.unit import Neighbours
from dpsql.errors import BudgetExceeded, InvalidPrivacyParameter, LedgerError
from tests.core.ledger import checks

GOLDEN = Path(__file__).parent / "golden"


def test_a_new_total_is_a_line_of_the_chain(tmp_path: Path):
    path = tmp_path / "l"
    ledger = open_ledger(path, Rules(Budget(1, 1e-6)))
    ledger.charge(Cost.of(Fraction(1)), "a")
    anchor = ledger.anchor
    with pytest.raises(BudgetExceeded):
        ledger.charge(Cost.of(Fraction(1)), "b")
    ledger.renew(3, 1e-6, "a second year")
    ledger.charge(Cost.of(Fraction(2)), "b")
    assert (ledger.spent.epsilon, ledger.remaining.epsilon, ledger.budget) == (3, 0, Budget(3, 1e-6))
    line = json.loads(ledger.to_json())["lines"][1]
    assert (line["kind"], line["epsilon"], line["delta"], line["reason"]) == (
        "renewed",
        "3",
        "1/1000000",
        "a second year",
    )
    ledger.close()
    again = open_ledger(path, Rules(Budget(3, 1e-6)), anchor=anchor)
    assert (again.spent.epsilon, again.budget) == (3, Budget(3, 1e-6))
    assert rules_of(path) == Rules(Budget(3, 1e-6))
    again.close()
    with pytest.raises(LedgerError, match="other rules"):
        open_ledger(path, Rules(Budget(1, 1e-6)))
    named, calculated = checks.hashes(open_ledger(path).to_json())
    assert named == calculated


def test_less_than_is_spent_is_refused():
    ledger = Ledger(Rules(Budget(3, 1e-6)))
    ledger.charge(Cost.of(Fraction(2)), "a")
    for epsilon, delta in ((1, 1e-6), (1.9999, 0)):
        with pytest.raises(InvalidPrivacyParameter, match="less than what is spent already"):
            ledger.renew(epsilon, delta, "less")
    ledger.renew(2, 0, "no more")
    assert (ledger.remaining.epsilon, ledger.spent.epsilon) == (0, 2)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0, 0), (-1, 0), (float("nan"), 0), (1, 1), (1, -1), ("5", 0), (None, 0)]
)
def test_what_is_no_budget_is_refused(epsilon: object, delta: object):
    ledger = Ledger(Rules(Budget(3)))
    with pytest.raises(InvalidPrivacyParameter):
        ledger.renew(epsilon, delta, "?")
    assert ledger.anchor.startswith("0:")


def test_shares_and_the_part_for_conversion_stay():
    ledger = Ledger(Rules(Budget(3, 1e-6, conversion_delta=9e-7, analysts={"ann": Budget(1)})), analyst="ann")
    ledger.renew(5, 2e-6, "more")
    assert ledger.budget == Budget(5, 2e-6, conversion_delta=9e-7, analysts={"ann": Budget(1)})
    assert ledger.remaining.epsilon == 1
    with pytest.raises(InvalidPrivacyParameter, match='share of analyst "ann"'):
        ledger.renew(0.5, 2e-6, "less than a share")
    with pytest.raises(InvalidPrivacyParameter, match="conversion_delta"):
        ledger.renew(5, 1e-7, "less than the part")


def test_an_open_session_sees_the_new_total(tmp_path: Path):
    one = open_ledger(tmp_path / "l", Rules(Budget(1)))
    other = open_ledger(tmp_path / "l")
    one.renew(2, 0, "more")
    assert other.remaining.epsilon == 2


def test_a_ledger_of_format_1_takes_units_first(tmp_path: Path):
    path = Path(shutil.copy(GOLDEN / "format1_plain.ledger", tmp_path))
    ledger = open_ledger(path, owner=True)
    anchor = ledger.anchor
    with pytest.raises(LedgerError, match="format 1"):
        ledger.renew(100, 1e-4, "more")
    assert ledger.anchor == anchor


def test_the_golden_file_is_read(tmp_path: Path):
    """Written when renewals came: two charges, a new total between them."""
    path = Path(shutil.copy(GOLDEN / "format2_renewed.ledger", tmp_path))
    ledger = open_ledger(path, Rules(Budget(5, 1e-6)))
    assert json.loads(ledger.to_json()) == json.loads((GOLDEN / "format2_renewed.json").read_text())
    assert (ledger.spent.epsilon, ledger.remaining.epsilon) == (4, 1)


def walk(chance: random.Random, neighbours: Neighbours) -> None:
    """Charges and new totals at random: what was entered is admitted by the filter of the largest total."""
    largest = [Fraction(1), Fraction(chance.choice([0, 1]), 10**6)]
    rules = Rules(Budget(*largest), neighbours=neighbours)
    ledger, mirror = Ledger(rules), Watch(rules.budget.filter("auto"), moves=neighbours is Neighbours.BOUNDED)
    for _ in range(25):
        if chance.random() < 0.3:
            total = (Fraction(chance.randint(1, 30), 10), Fraction(chance.choice([0, 1, 2]), 10**6))
            try:
                ledger.renew(*total, "by chance")
            except InvalidPrivacyParameter:
                continue
            largest = [max(pair) for pair in zip(largest, total, strict=True)]
            continue
        delta = Fraction(chance.choice([0, 0, 1, 3]), 10**7)
        cost = Cost.of(Fraction(chance.randint(1, 10), 10), delta)
        parts = chance.choice([(), (Part("t", "c", "x"),), (Part("t", "c", "y"),)])
        try:
            ledger.charge(cost, "q", parts=parts)
        except BudgetExceeded:
            continue
        mirror.add(cost, parts)
    mirror.filter = rules.budget.renewed(*largest).filter("auto")
    assert mirror.admits(FREE)
    assert ledger.after(FREE) is not None


def walks() -> None:
    chance = random.Random(7)
    for number in range(60):
        walk(chance, (Neighbours.UNBOUNDED, Neighbours.BOUNDED)[number % 2])


def test_all_steps_are_within_the_largest_total():
    walks()


def forget_what_was_spent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Watch, "fits", lambda _watch, _filter: True)


def begin_anew(patch: pytest.MonkeyPatch) -> None:
    """A new total as a fresh one: what was spent before is given back."""
    renew = Ledger.renew

    def forgetting(self: Ledger, *total: object) -> None:
        renew(self, *total)  # type: ignore[arg-type]
        for watch in self._state.watches:
            watch._account = type(watch._account)(moves=False)

    patch.setattr(Ledger, "renew", forgetting)


@pytest.mark.parametrize("lie", [forget_what_was_spent, begin_anew], ids=lambda each: each.__name__)
def test_a_lie_is_caught(lie: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch):
    lie(monkeypatch)
    with pytest.raises((AssertionError, InvalidPrivacyParameter)):
        walks()
