"""Features that Spark lacks for a plan: whether it compiles and, if there is a session, whether Spark accepts the
statement over empty tables. Both depend only on the plan, and so only on declarations."""

from __future__ import annotations

from dpsql.core.exact import NO_KEY, ExactPlan
from dpsql.executors.spark.dialect import SPARK_SQL
from dpsql.executors.spark.session import borrowed, session_of_trials
from dpsql.executors.sql.compile import compile_plan
from dpsql.executors.sql.dialect import MissingFeature
from dpsql.executors.sql.scans import tables_read
from dpsql.executors.sql.statement import Statement
from dpsql.plan.nodes import scans_of
from dpsql.schema.columns import ColumnSchema, Type
from dpsql.schema.memoization import remembered

_MOST_REMEMBERED = 256
MOST_PUBLIC = 1_000_000
"""Most rows of a public table that are transferred to Spark."""


class EmptyTable:
    """A table without rows (see `StoredTable`): its cells have the declared types, its units are texts, hashed both as
    whole numbers and as texts, to cover all unit types."""

    enforced = False

    def __init__(self, number: int) -> None:
        self.name = f"empty{number}"
        self._prefix = f"e{number}_"
        self._columns: dict[str, tuple[str, str]] = {}

    def rows(self) -> str:
        return self.name

    def cell(self, column: ColumnSchema) -> str:
        return self._named(column.name, SPARK_SQL.type_name(column.type))

    def identity(self, name: str) -> str:
        return self._named(f"unit {name}", "STRING")

    def kind(self, name: str) -> Type:  # noqa: ARG002
        return Type.INTEGER

    def row(self) -> str:
        return self._named("row", "BIGINT")

    def _named(self, name: str, kind: str) -> str:
        return self._columns.setdefault(f"{kind} {name}", (f"{self._prefix}{len(self._columns)}", kind))[0]

    def select(self) -> str:
        columns = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in self._columns.values())
        return f"SELECT {columns or '1 AS nothing'} WHERE FALSE"


def lacking(plan: ExactPlan) -> str | None:
    """Return the feature that the engine lacks, as a noun; None if it can run the plan."""
    lack = _lacking(plan)
    if lack is not None:
        return lack
    try:
        return None if _is_understood(plan) else "way to say it in its SQL"
    except Exception:  # noqa: BLE001 - of a session that is stopped, or a server that is gone
        return "session that answers"


@remembered(_MOST_REMEMBERED)
def _lacking(plan: ExactPlan) -> str | None:
    """Return the feature that the engine lacks, by the plan only."""
    if any(scan.table.public and (scan.table.rows or 0) > MOST_PUBLIC for scan in scans_of(plan.source)):
        return f"public tables of more than {MOST_PUBLIC:,} rows, which would be brought to it"
    try:
        statement, _ = _over_empty_tables(plan)
    except MissingFeature as lack:
        return str(lack)
    return "whole numbers of more than 64 bits in its SQL" if "AS HUGEINT)" in statement.text else None


@remembered(_MOST_REMEMBERED)
def _is_understood(plan: ExactPlan) -> bool:
    """Return whether Spark accepts a plan's statement; nothing is run. Raises any error of an unresponsive session."""
    session = session_of_trials()
    if session is None:
        return True
    from pyspark.errors import AnalysisException  # already loaded

    statement, tables = _over_empty_tables(plan)
    heads = {table.name: table.select() for table in tables.values()}
    for name, (kind, _) in statement.lists.items():
        heads[name] = f"SELECT CAST(NULL AS {SPARK_SQL.type_name(kind)}) AS v, CAST(0 AS BIGINT) AS p"
    heads |= statement.named
    listed = ", ".join(f"{name} AS ({text})" for name, text in heads.items())
    with borrowed(session) as own:
        try:
            return bool(own.sql(f"WITH {listed} {statement.text}").columns)
        except AnalysisException:
            return False


def _over_empty_tables(plan: ExactPlan) -> tuple[Statement, dict[str, EmptyTable]]:
    """Return the statement of a plan over empty tables. Raises MissingFeature."""
    tables = {name: EmptyTable(number) for number, name in enumerate(sorted(tables_read(plan)))}
    return compile_plan(plan, NO_KEY, SPARK_SQL, tables, early=True), tables
