"""What the engine over DuckDB takes and gives (as of `dpsql.executors.base.Engine`)."""

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
    """Parquet files, DuckDB's databases and what an owner's programs gave, in an instance of our own; DataFrames too
    where `engine="duckdb"` asks for it."""

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

        return columns_of(source)

    def public_frame(self, source: Any, most: int) -> Any:
        if not self.takes(source):
            return source
        from dpsql.executors.duckdb.public import public_rows  # as above

        return public_rows(source, most)

    def store(self, source: Any, schema: TableSchema) -> FrameStore | FileStore:
        if self.takes(source) and not _was_brought(source):
            from dpsql.executors.duckdb.files import FileStore  # as above

            return FileStore(source, schema)
        from dpsql.executors.duckdb.tables import FrameStore, public_store  # loaded when the engine is asked for

        if schema.public:
            return public_store(source, schema)
        return FrameStore(source.frame, schema, source) if self.takes(source) else FrameStore(source, schema)

    def together(self, sources: Mapping[str, object]) -> None:
        """All of its sources can be."""

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
