"""HTTP/1.1 protocol of uvicorn, with limits on the length and duration of headers."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from dpsql.remote.server.guard import ARRIVAL, HEADERS, HSTS, PROBLEM
from dpsql.remote.server.problems import problem

LINGER = 1.0
"""Seconds to receive the rest of a body after its answer was sent: long enough to read that answer."""


class LimitedProtocol(H11Protocol):
    """A connection with these limits."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._timer is None and not self.transport.is_closing():
            self._wait_for_header()

    def on_response_complete(self) -> None:
        """Close a connection whose body does not end although it was answered."""
        cycle = self.cycle
        super().on_response_complete()
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self.loop.call_later(LINGER, self._end, cycle)

    def _end(self, cycle: Any) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self._too_slow()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's signature
        """Send a problem that quotes nothing of the request: 414 for a long request line, 431 for long headers."""
        error = sys.exc_info()[1]
        if getattr(error, "error_status_hint", 400) != 431:
            self._say(400)
            return
        self._say(431 if b"\n" in self.conn.trailing_data[0] else 414)

    def _say(self, status: int) -> None:
        """Send a problem, and close the connection."""
        if self.transport.is_closing() or self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()  # an answer is being sent already
            return
        body = json.dumps(problem(status)).encode("ascii")
        headers = [(b"content-type", PROBLEM.encode()), (b"content-length", str(len(body)).encode())]
        under_tls = self.transport.get_extra_info("sslcontext") is not None
        headers += [*HEADERS, *([HSTS] if under_tls else []), (b"connection", b"close")]
        for event in (
            h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status]),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _wait_for_header(self) -> None:
        self._timer = self.loop.call_later(ARRIVAL, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        """Send 408 to a client that has begun a header; drop the connection of one that has sent nothing."""
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._say(408)
        elif not self.transport.is_closing():
            self.transport.abort()
