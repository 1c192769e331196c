"""Plans as DuckDB statements, each in a locked instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsql.core.exact import NO_KEY, ExactPlan, ExactTable
from dpsql.executors.duckdb.dialect import DUCKDB_SQL, DuckDBDialect
from dpsql.executors.duckdb.file_facts import seen_in
from dpsql.executors.duckdb.files import FileStore, FileTable
from dpsql.executors.duckdb.open_sources import OpenSources, Stores, open_sources
from dpsql.executors.duckdb.parquet_texts import relation
from dpsql.executors.duckdb.tables import FrameStore, FrameTable
from dpsql.executors.duckdb.unit_chunks import passes
from dpsql.executors.resources import ITSELF, NotEnoughMemory, Resources
from dpsql.executors.sql.column_facts import NOTHING
from dpsql.executors.sql.combined_statements import Answer
from dpsql.executors.sql.compile import compile_plan
from dpsql.executors.sql.result_rows import exact_answer
from dpsql.executors.sql.scans import tables_read
from dpsql.executors.sql.statement import Section, Statement
from dpsql.plan.domains import vector_of
from dpsql.schema.columns import Key, Type
from dpsql.sources.stored import SourceChanged

if TYPE_CHECKING:
    import duckdb

_LOW = 2**63 - 1
TIMES_AGAIN = 8
"""Factor by which the number of passes grows after running out of memory."""


class DuckDBExecutor:
    """Executor of plans over stores, by table name. sources: the ones opened for the query; None: each run opens its
    own."""

    def __init__(self, stores: Stores, resources: Resources = ITSELF, sources: OpenSources | None = None) -> None:
        self.stores = {name.casefold(): store for name, store in stores.items()}
        self.resources = resources
        self.sources = sources

    def execute(self, plan: ExactPlan, key: bytes = NO_KEY) -> ExactTable:
        """See `Executor`. Raises SourceChanged if files changed since they were opened."""
        wanted = tables_read(plan)
        stores = {name: store for name, store in self.stores.items() if name in wanted}
        if self.sources is not None:
            return self._executed(plan, key, stores, self.sources)
        with open_sources(stores, self.resources) as sources:
            return self._executed(plan, key, stores, sources)

    def _executed(self, plan: ExactPlan, key: bytes, stores: Stores, sources: OpenSources) -> ExactTable:
        _check_same(stores, sources, has_read=False)
        try:
            sections, answers = self._within(plan, key, stores, sources)
        finally:  # changed files take precedence over any error of the run
            _check_same(stores, sources, has_read=True)
        return exact_answer(plan, sections, answers)

    def _within(
        self, plan: ExactPlan, key: bytes, stores: Stores, sources: OpenSources
    ) -> tuple[tuple[Section, ...], list[Answer]]:
        """As `_answers`, within the memory limit. Raises NotEnoughMemory."""
        try:
            return self._answers(plan, key, stores, sources, early=True)
        except Exception as error:
            # Groups of cells, or rows of units, may exceed memory. Then keys are looked up by row, with more passes.
            if not _of_memory(error):
                raise
        return self._with_less(plan, key, stores, sources)

    def _with_less(
        self, plan: ExactPlan, key: bytes, stores: Stores, sources: OpenSources
    ) -> tuple[tuple[Section, ...], list[Answer]]:
        """As `_answers`, with the least memory possible. Raises NotEnoughMemory."""
        try:
            return self._answers(plan, key, stores, sources, early=False)
        except Exception as error:
            if not _of_memory(error):
                raise
        raise NotEnoughMemory  # outside the handler: the engine's message quotes cells, and must not be its context

    def _answers(
        self, plan: ExactPlan, key: bytes, stores: Stores, sources: OpenSources, *, early: bool
    ) -> tuple[tuple[Section, ...], list[Answer]]:
        """Return the answers of a plan, one statement for each pass over units, and their sections."""
        answers: list[Answer] = []
        sections: tuple[Section, ...] = ()
        with sources.instance() as connection:
            number = passes(connection, plan, stores.values(), sources, 1 if early else TIMES_AGAIN)
            stamped = {
                name: (store, sources.number_of(store), sources.stamps[name])
                for name, store in stores.items()
                if isinstance(store, FileStore)
            }
            seen = seen_in(connection, plan, stores, stamped, number) if early else NOTHING
            for place in range(number):
                tables = {
                    name: FrameTable(store, at)
                    if isinstance(store, FrameStore)
                    else FileTable(store, at, sources.number_of(store))
                    for at, (name, store) in enumerate(stores.items())
                }
                statement = compile_plan(plan, key, DuckDBDialect(place, number), tables, seen, early=early)
                answers.append(_answer(connection, plan, statement, tables))
                sections = statement.sections
        return sections, answers


def _check_same(stores: Stores, sources: OpenSources, *, has_read: bool) -> None:
    """Raise SourceChanged if files of these stores changed since they were opened."""
    for name, store in stores.items():
        if isinstance(store, FileStore) and not sources.is_same(name):
            raise SourceChanged(store.source, has_read=has_read)


def _of_memory(error: Exception) -> bool:
    return type(error).__name__ == "OutOfMemoryException"


def _answer(
    connection: duckdb.DuckDBPyConnection,
    plan: ExactPlan,
    statement: Statement,
    tables: Mapping[str, FrameTable | FileTable],
) -> Answer:
    """Run a statement. Its tables and lists are named in its text, so only frames are registered in the instance, and
    they are removed again."""
    views, frames = _brought(connection, statement, tables)
    heads = ", ".join(f"{name} AS NOT MATERIALIZED ({text})" for name, text in views.items())
    keys = [f"k{place}" for place in range(len(plan.keys))]
    numbers = [f"n{place}" for place in range(max(map(_width, statement.sections)))]
    # The upper and lower 63 bits of 128, with the sign in the upper: no integer is converted to a float.
    limbs = [f"CAST({n} >> 63 AS BIGINT) AS h{n}, CAST({n} & {_LOW} AS BIGINT) AS l{n}" for n in numbers]
    text = (
        f"WITH {heads} SELECT {', '.join(['section', *keys, *limbs])} "
        f"FROM ({statement.text}) AS answer({', '.join(['section', *keys, *numbers])})"
    )
    for name, frame in frames.items():
        connection.register(name, frame)
    columns = connection.execute(text).fetchnumpy()
    for name in frames:
        connection.unregister(name)
    cells = [_cells(columns[key]) for key in keys]
    whole = [_whole(columns[f"h{each}"], columns[f"l{each}"]) for each in numbers]
    return Answer(np.asarray(columns["section"]).astype(np.int64), tuple(cells), tuple(whole))


def _width(section: Section) -> int:
    """Return the number of numeric columns in its rows."""
    if section.of_all:
        return 1
    return len(section.parts) if section.grid is None else 2


def _cells(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return the cells of a possibly masked column, and a mask of those that are not NULL."""
    values = np.asarray(column)  # including values under a mask
    missing = np.zeros(len(values), dtype=bool) | np.asarray(getattr(column, "mask", False))
    if not missing.any():
        return values, None
    values = values.copy()
    values[missing] = "" if values.dtype == object else 0
    return values, ~missing


