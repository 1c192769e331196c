"""Scans of stored tables: declarations enforced on every cell, and the unit of each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dpsql.core.exact import ExactPlan
from dpsql.executors.sql.column_facts import NOTHING, ColumnFacts
from dpsql.executors.sql.dialect import StoredTable
from dpsql.executors.sql.rows import Name, Rows, Writer
from dpsql.plan.nodes import Scan, scans_of
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import ColumnSchema, Key, TableSchema, Type
from dpsql.schema.intervals import Number
from dpsql.schema.units import Lookup

_LIMITS = {Type.DATE: DAYS, Type.TIMESTAMP: MICROSECONDS}
_BLANK: Mapping[Type, Key] = {Type.REAL: 0.0, Type.BOOLEAN: False, Type.TEXT: "", Type.OTHER: False, Type.OBJECT: False}


class Scans:
    """Writer of scans over stored tables, by folded name. `read`: the columns of the plan that are read; units: whether
    rows that are their own units are numbered."""

    def __init__(
        self,
        writer: Writer,
        tables: Mapping[str, StoredTable],
        read: frozenset[Name],
        seen: ColumnFacts = NOTHING,
        *,
        units: bool,
    ) -> None:
        self.writer = writer
        self.dialect, self.names = writer.dialect, writer.names
        self.tables = tables
        self.read = read
        self.units = units
        self.seen = seen
        self.bare: set[int] = set()
        """Scans whose rows are not led to their units, by identity: they are joined to rows that are."""

    def rows(self, scan: Scan) -> Rows:
        """Return the rows of a scan."""
        stored = self.tables[scan.table.name.casefold()]
        wanted = [column for column in scan.table.columns if (scan.name, column.name) in self.read]
        named = {(scan.name, column.name): self.names.fresh("c") for column in wanted}
        first, unread = self._cells(stored, {named[scan.name, column.name]: column for column in wanted})
        unit, kind, unit_text, source = None, None, "", stored.rows()
        if self._needs_unit(scan.table) and id(scan) not in self.bare:
            unit = self.names.fresh("u")
            kind, unit_text, source = self._unit(scan.table, stored)
            first.append((unit, unit_text))
        listed = ", ".join(f"{text} AS {name}" for name, text in first) or "1 AS nothing"
        rows = Rows(self.writer.select(listed, source), named, unit, kind, unread=unread)
        if not stored.enforced:
            rows = self._enforced(rows, scan, wanted)
        conditions = [f"{unit} IS NOT NULL"] if unit is not None and scan.table.unit is not None else []
        of_pass = None if unit is None else self.dialect.of_pass(unit)
        conditions += [] if of_pass is None else [of_pass]
        if conditions:
            rows = replace(rows, text=self.writer.select("*", rows.text, f" WHERE {' AND '.join(conditions)}"))
        return rows

    def _cells(
        self, stored: StoredTable, wanted: Mapping[str, ColumnSchema]
    ) -> tuple[list[tuple[str, str]], dict[str, tuple[str, str]]]:
        """Return the names and texts of cells, and the sources of texts that have to be validated."""
        cells: list[tuple[str, str]] = []
        unread: dict[str, tuple[str, str]] = {}
        for name, column in wanted.items():
            text = stored.cell(column)
            if column.type is Type.TEXT and self.dialect.sound_text is not None and not stored.enforced:
                bare = self.names.fresh("t")
                cells.append((bare, text))
                unread[name] = bare, self.dialect.sound_text.format(bare)
                text = self.dialect.sound_text.format(text)
            cells.append((name, text))
        return cells, unread

    def _needs_unit(self, table: TableSchema) -> bool:
        """Return whether the unit is needed: rows without a unit are always dropped, rows that are their own units
        never."""
        return not table.public and (table.unit is not None or self.units)

    def _unit(self, table: TableSchema, stored: StoredTable) -> tuple[Type | None, str, str]:
        """Return the type of a table's unit, its text, and the rows over which it is written."""
        if table.unit is None:
            return None, stored.row(), stored.rows()
        return self._led(table.unit.column, stored, table.unit.steps)

    def _led(self, own: str, stored: StoredTable, steps: Sequence[Lookup]) -> tuple[Type | None, str, str]:
        """Follow look-ups from a column to the unit: return the unit's type, its text, and the rows over which it is
        written. Rows whose path ends early have no unit."""
        if not steps:
            return stored.kind(own), stored.identity(own), stored.rows()
        there = self.tables[steps[0].table]
        kind, unit, source = self._led(steps[0].column, there, steps[1:])
        key, whose, left = self.names.fresh("k"), self.names.fresh("u"), self.names.fresh("k")
        keyed = self.writer.select(f"{there.identity(steps[0].key)} AS {key}, {unit} AS {whose}", source)
        # A key declared unique may not be: then it leads to the least unit.
        present = f" WHERE {key} IS NOT NULL AND {whose} IS NOT NULL"
        if self.seen.alone(steps[0].table, steps[0].key):
            least = self.writer.select("*", keyed, present)
        else:
            least = self.writer.select(f"{key}, MIN({whose}) AS {whose}", keyed, f"{present} GROUP BY {key}")
        mine = self.writer.select(f"*, {stored.identity(own)} AS {left}", stored.rows())
        return kind, whose, f"{mine} JOIN {least} ON {left} = {key}"

    def _enforced(self, rows: Rows, scan: Scan, wanted: Sequence[ColumnSchema]) -> Rows:
        """Apply declared bounds, or those of the type, and defaults to every cell."""
        texts = {column.name: self._enforce(rows, scan, column) for column in wanted}
        changed = {(scan.name, name): text for name, text in texts.items() if text is not None}
        if not changed:
            return rows
        named = {name: self.names.fresh("c") for name in changed}
        listed = ", ".join(f"{text} AS {named[name]}" for name, text in changed.items())
        ends = {(scan.name, column.name): _held(column) for column in wanted}
        return replace(
            rows,
            text=self.writer.select(f"*, {listed}", rows.text),
            columns={**rows.columns, **named},
            bounded={named[name]: each for name, each in ends.items() if each is not None},
            clipped={
                named[scan.name, column.name]: limits
                for column in wanted
                if column.type is not Type.BOOLEAN and (limits := column.bounds or _LIMITS.get(column.type)) is not None
            },
            defaults={
                named[scan.name, column.name]: default
                for column in wanted
                if (scan.name, column.name) in changed
                and not column.nullable
                and isinstance(default := default_value(column), int | float)
            },
            raw={named[name]: (rows.columns[name], text) for name, text in changed.items()},
        )

    def _enforce(self, rows: Rows, scan: Scan, column: ColumnSchema) -> str | None:
        """Write one cell. The most common case comes first: an engine checks a block once if all of its cells match."""
        name = rows.columns[scan.name, column.name]
        default = None if column.nullable else self.dialect.literal(default_value(column), column.type)
        limits = column.bounds or _LIMITS.get(column.type)
        if limits is not None and column.type is not Type.BOOLEAN:
            lower, upper = (self._limit(each, column.type) for each in (limits.lower, limits.upper))
            rest = "" if default is None else f" ELSE {default}"
            return (
                f"CASE WHEN {name} BETWEEN {lower} AND {upper} THEN {name} WHEN {name} < {lower} THEN {lower} "
                f"WHEN {name} > {upper} THEN {upper}{rest} END"
            )
        return None if default is None else with_default(name, default)

    def _limit(self, value: Number, kind: Type) -> str:
        return self.dialect.literal(float(value) if kind is Type.REAL else int(value), kind)


