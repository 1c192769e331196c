"""Locked DuckDB for post-processing SQL: in memory, one thread, without files, network, access to Python's variables or
changeable settings, and with no relations but the frames of the current statement."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dpsql.errors import InternalError, PostprocessFailed, SQLSyntaxError, UnsupportedSQL
from dpsql.postprocess.check import OVER_ANSWERS, check, objects
from dpsql.postprocess.frames import Frame, Header, type_of, vector_of_cells
from dpsql.postprocess.headers import value_name
from dpsql.postprocess.projections import ColumnProjection, passing
from dpsql.postprocess.relations import arrays_of, as_they_are, created, fill, in_text
from dpsql.postprocess.scalar_subqueries import check_single
from dpsql.postprocess.time_limit import within
from dpsql.postprocess.trial_rows import constant_failure
from dpsql.postprocess.work_limits import CELL, check_work
from dpsql.schema.columns import Type
from dpsql.schema.frozen import dataclass

if TYPE_CHECKING:
    import duckdb

MEMORY = "512MB"
SECONDS = 30.0
"""Time limit of a statement."""
SECONDS_OF_NO_ROW = 2.0
"""Time limit of a statement's constant parts, which are tried before anything is charged."""

CONFIG: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "temp_directory": "",
    "threads": "1",
    "memory_limit": MEMORY,
    "pandas_analyze_sample": "0",
}
SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET enable_progress_bar = false",
    "SET error_on_division_by_zero = false",
    "SET ieee_floating_point_ops = true",
    "SET lock_configuration = true",
)

Made = TypeVar("Made")
Params = Mapping[str, object]


@dataclass(frozen=True)
class Value:
    """A parameter that stands for a column of a one-row relation."""

    name: str
    header: Header
    place: int

    def of(self, frame: Frame) -> object:
        """Return its value. Raises ValueError unless there is one row, and OverflowError as `array_of`."""
        (cell,) = self.header.cells(*self.header.columns[self.place], frame.vectors[self.place])
        return cell


@dataclass(frozen=True)
class Statement:
    """SQL over frames: its text, the relations that it names, and its output's names and types, as bound over empty
    relations. `values`: its parameters that stand for columns of one-row relations."""

    sql: str
    headers: tuple[Header, ...]
    names: tuple[str, ...]
    types: tuple[Type, ...]
    values: tuple[Value, ...] = ()
    passing: ColumnProjection | None = None
    """The columns that it passes on, if it does nothing else."""

    def given(self, frames: Mapping[str, Frame]) -> dict[str, object]:
        """Return the values of its parameters."""
        return {each.name: each.of(frames[each.header.name]) for each in self.values}

    @property
    def relations(self) -> tuple[Header, ...]:
        """All relations that it reads."""
        return tuple({each.name: each for each in (*self.headers, *(value.header for value in self.values))}.values())


def bound(sql: str, headers: Sequence[Header], params: Params | None = None) -> Statement:
    """Check a statement and bind it over empty relations. Raises a QueryRefused."""

    def of(connection: duckdb.DuckDBPyConnection) -> Statement:
        tree = tree_of(connection, sql)
        values = _values(tree, headers)
        given = {**(params or {}), **{each.name: None for each in values}}
        check(tree, {each.name.casefold(): [name for name, _ in each.columns] for each in headers})
        check_work(tree, {each.name.casefold(): each.most for each in headers})
        check_single(tree, {each.name.casefold(): each.least for each in headers})
        named = _named(tree)
        read = tuple(each for each in headers if each.name.casefold() in named)
        for each in read:
            connection.execute(created(each))
        columns = connection.execute(f"DESCRIBE {sql}", given).fetchall()
        _run_to_the_end(connection, sql, given)
        names = tuple(column[0] for column in columns)
        types = tuple(type_of(name, kind) for name, kind, *_ in columns)
        told = passing(sql, read, {each.name: (each.header, each.place) for each in values})
        return Statement(sql, read, names, types, values, told)

    with _refusing():
        statement = with_connection(of)
        _check_constants(statement, params or {})
    return statement


