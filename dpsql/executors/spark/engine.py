"""The engine over Spark (see `dpsql.executors.base.Engine`). Imports pyspark only for one of its frames, or if the
owner chooses this engine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsql.core.exact import ExactPlan
from dpsql.errors import InvalidArgument, InvalidSchema
from dpsql.executors.resources import Resources
from dpsql.schema.columns import TableSchema, Type
from dpsql.schema.declaration import StoredColumn
from dpsql.schema.stored_types import width_of
from dpsql.sources.frames import stored_columns

if TYPE_CHECKING:
    from dpsql.executors.spark.executor import SparkExecutor
    from dpsql.executors.spark.open_sources import OpenSources
    from dpsql.executors.spark.stores import SparkStore, TransferredStore


class SparkEngine:
    """Engine for Spark frames, in a separate session next to theirs; if chosen, also for Parquet files and
    DataFrames."""

    name = "spark"

    def takes(self, source: object) -> bool:
        kinds = type(source).__mro__
        return any(kind.__module__.startswith("pyspark.sql.") and kind.__name__ == "DataFrame" for kind in kinds)

    def reads(self, source: object) -> bool:
        return self.takes(source) or isinstance(source, pd.DataFrame) or _is_parquet(source)

    def columns(self, source: Any) -> list[StoredColumn]:
        if not self.takes(source):
            return stored_columns(source)
        from dpsql.executors.spark.cells import type_of  # loaded with the first such source

        fields, streams = _described(source)
        if streams:
            raise InvalidSchema("a frame that streams has no end.", hint="Write it to a table, and ask about that.")
        for name, _ in fields:
            if "\0" in name:
                raise InvalidSchema("a column name holds a NUL character.")
        return [_stored(name, type_of(stored), stored) for name, stored in fields]

    def public_frame(self, source: Any, most: int) -> Any:  # noqa: ARG002
        raise InvalidSchema("a frame of Spark cannot be public.", hint="Make a DataFrame of pandas of it.")

    def store(self, source: Any, schema: TableSchema) -> SparkStore | TransferredStore:
        from dpsql.executors.spark.stores import SparkStore, TransferredStore  # as above

        return TransferredStore(source, schema) if isinstance(source, pd.DataFrame) else SparkStore(source, schema)

    def together(self, sources: Mapping[str, object]) -> None:
        from dpsql.executors.spark.session import same_session  # as above

        frames = [(name, source) for name, source in sources.items() if self.takes(source)]
        for name, frame in frames[1:]:
            first, held = frames[0]
            if not same_session(held.sparkSession, frame.sparkSession):  # type: ignore[attr-defined]
                raise InvalidSchema(
                    f"{name} and {first} are frames of two sessions of Spark.",
                    hint="Make both by one SparkSession: a session does not read what is another's.",
                )

    def open(self, stores: Mapping[str, SparkStore | TransferredStore]) -> AbstractContextManager[OpenSources]:
        from dpsql.executors.spark.open_sources import open_sources  # as above

        return open_sources(stores)

    def executor(
        self,
        stores: Mapping[str, SparkStore | TransferredStore],
        sources: OpenSources | None = None,  # noqa: ARG002 - files are held to what they were when they were opened
    ) -> SparkExecutor:
        from dpsql.executors.spark.executor import SparkExecutor  # as above

        return SparkExecutor(stores)

    def within(self, resources: Resources) -> SparkEngine:
        if resources.words:
            raise InvalidArgument(
                f"{resources.words[0]} is said of an engine that keeps to it: Spark's session has settings of its own.",
                hint='Write it where the session of Spark is made, or engine="duckdb".',
            )
        return self

    def lacks(self, plan: ExactPlan) -> str | None:
        from dpsql.executors.spark.binding import lacking  # as above

        return lacking(plan)


def _described(source: Any) -> tuple[list[tuple[str, str]], bool]:
    """Return names and types of a frame's columns, and whether it streams. A Connect client fetches them from its
    server, whose error message may quote the owner's code."""
    from dpsql.executors.spark.session import no_errors_logged  # as above

    try:
        with no_errors_logged():
            return [(field.name, field.dataType.simpleString()) for field in source.schema.fields], source.isStreaming
    except Exception as error:  # noqa: BLE001 - of Spark's kinds
        failed = type(error).__name__
    raise InvalidSchema(
        f"the columns of a frame of Spark cannot be listed ({failed}).", hint="See that frame.printSchema() works."
    )


def _is_parquet(source: object) -> bool:
    return type(source).__module__ == "dpsql.sources.stored" and type(source).__name__ == "ParquetFiles"


SPARK = SparkEngine()


def _stored(name: str, kind: Type, stored: str) -> StoredColumn:
    return StoredColumn(name, kind, True, stored, width_of(stored) if kind.numeric else 0)
