"""Session: tables, a budget, and the sentence that a query is: prepare, charge, execute, privatise, finish."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NoReturn

import pandas as pd

from dpsql.answer import answer
from dpsql.errors import InvalidArgument, InvalidPrivacyParameter, InvalidSchema, LedgerError
from dpsql.executors.columns import ColumnStore
from dpsql.explain import Explanation
from dpsql.prepare import Prepared, Terms, prepare
from dpsql.privacy.ledger import Budget, Entry, Ledger
from dpsql.privacy.loss import PrivacyLoss, as_delta, as_epsilon, show
from dpsql.privacy.unit import Neighbours
from dpsql.public_tables import public_data, resolved
from dpsql.result import Result
from dpsql.schema_file import Schema
from dpsql.sources import read_table
from dpsql.sql.catalog import Catalog
from dpsql.table import Table, as_table


class Session:
    """Private questions about some tables, out of one budget.

    tables: name -> DataFrame or `dpsql.Table`. schema: a `dpsql.Schema` (the owner's file); its tables with a path are
    read. budget: `Budget(epsilon, delta)`; a schema's budget may be tightened here, not widened. neighbours:
    "unbounded" (default) or "bounded", for all queries of the session. max_epsilon: the most that one query may
    spend. epsilon, delta: what a query spends that does not say.

    Frames are held as shallow copies: what pandas writes to them later does not change the session's tables.
    Thread-safe. Raises InvalidSchema, InvalidArgument, InvalidPrivacyParameter.
    """

    def __init__(
        self,
        tables: Mapping[str, pd.DataFrame | Table] | None = None,
        *,
        schema: Schema | None = None,
        budget: Budget | None = None,
        accountant: str | None = None,
        neighbours: str | None = None,
        max_epsilon: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> None:
        if accountant not in (None, "basic"):
            raise InvalidArgument(f"accountant must be 'basic', got {accountant!r}.")
        self._ledger = Ledger(_budget(budget, schema), _neighbours(neighbours, schema))
        self._epsilon = None if epsilon is None else as_epsilon(epsilon)
        self._delta = Fraction(0) if delta is None else as_delta(delta)
        self._max_epsilon = None if max_epsilon is None else as_epsilon(max_epsilon, "max_epsilon")
        self._stores: dict[str, ColumnStore] = {}
        self._catalog = Catalog({})
        if tables is not None and not isinstance(tables, Mapping):
            raise InvalidArgument(
                f"tables must map names to DataFrames, got {type(tables).__name__}.", hint='Write {"people": df}.'
            )
        self._take({name: as_table(source) for name, source in (tables or {}).items()}, schema)

    def add(self, name: str, source: pd.DataFrame | Table) -> None:
        """One more table. A name is taken once: a table cannot be put in another's place. Raises InvalidSchema."""
        self._take({name: as_table(source)}, None)

    def query(
        self,
        sql: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        params: Mapping[str, Any] | None = None,
        strategy: str = "auto",
        mechanism: str = "auto",
    ) -> Result | Explanation:
        """Answer a query with noise, charged to the budget before any row is read.

        epsilon, delta: what the whole query may cost; `delta` is spent only where it is needed. params: values for
        `:name` in the text. strategy: "auto" or "split"; mechanism: "auto", "laplace" or "gaussian". Text that begins
        with EXPLAIN PRIVACY gives the Explanation. Raises a QueryRefused, InvalidPrivacyParameter, InvalidArgument or
        BudgetExceeded; all with nothing charged.
        """
        prepared = self._prepare(sql, epsilon, delta, params=params, strategy=strategy, mechanism=mechanism)
        if prepared.explain_only:
            return self._explanation(prepared)
        release = prepared.release
        self._ledger.charge(release.cost, str.__str__(sql))
        return answer(release, self._stores, self._footer(release.cost))

    def explain(
        self,
        sql: str,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        params: Mapping[str, Any] | None = None,
        strategy: str = "auto",
        mechanism: str = "auto",
    ) -> Explanation:
        """What `query` would do and cost. Free; reads no row; refuses what `query` would refuse, save for the
        budget."""
        prepared = self._prepare(sql, epsilon, delta, params=params, strategy=strategy, mechanism=mechanism)
        return self._explanation(prepared)

    @property
    def budget(self) -> Budget:
        """The most that all answers together may cost."""
        return self._ledger.budget

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation of every query here."""
        return self._ledger.neighbours

    @property
    def spent(self) -> PrivacyLoss:
        """What all answers so far have cost together."""
        return self._ledger.spent

    @property
    def remaining(self) -> PrivacyLoss:
        """What is left of the budget."""
        return self._ledger.remaining

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(table.name for table in self._catalog.tables.values())

    @property
    def catalog(self) -> Catalog:
        """The declared facts of the tables."""
        return self._catalog

    def ledger(self) -> tuple[Entry, ...]:
        """Every charge so far: the query's text and its loss."""
        return self._ledger.entries

    def _prepare(self, sql: str, epsilon: float | None, delta: float | None, **how: Any) -> Prepared:
        terms = Terms(
            None if epsilon is None else as_epsilon(epsilon),
            None if delta is None else as_delta(delta),
            self._epsilon,
            self._delta,
            self._max_epsilon,
        )
        return prepare(sql, self._catalog, self.neighbours, terms, **how)

    def _explanation(self, prepared: Prepared) -> Explanation:
        left, cost = self._ledger.remaining, prepared.release.cost
        after = PrivacyLoss(left.epsilon - cost.epsilon, left.delta - cost.delta) if cost.within(left) else None
        return Explanation(prepared.release, after)

    def _footer(self, cost: PrivacyLoss) -> str:
        left = self._ledger.remaining
        again = [
            left.epsilon // cost.epsilon if cost.epsilon else None,
            left.delta // cost.delta if cost.delta else None,
        ]
        counts = [int(each) for each in again if each is not None]
        most = min(counts, default=0)
        more = f" · {most or 'no'} more {'query' if most == 1 else 'queries'} like this" if counts else ""
        return f"spent {cost} · left epsilon {show(left.epsilon)} of {show(self.budget.loss.epsilon)}{more}"

    def _take(self, tables: Mapping[Any, Table], schema: Schema | None) -> None:
        """Add tables, and those of the schema that have a path; all of them or, where one is refused, none."""
        entries = {name.casefold(): entry for name, entry in schema.tables.items()} if schema else {}
        found: dict[str, Table] = {}
        for name, table in tables.items():
            if not isinstance(name, str) or not name:
                raise InvalidSchema(f"a table's name must be text, got {name!r}.")
            if name.casefold() in self._catalog.tables or name.casefold() in map(str.casefold, found):
                raise InvalidSchema(f'there is a table "{name}" already.')
            said = table.declaration
            if name.casefold() in entries:
                said = said.over(entries[name.casefold()].declaration)
            found[name] = Table.of(table.frame, said)
        for name, entry in (schema.tables if schema else {}).items():
            if name.casefold() not in map(str.casefold, found) and entry.path is not None:
                frame, said = read_table(entry.path, entry.declaration)
                found[name] = Table.of(frame, said)
        linked = resolved(found, self._catalog.tables)
        for name, table in found.items():
            self._stores[name] = ColumnStore(table.frame, linked[name.casefold()])
        self._catalog = Catalog(linked, public=public_data(self._stores))

    def __copy__(self) -> NoReturn:
        raise LedgerError("a session cannot be copied: each copy could spend the whole budget.")

    def __deepcopy__(self, _memo: object) -> NoReturn:
        self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a session cannot be pickled: each copy could spend the whole budget.")

    def __repr__(self) -> str:
        return f"Session(tables={list(self.tables)}, budget={self.budget}, spent={self.spent})"


def _budget(budget: object, schema: Schema | None) -> Budget:
    if budget is not None and not isinstance(budget, Budget):
        raise InvalidArgument(f"budget must be a dpsql.Budget, got {budget!r}.", hint="Write dpsql.Budget(epsilon=3).")
    declared = schema.budget if schema else None
    if budget is None and declared is None:
        raise InvalidPrivacyParameter(
            "a session needs a budget: how much may all its answers tell about one person?",
            hint="Write Session(tables, budget=dpsql.Budget(epsilon=3, delta=1e-6)).",
        )
    if budget is None or declared is None:
        return budget or declared  # type: ignore[return-value]
    if not budget.loss.within(declared.loss):
        raise InvalidPrivacyParameter(f"{budget} is more than the schema's {declared}.")
    return budget


def _neighbours(word: str | None, schema: Schema | None) -> Neighbours:
    declared = schema.neighbours if schema else None
    if word is None:
        return declared or Neighbours.UNBOUNDED
    said = Neighbours.of(word)
    if declared is not None and said is not declared:
        raise InvalidArgument(f"neighbours {str(said)!r} contradicts the schema's {str(declared)!r}.")
    return said
