"""Answers of prior releases, inserted into a later release that was planned, paid and dry-run without them.

Released values become constants in the engine's plan, lists and tables become public tables, and groups become those
that were shown. All are fitted to the plan: a value outside its type is NULL, a table has at most as many rows and join
matches per row as planned, and the number of groups is as planned. Groups that stand for no value get noise like all
others, and are dropped afterwards, based on public values.

The release itself does not change: its losses, sensitivities and designs stay as charged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dpsql.core.exact import ExactPlan
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.database import Database
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.relations import Relation
from dpsql.plan.domains import cells_of
from dpsql.plan.expressions import Bools, Expr, Literal, Vector
from dpsql.plan.nodes import Filter, Join, Scan, Source, nodes_of, scans_of
from dpsql.plan.prior_releases import Input, Values, filled
from dpsql.plan.query import GroupKey, ReleasedKey
from dpsql.postprocess.frames import Frame
from dpsql.release.release import ReleasedValues
from dpsql.schema.calendar import DAYS, MICROSECONDS
from dpsql.schema.columns import Key, TableSchema, Type
from dpsql.schema.frozen import dataclass
from dpsql.schema.intervals import INT64

_RANGES = {
    Type.INTEGER: INT64,
    Type.DATE: DAYS,
    Type.TIMESTAMP: MICROSECONDS,
}
_A_DAY = 86_400_000_000


@dataclass(frozen=True)
class PriorReleases:
    """Answers of prior releases that a later one reads. `groups`: for each source of keys, the combinations of values
    that exist."""

    values: Values
    stores: Mapping[str, ColumnStore]
    keys: Mapping[ReleasedKey, tuple[Key, ...]]
    groups: Mapping[tuple[int, ...], frozenset[tuple[Key, ...]]]
    asked: tuple[str, ...]
    """Inserted values, for the question's key, in words that no declared fact has."""

    def plan(self, plan: ExactPlan) -> ExactPlan:
        """Return the engine's plan with the answers inserted."""
        keys = tuple(self._key(key) for key in plan.keys)
        return replace(filled(replace(plan, keys=()), self.values), keys=filled(keys, self.values))

    def _key(self, key: GroupKey) -> GroupKey:
        if key.shown is None:
            return key
        return replace(key, values=_padded(self.keys[key.shown], key.values or ()), shown=None)

    def kept(self, released: ReleasedValues) -> ReleasedValues:
        """Return the planned groups that exist."""
        there = np.ones(released.groups, dtype=bool)
        for places, combinations in self.groups.items():
            cells = [_cells(released.keys[place]) for place in places]
            there &= np.array([each in combinations for each in zip(*cells, strict=True)], dtype=bool)
        return released if there.all() else released.at(np.flatnonzero(there))


def seen(
    inputs: Sequence[Input],
    frames: Sequence[Frame],
    source: Source,
    keys: Sequence[GroupKey],
    public: Mapping[str, ColumnStore],
) -> PriorReleases:
    """Return what a release reads of prior ones. frames: rows of each input; public: stores of public tables."""
    values: dict[Any, Literal] = {}
    stores: dict[str, ColumnStore] = {}
    asked = []
    given = list(zip(inputs, frames, strict=True))
    for each, frame in given:
        if each.column is not None:
            cell = _cells(_within(frame.vectors[0], frame.types[0]))[0] if len(frame) else None
            values[each.column] = Literal(cell, each.column.type)
            asked.append(f"shown value {each.name} {each.column.type} {_digest([[cell]])}")
    for each, frame in given:  # values first, since joins of tables use them
        if each.table is not None:
            store = ColumnStore(_frame_of(frame, each.table), each.table)
            stores[each.name] = store
            stores[each.name] = store = _as_joined(store, source, {**public, **stores}, values)
            rows = [_cells(_read(store, column.name)) for column in each.table.columns]
            asked.append(f"shown rows {each.name} {[str(one.type) for one in each.table.columns]} {_digest(rows)}")
    lists, groups = _groups(keys, {**public, **stores}, values)
    return PriorReleases(values, stores, lists, groups, tuple(asked))


# Rows, fitted to the plan.


def _within(vector: Vector, kind: Type) -> Vector:
    """Return the cells with NULL for NaN and for values outside their type."""
    values, valid = vector.values, vector.where_valid().copy()
    if kind is Type.REAL:
        valid &= ~np.isnan(values.astype(np.float64))
    if kind in _RANGES:
        held = _RANGES[kind]
        inside = [held.lower <= int(each) <= held.upper for each in values.tolist()]
        valid &= np.array(inside, dtype=bool)
        values = np.array(
            [int(each) if ok else 0 for each, ok in zip(values.tolist(), valid, strict=True)], dtype=np.int64
        )
    return Vector(values, valid)


def _frame_of(frame: Frame, table: TableSchema) -> pd.DataFrame:
    """Return the rows as stored, at most as many as planned."""
    most = len(frame) if table.rows is None else min(table.rows, len(frame))
    columns: dict[str, Any] = {}
    for column, shown, vector in zip(table.columns, frame.types, frame.vectors, strict=True):
        kind = column.type if column.wide else shown
        held = _within(vector.at(slice(0, most)), kind)
        columns[column.name] = _series(held, kind)
    return pd.DataFrame(columns, index=pd.RangeIndex(most))