def with_default(cell: str, default: str) -> str:
    """Return a stored cell with its default for NULL."""
    return f"COALESCE({cell}, {default})"


def _held(column: ColumnSchema) -> tuple[int, int] | None:
    """Return the bounds of all values of an integer column with declarations enforced."""
    if column.type is not Type.INTEGER or column.bounds is None:
        return None
    ends = int(column.bounds.lower), int(column.bounds.upper)
    default = ends[0] if column.nullable else default_value(column)
    return ends if isinstance(default, int) and ends[0] <= default <= ends[1] else None


def default_value(column: ColumnSchema) -> Key:
    """Return the replacement for NULL in a NOT NULL column: first key, lower bound, or the type's zero."""
    if column.keys and column.keys[0] is not None:
        return column.keys[0]
    if column.bounds is not None:
        return column.bounds.lower if column.type is Type.REAL else int(column.bounds.lower)
    return "0" if column.wide else _BLANK.get(column.type, 0)


def tables_read(plan: ExactPlan) -> set[str]:
    """Return the tables that a plan reads, and those on the paths to their units; folded."""
    scanned = {scan.table.name.casefold() for scan in scans_of(plan.source)}
    return scanned | {step.table for step in lookups(plan)}


def lookups(plan: ExactPlan) -> list[Lookup]:
    """Return the steps of the paths from the tables that a plan reads to their units."""
    units = [scan.table.unit for scan in scans_of(plan.source)]
    return list(dict.fromkeys(step for unit in units if unit is not None for step in unit.steps))
