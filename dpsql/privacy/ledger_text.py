"""How a ledger's rules and lines are written: JSON with exact numbers, and the hash that chains them.

A line's hash covers the hash of the line before and its own text, so no line can be changed, left out or put between
without changing all hashes after it; the first hash is that of the rules.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpsql.privacy.account import Part
from dpsql.privacy.budget import Budget
from dpsql.privacy.cost import Cost
from dpsql.privacy.events import Approx, Concentrated, Event, Gaussian, Laplace, Pure
from dpsql.privacy.unit import Neighbours

FORMAT = 1
_EVENTS: dict[str, type[Event]] = {
    "laplace": Laplace,
    "gaussian": Gaussian,
    "pure": Pure,
    "approximate": Approx,
    "concentrated": Concentrated,
}
_NAMES = {kind: name for name, kind in _EVENTS.items()}


@dataclass(frozen=True, slots=True)
class Rules:
    """What is fixed when a ledger is opened for the first time."""

    budget: Budget
    accountant: str = "auto"
    neighbours: Neighbours = Neighbours.UNBOUNDED

    def __post_init__(self) -> None:
        self.budget.filter(self.accountant)  # the two go together, or this raises
        for _, share in self.budget.analysts:
            share.filter(self.accountant)

    @property
    def text(self) -> str:
        return _dumps(
            {
                "format": FORMAT,
                "accountant": self.accountant,
                "neighbours": str(self.neighbours),
                "budget": _budget_text(self.budget),
                "analysts": {name: _budget_text(share) for name, share in self.budget.analysts},
            }
        )

    @classmethod
    def read(cls, text: str) -> Rules:
        """The rules of a text. Raises ValueError (or a DPSQLError) for one that this version did not write."""
        said = json.loads(text)
        if said["format"] != FORMAT:
            raise ValueError(f"format {said['format']}")
        analysts = {name: _read_budget(share) for name, share in said["analysts"].items()}
        budget = _read_budget(said["budget"], analysts or None)
        rules = cls(budget, said["accountant"], Neighbours(said["neighbours"]))
        if rules.text != text:
            raise ValueError("not as it was written")
        return rules

    def __str__(self) -> str:
        return f"{self.budget}, accountant {self.accountant}, {self.neighbours} neighbours"


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge: when (UTC), whose, the query's text, what it cost, as which events, and which parts it read."""

    time: str
    analyst: str | None
    label: str
    cost: Cost
    events: tuple[Event, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def loss(self) -> Cost:
        return self.cost

    def to_dict(self) -> dict[str, Any]:
        """The entry for JSON, numbers as exact fractions."""
        cost = self.cost
        return {
            "time": self.time,
            "analyst": self.analyst,
            "query": self.label,
            "epsilon": None if cost.epsilon is None else str(cost.epsilon),
            "delta": str(cost.delta),
            "rho": str(cost.rho),
            "hidden": str(cost.hidden),
            "events": [_event_text(each) for each in self.events],
            "parts": [[each.table, each.column, each.value] for each in self.parts],
        }

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Entry:
        epsilon = None if said["epsilon"] is None else _number(said["epsilon"])
        cost = Cost(epsilon, _number(said["delta"]), _number(said["rho"]), _number(said["hidden"]))
        events = tuple(_read_event(each) for each in said["events"])
        parts = tuple(Part(*each) for each in said["parts"])
        return cls(said["time"], said["analyst"], said["query"], cost, events, parts)


@dataclass(frozen=True, slots=True)
class Answer:
    """A line that tells which answer was kept under which key: its SHA-256. It costs nothing."""

    time: str
    key: str
    digest: str

    def to_dict(self) -> dict[str, Any]:
        return {"time": self.time, "answer": self.key, "sha256": self.digest}


@dataclass(frozen=True, slots=True)
class Note:
    """A remark of the owner, such as that the clock was put right. It costs nothing."""

    time: str
    text: str

    def to_dict(self) -> dict[str, Any]:
        return {"time": self.time, "note": self.text}


Line = Entry | Answer | Note


def write(line: Line) -> str:
    return _dumps(line.to_dict())


def read(text: str) -> Line:
    """The line of a text. Raises ValueError, TypeError or KeyError for one that this version did not write."""
    said = json.loads(text)
    if "answer" in said:
        line: Line = Answer(said["time"], said["answer"], said["sha256"])
    elif "note" in said:
        line = Note(said["time"], said["note"])
    else:
        line = Entry.of(said)
    if write(line) != text:
        raise ValueError("not as it was written")
    return line


def digest_of(payload: bytes) -> str:
    return hashlib.sha256(payload).hexdigest()


def first_hash(rules: str) -> str:
    return hashlib.sha256(f"dpsql ledger\n{rules}".encode()).hexdigest()


def next_hash(before: str, number: int, text: str) -> str:
    return hashlib.sha256(f"{before}\n{number}\n{text}".encode()).hexdigest()


def export(rules: Rules, lines: Iterable[tuple[int, str, str]]) -> str:
    """The whole ledger as JSON, with its hashes."""
    return json.dumps(
        {
            "rules": json.loads(rules.text),
            "lines": [{"number": number, "hash": digest, **json.loads(text)} for number, text, digest in lines],
        },
        indent=1,
        ensure_ascii=True,
    )


@lru_cache(maxsize=4096)
def _number(text: object) -> Fraction:
    """A fraction as `str` writes it: nothing that could be long to read."""
    if not isinstance(text, str) or not re.fullmatch("[0-9]{1,4000}(/[0-9]{1,4000})?", text):
        raise ValueError("not a number of a ledger")
    return Fraction(text)


def _dumps(said: object) -> str:
    return json.dumps(said, ensure_ascii=True, separators=(",", ":"))


def _budget_text(budget: Budget) -> dict[str, str | None]:
    conversion = budget.conversion_delta
    return {
        "epsilon": str(budget.loss.epsilon),
        "delta": str(budget.loss.delta),
        "conversion_delta": None if conversion is None else str(conversion),
    }


def _read_budget(said: Mapping[str, str | None], analysts: Mapping[str, Budget] | None = None) -> Budget:
    conversion = said["conversion_delta"]
    return Budget(
        _number(said["epsilon"]),
        _number(said["delta"]),
        conversion_delta=None if conversion is None else _number(conversion),
        analysts=analysts,
    )


def _event_text(event: Event) -> dict[str, Any]:
    return {"event": _NAMES[type(event)], **{name: str(getattr(event, name)) for name in event.__slots__}}


def _read_event(said: Mapping[str, Any]) -> Event:
    numbers = {name: _number(number) for name, number in said.items() if name not in ("event", "count")}
    return _EVENTS[said["event"]](**numbers, count=int(_number(said["count"])))
