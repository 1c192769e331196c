"""Executor, and which engine runs what.

An engine is a folder beside this file and a line in ENGINES. It follows from the kind of a source and the owner's word,
never from rows or sizes: all tables of people's rows that are asked about together are of one engine, and public
tables, which are DataFrames, are brought to it. So one row more cannot move a query to an engine with other last bits.
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
    """Runs exact plans over the tables that it was made for."""

    def execute(self, plan: ExactPlan, key: bytes = NO_KEY) -> ExactTable:
        """The exact integers of a plan. `key`: 32 fresh bytes that decide which rows of a unit beyond its limits are
        left out; any key is as private, a fresh one favours no row. Raises nothing that depends on rows."""


class Store(Protocol):
    """The cells of one table, held for an engine."""

    @property
    def schema(self) -> TableSchema:
        """What is declared of the table."""

    @property
    def source(self) -> Any:
        """What the store was made of, or the like."""

    def stamps(self) -> object:
        """A value that differs wherever the rows may differ: of rows in files, what the files are like now; `()` for
        rows that are held in this process; None where nothing can tell, as of a program that is run with each question.
        Reads no row. Raises InvalidSchema where a file is gone."""


class OpenSources(Protocol):
    """The sources of one question, opened before it is charged, and held until it is answered."""

    @property
    def stamps(self) -> Mapping[str, object]:
        """Of tables by folded name, their stores' stamps when they were opened. A table that is not here is held in
        this process."""


class Engine(Protocol):
    """What the folder of an engine gives."""

    @property
    def name(self) -> str:
        """Its key in ENGINES."""

    def takes(self, source: object) -> bool:
        """Whether it is a source of the kind that this engine reads; by its type alone."""

    def reads(self, source: object) -> bool:
        """Whether it is a source that this engine can read, where the owner's word asks for it; by its type alone."""

    def columns(self, source: Any) -> Iterable[StoredColumn]:
        """The columns of such a source: names, types and nullability as stored. Reads no row. Raises InvalidSchema."""

    def public_frame(self, source: Any, most: int) -> Any:
        """The rows of such a source as a DataFrame, at most so many: it is a public table. Raises InvalidSchema."""

    def store(self, source: Any, schema: TableSchema) -> Any:
        """A Store of such a source, or of a public table's DataFrame."""

    def together(self, sources: Mapping[str, object]) -> None:
        """Raises InvalidSchema where sources that it reads, by table name, cannot be asked about in one query."""

    def open(self, stores: Mapping[str, Any]) -> AbstractContextManager[Any]:
        """OpenSources of its own stores, by table name, or None where nothing is to be opened. What a run can meet
        without a row being read is met here, before anything is charged: files that are gone, locked or of other
        columns, a driver that is missing, a folder that cannot be written to. Raises DPSQLError."""

    def executor(self, stores: Mapping[str, Any], sources: Any = None) -> Executor:
        """An Executor over its own stores, found by table name. sources: what `open` gave for them; None: each run
        opens what it reads."""

    def within(self, resources: Resources) -> Engine:
        """The engine that uses no more of the machine than the owner says. Raises InvalidArgument where it cannot keep
        to that."""

    def lacks(self, plan: ExactPlan) -> str | None:
        """What a plan asks for that this engine has not, as a noun for a message; None where it can run the plan. By
        the plan alone, and before anything is charged: where a query chooses bounds, of the plan with the widest."""


ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (PANDAS, DUCKDB, SPARK)}
MOST_PUBLIC = 10_000_000
"""Rows of a public table that an engine other than pandas' holds."""


def engine_of(source: object) -> Engine | None:
    """The engine that reads a source of this kind; None where none does."""
    return next((engine for engine in ENGINES.values() if engine.takes(source)), None)


def public_frame(source: object) -> object:
    """A public table as the DataFrame that is brought to every engine: it is about nobody, so its rows may travel, up
    to MOST_PUBLIC of them. Raises InvalidSchema."""
    engine = engine_of(source)
    return source if engine is None or engine is PANDAS else engine.public_frame(source, MOST_PUBLIC)


def checked_word(word: object) -> str:
    """The owner's word for an engine. Raises InvalidArgument."""
    words = (AUTO, *ENGINES)
    if not isinstance(word, str) or word not in words:
        near = did_you_mean(word, words) if isinstance(word, str) else ""
        known = ", ".join(f'"{each}"' for each in words)
        raise InvalidArgument(f"engine must be one of {known}, got {as_written(word)}.{near}")
    return word


def engine_for(private: Mapping[str, object], word: str = AUTO) -> Engine:
    """The one engine of these sources of people's rows, by table name: the owner's word, else that of their kind;
    pandas where there are none. Every engine takes DataFrames. Raises InvalidSchema where there would be several, or
    the engine does not read a source."""
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
    """What to write where tables have several engines: all read DataFrames, and no other's sources."""
    others = sorted({engine.name for engine in engines} - {PANDAS.name})
    if len(others) == 1:
        return f'Write engine="{others[0]}": it reads DataFrames and text files too.'
    return "All tables of people's rows that are asked about together have to be of one kind: engine= cannot help here."


def executor_of(stores: Mapping[str, Store], engine: Engine, sources: OpenSources | None = None) -> Executor:
    """An engine's executor over its own stores of people's rows, and over public tables, which are brought to it."""
    return engine.executor({name: _brought(store, engine) for name, store in stores.items()}, sources)


def _brought(store: Store, engine: Engine) -> Any:
    own = not store.schema.public or engine.name == PANDAS.name
    return store if own else engine.store(store.source, store.schema)


def _pattern(text: str) -> Pattern:
    from dpsql.executors.regular import Re2Pattern  # most queries have no regular expression

    return Re2Pattern(text)


register(_pattern)
