"""Canonical names in the key of a question: numbers for relations and derived columns, independent of the text's names.

`FROM orders AS o JOIN customers AS c` and `FROM orders JOIN customers` are one question, and so are two texts that
differ in the names of derived columns or in the case of an alias. Stored columns keep their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dpsql.plan.constants import ConstantColumn, ConstantTable, constant_table
from dpsql.plan.expressions import Column
from dpsql.plan.nodes import Join, Mark, PerUnit, Scan, Source, Union, Windows, nodes_of
from dpsql.plan.prior_releases import is_shown
from dpsql.schema.columns import TableSchema

_NUMBER = "\0"
"""Prefix of numbers, with which no stored column's name begins."""


class CanonicalNames:
    """Numbers for the relations of one plan and for the columns that the plan derives."""

    def __init__(self, source: Source) -> None:
        self._relations: dict[str, str] = {}
        self._columns: dict[tuple[str, str], str] = {}
        self._tables: dict[str, TableSchema] = {}
        for node in nodes_of(source):
            if isinstance(node, Scan):
                self._add_scan(node)
            for made in _made_by(node):
                self._add_column(made.table, made.name)

    @property
    def is_empty(self) -> bool:
        """True if the plan has nothing to number: one stored table, and no derived column."""
        return not self._columns and set(self._relations) <= {""}

    def scan(self, scan: Scan) -> Scan:
        """Return the scan under its number."""
        return replace(scan, name=self._relations[scan.name], table=self._tables.get(scan.name, scan.table))

    def column(self, column: Column) -> Column:
        """Return the column under the number of its relation and, if the plan derives the column, its own number."""
        relation = self._relations.get(column.table, column.table)
        name = self._columns.get((column.table, column.name), column.name)
        same = relation == column.table and name == column.name
        return column if same else replace(column, name=name, table=relation)

    def _add_scan(self, scan: Scan) -> None:
        self._add_relation(scan.name)
        if isinstance(scan.table, ConstantTable) or is_shown(scan.table):
            for each in scan.table.columns:
                self._add_column(scan.name, each.name)
            names = [self._columns[scan.name, each.name] for each in scan.table.columns]
            self._tables[scan.name] = _renamed(scan.table, names)

    def _add_relation(self, name: str) -> None:
        # Plans of one relation do not name it.
        self._relations.setdefault(name, f"{_NUMBER}{len(self._relations)}" if name else "")

    def _add_column(self, relation: str, name: str) -> None:
        self._add_relation(relation)
        self._columns.setdefault((relation, name), f"{_NUMBER}{len(self._columns)}")


def _made_by(node: Source) -> Iterator[Column]:
    if isinstance(node, Union | PerUnit | Windows):
        yield from node.columns
    elif isinstance(node, Mark):
        yield node.column
    elif isinstance(node, Join) and node.present is not None:
        yield node.present


def _renamed(table: TableSchema, names: list[str]) -> TableSchema:
    """Return a table of constants, or of the rows of a prior release, with other column names."""
    if isinstance(table, ConstantTable):
        pairs = zip(names, table.columns, table.cells, strict=True)
        return constant_table([ConstantColumn(name, column.type, cells) for name, column, cells in pairs])
    new = dict(zip((each.name for each in table.columns), names, strict=True))
    return replace(
        table,
        columns=tuple(replace(each, name=new[each.name]) for each in table.columns),
        unique=tuple(tuple(new.get(name, name) for name in key) for key in table.unique),
        max_matches=tuple((new.get(name, name), most) for name, most in table.max_matches),
    )
