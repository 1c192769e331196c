"""The privacy units of tables as their owner declares them, for the ledger to hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dpsql.core.ledger.units import Place, TableUnit, UnitKind
from dpsql.plan.nodes import scans_of
from dpsql.plan.prior_releases import is_shown
from dpsql.plan.query import Query
from dpsql.schema.columns import ColumnSchema, TableSchema

Tables = Mapping[str, TableSchema]


def units_of(tables: Tables, names: Iterable[str] | None = None) -> tuple[TableUnit, ...]:
    """The units of these tables (folded names; None: of all), and of those that their paths lead through, by name.
    Raises nothing: the tables are linked."""
    units: dict[str, TableUnit] = {}
    waiting = list(tables if names is None else names)
    while waiting:
        name = waiting.pop()
        if name not in units:
            units[name] = _unit_of(name, tables)
            waiting += [place.table for place in units[name].path]
    return tuple(units[name] for name in sorted(units))


def units_read(query: Query, tables: Tables) -> tuple[TableUnit, ...]:
    """The units of every table that a query reads: the rows it is about, those it asks about or joins, those that tell
    whose a row is, and public ones of which only a constant of the plan was computed. What an earlier release of the
    statement shows is no table of the owner's, nor are constants of the text."""
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
