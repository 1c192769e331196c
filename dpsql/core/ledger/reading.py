"""Strict and fast reading of a ledger's lines: a file is read completely at each opening.

`lines.read` writes each line again and compares. This module does the same piece by piece. The texts that differ from
line to line (salt, time, keys, hashes) must match a pattern that only their unique written form fits. Texts that many
lines share (a cost with its events and parts, an analyst) are read and written again once for each text. So both
modules accept the same lines (`tests/core/ledger/test_reading.py`).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from sys import intern
from typing import Any, NamedTuple

from dpsql.core.cost import Cost
from dpsql.core.events import Event
from dpsql.core.ledger.account import Part
from dpsql.core.ledger.lines import Answer, Claim, Entry, Line, Process, dumps, entry_of, process_of, read, read_1


class Price(NamedTuple):
    """The cost of a charge, the parts that it read, and its events. One object for all equal texts."""

    step: tuple[Cost, tuple[Part, ...]]
    events: tuple[Event, ...]


class Charge(NamedTuple):
    """A charge whose label is still in its written form: most are never read."""

    time: str
    analyst: str | None
    label: str
    price: Price

    def entry(self, number: int = 0) -> Entry:
        """Return the charge as a value. number: that of its line."""
        (cost, parts), events = self.price
        return Entry(self.time, self.analyst, json.loads(self.label), cost, events, parts, number)


class Charges:
    """Charges and the numbers of their lines, in columns: lists of texts, which Python's garbage collector need not
    traverse again and again, as it would an object for each line."""

    def __init__(self) -> None:
        self._columns: tuple[list[str], list[str | None], list[str], list[Price]] = ([], [], [], [])
        self._numbers: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def append(self, number: int, charge: Charge) -> None:
        times, analysts, labels, prices = self._columns
        times.append(charge[0])
        analysts.append(charge[1])
        labels.append(charge[2])
        prices.append(charge[3])
        self._numbers.append(number)

    def extend(self, others: Charges) -> None:
        columns: Iterator[tuple[list[Any], list[Any]]] = zip(self._columns, others._columns, strict=True)
        for mine, theirs in columns:
            mine.extend(theirs)
        self._numbers.extend(others._numbers)

    def steps(self, analyst: str | None = None) -> list[tuple[Cost, tuple[Part, ...]]]:
        """Return the costs and parts of all charges, or of one analyst's."""
        _, analysts, _, prices = self._columns
        if analyst is None:
            return [price.step for price in prices]
        return [price.step for price, whose in zip(prices, analysts, strict=True) if whose == analyst]

    def steps_of(self, analyst: str | None) -> list[tuple[Cost, tuple[Part, ...]]]:
        """Return the costs and parts of the charges of one analyst, or of those without a name."""
        _, analysts, _, prices = self._columns
        return [price.step for price, whose in zip(prices, analysts, strict=True) if whose == analyst]

    def analysts(self) -> set[str | None]:
        """Return everybody who was charged."""
        return set(self._columns[1])

    def last_time(self, analyst: str) -> str:
        """Return the time of an analyst's last charge; "" if there is none."""
        times, analysts, _, _ = self._columns
        return next((times[place] for place in reversed(range(len(times))) if analysts[place] == analyst), "")

    def entry(self, number: int) -> Entry | None:
        """Return the charge of the line of that number."""
        place = bisect_left(self._numbers, number)
        if place == len(self._numbers) or self._numbers[place] != number:
            return None
        times, analysts, labels, prices = self._columns
        return Charge(times[place], analysts[place], labels[place], prices[place]).entry(number)

    def entries(self, start: int) -> Iterator[Entry]:
        """Yield the charges as values, from that place on."""
        rows = zip(*(column[start:] for column in self._columns), self._numbers[start:], strict=True)
        for time, analyst, label, price, number in rows:
            yield Charge(time, analyst, label, price).entry(number)


_ESCAPE = r'\\(?:["\\bfnrt]|u(?!00(?:0[89acd]|[2-6][0-9a-f]|7[0-9a-e]))[0-9a-f]{4})'
_PLAIN = r"[ !#-\[\]-~]*+"
_STRING = rf'"{_PLAIN}(?:{_ESCAPE}{_PLAIN})*+"'  # the only form in which JSON in ASCII writes it
_PLACE = "(?:0|[1-9][0-9]{0,14})"
_HEAD = rf'"salt":"[0-9a-f]{{64}}","time":({_STRING})'
_CHARGE = re.compile(rf'\{{"kind":"charge",{_HEAD},"analyst":(null|{_STRING}),"query":({_STRING}),("epsilon":.*)\}}')
_ANSWER = re.compile(
    rf'\{{"kind":"answer",{_HEAD},"key":({_STRING}),"charge":(null|{_PLACE}),"slot":({_PLACE}),"sha256":({_STRING})\}}'
)
_CLAIM = re.compile(rf'\{{"kind":"claim",{_HEAD},"key":({_STRING}),"process":(\{{.*\}})\}}')
_CHARGE_1 = re.compile(rf'\{{"time":({_STRING}),"analyst":(null|{_STRING}),"query":({_STRING}),("epsilon":.*)\}}')


@lru_cache(maxsize=4096)
def read_line(text: str) -> Line | Charge:
    """Return a line of format 2, one object for all ledgers of a process that read it. Raises UnknownLine, ValueError,
    TypeError, KeyError or similar, as `lines.read` does."""
    if fields := _CHARGE.fullmatch(text):
        time, analyst, label, price = fields.groups()
        return Charge(_string(time), _string_or_none(analyst), intern(label), _price(price))
    if fields := _ANSWER.fullmatch(text):
        time, key, charge, slot, digest = fields.groups()
        return Answer(
            _string(time), _string(key), _string(digest), None if charge == "null" else int(charge), int(slot)
        )
    if fields := _CLAIM.fullmatch(text):
        time, key, process = fields.groups()
        return Claim(_string(time), _string(key), _process(process))
    return _no_charge(read(text))


def read_line_1(text: str) -> Line | Charge:
    """Return a line of format 1."""
    if found := _CHARGE_1.fullmatch(text):
        time, analyst, label, price = found.groups()
        return Charge(_string(time), _string_or_none(analyst), label, _price(price))
    return _no_charge(read_1(text))


def _no_charge(line: Line) -> Line:
    """Reject a charge that the pattern missed, which would otherwise not be counted."""
    if isinstance(line, Entry):
        raise TypeError("not as it was written")
    return line


def _string(written: str) -> str:
    """Return a text from its JSON, which fits the pattern. One object for all ledgers of a process that hold it."""
    return intern(written[1:-1] if "\\" not in written else json.loads(written))


@lru_cache(maxsize=1024)
def _string_or_none(written: str) -> str | None:
    return None if written == "null" else _string(written)


@lru_cache(maxsize=65536)
def _price(written: str) -> Price:
    """Return the price in the text from "epsilon" on. Raises ValueError and similar for any other written form."""
    said = json.loads(f"{{{written}}}")
    entry = entry_of({"time": "", "analyst": None, "query": "", **said})
    if dumps(entry.price()) != f"{{{written}}}":
        raise ValueError("not as it was written")
    return Price((entry.cost, entry.parts), entry.events)


@lru_cache(maxsize=4096)
def _process(written: str) -> Process:
    process = process_of(json.loads(written))
    if dumps({"machine": process.machine, "number": process.number, "started": process.started}) != written:
        raise ValueError("not as it was written")
    return process
