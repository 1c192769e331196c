"""query: one private answer about one or more DataFrames."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from dpsql.answer.result import Result
from dpsql.core.unit import Neighbours
from dpsql.errors import PostprocessFailed, UnknownGroups
from dpsql.executors.base import Engine, Store, checked_word, engine_for
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.engine import PANDAS
from dpsql.executors.resources import Resources
from dpsql.release.release import ReleasedValues
from dpsql.schema.argument_names import checked_names
from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.session.prepare import Terms, prepare
from dpsql.session.prepared_query import PreparedQuery, cost_in_words
from dpsql.session.run import check_engine, open_tables, run
from dpsql.session.tables.call_tables import described
from dpsql.session.tables.public_tables import chooses_bounds, public_data, shown_in, stores_of, zone_of
from dpsql.session.tables.table import Table
from dpsql.session.unit_hints import units_that_may_be_missing
from dpsql.sources.frames import with_categories
from dpsql.sql.names.catalog import Catalog

if TYPE_CHECKING:
    from dpsql.schema.argument_types import BoundWords, KeyWords, Scalars
    from dpsql.session.tables.table import Source


@checked_names
def query(
    data: Source | Mapping[str, Source],
    sql: str,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    params: Scalars | None = None,
    bounds: BoundWords | None = None,
    keys: KeyWords | None = None,
    types: Mapping[str, str] | None = None,
    nullable: Mapping[str, bool] | None = None,
    unit: str | None = None,
    max_rows: int | None = None,
    max_groups: int | None = None,
    neighbours: str = "unbounded",
    strategy: str = "auto",
    mechanism: str = "auto",
    error: float | None = None,
    confidence: float | None = None,
    engine: str = "auto",
    memory: str | None = None,
    threads: int | None = None,
    spill: str | os.PathLike[str] | None = None,
    timezone: str | None = None,
    dialect: str | None = None,
    auto_bounds: bool = True,
) -> Result:
    """Return one private answer. Nothing is remembered: epsilons add up over calls. `Session` keeps count under a
    budget.

    Parameters
    ----------
    data : DataFrame, another source that `Table` takes, or mapping of str to these or to `Table`
        A single source stands for the query's one table name. By default each row is a different person.
    epsilon : float, optional
        Privacy cost of the whole query. OPTIONS in the text may lower epsilon and delta.
    delta : float, optional
        Needed for GROUP BY with unknown keys and for Gaussian noise; spent only there.
    rho : float, optional
        Zero-concentrated cost, instead of epsilon.
    params : mapping, optional
        Values for `:name` in the text.
    bounds, keys, types, nullable : mapping of column, optional
        (lower, upper); list of group values, or "categories" for those of its dtype; type; whether it may hold NULL.
        Declare these from prior knowledge, never from the data.
    unit : str, optional
        Column that identifies the privacy unit. None: each row is a different person.
    max_rows, max_groups : int, optional
        Contribution bounds of one unit.
    neighbours : {"unbounded", "bounded"}
        "unbounded" protects a person's presence, "bounded" the content of a person's rows. With "bounded" and rows as
        units, the number of rows is public.
    error : float, optional
        Error limit, instead of epsilon: each answer keeps it with probability `confidence` (0.95 by default). The least
        epsilon that reaches it is found and spent; `epsilon`, if given, is the upper limit.
    strategy : {"auto", "split"}
    mechanism : {"auto", "laplace", "gaussian"}
        "auto": the one with the smaller error.
    engine : {"auto", "pandas", "duckdb", "spark"}
        Engine that computes exact integers. "auto": by the kind of source; pandas for its frames.
    memory, threads, spill : str, int, path, optional
        DuckDB's limits: a size such as "4GB", the number of threads, and a folder for data that exceed memory (None:
        nothing is written).
    timezone : str, optional
        Time zone in which columns of instants are shown. None: UTC.
    dialect : str, optional
        SQL dialect of the text, such as "bigquery" or "postgres". None: DuckDB's.
    auto_bounds : bool
        Choose undeclared bounds privately, for a share of the query's epsilon. False: refuse queries that need them.

    Returns
    -------
    Result
        An Explanation if the text begins with EXPLAIN PRIVACY (type checkers, which read no SQL, see a Result).

    Raises
    ------
    QueryRefused, InvalidPrivacyParameter, InvalidSchema, InvalidArgument
        Before any row is read.
    """
    relation = Neighbours.of(neighbours)
    word, resources = checked_word(engine), Resources.of(memory, threads, spill)
    terms = Terms.of(epsilon, delta, rho, error, confidence)
    only = next(iter(data.values()), None) if isinstance(data, Mapping) and len(data) == 1 else data
    keys = with_categories(keys, only.frame if isinstance(only, Table) else only)
    words = {"bounds": bounds, "keys": keys, "types": types, "nullable": nullable}
    limits = {"unit": unit, "max_rows": max_rows, "max_groups": max_groups}
    opened = _opened(data, words | limits, word, resources, zone_of(timezone, None))
    opened = replace(opened, catalog=replace(opened.catalog, auto_bounds=chooses_bounds(auto_bounds)))
    how = {"params": params, "strategy": strategy, "mechanism": mechanism, "dialect": dialect}
    prepared = _prepared(sql, opened, relation, terms, how)
    for each in prepared.releases:
        check_engine(each, opened.engine)
    if prepared.explain_only:
        return cast("Result", prepared.explanation)
    return _answer(prepared, opened)


@dataclass(frozen=True, slots=True)
class _CallTables:
    """Tables of one call: declarations, stores of rows, and the engine."""

    catalog: Catalog
    stores: Mapping[str, Store]
    engine: Engine


def _opened(data: Any, words: Mapping[str, Any], engine: str, resources: Resources, zone: str) -> _CallTables:
    frames, tables = described(data, words)
    tables = shown_in(tables, zone)
    private = {name: frame for name, frame in frames.items() if not tables[name.casefold()].public}
    runs = engine_for(private, engine).within(resources)
    stores = {
        name: _store(frame, tables[name.casefold()], runs if name in private else PANDAS)
        for name, frame in frames.items()
    }
    public = public_data(stores)
    return _CallTables(Catalog(tables, any_name=not isinstance(data, Mapping), public=public), stores, runs)


def _prepared(
    sql: str, opened: _CallTables, relation: Neighbours, terms: Terms, how: Mapping[str, Any]
) -> PreparedQuery:
    """Return the prepared query. Raises as `prepare`; UnknownGroups also says which groups would be hidden."""

    def ask(terms: Terms) -> PreparedQuery:
        return prepare(sql, opened.catalog, relation, terms, **how)

    try:
        return ask(terms)
    except UnknownGroups as refusal:
        from dpsql.session.remedies import who_is_hidden  # most queries are not refused

        raise who_is_hidden(refusal, ask, terms) from None


def _answer(prepared: PreparedQuery, opened: _CallTables) -> Result:
    released: list[ReleasedValues] = []
    public = opened.catalog.public
    with open_tables(prepared.releases, opened.stores, opened.engine) as tables:
        for place, release in enumerate(prepared.releases):
            try:
                prior = prepared.prior(place, dict(enumerate(released)), stores_of(public))
            except PostprocessFailed as error:
                held = prepared.answers(dict(enumerate(released)))
                raise error.with_answers(held, "Ask again with other SQL over them.") from None
            released.append(run(release, tables, prior))
    footer = f"spent {cost_in_words(prepared.releases)} (calls add up; dpsql.Session keeps count)"
    notes = units_that_may_be_missing(opened.catalog.tables.values())
    again = "dpsql.query remembers nothing: a Session asks again for nothing."
    return prepared.result(released, footer, notes=notes, public=public, again=again)


_stores: dict[int, ColumnStore] = {}
_lock = threading.Lock()


def _store(frame: Any, schema: TableSchema, engine: Engine) -> Store:
    """Return a store for this call. Text codes of the same frame object are reused while the frame lives and its cells
    are the same memory."""
    store: Store = engine.store(frame, schema)
    if not isinstance(store, ColumnStore):
        return store
    key = id(frame)
    with _lock:
        before = _stores.get(key)
        if before is None:
            weakref.finalize(frame, _stores.pop, key, None)
        else:
            store.share_caches(before)
        _stores[key] = store
    return store
