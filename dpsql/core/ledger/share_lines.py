"""The lines of a shared budget: shares and their changes, requests under keys, and failures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from sys import intern
from typing import Any

from dpsql.schema.frozen import dataclass

GIVEN, REVOKED, ENDED, ALLOWED = "given", "revoked", "ended", "allowed"
"""A share is given (or gets another epsilon), or is revoked; the token of that hash has ended; an analyst whose runs
have failed too often may query again."""
EVENTS = (GIVEN, REVOKED, ENDED, ALLOWED)
FAILURES = ("died", "deadline", "error")
"""The reasons why a paid run can end without an answer."""


@dataclass(frozen=True, slots=True)
class Share:
    """A change of an analyst's share: one of GIVEN (with its epsilon and delta), REVOKED, ENDED (with the token's hash)
    and ALLOWED."""

    time: str
    analyst: str
    event: str
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    token: str = ""

    @property
    def words(self) -> dict[str, Any]:
        """The fields of the line, in order."""
        numbers = {"epsilon": str(self.epsilon), "delta": str(self.delta)}
        return {"analyst": self.analyst, "event": self.event, **numbers, "token": self.token}


@dataclass(frozen=True, slots=True)
class AnalystRequest:
    """An analyst's request under a key, for which the charge of that line, the one before, paid: hashes of key and
    body, and the name of the run of sessions that drew it. before: for a statement of several releases, the line of
    each release's earlier answer, 0 if the charge pays for one; () for a statement of one release."""

    time: str
    analyst: str
    key: str
    body: str
    run: str
    charge: int
    before: tuple[int, ...] = ()

    @property
    def due(self) -> int:
        """The number of answers that the charge pays for."""
        return self.before.count(0) if self.before else 1

    @property
    def words(self) -> dict[str, Any]:
        """The fields of the line, in order."""
        words = {"analyst": self.analyst, "key": self.key, "body": self.body, "run": self.run, "charge": self.charge}
        return {**words, "before": list(self.before)} if self.before else words


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """The final failure of that line's charge, without an answer: one of FAILURES."""

    time: str
    charge: int
    reason: str

    @property
    def words(self) -> dict[str, Any]:
        """The fields of the line, in order."""
        return {"charge": self.charge, "reason": self.reason}


ShareLine = Share | AnalystRequest | FailedRequest
TAGS: dict[type[ShareLine], str] = {Share: "share", AnalystRequest: "asked", FailedRequest: "failed"}


def readers(
    number: Callable[[object], Fraction], text: Callable[[object], str], place: Callable[[object], int]
) -> dict[object, Callable[[Mapping[str, Any]], ShareLine]]:
    """Return the reader of each kind, by tag; the arguments read one field. Raises ValueError, TypeError, KeyError."""
    return {
        "share": lambda said: Share(
            text(said["time"]),
            _name(said["analyst"]),
            _one_of(EVENTS, said["event"]),
            number(said["epsilon"]),
            number(said["delta"]),
            _hash(said["token"], or_none=True),
        ),
        "asked": lambda said: AnalystRequest(
            text(said["time"]),
            _name(said["analyst"]),
            _hash(said["key"]),
            _hash(said["body"]),
            _hash(said["run"]),
            place(said["charge"]),
            tuple(map(place, said.get("before", ()))),
        ),
        "failed": lambda said: FailedRequest(
            text(said["time"]), place(said["charge"]), _one_of(FAILURES, said["reason"])
        ),
    }


def _one_of(words: tuple[str, ...], said: object) -> str:
    if isinstance(said, str) and said in words:
        return said
    raise ValueError("not a word of such a line")


def _name(said: object) -> str:
    if isinstance(said, str) and said:
        return said
    raise ValueError("not a name")


def _hash(said: object, *, or_none: bool = False) -> str:
    if isinstance(said, str) and (re.fullmatch("[0-9a-f]{64}", said) or (or_none and not said)):
        return intern(said)
    raise ValueError("not a hash")
