"""Privacy units of tables as declared, for the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpsql.core.ledger.units import Place, TableUnit, UnitKind
from dpsql.plan.nodes import scans_of
from dpsql.plan.prior_releases import is_shown
from dpsql.plan.query import Query
from dpsql.schema.columns import ColumnSchema, TableSchema

Tables = Mapping[str, TableSchema]


def units_of(tables: Tables, names: Iterable[str] | None = None) -> tuple[TableUnit, ...]:
    """Return the units of these tables (folded names; None: all), and of those on their paths, by name. Raises nothing:
    the tables are linked."""
    units: dict[str, TableUnit] = {}
    waiting = list(tables if names is None else names)
    while waiting:
        name = waiting.pop()
        if name not in units:
            units[name] = _unit_of(name, tables)
            waiting += [place.table for place in units[name].path]
    return tuple(units[name] for name in sorted(units))


def units_read(query: Query, tables: Tables) -> tuple[TableUnit, ...]:
    """Return the units of every table that a query reads: scanned and joined tables, those on unit paths, and public
    ones used only for a constant of the plan. Answers of prior releases and constants of the text are not the owner's
    tables."""
    scans = (each.table for each in scans_of(query.plan.input) if not (is_shown(each.table) or each.table.is_constant))
    return units_of(tables, query.computed_from.union(table.name.casefold() for table in scans))


def _unit_of(name: str, tables: Tables) -> TableUnit:
    table = tables[name]
    if table.public:
        return TableUnit(name, UnitKind.PUBLIC)
    if table.unit_word is None:
        return TableUnit(name, UnitKind.ROW)
    path: list[Place] = []
    while True:
        word = table.unit_word
        assert word is not None  # a path leads to a table with a unit
        path.append(_place(name, table.by_name[word.column.casefold()]))
        if not word.table:
            kind = UnitKind.COLUMN if len(path) == 1 else UnitKind.PATH
            return TableUnit(path[0].table, kind, tuple(path))
        name = word.table.casefold()
        table = tables[name]
        path.append(_place(name, table.by_name[word.key.casefold()]))


def _place(table: str, column: ColumnSchema) -> Place:
    return Place(table, column.name.casefold(), column.type.value)
