"""The ledger: what has been spent of a budget. Charged before anything is read, never given back, never overdrawn.

A ledger lives in memory or in one file (`ledger_file`). Its rules (budget, accountant, neighbour relation) are fixed
when it is opened for the first time; its lines are chained by hash (`ledger_text`).
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import NamedTuple, NoReturn

from dpsql.errors import InvalidArgument, LedgerError
from dpsql.privacy import ledger_claims as claims
from dpsql.privacy import ledger_text
from dpsql.privacy.account import Part
from dpsql.privacy.budget import Budget
from dpsql.privacy.cost import FREE, Cost
from dpsql.privacy.events import Event
from dpsql.privacy.exceeded import ASKED, Asked, exceeded
from dpsql.privacy.filters import Remaining, Spent
from dpsql.privacy.ledger_fork import guard
from dpsql.privacy.ledger_lines import (
    FORMAT,
    Answer,
    Claim,
    Dropped,
    Entry,
    From,
    Line,
    Note,
    Process,
    UnitOf,
    UnknownLine,
    write,
    write_1,
)
from dpsql.privacy.ledger_reading import Charge, Charges, read_line, read_line_1
from dpsql.privacy.ledger_store import LATER, RESTORE, UNREADABLE, MemoryStore, Store
from dpsql.privacy.ledger_text import Rules
from dpsql.privacy.ledger_units import TableUnit, check_units
from dpsql.privacy.loss import show
from dpsql.privacy.sampling import fresh_key
from dpsql.privacy.unit import Neighbours
from dpsql.privacy.watch import Watch


class _Last(NamedTuple):
    """The last line of a ledger: its number, its hash, and the format of the lines after it."""

    number: int
    hash: str
    format: int


class _Claim(NamedTuple):
    """A claim's line: its number and hash, when it was made, and by whom."""

    number: int
    digest: str
    time: str
    process: Process


_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05
"""Seconds between two looks at whether an answer is there."""
CLOCK_TOLERANCE = timedelta(seconds=1)
"""By so much the clock may lie behind the last entry: the clocks of two processors can differ a little."""


