"""Queries from arrival to answer, with workers that do as a test says: the grid of time, keys, what a death leaves."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Coroutine
from fractions import Fraction
from typing import Any, TypeVar

import pytest

from dpsql.core.cost import Cost
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.sharing import Request
from dpsql.core.ledger.text import Rules
from dpsql.core.loss import PrivacyLoss
from dpsql.errors import LedgerError
from dpsql.remote.server import jobs as jobs_module
from dpsql.remote.server.job import Job
from dpsql.remote.server.jobs import AT_ONCE, WAITING, Jobs
from dpsql.remote.server.log import Journal
from dpsql.remote.server.problems import Problem
from dpsql.remote.server.workers import UNSENT, ServingHalted, WorkerEnded
from tests.lies import assert_caught

GRID = 0.2
KEY, OTHER, BODY, RUN = "a" * 64, "d" * 64, "b" * 64, "c" * 64
Reply = dict[str, Any]
T = TypeVar("T")
DONE: Reply = {"outcome": "ok", "content": b'{"n":1}', "loss": None, "replayed": False}
AGAIN: Reply = {"outcome": "ok", "content": b'{"n":1}', "loss": None, "replayed": True}


def to_run(question: str = "q", *, charged: bool = False) -> Reply:
    return {"outcome": "hidden", "questions": [question], "before": (), "plan": b"", "charged": charged}


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time is what is waited for and nothing else, so that a busy machine changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._passed = 0.0
        selector: Any = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def waited(timeout: float | None = None) -> Any:
            ready = select(0)
            if not ready:
                assert timeout is not None, "everybody waits, and nothing will come"
                self._passed += max(timeout, 0)
            return ready

        selector.select = waited

    def time(self) -> float:
        return self._passed


def by_the_clock(what: Coroutine[Any, Any, T]) -> T:
    """What it gives; what threads do is done at once."""

    async def at_once(act: Callable[..., Any], *arguments: Any) -> Any:
        return act(*arguments)

    with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=Clock) as runner:
        patch.setattr(asyncio, "to_thread", at_once)
        return runner.run(what)


class Fake:
    """Workers in this process, over one ledger in memory: as real ones they charge, keep and die."""

    def __init__(self, run: Callable[[Fake, Any], Awaitable[Reply]]) -> None:
        self.owner = Ledger(Rules(Budget(10)), owner=True)
        self.owner.give_share("ann", PrivacyLoss(Fraction(5), Fraction(0)), anew=True)
        self.ledger = Ledger(self.owner.rules, self.owner._store, analyst="ann")
        self.planned: list[Any] = []
        self._planning = asyncio.Lock()
        self.running = self.most_running = 0
        self.places = 1
        self._run = run
        self.lines: list[str] = []
        self.plan_reply: Callable[[Any], Reply] | None = None

    def jobs(self, *, grid: float | None = GRID, limits: bool = True) -> Jobs:
        return Jobs(self, self.owner, Journal(self.lines.append), grid=grid, limits=limits)  # type: ignore[arg-type]

    async def plan(self, message: Any, now: Callable[[], Any] = dict) -> Reply:
        async with self._planning:
            message = {**message, **now()}
            self.planned.append(message)
            for _ in range(5):  # others may ask meanwhile
                await asyncio.sleep(0)
            return self._planned(message)

    def _planned(self, message: Any) -> Reply:
        if self.plan_reply is not None:
            return self.plan_reply(message)
        question = message["terms"]["sql"]
        if message["operation"] == "charge":
            self.charge(message)
            return {"outcome": "ok"}
        if question in message["hidden"]:
            return to_run(question)
        if self.kept(message):
            return AGAIN
        if message.get("charge"):
            self.charge(message)
        return to_run(question, charged=bool(message.get("charge")))

    async def run(self, message: Any) -> Reply:
        self.running += 1
        self.most_running = max(self.running, self.most_running)
        try:
            return await self._run(self, message)
        finally:
            self.running -= 1

    def charge(self, message: Any) -> Any:
        self.ledger.request = Request(*message["request"])
        return self.ledger.charge(Cost.of(Fraction(1, 10)), message["terms"]["sql"])

    def keep(self, message: Any, charge: Any) -> None:
        self.ledger.keep(message["terms"]["sql"], b"{}", charge)

    def kept(self, message: Any) -> bool:
        return self.ledger.recall(message["terms"]["sql"]) is not None


def message(sql: str = "q", key: str = KEY, **terms: Any) -> Any:
    return {"analyst": "ann", "tables": [], "terms": {"sql": sql, **terms}, "request": (key, BODY, RUN)}


def taking(seconds: float) -> Callable[[Fake, Any], Awaitable[Reply]]:
    """A run that takes so long."""

    async def run(fake: Fake, asked: Any) -> Reply:
        charge = fake.charge(asked)
        await asyncio.sleep(seconds)
        fake.keep(asked, charge)
        return DONE

    return run


async def timed(jobs: Jobs, key: str = KEY, **more: Any) -> tuple[Job, float]:
    start = asyncio.get_running_loop().time()
    job = await jobs.submit("ann", key, BODY, message(key=key, **more))
    await job.seen.wait()
    return job, asyncio.get_running_loop().time() - start


def slots_of(elapsed: float) -> float:
    """Which point of the grid that is, as a power of two."""
    return math.log2(elapsed / GRID)


def check_answers_appear_on_the_grid() -> None:
    async def look() -> list[float]:
        times = []
        for seconds in (0.0, 0.08, 0.24, 0.44):
            _, elapsed = await timed(Fake(taking(seconds)).jobs())
            times.append(elapsed)
        return times

    times = by_the_clock(look())
    for elapsed, point in zip(times, (1, 1, 2, 4), strict=True):
        assert abs(elapsed - GRID * point) < 1e-6, times


def test_answers_appear_on_the_grid():
    check_answers_appear_on_the_grid()


def test_answers_that_leave_when_they_are_ready_are_caught():
    def at_once(patch: pytest.MonkeyPatch) -> None:
        async def no_wait(*_: object) -> None: ...

        patch.setattr(Jobs, "_until_seen", no_wait)

    assert_caught(at_once, check_answers_appear_on_the_grid, honest=False)


def check_charges_wait_for_no_run() -> None:
    """With one worker, at work: a second query is charged all the same, so that its time tells nothing of the first."""

    async def look() -> int:
        free = asyncio.Event()

        async def until_free(fake: Fake, asked: Any) -> Reply:
            await free.wait()
            return await taking(0)(fake, asked)

        fake = Fake(until_free)
        jobs = fake.jobs()
        asked = [await jobs.submit("ann", key, BODY, message(key, key)) for key in (KEY, OTHER)]
        await asyncio.sleep(0.02)
        charges = len(fake.ledger.entries)
        free.set()
        for each in asked:
            await each.seen.wait()
        assert [each.status for each in asked] == [200, 200]
        assert len(fake.ledger.entries) == AT_ONCE, "each was paid once"
        return charges

    assert by_the_clock(look()) == AT_ONCE


def test_charges_wait_for_no_run():
    check_charges_wait_for_no_run()


def test_charges_that_are_made_when_a_run_begins_are_caught():
    def later(patch: pytest.MonkeyPatch) -> None:
        async def run(jobs: Jobs, job: Job, _planned: Reply) -> None:
            await jobs._told(job, await jobs._crew.run(job.message), grid=True)

        patch.setattr(Jobs, "_run", run)
        planned = Fake._planned
        patch.setattr(Fake, "_planned", lambda fake, asked: planned(fake, {**asked, "charge": False}))

    assert_caught(later, check_charges_wait_for_no_run, honest=False)


def check_two_who_ask_the_same_at_once_pay_once() -> None:
    """The second waits for the first one's answer, though neither was charged when it came."""

    async def look() -> tuple[list[int], int]:
        fake = Fake(taking(0.01))
        jobs = fake.jobs()
        both = [await jobs.submit("ann", KEY, BODY, message())]
        while not fake.planned:
            await asyncio.sleep(0)
        both.append(await jobs.submit("ann", OTHER, BODY, message(key=OTHER)))
        for each in both:
            await each.seen.wait()
        return [each.status for each in both], len(fake.ledger.entries)

    assert by_the_clock(look()) == ([200, 200], 1)


