"""Who asks: a token, looked up again at each request in the owner's file, and held against the ledger."""

from __future__ import annotations

import asyncio
from pathlib import Path

from starlette.requests import Request

from dpsql.core.ledger.ledger import Ledger
from dpsql.errors import DPSQLError, InvalidArgument
from dpsql.owner.access import Grant, has_ended, read_grants, token_hash
from dpsql.remote.server.journal import Journal
from dpsql.remote.server.problems import Problem
from dpsql.remote.server.requests import token_of


class Door:
    """Lets in whoever has a token that has not ended and a share that was not taken away."""

    def __init__(self, file: Path, ledger: Ledger, journal: Journal) -> None:
        self._file, self._ledger, self._journal = file, ledger, journal
        self._stamp: object = None
        self._by_token: dict[str, Grant] = {}

    async def opened(self, request: Request) -> Grant:
        """Who asks. Raises Problem."""
        return await self.admitted(token_hash(token_of(request.headers.getlist("authorization"))))

    async def admitted(self, token: str) -> Grant:
        """Whose token it is, of which this is the hash. Raises Problem."""
        try:
            return await asyncio.to_thread(self._grant, token)
        except DPSQLError as error:
            self._journal.event("unavailable", error=type(error).__name__)
            raise Problem(503) from None

    def _grant(self, token: str) -> Grant:
        grant = self._grants().get(token)
        if grant is None or token in self._ledger.ended_tokens:
            raise _refused()
        if has_ended(grant, self._ledger.latest):
            self._ledger.end_token(grant.analyst, token)
            raise _refused()
        holding = self._ledger.holding(grant.analyst)
        if holding is None or not holding.current:
            raise _refused()
        return grant

    def _grants(self) -> dict[str, Grant]:
        """The file as it is now; it is another file after each change."""
        try:
            stat = self._file.stat()
        except FileNotFoundError:  # nobody was given a token yet
            return {}
        except OSError:
            raise InvalidArgument("the file of tokens cannot be read.") from None
        stamp = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        if stamp != self._stamp:
            self._by_token = {each.token: each for each in read_grants(self._file).values()}
            self._stamp = stamp
        return self._by_token


def _refused() -> Problem:
    return Problem(401, headers={"WWW-Authenticate": "Bearer"})
