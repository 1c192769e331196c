"""The state of a table: a text that differs wherever the rows of two moments may differ.

Whatever is remembered about rows has the state in its key: answers that are given again, and parts of a declared
partition, of which a person pays for one only as long as the rows stay where they are. A declared version is a state.
Without a version, the state of rows in files is what the files are like (device, inode, size, times). Rows that this
process holds have one state for as long as it lives.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from dpsql.errors import InvalidSchema
from dpsql.schema.columns import TableSchema
from dpsql.schema.frozen import dataclass
from dpsql.schema.table_declarations import BY_PARTS, CONTENT

if TYPE_CHECKING:
    from dpsql.executors.base import Store
    from dpsql.session.tables.table import Table

State = Callable[[str], str | None]
"""Of a table by its folded name: its state, "" where that cannot change; None where nothing tells it."""
_GONE = "gone"


@dataclass(frozen=True, eq=False)
class TableStates:
    """The states of a session's tables now. schemas: by folded name; stores: by name; opened: the stamps of tables that
    were opened for a question; read_once: as of the function of that name."""

    schemas: Mapping[str, TableSchema]
    stores: Mapping[str, Store]
    read_once: Mapping[str, object]
    opened: Mapping[str, object]

    def __call__(self, name: str) -> str | None:
        schema = self.schemas[name]
        if schema.public or has_own_version(schema):
            return ""
        stamps = self._stamps(name)
        if stamps is None:
            return None
        return hashlib.sha256(repr(stamps).encode()).hexdigest()[:32] if stamps else ""

    def of_session(self, session: str) -> State:
        """As this, with the name of a session for tables without a version: other sessions hold other rows."""

        def state(name: str) -> str | None:
            now = self(name)
            return now if now is None or has_own_version(self.schemas[name]) else session + now

        return state

    def _stamps(self, name: str) -> object:
        for known in (self.read_once, self.opened):
            if name in known:
                return known[name]
        store = next((each for key, each in self.stores.items() if key.casefold() == name), None)
        try:
            return () if store is None else store.stamps()  # no store: a table of constants
        except InvalidSchema:  # a file is gone: whoever asks is told when it is opened
            return _GONE


def has_own_version(table: TableSchema) -> bool:
    """Whether one version names all rows of a table."""
    return table.version not in (None, CONTENT, BY_PARTS)


def read_once(sources: Mapping[str, Table]) -> dict[str, object]:
    """The stamps, by folded name, of tables whose rows were read when they were opened: those of their files then, `()`
    for a DataFrame."""
    stamps: dict[str, object] = {}
    for name, source in sources.items():
        if hasattr(source.origin, "stamps"):  # an `Origin`
            stamps[name.casefold()] = source.origin.stamps
        elif isinstance(source.frame, pd.DataFrame):
            stamps[name.casefold()] = ()
    return stamps
