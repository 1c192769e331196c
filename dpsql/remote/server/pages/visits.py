"""Who is signed in: random cookies in the server's memory, each for the token that was shown once.

A cookie's name is that of one server, since browsers keep cookies without regard to ports. What it holds is replaced by
another every quarter of an hour; the one before holds for a minute more, for requests that are under way.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from dpsql.core.mechanisms.samplers import fresh_key

LIFE, ROTATION, GRACE = 12 * 3600.0, 15 * 60.0, 60.0
"""Seconds from the token to the end, until a cookie is replaced, and for which the one before still holds."""
MOST, MOST_OF_ANALYST = 10_000, 32
"""Cookies at once, and those of one analyst; the oldest go first."""


@dataclass
class Visit:
    """One who is signed in: the hash of the token, the analyst's name, and when the visit ends, on a clock that nobody
    puts back."""

    token: str
    analyst: str
    ends: float


@dataclass
class _Cookie:
    visit: Visit
    since: float
    ends: float


class Visits:
    """All who are signed in. clock: seconds, never less than before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._cookies: dict[str, _Cookie] = {}

    def begin(self, token: str, analyst: str) -> str:
        """A cookie for the hash of a token of this analyst."""
        now = self._clock()
        return self._given(Visit(token, analyst, now + LIFE), now)

    def find(self, value: str) -> tuple[Visit | None, str]:
        """Whose cookie it is, None of one that does not hold (any more); and the one that takes its place now, or
        nothing."""
        now, name = self._clock(), _hashed(value)
        cookie = self._cookies.get(name)
        if cookie is None or now >= cookie.ends:
            self._cookies.pop(name, None)
            return None, ""
        if now < cookie.since + ROTATION:
            return cookie.visit, ""
        if cookie.ends < cookie.visit.ends:  # it was replaced already
            return cookie.visit, ""
        cookie.ends = min(now + GRACE, cookie.visit.ends)
        return cookie.visit, self._given(cookie.visit, now)

    def end(self, value: str) -> None:
        """Sign out: no cookie of the visit holds any more."""
        cookie = self._cookies.get(_hashed(value))
        if cookie is not None:
            cookie.visit.ends = 0.0
            self._cookies = {name: each for name, each in self._cookies.items() if each.visit is not cookie.visit}

    def _given(self, visit: Visit, now: float) -> str:
        if len(self._cookies) >= MOST:
            self._cookies = {name: each for name, each in self._cookies.items() if each.ends > now}
        own = [name for name, each in self._cookies.items() if each.visit.analyst == visit.analyst]
        for name in own[: max(0, len(own) + 1 - MOST_OF_ANALYST)]:  # whoever signs in often ends own visits only
            del self._cookies[name]
        while len(self._cookies) >= MOST:
            self._cookies.pop(next(iter(self._cookies)))
        value = fresh_key().hex()
        self._cookies[_hashed(value)] = _Cookie(visit, now, visit.ends)
        return value


def _hashed(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
