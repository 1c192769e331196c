"""The Executor protocol, and the selection of an engine.

An engine is a package next to this file and an entry in ENGINES. The kind of a source and the owner's choice decide the
engine, never rows or sizes. So one additional row cannot switch a query to an engine whose results differ in the last
bits. All private tables of a query use one engine. Public tables are DataFrames and are passed to that engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from dpsql.core.exact import NO_KEY, ExactPlan, ExactTable
from dpsql.errors import InvalidArgument, InvalidSchema, as_written, did_you_mean
from dpsql.executors.duckdb.engine import DUCKDB
from dpsql.executors.pandas.engine import PANDAS
from dpsql.executors.resources import AUTO, Resources
from dpsql.executors.spark.engine import SPARK
from dpsql.plan.functions.regular_expressions import Pattern, register
from dpsql.schema.columns import TableSchema
from dpsql.schema.declaration import StoredColumn


class Executor(Protocol):
    """Executor of exact plans over its tables."""

    def execute(self, plan: ExactPlan, key: bytes = NO_KEY) -> ExactTable:
        """Return the exact integers of a plan; raises nothing that depends on rows. `key`: 32 random bytes that decide
        which rows of a unit beyond its contribution bounds are dropped. Any key is as private; a fresh one favours no
        row."""


class Store(Protocol):
    """The cells of one table, in the form that an engine reads."""

    @property
    def schema(self) -> TableSchema:
        """The declared schema of the table."""

    @property
    def source(self) -> Any:
        """The source of the store, or an equivalent one."""

    def stamps(self) -> object:
        """Return a value that changes whenever the rows may have changed: the current state of the files, `()` for rows
        in this process, or None if changes cannot be detected (as with a program that runs for each query). Reads no
        row. Raises InvalidSchema if a file is missing."""


class OpenSources(Protocol):
    """The sources of one query, opened before the query is charged and held until it is answered."""

    @property
    def stamps(self) -> Mapping[str, object]:
        """The stores' stamps when they were opened, by folded table name. Other tables are held in this process."""


class Engine(Protocol):
    """The interface of an engine package."""

    @property
    def name(self) -> str:
        """The engine's key in ENGINES."""

    def takes(self, source: object) -> bool:
        """Return whether this engine is the default for sources of this type. Reads nothing but the type."""

    def reads(self, source: object) -> bool:
        """Return whether this engine can read such a source if the owner chooses it. Reads nothing but the type."""

    def columns(self, source: Any) -> Iterable[StoredColumn]:
        """Return a source's columns: names, types and nullability as stored. Reads no row. Raises InvalidSchema."""

    def public_frame(self, source: Any, most: int) -> Any:
        """Return the rows of a public table as a DataFrame of at most `most` rows. Raises InvalidSchema."""

    def store(self, source: Any, schema: TableSchema) -> Any:
        """Return a Store of a source of this engine, or of a public table's DataFrame."""

    def together(self, sources: Mapping[str, object]) -> None:
        """Raise InvalidSchema if these sources, by table name, cannot be queried together."""

    def open(self, stores: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """Open the engine's own stores, by table name, as OpenSources; None if nothing has to be opened. Raises
        DPSQLError, before anything is charged, for each failure that can be detected without reading a row: missing,
        locked or changed files, a missing driver, a folder that cannot be written to."""

    def executor(self, stores: Mapping[str, Any], sources: Any = None) -> Executor:
        """Return an Executor over the engine's own stores, by table name. sources: the result of `open` for these
        stores; None: each run opens what it reads."""

    def within(self, resources: Resources) -> Engine:
        """Return the engine restricted to these resources. Raises InvalidArgument if the engine cannot respect them."""

    def lacks(self, plan: ExactPlan) -> str | None:
        """Return the feature of a plan that this engine lacks, as a noun for a message, or None if the engine can run
        the plan. Depends only on the plan, and is called before anything is charged. If a query chooses bounds, the
        plan is the one with the widest bounds."""


ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (PANDAS, DUCKDB, SPARK)}
MOST_PUBLIC = 10_000_000
"""Most rows of a public table that engines other than pandas load."""


def engine_of(source: object) -> Engine | None:
    """Return the default engine of a source, or None."""
    return next((engine for engine in ENGINES.values() if engine.takes(source)), None)


def public_frame(source: object) -> object:
    """Return a public table as the DataFrame for any engine, of at most MOST_PUBLIC rows. Raises InvalidSchema."""
    engine = engine_of(source)
    return source if engine is None or engine is PANDAS else engine.public_frame(source, MOST_PUBLIC)


def checked_word(word: object) -> str:
    """Return the owner's choice of an engine. Raises InvalidArgument."""
    words = (AUTO, *ENGINES)
    if not isinstance(word, str) or word not in words:
        near = did_you_mean(word, words) if isinstance(word, str) else ""
        known = ", ".join(f'"{each}"' for each in words)
        raise InvalidArgument(f"engine must be one of {known}, got {as_written(word)}.{near}")
    return word


def engine_for(private: Mapping[str, object], word: str = AUTO) -> Engine:
    """Return the one engine of these private sources, by table name: the owner's choice, or the default of their kind,
    or pandas without sources. Every engine takes DataFrames. Raises InvalidSchema if there would be several engines, or
    if the engine does not read a source."""
    engines = {name: engine for name, source in private.items() if (engine := engine_of(source)) is not None}
    if word != AUTO:
        for name, engine in engines.items():
            if not ENGINES[word].reads(private[name]):
                raise InvalidSchema(
                    f'{name} is read by the engine {engine.name}, and engine="{word}" is asked for.',
                    hint="Leave engine= out, and each table is read by the engine of its kind.",
                )
        ENGINES[word].together(private)
        return ENGINES[word]
    first = next(iter(engines.values()), PANDAS)
    for name, engine in engines.items():
        if engine.name != first.name:
            raise InvalidSchema(
                f"{name} is read by the engine {engine.name}, and tables beside it by {first.name}.",
                hint=_same_engine(engines.values()),
            )
    first.together(private)
    return first


def _same_engine(engines: Iterable[Engine]) -> str:
    """Return the hint for tables of several engines: each reads DataFrames, but no other engine's sources."""
    others = sorted({engine.name for engine in engines} - {PANDAS.name})
    if len(others) == 1:
        return f'Write engine="{others[0]}": it reads DataFrames and text files too.'
    return "All tables of people's rows that are asked about together have to be of one kind: engine= cannot help here."


def executor_of(stores: Mapping[str, Store], engine: Engine, sources: OpenSources | None = None) -> Executor:
    """Return an engine's executor over its own private stores and over public tables, converted for it."""
    return engine.executor({name: _brought(store, engine) for name, store in stores.items()}, sources)


def _brought(store: Store, engine: Engine) -> Any:
    own = not store.schema.public or engine.name == PANDAS.name
    return store if own else engine.store(store.source, store.schema)


def _pattern(text: str) -> Pattern:
    from dpsql.executors.regular import Re2Pattern  # most queries have no regular expression

    return Re2Pattern(text)


register(_pattern)
