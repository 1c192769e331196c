"""What is one for the whole text: its words, parameters, options, and the places that have columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dpsql.plan.options import Options
from dpsql.schema.columns import ColumnSchema, TableSchema
from dpsql.sql.parameters import Params
from dpsql.sql.select_list import fresh

if TYPE_CHECKING:
    from dpsql.sql.catalog import PublicValues


@dataclass
class Statementwide:
    """What is one for the whole text: its words, its parameters and those used, and its options."""

    sql: str
    params: Params
    used: set[str] = field(default_factory=set)
    options: Options | None = None
    several: bool = False
    """The text reads tables at several places, so columns are named with theirs."""
    places: set[str] = field(default_factory=set)
    public: PublicValues | None = None
    tables: Mapping[str, TableSchema] = field(default_factory=dict)
    computed_from: set[str] = field(default_factory=set)
    """Public tables, by folded name, of which constants were computed."""

    def unit_column(self, table: TableSchema) -> ColumnSchema:
        """The column at the end of the path to a table's units."""
        assert table.unit is not None  # the caller asks of tables with units
        end = table.unit.steps[-1] if table.unit.steps else None
        held = table.by_name[table.unit.column.casefold()]
        if end is not None and end.table in self.tables:
            held = self.tables[end.table].by_name[end.column.casefold()]
        return held

    def place(self, name: str) -> str:
        """A name for one more place in the query that has columns; the empty one for a table that is alone."""
        if not self.several and not self.places:
            self.places.add("")
            return ""
        return fresh(name, self.places)
