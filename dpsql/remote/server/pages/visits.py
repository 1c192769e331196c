"""Visits of signed-in users: random cookies in the server's memory, each for a token that was presented once.

A cookie's name contains the port, since browsers share cookies among the ports of a host. Its value is replaced every
quarter of an hour; the old one stays valid for a minute, for pending requests.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from dpsql.core.mechanisms.samplers import fresh_key

LIFE, ROTATION, GRACE = 12 * 3600.0, 15 * 60.0, 60.0
"""Seconds that a visit lasts, after which a cookie is replaced, and for which the replaced one stays valid."""
MOST, MOST_OF_ANALYST = 10_000, 32
"""Most cookies in total, and of one analyst; the oldest are dropped first."""


@dataclass
class Visit:
    """A signed-in user: the hash of the token, the analyst's name, and the end of the visit on a monotonic clock."""

    token: str
    analyst: str
    ends: float


@dataclass
class _Cookie:
    visit: Visit
    since: float
    ends: float


class Visits:
    """All visits. clock: monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cookies: dict[str, _Cookie] = {}

    def begin(self, token: str, analyst: str) -> str:
        """Return a cookie for the hash of a token of this analyst."""
        now = self._clock()
        return self._given(Visit(token, analyst, now + LIFE), now)

    def find(self, value: str) -> tuple[Visit | None, str]:
        """Return the visit of a cookie, None if invalid or expired; and the cookie that replaces it now, or ""."""
        now, name = self._clock(), _hashed(value)
        cookie = self._cookies.get(name)
        if cookie is None or now >= cookie.ends:
            self._cookies.pop(name, None)
            return None, ""
        if now < cookie.since + ROTATION:
            return cookie.visit, ""
        if cookie.ends < cookie.visit.ends:  # it was already replaced
            return cookie.visit, ""
        cookie.ends = min(now + GRACE, cookie.visit.ends)
        return cookie.visit, self._given(cookie.visit, now)

    def end(self, value: str) -> None:
        """Sign out: invalidate all cookies of the visit."""
        cookie = self._cookies.get(_hashed(value))
        if cookie is not None:
            cookie.visit.ends = 0.0
            self._cookies = {name: each for name, each in self._cookies.items() if each.visit is not cookie.visit}

    def _given(self, visit: Visit, now: float) -> str:
        if len(self._cookies) >= MOST:
            self._cookies = {name: each for name, each in self._cookies.items() if each.ends > now}
        own = [name for name, each in self._cookies.items() if each.visit.analyst == visit.analyst]
        for name in own[: max(0, len(own) + 1 - MOST_OF_ANALYST)]:  # frequent sign-ins end only the user's own visits
            del self._cookies[name]
        while len(self._cookies) >= MOST:
            self._cookies.pop(next(iter(self._cookies)))
        value = fresh_key().hex()
        self._cookies[_hashed(value)] = _Cookie(visit, now, visit.ends)
        return value


def _hashed(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
