"""The tables available to a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Protocol

from dpsql.errors import Span, UnknownTable, did_you_mean
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Column, Expr
from dpsql.plan.nodes import Source
from dpsql.schema.columns import Key, TableSchema, Type
from dpsql.schema.frozen import dataclass


class PublicValues(Protocol):
    """The contents of public tables."""

    @property
    def version(self) -> int:
        """Return a version number of the contents, never reused."""

    def of(self, source: Source, expr: Expr) -> tuple[Key, ...] | None:
        """Return the distinct values of an expression over public rows, ascending, NULL last; None if too many."""

    def together(self, source: Source, exprs: Sequence[Expr]) -> tuple[tuple[Key, ...], ...] | None:
        """Return the distinct rows of several expressions over public rows, ascending, NULL last; None if too many."""

    def aggregate(self, source: Source, aggregation: Aggregation, kind: Type) -> Key:
        """Return one exact aggregate over all public rows of a source; None for NULL."""


@dataclass(frozen=True)
class Catalog:
    """Tables by folded name. `any_name`: the only table has every name. `shown`, `values`: results of the statement's
    earlier releases, by names that do not occur in it. `auto_bounds`: queries select bounds privately for columns
    without declared ones."""

    tables: Mapping[str, TableSchema]
    any_name: bool = False
    public: PublicValues | None = None
    shown: Mapping[str, TableSchema] = field(default_factory=dict)
    values: Mapping[str, Column] = field(default_factory=dict)
    constants: Mapping[str, TableSchema] = field(default_factory=dict)
    """The constant tables of one text."""
    auto_bounds: bool = False

    @cached_property
    def fingerprint(self) -> tuple[object, ...]:
        """Return all declarations: the part of a plan's cache key besides the query."""
        version = None if self.public is None else self.public.version
        return (self.any_name, self.auto_bounds, version, *(each.fingerprint for each in self.tables.values()))

    def find(self, name: str, span: Span | None) -> TableSchema:
        """Return the table with that name. Raises UnknownTable."""
        if name in self.shown:
            return self.shown[name]
        if name in self.constants:
            return self.constants[name]
        if self.any_name:
            return next(iter(self.tables.values()))
        schema = self.tables.get(name.casefold())
        if schema is None:
            known = [table.name for table in self.tables.values()]
            of_schema = [each for each in known if each.casefold().endswith(f".{name.casefold()}")]
            near = f" Did you mean {of_schema[0]}?" if of_schema else did_you_mean(name, known)
            raise UnknownTable(
                f'no table "{name}".{near}',
                span=span,
                hint=f"Tables: {', '.join(sorted(known))}." if known else "",
                about={"unknown table": name},
            )
        return schema
