"""Shares as lines of the chain: what each may spend, what all together come to, and what is paid under a key."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.core.cost import FREE, Cost
from dpsql.core.ledger import ledger as ledger_module
from dpsql.core.ledger import shares as shares_module
from dpsql.core.ledger import sharing
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.file import open_ledger
from dpsql.core.ledger.filters import Filter
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.share_lines import FailedRequest
from dpsql.core.ledger.sharing import Request
from dpsql.core.ledger.text import Rules
from dpsql.core.loss import PrivacyLoss
from dpsql.errors import BudgetExceeded, DPSQLError, InvalidArgument, InvalidPrivacyParameter, LedgerError
from tests.core.ledger import checks
from tests.lies import assert_caught

GOLDEN = Path(__file__).parent / "golden" / "format2_shares.ledger"
KEY, BODY, RUN = "a" * 64, "b" * 64, "c" * 64
ONE = Cost.of(Fraction(1))
TENTH = checks.TENTH


def loss(epsilon: object, delta: object = 0) -> PrivacyLoss:
    return PrivacyLoss(Fraction(str(epsilon)), Fraction(str(delta)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "l"
    with_shares(file, ann=loss(1), bob=loss(2)).close()
    return file


def with_shares(file: Path, budget: Budget | None = None, accountant: str = "auto", **shares: PrivacyLoss) -> Ledger:
    ledger = open_ledger(file, Rules(budget or Budget(3), accountant), owner=True)
    for name, share in shares.items():
        ledger.give_share(name, share, anew=True)
    return ledger


def of(file: Path, analyst: str | None) -> Ledger:
    return open_ledger(file, analyst=analyst)


def test_an_analyst_is_held_by_his_share_alone(path: Path):
    ann, bob = of(path, "ann"), of(path, "bob")
    before = (ann.remaining, ann.spent, ann.whole)
    bob.charge(ONE, "q")
    assert (ann.remaining, ann.spent, ann.whole) == before
    ann.charge(ONE, "q")
    with pytest.raises(BudgetExceeded, match=r'0 is left for analyst "ann" \(spent 1 of 1 in 1 query\)'):
        ann.charge(TENTH, "q")
    assert bob.remaining.epsilon == 1


def test_a_share_that_comes_while_a_ledger_is_open_holds_from_then_on(tmp_path: Path):
    file = tmp_path / "l"
    owner = with_shares(file)
    ann = of(file, "ann")
    owner.give_share("ann", loss("0.1"), anew=True)
    ann.charge(TENTH, "q")
    with pytest.raises(BudgetExceeded):
        ann.charge(TENTH, "q")
    owner.give_share("ann", loss("0.2"), anew=False)
    ann.charge(TENTH, "q")


@pytest.mark.parametrize("analyst", [None, "eve"])
def test_whoever_has_no_share_is_not_charged(path: Path, analyst: str | None):
    with pytest.raises(LedgerError, match="has no share of it"):
        of(path, analyst).charge(TENTH, "q")


def test_all_shares_together_are_within_the_budget(path: Path):
    owner = open_ledger(path, owner=True)
    for name, share in (("eve", loss("0.000001")), ("ann", loss("1.01"))):
        with pytest.raises(InvalidPrivacyParameter, match="all shares would come to epsilon"):
            owner.give_share(name, share, anew=name == "eve")
    of(path, "bob").charge(TENTH, "q")
    owner.revoke_share("bob")
    with pytest.raises(LedgerError, match="was revoked"):
        of(path, "bob").charge(TENTH, "q")
    owner.give_share("eve", loss("1.9"), anew=True)
    with pytest.raises(InvalidPrivacyParameter, match="all shares would come to"):
        owner.give_share("bob", loss("0.2"), anew=False)
    with pytest.raises(InvalidPrivacyParameter, match="all shares would come to"):
        owner.renew(2.9, 0, "less")
    owner.renew(3.1, 0, "more")
    owner.give_share("bob", loss("0.2"), anew=False)


def test_a_name_never_starts_anew(path: Path):
    owner = open_ledger(path, owner=True)
    owner.revoke_share("ann")
    with pytest.raises(InvalidArgument, match="a name never starts anew"):
        owner.give_share("ann", loss(1), anew=True)
    for act in (owner.revoke_share, owner.allow):
        with pytest.raises(InvalidArgument, match="has no share"):
            act("eve")


def test_what_was_spent_stays_spent(path: Path):
    owner = open_ledger(path, owner=True)
    of(path, "ann").charge(Cost.of(Fraction(1, 2)), "q")
    with pytest.raises(InvalidArgument, match="has spent more than"):
        owner.give_share("ann", loss("0.4"), anew=False)
    with pytest.raises(InvalidPrivacyParameter, match="has delta 0, which stays as it is"):
        owner.give_share("ann", loss(1, "1e-9"), anew=False)


def test_what_was_charged_before_there_were_shares_counts(tmp_path: Path):
    file = tmp_path / "l"
    ledger = open_ledger(file, Rules(Budget(3)))
    ledger.charge(ONE, "q")
    owner = open_ledger(file, owner=True)
    with pytest.raises(InvalidPrivacyParameter):
        owner.give_share("ann", loss("2.1"), anew=True)
    owner.give_share("ann", loss(2), anew=True)
    with pytest.raises(LedgerError, match="shared out"):
        ledger.charge(TENTH, "q")


def test_what_was_paid_by_rho_alone_leaves_nothing_to_share_out(tmp_path: Path):
    file = tmp_path / "l"
    open_ledger(file, Rules(Budget(3, 1e-6))).charge(Cost(None, rho=Fraction(1, 100)), "q")
    with pytest.raises(InvalidPrivacyParameter):
        open_ledger(file, owner=True).give_share("ann", loss("0.01"), anew=True)


def asking(file: Path, key: str = KEY, body: str = BODY) -> Ledger:
    ledger = of(file, "ann")
    ledger.request = Request(key, body, RUN)
    return ledger


def test_one_key_pays_once_and_its_run_goes_on_under_its_charge(path: Path):
    first = asking(path).charge(TENTH, "q")
    again = asking(path)
    assert again.charge(TENTH, "q") == first
    assert again.spent.epsilon == Fraction(1, 10)
    asked = again.asked(KEY)
    assert asked is not None
    assert (asked.analyst, asked.body, asked.run, asked.charge) == ("ann", BODY, RUN, first.number)
    assert again.keep("k", b"1", first)
    assert not asking(path).keep("k", b"2", first), "one charge has one answer"
    with pytest.raises(LedgerError, match="has had its answer"):
        asking(path).charge(TENTH, "q")
    assert asking(path, key="d" * 64).charge(TENTH, "q").number > first.number


@pytest.mark.parametrize("other", ["body", "label", "cost", "analyst"])
def test_a_key_is_bound_to_what_was_asked(path: Path, other: str):
    asking(path).charge(TENTH, "q")
    ledger = asking(path, body="e" * 64 if other == "body" else BODY)
    if other == "analyst":
        ledger = of(path, "bob")
        ledger.request = Request(KEY, BODY, RUN)
    with pytest.raises(LedgerError, match="something else was paid for"):
        ledger.charge(ONE if other == "cost" else TENTH, "other" if other == "label" else "q")


def test_what_came_to_nothing_is_final_and_the_third_stops_the_analyst(path: Path):
    owner = open_ledger(path, owner=True)
    for number in range(3):
        charge = asking(path, key=f"{number}" * 64).charge(TENTH, "q")
        assert owner.fail(charge.number, "died")
        assert owner.failure(charge.number) == "died"
        with pytest.raises(LedgerError):
            asking(path, key=f"{number}" * 64).charge(TENTH, "q")
    with pytest.raises(LedgerError, match='3 runs of analyst "ann" came to no answer'):
        asking(path, key="9" * 64).charge(TENTH, "q")
    of(path, "bob").charge(TENTH, "q")
    owner.allow("ann")
    charge = asking(path, key="9" * 64).charge(TENTH, "q")
    assert of(path, "ann").keep("k", b"1", charge)
    assert not owner.fail(charge.number, "died"), "what has its answer has not failed"


def test_a_share_has_so_many_runs(path: Path):
    ledger = of(path, "ann")
    ledger.most_runs = 2
    for _ in range(2):
        ledger.charge(TENTH, "q")
    with pytest.raises(BudgetExceeded, match="2 queries were run"):
        ledger.charge(TENTH, "q")


def test_ended_tokens_stay_ended(path: Path):
    owner = open_ledger(path, owner=True)
    for _ in range(2):
        owner.end_token("ann", "f" * 64)
    assert open_ledger(path, owner=True).ended_tokens == {"f" * 64}
    assert sum('"event": "ended"' in line for line in owner.to_json().splitlines()) == 1


def test_a_report_of_all_shares(path: Path):
    of(path, "ann").charge(TENTH, "q")
    reports = open_ledger(path, owner=True).shares()
    assert list(reports) == ["ann", "bob"]
    ann = reports["ann"]
    assert (ann.queries, ann.spent.epsilon, ann.left.epsilon, bool(ann.last)) == (
        1,
        Fraction(1, 10),
        Fraction(9, 10),
        True,
    )


def test_files_with_shares_are_read_for_ever():
    """As this version wrote it: shares given, changed, revoked, a token that ended, charges with keys, one failed."""
    ledger = open_ledger(GOLDEN, owner=True)
    reports = ledger.shares()
    said = {
        name: (str(each.holding.loss.epsilon), each.holding.current, each.queries) for name, each in reports.items()
    }
    assert said == {"ann": ("3/2", True, 2), "bob": ("1", False, 1)}
    asked = ledger.asked(KEY)
    assert asked is not None
    assert (asked.charge, ledger.failure(asked.charge)) == (asked.charge, "deadline")
    assert ledger.ended_tokens == {"f" * 64}
    named, calculated = checks.hashes(ledger.to_json())
    assert named == calculated
    ledger.close()


# What all shares come to, worked out once more from the lines.


def assert_within(ledger: Ledger, budget: Budget, accountant: str) -> None:
    """Every analyst within his share, and all together within the budget, by the exported lines alone."""
    spent: dict[str, list[Cost]] = {}
    shares: dict[str, tuple[Fraction, Fraction, bool]] = {}
    for line in json.loads(ledger.to_json())["lines"]:
        if line["kind"] == "charge":
            numbers = (Fraction(line[word]) for word in ("delta", "rho", "hidden"))
            epsilon = None if line["epsilon"] is None else Fraction(line["epsilon"])
            spent.setdefault(line["analyst"], []).append(Cost(epsilon, *numbers))
        elif line["kind"] == "share" and line["event"] == "given":
            shares[line["analyst"]] = (Fraction(line["epsilon"]), Fraction(line["delta"]), True)
        elif line["kind"] == "share" and line["event"] == "revoked":
            shares[line["analyst"]] = (*shares[line["analyst"]][:2], False)
    totals = [Fraction(0), Fraction(0)]
    for name, (epsilon, delta, current) in shares.items():
        total = sum(spent.get(name, []), FREE)
        assert Filter(PrivacyLoss(epsilon, delta), accountant).admits(total), "more than the share"
        counted = [epsilon, delta]
        if not current and total.epsilon is not None and total.epsilon < epsilon:
            half = delta / 2 if accountant != "basic" and total != FREE else 0
            counted = [total.epsilon, min(delta, total.delta + half)]
        totals = [one + other for one, other in zip(totals, counted, strict=True)]
    assert totals[0] <= budget.loss.epsilon, "all shares are more than the budget"
    assert totals[1] <= budget.loss.delta, "all shares are more than the budget"


def check_random_histories(accountant: str = "auto") -> None:
    """Owners and analysts who do whatever comes to their minds."""
    for seed in range(30):
        chance = random.Random(f"{accountant} {seed}")
        budget = Budget(3, 1e-6)
        ledger = Ledger(Rules(budget, accountant), owner=True)
        for _ in range(60):
            name = chance.choice("abc")
            share = loss(
                chance.choice(["0.5", 1, 2, 3]),
                chance.choice(["0", "4e-7", "1e-6"]) if accountant != "zcdp" else "4e-7",
            )
            costs = [
                TENTH,
                ONE,
                Cost(None, rho=Fraction(1, 50)),
                Cost(Fraction(1, 5), Fraction(1, 10**8), Fraction(1, 99)),
            ]
            act = chance.choice(["add", "share", "revoke", *["charge"] * 5])
            try:
                if act == "charge":
                    ledger = as_analyst(ledger, name)
                    ledger.charge(chance.choice(costs), "q")
                elif act == "revoke":
                    ledger.revoke_share(name)
                else:
                    ledger.give_share(name, share, anew=act == "add")
            except DPSQLError:
                pass
        assert_within(ledger, budget, accountant)


def as_analyst(ledger: Ledger, name: str) -> Ledger:
    """The same lines, asked by another."""
    return Ledger(ledger.rules, ledger._store, analyst=name)


@pytest.mark.parametrize("accountant", ["auto", "basic", "zcdp"])
def test_random_histories(accountant: str):
    check_random_histories(accountant)


def sums_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sharing, "check_room", lambda *_: None)


def revoked_shares_count_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sharing, "spent_of", lambda *_: (Fraction(0), Fraction(0)))


def conversion_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def plain(total: Cost, _filter: object, whole: Any) -> Any:
        return whole if total.epsilon is None else (min(total.epsilon, whole[0]), min(total.delta, whole[1]))

    patch.setattr(sharing, "spent_of", plain)


def shares_are_not_watched(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger_module.exceeded.__globals__["Watch"], "admits", lambda *_: True)


@pytest.mark.parametrize("lie", [sums_are_not_looked_at, revoked_shares_count_nothing, shares_are_not_watched])
def test_a_lie_about_shares_is_caught(lie: Callable[[pytest.MonkeyPatch], None]):
    assert_caught(lie, check_random_histories, honest=False)


def check_conversion_is_kept() -> None:
    """Of a revoked share that was used, the part of delta at which rho was converted has been relied on."""
    owner = Ledger(Rules(Budget(3, 1e-6)), owner=True)
    owner.give_share("ann", loss(1, "1e-6"), anew=True)
    ann = as_analyst(owner, "ann")
    ann.charge(TENTH, "q")
    ann.revoke_share("ann")
    refused = False
    try:
        ann.give_share("bob", loss(1, "6e-7"), anew=True)
    except InvalidPrivacyParameter:
        refused = True
    assert refused
    ann.give_share("bob", loss(1, "5e-7"), anew=True)


def test_the_part_for_conversion_counts():
    assert_caught(conversion_is_forgotten, check_conversion_is_kept)


def test_a_charge_that_is_used_twice_is_caught(path: Path):
    """Were a key's charge run again after its answer, two draws would be shown for one price."""

    def forgets(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Ledger, "_requested", lambda *_: None)

    def check() -> None:
        before = of(path, "ann").spent.epsilon
        asking(path, key="8" * 64).charge(TENTH, "q")
        asking(path, key="8" * 64).charge(TENTH, "q")
        assert of(path, "ann").spent.epsilon == before + Fraction(1, 10)

    assert_caught(forgets, check, honest=False)


def test_a_failure_of_no_request_stops_nobody():
    shares = shares_module.Shares()
    shares.enter(FailedRequest("", 7, "died"))
    assert (shares.failures, shares.failed) == ({}, {7: "died"})
