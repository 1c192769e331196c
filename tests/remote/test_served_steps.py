"""Statements of several steps on a server: what is charged, drawn and kept under a key, whatever else happens
meanwhile, and whatever dies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpsql.core.ledger.ledger import Ledger
from dpsql.session.multi_step import queries as program_questions
from tests.lies import assert_caught
from tests.remote.desk import Desk, said, values
from tests.remote.serving import COUNT

ORDERS = "SELECT COUNT(*) AS n FROM orders"
BOTH = f"SELECT ({COUNT}) AS p, ({ORDERS}) AS o"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    with closing(made.ledger):
        yield made


def test_a_charge_has_its_own_answer_whatever_others_were_given(desk: Desk):
    """Of one question under two keys: the first was charged and had no answer when the second was asked."""
    for number, sql in enumerate((COUNT, BOTH)):
        first, second = "ab"[number], "cd"[number]
        planned = desk.send("plan", first, sql)
        assert desk.send("charge", first, sql, planned["before"])["outcome"] == "ok"
        other = values(desk.ask(second, sql, fresh=True))
        desk.restarted()
        assert desk.send("plan", first, sql)["outcome"] == "hidden"
        own = desk.ask(first, sql)
        charge = next(line["charge"] for line in desk.lines("asked") if line["key"] == first * 64)
        assert desk.ledger.answered(charge)
        desk.ask("ef"[number], sql, fresh=True)
        assert values(desk.ask(first, sql)) == values(own)
        assert values(desk.ask(second, sql)) == other
    assert desk.spent == 3


def test_what_was_answered_before_is_not_paid_again(desk: Desk):
    alone = desk.ask("1", COUNT, epsilon=0.25)
    assert desk.spent == Fraction(1, 4)
    both = desk.ask("2", BOTH)
    assert "(1 of 2 answered before)" in said(both)["footer"]
    assert desk.spent == Fraction(1, 2)
    assert values(both)[0] == values(alone)[0]
    assert [line["before"].count(0) for line in desk.lines("asked") if "before" in line] == [1]
    again = desk.ask("3", BOTH)
    assert again["replayed"]
    assert values(again) == values(both)
    assert desk.spent == Fraction(1, 2)


def check_one_answer_for_a_key(desk: Desk) -> None:
    """Whatever is drawn anew of what it was computed of, before it runs and after."""
    desk.ask("1", COUNT, epsilon=0.25)
    planned = desk.send("plan", "2", BOTH)
    desk.send("charge", "2", BOTH, planned["before"])
    seen = {json.dumps(values(desk.ask("3", COUNT, epsilon=0.25, fresh=True)))}
    first = values(desk.send("query", "2", BOTH, planned["before"]))
    for number in range(4, 7):
        desk.ask(str(number), COUNT, epsilon=0.25, fresh=True)
        desk.ask(f"{number + 3}", ORDERS, epsilon=0.25, fresh=True)
        assert values(desk.ask("2", BOTH)) == first
    desk.restarted()
    assert values(desk.ask("2", BOTH)) == first
    assert seen
    charged = [line for line in desk.lines("charge") if line["query"] == BOTH]
    assert [Fraction(line["epsilon"]) for line in charged] == [Fraction(1, 4)]


def test_a_key_has_one_answer(desk: Desk):
    check_one_answer_for_a_key(desk)


def test_that_the_last_answers_are_taken_is_caught(tmp_path: Path):
    """A lie: what was drawn anew meanwhile is shown under an old key."""
    folders = iter(range(9))

    def last(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(
            Ledger, "recall_line", lambda ledger, number: ledger.recall(_key_of(ledger, number)) if number else None
        )

    def check() -> None:
        folder = tmp_path / str(next(folders))
        folder.mkdir()
        desk = Desk(folder)
        with closing(desk.ledger):
            check_one_answer_for_a_key(desk)

    assert_caught(last, check)


def _key_of(ledger: Ledger, number: int) -> str:
    (line,) = [each for each in json.loads(ledger.to_json())["lines"] if each["number"] == number]
    return str(line["key"])


def test_a_run_that_died_between_two_draws_goes_on_with_the_second(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    planned = desk.send("plan", "1", BOTH)
    desk.send("charge", "1", BOTH, planned["before"])
    draws, run = [], program_questions.run

    def dying(release: Any, *rest: Any) -> Any:
        draws.append(release)
        if len(draws) == 2:
            raise MemoryError
        return run(release, *rest)

    monkeypatch.setattr(program_questions, "run", dying)
    assert desk.send("query", "1", BOTH, planned["before"])["outcome"] == "failed"
    charge = desk.lines("asked")[-1]["charge"]
    assert not desk.ledger.answered(charge)
    desk.restarted()
    planned = desk.send("plan", "1", BOTH)
    assert (planned["outcome"], planned["before"], len(planned["questions"])) == ("hidden", (0, 0), 1)
    first = values(desk.ask("1", BOTH))
    assert len(draws) == 3, "what was kept is not drawn again"
    assert desk.spent == Fraction(1, 2)
    assert desk.ledger.answered(charge)
    assert not desk.ledger.fail(charge, "died")
    assert values(desk.ask("1", BOTH)) == first
    slots = [(line["charge"], line["slot"]) for line in desk.lines("answer")]
    assert slots == [(charge, 0), (charge, 1)]


LATER = "SELECT COUNT(*) AS n FROM customers WHERE age > (SELECT AVG(age) FROM customers)"
OF_THE_TOP = (
    "SELECT country, AVG(age) AS a FROM customers WHERE country IN "
    "(SELECT country FROM customers GROUP BY country ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY country"
)


def test_values_that_are_asked_about_again_are_drawn_once(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    """A run that dies between the two goes on with the later one, which reads what was kept."""
    for number, sql in enumerate((LATER, OF_THE_TOP)):
        key, draws, run = "12"[number], [], program_questions.run

        def dying(release: Any, *rest: Any, run: Any = run, draws: list[Any] = draws) -> Any:
            draws.append(rest)
            if len(draws) == 2:
                raise MemoryError
            return run(release, *rest)

        planned = desk.send("plan", key, sql)
        desk.send("charge", key, sql, planned["before"])
        with monkeypatch.context() as patch:
            patch.setattr(program_questions, "run", dying)
            assert desk.send("query", key, sql, planned["before"])["outcome"] == "failed"
        desk.restarted()
        first = desk.ask(key, sql)
        assert len(values(first)[0]) == (1, 2)[number]
        assert len(said(first)["answers"]) == 2
        assert [desk.ask(other, sql)["replayed"] for other in (key, "34"[number])] == [True, True]
        assert values(desk.ask("56"[number], sql)) == values(first)
        slots = [line["slot"] for line in desk.lines("answer")]
        assert slots == [0, 1] * (number + 1)
    assert desk.spent == 1


def test_half_an_answer_can_come_to_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    planned = desk.send("plan", "1", BOTH)
    desk.send("charge", "1", BOTH, planned["before"])
    run = program_questions.run
    left = [run]

    def once(*asked: Any) -> Any:
        return left.pop()(*asked)

    monkeypatch.setattr(program_questions, "run", once)
    assert desk.send("query", "1", BOTH, planned["before"])["outcome"] == "failed"
    charge = desk.lines("asked")[-1]["charge"]
    assert desk.ledger.fail(charge, "died")
    monkeypatch.setattr(program_questions, "run", run)
    assert desk.send("query", "1", BOTH, planned["before"])["outcome"] == "unavailable"
    assert values(desk.ask("2", COUNT, epsilon=0.25)), "what was kept is paid for"
    assert desk.spent == Fraction(1, 2)


def test_a_little_release_is_refused_however_much_the_others_spend(desk: Desk):
    little = "(SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.0001) COUNT(*) AS n FROM orders)"
    refused = desk.send("plan", "1", f"SELECT ({COUNT}) AS p, {little} AS o")
    assert refused["outcome"] == "refused"
    assert "spends at least epsilon 0.001" in refused["body"]["detail"]
    assert desk.spent == 0


def test_what_cannot_be_computed_of_answers_hands_them_over(desk: Desk):
    sql = "SELECT MAKE_DATE(2000, n + (SELECT COUNT(*) FROM orders), 1) AS d FROM (SELECT COUNT(*) AS n FROM customers)"
    told = desk.ask("1", sql)
    assert (told["outcome"], told["body"]["title"], told["body"]["charged"]) == ("final", "NotComputed", True)
    assert len(told["body"]["answers"]) == 2
    assert desk.spent == Fraction(1, 2)
    again = desk.ask("1", sql)
    assert [each["columns"] for each in again["body"]["answers"]] == [
        each["columns"] for each in told["body"]["answers"]
    ]
    assert desk.spent == Fraction(1, 2)
