"""Execution of sources over tables: joined rows, and the unit of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, singledispatchmethod
from weakref import ref

import numpy as np

from dpsql.core.exact import NO_KEY
from dpsql.errors import InternalError
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.columns.derived_columns import DerivedColumns, Made, encoded_texts, joined_texts
from dpsql.executors.pandas.columns.encoding import EncodedColumn
from dpsql.executors.pandas.columns.exact_values import ranks
from dpsql.executors.pandas.columns.gathering import Places
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.joins.early_filters import EarlyFilters
from dpsql.executors.pandas.joins.joining import KeyColumn, lookup
from dpsql.executors.pandas.joins.mark_filters import MarkFilters
from dpsql.executors.pandas.joins.pairing import (
    among_kept,
    beside,
    key_at,
    looked_up,
    marked_among,
    multiplied,
    of_the_unit,
    with_presence,
)
from dpsql.executors.pandas.relations import (
    Part,
    Relation,
    Units,
    merged_units,
    rows_alone,
    units_of_codes,
    units_of_rows,
)
from dpsql.executors.pandas.units.unit_groups import grouped
from dpsql.plan.expressions import DTYPES, Column, Expr, Vector
from dpsql.plan.nodes import (
    Branch,
    Filter,
    Join,
    Mark,
    PerUnit,
    RowLimit,
    Scan,
    Source,
    Union,
    Windows,
    inputs_of,
    scans_of,
)
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.units import Unit


class Database:
    """Column stores by table name, and the relations that sources make of them.

    `source`: the source to run, which determines how many rows public tables make of each above a join. `most`: a join
    of private rows that would make more raises TooManyRows, unless they are at most the rows of both sides and at most
    `most_alike`. `given`: relations that replace nodes, by identity. `predicates`: those above the source; rows for
    which they are not TRUE contribute nothing. `key`: of the hash that selects the kept rows of a unit."""

    def __init__(
        self,
        stores: Mapping[str, ColumnStore],
        source: Source | None = None,
        most: int | None = None,
        predicates: Sequence[Expr] = (),
        key: bytes = NO_KEY,
    ) -> None:
        self.key = key
        self.stores = {name.casefold(): store for name, store in stores.items()}
        self.most, self.most_alike = most, 0
        self.given: dict[int, Relation] = {}
        self._fan_out: dict[int, int] = {} if source is None else fan_outs_above(source)
        self._asked_about = MarkFilters(source, predicates)
        self.early = EarlyFilters(source, predicates)

    def relation(self, source: Source) -> Relation:
        """Return the rows of a source, without those that fail a predicate (see `early`)."""
        given = self.given.get(id(source))
        return self.early.after(source, self._made(source) if given is None else given)

    @singledispatchmethod
    def _made(self, source: Source) -> Relation:
        raise InternalError(f"no way to run {type(source).__name__}")

    @_made.register
    def _(self, scan: Scan) -> Relation:
        alone = rows_alone(scan, self.stores)
        if alone is not None:
            return alone
        store = self.stores[scan.table.name.casefold()]
        return Relation(store.rows, {scan.name: Part(store)}, self._units(scan, store))

    @_made.register
    def _(self, node: Filter) -> Relation:
        return filtered(node, self.relation(node.input))

    @_made.register
    def _(self, node: Join) -> Relation:
        left, right = self.relation(node.left), self.relation(node.right)
        found = self.looked_up(node, left, right)
        if found is not None:
            return found
        if node.matches == 1 and self.early.give_up():  # all of a unit's rows decide whether its pairs are too many
            left = self.relation(node.left)
        most = None if self.most is None else max(self.most, min(left.rows + right.rows, self.most_alike))
        return multiplied(node, left if node.outer else left.settled(), right, self.fan_out(node), most)

    @_made.register
    def _(self, node: Mark) -> Relation:
        rows, inner = self.relation(node.input), self.relation(node.inner).settled()
        only = self._asked_about.among(node, rows)
        return with_mark(node, rows, marked_among(node, rows, inner, self.fan_out(node), only))

    @_made.register
    def _(self, node: Union) -> Relation:
        return united(node, [self.relation(branch.input).settled() for branch in node.branches])

    @_made.register
    def _(self, node: PerUnit) -> Relation:
        return grouped(node, self.relation(node.input).settled())

    @_made.register
    def _(self, node: Windows) -> Relation:
        from dpsql.executors.pandas.windows.window_functions import windowed  # loaded with the first window

        return windowed(node, self.relation(node.input).settled())

    @_made.register
    def _(self, node: RowLimit) -> Relation:
        from dpsql.executors.pandas.row_limits import limited  # loaded with the first limit below a join

        return limited(node, self.relation(node.input).settled(), self.key)

    def fan_out(self, node: Source) -> int:
        """Return the most rows that public tables make of each row of a node."""
        return self._fan_out.get(id(node), 1)

    def looked_up(self, node: Join, left: Relation, right: Relation) -> Relation | None:
        """Return the rows of a join that finds at most one right row for each left one; None if it may find more."""
        right_rows = self._looked_up(node, left, right) if node.matches == 1 and node.keys else None
        if right_rows is None:
            return None
        return with_presence(node, beside(left, right, right_rows, outer=node.outer), right_rows >= 0)

    # Units of rows.

    def _units(self, scan: Scan, store: ColumnStore) -> Units:
        table = scan.table
        if table.unit is None:
            return units_of_rows(table.name.casefold(), store.rows)
        units = self._of_column(table, table.unit.column, store)
        handles = {(f"{table.name.casefold()}.{key[0]}", scan.name, key[0]) for key in table.unique if len(key) == 1}
        first = table.unit.steps[0] if table.unit.steps else None
        handles.add(("" if first is None else f"{first.table}.{first.key}", scan.name, table.unit.column))
        if first is not None:
            there = self.stores[first.table]
            places = self._led(table.unit.column, store, first.table, first.key)
            units = self._units(Scan(there.schema), there)
            units = units.at(places) if there.rows else Units(np.full(store.rows, -1), 0, units.values, units.kind)
            if places.min(initial=0) < 0:
                units = replace(units, codes=np.where(places < 0, -1, units.numbers()))
        return replace(units, handles=frozenset(handles))

    def _of_column(self, table: TableSchema, name: str, store: ColumnStore) -> Units:
        codes, values = store.identified(name)
        return units_of_codes(codes, values, table.by_name[name.casefold()].identity)

    def _led(self, name: str, store: ColumnStore, other: str, key: str) -> Places:
        """For each row of a table return the row of another one that its column leads to, by a key declared unique: if
        it is not, the row of the smallest unit; rows without a unit are excluded. Cached in the table, as long as the
        further tables of the path are the same."""
        there = self.stores[other]
        along = self._along(there)
        known = store.led.get((name, other, key))
        if known is None or [each() for each in known[0]] != along:
            known = [ref(each) for each in along], self._lead(name, store, there, key)
            store.led[name, other, key] = known
        return known[1]

    def _along(self, store: ColumnStore) -> list[ColumnStore]:
        """Return a table and those on the path to its unit."""
        unit = store.schema.unit
        return [store, *(self._along(self.stores[unit.steps[0].table]) if unit is not None and unit.steps else ())]

    def _lead(self, name: str, store: ColumnStore, there: ColumnStore, key: str) -> Places:
        left, right = _exact_key(store, name), _exact_key(there, key)
        units = self._units(Scan(there.schema), there)
        assert units.values is not None  # a path ends in a declared unit
        order = np.append(_ranks(units.values), -1)[units.numbers()]
        nobody = order < 0
        if nobody.any():
            places = np.flatnonzero(~nobody)
            found = lookup([left], [key_at(right, places)], order[places])
            return np.append(places, -1)[found]
        return lookup([left], [right], order)

    def _looked_up(self, node: Join, left: Relation, right: Relation) -> Places | None:
        """For each left row return the right row with the same key, of the same unit if both have units; -1: none. None
        if keys of private rows are declared unique but are not: then all matching rows are joined."""
        if right.units is None:
            return looked_up(node, left, right)
        assert left.units is not None  # private rows are never right of public ones
        bottom = node.right
        while isinstance(bottom, Filter):
            bottom = bottom.input
        one, other = node.keys[0]
        if len(node.keys) > 1 or not (isinstance(one, Column) and isinstance(other, Column)):
            return looked_up(node, left, right, units=True)
        if isinstance(bottom, Scan) and bottom.table.unit is not None and self._both_plain(left, one, bottom, other):
            kind = f"{bottom.table.name.casefold()}.{other.name}"
            if bottom.table.unit == Unit(other.name) and ("", one.table, one.name) in left.units.handles:
                return of_the_unit(left, right)  # the key is itself the unit
            if (kind, one.table, one.name) in left.units.handles:
                places = self._along_path(left.parts[one.table], one.name, bottom.table, other.name)
                if places is not None and self._is_unique(bottom.table, other.name):
                    return among_kept(_among_given(places, right.parts[bottom.name]), right.kept)
        return looked_up(node, left, right, units=True)

    def _both_plain(self, left: Relation, one: Column, scan: Scan, other: Column) -> bool:
        """Return whether an equality compares the same cells as units and path keys. Depends only on declarations, so
        that some people's rows do not decide how those of others are compared."""
        columns = left.parts[one.table].columns
        there = self.stores[scan.table.name.casefold()]
        return isinstance(columns, ColumnStore) and columns.is_plain(one.name) and there.is_plain(other.name)

    def _is_unique(self, table: TableSchema, name: str) -> bool:
        codes, _ = self.stores[table.name.casefold()].identified(name)
        return int(np.bincount(codes[codes >= 0]).max(initial=0)) <= 1

    def _along_path(self, part: Part, name: str, table: TableSchema, key: str) -> Places | None:
        """Return the rows that a path to the unit leads to: they have the same unit, which was found through them."""
        if not isinstance(part.columns, ColumnStore):
            return None
        schema = part.columns.schema
        if schema.unit is None or schema.unit.column != name or not schema.unit.steps:
            return None
        step = schema.unit.steps[0]
        if (step.table, step.key) != (table.name.casefold(), key):
            return None
        places = self._led(name, part.columns, step.table, step.key)
        return places if part.places is None else np.append(places, -1)[part.places]


