"""Rows of a statement as the exact integers of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.core.exact import ExactPlan, ExactTable, Grid
from dpsql.executors.sql.compile import Section
from dpsql.plan.domains import vector_of
from dpsql.plan.expressions import DTYPES, Vector, blank
from dpsql.plan.query import GroupKey
from dpsql.schema.frozen import dataclass

Row = Sequence[Any]
Cells = NDArray[Any]
_ROOM = 2**63


@dataclass(frozen=True, repr=False)
class Answer:
    """The rows of a statement as columns: the number of a section; for each key its cells and whether they are no NULL
    (None: all); whole numbers, int64 or Python's, anything where a section has fewer of them."""

    sections: NDArray[np.int64]
    keys: tuple[tuple[Cells, NDArray[np.bool_] | None], ...]
    numbers: tuple[Cells, ...]


def exact_table(plan: ExactPlan, sections: Sequence[Section], rows: Iterable[Row]) -> ExactTable:
    """The answer of which these are the rows: section, a cell for each key, numbers."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    width = len(plan.keys)
    columns = columns or [()] * (1 + width)
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
    """The exact integers, by group and part: the sums of answers over different units."""
    answer = answers[0] if len(answers) == 1 else _joined(answers)
    where = [np.flatnonzero(answer.sections == number) for number in range(len(sections))]
    if plan.every_cell or not plan.keys:
        first, vectors = _cells(plan, answer), _all_cells(plan)
        groups = prod(len(key.values or ()) for key in plan.keys)
    else:
        codes = _codes(answer)
        ordered, rows = np.unique(codes[where[0]], return_index=True)
        first, groups = np.searchsorted(ordered, codes), len(ordered)
        vectors = tuple(_vector(key, *cells, where[0][rows]) for key, cells in zip(plan.keys, answer.keys, strict=True))
    wide = any(each.dtype == object for each in answer.numbers)
    parts: NDArray[Any] = np.zeros((len(plan.parts), groups), dtype=object if wide else np.int64)
    grids: list[Grid] = []
    for section, rows in zip(sections, where, strict=True):
        if section.of_all:
            parts[section.parts[0]] = sum(answer.numbers[0][rows].tolist())
        elif section.grid is None:
            for part, numbers in zip(section.parts, answer.numbers, strict=False):
                np.add.at(parts[part], first[rows], numbers[rows])
        else:
            grids.append(_grid(*(each[rows].astype(np.int64) for each in (first, *answer.numbers[:2]))))
    if wide and (not parts.size or max(abs(int(parts.max())), abs(int(parts.min()))) < _ROOM):
        parts = parts.astype(np.int64)
    return ExactTable(vectors, parts, groups, tuple(grids))


def _joined(answers: Sequence[Answer]) -> Answer:
    """The rows of all, with room for the sums of their integers."""
    every = [each for answer in answers for each in answer.numbers]
    narrow = all(each.dtype != object for each in every)
    sizes = [max(int(each.max()), -int(each.min())) for each in every if narrow and each.size]
    kind = np.int64 if narrow and max(sizes, default=0) < _ROOM // len(answers) else object
    columns = zip(*(answer.numbers for answer in answers), strict=True)
    numbers = [np.concatenate([each.astype(kind) for each in column]) for column in columns]
    keys = []
    for column in zip(*(answer.keys for answer in answers), strict=True):
        cells = np.concatenate([each for each, _ in column])
        valid = np.concatenate([np.ones(len(each), dtype=bool) if known is None else known for each, known in column])
        keys.append((cells, None if valid.all() else valid))
    return Answer(np.concatenate([answer.sections for answer in answers]), tuple(keys), tuple(numbers))


def _cells(plan: ExactPlan, answer: Answer) -> NDArray[np.int64]:
    """Where rows stand among all combinations of public values; rows of all groups anywhere."""
    place = np.zeros(len(answer.sections), dtype=np.int64)
    for key, (cells, _) in zip(plan.keys, answer.keys, strict=True):
        place = place * len(key.values or ()) + cells
    return place


def _codes(answer: Answer) -> NDArray[np.int64]:
    """A number for each row in the order of its keys, NULL last; equal for equal keys."""
    code = np.zeros(len(answer.sections), dtype=np.int64)
    for cells, valid in answer.keys:
        own, uniques = pd.factorize(cells, sort=True)
        own = own.astype(np.int64)
        if valid is not None:
            own[~valid] = len(uniques)
        both = code * (len(uniques) + 1) + own  # each is below the number of rows, and so is the last code
        code = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return code


def _all_cells(plan: ExactPlan) -> tuple[Vector, ...]:
    """The keys of all combinations of public values, in their order."""
    sizes = [len(key.values or ()) for key in plan.keys]
    cells = np.arange(prod(sizes))
    return tuple(
        _values(key).at(cells // prod(sizes[place + 1 :]) % max(1, sizes[place])) for place, key in enumerate(plan.keys)
    )


def _vector(key: GroupKey, cells: Cells, valid: NDArray[np.bool_] | None, order: NDArray[np.int64]) -> Vector:
    """The cells of a key at some rows; of a public list those at its places."""
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
