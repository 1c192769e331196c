"""SELECTs over an answer's rows: free post-processing, exact, with every aggregate over what was released."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.finish import Answer, Places, arranged, kept, ranked, shown_output, whole_slots
from dpsql.intervals import Interval
from dpsql.noise_conditions import Reader, conditions, of_having
from dpsql.release import Release, Released
from dpsql.release_integers import as_array
from dpsql.release_order import order_of
from dpsql.schema import Type
from dpsql.sql.expressions import DTYPES, Column, Expr, Slot, Vector, blank, evaluate
from dpsql.sql.plan import AggregateKind, Aggregation, Stage


def run_stages(release: Release, answer: Answer) -> Answer:
    """The answer after each of the query's stages in turn."""
    with np.errstate(all="ignore"):
        return reduce(partial(_run, release), release.query.stages, answer)


def _run(release: Release, answer: Answer, stage: Stage) -> Answer:
    if not stage.grouped:
        read = _columns(answer)
        places = kept(stage.where, read, len(answer))
        given = answer.given.further(*conditions(release, stage.where, answer.meaning, _shown_columns(release, answer)))
        given = ranked(release, given, stage.finish, len(places), answer.meaning)
        vectors = tuple(_alone(answer, each.expr, len(answer)) for each in stage.finish.outputs)
        made = replace(_select(stage, vectors, answer.groups, _carried(answer, stage)), given=given)
        by = [_alone(answer, term.expr, len(answer)) for term in stage.finish.order]
        return arranged(made, stage.finish, read, places, [], known=by)
    rows = answer.at(kept(stage.where, _columns(answer), len(answer)))
    codes, keys, size = _grouped(rows, stage.keys)
    slots = [*keys, *(_aggregate(each, rows, codes, size) for each in stage.aggregations)]

    def read_slot(slot: Slot) -> Vector:
        return _held(slots[slot.index], _ARITHMETIC)

    def alone(expr: Expr) -> Vector:
        return slots[expr.index] if isinstance(expr, Slot) else evaluate(expr, read_slot, size)

    vectors = tuple(alone(each.expr) for each in stage.finish.outputs)
    made = _select(stage, vectors, np.arange(size), (None,) * len(stage.finish.outputs))
    by = [alone(term.expr) for term in stage.finish.order]
    return arranged(made, stage.finish, read_slot, kept(stage.finish.having, read_slot, size), keys, known=by)


_ARITHMETIC = Interval(-(2**62), 2**62)


def _held(vector: Vector, limits: Interval) -> Vector:
    """Whole numbers held within limits, in 64 bits; anything else as it is."""
    lower, upper = int(limits.lower), int(limits.upper)
    if vector.values.dtype == np.int64:
        return Vector(np.clip(vector.values, lower, upper), vector.valid)
    if vector.values.dtype == object and all(type(cell) is int for cell in vector.values):
        return Vector(np.array([max(lower, min(upper, cell)) for cell in vector.values], dtype=np.int64), vector.valid)
    return vector


def _alone(answer: Answer, expr: Expr, size: int) -> Vector:
    """An expression over an answer's columns. A column alone is as it was shown, however large its numbers are."""
    if isinstance(expr, Column):
        return dict(zip(answer.names, answer.vectors, strict=True))[expr.name]
    return evaluate(expr, _columns(answer), size)


def _shown_columns(release: Release, answer: Answer) -> Reader:
    """How columns that are passed on would show other released values."""

    def reader(released: Released) -> Callable[[Slot | Column], Vector]:
        slots = of_having(release)[1](released)

        def read(leaf: Slot | Column) -> Vector:
            assert isinstance(leaf, Column)  # stages are over columns
            expr = answer.meaning(leaf)
            assert expr is not None  # windows are of those
            kind, vector = shown_output(expr, slots, released.groups, whole_slots(release, released))
            return _columns(Answer((leaf.name,), (kind,), (vector,), np.arange(released.groups), (expr,)))(leaf)

        return read

    return reader


