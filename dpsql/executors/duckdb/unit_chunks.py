"""In how many passes people are gone over where their rows are limited: each takes those whose hash leaves one rest, so
that they have room in memory. A unit lies in one pass, and integers add up: how many there are changes none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dpsql.core.exact import CountDistinct, ExactPlan, of_units
from dpsql.executors.duckdb.files import FileStore, rows_of
from dpsql.executors.duckdb.instance import memory_of
from dpsql.executors.duckdb.open_sources import OpenSources
from dpsql.executors.duckdb.tables import FrameStore

if TYPE_CHECKING:
    import duckdb

BYTES_OF_ROW = 150
"""What a row takes while those of its unit are chosen, of which half of the memory is to have room: 70 were measured
with three columns and a third of the units above their limit, some 250 where all rows are sorted."""
MOST = 1_000


def passes(
    connection: duckdb.DuckDBPyConnection,
    plan: ExactPlan,
    stores: Iterable[FrameStore | FileStore],
    sources: OpenSources,
    times: int,
) -> int:
    """How many passes a plan takes, by how many rows its tables have and what memory the instance may use, so many
    times: more where memory has been too little. One where no rows of units are chosen, and where different values are
    counted, which may be of units of several passes."""
    limited = plan.limits is not None or plan.groups is not None or any(map(of_units, plan.parts))
    if not limited or any(isinstance(part, CountDistinct) for part in plan.parts):
        return 1
    needed = BYTES_OF_ROW * sum(_rows(connection, each, sources) for each in stores)
    return min(MOST, times * max(1, -(-2 * needed // memory_of(connection))))


def _rows(connection: duckdb.DuckDBPyConnection, store: FrameStore | FileStore, sources: OpenSources) -> int:
    """How many rows of people a table has; of files as these say themselves."""
    if isinstance(store, FileStore):
        source = rows_of(store.source, sources.number_of(store))
        ((rows,),) = connection.execute(f"SELECT COUNT(*) FROM {source}").fetchall()
        return int(rows)
    return 0 if store.schema.public else store.columns.rows
