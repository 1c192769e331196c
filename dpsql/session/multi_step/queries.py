"""Queries of a session: their releases are charged together, run in order, and combined."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsql.answer.result import Result
from dpsql.core.cost import FREE
from dpsql.core.ledger.exceeded import RequestedTerms
from dpsql.core.ledger.lines import Entry
from dpsql.errors import PostprocessFailed
from dpsql.executors.base import Engine
from dpsql.release.release import Release, ReleasedValues
from dpsql.session.cache.cached_answers import Question
from dpsql.session.costs import multi_step_footer
from dpsql.session.free_queries import SessionEstimates
from dpsql.session.ledger_setup import Place
from dpsql.session.run import OpenTables, open_tables, run
from dpsql.session.tables.file_versions import check_unchanged
from dpsql.session.tables.public_tables import stores_of
from dpsql.session.tables.table_units import units_read

if TYPE_CHECKING:
    from dpsql.session.multi_step.prior_releases import PriorReleases
    from dpsql.session.prepared_query import PreparedQuery


PAID_FOR = "What it cost stays spent; the answers that were drawn are given again for nothing."


class SessionSteps(SessionEstimates):
    """The half of a Session that answers queries."""

    _engine: Engine
    _unsaid: tuple[str, ...]
    _place: Place

    @abstractmethod
    def _drawn(
        self,
        release: Release,
        sql: str,
        question: Question | None,
        *,
        fresh: bool,
        plain: bool,
        seen: tuple[PriorReleases, ...],
    ) -> tuple[ReleasedValues, bool, tuple[str, ...]]:
        """Charge and draw one release, or take an answer drawn meanwhile. Return whether it was taken, and notes. seen:
        answers of prior releases."""

    def _answer(self, prepared: PreparedQuery, sql: str, *, fresh: bool, plain: bool) -> Result:
        """Return the answer of a query. New releases are charged together and run in order. Post-processing is free."""
        releases = prepared.releases
        released, missing, notes = self._released(prepared, sql, fresh=fresh, plain=plain)
        paid = [releases[place] for place in missing]
        footer = multi_step_footer(self._ledger, releases, paid, self._parts_of(releases), self._place.aside)
        if paid:
            notes, self._unsaid = (*self._unsaid, *notes), ()
        public = self._catalog.public
        return prepared.result(released, footer, notes=notes, replayed=not paid, public=public)

    def _released(
        self, prepared: PreparedQuery, sql: str, *, fresh: bool, plain: bool
    ) -> tuple[list[ReleasedValues], list[int], tuple[str, ...]]:
        """Return the values of a statement's releases, the indices of those drawn now, and notes."""
        keys = {each.key: each for each in self._questions(prepared) if each is not None and not fresh}
        waiting = [question for _, question in sorted(keys.items())]  # a global order of locks prevents deadlocks
        return self._released_in_turn(waiting, prepared, sql, fresh=fresh, plain=plain)

    def _released_in_turn(
        self, waiting: Sequence[Question], prepared: PreparedQuery, sql: str, *, fresh: bool, plain: bool
    ) -> tuple[list[ReleasedValues], list[int], tuple[str, ...]]:
        """As `_released`, after locking each question in turn.

        Each lock has its own `with`: an interrupt inside `ExitStack.enter_context` would keep a lock.
        """
        if waiting:
            with self._replay.turn(waiting[0]):
                found = self._released_in_turn(waiting[1:], prepared, sql, fresh=fresh, plain=plain)
            return found  # noqa: RET504 - an interrupt before a return inside of `with` could keep the turn
        releases = prepared.releases
        questions, recalled = self._asked(prepared, fresh=fresh)
        missing = [place for place, each in enumerate(recalled) if each is None]
        if len(missing) != 1:
            released, notes = self._drawn_together(prepared, questions, recalled, missing, sql, fresh=fresh)
            return released, missing, notes
        (place,) = missing
        seen = self._seen(prepared, place, recalled)
        drawn, replayed, notes = self._drawn(
            releases[place],
            sql,
            questions[place],
            fresh=fresh,
            plain=plain and len(releases) == 1,
            seen=() if seen is None else (seen,),
        )
        released = [drawn if each is None else each for each in recalled]
        return released, [] if replayed else missing, notes

    def _seen(
        self, prepared: PreparedQuery, place: int, released: Sequence[ReleasedValues | None]
    ) -> PriorReleases | None:
        """Return what a release reads of prior ones. Raises PostprocessFailed, which holds their answers."""
        known = {at: each for at, each in enumerate(released) if each is not None}
        try:
            return prepared.prior(place, known, stores_of(self._catalog.public))
        except PostprocessFailed as error:
            raise error.with_answers(prepared.answers(known), PAID_FOR) from None

    def _charged(self, due: Sequence[Release], sql: str, opened: OpenTables) -> Entry:
        """Return one entry for several releases over open tables."""
        units = {each.table: each for release in due for each in units_read(release.query, self._catalog.tables)}
        return self._ledger.charge(
            sum((each.cost for each in due), FREE),
            sql,
            events=[event for each in due for event in each.events],
            parts=self._parts_of(due, opened),
            asked=RequestedTerms(by_rho=due[0].allowed.rho is not None),
            units=tuple(units[name] for name in sorted(units)),
        )

    def _drawn_together(
        self,
        prepared: PreparedQuery,
        questions: Sequence[Question | None],
        recalled: Sequence[ReleasedValues | None],
        places: Sequence[int],
        sql: str,
        *,
        fresh: bool,
    ) -> tuple[list[ReleasedValues], tuple[str, ...]]:
        """Draw all releases at these indices. They are charged in one entry before the first draw. Each is stored under
        that entry, in its own slot, before the next, which reads the stored values. Releases not drawn because of an
        error stay charged."""
        releases = prepared.releases
        for place in places:
            if prepared.needs(place) and all(recalled[at] is not None for at in prepared.needs(place)):
                self._seen(prepared, place, recalled)  # failures on known values are reported before the charge
        due = [releases[place] for place in places]
        with open_tables(due, self._stores, self._engine) as opened:
            self._check_same(due, [questions[place] for place in places], opened)
            charge = self._charged(due, sql, opened) if places else None
            released: list[ReleasedValues] = []
            notes: list[str] = []
            for place, (release, question, before) in enumerate(zip(releases, questions, recalled, strict=True)):
                if before is not None or charge is None:
                    assert before is not None  # there is a charge for all others
                    released.append(before)
                    continue
                seen = self._seen(prepared, place, released)
                asked = question if seen is None else self._question(release, seen, opened=opened)
                drawn = run(release, opened, *(() if seen is None else (seen,)))
                check_unchanged(release, self._contents, paid=True)
                slot = places.index(place)
                kept, more = self._replay.keep(asked, drawn, release, charge, claimed=not fresh, slot=slot)
                released.append(kept)
                notes += more
        return released, tuple(notes)
