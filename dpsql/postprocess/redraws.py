"""SQL over answers in many runs at once: over noise that was drawn anew, and over the ends of intervals."""

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
"""Rows of answers, in all runs together."""
SECONDS = 2.0


InRun = tuple[Header, Frame, NDArray[np.int64] | None]
"""The rows of a relation, and the runs that they are of; None of what is the same in all."""


def in_runs(
    sql: str, frames: Sequence[InRun], runs: int, shown: Frame, noisy: Sequence[int], *, params: Params
) -> dict[int, Floats] | None:
    """The numbers of a statement, (runs, rows of the answer), NaN where there is none: of those of the columns `noisy`
    that are numeric.

    shown: the answer, whose other columns are the same in all runs. None where these do not tell its rows apart, or it
    is too large."""
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
    except Exception:  # noqa: BLE001 - whatever it is, nothing is said then
        return None
    if np.ma.getmaskarray(drawn[ROW]).any():  # a run has other rows
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
    """What is known of the rows of the answer, with their numbers."""
    names, types = (ROW, *(f"c{place}" for place in known)), (Type.INTEGER, *(shown.types[place] for place in known))
    vectors = Vector(np.arange(len(shown))), *(shown.vectors[place] for place in known)
    return Header(SHOWN, tuple(zip(names, types, strict=True)), len(shown), ordered=True), Frame(names, types, vectors)


def _matched(sql: str, shown: Frame, known: Sequence[int], numbers: Sequence[int]) -> str:
    """Of each row in each run: the run, the number of the answer's row that it is, and its numbers."""
    names = ", ".join([quoted(RUN), *(f"c{place}" for place in range(len(shown.names)))])
    same = " AND ".join([f"s.c{place} IS NOT DISTINCT FROM r.c{place}" for place in known] or ["TRUE"])
    values = "".join(f", CAST(r.c{place} AS DOUBLE) AS c{place}" for place in numbers)
    return f"SELECT r.{quoted(RUN)}, s.{quoted(ROW)}{values} FROM ({sql}) AS r({names}) LEFT JOIN {SHOWN} s ON {same}"


def _with_runs(header: Header, frame: Frame, of_run: NDArray[np.int64]) -> tuple[Header, Frame]:
    """The rows with the runs that they are of. In which order they come tells nothing: what depends on it is rough."""
    types = tuple((name, kind) for name, kind in zip(frame.names, frame.types, strict=True))
    longer = Header(header.name, ((RUN, Type.INTEGER), *types), header.most, ordered=True)
    return longer, Frame((RUN, *frame.names), (Type.INTEGER, *frame.types), (Vector(of_run), *frame.vectors))
