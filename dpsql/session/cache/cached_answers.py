"""Replay: a repeated query gets the same numbers again, at no cost.

Releasing a value twice is post-processing of releasing it once (Dwork, Roth 2014, proposition 2.1). Free repeats leave
nothing to gain by averaging.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from weakref import WeakValueDictionary

from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.lines import Entry
from dpsql.core.ledger.store import RESTORE, UNREADABLE
from dpsql.core.mechanisms.samplers import fresh_key
from dpsql.errors import LedgerError
from dpsql.plan.nodes import scans_of
from dpsql.release.output.integers import is_integer
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.schema.table_declarations import CONTENT
from dpsql.session.cache.question_key import canonical, canonical_by_aliases
from dpsql.session.cache.released_text import from_bytes, to_bytes
from dpsql.session.tables.table_states import State


@dataclass(frozen=True, slots=True)
class Question:
    """A query's identity, as a hash. `lasting`: all its tables, and those that identify their units, have a declared
    version, so the ledger stores the answer."""

    key: str
    lasting: bool
    unversioned: tuple[str, ...] = ()
    """Names of the tables without a version."""
    others: tuple[str, ...] = ()
    """Its keys when other analysts ask it."""
    states: tuple[tuple[str, str | None], ...] = ()
    """State of each table without a version when the query was asked, by folded name."""
    by_aliases: tuple[str, ...] = ()
    """Keys of its answers from older versions of dpsql in the ledger."""


class Replay:
    """Answers that a session has given, and those that its ledger stores for all sessions.

    session: a name of this session only. Analysts are kept apart: an answer paid for by one is new to another.

    run: a name shared by several sessions, each in its own process, over the same tables: the ledger stores all of
    their answers, and an answer that it cannot store is not shown.
    """

    hidden: frozenset[str] = frozenset()
    """Questions whose answers count as not given."""
    others: tuple[str, ...] = ()
    """Other analysts whose answers count as given, after the analyst's answers."""
    charge: int | None = None
    """The charge whose answer is recalled, whatever was answered since."""

    def __init__(self, ledger: Ledger, run: str | None = None) -> None:
        self.session = fresh_key().hex() if run is None else run
        self._shared = run is not None
        self._ledger = ledger
        self._answers: dict[str, ReleasedValues] = {}
        self._unkept: set[str] = set()
        self._turns: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()  # by key, while in use
        self._handing_out = threading.Lock()

    def question(
        self, release: Release, tables: Mapping[str, TableSchema], parts: tuple[str, ...], state: State
    ) -> Question | None:
        """Return the question of a release over these tables (by folded name); None if it has no key. parts: versions
        of the parts of tables that it can reach; state: returns the state of a table without a version, which is part
        of the question.

        A row's privacy unit depends on the tables that its path is looked up in, which no scan of the plan reads: their
        facts and versions are included.
        """
        scans = list(scans_of(release.query.plan.input))
        names = {step.table for scan in scans for step in (scan.table.unit.steps if scan.table.unit else ())}
        on_the_way = [tables[name] for name in sorted(names)]
        read = [*(scan.table for scan in scans), *on_the_way]
        unversioned = tuple(dict.fromkeys(table.name for table in read if table.version in (None, CONTENT)))
        states = tuple(
            (name, state(name)) for name in sorted({each.casefold() for each in unversioned} & tables.keys())
        )
        told = (f"state of {name}: {at}" for name, at in states if at)
        key, others, by_aliases = self._keys(release, unversioned, (*on_the_way, *parts, *told))
        if self._shared:
            key = key or f"once {fresh_key().hex()}"
            return Question(key, lasting=True, others=others, states=states, by_aliases=by_aliases)
        if key is None:
            return None
        return Question(key, not unversioned, unversioned, states=states, by_aliases=by_aliases)

    def _keys(
        self, release: Release, unversioned: tuple[str, ...], read: tuple[TableSchema | str, ...]
    ) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
        """Return a question's key, its keys for other analysts, and its keys from older versions."""
        analysts = (self._ledger.analyst, *self.others)
        rest = (self.session if unversioned else None, *read)
        key, *others = (canonical(release, analyst, *rest) for analyst in analysts)
        older = [] if unversioned else [canonical_by_aliases(release, analyst, *rest) for analyst in analysts]
        return key, _present(others), _present(older)

    def recall(self, question: Question | None, release: Release) -> ReleasedValues | None:
        """Return the earlier answer, if any. Raises LedgerError."""
        self._ledger.check_process()
        if question is None or (question.key in self.hidden and self.charge is None):
            return None
        if not question.lasting or question.key in self._unkept:
            return self._answers.get(question.key)
        if self.charge is not None:  # its answer or none, whatever answers others received
            return self._read(self._ledger.recall_paid(self.charge), release)
        own = self._read(self._ledger.recall(question.key), release)
        other = (*question.by_aliases, *question.others)
        shared = (each for each in other if each not in self.hidden and own is None)
        payloads = (self._ledger.recall(each) for each in shared)
        return own or next((self._read(each, release) for each in payloads if each is not None), None)

    def recall_own(self, releases: Sequence[Release], before: Sequence[int]) -> list[ReleasedValues | None]:
        """Return the answers to the releases of one statement: those in the ledger lines `before` (0: none), and those
        that its charge has paid for since. Raises LedgerError."""
        self._ledger.check_process()
        if len(releases) != len(before):
            raise LedgerError("something else was paid for under this key. Nothing was charged.", hint=RESTORE)
        known: list[ReleasedValues | None] = []
        slot = 0
        for release, line in zip(releases, before, strict=True):
            if line:
                payload = self._ledger.recall_line(line)
                if payload is None:
                    raise LedgerError("an answer that the ledger kept is not there.", hint=RESTORE)
            else:
                payload = None if self.charge is None else self._ledger.recall_paid(self.charge, slot)
                slot += 1
            known.append(self._read(payload, release))
        return known

    def _read(self, payload: bytes | None, release: Release) -> ReleasedValues | None:
        if payload is None:
            return None
        try:
            released = from_bytes(payload)
        except UNREADABLE:
            released = None
        if released is None or not _fits(released, release):
            raise LedgerError("an answer that the ledger keeps cannot be read.", hint=RESTORE)
        return released

    def keep(
        self,
        question: Question | None,
        released: ReleasedValues,
        release: Release,
        charge: Entry,
        *,
        claimed: bool,
        slot: int = 0,
    ) -> tuple[ReleasedValues, tuple[str, ...]]:
        """Store an answer. Return the values to show, which are another session's if those were stored first, and a
        note if the ledger could not store them: they are paid for, and are shown anyway."""
        if question is None:
            return released, ()
        if not question.lasting:
            self._answers[question.key] = released
            return released, ()
        try:
            kept = self._ledger.keep(question.key, to_bytes(released), charge, claimed=claimed, slot=slot)
        except LedgerError as error:
            if self._shared:
                raise
            self._answers[question.key] = released
            self._unkept.add(question.key)
            if claimed:
                self._ledger.drop(charge)
            note = f"the ledger could not keep this answer ({error.message}); later sessions will pay again."
            return released, (note,)
        self._unkept.discard(question.key)
        before = None
        if not kept and self.charge is not None:  # only the answer of this slot
            before = self._read(self._ledger.recall_paid(self.charge, slot), release)
        elif not kept:
            before = self.recall(question, release)
        return released if before is None else before, ()

    def turn(self, question: Question | None) -> AbstractContextManager[object]:
        """Return a lock that lets one thread of this session at a time answer each question; the second thread finds
        the answer of the first. None needs no lock.

        A plain lock: `with` releases it whenever a KeyboardInterrupt comes, which steps in Python could not guarantee.
        """
        self._ledger.check_process()
        if question is None:
            return nullcontext()
        with self._handing_out:  # both threads get the same lock
            found = self._turns.setdefault(question.key, threading.Lock())
        return found  # noqa: RET504 - out here: an interrupt between call and return in there could keep the lock


def _present(keys: Sequence[str | None]) -> tuple[str, ...]:
    return tuple(each for each in keys if each is not None)


def _fits(released: ReleasedValues, release: Release) -> bool:
    """Return whether the values fit the release: numbers of bounds, keys and values, and integers only where estimates
    are integers."""
    if len(released.bounds) != len(release.searches.searches):
        return False
    settled = release.settled(released.bounds)
    whole = {place for place, each in enumerate(settled.estimates) if is_integer(each)}
    if not whole.issuperset(released.integers):
        return False
    return (len(released.keys), len(released.values)) == (len(release.query.plan.keys), settled.width)
