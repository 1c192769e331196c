"""Post-processing SQL in many runs at once: over simulated noise, and over the ends of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.expressions import Vector
from dpsql.plan.redraws import RUN, RUNS
from dpsql.postprocess.check import check
from dpsql.postprocess.database import Params, interrupted, tree_of, with_connection
from dpsql.postprocess.frames import Frame, Header
from dpsql.postprocess.relations import fill, quoted
from dpsql.schema.columns import Type

if TYPE_CHECKING:
    import duckdb

Floats = NDArray[np.float64]
MOST_CELLS = 1_000_000
"""Most rows of answers, in all runs together."""
SECONDS = 2.0


InRun = tuple[Header, Frame, NDArray[np.int64] | None]
"""The rows of a relation, and the run of each; None if the rows are the same in all runs."""


def in_runs(
    sql: str, frames: Sequence[InRun], runs: int, shown: Frame, noisy: Sequence[int], *, params: Params
) -> dict[int, Floats] | None:
    """Return the numeric columns among `noisy` of a statement's output, by place, as (runs, rows of the answer), NaN
    for NULL.

    shown: the answer, whose other columns are the same in all runs. None if these do not identify its rows, or if it is
    too large."""
    cells = sum(len(frame) for _, frame, _ in frames)
    if not len(shown) or max(cells, len(shown) * runs) > MOST_CELLS:
        return None
    numbers = [place for place in noisy if shown.types[place].numeric]
    known = [place for place in range(len(shown.names)) if place not in noisy]

    def of(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
        columns = {header.name.casefold(): [name for name, _ in header.columns] for header, _, _ in frames}
        check(tree_of(connection, sql), {RUNS: [RUN], **columns})
        connection.execute(f"CREATE TEMP TABLE {quoted(RUNS)} AS SELECT UNNEST(range({runs})) AS {quoted(RUN)}")
        for header, frame, of_run in frames:
            fill(connection, *(header, frame) if of_run is None else _with_runs(header, frame, of_run))
        fill(connection, *_numbered(shown, known))
        with interrupted(connection, SECONDS):
            drawn: dict[str, Any] = connection.execute(_matched(sql, shown, known, numbers), dict(params)).fetchnumpy()
        return drawn

    try:
        drawn = with_connection(of)
    except Exception:  # noqa: BLE001 - on any error there are no simulated intervals
        return None
    if np.ma.getmaskarray(drawn[ROW]).any():  # a run has different rows
        return None
    slots = np.asarray(drawn[RUN], dtype=np.int64) * len(shown) + np.asarray(drawn[ROW], dtype=np.int64)
    if len(slots) != runs * len(shown) or (np.bincount(slots, minlength=len(slots)) != 1).any():
        return None
    order = np.argsort(slots)
    return {
        place: np.ma.filled(drawn[f"c{place}"].astype(np.float64), np.nan)[order].reshape(runs, len(shown))
        for place in numbers
    }


SHOWN, ROW = "__shown", "__row"
"""The rows of the answer, with their numbers."""


def _numbered(shown: Frame, known: Sequence[int]) -> tuple[Header, Frame]:
    """Return the known columns of the answer's rows, with row numbers."""
    names, types = (ROW, *(f"c{place}" for place in known)), (Type.INTEGER, *(shown.types[place] for place in known))
    vectors = Vector(np.arange(len(shown))), *(shown.vectors[place] for place in known)
    return Header(SHOWN, tuple(zip(names, types, strict=True)), len(shown), ordered=True), Frame(names, types, vectors)


def _matched(sql: str, shown: Frame, known: Sequence[int], numbers: Sequence[int]) -> str:
    """Return SQL that yields, for each row in each run: the run, the number of the matching row, and its numbers."""
    names = ", ".join([quoted(RUN), *(f"c{place}" for place in range(len(shown.names)))])
    same = " AND ".join([f"s.c{place} IS NOT DISTINCT FROM r.c{place}" for place in known] or ["TRUE"])
    values = "".join(f", CAST(r.c{place} AS DOUBLE) AS c{place}" for place in numbers)
    return f"SELECT r.{quoted(RUN)}, s.{quoted(ROW)}{values} FROM ({sql}) AS r({names}) LEFT JOIN {SHOWN} s ON {same}"


def _with_runs(header: Header, frame: Frame, of_run: NDArray[np.int64]) -> tuple[Header, Frame]:
    """Return the rows with their runs. Their order is arbitrary: results that depend on the order are inaccurate."""
    types = tuple((name, kind) for name, kind in zip(frame.names, frame.types, strict=True))
    longer = Header(header.name, ((RUN, Type.INTEGER), *types), header.most, ordered=True)
    return longer, Frame((RUN, *frame.names), (Type.INTEGER, *frame.types), (Vector(of_run), *frame.vectors))
