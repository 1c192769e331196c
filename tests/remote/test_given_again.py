"""What a worker has written out once and gives again: the same, for whoever may have it, with what is left now."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.answer.result import Result
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.loss import PrivacyLoss
from dpsql.remote.server import answer_cache as told_module
from dpsql.remote.server.answer_cache import AnswerCache, SerializedAnswer
from dpsql.remote.server.worker import Config, Work
from dpsql.session import prepare as prepare_module
from dpsql.session import served
from tests.lies import assert_caught
from tests.remote.desk import RUN, Desk, said, values
from tests.remote.serving import BY_COUNTRY, COUNT

ORDERS = "SELECT COUNT(*) AS n FROM orders"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    with closing(made.ledger):
        yield made


def parts(reply: Any) -> tuple[Any, Any]:
    """What is the same each time, and the line below."""
    body = said(reply)
    return {word: each for word, each in body.items() if word not in ("footer", "notes")}, body["footer"]


def test_it_is_the_same_again_and_says_what_is_left_now(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    new = said(desk.ask("a", BY_COUNTRY))
    first, left = parts(desk.ask("b", BY_COUNTRY))  # looked up, and written out
    monkeypatch.setattr(Result, "_sought", None)  # no interval is sought from here on
    second, still = parts(desk.ask("d", BY_COUNTRY))
    assert first == second
    assert left == still
    assert {word: each for word, each in new.items() if word not in ("footer", "notes", "replayed")} == {
        word: each for word, each in first.items() if word != "replayed"
    }
    monkeypatch.undo()
    desk.ask("e", ORDERS)
    third, less = parts(desk.ask("f", BY_COUNTRY))
    assert third == first
    assert left.startswith("answered before: spent nothing · left epsilon 9.5 ")
    assert less.startswith("answered before: spent nothing · left epsilon 9 ")
    assert said(desk.ask("f", BY_COUNTRY))["notes"][-1] == less


def check_a_fresh_draw_is_what_is_given_again(folder: Path) -> None:
    desk = Desk(folder)
    with closing(desk.ledger):
        terms = {"epsilon": 0.01}
        old = values(desk.ask("a", COUNT, **terms))
        assert values(desk.ask("b", COUNT, **terms)) == values(desk.ask("d", COUNT, **terms)) == old
        drawn = [
            values(desk.ask(key, COUNT, fresh=True, **terms)) for key in "ef"
        ]  # both alike by chance: once in 100,000
        assert drawn != [old, old]
        assert values(desk.ask("0", COUNT, **terms)) == values(desk.ask("1", COUNT, **terms)) == drawn[-1]


def test_a_fresh_draw_is_what_is_given_again(tmp_path: Path):
    check_a_fresh_draw_is_what_is_given_again(tmp_path)


def test_looking_at_the_statement_alone_is_caught(tmp_path: Path):
    folders = iter(tmp_path / str(number) for number in range(10))

    def whatever_line(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(served.ServedSession, "given_before", lying(served.ServedSession.given_before))

    def lying(honest: Any) -> Any:
        def given_before(session: Any, quote: Any, **terms: Any) -> Any:
            place = honest(session, quote, **terms)
            return None if place is None else (place[0], 1)

        return given_before

    def check() -> None:
        folder = next(folders)
        folder.mkdir()
        check_a_fresh_draw_is_what_is_given_again(folder)

    assert_caught(whatever_line, check, honest=False)


def test_names_of_columns_are_those_of_the_text_that_asks(desk: Desk):
    """One question in two texts has one answer, and two forms of it."""
    desk.ask("a", COUNT)
    other = COUNT.replace("AS n", "AS people")
    for key in "bd":
        assert said(desk.ask(key, COUNT))["columns"][0]["name"] == "n"
        assert said(desk.ask(key, other))["columns"][0]["name"] == "people"
    assert len(desk.lines("charge")) == 1


def test_whoever_may_ask_no_more_is_given_nothing_again(desk: Desk):
    for key in "abd":
        assert desk.ask(key, COUNT)["outcome"] == "ok"
    assert desk.send("plan", "e", COUNT, epsilon=0.0001)["body"]["title"] == "InvalidPrivacyParameter"
    desk.ledger.revoke_share("ann")
    assert desk.ask("b", COUNT)["outcome"] == "unavailable"
    desk.ledger.give_share("bob", PrivacyLoss(Fraction(1), Fraction(0)), anew=True)
    assert desk.ask("d", COUNT)["outcome"] == "unavailable"


def test_what_may_not_be_seen_yet_is_not_given_again(desk: Desk):
    for key in "abd":
        planned = desk.ask(key, COUNT)
    assert planned["replayed"]
    (question,) = (line["key"] for line in desk.lines("answer"))
    assert desk.send("plan", "e", COUNT, hidden=[question])["outcome"] == "hidden"


def test_an_answer_that_was_changed_in_the_ledger_is_not_given_again(desk: Desk):
    for key in "abd":
        assert desk.ask(key, COUNT)["outcome"] == "ok"
    connection = desk.ledger._store._connection  # type: ignore[attr-defined]
    connection.execute("UPDATE answers SET payload = X'00'")
    assert desk.ask("e", COUNT)["outcome"] == "unavailable"


def test_an_answer_says_what_came_of_its_charge(desk: Desk):
    new = desk.ask("a", COUNT)
    (charge,) = (line["number"] for line in desk.lines("charge"))
    assert new["end"] == desk.ledger.outcome(charge) is not None
    assert desk.ask("a", COUNT)["end"] == new["end"]
    assert desk.ask("b", COUNT)["end"] is None  # nothing was charged under that key


def test_the_oldest_are_let_go_of(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(told_module, "_MOST_BYTES", 20)
    told, statements = AnswerCache(), [object() for _ in range(3)]
    for each in statements:
        told.keep((each, 1), SerializedAnswer(b"{123456}", ()))  # type: ignore[arg-type]
    assert [told.find((each, 1)) is None for each in statements] == [True, False, False]  # type: ignore[arg-type]


def test_one_moment_is_read_once(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    looks = []
    catch_up = Ledger._catch_up
    monkeypatch.setattr(Ledger, "_catch_up", lambda ledger: looks.append(catch_up(ledger)))
    with desk.ledger.at_one_moment():
        before = desk.ledger.shares()["ann"].queries
        token_free = desk.ledger.latest
        desk.ask("a", COUNT)  # by the worker's own look at the file
        mine = len([each for each in looks if each is None])
        assert desk.ledger.shares()["ann"].queries == before
        assert desk.ledger.latest == token_free
        assert len(looks) == mine
    assert desk.ledger.shares()["ann"].queries == before + 1


def check_every_plan_is_tried_before_it_is_paid_for(folder: Path) -> None:
    """By the process that plans; the one that runs is handed what was tried, and tries what it has to plan itself."""
    desk = Desk(folder)
    with closing(desk.ledger), pytest.MonkeyPatch.context() as patch:
        tries: list[int] = []
        tried = prepare_module.tried

        def counted(*arguments: Any) -> None:
            tries.append(len(desk.lines("charge")))
            tried(*arguments)

        patch.setattr(prepare_module, "tried", counted)
        patch.setattr(prepare_module, "_cache", OrderedDict())
        runner = Work(Config(str(desk.schema), RUN))
        planned = desk.send("plan", "a", COUNT)
        assert desk.send("charge", "a", COUNT, planned["before"])["outcome"] == "ok"
        desk.work = runner
        patch.setattr(prepare_module, "_cache", OrderedDict())
        assert desk.send("query", "a", COUNT, planned["before"], plan=planned["plan"])["outcome"] == "ok"
        assert tries == [0]
        other = desk.send("plan", "b", ORDERS)["plan"]
        assert tries == [0, 1]
        patch.setattr(prepare_module, "_cache", OrderedDict())
        assert desk.send("query", "b", ORDERS, plan=other)["outcome"] == "ok"  # without a charge nothing is handed on
        assert tries == [0, 1, 1]
        assert desk.send("plan", "d", BY_COUNTRY, charge=True)["charged"]
        assert tries == [0, 1, 1, 2]


def test_every_plan_is_tried_before_it_is_paid_for(tmp_path: Path):
    check_every_plan_is_tried_before_it_is_paid_for(tmp_path)


def test_charging_for_a_plan_that_nobody_tried_is_caught(tmp_path: Path):
    folders = iter(tmp_path / str(number) for number in range(10))

    def none_is_tried(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(prepare_module.PreparedQuery, "dry_runs", ())

    def check() -> None:
        folder = next(folders)
        folder.mkdir()
        check_every_plan_is_tried_before_it_is_paid_for(folder)

    assert_caught(none_is_tried, check, honest=False)
