"""Refusals of correlated sub-queries over private rows."""

from __future__ import annotations

import re
from collections.abc import Collection

from dpsql.errors import QueryRefused, Span, UnknownColumn, UnknownTable, UnsupportedSQL

_OF_DUCKDB = re.compile(r'Referenced (?:table|column) "([^"]+)" not found')


def of_outer_row(error: QueryRefused, names: Collection[str]) -> UnsupportedSQL | None:
    """Return the refusal of a name that only the enclosing SELECT has. names: its tables and columns, folded. None for
    other errors."""
    written = ""
    if isinstance(error, UnknownColumn | UnknownTable) and error.span is not None:
        written = whole_name(error.span)
    elif found := _OF_DUCKDB.search(error.message):
        written = found[1]
    if not written or "unknown table" in error.about:
        return None
    parts = [part.strip(' "`').casefold() for part in written.split(".")]
    if parts[0] not in names:
        return None
    return UnsupportedSQL(
        f"{written} is a column of the row that this sub-query stands beside, and a release is of all rows.",
        span=error.span,
        hint="Ask by group, and join that: JOIN (SELECT k, AVG(x) AS a FROM t GROUP BY k) USING (k).",
    )


def whole_name(span: Span) -> str:
    """Return a name, with the column after it if it is a table's."""
    column = re.match(r'\s*\.\s*(?:"[^"]+"|\w+)', span.sql[span.end + 1 :])
    return span.sql[span.start : span.end + 1] + ("" if column is None else column[0])
