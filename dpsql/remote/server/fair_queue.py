"""Places that are given in turn, so that nobody waits longer because somebody else asks much."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """So many places. Of the analysts who wait for one, whoever has waited longest since his last is next: behind one
    request of each other, however many they have."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def of(self, analyst: str) -> AsyncIterator[None]:
        """With a place."""
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
                self._waiting[analyst] = turns  # behind everybody else who waits
            if not turn.done():  # or whoever waited has gone
                turn.set_result(None)
                return
        self._free += 1
