"""The state of a table: a text that differs whenever its rows may differ.

Everything cached about rows has the state in its key: repeated answers, and parts of a declared partition, of which a
person pays for only one as long as the rows stay in their parts. A declared version is a state. Without a version, the
state of rows in files consists of the files' device, inode, size and times. Rows held by this process have one state
for its lifetime.
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
"""State of a table by its folded name: "" if it cannot change, None if it is unknown."""
_GONE = "gone"


@dataclass(frozen=True, eq=False)
class TableStates:
    """Current states of a session's tables. schemas: by folded name; stores: by name; opened: stamps of tables opened
    for a query; read_once: as returned by `read_once`."""

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
        """Return the states, with the session's name for tables without a version: other sessions hold other rows."""

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
        except InvalidSchema:  # a missing file is reported when it is opened
            return _GONE


def has_own_version(table: TableSchema) -> bool:
    """Return whether one version names all rows of a table."""
    return table.version not in (None, CONTENT, BY_PARTS)


def read_once(sources: Mapping[str, Table]) -> dict[str, object]:
    """Return the stamps, by folded name, of tables whose rows were read when they were opened: their files' stamps
    then, `()` for a DataFrame."""
    stamps: dict[str, object] = {}
    for name, source in sources.items():
        if hasattr(source.origin, "stamps"):  # an `Origin`
            stamps[name.casefold()] = source.origin.stamps
        elif isinstance(source.frame, pd.DataFrame):
            stamps[name.casefold()] = ()
    return stamps
