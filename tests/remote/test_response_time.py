"""What a server charges for the response time of an answer, and when answers are seen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from fractions import Fraction

import pytest

from dpsql.core.response_time import ResponseTime
from dpsql.remote.server.jobs import Jobs
from dpsql.remote.server.log import Journal
from dpsql.remote.server.messages import Message, Reply
from dpsql.remote.server.time_grid import RunQueue, seen_at
from dpsql.remote.server.workers import Crew
from dpsql.session.server_settings import ServerWords
from tests.lies import assert_caught
from tests.remote.serving import BY_COUNTRY, COUNT, Server, serving, shop, token_for
from tests.remote.test_jobs import BODY, GRID, KEY, OTHER, Fake, by_the_clock, message, taking, timed, to_run

pytestmark = pytest.mark.xdist_group("server")
ATTACK = (
    "SELECT COUNT(*) AS n FROM customers WHERE REGEXP_MATCHES(CASE WHEN id = 7 AND city = 'Lyon' "
    "THEN REPEAT('a', 16000) ELSE '' END, '(a?a?a?a?a?a?a?a?){100}[bc]')"
)
TIME = Fraction(1, 100)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, str]]:
    schema = shop(tmp_path_factory.mktemp("times"), server='grid = "250ms"\ndeadline = 4')
    token = token_for(schema, "ann")
    with serving(schema) as running:
        running.ask(token)
        yield running, token


def spent(server: Server, token: str) -> tuple[Fraction, Fraction]:
    told = server.send("GET", "/v1/budget", token).json()["spent"]
    return Fraction(told["epsilon"]), Fraction(told["delta"])


def test_each_question_is_charged_with_its_response_time_once(server: tuple[Server, str]):
    running, token = server
    before = spent(running, token)
    price = running.send("POST", "/v1/prices", token, json={"queries": [{"sql": BY_COUNTRY, "epsilon": 0.5}]}).json()
    cost = price["prices"][0]["cost"]
    assert (Fraction(cost["epsilon"]), Fraction(cost["delta"])) == (Fraction(1, 2) + TIME, Fraction(1, 10**9))
    answer = running.ask(token, BY_COUNTRY, epsilon=0.5).json()
    assert "epsilon 0.01, delta 1e-09 for the response time" in answer["footer"]
    after = spent(running, token)
    assert (after[0] - before[0], after[1] - before[1]) == (Fraction(1, 2) + TIME, Fraction(1, 10**9))
    running.ask(token, BY_COUNTRY, epsilon=0.5)
    assert spent(running, token) == after


def test_the_attack_of_one_expensive_row_is_refused_and_costs_nothing(server: tuple[Server, str]):
    running, token = server
    before = spent(running, token)
    told = running.ask(token, ATTACK, epsilon=0.001)
    assert told.status_code == 400
    assert "for one row" in told.text
    heavy = "SELECT COUNT(*) AS n FROM customers WHERE REGEXP_MATCHES(city, '.*foo.*bar.*')"
    told = running.ask(token, heavy, epsilon=0.001)
    assert told.status_code == 400
    assert "hiding them needs a delay" in told.text
    assert spent(running, token) == before
    assert running.ask(token, heavy.replace("(city,", "(LEFT(city, 20),"), epsilon=0.001).status_code == 200


def test_a_share_without_delta_sees_answers_after_the_deadline(server: tuple[Server, str]):
    running, _ = server
    token = token_for(running.schema, "bob", delta=0)
    begin = time.monotonic()
    assert running.ask(token, COUNT, epsilon=0.01).status_code == 200
    assert time.monotonic() - begin >= 4
    assert spent(running, token) == (Fraction(1, 100), 0)


def test_words_of_the_owner():
    assert ServerWords().response_time(Fraction(1, 10**6)) == ResponseTime(TIME, Fraction(1, 10**9))
    assert ServerWords(grid=60.0).response_time(Fraction(1, 10**6)) is None  # the first point is after every run
    assert ServerWords(grid=None).response_time(Fraction(1, 10**6)) is None
    assert ServerWords().response_time(Fraction(0)) is None


def seen_after(monkeypatch: pytest.MonkeyPatch, run: float, delay: int, reach: int | None) -> float:
    monkeypatch.setattr(ResponseTime, "draw", lambda _self, _reach: delay)
    fake = Fake(taking(run))
    fake.plan_reply = lambda message: (
        {"outcome": "ok"}
        if message["operation"] == "charge"
        else {**to_run(), "reach": reach or 0, "delayed": reach is not None}
    )
    words = ServerWords(grid=GRID, deadline=10.0)
    jobs = Jobs(fake, fake.owner, Journal(fake.lines.append), grid=GRID, limits=True, words=words)  # type: ignore[arg-type]
    return by_the_clock(timed(jobs))[1]


def test_runs_tuned_to_a_grid_point_are_told_apart_by_the_delay_alone(monkeypatch: pytest.MonkeyPatch):
    """A run that ends just before a point, and its neighbour just after: with the same delay drawn, the same point."""
    for run in (GRID - 0.001, GRID + 0.001):
        assert abs(seen_after(monkeypatch, run, 20_000, 50) - 2 * GRID) < 1e-6
    assert abs(seen_after(monkeypatch, 0.0, 0, 50) - GRID) < 1e-6
    assert seen_after(monkeypatch, 0.0, 0, None) >= 10


def reaches_of(monkeypatch: pytest.MonkeyPatch, places: int) -> list[int]:
    """Microseconds that the delays of two questions hide, of which the second comes while the first runs."""
    hidden: list[int] = []
    monkeypatch.setattr(ResponseTime, "draw", lambda _self, reach: hidden.append(reach) or 0)

    async def ask() -> None:
        fake = Fake(taking(0.1))
        fake.places = places
        fake.plan_reply = lambda message: (
            {"outcome": "ok"}
            if message["operation"] == "charge"
            else {**to_run(message["terms"]["sql"]), "reach": {"slow": 30_000, "quick": 70}[message["terms"]["sql"]]}
        )
        words = ServerWords(grid=GRID, deadline=10.0)
        jobs = Jobs(fake, fake.owner, Journal(fake.lines.append), grid=GRID, limits=True, words=words)  # type: ignore[arg-type]
        first = await jobs.submit("ann", KEY, BODY, message("slow", KEY))
        await asyncio.sleep(0.02)
        second = await jobs.submit("ann", OTHER, BODY, message("quick", OTHER))
        await asyncio.gather(first.seen.wait(), second.seen.wait())
        await timed(jobs, "e" * 64, sql="quick")

    by_the_clock(ask())
    return hidden


def check_runs_that_were_waited_for_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    assert reaches_of(monkeypatch, places=1) == [30_000, 30_070, 70]


def test_a_quick_answer_behind_a_slow_run_hides_that_run_too(monkeypatch: pytest.MonkeyPatch):
    """With one worker, the second run begins when the first ends, so its own end would tell when that was."""
    check_runs_that_were_waited_for_are_hidden(monkeypatch)
    assert reaches_of(monkeypatch, places=2) == [30_000, 70, 70]  # no run waits for another


def test_a_delay_that_forgets_the_runs_before_is_caught(monkeypatch: pytest.MonkeyPatch):
    lie = lambda patch: patch.setattr(RunQueue, "ahead", lambda _self: ())  # noqa: E731
    assert_caught(lie, lambda: check_runs_that_were_waited_for_are_hidden(monkeypatch), honest=False)


def test_answers_without_a_delay_are_seen_after_all_deadlines_before():
    late = ServerWords(grid=GRID, deadline=3.0)
    assert [seen_at(1.0, run, None, late, [50] * ahead) for ahead in (0, 1, 2) for run in (0.5, 2.9)] == [
        4,
        4,
        8,
        8,
        16,
        16,
    ]
    slow_grid = ServerWords(grid=60.0, deadline=30.0)
    assert {seen_at(60.0, run, 50, slow_grid, [50] * 3) for run in (1.0, 70.0, 119.0)} == {120.0}


def test_runs_are_served_in_the_order_in_which_they_came():
    """Whom a run waits for is known when it comes: nobody who comes later goes before it."""
    crew = Crew(None, runners=1, deadline=1.0)  # type: ignore[arg-type]
    order: list[str] = []

    async def ask() -> None:
        crew._begun.set()
        crew.ready = True
        crew._idle = [Named(order)]  # type: ignore[list-item]
        asked = [("ann", "1"), ("ann", "2"), ("ann", "3"), ("bob", "4")]
        await asyncio.gather(*(crew.run({"analyst": analyst, "name": name}) for analyst, name in asked))

    asyncio.run(ask())
    assert order == ["1", "2", "3", "4"]


class Named:
    """A worker that notes what it runs."""

    def __init__(self, order: list[str]) -> None:
        self.order = order

    async def call(self, message: Message, deadline: float) -> Reply:  # noqa: ARG002
        await asyncio.sleep(0)
        self.order.append(message["name"])
        return {}
