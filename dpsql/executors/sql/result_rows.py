"""Rows of a statement as the exact integers of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.core.exact import ExactPlan, ExactTable, Grid
from dpsql.executors.correlated_keys import PublicKeyRows
from dpsql.executors.sql.combined_statements import Answer, Cells, joined
from dpsql.executors.sql.statement import Section
from dpsql.plan.domains import vector_of
from dpsql.plan.expressions import DTYPES, Vector, blank
from dpsql.plan.query import GroupKey, axes_of, number_of_cells

Row = Sequence[Any]
Rows = NDArray[np.int64]
_ROOM = 2**63
_NUMBERS_OF_A_GRID = 2
"""Points and counts: these columns are needed even without rows."""


def exact_table(plan: ExactPlan, sections: Sequence[Section], rows: Iterable[Row]) -> ExactTable:
    """Convert rows (section, a cell for each key, numbers) to the exact table."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    width = len(plan.keys)
    columns = columns or [()] * (1 + width + _NUMBERS_OF_A_GRID)
    keys: list[tuple[Cells, NDArray[np.bool_] | None]] = []
    for key, column in zip(plan.keys, columns[1 : 1 + width], strict=True):
        if key.values is None:
            vector = vector_of(column, key.expr.type)
            keys.append((vector.values, vector.valid))
        else:
            present = np.array([cell is not None for cell in column], dtype=bool)
            keys.append((np.array([cell or 0 for cell in column], dtype=np.int64), present))
    numbers = tuple(np.array(column, dtype=object) for column in columns[1 + width :])
    return exact_answer(plan, sections, [Answer(np.array(columns[0], dtype=np.int64), tuple(keys), numbers)])


def exact_answer(plan: ExactPlan, sections: Sequence[Section], answers: Sequence[Answer]) -> ExactTable:
    """Return the exact integers, by group and part: the sums of answers over different units."""
    answer = answers[0] if len(answers) == 1 else joined(answers)
    where = [np.flatnonzero(answer.sections == number) for number in range(len(sections))]
    vectors, groups, first = _groups(plan, answer, where[0])
    in_groups = [(section, rows, first[rows]) for section, rows in zip(sections, where, strict=True)]
    parts = _summed(np.zeros((len(plan.parts), groups), dtype=np.int64), answer, in_groups)
    points, counts = answer.numbers[:_NUMBERS_OF_A_GRID] if plan.grids else (first, first)
    grids = [
        _grid(of, points[rows].astype(np.int64), counts[rows].astype(np.int64))
        for section, rows, of in in_groups
        if section.grid is not None
    ]
    return ExactTable(vectors, parts, groups, tuple(grids))


def _groups(
    plan: ExactPlan, answer: Answer, of_rows: NDArray[np.int64]
) -> tuple[tuple[Vector, ...], int, NDArray[np.int64]]:
    """Return the keys of groups, the number of groups, and the group of each row of the answer. of_rows: the rows of
    the first section, which has each group once per pass."""
    if plan.every_cell or not plan.keys:
        return _all_cells(plan), number_of_cells(plan.keys), _cells(plan, answer)
    codes = _codes(answer)
    ordered, at = np.unique(codes[of_rows], return_index=True)
    vectors = tuple(_vector(key, *cells, of_rows[at]) for key, cells in zip(plan.keys, answer.keys, strict=True))
    return vectors, len(ordered), np.searchsorted(ordered, codes)


def _summed(cells: NDArray[Any], answer: Answer, sections: Sequence[tuple[Section, Rows, Rows]]) -> NDArray[Any]:
    """Add the integers of parts by group to cells of 0, as int64 if they fit. sections: with rows and their groups."""
    wide = any(each.dtype == object for each in answer.numbers)
    parts = cells.astype(object) if wide else cells
    for section, rows, groups in sections:
        if section.of_all:
            parts[section.parts[0]] = sum(answer.numbers[0][rows].tolist())
        elif section.grid is None:
            for part, numbers in zip(section.parts, answer.numbers, strict=False):
                np.add.at(parts[part], groups, numbers[rows])
    if wide and (not parts.size or max(abs(int(parts.max())), abs(int(parts.min()))) < _ROOM):
        return parts.astype(np.int64)
    return parts


def _cells(plan: ExactPlan, answer: Answer) -> NDArray[np.int64]:
    """Return the place of each row among all combinations of public values; arbitrary for rows of all groups."""
    place = np.zeros(len(answer.sections), dtype=np.int64)
    codes = [cells.astype(np.int64) for cells, _ in answer.keys]  # without rows an engine may not give the type
    for axis in axes_of(plan.keys):
        own = [codes[key] for key in axis.keys]
        place = place * axis.cells + (own[0] if len(own) == 1 else PublicKeyRows(axis, plan.keys)(own))
    return place


def _codes(answer: Answer) -> NDArray[np.int64]:
    """Return a number for each row in the order of its keys, NULL last; equal for equal keys."""
    code = np.zeros(len(answer.sections), dtype=np.int64)
    for cells, valid in answer.keys:
        own, uniques = pd.factorize(cells, sort=True)
        own = own.astype(np.int64)
        if valid is not None:
            own[~valid] = len(uniques)
        both = code * (len(uniques) + 1) + own  # no overflow: codes and uniques are at most the number of rows
        code = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return code


def _all_cells(plan: ExactPlan) -> tuple[Vector, ...]:
    """Return the keys of all combinations of public values, in their order."""
    axes = axes_of(plan.keys)
    sizes = [axis.cells for axis in axes]
    cells = np.arange(prod(sizes))
    vectors: dict[int, Vector] = {}
    for place, axis in enumerate(axes):
        at = cells // prod(sizes[place + 1 :]) % max(1, axis.cells)
        for number in axis.keys:
            key = plan.keys[number]
            own = at if key.together is None else np.array(key.together.places, dtype=np.int64)[at]
            vectors[number] = _values(key).at(own)
    return tuple(vectors[number] for number in range(len(plan.keys)))


def _vector(key: GroupKey, cells: Cells, valid: NDArray[np.bool_] | None, order: NDArray[np.int64]) -> Vector:
    """Return the cells of a key at some rows, looked up in its public list if there is one."""
    if key.values is not None:
        return _values(key).at(cells[order].astype(np.int64))
    present = None if valid is None or valid[order].all() else valid[order]
    kind = key.expr.type
    values: Cells = cells[order].astype(DTYPES[kind])
    if present is not None:
        values[~present] = blank(kind)
    return Vector(values, present)


def _values(key: GroupKey) -> Vector:
    return vector_of(key.values or (), key.expr.type)


def _grid(groups: NDArray[np.int64], points: NDArray[np.int64], counts: NDArray[np.int64]) -> Grid:
    order = np.lexsort((points, groups))
    groups, points, counts = groups[order], points[order], counts[order]
    begins = np.ones(len(groups), dtype=bool)
    begins[1:] = (np.diff(groups) != 0) | (np.diff(points) != 0)
    starts = np.flatnonzero(begins)
    return Grid(groups[starts], points[starts], np.add.reduceat(counts, starts) if len(starts) else counts)
