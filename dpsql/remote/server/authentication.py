"""Who asks: a token, looked up again at each request in the owner's file, and held against the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request

from dpsql.core.ledger.ledger import Ledger
from dpsql.errors import DPSQLError, InvalidArgument, LedgerError
from dpsql.owner.access import Grant, has_ended, read_grants, token_hash
from dpsql.remote.server.log import Journal
from dpsql.remote.server.problems import Problem
from dpsql.remote.server.requests import token_of
from dpsql.session.server_settings import ServerWords

Looked = TypeVar("Looked")


def _nothing_more(_: Grant) -> Any:
    return None


class Door:
    """Lets in whoever has a token that has not ended and a share that was not taken away."""

    def __init__(self, file: Path, ledger: Ledger, journal: Journal, words: ServerWords) -> None:
        self._file, self._ledger, self._journal, self._words = file, ledger, journal, words
        self._stamp: object = None
        self._by_token: dict[str, Grant] = {}

    async def opened(self, request: Request, look: Callable[[Grant], Looked] = _nothing_more) -> tuple[Grant, Looked]:
        """Who asks, and what is seen at the same moment of the ledger. Raises Problem."""
        name = self._named(request)
        token = "" if name is not None else token_hash(token_of(request.headers.getlist("authorization")))
        return await self._found(token, name, look)

    async def named(self, request: Request) -> Grant | None:
        """Whom a program in front names; None where it names nobody. Raises Problem."""
        name = self._named(request)
        return None if name is None else (await self._found("", name, _nothing_more))[0]

    async def admitted(self, token: str) -> Grant:
        """Whose token it is, of which this is the hash. Raises Problem."""
        return (await self._found(token, None, _nothing_more))[0]

    async def _found(self, token: str, name: str | None, look: Callable[[Grant], Looked]) -> tuple[Grant, Looked]:
        """All that a request needs to know of the ledger, by one thread and as of one moment."""

        def found() -> tuple[Grant, Looked]:
            with self._ledger.at_one_moment():
                grant = self._grant(token, name)
                return grant, look(grant)

        try:
            return await asyncio.to_thread(found)
        except DPSQLError as error:
            self._journal.event("unavailable", error=type(error).__name__)
            raise Problem(503) from None

    def _named(self, request: Request) -> str | None:
        """Whom a program in front names, which has seen who it is: one that the owner lists, by the address that the
        socket says, in the header that he names; None where it names nobody. Raises Problem."""
        peer = request.client.host if request.client else ""
        header = self._words.user_header
        names = request.headers.getlist(header) if header and self._words.trust_proxy.holds(peer) else []
        if not names:
            return None
        if len(names) > 1 or request.headers.getlist("authorization"):
            raise Problem(400, detail="Who asks is said once: by the program in front, or by a token.")
        return _read_name(names[0])

    def _grant(self, token: str, name: str | None = None) -> Grant:
        """Whose token it is, or who was named. Raises Problem."""
        grants = self._grants()
        known = grants.get(token) if name is None else next((e for e in grants.values() if e.analyst == name), None)
        if known is None or known.token in self._ledger.ended_tokens:
            raise _refused(name)
        if has_ended(known, self._ledger.latest):
            with suppress(LedgerError):  # by a clock that went back no line can be written, and the token has ended too
                self._ledger.end_token(known.analyst, known.token)
            raise _refused(name)
        holding = self._ledger.holding(known.analyst)
        if holding is None or not holding.current:
            raise _refused(name)
        return known

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


def _read_name(sent: str) -> str:
    """A name of a header: bytes of UTF-8, which the server has read as Latin-1."""
    try:
        return sent.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return sent


def _refused(name: str | None) -> Problem:
    """Of a token, or of somebody whom a program in front has named: whom no other token would help."""
    return Problem(403) if name is not None else Problem(401, headers={"WWW-Authenticate": "Bearer"})
