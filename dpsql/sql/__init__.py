"""The language: SQL text and declared tables in, a plan out. sqlglot stops here.

sqlglot takes longer to import than the rest of the engine, so it is loaded with the first query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsql.core.goal import Goal
    from dpsql.plan.program import Program
    from dpsql.sql.bind.statement import BoundStatement
    from dpsql.sql.names.catalog import Catalog
    from dpsql.sql.syntax.parameters import Params


def plan_of(sql: object, catalog: Catalog, params: Params = ()) -> tuple[BoundStatement, bool, Goal | None]:
    """The bound query, whether EXPLAIN PRIVACY stood before it, and what WITHIN after it asks. Raises a QueryRefused,
    InvalidPrivacyParameter."""
    from dpsql.sql.bind.statement import bind
    from dpsql.sql.syntax.parse import parse

    statement = parse(sql)
    return bind(statement, catalog, params), statement.explain, statement.goal


def program_of(sql: str, catalog: Catalog, params: Params = ()) -> tuple[Program, bool] | None:
    """A text as releases and SQL over them, and whether EXPLAIN PRIVACY stood before it; None where it has no SQL over
    a release. Raises a QueryRefused."""
    from dpsql.sql.boundary.statements import program_of  # most questions are of one step

    return program_of(sql, catalog, params)