def filtered(node: Filter, rows: Relation) -> Relation:
    passes = evaluated(node.predicate, rows)
    kept = passes.values.astype(bool) & passes.where_valid()
    return Relation(rows.rows, rows.parts, rows.units, kept if rows.kept is None else kept & rows.kept)


def with_mark(node: Mark, rows: Relation, mark: Vector) -> Relation:
    column = DerivedColumns(rows.rows, {node.column.name: (Type.BOOLEAN, lambda: mark)})
    return Relation(rows.rows, {**rows.parts, node.column.table: Part(column)}, rows.units, rows.kept)


def united(node: Union, rows: list[Relation]) -> Relation:
    """Concatenate the rows of the branches, which are settled."""
    makers = {
        column.name: (column.type, partial(_joined, node.branches, rows, place, column.type))
        for place, column in enumerate(node.columns)
    }
    size = sum(each.rows for each in rows)
    units = [each.units for each in rows if each.units is not None]
    whose = merged_units(units) if units else None
    return Relation(size, {node.columns[0].table: Part(DerivedColumns(size, makers))}, whose)


def fan_outs_above(source: Source, times: int = 1) -> dict[int, int]:
    """Return for each node, by identity, the most rows that public tables above make of each of its rows."""
    fan_outs = {id(source): times}
    below = times
    if isinstance(source, Join) and all(scan.table.public for scan in scans_of(source.right)):
        below = times * max(1, source.matches or 1)
    for place, each in enumerate(inputs_of(source)):
        asked_about = isinstance(source, Mark) and place == 1
        above = 1 if asked_about or (isinstance(source, PerUnit) and source.alone) else below
        for node, most in fan_outs_above(each, above).items():
            fan_outs[node] = max(most, fan_outs.get(node, 1))
    return fan_outs


