"""What the routes and the pages work with: a query asked under its key, and what the planner answers at once."""

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
from dpsql.remote.server.crew import Crew, Ended, Halted
from dpsql.remote.server.doors import Door
from dpsql.remote.server.drawing import Drawing
from dpsql.remote.server.jobs import Job, Jobs
from dpsql.remote.server.journal import Journal
from dpsql.remote.server.messages import FAILED, OK, REFUSED
from dpsql.remote.server.problems import Problem
from dpsql.remote.server.watch import Watch
from dpsql.schema.frozen import dataclass

MOST_FREE = 8
"""Requests of one analyst at once that cost nothing."""


@dataclass(frozen=True)
class Service:
    """What the routes work with."""

    door: Door
    crew: Crew
    jobs: Jobs
    ledger: Ledger
    journal: Journal
    secret: bytes
    run: str
    free: Counter[str]
    drawing: Drawing
    watch: Watch

    @property
    def state(self) -> str:
        """Whether it answers: "starting", "ok", or "halted"."""
        if self.crew.files.changed or self.watch.missed:
            return "halted"
        return "ok" if self.crew.ready else "starting"

    def check_files(self) -> None:
        """Raises Problem where the data files are not those that serving began with, or the ledger went back."""
        self.watch.hold()
        if self.crew.files.changed:
            raise Problem(503, detail="The data files have changed, so that nothing is served until a restart.")

    async def was_asked(self, grant: Grant, key: str) -> bool:
        """Whether something was charged under a key of the analyst."""
        return await asyncio.to_thread(self.ledger.asked, self._hashed("key", grant.analyst, key)) is not None

    async def answers_at_hand(self, grant: Grant) -> dict[int, str]:
        """The ids of answers that can be looked up, by the numbers of their charges in the ledger."""
        found = {}
        for job in self.jobs.of(grant.analyst):
            asked = await asyncio.to_thread(self.ledger.asked, job.key)
            if asked is not None:
                found[asked.charge] = job.id
        return found

    async def submit(self, grant: Grant, key: str, terms: Mapping[str, Any]) -> Job:
        """Charge and answer a query, once for each key of the analyst. Raises Problem."""
        self.watch.hold()
        said = json.dumps(terms, sort_keys=True, default=requests.written)
        key_hash = self._hashed("key", grant.analyst, key)
        body_hash = self._hashed("body", grant.analyst, said)
        message = {**_whose(grant), "terms": terms, "request": (key_hash, body_hash, self.run)}
        return await self.jobs.submit(grant.analyst, key_hash, body_hash, message)

    async def plan(self, grant: Grant, operation: str, **words: Any) -> tuple[int, dict[str, Any]]:
        """What the planner says at once, for nothing: a status and a body. Raises Problem."""
        self.watch.hold()
        message = {**_whose(grant), "operation": operation, "hidden": self.jobs.unseen(grant.analyst), **words}
        if self.free[grant.analyst] >= MOST_FREE:
            raise Problem(429, headers={"Retry-After": "1"})
        self.free[grant.analyst] += 1
        try:
            reply = await self.crew.plan(message)
        except (Ended, Halted) as error:
            self.journal.event("unavailable", analyst=grant.analyst, error=type(error).__name__)
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
        """A hash that only this ledger's server can make."""
        text = json.dumps(parts).encode("utf-8", "surrogatepass")
        return hmac.new(self.secret, b"dpsql server\n" + text, hashlib.sha256).hexdigest()


async def seen_within(job: Job, seconds: float) -> None:
    """Wait until an answer may be seen, so long at most."""
    with suppress(TimeoutError):
        await asyncio.wait_for(job.seen.wait(), seconds)


def _whose(grant: Grant) -> dict[str, Any]:
    return {"analyst": grant.analyst, "tables": list(grant.tables)}
