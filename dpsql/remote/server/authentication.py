"""Authentication: tokens are looked up in the owner's file at each request, and checked against the ledger."""

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
    """Admits holders of valid tokens whose share was not revoked."""

    def __init__(self, file: Path, ledger: Ledger, journal: Journal, words: ServerWords) -> None:
        self._file, self._ledger, self._journal, self._words = file, ledger, journal, words
        self._stamp: object = None
        self._by_token: dict[str, Grant] = {}

    async def opened(self, request: Request, look: Callable[[Grant], Looked] = _nothing_more) -> tuple[Grant, Looked]:
        """Return the analyst's grant, and the result of `look` at the same moment of the ledger. Raises Problem."""
        name = self._named(request)
        token = "" if name is not None else token_hash(token_of(request.headers.getlist("authorization")))
        return await self._found(token, name, look)

    async def named(self, request: Request) -> Grant | None:
        """Return the grant of the user that a trusted proxy names; None if it names nobody. Raises Problem."""
        name = self._named(request)
        return None if name is None else (await self._found("", name, _nothing_more))[0]

    async def admitted(self, token: str) -> Grant:
        """Return the grant of a token hash. Raises Problem."""
        return (await self._found(token, None, _nothing_more))[0]

    async def _found(self, token: str, name: str | None, look: Callable[[Grant], Looked]) -> tuple[Grant, Looked]:
        """Read all that a request needs from the ledger, in one thread and as of one moment."""

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
        """Return the user that a proxy has authenticated; None if it names nobody. The proxy must be listed by the
        owner, by the socket's peer address, and use the configured header. Raises Problem."""
        peer = request.client.host if request.client else ""
        header = self._words.user_header
        names = request.headers.getlist(header) if header and self._words.trust_proxy.holds(peer) else []
        if not names:
            return None
        if len(names) > 1 or request.headers.getlist("authorization"):
            raise Problem(400, detail="Who asks is said once: by the program in front, or by a token.")
        return _read_name(names[0])

    def _grant(self, token: str, name: str | None = None) -> Grant:
        """Return the grant of a token or a named user. Raises Problem."""
        grants = self._grants()
        known = grants.get(token) if name is None else next((e for e in grants.values() if e.analyst == name), None)
        if known is None or known.token in self._ledger.ended_tokens:
            raise _refused(name)
        if has_ended(known, self._ledger.latest):
            with suppress(LedgerError):  # no line can be written if the clock went back, but the token has expired
                self._ledger.end_token(known.analyst, known.token)
            raise _refused(name)
        holding = self._ledger.holding(known.analyst)
        if holding is None or not holding.current:
            raise _refused(name)
        return known

    def _grants(self) -> dict[str, Grant]:
        """Return the file's current grants; each change creates a new file."""
        try:
            stat = self._file.stat()
        except FileNotFoundError:  # no token was issued yet
            return {}
        except OSError:
            raise InvalidArgument("the file of tokens cannot be read.") from None
        stamp = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        if stamp != self._stamp:
            self._by_token = {each.token: each for each in read_grants(self._file).values()}
            self._stamp = stamp
        return self._by_token


def _read_name(sent: str) -> str:
    """Decode a header's name: bytes of UTF-8, which the server has read as Latin-1."""
    try:
        return sent.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return sent


def _refused(name: str | None) -> Problem:
    """Return the refusal of a token, or of a user whom a proxy has named: another token would not help."""
    return Problem(403) if name is not None else Problem(401, headers={"WWW-Authenticate": "Bearer"})
