"""Tables of queries: resolved, linked, and completed from public rows, which are read once.

A public table describes no person, so its contents may decide a query's meaning: its values are public keys, its
minimum and maximum are bounds, and its owner's declarations of keys are checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from dpsql.errors import InvalidArgument, as_written
from dpsql.executors.base import Store, engine_of
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.engine import PANDAS
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Expr
from dpsql.plan.nodes import Source
from dpsql.schema.column_declarations import about
from dpsql.schema.columns import UTC, Key, TableSchema, Type
from dpsql.schema.declaration import link, resolve
from dpsql.session.tables.table import Table
from dpsql.sql.names.catalog import PublicValues

if TYPE_CHECKING:
    from dpsql.session.tables.public_data import PublicData

Tables = Mapping[str, Table]


def resolved(sources: Tables, known: Mapping[str, TableSchema] | None = None) -> dict[str, TableSchema]:
    """Return the schemas of tables by folded name, with the known ones. No private row is read.

    Raises InvalidSchema if a declaration does not fit its table, or a unit's path leads nowhere.
    """
    schemas = dict(known or {})
    for name, source in sources.items():
        engine = engine_of(source.frame) or PANDAS
        declared = source.declaration
        rows = len(source.frame) if declared.table.public else None
        with about(name):
            columns, drops = engine.columns(source.frame), source.can_drop_rows
            schema = resolve(name, columns, declared, rows=rows, can_drop_rows=drops)
        if schema.public:
            from dpsql.session.tables.public_data import published  # loaded with the first public table

            schema = published(schema, source)
        schemas[name.casefold()] = schema
    return link(schemas)


def public_data(stores: Mapping[str, Store]) -> PublicData | NoPublicTables:
    """Return the contents of the stores that hold public tables."""
    public = public_stores(stores)
    if not public:
        return NoPublicTables()
    from dpsql.session.tables.public_data import PublicData  # as above

    return PublicData(public)


def public_stores(stores: Mapping[str, Store]) -> dict[str, ColumnStore]:
    """Return the stores of public tables by folded name: DataFrames, whatever the others are."""
    public = ((name, store) for name, store in stores.items() if store.schema.public)
    return {name.casefold(): store for name, store in public if isinstance(store, ColumnStore)}


def stores_of(public: PublicValues | None) -> Mapping[str, ColumnStore]:
    """Return the stores of public tables, by folded name."""
    if public is None or isinstance(public, NoPublicTables):
        return {}
    from dpsql.session.tables.public_data import PublicData  # as above

    return public.stores if isinstance(public, PublicData) else {}


class NoPublicTables:
    """Contents of public tables if none is declared: a text may still have tables of constants."""

    version = -1

    def of(self, source: Source, expr: Expr) -> tuple[Key, ...] | None:
        """As in `PublicValues`."""
        return self._constants.of(source, expr)

    def together(self, source: Source, exprs: Sequence[Expr]) -> tuple[tuple[Key, ...], ...] | None:
        """As in `PublicValues`."""
        return self._constants.together(source, exprs)

    def aggregate(self, source: Source, aggregation: Aggregation, kind: Type) -> Key:
        """As in `PublicValues`."""
        return self._constants.aggregate(source, aggregation, kind)

    @cached_property
    def _constants(self) -> PublicData:
        from dpsql.session.tables.public_data import PublicData  # as above

        return PublicData({})


def zone_of(timezone: str | None, schema: object = None) -> str:
    """Return the time zone of the caller, or of the owner's file, or UTC. Raises InvalidArgument."""
    if timezone is not None:
        from dpsql.schema.zones import checked_zone  # most callers name none

        return checked_zone(timezone)
    return str(getattr(schema, "timezone", UTC))


def shown_in(tables: dict[str, TableSchema], zone: str) -> dict[str, TableSchema]:
    """Return the tables with their columns of instants shown in a zone."""
    if zone == UTC:
        return tables
    from dpsql.schema.zones import in_zone

    return in_zone(tables, zone)


def chooses_bounds(word: object, schema: object = None) -> bool:
    """Return whether queries choose undeclared bounds: unless the caller or the owner's file turns it off. Raises
    InvalidArgument."""
    if not isinstance(word, bool):
        raise InvalidArgument(f"auto_bounds must be True or False, got {as_written(word)}.")
    return word and bool(getattr(schema, "auto_bounds", True))
