"""The number of passes over units with contribution bounds. Each pass takes the units with one remainder of their hash,
so that they fit into memory. A unit lies in one pass, and integers are added, so the number of passes changes no
result."""

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
"""Memory per row during the selection of kept rows, for which half of the memory is reserved: 70 were measured with
three columns and a third of the units above their limit, about 250 if all rows are sorted."""
MOST = 1_000


def passes(
    connection: duckdb.DuckDBPyConnection,
    plan: ExactPlan,
    stores: Iterable[FrameStore | FileStore],
    sources: OpenSources,
    times: int,
) -> int:
    """Return the number of passes of a plan, from the rows of its tables and the memory limit, times `times`, which
    grows after running out of memory. One if no rows of units are selected, or if distinct values are counted, which
    units of several passes may share."""
    limited = plan.limits is not None or plan.groups is not None or any(map(of_units, plan.parts))
    if not limited or any(isinstance(part, CountDistinct) for part in plan.parts):
        return 1
    needed = BYTES_OF_ROW * sum(_rows(connection, each, sources) for each in stores)
    return min(MOST, times * max(1, -(-2 * needed // memory_of(connection))))


def _rows(connection: duckdb.DuckDBPyConnection, store: FrameStore | FileStore, sources: OpenSources) -> int:
    """Return the number of private rows of a table; for files from their metadata."""
    if isinstance(store, FileStore):
        source = rows_of(store.source, sources.number_of(store))
        ((rows,),) = connection.execute(f"SELECT COUNT(*) FROM {source}").fetchall()
        return int(rows)
    return 0 if store.schema.public else store.columns.rows