def _check_constants(statement: Statement, params: Params) -> None:
    """Refuse a statement that fails on every answer. Raises UnsupportedSQL."""
    failed = constant_failure(statement.relations, lambda frames: _try(statement, frames, params))
    if failed is not None and _OF_SEVERAL_ROWS not in str(failed):
        raise UnsupportedSQL(
            f"{OVER_ANSWERS} fails whatever the answers are: {_first_line(str(failed))}",
            hint="Text is never turned into a number by itself." if "convert string" in str(failed) else "",
        )


def _try(statement: Statement, frames: Mapping[str, Frame], params: Params) -> None:
    sql, _ = in_text(statement.sql, statement.headers, frames)
    given = {**params, **statement.given(frames)}

    with_connection(partial(_run_to_the_end, sql=sql, given=given), alone=True)


def _run_to_the_end(connection: duckdb.DuckDBPyConnection, sql: str, given: Params) -> None:
    """Compute all rows of a statement before anything is charged, and drop them."""
    with interrupted(connection, SECONDS_OF_NO_ROW):
        rows = connection.execute(sql, given)
        while rows.fetchmany(10_000):
            pass


def run(statement: Statement, frames: Mapping[str, Frame], params: Params | None = None) -> Frame:
    """Run a statement over the rows of its relations. Raises PostprocessFailed, and UnsupportedSQL if the rows exceed
    the work limits."""
    failed = ""
    try:
        return _rows(statement, {each.name: frames[each.name] for each in statement.relations}, params or {})
    except UnsupportedSQL as refusal:
        failed = refusal.message
    except Exception as error:  # noqa: BLE001 - its message could quote a cell
        failed = _FAILURES.get(type(error).__name__, "DuckDB could not compute it")
        failed = _SEVERAL_ROWS if _OF_SEVERAL_ROWS in str(error) else failed
    raise PostprocessFailed(f"the SQL over these answers failed on what they showed: {failed.rstrip('.')}.")


def _rows(statement: Statement, frames: Mapping[str, Frame], params: Params) -> Frame:
    told = statement.passing
    passed = None if told is None else told.rows(frames[told.header.name], statement.names)
    if passed is not None:
        return passed
    sizes = {name.casefold(): len(frame) for name, frame in frames.items()}
    sql, headers = in_text(statement.sql, statement.headers, frames)
    handed = [each.name for each in headers if as_they_are(each, frames[each.name])]
    given = {**params, **statement.given(frames)}

    def of(connection: duckdb.DuckDBPyConnection) -> Frame:
        widest = max((each.widest() for each in frames.values()), default=0)
        if widest > CELL or any(sizes[each.name.casefold()] > each.most for each in statement.headers):
            check_work(tree_of(connection, statement.sql), sizes, widest)  # otherwise binding checked larger sizes
        for header in headers:
            if header.name in handed:
                connection.register(header.name, arrays_of(header, frames[header.name]))
            else:
                fill(connection, header, frames[header.name])
        with interrupted(connection, SECONDS):
            rows = connection.execute(sql, given).fetchall()
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(statement.names)
        vectors = tuple(vector_of_cells(kind, cells) for kind, cells in zip(statement.types, columns, strict=True))
        return Frame(statement.names, statement.types, vectors)

    return with_connection(of, handed, alone=not headers)


_FAILURES = {
    "ConversionException": "a value could not be cast",
    "OutOfRangeException": "a number is out of range",
    "OverflowError": "a whole number is larger than 64 bits hold",
    "InterruptException": f"it took longer than {SECONDS:.0f} seconds",
    "OutOfMemoryException": f"it needed more than {MEMORY} of memory",
    "InvalidInputException": "a function does not take a value that it met",
}
_OF_SEVERAL_ROWS = "More than one row returned by a subquery"
_SEVERAL_ROWS = "a sub-query that stands for a value gave several rows"