def _series(vector: Vector, kind: Type) -> Any:
    values, gone = vector.values, ~vector.where_valid()
    if kind is Type.INTEGER:
        return pd.arrays.IntegerArray(values.astype(np.int64), gone)
    if kind is Type.BOOLEAN:
        return pd.arrays.BooleanArray(values.astype(np.bool_), gone)
    if kind is Type.REAL:
        return np.where(gone, np.nan, values.astype(np.float64))
    if kind is Type.TEXT:
        texts: Any = np.empty(len(values), dtype=object)
        texts[:] = [None if lost else str(each) for each, lost in zip(values.tolist(), gone.tolist(), strict=True)]
        return pd.Series(texts, dtype=object)
    ticks = values.astype(np.int64) * (_A_DAY if kind is Type.DATE else 1)
    times = ticks.astype("datetime64[us]")
    times[gone] = np.datetime64("NaT")
    return times


def _as_joined(store: ColumnStore, source: Source, stores: Mapping[str, ColumnStore], values: Values) -> ColumnStore:
    """Drop rows beyond the planned matches per value of every join, compared as the join compares them."""
    for node in nodes_of(source):
        if not isinstance(node, Join) or node.matches is None:
            continue
        scans = list(scans_of(node.right))
        if len(scans) != 1 or scans[0].table.name != store.schema.name:
            continue
        rows = Database({**stores, store.schema.name: store}).relation(scans[0]).settled()
        images = [_image(evaluated(filled(right, values), rows), left, right) for left, right in node.keys]
        left_over = _left_over(filled(node.right, values), rows)
        seen_rows: dict[tuple[Key, ...], int] = {}
        kept = []
        for number, image in enumerate(zip(*images, strict=True) if images else [()] * rows.rows):
            if left_over[number] and None not in image:
                seen_rows[image] = seen_rows.get(image, 0) + 1
            if seen_rows.get(image, 0) <= node.matches:
                kept.append(number)
        if len(kept) < rows.rows:
            store = ColumnStore(store.frame.iloc[kept].reset_index(drop=True), store.schema)
    return store


def _left_over(source: Source, rows: Relation) -> Bools:
    """Return which rows pass the filters directly above the scan; all rows if there are other nodes too."""
    passing = np.ones(rows.rows, dtype=bool)
    while isinstance(source, Filter):
        asked = evaluated(source.predicate, rows)
        passing &= asked.values.astype(bool) & asked.where_valid()
        source = source.input
    return passing if isinstance(source, Scan) else np.ones(rows.rows, dtype=bool)


def _image(vector: Vector, left: Expr, right: Expr) -> list[Key]:
    """Return the cells as a join compares them: numbers of different types as doubles, which distinguish integers only
    below 2^53."""
    cells = _cells(vector)
    if left.type is right.type:
        return cells
    return [float(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell for cell in cells]


# Groups.


def _groups(
    keys: Sequence[GroupKey], stores: Mapping[str, ColumnStore], values: Values
) -> tuple[dict[ReleasedKey, tuple[Key, ...]], dict[tuple[int, ...], frozenset[tuple[Key, ...]]]]:
    """Return the values of each key, and their combinations: keys of one source are combined as in its rows."""
    lists: dict[ReleasedKey, tuple[Key, ...]] = {}
    by_source: dict[Source, list[tuple[int, ReleasedKey, int]]] = {}
    for place, key in enumerate(keys):
        if key.shown is not None:
            by_source.setdefault(key.shown.source, []).append((place, key.shown, len(key.values or ())))
    groups = {}
    for source, asked in by_source.items():
        with np.errstate(all="ignore"):
            held = filled(source, values)
            rows = Database(stores, held).relation(held).settled()
            columns = [_cells(evaluated(filled(shown.expr, values), rows)) for _, shown, _ in asked]
        for (_, shown, most), cells in zip(asked, columns, strict=True):
            present: list[Any] = sorted({cell for cell in cells if cell is not None})
            null = [None] if None in cells and not shown.present else []
            lists[shown] = tuple([*present, *null][:most])
        listed = [set(lists[shown]) for _, shown, _ in asked]
        combinations = [
            each
            for each in zip(*columns, strict=True)
            if all(cell in known for cell, known in zip(each, listed, strict=True))
        ]
        groups[tuple(place for place, _, _ in asked)] = frozenset(combinations)
    return lists, groups


def _padded(values: tuple[Key, ...], planned: tuple[Key, ...]) -> tuple[Key, ...]:
    """Return the values, padded with others to the planned number."""
    known = set(values)
    others = [each for each in planned if each not in known]
    number = 0
    while len(values) + len(others) < len(planned):  # a planned filler is a real value now
        other = _other(planned, number)
        others += [] if other in known or other in others else [other]
        number += 1
    return (*values, *others[: len(planned) - len(values)])


def _other(planned: tuple[Key, ...], number: int) -> Key:
    first, place = planned[0], len(planned) + number
    if isinstance(first, str):
        return f"value {place}"
    if isinstance(first, bool):
        return (False, True, None)[number % 3]
    return float(place) if isinstance(first, float) else place


# Cells.


def _cells(vector: Vector) -> list[Key]:
    kind = Type.REAL if vector.values.dtype.kind == "f" else Type.TEXT
    return cells_of(vector, kind)


def _read(store: ColumnStore, name: str) -> Vector:
    return store.reader(name)(0, store.rows)


def _digest(rows: Sequence[Sequence[Key]]) -> str:
    """Return a hash of the cells, including their types."""
    written = [[each.hex() if isinstance(each, float) else each for each in cells] for cells in rows]
    kinds = [[type(each).__name__ for each in cells] for cells in rows]
    return hashlib.sha256(repr((written, kinds)).encode("utf-8", "surrogatepass")).hexdigest()
