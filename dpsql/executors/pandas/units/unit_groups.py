"""Groups of rows inside each privacy unit, one output row per group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dpsql.executors.pandas.columns.derived_columns import DerivedColumns, Made, encoded_texts
from dpsql.executors.pandas.columns.gathering import Places
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.groups import key_codes
from dpsql.executors.pandas.relations import Part, Relation
from dpsql.executors.pandas.units.inner_aggregates import KERNELS, aggregate, aggregate_cells, renumber
from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import Column, Expr, Vector
from dpsql.plan.nodes import PerUnit
from dpsql.plan.query import GroupKey
from dpsql.schema.columns import Type


def grouped(node: PerUnit, rows: Relation) -> Relation:
    """Return one row for each group of these rows, all of which are kept and have a unit."""
    units = rows.units  # None: public rows, which have no unit
    keys = [key_codes(GroupKey(key, None), rows) for key in node.keys]
    whose = np.zeros(rows.rows, dtype=np.int64) if units is None else units.numbers().astype(np.int64)
    parts = [whose, *(key.read(0, rows.rows) for key in keys)]
    sizes = [1 if units is None else max(1, units.count), *(max(1, len(key.values)) for key in keys)]
    by = 1 if node.alone else len(parts)  # then a unit has one row, even if bounds split its key in two
    groups, firsts, size = renumber(parts[:by], sizes[:by])
    makers: dict[str, tuple[Type, Callable[[], Made]]] = {}
    for key, codes, column in zip(keys, parts[1:], node.columns, strict=False):
        cells = key.values.at(codes[firsts])
        makers[column.name] = (column.type, partial(_as_made, cells, column.type))
    for each, column in zip(node.aggregations, node.columns[len(keys) :], strict=True):
        makers[column.name] = (column.type, partial(aggregated, each, rows, groups, size, column.type))
    return Relation(
        size, {node.columns[0].table: Part(DerivedColumns(size, makers))}, None if units is None else units.at(firsts)
    )


def _as_made(cells: Vector, kind: Type) -> Made:
    return encoded_texts(cells) if kind is Type.TEXT else cells


def aggregated(each: Aggregation, rows: Relation, groups: Places, size: int, kind: Type) -> Made:
    """Compute one exact aggregate of each group inside a unit."""
    argument = each.argument
    if argument is None:
        return aggregate("COUNT", groups, size, None, kind)
    if each.kind.distinct:
        keys = key_codes(GroupKey(argument, None), rows)
        codes = keys.read(0, rows.rows)
        valid = keys.values.where_valid()[codes]
        return aggregate("COUNT_DISTINCT", groups, size, Vector(codes, valid), kind)
    if kind is Type.TEXT:
        return _extreme_text(each, argument, rows, groups, size)
    vector = evaluated(argument, rows)
    if each.kind.counts or each.kind.name in KERNELS:
        return aggregate("COUNT" if each.kind.counts else each.kind.name, groups, size, vector, kind)
    return aggregate_cells(each.kind, groups, size, vector, kind)


def _extreme_text(each: Aggregation, argument: Expr, rows: Relation, groups: Places, size: int) -> Made:
    """Return the least or the largest text of each group, by code points."""
    encoded = rows.encoded(argument) if isinstance(argument, Column) else encoded_texts(evaluated(argument, rows))
    texts = sorted(set(encoded.dictionary.values.tolist()))
    rank = {text: number for number, text in enumerate(texts)}
    ranks = np.array([rank[text] for text in encoded.dictionary.values.tolist()], dtype=np.int64)
    cells = Vector(ranks[encoded.codes], encoded.dictionary.where_valid()[encoded.codes])
    found = aggregate(each.kind.name, groups, size, cells, Type.INTEGER)
    return encoded_texts(Vector(np.array([*texts, ""], dtype=object)[found.values], found.valid))
