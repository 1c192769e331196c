"""The plan of a statement that is one release."""

from __future__ import annotations

from dpsql.core.goal import Goal
from dpsql.sql.bind.statement import BoundStatement, bind
from dpsql.sql.names.catalog import Catalog
from dpsql.sql.syntax.parameters import Params
from dpsql.sql.syntax.parse import check_is_select, parse


def plan_of(sql: str, catalog: Catalog, params: Params = ()) -> tuple[BoundStatement, bool, Goal | None]:
    """The bound statement, whether EXPLAIN PRIVACY stands before it, and the goal of WITHIN. Raises a QueryRefused."""
    statement = parse(sql)
    check_is_select(statement)
    return bind(statement, catalog, params), statement.explain, statement.goal
