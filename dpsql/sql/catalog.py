"""The tables that a query may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from dpsql.errors import Span, UnknownTable, did_you_mean
from dpsql.schema import TableSchema


@dataclass(frozen=True)
class Catalog:
    """Tables by folded name. `any_name`: the one table answers to whatever name the query writes."""

    tables: Mapping[str, TableSchema]
    any_name: bool = False

    @cached_property
    def fingerprint(self) -> tuple[object, ...]:
        """All declared facts: the part of a plan's cache key that is not the query."""
        return (self.any_name, *(each.fingerprint for each in self.tables.values()))

    def find(self, name: str, span: Span | None) -> TableSchema:
        """The table of that name. Raises UnknownTable."""
        if self.any_name:
            return next(iter(self.tables.values()))
        found = self.tables.get(name.casefold())
        if found is None:
            known = [table.name for table in self.tables.values()]
            raise UnknownTable(
                f'no table "{name}".{did_you_mean(name, known)}',
                span=span,
                hint=f"Tables: {', '.join(sorted(known))}." if known else "",
            )
        return found
