"""The engine over DuckDB (see `dpsql.executors.base.Engine`)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsql.core.exact import ExactPlan
from dpsql.executors.resources import ITSELF, Resources
from dpsql.schema.columns import TableSchema
from dpsql.schema.declaration import StoredColumn
from dpsql.schema.frozen import dataclass
from dpsql.sources.frames import stored_columns

if TYPE_CHECKING:
    from dpsql.executors.duckdb.executor import DuckDBExecutor
    from dpsql.executors.duckdb.files import FileStore
    from dpsql.executors.duckdb.open_sources import OpenSources
    from dpsql.executors.duckdb.tables import FrameStore


@dataclass(frozen=True)
class DuckDBEngine:
    """Engine for Parquet files, DuckDB databases and results of owners' programs, in its own instance; for DataFrames
    too if `engine="duckdb"` is chosen."""

    resources: Resources = ITSELF
    name = "duckdb"

    def takes(self, source: object) -> bool:
        return type(source).__module__ == "dpsql.sources.stored"  # loaded with the first such source

    def reads(self, source: object) -> bool:
        return self.takes(source) or isinstance(source, pd.DataFrame)

    def columns(self, source: Any) -> list[StoredColumn]:
        if not self.takes(source):
            return stored_columns(source)
        if _was_brought(source):
            return stored_columns(source.frame)
        from dpsql.executors.duckdb.files import columns_of  # as above
        from dpsql.executors.duckdb.releases import check_release

        check_release()
        return columns_of(source)

    def public_frame(self, source: Any, most: int) -> Any:
        if not self.takes(source):
            return source
        from dpsql.executors.duckdb.public import public_rows  # as above
        from dpsql.executors.duckdb.releases import check_release

        check_release()
        return public_rows(source, most)

    def store(self, source: Any, schema: TableSchema) -> FrameStore | FileStore:
        if self.takes(source) and not _was_brought(source):
            from dpsql.executors.duckdb.files import FileStore  # as above

            return FileStore(source, schema)
        from dpsql.executors.duckdb.tables import FrameStore, public_store  # loaded when the engine is used

        if schema.public:
            return public_store(source, schema)
        return FrameStore(source.frame, schema, source) if self.takes(source) else FrameStore(source, schema)

    def together(self, sources: Mapping[str, object]) -> None:  # noqa: ARG002
        """Accept all of its sources. Raises InvalidSchema if the installed DuckDB is not of a tested release."""
        from dpsql.executors.duckdb.releases import check_release  # loaded when the engine is used

        check_release()

    def open(self, stores: Mapping[str, FrameStore | FileStore]) -> AbstractContextManager[OpenSources]:
        from dpsql.executors.duckdb.open_sources import open_sources  # as above

        return open_sources({name.casefold(): store for name, store in stores.items()}, self.resources)

    def executor(
        self, stores: Mapping[str, FrameStore | FileStore], sources: OpenSources | None = None
    ) -> DuckDBExecutor:
        from dpsql.executors.duckdb.executor import DuckDBExecutor  # as above

        return DuckDBExecutor(stores, self.resources, sources)

    def within(self, resources: Resources) -> DuckDBEngine:
        return DuckDBEngine(resources)

    def lacks(self, plan: ExactPlan) -> str | None:
        from dpsql.executors.duckdb.binding import lacking  # as above

        return lacking(plan)


def _was_brought(source: object) -> bool:
    from dpsql.sources.stored import ExternalFrame  # loaded with the first such source

    return isinstance(source, ExternalFrame)


DUCKDB = DuckDBEngine()
