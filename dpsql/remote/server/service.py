"""Operations behind routes and pages: queries submitted under keys, and requests that the planner answers at once."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from dpsql.core.ledger.ledger import Ledger
from dpsql.owner.access import Grant
from dpsql.remote.server import requests
from dpsql.remote.server.anchor_watch import Watch
from dpsql.remote.server.authentication import Door
from dpsql.remote.server.job import Job
from dpsql.remote.server.jobs import Jobs
from dpsql.remote.server.links import Links
from dpsql.remote.server.log import Journal
from dpsql.remote.server.messages import FAILED, OK, REFUSED
from dpsql.remote.server.plot_process import PlotProcess
from dpsql.remote.server.problems import FILES_CHANGED, Problem
from dpsql.remote.server.workers import PLANNING, Crew, ServingHalted, WorkerEnded
from dpsql.schema.frozen import dataclass

MOST_FREE = 8
"""Free requests that one analyst may have at once."""


@dataclass(frozen=True)
class Service:
    """The shared parts of the server, and the operations on them."""

    door: Door
    crew: Crew
    jobs: Jobs
    ledger: Ledger
    journal: Journal
    secret: bytes
    run: str
    free: Counter[str]
    drawing: PlotProcess
    watch: Watch
    links: Links

    @property
    def state(self) -> str:
        """The state of the server: "starting", "ok", or "halted"."""
        if self.crew.files.changed or self.watch.missed:
            return "halted"
        return "ok" if self.crew.ready else "starting"

    def check_files(self) -> None:
        """Raise Problem if the data files have changed since serving began, or the ledger was rolled back."""
        self.watch.hold()
        if self.crew.files.changed:
            raise Problem(503, detail=FILES_CHANGED)

    async def was_asked(self, grant: Grant, key: str) -> bool:
        """Return whether something was charged under a key of the analyst."""
        return await asyncio.to_thread(self.ledger.asked, self._hashed("key", grant.analyst, key)) is not None

    async def answers_at_hand(self, grant: Grant) -> dict[int, str]:
        """Return the ids of available answers, by the numbers of their charges in the ledger."""
        ids = {job.key: job.id for job in self.jobs.of(grant.analyst)}

        def found() -> dict[int, str]:
            all_ids = {**self.links.of(grant.analyst), **ids}
            asked = ((self.ledger.asked(key), name) for key, name in all_ids.items())
            return {each.charge: name for each, name in asked if each is not None}

        return await asyncio.to_thread(found)

    async def submit(self, grant: Grant, key: str, terms: Mapping[str, Any]) -> Job:
        """Charge and answer a query, once for each key of the analyst. Raises Problem."""
        said = json.dumps(terms, sort_keys=True, default=requests.written)
        return await self._submit(grant, self._hashed("key", grant.analyst, key), said, terms)

    async def find(self, grant: Grant, name: str) -> Job | None:
        """Return an analyst's query by its id: from memory, or, if it was paid for before this server started, by
        repeating it under its key, which charges nothing. Raises Problem."""
        job = self.jobs.find(grant.analyst, name)
        if job is not None:
            return job
        link = await asyncio.to_thread(self.links.find, grant.analyst, name)
        asked = None if link is None else await asyncio.to_thread(self.ledger.asked, link.key)
        if link is None or asked is None:
            return None
        if (asked.analyst, asked.body) != (grant.analyst, self._hashed("body", grant.analyst, link.terms)):
            return None
        job = await self._submit(grant, link.key, link.terms, requests.terms_of(link.terms.encode("ascii")))
        await seen_within(job, requests.USUAL_WAIT)
        return job

    async def _submit(self, grant: Grant, key: str, said: str, terms: Mapping[str, Any]) -> Job:
        """Submit a query. key: the hash of its key; said: its terms as JSON."""
        self.watch.hold()
        body = self._hashed("body", grant.analyst, said)
        message = {**_whose(grant), "terms": terms, "asked": said, "request": (key, body, self.run)}
        return await self.jobs.submit(grant.analyst, key, body, message)

    async def plan(self, grant: Grant, operation: str, **words: Any) -> tuple[int, dict[str, Any]]:
        """Return status and body of a free request that the planner answers at once. Raises Problem."""
        self.watch.hold()
        message = {**_whose(grant), "operation": operation, **words}
        if self.free[grant.analyst] >= MOST_FREE:
            raise Problem(429, headers={"Retry-After": "1"})
        self.free[grant.analyst] += 1
        try:
            reply = await self.crew.plan(message, lambda: {"hidden": self.jobs.unseen(grant.analyst)})
        except (WorkerEnded, ServingHalted) as error:
            self.journal.event("unavailable", analyst=grant.analyst, error=type(error).__name__)
            if isinstance(error, WorkerEnded) and error.reason == "deadline":
                from dpsql.remote.server.outcomes import planning_too_long  # loads the errors, which are rarely needed

                return 400, planning_too_long(PLANNING)
            self.check_files()
            raise Problem(503, hint="Ask again.") from None
        finally:
            self.free[grant.analyst] -= 1
        if reply["outcome"] == OK:
            return 200, reply["body"]
        if reply["outcome"] == REFUSED:
            return int(reply["body"]["status"]), reply["body"]
        self.journal.event("unavailable", analyst=grant.analyst, error=reply["class"])
        raise Problem(500 if reply["outcome"] == FAILED else 503, hint="Ask again, or tell the data owner.")

    def _hashed(self, *parts: str) -> str:
        """Return a keyed hash that only this ledger's server can compute."""
        text = json.dumps(parts).encode("utf-8", "surrogatepass")
        return hmac.new(self.secret, b"dpsql server\n" + text, hashlib.sha256).hexdigest()


async def seen_within(job: Job, seconds: float) -> None:
    """Wait until an answer may be seen, at most this long."""
    with suppress(TimeoutError):
        await asyncio.wait_for(job.seen.wait(), seconds)


def _whose(grant: Grant) -> dict[str, Any]:
    return {"analyst": grant.analyst, "tables": list(grant.tables)}
