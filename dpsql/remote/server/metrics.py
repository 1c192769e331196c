"""Metrics for the owner's monitoring: counts of this server run, on a Unix socket that only the owner can open.

They count requests and failures, in the text format of Prometheus, without analysts, queries or values.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.errors import InvalidArgument

if TYPE_CHECKING:
    from dpsql.remote.server.service import Service

_PATIENCE, _LONGEST = 5.0, 4_096
_KIND = "text/plain; version=0.0.4; charset=utf-8"


def text_of(service: Service) -> str:
    """Return the current metrics."""
    journal, crew = service.journal, service.crew
    ended = [(f'reason="{reason}"', count) for reason, count in sorted(crew.ended.items())]
    queries = [(f'status="{status}",replayed="{str(again).lower()}"', count)
               for (status, again), count in sorted(journal.queries.items())]  # fmt: skip
    events = [(f'event="{event}"', count) for event, count in sorted(journal.events.items())]
    memory = [(f'worker="{name}"', size) for name, size in crew.memory().items()]
    return "\n".join(
        [
            *_lines("dpsql_up", "gauge", "1 where questions are answered", [("", int(service.state == "ok"))]),
            *_lines("dpsql_queries_total", "counter", "queries that came to their end, by status", queries),
            *_lines("dpsql_queries_open", "gauge", "queries at work or waiting", [("", service.jobs.open)]),
            *_lines("dpsql_free_requests", "gauge", "requests at work that cost nothing", [("", service.free.total())]),
            *_lines("dpsql_events_total", "counter", "lines of the log, by event", events),
            *_lines("dpsql_workers_ended_total", "counter", "processes that had to be ended, or died", ended),
            *_lines("dpsql_worker_resident_bytes", "gauge", "memory that a worker has", memory),
            "",
        ]
    )


def _lines(name: str, kind: str, words: str, values: Iterable[tuple[str, int]]) -> list[str]:
    told = [f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in values]
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}", *told]


@asynccontextmanager
async def told_at(path: Path | None, text: Callable[[], str]) -> AsyncIterator[None]:
    """Serve /metrics on a socket at this path while the block runs; nowhere for None. Raises InvalidArgument if the
    socket cannot be created."""
    if path is None:
        yield
        return

    async def tell(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_answer(head, text))
                await writer.drain()
        writer.close()

    listening = _made(path)
    try:
        async with await asyncio.start_unix_server(tell, sock=listening, limit=_LONGEST):
            yield
    finally:
        with suppress(OSError):
            path.unlink()


def _answer(head: bytes, text: Callable[[], str]) -> bytes:
    """Return an HTTP response, after which the connection ends."""
    found = head.split(b" ")[:2] == [b"GET", b"/metrics"]
    body, status = (text().encode(), "200 OK") if found else (b"", "404 Not Found")
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {_KIND}", f"Content-Length: {len(body)}", "Connection: close")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _made(path: Path) -> socket.socket:
    """Create the socket, accessible only to its owner from the start. Replace one that a dead server left. Raises
    InvalidArgument."""
    if not hasattr(socket, "AF_UNIX") or sys.platform == "win32":
        raise InvalidArgument("[server] metrics needs a system with Unix sockets.")
    listening = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        _put_away(path)
        listening.bind(str(path))
        listening.listen(16)
    except (OSError, ValueError):  # another file, a missing folder, or a path that is too long for a socket
        listening.close()
        raise InvalidArgument(
            f"no socket can be made at {path.name}, for [server] metrics.",
            hint="It is another file, in use, or in a folder that is not there or not writable; a socket's path has at "
            "most about 100 characters.",
        ) from None
    finally:
        os.umask(before)
    return listening


def _put_away(path: Path) -> None:
    """Remove a socket without listener. Raises OSError for anything else at this path."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise OSError
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OSError