def _columns(answer: Answer) -> Callable[[Any], Vector]:
    """Reads an answer's columns by name for arithmetic, whole numbers held within what is known of them."""
    by_name = dict(zip(answer.names, answer.vectors, strict=True))

    def read(column: Column) -> Vector:
        vector = by_name[column.name]
        return _held(vector, column.fact.range) if column.type is Type.INTEGER else vector

    return read


def _carried(answer: Answer, stage: Stage) -> tuple[Expr | None, ...]:
    """What outputs are over the released slots: columns that are passed on keep their noise intervals."""
    known = dict(zip(answer.names, answer.exprs, strict=True))
    return tuple(known[o.expr.name] if isinstance(o.expr, Column) else None for o in stage.finish.outputs)


def _select(stage: Stage, vectors: tuple[Vector, ...], groups: Places, exprs: tuple[Expr | None, ...]) -> Answer:
    outputs = stage.finish.outputs
    names, types = tuple(each.name for each in outputs), tuple(each.expr.type for each in outputs)
    return Answer(names, types, vectors, groups, exprs)


def _grouped(rows: Answer, keys: tuple[Expr, ...]) -> tuple[NDArray[np.int64], list[Vector], int]:
    """A group number for each row, the keys of each group in ascending order, and how many groups there are."""
    if not keys:
        return np.zeros(len(rows), dtype=np.int64), [], 1
    vectors = [_alone(rows, key, len(rows)) for key in keys]
    order = order_of((), vectors, len(rows))
    cells = [_cells(vector.at(order)) for vector in vectors]
    ordered = list(zip(*cells, strict=True))
    starts = [place for place, row in enumerate(ordered) if place == 0 or row != ordered[place - 1]]
    numbers = np.zeros(len(rows), dtype=np.int64)
    numbers[order] = np.searchsorted(np.array(starts), np.arange(len(rows)), side="right") - 1
    firsts = order[np.array(starts, dtype=np.int64)]
    return numbers, [vector.at(firsts) for vector in vectors], len(starts)


def _cells(vector: Vector) -> list[Any]:
    valid = vector.where_valid().tolist()
    return [cell if present else None for cell, present in zip(vector.values.tolist(), valid, strict=True)]


def _aggregate(each: Aggregation, rows: Answer, codes: NDArray[np.int64], size: int) -> Vector:
    """One exact aggregate, a cell for each group; NULL where a group has no value, save for COUNT."""
    groups: list[list[Any]] = [[] for _ in range(size)]
    argument = each.argument
    cells = [0] * len(rows) if argument is None else _cells(_alone(rows, argument, len(rows)))
    for code, cell in zip(codes.tolist(), cells, strict=True):
        if cell is not None:
            groups[code].append(cell)
    if each.kind in (AggregateKind.COUNT, AggregateKind.DISTINCT):
        counted = [set(group) if each.kind is AggregateKind.DISTINCT else group for group in groups]
        return Vector(np.array([len(group) for group in counted], dtype=np.int64))
    assert argument is not None  # only COUNT has none
    real = each.kind is AggregateKind.AVG or (each.kind is AggregateKind.SUM and argument.type is Type.REAL)
    summed = Type.INTEGER if each.kind is AggregateKind.SUM else argument.type
    kind = Type.REAL if real else summed
    found = [_of_group(each.kind, group, kind) if group else None for group in groups]
    cells = [blank(kind) if cell is None else cell for cell in found]
    values: Any = as_array(tuple(cells)) if kind is Type.INTEGER else np.array(cells, dtype=DTYPES[kind])
    valid = np.array([cell is not None for cell in found], dtype=bool)
    return Vector(values, None if valid.all() else valid)


def _of_group(kind: AggregateKind, group: list[Any], wanted: Type) -> Any:
    if kind is AggregateKind.MIN:
        return min(group)
    if kind is AggregateKind.MAX:
        return max(group)
    if wanted is Type.INTEGER:
        return sum(group)
    try:
        total = math.fsum(group)
    except (OverflowError, ValueError):  # beyond the largest float, or infinities of both signs
        total = sum(group)
    value = total / len(group) if kind is AggregateKind.AVG else total
    return None if math.isnan(value) else value
