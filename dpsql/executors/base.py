"""Executor, and which engine runs what.

An engine is a folder beside this file and a line in ENGINES. It follows from the kind of a source, never from rows or
sizes: all tables of people's rows that are asked about together are of one engine, and public tables, which are
DataFrames, are brought to it. So one row more cannot move a query to an engine with other last bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from dpsql.core.exact import NO_KEY, ExactPlan, ExactTable
from dpsql.errors import InvalidSchema
from dpsql.executors.pandas.engine import PANDAS
from dpsql.schema.columns import TableSchema
from dpsql.schema.declaration import Stored


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


class Engine(Protocol):
    """What the folder of an engine gives."""

    @property
    def name(self) -> str:
        """Its key in ENGINES."""

    def takes(self, source: object) -> bool:
        """Whether it is a source of the kind that this engine reads; by its type alone."""

    def columns(self, source: Any) -> Iterable[Stored]:
        """The columns of such a source: names, types and nullability as stored. Reads no row. Raises InvalidSchema."""

    def store(self, source: Any, schema: TableSchema) -> Any:
        """A Store of such a source, or of a public table's DataFrame."""

    def executor(self, stores: Mapping[str, Any]) -> Executor:
        """An Executor over its own stores, found by table name."""

    def lacks(self, plan: ExactPlan) -> str | None:
        """What a plan asks for that this engine has not, as a noun for a message; None where it can run the plan. By
        the plan alone, and before anything is charged: where a query chooses bounds, of the plan with the widest."""


ENGINES: Mapping[str, Engine] = {engine.name: engine for engine in (PANDAS,)}


def engine_of(source: object) -> Engine | None:
    """The engine that reads a source of this kind; None where none does."""
    return next((engine for engine in ENGINES.values() if engine.takes(source)), None)


def engine_for(private: Mapping[str, object]) -> Engine:
    """The one engine of these sources of people's rows, by table name; pandas where there are none. Raises
    InvalidSchema where there would be several."""
    engines = {name: engine for name, source in private.items() if (engine := engine_of(source)) is not None}
    first = next(iter(engines.values()), PANDAS)
    for name, engine in engines.items():
        if engine.name != first.name:
            raise InvalidSchema(
                f"{name} is read by the engine {engine.name}, and tables beside it by {first.name}.",
                hint="All tables of people's rows that are asked about together have to be of one kind.",
            )
    return first


def executor_of(stores: Mapping[str, Store]) -> Executor:
    """The executor of the tables' engine over all of them, public ones brought to it."""
    engine = engine_for({name: store.source for name, store in stores.items() if not store.schema.public})
    return engine.executor({name: _brought(store, engine) for name, store in stores.items()})


def _brought(store: Store, engine: Engine) -> Any:
    own = engine_of(store.source)
    return store if own is not None and own.name == engine.name else engine.store(store.source, store.schema)