def tree_of(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """Return DuckDB's syntax tree of a text. Raises SQLSyntaxError, UnsupportedSQL."""
    ((text,),) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()
    tree: dict[str, Any] = json.loads(text)
    if tree.get("error"):
        raise SQLSyntaxError(f"{OVER_ANSWERS} cannot be understood: {_first_line(str(tree.get('error_message')))}.")
    if len(tree["statements"]) != 1:
        raise UnsupportedSQL("one query at a time: the text holds several statements.")
    return tree


def _named(tree: dict[str, Any]) -> set[str]:
    """Return the folded names of relations in a checked tree."""
    return {node["table_name"].casefold() for node in objects(tree) if node.get("type") == "BASE_TABLE"}


def _values(tree: dict[str, Any], headers: Sequence[Header]) -> tuple[Value, ...]:
    """Return the parameters of a tree that stand for columns of one-row relations."""
    known = {
        value_name(each.name, place): (each, place)
        for each in headers
        if each.most == each.least == 1
        for place in range(len(each.columns))
    }
    names = [node["identifier"] for node in objects(tree) if node.get("class") == "PARAMETER"]
    return tuple(Value(name, *known[name]) for name in dict.fromkeys(names) if name in known)


# Pool of connections: each runs one statement at a time, whose relations are removed before the next.


def opened() -> duckdb.DuckDBPyConnection:
    """Return a new locked instance."""
    import duckdb

    connection = duckdb.connect(":memory:", config=CONFIG)
    for setting in SETTINGS:
        connection.execute(setting)
    return connection


MOST_KEPT = 2
_idle: dict[int, deque[duckdb.DuckDBPyConnection]] = {}
"""Keyed by process: a fork uses none of its parent's. A deque needs no lock, which a fork could inherit locked."""


def with_connection(
    work: Callable[[duckdb.DuckDBPyConnection], Made], handed: Sequence[str] = (), *, alone: bool = False
) -> Made:
    """Run `work` on a pooled connection in a transaction that is rolled back, which removes its relations; relations
    registered under the names `handed` are unregistered. The connection returns to the pool if all this succeeds.
    alone: the work creates no relation, and needs no transaction."""
    idle = _idle.setdefault(os.getpid(), deque(maxlen=MOST_KEPT))
    try:
        connection = idle.pop()
    except IndexError:
        connection = opened()
    try:
        if not alone:
            connection.execute("BEGIN TRANSACTION")
        return work(connection)
    finally:
        with suppress(Exception):  # on any error, another connection takes its place
            if not alone:
                connection.execute("ROLLBACK")
            for name in handed:
                connection.unregister(name)
            idle.append(connection)


def interrupted(connection: duckdb.DuckDBPyConnection, seconds: float) -> AbstractContextManager[None]:
    """Interrupt a statement that exceeds a time limit."""
    return within(seconds, connection.interrupt)


@contextmanager
def _refusing() -> Iterator[None]:
    """Convert DuckDB's errors about a text to refusals. They quote no cell, since there are no rows."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise UnsupportedSQL(
            f"what {OVER_ANSWERS} makes of constants alone takes longer than {SECONDS_OF_NO_ROW:.0f} seconds."
        ) from None
    except duckdb.Error as error:
        message = _first_line(str(error))
        raise UnsupportedSQL(f"{OVER_ANSWERS} is not accepted by DuckDB, which runs it: {message}") from None
    except KeyError as error:  # the tree has an unknown form
        raise InternalError(f"DuckDB's tree has no {error}.", hint="Please report it.") from None


def _first_line(message: str) -> str:
    line = message.split("\n", maxsplit=1)[0].strip()
    return (line.partition("Error: ")[2] or line)[:200].rstrip(".") + "."