def test_two_who_ask_the_same_at_once_pay_once():
    check_two_who_ask_the_same_at_once_pay_once()


def test_charging_each_when_it_is_planned_is_caught():
    def always(patch: pytest.MonkeyPatch) -> None:
        planned = Fake._planned
        said = {"charge": True, "hidden": []}
        patch.setattr(Fake, "_planned", lambda fake, asked: planned(fake, {**asked, **said}))

    assert_caught(always, check_two_who_ask_the_same_at_once_pay_once, honest=False)


def check_one_who_waited_to_be_planned_sees_nothing_sooner() -> None:
    """The first is charged and answered while the second waits for its turn to be planned."""

    async def look() -> list[float]:
        fake = Fake(taking(0))
        jobs, loop = fake.jobs(), asyncio.get_running_loop()
        both = [await jobs.submit("ann", KEY, BODY, message())]
        while not fake.planned:
            await asyncio.sleep(0)
        both.append(await jobs.submit("ann", OTHER, BODY, message(key=OTHER)))
        seen = []
        for each in reversed(both):
            await each.seen.wait()
            seen.append(loop.time())
        assert len(fake.ledger.entries) == 1
        return seen

    assert min(by_the_clock(look())) >= GRID


def test_one_who_waited_to_be_planned_sees_nothing_sooner():
    check_one_who_waited_to_be_planned_sees_nothing_sooner()


