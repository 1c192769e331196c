"""SELECTs over an answer's rows: free and exact post-processing, with aggregates over released values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.aggregates import Aggregation
from dpsql.plan.expressions import DTYPES, Column, Expr, Slot, Vector, blank, columns, walk
from dpsql.plan.order import order_of
from dpsql.plan.query import Finish, Stage
from dpsql.plan.whole_outputs import whole_type
from dpsql.release.intervals.conditions import Reader, conditions, of_having
from dpsql.release.output.integers import as_array
from dpsql.release.output.select import Answer, Places, arranged, kept, ranked, shown_output, whole_of
from dpsql.release.output.stage_values import held, limits_of, too_large, value
from dpsql.release.output.whole_numbers import as_type, whole_vector
from dpsql.release.release import Release, ReleasedValues
from dpsql.schema.columns import Type


def run_stages(release: Release, answer: Answer) -> Answer:
    """Return the answer after all of the query's stages."""
    with np.errstate(all="ignore"):
        return reduce(partial(_run, release), release.query.stages, answer)


def _run(release: Release, answer: Answer, stage: Stage) -> Answer:
    finish, at = stage.finish, _columns(answer)
    computed = partial(value, at=at)
    read = [stage.where, *stage.keys, *(each.argument for each in stage.aggregations)]
    read += [] if stage.grouped else _expressions(finish)
    large = answer.too_large.union(*(too_large(each, at) for each in read if each is not None))
    places = kept(stage.where, computed, len(answer))
    if not stage.grouped:
        given = answer.given.further(*conditions(release, stage.where, answer.meaning, _shown_columns(release, answer)))
        given = ranked(release, given, finish, len(places), answer.meaning)
        vectors = tuple(computed(each.expr, size=len(answer)) for each in finish.outputs)
        noisy = frozenset(each.name for each in finish.outputs if _reads(each.expr, answer.noisy))
        following = _select(stage, vectors, answer.groups, _carried(answer, stage))
        by = [computed(term.expr, size=len(answer)) for term in finish.order]
        return arranged(replace(following, given=given, noisy=noisy, too_large=large), finish, places, [], by)
    rows = answer.at(places)
    codes, keys, size = _grouped(rows, stage.keys)
    slots = [*keys, *(_aggregate(each, rows, codes, size) for each in stage.aggregations)]

    def of_slot(slot: Column | Slot) -> Vector:
        assert isinstance(slot, Slot)  # groups have only slots
        return slots[slot.index]

    alone = partial(value, at=of_slot, size=size)
    large = large.union(*(too_large(each, of_slot) for each in _expressions(finish)))
    vectors = tuple(alone(each.expr) for each in finish.outputs)
    following = _select(stage, vectors, np.arange(size), (None,) * len(finish.outputs))
    following = replace(following, noisy=_noisy_groups(release, answer, stage), too_large=large)
    return arranged(
        following, finish, kept(finish.having, alone, size), keys, [alone(term.expr) for term in finish.order]
    )


def _expressions(finish: Finish) -> list[Expr]:
    """Return all expressions of a finish."""
    having = [] if finish.having is None else [finish.having]
    return [*having, *(each.expr for each in finish.outputs), *(each.expr for each in finish.order)]


def _reads(expr: Expr, names: frozenset[str]) -> bool:
    return any(column.name in names for column in columns(expr))


def _noisy_groups(release: Release, answer: Answer, stage: Stage) -> frozenset[str]:
    """Return the random outputs of a stage that groups: keys and aggregates of noisy values, and all aggregates if
    noise selected the rows."""
    given = answer.given
    chance = release.hides or given.chosen_rows
    chance = chance or (stage.where is not None and _reads(stage.where, answer.noisy))
    read = [*stage.keys, *(each.argument for each in stage.aggregations)]
    noisy = [expr is not None and _reads(expr, answer.noisy) for expr in read]
    noisy = [each or (chance and place >= len(stage.keys)) for place, each in enumerate(noisy)]
    return frozenset(
        output.name
        for output in stage.finish.outputs
        if any(noisy[part.index] for part in walk(output.expr) if isinstance(part, Slot))
    )


def _shown_columns(release: Release, answer: Answer) -> Reader:
    """Return a reader that shows carried columns for other released values."""

    def reader(released: ReleasedValues) -> Callable[[Slot | Column], Vector]:
        slots = of_having(release)[1](released)

        def read(leaf: Slot | Column) -> Vector:
            assert isinstance(leaf, Column)  # stages are over columns
            expr = answer.meaning(leaf)
            assert expr is not None  # windows use only carried columns
            kind, vector = shown_output(release, released, expr, slots, whole_of(release, released))
            return held(vector, limits_of(leaf)) if kind is Type.INTEGER else vector

        return read

    return reader


def _columns(answer: Answer) -> Callable[[Any], Vector]:
    """Return the columns of an answer by name."""
    by_name = dict(zip(answer.names, answer.vectors, strict=True))
    return lambda column: by_name[column.name]


def _carried(answer: Answer, stage: Stage) -> tuple[Expr | None, ...]:
    """Return outputs as expressions over the released slots: carried columns keep their noise intervals."""
    known = dict(zip(answer.names, answer.exprs, strict=True))
    return tuple(known[o.expr.name] if isinstance(o.expr, Column) else None for o in stage.finish.outputs)


def _select(stage: Stage, vectors: tuple[Vector, ...], groups: Places, exprs: tuple[Expr | None, ...]) -> Answer:
    outputs = stage.finish.outputs
    pairs = [(vector, whole_type(each.expr)) for each, vector in zip(outputs, vectors, strict=True)]
    types = tuple(kind or each.expr.type for each, (_, kind) in zip(outputs, pairs, strict=True))
    shown = tuple(vector if kind is None else as_type(whole_vector(vector), kind) for vector, kind in pairs)
    return Answer(tuple(each.name for each in outputs), types, shown, groups, exprs)


def _grouped(rows: Answer, keys: tuple[Expr, ...]) -> tuple[NDArray[np.int64], list[Vector], int]:
    """Return a group number for each row, the keys of each group in ascending order, and the number of groups."""
    if not keys:
        return np.zeros(len(rows), dtype=np.int64), [], 1
    vectors = [value(key, _columns(rows), len(rows)) for key in keys]
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
    """Return one exact aggregate, a cell for each group; NULL if a group has no value, except for COUNT."""
    argument = each.argument
    groups = _cells_of_groups(argument, rows, codes, size)
    function, kind = each.kind, each.exact_type
    assert function.of_cells is not None  # other aggregates are refused over answers
    found = [function.of_cells(group, kind) if group else function.of_nothing for group in groups]
    cells: list[Any] = [blank(kind) if cell is None else cell for cell in found]
    values: Any = as_array(tuple(cells)) if kind is Type.INTEGER else np.array(cells, dtype=DTYPES[kind])
    valid = np.array([cell is not None for cell in found], dtype=bool)
    return Vector(values, None if valid.all() else valid)


def _cells_of_groups(argument: Expr | None, rows: Answer, codes: NDArray[np.int64], size: int) -> list[list[Any]]:
    """Return the aggregated values of each group: the argument's non-NULL values, or a placeholder for every row."""
    groups: list[list[Any]] = [[] for _ in range(size)]
    cells = [0] * len(rows) if argument is None else _cells(value(argument, _columns(rows), len(rows)))
    for code, cell in zip(codes.tolist(), cells, strict=True):
        if cell is not None:
            groups[code].append(cell)
    return groups
