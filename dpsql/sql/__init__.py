"""The language: from SQL text and declared tables to a query plan. No package above imports sqlglot.

sqlglot takes longer to import than the rest of the engine, so it is loaded with the first query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsql.sql.compile import CompiledQuery
    from dpsql.sql.names.catalog import Catalog
    from dpsql.sql.syntax.parameters import Params


def compile_query(sql: object, catalog: Catalog, params: Params = ()) -> CompiledQuery:
    """Return the compiled statement. Raises a QueryRefused with the place in the text."""
    from dpsql.sql.compile import compile_query as compile_statement

    return compile_statement(sql, catalog, params)