def test_saying_what_is_not_to_be_seen_before_it_waits_is_caught():
    def before(patch: pytest.MonkeyPatch) -> None:
        plan = Fake.plan

        async def planned(fake: Fake, asked: Any, now: Callable[[], Any] = dict) -> Reply:
            said = now()
            for _ in range(3):  # so long that the first is charged and answered
                if fake._planning.locked():
                    async with fake._planning:
                        pass
                await asyncio.sleep(0)
            return await plan(fake, asked, lambda: said)

        patch.setattr(Fake, "plan", planned)

    assert_caught(before, check_one_who_waited_to_be_planned_sees_nothing_sooner, honest=False)


def test_one_who_has_nothing_else_open_is_charged_when_it_is_planned():
    async def look() -> list[Any]:
        fake = Fake(taking(0))
        job, _ = await timed(fake.jobs())
        assert (job.status, len(fake.ledger.entries)) == (200, 1)
        return [each["operation"] for each in fake.planned]

    assert by_the_clock(look()) == ["plan"]


def test_a_refusal_of_a_run_is_a_fault_and_appears_on_the_grid():
    async def refuses(_fake: Fake, _asked: Any) -> Reply:
        return {"outcome": "refused", "body": {"status": 422, "charged": False}}

    job, elapsed = by_the_clock(timed_once(refuses))
    assert abs(slots_of(elapsed)) < 1e-6
    assert (job.status, json.loads(job.content)["charged"]) == (500, True)


async def timed_once(run: Callable[[Fake, Any], Awaitable[Reply]]) -> tuple[Job, float]:
    return await timed(Fake(run).jobs())


def test_a_failure_after_the_charge_appears_on_the_grid_too():
    async def fails(fake: Fake, asked: Any) -> Reply:
        fake.charge(asked)
        return {"outcome": "failed", "class": "InternalError"}

    async def look() -> tuple[Job, float]:
        return await timed(Fake(fails).jobs())

    job, elapsed = by_the_clock(look())
    assert abs(slots_of(elapsed)) < 1e-6
    assert (job.status, json.loads(job.content)["charged"]) == (500, True)


def check_a_second_who_asks_the_same_learns_no_more() -> None:
    """Another key, the same question: its answer is there no sooner than the first one's, and prices do not tell."""

    async def look() -> tuple[float, float, bool]:
        jobs = Fake(taking(0.24)).jobs()
        start = asyncio.get_running_loop().time()
        first = await jobs.submit("ann", KEY, BODY, message())
        await asyncio.sleep(0.005)
        second = await jobs.submit("ann", OTHER, BODY, message(key=OTHER))
        hidden = []
        while not first.seen.is_set():
            hidden.append("q" in jobs.unseen("ann"))
            await asyncio.sleep(0.002)
        seen_first = asyncio.get_running_loop().time() - start
        await second.seen.wait()
        return seen_first, asyncio.get_running_loop().time() - start, all(hidden[2:])

    first, second, hidden = by_the_clock(look())
    assert hidden
    assert 2 * GRID - 0.002 <= first <= second + 0.003
    assert second < 2 * GRID + 0.01


def test_a_second_who_asks_the_same_learns_no_more():
    check_a_second_who_asks_the_same_learns_no_more()


