"""Window functions over the rows of each privacy unit.

Rows are laid out by unit, partition, order and tie-breakers; then partitions, peers and frames are runs of places. The
result of a row is a function of the multiset of its unit's rows: the layout depends only on values, and rows that tie
are interchangeable.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dpsql.executors.pandas.columns.derived_columns import DerivedColumns, Made, encoded_texts
from dpsql.executors.pandas.evaluation import evaluated
from dpsql.executors.pandas.groups import key_codes
from dpsql.executors.pandas.relations import Part, Relation
from dpsql.executors.pandas.sums.ranking import Numbers, combine, dense_ranks, stable_order
from dpsql.executors.pandas.units.inner_aggregates import renumber
from dpsql.executors.pandas.windows.window_frames import FrameBounds, Layout
from dpsql.executors.pandas.windows.window_values import framed_value, gathered, other_row, place_of
from dpsql.plan.expressions import DTYPES, Array, Bools, Column, Expr, Vector, blank
from dpsql.plan.nodes import Windows
from dpsql.plan.query import GroupKey
from dpsql.plan.windows import MOST_ROWS, WindowCall, WindowOrder
from dpsql.schema.columns import Type


def windowed(node: Windows, rows: Relation) -> Relation:
    """Return the rows with an additional part of columns. Units with more rows than `MOST_ROWS` are dropped."""
    assert rows.units is not None  # the stability of the node requires declared units
    counts = np.bincount(rows.units.numbers(), minlength=1)
    if len(counts) and counts.max() > MOST_ROWS:
        rows = rows.at(np.flatnonzero(counts[rows.units.numbers()] <= MOST_ROWS))
    work = _Work(node, rows)
    makers: dict[str, tuple[Type, Callable[[], Made]]] = {
        column.name: (column.type, partial(work.made, call))
        for call, column in zip(node.calls, node.columns, strict=True)
    }
    part = Part(DerivedColumns(rows.rows, makers))
    return Relation(rows.rows, {**rows.parts, node.columns[0].table: part}, rows.units)


class _Work:
    """The calls of one node over its rows; calls with the same partition and order share layouts."""

    def __init__(self, node: Windows, rows: Relation) -> None:
        self.node = node
        self.rows = rows
        self._layouts: dict[tuple[tuple[Expr, ...], tuple[WindowOrder, ...]], Layout] = {}

    def made(self, call: WindowCall) -> Made:
        """Return the cells of one call, in the order of the rows."""
        layout = self._layout(call.partition, call.order)
        cells = self._laid_out(call, layout)
        values: Array = np.empty(len(cells), dtype=DTYPES[call.type])
        values[layout.order] = cells.values
        valid: Bools | None = None
        if cells.valid is not None:
            valid = np.empty(len(cells), dtype=bool)
            valid[layout.order] = cells.valid
            nothing: object = blank(call.type)
            values[~valid] = nothing
        return encoded_texts(Vector(values, valid)) if call.type is Type.TEXT else Vector(values, valid)

    def _laid_out(self, call: WindowCall, layout: Layout) -> Vector:
        """Return the cells by place."""
        family = call.function.family
        if family == "place":
            return Vector(place_of(call, layout))
        argument = None if call.argument is None else evaluated(call.argument, self.rows).at(layout.order)
        if call.frame is None:
            assert argument is not None  # LAG and LEAD have an argument
            default = None if call.default is None else evaluated(call.default, self.rows).at(layout.order)
            return other_row(call, layout, argument, default)
        frame = FrameBounds(layout, call.frame, partial(self._numbers, call.order, layout))
        if family == "row":
            assert argument is not None  # as above
            places = frame.first(argument, call) if call.function.name == "FIRST_VALUE" else frame.last(argument, call)
            return gathered(argument, places)
        return framed_value(call, frame, argument)

    def _layout(self, partition: tuple[Expr, ...], order: tuple[WindowOrder, ...]) -> Layout:
        key = (partition, order)
        if key not in self._layouts:
            self._layouts[key] = self._made_layout(partition, order)
        return self._layouts[key]

    def _made_layout(self, partition: tuple[Expr, ...], order: tuple[WindowOrder, ...]) -> Layout:
        """Lay out rows by unit and partition, then by order; peers by the tie-breakers, which only peers need."""
        assert self.rows.units is not None  # as above
        keys = [key_codes(GroupKey(expr, None), self.rows) for expr in partition]
        codes = [self.rows.units.numbers().astype(np.int64), *(key.read(0, self.rows.rows) for key in keys)]
        sizes = [max(1, self.rows.units.count), *(max(1, len(key.values)) for key in keys)]
        parts, _, count = renumber(codes, sizes)
        by, size = parts, max(1, count)
        for term in order:
            by, size = combine(by, size, *_ranks(term, self.rows))
        places = stable_order(by, size)
        ordered = by[places]
        heads = np.ones(len(places), dtype=bool)
        np.not_equal(ordered[1:], ordered[:-1], out=heads[1:])
        peers = np.cumsum(heads) - 1
        tied = np.bincount(peers, minlength=1)[peers] > 1
        if tied.any():
            places[tied] = self._by_ties(places[tied], peers[tied], int(peers[-1]) + 1)
        return Layout(places, parts[places], peers)

    def _by_ties(self, places: Numbers, by: Numbers, size: int) -> Numbers:
        """Sort these rows, which are in the order of their peers, by the tie-breakers within each."""
        rows = self.rows.at(places)
        for expr in self.node.ties:
            by, size = combine(by, size, *_ranks(WindowOrder(expr, nulls_first=True), rows, zeros_apart=True))
        return places[stable_order(by, size)]

    def _numbers(self, order: tuple[WindowOrder, ...], layout: Layout) -> Vector:
        """Return the order value of a RANGE frame, by place, ascending."""
        term = order[0]
        cells = evaluated(term.expr, self.rows).at(layout.order)
        values = cells.values + 0.0 if term.expr.type is Type.REAL else cells.values.astype(np.int64)
        return Vector(-values if term.descending else values, cells.valid)


def _ranks(term: WindowOrder, rows: Relation, *, zeros_apart: bool = False) -> tuple[Numbers, int]:
    """Return each row's rank in the order of one term, and the number of ranks; NULLs have their own. zeros_apart: -0.0
    comes before 0.0."""
    valid: Bools | None
    if term.expr.type is Type.TEXT:
        ranks, size, valid = _ranks_of_texts(term.expr, rows)
    else:
        cells = evaluated(term.expr, rows)
        ranks, firsts = dense_ranks(_ordered_numbers(cells.values, zeros_apart=zeros_apart))
        size, valid = max(1, len(firsts)), cells.valid
    if term.descending:
        ranks = size - 1 - ranks
    if valid is None:
        return ranks, size
    return np.where(valid, ranks + 1, 0 if term.nulls_first else size + 1), size + 2


def _ranks_of_texts(expr: Expr, rows: Relation) -> tuple[Numbers, int, Bools]:
    """Rank texts by their code points."""
    encoded = rows.encoded(expr) if isinstance(expr, Column) else encoded_texts(evaluated(expr, rows))
    texts = encoded.dictionary.values.tolist()
    rank = {text: number for number, text in enumerate(sorted(set(texts)))}
    ranks = np.array([rank[text] for text in texts], dtype=np.int64)
    return ranks[encoded.codes], len(rank), encoded.dictionary.where_valid()[encoded.codes]


def _ordered_numbers(values: Array, *, zeros_apart: bool) -> Numbers:
    """Return numbers as int64 in the same order: doubles by their bits, with those of negative ones inverted."""
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    reals = values.astype(np.float64) if zeros_apart else np.add(values, 0.0, dtype=np.float64)
    bits = reals.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
