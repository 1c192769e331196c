"""Facts from the rows of public tables: values for queries, and completed declarations.

Loaded with the first public table.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dpsql.errors import InvalidSchema
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.database import Database
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.groups import key_codes
from dpsql.executors.pandas.joins.joining import key_of
from dpsql.executors.pandas.relations import Relation
from dpsql.executors.pandas.units.inner_aggregates import renumber
from dpsql.executors.pandas.units.unit_groups import aggregated
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.domains import MOST_TEXT, cells_of, vector_of
from dpsql.plan.expressions import Expr, Vector
from dpsql.plan.nodes import Scan, Source
from dpsql.plan.query import MOST_DERIVED_CELLS, MOST_TOGETHER, GroupKey
from dpsql.postprocess.frames import Frame
from dpsql.schema.columns import ColumnSchema, Key, TableSchema, Type
from dpsql.schema.intervals import Interval
from dpsql.session.tables.constant_tables import constant_tables
from dpsql.session.tables.table import Table
from dpsql.sql.bind.private_rows import rows_of

_versions = itertools.count()


class PublicData:
    """Contents of public tables, for sets of values that queries need."""

    def __init__(self, stores: Mapping[str, ColumnStore]) -> None:
        self.stores = stores
        self._database = Database(self.stores)
        self._version = next(_versions)

    @property
    def version(self) -> int:
        return self._version

    def of(self, source: Source, expr: Expr) -> tuple[Key, ...] | None:
        """Return the distinct values of an expression over public rows, ascending, NULL last; None if they are too
        many."""
        with np.errstate(all="ignore"):
            rows = self._rows(source)
            codes = key_codes(GroupKey(expr, None), rows)
            found = np.zeros(len(codes.values), dtype=bool)
            found[codes.read(0, rows.rows)] = True
        values = codes.values.at(np.flatnonzero(found))
        nullable = not bool(values.where_valid().all())
        present = values.at(np.flatnonzero(values.where_valid()))
        return keys_of(present, expr.type, nullable=nullable) if rows.rows else ()

    def together(self, source: Source, exprs: Sequence[Expr]) -> tuple[tuple[Key, ...], ...] | None:
        """Return the distinct rows of several expressions over public rows, ascending, NULL last; None if they are too
        many."""
        with np.errstate(all="ignore"):
            rows = self._rows(source)
            if not rows.rows:
                return ()
            keys = [key_codes(GroupKey(expr, None), rows) for expr in exprs]
            codes = [key.read(0, rows.rows) for key in keys]
            _, first, size = renumber(codes, [max(1, len(key.values)) for key in keys])
        if size > MOST_TOGETHER:
            return None
        columns = [
            cells_of(key.values.at(code[first]), expr.type) for key, code, expr in zip(keys, codes, exprs, strict=True)
        ]
        if any(sum(len(text) for text in {*cells} if isinstance(text, str)) > MOST_TEXT for cells in columns):
            return None
        return tuple(sorted({*zip(*columns, strict=True)}, key=lambda row: [(cell is None, cell) for cell in row]))

    def _rows(self, source: Source) -> Relation:
        """Return all rows of a source, which may read tables of constants too."""
        constants = constant_tables([source], self.stores)
        database = Database({**self.stores, **constants}) if constants else self._database
        return database.relation(source).settled()

    def frame(self, schema: TableSchema) -> Frame:
        """Return all rows of a table, without columns of unsupported types."""
        rows = self._rows(Scan(schema, "", ""))
        columns = [each for each in rows_of(Scan(schema, "", "")).columns if not each.type.opaque]
        vectors = [vector_of(list(cells_of(evaluated(each, rows), each.type)), each.type) for each in columns]
        return Frame(tuple(each.name for each in columns), tuple(each.type for each in columns), tuple(vectors))

    def aggregate(self, source: Source, aggregation: Aggregation, kind: Type) -> Key:
        """Return one exact aggregate over all public rows of a source; None for NULL."""
        with np.errstate(all="ignore"):
            rows = self._rows(source)
            if kind is Type.TEXT and aggregation.argument is not None:
                cells = [cell for cell in cells_of(evaluated(aggregation.argument, rows), kind) if cell is not None]
                exact = aggregation.kind.of_cells
                return exact([*map(str, cells)], kind) if cells and exact is not None else None
            found = aggregated(aggregation, rows, np.zeros(rows.rows, dtype=np.int64), 1, kind)
            assert isinstance(found, Vector)  # texts are handled above
        return cells_of(found, kind)[0]


def published(schema: TableSchema, source: Table) -> TableSchema:
    """Return the schema of a public table completed from its rows. Raises InvalidSchema if they contradict its
    declaration."""
    store = ColumnStore(source.frame, schema)
    cells = {column.name: _distinct(store, column) for column in schema.columns if not column.type.opaque}
    for key in schema.unique:
        if _most_rows(cells, key, store.rows) > 1:
            raise InvalidSchema(f"{schema.name}: {', '.join(key)} is declared unique, and two rows are alike in it.")
    for name, most in schema.max_matches:
        if _most_rows(cells, (name,), store.rows) > most:
            raise InvalidSchema(f"{schema.name}: max_matches says {most} for {name}, and a value has more rows.")
    columns = tuple(_with_values(column, cells.get(column.name)) for column in schema.columns)
    return replace(schema, columns=columns)


Distinct = tuple[np.ndarray, Vector]


def _distinct(store: ColumnStore, column: ColumnSchema) -> Distinct:
    """Return a column's codes and distinct values; NULL is the last."""
    if column.type is not Type.TEXT:
        return store.numbered(column.name)
    key = key_of(store.encoded(column.name))
    assert key.codes is not None  # text columns have codes
    cells, valid = key.values.values.tolist(), key.values.where_valid().tolist()
    seen: dict[object, int] = {}
    numbers = [
        seen.setdefault(cell if present else None, len(seen)) for cell, present in zip(cells, valid, strict=True)
    ]
    table = np.array([*numbers, seen.setdefault(None, len(seen))], dtype=np.int64)
    texts = np.array(["" if text is None else text for text in seen], dtype=object)
    return table[key.codes], Vector(texts, np.array([text is not None for text in seen], dtype=bool))


