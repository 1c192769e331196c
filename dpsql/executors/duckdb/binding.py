"""Features that DuckDB lacks for a plan: whether it compiles, and whether the engine accepts the statement over empty
tables.

Both depend only on the plan, and so only on declarations; no row can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpsql.core.exact import NO_KEY, ExactPlan
from dpsql.executors.duckdb.dialect import DUCKDB_SQL
from dpsql.executors.duckdb.instance import lock, opened
from dpsql.executors.duckdb.parquet_types import is_unsafe, lack_of
from dpsql.executors.duckdb.pool import Pool
from dpsql.executors.sql.compile import compile_plan
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.executors.sql.scans import tables_read
from dpsql.executors.sql.statement import Statement
from dpsql.plan.nodes import scans_of
from dpsql.schema.columns import ColumnSchema, Type
from dpsql.schema.memoization import remembered

if TYPE_CHECKING:
    import duckdb

_MOST_REMEMBERED = 256
_INSTANCES = Pool()  # opening one takes twenty times as long as planning a statement
_ANY = ((), (), None)


class EmptyTable:
    """A table without rows (see `StoredTable`): its cells have the declared types, its units are texts. The plan has no
    types for tables on paths to units; only hashes depend on them."""

    enforced = False

    def __init__(self, number: int, *, public: bool = False) -> None:
        self._public = public
        self.name = f"empty{number}"
        self._prefix = f"e{number}_"
        self._columns: dict[str, tuple[str, str]] = {}

    def rows(self) -> str:
        return self.name

    def cell(self, column: ColumnSchema) -> str:
        if is_unsafe(column.storage) and not self._public:  # public rows are already loaded
            raise MissingFeature(lack_of(column.name, column.storage))
        return self._named(column.name, DUCKDB_SQL.type_name(column.type))

    def identity(self, name: str) -> str:
        return self._named(f"unit {name}", "VARCHAR")

    def kind(self, name: str) -> Type:  # noqa: ARG002
        return Type.TEXT

    def row(self) -> str:
        return self._named("row", "BIGINT")

    def _named(self, name: str, kind: str) -> str:
        return self._columns.setdefault(f"{kind} {name}", (f"{self._prefix}{len(self._columns)}", kind))[0]

    def made(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self._columns.values())
        return f"CREATE TABLE {self.name} ({columns or f'{self._prefix}0 BIGINT'})"


@remembered(_MOST_REMEMBERED)
def lacking(plan: ExactPlan) -> str | None:
    """Return the feature that the engine lacks, as a noun; None if it can run the plan."""
    public = {scan.table.name.casefold() for scan in scans_of(plan.source) if scan.table.public}
    tables = {name: EmptyTable(number, public=name in public) for number, name in enumerate(sorted(tables_read(plan)))}
    try:
        statement = compile_plan(plan, NO_KEY, DUCKDB_SQL, tables, early=True)
    except MissingFeature as lack:
        return str(lack)
    return None if _binds(statement, tables) else "way to say it in its SQL"


def _binds(statement: Statement, tables: dict[str, EmptyTable]) -> bool:
    """Return whether the engine plans the statement. The instance is kept for the next plan, without anything of this
    one."""
    try:
        with _INSTANCES.instance(_ANY, _new, waits=True) as connection:
            connection.execute("BEGIN")
            for table in tables.values():
                connection.execute(table.made())
            for name, (kind, _) in statement.lists.items():
                connection.execute(f"CREATE TABLE {name} (v {DUCKDB_SQL.type_name(kind)}, p BIGINT)")
            connection.execute(f"EXPLAIN {statement.text}")
            connection.execute("ROLLBACK")
    except Exception:  # noqa: BLE001 - whatever it says is of the plan's text
        ready()
        return False
    return True


def ready() -> None:
    """Ensure that an instance is idle. Opening one is slow, so a delay would reveal that no earlier query was made, or
    that a plan was rejected."""
    with _INSTANCES.instance(_ANY, _new, waits=True):
        pass


def _new() -> duckdb.DuckDBPyConnection:
    connection = opened()
    lock(connection)
    return connection
