"""The kinds of a ledger's lines, and their unique text: JSON with exact numbers.

Every kind has an explicit tag, which outlives the names in this code. A line of format 2 holds 32 random bytes. So
whoever knows the hash of a line and can guess the rest of it (analyst, cost, time) cannot test guesses against the
hash. Lines of format 1 have neither; they are read as long as such files exist.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import lru_cache
from sys import intern
from typing import Any

from dpsql.core.cost import Cost
from dpsql.core.events import ApproximateStep, Concentrated, Event, Gaussian, Laplace, Pure
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.share_lines import TAGS, AnalystRequest, FailedRequest, Share, ShareLine, readers
from dpsql.core.ledger.units import Place, TableUnit, UnitKind
from dpsql.schema.frozen import dataclass

FORMAT = 2
"""The format that is written. Formats 1 and 2 are read."""

_EVENTS: dict[str, tuple[type[Event], tuple[str, ...]]] = {  # tag -> the event and its written attributes
    "laplace": (Laplace, ("scale", "sensitivity", "count")),
    "gaussian": (Gaussian, ("sigma", "sensitivity", "count")),
    "pure": (Pure, ("epsilon", "count")),
    "approximate": (ApproximateStep, ("epsilon", "delta", "count")),
    "concentrated": (Concentrated, ("rho", "count")),
}
_TAGS = {kind: tag for tag, (kind, _) in _EVENTS.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge: its time (UTC), analyst, query text, cost, events, and the parts that it read."""

    time: str
    analyst: str | None
    label: str
    cost: Cost
    events: tuple[Event, ...] = ()
    parts: tuple[Part, ...] = ()
    number: int = field(default=0, compare=False)
    """The number of its line in the ledger."""

    @property
    def loss(self) -> Cost:
        return self.cost

    def to_dict(self) -> dict[str, Any]:
        """Return the entry for JSON, numbers as exact fractions."""
        return {"time": self.time, "analyst": self.analyst, "query": self.label, **self.price()}

    def price(self) -> dict[str, Any]:
        """Return the cost, events and parts for JSON."""
        return {
            "epsilon": None if self.cost.epsilon is None else str(self.cost.epsilon),
            "delta": str(self.cost.delta),
            "rho": str(self.cost.rho),
            "hidden": str(self.cost.hidden),
            "events": [_event_text(each) for each in self.events],
            "parts": [[each.table, each.column, each.value] for each in self.parts],
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """A kept answer: its key, its SHA-256, and the line of the charge that paid for it (None for format 1, which did
    not record it). `slot`: its place among the charge's answers. It costs nothing."""

    time: str
    key: str
    digest: str
    charge: int | None = None
    slot: int = 0


@dataclass(frozen=True, slots=True)
class Note:
    """A remark of the owner, such as that the clock was corrected. It costs nothing."""

    time: str
    text: str


@dataclass(frozen=True, slots=True)
class UnitOf:
    """A table's privacy unit, written when the table is first used."""

    time: str
    unit: TableUnit


@dataclass(frozen=True, slots=True)
class Process:
    """A running process: its machine (since the machine's start), its number there, and its start time."""

    machine: str
    number: int
    started: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The start of work on the query of this key; the charge is the next line."""

    time: str
    key: str
    process: Process


@dataclass(frozen=True, slots=True)
class DroppedClaim:
    """The end of that line's claim without an answer."""

    time: str
    claim: int


@dataclass(frozen=True, slots=True)
class BudgetRenewal:
    """Another total, set by the owner, with the reason. What was spent before stays spent."""

    time: str
    epsilon: Fraction
    delta: Fraction
    reason: str


@dataclass(frozen=True, slots=True)
class FormatChange:
    """The start of lines of this format."""

    time: str
    format: int


Line = Entry | Answer | Note | UnitOf | Claim | DroppedClaim | BudgetRenewal | FormatChange | ShareLine


class UnknownLine(ValueError):
    """A line of a kind or format that a later version wrote."""


def write(line: Line, salt: str) -> str:
    """Return a line of format 2. salt: 64 hexadecimal digits, drawn for this line."""
    tag, words = _words_of(line)
    return dumps({"kind": tag, "salt": salt, "time": line.time, **words})


def _words_of(line: Line) -> tuple[str, dict[str, Any]]:
    """Return the tag of a line and its fields, in order."""
    match line:
        case Entry():
            return "charge", {"analyst": line.analyst, "query": line.label, **line.price()}
        case Answer():
            return "answer", {"key": line.key, "charge": line.charge, "slot": line.slot, "sha256": line.digest}
        case Note():
            return "note", {"text": line.text}
        case UnitOf():
            path = [[each.table, each.column, each.type] for each in line.unit.path]
            return "unit", {"table": line.unit.table, "unit": str(line.unit.kind.value), "path": path}
        case Claim():
            by = line.process
            process = {"machine": by.machine, "number": by.number, "started": by.started}
            return "claim", {"key": line.key, "process": process}
        case DroppedClaim():
            return "dropped", {"claim": line.claim}
        case BudgetRenewal():
            return "renewed", {"epsilon": str(line.epsilon), "delta": str(line.delta), "reason": line.reason}
        case FormatChange():
            return "format", {"format": line.format}
        case Share() | AnalystRequest() | FailedRequest():
            return TAGS[type(line)], line.words


def read(text: str) -> Line:
    """Return the line of a text of format 2. Raises UnknownLine for a line of a later version, and ValueError,
    TypeError, KeyError or similar for a text that no version wrote."""
    fields = json.loads(text)
    tag = fields["kind"]
    if tag not in _READERS:
        shown = f'"{tag}"' if isinstance(tag, str) and re.fullmatch("[a-z][a-z -]{0,39}", tag) else "another"
        raise UnknownLine(f"is of kind {shown}, which this version of dpsql does not know")
    line, salt = _READERS[tag](fields), fields["salt"]
    if not isinstance(salt, str) or not re.fullmatch("[0-9a-f]{64}", salt) or write(line, salt) != text:
        raise ValueError("not as it was written")
    if isinstance(line, FormatChange) and line.format != FORMAT:
        raise UnknownLine(f"says that format {line.format} begins, and this version of dpsql reads up to {FORMAT}")
    return line


def write_1(line: Line) -> str:
    """Return a line of format 1, which had charges, answers and notes."""
    if isinstance(line, Entry):
        return dumps(line.to_dict())
    if isinstance(line, Answer):
        return dumps({"time": line.time, "answer": line.key, "sha256": line.digest})
    if isinstance(line, Note):
        return dumps({"time": line.time, "note": line.text})
    raise TypeError("format 1 has no such line")


def read_1(text: str) -> Line:
    """Return the line of a text of format 1. Raises ValueError, TypeError, KeyError or similar for any other text."""
    fields = json.loads(text)
    if "answer" in fields:
        line: Line = Answer(_text(fields["time"]), _text(fields["answer"]), _text(fields["sha256"]))
    elif "note" in fields:
        line = Note(_text(fields["time"]), _text(fields["note"]))
    else:
        line = entry_of(fields)
    if write_1(line) != text:
        raise ValueError("not as it was written")
    return line


def entry_of(fields: Mapping[str, Any]) -> Entry:
    """Return the charge in a parsed line."""
    epsilon = None if fields["epsilon"] is None else number(fields["epsilon"])
    cost = Cost(epsilon, number(fields["delta"]), number(fields["rho"]), number(fields["hidden"]))
    events = tuple(_read_event(each) for each in fields["events"])
    parts = tuple(Part(*map(_text, each)) for each in fields["parts"])
    analyst = None if fields["analyst"] is None else _text(fields["analyst"])
    return Entry(_text(fields["time"]), analyst, _text(fields["query"]), cost, events, parts)


def process_of(fields: Mapping[str, Any]) -> Process:
    return Process(_text(fields["machine"]), int(_place(fields["number"]) or 0), _text(fields["started"]))


@lru_cache(maxsize=4096)
def number(text: object) -> Fraction:
    """Return a fraction from the text that `str` writes; rejects texts that take long to read."""
    if not isinstance(text, str) or not re.fullmatch("[0-9]{1,4000}(/[0-9]{1,4000})?", text):
        raise ValueError("not a number of a ledger")
    return Fraction(text)


def dumps(value: object) -> str:
    """Return JSON as a ledger writes it: ASCII, no blanks."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _place(value: object, *, or_none: bool = False) -> Any:
    """Return a whole number from 0; also None, with `or_none`."""
    if (value is None and or_none) or (type(value) is int and 0 <= value < 10**15):
        return value
    raise ValueError("not a place in a ledger")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return intern(value)


def _event_text(event: Event) -> dict[str, Any]:
    tag = _TAGS[type(event)]
    return {"event": tag, **{word: str(getattr(event, word)) for word in _EVENTS[tag][1]}}


def _read_event(fields: Mapping[str, Any]) -> Event:
    kind, words = _EVENTS[fields["event"]]
    numbers = {word: number(fields[word]) for word in words if word != "count"}
    return kind(**numbers, count=int(number(fields["count"])))


_READERS: dict[object, Callable[[Mapping[str, Any]], Line]] = {
    "charge": entry_of,
    "answer": lambda said: Answer(
        _text(said["time"]),
        _text(said["key"]),
        _text(said["sha256"]),
        _place(said["charge"], or_none=True),
        _place(said["slot"]),
    ),
    "note": lambda said: Note(_text(said["time"]), _text(said["text"])),
    "unit": lambda said: UnitOf(
        _text(said["time"]),
        TableUnit(
            _text(said["table"]), UnitKind(said["unit"]), tuple(Place(*map(_text, each)) for each in said["path"])
        ),
    ),
    "claim": lambda said: Claim(_text(said["time"]), _text(said["key"]), process_of(said["process"])),
    "dropped": lambda said: DroppedClaim(_text(said["time"]), int(_place(said["claim"]) or 0)),
    "renewed": lambda said: BudgetRenewal(
        _text(said["time"]), number(said["epsilon"]), number(said["delta"]), _text(said["reason"])
    ),
    "format": lambda said: FormatChange(_text(said["time"]), int(_place(said["format"]) or 0)),
    **readers(number, _text, _place),
}
