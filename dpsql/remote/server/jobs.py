"""Queries from their arrival until their answers may be seen.

An answer appears at a point of a time grid (250 ms, 500, 1 s, 2 s, ...), since the duration of a run may depend on
rows. The grid starts when the query arrives or, if it waited for a place, when it got the place: an earlier answer of
the analyst was seen then. Until its point the answer is invisible, and occupies one of the analyst's two places.
Refusals, and cached answers that have been seen, read no row and are returned at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Coroutine
from typing import Any

from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.share_lines import AnalystRequest
from dpsql.core.ledger.shares import MOST_FAILURES
from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import LedgerError
from dpsql.owner.anchors import Anchors
from dpsql.remote.server import problems
from dpsql.remote.server.free_keys import FreeKeys
from dpsql.remote.server.job import Job
from dpsql.remote.server.links import Link, Links
from dpsql.remote.server.log import Journal
from dpsql.remote.server.messages import FAILED, FINAL, HIDDEN, OK, REFUSED, Message, Reply, in_bytes
from dpsql.remote.server.problems import Problem, problem, uncharged
from dpsql.remote.server.time_grid import RunQueue, seen_at
from dpsql.remote.server.workers import FATAL, PLANNING, Crew, ServingHalted, WorkerEnded
from dpsql.session.server_settings import ServerWords

AT_ONCE, WAITING = 2, 16
"""Queries that one analyst may have running, and waiting."""
_MOST_KEPT, _MOST_BYTES = 2_000, 64 * 2**20
"""Limits of answers that can be looked up by id; older ones are found by their keys."""


class Jobs:
    """All queries of one run of the server."""

    def __init__(
        self,
        crew: Crew,
        ledger: Ledger,
        journal: Journal,
        *,
        grid: float | None,
        limits: bool,
        anchors: Anchors | None = None,
        links: Links | None = None,
        shared: bool = False,
        free: FreeKeys | None = None,
        words: ServerWords | None = None,
    ) -> None:
        self._crew, self._ledger, self._journal, self._anchors, self._shared = crew, ledger, journal, anchors, shared
        self._grid, self._limits, self._links, self._free, self._words = grid, limits, links, free, words
        self._by_key: dict[tuple[str, str], Job] = {}
        self._by_id: OrderedDict[str, Job] = OrderedDict()
        self._bytes, self._queue = 0, RunQueue(crew.places)
        self._open: Counter[str] = Counter()  # by analyst
        self._turns: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(AT_ONCE))
        self._unseen: defaultdict[tuple[str, str], list[Job]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, analyst: str, key: str, body: str, message: Message) -> Job:
        """Return the query of this key, created if it is new. Raises Problem."""
        asked, name = await asyncio.to_thread(self._asked, analyst, key)
        job = self._by_key.get((analyst, key))
        given = None if asked is not None or self._free is None else self._free.find(key)
        if job is None and (
            (asked is not None and (asked.analyst, asked.body) != (analyst, body))
            or (given is not None and given.body != body)
        ):
            raise Problem(409)
        if job is None:
            if self._limits and self._open[analyst] >= AT_ONCE + WAITING:
                raise Problem(429, headers={"Retry-After": "1"})
            now, name = asyncio.get_running_loop().time(), name or fresh_key().hex()[:32]
            job = Job(analyst, key, body, message, now, name)
            self._bytes -= len(self._by_id.pop(name, job).content)  # found by its id, with no answer yet
            job.given = "" if given is None else given.run
            self._by_key[analyst, key] = self._by_id[job.id] = job
            self._open[analyst] += 1
            self._begin(self._live(job))
        if job.body != body:
            raise Problem(409)
        return job

    def _asked(self, analyst: str, key: str) -> tuple[AnalystRequest | None, str]:
        """Return what was charged under the key, and its id if known. Raises Problem if the analyst was stopped."""
        with self._ledger.at_one_moment():
            if self._ledger.failures(analyst) >= MOST_FAILURES:
                raise Problem(403, detail=problems.STOPPED)
            asked = self._ledger.asked(key)
        return asked, self._links.name(key) if asked is not None and self._links is not None else ""

    def find(self, analyst: str, name: str) -> Job | None:
        """Return the query of an id, only for the analyst who submitted it."""
        job = self._by_id.get(name)
        return job if job is not None and job.analyst == analyst else None

    @property
    def open(self) -> int:
        """The number of queries that run or wait."""
        return self._open.total()

    def of(self, analyst: str) -> list[Job]:
        """Return the queries of an analyst that can be looked up."""
        return [job for job in self._by_id.values() if job.analyst == analyst]

    def unseen(self, analyst: str) -> list[str]:
        """Return the unseen queries: those of an analyst, or of all if analysts share answers."""
        return [question for whose, question in self._unseen if self._shared or whose == analyst]

    async def ended(self) -> None:
        """Wait until all tasks have ended."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _begin(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _live(self, job: Job) -> None:
        try:
            await self._answer(job)
        except Exception as error:  # noqa: BLE001 - reported to the analyst, and its class to the owner
            self._finish(job, 500, problem(500), error=type(error).__name__)
        finally:
            self._open[job.analyst] -= 1

    async def _answer(self, job: Job) -> None:
        try:
            reply = await self._planned(job)
        except (WorkerEnded, ServingHalted, LedgerError) as error:
            await self._came_to_nothing(job, error, grid=False)
            return
        if reply["outcome"] != HIDDEN:
            await self._told(job, reply, grid=False)
            return
        job.reach = reply.get("reach", 0) if reply.get("delayed", True) else None
        questions = [(job.analyst, each) for each in reply["questions"]]
        for each in questions:
            self._unseen[each].append(job)
        try:
            waits = (turn := self._turn(job.analyst)).locked()
            async with turn:
                if waits:  # counted from arrival, each waiting query would take twice as long as the one before
                    job.begins = asyncio.get_running_loop().time()
                await self._run(job, reply)
        finally:
            for each in questions:
                self._unseen[each].remove(job)
                if not self._unseen[each]:
                    del self._unseen[each]

    async def _run(self, job: Job, planned: Reply) -> None:
        """Charge in the planning process, independently of other runs, then wait for a worker. If the worker charged,
        the time of the charge, which is shown, would reveal when the run before it ended."""
        message = {**job.message, "request": (*job.message["request"], planned["before"])}
        if not planned["charged"]:
            try:
                reply = await self._crew.plan({**message, "operation": "charge"})
            except (WorkerEnded, ServingHalted) as error:
                await self._came_to_nothing(job, error, grid=False)
                return
            if reply["outcome"] != OK:
                await self._told(job, reply, grid=False)
                return
        if self._links is not None:
            self._begin(asyncio.to_thread(self._links.keep, job.id, job.analyst, Link(job.key, job.message["asked"])))
        with self._queue.of(planned.get("reach", 0)) as job.ahead:
            try:
                reply = await self._crew.run({**message, "operation": "query", "plan": planned["plan"]})
            except (WorkerEnded, ServingHalted) as error:
                await self._came_to_nothing(job, error, grid=True)
                return
            if reply["outcome"] == REFUSED:  # it was charged: a refusal now is a fault
                reply = {"outcome": FAILED, "class": "InternalError"}
            await self._told(job, reply, grid=True)

    async def _planned(self, job: Job) -> Reply:
        """Return a refusal, a cached answer, or the queries to run. Unless a fresh draw is requested, wait for a query
        that is running or whose answer is unseen. Charge at once if the analyst has no other query open: then it
        matches no other query and has its place."""

        def now() -> Message:
            """State at the time of planning: charges made before this query's turn may be answered by then, unseen."""
            return {"hidden": self.unseen(job.analyst), "charge": self._open[job.analyst] == 1}

        if job.given:
            earlier = {"operation": "given", "request": (*job.message["request"][:2], job.given)}
            reply = await self._crew.plan({**job.message, **earlier}, now)
            if reply["outcome"] != HIDDEN:
                return reply
        while True:
            reply = await self._crew.plan({**job.message, "operation": "plan"}, now)
            if reply["outcome"] != HIDDEN or job.message["terms"].get("fresh"):
                return reply
            others = [other for each in reply["questions"] for other in self._unseen.get((job.analyst, each), ())]
            if not others:
                return reply
            await others[0].seen.wait()
            await asyncio.sleep(0)  # so that it is removed from the unseen ones

    def _turn(self, analyst: str) -> asyncio.Semaphore:
        return self._turns[analyst] if self._limits else asyncio.Semaphore()

    async def _told(self, job: Job, reply: Reply, *, grid: bool) -> None:
        """Show a worker's reply, at once or at a point of the grid."""
        outcome = reply["outcome"]
        if outcome == REFUSED:
            self._finish(job, int(reply["body"]["status"]), reply["body"])
        elif outcome in (OK, FINAL):
            if grid:
                await self._until_seen(job)
            said = {"id": job.id, **await self._anchored(job, reply)}
            if outcome == OK:
                self._answered(job, said, reply)
            else:
                self._finish(job, int(reply["body"]["status"]), {**said, **reply["body"]})
        else:
            await self._came_to_nothing(job, LedgerError(outcome), grid=grid, reply=reply)

    async def _came_to_nothing(self, job: Job, error: Exception, *, grid: bool, reply: Reply | None = None) -> None:
        """End a run, or planning, that gave no reply to show."""
        try:
            await self._settle(job, error, grid=grid, reply=reply)
        except LedgerError as unread:  # it may have been charged; a failed run is shown no sooner for that
            if grid:
                await self._until_seen(job)
            self._finish(
                job, 503, problem(503, detail=problems.CHARGE_UNREAD, charged=True), error=type(unread).__name__
            )

    async def _settle(self, job: Job, error: Exception, *, grid: bool, reply: Reply | None) -> None:
        """Show what the ledger states about the charge. Raises LedgerError."""
        kind = str((reply or {}).get("class", type(error).__name__))
        asked = await asyncio.to_thread(self._ledger.asked, job.key)
        if asked is None:
            self._finish_unpaid(job, error, kind, reply, planning=not grid)
            return
        final = reply is not None and reply["outcome"] == FAILED
        reason = error.reason if isinstance(error, WorkerEnded) else "error"
        if grid and (final or reason in FATAL):
            failed = await asyncio.to_thread(self._ledger.fail, asked.charge, reason)
        else:
            failed = bool(await asyncio.to_thread(self._ledger.failure, asked.charge))
        if grid:
            await self._until_seen(job)
        if failed:
            body = {**problem(500, detail=problems.CHARGED_FOR_GOOD, charged=True), **await self._anchored(job)}
            self._finish(job, 500, body, error=kind)
            return
        try:  # the answer may have been stored before the worker ended
            known = await self._crew.plan({**job.message, "operation": "plan", "hidden": []})
        except (WorkerEnded, ServingHalted):
            known = {"outcome": ""}
        if known["outcome"] in (OK, FINAL):
            await self._told(job, known, grid=False)
            return
        self._finish(job, 503, problem(503, detail=problems.CHARGED_SO_FAR, charged=True), error=kind)

    def _finish_unpaid(self, job: Job, error: Exception, kind: str, reply: Reply | None, *, planning: bool) -> None:
        """End a job without charge. planning: whether it had not run yet."""
        if planning and isinstance(error, WorkerEnded) and error.reason == "deadline":
            from dpsql.remote.server.outcomes import planning_too_long  # loads the errors, which are rarely needed

            self._finish(job, 400, planning_too_long(PLANNING), error=kind)
            return
        failed = reply is not None and reply["outcome"] == FAILED
        self._finish(job, *uncharged(failed=failed, changed=isinstance(error, ServingHalted)), error=kind)

    async def _anchored(self, job: Job, reply: Reply | None = None) -> dict[str, str]:
        """Return a ledger checkpoint, with which the analyst can later prove the answer, if something was charged. A
        worker's answer contains the result of the charge."""
        if self._anchors is None:
            return {}
        end = reply["end"] if reply is not None and "end" in reply else await asyncio.to_thread(self._end, job.key)
        return {"anchor": self._anchors.of(job.analyst, *end)} if end else {}

    def _end(self, key: str) -> tuple[int, str] | None:
        with self._ledger.at_one_moment():
            asked = self._ledger.asked(key)
            return None if asked is None else self._ledger.outcome(asked.charge)

    async def _until_seen(self, job: Job) -> None:
        """Wait for the next point of the grid after a random delay, which hides one person's effect on the run."""
        if self._grid is not None:
            loop = asyncio.get_running_loop()
            end = job.begins + seen_at(self._grid, loop.time() - job.begins, job.reach, self._words, job.ahead)
            await asyncio.sleep(end - loop.time())

    def _answered(self, job: Job, said: dict[str, Any], reply: Reply) -> None:
        """Show an answer that a worker has serialized."""
        again = bool(reply["replayed"])
        if again and self._free is not None and reply.get("end") is None:
            self._free.enter(job.key, job.body, job.given or job.message["request"][2])
        self._seen(job, 200, in_bytes(said)[:-1] + b"," + reply["content"][1:], final=True)
        loss = None if again else reply["loss"]
        self._journal.query(job.analyst, job.body, 200, loss=loss, replayed=again, id=job.id)

    def _finish(self, job: Job, status: int, body: dict[str, Any], *, error: str = "") -> None:
        """Show a body that is not an answer."""
        final = status in (422, 500) and bool(body.get("charged"))
        self._seen(job, status, in_bytes(body), final=final)
        self._journal.query(job.analyst, job.body, status, id=body.get("id"), error=error)

    def _seen(self, job: Job, status: int, content: bytes, *, final: bool) -> None:
        """Make a reply visible. final: the key is used up; otherwise nothing was charged, or not finally, and the key
        may be retried."""
        job.status, job.content = status, content
        if not final:
            self._by_key.pop((job.analyst, job.key), None)
        job.seen.set()
        self._bytes += len(job.content)
        while len(self._by_id) > _MOST_KEPT or self._bytes > _MOST_BYTES:
            oldest = next((each for each in self._by_id.values() if each.seen.is_set()), None)
            if oldest is None or oldest is job:
                break
            del self._by_id[oldest.id]
            self._by_key.pop((oldest.analyst, oldest.key), None)
            self._bytes -= len(oldest.content)
