"""The Session of a notebook's cells: the connected one, the only one there is, or one over the declared tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpsql.core.ledger.budget import Budget
from dpsql.errors import DPSQLError, InvalidArgument, did_you_mean
from dpsql.remote.client import RemoteSession, connect
from dpsql.session.session import Session
from dpsql.session.tables.table import Table, as_table


class Notebook:
    """Finds the Session for a query in the variables of a notebook.

    1. The target of `connect`: a variable, or a server's address. 2. Otherwise the only Session, local or remote, among
    the variables. 3. Otherwise an own Session, after `state_budget` has set its budget: its tables are the variables
    that hold a `dpsql.Table` or a DataFrame from `dpsql.declare`. Variables that begin with _ are ignored: a notebook
    keeps its outputs there.
    """

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        self._connected: str | None = None
        self._remote: RemoteSession | None = None
        self._own: Session | None = None
        self._taken: dict[str, Table] = {}

    def connect(self, name: str) -> Session | RemoteSession:
        """Use the Session in the variable `name`, or the server at an address, from now on. Raises InvalidArgument, and
        as `dpsql.connect`."""
        if "://" in name:
            remote = connect(name)
            self.close()
            self._remote, self._connected = remote, None
            return remote
        session = self._session_in(name)
        self.close()
        self._connected = name
        return session

    def close(self) -> None:
        """Close the connection to a server."""
        if self._remote is not None:
            self._remote.close()
            self._remote = None

    def state_budget(self, budget: Budget) -> Session:
        """Open the own session; repeating the same budget changes nothing. Raises InvalidArgument if another budget was
        stated before, or if the user has a Session."""
        other = self._users_session()
        if other is not None:
            raise InvalidArgument(
                f"there is a Session already, with {other.budget}; %dpsql asks that one.",
                hint="A budget is stated here for declared tables without a Session.",
            )
        if self._own is None:
            self._own = Session({}, budget=budget)
        if self._own.budget != budget:
            raise InvalidArgument(
                f"the budget is {self._own.budget}; it is stated once.",
                hint="For another, open a session of your own: session = dpsql.Session({...}, budget=...).",
            )
        return self._own

    def session(self, question: str | None = None) -> Session | RemoteSession:
        """Return the Session to use; for a query, with the tables that it mentions."""
        other = self._users_session()
        if other is not None:
            return other
        if self._own is None:
            raise InvalidArgument(
                "no budget: how much may all answers of this notebook together tell about one person?",
                hint="Say %dpsql budget 3 (an epsilon) or %dpsql budget 3 1e-6 (and a delta), or open a dpsql.Session.",
            )
        if question is not None:
            self._take_tables(self._own, question.casefold())
        return self._own

    def tables(self) -> list[str]:
        """Return the names of the available tables."""
        other = self._users_session()
        return list(other.tables) if other is not None else list({**self._taken, **self._declared()})

    def add(self, name: str) -> Session | RemoteSession:
        """Add the declared table in the variable `name` to the session in use. Raises InvalidArgument, and as
        `Session.add`."""
        if isinstance(self._users_session(), RemoteSession):
            raise InvalidArgument("a server's tables are its owner's.", hint="%dpsql connect NAME asks a Session here.")
        declared = self._declared()
        if name not in declared:
            near = did_you_mean(name, declared)
            raise InvalidArgument(
                f'no declared table in a variable "{name}".{near}',
                hint=f"Declare one: {name or 'people'} = dpsql.declare(frame, bounds=...), or dpsql.Table(frame, ...).",
            )
        session = self.session()
        assert isinstance(session, Session)
        if self._users_session() is None:
            self._take_tables(session, name.casefold())
        else:
            session.add(name, declared[name])
        return session

    def _users_session(self) -> Session | RemoteSession | None:
        if self._remote is not None:
            return self._remote
        if self._connected is not None:
            return self._session_in(self._connected)
        sessions = {name: each for name, each in self._visible() if isinstance(each, Session | RemoteSession)}
        if len({id(each) for each in sessions.values()}) > 1:
            raise InvalidArgument(
                f"there are several Sessions: {', '.join(sessions)}.", hint="Say which one: %dpsql connect NAME."
            )
        return next(iter(sessions.values()), None)

    def _session_in(self, name: str) -> Session | RemoteSession:
        session = self._variables.get(name)
        if isinstance(session, Session | RemoteSession):
            return session
        if name in self._variables:
            raise InvalidArgument(f'"{name}" holds no dpsql.Session.')
        sessions = [each for each, value in self._visible() if isinstance(value, Session | RemoteSession)]
        raise InvalidArgument(
            f'no variable "{name}".{did_you_mean(name, sessions)}',
            hint=f"Sessions: {', '.join(sessions)}." if sessions else "Open one: session = dpsql.Session({...}, ...).",
        )

    def _visible(self) -> list[tuple[str, Any]]:
        return [(name, value) for name, value in list(self._variables.items()) if not name.startswith("_")]

    def _declared(self) -> dict[str, Table]:
        found = {name: as_table(value) for name, value in self._visible() if isinstance(value, pd.DataFrame | Table)}
        return {name: table for name, table in found.items() if table.declaration.columns}

    def _take_tables(self, session: Session, question: str) -> None:
        """Add the declared tables that the query mentions, or all of them if it mentions none."""
        declared = self._declared()
        mentioned = {name: table for name, table in declared.items() if name.casefold() in question}
        for name, table in (mentioned or declared).items():
            taken = self._taken.get(name)
            if taken is None:
                self._take(session, name, table, needed=name in mentioned)
            elif mentioned and not _same(taken, table):
                raise InvalidArgument(
                    f'"{name}" is not what it was when it was first asked about; a session\'s table cannot change.',
                    hint="Give the new table a name of its own.",
                )

    def _take(self, session: Session, name: str, table: Table, *, needed: bool) -> None:
        frame = table.frame.copy(deep=False) if isinstance(table.frame, pd.DataFrame) else table.frame
        kept = Table.of(frame, table.declaration)
        try:
            session.add(name, kept)
        except DPSQLError:
            if needed:
                raise
        else:
            self._taken[name] = kept


def _same(taken: Table, now: Table) -> bool:
    if taken.declaration != now.declaration or not isinstance(taken.frame, pd.DataFrame):
        return taken.declaration == now.declaration and taken.frame is now.frame
    return taken.frame is now.frame or taken.frame.equals(now.frame)
