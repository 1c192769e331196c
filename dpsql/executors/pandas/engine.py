"""The engine over pandas columns (see `dpsql.executors.base.Engine`)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TypeGuard

import pandas as pd

from dpsql.core.exact import ExactPlan
from dpsql.errors import InvalidArgument
from dpsql.executors.pandas.columns.declared_columns import ColumnStore
from dpsql.executors.pandas.executor import PandasExecutor
from dpsql.executors.resources import Resources
from dpsql.schema.columns import TableSchema
from dpsql.schema.declaration import StoredColumn
from dpsql.sources.frames import stored_columns


class PandasEngine:
    """Engine for DataFrames in this process. Lacks no feature."""

    name = "pandas"

    def takes(self, source: object) -> TypeGuard[pd.DataFrame]:
        return isinstance(source, pd.DataFrame)

    def reads(self, source: object) -> bool:
        return self.takes(source)

    def columns(self, source: pd.DataFrame) -> list[StoredColumn]:
        return stored_columns(source)

    def public_frame(self, source: pd.DataFrame, most: int) -> pd.DataFrame:  # noqa: ARG002
        return source

    def store(self, source: pd.DataFrame, schema: TableSchema) -> ColumnStore:
        return ColumnStore(source, schema)

    def together(self, sources: Mapping[str, object]) -> None:
        """Accept all of its sources."""

    def open(self, stores: Mapping[str, ColumnStore]) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def executor(self, stores: Mapping[str, ColumnStore], sources: None = None) -> PandasExecutor:  # noqa: ARG002
        return PandasExecutor(stores)

    def within(self, resources: Resources) -> PandasEngine:
        if resources.words:
            raise InvalidArgument(
                f"{resources.words[0]} is said of an engine that keeps to it, and pandas is none.",
                hint='Write engine="duckdb", or leave it out.',
            )
        return self

    def lacks(self, plan: ExactPlan) -> None:  # noqa: ARG002
        return None


PANDAS = PandasEngine()