def _among_given(places: Places, part: Part) -> Places:
    """Translate rows of a table to positions in an ascending selection that contains them; -1 stays."""
    if part.places is None:
        return places
    found = np.searchsorted(part.places, places)
    held = np.append(part.places, -2)[found] == places
    return np.where(held, found, -1)


def _exact_key(store: ColumnStore, name: str) -> KeyColumn:
    """Return a column as stored, regardless of declared bounds: no two keys become one."""
    codes, values = store.identified(name)
    return KeyColumn(values, codes)


def _ranks(values: Vector) -> Places:
    """Return the rank of each unit; NULL is no unit."""
    found = ranks(values.values)
    return found if values.valid is None else np.where(values.valid, found, -1)


def _joined(branches: tuple[Branch, ...], rows: list[Relation], place: int, kind: Type) -> Made:
    if kind is Type.TEXT:
        return joined_texts([_texts(branch.outputs[place], each) for branch, each in zip(branches, rows, strict=True)])
    vectors = [evaluated(branch.outputs[place], each) for branch, each in zip(branches, rows, strict=True)]
    dtype = np.result_type(DTYPES[kind], *(each.values for each in vectors))
    values = np.concatenate([each.values.astype(dtype, copy=False) for each in vectors])
    if all(each.valid is None for each in vectors):
        return Vector(values)
    return Vector(values, np.concatenate([each.where_valid() for each in vectors]))


def _texts(expr: Expr, rows: Relation) -> EncodedColumn:
    if isinstance(expr, Column):
        return rows.encoded(expr)
    return encoded_texts(evaluated(expr, rows))
