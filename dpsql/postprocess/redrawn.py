"""SQL over answers in many runs at once: over noise that was drawn anew, and over the ends of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Vector
from dpsql.plan.redrawn import RUN, RUNS
from dpsql.postprocess.check import check
from dpsql.postprocess.frames import Frame, Header, vector_of_cells
from dpsql.postprocess.machine import Params, fill, interrupted, quoted, tree_of, with_connection
from dpsql.schema.columns import Type

if TYPE_CHECKING:
    import duckdb

Floats = NDArray[np.float64]
MOST_CELLS = 1_000_000
"""Rows of answers, in all runs together."""
SECONDS = 2.0


InRun = tuple[Header, Frame, NDArray[np.int64] | None]
"""The rows of a relation, and the runs that they are of; None of what is the same in all."""


def in_runs(
    sql: str, frames: Sequence[InRun], runs: int, shown: Frame, noisy: Sequence[int], *, params: Params
) -> dict[int, Floats] | None:
    """The numbers of the columns `noisy` of a statement, (runs, rows of the answer), NaN where there is none.

    shown: the answer, whose other columns are the same in all runs. None where these do not tell its rows apart, or it
    is too large."""
    cells = sum(len(frame) for _, frame, _ in frames)
    if not len(shown) or max(cells, len(shown) * runs) > MOST_CELLS:
        return None

    def of(connection: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
        columns = {header.name.casefold(): [name for name, _ in header.columns] for header, _, _ in frames}
        check(tree_of(connection, sql), {RUNS: [RUN], **columns})
        connection.execute(f"CREATE TEMP TABLE {quoted(RUNS)} AS SELECT UNNEST(range({runs})) AS {quoted(RUN)}")
        for header, frame, of_run in frames:
            fill(connection, *(header, frame) if of_run is None else _with_runs(header, frame, of_run))
        with interrupted(connection, SECONDS):
            rows: list[tuple[Any, ...]] = connection.execute(sql, dict(params)).fetchall()
        return rows

    try:
        rows = with_connection(of)
    except Exception:  # noqa: BLE001 - whatever it is, nothing is said then
        return None
    if len(rows) != runs * len(shown):
        return None
    columns = list(zip(*rows, strict=True))
    order = _aligned(columns, shown, [place for place in range(len(shown.names)) if place not in noisy])
    if order is None:
        return None
    numbers = {}
    for place in noisy:
        values = np.array([np.nan if cell is None else float(cell) for cell in columns[place + 1]])
        numbers[place] = values[order].reshape(runs, len(shown))
    return numbers


def _with_runs(header: Header, frame: Frame, of_run: NDArray[np.int64]) -> tuple[Header, Frame]:
    """The rows with the runs that they are of."""
    types = tuple((name, kind) for name, kind in zip(frame.names, frame.types, strict=True))
    longer = Header(header.name, ((RUN, Type.INTEGER), *types), header.most)
    return longer, Frame((RUN, *frame.names), (Type.INTEGER, *frame.types), (Vector(of_run), *frame.vectors))


def _aligned(columns: Sequence[Sequence[Any]], shown: Frame, known: Sequence[int]) -> NDArray[np.int64] | None:
    """The rows of all runs in the order of runs, in each in that of the answer's rows; None where rows are alike."""
    texts = _texts([shown.vectors[place] for place in known], len(shown))
    of_runs = _texts([vector_of_cells(shown.types[place], columns[place + 1]) for place in known], len(columns[0]))
    if len(set(texts)) < len(texts):
        return None
    rank = {text: number for number, text in enumerate(texts)}
    if not set(of_runs) <= rank.keys():
        return None
    places = np.array([rank[text] for text in of_runs], dtype=np.int64)
    slots = np.array(columns[0], dtype=np.int64) * len(shown) + places
    if len(np.unique(slots)) < len(slots):
        return None
    return np.argsort(slots)


def _texts(vectors: Sequence[Vector], size: int) -> list[str]:
    """Each row as a text of its own."""
    if not vectors:
        return [""] * size
    cells = [
        [cell if valid else None for cell, valid in zip(each.values.tolist(), each.where_valid().tolist(), strict=True)]
        for each in vectors
    ]
    return [repr(row) for row in zip(*cells, strict=True)]
