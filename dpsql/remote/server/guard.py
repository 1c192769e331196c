"""Checks of every request: host names, sizes and shapes of headers; and the headers of every answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from dpsql.remote.server.messages import in_bytes
from dpsql.remote.server.problems import Problem

MOST_HEADER, MOST_LINE, MOST_BODY, ARRIVAL = 16_384, 8_192, 65_536, 10.0
"""Bytes of a header, of a request's path and of a body, and seconds within which a body must arrive."""
HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"referrer-policy", b"same-origin"),
]
HSTS = (b"strict-transport-security", b"max-age=31536000")
"""Under TLS: browsers use only HTTPS for this server, for a year."""
SCHEME = "dpsql.scheme"
"""Key of the ASGI scope for the scheme that clients use."""
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Guard:
    """ASGI middleware. hosts: the names, with ports, under which the server may be addressed; in_front: whether an
    address belongs to a proxy that terminates TLS."""

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        hosts: frozenset[str],
        scheme: str,
        in_front: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._app, self._hosts, self._scheme, self._in_front = app, hosts, scheme, in_front

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        scheme = "https" if scope["client"] and self._in_front(scope["client"][0]) else self._scheme
        added = [*HEADERS, HSTS] if scheme == "https" else HEADERS

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [*message.get("headers", ())]
                names = {name for name, _ in own}
                message = {**message, "headers": [*own, *(each for each in added if each[0] not in names)]}
            await send(message)

        try:
            self._check(scope, scheme)
        except Problem as refusal:
            await response_of(refusal)(scope, receive, sent)
            return
        await self._app({**scope, SCHEME: scheme}, receive, sent)

    def _check(self, scope: Scope, scheme: str) -> None:
        """Check host, origin and sizes. Raises Problem."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > MOST_LINE:
            raise Problem(414, headers={"Connection": "close"})
        if sum(len(name) + len(value) + 4 for name, value in headers) > MOST_HEADER:
            raise Problem(431, headers={"Connection": "close"})
        names = [name for name, _ in headers]
        if names.count(b"content-length") > 1 or (b"content-length" in names and b"transfer-encoding" in names):
            raise Problem(400, detail="A body has one length.", headers={"Connection": "close"})
        hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            raise Problem(421, headers={"Connection": "close"})
        for name, value in headers:
            if name == b"origin" and value.decode("latin-1").lower() != f"{scheme}://{hosts[0]}":
                raise Problem(403, detail="A page of another server asks.")


PROBLEM = "application/problem+json"


def in_json(body: Any, status: int = 200, *, kind: str = "application/json", headers: Any = None) -> Response:
    """Return a response with a body in JSON."""
    return Response(in_bytes(body), status, headers=headers, media_type=kind)


def response_of(refusal: Problem) -> Response:
    """Return a problem as a response."""
    return in_json(refusal.body, refusal.status, kind=PROBLEM, headers=refusal.headers)


async def body_of(request: Request, kind: str = "application/json") -> bytes:
    """Return the body, whose size is counted while it arrives. Raises Problem."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
        raise Problem(415, headers={"Connection": "close"})
    parts, size = [], 0
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Problem(415, detail="Bodies are not compressed.", headers={"Connection": "close"})
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 6 or int(length) > MOST_BODY:
        raise Problem(413, headers={"Connection": "close"})
    try:
        async with asyncio.timeout(ARRIVAL):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BODY:
                    raise Problem(413, headers={"Connection": "close"})
                parts.append(part)
    except (TimeoutError, ClientDisconnect):
        raise Problem(408, headers={"Connection": "close"}) from None
    return b"".join(parts)
