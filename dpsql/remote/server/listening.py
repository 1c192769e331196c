"""Listening socket that limits connections when they are accepted: before TLS, and before reading any bytes."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from dpsql.session.server_settings import Peers

MOST_CONNECTIONS = 64
"""Most connections of one address."""
MOST_IN_ALL = 60_000
RESERVED = 256
"""Descriptors reserved for workers, files and the ledger."""
HANDSHAKE = 10.0
"""Seconds that a TLS handshake may take."""
_MOST_REFUSALS = 100


class LimitedListener(socket.socket):
    """A listening socket that closes connections beyond its limits at once.

    Attributes
    ----------
    limits : bool
        Whether connections of one address are limited.
    proxies : Peers
        Addresses of proxies, whose connections belong to many people and are not counted.
    only_proxies : bool
        Whether only proxies may connect.
    most : int
        The most connections in all.
    """

    limits = True
    proxies = Peers()
    only_proxies = False
    most = MOST_IN_ALL

    def __init__(self, family: int, kind: int = socket.SOCK_STREAM, proto: int = socket.IPPROTO_TCP) -> None:
        super().__init__(family, kind, proto)
        self.addresses: Counter[str] = Counter()

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection within the limits. Raises BlockingIOError without one, or after many refusals."""
        for _ in range(_MOST_REFUSALS):
            accepted, address = super().accept()
            if self._is_refused(address[0]):
                accepted.close()
                continue
            self.addresses[address[0]] += 1
            return _Connection(accepted, partial(self._forget, address[0])), address
        raise BlockingIOError

    def _is_refused(self, address: str) -> bool:
        if self.addresses.total() >= self.most:
            return True
        if self.proxies.holds(address):
            return False
        return self.only_proxies or (self.limits and self.addresses[address] >= MOST_CONNECTIONS)

    def _forget(self, address: str) -> None:
        self.addresses[address] -= 1
        if self.addresses[address] <= 0:
            del self.addresses[address]


class _Connection(socket.socket):
    """A connection that notifies its listener when it is closed."""

    def __init__(self, accepted: socket.socket, closed: Callable[[], None]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._on_close: Callable[[], None] | None = closed

    def close(self) -> None:
        super().close()
        told, self._on_close = self._on_close, None
        if told is not None:
            told()


def most_connections() -> int:
    """Raise the process's limit of descriptors as far as allowed, and return the number of connections it permits."""
    try:
        import resource  # not on all platforms
    except ImportError:
        return MOST_IN_ALL
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_IN_ALL + RESERVED
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_IN_ALL if soft == resource.RLIM_INFINITY else max(1, min(MOST_IN_ALL, soft - RESERVED))
