"""A ledger that was put back from a copy: whatever was answered since the copy counts."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.core.cost import Cost
from dpsql.core.ledger import restored as restored_module
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.share_lines import FailedRequest
from dpsql.core.ledger.sharing import Request
from dpsql.core.ledger.text import Rules
from dpsql.core.loss import PrivacyLoss
from dpsql.errors import BudgetExceeded, InvalidArgument, InvalidPrivacyParameter, LedgerError
from tests.lies import assert_caught

TINY = Cost.of(Fraction(1, 10**12))
DELTA = Fraction(1, 10**6)
NAMES = ("ann", "bob", "eve")


def charge_by_chance(file: Path, name: str | None, chance: random.Random, parts: bool) -> None:
    """A step of some cost, if there is room."""
    epsilon = Fraction(chance.randrange(1, 30), 100)
    rho = Cost(None, Fraction(0), epsilon * epsilon / 50)
    which = (Part("t", "c", chance.choice("xyz")),) if parts and chance.random() < 0.7 else ()
    ledger = open_ledger(file, analyst=name)
    try:
        ledger.charge(chance.choice([Cost.of(epsilon), Cost.of(epsilon, DELTA / 40), rho]), "q", parts=which)
    except BudgetExceeded:
        pass
    finally:
        ledger.close()


def refused(act: Callable[[], object], words: str = "") -> str:
    """What is said of it; "" where it is not refused."""
    try:
        act()
    except (BudgetExceeded, InvalidPrivacyParameter) as error:
        return str(error) if words in str(error) else ""
    return ""


def check_nothing_is_left(tmp_path: Path, rounds: int = 12) -> None:
    """After a copy was put back nobody can spend anything, and what may be given to others is what nobody had."""
    chance = random.Random(3)
    for number in range(rounds):
        file, copy = tmp_path / f"{number}-{chance.random()}", tmp_path / f"{number}-copy"
        shared, parts = number % 2 == 0, number % 3 == 0
        accountant = chance.choice(["auto", "basic", "zcdp"])
        owner = open_ledger(file, Rules(Budget(3, DELTA), accountant), owner=True)
        names: list[Any] = [None]
        if shared:
            names = list(NAMES[: chance.randrange(1, 3)])
            for name in names:
                owner.give_share(name, PrivacyLoss(Fraction(chance.randrange(1, 10), 10), DELTA / 5), anew=True)
        for _ in range(chance.randrange(5)):
            charge_by_chance(file, chance.choice(names), chance, parts)
        shutil.copy(file, copy)
        if shared:
            owner.give_share("new", PrivacyLoss(Fraction(1), DELTA / 5), anew=True)
            names.append("new")
        for _ in range(chance.randrange(6)):
            charge_by_chance(file, chance.choice(names), chance, parts)
        owner.close()
        back = open_ledger(copy, owner=True)
        back.restored("put back")
        if shared:
            back.check_room()
        everybody = [name for name in names if name != "new"]
        for name in everybody:
            one = open_ledger(copy, analyst=name)
            for which in ((), (Part("t", "c", "x"),), (Part("t", "c", "w"),)):
                assert refused(lambda one=one, which=which: one.charge(TINY, "q", parts=which)), (number, name)
            one.close()
        if shared:
            zed = PrivacyLoss(Fraction(1, 100), DELTA / 100)
            assert refused(lambda back=back, zed=zed: back.give_share("zed", zed, anew=True), "would come to"), number
        back.close()


def test_nothing_is_left_after_a_copy_was_put_back(tmp_path: Path):
    check_nothing_is_left(tmp_path)


@pytest.mark.parametrize("forgotten", ["_given_since", "_left"])
def test_a_copy_that_is_put_back_as_if_nothing_had_been_spent_is_caught(tmp_path: Path, forgotten: str):
    def nothing(patch: pytest.MonkeyPatch) -> None:
        none = (Fraction(0), Fraction(0))
        lie = staticmethod(lambda *_: none) if forgotten == "_left" else lambda _: none
        patch.setattr(restored_module.RestoredBook, forgotten, lie)

    assert_caught(nothing, lambda: check_nothing_is_left(tmp_path, 4), honest=False)


def asked(file: Path, key: str, *, answer: bool) -> int:
    """A charge of ann's under a key, with its answer or none."""
    ledger = open_ledger(file, analyst="ann")
    ledger.request = Request(key * 64, "b" * 64, "c" * 64)
    charge = ledger.charge(Cost.of(Fraction(1, 10)), "q")
    if answer:
        ledger.keep("k" + key, b"{}", charge)
    ledger.close()
    return charge.number


@pytest.fixture
def owner(tmp_path: Path) -> Ledger:
    ledger = open_ledger(tmp_path / "l", Rules(Budget(3)), owner=True)
    ledger.give_share("ann", PrivacyLoss(Fraction(1)), anew=True)
    return ledger


def test_a_charge_that_had_no_answer_has_none_from_then_on(owner: Ledger, tmp_path: Path):
    """It may have had one since, and another draw under it would not be paid for. It is no death of the analyst's."""
    open_ = asked(tmp_path / "l", "a", answer=False)
    closed = asked(tmp_path / "l", "d", answer=True)
    owner.restored("put back", {"ann": (Fraction(0), Fraction(0))})
    assert owner.failure(open_) == "error"
    assert not owner.failure(closed)
    assert owner.failures("ann") == 0
    again = open_ledger(tmp_path / "l", analyst="ann")
    again.request = Request("a" * 64, "b" * 64, "c" * 64)
    with pytest.raises(LedgerError, match="has had its answer"):
        again.charge(Cost.of(Fraction(1, 10)), "q")
    again.request = None
    again.charge(Cost.of(Fraction(8, 10)), "q")


