"""Session: tables, a budget, and the sentence that a query is: prepare, replay or charge, execute, privatise, keep,
finish."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, cast

from dpsql.answer.result import Result
from dpsql.core.conversion import rho_for
from dpsql.core.ledger.budget import Budget
from dpsql.core.ledger.exceeded import RequestedTerms
from dpsql.core.ledger.filters import RemainingBudget, SpentBudget
from dpsql.core.ledger.ledger import Ledger
from dpsql.core.ledger.lines import Entry
from dpsql.core.loss import as_delta, as_epsilon
from dpsql.core.unit import Neighbours
from dpsql.errors import BudgetExceeded, InvalidArgument, LedgerError, UnknownGroups, as_written
from dpsql.executors.base import Engine, Store, engine_for
from dpsql.executors.pandas.engine import PANDAS
from dpsql.executors.resources import Resources
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.argument_names import checked_methods
from dpsql.session.cache.cached_answers import Question, Replay
from dpsql.session.costs import paid_again
from dpsql.session.dialects import checked_dialect
from dpsql.session.ledger_setup import LedgerSettings, Place, check, opened
from dpsql.session.multi_step.queries import SessionSteps
from dpsql.session.owner_file import Schema
from dpsql.session.prepare import Terms, prepare
from dpsql.session.run import check_engine, open_tables, run
from dpsql.session.tables.declared_tables import adding_up, all_tables, named
from dpsql.session.tables.file_versions import Contents, catalog_of, check_unchanged, versioned
from dpsql.session.tables.public_tables import chooses_bounds, public_data, resolved, shown_in, zone_of
from dpsql.session.tables.table import Table, as_table
from dpsql.session.tables.table_states import read_once
from dpsql.session.tables.table_units import units_of, units_read
from dpsql.session.unit_hints import units_that_may_be_missing
from dpsql.sql.names.catalog import Catalog

if TYPE_CHECKING:
    from dpsql.schema.argument_types import Scalars
    from dpsql.session.multi_step.prior_releases import PriorReleases
    from dpsql.session.prepared_query import PreparedQuery
    from dpsql.session.tables.table import Source


@checked_methods
class Session(SessionSteps):
    """Private questions about some tables, out of one budget.

    tables: name -> DataFrame or `dpsql.Table`. schema: a `dpsql.Schema` (the owner's file); its tables with a path are
    read. budget: `Budget(epsilon, delta)`; a schema's budget may be tightened here, not widened. accountant: how costs
    add up: "basic" (sums of epsilons and deltas), "zcdp" (sums of rhos, converted), or "auto" (default: a query is
    admitted if either would admit it). neighbours: "unbounded" (default) or "bounded", for all queries. max_epsilon:
    the most that one query may spend. epsilon, delta: what a query spends that does not say. auto_bounds: a query that
    needs bounds that nobody declared chooses them privately, for a share of its epsilon; False, here or in the owner's
    file: it is refused.

    ledger: a file that keeps what was spent, for this and later sessions, and other processes; made where there is
    none; a session that names one may leave out the budget and take the file's. Left out, it is the schema's: the one
    that it names, or one beside its file; False: none, what is spent counts in this process only. analyst: whose
    queries these are, for budgets with shares. anchor: an earlier `ledger_anchor`: the ledger has to hold what it held
    then.

    engine: what adds exact integers up, "pandas", "duckdb" or "spark"; "auto" (default) is what the owner's file says,
    else what follows from the kind of source. It is no part of a question: an answer is replayed whatever engine gave
    it.

    memory, threads, spill: what DuckDB may use: a size such as "4GB", how many threads, and a folder for what memory
    has no room for (None: nothing is written). An engine that would not keep to them refuses them. timezone: in which
    instants are shown ("Europe/Berlin", "+02:00"; None: as the owner's file says, else UTC). dialect: whose SQL
    queries are in that do not say ("bigquery", "postgres" ...; None: DuckDB's).

    A query that was answered before is answered again with the same numbers, at no cost (`query`). Frames are held as
    shallow copies: what pandas writes to them later does not change the session's tables. Thread-safe. Raises
    InvalidSchema, InvalidArgument, InvalidPrivacyParameter, LedgerError.
    """

    _all_held = False
    """Whether files of tables without a version have to stay as they are too."""

    def __init__(
        self,
        tables: Mapping[str, Source] | None = None,
        *,
        schema: Schema | None = None,
        budget: Budget | None = None,
        accountant: str | None = None,
        neighbours: str | None = None,
        max_epsilon: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        ledger: str | os.PathLike[str] | Literal[False] | None = None,
        analyst: str | None = None,
        anchor: str | None = None,
        engine: str = "auto",
        memory: str | None = None,
        threads: int | None = None,
        spill: str | os.PathLike[str] | None = None,
        timezone: str | None = None,
        dialect: str | None = None,
        auto_bounds: bool = True,
    ) -> None:
        self._engine_word, self._resources = adding_up(engine, Resources.of(memory, threads, spill), schema)
        self._zone = zone_of(timezone, schema)
        self._dialect = None if dialect is None else checked_dialect(dialect)
        self._epsilon = None if epsilon is None else as_epsilon(epsilon)
        self._delta = Fraction(0) if delta is None else as_delta(delta)
        self._max_epsilon = None if max_epsilon is None else as_epsilon(max_epsilon, "max_epsilon")
        self._stores: dict[str, Store] = {}
        self._engine: Engine = PANDAS
        self._catalog = Catalog({}, auto_bounds=chooses_bounds(auto_bounds, schema))
        self._unsaid: tuple[str, ...] = ()
        self._contents: Contents = {}
        given, self._place = named(tables), Place.of(ledger, schema)
        check(wanted := LedgerSettings(budget, accountant, neighbours), schema)
        added = self._take(given, schema)
        self._ledger = opened(wanted, schema, self._place, analyst=analyst, anchor=anchor)  # last: it makes a file
        self._begin(added)

    def _begin(self, added: Mapping[str, Table]) -> None:
        """Bring tables and ledger together; where they do not fit, the ledger's file is let go of."""
        try:
            self._catalog, self._contents = catalog_of(self._catalog, added, self._ledger, all_held=self._all_held)
            self._notes = self._ledger.take_units(units_of(self._catalog.tables))
        except BaseException:
            self._ledger.close()
            raise
        self._unsaid = (*self._notes, *self._unsaid)
        self._replay = Replay(self._ledger)
        at = self.budget.filter(self.accountant).conversion
        self._max_rho = rho_for(self._max_epsilon, at) if self._max_epsilon is not None and at else None

    def add(self, name: str, source: Source) -> None:
        """One more table. A name is taken once: a table cannot be put in another's place. Raises InvalidSchema, or
        LedgerError where the ledger holds another privacy unit of it."""
        self._take({name: as_table(source)}, None, self._ledger)

    def query(
        self,
        sql: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        params: Scalars | None = None,
        fresh: bool = False,
        strategy: str = "auto",
        mechanism: str = "auto",
        error: float | None = None,
        confidence: float | None = None,
        dialect: str | None = None,
    ) -> Result:
        """Answer a query with noise, charged to the budget before any row is read.

        epsilon, delta: what the whole query may cost; `delta` is spent only where it is needed. rho: what it may cost
        in zero-concentrated privacy, in place of epsilon. error: in place of epsilon too, how far answers may be off,
        each with probability `confidence` (0.95 if left out): the least epsilon that reaches it is found and spent
        (then epsilon, if given, is the most that may be). params: values for `:name` in the text. strategy: "auto" or
        "split"; mechanism: "laplace", "gaussian", or "auto", whichever has less error. dialect: whose SQL the text is,
        as "bigquery" or "postgres"; it is read by that dialect's words and brought to DuckDB's meaning, or refused.
        Text that begins with EXPLAIN PRIVACY gives what `explain` gives; type checkers, which read no SQL, are told of
        a Result.

        A query that this session has answered at the same loss is answered with the same numbers again, free; over
        tables with a declared version also one that any session of the ledger has answered. fresh: draw anew, and pay.

        Raises a QueryRefused, InvalidPrivacyParameter, InvalidArgument, BudgetExceeded or LedgerError; all with nothing
        charged.
        """
        if not isinstance(fresh, bool):
            raise InvalidArgument(f"fresh must be True or False, got {as_written(fresh)}.")
        terms = (epsilon, delta, rho, error, confidence)
        prepared = self._prepare(sql, terms, params=params, strategy=strategy, mechanism=mechanism, dialect=dialect)
        if prepared.explain_only:
            return cast("Result", self._explanation(prepared))
        try:
            return self._answer(prepared, str.__str__(sql), fresh=fresh, plain=not params)
        except BudgetExceeded as refusal:
            if prepared.postprocess is not None:
                raise
            choice = prepared.releases[0].choice
            law = mechanism if choice is None else choice.chosen
            how = {"params": params, "strategy": strategy, "mechanism": law, "dialect": dialect or self._dialect}
            raise self._advised(refusal, sql, terms, **how) from None

    @property
    def budget(self) -> Budget:
        """The most that all answers together may cost."""
        return self._ledger.within or self._ledger.budget

    @property
    def accountant(self) -> str:
        """How costs add up: "auto", "basic" or "zcdp"."""
        return self._ledger.rules.accountant

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation of every query here."""
        return self._ledger.neighbours

    @property
    def spent(self) -> SpentBudget:
        """What all answers so far have cost together: the smaller epsilon of the filters that still hold, with its
        delta, and the sum of rhos."""
        return self._ledger.spent

    @property
    def remaining(self) -> RemainingBudget:
        """What the next query may have: the largest pure epsilon, the delta of steps, and the largest rho."""
        return self._ledger.remaining

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(table.name for table in self._catalog.tables.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was to be said when the ledger was opened, such as that a file of an earlier format has taken the
        privacy units of this session. The first answer says it too."""
        return self._notes

    @property
    def catalog(self) -> Catalog:
        """The declared facts of the tables."""
        return self._catalog

    @property
    def ledger_path(self) -> Path | None:
        """The file that keeps what is spent; None: it counts in this process only."""
        return None if self._place.path is None else Path(self._place.path)

    def ledger(self) -> tuple[Entry, ...]:
        """Every charge so far: when, whose, the query's text, its cost."""
        return self._ledger.entries

    @property
    def ledger_anchor(self) -> str:
        """The number and hash of the ledger's last line. Kept elsewhere, it shows later that nothing was taken away:
        `Session(..., ledger=path, anchor=...)`."""
        return self._ledger.anchor

    def export_ledger(self) -> str:
        """The ledger as JSON: rules, every line and its hash, numbers as exact fractions."""
        return self._ledger.to_json()

    def close(self) -> None:
        """Let go of the ledger's file."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prepare(self, sql: str, asked: tuple[float | None, ...], **how: Any) -> PreparedQuery:
        terms = self._terms(asked)
        how["dialect"] = how.get("dialect") or self._dialect
        try:
            prepared = prepare(sql, self._catalog, self.neighbours, terms, **how)
        except UnknownGroups as refusal:
            from dpsql.session.remedies import who_is_hidden  # most questions are not refused

            left = self._ledger.remaining.delta
            raise who_is_hidden(refusal, self._asking(sql, how), terms, left) from None
        for release in prepared.releases:
            check_engine(release, self._engine)
        return prepared

    def _terms(self, asked: tuple[float | None, ...]) -> Terms:
        """What a call says of its cost, with this session's defaults and limits."""
        return Terms.of(
            *asked,
            default_epsilon=self._epsilon,
            default_delta=self._delta,
            max_epsilon=self._max_epsilon,
            max_rho=self._max_rho,
            concentrated=self.accountant == "zcdp",
        )

    def _asking(self, sql: str, how: Mapping[str, Any]) -> Callable[[Terms], PreparedQuery]:
        """Plans a question on any terms."""
        return lambda terms: prepare(sql, self._catalog, self.neighbours, terms, **how)

    def _advised(
        self, refusal: BudgetExceeded, sql: str, asked: tuple[float | None, ...], **how: Any
    ) -> BudgetExceeded:
        """The refusal of a charge, with how far off answers would be for what is left."""
        from dpsql.session.remedies import how_far_off  # most questions are not refused

        return how_far_off(refusal, self._asking(sql, how), self._terms(asked))

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
        """Charge and draw an answer, or take that which another session was given meanwhile: whether it was so, and
        notes. A charge that comes to no answer stays, and whoever waited for it asks anew. seen: what earlier releases
        of the statement showed."""
        ledger = self._ledger
        also = "" if release.choice is None else f", mechanism={release.choice.chosen!r}"
        asked = RequestedTerms(by_rho=release.allowed.rho is not None, also=also, within=release.goal is not None)
        units = units_read(release.query, self._catalog.tables)
        claimed = not fresh and question is not None and question.lasting
        again: tuple[str, ...] = ()
        if question is not None and question.unversioned and plain and not fresh and self._place.path is not None:
            again = paid_again(ledger.entries, Entry("", ledger.analyst, sql, release.cost), question.unversioned)
        how: dict[str, Any] = {"events": release.events, "asked": asked, "units": units}
        with open_tables((release,), self._stores, self._engine) as opened:
            self._check_same((release,), (question,), opened)
            how["parts"] = self._parts(release, opened)
            try:
                if question is not None and claimed:
                    charge = ledger.claim(question.key, release.cost, sql, **how)
                else:
                    charge = ledger.charge(release.cost, sql, **how)
                if charge is None:
                    before = self._replay.recall(question, release)
                    assert before is not None  # there is an answer, or this has raised
                    return before, True, ()
                released = run(release, opened, *seen)
                check_unchanged(release, self._contents, paid=True)
                shown, notes = self._replay.keep(question, released, release, charge, claimed=claimed)
            except BaseException:  # an interrupt may come before the charge is known here
                if question is not None and claimed:
                    ledger.give_up(question.key)
                raise
        return shown, False, (*again, *notes)

    def _take(
        self, tables: Mapping[Any, Table], schema: Schema | None, ledger: Ledger | None = None
    ) -> dict[str, Table]:
        """Add tables, and those of the schema that have a path; all of them or, where one is refused (by the ledger
        too, where there is one already), none. Returns them."""
        added = all_tables(tables, schema, self._catalog.tables)
        linked = shown_in(resolved(added, self._catalog.tables), self._zone)
        before = {name: store.source for name, store in self._stores.items() if not store.schema.public}
        new = {name: table.frame for name, table in added.items() if not linked[name.casefold()].public}
        engine = engine_for(before | new, self._engine_word)
        engine = engine.within(self._resources) if before or new else engine
        if ledger is not None:
            ledger.check_units(units_of(linked))
        linked, contents = versioned(linked, added, ledger, all_held=self._all_held)
        for name, table in added.items():
            schema_of = linked[name.casefold()]
            self._stores[name] = (PANDAS if schema_of.public else engine).store(table.frame, schema_of)
        self._unsaid = (*self._unsaid, *units_that_may_be_missing(linked[name.casefold()] for name in added))
        self._engine = engine
        self._catalog = replace(self._catalog, tables=linked, public=public_data(self._stores))
        self._contents |= contents
        self._read_once = {**self._read_once, **read_once(added)}
        return added

    def __copy__(self) -> NoReturn:
        raise LedgerError("a session cannot be copied: each copy could spend the whole budget.")

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a session cannot be pickled: each copy could spend the whole budget.")

    def __repr__(self) -> str:
        return f"Session(tables={list(self.tables)}, budget={self.budget}, spent={self.spent})"
