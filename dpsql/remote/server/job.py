"""One query from its arrival until its answer may be seen."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from dpsql.remote.server.messages import Message


@dataclass(eq=False)
class Job:
    """One query. begins: start of its time grid, on the loop clock; key, body: hashes; reach, ahead: see `seen_at`."""

    analyst: str
    key: str
    body: str
    message: Message
    begins: float
    id: str
    seen: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when its answer may be seen."""
    reach: int | None = None
    ahead: tuple[int, ...] = ()
    given: str = ""
    """The server run that gave a cached answer under this key for free; "" if none did."""
    status: int = 0
    content: bytes = b""
