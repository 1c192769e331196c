"""Fair queue: many requests of one analyst do not delay the others."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """A number of places, assigned in turn: among waiting analysts, the one whose last turn is longest ago is next. A
    request waits for at most one request of each other analyst."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def of(self, analyst: str) -> AsyncIterator[None]:
        """Hold a place while the block runs."""
        if self._free:
            self._free -= 1
        else:
            await self._waited(analyst)
        try:
            yield
        finally:
            self._pass_on()

    async def _waited(self, analyst: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(analyst, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            analyst, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[analyst] = turns  # behind all other waiting analysts
            if not turn.done():  # done: the request was cancelled
                turn.set_result(None)
                return
        self._free += 1
