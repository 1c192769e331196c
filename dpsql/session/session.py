"""Session: tables and a budget. A query is prepared, replayed or charged, executed, privatised, stored and finished."""

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
    """Private queries over tables, charged to one budget.

    Parameters
    ----------
    tables : mapping of str to DataFrame or `dpsql.Table`, optional
        Tables by name.
    schema : `dpsql.Schema`, optional
        The owner's file. Its tables with a path are read.
    budget : `Budget`, optional
        `Budget(epsilon, delta)`. May tighten a schema's budget, not widen it.
    accountant : {"auto", "basic", "zcdp"}, optional
        Composition of costs: "basic" (sums of epsilons and deltas), "zcdp" (sums of rhos, converted), or "auto"
        (default: a query is admitted if either admits it).
    neighbours : {"unbounded", "bounded"}, optional
        Neighbour relation of all queries; "unbounded" by default.
    max_epsilon : float, optional
        Upper limit of one query's epsilon.
    epsilon, delta : float, optional
        Defaults for queries that name none.
    ledger : path or False, optional
        File that records the spent budget for this and later sessions and other processes; created if missing. A
        session that names a ledger may leave out the budget and use the ledger's. Default: the schema's ledger (the one
        it names, or one next to its file). False: no file; spending counts in this process only.
    analyst : str, optional
        Name of the analyst, for budgets with shares.
    anchor : str, optional
        An earlier `ledger_anchor`: the ledger must still contain everything it contained then.
    engine : {"auto", "pandas", "duckdb", "spark"}, optional
        Engine that computes exact integers. "auto" (default): as in the owner's file, or by the kind of source. Answers
        are replayed whichever engine computed them.
    memory : str, optional
        DuckDB's memory limit, such as "4GB". Engines that cannot keep to `memory`, `threads` or `spill` refuse them.
    threads : int, optional
        Number of threads of DuckDB.
    spill : path, optional
        Folder for data that exceed DuckDB's memory. None: nothing is written.
    timezone : str, optional
        Time zone in which instants are shown ("Europe/Berlin", "+02:00"). None: as in the owner's file, or UTC.
    dialect : str, optional
        Default SQL dialect of queries ("bigquery", "postgres" ...). None: DuckDB's.
    auto_bounds : bool, optional
        Choose undeclared bounds privately, for a share of the query's epsilon. False, here or in the owner's file:
        refuse queries that need them.

    Raises
    ------
    InvalidSchema, InvalidArgument, InvalidPrivacyParameter, LedgerError

    Notes
    -----
    Repeated queries get the same numbers and are free (`query`). Frames are held as shallow copies: later writes by
    pandas do not change the session's tables. Thread-safe.
    """

    _all_held = False
    """True if files of tables without a version must stay unchanged too."""

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
        self._ledger = opened(wanted, schema, self._place, analyst=analyst, anchor=anchor)  # last: it creates a file
        self._begin(added)

    def _begin(self, added: Mapping[str, Table]) -> None:
        """Check that tables and ledger fit, and connect them. Close the ledger's file if they do not."""
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
        """Add a table under an unused name; tables cannot be replaced. Raises InvalidSchema, or LedgerError if the
        ledger holds another privacy unit for it."""
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

        Parameters
        ----------
        sql : str
            The query. With EXPLAIN PRIVACY in front, returns what `explain` returns; the annotation stays `Result`,
            since type checkers read no SQL.
        epsilon, delta : float, optional
            Privacy cost limit of the whole query; `delta` is spent only where needed.
        rho : float, optional
            Zero-concentrated cost, instead of epsilon.
        params : mapping, optional
            Values for `:name` in the text.
        fresh : bool, optional
            Draw new noise and pay again.
        strategy : {"auto", "split"}, optional
        mechanism : {"auto", "laplace", "gaussian"}, optional
            "auto": the one with the smaller error.
        error : float, optional
            Error limit, instead of epsilon: each answer keeps it with probability `confidence`. The least epsilon that
            reaches it is found and spent; `epsilon`, if given, is the upper limit.
        confidence : float, optional
            0.95 by default.
        dialect : str, optional
            SQL dialect of the text, such as "bigquery" or "postgres". It is translated to DuckDB's meaning, or refused.

        Raises
        ------
        QueryRefused, InvalidPrivacyParameter, InvalidArgument, BudgetExceeded, LedgerError
            Nothing is charged.

        Notes
        -----
        A query that this session has answered at the same loss gets the same numbers again, free. Over tables with a
        declared version, so does a query that any session of the ledger has answered.
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
        """Upper limit of the cost of all answers together."""
        return self._ledger.within or self._ledger.budget

    @property
    def accountant(self) -> str:
        """Composition of costs: "auto", "basic" or "zcdp"."""
        return self._ledger.rules.accountant

    @property
    def neighbours(self) -> Neighbours:
        """Neighbour relation of all queries of this session."""
        return self._ledger.neighbours

    @property
    def spent(self) -> SpentBudget:
        """Total cost of all answers so far: the smallest epsilon among the filters that still hold, with its delta, and
        the sum of rhos."""
        return self._ledger.spent

    @property
    def remaining(self) -> RemainingBudget:
        """Budget available to the next query: the largest pure epsilon, the delta of steps, and the largest rho."""
        return self._ledger.remaining

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(table.name for table in self._catalog.tables.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes from opening the ledger, such as that a file of an earlier format has adopted the privacy units of this
        session. The first answer shows them too."""
        return self._notes

    @property
    def catalog(self) -> Catalog:
        """Declared facts of the tables."""
        return self._catalog

    @property
    def ledger_path(self) -> Path | None:
        """File that records the spent budget. None: it counts in this process only."""
        return None if self._place.path is None else Path(self._place.path)

    def ledger(self) -> tuple[Entry, ...]:
        """Return every charge so far: time, analyst, query text, cost."""
        return self._ledger.entries

    @property
    def ledger_anchor(self) -> str:
        """Number and hash of the ledger's last line. A copy stored elsewhere later shows that no line was removed:
        `Session(..., ledger=path, anchor=...)`."""
        return self._ledger.anchor

    def export_ledger(self) -> str:
        """Return the ledger as JSON: rules, every line and its hash, numbers as exact fractions."""
        return self._ledger.to_json()

    def close(self) -> None:
        """Close the ledger's file."""
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
            from dpsql.session.remedies import who_is_hidden  # most queries are not refused

            left = self._ledger.remaining.delta
            raise who_is_hidden(refusal, self._asking(sql, how), terms, left) from None
        for release in prepared.releases:
            check_engine(release, self._engine)
        return prepared

    def _terms(self, asked: tuple[float | None, ...]) -> Terms:
        """Return a call's cost parameters with this session's defaults and limits."""
        return Terms.of(
            *asked,
            default_epsilon=self._epsilon,
            default_delta=self._delta,
            max_epsilon=self._max_epsilon,
            max_rho=self._max_rho,
            concentrated=self.accountant == "zcdp",
        )

    def _asking(self, sql: str, how: Mapping[str, Any]) -> Callable[[Terms], PreparedQuery]:
        """Return a function that plans the query on given terms."""
        return lambda terms: prepare(sql, self._catalog, self.neighbours, terms, **how)

    def _advised(
        self, refusal: BudgetExceeded, sql: str, asked: tuple[float | None, ...], **how: Any
    ) -> BudgetExceeded:
        """Return the refused charge with the expected error of the answers at the remaining budget."""
        from dpsql.session.remedies import how_far_off  # most queries are not refused

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
        """Charge and draw an answer, or take the answer that another session stored meanwhile. Return whether it was
        taken, and notes. A charge without an answer stays; sessions waiting for it ask again. seen: answers of the
        statement's prior releases."""
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
                    assert before is not None  # claim() returned None, so there is an answer, or recall() has raised
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
        """Add tables, and the schema's tables that have a path, and return them. If one is refused (also by an existing
        ledger), none is added."""
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
