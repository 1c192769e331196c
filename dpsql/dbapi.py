"""PEP 249 (DB-API) over a local or remote session, for programs that support only this interface.

    connection = dpsql.dbapi.connect(session, epsilon=0.1)
    frame = pandas.read_sql("SELECT country, COUNT(*) AS n FROM customers GROUP BY country", connection)

Each statement without a cached answer is charged. Nothing is written, so there is nothing to commit, and what was spent
cannot be rolled back. Errors are those of dpsql, here under the names of PEP 249.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol, Self

from dpsql import errors
from dpsql.answer.base import BaseResult
from dpsql.errors import InvalidArgument, as_written
from dpsql.schema.argument_names import checked_methods, checked_names
from dpsql.schema.frozen import dataclass

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel: str = "2.0"
threadsafety: int = 1
paramstyle: str = "named"
Warning = UserWarning  # noqa: A001 - the name is the standard's
Error = DatabaseError = errors.DPSQLError
InterfaceError = errors.InvalidArgument
ProgrammingError = errors.QueryRefused
NotSupportedError = errors.UnsupportedSQL
OperationalError = errors.ServerUnavailable
IntegrityError = errors.LedgerError
InternalError = errors.InternalError
DataError = errors.PostprocessFailed


@dataclass(frozen=True)
class _Kind:
    """A type object that equals the names of its types."""

    names: frozenset[str]

    def __eq__(self, other: object) -> bool:
        return other.names == self.names if isinstance(other, _Kind) else other in self.names

    def __hash__(self) -> int:
        return hash(self.names)


STRING, DATETIME = _Kind(frozenset({"text"})), _Kind(frozenset({"date", "timestamp"}))
NUMBER = _Kind(frozenset({"integer", "real", "boolean"}))
BINARY, ROWID = _Kind(frozenset()), _Kind(frozenset({"rowid"}))
Date, Time, Timestamp, Binary = datetime.date, datetime.time, datetime.datetime, bytes
DateFromTicks = datetime.date.fromtimestamp
TimestampFromTicks = datetime.datetime.fromtimestamp


@checked_names
def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802 - the name is the standard's
    """Return the local time of day."""
    return datetime.datetime.fromtimestamp(ticks).time()


class QuerySession(Protocol):
    """A local or remote session."""

    def query(self, sql: str, **terms: Any) -> Any: ...


@checked_names
def connect(
    session: QuerySession,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    error: float | None = None,
    confidence: float | None = None,
) -> Connection:
    """Open a connection that runs each statement in a session at a given cost. Closing it leaves the session open.

    Parameters
    ----------
    session : Session or RemoteSession
        Where statements run.
    epsilon, delta, rho, error, confidence : float, optional
        Arguments of `Session.query` for each statement.

    Raises
    ------
    InvalidArgument
        If `session` is not a session.
    """
    if not callable(getattr(session, "query", None)):
        raise InvalidArgument(
            f"a connection is made of a session, got {as_written(session)}.",
            hint="Write dpsql.dbapi.connect(dpsql.connect(url), epsilon=0.1).",
        )
    terms = {"epsilon": epsilon, "delta": delta, "rho": rho, "error": error, "confidence": confidence}
    return Connection(session, {word: value for word, value in terms.items() if value is not None})


@checked_methods
class Connection:
    """A session, with the cost of each statement."""

    def __init__(self, session: QuerySession, terms: Mapping[str, float]) -> None:
        self._session, self._terms, self._closed = session, dict(terms), False

    def cursor(self) -> Cursor:
        """Return a new cursor. Raises InvalidArgument if the connection is closed."""
        self._check()
        return Cursor(self)

    def commit(self) -> None:
        """Do nothing: nothing is written."""
        self._check()

    def rollback(self) -> None:
        """Do nothing: what was spent stays spent."""
        self._check()

    def close(self) -> None:
        """Close the connection; the session stays open."""
        self._closed = True

    def _asked(self, sql: str, params: Mapping[str, Any] | None) -> Any:
        self._check()
        return self._session.query(sql, **self._terms, params=params)

    def _check(self) -> None:
        if self._closed:
            raise InvalidArgument("the connection is closed.", hint="dpsql.dbapi.connect(session) makes another.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@checked_methods
class Cursor:
    """Runs statements one after another, and holds the rows of the last answer."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.result: Any = None
        """The whole answer, with intervals, cost and notes; an explanation for EXPLAIN PRIVACY."""
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount: int = -1
        self._rows: list[tuple[Any, ...]] | None = None
        self._next = 0
        self._closed = False

    def execute(self, operation: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> Self:
        """Run a statement, which is charged unless its answer is cached. parameters: values for `:name`. Raises as
        `Session.query`, and InvalidArgument."""
        self._check()
        if parameters is not None and not isinstance(parameters, Mapping):
            if parameters:
                raise InvalidArgument('parameters have names: {"low": 20} for :low.')
            parameters = None
        self._rows = self.description = None
        self.result = self.connection._asked(operation, parameters)
        if isinstance(self.result, BaseResult):
            columns = self.result._export_columns(None)
            names = [(each.name, str(each.kind)) for each in columns]
            self._rows = list(zip(*(each.cells for each in columns), strict=True))
        else:
            names, self._rows = [("explanation", "text")], [(line,) for line in str(self.result).split("\n")]
        self.description = [(name, kind, None, None, None, None, None) for name, kind in names]
        self.rowcount, self._next = len(self._rows), 0
        return self

    def executemany(self, _operation: str, _parameters: object) -> NoReturn:
        """Raise UnsupportedSQL: a loop that pays for each run must be explicit."""
        raise NotSupportedError("executemany would pay for each of them.", hint="Ask one after another by execute.")

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row; None after the last."""
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Return the next `size` or `arraysize` rows."""
        rows = self._left()[: self.arraysize if size is None else size]
        self._next += len(rows)
        return rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all remaining rows."""
        rows = self._left()
        self._next += len(rows)
        return rows

    def setinputsizes(self, _sizes: object) -> None:
        """Do nothing: types are known."""

    def setoutputsize(self, _size: int, _column: int | None = None) -> None:
        """Do nothing: cells are returned whole."""

    def close(self) -> None:
        """Close the cursor."""
        self._closed, self._rows = True, None

    def _left(self) -> list[tuple[Any, ...]]:
        self._check()
        if self._rows is None:
            raise InvalidArgument("nothing was asked here that has rows.", hint="Call execute first.")
        return self._rows[self._next :]

    def _check(self) -> None:
        if self._closed:
            raise InvalidArgument("the cursor is closed.", hint="connection.cursor() makes another.")

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
