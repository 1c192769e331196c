"""The sources of one query, opened before it is charged: an ended session, an inaccessible frame and changed files are
refused at no cost. No row is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dpsql.errors import InvalidSchema
from dpsql.executors.spark.session import borrowed, is_connect
from dpsql.executors.spark.stores import SparkStore, TransferredStore
from dpsql.schema.frozen import dataclass

Stores = Mapping[str, SparkStore | TransferredStore]


@dataclass(frozen=True, eq=False)
class OpenSources:
    """stamps: the state of each table's files, by folded name; None for a Spark frame, which runs at each read."""

    stamps: Mapping[str, object]


@contextmanager
def open_sources(stores: Stores) -> Iterator[OpenSources]:
    """Yield the sources of these stores. Raises InvalidSchema without Spark's messages, which may quote cells."""
    for store in stores.values():
        if isinstance(store, SparkStore):
            store.check()
        failed = _failure(store)
        if failed:
            raise InvalidSchema(
                f"Spark cannot be asked for a table ({failed}).",
                hint="Its session may have ended: make a session of Spark, and open the tables again.",
            )
    yield OpenSources({name.casefold(): store.stamps() for name, store in stores.items()})


def _failure(store: SparkStore | TransferredStore) -> str:
    """Return the class of Spark's error when a table's columns are listed; an empty text on success."""
    try:
        with borrowed(store.session) as session:
            if isinstance(store, SparkStore):
                with store.handed(session) as name:
                    columns: Any = session.table(name).columns
            else:  # an ended session still plans, but runs nothing
                columns = is_connect(session) or not session._jsparkSession.sparkContext().isStopped()
    except Exception as error:  # noqa: BLE001 - whatever Spark says
        return type(error).__name__
    return "" if columns else "ended"