def test_what_the_owner_states_is_charged(owner: Ledger, tmp_path: Path):
    owner.give_share("bob", PrivacyLoss(Fraction(1)), anew=True)
    stated = {"ann": (Fraction(1, 4), Fraction(0)), "new": (Fraction(1, 2), Fraction(0))}
    charged = owner.restored("put back", stated)
    assert charged == {"ann": stated["ann"], "bob": (Fraction(1), Fraction(0)), "new": stated["new"]}
    reports = owner.shares()
    assert (reports["ann"].left.epsilon, reports["bob"].left.epsilon) == (Fraction(3, 4), 0)
    with pytest.raises(InvalidPrivacyParameter, match="come to epsilon 3.1"):
        owner.give_share("zed", PrivacyLoss(Fraction(6, 10)), anew=True)
    assert [entry.analyst for entry in owner.entries] == ["ann", "bob", "new"]
    owner.check_room()
    with pytest.raises(InvalidArgument, match="never starts anew"):
        owner.give_share("new", PrivacyLoss(Fraction(1, 10)), anew=True)


def check_outcomes_are_numbered_by_charges(folder: Path) -> None:
    """What is told of a run says nothing of when another one ended."""
    owner = open_ledger(folder, Rules(Budget(3)), owner=True)
    for name in ("ann", "bob"):
        owner.give_share(name, PrivacyLoss(Fraction(1)), anew=True)
    charges = [asked(folder, key, answer=False) for key in "ade"]
    assert owner.outcome(charges[0]) is None
    ann = open_ledger(folder, analyst="ann")
    for number in (2, 0):  # the last one ends first
        entry = next(each for each in ann.entries if each.number == charges[number])
        ann.keep(f"k{number}", b"{}", entry)
    assert owner.fail(charges[1], "died")
    outcomes = [owner.outcome(each) for each in charges]
    assert [each and each[0] for each in outcomes] == [1, 2, 3]
    for place, digest in filter(None, outcomes):
        assert owner.holds_outcome("ann", place, digest)
        assert not owner.holds_outcome("bob", place, digest)
        assert not owner.holds_outcome("ann", place + 1, digest)
    assert not owner.holds_outcome("ann", 0, "")
    again = open_ledger(folder, owner=True)
    assert [again.outcome(each) for each in charges] == outcomes


def test_outcomes_are_numbered_by_charges(tmp_path: Path):
    check_outcomes_are_numbered_by_charges(tmp_path / "l")


def test_outcomes_that_are_numbered_by_ends_are_caught(tmp_path: Path):
    def by_ends(patch: pytest.MonkeyPatch) -> None:
        def outcome(book: Any, charge: int) -> tuple[int, str] | None:
            ends = list(book._state.shares._ends)
            return (ends.index(charge) + 1, book._state.shares._ends[charge]) if charge in ends else None

        patch.setattr(Ledger, "outcome", outcome)

    assert_caught(by_ends, lambda: check_outcomes_are_numbered_by_charges(tmp_path / "l"), honest=False)


def check_the_whole_holds_shares_that_overlap(file: Path) -> None:
    """Whoever opens it and whatever he was told; and in no figures."""
    owner = open_ledger(file, Rules(Budget(1)), owner=True)
    owner.overlap = True
    for name in ("ann", "bob"):
        owner.give_share(name, PrivacyLoss(Fraction(8, 10)), anew=True)
    ann, bob = (open_ledger(file, analyst=name) for name in ("ann", "bob"))
    before = (bob.remaining, bob.after(Cost.of(Fraction(1, 2))), bob.most(Cost.of(Fraction(1, 10))))
    ann.charge(Cost.of(Fraction(7, 10)), "q")
    assert (bob.remaining, bob.after(Cost.of(Fraction(1, 2))), bob.most(Cost.of(Fraction(1, 10)))) == before
    words = refused(lambda: bob.charge(Cost.of(Fraction(4, 10)), "q"), "all analysts share")
    assert words
    assert not any(sign.isdigit() for sign in words)
    bob.charge(Cost.of(Fraction(3, 10)), "q")
    assert refused(lambda: ann.charge(Cost.of(Fraction(1, 100)), "q"), "all analysts share")
    assert refused(lambda: ann.charge(Cost.of(Fraction(2, 10)), "q"), 'for analyst "ann"')
    owner.revoke_share("bob")  # what he spent counts, and the rest is the whole's again: it was never ann's
    assert refused(lambda: ann.charge(Cost.of(Fraction(1, 10)), "q"), "all analysts share")


def test_the_whole_holds_shares_that_overlap(tmp_path: Path):
    check_the_whole_holds_shares_that_overlap(tmp_path / "l")


def test_shares_that_overlap_and_are_held_by_nothing_else_are_caught(tmp_path: Path):
    def unheld(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Ledger, "_check_whole", lambda *_: None)

    assert_caught(
        unheld,
        lambda: check_the_whole_holds_shares_that_overlap(tmp_path / "l"),
        honest=False,
    )


def test_shares_overlap_by_the_owners_word_alone(owner: Ledger):
    with pytest.raises(InvalidPrivacyParameter, match="overlap = true"):
        owner.give_share("bob", PrivacyLoss(Fraction(5, 2)), anew=True)
    owner.overlap = True
    owner.give_share("bob", PrivacyLoss(Fraction(5, 2)), anew=True)
    owner.check_room()
    owner.overlap = False
    with pytest.raises(InvalidPrivacyParameter):
        owner.check_room()


def test_failures_are_lines_as_before(owner: Ledger, tmp_path: Path):
    """Nothing here needs a line that earlier versions do not know."""
    asked(tmp_path / "l", "a", answer=False)
    owner.restored("put back")
    assert FailedRequest("", 1, "error").words["reason"] in owner.to_json()