def test_a_question_that_is_seen_while_it_runs_is_caught():
    def seen(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(Jobs, "unseen", lambda *_: [])

    assert_caught(seen, check_a_second_who_asks_the_same_learns_no_more, honest=False)


def test_two_at_once_and_sixteen_wait():
    async def look() -> tuple[int, int]:
        fake = Fake(taking(0.01))
        jobs = fake.jobs()
        keys = [f"{number:064}" for number in range(AT_ONCE + WAITING)]
        waiting = [await jobs.submit("ann", key, BODY, message(key, key)) for key in keys]
        with pytest.raises(Problem) as caught:
            await jobs.submit("ann", OTHER, BODY, message("more", OTHER))
        for each in waiting[:2]:
            await each.seen.wait()
        return fake.most_running, caught.value.status

    assert by_the_clock(look()) == (AT_ONCE, 429)


def test_those_that_wait_are_seen_one_point_after_those_before():
    """Two at each point, however many there are: the grid of whoever waits begins when an earlier answer is seen."""

    async def look() -> list[float]:
        jobs = Fake(taking(GRID / 4)).jobs()
        loop = asyncio.get_running_loop()
        keys = [f"{number:064}" for number in range(AT_ONCE + WAITING)]
        moments = []
        for each in [await jobs.submit("ann", key, BODY, message(key, key)) for key in keys]:
            await each.seen.wait()
            moments.append(loop.time())
        return moments

    points = [moment / GRID for moment in by_the_clock(look())]
    assert points == pytest.approx([1 + place // AT_ONCE for place in range(AT_ONCE + WAITING)])


def test_a_place_is_held_until_the_answer_is_seen():
    """What has run and is not to be seen yet still counts among the two."""
    starts: list[float] = []

    async def noted(fake: Fake, asked: Any) -> Reply:
        starts.append(asyncio.get_running_loop().time())
        return await taking(0)(fake, asked)

    async def look() -> float:
        jobs = Fake(noted).jobs()
        start = asyncio.get_running_loop().time()
        keys = [f"{number:064}" for number in range(AT_ONCE + 1)]
        tasks = [await jobs.submit("ann", key, BODY, message(key, key)) for key in keys]
        await tasks[-1].seen.wait()
        return start

    start = by_the_clock(look())
    assert starts[-1] - start > GRID - 0.01


def test_a_key_is_one_query_and_its_answer_stays():
    async def look() -> tuple[Job, Job, int]:
        fake = Fake(taking(0))
        jobs = fake.jobs()
        one, _ = await timed(jobs)
        other, _ = await timed(jobs)
        with pytest.raises(Problem) as caught:
            await jobs.submit("ann", KEY, "e" * 64, message())
        restarted = fake.jobs()
        with pytest.raises(Problem) as later:
            await restarted.submit("ann", KEY, "e" * 64, message())
        assert (caught.value.status, later.value.status) == (409, 409)
        after, _ = await timed(restarted)
        return one, after, len(fake.ledger.entries) if one is other else 0

    one, after, charges = by_the_clock(look())
    assert (one.status, after.status, charges) == (200, 200, 1)


@pytest.mark.parametrize("reason", ["died", "deadline"])
def test_a_worker_that_ends_after_the_charge_is_final(reason: str):
    async def dies(fake: Fake, asked: Any) -> Reply:
        fake.charge(asked)
        raise WorkerEnded(reason)

    async def look() -> None:
        fake = Fake(dies)
        jobs = fake.jobs()
        job, _ = await timed(jobs)
        assert (job.status, json.loads(job.content)["charged"]) == (500, True)
        assert fake.owner.failures("ann") == 1
        asked = fake.owner.asked(KEY)
        assert asked is not None
        assert fake.owner.failure(asked.charge) == reason
        again, _ = await timed(jobs)
        assert again.content == job.content
        restarted = fake.jobs()
        fake.plan_reply = lambda _: {"outcome": "unavailable", "class": "LedgerError"}
        later, _ = await timed(restarted)
        assert (later.status, json.loads(later.content)["charged"]) == (500, True)
        assert len(fake.ledger.entries) == 1

    by_the_clock(look())


def test_a_charge_that_failed_for_good_keeps_no_answer():
    fake = Fake(taking(0))
    charge = fake.charge(message())
    assert fake.owner.fail(charge.number, "died")
    with pytest.raises(LedgerError, match="for good"):
        fake.keep(message(), charge)
    assert not fake.kept(message())


def test_a_worker_that_ends_before_the_charge_costs_nothing_and_leaves_the_key_free():
    async def look() -> None:
        fake = Fake(taking(0))
        jobs = fake.jobs()

        def plan(asked: Any) -> Reply:
            raise WorkerEnded("died")

        fake.plan_reply = plan
        job, _ = await timed(jobs)
        fake.plan_reply = None
        assert (job.status, json.loads(job.content)["charged"]) == (503, False)
        again, _ = await timed(jobs)
        assert again.status == 200
        assert fake.owner.failures("ann") == 0

    by_the_clock(look())


def test_a_worker_that_never_had_the_query_leaves_its_charge_to_the_next():
    deaths = iter([True, False])

    async def gone_once(fake: Fake, asked: Any) -> Reply:
        if next(deaths):
            raise WorkerEnded(UNSENT)
        return await taking(0)(fake, asked)

    async def look() -> None:
        fake = Fake(gone_once)
        jobs = fake.jobs()
        job, _ = await timed(jobs)
        assert (job.status, json.loads(job.content)["charged"]) == (503, True)
        again, _ = await timed(jobs)
        assert (again.status, len(fake.ledger.entries), fake.owner.failures("ann")) == (200, 1, 0)

    by_the_clock(look())


def test_a_worker_that_ends_after_it_has_kept_its_answer_loses_nothing():
    async def dies(fake: Fake, asked: Any) -> Reply:
        fake.keep(asked, fake.charge(asked))
        raise WorkerEnded("died")

    async def look() -> None:
        fake = Fake(dies)
        job, _ = await timed(fake.jobs())
        assert job.status == 200
        assert fake.owner.failures("ann") == 0

    by_the_clock(look())


def test_an_answer_that_cannot_be_kept_is_not_sent_and_its_key_tries_again():
    full = iter([True, False])

    async def disk(fake: Fake, asked: Any) -> Reply:
        charge = fake.charge(asked)
        if next(full):
            return {"outcome": "unavailable", "class": "LedgerError"}
        fake.keep(asked, charge)
        return DONE

    async def look() -> None:
        fake = Fake(disk)
        jobs = fake.jobs()
        job, _ = await timed(jobs)
        assert (job.status, json.loads(job.content)["charged"]) == (503, True)
        again, _ = await timed(jobs)
        assert again.status == 200
        assert len(fake.ledger.entries) == 1, "one key pays once"

    by_the_clock(look())


def test_a_ledger_that_cannot_be_read_after_a_run_leaves_the_charge_open():
    """No answer of the server's says that nothing was charged where that is not known, and none is seen sooner."""

    async def dies(fake: Fake, asked: Any) -> Reply:
        fake.keep(asked, fake.charge(asked))

        def unread(_: str) -> Any:
            raise LedgerError("disk")

        fake.owner.asked = unread  # type: ignore[method-assign]
        raise WorkerEnded("died")

    async def look() -> None:
        fake = Fake(dies)
        jobs = fake.jobs()
        job, elapsed = await timed(jobs)
        body = json.loads(job.content)
        assert (job.status, body["charged"], elapsed >= GRID) == (503, True, True)
        assert "If this question was charged" in body["detail"]
        del fake.owner.asked
        again, _ = await timed(jobs)
        assert (again.status, len(fake.ledger.entries)) == (200, 1)

    by_the_clock(look())


@pytest.mark.parametrize(
    ("error", "status"),
    [(WorkerEnded("deadline"), 400), (WorkerEnded("died"), 503), (ServingHalted(), 503), (LedgerError("disk"), 503)],
)
def test_planning_that_ends_costs_nothing(error: Exception, status: int):
    async def look() -> None:
        fake = Fake(taking(0))

        def plan(_: Any) -> Reply:
            raise error

        fake.plan_reply = plan
        job, _ = await timed(fake.jobs())
        body = json.loads(job.content)
        assert (job.status, body["charged"]) == (status, False)
        if status == 400:  # a client that asks again would wait as long again
            assert body["title"] == "UnsupportedSQL"
            assert "planning this query takes more than 5 seconds" in body["detail"]
            assert "fewer terms" in body["hint"]
        assert not fake.ledger.entries

    by_the_clock(look())


def test_refusals_leave_at_once_and_leave_the_key_free():
    async def look() -> None:
        fake = Fake(taking(0))
        fake.plan_reply = lambda _: {"outcome": "refused", "body": {"status": 400, "charged": False}}
        jobs = fake.jobs()
        job, elapsed = await timed(jobs)
        assert (job.status, elapsed < GRID / 2) == (400, True)
        fake.plan_reply = None
        again, _ = await timed(jobs)
        assert again.status == 200

    by_the_clock(look())


def test_a_fault_of_the_servers_own_is_told_and_ends_nobody():
    async def look() -> None:
        fake = Fake(taking(0))
        fake.plan_reply = lambda _: {}
        jobs = fake.jobs()
        job, _ = await timed(jobs)
        assert (job.status, json.loads(job.content)["title"]) == (500, "InternalError")
        assert "KeyError" in fake.lines[-1]

    by_the_clock(look())


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch):
    async def look() -> None:
        monkeypatch.setattr(jobs_module, "_MOST_KEPT", 5)
        fake = Fake(taking(0))
        jobs = fake.jobs(grid=None)
        for number in range(20):
            await timed(jobs, f"{number:064}", sql=f"q{number}")
        await jobs.ended()
        assert len(jobs._by_id) == len(jobs._by_key) == 5
        assert not jobs._unseen
        first, _ = await timed(jobs, f"{0:064}", sql="q0")
        assert first.status == 200
        assert len(fake.ledger.entries) == 20

    by_the_clock(look())