def _whole(high: Any, low: Any) -> NDArray[Any]:
    """Return integers from two limbs, NULL as 0: int64 if they fit, otherwise Python's."""
    upper, lower = (_cells(each)[0].astype(np.int64) for each in (high, low))
    if ((upper == 0) | (upper == -1)).all():
        return np.asarray(lower + np.where(upper == 0, 0, -(2**63)))
    return np.asarray(upper.astype(object) * 2**63 + lower.astype(object))


def _brought(
    connection: duckdb.DuckDBPyConnection, statement: Statement, tables: Mapping[str, FrameTable | FileTable]
) -> tuple[dict[str, str], dict[str, pd.DataFrame]]:
    """Return the tables and public lists of a statement as SELECTs by name, and their frames."""
    views, frames = {}, {}
    # Units are compared between tables: as integers if all are integers, otherwise as texts.
    as_texts = not all(table.whole_identities() for table in tables.values())
    for table in tables.values():
        if isinstance(table, FrameTable):
            views[table.name], frames[f"{table.name}_"] = table.view(as_texts=as_texts)
        else:
            rows = relation(connection, table.store, table.source, table.columns_read())
            views[table.name] = table.view(rows, as_texts=as_texts)
    for name, (kind, values) in statement.lists.items():
        frames[f"{name}_"] = list_frame(kind, values)
        cell = DUCKDB_SQL.moment("v", kind) if kind.temporal else f"CAST(v AS {DUCKDB_SQL.type_name(kind)})"
        views[name] = f"SELECT {cell} AS v, p FROM {name}_"
    return views, frames


def list_frame(kind: Type, values: tuple[Key, ...]) -> pd.DataFrame:
    """Return public values and their places."""
    vector = vector_of(list(values), kind)
    cells: Any = vector.values
    if kind is Type.TEXT:
        cells = pd.Categorical.from_codes(
            np.arange(len(cells), dtype=np.int32), categories=pd.Index(cells.tolist(), dtype=object)
        )
    return pd.DataFrame({"v": cells, "p": np.arange(len(values), dtype=np.int64)})
