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
from dpsql.noise_conditions import Reader, conditions, of_having
from dpsql.release import Release, Released
from dpsql.release_order import order_of
from dpsql.schema import Type
from dpsql.sql.expressions import DTYPES, Column, Expr, Slot, Vector, blank, evaluate
from dpsql.sql.plan import AggregateKind, Aggregation, Stage

_LARGEST_INTEGER = 2**62


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
        made = _select(stage, read, len(answer), answer.groups, _carried(answer, stage))
        return arranged(replace(made, given=given), stage.finish, read, places, [])
    rows = answer.at(kept(stage.where, _columns(answer), len(answer)))
    codes, keys, size = _grouped(rows, stage.keys)
    slots = [*keys, *(_aggregate(each, rows, codes, size) for each in stage.aggregations)]

    def read_slot(slot: Slot) -> Vector:
        return slots[slot.index]

    made = _select(stage, read_slot, size, np.arange(size), (None,) * len(stage.finish.outputs))
    return arranged(made, stage.finish, read_slot, kept(stage.finish.having, read_slot, size), keys)


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
    """Reads an answer's columns by name, whole numbers held within what is known of them."""
    by_name = dict(zip(answer.names, answer.vectors, strict=True))

    def read(column: Column) -> Vector:
        vector = by_name[column.name]
        if column.type is not Type.INTEGER:
            return vector
        lower, upper = int(column.fact.range.lower), int(column.fact.range.upper)
        if vector.values.dtype == object:
            held = np.array([max(lower, min(upper, int(value))) for value in vector.values], dtype=np.int64)
            return Vector(held, vector.valid)
        return Vector(np.clip(vector.values, lower, upper), vector.valid)

    return read


def _carried(answer: Answer, stage: Stage) -> tuple[Expr | None, ...]:
    """What outputs are over the released slots: columns that are passed on keep their noise intervals."""
    known = dict(zip(answer.names, answer.exprs, strict=True))
    return tuple(known[o.expr.name] if isinstance(o.expr, Column) else None for o in stage.finish.outputs)


def _select(
    stage: Stage, read: Callable[[Any], Vector], size: int, groups: Places, exprs: tuple[Expr | None, ...]
) -> Answer:
    outputs = stage.finish.outputs
    vectors = tuple(evaluate(each.expr, read, size) for each in outputs)
    names, types = tuple(each.name for each in outputs), tuple(each.expr.type for each in outputs)
    return Answer(names, types, vectors, groups, exprs)


def _grouped(rows: Answer, keys: tuple[Expr, ...]) -> tuple[NDArray[np.int64], list[Vector], int]:
    """A group number for each row, the keys of each group in ascending order, and how many groups there are."""
    if not keys:
        return np.zeros(len(rows), dtype=np.int64), [], 1
    read = _columns(rows)
    vectors = [evaluate(key, read, len(rows)) for key in keys]
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
    cells = [0] * len(rows) if argument is None else _cells(evaluate(argument, _columns(rows), len(rows)))
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
    values: Any = np.array([blank(kind) if cell is None else cell for cell in found], dtype=DTYPES[kind])
    valid = np.array([cell is not None for cell in found], dtype=bool)
    return Vector(values, None if valid.all() else valid)


def _of_group(kind: AggregateKind, group: list[Any], wanted: Type) -> Any:
    if kind is AggregateKind.MIN:
        return min(group)
    if kind is AggregateKind.MAX:
        return max(group)
    if wanted is Type.INTEGER:
        return max(-_LARGEST_INTEGER, min(_LARGEST_INTEGER, sum(group)))
    try:
        total = math.fsum(group)
    except (OverflowError, ValueError):  # beyond the largest float, or infinities of both signs
        total = sum(group)
    value = total / len(group) if kind is AggregateKind.AVG else total
    return None if math.isnan(value) else value