class Ledger:
    """The entries of one budget, under one neighbour relation. Any number of threads; with a file, of processes.

    analyst: whose charges these are; with shares for analysts in the budget, a charge has to fit into the share too.
    owner: to look at the whole, without a share.
    A ledger cannot be copied, pickled or used in a forked child: two in memory could each spend the whole budget, and a
    file's locks do not survive a fork. Raises LedgerError where the store's lines are not what was once written.
    """

    def __init__(
        self, rules: Rules, store: Store | None = None, *, analyst: str | None = None, owner: bool = False
    ) -> None:
        moves = rules.neighbours is Neighbours.BOUNDED
        self.rules = rules
        self.analyst = analyst
        self._store = MemoryStore() if store is None else store
        self._watches = [Watch(rules.budget.filter(rules.accountant), moves=moves)]
        own = None if owner else rules.budget.filter_of(analyst, rules.accountant)
        if own is not None:
            self._watches.append(Watch(own, moves=moves, whose=f' for analyst "{analyst}"'))
        self._charges = Charges()
        self._entries: list[Entry] = []  # those of the charges that were asked for already
        self._answers: dict[str, tuple[int, str]] = {}
        self._paid: set[int] = set()  # charges that have their answer
        self._claims: dict[str, _Claim] = {}  # those that have no answer yet
        self._made: dict[tuple[int, str], str] = {}  # by thread and key: the hash of the claim that it made last
        self._units: dict[str, TableUnit] = {}
        self._last = _Last(0, ledger_text.first_hash(rules.text), rules.format)
        self._next = self._last  # in a transaction: the last line that it has written
        self._time = ""
        self._lock = threading.RLock()
        self._process = os.getpid()
        guard(self, self._lock)
        with self._current():
            pass

    @property
    def budget(self) -> Budget:
        return self.rules.budget

    @property
    def whole(self) -> Fraction:
        """The epsilon of the budget, or of the analyst's share where that is less."""
        return min(each.filter.budget.epsilon for each in self._watches)

    @property
    def whole_delta(self) -> Fraction:
        """As `whole`, of delta."""
        return min(each.filter.budget.delta for each in self._watches)

    @property
    def neighbours(self) -> Neighbours:
        return self.rules.neighbours

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every charge, in order."""
        with self._current():
            self._entries += self._charges.entries(len(self._entries))
            return tuple(self._entries)

    @property
    def anchor(self) -> str:
        """The number and hash of the last line. Kept elsewhere, it shows later whether lines are missing."""
        with self._current():
            return f"{self._last.number}:{self._last.hash}"

    @property
    def spent(self) -> Spent:
        """What all charges come to."""
        with self._current():
            return self._watches[0].spent()

    @property
    def remaining(self) -> Remaining:
        """What the next query may have."""
        left = self.after(FREE)
        assert left is not None  # what was charged was admitted
        return left

    def after(self, cost: Cost, parts: Sequence[Part] = ()) -> Remaining | None:
        """What would remain after a charge, for queries about the same parts; None where it would be refused."""
        with self._current():
            if not all(each.admits(cost, parts) for each in self._watches):
                return None
            first, *others = [each.remaining(cost, parts) for each in self._watches]
        return first if not others else first.least(others[0])

    def most(self, cost: Cost, parts: Sequence[Part] = ()) -> int | None:
        """How many more steps of this cost would be admitted; None for any number."""
        with self._current():
            counts = [each.most(cost, parts) for each in self._watches]
        return min((count for count in counts if count is not None), default=None)

    def short_of(self, cost: Cost, parts: Sequence[Part] = ()) -> str:
        """Of a step that is refused: what there is too little of where that is delta, or delta too, in words."""
        coin = replace(cost, delta=Fraction(0), hidden=Fraction(0))
        alone = Cost(Fraction(0), cost.delta, hidden=cost.hidden)
        with self._current():
            fits, fits_alone = (all(each.admits(step, parts) for each in self._watches) for step in (coin, alone))
        name = "rho" if cost.epsilon is None else "epsilon"
        if fits_alone:
            return f"{name} and delta together" if fits and cost.delta else ""
        kept = max(each.filter.conversion or Fraction(0) for each in self._watches)
        held = f" ({show(kept)} of it is kept to convert rho to epsilon)" if kept else ""
        return f"{'' if fits else f'{name} and '}delta{held}"

    def check_units(self, units: Iterable[TableUnit]) -> None:
        """Raises LedgerError for tables whose privacy unit is another than the one that was charged for."""
        with self._current():
            check_units(self._units, units)

    def take_units(self, units: Sequence[TableUnit]) -> tuple[str, ...]:
        """Check the tables of a session that opens. A ledger of format 1, which knew no units, takes theirs, since what
        it was charged is taken to be about them. Returns what its user should know. Raises LedgerError."""
        self.check_units(units)
        if self._last.format == FORMAT:
            return ()
        with self._writing():
            if self._last.format == FORMAT:  # another was first
                check_units(self._units, units)
                return ()
            self._append(From(self._now(), FORMAT))
            for unit in units:
                self._append(UnitOf(self._now(), unit))
        told = "; ".join(f"{unit.table}: {unit}" for unit in units) or "none"
        answers = f" Its {len(self._answers)} kept answers are listed, and not given again." if self._answers else ""
        what = f"the ledger was of format 1, which knew no privacy units: it has taken this session's ({told})"
        return (f"{what}, and later sessions must declare the same.{answers}",)

    def charge(
        self,
        cost: Cost,
        label: str,
        *,
        events: Sequence[Event] = (),
        parts: Sequence[Part] = (),
        asked: Asked = ASKED,
        units: Sequence[TableUnit] = (),
    ) -> Entry:
        """Enter a cost before its query runs; on return it is durable. units: those of the tables that it reads,
        entered with their first charge. Raises BudgetExceeded (nothing entered) or LedgerError (nothing may run)."""
        entry = Entry("", self.analyst, label, cost, tuple(events), tuple(parts))
        with self._writing():
            return self._charge(entry, asked, units)

    def claim(
        self,
        key: str,
        cost: Cost,
        label: str,
        *,
        events: Sequence[Event] = (),
        parts: Sequence[Part] = (),
        asked: Asked = ASKED,
        units: Sequence[TableUnit] = (),
    ) -> Entry | None:
        """As `charge`, for an answer that will be kept under this key: once for all who ask now, in any thread or
        process. Waits while somebody else is at it; None when the answer is there to `recall`. Who is charged keeps an
        answer in the end, or calls `drop`."""
        entry = Entry("", self.analyst, label, cost, tuple(events), tuple(parts))
        try:
            while True:
                with self._writing():
                    if key in self._answers:
                        return None
                    if not self._claimed(key):
                        return self._charge(entry, asked, units, key)
                self._wait(key)
        except BaseException:
            self.give_up(key)
            raise

    def keep(self, key: str, payload: bytes, charge: Entry | None = None, *, claimed: bool = False) -> bool:
        """Keep a released answer under a key. Free. charge: what paid for it, for one answer; claimed: with `claim`.

        False, and nothing kept, where that charge has its answer, or where somebody took over the claim and was first:
        then this draw is discarded, and what is kept is shown in its place. So of all who claimed a question one answer
        is shown, and of one charge never two."""
        paid = None if charge is None else charge.number
        with self._writing():
            if paid in self._paid or (claimed and paid is not None and self._answers.get(key, (0, ""))[0] > paid):
                return False
            number = self._append(Answer(self._now(), key, ledger_text.digest_of(payload), paid))
            self._store.keep(number, payload)
        return True

    def drop(self, charge: Entry) -> None:
        """The claim of this charge comes to no answer: who waits for it asks anew, and pays. The charge stays. Raises
        nothing of the ledger's: where no line can be written, this process remembers it."""
        held = next((held for held in self._claims.values() if held.number == charge.number - 1), None)
        if held is not None:
            claims.end(held.digest)
            self._drop(held)

    def give_up(self, key: str) -> None:
        """As `drop`, for a claim of this thread that was interrupted at any point: it may have been written though its
        charge is not known here. Nothing where its answer is kept, or where it made none."""
        digest = self._made.pop((threading.get_ident(), key), None)
        if digest is None:
            return
        claims.end(digest)  # before anything else that could fail
        held = self._claims.get(key)
        if held is not None and held.digest == digest:
            self._drop(held)

    def _drop(self, held: _Claim) -> None:
        with suppress(LedgerError), self._writing():
            if held in self._claims.values():
                self._append(Dropped(self._now(), held.number))

    def recall(self, key: str) -> bytes | None:
        """The last answer kept under a key, None where there is none. Raises LedgerError for one that was changed."""
        with self._current():
            number, digest = self._answers.get(key, (0, ""))
            payload = self._store.payload(number) if number else None
        if number and (payload is None or ledger_text.digest_of(payload) != digest):
            raise LedgerError("an answer that the ledger keeps was changed after it was given.", hint=RESTORE)
        return payload

    def accept_clock(self) -> None:
        """Note that the clock is right as it is now, though entries have a later time."""
        with self._writing():
            self._append(Note(_text(_now()), "the clock is right"))

    def to_json(self) -> str:
        """All lines with their hashes, for people and other programs."""
        with self._current():
            return ledger_text.export(self.rules, self._store.since(1))

    def check_anchor(self, anchor: str) -> None:
        """Raises LedgerError unless the line of an earlier `anchor` is still there."""
        place, digest = _read_anchor(anchor)
        with self._current():
            if place == 0:
                found = ledger_text.first_hash(self.rules.text)
            else:
                with closing(self._store.since(place)) as lines:
                    number, _, held = next(lines, (0, "", ""))
                found = held if number == place else ""
        if found != digest:
            raise LedgerError("the ledger was rolled back or replaced: the anchor's line is not in it.", hint=RESTORE)

    def close(self) -> None:
        """Let go of the file. The ledger cannot be used any more. Nothing in a forked child, whose parent has it."""
        if os.getpid() == self._process:
            with self._lock:
                self._store.close()

    @contextmanager
    def _current(self) -> Iterator[None]:
        """With the lines of other processes read. Raises LedgerError."""
        self.check_process()
        with self._lock:
            self._catch_up()
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: the line appended inside is durable afterwards, or, where anything fails, is not there."""
        self.check_process()
        with self._lock:
            with self._transaction():
                yield
            self._read_back()

    def _read_back(self) -> None:
        """See that what was written is there."""
        self._catch_up()
        if self._last.number < self._next.number:
            raise LedgerError("the ledger lost an entry that was just written.", hint=RESTORE)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """The store's transaction, over all that was written by others."""
        try:
            self._store.begin()
            self._catch_up()
            self._next = self._last
            yield
            self._store.commit()
        except BaseException:
            self._store.abandon()
            raise

    def _append(self, line: Line) -> int:
        """Write a line after the last one. The first of format 2 in a ledger of format 1 says so before; a note needs
        no more than format 1 knows."""
        before = self._next
        old = before.format < FORMAT and isinstance(line, Note)
        if before.format < FORMAT and not isinstance(line, Note | From):
            self._append(From(line.time, FORMAT))
            before = self._next
        number, text = before.number + 1, write_1(line) if old else write(line, fresh_key().hex())
        digest = ledger_text.next_hash(before.hash, number, text)
        self._store.append(number, text, digest)
        self._next = _Last(number, digest, before.format if old else FORMAT)
        return number

    def _catch_up(self) -> None:
        """Read what has been written since, and see that what was read before is still the same."""
        last = self._last
        with closing(self._store.since(last.number)) as lines:
            if last.number:
                number, _, digest = next(lines, (0, "", ""))
                if (number, digest) != (last.number, last.hash):
                    raise LedgerError("the ledger was rolled back or edited while it was in use.", hint=RESTORE)
            self._read(lines)

    def _read(self, lines: Iterable[tuple[int, str, str]]) -> None:
        """Enter lines that follow the last one that was read: all of them or, where one is not right, none."""
        last = self._last
        before, number, format_ = last.hash, last.number, last.format
        read = read_line if format_ == FORMAT else _read_old
        charges, others, latest = Charges(), [], self._time
        for place, text, digest in lines:
            number += 1
            if place != number or digest != ledger_text.next_hash(before, number, text):
                raise LedgerError(f"line {number} of the ledger is not what was written.", hint=RESTORE)
            try:
                line = read(text)
            except UnknownLine as error:
                raise LedgerError(f"line {number} of the ledger {error}.", hint=LATER) from None
            except UNREADABLE:
                raise LedgerError(f"line {number} of the ledger cannot be read.", hint=RESTORE) from None
            if isinstance(line, Charge):
                charges.append(number, line)
            else:
                others.append((number, digest, line))
                if isinstance(line, From):
                    read, format_ = read_line, FORMAT
            latest = line.time if line.time > latest or isinstance(line, Note) else latest
            before = digest
        self._enter(charges, others)
        self._last, self._time = _Last(number, before, format_), latest

    def _enter(self, charges: Charges, others: Sequence[tuple[int, str, Line]]) -> None:
        """Lines that were read; the others with their numbers and hashes."""
        units = dict(self._units)
        for _, _, line in others:
            if isinstance(line, UnitOf):
                check_units(units, [line.unit])
                units[line.unit.table] = line.unit
        self._units = units
        for number, digest, line in others:
            if isinstance(line, Claim):
                self._claims[line.key] = _Claim(number, digest, line.time, line.process)
            elif isinstance(line, Answer):
                self._answers[line.key] = (number, line.digest)
                self._claims.pop(line.key, None)
                if line.charge is not None:
                    self._paid.add(line.charge)
            elif isinstance(line, Dropped):
                self._claims = {key: held for key, held in self._claims.items() if held.number != line.claim}
        self._charges.extend(charges)
        self._watches[0].add_all(charges.steps())
        for each in self._watches[1:]:
            each.add_all(charges.steps(self.analyst))

    def _charge(self, entry: Entry, asked: Asked, units: Sequence[TableUnit], key: str | None = None) -> Entry:
        """Enter a charge, behind the units that are new and, with a key, a claim; inside a transaction."""
        check_units(self._units, units)
        if not all(each.admits(entry.cost, entry.parts) for each in self._watches):
            raise exceeded(entry.cost, self._watches, entry.parts, asked)
        now = self._now()
        for unit in units:
            if unit.table not in self._units:
                self._append(UnitOf(now, unit))
        for held in self._claims.values():
            if claims.ended(held.digest):  # where no line could be written at its time
                self._append(Dropped(now, held.number))
        if key is not None:
            self._append(Claim(now, key, claims.this_process()))
            self._made[threading.get_ident(), key] = self._next.hash
        entry = replace(entry, time=now)
        return replace(entry, number=self._append(entry))

    def _claimed(self, key: str) -> bool:
        """Whether somebody is at work on the answer of this key."""
        held = self._claims.get(key)
        return held is not None and not claims.gone(held.process, _age(held.time), held.digest)

    def _wait(self, key: str) -> None:
        """Until the answer of this key is there, or nobody is at work on it."""
        pause = _SHORTEST_PAUSE
        while True:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            with self._current():
                if key in self._answers or not self._claimed(key):
                    return

    def _now(self) -> str:
        """The time of a new line, never before the last one's. Raises LedgerError where the clock went backwards."""
        now = _now()
        if self._time and _text(now + CLOCK_TOLERANCE) < self._time:
            raise LedgerError(
                f"the clock went backwards: it says {_text(now)}, and the ledger's last entry is of {self._time}.",
                hint="Nothing was run, nothing was charged. Put the clock right. If it was the entry's that was\n"
                "wrong, say so once: dpsql.accounting.accept_clock(path).",
            )
        return max(_text(now), self._time)

    def check_process(self) -> None:
        """Raises LedgerError in a forked child."""
        if os.getpid() != self._process:
            raise LedgerError(
                "this session was forked: parent and child would each spend the whole budget.",
                hint="Open a session of its own in each process, on one ledger file or with a budget of its own.",
            )

    def __copy__(self) -> NoReturn:
        raise LedgerError("a ledger cannot be copied: each copy could spend the whole budget.")

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a ledger cannot be pickled: each copy could spend the whole budget.")


def check_form(anchor: object) -> None:
    """Raises InvalidArgument for what is no anchor."""
    _read_anchor(anchor)


def _read_anchor(anchor: object) -> tuple[int, str]:
    found = re.fullmatch("([0-9]{1,15}):([0-9a-f]{64})", anchor) if isinstance(anchor, str) else None
    if found is None:
        raise InvalidArgument(
            f"an anchor is a number and a hash, 12:9f86d0..., got {str(anchor)[:80]!r}.",
            hint="session.ledger_anchor gives one.",
        )
    return int(found[1]), found[2]


def _read_old(text: str) -> Line | Charge:
    """A line of format 1, or the one that ends it."""
    return read_line(text) if text.startswith('{"kind":"format",') else read_line_1(text)


def _now() -> datetime:
    return datetime.now(UTC)


def _age(moment: str) -> float:
    """Seconds since a line was written."""
    return (_now() - datetime.strptime(moment, _MOMENT).replace(tzinfo=UTC)).total_seconds()


_MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"


def _text(moment: datetime) -> str:
    """ISO 8601 with microseconds, so that texts sort as moments do."""
    return moment.astimezone(UTC).strftime(_MOMENT)