def _most_rows(cells: Mapping[str, Distinct], key: tuple[str, ...], rows: int) -> int:
    """Return the most rows with the same values in a key, ignoring those with a NULL."""
    columns = [cells[name] for name in key]
    parts = [np.where(values.where_valid()[codes], codes, -1).astype(np.int64) for codes, values in columns]
    codes, _, size = renumber(parts, [max(1, len(values)) for _, values in columns])
    return int(np.bincount(codes[codes >= 0], minlength=max(1, size)).max(initial=0)) if rows else 0


def _with_values(column: ColumnSchema, distinct: Distinct | None) -> ColumnSchema:
    """Return the column with keys, bounds and nullability from its values, unless its owner declares them."""
    if distinct is None:
        return column
    codes, values = distinct
    occurs = np.zeros(len(values), dtype=bool)
    occurs[codes] = True
    valid = values.where_valid()
    nullable = bool((occurs & ~valid).any())
    present = values.at(np.flatnonzero(occurs & valid))
    keys = column.keys if column.keys is not None else keys_of(present, column.type, nullable=nullable)
    bounds = column.bounds
    if bounds is None and (column.type.numeric or column.type.temporal) and len(present):
        ends = [present.values.min().item(), present.values.max().item()]
        bounds = Interval(*ends) if all(np.isfinite(ends)) else None
    return replace(column, keys=keys, bounds=bounds, nullable=column.nullable and nullable)


def keys_of(present: Vector, kind: Type, *, nullable: bool) -> tuple[Key, ...] | None:
    """Return distinct values as group keys, ascending, NULL last; None if they are too many."""
    if len(present) > MOST_DERIVED_CELLS or (len(present) == 0 and not nullable):
        return None
    cells = {cell for cell in cells_of(present, kind) if cell is not None}
    if sum(len(cell) for cell in cells if isinstance(cell, str)) > MOST_TEXT:
        return None
    ordered = sorted(cells)
    return (*ordered, None) if nullable else tuple(ordered)
