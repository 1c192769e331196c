"""Plans as Spark statements, each over temporary tables created for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

from dpsql.core.exact import NO_KEY, ExactPlan, ExactTable
from dpsql.executors.spark.dialect import SPARK_SQL
from dpsql.executors.spark.session import borrowed
from dpsql.executors.spark.stores import SparkStore, SparkTable, TransferredStore, TransferredTable
from dpsql.executors.sql.compile import compile_plan
from dpsql.executors.sql.pre_grouping import GROUPED
from dpsql.executors.sql.result_rows import exact_table
from dpsql.executors.sql.scans import tables_read
from dpsql.executors.sql.statement import Statement
from dpsql.plan.domains import vector_of
from dpsql.schema.columns import Key, Type
from dpsql.sources.stored import SourceChanged

Tables = Mapping[str, SparkTable | TransferredTable]


class SparkExecutor:
    """Executor of plans over stores, by table name."""

    def __init__(self, stores: Mapping[str, SparkStore | TransferredStore]) -> None:
        self.stores = {name.casefold(): store for name, store in stores.items()}

    def execute(self, plan: ExactPlan, key: bytes = NO_KEY) -> ExactTable:
        """See `Executor`."""
        read = tables_read(plan)
        tables: Tables = {
            name: TransferredTable(store, number) if isinstance(store, TransferredStore) else SparkTable(store, number)
            for number, (name, store) in enumerate(self.stores.items())
            if name in read
        }
        statement = compile_plan(plan, key, SPARK_SQL, tables, early=True)
        stored = [each for each in tables.values() if isinstance(each, SparkTable)]
        _check_same(stored, has_read=False)
        frames = [each for each in stored if each.store.files is None]  # of one session, which reads files too
        first = next(iter([*frames, *stored, *tables.values()]))
        with borrowed(first.store.session) as session, ExitStack() as views:
            rows = _Run(session, statement, tables, views).rows()
        _check_same(stored, has_read=True)
        return exact_table(plan, statement.sections, rows)


def _check_same(tables: list[SparkTable], *, has_read: bool) -> None:
    """Raise SourceChanged if files changed since their table was opened."""
    for each in tables:
        if each.store.files is not None and each.store.stamps() != each.store.stamped:
            raise SourceChanged(each.store.files, has_read=has_read)


class _Run:
    """One statement over views of one session. Its table names are defined in a WITH clause, where they hide any other
    objects of the same names."""

    def __init__(self, session: Any, statement: Statement, tables: Tables, views: ExitStack) -> None:
        self.session = session
        self.statement = statement
        self.tables = tables
        self.token = f"dpsql_{uuid4().hex}"
        self.heads: dict[str, str] = {}
        self._views = views
        """Views to drop when the statement is done."""

    def rows(self) -> list[Any]:
        """Return all rows of the statement, collected once."""
        texts = [*self.statement.named.values(), self.statement.text]
        self._bring_tables(texts)
        for name, (kind, values) in self.statement.lists.items():
            self._hold(name, self.session.createDataFrame(_list_table(kind, values)))
        for place, (name, text) in enumerate(self.statement.named.items()):
            if name == GROUPED:  # read once, so inlined
                self.heads[name] = text
                continue
            frame = self.session.sql(self._with(text))
            wanted = _words(texts[place + 1 :])
            kept = [column for column in frame.columns if column in wanted] or frame.columns[:1]
            self._hold(name, frame.select(*kept).localCheckpoint(eager=True))
        answer = self.session.sql(self._with(self.statement.text)).collect()
        return list(answer)

    def _bring_tables(self, texts: list[str]) -> None:
        # Units are compared between tables: as integers if all are integers, otherwise as texts.
        as_texts = not all(table.whole_identities() for table in self.tables.values())
        for table in self.tables.values():
            if isinstance(table, TransferredTable):
                import pyarrow as pa  # type: ignore[import-untyped]

                self._hold(table.name, self.session.createDataFrame(pa.table(table.columns(as_texts=as_texts))))
                self.heads[table.name] = table.view(f"{self.token}_{table.name}", as_texts=as_texts)
                continue
            source = self._views.enter_context(table.store.handed(self.session))
            self.heads[table.name] = table.view(source, as_texts=as_texts)
            if table.may_differ and sum(len(re.findall(rf"\b{table.name}\b", text)) for text in texts) > 1:
                # The owner's program, which could return other rows a second time, runs once.
                text = self.heads.pop(table.name)
                self._hold(table.name, self.session.sql(text).localCheckpoint(eager=True))

    def _hold(self, name: str, frame: Any) -> None:
        view = f"{self.token}_{name}"
        frame.createTempView(view)
        self._views.callback(self.session.catalog.dropTempView, view)
        self.heads[name] = f"SELECT * FROM {view}"

    def _with(self, text: str) -> str:
        heads = ", ".join(f"{name} AS ({head})" for name, head in self.heads.items())
        return f"WITH {heads} {text}" if heads else text


def _words(texts: list[str]) -> set[str]:
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _list_table(kind: Type, values: tuple[Key, ...]) -> Any:
    """Return public values and their places as an Arrow table."""
    import pyarrow as pa

    vector = vector_of(list(values), kind)
    cells = pa.array([str(each) for each in values], pa.string()) if kind is Type.TEXT else pa.array(vector.values)
    return pa.table({"v": cells, "p": pa.array(range(len(values)), pa.int64())})
